use std::fmt;

use serde_json::{Value as Json, json};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    #[error("there is no function {0}")]
    UnknownFunction(String),
    /// The payload is larger than [`crate::MAX_PAYLOAD`].
    #[error("a payload of {0} bytes is too large for an invocation")]
    PayloadTooLarge(usize),
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The caller's deadline passed. The function may still be running.
    #[error("no answer came before the deadline")]
    Deadline,
    /// A [`crate::FaultKind::Throttle`] hit the invocation. The function was not invoked.
    #[error("the function is throttled")]
    Throttled,
    #[error("the functions are shutting down")]
    Stopped,
}

/// An error that Lambda returns with `X-Amz-Function-Error`: a type, such as `Runtime.ExitError`,
/// and a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionError {
    /// `errorType`: set by the function, or one of Lambda's types such as `Sandbox.Timedout`.
    pub error_type: String,
    pub message: String,
}

impl std::error::Error for FunctionError {}

impl fmt::Display for FunctionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.error_type, self.message)
    }
}

impl FunctionError {
    /// Returns the error as the body of Lambda's response.
    #[must_use]
    pub fn to_json(&self) -> Json {
        json!({"errorType": self.error_type, "errorMessage": self.message})
    }

    pub(crate) fn new(error_type: &str, message: impl Into<String>) -> Self {
        Self { error_type: error_type.to_owned(), message: message.into() }
    }

    /// If the body does not have the documented form, the message is the whole body.
    pub(crate) fn from_runtime(body: &[u8]) -> Self {
        let json: Json = serde_json::from_slice(body).unwrap_or_default();
        let text = |key: &str| json.get(key).and_then(Json::as_str).map(str::to_owned);
        Self {
            error_type: text("errorType").unwrap_or_else(|| "Unhandled".to_owned()),
            message: text("errorMessage").unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()),
        }
    }
}
