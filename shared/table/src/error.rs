//! What can go wrong between a request and its answer.

use std::error::Error;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use key_schema::item::{DecodeError, Item};
use key_schema::request::TooManyActions;

/// A request that has no answer.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The table takes no more at the moment, also after retries. Nothing was done.
    #[error("the table is throttled")]
    Throttled,
    /// Others kept writing the same items until the budget for retries was used up. Nothing was done.
    #[error("the items are contended")]
    Contended,
    /// No response in time, or one that cannot be used: a write may or may not have happened. With
    /// the kind of the cause, and nothing of the items.
    #[error("the table gave no usable response: {0}")]
    Unavailable(String),
    /// DynamoDB refuses the request as such: a defect of this program or of the deployment.
    #[error("the table refused the request: {0}")]
    Rejected(String),
    /// What came back is not what the schema says.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Refused before it was sent.
    #[error(transparent)]
    TooManyActions(#[from] TooManyActions),
    /// Not everything could be read inside the budget for retries.
    #[error("{0} items were left unprocessed")]
    Unprocessed(usize),
}

/// A single write that did not happen, or may not have.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Its condition did not hold; the item as it was, if there was one.
    #[error("the condition of the write does not hold")]
    Refused(Option<Box<Item>>),
    /// Everything else.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// One action of a transaction whose condition did not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal<L> {
    /// What the caller called the action.
    pub label: L,
    /// The item as it was, if there was one.
    pub item: Option<Box<Item>>,
}

/// A transaction that did not happen, or may not have.
#[derive(Debug, thiserror::Error)]
pub enum TransactError<L> {
    /// At least one condition did not hold; nothing was done. In the order of the actions.
    #[error("{} conditions of the transaction do not hold", .0.len())]
    Refused(Vec<Refusal<L>>),
    /// Everything else.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The error codes by which DynamoDB says "later".
const THROTTLES: [&str; 4] =
    ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "ThrottlingError"];
/// The error codes by which DynamoDB says that another transaction holds an item.
const CONFLICTS: [&str; 3] =
    ["TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException"];

/// Sorts a failed call. Conditions were looked at before.
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

/// How many causes are looked through: more than the SDK nests.
const MAX_CAUSES: usize = 16;

/// What a chain of causes ends with. The SDK's parsers and connectors put nothing of a body into
/// their messages but a character and its place.
fn last_cause<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.take(MAX_CAUSES).last().map(ToString::to_string).unwrap_or_default()
}
