//! Limits the number of stream records per request to the engine.
//!
//! DynamoDB ends a page of records at 1 MB. The engine ends a page at 1,000 records, which may have
//! 800 MB. So the proxy requests fewer and fewer records until they fit in 1 MB, and remembers that
//! number.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::{Map, Value};

/// Maximum size in bytes of a page, unless it has only one record.
pub(super) const MAX_PAGE: usize = 1 << 20;
/// The first number to request. It is small, because the proxy drops a page that is too large.
const FIRST: u64 = 128;
/// DynamoDB's maximum and default number of records.
const MOST: u64 = 1000;
/// Minimum size of a record in bytes. A page that is smaller than this times the requested number
/// has fewer records than requested.
const SMALLEST_RECORD: u64 = 256;

/// The number of records that the proxy requests next.
pub(super) struct Pages(AtomicU64);

impl Default for Pages {
    fn default() -> Self {
        Self(AtomicU64::new(FIRST))
    }
}

impl Pages {
    /// Returns the number to request if the client wants `wanted` records.
    pub(super) fn limit(&self, wanted: u64) -> u64 {
        self.0.load(Ordering::Relaxed).min(wanted).max(1)
    }

    /// Remembers that `limit` records did not fit. Returns the next number to try.
    pub(super) fn too_many(&self, limit: u64) -> u64 {
        let fewer = (limit / 2).max(1);
        self.0.store(fewer, Ordering::Relaxed);
        fewer
    }

    /// Adapts the next limit after a request for `limit` records that returned `size` bytes. If the
    /// page had all of these records in at most a quarter of the space, the next limit is doubled.
    pub(super) fn fitted(&self, limit: u64, size: usize) {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let room = u64::try_from(MAX_PAGE / 4).unwrap_or(u64::MAX);
        if size >= limit.saturating_mul(SMALLEST_RECORD) && size <= room {
            self.0.fetch_max(limit.saturating_mul(2).min(MOST), Ordering::Relaxed);
        }
    }
}

pub(super) struct Request {
    body: Map<String, Value>,
    pub(super) wanted: u64,
}

impl Request {
    /// Parses a request. Returns `None` for an invalid request, which the table itself rejects.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let body: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let wanted = match body.get("Limit") {
            None | Some(Value::Null) => MOST,
            Some(limit) => limit.as_u64().filter(|limit| (1..=MOST).contains(limit))?,
        };
        Some(Self { body, wanted })
    }

    /// Returns the request's body for at most `limit` records.
    pub(super) fn with(&mut self, limit: u64) -> Bytes {
        self.body.insert("Limit".to_owned(), limit.into());
        Bytes::from(serde_json::to_vec(&self.body).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_limit_shrinks_until_a_page_fits_and_grows_if_all_records_take_little_space() {
        let pages = Pages::default();
        assert_eq!((pages.limit(1000), pages.limit(5)), (128, 5));
        assert_eq!((pages.too_many(128), pages.too_many(64), pages.too_many(1)), (64, 32, 1));
        assert_eq!(pages.limit(1000), 1);
        pages.fitted(1, 100);
        assert_eq!(pages.limit(1000), 1, "a page with fewer records than requested does not raise the limit");
        pages.fitted(1, MAX_PAGE);
        assert_eq!(pages.limit(1000), 1);
        (0..20).for_each(|_| pages.fitted(pages.limit(1000), 256_000));
        assert_eq!(pages.limit(1000), 1000);
    }

    #[test]
    fn a_request_with_an_invalid_limit_is_left_to_the_table() {
        for (body, wanted) in [
            (r#"{"ShardIterator":"i"}"#, Some(1000)),
            (r#"{"Limit":7}"#, Some(7)),
            (r#"{"Limit":0}"#, None),
            (r#"{"Limit":1001}"#, None),
            (r#"{"Limit":"7"}"#, None),
            ("[]", None),
        ] {
            assert_eq!(Request::read(body.as_bytes()).map(|request| request.wanted), wanted, "{body}");
        }
        let mut request = Request::read(br#"{"ShardIterator":"i","Limit":9}"#).unwrap();
        let sent: Value = serde_json::from_slice(&request.with(3)).unwrap();
        assert_eq!(sent, json!({"ShardIterator": "i", "Limit": 3}));
    }
}
