//! Events of API Gateway: for any event, a function responds in the gateway's format. A refusal has
//! a code, and the function never returns a server error.
//!
//! The function of this target uses every part of a request that the shop's functions use.

use super::CURSOR_KEYS;
use super::answer::Answer;
use http_api::fields::text;
use http_api::{BODY_LIMIT, Keys, Object, Problem, Request, Response, Routes};
use key_schema::cursor::Cursors;
use key_schema::id::CustomerId;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

struct Function {
    runtime: Runtime,
    routes: Routes<Keys<Cursors>>,
    cursors: Keys<Cursors>,
}

thread_local! {
    static FUNCTION: Function = Function {
        runtime: Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime"),
        routes: Routes::new()
            .on("GET /v1/things", |cursors, request| Box::pin(list(cursors, request)))
            .on("GET /v1/things/{id}", |_, request| Box::pin(look(request)))
            .on("PUT /v1/things/{id}", |_, request| Box::pin(put(request)))
            .on("POST /v1/things/import", |_, request| Box::pin(import(request))),
        cursors: Keys::known(Cursors::new(CURSOR_KEYS).expect("keys")),
    };
}

pub fn check(input: &[u8]) {
    // The runtime passes only text to a function, so the target skips other inputs.
    let Ok(text) = std::str::from_utf8(input) else { return };
    let event: Value = serde_json::from_str(text).unwrap_or_default();
    FUNCTION.with(|function| {
        let answer = function.answer(text);
        let method = event["requestContext"]["http"]["method"].as_str();
        assert!(method.is_some() || answer.code.as_deref() == Some("malformed_request"), "{answer:?}");
        // Without a token, only a request for a public list can succeed.
        let claims = event.pointer("/requestContext/authorizer/jwt/claims/sub").and_then(Value::as_str);
        assert!(claims.is_some() || answer.status >= 400 || answer.body["items"].is_array(), "{answer:?}");
        let Some((_, query)) = answer.link.as_deref().and_then(|link| link.split_once('>')?.0.split_once('?')) else {
            return;
        };
        // The link to the next page works for the same caller.
        let mut next = event;
        next["rawQueryString"] = query.into();
        let next = function.answer(&next.to_string());
        assert_eq!(next.status, 200, "{text}: {next:?}");
    });
}

impl Function {
    fn answer(&self, event: &str) -> Answer {
        let answer = self.runtime.block_on(self.routes.answer_text(&self.cursors, event));
        let answer = Answer::read(&answer.expect("an answer has a JSON form"));
        assert!(answer.status < 500, "{answer:?}");
        answer
    }
}

/// Responds with a page of a public list. Every page has a next page.
async fn list(cursors: &Keys<Cursors>, request: &Request<'_>) -> Result<Response, Problem> {
    let (from, to) = request.query_range()?;
    let of = request.query("of")?.unwrap_or_default();
    let (from, to) =
        (from.map(|at| at.to_string()).unwrap_or_default(), to.map(|at| at.to_string()).unwrap_or_default());
    let parameters = [("from", from.as_str()), ("to", to.as_str()), ("of", of)];
    let page = request.page(cursors, "things", &parameters).await?;
    assert!((1..=100).contains(&page.limit()));
    page.answer(&[1], |_| page.after().or_else(|| Some("A#%23".to_owned()))).await
}

async fn look(request: &Request<'_>) -> Result<Response, Problem> {
    let id: CustomerId = request.path("id")?;
    request.owner(&id)?;
    Ok(Response::ok(&id).etag(1))
}

async fn put(request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    request.precondition()?;
    let (key, fingerprint) = (request.idempotency_key()?.to_owned(), request.fingerprint()?);
    assert!((1..=255).contains(&key.len()) && !fingerprint.is_empty());
    let mut body = request.object()?;
    let name = body.required("name", text(1..=200));
    let name = body.finish(name)?;
    let location = http_api::url::location(&["things", &name]);
    Ok(Response::created(location, &name).etag(1))
}

async fn import(request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let lines = request.lines(BODY_LIMIT)?.map(|(_, line)| Object::parse(line).is_ok());
    let taken = lines.filter(|taken| *taken).count();
    Ok(Response::accepted(&taken))
}
