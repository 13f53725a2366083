//! A response's body. Reading it to the end returns the connection to the pool.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::pool::PooledConnection;

/// A response's body.
///
/// Dropping it before its end closes the connection. Otherwise the next response on the connection
/// would begin with the unread rest.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Incoming,
    connection: Option<PooledConnection>,
}

impl Answer {
    pub(super) fn new(body: Incoming, connection: Option<PooledConnection>) -> Self {
        let mut answer = Self { body, connection };
        answer.end_if_read();
        answer
    }

    fn end_if_read(&mut self) {
        if self.body.is_end_stream()
            && let Some(connection) = self.connection.take()
        {
            connection.release();
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(_)) => self.end_if_read(),
            Some(Err(_)) => self.connection = None,
            None => {
                if let Some(connection) = self.connection.take() {
                    connection.release();
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
