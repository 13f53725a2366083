use key_schema::item::{DecodeError, EncodeError};
use key_schema::key::KeyError;
use search_index::SearchError;
use storage::objects::ObjectError;
use table::TableError;

#[derive(Debug, thiserror::Error)]
pub enum OpsError {
    /// The command cannot run as given, for example because of an invalid argument or environment
    /// variable.
    #[error("{0}")]
    Usage(String),
    /// A service does not answer, or cannot process the request now.
    #[error("{what} cannot be reached: {reason}")]
    Unreachable {
        /// The service: the table, the engine, a bucket or the local system.
        what: &'static str,
        reason: String,
    },
    /// A service refused a request or sent an unexpected response, or stored data is invalid.
    #[error("{0}")]
    Failed(String),
}

impl OpsError {
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable { .. } => 3,
        }
    }

    /// Creates an error that a retry cannot fix.
    pub(crate) fn failed(error: impl ToString) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<TableError> for OpsError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Unavailable(reason) => Self::Unreachable { what: "the table", reason },
            TableError::Throttled | TableError::Contended | TableError::Unprocessed(_) => {
                Self::Unreachable { what: "the table", reason: error.to_string() }
            }
            TableError::Decode(error) => error.into(),
            other => Self::failed(other),
        }
    }
}

impl From<SearchError> for OpsError {
    fn from(error: SearchError) -> Self {
        if error.is_retryable() {
            return Self::Unreachable { what: "the search engine", reason: error.to_string() };
        }
        Self::failed(error)
    }
}

impl From<ObjectError> for OpsError {
    fn from(error: ObjectError) -> Self {
        if error.is_retryable() {
            return Self::Unreachable { what: "the bucket", reason: error.to_string() };
        }
        if matches!(error, ObjectError::Name(_)) {
            return Self::Usage(error.to_string());
        }
        Self::failed(error)
    }
}

impl From<aws::CloudWatchError> for OpsError {
    fn from(error: aws::CloudWatchError) -> Self {
        match error {
            aws::CloudWatchError::Unavailable(reason) => Self::Unreachable { what: "CloudWatch", reason },
            refused @ aws::CloudWatchError::Refused(_) => Self::failed(refused),
        }
    }
}

impl From<aws::SetupError> for OpsError {
    fn from(error: aws::SetupError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<search_index::ConfigError> for OpsError {
    fn from(error: search_index::ConfigError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<DecodeError> for OpsError {
    fn from(error: DecodeError) -> Self {
        Self::failed(error)
    }
}

impl From<EncodeError> for OpsError {
    fn from(error: EncodeError) -> Self {
        Self::failed(error)
    }
}

impl From<KeyError> for OpsError {
    fn from(error: KeyError) -> Self {
        Self::failed(error)
    }
}
