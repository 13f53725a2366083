//! Pages of a list: their size, their start, and the cursor of the next page.
//!
//! A Lambda response has at most 6 MB
//! (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>). If the response is
//! larger, the client gets a 500. A Lambda response contains the body as a JSON string, in which
//! each quote and each backslash takes two bytes. A page therefore ends before that string exceeds
//! [`MAX_PAGE_BYTES`]. The page's cursor leads to the remaining entries.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};

use key_schema::cursor::{Cursors, Scope};
use key_schema::encoding::{decode, encode};
use key_schema::instant::Instant;
use serde::Serialize;
use tokio::sync::OnceCell;

use crate::problem::{Cause, Code, Problem};
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

/// The time after a failed read in which the keys are not read again.
const KEYS_PAUSE_MILLIS: i64 = 5_000;

/// Keys from a secret, which the first request that needs them reads. So a function starts and
/// answers all other requests even if the secret is unreadable.
///
/// Concurrent requests share one read. After a failure, all requests are refused at once for a few
/// seconds, so that they do not wait one after the other.
pub struct Keys<K> {
    source: Source<K>,
    read: OnceCell<K>,
    /// The time of the last failure, in milliseconds. The wall clock also counts the time in which
    /// Lambda freezes the environment.
    failed: AtomicI64,
}

type Source<K> = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<K, Cause>> + Send>> + Send + Sync>;

impl<K> fmt::Debug for Keys<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl<K> Keys<K> {
    /// Makes keys that `source` reads.
    pub fn new<F: Future<Output = Result<K, Cause>> + Send + 'static>(
        source: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self {
        let source: Source<K> = Box::new(move || Box::pin(source()));
        Self { source, read: OnceCell::new(), failed: AtomicI64::new(0) }
    }

    /// Makes keys that need no secret, for tests and measurements.
    #[must_use]
    pub fn known(keys: K) -> Self
    where
        K: Send + 'static,
    {
        let read = OnceCell::new_with(Some(keys));
        Self { read, ..Self::new(|| async { Err("there are no keys".into()) }) }
    }

    /// Returns the keys.
    ///
    /// # Errors
    /// 503 `unavailable` when the secret cannot be read.
    pub async fn get(&self) -> Result<&K, Problem> {
        let read = || async {
            let since = Instant::now().as_millis() - self.failed.load(Ordering::Relaxed);
            if (0..KEYS_PAUSE_MILLIS).contains(&since) {
                return Err(Problem::unavailable("the keys could not be read shortly before"));
            }
            (self.source)().await.map_err(|error| {
                self.failed.store(Instant::now().as_millis(), Ordering::Relaxed);
                Problem::unavailable(error)
            })
        };
        self.read.get_or_try_init(read).await
    }
}

/// No further members beside the items.
#[derive(Serialize)]
pub(crate) struct Nothing {}

/// A page without a cursor, and the sort key after which the next page starts.
pub(crate) type Unsealed = (Response, Option<String>);

#[derive(Debug)]
pub struct PageRequest<'p> {
    limit: usize,
    after: Option<String>,
    keys: &'p Keys<Cursors>,
    scope: Scope<'p>,
    left_out: usize,
}

impl<'p> PageRequest<'p> {
    pub(crate) async fn new(
        request: &'p Request<'_>,
        keys: &'p Keys<Cursors>,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<Self, Problem> {
        Ok(Self { limit: request.limit()?, ..Self::whole(request, keys, list, parameters).await? })
    }

    /// Creates a page without the query parameter `limit`. Its limit is [`MAX_LIMIT`].
    pub(crate) async fn whole(
        request: &'p Request<'_>,
        keys: &'p Keys<Cursors>,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<Self, Problem> {
        let scope = Scope { list, parameters, caller: request.caller().key() };
        let after = match request.query("cursor")? {
            None => None,
            Some(cursor) => Some(keys.get().await?.open(&scope, cursor, Instant::now()).map_err(|error| {
                Problem::new(Code::CursorInvalid, "The cursor is not valid for this list.").because(error)
            })?),
        };
        Ok(Self { limit: MAX_LIMIT, after, keys, scope, left_out: 0 })
    }

