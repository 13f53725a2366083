//! `POST /_local/tokens`: issues a token, as `bodega token` does.
//!
//! The page `/docs` uses this route. A page of another origin cannot read the response, because
//! `/_local` has no CORS headers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use key_schema::id::CustomerId;
use key_schema::text::Email;
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::Control;
use super::problem::Problem;
use crate::token::{MoreClaims, is_group};

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
