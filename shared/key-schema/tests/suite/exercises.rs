//! Calls of every request constructor: one call each, or one for each form of its request.

use key_schema::category::relocation::{self, CategoryMove};
use key_schema::change::Change;
use key_schema::customer::Names;
use key_schema::customer::{Customer, CustomerChanges as _, Tier, TierIndexKey};
use key_schema::document::{Edit, Right, Tie};
use key_schema::entity::AnyEntity;
use key_schema::erasure::Pending;
use key_schema::id::{AddressName, Born, CustomerId, EntryId, OrganizationId, ProductId, TeamId};
use key_schema::idempotency::StoredResponse;
use key_schema::item::Stored;
use key_schema::mail::MailState;
use key_schema::order::staged::Claims;
use key_schema::order::{Movement, OrderStatus, Placement, Step};
use key_schema::organization::invitation::{self, OpenInvitation, State};
use key_schema::organization::{Authority, Role};
use key_schema::product::{CategoryIndexKey, CategoryPath, Product, ProductChanges as _};
use key_schema::question::QuestionStatus;
use key_schema::recipient::{self, RecipientHash, StopReason};
use key_schema::review::recent::Month;
use key_schema::session::SessionIndexKey;
use key_schema::text::{Email, Username};
use key_schema::verification;
use key_schema::{
    archive, cart, category, counter, customer, document, erasure, expiration, follow, graph, heartbeat, idempotency,
    invoice, like, mail, mark, media, membership, metric, order, organization, picking, picture, place, product,
    question, reach, residence, review, revocation, sales, session, settings, wallet,
};

use crate::categories::path;
use crate::rendering::{Request as _, Shown};
use crate::support::at;
use crate::world::World;

