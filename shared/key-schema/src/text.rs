//! Names that must be unique, and how two spellings of one name are recognised.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::id;

/// NFKC and full case folding, repeated until stable as Unicode's NFKC_Casefold asks: `Straße` and `STRASSE`,
/// `ﬁ` and `fi`, full-width and plain letters are one.
#[must_use]
pub fn fold(text: &str) -> String {
    // Most names are, and every read of a customer folds two.
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let folded: String = text.nfkc().collect();
    let folded: String = caseless::default_case_fold_str(&folded).nfkc().collect();
    caseless::default_case_fold_str(&folded).nfkc().collect()
}

/// Why a text is not an email address or user name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No local part, no domain, more than one `@`, white space or a control character, or over 254 bytes.
    #[error("must be an email address of at most 254 bytes")]
    Email,
    /// The rule of ids, which user names share.
    #[error(transparent)]
    Id(#[from] id::IdError),
    /// Only white space and similar.
    #[error("must contain a visible character")]
    Blank,
}

macro_rules! folded {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// As the customer wrote it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// As it is compared: see [`fold`].
            #[must_use]
            pub fn folded(&self) -> String {
                fold(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }
    )*};
}

folded! {
    /// An email address. The text that the customer wrote is kept; uniqueness and lookup use [`fold`].
    Email
    /// A public user name, compared like an email address.
    Username
}

impl FromStr for Email {
    type Err = NameError;

    /// One `@` with something on both sides, no white space, no control character, at most 254 bytes
    /// (RFC 5321) before and after folding. What else an address may be, its mail server decides.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let plausible = |text: &str| {
            text.len() <= 254
                && !text.chars().any(|c| c.is_control() || c.is_whitespace())
                && matches!(text.split_once('@'), Some((local, domain))
                    if !local.is_empty() && !domain.is_empty() && !domain.contains('@'))
        };
        if plausible(text) && plausible(&fold(text)) { Ok(Self(text.to_owned())) } else { Err(NameError::Email) }
    }
}

impl FromStr for Username {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        id::check(text)?;
        let folded = fold(text);
        if folded.trim().is_empty() {
            return Err(NameError::Blank);
        }
        // Folding may lengthen a text (one ligature becomes up to 18 characters); the key must hold it.
        if folded.len() > 4 * id::MAX_ID_BYTES {
            return Err(NameError::Id(id::IdError::TooLong));
        }
        Ok(Self(text.to_owned()))
    }
}
