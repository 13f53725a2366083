//! Tests of requests in API Gateway's format. The requests pass through the routes. Their callers
//! are anonymous, customers or staff.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod bodies;
mod lists;

use std::time::Duration;

use http_api::fields::{array, integer, long_text, parsed, text};
use http_api::sample::{Answered, Call};
use http_api::{Code, Keys, Object, Once, Precondition, Problem, Request, Response, Routes, url};
use key_schema::cursor::Cursors;
use key_schema::id::{Born, CustomerId, ProductId};
use key_schema::idempotency::{IdempotencyRecord, LIFETIME_SECONDS, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Stored};
use key_schema::request::Write;
use serde_json::json;

struct App {
    cursors: Keys<Cursors>,
}

fn app() -> App {
    App { cursors: Keys::known(Cursors::new("k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").unwrap()) }
}

fn routes() -> Routes<App> {
    Routes::new()
        .on("POST /v1/things", |app, request| Box::pin(create(app, request)))
        .on("GET /v1/customers/{id}/things", |app, request| Box::pin(list(app, request)))
        .public("GET /v1/things/{id}", |app, request| Box::pin(get(app, request)))
        .on("PUT /v1/things/{id}", |app, request| Box::pin(put(app, request)))
        .on("PATCH /v1/things/{id}", |app, request| Box::pin(patch(app, request)))
        .on("POST /v1/things/import", |app, request| Box::pin(import(app, request)))
        .on("GET /v1/staff", |app, request| Box::pin(staff(app, request)))
        .on("GET /v1/numbers/{n}", |_, request| {
            Box::pin(async { Ok(Response::ok(&json!({"n": request.path_number("n", "number")?}))) })
        })
        .on("POST /v1/once", |_, request| Box::pin(once(request)))
        .on("POST /v1/once/anybody", |_, request| {
            Box::pin(async {
                let once = Once::of_anybody(request)?;
                Ok(Response::ok(&json!(once.map(|once| (once.scope().caller.clone(), once.scope().key.clone())))))
            })
        })
}

/// Responds with the results of `Once::first` for a record of this request, for an expired record,
/// and for a record of another request.
async fn once(request: &Request<'_>) -> Result<Response, Problem> {
    let once = Once::required(request)?;
    let at = Instant::EPOCH.plus_seconds(1_700_000_000);
    let answer = Response::created("/v1/things/1".to_owned(), &json!({"first": true}));
    let claim = once.claim_with(&answer, Born::generate(at, [1; 10]), at)?;
    let Write::Put { item } = claim.write else { return Err(Problem::internal("a claim puts its record")) };
    let mut record = Stored::<IdempotencyRecord>::from_item(item).map_err(Problem::internal)?;
    let end = at.plus_seconds(LIFETIME_SECONDS);
    let found = [at, end.plus_millis(-1), end].map(|now| once.first(Some(&record), now).map(|found| found.is_some()));
    record.data.request_hash.push('0');
    let other = once.first(Some(&record), at).map(|_| ()).unwrap_err();
    let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Response::ok(&json!({"found": found, "other": other.code().name(), "none": once.first(None, at)?.is_none()})))
}

async fn create(_: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let key = request.idempotency_key()?;
    let mut body = request.object()?;
    let name = body.required("name", text(1..=20));
    let about = body.optional("about", long_text(0..=200));
    let lines = body.optional(
        "lines",
        array(1..=500, |line| {
            let mut line = line.object()?;
            let product = line.required("product_id", parsed::<ProductId>);
            let quantity = line.required("quantity", integer(1..=1_000_000_u32));
            line.finish(product.zip(quantity))
        }),
    );
    let ((name, about), lines) = body.finish(name.zip(about).zip(lines))?;
    let lines = lines.unwrap_or_default().len();
    let created = json!({"name": name, "about": about, "lines": lines, "by": caller.id(), "key": key});
    let first = Response::created(url::location(&["things", &name]), &created).etag(1);
    let StoredResponse::Body { body: record, .. } = first.stored()? else {
        return Err(Problem::internal("the response has no body"));
    };
    if key == "replay" { Response::replay(&record) } else { Ok(first) }
}

