//! Bodies: every route takes one or refuses it by name, and asks of the table only what DynamoDB takes.
//!
//! The first line of an input says who sends the body where: `staff old holds POST /v1/products`. A route that there is not stands for one that there is.
#![no_main]

use fuzz::answer::Answer;
use fuzz::apps::Shop;
use http_api::json;
use http_api::sample::Call;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Whose things the table has.
const CUSTOMER: &str = "household-2375";
/// Ids of what the table has, and others, by the names that routes give them.
const PARAMETERS: &[(&str, &str)] = &[
    ("path", "GROCERY~FRZN_20ICE"),
    ("product", "1082185"),
    ("customer", CUSTOMER),
    ("other", "c2"),
    ("name", "home"),
    ("team", "t1"),
    ("number", "4711"),
    ("n", "1"),
    ("upload", "u1"),
    ("picture", "u1"),
    ("country", "US"),
];

thread_local! {
    static SHOP: Shop = Shop::open();
}

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (head, body) = text.split_once('\n').unwrap_or(("", text));
    SHOP.with(|shop| {
        let sent = Sent::read(shop, head);
        let answer = sent.answer(shop, body);
        if sent.is_import() {
            let results = answer.body["results"].as_array().map_or(0, Vec::len);
            let lines = body.lines().filter(|line| !line.trim().is_empty()).count();
            assert!(answer.status != 200 || results == lines, "{lines} lines, {results} results");
            return;
        }
        agree(body);
        // What is taken is taken for what it says: written in another way, it is taken as well.
        if answer.status < 300
            && let Ok(value) = serde_json::from_str::<Value>(body)
        {
            let again = sent.answer(shop, &format!("\n{value:#}"));
            assert_eq!((again.status, again.code), (answer.status, answer.code), "{head}: {body}");
        }
    });
});

struct Sent {
    route: &'static str,
    is_staff: bool,
    is_new: bool,
    holds: bool,
}

impl Sent {
    fn read(shop: &Shop, head: &str) -> Self {
        let is = |word: &str| head.split(' ').any(|one| one == word);
        let named = shop.routes().find(|route| head.ends_with(route));
        let takes_a_body = |route: &&str| !route.starts_with("GET ") && !route.starts_with("DELETE ");
        let number =
            head.bytes().fold(0, |number: usize, byte| number.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let all: Vec<&'static str> = shop.routes().filter(takes_a_body).collect();
        Self {
            route: named.unwrap_or(all[number % all.len()]),
            is_staff: !is("customer"),
            is_new: is("new"),
            holds: !is("refused"),
        }
    }

    fn is_import(&self) -> bool {
        self.route.ends_with("/import")
    }

    fn answer(&self, shop: &Shop, body: &str) -> Answer {
        let mut call = Call::new(self.route).header("idempotency-key", "k1").body(body);
        call = call.header("content-type", if self.is_import() { "application/x-ndjson" } else { "application/json" });
        call = if self.is_new { call.header("if-none-match", "*") } else { call.header("if-match", "\"3\"") };
        call = if self.is_staff { call.staff("s1") } else { call.customer(CUSTOMER) };
        for name in self.route.split(['{', '}']).skip(1).step_by(2) {
            let known = PARAMETERS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            call = call.path(name, known.unwrap_or_else(|| self.id()));
        }
        shop.hold(self.holds);
        let answer = shop.answer(Some(self.route), 0, &call.event().to_string());
        // Where others are said to be in the way, they may be so for longer than a request lasts.
        assert!(answer.status < 500 || (!self.holds && answer.status == 503), "{}: {body}: {answer:?}", self.route);
        answer
    }

    /// What `{id}` stands for.
    fn id(&self) -> &'static str {
        let of = |kind: &str| self.route.contains(&format!("/v1/{kind}/{{id}}"));
        if of("products") {
            "1082185"
        } else if of("orders") {
            "015959e0-8ef0-71a1-a1a1-a1a1a1a1a1a1"
        } else {
            CUSTOMER
        }
    }
}

/// The functions' reader of JSON takes what any reader takes, with the same meaning, but for what is said of it: a name given twice, a number out of range.
fn agree(text: &str) {
    let (ours, usual) = (json::Value::parse(text), serde_json::from_str::<Value>(text));
    match (ours, usual) {
        (Ok(ours), Ok(usual)) => assert!(same(&ours, &usual), "{text}"),
        (Ok(_), Err(error)) => panic!("taken, but not by others: {error}: {text}"),
        (Err(json::ParseError::DuplicateName { .. } | json::ParseError::NumberOutOfRange), _) | (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => panic!("{error}, but not for others: {text}"),
    }
}

fn same(ours: &json::Value<'_>, usual: &Value) -> bool {
    match (ours, usual) {
        (json::Value::Null, Value::Null) | (json::Value::OtherNumber, Value::Number(_)) => true,
        (json::Value::Boolean(ours), Value::Bool(usual)) => ours == usual,
        (json::Value::Integer(ours), Value::Number(usual)) => {
            Some(*ours) == usual.as_i64().map(i128::from).or_else(|| usual.as_u64().map(i128::from))
        }
        (json::Value::Text(ours), Value::String(usual)) => ours == usual,
        (json::Value::Array(ours), Value::Array(usual)) => {
            ours.len() == usual.len() && ours.iter().zip(usual).all(|(ours, usual)| same(ours, usual))
        }
        (json::Value::Object(ours), Value::Object(usual)) => {
            ours.len() == usual.len()
                && ours.iter().all(|(name, ours)| usual.get(name.as_ref()).is_some_and(|usual| same(ours, usual)))
        }
        _ => false,
    }
}
