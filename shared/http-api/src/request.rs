//! A request as its handler reads it. Each reader returns a value, or one problem with the status
//! from `openapi.yaml`.

use std::any::TypeId;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Clock};

use key_schema::cursor::Cursors;
use key_schema::id::{CustomerId, ME};
use key_schema::instant::Instant;
use telemetry::correlation;

use crate::event::{Body, Event, Pairs};
use crate::identity::{Caller, Owner, SignedIn, Staff};
use crate::page::{self, Keys, PageRequest};
use crate::problem::{Code, Problem};
use crate::url;

#[derive(Debug)]
pub struct Request<'a> {
    route: &'static str,
    stage_prefix: String,
    id: String,
    pub(crate) path: Pairs<'a>,
    query: Option<Pairs<'a>>,
    /// For each query parameter: whether the handler has read it yet.
    was_read: Vec<AtomicBool>,
    headers: Pairs<'a>,
    caller: Caller,
    pub(crate) body: Body<'a>,
    deadline: Clock,
}

impl<'a> Request<'a> {
    pub(crate) fn new(event: Event<'a>, route: &'static str, path: Pairs<'a>, id: String, time: Duration) -> Self {
        let prefix = format!("/{}", event.stage);
        let staged = event.raw_path.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with('/'));
        Self {
            route,
            stage_prefix: if staged { prefix } else { String::new() },
            id,
            path,
            was_read: event.query.iter().flatten().map(|_| AtomicBool::new(false)).collect(),
            query: event.query,
            headers: event.headers,
            caller: Caller::from_claims(&event.claims),
            body: event.body,
            deadline: Clock::now() + time,
        }
    }

    /// Returns the time at which the handler is stopped, whether or not its work is complete.
    #[must_use]
    pub const fn deadline(&self) -> Clock {
        self.deadline
    }

    /// Returns the id of this request, which its response and the log contain.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the correlation id of the writes for this request. It is the request's id, or `None`
    /// if the request has no known id.
    pub(crate) fn cause(&self) -> Option<&str> {
        Some(self.id()).filter(|id| *id != UNKNOWN)
    }

    /// Returns the route's key, such as `GET /v1/orders/{id}`.
    #[must_use]
    pub const fn route(&self) -> &'static str {
        self.route
    }

    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the caller, who must have a token.
    pub fn signed_in(&self) -> Result<SignedIn, Problem> {
        self.caller.signed_in()
    }

    /// Returns the caller, who must be staff.
    ///
    /// # Errors
    /// 401 `unauthenticated`, 403 `forbidden`.
    pub fn staff(&self) -> Result<Staff, Problem> {
        self.caller.staff()
    }

    /// Returns the caller as an [`Owner`], if the caller may act for this customer.
    pub fn owner(&self, customer: &CustomerId) -> Result<Owner, Problem> {
        self.caller.owner(customer)
    }

    /// Reads a path parameter with the rule of the type `T`. For a [`CustomerId`], [`ME`] names the
    /// caller. [`contract::rules::customer`](crate::contract::rules::customer) reads it in a body.
    ///
    /// # Errors
    /// As [`Request::path_by`], and as [`Request::signed_in`] for [`ME`].
    pub fn path<T: FromStr<Err: Display> + 'static>(&self, name: &str) -> Result<T, Problem> {
        if TypeId::of::<T>() == TypeId::of::<CustomerId>() && find(&self.path, name) == Some(ME) {
            let caller = self.caller.signed_in()?;
            return self.path_by(name, |_| T::from_str(caller.id().as_str()));
        }
        self.path_by(name, T::from_str)
    }

    /// Reads a path parameter with a function. The client sees the error text of the function.
    ///
    /// # Errors
    /// - 422 `invalid_id` when `read` refuses the value.
    /// - 400 `malformed_request` when the event lacks a parameter of its own route.
    /// - 500 `internal` when the route has no such parameter.
    pub fn path_by<T, E: Display>(&self, name: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Result<T, Problem> {
        let Some(text) = find(&self.path, name) else {
            let declared = self.route.split('/').any(|segment| url::parameter(segment) == Some(name));
            return Err(if declared {
                Problem::new(Code::MalformedRequest, format!("The event has no path parameter `{name}`."))
            } else {
                Problem::internal(format!("route {} has no parameter {name}", self.route))
            });
        };
        read(text)
            .map_err(|error| Problem::new(Code::InvalidId, format!("The `{name}` in the path is invalid: {error}.")))
    }

    /// Reads a number in the path that identifies a record. Only the canonical spelling identifies
    /// a record, so `01` and `+1` are refused.
    ///
    /// # Errors
    /// 404 `not_found` for another spelling, because it names no `thing`. Otherwise as
    /// [`Request::path_by`].
    pub fn path_number(&self, name: &str, thing: &str) -> Result<u64, Problem> {
        let number: u64 = self.path(name)?;
        if find(&self.path, name) == Some(number.to_string().as_str()) {
            Ok(number)
        } else {
            Err(Problem::not_found(thing))
        }
    }

    /// Returns a query parameter's text.
    ///
    /// # Errors
    /// 400 `invalid_parameter` when it is given twice, or the query is not UTF-8.
    pub fn query(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.query_all(name)?;
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Problem::new(Code::InvalidParameter, format!("The query parameter `{name}` must be given once."))),
        }
    }

    /// Returns the texts of a query parameter that can be given several times.
    ///
    /// # Errors
    /// 400 `invalid_parameter` when the query is not UTF-8.
    pub fn query_all(&self, name: &str) -> Result<impl Iterator<Item = &str>, Problem> {
        let Some(query) = &self.query else {
            return Err(Problem::new(Code::InvalidParameter, "The query is not UTF-8."));
        };
        let matching = query.iter().zip(&self.was_read).filter(move |((given, _), _)| given == name);
        Ok(matching.map(|((_, value), was_read)| {
            was_read.store(true, Ordering::Relaxed);
            value.as_ref()
        }))
    }

    /// Refuses query parameters that the handler has not read. Otherwise a misspelt filter would be
    /// ignored, and the client could mistake the full list for a filtered list.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub fn refuse_unread_parameters(&self) -> Result<(), Problem> {
        let Some(query) = &self.query else {
            return Err(Problem::new(Code::InvalidParameter, "The query is not UTF-8."));
        };
        let unknown = query.iter().zip(&self.was_read).find(|(_, was_read)| !was_read.load(Ordering::Relaxed));
        match unknown {
            None => Ok(()),
            Some(((name, _), _)) => {
                let name: String = name.chars().take(MAX_SHOWN).collect();
                Err(Problem::new(Code::InvalidParameter, format!("This route has no query parameter `{name}`.")))
            }
        }
    }

    /// Reads a query parameter with the rule of the type `T`.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub fn query_as<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let parse = |text: &str| {
            text.parse().map_err(|error| {
                Problem::new(Code::InvalidParameter, format!("The query parameter `{name}` is invalid: {error}."))
            })
        };
        self.query(name)?.map(parse).transpose()
    }

    /// Reads a query parameter that is an RFC 3339 instant.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub fn query_instant(&self, name: &str) -> Result<Option<Instant>, Problem> {
        self.query_as(name)
    }

    /// Reads a query parameter that is a day in UTC, such as `2017-01-01`. Returns its midnight.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub fn query_day(&self, name: &str) -> Result<Option<Instant>, Problem> {
        Ok(self.query_as(name)?.map(|Day(midnight)| midnight))
    }

    /// Reads the query parameters `from` and `to`, both inclusive.
    ///
    /// # Errors
    /// 400 `invalid_parameter`, also when `from` is after `to`.
    pub fn query_range(&self) -> Result<(Option<Instant>, Option<Instant>), Problem> {
        let (from, to) = (self.query_instant("from")?, self.query_instant("to")?);
        if from.zip(to).is_some_and(|(from, to)| from > to) {
            return Err(Problem::new(Code::InvalidParameter, "`from` is after `to`."));
        }
        Ok((from, to))
    }

    /// Returns the requested number of entries of a page.
    ///
    /// # Errors
    /// 400 `invalid_parameter` outside 1 to 100.
    pub fn limit(&self) -> Result<usize, Problem> {
        page::limit(self.query("limit")?)
    }

    /// Returns the requested page of a list. `list` is the id of its access pattern. `parameters`
    /// select and order the list. A cursor is valid only for the same list, parameters and caller.
    ///
    /// # Errors
    /// 400 `invalid_parameter` for the limit, 400 `cursor_invalid`, and 503 `unavailable` if the
    /// request has a cursor and the keys cannot be read.
    pub async fn page<'p>(
        &'p self,
        keys: &'p Keys<Cursors>,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<PageRequest<'p>, Problem> {
        PageRequest::new(self, keys, list, parameters).await
    }

    /// Returns the requested page of a document's parts. The page has as many parts as fit. Its
    /// cursors follow the rules of [`Request::page`].
    ///
    /// # Errors
    /// 400 `cursor_invalid`.
    pub async fn page_of_parts<'p>(
        &'p self,
        keys: &'p Keys<Cursors>,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<PageRequest<'p>, Problem> {
        PageRequest::whole(self, keys, list, parameters).await
    }

    /// Returns a header's value. The letter case of `name` does not matter.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Returns the address of this API as the client named it, such as `https://api.example`.
    #[must_use]
    pub fn origin(&self) -> Option<String> {
        let is_host = |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte));
        let host = self.header("host").filter(is_host)?;
        let scheme = if self.header("x-forwarded-proto") == Some("http") { "http" } else { "https" };
        Some(format!("{scheme}://{host}{}", self.stage_prefix))
    }

    /// Returns a header with a secret that gives access to one item.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<&str> {
        self.header(name).filter(|secret| secret.len() <= MAX_SECRET_BYTES)
    }

    /// Returns the method and the path of this request, without the query.
    #[must_use]
    pub fn target(&self) -> (&'static str, String) {
        let (method, template) = self.route.split_once(' ').unwrap_or(("", self.route));
        let mut path = self.stage_prefix.clone();
        path.push_str(&url::fill(template, |name| find(&self.path, name)));
        (method, path)
    }

    /// Returns whether this request has a query.
    #[must_use]
    pub fn has_query(&self) -> bool {
        self.query.as_ref().is_none_or(|query| !query.is_empty())
    }

    /// Returns the body as it was sent, or `None` if it is too long or no text.
    #[must_use]
    pub fn body_text(&self) -> Option<&str> {
        if let Body::Text(text) = &self.body { Some(text) } else { None }
    }

    /// Returns this request's path and query with this cursor instead of the request's own cursor.
    /// The Link header from a page to the next page has this URL.
    pub(crate) fn url_with_cursor(&self, cursor: &str) -> String {
        let (_, mut target) = self.target();
        target.push_str("?cursor=");
        target.push_str(&url::encode(cursor));
        for (name, value) in self.query.iter().flatten().filter(|(name, _)| name != "cursor") {
            target.push('&');
            target.push_str(&url::encode(name));
            target.push('=');
            target.push_str(&url::encode(value));
        }
        target
    }
}

