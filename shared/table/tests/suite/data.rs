//! Items of typical size, the same in every run.

use std::collections::BTreeMap;

use key_schema::address::PostalAddress;
use key_schema::cart::{Cart, CartLine};
use key_schema::category::{CategoryAbout, CategoryNode};
use key_schema::customer::{Customer, Location};
use key_schema::expiration::{Expiration, RemovedBy};
use key_schema::guest_cart::{CartToken, GuestCart};
use key_schema::id::{AddressName, Born, CustomerId, GuestCartId, LogId, OrderId, ProductId, SessionId, StoreId};
use key_schema::idempotency::{IdempotencyRecord, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::lists;
use key_schema::mail::{self, Mail, MailState};
use key_schema::mark::Mark;
use key_schema::money::{Currency, Money};
use key_schema::order::{Order, OrderLine, OrderLog};
use key_schema::picking::WaitingJob;
use key_schema::product::{CategoryPath, Product, ProductContent};
use key_schema::review::Review;
use key_schema::revocation::SignIn;
use key_schema::session::Session;

/// Returns 2026-01-01T00:00:00Z plus some seconds.
pub fn at(seconds: i64) -> Instant {
    Instant::from_millis(1_767_225_600_000).unwrap().plus_seconds(seconds)
}

pub fn born(number: u8) -> Born {
    Born::generate(at(0), [number; 10])
}

pub fn stored<T: Entity>(data: T, number: u8) -> Stored<T> {
    Stored::new(data, born(number), at(0))
}

pub fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

/// Returns a customer's id, which is the same in every run. A hash of the id selects the customer's
/// shard, so the bytes are as varied as the bytes of real ids.
pub fn customer_id(number: u8) -> CustomerId {
    let mut random = fastrand::Rng::with_seed(u64::from(number));
    CustomerId::generate(at(0), std::array::from_fn(|_| random.u8(..)))
}

pub fn customer(number: u8) -> Stored<Customer> {
    let customer = Customer {
        place: Some(Location { country: "US".to_owned(), city: "Springfield".to_owned() }),
        addresses: BTreeMap::from([(AddressName::new("home").unwrap(), address())]),
        ..Customer::new(
            customer_id(number),
            format!("customer-{number:03}@example.com").parse().unwrap(),
            format!("customer-{number:03}").parse().unwrap(),
            "Ada Lovelace".to_owned(),
        )
    };
    stored(customer, number)
}

pub fn address() -> PostalAddress {
    PostalAddress {
        name: "Ada Lovelace".to_owned(),
        line1: "12 Analytical Engine Street".to_owned(),
        line2: None,
        city: "Springfield".to_owned(),
        region: Some("Illinois".to_owned()),
        postal_code: Some("62701".to_owned()),
        country: "US".parse().unwrap(),
        phone: None,
    }
}

pub fn path() -> CategoryPath {
    CategoryPath::new(["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"].map(str::to_owned).to_vec()).unwrap()
}

pub fn product_id(number: u8) -> ProductId {
    ProductId::new(format!("{}", 1_000_000 + u32::from(number))).unwrap()
}

pub fn product(number: u8) -> Stored<Product> {
    let product = Product {
        package_size: Some("22 LB".to_owned()),
        summary: Some("Clear ice for parties, in a bag that closes again.".to_owned()),
        ..Product::new(
            product_id(number),
            "ICE - CRUSHED/CUBED 22 LB".to_owned(),
            "National".to_owned(),
            usd(129),
            path(),
        )
    };
    stored(product, number)
}

pub fn content(number: u8) -> Stored<ProductContent> {
    stored(
        ProductContent { product_id: product_id(number), text: "Ice is frozen water. ".repeat(100), file: None },
        number,
    )
}

pub fn review(number: u8) -> Stored<Review> {
    let review = Review {
        product_id: product_id(1),
        customer_id: customer_id(number),
        rating: 4,
        display_name: Some("Ann from Ulm".to_owned()),
        title: "Cold as promised".to_owned(),
        text: "It kept for a whole afternoon in the shade. ".repeat(5),
    };
    Stored::new(review, born(number), at(i64::from(number)))
}

pub fn session(number: u8) -> Stored<Session> {
    let session = Session {
        sign_in: Some(SignIn::of(&customer_id(1), "a sign-in")),
        id: SessionId::generate(at(0), [number; 10]),
        customer_id: customer_id(1),
        expires_at: at(86_400),
        device: "Firefox on Linux".to_owned(),
    };
    stored(session, number)
}

pub fn guest_cart(number: u8, token: &CartToken) -> Stored<GuestCart> {
    let id = GuestCartId::generate(at(0), [number; 10]);
    let (token_hash, lines) = (token.hash(), BTreeMap::new());
    stored(GuestCart { id, token_hash, expires_at: at(86_400), lines, claim: None }, 1)
}

pub fn cart(lines: u8) -> Stored<Cart> {
    let line = CartLine { quantity: 2, added_at: at(0) };
    let lines = (1..=lines).map(|number| (product_id(number), line.clone())).collect();
    stored(Cart { customer_id: customer_id(1), expires_at: at(86_400), lines }, 1)
}

pub fn order_id(number: u8) -> OrderId {
    OrderId::generate(at(i64::from(number)), [number; 10])
}

pub fn order(number: u8, lines: u8) -> (Stored<Order>, Vec<Stored<OrderLine>>) {
    let id = order_id(number);
    let line = |line: u8| OrderLine {
        order_id: id.clone(),
        line: u64::from(line),
        product_id: product_id(line),
        product_born: Born::counter(),
        name: "ICE - CRUSHED/CUBED 22 LB".to_owned(),
        thumbnail: None,
        quantity: 2,
        unit_price: usd(129),
        total: usd(258),
        discount: 0,
        discounts: Vec::new(),
        tax: 0,
        tax_rate: None,
        expires_at: None,
        stock_shards: None,
        picks: Default::default(),
    };
    let lines: Vec<_> = (1..=lines).map(|number| stored(line(number), number)).collect();
    let order = Order {
        reference: Some(format!("31198570{number:03}").parse().unwrap()),
        store_id: Some(StoreId::new("330").unwrap()),
        ..Order::new(
            id.clone(),
            customer_id(1),
            at(i64::from(number)),
            usd(258 * i64::try_from(lines.len()).unwrap()),
            u64::try_from(lines.len()).unwrap(),
        )
    };
    (stored(order, number), lines)
}

pub fn scope(number: u8) -> Scope {
    Scope { caller: customer_id(1).to_string(), key: format!("9f1c2a7e-0b7d-4a52-8f6e-{number:012}") }
}

pub fn record(number: u8) -> Stored<IdempotencyRecord> {
    let record = IdempotencyRecord {
        scope: scope(number),
        request_hash: "0123456789abcdef".repeat(4),
        answer: StoredResponse::Order(order_id(number)),
        expires_at: at(86_400),
    };
    stored(record, number)
}

pub fn log(number: u8) -> Stored<OrderLog> {
    let log = OrderLog {
        id: LogId::generate(at(i64::from(number)), [number; 10]),
        order_id: order_id(1),
        at: at(i64::from(number)),
        by: "staff-7".to_owned(),
        text: "The customer asked for delivery after six.".to_owned(),
        list_shards: lists::FIRST,
    };
    stored(log, number)
}

pub fn nodes() -> Vec<Stored<CategoryNode>> {
    path().lineage().map(|path| stored(CategoryNode::new(path), 1)).collect()
}

pub fn about() -> Stored<CategoryAbout> {
    let description = Some("Crushed and cubed.".to_owned());
    stored(CategoryAbout { path: path(), title: Some("Ice".to_owned()), description }, 1)
}

pub fn marks(number: u8) -> Vec<Stored<Mark>> {
    (1..=number).map(|number| Mark::new("bus", &format!("{number:032x}"), at(0)).unwrap()).collect()
}

pub fn expiration() -> Stored<Expiration> {
    let entry = Expiration {
        kind: "Session".to_owned(),
        item: "0123456789abcdef".repeat(4),
        removed_at: at(0),
        sequence_number: "100000000000000000001".to_owned(),
        removed_by: RemovedBy::Ttl,
        archive: Some(format!("expired/{hash}/{hash}-100000000000000000001.json", hash = "0123456789abcdef".repeat(4))),
    };
    entry.stored().unwrap()
}

pub fn mail(number: u8) -> Stored<Mail> {
    let mail = Mail {
        event_id: format!("{number:032x}"),
        expires_at: at(mail::LIFETIME_SECONDS),
        state: MailState::Sending,
        lease_until: at(15),
    };
    stored(mail, number)
}

pub fn waiting(number: u8) -> Stored<WaitingJob> {
    stored(WaitingJob { order_id: order_id(number) }, number)
}
