//! What a handler asks of a request. Every question has one answer or one problem, with the status that the
//! contract gives it.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use key_schema::cursor::Cursors;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use telemetry::correlation;

use crate::event::{Body, Event, Pairs};
use crate::identity::{Caller, Owner, SignedIn, Staff};
use crate::page::{self, Page};
use crate::problem::{Code, Problem};
use crate::url;

/// One request, as its handler sees it.
#[derive(Debug)]
pub struct Request<'a> {
    route: &'static str,
    stage_prefix: String,
    id: String,
    pub(crate) path: Pairs<'a>,
    query: Option<Pairs<'a>>,
    /// Of each query parameter, whether the handler has asked for it.
    asked: Vec<AtomicBool>,
    headers: Pairs<'a>,
    caller: Caller,
    pub(crate) body: Body<'a>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(event: Event<'a>, route: &'static str, path: Pairs<'a>, id: String) -> Self {
        let prefix = format!("/{}", event.stage);
        let staged = event.raw_path.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with('/'));
        Self {
            route,
            stage_prefix: if staged { prefix } else { String::new() },
            id,
            path,
            asked: event.query.iter().flatten().map(|_| AtomicBool::new(false)).collect(),
            query: event.query,
            headers: event.headers,
            caller: Caller::from_claims(&event.claims),
            body: event.body,
        }
    }

    /// The id that names this request in its answer and in the log.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What everything carries that is written on the request's behalf: its id, if it has one.
    pub(crate) fn cause(&self) -> Option<&str> {
        Some(self.id()).filter(|id| *id != UNKNOWN)
    }

    /// The route's key, `GET /v1/orders/{id}`.
    #[must_use]
    pub const fn route(&self) -> &'static str {
        self.route
    }

    /// Whoever asks.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The caller, who has a token.
    ///
    /// # Errors
    /// 401 `unauthenticated`.
    pub fn signed_in(&self) -> Result<SignedIn, Problem> {
        self.caller.signed_in()
    }

    /// The caller, who is staff.
    ///
    /// # Errors
    /// 401 `unauthenticated`, 403 `forbidden`.
    pub fn staff(&self) -> Result<Staff, Problem> {
        self.caller.staff()
    }

    /// The caller, who may act for this customer.
    ///
    /// # Errors
    /// 401 `unauthenticated`, 404 `not_found`.
    pub fn owner(&self, customer: &CustomerId) -> Result<Owner, Problem> {
        self.caller.owner(customer)
    }

    /// A parameter of the path, by the rule of its type.
    ///
    /// # Errors
    /// As [`Request::path_by`].
    pub fn path<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Problem> {
        self.path_by(name, T::from_str)
    }

    /// A parameter of the path, read by a function. What its error says is shown to the client.
    ///
    /// # Errors
    /// 422 `invalid_id`; 400 `malformed_request` when the event lacks a parameter of its own route, 500 `internal`
    /// when the route has no such parameter.
    pub fn path_by<T, E: Display>(&self, name: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Result<T, Problem> {
        let Some(text) = find(&self.path, name) else {
            let declared = self.route.split('/').any(|segment| url::parameter(segment) == Some(name));
            return Err(if declared {
                Problem::new(Code::MalformedRequest, format!("The event gives no `{name}` of its route."))
            } else {
                Problem::internal(format!("route {} has no parameter {name}", self.route))
            });
        };
        read(text)
            .map_err(|error| Problem::new(Code::InvalidId, format!("The `{name}` in the path is refused: {error}.")))
    }

    /// A number in the path, by which something is called: only in the spelling in which it is given out. `01` and `+1` name nothing.
    ///
    /// # Errors
    /// 404 `not_found` of `thing` for another spelling, otherwise as [`Request::path_by`].
    pub fn path_number(&self, name: &str, thing: &str) -> Result<u64, Problem> {
        let number: u64 = self.path(name)?;
        if find(&self.path, name) == Some(number.to_string().as_str()) {
            Ok(number)
        } else {
            Err(Problem::not_found(thing))
        }
    }

    /// A query parameter's text.
    ///
    /// # Errors
    /// 400 `invalid_parameter` when it is given twice, or the query is not UTF-8.
    pub fn query(&self, name: &str) -> Result<Option<&str>, Problem> {
        let Some(query) = &self.query else {
            return Err(Problem::new(Code::InvalidParameter, "The query is not UTF-8."));
        };
        let matching = query.iter().zip(&self.asked).filter(|((given, _), _)| given == name);
        let mut values = matching.map(|((_, value), asked)| {
            asked.store(true, Ordering::Relaxed);
            value.as_ref()
        });
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Problem::new(Code::InvalidParameter, format!("The query parameter `{name}` is given twice."))),
        }
    }

    /// Refuses query parameters that nobody has asked for: one that is misspelt would otherwise be as good as left out, and a list of everything look like what was
    /// asked for.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub(crate) fn every_parameter_was_asked_for(&self) -> Result<(), Problem> {
        let Some(query) = &self.query else {
            return Err(Problem::new(Code::InvalidParameter, "The query is not UTF-8."));
        };
        let unknown = query.iter().zip(&self.asked).find(|(_, asked)| !asked.load(Ordering::Relaxed));
        match unknown {
            None => Ok(()),
            Some(((name, _), _)) => {
                let name: String = name.chars().take(MAX_SHOWN).collect();
                Err(Problem::new(Code::InvalidParameter, format!("There is no query parameter `{name}` here.")))
            }
        }
    }

    /// A query parameter by the rule of its type.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub fn query_as<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let parse = |text: &str| {
            text.parse().map_err(|error| {
                Problem::new(Code::InvalidParameter, format!("The query parameter `{name}` is refused: {error}."))
            })
        };
        self.query(name)?.map(parse).transpose()
    }

    /// A query parameter that is an RFC 3339 instant.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub fn query_instant(&self, name: &str) -> Result<Option<Instant>, Problem> {
        self.query_as(name)
    }

    /// The query parameters `from` and `to`, both included.
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

    /// How many entries a page of the list shall have.
    ///
    /// # Errors
    /// 400 `invalid_parameter` outside 1 to 100.
    pub fn limit(&self) -> Result<usize, Problem> {
        page::limit(self.query("limit")?)
    }

    /// The page of a list that the request asks for. `list` is the id of its access pattern, `parameters` are those
    /// that select and order it: a cursor is good only for the same list with the same ones, and the same caller.
    ///
    /// # Errors
    /// 400 `invalid_parameter` for the limit, 400 `cursor_invalid`.
    pub fn page<'p>(
        &'p self,
        cursors: &'p Cursors,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<Page<'p>, Problem> {
        Page::new(self, cursors, list, parameters)
    }

    /// The page of a document's parts that the request asks for: as many as fit, with the rules of [`Request::page`].
    ///
    /// # Errors
    /// 400 `cursor_invalid`.
    pub fn page_of_parts<'p>(
        &'p self,
        cursors: &'p Cursors,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<Page<'p>, Problem> {
        Page::whole(self, cursors, list, parameters)
    }

    /// A header's value, its name in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// This request's URL from the path on, with other query parameters: how a list refers to its next page.
    pub(crate) fn url_with_cursor(&self, cursor: &str) -> String {
        let template = self.route.split_once(' ').map_or(self.route, |(_, path)| path);
        let mut target = self.stage_prefix.clone();
        target.push_str(&url::fill(template, |name| find(&self.path, name)));
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

fn find<'p>(pairs: &'p Pairs<'_>, name: &str) -> Option<&'p str> {
    pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_ref())
}

/// How much of an unknown parameter's name an answer repeats.
const MAX_SHOWN: usize = 64;

/// What stands for the id of a request that has none.
const UNKNOWN: &str = "unknown";

/// The id of a request, fit for a header and for what the request writes: what the gateway gave, else the runtime's.
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
