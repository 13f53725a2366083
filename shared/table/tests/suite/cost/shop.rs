//! Measures customers, products and orders.

use fixture::seed;
use key_schema::change::Change;
use key_schema::customer::{self, Customer, CustomerChanges as _, Names, Tier, TierIndexKey};
use key_schema::guest_cart::CartToken;
use key_schema::id::{AddressName, Born, CustomerId, LocationId, StoreId};
use key_schema::item::Stored;
use key_schema::lists;
use key_schema::order::addresses::{Destination, Guest, OrderAddresses};
use key_schema::order::guest::{self, Claimable};
use key_schema::order::open::{self, OpenOrder};
use key_schema::order::{self, CustomerOrder, OrderAction, OrderStatus, PlacedOrder, Step};
use key_schema::payment::PaymentMethod;
use key_schema::product::{CategoryPath, Product, ProductChanges as _, ReshardReason};
use key_schema::revocation::SignIn;
use key_schema::verification::{self, EmailVerification};
use key_schema::{
    cart, category, erasure, guest_cart, idempotency, location, membership, product, region, review, revocation, sales,
    session,
};

use super::large;
use super::meter::Bench;
use crate::data::{self, at, customer_id, order_id, product_id};

/// Measures a customer who verifies the email address.
pub(super) async fn verifications(bench: &mut Bench) {
    let mut profile = data::customer(200);
    profile.data.email_verified = false;
    bench.table.transact(&customer::create(&profile).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let nonce = "00112233445566778899aabbccddeeff";
    let born = Born::new("verification").unwrap();
    let next = EmailVerification::next(None, &profile, (nonce.to_owned(), "k1"), born, at(0)).unwrap();
    bench.transact("one address", verification::request(&next, None).unwrap()).await;
    bench.batch_get("one address", verification::read(&profile.id).unwrap()).await;
    bench.update("one code", verification::count_try(&profile.id, nonce, at(1)).unwrap()).await;
    bench.transact("one code", verification::verify(&profile, Some(nonce), at(1)).unwrap()).await;
}

pub(super) async fn customers(bench: &mut Bench) {
    for number in 1..=25 {
        let create = customer::create(&data::customer(number)).unwrap();
        if number == 1 {
            bench.transact("a customer with one address", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let id = customer_id(1);
    let one = bench.get("one customer", customer::get(&id).unwrap()).await;
    bench.get("one customer", customer::read_for_update(&id).unwrap()).await;
    let change = Change::<Customer>::visible(at(1)).name(&"Augusta Ada King".to_owned()).unwrap();
    let one = bench.update("the name", customer::update(&one, change).unwrap()).await;
    let index_key = TierIndexKey { tier: Tier::Gold, created_at: one.meta.created_at, id: &id, shards: lists::FIRST };
    let change = Change::visible(at(2)).enter(&index_key).unwrap();
    let one = bench.update("the tier: the index entry moves", customer::update(&one, change).unwrap()).await;
    let email = "ada@example.com".parse().unwrap();
    let names = Names { email: &email, email_verified: true, username: &one.username };
    let rename = customer::rename(&one, names, Change::visible(at(3)), at(3)).unwrap();
    bench.transact("another email address", rename).await;
    let work = AddressName::new("work").unwrap();
    bench.update("a second address", customer::put_address(&id, &work, &data::address(), None, at(4)).unwrap()).await;
    bench.update("the second address", customer::remove_address(&id, &work, None, at(5)).unwrap()).await;
    bench.get("one claim", customer::by_email("ADA@example.com").unwrap()).await;
    bench.query("a page of 20", 20, customer::by_tier(Tier::Bronze, lists::unchanged()).unwrap().limit(20)).await;
    bench.query("a page of 20", 20, customer::all(lists::unchanged()).unwrap().limit(20)).await;
    let ids: Vec<_> = (1..=20).map(customer_id).collect();
    bench.batch_get("a page of 20", customer::hydrate(&ids).unwrap()).await;
    bench.batch_get("one profile", customer::data_parts([customer::get(&id)]).unwrap()).await;
    bench.write("one page", customer::count_data_page(&id, at(5)).unwrap()).await;
    let last = bench.table.get(&customer::read_for_update(&customer_id(25)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let last = bench.update("a customer with one address", customer::begin_erasure(&last, at(6)).unwrap()).await;
    bench.query("one customer", 1, customer::erasing(at(6)).unwrap()).await;
    bench.transact("a customer with one address", customer::delete(&last, at(6)).unwrap()).await;

    bench.query("one erasure", 1, erasure::pending(at(6)).unwrap()).await;
    let pending = erasure::Pending { customer_id: last.id.clone(), created_at: at(6) };
    bench.write("one erasure", erasure::done(&pending).unwrap()).await;

    for number in 1..=5 {
        let create = session::create(&data::session(number)).unwrap();
        if number == 1 {
            bench.transact("one session", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let one = data::session(1);
    bench.get("one session", session::get(&one.id).unwrap()).await;
    let extend = session::extend(&one, at(172_800), &one.device, at(1)).unwrap();
    bench.update("one session: its index entry moves", extend).await;
    bench.query("5 sessions", 5, session::active(&id, at(1)).unwrap()).await;
    bench.query("5 sessions", 5, session::of_customer(&id).unwrap()).await;
    bench.transact("one session, with two revocations", session::end(&one, at(1)).unwrap()).await;
    let sign_in = SignIn::of(&id, one.id.as_str());
    bench.get("a token whose session has ended", revocation::get(&sign_in).unwrap()).await;
    let rest: Vec<_> = (2..=5).map(|number| data::session(number).data.id).collect();
    bench.batch_get("4 sessions", session::read_all(&rest).unwrap()).await;
    let sessions: Vec<_> = (2..=5).map(data::session).collect();
    bench.batch_write("4 sessions", session::revoke_all(&sessions, at(1)).unwrap()).await;
    bench.batch_write("4 sessions", session::end_all(&rest).unwrap()).await;

    bench.write("a cart of one line", cart::create(&data::cart(1), at(0)).unwrap()).await;
    for number in 2..=5 {
        let line = cart::CartLine { quantity: 2, added_at: at(0) };
        let put = cart::put_line(&id, &product_id(number), &line, at(0)).unwrap();
        if number == 5 {
            bench.update("the fifth line", put).await;
        } else {
            bench.table.update(&put).await.unwrap().unwrap();
            let _ = bench.table.meter().take();
        }
    }
    bench.get("a cart of 5 lines", cart::get(&id).unwrap()).await;
    bench.update("one of 5 lines", cart::remove_line(&id, &product_id(5), at(0)).unwrap()).await;
    bench.write("a cart of 4 lines", cart::discard(&id).unwrap()).await;
    guest_carts(bench).await;
}

async fn guest_carts(bench: &mut Bench) {
    let (token, line) = (CartToken::new([1; 32]), cart::CartLine { quantity: 2, added_at: at(0) });
    for number in [1, 2] {
        let guest = data::guest_cart(number, &token);
        let id = guest.data.id.clone();
        let create = guest_cart::create(&guest).unwrap();
        let put = guest_cart::put_line(&id, &token, &product_id(1), &line, at(0)).unwrap();
        if number == 1 {
            bench.write("an empty guest cart", create).await;
            bench.update("the first line", put).await;
            bench.get("a guest cart of one line", guest_cart::get(&id).unwrap()).await;
            let remove = guest_cart::remove_line(&id, &token, &product_id(1), at(0)).unwrap();
            bench.update("the only line", remove).await;
            bench.write("an empty guest cart", guest_cart::discard(&id, &token).unwrap()).await;
        } else {
            bench.table.write(&create).await.unwrap().unwrap();
            bench.table.update(&put).await.unwrap().unwrap();
            let guest = bench.table.get(&guest_cart::get(&id).unwrap()).await.unwrap().unwrap();
            let _ = bench.table.meter().take();
            let claim = guest_cart::claim(&guest, &token, &data::cart(1), None, at(1)).unwrap();
            bench.transact("a guest cart of one line", claim).await;
        }
    }
}

pub(super) async fn products(bench: &mut Bench) {
    for number in 1..=25 {
        let create = product::create(&data::product(number), 1000, &[]).unwrap();
        if number == 1 {
            bench.transact("one product", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let many: Vec<_> = (101..=150).map(data::product).collect();
    bench.transact("50 products", product::create_many(many.iter().map(|product| (product, 1000))).unwrap()).await;
    let id = product_id(1);
    for number in 1..=21 {
        let create = review::create(&data::review(number)).unwrap();
        if number == 2 {
            bench.transact("one review", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
        let _ = bench.table.meter().take();
    }
    bench.query("one product", 2, product::page(&id).unwrap()).await;
    let one = bench.get("one product", product::read_for_update(&id).unwrap()).await;
    let ids: Vec<_> = (1..=20).map(product_id).collect();
    bench.batch_get("20 products", product::many(&ids).unwrap()).await;
    bench.batch_get("20 products", product::by_ids(&ids).unwrap()).await;
    let change = Change::<Product>::visible(at(1)).price(&data::usd(149)).unwrap();
    bench.update("the price", product::update(&id, change, one.meta.version).unwrap()).await;
    bench.query("a page of 20", 20, product::in_category(&data::path()).unwrap().limit(20)).await;
    bench.transact("one product", product::retire(&product_id(150), 1, at(1)).unwrap()).await;
    let retired: Stored<Product> =
        bench.table.get(&product::read_for_update(&product_id(150)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let revive = product::revive(&retired, &data::product(150), 1000, &[]).unwrap();
    bench.transact("one product", revive).await;
    bench.update("one stock", product::set_stock(&id, 900, at(1)).unwrap()).await;
    bench.get("one stock", product::stock(&id).unwrap()).await;
    bench.get("one stock", product::shown_stock(&id).unwrap()).await;
    adjust(bench).await;
    copies(bench).await;
    memberships(bench).await;
    bench.transact("2 KB of text", product::create_content(&data::content(1), None).unwrap()).await;
    bench.batch_get("2 KB of text", product::content(&id).unwrap()).await;

    let (reviewer, one) = (customer_id(2), data::review(2));
    bench.get("one review", review::get(&id, &reviewer).unwrap()).await;
    bench.get("one review", review::read_for_update(&id, &reviewer).unwrap()).await;
    bench.batch_get("one product", review::stats(&id).unwrap()).await;
    bench.query("a page of 20", 20, review::newest(&id).unwrap().limit(20)).await;
    bench.query("a page of 20", 20, review::best(&id).unwrap().limit(20)).await;
    bench.query("one review", 1, review::by_customer(&reviewer).unwrap().limit(20)).await;
    bench
        .transact(
            "another rating",
            review::change(&one, &review::Review { rating: 5, ..one.data.clone() }, at(9)).unwrap(),
        )
        .await;
    let changed = bench.table.get(&review::read_for_update(&id, &reviewer).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.transact("one review", review::erase_name(&changed, at(10)).unwrap()).await;
    let changed = bench.table.get(&review::read_for_update(&id, &reviewer).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.transact("one review", review::delete(&changed, at(10)).unwrap()).await;

    let dairy = category::CategoryNode::new(CategoryPath::new(vec!["DAIRY".to_owned()]).unwrap());
    bench.transact("one category", category::create(&data::stored(dairy, 1), None).unwrap()).await;
    bench.batch_write("a path of 3", category::add(&data::nodes()).unwrap()).await;
    bench.batch_get("a path of 3", category::known(data::path().lineage().collect::<Vec<_>>().iter()).unwrap()).await;
    bench.transact("one category", category::describe(&data::about()).unwrap()).await;
    bench.batch_get("one category", category::get(&data::path()).unwrap()).await;
    let redescribe = category::redescribe(&data::path(), &Some("Ice".to_owned()), &None, 1, at(1)).unwrap();
    bench.update("one category", redescribe).await;
    bench.query("one child", 1, category::children(data::path().parent().as_ref()).unwrap()).await;
    let top = data::path().lineage().next().unwrap();
    bench.query("2 categories", 2, category::subtree(&top).unwrap()).await;
    bench.batch_get("2 ancestors", category::ancestors(&data::path()).unwrap()).await;
}

async fn copies(bench: &mut Bench) {
    let id = product_id(2);
    let mut stock: Stored<product::Stock> = bench.table.get(&product::stock(&id).unwrap()).await.unwrap().unwrap();
    (stock.meta.rev, stock.data.available) = (stock.meta.rev + 1, 0);
    let _ = bench.table.meter().take();
    bench.write("one product", product::copy_stock(&stock).unwrap()).await;
    let stats = product::ReviewStats { product_id: id, rating_count: 1, rating_sum: 5 };
    bench.write("one product", product::copy_rating(&data::stored(stats, 2)).unwrap()).await;
}

async fn memberships(bench: &mut Bench) {
    let path = |name: &str| CategoryPath::new(vec!["SUMMER".to_owned(), name.to_owned()]).unwrap();
    let mut known: Option<Stored<membership::ProductCategories>> = None;
    for number in 1..=3 {
        let product = bench.table.get(&product::read_for_update(&product_id(3)).unwrap()).await.unwrap().unwrap();
        let path = path(&format!("PARTY {number}"));
        let add = membership::add(&product, &path, known.as_ref(), &data::born(number), at(1)).unwrap();
        let _ = bench.table.meter().take();
        if number == 3 {
            bench.transact("the third category", add).await;
        } else {
            bench.table.transact(&add).await.unwrap().unwrap();
        }
        known = bench.table.batch_get(&membership::lists([&product.id]).unwrap()).await.unwrap().remove(0);
        let _ = bench.table.meter().take();
    }
    let (id, known) = (product_id(3), known.unwrap());
    bench.batch_get("one product", membership::prepare(&id).unwrap()).await;
    bench.batch_get("one product", membership::lists([&id]).unwrap()).await;
    bench.query("3 categories", 3, membership::of_product(&id).unwrap()).await;
    let mut renamed: Stored<Product> = bench.table.get(&product::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    renamed.meta.rev += 1;
    renamed.data.name = "ICE - CUBED 22 LB".to_owned();
    let _ = bench.table.meter().take();
    bench.write("another name", membership::refresh(&renamed, &path("PARTY 1")).unwrap()).await;
    bench.transact("one of 3 categories", membership::remove(&known, &path("PARTY 2"), at(2)).unwrap()).await;
}

pub(super) async fn places(bench: &mut Bench) {
    let city = "Springfield".to_owned();
    let id = StoreId::new("364").unwrap();
    let store = region::StoreLocation { id, country: "US".to_owned(), city, name: "By the lake".to_owned() };
    bench.write("one shop", region::create(&data::stored(store.clone(), 1)).unwrap()).await;
    bench.get("one shop", region::get(&store.id).unwrap()).await;
    bench.get("one shop", region::read_for_update(&store.id).unwrap()).await;
    bench.update("one shop", region::change(&store, 1, at(1)).unwrap()).await;
    let month = "2026-01".parse().unwrap();
    let parts = bench.table.query(&region::sales("US", &month, None).unwrap()).await.unwrap().items.len();
    let _ = bench.table.meter().take();
    bench.query("a country's month", parts, region::sales("US", &month, None).unwrap()).await;
    let one = "unknown~364".parse().unwrap();
    bench.query("a physical shop without sales", 0, region::sales("US", &month, Some(&one)).unwrap()).await;
}

async fn adjust(bench: &mut Bench) {
    let claim = idempotency::claim(&data::record(99), at(0)).unwrap();
    let seen = bench.table.get(&product::stock(&product_id(1)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let reason = "found behind the shelf".to_owned();
    let adjustment = product::Adjustment { by: 5, reason, staff: customer_id(7), at: at(1) };
    bench.transact("one stock, with a key", product::adjust_stock(&[seen], &adjustment, claim).unwrap()).await;
    shards(bench).await;
    locations(bench).await;
}

async fn locations(bench: &mut Bench) {
    let (id, at_ulm) = (product_id(1), LocationId::new("ulm").unwrap());
    let ulm = location::StockLocation { id: at_ulm.clone(), name: "Warehouse Ulm".to_owned(), address: None };
    bench.transact("one location", location::create(&data::stored(ulm.clone(), 1)).unwrap()).await;
    bench.get("one location", location::get(&at_ulm).unwrap()).await;
    bench.query("one location", 1, location::list().unwrap()).await;
    bench.update("one location", location::change(&ulm, 1, at(1)).unwrap()).await;
    let set = product::set_stock_at(&id, &at_ulm, 7, &data::born(1), at(1)).unwrap();
    bench.transact("one stock", set).await;
    bench.batch_get("one stock", product::stock_at(&id, &at_ulm).unwrap()).await;
    let reason = "found behind the shelf".to_owned();
    let adjustment = product::Adjustment { by: 5, reason, staff: customer_id(7), at: at(1) };
    let claim = idempotency::claim(&data::record(98), at(0)).unwrap();
    let mut seen = data::stored(product::Stock { location: at_ulm.clone(), ..product::Stock::new(id.clone(), 7) }, 1);
    seen.meta.version = 1;
    let adjust = product::adjust_stock_at((&id, &at_ulm), Some(&seen), 12, &adjustment, &data::born(1), claim);
    bench.transact("one stock, with a key", adjust.unwrap()).await;
}

async fn shards(bench: &mut Bench) {
    let id = product_id(1);
    let one = bench.table.get(&product::stock(&id).unwrap()).await.unwrap().unwrap();
    bench.test.age_stock(id.as_str()).await;
    let _ = bench.table.meter().take();
    bench.get("one stock", product::old_stock(&id).unwrap()).await;
    bench.transact("one stock", product::move_stock(&one).unwrap()).await;
    let first = bench.table.get(&product::stock(&id).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.transact("4 shards", product::grow(&first, 4, ReshardReason::Asked, at(1)).unwrap()).await;
    let first = bench.table.get(&product::stock(&id).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.transact("4 shards", product::set_shards(&first, 900, at(1)).unwrap()).await;
    bench.batch_get("4 shards", product::further_shards(&first).unwrap().unwrap()).await;
    let mut stocks = vec![first.clone()];
    let further = bench.table.batch_get(&product::further_shards(&first).unwrap().unwrap()).await.unwrap();
    stocks.extend(further.into_iter().flatten());
    stocks[0].data.available -= 100;
    stocks[1].data.available += 100;
    let _ = bench.table.meter().take();
    bench.transact("two shards", product::level(&stocks, at(1)).unwrap().remove(0)).await;
    bench.query("one stock", 1, product::sharded().unwrap()).await;
    let product = bench.table.get(&product::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.write("one product", product::copy_shards(&product, &first).unwrap()).await;
    let first = bench.table.get(&product::stock(&id).unwrap()).await.unwrap().unwrap();
    let mut stocks = vec![first.clone()];
    let further = bench.table.batch_get(&product::further_shards(&first).unwrap().unwrap()).await.unwrap();
    stocks.extend(further.into_iter().flatten());
    let _ = bench.table.meter().take();
    bench.transact("4 shards", product::merge(&stocks, 1, ReshardReason::Asked, at(1)).unwrap()).await;
    let listed = bench.table.query(&product::sharded().unwrap()).await.unwrap().items.remove(0);
    let _ = bench.table.meter().take();
    bench.write("one entry", product::unlist(&listed).unwrap()).await;
    let counted = product::ProductSales { quantity: 5, orders: 2, ..product::ProductSales::none(id.clone(), 3) };
    bench.test.put(&data::stored(counted, 1)).await;
    bench.batch_get("one item", sales::counts(&id).unwrap()).await;
    let counted = bench.table.batch_get(&sales::counts(&id).unwrap()).await.unwrap().into_iter().flatten().next();
    let _ = bench.table.meter().take();
    bench.transact("one item", sales::fold(&counted.unwrap()).unwrap().unwrap()).await;
}

/// Measures an order with an address, and the requests for addresses.
async fn addressed(bench: &mut Bench) {
    let (mut head, lines) = data::order(26, 5);
    let customer = head.customer_id.clone();
    let addresses = OrderAddresses {
        order_id: head.id.clone(),
        customer_id: customer.clone(),
        ..seed::order_addresses("any", "any")
    };
    let addresses = data::stored(addresses, 26);
    head.data.destination = addresses.shipping_address.as_ref().map(Destination::from);
    let order =
        PlacedOrder { addresses: Some(addresses.clone()), ..PlacedOrder::new(head.clone(), lines, customer.as_str()) };
    bench.transact("5 lines with reference and address", order::place(&order, &[]).unwrap()).await;
    bench.get("an order's addresses", order::addresses::get(&head).unwrap()).await;
    bench.query("addresses of one order", 1, order::addresses::of_customer(&customer).unwrap()).await;
    bench.batch_write("addresses of one order", order::addresses::erase([&addresses.data]).unwrap()).await;
}

/// Measures the claim of a guest's order with an address.
async fn claimed(bench: &mut Bench) {
    let (mut head, lines) = data::order(27, 5);
    let customer = data::customer(2).data;
    head.data.customer_id = CustomerId::guest(&customer.email);
    head.data.reference = None;
    head.data.by_customer = true;
    let guest = Some(Guest { email: customer.email.clone(), name: customer.name.clone() });
    let addresses = OrderAddresses {
        order_id: head.id.clone(),
        customer_id: head.customer_id.clone(),
        guest,
        ..seed::order_addresses("any", "any")
    };
    let addresses = data::stored(addresses, 27);
    head.data.destination = addresses.shipping_address.as_ref().map(Destination::from);
    let entry = OpenOrder { most: 2, lines: 5 };
    let open = (OrderAction::Open, open::enter(&head, entry, None).unwrap());
    let order = PlacedOrder {
        addresses: Some(addresses.clone()),
        ..PlacedOrder::new(head.clone(), lines, head.customer_id.as_str())
    };
    bench.table.transact(&order::place(&order, &[open]).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let copy = data::stored(CustomerOrder::of(&head), 27);
    let read = guest::claimable(&head.customer_id, &head.id, &customer.id).unwrap();
    bench.batch_get("one pending order", read).await;
    let from = Claimable { order: &order, copy: &copy, addresses: Some(&addresses), entry: Some(entry), open: None };
    bench.transact("one pending order", guest::claim(&from, &customer, at(500)).unwrap()).await;
}

pub(super) async fn orders(bench: &mut Bench) {
    let id = customer_id(1);
    bench.batch_get("customer, product and cart", cart::prepare(&id, &product_id(1)).unwrap()).await;
    let ids: Vec<_> = (1..=5).map(product_id).collect();
    bench.batch_get("5 lines", cart::products(&ids).unwrap()).await;
    bench.batch_get("customer and 5 products", order::prepare(&id, false, Some(&data::scope(1)), &ids).unwrap()).await;
    for number in 1..=25 {
        let (head, lines) = data::order(number, 5);
        let claim = (OrderAction::Idempotency, idempotency::claim(&data::record(number), at(0)).unwrap());
        let place = order::place(&PlacedOrder::new(head, lines, id.as_str()), &[claim]).unwrap();
        if number == 1 {
            bench.transact("5 lines with reference and key", place).await;
        } else {
            bench.table.transact(&place).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    addressed(bench).await;
    claimed(bench).await;
    bench.get("one record", idempotency::get(&data::scope(1)).unwrap()).await;
    bench.query("5 lines", 7, order::get(&order_id(1)).unwrap()).await;
    bench.query("5 lines", 7, order::read_for_update(&order_id(1)).unwrap()).await;
    bench.query("5 lines", 5, order::lines(&order_id(1)).unwrap()).await;
    bench.get("one head", order::head(&order_id(1)).unwrap()).await;
    let (head, lines) = data::order(1, 5);
    fn step<'a>(order: &'a Stored<order::Order>, lines: &'a [Stored<order::OrderLine>], to: OrderStatus) -> Step<'a> {
        Step::new(order, lines, to, at(100), "staff-7")
    }
    let money = large::paid_with(&head, large::payment(9, &head, PaymentMethod::Manual));
    let paid = Step { money: Some(&money), ..step(&head, &lines, OrderStatus::Paid) };
    bench.transact("paid", order::transition(paid).unwrap()).await;
    let (second, _) = data::order(2, 5);
    bench
        .transact(
            "cancelled: 5 stocks return",
            order::transition(step(&second, &lines, OrderStatus::Cancelled)).unwrap(),
        )
        .await;
    let mut third = data::order(3, 5).0;
    for to in [OrderStatus::Paid, OrderStatus::Picking] {
        let step = Step { at: at(100 + i64::try_from(third.meta.version).unwrap()), ..step(&third, &lines, to) };
        let moved = order::transition(step).unwrap();
        bench.table.transact(&moved).await.unwrap().unwrap();
        third.meta.version += 1;
        third.data.status = to;
    }
    let _ = bench.table.meter().take();
    bench
        .transact(
            "shipped: enters the index of shipments",
            order::transition(step(&third, &lines, OrderStatus::Shipped)).unwrap(),
        )
        .await;
    bench.query("a page of 20", 20, order::of_customer(&id, None, None).unwrap().limit(20)).await;
    bench.query("20 orders", 20, order::earlier(&id).unwrap().limit(20)).await;
    bench.query("profile and 20 orders", 21, customer::overview(&id).unwrap()).await;
    bench
        .query(
            "a page of 20",
            20,
            order::by_status(OrderStatus::Pending, None, None, lists::unchanged()).unwrap().limit(20),
        )
        .await;
    bench.query("one shipment", 1, order::shipments(&id, None).unwrap().limit(20)).await;
    bench.transact("one line", order::add_log(&data::log(1)).unwrap()).await;
    bench.query("one line", 1, order::log(&order_id(1)).unwrap().limit(20)).await;
    bench
        .query("one line", 1, order::daily_log::of_day(&data::log(1).at.day(), lists::unchanged()).unwrap().limit(20))
        .await;
    bench.batch_get("one line", order::daily_log::read([&data::log(1).id]).unwrap()).await;
    bench.query("5 lines", 6, order::parts::with_lines(&order_id(1)).unwrap()).await;
    bench.query("2 status changes", 3, order::parts::with_history(&order_id(1)).unwrap()).await;
}
