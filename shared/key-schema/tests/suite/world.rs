//! One example of every entity. Values that a key could confuse with each other must differ within
//! an item, because otherwise a template names the wrong attribute. No number equals a shard in the
//! item's keys.

use std::collections::BTreeMap;

use key_schema::cart::{Cart, CartLine};
use key_schema::category::relocation::{CategoryMove, Phase};
use key_schema::category::{CategoryAbout, CategoryNode};
use key_schema::counter::{Counter, CounterShard};
use key_schema::customer::{Address, Customer, EmailClaim, Place, Tier, UsernameClaim};
use key_schema::document::{CustomerDocument, Document, DocumentSection, DocumentVersion, Draft, Manifest, Tie};
use key_schema::erasure::Erasure;
use key_schema::expiration::{Expiration, RemovedBy};
use key_schema::follow::Follow;
use key_schema::heartbeat::Heartbeat;
use key_schema::id::{
    AddressName, AnswerId, Born, CounterName, CustomerId, DocumentId, EntryId, LogId, MAX_ID_BYTES, MediaId,
    MetricName, OrderId, OrderReference, OrganizationId, PointId, ProductId, QuestionId, SectionName, SessionId,
    StoreId, TeamId,
};
use key_schema::idempotency::{IdempotencyRecord, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::invoice::{Invoice, InvoiceCounter};
use key_schema::item::{Meta, Stored};
use key_schema::like::{Like, LikeCount};
use key_schema::mail::{Mail, MailState};
use key_schema::mark::Mark;
use key_schema::media::{MediaKind, MediaObject, UnsettledObject};
use key_schema::membership::{Membership, ProductCategories};
use key_schema::metric::MetricPoint;
use key_schema::money::{Currency, Money};
use key_schema::order::open::{OpenOrder, OpenOrders};
use key_schema::order::staged::{Unfinished, Work};
use key_schema::order::{CustomerOrder, Order, OrderLine, OrderLog, OrderStatus, OrderStatusEvent, ReferenceClaim};
use key_schema::organization::invitation::{Invitation, Invitations, OpenInvitation};
use key_schema::organization::{Member, Organization, Role, Team};
use key_schema::picking::{PickingStations, WaitingJob};
use key_schema::picture::{Picture, ProductPictures};
use key_schema::place::{PlaceSales, SalePlace, StoreLocation};
use key_schema::product::{
    Adjustment, CategoryPath, Copied, Product, ProductContent, ProductSales, ReviewStats, Stock,
};
use key_schema::question::{self, CustomerQuestion, Question, QuestionStatus};
use key_schema::quota::{CustomerHash, QuotaDay};
use key_schema::recipient::{MailDay, MailStop, RecipientHash, StopReason};
use key_schema::review::Review;
use key_schema::review::recent::{Month, RecentReview, ReviewMonth};
use key_schema::revocation::{Revocation, SignIn};
use key_schema::sales::Sale;
use key_schema::session::Session;
use key_schema::settings::Settings;
use key_schema::text::{Email, Username};
use key_schema::verification::EmailVerification;

use crate::categories::path;
use crate::support::at;

/// The ids and names in the keys of the examples.
pub struct World {
    pub customer: CustomerId,
    /// Another customer.
    pub other: CustomerId,
    pub product: ProductId,
    pub order: OrderId,
    pub store: StoreId,
    pub session: SessionId,
    pub log: LogId,
    pub entry: EntryId,
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
/// the two it contains.
const UNFINISHED: &str = "2017-01-01T12:01:07.350Z";
const LAPSES: &str = "2017-01-01T12:53:26.000Z";

impl World {
    /// Makes readable ids as in a real shop, with spaces and letters outside ASCII. Some have
    /// slashes, as earlier versions allowed.
    pub fn plain() -> Self {
        Self {
            customer: CustomerId::new("household-2375").unwrap(),
            other: CustomerId::new("household-0718").unwrap(),
            product: ProductId::new("1082185").unwrap(),
            order: OrderId::generate(at(PLACED), [0xA1; 10]),
            store: StoreId::new("364").unwrap(),
            session: SessionId::generate(at("2017-03-05T08:00:00.000Z"), [0xB2; 10]),
            log: LogId::generate(at("2017-01-03T16:20:00.000Z"), [0xC3; 10]),
            entry: EntryId::generate(at("2017-01-04T10:05:00.000Z"), [0xD4; 10]),
            question: QuestionId::generate(at("2017-02-01T09:00:00.000Z"), [0xE5; 10]),
            answer: AnswerId::generate(at("2017-02-02T10:30:00.250Z"), [0xF6; 10]),
            metric: MetricName::stored("till #3: queue/länge").unwrap(),
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
            document: DocumentId::stored("statutes/2017").unwrap(),
            section: SectionName::new("§ 1 Purpose").unwrap(),
        }
    }

    /// Returns a world whose ids differ from those of all other numbers.
    pub fn numbered(number: u8) -> Self {
        // Spread like the random part of real ids.
        let spread = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        let random = std::array::from_fn(|at| spread[at % spread.len()]);
        let id = |what: &str| format!("{what}-{number}");
        Self {
            customer: CustomerId::new(id("customer")).unwrap(),
            other: CustomerId::new(id("other")).unwrap(),
            product: ProductId::new(id("product")).unwrap(),
            order: OrderId::generate(at(PLACED), random),
            store: StoreId::new(id("store")).unwrap(),
            session: SessionId::generate(at("2017-03-05T08:00:00.000Z"), random),
            question: QuestionId::generate(at("2017-02-01T09:00:00.000Z"), random),
            metric: MetricName::stored(id("metric")).unwrap(),
            point: PointId::generate(at(MEASURED), random),
            counter: CounterName::new(id("counter")).unwrap(),
            media: MediaId::generate(at("2017-02-03T14:00:00.000Z"), random),
            organization: OrganizationId::new(id("organization")).unwrap(),
            document: DocumentId::stored(id("document")).unwrap(),
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
            session: SessionId::new(hashes(128)).unwrap(),
            log: LogId::new(hashes(128)).unwrap(),
            entry: EntryId::new(hashes(128)).unwrap(),
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

    pub fn postal_address(&self) -> Address {
        Address {
            street: "Hauptstraße 5".into(),
            city: "Zürich".into(),
            postal_code: Some("8001".into()),
            region: Some("ZH".into()),
            country: "CH".into(),
        }
    }

    pub fn customer(&self) -> Stored<Customer> {
        self.stored(Customer {
            tier: Tier::Silver,
            place: Some(Place { country: self.country.clone(), city: self.city.clone() }),
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

    /// Returns the session as earlier versions stored it, without a sign-in.
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

    pub fn product(&self) -> Stored<Product> {
        self.stored(Product {
            copied: Copied { in_stock: true, stock_rev: 5, rating_count: 12, rating_sum: 49, rating_rev: 13 },
            package_size: Some("22 LB".into()),
            summary: Some("A bag of ice.".into()),
            ..Product::new(
                self.product.clone(),
                "ICE - CRUSHED/CUBED 22 LB".into(),
                "Private".into(),
                self.money(129),
                self.category.clone(),
            )
        })
    }

    pub fn retired_product(&self) -> Stored<Product> {
        let mut product = self.product();
        product.data.retired = true;
        product
    }

    pub fn adjustment(&self) -> Adjustment {
        let staff = CustomerId::new("staff-1").unwrap();
        Adjustment { by: -5, reason: "melted".into(), staff, at: at("2017-02-02T10:30:00.250Z") }
    }

    pub fn stock(&self) -> Stored<Stock> {
        self.stored(Stock {
            product_id: self.product.clone(),
            available: 1_000_000,
            sellable: true,
            product_born: None,
            last_adjustment: Some(self.adjustment()),
        })
    }

    pub fn revived_stock(&self) -> Stored<Stock> {
        let mut stock = self.stock();
        stock.data.product_born = Some(self.product().meta.born);
        stock
    }

    pub fn review_stats(&self) -> Stored<ReviewStats> {
        self.stored(ReviewStats { product_id: self.product.clone(), rating_count: 12, rating_sum: 49 })
    }

    pub fn product_sales(&self) -> Stored<ProductSales> {
        self.stored(ProductSales { product_id: self.product.clone(), quantity: 54, orders: 9 })
    }

    pub fn product_categories(&self) -> Stored<ProductCategories> {
        self.stored(ProductCategories { product_id: self.product.clone(), paths: vec![self.further_category.clone()] })
    }

    pub fn membership(&self, retired: bool) -> Stored<Membership> {
        self.stored(Membership {
            id: self.product.clone(),
            path: self.further_category.clone(),
            retired,
            source_rev: 21,
            category_path: self.category.clone(),
            name: "ICE - CRUSHED/CUBED 22 LB".into(),
            brand: "Private".into(),
            package_size: Some("22 LB".into()),
            price: self.money(129),
        })
    }

    pub fn shop(&self) -> Stored<StoreLocation> {
        self.stored(StoreLocation {
            id: self.store.clone(),
            country: self.country.clone(),
            city: self.city.clone(),
            name: "By the lake".into(),
        })
    }

    pub fn sale_place(&self, reversed: bool) -> Stored<SalePlace> {
        self.stored(SalePlace {
            order_id: self.order.clone(),
            country: self.country.clone(),
            city: self.city.clone(),
            store_id: self.store.clone(),
            placed_at: at(PLACED),
            total: self.money(774),
            reversed,
            shard: 0,
        })
    }

    /// Makes the place of an online order, whose total has several shards.
    pub fn online_sale_place(&self) -> Stored<SalePlace> {
        let order = self.order(OrderStatus::Pending);
        self.stored(SalePlace::of(&order, Some(&self.shop().data), StoreId::online()))
    }

    /// Makes one part of the online shop's total.
    pub fn online_sales(&self) -> Stored<PlaceSales> {
        let (shard, store_id) = (self.online_sale_place().shard, StoreId::online());
        Stored { data: PlaceSales { shard, store_id, ..self.place_sales().data }, ..self.place_sales() }
    }

    pub fn place_sales(&self) -> Stored<PlaceSales> {
        self.stored(PlaceSales {
            shard: 0,
            country: self.country.clone(),
            city: self.city.clone(),
            store_id: self.store.clone(),
            date: "2017-01-01".into(),
            currency: Currency::USD,
            orders: 9,
            amount: 6966,
        })
    }

    pub fn content(&self) -> Stored<ProductContent> {
        self.stored(ProductContent { product_id: self.product.clone(), text: "# Ice\n\nCold.".into(), file: None })
    }

    pub fn large_content(&self) -> Stored<ProductContent> {
        let file = self.media_object("text/markdown", 4_500_000);
        self.stored(ProductContent { product_id: self.product.clone(), text: String::new(), file: Some(file) })
    }

    fn media_object(&self, content_type: &str, bytes: u64) -> MediaObject {
        MediaObject { id: self.media.clone(), content_type: content_type.into(), bytes }
    }

    pub fn picture(&self) -> Picture {
        Picture {
            object: self.media_object("image/webp", 482_113),
            alt: Some("A bag of ice, in front of a bath".into()),
            added_at: at("2017-02-03T14:05:00.000Z"),
        }
    }

    pub fn pictures(&self) -> Stored<ProductPictures> {
        self.stored(ProductPictures { product_id: self.product.clone(), pictures: vec![self.picture()] })
    }

    pub fn unsettled(&self, doomed: bool) -> Stored<UnsettledObject> {
        let (product, id, since) = (self.product.clone(), self.media.clone(), at("2017-02-03T14:04:59.500Z"));
        self.stored(UnsettledObject { doomed, ..UnsettledObject::new(MediaKind::Picture, product, id, since) })
    }

    pub fn category_node(&self) -> Stored<CategoryNode> {
        self.stored(CategoryNode::new(self.category.clone()))
    }

    /// Makes a node whose move has already created its successor.
    pub fn moving_category_node(&self) -> Stored<CategoryNode> {
        self.stored(CategoryNode { path: self.category.clone(), moving: true })
    }

    pub fn category_move(&self) -> Stored<CategoryMove> {
        self.stored(CategoryMove {
            phase: Phase::Settling,
            reached: Some(self.category.clone()),
            categories: 3,
            products: 41,
            memberships: 2,
            ..CategoryMove::new(self.category.clone(), self.further_category.clone(), at(UNFINISHED))
        })
    }

    pub fn category_about(&self) -> Stored<CategoryAbout> {
        self.stored(CategoryAbout {
            path: self.category.clone(),
            title: Some("Ice".into()),
            description: Some("By the bag.".into()),
        })
    }

    pub fn review(&self) -> Stored<Review> {
        self.stored(Review {
            product_id: self.product.clone(),
            customer_id: self.customer.clone(),
            rating: 5,
            title: "Cold".into(),
            text: "As ice should be.".into(),
        })
    }

    pub fn follow(&self) -> Stored<Follow> {
        self.stored(Follow { customer_id: self.customer.clone(), followed_id: self.other.clone() })
    }

    pub fn like(&self) -> Stored<Like> {
        self.stored(Like { customer_id: self.customer.clone(), product_id: self.product.clone() })
    }

    pub fn like_count(&self) -> Stored<LikeCount> {
        self.stored(LikeCount { product_id: self.product.clone(), shard: 6, likes: 17 })
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

    /// Makes a sale as the first release wrote it.
    pub fn anonymous_sale(&self) -> Stored<Sale> {
        let mut sale = self.sale(false);
        sale.data.customer_id = None;
        sale
    }

    pub fn recent_review(&self) -> Stored<RecentReview> {
        RecentReview::of(&self.review())
    }

    pub fn review_month(&self) -> Stored<ReviewMonth> {
        self.stored(ReviewMonth { month: Month::of(at("2017-02-01T09:00:00.000Z")) })
    }

    pub fn question(&self, status: QuestionStatus) -> Stored<Question> {
        self.stored(Question {
            id: self.question.clone(),
            customer_id: self.customer.clone(),
            status,
            answer_count: if status == QuestionStatus::Open { 0 } else { 2 },
            title: "Ice".into(),
            text: "Does it melt?".into(),
        })
    }

    pub fn customer_question(&self) -> Stored<CustomerQuestion> {
        CustomerQuestion::of(&self.question(QuestionStatus::Answered))
    }

    pub fn answer(&self) -> Stored<question::Answer> {
        self.stored(question::Answer {
            id: self.answer.clone(),
            question_id: self.question.clone(),
            by: CustomerId::new("staff-1").unwrap(),
            text: "Above 0 °C.".into(),
        })
    }

    pub fn settings(&self) -> Stored<Settings> {
        let (values, private) = (r#"{"banner":"Ice is on sale","rate":1.10}"#.into(), r#"{"partner":"x"}"#.into());
        self.stored(Settings { copy: 1234, values, private })
    }

    pub fn order(&self, status: OrderStatus) -> Stored<Order> {
        self.stored(Order {
            status,
            reference: Some(self.reference.clone()),
            store_id: Some(self.store.clone()),
            unfinished: (status == OrderStatus::Placing).then(|| Unfinished {
                since: at(UNFINISHED),
                work: Work::Placing { key: Some(self.scope.clone()), lines: 0 },
            }),
            invoice_number: Some(4711),
            ..Order::new(self.order.clone(), self.customer.clone(), at(PLACED), self.money(774), 1)
        })
    }

    /// Makes an order that its customer placed.
    pub fn own_order(&self, status: OrderStatus) -> Stored<Order> {
        let mut order = self.order(status);
        order.data.by_customer = true;
        order.data.lapses_at = Some(at(LAPSES));
        order.data.store_id = None;
        order.data.invoice_number = None;
        order
    }

    pub fn open_order(&self) -> OpenOrder {
        OpenOrder { most: 6, lines: 1 }
    }

    pub fn open_orders(&self) -> Stored<OpenOrders> {
        self.stored(OpenOrders {
            customer_id: self.customer.clone(),
            expires_at: at("2017-01-08T12:53:26.000Z"),
            entries: BTreeMap::from([(self.order.clone(), self.open_order())]),
            day: None,
            placed: 0,
        })
    }

    /// Makes open orders that count the orders of their day.
    pub fn counted_orders(&self) -> Stored<OpenOrders> {
        let mut open = self.open_orders();
        (open.data.day, open.data.placed) = (Some("2017-01-01".into()), 1);
        open
    }

    /// Makes the claim on a reference that a customer gave.
    pub fn own_reference_claim(&self) -> Stored<ReferenceClaim> {
        self.stored(ReferenceClaim::of(&self.own_order(OrderStatus::Pending)).unwrap())
    }

    /// Makes a large cancelled order whose stock is not all returned yet.
    pub fn returning_order(&self) -> Stored<Order> {
        let mut order = self.order(OrderStatus::Cancelled);
        order.data.unfinished = Some(Unfinished { since: at(UNFINISHED), work: Work::Returning(0) });
        order
    }

    pub fn refunded_order(&self) -> Stored<Order> {
        let mut order = self.order(OrderStatus::Returned);
        (order.data.paid_from_wallet, order.data.refunded) = (true, 774);
        order
    }

    pub fn invoice(&self) -> Stored<Invoice> {
        self.stored(Invoice {
            number: 4711,
            order_id: self.order.clone(),
            customer_id: self.customer.clone(),
            total: self.money(774),
            issued_at: at(PLACED),
        })
    }

    pub fn invoice_counter(&self) -> Stored<InvoiceCounter> {
        self.stored(InvoiceCounter { last: 4710 })
    }

    /// Returns the instant at which a retired order expires.
    pub fn expiry(&self) -> Instant {
        at("2020-01-01T00:00:00.000Z")
    }

    pub fn retired_order(&self) -> Stored<Order> {
        let mut order = self.order(OrderStatus::Delivered);
        order.data.expires_at = Some(self.expiry());
        order
    }

    pub fn retired_customer_order(&self) -> Stored<CustomerOrder> {
        let mut copy = self.customer_order(true);
        copy.data.status = OrderStatus::Delivered;
        copy.data.expires_at = Some(self.expiry());
        copy
    }

    pub fn order_line(&self) -> Stored<OrderLine> {
        self.stored(OrderLine {
            order_id: self.order.clone(),
            line: 7,
            product_id: self.product.clone(),
            product_born: None,
            name: "ICE - CRUSHED/CUBED 22 LB".into(),
            quantity: 6,
            unit_price: self.money(129),
            total: self.money(774),
            expires_at: None,
        })
    }

    /// Makes a line that names the incarnation of its product.
    pub fn born_order_line(&self) -> Stored<OrderLine> {
        let mut line = self.order_line();
        line.data.product_born = Some(self.product().meta.born);
        line
    }

    pub fn status_event(&self) -> Stored<OrderStatusEvent> {
        self.stored(OrderStatusEvent {
            order_id: self.order.clone(),
            status: OrderStatus::Paid,
            at: at("2017-01-01T12:00:00.000Z"),
            by: "staff-1".into(),
            note: Some("at the till".into()),
            expires_at: None,
        })
    }

    pub fn customer_order(&self, shipped: bool) -> Stored<CustomerOrder> {
        self.stored(CustomerOrder {
            shipped_at: shipped.then(|| at("2017-01-02T07:15:00.000Z")),
            carrier: shipped.then(|| "Post".into()),
            tracking: shipped.then(|| "CH-0001".into()),
            ..CustomerOrder::of(&self.order(if shipped { OrderStatus::Shipped } else { OrderStatus::Pending }))
        })
    }

    pub fn reference_claim(&self) -> Stored<ReferenceClaim> {
        self.stored(ReferenceClaim::of(&self.order(OrderStatus::Pending)).unwrap())
    }

    pub fn order_log(&self) -> Stored<OrderLog> {
        self.stored(OrderLog {
            id: self.log.clone(),
            order_id: self.order.clone(),
            at: at("2017-01-03T16:20:00.000Z"),
            by: "staff-1".into(),
            text: "The customer called.".into(),
        })
    }

    pub fn sale(&self, reversed: bool) -> Stored<Sale> {
        self.stored(Sale {
            order_id: self.order.clone(),
            line: 7,
            product_id: self.product.clone(),
            placed_at: at(PLACED),
            quantity: 6,
            total: self.money(774),
            store_id: Some(self.store.clone()),
            customer_id: Some(self.customer.clone()),
            reversed,
        })
    }

    pub fn idempotency_record(&self, answer: StoredResponse) -> Stored<IdempotencyRecord> {
        self.stored(IdempotencyRecord {
            scope: self.scope.clone(),
            request_hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
            answer,
            expires_at: at("2017-02-02T09:00:00.000Z"),
        })
    }

    pub fn metric_point(&self) -> Stored<MetricPoint> {
        let (name, id) = (self.metric.clone(), self.point.clone());
        MetricPoint { name, at: at(MEASURED), id, value: "-12.50".parse().unwrap() }.stored()
    }

    pub fn counter_head(&self) -> Stored<Counter> {
        self.stored(Counter { name: self.counter.clone(), shards: 32 })
    }

    pub fn counter_shard(&self) -> Stored<CounterShard> {
        self.stored(CounterShard { name: self.counter.clone(), shard: 27, counted: 4812 })
    }

    pub fn heartbeat(&self) -> Stored<Heartbeat> {
        self.stored(Heartbeat { round: at("2017-02-02T10:30:00.250Z") })
    }

    pub fn erasure(&self) -> Stored<Erasure> {
        self.stored(Erasure { customer_id: self.customer.clone() })
    }

    pub fn expiration(&self, is_archived: bool) -> Stored<Expiration> {
        let entry = Expiration {
            kind: "Session".into(),
            item: "3f0d6c2b9a1e48d7b5c4f3e2d1a09876".into(),
            removed_at: at("2017-03-06T09:30:00.000Z"),
            sequence_number: "100000000000000000001".into(),
            removed_by: RemovedBy::Ttl,
            archive: is_archived.then(|| "expired/3f0d/3f0d-100000000000000000001.json".into()),
        };
        entry.stored().unwrap()
    }

    pub fn mail(&self) -> Stored<Mail> {
        self.stored(Mail {
            event_id: self.event_id.clone(),
            expires_at: at("2017-03-08T09:00:00.000Z"),
            state: MailState::Sending,
            lease_until: at("2017-02-01T09:00:15.000Z"),
        })
    }

    pub fn mail_day(&self) -> Stored<MailDay> {
        self.stored(MailDay {
            recipient: RecipientHash::of(&self.email),
            day: "2017-02-01".into(),
            expires_at: at("2017-02-03T09:00:00.000Z"),
            mails: 7,
            codes: 2,
        })
    }

    pub fn quota_day(&self) -> Stored<QuotaDay> {
        self.stored(QuotaDay {
            customer: CustomerHash::of(&self.customer),
            day: "2017-02-01".into(),
            expires_at: at("2017-02-03T09:00:00.000Z"),
            codes: 2,
            documents: 5,
            organizations: 1,
            questions: 0,
            sessions: 4,
        })
    }

    pub fn mail_stop(&self) -> Stored<MailStop> {
        self.stored(MailStop { recipient: RecipientHash::of(&self.email), reason: StopReason::Complaint })
    }

    pub fn stations(&self, busy: bool) -> Stored<PickingStations> {
        self.stored(PickingStations { jobs: busy.then(|| self.order.clone()).into_iter().collect() })
    }

    pub fn waiting_job(&self) -> Stored<WaitingJob> {
        self.stored(WaitingJob { order_id: self.order.clone() })
    }

    pub fn mark(&self) -> Stored<Mark> {
        Mark::new("bus", &self.event_id, at("2017-02-01T09:00:00.500Z")).unwrap()
    }

    pub fn organization(&self) -> Stored<Organization> {
        let id = self.organization.clone();
        self.stored(Organization { id, teams: 12, admins: 2, invited: 3, name: "Chess club".into() })
    }

    pub fn team(&self) -> Stored<Team> {
        let (organization_id, id) = (self.organization.clone(), self.team.clone());
        self.stored(Team { organization_id, id, members: 4, name: "Bishops".into() })
    }

    pub fn member(&self, role: Role) -> Stored<Member> {
        let team = Some(self.team.clone());
        self.stored(Member { id: self.organization.clone(), customer_id: self.customer.clone(), role, team })
    }

    pub fn invitation(&self) -> Stored<Invitation> {
        self.stored(Invitation {
            id: self.organization.clone(),
            customer_id: self.customer.clone(),
            title: "Chess club".into(),
            role: Role::Member,
            team: Some(self.team.clone()),
            inviter: None,
            expires_at: at("2026-12-04T12:00:00.000Z"),
        })
    }

    /// Makes an invitation that names its inviter.
    pub fn invitation_by_admin(&self) -> Stored<Invitation> {
        let mut invitation = self.invitation();
        invitation.data.inviter = Some(CustomerId::new("household-1").unwrap());
        invitation
    }

    pub fn invitations(&self) -> Stored<Invitations> {
        let inviter = CustomerId::new("household-1").unwrap();
        let open = OpenInvitation::new(at("2026-12-04T12:00:00.000Z"), &inviter);
        let open = [(self.organization.clone(), open)].into();
        self.stored(Invitations { customer_id: self.customer.clone(), open })
    }

    pub fn manifest(&self) -> Manifest {
        Manifest::from([(self.section.clone(), 41)])
    }

    pub fn document(&self, drafted: bool) -> Stored<Document> {
        let draft = Draft {
            sections: Manifest::from([(self.section.clone(), 42)]),
            by: self.customer.clone(),
            at: at("2017-02-02T10:15:00.000Z"),
        };
        self.stored(Document {
            id: self.document.clone(),
            owner_id: Some(self.customer.clone()),
            organization_id: Some(self.organization.clone()),
            editors: [CustomerId::new("household-13").unwrap()].into(),
            deleting: false,
            title: "Statutes".into(),
            current: 41,
            sections: self.manifest(),
            draft: drafted.then_some(draft),
        })
    }

    /// Makes a document that is being deleted, without an organization and without editors.
    pub fn deleted_document(&self) -> Stored<Document> {
        let mut document = self.document(false);
        document.data.organization_id = None;
        document.data.editors.clear();
        document.data.deleting = true;
        document
    }

    /// Makes a document of an organization after its owner was erased.
    pub fn orphaned_document(&self) -> Stored<Document> {
        let mut document = self.document(false);
        document.data.owner_id = None;
        document
    }

    pub fn customer_document(&self) -> Stored<CustomerDocument> {
        let (customer_id, document_id) = (self.customer.clone(), self.document.clone());
        self.stored(CustomerDocument { customer_id, document_id, tie: Tie::Owner })
    }

    pub fn document_section(&self) -> Stored<DocumentSection> {
        self.stored(DocumentSection {
            id: self.document.clone(),
            name: self.section.clone(),
            number: 41,
            text: "To play chess.".into(),
            by: self.customer.clone(),
            at: at("2017-02-02T10:30:00.250Z"),
        })
    }

    pub fn document_version(&self, restored: bool) -> Stored<DocumentVersion> {
        self.stored(DocumentVersion {
            id: self.document.clone(),
            number: 41,
            sections: self.manifest(),
            by: self.customer.clone(),
            at: at("2017-02-02T10:30:00.250Z"),
            note: restored.then(|| "as it was".into()),
            restored_from: restored.then_some(7),
        })
    }
}
