//! Requests for products, categories and reviews.

use key_schema::category::relocation::{self, CategoryMove};
use key_schema::change::Change;
use key_schema::id::ProductId;
use key_schema::idempotency::StoredResponse;
use key_schema::product::{CategoryIndexKey, CategoryPath, Product, ProductChanges as _};
use key_schema::review::Review;
use key_schema::review::recent::Month;
use key_schema::{category, idempotency, media, membership, picture, product, review, variant};

use super::NOW;
use crate::categories::path;
use crate::rendering::{Request as _, Shown};
use crate::support::at;
use crate::world::World;

pub(super) fn products(world: &World) -> Vec<Shown> {
    let (now, stored, id, noted) = (at(NOW), world.product(), &world.product, world.unsettled(false));
    let mut second = world.product();
    second.data.id = ProductId::new("a+b #1").unwrap();
    let index_key = CategoryIndexKey { category_path: &path(&["GROCERY", "ICE"]), id };
    let moved = Change::<Product>::visible(now)
        .price(&world.money(99))
        .unwrap()
        .summary(&None)
        .unwrap()
        .enter(&index_key)
        .unwrap();
    let claim =
        idempotency::claim(&world.idempotency_record(StoredResponse::Body { status: 200, body: "{}".into() }), now)
            .unwrap();
    vec![
        product::create(&stored, 100, &[world.category_node()]).unwrap().show("product::create"),
        product::create_many([(&stored, 100), (&second, 0)]).unwrap().show("product::create_many"),
        product::revive(&world.retired_product(), &stored, 100, &[]).unwrap().show("product::revive"),
        product::page(id).unwrap().show("product::page"),
        product::read_for_update(id).unwrap().show("product::read_for_update"),
        product::many([id, &second.data.id]).unwrap().show("product::many"),
        product::by_ids([id, &second.data.id]).unwrap().show("product::by_ids"),
        product::update(id, moved, 3).unwrap().show("product::update"),
        product::retire(id, 3, now).unwrap().show("product::retire"),
        product::set_stock(id, 50, now).unwrap().show("product::set_stock"),
        product::adjust_stock(&world.stock(), 999_995, world.adjustment(), claim)
            .unwrap()
            .show("product::adjust_stock"),
        product::stock(id).unwrap().show("product::stock"),
        product::content(id).unwrap().show("product::content"),
        product::create_content(&world.content(), None).unwrap().show("product::create_content"),
        product::create_content(&world.large_content(), Some(&noted)).unwrap().show("product::create_content"),
        product::replace_content(&world.content(), None, None, 3, now).unwrap().show("product::replace_content"),
        product::replace_content(&world.content(), None, Some(&noted), 3, now)
            .unwrap()
            .show("product::replace_content"),
        product::replace_content(&world.large_content(), Some(&noted), None, 3, now)
            .unwrap()
            .show("product::replace_content"),
        product::replace_content(&world.large_content(), Some(&noted), Some(&noted), 3, now)
            .unwrap()
            .show("product::replace_content"),
        product::in_category(&world.category).unwrap().show("product::in_category"),
        product::copy_stock(&world.stock()).unwrap().show("product::copy_stock"),
        product::copy_rating(&world.review_stats()).unwrap().show("product::copy_rating"),
    ]
}

pub(super) fn variants(world: &World) -> Vec<Shown> {
    let (now, one, mut parent) = (at(NOW), world.variant_product(), world.parent_product());
    parent.data.id = one.parent.clone().unwrap();
    let mut childless = parent.clone();
    childless.data.variants = None;
    let mut retired = world.variant_product();
    retired.data.retired = true;
    vec![
        variant::create(&one, 100, &parent, &[]).unwrap().show("variant::create"),
        variant::create(&one, 0, &childless, &[world.category_node()]).unwrap().show("variant::create"),
        variant::revive(&retired, &one, 100, &parent, &[]).unwrap().show("variant::revive"),
        variant::revive(&retired, &one, 0, &childless, &[]).unwrap().show("variant::revive"),
        variant::retire(&one, 3, now).unwrap().unwrap().show("variant::retire"),
        variant::refresh(&one).unwrap().unwrap().show("variant::refresh"),
    ]
}

pub(super) fn pictures(world: &World) -> Vec<Shown> {
    let (now, id, known, picture) = (at(NOW), &world.product, world.pictures(), world.picture());
    let add = |known| picture::add(&picture, &world.unsettled(false), known, now).unwrap();
    let describe = |alt| picture::describe(&known, &world.media, alt, now).unwrap().show("picture::describe");
    vec![
        picture::list(id).unwrap().show("picture::list"),
        picture::prepare(id).unwrap().show("picture::prepare"),
        add(None).show("picture::add"),
        add(Some(&known)).show("picture::add"),
        describe(Some("Ice")),
        describe(None),
        picture::remove(&known, &world.unsettled(false), now).unwrap().show("picture::remove"),
    ]
}

pub(super) fn media(world: &World) -> Vec<Shown> {
    let (now, noted) = (at(NOW), world.unsettled(false));
    let listed = media::Unsettled { product_id: world.product.clone(), id: world.media.clone() };
    vec![
        media::note(&noted).unwrap().show("media::note"),
        media::unsettled_since(now).unwrap().show("media::unsettled_since"),
        media::doom(&listed, now, now).unwrap().show("media::doom"),
        media::references(&noted).unwrap().show("media::references"),
        media::forget(&world.unsettled(true)).unwrap().show("media::forget"),
    ]
}

