//! Tests of the schemas: every kind of event has a schema, and published events are valid.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use bus::{
    CustomerTierChanged, Data, DecodeError, EmailVerificationRequested, Event, EventId, Kind, MAX_REQUEST_BYTES,
    OrderPlaced, OrderStatusChanged, Origin, PaymentNotified, PaymentReversed, PlacedLine, PlacedPromotion,
    PlacedTotals, Reason, Reversal, ReviewPosted, StockLow,
};
use key_schema::customer::Tier;
use key_schema::id::{Born, MAX_ID_BYTES};
use key_schema::key::{Key, PartitionKey, SortKey};
use key_schema::money::{Currency, Money};
use key_schema::order::{MAX_LINES, MAX_QUANTITY, MAX_TOTAL, OrderLine, OrderNumber, OrderStatus};
use key_schema::payment::PaymentMethod;
use serde_json::{Value, json};

/// The field of the envelope that may be missing.
const OPTIONAL: &str = "correlation_id";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

/// Returns the name of a kind's schema file: `OrderPlaced`, version 1 → `order-placed.v1.json`.
fn file(kind: Kind) -> String {
    let mut name = String::new();
    for letter in kind.as_str().trim_end_matches(&format!(".v{}", kind.version())).chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    format!("{name}.v{}.json", kind.version())
}

fn schema(kind: Kind) -> Value {
    let text = std::fs::read_to_string(folder().join(file(kind))).unwrap_or_else(|_| panic!("{kind} has no schema"));
    serde_json::from_str(&text).unwrap()
}

fn event(data: impl Into<Data>) -> Event {
    let occurred_at = "2017-01-01T11:53:26.000Z".parse().unwrap();
    let correlation_id = Some("JKJaXmPLvHcESHA=".to_owned());
    Event {
        id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        occurred_at,
        sequence: 2,
        correlation_id,
        data: data.into(),
    }
}

/// Returns events of this kind in each possible form.
fn examples(kind: Kind) -> Vec<Event> {
    let (customer_id, placed_at) = ("c #1".parse().unwrap(), "2017-01-01T11:53:26.000Z".parse().unwrap());
    let total = Money::new(-774, Currency::USD);
    match kind {
        Kind::OrderPlaced => {
            let totals = PlacedTotals { items: total, discount: total, shipping: total, tax: total, total };
            let line = PlacedLine {
                line: 1,
                product_id: "p1".parse().unwrap(),
                name: "Ice".to_owned(),
                quantity: 2,
                unit_price: total,
                total,
            };
            let online = OrderPlaced {
                order_id: "o1".parse().unwrap(),
                number: OrderNumber::of(&"o1".parse().unwrap()),
                reference: None,
                customer_id,
                by_customer: true,
                agent: Some("acme".parse().unwrap()),
                store_id: None,
                status: OrderStatus::Pending,
                totals,
                shipping_method: Some("post".parse().unwrap()),
                country: Some("CH".parse().unwrap()),
                promotions: vec![PlacedPromotion { promotion_id: "summer".parse().unwrap(), amount: total }],
                line_count: 1,
                lines: vec![line],
                lines_left_out: 0,
                placed_at,
            };
            let in_shop = OrderPlaced {
                reference: Some("basket #1".parse().unwrap()),
                by_customer: false,
                agent: None,
                store_id: Some("364".parse().unwrap()),
                status: OrderStatus::Paid,
                shipping_method: None,
                country: None,
                promotions: Vec::new(),
                lines: Vec::new(),
                lines_left_out: 1,
                ..online.clone()
            };
            vec![event(online), event(in_shop)]
        }
        Kind::OrderStatusChanged => {
            let changed = |(from, to)| OrderStatusChanged {
                order_id: "o1".parse().unwrap(),
                customer_id: "c1".parse().unwrap(),
                agent: (from == OrderStatus::Pending).then(|| "acme".parse().unwrap()),
                from,
                to,
                reason: (to == OrderStatus::Cancelled).then_some(Reason::Lapsed),
                total,
                placed_at,
            };
            let visible = OrderStatus::VISIBLE;
            let steps = visible.into_iter().flat_map(|from| visible.into_iter().map(move |to| (from, to)));
            steps.map(|step| event(changed(step))).collect()
        }
        Kind::StockLow => vec![event(StockLow { product_id: "p1".parse().unwrap(), available: 9, threshold: 10 })],
        Kind::ReviewPosted => {
            vec![event(ReviewPosted { product_id: "p1".parse().unwrap(), customer_id, rating: 5 })]
        }
        Kind::CustomerTierChanged => {
            let changed = |tier| CustomerTierChanged { customer_id: "c1".parse().unwrap(), from: tier, to: Tier::Gold };
            Tier::ALL.into_iter().map(|tier| event(changed(tier))).collect()
        }
        Kind::EmailVerificationRequested => {
            vec![event(EmailVerificationRequested { customer_id, expires_at: placed_at })]
        }
        Kind::PaymentNotified => {
            let notified = |order_id| PaymentNotified { intent: "pi_1".to_owned(), order_id };
            vec![event(notified(None)), event(notified(Some("o1".parse().unwrap())))]
        }
        Kind::PaymentReversed => {
            let reversed = |(method, reversal)| PaymentReversed {
                order_id: "o1".parse().unwrap(),
                customer_id: "c1".parse().unwrap(),
                payment_id: "p1".parse().unwrap(),
                method,
                reversal,
                amount: total,
            };
            let methods = [PaymentMethod::Card, PaymentMethod::Wallet, PaymentMethod::Manual];
            let all = methods.into_iter().flat_map(|method| [(method, Reversal::Refund), (method, Reversal::Release)]);
            all.map(|each| event(reversed(each))).collect()
        }
    }
}

