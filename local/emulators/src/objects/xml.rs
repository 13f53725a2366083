use std::fmt::Write;

use bytes::Bytes;
use hyper::http::HeaderValue;
use hyper::{StatusCode, header};

use crate::endpoint::{Answer, plain};

/// A piece of a document. Converting a text into a piece escapes it.
pub(super) struct Piece(String);

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '&' => escaped.push_str("&amp;"),
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                '"' => escaped.push_str("&quot;"),
                c if c.is_control() => drop(write!(escaped, "&#x{:X};", u32::from(c))),
                c => escaped.push(c),
            }
        }
        Self(escaped)
    }
}

pub(super) fn element(name: &str, content: &[Piece]) -> Piece {
    let content: String = content.iter().map(|piece| piece.0.as_str()).collect();
    Piece(format!("<{name}>{content}</{name}>"))
}

pub(super) fn xml_answer(status: StatusCode, body: &Piece) -> Answer {
    let mut answer = plain(status);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    *answer.body_mut() = Bytes::from(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", body.0)).into();
    answer
}