pub(super) fn memberships(world: &World) -> Vec<Shown> {
    let (now, stored, id, further) = (at(NOW), world.product(), &world.product, &world.further_category);
    let (known, added) = (world.product_categories(), path(&["SUMMER", "ICE"]));
    let add = |known| membership::add(&stored, &added, known, &stored.meta.born, now).unwrap();
    vec![
        membership::prepare(id).unwrap().show("membership::prepare"),
        add(None).show("membership::add"),
        add(Some(&known)).show("membership::add"),
        membership::remove(&known, further, now).unwrap().show("membership::remove"),
        membership::lists([id]).unwrap().show("membership::lists"),
        membership::of_product(id).unwrap().show("membership::of_product"),
        membership::refresh(&stored, further).unwrap().show("membership::refresh"),
        membership::refresh(&world.retired_product(), further).unwrap().show("membership::refresh"),
    ]
}

pub(super) fn categories(world: &World) -> Vec<Shown> {
    let (category, top) = (&world.category, &world.unescaped_category);
    vec![
        category::get(category).unwrap().show("category::get"),
        category::get(top).unwrap().show("category::get"),
        category::known([top, category]).unwrap().show("category::known"),
        category::add([&world.category_node()]).unwrap().show("category::add"),
        category::create(&world.category_node(), Some(&world.category_about())).unwrap().show("category::create"),
        category::create(&world.category_node(), None).unwrap().show("category::create"),
        category::describe(&world.category_about()).unwrap().show("category::describe"),
        category::redescribe(category, &Some("Ice".into()), &None, 3, at(NOW)).unwrap().show("category::redescribe"),
        category::children(Some(category)).unwrap().show("category::children"),
        category::children(None).unwrap().show("category::children"),
        category::subtree(category).unwrap().show("category::subtree"),
        category::ancestors(category).unwrap().show("category::ancestors"),
    ]
}

pub(super) fn category_moves(world: &World) -> Vec<Shown> {
    let (now, moving, product) = (at(NOW), world.category_move(), world.product());
    let (category, successor) = (&world.category, moving.destination(&world.category).unwrap());
    let below = CategoryPath::new([category.names(), &["BAGS".to_owned()]].concat()).unwrap();
    let mut known = world.product_categories();
    known.data.paths.push(below);
    let mut elsewhere = product.clone();
    elsewhere.data.category_path = world.further_category.clone();
    let wanted = || CategoryMove::new(category.clone(), successor.clone(), now);
    let (born, about) = (&product.meta.born, world.category_about());
    vec![
        relocation::get().unwrap().show("category::get"),
        relocation::begin(wanted(), None, born.clone(), now).unwrap().show("category::begin"),
        relocation::begin(wanted(), Some(&moving), born.clone(), now).unwrap().show("category::begin"),
        relocation::below(category, None).unwrap().show("category::below"),
        relocation::below(&category.parent().unwrap(), Some(category)).unwrap().show("category::below"),
        relocation::about(category).unwrap().show("category::about"),
        relocation::copy(&moving, category, &successor, Some(&about), now).unwrap().show("category::copy"),
        relocation::copy(&moving, category, &successor, None, now).unwrap().show("category::copy"),
        relocation::listed(category).unwrap().show("category::listed"),
        relocation::read([&world.product]).unwrap().show("category::read"),
        relocation::add(&moving, [&successor], now).unwrap().show("category::add"),
        relocation::move_products(&moving, &[(&product, successor.clone())], now)
            .unwrap()
            .show("category::move_products"),
        relocation::transfer(&moving, &product, &known, now).unwrap().unwrap().show("category::transfer"),
        relocation::transfer(&moving, &elsewhere, &known, now).unwrap().unwrap().show("category::transfer"),
        relocation::clear(&moving, category, now).unwrap().show("category::clear"),
        relocation::keep(&moving, category, now).unwrap().show("category::keep"),
        relocation::next_phase(&moving, now).unwrap().show("category::next_phase"),
        relocation::reach(&moving, category, now).unwrap().show("category::reach"),
    ]
}

pub(super) fn reviews(world: &World) -> Vec<Shown> {
    let (now, stored, product, customer) = (at(NOW), world.review(), &world.product, &world.customer);
    let named = Review { rating: 2, display_name: Some("Ann from Ulm".to_owned()), ..stored.data.clone() };
    vec![
        review::create(&stored).unwrap().show("review::create"),
        review::change(&stored, &named, now).unwrap().show("review::change"),
        review::erase_name(&stored, now).unwrap().show("review::erase_name"),
        review::delete(&stored, now).unwrap().show("review::delete"),
        review::get(product, customer).unwrap().show("review::get"),
        review::read_for_update(product, customer).unwrap().show("review::read_for_update"),
        review::stats(product).unwrap().show("review::stats"),
        review::newest(product).unwrap().show("review::newest"),
        review::best(product).unwrap().show("review::best"),
        review::by_customer(customer).unwrap().show("review::by_customer"),
        review::recent::of_month(&Month::of(now)).unwrap().show("review::of_month"),
        review::recent::months_before(&Month::of(now)).unwrap().show("review::months_before"),
        review::recent::month(&Month::of(now)).unwrap().show("review::month"),
        review::recent::add_month(&world.review_month()).unwrap().show("review::add_month"),
    ]
}
