//! The correlation id of the current work (the id of the request that caused it) and its trace.
//!
//! Both are task-local, so that no function signature has to carry them. The code that receives a
//! request or a record sets both once, around all of its work. The code that writes items or
//! publishes events reads them here. Spawned tasks do not inherit them. Deployed code does not
//! spawn tasks for its work.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

/// The maximum length of an id. API Gateway's ids have 16 characters, Lambda's 36.
pub const MAX_ID: usize = 64;
/// The maximum number of ids on one log line. Each failed record is also logged on a line of its
/// own.
pub const MAX_NAMED: usize = 20;
/// The maximum length of a trace header that EventBridge accepts (API reference,
/// `PutEventsRequestEntry`).
const MAX_TRACE_HEADER: usize = 500;

tokio::task_local! {
    static CAUSE: Option<Arc<str>>;
    static TRACE: Option<Arc<str>>;
}

/// Returns the text if it is a valid request id, safe to store and log: 1 to 64 printable ASCII
/// characters without spaces.
#[must_use]
pub fn id(text: &str) -> Option<&str> {
    Some(text).filter(|text| (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()))
}

/// The ids of the requests that caused the work of one invocation, for its log line. It keeps the
/// first [`MAX_NAMED`] distinct ids, and counts all distinct ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids {
    named: Vec<String>,
    count: usize,
}

impl Ids {
    /// Returns the first ids, at most [`MAX_NAMED`].
    #[must_use]
    pub fn named(&self) -> &[String] {
        &self.named
    }

    /// Returns the number of all distinct ids.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

impl<'a> FromIterator<&'a str> for Ids {
    fn from_iter<I: IntoIterator<Item = &'a str>>(ids: I) -> Self {
        let mut seen = HashSet::new();
        let mut all = Self::default();
        for id in ids.into_iter().filter(|id| seen.insert(*id)) {
            all.count += 1;
            if all.named.len() < MAX_NAMED {
                all.named.push(id.to_owned());
            }
        }
        all
    }
}

/// Runs `work` on behalf of a request. Without a valid request id the work has no correlation id,
/// even when it runs inside another request's task.
pub async fn caused_by<F: Future>(cause: Option<&str>, work: F) -> F::Output {
    CAUSE.scope(cause.and_then(id).map(Arc::from), work).await
}

/// Returns the id of the request that caused the current work.
#[must_use]
pub fn cause() -> Option<Arc<str>> {
    CAUSE.try_with(Clone::clone).ok().flatten()
}

/// Runs `work` inside a trace. `header` is the trace header of the invocation
/// (`Root=1-…;Parent=…;Sampled=1`). Work with an empty or too long header has no trace.
pub async fn traced<F: Future>(header: Option<&str>, work: F) -> F::Output {
    let fit = |header: &&str| (1..=MAX_TRACE_HEADER).contains(&header.len());
    TRACE.scope(header.filter(fit).map(Arc::from), work).await
}

#[must_use]
pub fn trace_header() -> Option<Arc<str>> {
    TRACE.try_with(Clone::clone).ok().flatten()
}

/// Returns the id of a trace: the root in its header.
#[must_use]
pub fn trace_id(header: &str) -> Option<&str> {
    header.split(';').find_map(|part| part.trim().strip_prefix("Root=")).filter(|root| !root.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn an_id_is_short_and_printable() {
        for good in ["JKJaXmPLvHcESHA=", "3f2c7a4e-0000-4000-8000-0123456789ab", &"x".repeat(MAX_ID)] {
            assert_eq!(id(good), Some(good));
        }
        for bad in ["", "a b", "a\nb", "ä", &"x".repeat(MAX_ID + 1)] {
            assert_eq!(id(bad), None);
        }
    }

    #[test]
    fn a_line_lists_at_most_20_requests_and_each_only_once() {
        let few: Ids = ["r2", "r1", "r2"].into_iter().collect();
        assert_eq!((few.named(), few.count()), (["r2".to_owned(), "r1".to_owned()].as_slice(), 2));
        let ids: Vec<String> = (0..50).map(|number| format!("r{number}")).collect();
        let many: Ids = ids.iter().map(String::as_str).collect();
        assert_eq!((many.named(), many.count()), (&ids[..MAX_NAMED], 50));
    }

    #[tokio::test]
    async fn concurrent_tasks_have_separate_causes() {
        assert_eq!(cause(), None);
        let look = |own: Option<&'static str>| {
            caused_by(own, async {
                tokio::task::yield_now().await;
                cause()
            })
        };
        let (one, other, bad) = tokio::join!(look(Some("r1")), look(Some("r2")), look(Some("no id")));
        assert_eq!((one.as_deref(), other.as_deref(), bad.as_deref()), (Some("r1"), Some("r2"), None));
        // Work without a request id has no cause, even inside work that has one.
        assert_eq!(caused_by(Some("r1"), look(None)).await, None);
    }

    #[tokio::test]
    async fn a_trace_header_is_passed_on_unchanged_and_its_root_is_the_trace_id() {
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        assert_eq!(traced(Some(header), async { trace_header() }).await.as_deref(), Some(header));
        assert_eq!(traced(Some(&"x".repeat(501)), async { trace_header() }).await, None);
        assert_eq!(trace_header(), None);
        assert_eq!(trace_id(header), Some("1-5759e988-bd862e3fe1be46a994272793"));
        assert_eq!((trace_id("Sampled=1"), trace_id("Root=")), (None, None));
    }
}
