//! Converts errors of the lower layers to problems, so that handlers can return them with `?`.
//! Failed conditions are not converted here, because only the handler knows what they mean.

use key_schema::item::EncodeError;
#[cfg(feature = "table")]
use key_schema::item::{DecodeError, Entity as _};
use key_schema::key::KeyError;
#[cfg(feature = "table")]
use key_schema::product::{Product, Stock};

use crate::problem::{Code, Problem};

impl From<KeyError> for Problem {
    /// Each id was valid when the request was read. But a key joins several escaped ids, so it may
    /// exceed DynamoDB's size limit.
    fn from(error: KeyError) -> Self {
        Self::new(Code::InvalidId, "The ids are too long in total.").because(error)
    }
}

impl From<EncodeError> for Problem {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Key(error) => error.into(),
            EncodeError::TooLarge(_) | EncodeError::Overflow => {
                Self::new(Code::BodyTooLarge, "The data is too large to store.").because(error)
            }
            EncodeError::Value(_) => Self::internal(error),
        }
    }
}

#[cfg(feature = "table")]
impl From<table::TableError> for Problem {
    fn from(error: table::TableError) -> Self {
        use table::TableError::{
            Contended, Decode, NoTable, OverBudget, Rejected, Throttled, TooManyActions, Unavailable, Unprocessed,
        };
        match error {
            // A retry may succeed, or do the remaining part of the work.
            Throttled | Contended | Unprocessed(_) => Self::throttled(error),
            OverBudget => Self::throttled(error).retry_after(1),
            Unavailable(_) => Self::unavailable(error),
            Decode(DecodeError::Malformed { ref entity, .. }) if entity == Stock::NAME || entity == Product::NAME => {
                Self::stock_unavailable(error)
            }
            Rejected(_) | NoTable(_) | Decode(_) | TooManyActions(_) => Self::internal(error),
        }
    }
}

#[cfg(feature = "table")]
impl Problem {
    /// Returns a 500 for refusals that the handler considers impossible.
    #[must_use]
    pub fn unexpected<A: std::fmt::Debug>(refusals: &table::Refusals<A>) -> Self {
        Self::internal(format!("unexpected refusal of {:?}", refusals.first().map(|refusal| &refusal.action)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_or_an_item_over_the_limits_is_an_error_of_the_client() {
        let too_long = || KeyError::TooLong { bytes: 2000, limit: 1024 };
        assert_eq!(Problem::from(too_long()).code(), Code::InvalidId);
        assert_eq!(Problem::from(EncodeError::Key(too_long())).code(), Code::InvalidId);
        assert_eq!(Problem::from(EncodeError::TooLarge(500_000)).code(), Code::BodyTooLarge);
    }

    #[cfg(feature = "table")]
    #[test]
    fn a_transient_failure_is_a_503_and_a_defect_is_a_500() {
        use table::TableError;
        for (error, code) in [
            (TableError::Throttled, Code::Throttled),
            (TableError::Contended, Code::Throttled),
            (TableError::Unprocessed(3), Code::Throttled),
            (TableError::OverBudget, Code::Throttled),
            (TableError::Unavailable("timeout".to_owned()), Code::Unavailable),
            (TableError::Rejected("ValidationException".to_owned()), Code::Internal),
        ] {
            assert_eq!(Problem::from(error).code(), code);
        }
    }
}
