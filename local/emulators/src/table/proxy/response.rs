use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::http::HeaderMap;
use hyper::{Response, header};

use super::operation::Operation;
use super::{Body, HangUp, MAX_BODY, answer, body, keys};
use crate::endpoint::cut;
use crate::faults::Hit;

/// Returns the response of a conflict. In a transaction it is at an action with the rule's key, or else
/// at any action. `partition` is the name of the partition key attribute, if it is known.
pub(super) fn conflict(
    operation: Operation,
    body: &[u8],
    strike: &Hit,
    partition: Option<&str>,
) -> Response<Full<Bytes>> {
    let Operation::Transact { actions } = operation else {
        return answer::conflict();
    };
    // If the body cannot be parsed, the response has one reason. The table would reject the request
    // anyway.
    let at_key = || keys::position(actions, body, partition?, strike.key.as_deref()?);
    let count = body::count_actions(actions, body).unwrap_or(1).max(1);
    let culprit = at_key().unwrap_or_else(|| usize::try_from(strike.chance).unwrap_or_default() % count);
    answer::cancelled(count, culprit, answer::CONFLICT)
}

/// Replaces the body of a successful response with the result of `change`. If `change` returns
/// `None`, or the response is an error, the body is unchanged.
pub(super) async fn rewritten(response: Response<Body>, change: impl FnOnce(&[u8]) -> Option<Bytes>) -> Response<Body> {
    if !response.status().is_success() {
        return response;
    }
    let (head, body) = response.into_parts();
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => changed(head, body.to_bytes(), change),
        Err(_) => own(answer::unavailable()),
    }
}

pub(super) fn changed(
    mut head: hyper::http::response::Parts,
    body: Bytes,
    change: impl FnOnce(&[u8]) -> Option<Bytes>,
) -> Response<Body> {
    let body = match change(&body) {
        Some(changed) => {
            forget_sums(&mut head.headers);
            changed
        }
        None => body,
    };
    Response::from_parts(head, Either::Right(Either::Left(Full::new(body))))
}

/// Removes the headers that describe the body's bytes.
fn forget_sums(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_LENGTH);
    headers.remove("x-amz-crc32");
}

pub(super) fn own(response: Response<Full<Bytes>>) -> Response<Body> {
    response.map(|body| Either::Right(Either::Left(body)))
}

/// If the response cannot be halved, the error closes the connection.
pub(super) async fn truncated(response: Response<Body>) -> Result<Response<Body>, HangUp> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_| HangUp)?.to_bytes();
    let half = cut(Response::from_parts(head, ()), &body).ok_or(HangUp)?;
    Ok(half.map(|body| Either::Right(Either::Right(body))))
}
