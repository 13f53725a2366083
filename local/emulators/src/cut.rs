use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::http::HeaderValue;
use hyper::{Response, header};

/// The first half of a body. The server closes the connection after this half.
#[derive(Debug)]
pub(crate) struct Cut {
    half: Option<Bytes>,
    is_sent: bool,
}

/// Returns the response with half of its body, and headers that announce the whole body. Returns
/// `None` for a body that cannot be halved.
pub(crate) fn cut<B>(answer: Response<B>, body: &Bytes) -> Option<Response<Cut>> {
    let half = body.len().checked_div(2).filter(|half| *half > 0)?;
    let (mut head, _) = answer.into_parts();
    head.headers.remove(header::TRANSFER_ENCODING);
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    Some(Response::from_parts(head, Cut::after(body.slice(..half))))
}

impl Cut {
    /// Creates a body of these bytes, after which the connection closes.
    pub(crate) const fn after(half: Bytes) -> Self {
        Self { half: Some(half), is_sent: false }
    }
}

impl Body for Cut {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(half) = self.half.take() {
            return Poll::Ready(Some(Ok(Frame::data(half))));
        }
        // The server sends the buffered bytes only when the body is pending, so the body is pending
        // once.
        if !std::mem::replace(&mut self.is_sent, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
    }
}
