//! Stripe's wire format: form-encoded parameters, and error objects
//! (<https://docs.stripe.com/api/errors>).

use std::collections::BTreeMap;

use bytes::Bytes;
use hyper::http::HeaderValue;
use hyper::{StatusCode, header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::endpoint::{Answer, json_answer};

const MEDIA_TYPE: &str = "application/json";
const MAX_PARAMETERS: usize = 500;
const MAX_TEXT: usize = 1_000;

/// <https://docs.stripe.com/api/metadata>: 50 keys of 40 characters, with values of 500 characters.
const MAX_METADATA: usize = 50;
const MAX_METADATA_KEY: usize = 40;
const MAX_METADATA_VALUE: usize = 500;

pub(super) type Metadata = BTreeMap<String, String>;

/// The parameters of a request, in order. Reading a parameter removes it, so that the rest are the
/// unknown parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    pub(super) fn read(text: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(text).map_err(|_| Refusal::invalid("Invalid UTF-8 in the parameters."))?;
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let decode = |text: &str| {
            let spaced = text.replace('+', " ");
            let decoded = percent_decode_str(&spaced).decode_utf8();
            decoded.map(String::from).map_err(|_| Refusal::invalid("Invalid UTF-8 in the parameters."))
        };
        let read = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        };
        let pairs: Vec<_> = pairs.take(MAX_PARAMETERS + 1).map(read).collect::<Result<_, Refusal>>()?;
        match pairs.len() > MAX_PARAMETERS {
            true => Err(Refusal::invalid("Too many parameters.")),
            false => Ok(Self(pairs)),
        }
    }

    /// Returns the parameters in an order that does not depend on the client.
    pub(super) fn sorted(&self) -> Self {
        let mut pairs = self.0.clone();
        pairs.sort();
        Self(pairs)
    }

    /// The last one of several values counts.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        let value = self.take(|known| (known == name).then_some(())).pop().map(|((), value)| value);
        match value {
            Some(value) if value.is_empty() => Err(Refusal::invalid(format!(
                "You passed an empty string for '{name}'. We assume empty values are an attempt to unset a \
                parameter; however '{name}' cannot be unset. You should remove '{name}' from your request or \
                supply a non-empty value."
            ))
            .code("parameter_invalid_empty")
            .param(name)),
            Some(value) if value.chars().count() > MAX_TEXT => {
                Err(Refusal::invalid(format!("Invalid string: must be at most {MAX_TEXT} characters")).param(name))
            }
            value => Ok(value),
        }
    }

    pub(super) fn required(&mut self, name: &str) -> Result<String, Refusal> {
        self.text(name)?.ok_or_else(|| missing(name))
    }

    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let refused =
            |_| Refusal::invalid(format!("Invalid integer: {text}")).code("parameter_invalid_integer").param(name);
        text.parse().map(Some).map_err(refused)
    }

    /// Reads an amount in minor units, which is at least 1.
    pub(super) fn amount(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.integer(name)? {
            Some(amount) if amount < 1 => {
                Err(Refusal::invalid("Invalid positive integer").code("parameter_invalid_integer").param(name))
            }
            amount => Ok(amount),
        }
    }

    pub(super) fn choice(&mut self, name: &str, known: &[&'static str]) -> Result<Option<&'static str>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = known.iter().find(|known| **known == text).copied();
        let wrong = || Refusal::invalid(format!("Invalid {name}: must be one of {}", known.join(", "))).param(name);
        found.map(Some).ok_or_else(wrong)
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<bool, Refusal> {
        match self.text(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Refusal::invalid(format!("Invalid boolean: {other}")).param(name)),
        }
    }

    /// Reads `name[]=a&name[]=b` or `name[0]=a`.
    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        let index = |known: &str| {
            let index = member(known, name)?;
            index.bytes().all(|byte| byte.is_ascii_digit()).then_some(())
        };
        self.take(index).into_iter().map(|((), value)| value).collect()
    }

    /// Reads `metadata[key]=value`. An empty value removes the key, and `metadata=` removes all.
    pub(super) fn metadata(&mut self) -> Result<MetadataChange, Refusal> {
        let clear = self.take(|known| (known == "metadata").then_some(()));
        if clear.iter().any(|((), value)| !value.is_empty()) {
            return Err(Refusal::invalid("Invalid object").param("metadata"));
        }
        let set = self.take(|known| member(known, "metadata").map(str::to_owned)).into_iter().collect();
        let change = MetadataChange { clear: !clear.is_empty(), set };
        let fits = |text: &String, most| text.chars().count() <= most;
        let fit = |(key, value)| fits(key, MAX_METADATA_KEY) && fits(value, MAX_METADATA_VALUE);
        match change.set.iter().all(fit) {
            true => Ok(change),
            false => Err(Refusal::invalid(
                "Metadata keys can have at most 40 characters, and metadata values at most 500 characters.",
            )
            .param("metadata")),
        }
    }

    /// Refuses the parameters that were not read.
    pub(super) fn end(self) -> Result<(), Refusal> {
        let Some((name, _)) = self.0.first() else { return Ok(()) };
        Err(Refusal::invalid(format!("Received unknown parameter: {name}")).code("parameter_unknown").param(name))
    }

    fn take<T>(&mut self, wanted: impl Fn(&str) -> Option<T>) -> Vec<(T, String)> {
        let mut taken = Vec::new();
        self.0.retain(|(name, value)| match wanted(name) {
            Some(key) => {
                taken.push((key, value.clone()));
                false
            }
            None => true,
        });
        taken
    }
}