/// The midnight with which a day begins.
struct Day(Instant);

impl FromStr for Day {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let midnight: Option<Instant> = format!("{text}T00:00:00Z").parse().ok();
        // The parser of instants also accepts other spellings of a day.
        let midnight = midnight.filter(|midnight| midnight.day() == text);
        midnight.map(Self).ok_or("must be a day such as 2017-01-01")
    }
}

fn find<'p>(pairs: &'p Pairs<'_>, name: &str) -> Option<&'p str> {
    pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_ref())
}

/// The longest secret in a header. The secrets that functions make have 64 bytes.
const MAX_SECRET_BYTES: usize = 200;

/// The maximum length of an unknown parameter's name in an error text, in characters.
const MAX_SHOWN: usize = 64;

/// The id of a request when neither the gateway nor the runtime gives a valid id.
const UNKNOWN: &str = "unknown";

/// Returns the gateway's request id, or the runtime's id if the gateway's id is invalid. A valid id
/// can be part of a header and of an item.
pub(crate) fn request_id(gateway: &str, runtime: &str) -> String {
    [gateway, runtime].into_iter().find_map(correlation::id).unwrap_or(UNKNOWN).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_unfit_for_a_header_is_replaced() {
        assert_eq!(request_id("JKJaXmPLvHcESHA=", "r1"), "JKJaXmPLvHcESHA=");
        for bad in ["", "a\r\nset-cookie: x=y", "ä", &"x".repeat(65)] {
            assert_eq!(request_id(bad, "r1"), "r1");
            assert_eq!(request_id(bad, ""), "unknown");
        }
    }
}
