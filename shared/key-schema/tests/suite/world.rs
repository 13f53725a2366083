//! One example of every entity. Within an item, all values that may be part of a key differ.
//! Otherwise a template of a key ([`crate::templates`]) would name the wrong attribute. For the
//! same reason no number equals a shard in the item's keys.

pub mod agents;
pub mod catalog;
pub mod orders;
pub mod others;
pub mod pricing;
pub mod webhooks;

use std::collections::BTreeMap;

use key_schema::address::PostalAddress;
use key_schema::cart::{Cart, CartLine};
use key_schema::customer::{Customer, EmailClaim, Location, Tier, UsernameClaim};
use key_schema::entity::AnyEntity as Any;
use key_schema::guest_cart::{CartToken, GuestCart};
use key_schema::id::{
    AddressName, AgentId, AnswerId, Born, CounterName, CustomerId, DeliveryId, DocumentId, EndpointId, EntryId,
    GuestCartId, LocationId, LogId, MAX_ID_BYTES, MediaId, MetricName, OperationId, OrderId, OrderReference,
    OrganizationId, PaymentId, PointId, ProductId, QuestionId, SectionName, SessionId, StoreId, TeamId,
};
use key_schema::idempotency::Scope;
use key_schema::item::{Meta, Stored};
use key_schema::money::{Currency, Money};
use key_schema::product::CategoryPath;
use key_schema::revocation::{Revocation, SignIn};
use key_schema::session::Session;
use key_schema::shard::Shards;
use key_schema::text::{Email, Username};
use key_schema::verification::EmailVerification;

use crate::categories::path;
use crate::goldens::{Golden, with};
use crate::support::at;

/// The ids and names in the keys of the examples.
pub struct World {
    pub customer: CustomerId,
    pub other: CustomerId,
    pub product: ProductId,
    pub order: OrderId,
    pub store: StoreId,
    pub location: LocationId,
    pub agent: AgentId,
    pub endpoint: EndpointId,
    pub delivery: DeliveryId,
    pub session: SessionId,
    pub log: LogId,
    pub entry: EntryId,
    pub payment: PaymentId,
    pub operation: OperationId,
    pub provider_event: String,
    pub question: QuestionId,
    pub answer: AnswerId,
    pub metric: MetricName,
    pub point: PointId,
    pub counter: CounterName,
    pub media: MediaId,
    pub reference: OrderReference,
    pub address: AddressName,
    pub email: Email,
    pub username: Username,
    pub category: CategoryPath,
    /// The longest path without an escaped character.
    pub unescaped_category: CategoryPath,
    pub further_category: CategoryPath,
    pub country: String,
    pub city: String,
    pub scope: Scope,
    pub event_id: String,
    pub organization: OrganizationId,
    pub team: TeamId,
    pub document: DocumentId,
    pub section: SectionName,
}

/// Returns the longest path of names that repeat one character.
fn longest_path(character: &str) -> CategoryPath {
    let mut names: Vec<String> = Vec::new();
    loop {
        let mut longer = names.clone();
        match longer.last_mut() {
            Some(name) if name.len() < MAX_ID_BYTES => name.push_str(character),
            _ => longer.push(character.to_owned()),
        }
        match CategoryPath::new(longer.clone()) {
            Ok(_) => names = longer,
            Err(_) => return CategoryPath::new(names).unwrap(),
        }
    }
}

const MEASURED: &str = "2017-02-04T17:45:00.125Z";
const PLACED: &str = "2017-01-01T11:53:26.000Z";
/// The start of unfinished work. It differs from the order's instant, so that a key shows which of
/// the two instants it contains.
const UNFINISHED: &str = "2017-01-01T12:01:07.350Z";
const LAPSES: &str = "2017-01-01T12:53:26.000Z";