/// Returns `b` of `a[b]`.
fn member<'a>(name: &'a str, of: &str) -> Option<&'a str> {
    name.strip_prefix(of)?.strip_prefix('[')?.strip_suffix(']').filter(|inner| !inner.contains(['[', ']']))
}

#[derive(Debug, Clone)]
pub(super) struct MetadataChange {
    clear: bool,
    set: Metadata,
}

impl MetadataChange {
    pub(super) fn apply(self, to: &mut Metadata) -> Result<(), Refusal> {
        let mut changed = if self.clear { Metadata::new() } else { to.clone() };
        changed.extend(self.set);
        changed.retain(|_, value| !value.is_empty());
        if changed.len() > MAX_METADATA {
            return Err(Refusal::invalid("Metadata can have at most 50 keys.").param("metadata"));
        }
        *to = changed;
        Ok(())
    }
}

/// An error response. `retry` is the header `Stripe-Should-Retry`.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    status: StatusCode,
    error: Map<String, Value>,
    retry: Option<bool>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, kind: &str, message: impl Into<String>) -> Self {
        let mut error = Map::new();
        error.insert("type".to_owned(), kind.into());
        error.insert("message".to_owned(), message.into().into());
        Self { status, error, retry: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    pub(super) fn not_found(what: &str, id: &str, param: &str) -> Self {
        let missing = Self::invalid(format!("No such {what}: '{id}'")).code("resource_missing").param(param);
        Self { status: StatusCode::NOT_FOUND, ..missing }
    }

    pub(super) fn unexpected_state(message: impl Into<String>) -> Self {
        Self::invalid(message).code("payment_intent_unexpected_state")
    }

    pub(super) fn internal() -> Self {
        let message = "An unknown error occurred.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "api_error", message).retry(false)
    }

    pub(super) fn code(self, code: &str) -> Self {
        let page = format!("https://docs.stripe.com/error-codes#{}", code.replace('_', "-"));
        self.with("code", code).with("doc_url", page)
    }

    pub(super) fn param(self, name: &str) -> Self {
        self.with("param", name)
    }

    pub(super) fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.error.insert(member.to_owned(), value.into());
        self
    }

    /// Returns the error in the form of a payment's `last_payment_error`.
    pub(super) fn error(&self) -> Value {
        Value::Object(self.error.clone())
    }

    pub(super) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(super) fn retry(self, retry: bool) -> Self {
        Self { retry: Some(retry), ..self }
    }
}

pub(super) fn missing(name: &str) -> Refusal {
    Refusal::invalid(format!("Missing required param: {name}.")).code("parameter_missing").param(name)
}

/// A response, which an idempotency key may store.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    status: StatusCode,
    body: Bytes,
    retry: Option<bool>,
    is_replayed: bool,
}

impl From<Result<Value, Refusal>> for Reply {
    fn from(result: Result<Value, Refusal>) -> Self {
        let (status, body, retry) = match result {
            Ok(body) => (StatusCode::OK, body, None),
            Err(refusal) => {
                let body = serde_json::json!({"error": refusal.error});
                (refusal.status, body, refusal.retry)
            }
        };
        Self { status, body: body.to_string().into(), retry, is_replayed: false }
    }
}

impl Reply {
    pub(super) fn replayed(self) -> Self {
        Self { is_replayed: true, ..self }
    }

    pub(super) fn answer(self, request_id: &str) -> Answer {
        let mut answer = json_answer(MEDIA_TYPE, self.status, &Value::Null);
        *answer.body_mut() = self.body.into();
        let headers = answer.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert("request-id", id);
        }
        if self.is_replayed {
            headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
        }
        if let Some(retry) = self.retry {
            headers.insert("stripe-should-retry", HeaderValue::from_static(if retry { "true" } else { "false" }));
        }
        answer
    }
}
