//! `/_local/issuer`: signs people in by the code flow with PKCE, with the paths of Cognito's sign-in
//! pages. Nobody types a password: the page asks only for a name and for the groups.
//!
//! Codes and refresh tokens are in memory. So after a restart a customer signs in again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{StatusCode, Uri};
use key_schema::id::CustomerId;
use reqwest::Url;
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;

use super::Control;
use super::answer::Problem;
use super::host::is_loopback;
use crate::token::{LIFETIME_SECONDS, MoreClaims, is_group};

/// How long a code is valid.
const CODE_SECONDS: i64 = 60;
/// The maximum number of codes and of refresh tokens. The oldest ones are forgotten.
const MAX_KEPT: usize = 1000;
const MAX_TEXT: usize = 200;

/// The query of the page. A browser sends it first without `sub`, and the form of the page adds it.
#[derive(Debug, Clone, Deserialize)]
struct Asked {
    response_type: String,
    client_id: String,
    redirect_uri: String,
    state: Option<String>,
    code_challenge: String,
    code_challenge_method: String,
    sub: Option<String>,
    email: Option<String>,
    group: Option<String>,
}

#[derive(Debug, Serialize)]
struct Issued {
    id_token: String,
    access_token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    token_type: &'static str,
    expires_in: i64,
}

#[derive(Debug, Clone)]
struct Person {
    client_id: String,
    sub: String,
    sid: String,
    email: Option<String>,
    groups: Vec<String>,
}

#[derive(Debug)]
struct Code {
    code: String,
    expires_at: i64,
    asked: Asked,
    person: Person,
}

/// The sign-ins that have begun, and those that are refreshed later.
#[derive(Debug, Default)]
pub(crate) struct SignIns {
    codes: Mutex<VecDeque<Code>>,
    refresh: Mutex<VecDeque<(String, Person)>>,
}

fn keep<T>(all: &Mutex<VecDeque<T>>, new: T) {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= MAX_KEPT {
        all.pop_front();
    }
    all.push_back(new);
}

fn take<T>(all: &Mutex<VecDeque<T>>, is_meant: impl Fn(&T) -> bool) -> Option<T> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(is_meant)?;
    all.remove(at)
}

/// Returns the routes below the issuer's address.
pub(super) fn routes() -> Router<Arc<Control>> {
    Router::new()
        .route("/oauth2/authorize", get(authorize))
        .route("/oauth2/token", post(exchange))
        .route("/oauth2/revoke", post(revoke))
        .route("/logout", get(sign_out))
}

async fn authorize(
    State(control): State<Arc<Control>>,
    query: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(asked) = query.map_err(|error| Problem::bad_request(error.body_text()))?;
    let mut to = local_page(&asked.redirect_uri)?;
    if asked.response_type != "code" || asked.code_challenge_method != "S256" {
        return Err(Problem::bad_request("response_type must be code, and code_challenge_method S256"));
    }
    let Some(sub) = asked.sub.clone().filter(|sub| !sub.is_empty()) else {
        return Ok(Html(page(&asked)).into_response());
    };
    CustomerId::new(sub.as_str()).map_err(|error| Problem::bad_request(format!("sub {error}")))?;
    let groups: Vec<String> = asked.group.iter().filter(|group| !group.is_empty()).cloned().collect();
    if !groups.iter().all(|group| is_group(group)) {
        return Err(Problem::bad_request("group must be a name without spaces, commas and brackets"));
    }
    let email = asked.email.clone().filter(|email| !email.is_empty());
    if email.as_ref().is_some_and(|email| email.parse::<key_schema::text::Email>().is_err()) {
        return Err(Problem::bad_request("email must be an email address"));
    }
    let person = Person { client_id: asked.client_id.clone(), sub, sid: secret()?, email, groups };
    let (code, state) = (secret()?, asked.state.clone());
    to.query_pairs_mut().append_pair("code", &code);
    if let Some(state) = &state {
        to.query_pairs_mut().append_pair("state", state);
    }
    keep(&control.sign_ins.codes, Code { code, expires_at: now() + CODE_SECONDS, asked, person });
    Ok(Redirect::to(to.as_str()).into_response())
}