impl World {
    /// Makes readable ids as in a real shop, with spaces and letters outside ASCII.
    pub fn plain() -> Self {
        Self {
            customer: CustomerId::new("household-2375").unwrap(),
            other: CustomerId::new("household-0718").unwrap(),
            product: ProductId::new("1082185").unwrap(),
            order: OrderId::generate(at(PLACED), [0xA1; 10]),
            store: StoreId::new("364").unwrap(),
            location: LocationId::new("ulm").unwrap(),
            agent: AgentId::new("acme").unwrap(),
            endpoint: EndpointId::generate(at("2017-02-03T09:40:00.000Z"), [0xA7; 10]),
            delivery: DeliveryId::generate(at("2017-02-03T09:45:00.000Z"), [0xA8; 10]),
            session: SessionId::generate(at("2017-03-05T08:00:00.000Z"), [0xB2; 10]),
            log: LogId::generate(at("2017-01-03T16:20:00.000Z"), [0xC3; 10]),
            entry: EntryId::generate(at("2017-01-04T10:05:00.000Z"), [0xD4; 10]),
            payment: PaymentId::generate(at("2017-01-04T10:05:00.000Z"), [0xD4; 10]),
            operation: OperationId::generate(at("2017-01-04T10:06:00.000Z"), [0xD5; 10]),
            provider_event: "evt_1NG8Du2eZvKYlo2CUI79vXWy".into(),
            question: QuestionId::generate(at("2017-02-01T09:00:00.000Z"), [0xE5; 10]),
            answer: AnswerId::generate(at("2017-02-02T10:30:00.250Z"), [0xF6; 10]),
            metric: MetricName::new("till #3: queue länge").unwrap(),
            point: PointId::generate(at(MEASURED), [0xE5; 10]),
            counter: CounterName::new("product:1082185").unwrap(),
            media: MediaId::generate(at("2017-02-03T14:00:00.000Z"), [0xA7; 10]),
            reference: OrderReference::new("basket #26984851472").unwrap(),
            address: AddressName::new("home").unwrap(),
            email: "Zoë@Example.com".parse().unwrap(),
            username: "Zoë Straße".parse().unwrap(),
            category: path(&["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"]),
            unescaped_category: path(&["GROCERY"]),
            further_category: path(&["SUMMER", "Party #1"]),
            country: "CH".into(),
            city: "Zürich #8 ~ 蘇黎世".into(),
            scope: Scope { caller: "household-2375".into(), key: "order-0001".into() },
            event_id: "b7d1c1a0c24ff3a2d0d4a9e2a1f3c7e9".into(),
            organization: OrganizationId::new("chess-club").unwrap(),
            team: TeamId::new("team #1: Läufer").unwrap(),
            document: DocumentId::new("statutes #2017").unwrap(),
            section: SectionName::new("§ 1 Purpose").unwrap(),
        }
    }

    /// Returns the `World` with this number. Its ids that choose an index partition occur in no
    /// `World` with another number.
    pub fn numbered(number: u8) -> Self {
        let spread = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        let random = std::array::from_fn(|at| spread[at % spread.len()]);
        let id = |what: &str| format!("{what}-{number}");
        Self {
            customer: CustomerId::new(id("customer")).unwrap(),
            other: CustomerId::new(id("other")).unwrap(),
            product: ProductId::new(id("product")).unwrap(),
            order: OrderId::generate(at(PLACED), random),
            store: StoreId::new(id("store")).unwrap(),
            location: LocationId::new(id("location")).unwrap(),
            agent: AgentId::new(id("agent")).unwrap(),
            endpoint: EndpointId::generate(at("2017-02-03T09:40:00.000Z"), random),
            session: SessionId::generate(at("2017-03-05T08:00:00.000Z"), random),
            question: QuestionId::generate(at("2017-02-01T09:00:00.000Z"), random),
            metric: MetricName::new(id("metric")).unwrap(),
            point: PointId::generate(at(MEASURED), random),
            payment: PaymentId::generate(at("2017-01-04T10:05:00.000Z"), random),
            operation: OperationId::generate(at("2017-01-04T10:06:00.000Z"), random),
            counter: CounterName::new(id("counter")).unwrap(),
            media: MediaId::generate(at("2017-02-03T14:00:00.000Z"), random),
            organization: OrganizationId::new(id("organization")).unwrap(),
            document: DocumentId::new(id("document")).unwrap(),
            ..Self::plain()
        }
    }