    /// Adds to the number of items that the page leaves out because they cannot be decoded. The
    /// response has it in the header [`LEFT_OUT`].
    pub const fn leave_out(&mut self, items: usize) {
        self.left_out += items;
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

    /// Returns the name of the part at which the previous page ended
    /// ([`PageRequest::answer_parts`]), or `None` for the first page.
    #[must_use]
    pub fn after_part(&self) -> Option<String> {
        self.after.as_deref().and_then(decode)
    }

    /// Returns the cursor of the next page, if there is one. `last` is the sort key at which this
    /// page ends, or `None` at the end of the list.
    async fn next_cursor(&self, last: Option<&str>) -> Result<Option<String>, Problem> {
        let Some(sort_key) = last else { return Ok(None) };
        self.keys.get().await?.seal(&self.scope, sort_key, Instant::now()).map(Some).map_err(Problem::internal)
    }
}

impl PageRequest<'_> {
    /// Builds a 200 response with the entries that fit: `{"items": […], "next_cursor": …}`.
    ///
    /// `end` takes the number of entries on this page. It returns the sort key after which the next
    /// page starts, or `None` at the end of the list.
    pub fn answer<T: Serialize>(
        &self,
        items: &[T],
        end: impl Fn(usize) -> Option<String>,
    ) -> impl Future<Output = Result<Response, Problem>> + Send {
        self.answer_with(items, end, &Nothing {})
    }

    /// Builds the response of [`PageRequest::answer`] with further members beside the items. `more`
    /// must serialize as an object.
    ///
    /// Only a page that another page follows needs the keys of cursors.
    pub fn answer_with<T: Serialize>(
        &self,
        items: &[T],
        end: impl Fn(usize) -> Option<String>,
        more: &impl Serialize,
    ) -> impl Future<Output = Result<Response, Problem>> + Send {
        // The items are serialized before the first `await`, so they need not be `Sync`.
        let page = self.unsealed(items, end, more);
        async move { self.sealed(page?).await }
    }

    /// Adds the cursor to a response of [`PageRequest::unsealed`].
    pub(crate) async fn sealed(&self, (response, last): Unsealed) -> Result<Response, Problem> {
        Ok(response.leading_to(self.next_cursor(last.as_deref()).await?).leaving_out(self.left_out))
    }

    pub(crate) fn unsealed<T: Serialize>(
        &self,
        items: &[T],
        end: impl Fn(usize) -> Option<String>,
        more: &impl Serialize,
    ) -> Result<Unsealed, Problem> {
        let (whole, last) = (Response::page(items, more), end(items.len()));
        if whole.is_page(if last.is_some() { FRAME } else { 0 }) {
            return Ok((whole, last));
        }
        let beside = escaped(&serde_json::to_string(more).map_err(Problem::internal)?) + FRAME;
        let kept = fitting(items.iter(), beside)?;
        Ok((Response::page(items.get(..kept).unwrap_or(items), more), end(kept)))
    }

    /// Builds the response of a document whose named parts are split into pages. `view` builds the
    /// document from the number of parts on this page and the cursor of the next page.
    pub async fn answer_parts<K: ToString + Serialize + Sync, P: Serialize + Sync>(
        &self,
        parts: &[(K, P)],
        view: impl Fn(usize, Option<&str>) -> Response + Send,
    ) -> Result<Response, Problem> {
        let whole = view(parts.len(), None);
        if whole.is_page(0) {
            return Ok(whole);
        }
        let kept = fitting(parts.iter(), view(0, None).body_bytes() + FRAME)?;
        let last = parts.get(..kept).filter(|_| kept < parts.len()).and_then(|parts| parts.last());
        let last = last.map(|(name, _)| encode(&name.to_string()));
        let cursor = self.next_cursor(last.as_deref()).await?;
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

    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use serde_json::json;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn concurrent_requests_share_one_read_of_the_keys_and_its_failure() {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        // The first read fails.
        let keys = Keys::new(move || {
            let read = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                yield_now().await;
                if read == 0 { Err("no connection".into()) } else { Ok(read) }
            }
        });
        let codes = || async {
            let (one, two) = tokio::join!(keys.get(), keys.get());
            [one, two].map(|keys| keys.copied().map_err(|problem| problem.code()))
        };
        assert_eq!(codes().await, [Err(Code::Unavailable), Err(Code::Unavailable)]);
        assert_eq!((codes().await[0], reads.load(Ordering::Relaxed)), (Err(Code::Unavailable), 1));
        keys.failed.fetch_sub(KEYS_PAUSE_MILLIS, Ordering::Relaxed);
        assert_eq!((codes().await, reads.load(Ordering::Relaxed)), ([Ok(1), Ok(1)], 2));
    }

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