/// Returns events of every kind, with and without a correlation id.
fn every_example() -> impl Iterator<Item = Event> {
    let all = Kind::ALL.iter().flat_map(|kind| examples(*kind));
    all.flat_map(|event| [Event { correlation_id: None, ..event.clone() }, event])
}

fn detail(event: &Event) -> Value {
    serde_json::from_str(&event.to_detail().unwrap()).unwrap()
}

fn names(of: &Value) -> BTreeSet<String> {
    of.as_object().unwrap().keys().cloned().collect()
}

fn required(schema: &Value) -> BTreeSet<String> {
    schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn new(schema: Value) -> Self {
        const LOCATION: &str = "https://example.com/schema.json";
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource(LOCATION, schema).unwrap();
        let index = compiler.compile(LOCATION, &mut schemas).unwrap();
        Self { schemas, index }
    }

    fn validate(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.index).map_err(|error| error.to_string())
    }
}

#[test]
fn every_event_is_valid_under_the_schema_of_its_kind_and_under_no_other_schema() {
    for kind in Kind::ALL {
        let validator = Validator::new(schema(*kind));
        for event in every_example() {
            let valid = validator.validate(&detail(&event));
            assert_eq!(valid.is_ok(), event.kind() == *kind, "{kind}: {event:?}: {valid:?}");
        }
    }
}

#[test]
fn a_schema_has_exactly_the_published_fields_and_requires_all_but_the_optional_ones() {
    for event in every_example() {
        let mut schema = schema(event.kind());
        let published = detail(&event);
        for (object, name) in [("", OPTIONAL), ("/properties/data", "reason"), ("/properties/data", "agent")] {
            let schema = schema.pointer_mut(object).unwrap();
            let Some(properties) = schema["properties"].as_object_mut().filter(|all| all.contains_key(name)) else {
                continue;
            };
            if published.pointer(&format!("{}/{name}", object.replace("/properties", ""))).is_some() {
                schema["required"].as_array_mut().unwrap().push(json!(name));
            } else {
                properties.remove(name);
            }
        }
        compare(&schema, &detail(&event));
    }
}

/// Compares the fields of an object and of every object in it.
fn compare(schema: &Value, published: &Value) {
    published.as_array().into_iter().flatten().for_each(|entry| compare(&schema["items"], entry));
    let Some(fields) = published.as_object() else { return };
    assert_eq!(names(&schema["properties"]), names(published));
    assert_eq!(required(schema), names(published));
    assert_eq!(schema["additionalProperties"], json!(false));
    for (name, value) in fields {
        compare(&schema["properties"][name], value);
    }
}

#[test]
fn a_schema_follows_the_current_draft_and_names_its_kind_and_describes_every_field() {
    fn assert_described(schema: &Value) {
        assert!(schema["description"].as_str().is_some_and(|text| text.ends_with('.')), "{schema}");
        for field in schema.get("properties").into_iter().flat_map(|fields| fields.as_object().unwrap().values()) {
            assert_described(field);
        }
    }
    for kind in Kind::ALL {
        let schema = schema(*kind);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        // Compiling the schema validates it against the meta-schema of the draft.
        Validator::new(schema.clone());
        assert_eq!(schema["title"], kind.as_str());
        assert_eq!(schema["properties"]["type"]["const"], kind.as_str());
        assert_eq!(schema["properties"]["version"]["const"], kind.version());
        assert_described(&schema);
    }
}