    /// Makes ids and names of the greatest allowed length, nearly all of them escaped.
    pub fn longest() -> Self {
        let hashes = |count: usize| "#".repeat(count);
        Self {
            customer: CustomerId::new(hashes(128)).unwrap(),
            other: CustomerId::new(hashes(128)).unwrap(),
            product: ProductId::new(hashes(128)).unwrap(),
            store: StoreId::new(hashes(128)).unwrap(),
            location: LocationId::new(hashes(128)).unwrap(),
            agent: AgentId::new(hashes(128)).unwrap(),
            endpoint: EndpointId::new(hashes(128)).unwrap(),
            delivery: DeliveryId::new(hashes(128)).unwrap(),
            session: SessionId::new(hashes(128)).unwrap(),
            log: LogId::new(hashes(128)).unwrap(),
            entry: EntryId::new(hashes(128)).unwrap(),
            payment: PaymentId::new(hashes(128)).unwrap(),
            operation: OperationId::new(hashes(128)).unwrap(),
            provider_event: hashes(255),
            question: QuestionId::new(hashes(128)).unwrap(),
            answer: AnswerId::new(hashes(128)).unwrap(),
            metric: MetricName::new(hashes(128)).unwrap(),
            point: PointId::new(hashes(128)).unwrap(),
            counter: CounterName::new(hashes(128)).unwrap(),
            media: MediaId::new(hashes(128)).unwrap(),
            reference: OrderReference::new(hashes(128)).unwrap(),
            address: AddressName::new(hashes(128)).unwrap(),
            order: OrderId::new(hashes(128)).unwrap(),
            email: format!("{}@{}", hashes(200), hashes(53)).parse().unwrap(),
            username: hashes(128).parse().unwrap(),
            category: longest_path("#"),
            unescaped_category: longest_path("x"),
            further_category: longest_path("#"),
            country: hashes(128),
            city: hashes(128),
            scope: Scope { caller: hashes(128), key: hashes(255) },
            event_id: hashes(64),
            organization: OrganizationId::new(hashes(128)).unwrap(),
            team: TeamId::new(hashes(128)).unwrap(),
            document: DocumentId::new(hashes(128)).unwrap(),
            section: SectionName::new(hashes(128)).unwrap(),
        }
    }

    pub fn stored<T>(&self, data: T) -> Stored<T> {
        let (created_at, updated_at) = (at("2017-02-01T09:00:00.000Z"), at("2017-02-02T10:30:00.250Z"));
        Stored {
            meta: Meta { version: 3, rev: 8, born: Born::generate(created_at, [0x11; 10]), created_at, updated_at },
            data,
        }
    }

    pub fn money(&self, amount: i64) -> Money {
        Money::new(amount, Currency::USD)
    }

    pub fn postal_address(&self) -> PostalAddress {
        PostalAddress {
            name: "Zoë".into(),
            line1: "Hauptstraße 5".into(),
            line2: None,
            city: "Zürich".into(),
            region: Some("ZH".into()),
            postal_code: Some("8001".into()),
            country: "CH".parse().unwrap(),
            phone: None,
        }
    }

    pub fn customer_of_eight_shards(&self) -> Stored<Customer> {
        let mut customer = self.customer();
        customer.data.list_shards = Shards(8);
        customer
    }

    pub fn customer(&self) -> Stored<Customer> {
        self.stored(Customer {
            tier: Tier::Silver,
            place: Some(Location { country: self.country.clone(), city: self.city.clone() }),
            addresses: BTreeMap::from([(self.address.clone(), self.postal_address())]),
            ..Customer::new(self.customer.clone(), self.email.clone(), self.username.clone(), "Zoë".into())
        })
    }

    pub fn unverified(&self) -> Stored<Customer> {
        let mut customer = self.customer();
        customer.data.email_verified = false;
        customer
    }

    pub fn verification(&self) -> Stored<EmailVerification> {
        self.stored(EmailVerification {
            customer_id: self.customer.clone(),
            email: self.email.clone(),
            expires_at: at("2017-02-02T09:00:00.000Z"),
            nonce: Some("00112233445566778899aabbccddeeff".into()),
            key: "k1".into(),
            code_expires_at: at("2017-02-01T09:10:00.000Z"),
            tries: 1,
            requested_at: vec![at("2017-02-01T08:00:00.000Z"), at("2017-02-01T09:00:00.000Z")],
        })
    }

    pub fn used_verification(&self) -> Stored<EmailVerification> {
        let mut used = self.verification();
        used.data.nonce = None;
        used
    }

    pub fn email_claim(&self) -> Stored<EmailClaim> {
        self.stored(EmailClaim { email: self.email.folded(), customer_id: self.customer.clone() })
    }

    pub fn username_claim(&self) -> Stored<UsernameClaim> {
        self.stored(UsernameClaim { username: self.username.folded(), customer_id: self.customer.clone() })
    }

