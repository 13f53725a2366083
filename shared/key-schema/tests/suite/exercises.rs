//! Calls of every function that makes a request, with one call for each form of its request.

use key_schema::change::Change;
use key_schema::customer::{Customer, CustomerChanges as _, Names, Tier, TierIndexKey};
use key_schema::id::{AddressName, ProductId};
use key_schema::idempotency::StoredResponse;
use key_schema::item::Stored;
use key_schema::leaderboard::{Board, Period};
use key_schema::lists;
use key_schema::text::{Email, Username};
use key_schema::{
    cart, customer, follow, graph, idempotency, leaderboard, like, reach, residence, revocation, sales, session,
    verification, wallet,
};

use crate::rendering::{Request as _, Shown};
use crate::support::at;
use crate::world::World;
use crate::world::agents::{agents, checkout_sessions};
use crate::world::catalog::{categories, category_moves, media, memberships, pictures, products, reviews, variants};
use crate::world::orders::{
    guest_carts, guest_orders, invoices, orders, payments, pricing_rules, promotions, sold, staged,
};
use crate::world::others::{counters, documents, invitations, metrics, organizations, others, questions, subscribers};
use crate::world::webhooks::webhooks;

pub fn exercises() -> Vec<Shown> {
    let world = World::plain();
    [
        customers(&world),
        verifications(&world),
        sessions(&world),
        carts(&world),
        guest_carts(&world),
        guest_orders(&world),
        agents(&world),
        checkout_sessions(&world),
        webhooks(&world),
        products(&world),
        variants(&world),
        memberships(&world),
        pictures(&world),
        media(&world),
        categories(&world),
        category_moves(&world),
        reviews(&world),
        orders(&world),
        staged(&world),
        invoices(&world),
        payments(&world),
        pricing_rules(&world),
        promotions(&world),
        sold(&world),
        wallets(&world),
        follows(&world),
        likes(&world),
        leaderboards(&world),
        graph(&world),
        questions(&world),
        metrics(&world),
        counters(&world),
        others(&world),
        subscribers(&world),
        organizations(&world),
        invitations(&world),
        documents(&world),
        vec![reach::nothing().unwrap().show("reach::nothing")],
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub const NOW: &str = "2017-02-05T12:00:00.000Z";

fn customers(world: &World) -> Vec<Shown> {
    let (now, stored, id) = (at(NOW), world.customer(), &world.customer);
    let index_key = TierIndexKey { tier: Tier::Gold, created_at: stored.meta.created_at, id, shards: lists::FIRST };
    let promoted = Change::<Customer>::visible(now).name(&"Zoë B.".to_owned()).unwrap().enter(&index_key).unwrap();
    let moved = residence::settle(Change::<Customer>::visible(now), id, stored.place.as_ref()).unwrap();
    let gone = residence::settle(Change::<Customer>::visible(now), id, None).unwrap();
    let (email, username) = ("zoe@example.org".parse().unwrap(), "zoe".parse().unwrap());
    let (other_spelling, same_name) = ("ZOË@example.com".parse().unwrap(), "Zoë STRASSE".parse().unwrap());
    let change = || Change::<Customer>::visible(now);
    let unverified = world.unverified();
    let rename = |old: &Stored<Customer>, email: &Email, email_verified, username: &Username| {
        let names = Names { email, email_verified, username };
        customer::rename(old, names, change(), now).unwrap().show("customer::rename")
    };
    let put_address = |version| {
        let put = customer::put_address(id, &world.address, &world.postal_address(), version, now);
        put.unwrap().show("customer::put_address")
    };
    let other = AddressName::new("#1: a.b[0]").unwrap();
    let remove_address =
        |version| customer::remove_address(id, &other, version, now).unwrap().show("customer::remove_address");
    vec![
        customer::create(&stored).unwrap().show("customer::create"),
        customer::get(id).unwrap().show("customer::get"),
        customer::read_for_update(id).unwrap().show("customer::read_for_update"),
        customer::update(&stored, promoted).unwrap().show("customer::update"),
        customer::update(&stored, moved).unwrap().show("customer::update"),
        customer::update(&stored, gone).unwrap().show("customer::update"),
        rename(&stored, &email, true, &username),
        rename(&stored, &other_spelling, true, &same_name),
        rename(&stored, &email, false, &same_name),
        rename(&unverified, &email, true, &same_name),
        rename(&unverified, &email, false, &same_name),
        customer::create(&unverified).unwrap().show("customer::create"),
        customer::erasing(now).unwrap().show("customer::erasing"),
        customer::begin_erasure(&stored, now).unwrap().show("customer::begin_erasure"),
        customer::delete(&unverified, now).unwrap().show("customer::delete"),
        customer::delete(&stored, now).unwrap().show("customer::delete"),
        put_address(None),
        put_address(Some(7)),
        remove_address(None),
        remove_address(Some(7)),
        customer::by_email("ZOË@EXAMPLE.COM").unwrap().show("customer::by_email"),
        customer::by_tier(Tier::Gold, lists::unchanged()).unwrap().show("customer::by_tier"),
        customer::all(lists::unchanged()).unwrap().show("customer::all"),
        customer::hydrate([id]).unwrap().show("customer::hydrate"),
        customer::overview(id).unwrap().show("customer::overview"),
        customer::data_parts([customer::get(id)]).unwrap().show("customer::data_parts"),
        customer::count_data_page(id, now).unwrap().show("customer::count_data_page"),
        residence::of_location(&"CH".parse().unwrap()).unwrap().show("residence::of_location"),
        residence::of_location(&"CH~Z_C3_BCrich".parse().unwrap()).unwrap().show("residence::of_location"),
    ]
}

fn verifications(world: &World) -> Vec<Shown> {
    let (now, id, profile) = (at(NOW), &world.customer, world.unverified());
    let (first, nonce) = (world.verification(), "00112233445566778899aabbccddeeff");
    vec![
        verification::read(id).unwrap().show("verification::read"),
        verification::request(&first, None).unwrap().show("verification::request"),
        verification::request(&first, Some(&first)).unwrap().show("verification::request"),
        verification::count_try(id, nonce, now).unwrap().show("verification::count_try"),
        verification::verify(&profile, Some(nonce), now).unwrap().show("verification::verify"),
        verification::verify(&profile, None, now).unwrap().show("verification::verify"),
    ]
}

fn sessions(world: &World) -> Vec<Shown> {
    let (now, id) = (at(NOW), &world.session);
    let later = at("2017-03-07T08:00:00.000Z");
    vec![
        session::create(&world.session()).unwrap().show("session::create"),
        session::get(id).unwrap().show("session::get"),
        session::extend(&world.session(), later, &"Phone".to_owned(), now).unwrap().show("session::extend"),
        session::end(&world.session(), now).unwrap().show("session::end"),
        session::active(&world.customer, now).unwrap().show("session::active"),
        session::of_customer(&world.customer).unwrap().show("session::of_customer"),
        session::read_all([id]).unwrap().show("session::read_all"),
        session::revoke_all([&world.session()], now).unwrap().show("session::revoke_all"),
        session::end_all([id]).unwrap().show("session::end_all"),
        revocation::get(&world.revocation().data.sign_in).unwrap().show("revocation::get"),
    ]
}

fn carts(world: &World) -> Vec<Shown> {
    let (now, id) = (at(NOW), &world.customer);
    vec![
        cart::get(id).unwrap().show("cart::get"),
        cart::prepare(id, &world.product).unwrap().show("cart::prepare"),
        cart::products([&world.product]).unwrap().show("cart::products"),
        cart::create(&world.cart(), now).unwrap().show("cart::create"),
        cart::put_line(id, &world.product, &world.cart_line(), now).unwrap().show("cart::put_line"),
        cart::remove_line(id, &world.product, now).unwrap().show("cart::remove_line"),
        cart::discard(id).unwrap().show("cart::discard"),
        cart::discard_earlier(id, now).unwrap().show("cart::discard_earlier"),
    ]
}

fn wallets(world: &World) -> Vec<Shown> {
    let (now, id, entry) = (at(NOW), &world.customer, world.wallet_entry().data);
    let (mut in_euros, mut transfer_in_euros) = (entry.clone(), world.transfer());
    in_euros.currency = "EUR".parse().unwrap();
    transfer_in_euros.money.currency = in_euros.currency;
    let body = StoredResponse::Body { status: 201, body: "{}".into() };
    let claim = || idempotency::claim(&world.idempotency_record(body.clone()), now).unwrap();
    vec![
        wallet::read(id).unwrap().show("wallet::read"),
        wallet::read_for_update(id).unwrap().show("wallet::read_for_update"),
        wallet::entries(id).unwrap().show("wallet::entries"),
        wallet::deposit(&entry, None, claim()).unwrap().show("wallet::deposit"),
        wallet::deposit(&entry, Some(&world.wallet()), claim()).unwrap().show("wallet::deposit"),
        wallet::deposit(&in_euros, Some(&world.wallet()), claim()).unwrap().show("wallet::deposit"),
        wallet::transfer(&world.transfer(), claim(), false).unwrap().show("wallet::transfer"),
        wallet::transfer(&transfer_in_euros, claim(), true).unwrap().show("wallet::transfer"),
    ]
}

fn follows(world: &World) -> Vec<Shown> {
    let (id, other) = (&world.customer, &world.other);
    vec![
        follow::prepare(other).unwrap().show("follow::prepare"),
        follow::put(&world.follow()).unwrap().show("follow::put"),
        follow::remove(id, other).unwrap().show("follow::remove"),
        follow::get(id, other).unwrap().show("follow::get"),
        follow::following(id).unwrap().show("follow::following"),
        follow::followers(other).unwrap().show("follow::followers"),
        follow::erase([(id, other), (other, id)]).unwrap().show("follow::erase"),
    ]
}

fn likes(world: &World) -> Vec<Shown> {
    let (id, product, now) = (&world.customer, &world.product, at(NOW));
    let second = ProductId::new("a+b #1").unwrap();
    vec![
        like::prepare(product).unwrap().show("like::prepare"),
        like::put(&world.like()).unwrap().show("like::put"),
        like::remove(id, product, now).unwrap().show("like::remove"),
        like::get(id, product).unwrap().show("like::get"),
        like::of_customer(id).unwrap().show("like::of_customer"),
        like::products([product]).unwrap().show("like::products"),
        like::liked(product).unwrap().show("like::liked"),
        like::of_product(product).unwrap().show("like::of_product"),
        like::sum(product).unwrap().show("like::sum"),
        like::likers(product).unwrap().show("like::likers"),
        like::erase(id, [product, &second], now).unwrap().show("like::erase"),
    ]
}

fn leaderboards(world: &World) -> Vec<Shown> {
    let (product, now) = (&world.product, at(NOW));
    vec![
        leaderboard::view(product, "view-34", now).unwrap().unwrap().show("leaderboard::view"),
        leaderboard::days(Board::Likes, product, now).unwrap().show("leaderboard::days"),
        leaderboard::store_rank(&world.rank(17)).unwrap().show("leaderboard::store_rank"),
        leaderboard::top(Board::Views, Period::week(now)).unwrap().show("leaderboard::top"),
        leaderboard::products([product]).unwrap().show("leaderboard::products"),
    ]
}

fn graph(world: &World) -> Vec<Shown> {
    vec![
        graph::lives_in(&world.customer).unwrap().show("graph::lives_in"),
        graph::own(&world.customer).unwrap().show("graph::own"),
        sales::bought(&world.customer).unwrap().show("sales::bought"),
    ]
}