/// Returns the requests of all constructors, by area.
pub fn exercises() -> Vec<Shown> {
    let world = World::plain();
    [
        customers(&world),
        verifications(&world),
        sessions(&world),
        carts(&world),
        products(&world),
        memberships(&world),
        pictures(&world),
        media(&world),
        categories(&world),
        category_moves(&world),
        reviews(&world),
        orders(&world),
        staged(&world),
        invoices(&world),
        sold(&world),
        wallets(&world),
        follows(&world),
        likes(&world),
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

const NOW: &str = "2017-02-05T12:00:00.000Z";

fn customers(world: &World) -> Vec<Shown> {
    let (now, stored, id) = (at(NOW), world.customer(), &world.customer);
    let index_key = TierIndexKey { tier: Tier::Gold, created_at: stored.meta.created_at, id };
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
        customer::begin_erasure(&stored, now).unwrap().show("customer::begin_erasure"),
        customer::delete(&unverified, now).unwrap().show("customer::delete"),
        customer::delete(&stored, now).unwrap().show("customer::delete"),
        put_address(None),
        put_address(Some(7)),
        remove_address(None),
        remove_address(Some(7)),
        customer::by_email("ZOË@EXAMPLE.COM").unwrap().show("customer::by_email"),
        customer::by_tier(Tier::Gold).unwrap().show("customer::by_tier"),
        customer::hydrate([id]).unwrap().show("customer::hydrate"),
        customer::overview(id).unwrap().show("customer::overview"),
        residence::of_place(&"CH".parse().unwrap()).unwrap().show("residence::of_place"),
        residence::of_place(&"CH~Z_C3_BCrich".parse().unwrap()).unwrap().show("residence::of_place"),
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
    let index_key = SessionIndexKey { customer_id: &world.customer, expires_at: at("2017-03-07T08:00:00.000Z"), id };
    vec![
        session::create(&world.session()).unwrap().show("session::create"),
        session::get(id).unwrap().show("session::get"),
        session::extend(&index_key, &"Phone".to_owned(), now).unwrap().show("session::extend"),
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

fn products(world: &World) -> Vec<Shown> {
    let (now, stored, id, noted) = (at(NOW), world.product(), &world.product, world.unsettled(false));
    let mut second = world.product();
    second.data.id = ProductId::stored("a/b #1").unwrap();
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

fn pictures(world: &World) -> Vec<Shown> {
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

fn media(world: &World) -> Vec<Shown> {
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

fn memberships(world: &World) -> Vec<Shown> {
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

fn categories(world: &World) -> Vec<Shown> {
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
        category::children(category).unwrap().show("category::children"),
        category::ancestors(category).unwrap().show("category::ancestors"),
    ]
}

fn category_moves(world: &World) -> Vec<Shown> {
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
        relocation::place(&moving, &[(&product, successor.clone())], now).unwrap().show("category::place"),
        relocation::transfer(&moving, &product, &known, now).unwrap().unwrap().show("category::transfer"),
        relocation::transfer(&moving, &elsewhere, &known, now).unwrap().unwrap().show("category::transfer"),
        relocation::clear(&moving, category, now).unwrap().show("category::clear"),
        relocation::keep(&moving, category, now).unwrap().show("category::keep"),
        relocation::advance(&moving, now).unwrap().show("category::advance"),
        relocation::reach(&moving, category, now).unwrap().show("category::reach"),
    ]
}

fn reviews(world: &World) -> Vec<Shown> {
    let (now, stored, product, customer) = (at(NOW), world.review(), &world.product, &world.customer);
    vec![
        review::create(&stored).unwrap().show("review::create"),
        review::change(&stored, 2, &"Wet".to_owned(), &"It melted.".to_owned(), now).unwrap().show("review::change"),
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

fn orders(world: &World) -> Vec<Shown> {
    let (now, id, customer) = (at(NOW), &world.order, &world.customer);
    let (pending, picking) = (world.order(OrderStatus::Pending), world.order(OrderStatus::Picking));
    let lines = [world.order_line().data];
    let step = |order, to| Step {
        order,
        lines: &lines,
        to,
        at: now,
        by: "staff-1",
        note: None,
        carrier: None,
        tracking: None,
        money: None,
    };
    let shipped =
        Step { carrier: Some("Post".into()), tracking: Some("CH-0001".into()), ..step(&picking, OrderStatus::Shipped) };
    let cancelled = Step { note: Some("changed my mind".into()), ..step(&pending, OrderStatus::Cancelled) };
    let entry = EntryId::new("0190163d-8694-739b-aea5-966c26f8ad91").unwrap();
    let paid = Step { money: Some(Movement::Payment(&entry)), ..step(&pending, OrderStatus::Paid) };
    let undone = Step { money: Some(Movement::Refund(&entry, 100)), ..step(&picking, OrderStatus::Cancelled) };
    let claim = idempotency::claim(&world.idempotency_record(StoredResponse::Order(id.clone())), now).unwrap();
    let own = world.own_order(OrderStatus::Pending);
    let (own_paid, known) = (step(&own, OrderStatus::Paid), world.counted_orders());
    let open = |known| order::open::enter(&own, world.open_order(), known).unwrap();
    let own_placement = |known| Placement {
        order: &own,
        lines: &[],
        by: customer.as_str(),
        claim: None,
        open: Some(open(known)),
        cart: None,
    };
    let placement = Placement {
        order: &pending,
        lines: &[world.order_line()],
        by: customer.as_str(),
        claim: Some(idempotency::claim(&world.idempotency_record(StoredResponse::Order(id.clone())), now).unwrap()),
        open: None,
        cart: Some(cart::check_out(&world.cart()).unwrap()),
    };
    let (from, to) = (Some(at("2017-01-01T00:00:00.000Z")), Some(at("2017-01-31T23:59:59.999Z")));
    let mut retirement = order::retire(order::Retirement {
        order: &world.order(OrderStatus::Delivered),
        lines: &[world.order_line()],
        history: &[world.status_event()],
        expires_at: world.expiry(),
        at: now,
    })
    .unwrap();
    vec![
        order::prepare(customer, true, Some(&world.scope), [&world.product]).unwrap().show("order::prepare"),
        order::place(placement).unwrap().show("order::place"),
        order::place(own_placement(None)).unwrap().show("order::place"),
        order::place(own_placement(Some(&known))).unwrap().show("order::place"),
        order::reference(&world.own_reference_claim()).unwrap().show("order::reference"),
        order::open::get(customer).unwrap().show("order::get"),
        order::open::lapsing(now).unwrap().show("order::lapsing"),
        order::advance(own_paid).unwrap().show("order::advance"),
        order::lapse(&own, &lines, now).unwrap().show("order::lapse"),
        order::get(id).unwrap().show("order::get"),
        order::read_for_update(id).unwrap().show("order::read_for_update"),
        order::lines(id).unwrap().show("order::lines"),
        order::head(id).unwrap().show("order::head"),
        order::advance(shipped).unwrap().show("order::advance"),
        order::advance(cancelled).unwrap().show("order::advance"),
        order::advance(paid).unwrap().show("order::advance"),
        order::advance(undone).unwrap().show("order::advance"),
        order::refund(&picking, &entry, 100, claim, now).unwrap().show("order::refund"),
        order::of_customer(customer, from, to).unwrap().show("order::of_customer"),
        order::of_customer(customer, None, None).unwrap().show("order::of_customer"),
        order::by_status(OrderStatus::Paid, from, to).unwrap().show("order::by_status"),
        order::by_status(OrderStatus::Paid, None, None).unwrap().show("order::by_status"),
        order::shipments(customer, from).unwrap().show("order::shipments"),
        retirement.pop().unwrap().show("order::retire"),
        order::add_log(&world.order_log()).unwrap().show("order::add_log"),
        order::log(id).unwrap().show("order::log"),
    ]
}

fn invoices(world: &World) -> Vec<Shown> {
    let (invoice, mut order, seen) = (world.invoice(), world.order(OrderStatus::Paid), world.invoice_counter());
    order.data.invoice_number = None;
    vec![
        invoice::get(invoice.number).unwrap().show("invoice::get"),
        invoice::counter().unwrap().show("invoice::counter"),
        invoice::issue(&invoice, &order, None).unwrap().show("invoice::issue"),
        invoice::issue(&invoice, &order, Some(&seen)).unwrap().show("invoice::issue"),
    ]
}

fn staged(world: &World) -> Vec<Shown> {
    let (placing, line, now) = (world.order(OrderStatus::Placing), world.order_line(), at(NOW));
    let record =
        idempotency::claim(&world.idempotency_record(StoredResponse::Order(world.order.clone())), now).unwrap();
    let cart = cart::check_out(&world.cart()).unwrap();
    let own = world.own_order(OrderStatus::Placing);
    let claims = Claims { reference: true, idempotency: true, open: true };
    let given_back =
        order::staged::give_back(&world.returning_order(), std::slice::from_ref(&line.data), now).unwrap().unwrap();
    vec![
        order::staged::available([&world.product]).unwrap().show("order::available"),
        order::staged::begin(&placing, Some(record), None).unwrap().show("order::begin"),
        order::staged::begin(&own, None, Some(order::open::enter(&own, world.open_order(), None).unwrap()))
            .unwrap()
            .show("order::begin"),
        order::staged::commit(&own, "c1", None).unwrap().show("order::commit"),
        order::staged::undo_last(&own, &[&line], claims, now).unwrap().show("order::undo_last"),
        order::staged::reserve(&placing, std::slice::from_ref(&line)).unwrap().show("order::reserve"),
        order::staged::commit(&placing, "c1", Some(cart)).unwrap().show("order::commit"),
        order::staged::undo(&placing, &[&line], now).unwrap().show("order::undo"),
        order::staged::undo_last(&placing, &[&line], claims, now).unwrap().show("order::undo_last"),
        given_back.show("order::give_back"),
        order::staged::unfinished(now).unwrap().show("order::unfinished"),
    ]
}

fn sold(world: &World) -> Vec<Shown> {
    let (from, to) = (at("2017-01-01T00:00:00.000Z"), at("2017-12-31T23:59:59.999Z"));
    let (month, city) = ("2017-01".parse().unwrap(), "Z_C3_BCrich".parse().unwrap());
    let in_shop = "Z_C3_BCrich~364".parse().unwrap();
    let (pending, mut cancelled) = (world.order(OrderStatus::Pending), world.order(OrderStatus::Cancelled));
    cancelled.meta.rev += 1;
    let lines = [world.order_line()];
    let apply =
        |head, seen: &sales::Derived| sales::apply(head, &lines, seen, world.sale_place(false).data).unwrap().remove(0);
    let counted = apply(&pending, &sales::Derived::default());
    let online =
        sales::apply(&pending, &lines, &sales::Derived::default(), world.online_sale_place().data).unwrap().remove(0);
    let seen = [AnyEntity::Sale(world.sale(false)), AnyEntity::SalePlace(world.sale_place(false))];
    let reversed = apply(&cancelled, &seen.into_iter().collect());
    vec![
        sales::of_product(&world.product, 2017, from, to).unwrap().show("sales::of_product"),
        sales::derived(&world.order).unwrap().show("sales::derived"),
        counted.show("sales::apply"),
        online.show("sales::apply"),
        reversed.show("sales::apply"),
        place::get(&world.store).unwrap().show("place::get"),
        place::read_for_update(&world.store).unwrap().show("place::read_for_update"),
        place::create(&world.shop()).unwrap().show("place::create"),
        place::change(&world.shop(), 3, at(NOW)).unwrap().show("place::change"),
        place::sales(&world.country, &month, None).unwrap().show("place::sales"),
        place::sales(&world.country, &month, Some(&city)).unwrap().show("place::sales"),
        place::sales(&world.country, &month, Some(&in_shop)).unwrap().show("place::sales"),
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
        wallet::transfer(&world.transfer(), claim()).unwrap().show("wallet::transfer"),
        wallet::transfer(&transfer_in_euros, claim()).unwrap().show("wallet::transfer"),
        wallet::convert(&world.foreign_wallet()).unwrap().unwrap().show("wallet::convert"),
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
    let second = ProductId::stored("a/b #1").unwrap();
    vec![
        like::prepare(product).unwrap().show("like::prepare"),
        like::put(&world.like()).unwrap().show("like::put"),
        like::remove(id, product, now).unwrap().show("like::remove"),
        like::get(id, product).unwrap().show("like::get"),
        like::of_customer(id).unwrap().show("like::of_customer"),
        like::liked(product).unwrap().show("like::liked"),
        like::of_product(product).unwrap().show("like::of_product"),
        like::likers(product).unwrap().show("like::likers"),
        like::erase(id, [product, &second], now).unwrap().show("like::erase"),
    ]
}

fn graph(world: &World) -> Vec<Shown> {
    vec![
        graph::lives_in(&world.customer).unwrap().show("graph::lives_in"),
        graph::own(&world.customer).unwrap().show("graph::own"),
        sales::bought(&world.customer).unwrap().show("sales::bought"),
    ]
}

/// Returns the requests for questions and for settings.
fn questions(world: &World) -> Vec<Shown> {
    let (now, id, customer) = (at(NOW), &world.question, &world.customer);
    let (open, answer, copy) = (world.question(QuestionStatus::Open), world.answer(), world.customer_question());
    let body = StoredResponse::Body { status: 201, body: "{}".into() };
    let claim = || Some(idempotency::claim(&world.idempotency_record(body.clone()), now).unwrap());
    let (values, private) = (r#"{"banner":"Ice"}"#.to_owned(), "{}".to_owned());
    vec![
        question::ask(&open, None).unwrap().show("question::ask"),
        question::ask(&open, claim()).unwrap().show("question::ask"),
        question::read_for_update(id).unwrap().show("question::read_for_update"),
        question::answer(&open, &answer, None).unwrap().show("question::answer"),
        question::answer(&open, &answer, claim()).unwrap().show("question::answer"),
        question::get(id).unwrap().show("question::get"),
        question::of_customer(customer).unwrap().show("question::of_customer"),
        question::support(customer).unwrap().show("question::support"),
        question::open().unwrap().show("question::open"),
        question::erasable(customer).unwrap().show("question::erasable"),
        question::answers(id).unwrap().show("question::answers"),
        question::erase([id]).unwrap().show("question::erase"),
        question::erase_answers([&answer.data]).unwrap().show("question::erase_answers"),
        question::erase_copies([&copy.data]).unwrap().show("question::erase_copies"),
        settings::read(13).unwrap().show("settings::read"),
        settings::create(&values, &private, &open.meta.born, now).unwrap().show("settings::create"),
        settings::change(&values, &private, 3, now).unwrap().show("settings::change"),
    ]
}

fn metrics(world: &World) -> Vec<Shown> {
    let (now, point) = (at(NOW), world.metric_point());
    let range = |from: &str, to: &str| metric::of_name(&world.metric, at(from), at(to), now).unwrap();
    let shown = range("2017-02-03T22:00:00.000Z", "2017-02-04T18:00:00.000Z").into_iter();
    let days = shown.map(|day| day.show("metric::of_name"));
    [metric::store([&point]).unwrap().show("metric::store")].into_iter().chain(days).collect()
}

fn counters(world: &World) -> Vec<Shown> {
    use counter::Reason;

    let (now, name, head) = (at(NOW), &world.counter, world.counter_head());
    let answer = StoredResponse::Body { status: 200, body: "{}".into() };
    let claim = idempotency::claim(&world.idempotency_record(answer), now).unwrap();
    let split = |seen, reason| counter::split(name, seen, reason, now).unwrap().unwrap().show("counter::split");
    vec![
        counter::head(name).unwrap().show("counter::head"),
        counter::add(name, 27, 5, None, now).unwrap().show("counter::add"),
        counter::add(name, 27, 5, Some(claim), now).unwrap().show("counter::add"),
        split(None, Reason::Hot),
        split(Some(&head), Reason::Asked),
        split(Some(&head), Reason::Hot),
        split(Some(&head), Reason::Throttled(now)),
        counter::read(name).unwrap().show("counter::read"),
        counter::rest(&head).unwrap().unwrap().show("counter::rest"),
    ]
}

fn others(world: &World) -> Vec<Shown> {
    let archived = world.retired_order().to_item().unwrap();
    let pending = Pending { customer_id: world.customer.clone(), created_at: at(NOW) };
    let restored = archive::restored(archived, at(NOW), at("2017-02-06T12:00:00.000Z")).unwrap();
    vec![
        idempotency::get(&world.scope).unwrap().show("idempotency::get"),
        expiration::record(&world.expiration(true)).unwrap().show("expiration::record"),
        expiration::of_day("2017-03-06").unwrap().show("expiration::of_day"),
        archive::owner(&world.customer).unwrap().show("archive::owner"),
        archive::restore(&restored).unwrap().show("archive::restore"),
        erasure::pending(at(NOW)).unwrap().show("erasure::pending"),
        erasure::done(&pending).unwrap().show("erasure::done"),
        heartbeat::beat(at(NOW)).unwrap().show("heartbeat::beat"),
        mark::known("bus", [world.event_id.as_str()]).unwrap().show("mark::known"),
        mark::keep(&[world.mark()]).unwrap().show("mark::keep"),
    ]
}

fn subscribers(world: &World) -> Vec<Shown> {
    let (now, id, mail) = (at(NOW), &world.order, world.mail());
    let (born, to) = (Born::new(id.as_str()).unwrap(), RecipientHash::of(&world.email));
    vec![
        mail::prepare(&world.customer, id).unwrap().show("mail::prepare"),
        mail::claim(&mail, &to, false, now).unwrap().show("mail::claim"),
        mail::claim(&mail, &to, true, now).unwrap().show("mail::claim"),
        mail::reclaim(&mail, &to, now).unwrap().show("mail::reclaim"),
        recipient::stop(&to, StopReason::Bounce, now).unwrap().show("recipient::stop"),
        recipient::lift(&to).unwrap().show("recipient::lift"),
        mail::settle(&world.event_id, MailState::Sent, now).unwrap().show("mail::settle"),
        mail::release(&mail, now).unwrap().show("mail::release"),
        picking::stations().unwrap().show("picking::stations"),
        picking::waiting().unwrap().show("picking::waiting"),
        picking::wait(&world.waiting_job()).unwrap().show("picking::wait"),
        picking::admit(id, 10, &born, now).unwrap().show("picking::admit"),
        picking::leave(id, &born, now).unwrap().show("picking::leave"),
    ]
}

fn organizations(world: &World) -> Vec<Shown> {
    let (now, id, customer, team) = (at(NOW), &world.organization, &world.customer, &world.team);
    let admin = CustomerId::new("household-1").unwrap();
    let (by_admin, by_staff) = (Authority::Customer(&admin), Authority::Staff);
    let (old, mut new) = (world.member(Role::Admin), world.member(Role::Member));
    new.meta.updated_at = now;
    new.data.team = Some(TeamId::new("team #2").unwrap());
    let name = "Knights".to_owned();
    let create =
        |authority| organization::create(&world.organization(), &old, authority).unwrap().show("organization::create");
    let put = |old, authority| organization::put_member(old, &new, authority).unwrap().show("organization::put_member");
    let remove = |authority| organization::remove_member(&old, authority).unwrap().show("organization::remove_member");
    vec![
        create(by_staff),
        create(Authority::Customer(customer)),
        organization::get(id).unwrap().show("organization::get"),
        organization::renamed(id).unwrap().show("organization::renamed"),
        organization::rename(id, &name, 3, by_admin, now).unwrap().show("organization::rename"),
        organization::create_team(&world.team(), by_admin).unwrap().show("organization::create_team"),
        organization::change_team(id, team, &name, 3, by_staff, now).unwrap().show("organization::change_team"),
        organization::delete_team(id, team, 3, by_admin).unwrap().show("organization::delete_team"),
        organization::member(id, customer).unwrap().show("organization::member"),
        organization::prepare(id, customer, &admin).unwrap().show("organization::prepare"),
        put(None, by_admin),
        put(None, by_staff),
        put(Some(&old), by_admin),
        put(Some(&old), Authority::Customer(customer)),
        put(None, Authority::Customer(customer)),
        remove(by_admin),
        remove(Authority::Customer(customer)),
        organization::remove_ghost(&old).unwrap().show("organization::remove_ghost"),
        organization::erasable(id, customer).unwrap().show("organization::erasable"),
        organization::erase_member(&old).unwrap().show("organization::erase_member"),
        organization::erase_member(&world.member(Role::Member)).unwrap().show("organization::erase_member"),
        organization::head(id).unwrap().show("organization::head"),
        organization::members(id).unwrap().show("organization::members"),
        organization::of_customer(customer).unwrap().show("organization::of_customer"),
    ]
}

fn invitations(world: &World) -> Vec<Shown> {
    let (now, id, customer) = (at(NOW), &world.organization, &world.customer);
    let admin = CustomerId::new("household-1").unwrap();
    let (open, roster) = (world.invitation_by_admin(), world.invitations());
    let mut others = roster.clone();
    let other = OpenInvitation::new(at("2026-12-05T12:00:00.000Z"), &admin);
    others.data.open.insert(OrganizationId::new("go").unwrap(), other);
    let state = |invitation, roster| State { invitation, roster };
    let none = State::default();
    let one = state(Some(open.clone()), Some(roster.clone()));
    let two = state(Some(open.clone()), Some(others));
    let mut unasked = world.organization();
    unasked.data.invited = 0;
    let mut teamless = open.clone();
    teamless.data.team = None;
    let invite = |head, state, new| invitation::invite(head, state, new, &admin).unwrap().show("organization::invite");
    let accept = |state: &State, role| {
        let member = world.member(role);
        invitation::accept(&open, state, &member).unwrap().show("organization::accept")
    };
    let end = |state: &State| {
        let put = organization::put_member(None, &world.member(Role::Member), Authority::Staff).unwrap();
        state.end(put, id, customer, now).unwrap().show("organization::put_member")
    };
    let withdraw =
        |state, admin| invitation::withdraw(&open, state, admin, now).unwrap().show("organization::withdraw");
    vec![
        invitation::prepare(id, customer, &admin).unwrap().show("organization::prepare"),
        invitation::open(id).unwrap().show("organization::open"),
        invite(&unasked, &none, &open),
        invite(&world.organization(), &two, &teamless),
        accept(&one, Role::Admin),
        accept(&two, Role::Member),
        end(&none),
        end(&one),
        end(&two),
        withdraw(&one, Some(&admin)),
        withdraw(&two, None),
        invitation::of_organization(id).unwrap().show("organization::of_organization"),
        invitation::of_customer(customer, now).unwrap().show("organization::of_customer"),
        invitation::roster(customer).unwrap().show("organization::roster"),
        invitation::erase(&roster).unwrap().show("organization::erase"),
        invitation::forget(&roster).unwrap().show("organization::forget"),
    ]
}

fn documents(world: &World) -> Vec<Shown> {
    let (now, id, editor) = (at(NOW), &world.document, CustomerId::new("household-13").unwrap());
    let (plain, drafted, version) = (world.document(false), world.document(true), world.document_version(false));
    let (section, note) = ([world.document_section()], Some("as agreed".to_owned()));
    let (own, admin) = (Right::Own(&editor), Right::Admin(&world.organization, &editor));
    let (member, manager) =
        (Right::Member(&world.organization, &editor), Right::Admin(&world.organization, &world.customer));
    let born = Born::new("0190163d-8694-739b-aea5-966c26f8ad91").unwrap();
    let edit = |old, right| Edit { old, right, by: &editor, at: now, born: &born };
    let draft = drafted.draft.as_ref().unwrap();
    let put = |old, right| {
        let (put, _) = document::put_section(edit(old, right), &world.section, "To win.".to_owned()).unwrap();
        put.show("document::put_section")
    };
    let mut private = world.document(false);
    private.data.organization_id = None;
    let create = |head, is_staff| document::create(head, &section, &editor, is_staff).unwrap().show("document::create");
    let mut crowded = world.deleted_document();
    crowded.data.editors = (100..200).map(|n| CustomerId::new(format!("household-{n}")).unwrap()).collect();
    let release = |tie| document::release(&plain, &editor, tie).unwrap().show("document::release");
    let add =
        |head, right| document::add_editor(head, &editor, right, &born, now).unwrap().show("document::add_editor");
    let remove = |head, right| document::remove_editor(head, &editor, right).unwrap().show("document::remove_editor");
    let retire = |right| document::retire_shared(&plain, right, now).unwrap().show("document::retire_shared");
    let deletions = [world.deleted_document(), crowded].map(|head| document::delete(&head).unwrap());
    let deletions = deletions.into_iter().flatten().map(|delete| delete.show("document::delete"));
    let mut shown = vec![
        create(&private, true),
        create(&private, false),
        create(&plain, true),
        create(&plain, false),
        document::get(id).unwrap().show("document::get"),
        document::texts(id, &world.manifest(), Some((&world.organization, &editor))).unwrap().show("document::texts"),
        document::version(id, 41).unwrap().show("document::version"),
        document::versions(id).unwrap().show("document::versions"),
        document::read_for_update(id).unwrap().show("document::read_for_update"),
        document::standing(&world.organization, &editor).unwrap().show("document::standing"),
        put(&private, own),
        put(&plain, member),
        put(&drafted, admin),
        put(&plain, Right::Staff),
        document::begin_draft(edit(&private, own)).unwrap().0.show("document::begin_draft"),
        document::discard_draft(edit(&drafted, member), draft).unwrap().show("document::discard_draft"),
        document::publish(edit(&drafted, member), draft, note.clone()).unwrap().0.show("document::publish"),
        document::restore(edit(&plain, admin), &version, note).unwrap().0.show("document::restore"),
        add(&private, Right::Own(&world.customer)),
        add(&private, Right::Staff),
        add(&plain, Right::Staff),
        add(&plain, manager),
        // Here the caller becomes an editor. The caller's right already checks the membership.
        add(&plain, member),
        add(&plain, admin),
        remove(&private, Right::Own(&world.customer)),
        remove(&private, own),
        remove(&plain, Right::Staff),
        remove(&plain, Right::Member(&world.organization, &world.customer)),
        remove(&plain, member),
        remove(&plain, manager),
        retire(member),
        retire(manager),
        document::retire(id, 3, Some(&world.customer), now).unwrap().show("document::retire"),
        document::history(id).unwrap().show("document::history"),
        document::sweep_texts(&drafted, std::slice::from_ref(&version)).unwrap().show("document::sweep_texts"),
        document::sweep_versions(std::slice::from_ref(&version)).unwrap().show("document::sweep_versions"),
        document::of_customer(&editor).unwrap().show("document::of_customer"),
        release(Tie::Owner),
        release(Tie::Editor),
        document::forget(&world.customer_document()).unwrap().show("document::forget"),
    ];
    shown.extend(deletions);
    shown
}
