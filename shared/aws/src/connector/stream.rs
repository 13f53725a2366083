//! A connection, encrypted or not, as one type. The generic HTTP code is therefore compiled only
//! once.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

macro_rules! either {
    ($self:ident, $stream:ident => $do:expr) => {
        match $self.get_mut() {
            Self::Plain(stream) => {
                let $stream = Pin::new(stream);
                $do
            }
            Self::Encrypted(stream) => {
                let $stream = Pin::new(&mut **stream);
                $do
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<Result<usize>> {
        either!(self, stream => stream.poll_write(cx, buffer))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, buffers))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}