    pub fn session(&self) -> Stored<Session> {
        self.stored(Session {
            id: self.session.clone(),
            customer_id: self.customer.clone(),
            expires_at: at("2017-03-06T08:00:00.000Z"),
            device: "Laptop".into(),
            sign_in: Some(SignIn::of(&self.customer, "aaaaaaaa-bbbb-cccc-dddd-example")),
        })
    }

    /// Returns a session that staff began, without a sign-in.
    pub fn session_without_sign_in(&self) -> Stored<Session> {
        let mut session = self.session();
        session.data.sign_in = None;
        session
    }

    pub fn revocation(&self) -> Stored<Revocation> {
        let sign_in = SignIn::of(&self.customer, "aaaaaaaa-bbbb-cccc-dddd-example");
        self.stored(Revocation { sign_in, expires_at: at("2017-04-05T08:00:00.000Z") })
    }

    pub fn cart_line(&self) -> CartLine {
        CartLine { quantity: 6, added_at: at("2017-02-03T10:00:00.000Z") }
    }

    pub fn cart(&self) -> Stored<Cart> {
        self.stored(Cart {
            customer_id: self.customer.clone(),
            expires_at: at("2017-02-10T10:00:00.000Z"),
            lines: BTreeMap::from([(self.product.clone(), self.cart_line())]),
        })
    }

    pub fn cart_token(&self) -> CartToken {
        CartToken::new([0xA9; 32])
    }

    /// Makes an empty guest cart that a customer has claimed, or an unclaimed cart with one line.
    pub fn guest_cart(&self, is_claimed: bool) -> Stored<GuestCart> {
        let line = (self.product.clone(), self.cart_line());
        self.stored(GuestCart {
            id: GuestCartId::generate(at("2017-02-03T09:30:00.000Z"), [0xA8; 10]),
            token_hash: self.cart_token().hash(),
            expires_at: at("2017-02-17T10:00:00.000Z"),
            lines: (!is_claimed).then_some(line).into_iter().collect(),
            claim: is_claimed.then(|| self.cart_token().claim_of(&self.customer)),
        })
    }

    /// Makes a customer without a residence.
    pub fn homeless(&self) -> Stored<Customer> {
        let mut customer = self.customer();
        customer.data.place = None;
        customer
    }

    pub fn erased_customer(&self) -> Stored<Customer> {
        let mut customer = self.customer();
        customer.data.erasing_since = Some(at("2026-11-23T09:00:00.000Z"));
        customer
    }
}

pub fn customers_goldens(world: &World) -> Vec<Golden> {
    vec![
        Golden::of("Customer", world.customer(), Any::Customer),
        Golden::of("Customer-nowhere", world.homeless(), Any::Customer),
        Golden::of("Customer-unverified", world.unverified(), Any::Customer),
        Golden::of("Customer-erasing", world.erased_customer(), Any::Customer),
        Golden::of("EmailVerification", world.verification(), Any::EmailVerification),
        Golden::of("Customer-of-8-shards", world.customer_of_eight_shards(), Any::Customer),
        Golden::of("EmailVerification-used", world.used_verification(), Any::EmailVerification),
        Golden::of("EmailClaim", world.email_claim(), Any::EmailClaim),
        Golden::of("UsernameClaim", world.username_claim(), Any::UsernameClaim),
        Golden::of("Session", world.session(), Any::Session),
        Golden::of("Session-of-staff", world.session_without_sign_in(), Any::Session),
        Golden::of("Revocation", world.revocation(), Any::Revocation),
        Golden::of("Erasure", world.erasure(), Any::Erasure),
        Golden::of("QuotaDay", world.quota_day(), Any::QuotaDay),
        Golden::of("QuotaDay-data-pages", with(world.quota_day(), |day| day.data_pages = 3), Any::QuotaDay),
        Golden::of("QuotaDay-guest-codes", with(world.quota_day(), |day| day.guest_codes = 3), Any::QuotaDay),
        Golden::of("QuotaDay-reviews", with(world.quota_day(), |day| day.reviews = 3), Any::QuotaDay),
        Golden::of("QuotaDay-promotions", with(world.quota_day(), |day| day.promotion_codes = 3), Any::QuotaDay),
        Golden::of("QuotaDay-transfers", with(world.quota_day(), |day| day.transfers = 3), Any::QuotaDay),
    ]
}
