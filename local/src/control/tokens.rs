//! `POST /_local/tokens`: issues a token, as `bodega token` does. `/_local/issuer` serves the public
//! key of the tokens, as a Cognito user pool does.
//!
//! The page `/docs` uses the first route. Pages of the origins that the template permits may use it,
//! too, if they are on this machine ([`loopback_only`]).
//!
//! The issuer's name is not an address. `GET /_local/environment` has the address, for a program
//! that verifies tokens itself.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Request as HttpRequest, State};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use key_schema::id::CustomerId;
use key_schema::text::Email;
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::answer::Problem;
use super::{Control, loopback_only};
use crate::gateway::cors;
use crate::token::{ISSUER, MoreClaims, SigningKey, is_group};

pub(super) const ISSUER_PATH: &str = "/_local/issuer";
const DISCOVERY: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/.well-known/jwks.json";

/// The body of a request, such as `{"sub":"sam","groups":["staff"]}`. The members are the options
/// of `bodega token`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    sub: String,
    #[serde(default)]
    groups: Vec<String>,
    sid: Option<String>,
    email: Option<String>,
}

/// Applies the CORS settings of the API to this route.
pub(super) async fn to_pages(State(control): State<Arc<Control>>, request: HttpRequest, next: Next) -> Response {
    let Some(cors) = &control.cors else { return next.run(request).await };
    if let Some(answer) = cors::preflight(cors, request.method(), request.headers()) {
        return answer;
    }
    let asked = request.headers().clone();
    let mut response = next.run(request).await;
    cors::share(cors, &asked, response.headers_mut());
    response
}

/// Returns a token that is valid for 12 hours.
pub(super) async fn issue(
    State(control): State<Arc<Control>>,
    request: Result<Json<Request>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(request) = request.map_err(|error| Problem::bad_request(error.body_text()))?;
    CustomerId::new(request.sub.as_str()).map_err(|error| Problem::bad_request(format!("sub {error}")))?;
    if !request.groups.iter().all(|group| is_group(group)) {
        return Err(Problem::bad_request("groups must be names without spaces, commas and brackets"));
    }
    if request.sid.as_deref().is_some_and(str::is_empty) {
        return Err(Problem::bad_request("sid must not be empty"));
    }
    let email = request.email.map(|email| email.parse::<Email>()).transpose();
    let email = email.map_err(|error| Problem::bad_request(format!("email {error}")))?;
    let more = MoreClaims { sid: request.sid.as_deref(), email: email.as_ref().map(Email::as_str) };
    let now = OffsetDateTime::now_utc().unix_timestamp();
    let token = control.key.issue_with(&request.sub, &request.groups, more, now);
    Ok(Json(json!({"token": token.map_err(|error| Problem::failed(&error))?})))
}

pub(crate) fn issuer_endpoint(url: &str) -> String {
    format!("{url}{ISSUER_PATH}")
}

/// Returns the routes of the discovery document and the key set for the system at `url`.
pub(crate) fn issuer_router<S: Clone + Send + Sync + 'static>(key: &SigningKey, url: &str) -> Router<S> {
    let keys = key.key_set();
    let at = |path: &str| format!("{}{path}", issuer_endpoint(url));
    let discovery = json!({
        "issuer": ISSUER,
        "jwks_uri": at(KEYS),
        "authorization_endpoint": at("/oauth2/authorize"),
        "token_endpoint": at("/oauth2/token"),
        "revocation_endpoint": at("/oauth2/revoke"),
        "end_session_endpoint": at("/logout"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "subject_types_supported": ["public"],
    });
    let shown = |document: Value| get(async move || Json(document));
    Router::new()
        .route(&format!("{ISSUER_PATH}{DISCOVERY}"), shown(discovery))
        .route(&format!("{ISSUER_PATH}{KEYS}"), shown(keys))
        .layer(from_fn(loopback_only))
}