async fn exchange(State(control): State<Arc<Control>>, body: String) -> Result<Response, Problem> {
    let form = Form::read(&body);
    let sign_ins = &control.sign_ins;
    let (person, is_new) = match form.text("grant_type") {
        "authorization_code" => {
            let begun = take(&sign_ins.codes, |known| known.code == form.text("code"));
            let challenge = digest::digest(&digest::SHA256, form.text("code_verifier").as_bytes());
            let verified = begun.filter(|begun| {
                begun.expires_at > now()
                    && begun.asked.client_id == form.text("client_id")
                    && begun.asked.redirect_uri == form.text("redirect_uri")
                    && begun.asked.code_challenge == URL_SAFE_NO_PAD.encode(challenge)
            });
            (verified.map(|begun| begun.person), true)
        }
        "refresh_token" => {
            let refresh = sign_ins.refresh.lock().unwrap_or_else(PoisonError::into_inner);
            let is_meant = |(token, person): &&(String, Person)| {
                token == form.text("refresh_token") && person.client_id == form.text("client_id")
            };
            (refresh.iter().find(is_meant).map(|(_, person)| person.clone()), false)
        }
        _ => return Ok(refused("unsupported_grant_type")),
    };
    let Some(person) = person else { return Ok(refused("invalid_grant")) };
    let more = MoreClaims { sid: Some(&person.sid), email: person.email.as_deref() };
    let token = control.key.issue_with(&person.sub, &person.groups, more, now());
    let token = token.map_err(|error| Problem::failed(&error))?;
    let refresh_token = if is_new { Some(secret()?) } else { None };
    if let Some(token) = &refresh_token {
        keep(&sign_ins.refresh, (token.clone(), person));
    }
    let (id_token, access_token) = (token.clone(), token);
    let issued = Issued { id_token, access_token, refresh_token, token_type: "Bearer", expires_in: LIFETIME_SECONDS };
    Ok(([("cache-control", "no-store")], Json(issued)).into_response())
}

async fn revoke(State(control): State<Arc<Control>>, body: String) -> StatusCode {
    let form = Form::read(&body);
    drop(take(&control.sign_ins.refresh, |(known, _)| known == form.text("token")));
    StatusCode::OK
}

/// The fields of a form.
struct Form(BTreeMap<String, String>);

impl Form {
    /// Reads a body, which has the same form as a query.
    fn read(body: &str) -> Self {
        let url = Url::parse(&format!("form:?{body}")).ok();
        Self(url.iter().flat_map(Url::query_pairs).map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Returns a field, or the empty text, which is no valid value of any field.
    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

#[derive(Debug, Deserialize)]
struct Leaving {
    logout_uri: String,
}

async fn sign_out(query: Result<Query<Leaving>, QueryRejection>) -> Result<Redirect, Problem> {
    let Query(Leaving { logout_uri }) = query.map_err(|error| Problem::bad_request(error.body_text()))?;
    Ok(Redirect::to(local_page(&logout_uri)?.as_str()))
}

fn refused(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
}

/// Reads the address of a page. A code for a page of another machine would sign its owner in.
fn local_page(address: &str) -> Result<Url, Problem> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let is_local = address.parse::<Uri>().is_ok_and(|uri| uri.authority().is_some_and(|at| is_loopback(at.as_str())));
    url.filter(|_| is_local).ok_or_else(|| Problem::bad_request("the address must be of a page on this machine"))
}

fn now() -> i64 {
    OffsetDateTime::now_utc().unix_timestamp()
}

/// Returns 128 random bits as text.
fn secret() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Problem::failed(&error))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the page that asks who signs in. It has no script.
fn page(asked: &Asked) -> String {
    let hidden = [
        ("response_type", &asked.response_type),
        ("client_id", &asked.client_id),
        ("redirect_uri", &asked.redirect_uri),
        ("code_challenge", &asked.code_challenge),
        ("code_challenge_method", &asked.code_challenge_method),
    ];
    let hidden = hidden.into_iter().chain(asked.state.iter().map(|state| ("state", state)));
    let hidden: String = hidden
        .map(|(name, value)| format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">\n", escaped(value)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Sign in</title>\n<h1>Sign in</h1>\n\
         <p>The local system asks for no password.</p>\n<form>\n{hidden}\
         <p><label>Customer id <input name=\"sub\" maxlength=\"{MAX_TEXT}\" required autofocus></label></p>\n\
         <p><label>Verified email address, if any <input name=\"email\" type=\"email\"></label></p>\n\
         <p><label><input name=\"group\" type=\"checkbox\" value=\"staff\"> a member of staff</label></p>\n\
         <p><button>Sign in</button></p>\n</form>\n</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
