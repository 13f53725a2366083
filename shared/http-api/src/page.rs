//! Pages of a list: their size, their start, and the cursor of the next page.
//!
//! A Lambda response has at most 6 MB
//! (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>). If the response is
//! larger, the client gets a 500. A Lambda response contains the body as a JSON string, in which
//! each quote and each backslash takes two bytes. A page therefore ends before that string exceeds
//! [`MAX_PAGE_BYTES`]. The page's cursor leads to the remaining entries.

use key_schema::cursor::{Cursors, Scope};
use key_schema::encoding::{decode, encode};
use key_schema::instant::Instant;
use serde::Serialize;

use crate::problem::{Code, Problem};
use crate::request::Request;
use crate::response::Response;

/// The header with the number of items that a page leaves out because they cannot be decoded.
pub const LEFT_OUT: &str = "x-left-out";

pub const DEFAULT_LIMIT: usize = 20;
pub const MAX_LIMIT: usize = 100;

/// The maximum size of a page in bytes, escaped as in Lambda's response. It is two thirds of
/// Lambda's limit. The other third is for the headers, for the document's other members, and for a
/// first entry of any size. A page always contains its first entry.
pub const MAX_PAGE_BYTES: usize = 4_000_000;

tokio::task_local! {
    /// The value that a test sets instead of [`MAX_PAGE_BYTES`].
    pub(crate) static TEST_PAGE_BYTES: usize;
}

pub(crate) fn max_bytes() -> usize {
    TEST_PAGE_BYTES.try_with(|bytes| *bytes).unwrap_or(MAX_PAGE_BYTES)
}

/// Returns whether a JSON text takes at most `bytes` inside a JSON string. The text must have no
/// raw control characters.
pub(crate) fn fits(json: &str, bytes: usize) -> bool {
    json.len().saturating_mul(2) <= bytes || escaped(json) <= bytes
}

pub(crate) fn escaped(json: &str) -> usize {
    json.len() + json.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

/// Returns how many of the entries fit in a page with `beside` bytes of other content. The result
/// is at least one if there are entries, so that every page makes progress in the list.
fn fitting<T: Serialize>(entries: impl Iterator<Item = T>, beside: usize) -> Result<usize, Problem> {
    let (mut used, most, mut kept) = (beside, max_bytes(), 0);
    for entry in entries {
        // A comma separates two entries.
        used += escaped(&serde_json::to_string(&entry).map_err(Problem::internal)?) + 1;
        if used > most && kept > 0 {
            break;
        }
        kept += 1;
    }
    Ok(kept)
}

#[derive(Debug)]
pub struct Page<'p> {
    limit: usize,
    after: Option<String>,
    cursors: &'p Cursors,
    scope: Scope<'p>,
    left_out: usize,
}

impl<'p> Page<'p> {
    pub(crate) fn new(
        request: &'p Request<'_>,
        cursors: &'p Cursors,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<Self, Problem> {
        Ok(Self { limit: request.limit()?, ..Self::whole(request, cursors, list, parameters)? })
    }

    /// Creates a page without the query parameter `limit`. Its limit is [`MAX_LIMIT`].
    pub(crate) fn whole(
        request: &'p Request<'_>,
        cursors: &'p Cursors,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<Self, Problem> {
        let scope = Scope { list, parameters, caller: request.caller().key() };
        let open = |cursor: &str| {
            cursors.open(&scope, cursor, Instant::now()).map_err(|error| {
                Problem::new(Code::CursorInvalid, "The cursor is not valid for this list.").because(error)
            })
        };
        let after = request.query("cursor")?.map(open).transpose()?;
        Ok(Self { limit: MAX_LIMIT, after, cursors, scope, left_out: 0 })
    }

    /// Notes the number of items that the page leaves out because they cannot be decoded. The
    /// response has it in the header [`LEFT_OUT`].
    pub const fn leave_out(&mut self, items: usize) {
        self.left_out = items;
    }

    /// Returns the maximum number of entries, 1 to [`MAX_LIMIT`].
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the sort key at which the previous page ended, or `None` for the first page.
    #[must_use]
    pub fn after(&self) -> Option<String> {
        self.after.clone()
    }

    /// Returns the name of the part at which the previous page ended ([`Page::answer_parts`]), or
    /// `None` for the first page.
    #[must_use]
    pub fn after_part(&self) -> Option<String> {
        self.after.as_deref().and_then(decode)
    }

    /// Returns the cursor of the next page, if there is one. `last` is the sort key at which this
    /// page ends, or `None` at the end of the list.
    fn next_cursor(&self, last: Option<&str>) -> Result<Option<String>, Problem> {
        last.map(|sort_key| self.cursors.seal(&self.scope, sort_key, Instant::now()).map_err(Problem::internal))
            .transpose()
    }
}

