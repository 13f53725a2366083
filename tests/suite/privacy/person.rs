//! A customer who uses every feature. Every text of the customer contains a mark, so that the tests
//! can find it.

use key_schema::cart::Cart;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::{Entity, Meta, Stored};
use key_schema::revocation;
use key_schema::session::Session;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::{Answer, Call};
use crate::support::shop::{customer, order_body, path, products};
use crate::support::{put_item, table};

/// The customer to erase.
pub const SUBJECT: &str = "privacy-subject";
/// A customer who shares data with the subject and is not erased.
pub const FRIEND: &str = "privacy-friend";
/// A customer whom the subject has invited to an organization.
const GUEST: &str = "privacy-guest";
const STRANGER: &str = "privacy-stranger";
/// The prefix of marks in texts that an erasure removes.
pub const GOES: &str = "xq7goes";
/// The prefix of marks in texts that remain after an erasure. The subject wrote them to others, or
/// staff wrote them about the subject.
pub const STAYS: &str = "xq7stays";

/// Fields with texts that an erasure removes. Each field has its own mark.
pub const FIELDS: [&str; 25] = [
    "address",
    "answer",
    "billing-name",
    "city",
    "device",
    "display-name",
    "document",
    "email",
    "first-email",
    "first-username",
    "line1",
    "line2",
    "name",
    "note",
    "phone",
    "place-city",
    "place-country",
    "postal-code",
    "question",
    "recipient",
    "region",
    "section",
    "subject",
    "text",
    "username",
];

/// Returns the mark of a field that an erasure removes.
pub fn goes(field: &str) -> String {
    format!("{GOES}-{field}")
}

fn stays(field: &str) -> String {
    format!("{STAYS}-{field}")
}

fn asks(method: &str, path: &str, body: &Json) -> Call {
    Call::new(method, path).customer(SUBJECT).json(body)
}

fn own(segments: &[&str]) -> String {
    path(&[&["customers", SUBJECT], segments].concat())
}

async fn done(system: &System, call: Call) -> Answer {
    let answer = call.send(system).await;
    assert!(answer.is_success(), "{}", answer.body);
    answer
}

/// Sends the call with the record's current entity tag.
async fn changed(system: &System, thing: &str, call: Call) -> Answer {
    let tag = Call::new("GET", thing).staff().send(system).await.expect(200).headers["etag"].clone();
    done(system, call.header("if-match", &tag)).await
}

fn id(answer: &Answer) -> String {
    answer.body["id"].as_str().unwrap().to_owned()
}

pub async fn live(system: &System) {
    customer(system, FRIEND).await;
    customer(system, GUEST).await;
    customer(system, STRANGER).await;
    products(system, &["privacy-tea", "privacy-jam"], 100).await;
    profile(system).await;
    shopping(system).await;
    friends(system).await;
    papers(system).await;
}

async fn profile(system: &System) {
    let place = json!({ "country": goes("place-country"), "city": goes("place-city") });
    let first = json!({
        "email": format!("{}@example.com", goes("first-email")), "username": goes("first-username"),
        "name": goes("name"),
    });
    done(system, asks("POST", "/v1/customers", &first)).await;
    let second = json!({
        "email": format!("{}@example.com", goes("email")), "username": goes("username"), "place": place,
    });
    changed(system, &own(&[]), asks("PATCH", &own(&[]), &second)).await;
    // The code from this request is never used, because the token of the next request verifies the
    // address.
    done(system, Call::new("POST", &own(&["email", "verification"])).customer(SUBJECT)).await;
    let email = second["email"].as_str().unwrap();
    let proof = Call::new("PATCH", &own(&[])).customer_with_email(SUBJECT, email);
    changed(system, &own(&[]), proof.json(&json!({ "name": goes("name") }))).await;
    let address = json!({
        "name": goes("recipient"), "line1": goes("line1"), "line2": goes("line2"), "city": goes("city"),
        "region": goes("region"), "postal_code": goes("postal-code"), "country": "QA", "phone": goes("phone"),
    });
    done(system, asks("PUT", &own(&["addresses", &goes("address")]), &address)).await;
    for _ in 0..3 {
        let session = done(system, asks("POST", &own(&["sessions"]), &json!({ "device": goes("device") }))).await;
        let renamed = json!({ "device": goes("device") });
        let session = path(&["sessions", &id(&session)]);
        done(system, asks("PUT", &session, &renamed).header("if-match", "\"1\"")).await;
    }
}

