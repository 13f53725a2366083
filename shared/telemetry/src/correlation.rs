//! What caused the work that is going on: the id of the request behind it, and the trace that it belongs to.
//!
//! Both travel with the task: whoever takes a request or a record says so once, around all that he does for it, and whoever writes or publishes on its
//! behalf asks here. So no signature between the two has to carry them. What is spawned does not inherit them; nothing that is deployed spawns.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

/// The most characters of an id. API Gateway's have 16, Lambda's 36.
pub const MAX_ID: usize = 64;
/// The most ids that one line names. In a larger batch, what failed has a line of its own.
pub const MAX_NAMED: usize = 20;
/// The most characters of a trace header that EventBridge takes (API reference, `PutEventsRequestEntry`).
const MAX_TRACE_HEADER: usize = 500;

tokio::task_local! {
    static CAUSE: Option<Arc<str>>;
    static TRACE: Option<Arc<str>>;
}

/// The id of a request as it may be written and logged: 1 to 64 printable ASCII characters without spaces. Anything else is no id.
#[must_use]
pub fn id(text: &str) -> Option<&str> {
    Some(text).filter(|text| (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()))
}

/// The requests behind the work of one invocation, for its line: each once, the first of them by name, and how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids {
    named: Vec<String>,
    count: usize,
}

impl Ids {
    /// The first, at most [`MAX_NAMED`].
    #[must_use]
    pub fn named(&self) -> &[String] {
        &self.named
    }

    /// How many there are.
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

/// Works on behalf of a request. Without an id, or with one that is none, the work has no cause, whatever it is done inside of.
pub async fn caused_by<F: Future>(cause: Option<&str>, work: F) -> F::Output {
    CAUSE.scope(cause.and_then(id).map(Arc::from), work).await
}

/// The id of the request that the current work is done for.
#[must_use]
pub fn cause() -> Option<Arc<str>> {
    CAUSE.try_with(Clone::clone).ok().flatten()
}

/// Works inside a trace, whose header is that of the invocation (`Root=1-…;Parent=…;Sampled=1`).
pub async fn traced<F: Future>(header: Option<&str>, work: F) -> F::Output {
    let fit = |header: &&str| (1..=MAX_TRACE_HEADER).contains(&header.len());
    TRACE.scope(header.filter(fit).map(Arc::from), work).await
}

/// The header of the trace that the current work belongs to.
#[must_use]
pub fn trace_header() -> Option<Arc<str>> {
    TRACE.try_with(Clone::clone).ok().flatten()
}

/// The id of a trace: the root of its header.
#[must_use]
pub fn trace_id(header: &str) -> Option<&str> {
    header.split(';').find_map(|part| part.trim().strip_prefix("Root=")).filter(|root| !root.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn an_id_is_short_and_printable_or_none() {
        for good in ["JKJaXmPLvHcESHA=", "3f2c7a4e-0000-4000-8000-0123456789ab", &"x".repeat(MAX_ID)] {
            assert_eq!(id(good), Some(good));
        }
        for bad in ["", "a b", "a\nb", "ä", &"x".repeat(MAX_ID + 1)] {
            assert_eq!(id(bad), None);
        }
    }

    #[test]
    fn a_line_names_each_request_once_and_not_too_many() {
        let few: Ids = ["r2", "r1", "r2"].into_iter().collect();
        assert_eq!((few.named(), few.count()), (["r2".to_owned(), "r1".to_owned()].as_slice(), 2));
        let ids: Vec<String> = (0..50).map(|number| format!("r{number}")).collect();
        let many: Ids = ids.iter().map(String::as_str).collect();
        assert_eq!((many.named(), many.count()), (&ids[..MAX_NAMED], 50));
    }

    #[tokio::test]
    async fn work_knows_its_cause_and_work_beside_it_another() {
        assert_eq!(cause(), None);
        let look = |own: Option<&'static str>| {
            caused_by(own, async {
                tokio::task::yield_now().await;
                cause()
            })
        };
        let (one, other, bad) = tokio::join!(look(Some("r1")), look(Some("r2")), look(Some("no id")));
        assert_eq!((one.as_deref(), other.as_deref(), bad.as_deref()), (Some("r1"), Some("r2"), None));
        // What has no cause of its own does not take that of what it is done inside of.
        assert_eq!(caused_by(Some("r1"), look(None)).await, None);
    }

    #[tokio::test]
    async fn a_trace_is_handed_on_whole_and_named_by_its_root() {
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        assert_eq!(traced(Some(header), async { trace_header() }).await.as_deref(), Some(header));
        assert_eq!(traced(Some(&"x".repeat(501)), async { trace_header() }).await, None);
        assert_eq!(trace_header(), None);
        assert_eq!(trace_id(header), Some("1-5759e988-bd862e3fe1be46a994272793"));
        assert_eq!((trace_id("Sampled=1"), trace_id("Root=")), (None, None));
    }
}