async fn list(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let from = request.query_range()?.0.map(|from| from.to_string());
    let parameters = [("customer", customer.as_str()), ("from", from.as_deref().unwrap_or_default())];
    let page = request.page(&app.cursors, "things", &parameters).await?;
    let is_last = request.query("note")? == Some("last");
    let items = [page.after().unwrap_or_else(|| "start".to_owned())];
    page.answer_with(&items, |_| (!is_last).then(|| "THING#9".to_owned()), &json!({"limit": page.limit()})).await
}

async fn get(_: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let id: ProductId = request.path("id")?;
    if id.as_str() == "none" {
        return Err(Problem::not_found("thing").because("a secret of the table"));
    }
    Ok(Response::ok(&json!({"id": id})).etag(3).fresh_for(Duration::from_secs(3)))
}

async fn put(_: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    match request.precondition()? {
        Precondition::Absent => Err(Problem::new(Code::AlreadyExists, "There is one.").location("/v1/things/1")),
        Precondition::Version(3) => Ok(Response::no_content()),
        Precondition::Version(_) => Err(Problem::version_mismatch()),
    }
}

async fn patch(_: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let version = request.if_match()?;
    Ok(Response::ok(&json!({"fingerprint": request.fingerprint()?})).etag(version))
}

async fn import(_: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let read = |(line, text): (usize, &str)| json!({"line": line, "ok": Object::parse(text).is_ok()});
    Ok(Response::ok(&json!({"results": request.lines(http_api::MAX_BODY_BYTES)?.map(read).collect::<Vec<_>>()})))
}

async fn staff(_: &App, request: &Request<'_>) -> Result<Response, Problem> {
    Ok(Response::ok(&json!({"staff": request.staff()?.id()})))
}

async fn send(call: Call) -> Answered {
    call.send(&routes(), &app()).await
}

fn post() -> Call {
    Call::new("POST /v1/things").customer("c1").header("idempotency-key", "k1")
}

fn is(answer: &Answered, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code()), (status, Some(code)), "{answer:?}");
}

#[tokio::test]
async fn a_creation_returns_the_location_and_the_version() {
    let answer = send(post().json(&json!({"name": "a#b", "lines": [{"product_id": "p#1", "quantity": 2}]}))).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("location"), Some("/v1/things/a%23b"));
    assert_eq!((answer.header("etag"), answer.version()), (Some("\"1\""), Some(1)));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!((answer.header("cache-control"), answer.header("vary")), (Some("no-store"), None));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("x-request-id"), Some("sample-request"));
    assert_eq!(answer.body, json!({"name": "a#b", "about": null, "lines": 1, "by": "c1", "key": "k1"}));
}

#[tokio::test]
async fn a_replayed_response_equals_the_first_response_and_is_marked_as_replayed() {
    let first = send(post().json(&json!({"name": "ä"}))).await;
    let again = send(post().header("idempotency-key", "replay").json(&json!({"name": "ä"}))).await;
    assert_eq!((first.header("idempotency-replayed"), again.header("idempotency-replayed")), (None, Some("true")));
    assert_eq!((again.status, again.body["name"].as_str()), (201, Some("ä")));
    for header in ["location", "etag", "content-type", "cache-control"] {
        assert_eq!(first.header(header), again.header(header), "{header}");
    }
}

#[tokio::test]
async fn a_problem_has_its_media_type_and_the_request_id_and_no_cause() {
    let answer = send(Call::new("GET /v1/things/{id}").path("id", "none")).await;
    is(&answer, 404, "not_found");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(
        answer.body,
        json!({
            "type": "urn:bodega:problem:not_found", "title": "Not found", "status": 404, "code": "not_found",
            "detail": "There is no such thing.", "request_id": "sample-request",
        })
    );
}

#[tokio::test]
async fn a_number_in_a_path_has_one_spelling() {
    let of = |number: &str| send(Call::new("GET /v1/numbers/{n}").path("n", number));
    for number in [0, 7, u64::MAX] {
        assert_eq!(of(&number.to_string()).await.body, json!({"n": number}));
    }
    for other in ["07", "+7", "00"] {
        is(&of(other).await, 404, "not_found");
    }
    is(&of("-7").await, 422, "invalid_id");
}

#[tokio::test]
async fn a_record_gives_the_response_of_its_own_request_until_the_record_expires() {
    let call = Call::new("POST /v1/once").customer("c1").header("idempotency-key", "k1").json(&json!({}));
    let found = json!({"found": [true, true, false], "other": "idempotency_key_reused", "none": true});
    assert_eq!(send(call).await.body, found);
}

