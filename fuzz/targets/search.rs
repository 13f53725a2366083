//! A search: what was typed is a value in what the engine is asked, never its syntax, and what is asked stays small.
#![no_main]

use fuzz::CURSOR_KEYS;
use fuzz::answer::Answer;
use fuzz::engine::Engine;
use http_api::Routes;
use http_api::sample::Call;
use key_schema::cursor::Cursors;
use libfuzzer_sys::fuzz_target;
use search::App;
use search_index::{SearchClient, SearchConfig};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// The engine refuses a query of more clauses.
const MAX_CLAUSES: u64 = 1024;
/// A text of 512 bytes, in every word's clause once and in the prefixes, each byte of it escaped.
const MAX_QUESTION_BYTES: usize = 48 * 1024;

/// Names of members that are ours.
const NAMES: &str = "\
    _score aggs and bool brand brand.words category category_path created_at customer_id.folded customer_id.words \
    deleted encoder field fields filter fuzziness gte highlight id id.folded id.words lte match_all max_expansions \
    minimum_should_match multi_match must must_not name name.folded number_of_fragments operator placed_at prefix \
    price_amount query range reference.folded reference.words search_after should size sort status.folded \
    status.words summary term terms track_total_hits value zero_terms_query";
/// Texts that are ours.
const WORDS: &str = "\
    AUTO all and asc brand brand.words^2 category category_path customer_id.words desc html id.words name^3 \
    reference.words status.words summary";

struct Searching {
    runtime: Runtime,
    routes: Routes<App>,
    app: App,
    engine: Engine,
}

thread_local! {
    static SEARCH: Searching = {
        let (address, engine) = Engine::start();
        let client = SearchClient::new(&SearchConfig::new(&address, "bodega").expect("an address"));
        let app = App { client, cursors: Cursors::new(CURSOR_KEYS).expect("keys") };
        Searching { runtime: Builder::new_current_thread().enable_all().build().expect("a runtime"), routes: search::routes(), app, engine }
    };
}

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // `orders?q=…`, or anything else for products.
    let (of, query) = text.split_once('?').unwrap_or(("products", text));
    let route = if of == "orders" { "GET /v1/search/orders" } else { "GET /v1/search/products" };
    SEARCH.with(|search| {
        let answer = search.ask(route, query);
        let Some((_, next)) = answer.link.as_deref().and_then(|link| link.split_once('>')?.0.split_once('?')) else {
            return;
        };
        // Where a page says that the next one is, it is.
        let next = search.ask(route, next);
        assert_eq!(next.status, 200, "{text}: {next:?}");
    });
});

impl Searching {
    fn ask(&self, route: &'static str, query: &str) -> Answer {
        let mut event = Call::new(route).staff("s1").event();
        event["rawQueryString"] = query.into();
        let answer = self
            .runtime
            .block_on(self.routes.answer_text(&self.app, &event.to_string()))
            .expect("an answer has a JSON form");
        let answer = Answer::read(&answer);
        assert!(answer.status < 500, "{answer:?}");
        match self.engine.asked() {
            Some(question) => sound(&question),
            None => assert_ne!(answer.status, 200, "answered by nobody"),
        }
        answer
    }
}

fn sound(question: &Value) {
    assert!(question.to_string().len() <= MAX_QUESTION_BYTES, "a question of {} bytes", question.to_string().len());
    assert!(question["size"].as_u64().is_some_and(|size| (2..=101).contains(&size)), "{question}");
    let query = &question["query"]["bool"];
    assert_eq!(query["must_not"], serde_json::json!([{"term": {"deleted": {"value": true}}}]), "{question}");
    assert!(query["must"].as_array().is_some_and(|must| !must.is_empty()), "{question}");
    let clauses = ours(question, false);
    assert!(clauses <= MAX_CLAUSES, "{clauses} clauses: {question}");
}

/// Fails at a name or text that is not ours in a place that is not the client's. How many clauses there are, at most.
fn ours(value: &Value, clients: bool) -> u64 {
    match value {
        Value::String(text) => {
            assert!(clients || has(WORDS, text), "{text:?} stands where none of the client's texts may");
            0
        }
        Value::Array(values) => values.iter().map(|value| ours(value, clients)).sum(),
        Value::Object(members) => {
            let fields = members.get("fields").and_then(Value::as_array).map_or(1, |fields| fields.len() as u64);
            let own = members.get("max_expansions").and_then(Value::as_u64).map_or(0, |expansions| expansions * fields);
            let below = members.iter().map(|(name, value)| {
                assert!(has(NAMES, name), "{name:?} is no name of ours");
                // The value of a term or prefix, the words of a multi_match, where the page before ended.
                ours(value, value.is_string() && (name == "value" || name == "query") || name == "search_after")
            });
            own + below.sum::<u64>()
        }
        _ => 0,
    }
}

fn has(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}