/// Creates the cart, orders in several states, the wallet and reviews.
async fn shopping(system: &System) {
    let money = |amount: u64| json!({ "amount": amount, "currency": "USD" });
    let deposit = json!({ "amount": money(10_000), "note": stays("deposit") });
    let deposit = Call::new("POST", &own(&["wallet", "deposits"])).staff().json(&deposit);
    done(system, deposit.header("idempotency-key", "privacy-deposit")).await;
    let transfer = json!({ "from": SUBJECT, "to": FRIEND, "amount": money(100), "note": stays("transfer") });
    done(system, asks("POST", "/v1/transfers", &transfer).header("idempotency-key", "privacy-transfer")).await;
    for (number, to) in ["paid", "cancelled"].into_iter().enumerate() {
        let mut body = order_body(SUBJECT, &[("privacy-tea", 1), ("privacy-jam", 2)]);
        body["shipping_address"] = json!({
            "name": goes("recipient"), "line1": goes("line1"), "line2": goes("line2"), "city": stays("order-city"),
            "region": goes("region"), "postal_code": goes("postal-code"), "country": "QA", "phone": goes("phone"),
        });
        body["billing_address"] = json!({
            "name": goes("billing-name"), "line1": goes("line1"), "city": goes("city"),
            "postal_code": goes("postal-code"), "country": "QA",
        });
        body["reference"] = stays(&format!("reference-{number}")).into();
        let placed = asks("POST", "/v1/orders", &body).header("idempotency-key", &format!("privacy-order-{number}"));
        let order = path(&["orders", &id(&done(system, placed).await)]);
        if to == "cancelled" {
            done(system, asks("POST", &format!("{order}/payments"), &json!({ "method": "card" }))).await;
        }
        let step = json!({ "to": to, "note": stays("step"), "pay_from_wallet": to == "paid" });
        changed(system, &order, asks("POST", &format!("{order}/status"), &step)).await;
        if to == "paid" {
            let paid = done(system, Call::new("GET", &format!("{order}/payments")).staff()).await;
            let refund = json!({ "amount": money(1), "reason": stays("refund") });
            let refunds = format!("{order}/payments/{}/refunds", paid.body["items"][0]["id"].as_str().unwrap());
            let refund = Call::new("POST", &refunds).staff().json(&refund).header("idempotency-key", "privacy-refund");
            done(system, refund).await;
            done(system, Call::new("POST", &format!("{order}/invoice")).staff()).await;
            let log = Call::new("POST", &format!("{order}/log")).staff().json(&json!({ "text": stays("log") }));
            done(system, log).await;
        }
    }
    let line = own(&["cart", "items", "privacy-tea"]);
    done(system, asks("PUT", &line, &json!({ "quantity": 2 }))).await;
    let checkout = asks("POST", &own(&["cart", "checkout"]), &json!({}));
    done(system, checkout.header("idempotency-key", "privacy-checkout")).await;
    done(system, asks("PUT", &line, &json!({ "quantity": 1 }))).await;
    let review = json!({
        "rating": 4, "display_name": goes("display-name"), "title": stays("review"), "text": stays("review-text"),
    });
    let review = asks("PUT", &path(&["products", "privacy-tea", "reviews", SUBJECT]), &review);
    done(system, review.header("if-none-match", "*")).await;
}

/// Creates likes, follows, organizations and questions.
async fn friends(system: &System) {
    done(system, Call::new("PUT", &own(&["likes", "privacy-tea"])).customer(SUBJECT)).await;
    done(system, Call::new("PUT", &own(&["following", FRIEND])).customer(SUBJECT)).await;
    done(system, Call::new("PUT", &path(&["customers", FRIEND, "following", SUBJECT])).customer(FRIEND)).await;
    let club = id(&done(system, asks("POST", "/v1/organizations", &json!({ "name": stays("club") }))).await);
    let team = path(&["organizations", &club, "teams", "team"]);
    done(system, asks("PUT", &team, &json!({ "name": stays("team") })).header("if-none-match", "*")).await;
    let member = json!({ "role": "admin", "team": "team" });
    let join = path(&["organizations", &club, "members", FRIEND]);
    done(system, asks("PUT", &join, &member)).await;
    done(system, Call::new("PUT", &join).customer(FRIEND).json(&json!({}))).await;
    // This invitation by the subject remains after the subject's erasure.
    let invite = asks("PUT", &path(&["organizations", &club, "members", GUEST]), &json!({ "role": "member" }));
    done(system, invite).await;
    // Another organization, which the friend creates, invites the subject.
    let other = Call::new("POST", "/v1/organizations").customer(FRIEND).json(&json!({ "name": "The friend's" }));
    let other = id(&done(system, other).await);
    let invite = Call::new("PUT", &path(&["organizations", &other, "members", SUBJECT])).customer(FRIEND);
    done(system, invite.json(&json!({ "role": "member" }))).await;
    let paper = json!({ "title": stays("paper"), "organization_id": club, "sections": { "a": stays("paper-text") } });
    done(system, asks("POST", "/v1/documents", &paper)).await;
    for number in 0..2 {
        let question = json!({ "subject": goes("subject"), "text": goes("question") });
        let question = asks("POST", &own(&["questions"]), &question);
        let asked = done(system, question.header("idempotency-key", &format!("privacy-question-{number}"))).await;
        let answer = json!({ "text": format!("{} asked for it", goes("answer")) });
        done(system, Call::new("POST", &path(&["questions", &id(&asked), "answers"])).staff().json(&answer)).await;
    }
}

