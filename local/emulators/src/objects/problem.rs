use std::fmt::Write;

use bytes::Bytes;
use hyper::http::HeaderValue;
use hyper::{StatusCode, header};

use super::Error;
use crate::endpoint::{Answer, plain};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: &'static str,
}

impl Problem {
    const fn new(status: StatusCode, code: &'static str, message: &'static str) -> Self {
        Self { status, code, message }
    }

    pub(super) const fn no_bucket() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NoSuchBucket", "The specified bucket does not exist")
    }

    pub(super) const fn no_key() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NoSuchKey", "The specified key does not exist.")
    }

    pub(super) const fn precondition() -> Self {
        let message = "At least one of the pre-conditions you specified did not hold";
        Self::new(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", message)
    }

    pub(super) const fn conflict() -> Self {
        let message = "The conditional request cannot succeed due to a conflicting operation against this resource.";
        Self::new(StatusCode::CONFLICT, "ConditionalRequestConflict", message)
    }

    pub(super) const fn denied() -> Self {
        Self::new(StatusCode::FORBIDDEN, "AccessDenied", "Access Denied")
    }

    pub(super) const fn no_origin() -> Self {
        let message = "Insufficient information. Origin request header needed.";
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// No CORS rule allows the request of the web page. `has_rules` says whether the bucket has
    /// rules. The misspelling `evalution` is S3's.
    pub(super) const fn cors(has_rules: bool) -> Self {
        let message = if has_rules {
            "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request \
             method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the \
             resource's CORS spec."
        } else {
            "CORSResponse: CORS is not enabled for this bucket."
        };
        Self::new(StatusCode::FORBIDDEN, "AccessForbidden", message)
    }

    pub(super) const fn query() -> Self {
        let message = "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, \
                       X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.";
        Self::new(StatusCode::BAD_REQUEST, "AuthorizationQueryParametersError", message)
    }

    pub(super) const fn signature() -> Self {
        let message = "The request signature we calculated does not match the signature you provided. Check your key \
            and signing method.";
        Self::new(StatusCode::FORBIDDEN, "SignatureDoesNotMatch", message)
    }

    pub(super) const fn expired() -> Self {
        Self::new(StatusCode::FORBIDDEN, "AccessDenied", "Request has expired")
    }

    pub(super) const fn early() -> Self {
        Self::new(StatusCode::FORBIDDEN, "AccessDenied", "Request is not valid yet")
    }

    pub(super) const fn unsigned() -> Self {
        let message = "There were headers present in the request which were not signed";
        Self::new(StatusCode::FORBIDDEN, "AccessDenied", message)
    }

    pub(super) const fn throttled() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "SlowDown", "Please reduce your request rate.")
    }

    pub(super) const fn internal() -> Self {
        let message = "We encountered an internal error. Please try again.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    pub(super) const fn uri() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidURI", "Couldn't parse the specified URI.")
    }

    pub(super) const fn long_key() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "KeyTooLongError", "Your key is too long")
    }

    pub(super) const fn argument(message: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidArgument", message)
    }

    pub(super) const fn length() -> Self {
        let message = "You must provide the Content-Length HTTP header.";
        Self::new(StatusCode::LENGTH_REQUIRED, "MissingContentLength", message)
    }

    pub(super) const fn class() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidStorageClass", "The storage class you specified is not valid")
    }

    pub(super) const fn digest() -> Self {
        let message = "The checksum you specified did not match the calculated checksum.";
        Self::new(StatusCode::BAD_REQUEST, "BadDigest", message)
    }

    pub(super) const fn content_hash() -> Self {
        let message = "The provided 'x-amz-content-sha256' header does not match what was computed.";
        Self::new(StatusCode::BAD_REQUEST, "XAmzContentSHA256Mismatch", message)
    }

    /// S3 supports the feature, but this store does not.
    pub(super) const fn unknown(message: &'static str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    pub(super) fn answer(self) -> Answer {
        let body =
            element("Error", &[element("Code", &[self.code.into()]), element("Message", &[self.message.into()])]);
        xml_answer(self.status, &body)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::NoBucket(_) => Self::no_bucket(),
            Error::Name => Self::uri(),
            other => {
                tracing::error!(error = %other, "the object store failed");
                Self::internal()
            }
        }
    }
}

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
