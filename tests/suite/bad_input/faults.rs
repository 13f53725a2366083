use serde_json::{Value as Json, json};

use super::{Trial, place};
use crate::support::client::Call;
use crate::support::openapi::{Operation, api};
use crate::support::schema::{EACH_BY_ITSELF, breaches};
use crate::support::world::Good;

/// Largest JSON body, in bytes.
const BODY_LIMIT: usize = 256 * 1024;
/// Largest body of an import, in bytes.
const IMPORT_LIMIT: usize = 2 * 1024 * 1024;
const IMPORT_LINES: usize = 1000;
/// A field that no body has.
const UNKNOWN: &str = "no_such_field";
/// Percent-encoded ids that are invalid after the gateway's double decoding. Some contain a control
/// character, `?`, `%` or `\`. Two have 129 bytes.
const BAD_IDS: [&str; 11] = [
    "%00",
    "a%00",
    "%0A",
    "a%1Fb",
    "%7F",
    "%C2%85",
    "a%253Fb",
    "50%2525",
    "a%5Cb",
    "\t129 one-byte characters",
    "\t64 two-byte characters and a one-byte character",
];
const BAD_CATEGORIES: [&str; 14] = [
    "a~",
    "~a",
    "a~~b",
    "_",
    "a_2",
    "_2g",
    "_2f",
    "_41",
    "a%20b",
    "%C3%A4",
    "_00",
    "_FF",
    "\t9 names",
    "\ta long name",
];

/// Returns all faulty versions of an operation's valid request.
pub fn of(operation: Operation<'_>, good: &Good) -> Vec<Trial> {
    let mut trials = Vec::new();
    trials.extend(paths(good));
    trials.extend(queries(operation, good));
    trials.extend(headers(operation, good));
    match (operation.body(), &good.body) {
        _ if operation.is_signed() => {}
        (Some(_), Some(body)) if good.content_type == "application/x-ndjson" => trials.extend(import(good, body)),
        (Some(schema), Some(body)) => {
            trials.extend(contents(good, body));
            let whole = values(schema, body).into_iter().filter(|(_, pointer)| !is_of_an_element(schema, pointer));
            trials.extend(whole.map(|(body, pointer)| {
                let spoilt = Good { body: Some(body), ..good.clone() };
                let shown: String = spoilt.body.as_ref().map(ToString::to_string).unwrap_or_default();
                Trial::new(spoilt.call(), shown.chars().take(300).collect::<String>(), 422, "invalid_body").at(pointer)
            }));
        }
        _ => {}
    }
    trials
}

fn paths(good: &Good) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (position, (name, _)) in good.parameters.iter().enumerate() {
        let with = |value: &str| {
            let mut spoilt = good.clone();
            value.clone_into(&mut spoilt.parameters[position].1);
            spoilt.call()
        };
        let bad = if name == "path" { &BAD_CATEGORIES[..] } else { &BAD_IDS };
        // A country is a name and not an id, so it may contain these characters.
        let is_good = |value: &str| name == "country" && ["a%253Fb", "50%2525", "a%5Cb"].contains(&value);
        for value in bad.iter().filter(|value| !is_good(value)) {
            let value = match *value {
                "\t129 one-byte characters" => "x".repeat(129),
                "\t64 two-byte characters and a one-byte character" => "%C3%A4".repeat(64) + "x",
                "\t9 names" => ["x"; 9].join("~"),
                "\ta long name" => "x".repeat(129),
                other => other.to_owned(),
            };
            trials.push(Trial::new(with(&value), format!("{name} is {value}"), 422, "invalid_id"));
        }
        trials.push(Trial::gateway(with("%FF"), format!("{name} is not UTF-8"), 400));
        trials.push(Trial::gateway(with("50%25"), format!("{name} has a lone percent sign after one decoding"), 400));
        trials.push(Trial::gateway(with(""), format!("{name} is empty"), 404));
    }
    trials
}