/// Creates the subject's document with a published draft, and the subject's section in the friend's
/// document.
async fn papers(system: &System) {
    let title = json!({ "title": goes("document"), "sections": { "a": goes("text") } });
    let document = path(&["documents", &id(&done(system, asks("POST", "/v1/documents", &title)).await)]);
    let section = json!({ "text": goes("section") });
    changed(system, &document, asks("PUT", &format!("{document}/sections/b"), &section)).await;
    changed(system, &document, Call::new("POST", &format!("{document}/drafts")).customer(SUBJECT)).await;
    let publish = asks("POST", &format!("{document}/publish"), &json!({ "note": goes("note") }));
    changed(system, &document, publish).await;
    let friends = Call::new("POST", "/v1/documents").customer(FRIEND);
    let friends = done(system, friends.json(&json!({ "title": "A list", "sections": { "a": "Tea" } }))).await;
    let document = path(&["documents", &id(&friends)]);
    done(system, Call::new("PUT", &format!("{document}/editors/{SUBJECT}")).customer(FRIEND)).await;
    let section = json!({ "text": stays("part") });
    changed(system, &document, asks("PUT", &format!("{document}/sections/b"), &section)).await;
    let draft = Call::new("POST", &format!("{document}/drafts"));
    changed(system, &document, draft.clone().customer(SUBJECT)).await;
    let publish = asks("POST", &format!("{document}/publish"), &json!({ "note": stays("version") }));
    changed(system, &document, publish).await;
    // This draft stays open.
    changed(system, &document, draft.customer(SUBJECT)).await;
}

/// Sends requests that would each add an item to a customer. Returns their statuses.
pub async fn gains(system: &System, customer: &str) -> Vec<u16> {
    let document = Call::new("POST", "/v1/documents")
        .customer(STRANGER)
        .json(&json!({ "title": "Of a stranger", "sections": { "a": "A" } }));
    let document = id(&done(system, document).await);
    let own = |segments: &[&str]| path(&[&["customers", customer], segments].concat());
    let question = Call::new("POST", &own(&["questions"])).json(&json!({ "subject": "S", "text": "T" }));
    let order = Call::new("POST", "/v1/orders").json(&order_body(customer, &[("privacy-jam", 1)]));
    let calls = [
        Call::new("PUT", &path(&["documents", &document, "editors", customer])).customer(STRANGER),
        Call::new("PUT", &own(&["likes", "privacy-jam"])).customer(customer),
        Call::new("PUT", &own(&["following", STRANGER])).customer(customer),
        Call::new("POST", &own(&["sessions"])).customer(customer).json(&json!({ "device": "D" })),
        question.customer(customer).header("idempotency-key", "privacy-gain-question"),
        order.customer(customer).header("idempotency-key", "privacy-gain-order"),
    ];
    let mut statuses = Vec::new();
    for call in calls {
        statuses.push(call.send(system).await.status);
    }
    statuses
}

/// Stores an expired session, and an expired cart if `with_cart` is set, as if DynamoDB had not yet
/// removed them.
pub async fn lapse(system: &System, session: &str, with_cart: bool) {
    let (now, customer_id) = (Instant::now(), CustomerId::new(SUBJECT).unwrap());
    let expires_at = now.plus_seconds(-60);
    let data = Session {
        sign_in: None,
        id: session.parse().unwrap(),
        customer_id: customer_id.clone(),
        // DynamoDB removes a session some time after its expiry.
        expires_at: expires_at.plus_seconds(-revocation::LIFETIME_SECONDS),
        device: goes("device"),
    };
    put(system, data, now).await;
    if with_cart {
        put(system, Cart { customer_id, expires_at, lines: [].into() }, now).await;
    }
}

async fn put<T: Entity>(system: &System, data: T, at: Instant) {
    let item = Stored { meta: Meta::new("born-lapsed".parse().unwrap(), at), data }.to_item().unwrap();
    put_item(system, &serde_json::to_value(item).unwrap()).await;
}

/// Expires all idempotency records, as if a day had passed.
pub async fn a_day_passes(system: &System) {
    let over = Instant::now().plus_seconds(-60).as_seconds().to_string();
    for mut item in table::scan(system).await.into_values().filter(|item| item["entity"]["S"] == "IdempotencyRecord") {
        item["ttl"] = json!({ "N": over });
        put_item(system, &item).await;
    }
}

/// Requests the subject's erasure, as the subject, with this entity tag. Returns the status.
pub async fn erase(system: &System, tag: &str) -> u16 {
    Call::new("DELETE", &own(&[])).customer(SUBJECT).header("if-match", tag).send(system).await.status
}

/// Returns the entity tag of the subject's profile.
pub async fn tag(system: &System) -> String {
    Call::new("GET", &own(&[])).customer(SUBJECT).send(system).await.expect(200).headers["etag"].clone()
}