impl Page<'_> {
    /// Builds a 200 response with the entries that fit: `{"items": […], "next_cursor": …}`.
    ///
    /// `end` takes the number of entries on this page. It returns the sort key after which the next
    /// page starts, or `None` at the end of the list.
    pub fn answer<T: Serialize>(
        &self,
        items: &[T],
        end: impl Fn(usize) -> Option<String>,
    ) -> Result<Response, Problem> {
        self.answer_with(items, end, &serde_json::Map::new())
    }

    /// Builds the response of [`Page::answer`] with further members beside the items. `more` must
    /// serialize as an object.
    pub fn answer_with<T: Serialize>(
        &self,
        items: &[T],
        end: impl Fn(usize) -> Option<String>,
        more: &impl Serialize,
    ) -> Result<Response, Problem> {
        let next = |kept| self.next_cursor(end(kept).as_deref());
        let whole = Response::page(items, next(items.len())?, more);
        if whole.is_page() {
            return Ok(self.counted(whole));
        }
        let beside = escaped(&serde_json::to_string(more).map_err(Problem::internal)?) + FRAME;
        let kept = fitting(items.iter(), beside)?;
        Ok(self.counted(Response::page(items.get(..kept).unwrap_or(items), next(kept)?, more)))
    }

    fn counted(&self, response: Response) -> Response {
        if self.left_out == 0 { response } else { response.header(LEFT_OUT, self.left_out.to_string()) }
    }

    /// Builds the response of a document whose named parts are split into pages. `view` builds the
    /// document from the number of parts on this page and the cursor of the next page.
    pub fn answer_parts<K: ToString + Serialize, P: Serialize>(
        &self,
        parts: &[(K, P)],
        view: impl Fn(usize, Option<&str>) -> Response,
    ) -> Result<Response, Problem> {
        let whole = view(parts.len(), None);
        if whole.is_page() {
            return Ok(whole);
        }
        let kept = fitting(parts.iter(), view(0, None).body_bytes() + FRAME)?;
        let last = parts.get(..kept).filter(|_| kept < parts.len()).and_then(|parts| parts.last());
        let cursor = self.next_cursor(last.map(|(name, _)| encode(&name.to_string())).as_deref())?;
        Ok(view(kept, cursor.as_deref()).next(cursor))
    }
}

/// An upper bound of the bytes outside a list's entries: names of members, and a cursor of at most
/// 1 KB.
const FRAME: usize = 2_000;

pub(crate) fn limit(given: Option<&str>) -> Result<usize, Problem> {
    let Some(text) = given else {
        return Ok(DEFAULT_LIMIT);
    };
    match text.parse::<usize>() {
        // `parse` alone would accept a sign and leading zeros.
        Ok(limit) if (1..=MAX_LIMIT).contains(&limit) && limit.to_string() == text => Ok(limit),
        _ => Err(Problem::new(Code::InvalidParameter, format!("The limit must be an integer from 1 to {MAX_LIMIT}."))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_of_a_body_includes_its_escapes_in_lambdas_response() {
        for text in
            ["", "plain", "\"quoted\"", "\\", "line\nfeed\ttab", "\u{1}\u{7f}\u{85}", "Zürich 章程 🙂", "</script>"]
        {
            let body = json!({ "text": text }).to_string();
            let inside = serde_json::to_string(&body).unwrap().len() - 2;
            assert_eq!(escaped(&body), inside, "{text:?}");
            assert!(fits(&body, inside) && !fits(&body, inside - 1), "{text:?}");
        }
    }

    #[test]
    fn a_page_has_its_first_entry_at_any_size_and_the_others_while_they_fit() {
        let entry = "x".repeat(1_000_000);
        let fitting = |entries: usize, beside| fitting(std::iter::repeat_n(&entry, entries), beside).ok();
        assert_eq!([fitting(0, 0), fitting(3, 0), fitting(4, 0), fitting(9, 2_000_000)], [0, 3, 3, 1].map(Some));
        assert_eq!(fitting(9, 9_000_000), Some(1));
    }

    #[test]
    fn a_limit_is_from_1_to_100_and_the_default_limit_is_20() {
        assert!(matches!(limit(None), Ok(20)));
        assert!(matches!(limit(Some("1")), Ok(1)));
        assert!(matches!(limit(Some("100")), Ok(100)));
        for bad in ["0", "101", "-1", "+5", "05", "", " 5", "5.0", "1e1", "99999999999999999999", "ten"] {
            assert!(matches!(limit(Some(bad)), Err(problem) if problem.code() == Code::InvalidParameter), "{bad}");
        }
    }
}