#[tokio::test]
async fn an_event_as_text_gets_its_response_as_text() {
    let event = Call::new("GET /v1/things/{id}").path("id", "x").event().to_string();
    let text = routes().answer_text(&app(), &event).await.unwrap();
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&answer["statusCode"], &answer["body"]), (&json!(200), &json!(r#"{"id":"x"}"#)));
}

#[tokio::test]
async fn a_public_response_may_be_cached() {
    let answer = send(Call::new("GET /v1/things/{id}").path("id", "x")).await;
    assert_eq!(
        (answer.header("cache-control"), answer.header("vary")),
        (Some("public, max-age=3, stale-while-revalidate=0"), Some("origin"))
    );
}

#[tokio::test]
async fn callers_reach_only_their_own_items() {
    let list = || Call::new("GET /v1/customers/{id}/things").path("id", "c1");
    is(&send(list()).await, 401, "unauthenticated");
    assert_eq!(send(list()).await.header("www-authenticate"), Some("Bearer"));
    assert_eq!(send(list().customer("c1")).await.status, 200);
    is(&send(list().customer("c2")).await, 404, "not_found");
    assert_eq!(send(list().staff("s1")).await.status, 200);

    let staff = || Call::new("GET /v1/staff");
    is(&send(staff()).await, 401, "unauthenticated");
    is(&send(staff().customer("c1")).await, 403, "forbidden");
    assert_eq!(send(staff().staff("s1")).await.body, json!({"staff": "s1"}));
}

#[tokio::test]
async fn ids_in_any_script_are_valid_and_ids_that_break_the_rule_are_refused() {
    let get = |id: &str| Call::new("GET /v1/things/{id}").path("id", id);
    for id in ["p1", "a b", "a#b", "100$", "_41", "a~b", "Ωμέγα", "商品", "🛒", &"x".repeat(128)] {
        let answer = send(get(id)).await;
        assert_eq!((answer.status, answer.body["id"].as_str()), (200, Some(id)));
    }
    for id in [
        "",
        "a\u{0}",
        "a\nb",
        "\u{7f}",
        "a/b",
        "a?b",
        "100%",
        "a\\b",
        ".",
        "..",
        &"x".repeat(129),
        &"ä".repeat(65),
        " p1",
        "p1 ",
        "p1\u{200b}",
        "p\u{a0}1",
        "e\u{301}",
    ] {
        is(&send(get(id)).await, 422, "invalid_id");
    }
}

#[tokio::test]
async fn a_change_needs_one_strong_tag() {
    let patch = || Call::new("PATCH /v1/things/{id}").path("id", "x").body("{}");
    is(&send(patch()).await, 428, "if_match_missing");
    assert_eq!(send(patch().header("if-match", "\"3\"")).await.header("etag"), Some("\"3\""));
    for weak in ["W/\"3\"", "W/\"x\""] {
        let answer = send(patch().header("if-match", weak)).await;
        is(&answer, 412, "version_mismatch");
        assert!(answer.body["detail"].as_str().unwrap().contains("weak ETag"), "{}", answer.body);
    }
    for foreign in ["\"x\"", "\"03\"", "\"\""] {
        let answer = send(patch().header("if-match", foreign)).await;
        assert_eq!(answer.header("etag"), Some("\"0\""), "{foreign} matches no version");
    }
    for bad in ["", "3", "*", "\"3\", \"4\"", "\"", "W/3"] {
        is(&send(patch().header("if-match", bad)).await, 400, "invalid_header");
    }
}

#[tokio::test]
async fn a_put_creates_or_replaces_as_its_precondition_says() {
    let put = || Call::new("PUT /v1/things/{id}").path("id", "x").staff("s1");
    is(&send(put()).await, 428, "if_match_missing");
    let exists = send(put().header("if-none-match", "*")).await;
    is(&exists, 409, "already_exists");
    assert_eq!(exists.header("location"), Some("/v1/things/1"));
    let replaced = send(put().header("if-match", "\"3\"")).await;
    assert_eq!((replaced.status, replaced.header("content-type")), (204, None));
    is(&send(put().header("if-match", "\"2\"")).await, 412, "version_mismatch");
    is(&send(put().header("if-none-match", "\"3\"")).await, 400, "invalid_header");
    is(&send(put().header("if-none-match", "*").header("if-match", "\"3\"")).await, 400, "invalid_header");
}

#[tokio::test]
async fn an_idempotency_key_is_required_and_has_1_to_255_characters() {
    let call = || Call::new("POST /v1/things").customer("c1").json(&json!({"name": "a"}));
    is(&send(call()).await, 400, "idempotency_key_missing");
    assert_eq!(send(call().header("idempotency-key", &"k".repeat(255))).await.status, 201);
    for bad in ["", &"k".repeat(256), "ä", "a\tb"] {
        is(&send(call().header("idempotency-key", bad)).await, 400, "invalid_header");
    }
    // API Gateway joins two headers to this value.
    let two = send(call().header("idempotency-key", "a,b")).await;
    is(&two, 400, "invalid_header");
    assert!(two.body["detail"].as_str().unwrap().contains("one Idempotency-Key"), "{}", two.body);
}

#[tokio::test]
async fn another_caller_or_path_or_body_gives_another_fingerprint() {
    let patch =
        |id: &str, body: &str| Call::new("PATCH /v1/things/{id}").path("id", id).header("if-match", "\"1\"").body(body);
    let one = send(patch("a", "{}").customer("c1")).await.body;
    assert_eq!(one["fingerprint"].as_str().map(str::len), Some(64));
    assert_eq!(one, send(patch("a", "{}").customer("c1").header("x-other", "y")).await.body);
    for other in [patch("b", "{}").customer("c1"), patch("a", "{ }").customer("c1"), patch("a", "{}").customer("c2")] {
        assert_ne!(one, send(other).await.body);
    }
}

#[tokio::test]
async fn without_a_gateway_the_path_is_matched_and_decoded_once() {
    let raw = |method: &str, path: &str| {
        let mut event = Call::new("GET /unused").event();
        event["routeKey"] = "$default".into();
        event["rawPath"] = path.into();
        event["requestContext"]["http"]["method"] = method.into();
        event
    };
    for (method, path, status) in [
        ("GET", "/v1/things/a%23b", 200),
        ("GET", "/v1/things/a%2Fb", 422),
        ("GET", "/v1/things/none", 404),
        ("POST", "/v1/things/import", 200),
        ("DELETE", "/v1/things/x", 404),
        ("GET", "/v1/things/", 404),
        ("GET", "/v2/things/x", 404),
        ("GET", "/v1/things/%ff", 400),
        ("GET", "/v1/things/a%00", 422),
        ("GET", "", 404),
    ] {
        let event = raw(method, path);
        let answer = routes().answer(&app(), serde_json::from_value(event).unwrap()).await;
        assert_eq!(answer.status_code, status, "{method} {path}");
    }
}

#[tokio::test]
async fn a_link_keeps_the_stage_that_the_client_sees_in_the_path() {
    let mut event = Call::new("GET /v1/customers/{id}/things").path("id", "c1").customer("c1").event();
    event["requestContext"]["stage"] = "test".into();
    event["rawPath"] = "/test/v1/customers/c1/things".into();
    let answer = routes().answer(&app(), serde_json::from_value(event).unwrap()).await;
    assert!(answer.headers["link"].to_str().unwrap().starts_with("</test/v1/customers/c1/things?cursor="));
}

#[tokio::test]
async fn a_route_that_the_function_does_not_have_is_not_found() {
    is(&send(Call::new("GET /v1/elsewhere")).await, 404, "not_found");
    assert_eq!(routes().keys().next(), Some("POST /v1/things"));
}

#[tokio::test]
async fn an_anonymous_caller_may_send_an_idempotency_key() {
    let (routes, app) = (routes(), app());
    let call = || Call::new("POST /v1/once/anybody").json(&json!({}));
    assert_eq!(call().send(&routes, &app).await.body, json!(null));
    let anonymous = call().header("idempotency-key", "k").send(&routes, &app).await.body;
    let customer = call().header("idempotency-key", "k").customer("ann").send(&routes, &app).await.body;
    assert_eq!((&anonymous[1], &customer[1]), (&json!("k"), &json!("k")));
    assert_ne!(anonymous[0], customer[0]);
}

#[test]
fn a_problem_shows_its_code_and_lists_its_field_errors() {
    let problem = Problem::new(Code::InvalidBody, "It is wrong.").error("/name", "is missing");
    assert_eq!(problem.to_string(), "invalid_body: It is wrong.");
    let errors: Vec<_> = problem.field_errors().iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(errors, ["/name"]);
}
