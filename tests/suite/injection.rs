//! Tests texts that are code, queries, paths, headers, formulas or line ends in other programs. The
//! API stores them as texts and returns them unchanged. Only the fields in `NAMES` get their one
//! spelling.
//!
//! The module `bad_input` tests values that are refused. It also tests ids and cursors.

use key_schema::text::visible_name;
use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::{Answer, Call};
use crate::support::shop::{self, path, segment};
use crate::support::{drain, with_own_system};

/// Syntax of the table, the search engine, a shell, a page, a spreadsheet, a log, a template, a
/// file system or a mail.
const TEXTS: [&str; 34] = [
    "#",
    "CUSTOMER#ann#PROFILE",
    "a%23b%2Fc",
    "~_20~",
    "PK = :pk OR attribute_exists(PK)",
    "#pk, :v0, ${PK}",
    "' OR '1'='1' --",
    "\"); DROP TABLE shop; --",
    "{\"match_all\":{}}",
    "\"}},{\"match_all\":{}}",
    "name:* OR _exists_:id",
    "/.*/",
    "*",
    "../../etc/passwd",
    "..\\..\\boot.ini",
    "/v1/customers/ann",
    "s3://bucket/expired/",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "=1+1",
    "=HYPERLINK(\"http://example.com\")",
    "@SUM(A1:A9)",
    "+49 731 1",
    "-2+3",
    "$(id) `id` ; id | id",
    "{{7*7}} ${7*7} <%= 7*7 %>",
    "%s%n%x",
    "a, b; c=d: e",
    "bcc: everybody@example.com",
    "{\"level\":\"ERROR\",\"fields\":{\"message\":\"forged\"}}",
    "\u{202e}txt.exe",
    "\u{feff}a\u{200b}b",
    "🧊 ä A\u{308} 商品 אב",
];

/// Texts with a line break or a tab. A single-line field refuses them.
const LINES: [&str; 4] = ["a\nBcc: everybody@example.com", "a\r\n\r\n<html>", "a\n{\"level\":\"ERROR\"}", "a\t=1+1"];

/// A field that accepts any text on one line. Some fields also accept several lines.
struct Field {
    name: &'static str,
    /// The arguments are an order's id, the text's number and the text.
    call: fn(&str, usize, &str) -> Call,
    /// The pointer to the text in the response.
    shown: &'static str,
}

/// Fields that identify or group, and fields that strangers read. The API stores their one spelling.
const NAMES: [&str; 10] = [
    "display name of a review",
    "customer's name",
    "customer's place",
    "line of an address",
    "brand",
    "category",
    "package size",
    "note of a deposit",
    "organization",
    "store",
];

