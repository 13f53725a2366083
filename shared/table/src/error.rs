use std::error::Error;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use item_model::item::DecodeError;
use item_model::request::TooManyActions;

use crate::throttling;

/// A reason why a request has no usable response.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The table is at its capacity limit, even after retries. Nothing was done.
    #[error("the table is throttled")]
    Throttled,
    /// Other writers kept changing the same items until the retry budget was used up. Nothing was
    /// done.
    #[error("other writers keep changing the same items")]
    Contended,
    /// There was no usable response in time, so a write may or may not have happened. The text
    /// names the kind of cause and never contains item data.
    #[error("the table gave no usable response: {0}")]
    Unavailable(String),
    /// DynamoDB refuses the request itself: a defect of this program or of the deployment.
    #[error("the table refused the request: {0}")]
    Rejected(String),
    /// The table of a period does not exist ([`Periods`](crate::Periods)). Nothing was done.
    #[error("the table {0} does not exist")]
    NoTable(String),
    /// An item does not match the schema. Functions log the message.
    #[error("{}", .0.for_log())]
    Decode(DecodeError),
    /// The transaction has too many actions, so it was not sent.
    #[error(transparent)]
    TooManyActions(#[from] TooManyActions),
    /// Some items could not be read or written within the retry budget.
    #[error("{0} items were left unprocessed")]
    Unprocessed(usize),
    /// The request has spent its [`Budget`](crate::Budget). The client repeats the request to
    /// continue the work.
    #[error("the work needs more than one request: repeat the request to continue")]
    OverBudget,
}

impl From<DecodeError> for TableError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

const THROTTLES: [&str; 4] =
    ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "ThrottlingError"];
/// The error codes of a conflict with another transaction on an item.
const CONFLICTS: [&str; 3] =
    ["TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException"];

/// Classifies a failed call. Callers look for a failed condition themselves.
pub(crate) fn classify<E>(error: &SdkError<E, HttpResponse>) -> TableError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ServiceError(service) => {
            let status = service.raw().status();
            let Some(code) = service.err().code() else {
                return TableError::Unavailable(match status.is_success() {
                    true => format!("status 200 with a body that cannot be read ({})", last_cause(error)),
                    false => format!("status {} without an error code", status.as_u16()),
                });
            };
            if THROTTLES.contains(&code) {
                throttling::report(code, service.raw().body().bytes().unwrap_or_default());
                TableError::Throttled
            } else if CONFLICTS.contains(&code) {
                TableError::Contended
            } else if code == "InternalServerError" || code == "ServiceUnavailable" {
                TableError::Unavailable(code.to_owned())
            } else {
                TableError::Rejected(format!("{code}: {}", service.err().message().unwrap_or_default()))
            }
        }
        SdkError::ConstructionFailure(_) => TableError::Rejected("the request could not be built".to_owned()),
        SdkError::TimeoutError(_) => TableError::Unavailable("timeout".to_owned()),
        SdkError::DispatchFailure(failure) => {
            let kind = if failure.is_timeout() {
                "timeout"
            } else if failure.is_io() {
                "connection"
            } else {
                "request not sent"
            };
            TableError::Unavailable(format!("{kind} ({})", last_cause(error)))
        }
        _ => TableError::Unavailable(format!("the response broke off ({})", last_cause(error))),
    }
}

/// The maximum number of causes that are followed. The SDK nests fewer causes.
const MAX_CAUSES: usize = 16;

/// Returns the last error in the chain of causes. Its message reveals no item data: the messages of
/// the SDK's parsers and connectors contain at most one character of a body, and its position.
fn last_cause<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.take(MAX_CAUSES).last().map(ToString::to_string).unwrap_or_default()
}
