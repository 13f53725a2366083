//! Compares a received response with the response that a page prints.
//!
//! They must be equal, except for values that differ in each run. Such values are generated ids,
//! instants, ids of requests, ports, and numbers with a fraction, such as the score of a search.
//! `…` in a printed text stands for any characters. If the page prints no body, the body is not
//! compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

/// Parts of texts that differ in each run.
static VOLATILE: LazyLock<Regex> = LazyLock::new(|| {
    let id = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
    let instant = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z";
    let number = "[2-9A-HJKMNPQRTV-Z]{4}-[2-9A-HJKMNPQRTV-Z]{4}";
    let host = r"http://127\.0\.0\.1:\d+";
    Regex::new(&format!(r"(?<id>{id})|(?<instant>{instant})|(?<host>{host})|\b(?<number>{number})\b")).unwrap()
});

#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    /// The headers by name, in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Option<Json>,
}

impl Response {
    pub fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let headers = lines.map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{line}: no header")));
        Self {
            status: status.unwrap_or_else(|| panic!("no status: {text}")),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            body: (!body.is_empty())
                .then(|| serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))),
        }
    }

    pub fn differences(&self, received: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.status != received.status {
            found.push(format!("the status is {}, not {}", received.status, self.status));
        }
        for (name, printed) in &self.headers {
            match received.headers.get(name) {
                Some(value) if fits(printed, value) => {}
                value => found.push(format!("the header {name} is {value:?}, not {printed}")),
            }
        }
        if let Some(printed) = &self.body {
            let none = Json::Null;
            compare(printed, received.body.as_ref().unwrap_or(&none), "", &mut found);
        }
        found
    }

    /// Returns a header, or the member of the body at a path such as `upload.url`.
    pub fn member(&self, path: &str) -> Option<&str> {
        if let Some(value) = self.headers.get(path) {
            return Some(value);
        }
        path.split('.').try_fold(self.body.as_ref()?, |value, name| value.get(name))?.as_str()
    }
}

fn compare(printed: &Json, received: &Json, place: &str, found: &mut Vec<String>) {
    match (printed, received) {
        (Json::Object(printed), Json::Object(received)) => {
            let names: BTreeSet<&String> = printed.keys().chain(received.keys()).collect();
            for name in names {
                match (printed.get(name), received.get(name)) {
                    (Some(Json::String(_)), Some(Json::String(_))) if name == "request_id" => {}
                    (Some(printed), Some(received)) => compare(printed, received, &format!("{place}/{name}"), found),
                    (None, _) => found.push(format!("{place}/{name} is not on the page")),
                    (_, None) => found.push(format!("{place}/{name} is not in the response")),
                }
            }
        }
        (Json::Array(printed), Json::Array(received)) if printed.len() == received.len() => {
            for (index, (printed, received)) in printed.iter().zip(received).enumerate() {
                compare(printed, received, &format!("{place}/{index}"), found);
            }
        }
        (Json::String(printed), Json::String(received)) if fits(printed, received) => {}
        (Json::Number(printed), Json::Number(received)) if printed.is_f64() && received.is_f64() => {}
        (printed, received) if printed == received => {}
        _ => found.push(format!("{place} is {received}, not {printed}")),
    }
}

/// Returns whether a text equals the printed one, apart from the parts that differ in each run.
fn fits(printed: &str, received: &str) -> bool {
    let masked = |text: &str| {
        let kind = |found: &regex::Captures<'_>| {
            ["id", "instant", "host", "number"].into_iter().find(|kind| found.name(kind).is_some()).unwrap_or_default()
        };
        VOLATILE.replace_all(text, |found: &regex::Captures<'_>| format!("<{}>", kind(found))).into_owned()
    };
    let pattern: Vec<String> = masked(printed).split('…').map(regex::escape).collect();
    Regex::new(&format!("^(?s:{})$", pattern.join(".*"))).unwrap().is_match(&masked(received))
}

#[test]
fn only_values_that_vary_between_runs_may_differ() {
    let printed = Response::parse(
        "HTTP/1.1 201 Created\nlocation: /v1/orders/01a20a50-8926-7b2b-802d-852e8122ad9b\n\n\
         {\"id\": \"01a20a50-8926-7b2b-802d-852e8122ad9b\", \
         \"at\": \"2026-11-23T21:29:39.878Z\",\n \"lines\": [{\"n\": 1}],\
         \"score\": 6.5, \"cursor\": \"k…z\", \"request_id\": \"a\", \"name\": \"Tea\"}\n",
    );
    let received = |body: &str| Response {
        status: 201,
        headers: BTreeMap::from([(
            "location".to_owned(),
            "/v1/orders/0190163d-8694-739b-aea5-966c26f8ad91".to_owned(),
        )]),
        body: serde_json::from_str(body).unwrap(),
    };
    let same = r#"{"id": "0190163d-8694-739b-aea5-966c26f8ad91", "at": "2027-01-01T00:00:00.000Z", "lines": [{"n": 1}],
        "score": 1.25, "cursor": "k1z", "request_id": "b", "name": "Tea"}"#;
    assert_eq!(printed.differences(&received(same)), Vec::<String>::new());
    for (from, to, place) in [
        (r#""n": 1"#, r#""n": 2"#, "/lines/0/n"),
        (r#""n": 1"#, r#""n": "1""#, "/lines/0/n"),
        (r#"{"n": 1}"#, r#"{"n": 1}, {"n": 1}"#, "/lines"),
        (r#""name": "Tea""#, r#""name": "Coffee""#, "/name"),
        (r#""name": "Tea""#, r#""title": "Tea""#, "/name"),
        ("2027-01-01T00:00:00.000Z", "2027-01-01", "/at"),
        ("0190163d-8694-739b-aea5-966c26f8ad91", "7", "/id"),
        ("k1z", "1z", "/cursor"),
        ("1.25", "null", "/score"),
    ] {
        let differences = printed.differences(&received(&same.replacen(from, to, 1)));
        assert!(differences.first().is_some_and(|text| text.starts_with(place)), "{from}: {differences:?}");
    }
    let differences = printed.differences(&Response { status: 409, ..received(same) });
    assert_eq!(differences, ["the status is 409, not 201"]);
    let differences = printed.differences(&Response { headers: BTreeMap::new(), ..received(same) });
    assert!(differences[0].starts_with("the header location is None"), "{differences:?}");
}