fn queries(operation: Operation<'_>, good: &Good) -> Vec<Trial> {
    let mut trials = Vec::new();
    let with = |query: &[(&str, &str)]| {
        let mut spoilt = good.clone();
        spoilt.query.retain(|(name, _)| !query.iter().any(|(given, _)| given == name));
        spoilt.query.extend(query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        spoilt.call()
    };
    let invalid = |call: Call, fault: String| Trial::new(call, fault, 400, "invalid_parameter");
    for parameter in operation.parameters().filter(|parameter| parameter["in"] == "query") {
        let name = parameter["name"].as_str().unwrap();
        let schema = api().follow(&parameter["schema"]);
        let (long, words, ids) = ("x".repeat(513), ["word"; 33].join("+"), ["id"; 51].join(","));
        let (bad, good_one): (Vec<&str>, &str) = match (name, schema["format"].as_str(), schema.get("enum")) {
            ("limit", ..) => {
                (vec!["0", "-1", "101", "abc", "1e3", "", "%2B5", "05", "5.0", "99999999999999999999"], "1")
            }
            ("questions", ..) => (vec!["0", "-1", "21", "abc", "", "%2B5", "05", "5.0"], "1"),
            ("cursor", ..) => {
                for value in ["", "x", "null", "%00", "ä", "eyJhIjoxfQ", &"x".repeat(1025)] {
                    trials.push(Trial::new(
                        with(&[(name, value)]),
                        format!("cursor is {value}"),
                        400,
                        "cursor_invalid",
                    ));
                }
                continue;
            }
            (_, Some("date-time"), _) => {
                let bad =
                    vec!["today", "", "2017-01-01", "2017-13-01T00:00:00Z", "2017-01-01T00:00:00", "1483228800", "%00"];
                (bad, "2017-01-01T00:00:00Z")
            }
            (_, _, Some(values)) => (vec!["neither", "", "PENDING"], values[0].as_str().unwrap()),
            (_, Some("int64"), _) => (vec!["-1", "abc", "", "1.5", "1e3", "9223372036854775808"], "1"),
            ("email", ..) => (vec!["x", "", "@", "a%0Ab@c"], "a@b"),
            ("day" | "date", ..) => {
                (vec!["", "today", "2017-13-01", "2017-1-1", "2017-01-01T00:00:00Z", "%00"], "2017-01-01")
            }
            ("number", ..) => (vec!["", "1234", "QX5D-8XT2", &long, "%00"], "QX5D-8XTB"),
            ("month", ..) => (vec!["", "2017", "2017-13", "2017-1", "2017-01-01", "%00"], "2017-01"),
            ("path", ..) => (vec!["", "a~", "_41", "a%20b", "a~b~c", "a~b~2017-02-30", "a~b~2017-01-01~d"], "a"),
            ("q", ..) => (vec![&long, &words], "x"),
            ("brand", ..) => (vec!["", &long, "%00"], "x"),
            ("category", ..) => (vec!["", "%00", "x+/+"], "x"),
            ("product", ..) => (vec!["", "%00", "a%2Fb"], "a"),
            ("location", ..) => (vec!["", "%00", "a%2Fb"], "main"),
            ("include", ..) => (vec!["", "likes", "content,", "%00"], "content"),
            ("ids", ..) => (vec!["", ",", "a,", "a,%00", "a,b%2Fc", &ids], "a"),
            other => panic!("{}: the test has no bad value of {other:?}", operation.key()),
        };
        trials.extend(bad.iter().map(|value| invalid(with(&[(name, value)]), format!("{name} is {value}"))));
        // A filter of a search, and `include`, can have up to ten values.
        let most = if schema["type"] == "array" && parameter["explode"] != false { 10 } else { 1 };
        trials.push(invalid(with(&vec![(name, good_one); most + 1]), format!("{name} is given {} times", most + 1)));
        if parameter["required"] == true {
            let mut spoilt = good.clone();
            spoilt.query.retain(|(given, _)| given != name);
            trials.push(invalid(spoilt.call(), format!("{name} is missing")));
        }
    }
    trials.push(invalid(with(&[("no_such_parameter", "1")]), "an unknown parameter".to_owned()));
    let takes = |name: &str| operation.parameters().any(|parameter| parameter["name"] == name);
    if takes("from") && takes("to") {
        let crossed = [("from", "2017-01-02T00:00:00Z"), ("to", "2017-01-01T00:00:00Z")];
        trials.push(invalid(with(&crossed), "the range ends before it begins".to_owned()));
    }
    if operation.own["operationId"] == "findCustomers" {
        trials.push(invalid(with(&[("tier", "bronze"), ("email", "a@b")]), "both".to_owned()));
    }
    if operation.own["operationId"] == "searchProducts" {
        trials.push(invalid(
            with(&[("min_price", "2"), ("max_price", "1")]),
            "the minimum price exceeds the maximum price".to_owned(),
        ));
    }
    trials
}

fn headers(operation: Operation<'_>, good: &Good) -> Vec<Trial> {
    let mut trials = Vec::new();
    let takes = |name: &str| operation.parameters().find(|parameter| parameter["name"] == name);
    let with = |headers: &[(&str, &str)]| {
        let changed = ["if-match", "if-none-match", "idempotency-key"];
        let mut spoilt = good.clone();
        spoilt.headers.retain(|(name, _)| !changed.contains(&name.as_str()));
        spoilt.headers.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        spoilt.call()
    };
    if let Some(parameter) = takes("If-Match") {
        if parameter["required"] != false {
            trials.push(Trial::new(with(&[]), "no If-Match", 428, "if_match_missing"));
        }
        for (tag, what) in [("\"99\"", "a stale If-Match"), ("W/\"1\"", "a weak If-Match")] {
            trials.push(Trial::new(with(&[("if-match", tag)]), what, 412, "version_mismatch"));
        }
        // Staff may send `*` where the header's pattern permits it.
        let any = parameter["schema"]["pattern"].as_str().is_some_and(|pattern| pattern.contains("|\\*"));
        for tag in ["*", "1", "\"1\", \"2\"", "\"", "W/1"].into_iter().skip(usize::from(any)) {
            trials.push(Trial::new(with(&[("if-match", tag)]), format!("If-Match is {tag}"), 400, "invalid_header"));
        }
    }
    if takes("If-None-Match").is_some() {
        trials.push(Trial::new(with(&[("if-none-match", "*")]), "the record already exists", 409, "already_exists"));
        let both = [("if-none-match", "*"), ("if-match", "\"1\"")];
        trials.push(Trial::new(with(&both), "both conditions", 400, "invalid_header"));
        trials.push(Trial::new(with(&[("if-none-match", "\"1\"")]), "a tag", 400, "invalid_header"));
    }
    if let Some(parameter) = takes("Idempotency-Key") {
        if parameter["required"] == true {
            trials.push(Trial::new(with(&[]), "no key", 400, "idempotency_key_missing"));
        }
        // The gateway joins two headers with a comma.
        for key in ["", "ä", "a,b", &"x".repeat(256)] {
            trials.push(Trial::new(
                with(&[("idempotency-key", key)]),
                format!("the key is {key}"),
                400,
                "invalid_header",
            ));
        }
    }
    trials
}

/// Returns requests with a body that is not a JSON object, has a wrong content type, or is too
/// large.
fn contents(good: &Good, body: &Json) -> Vec<Trial> {
    let mut trials = Vec::new();
    let call =
        |media_type: &str, content: Vec<u8>| good.bare().staff().header("content-type", media_type).body(content);
    let json = |content: &str| call("application/json", content.as_bytes().to_vec());
    let whole = body.to_string();
    let twice = format!(r#"{{"a":1,{}"a":2}}"#, "");
    for content in [
        "",
        " ",
        "{",
        "}",
        "{]",
        "nul",
        "{'a':1}",
        "{\"a\":1,}",
        "{\"a\":NaN}",
        &format!("{whole}x"),
        &whole[1..],
        &twice,
        "\"\\ud800\"",
    ] {
        trials.push(Trial::new(json(content), format!("the body is {content}"), 400, "malformed_json"));
    }
    trials.push(Trial::new(call("application/json", b"{\"a\":\"\xff\"}".to_vec()), "not UTF-8", 400, "malformed_json"));
    trials.push(Trial::new(json(&"[".repeat(10_000)), "too deep", 400, "malformed_json"));
    trials.push(Trial::new(
        good.bare().staff().header("content-type", "application/json"),
        "no body",
        400,
        "malformed_json",
    ));
    for content in ["[]", "null", "true", "1", "1e999", "\"text\"", &format!("[{whole}]")] {
        trials.push(Trial::new(json(content), format!("the body is {content}"), 422, "invalid_body").at(""));
    }
    for media_type in [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/json; charset=latin1",
    ] {
        let call = call(media_type, whole.clone().into_bytes());
        trials.push(Trial::new(call, media_type, 415, "unsupported_media_type"));
    }
    let packed = call("application/json", whole.clone().into_bytes()).header("content-encoding", "gzip");
    trials.push(Trial::new(packed, "a compressed body", 415, "unsupported_content_encoding"));
    let padded = |size: usize| format!("{whole}{}", " ".repeat(size - whole.len()));
    trials.push(Trial::new(json(&padded(BODY_LIMIT + 1)), "one byte too large", 413, "body_too_large"));
    // A body of exactly the maximum size is read, so its unknown field causes the error.
    let unknown = format!(r#"{{"{UNKNOWN}":"{}"}}"#, "x".repeat(BODY_LIMIT - UNKNOWN.len() - 7));
    assert_eq!(unknown.len(), BODY_LIMIT);
    trials.push(Trial::new(json(&unknown), "exactly as large as allowed", 422, "invalid_body").at(""));
    trials
}

/// Returns bodies with one fault each: a wrong value, a missing field or an unknown field. Each
/// body comes with the error's position.
fn values(schema: &Json, body: &Json) -> Vec<(Json, String)> {
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!("a\u{0}b"),
        json!("x".repeat(9000)),
        json!([]),
        json!({}),
    ];
    let mut found = Vec::new();
    let mut pointers = Vec::new();
    collect(body, String::new(), &mut pointers);
    for pointer in pointers {
        for other in &others {
            let mut spoilt = body.clone();
            other.clone_into(place(&mut spoilt, &pointer));
            found.push((spoilt, pointer.clone()));
        }
        if let Json::Object(members) = body.pointer(&pointer).unwrap() {
            for name in members.keys() {
                let mut spoilt = body.clone();
                place(&mut spoilt, &pointer).as_object_mut().unwrap().remove(name);
                found.push((spoilt, format!("{pointer}/{name}")));
            }
            let mut spoilt = body.clone();
            place(&mut spoilt, &pointer)[UNKNOWN] = json!(1);
            found.push((spoilt, format!("{pointer}/{UNKNOWN}")));
        }
    }
    // Drop variants that still match the schema: some fields accept null, and some fields are
    // optional.
    found.retain(|(spoilt, _)| !breaches(api(), schema, spoilt, false).is_empty());
    found
}

/// Returns whether the position is inside an element that the server accepts or refuses separately.
fn is_of_an_element(schema: &Json, pointer: &str) -> bool {
    let fields = api().follow(schema)["properties"].as_object();
    let mut lists = fields.into_iter().flatten().filter(|(_, field)| field[EACH_BY_ITSELF] == true);
    lists.any(|(name, _)| pointer.starts_with(&format!("/{name}/")))
}

fn collect(value: &Json, pointer: String, all: &mut Vec<String>) {
    match value {
        Json::Object(members) => {
            members.iter().for_each(|(name, value)| collect(value, format!("{pointer}/{name}"), all))
        }
        Json::Array(items) => (0..).zip(items).for_each(|(at, item)| collect(item, format!("{pointer}/{at}"), all)),
        _ => {}
    }
    all.push(pointer);
}

/// Returns an import with only invalid lines, and the number of its lines.
pub fn bad_lines(good: &Good) -> (Call, usize) {
    let schema = api().schema("NewProduct");
    let line = good.body.as_ref().unwrap();
    let mut lines: Vec<String> = values(schema, line).into_iter().map(|(line, _)| line.to_string()).collect();
    let mut nameless = line.clone();
    nameless.as_object_mut().unwrap().remove("id");
    lines.extend([nameless.to_string(), "{".to_owned(), "nul".to_owned(), "[]".to_owned(), format!("{line}{line}")]);
    let call = good.bare().staff().header("content-type", good.content_type);
    (call.body(lines.join("\n")), lines.len())
}

/// Returns faults of the import's body as a whole. [`bad_lines`] has the faults of single lines.
fn import(good: &Good, line: &Json) -> Vec<Trial> {
    let call = |media_type: &str, content: String| good.bare().staff().header("content-type", media_type).body(content);
    let lines = |count: usize| format!("{line}\n").repeat(count);
    let large = lines(1) + &" ".repeat(IMPORT_LIMIT);
    let not_utf8 = good.bare().staff().header("content-type", good.content_type).body(&b"\xff\n"[..]);
    vec![
        Trial::new(call("application/json", lines(1)), "JSON", 415, "unsupported_media_type"),
        Trial::new(call("text/csv", lines(1)), "CSV", 415, "unsupported_media_type"),
        Trial::new(call(good.content_type, large), "too large", 413, "body_too_large"),
        Trial::new(call(good.content_type, lines(IMPORT_LINES + 1)), "too many", 422, "too_many_lines"),
        Trial::new(not_utf8, "not UTF-8", 400, "malformed_json"),
    ]
}