const FIELDS: [Field; 20] = [
    field("customer's name", |_, n, text| customer(n, "name", text), "/name"),
    field("customer's place", |_, n, text| customer(n, "place", json!({"country": text, "city": text})), "/place/city"),
    field(
        "line of an address",
        |_, _, text| {
            let body = json!({"name": text, "line1": text, "city": text, "country": "QA"});
            Call::new("PUT", &path(&["customers", "ann", "addresses", "home"])).json(&body).customer("ann")
        },
        "/addresses/home/line1",
    ),
    field(
        "device",
        |_, _, text| anns(&["customers", "ann", "sessions"], json!({"device": text, "ttl_seconds": 60})),
        "/device",
    ),
    field("product's name", |_, n, text| product(n, "name", text), "/name"),
    field("brand", |_, n, text| product(n, "brand", text), "/brand"),
    field("category", |_, n, text| product(n, "category_path", json!([text, text])), "/category_path/1"),
    field("package size", |_, n, text| product(n, "package_size", text), "/package_size"),
    field("summary", |_, n, text| product(n, "summary", text), "/summary"),
    field(
        "content",
        |_, n, text| {
            let call = Call::new("PUT", &path(&["products", &plain(n), "content"])).staff();
            call.json(&json!({"text": text})).header("if-none-match", "*")
        },
        "/text",
    ),
    field(
        "review",
        |_, n, text| {
            let call = Call::new("PUT", &path(&["products", &plain(n), "reviews", "ann"])).customer("ann");
            call.json(&json!({"rating": 1, "title": "T", "text": text})).header("if-none-match", "*")
        },
        "/text",
    ),
    field(
        "display name of a review",
        |_, n, text| {
            let call = Call::new("PUT", &path(&["products", &plain(n), "reviews", "bob"])).customer("bob");
            let body = json!({"rating": 1, "display_name": text, "title": "T", "text": "T"});
            call.json(&body).header("if-none-match", "*")
        },
        "/display_name",
    ),
    field(
        "reference",
        |_, n, text| {
            let mut body = shop::order_body("ann", &[("tea", 1)]);
            // The API refuses a reference in another spelling.
            body["reference"] = visible_name(text).unwrap_or_else(|_| text.to_owned()).into();
            // Staff places the orders, because a customer has a limit of unpaid orders.
            shop::order_call(&body, &format!("injection-{n}")).staff()
        },
        "/reference",
    ),
    field("log of an order", |order, _, text| staffs(&["orders", order, "log"], json!({"text": text})), "/text"),
    field(
        "note of a deposit",
        |_, n, text| {
            let body = json!({"amount": {"amount": 1, "currency": "USD"}, "note": text});
            staffs(&["customers", "ann", "wallet", "deposits"], body).header("idempotency-key", &format!("deposit-{n}"))
        },
        "/note",
    ),
    field("organization", |_, _, text| anns(&["organizations"], json!({"name": text})), "/name"),
    field(
        "title of a document",
        |_, _, text| anns(&["documents"], json!({"title": text, "sections": {"s": text}})),
        "/title",
    ),
    field(
        "store",
        |_, n, text| {
            let body = json!({"country": "CH", "city": text, "name": text});
            let call = Call::new("PUT", &path(&["stores", &format!("s-{n}")])).staff();
            call.json(&body).header("if-none-match", "*")
        },
        "/city",
    ),
    field(
        "subject of a question",
        |_, _, text| anns(&["customers", "ann", "questions"], json!({"subject": text, "text": "?"})),
        "/subject",
    ),
    field(
        "question",
        |_, _, text| anns(&["customers", "ann", "questions"], json!({"subject": "S", "text": text})),
        "/text",
    ),
];

const fn field(name: &'static str, call: fn(&str, usize, &str) -> Call, shown: &'static str) -> Field {
    Field { name, call, shown }
}

/// Returns the id of a product with only ordinary texts.
fn plain(n: usize) -> String {
    format!("plain-{n}")
}

fn staffs(segments: &[&str], body: Json) -> Call {
    Call::new("POST", &path(segments)).json(&body).staff()
}

fn anns(segments: &[&str], body: Json) -> Call {
    Call::new("POST", &path(segments)).json(&body).customer("ann")
}

fn customer(n: usize, name: &str, value: impl Into<Json>) -> Call {
    let id = format!("{name}-{n}");
    let mut body = json!({"id": id, "email": format!("{id}@example.com"), "username": id, "name": "C"});
    body[name] = value.into();
    staffs(&["customers"], body)
}

fn product(n: usize, name: &str, value: impl Into<Json>) -> Call {
    let mut body = shop::product_body(&format!("{name}-{n}"), &["INJECTION"], 1);
    body[name] = value.into();
    staffs(&["products"], body)
}

