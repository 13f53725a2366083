//! Remembers which request caused which invocation, for the routes that show the table's calls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use runtime_api::Trace;

/// Maximum number of requests that are remembered. Each causes at least one call of the table, and
/// the system keeps fewer calls.
const MAX_CAUSES: usize = 4000;

/// A request to the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The id of the request, as in the header `apigw-requestid`.
    pub request_id: String,
    /// The route key, such as `GET /v1/products/{id}`.
    pub route: Arc<str>,
}

/// The newest requests, by the trace of the invocation that they caused. Clones share the requests.
#[derive(Debug, Clone, Default)]
pub struct Causes(Arc<Mutex<Newest>>);

#[derive(Debug, Default)]
struct Newest {
    by_trace: HashMap<String, Cause>,
    order: VecDeque<String>,
}

impl Causes {
    pub(super) fn note(&self, trace: &Trace, request_id: &str, route: String) {
        let cause = Cause { request_id: request_id.to_owned(), route: route.into() };
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        newest.by_trace.insert(trace.id().to_owned(), cause);
        newest.order.push_back(trace.id().to_owned());
        if newest.order.len() > MAX_CAUSES
            && let Some(oldest) = newest.order.pop_front()
        {
            newest.by_trace.remove(&oldest);
        }
    }

    /// Returns the request that caused the invocation with this trace id. Returns `None` if no
    /// request caused it, or if the request is too old.
    #[must_use]
    pub fn of(&self, trace_id: &str) -> Option<Cause> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_trace.get(trace_id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_requests_are_found_by_their_trace() {
        let causes = Causes::default();
        let traces: Vec<Trace> = (0..=MAX_CAUSES).map(|_| Trace::begin()).collect();
        for (number, trace) in traces.iter().enumerate() {
            causes.note(trace, &number.to_string(), "GET /v1/products".to_owned());
        }
        let found = |trace: Option<&Trace>| causes.of(trace?.id()).map(|cause| cause.request_id);
        assert_eq!((found(traces.first()), found(traces.last())), (None, Some(MAX_CAUSES.to_string())));
    }
}