#[test]
fn an_event_that_breaks_its_schema_is_not_valid() {
    let validator = Validator::new(schema(Kind::OrderPlaced));
    let good = detail(&examples(Kind::OrderPlaced)[0]);
    validator.validate(&good).unwrap();
    for (pointer, wrong) in [
        ("/id", json!("o1")),
        ("/version", json!(2)),
        ("/occurred_at", json!("2017-01-01T11:53:26Z")),
        ("/correlation_id", json!("two words")),
        ("/data/status", json!("placing")),
        ("/data/line_count", json!(-1)),
        ("/data/totals/total/amount", json!(1.5)),
        ("/data/totals/total/currency", json!("dollar")),
        ("/data/lines/0/quantity", json!(0)),
        ("/data/lines/0/total", json!(1)),
        ("/data/lines_left_out", json!(null)),
        ("/data/customer_id", json!(null)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert!(validator.validate(&bad).is_err(), "{pointer}");
    }
}

/// Returns the event of an order of 500 lines, with names of this text and with the longest values
/// otherwise.
fn largest(name: &str) -> OrderPlaced {
    let Data::OrderPlaced(example) = examples(Kind::OrderPlaced)[0].data.clone() else { panic!() };
    let longest = || "x".repeat(MAX_ID_BYTES);
    let amount = Money::new(MAX_TOTAL, Currency::USD);
    let promotion = PlacedPromotion { promotion_id: longest().parse().unwrap(), amount };
    let mut placed = OrderPlaced {
        order_id: longest().parse().unwrap(),
        reference: Some(longest().parse().unwrap()),
        customer_id: longest().parse().unwrap(),
        agent: Some(longest().parse().unwrap()),
        store_id: Some(longest().parse().unwrap()),
        shipping_method: Some(longest().parse().unwrap()),
        // An order has at most five promotions.
        promotions: vec![promotion; 5],
        line_count: u64::try_from(MAX_LINES).unwrap(),
        lines: Vec::new(),
        lines_left_out: u64::try_from(MAX_LINES).unwrap(),
        ..example
    };
    let line = |line: usize| OrderLine {
        order_id: placed.order_id.clone(),
        line: u64::try_from(line).unwrap(),
        product_id: longest().parse().unwrap(),
        product_born: Born::counter(),
        name: name.to_owned(),
        thumbnail: None,
        quantity: MAX_QUANTITY,
        unit_price: amount,
        total: amount,
        discount: 0,
        discounts: Vec::new(),
        tax: 0,
        tax_rate: None,
        expires_at: None,
        stock_shards: None,
        picks: Default::default(),
    };
    let lines: Vec<OrderLine> = (1..=MAX_LINES).map(line).collect();
    placed.add_lines(&lines[1..]);
    assert!(placed.lines.is_empty(), "an event has all lines or none");
    placed.add_lines(&lines);
    placed
}

#[test]
fn an_event_has_500_lines_with_the_longest_ids_and_names_but_no_lines_that_exceed_the_limit() {
    // The envelope of a delivery to a subscriber has less than 1,000 bytes.
    let is_published = |placed: OrderPlaced| event(placed).to_detail().unwrap().len() + 1_000 < MAX_REQUEST_BYTES;
    let placed = largest(&"n".repeat(200));
    assert_eq!((placed.lines.len(), placed.lines_left_out), (500, 0));
    assert!(is_published(placed));
    // JSON writes each quotation mark with two characters.
    let placed = largest(&"\"".repeat(200));
    assert_eq!((placed.lines.len(), placed.lines_left_out), (0, 500));
    assert!(is_published(placed));
    // The longest names with which the lines fit are the worst case.
    let widest = (0..=200).rev().map(|quotes| largest(&format!("{}{}", "\"".repeat(quotes), "n".repeat(200 - quotes))));
    let widest = widest.into_iter().find(|placed| placed.lines_left_out == 0).unwrap();
    assert!(is_published(widest));
}

#[test]
fn every_schema_belongs_to_a_kind_of_event() {
    let there: BTreeSet<String> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(there, Kind::ALL.iter().map(|kind| file(*kind)).collect());
}

#[test]
fn an_event_is_read_back_unchanged_and_always_has_the_same_text() {
    for event in every_example() {
        let text = event.to_detail().unwrap();
        assert_eq!(text.parse::<Event>().unwrap(), event);
        assert_eq!(Event::from_detail(&detail(&event)).unwrap(), event);
        assert_eq!(event.clone().to_detail().unwrap(), text);
    }
}

#[test]
fn fields_of_a_newer_producer_are_ignored() {
    for event in every_example() {
        let mut newer = detail(&event);
        newer["trace"] = json!({"id": 1});
        newer["data"]["added_next_year"] = json!([1, 2]);
        if let Some(line) = newer["data"].pointer_mut("/lines/0") {
            line["colour"] = json!("blue");
        }
        if let Data::OrderStatusChanged(OrderStatusChanged { reason: None, .. }) = &event.data {
            newer["data"]["reason"] = json!("a reason of a newer producer");
        }
        if let Some(total) = newer["data"].get_mut("total") {
            total["exponent"] = json!(2);
        }
        assert_eq!(Event::from_detail(&newer).unwrap(), event);
    }
}

#[test]
fn an_event_with_an_invalid_correlation_id_is_read_without_it() {
    for event in every_example() {
        let mut odd = detail(&event);
        odd["correlation_id"] = json!(7);
        assert_eq!(Event::from_detail(&odd).unwrap(), Event { correlation_id: None, ..event });
    }
}

#[test]
fn an_event_of_another_version_is_refused_even_if_its_other_fields_are_unknown() {
    for event in every_example() {
        let (this, known) = (event.kind(), event.kind().version());
        let next = json!({"type": this.as_str(), "version": known + 1, "body": "anything"});
        let error = Event::from_detail(&next).unwrap_err();
        let DecodeError::UnknownVersion { kind, version } = &error else { panic!("{error}") };
        assert_eq!((*kind, *version), (this, known + 1));
        let expected = format!("{this} has version {version}, but this program can only read version {known}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_invalid_event_is_refused_and_not_quoted() {
    let good = detail(&examples(Kind::ReviewPosted)[0]);
    let with = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        Event::from_detail(&bad).unwrap_err()
    };
    assert!(matches!("{".parse::<Event>(), Err(DecodeError::Envelope(_))));
    assert!(matches!(Event::from_detail(&json!(["secret"])), Err(DecodeError::Envelope(_))));
    assert!(matches!(with("/type", json!("Eclipse")), DecodeError::UnknownKind(kind) if kind == "Eclipse"));
    for (pointer, value) in [
        ("/id", json!("secret")),
        ("/occurred_at", json!("secret")),
        ("/data", json!("secret")),
        ("/data/rating", json!("secret")),
        ("/data/customer_id", json!("")),
    ] {
        let error = with(pointer, value);
        assert!(matches!(error, DecodeError::Malformed { kind: Kind::ReviewPosted, .. }), "{pointer}: {error}");
        assert_eq!(error.to_string(), "malformed ReviewPosted");
    }
}

#[test]
fn the_id_of_an_event_depends_on_every_part_of_its_change_and_on_nothing_else() {
    let key = |pk: &str, sk: &str| Key { pk: PartitionKey::new(pk).unwrap(), sk: SortKey::new(sk).unwrap() };
    let (ours, other) = (key("ORDER#o1", "ORDER"), key("ORDER#o", "1ORDER"));
    let (born, reborn) = (Born::new("b1").unwrap(), Born::new("b2").unwrap());
    let origin = Origin { table: "shop", key: &ours, born: &born, rev: 7 };
    let id = EventId::derive(origin, Kind::OrderPlaced);
    assert_eq!(id, EventId::derive(origin, Kind::OrderPlaced));
    // An event with this id may still be in delivery. If a new release derived another id from the
    // same change, subscribers would see the change twice.
    assert_eq!(id.as_str(), "963328b8c72069d691ea1fcb252d883e");
    let others = [
        EventId::derive(origin, Kind::OrderStatusChanged),
        EventId::derive(Origin { table: "shop2", ..origin }, Kind::OrderPlaced),
        EventId::derive(Origin { key: &other, ..origin }, Kind::OrderPlaced),
        EventId::derive(Origin { born: &reborn, ..origin }, Kind::OrderPlaced),
        EventId::derive(Origin { rev: 8, ..origin }, Kind::OrderPlaced),
    ];
    let distinct: BTreeSet<&EventId> = others.iter().chain([&id]).collect();
    assert_eq!(distinct.len(), 6);
    assert!("0123456789ABCDEF0123456789abcdef".parse::<EventId>().is_err());
}
