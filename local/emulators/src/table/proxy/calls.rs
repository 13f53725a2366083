//! Keeps the newest calls of items for inspection.
//!
//! A call is copied as it passes, and parsed only when somebody reads it. So the record costs the
//! caller little more than the copy of two bodies.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::http::HeaderMap;

use super::capacity::Consumed;
use super::operation::Operation;
use crate::access;

/// Maximum number of calls that are kept.
const MAX_CALLS: usize = 2000;
/// Maximum size in bytes of all bodies that are kept.
const MAX_BYTES: usize = 16 << 20;
/// Maximum size in bytes of a body that is kept. A cut body could not be parsed, so of a larger body
/// only the size is kept.
const MAX_BODY: usize = 256 << 10;
/// The header with the trace of the invocation in which a function makes a call.
const TRACE: &str = "x-amzn-trace-id";

/// A call that passed the proxy, or that the proxy itself answered.
#[derive(Debug, Clone)]
pub struct Call {
    /// The number of the call, in the order in which the calls ended. It starts at 1.
    pub seq: u64,
    /// The time at which the call began.
    pub at: SystemTime,
    /// The name of the calling function. `None` for a caller that is no function.
    pub function: Option<String>,
    /// The trace header of the function's invocation, such as `Root=1-…;Parent=…;Sampled=0`.
    pub trace: Option<String>,
    /// The name of the operation, such as `GetItem`.
    pub operation: String,
    pub request: CallBody,
    /// The status of the response. `None` if the caller got no response.
    pub status: Option<u16>,
    pub response: CallBody,
    /// The `ConsumedCapacity` of a write, with the units of each index. `None` if the response
    /// itself has what is known.
    pub consumed: Option<Bytes>,
    pub micros: u64,
}

/// The body of a request or a response.
#[derive(Debug, Clone, Default)]
pub struct CallBody {
    /// The bytes. They are empty if the body was larger than 256 KB.
    pub bytes: Bytes,
    /// The size of the whole body.
    pub size: usize,
}

impl CallBody {
    fn of(body: &[u8]) -> Self {
        let kept = if body.len() > MAX_BODY { &[] } else { body };
        // A copy holds no more memory than the body. A slice would hold the connection's buffer.
        Self { bytes: Bytes::copy_from_slice(kept), size: body.len() }
    }

    /// Returns whether only the size of the body is known.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.bytes.len() != self.size
    }
}

/// The newest 2,000 calls, with at most 16 MB of bodies. Clones share the calls.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<Ring>>);

#[derive(Debug, Default)]
struct Ring {
    calls: VecDeque<Arc<Call>>,
    bytes: usize,
    /// The number of the newest call.
    last: u64,
}

impl Calls {
    /// Returns the kept calls after the call with the number `after`, oldest first.
    #[must_use]
    pub fn after(&self, after: u64) -> Vec<Arc<Call>> {
        self.ring().calls.iter().filter(|call| call.seq > after).cloned().collect()
    }

    /// Begins to record a call. Returns `None` for an operation that uses no items.
    pub(super) fn begin(&self, operation: Operation, headers: &HeaderMap, body: &[u8]) -> Option<Recording> {
        if !operation.is_on_items() {
            return None;
        }
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let target = header("x-amz-target").and_then(|target| target.split_once('.'));
        let call = Call {
            seq: 0,
            at: SystemTime::now(),
            function: access::caller(headers).map(str::to_owned),
            trace: header(TRACE).map(str::to_owned),
            operation: target.map(|(_, name)| name.to_owned()).unwrap_or_default(),
            request: CallBody::of(body),
            status: None,
            response: CallBody::default(),
            consumed: None,
            micros: 0,
        };
        Some(Recording { calls: self.clone(), began: Instant::now(), call: Some(call), answer: Vec::new(), size: 0 })
    }

    fn push(&self, mut call: Call) {
        let mut ring = self.ring();
        ring.last += 1;
        call.seq = ring.last;
        ring.bytes += call.size();
        ring.calls.push_back(Arc::new(call));
        while ring.calls.len() > MAX_CALLS || ring.bytes > MAX_BYTES {
            let Some(oldest) = ring.calls.pop_front() else { return };
            ring.bytes -= oldest.size();
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    fn size(&self) -> usize {
        self.request.bytes.len() + self.response.bytes.len() + self.consumed.as_ref().map_or(0, Bytes::len)
    }
}

/// A call in progress. Dropping the value ends the call and keeps it.
#[derive(Debug)]
pub(super) struct Recording {
    calls: Calls,
    began: Instant,
    call: Option<Call>,
    answer: Vec<u8>,
    /// The size of the response's body so far.
    size: usize,
}

impl Recording {
    pub(super) fn answered(&mut self, status: StatusCode, consumed: Option<Consumed>) {
        if let Some(call) = &mut self.call {
            call.status = Some(status.as_u16());
            call.consumed = consumed.map(|Consumed(text)| text);
        }
    }

    fn see(&mut self, part: &[u8]) {
        self.size += part.len();
        if self.size <= MAX_BODY {
            self.answer.extend_from_slice(part);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Some(mut call) = self.call.take() else { return };
        call.micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let kept = if self.size > MAX_BODY { Vec::new() } else { std::mem::take(&mut self.answer) };
        call.response = CallBody { bytes: kept.into(), size: self.size };
        self.calls.push(call);
    }
}

/// A response's body that is recorded while it is sent.
#[derive(Debug)]
pub(super) struct Recorded<B> {
    body: B,
    recording: Option<Recording>,
}

impl<B> Recorded<B> {
    pub(super) const fn new(body: B, recording: Option<Recording>) -> Self {
        Self { body, recording }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Recorded<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(Ok(frame))), Some(recording)) = (&polled, &mut self.recording)
            && let Some(part) = frame.data_ref()
        {
            recording.see(part);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use hyper::http::HeaderValue;

    use super::*;

    fn record(calls: &Calls, request: &[u8], answer: &[u8]) {
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-target", HeaderValue::from_static("DynamoDB_20120810.PutItem"));
        let mut recording = calls.begin(Operation::Write, &headers, request).unwrap();
        recording.answered(StatusCode::OK, None);
        recording.see(answer);
    }

    #[test]
    fn the_newest_calls_are_kept_and_the_size_of_all_bodies_is_limited() {
        let calls = Calls::default();
        for _ in 0..MAX_CALLS + 5 {
            record(&calls, b"{}", b"[]");
        }
        let kept = calls.after(0);
        assert_eq!((kept.len(), kept[0].seq, kept[0].status), (MAX_CALLS, 6, Some(200)));
        assert_eq!(
            (&*kept[0].request.bytes, &*kept[0].response.bytes, &*kept[0].operation),
            (&b"{}"[..], &b"[]"[..], "PutItem")
        );
        assert_eq!(calls.after(u64::try_from(MAX_CALLS).unwrap()).len(), 5);
        let large = vec![b' '; MAX_BODY];
        (0..100).for_each(|_| record(&calls, &large, &large));
        assert_eq!(calls.after(0).len(), MAX_BYTES / (2 * MAX_BODY));
    }

    #[test]
    fn of_a_large_body_only_the_size_is_kept() {
        let calls = Calls::default();
        let large = vec![b' '; MAX_BODY + 1];
        record(&calls, &large, &large);
        let call = calls.after(0).remove(0);
        for body in [&call.request, &call.response] {
            assert_eq!((body.bytes.len(), body.size, body.is_cut()), (0, MAX_BODY + 1, true));
        }
    }
}