#[test]
fn a_text_with_foreign_syntax_is_stored_and_shown_unchanged_and_can_be_found() {
    let stored = with_own_system(async |system| {
        shop::customer(system, "ann").await;
        shop::customer(system, "bob").await;
        shop::products(system, &["tea"], 1_000).await;
        let plain: Vec<String> = (0..TEXTS.len() + LINES.len()).map(plain).collect();
        shop::products(system, &plain.iter().map(String::as_str).collect::<Vec<_>>(), 1).await;
        let order = shop::order(system, "ann", &[("tea", 1)], "injection").await;
        let order = order["id"].as_str().unwrap();
        let (mut stored, mut refused) = (0, 0);
        for field in FIELDS {
            for (n, text) in TEXTS.iter().chain(&LINES).enumerate() {
                let answer = (field.call)(order, n, text).send(system).await;
                if LINES.contains(text) && answer.code() == "invalid_body" {
                    refused += 1;
                    continue;
                }
                assert!(answer.is_success(), "{} {text:?}: {} {}", field.name, answer.status, answer.body);
                let shown = answer.body.pointer(field.shown).and_then(Json::as_str);
                let has_one_spelling = NAMES.contains(&field.name) || field.name == "reference";
                let name = has_one_spelling.then(|| visible_name(text).unwrap());
                assert_eq!(shown, Some(name.as_deref().unwrap_or(text)), "{}: {}", field.name, answer.body);
                has_plain_headers(&answer);
                stored += 1;
            }
        }
        drain(system).await;
        assert_eq!(stored + refused, FIELDS.len() * (TEXTS.len() + LINES.len()));
        search(system).await;
        stored
    });
    assert!(stored > FIELDS.len() * TEXTS.len(), "no field accepts several lines: {stored}");
}

#[test]
fn a_text_without_a_visible_character_is_refused_with_the_position_of_its_field() {
    with_own_system(async |system| {
        shop::customer(system, "ann").await;
        shop::customer(system, "bob").await;
        shop::products(system, &["tea"], 1_000).await;
        shop::products(system, &[plain(0).as_str()], 1).await;
        let order = shop::order(system, "ann", &[("tea", 1)], "blank").await;
        let order = order["id"].as_str().unwrap();
        for field in FIELDS {
            for blank in [" ", "\u{a0}", "\u{200b}", "\u{2800}", "\u{3164}"] {
                let answer = (field.call)(order, 0, blank).send(system).await;
                let name = format!("{} {}: {}", field.name, blank.escape_unicode(), answer.body);
                assert_eq!((answer.status, answer.code()), (422, "invalid_body"), "{name}");
                let pointers = answer.body["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]);
                assert!(pointers.clone().count() > 0 && pointers.clone().all(|pointer| pointer != ""), "{name}");
            }
        }
    });
}

/// Checks that no text became a header, and that no browser treats the response as a page.
fn has_plain_headers(answer: &Answer) {
    let names: Vec<&str> = answer.headers.keys().map(String::as_str).collect();
    let known = [
        "apigw-requestid",
        "cache-control",
        "content-length",
        "content-type",
        "date",
        "etag",
        "location",
        "vary",
        "x-content-type-options",
        "x-request-id",
    ];
    let strange: Vec<&&str> = names.iter().filter(|name| !known.contains(*name)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert_eq!(answer.headers["content-type"], "application/json");
}

/// Searches for each text. If the text has a word, the search finds the product whose name is the
/// text. Punctuation alone does not find it. For any text, the search finds the order whose
/// reference is the text's one spelling, and the product whose brand is it.
async fn search(system: &System) {
    for (n, text) in TEXTS.iter().enumerate() {
        let name = visible_name(text).unwrap();
        let has_words = text.chars().any(char::is_alphanumeric);
        for (list, q, id) in [("products", *text, format!("name-{n}")), ("orders", name.as_str(), String::new())] {
            let path = format!("/v1/search/{list}?limit=100&q={}", segment(q));
            let found = Call::new("GET", &path).staff().send(system).await.expect(200);
            let items = found.body["items"].as_array().unwrap();
            let is_there = |wanted: &str| items.iter().any(|item| item["id"] == wanted);
            match list {
                "products" => assert_eq!(is_there(&id), has_words, "{text:?} finds {}", found.body),
                _ => assert!(items.iter().any(|order| order["reference"] == name), "{text:?}: {}", found.body),
            }
            assert!(!is_there("tea"), "{text:?} finds tea");
        }
        let filtered = format!("/v1/search/products?limit=100&brand={}", segment(text));
        let found = Call::new("GET", &filtered).send(system).await.expect(200);
        let brands = found.body["items"].as_array().unwrap().iter().map(|item| &item["brand"]);
        assert!(brands.clone().count() == 1 && brands.clone().all(|brand| *brand == name), "{text:?}: {}", found.body);
    }
}
