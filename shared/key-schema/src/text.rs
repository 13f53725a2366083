//! Unique names, and the comparison of their spellings.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::id;

/// Normalises a text with NFKC and full case folding, repeated until stable, as Unicode's
/// NFKC_Casefold requires. It makes `Straße` equal to `STRASSE`, `ﬁ` to `fi`, and full-width
/// letters to plain ones.
#[must_use]
pub fn fold(text: &str) -> String {
    // A fast path: most names are ASCII, and every read of a customer folds two names.
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let folded: String = text.nfkc().collect();
    let folded: String = caseless::default_case_fold_str(&folded).nfkc().collect();
    caseless::default_case_fold_str(&folded).nfkc().collect()
}

/// The reason why a text is not an email address or user name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text has no local part, no domain, more than one `@`, white space or a control
    /// character, or over 254 bytes.
    #[error("must be an email address of at most 254 bytes")]
    Email,
    /// The text breaks the rule of ids, which user names share.
    #[error(transparent)]
    Id(#[from] id::IdError),
    /// The text has only white space or similar characters.
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
            /// Returns the text as the customer wrote it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the text as [`fold`] normalises it, for comparisons.
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
    /// An email address. It keeps the text that the customer wrote. Uniqueness and lookup use
    /// [`fold`].
    Email
    /// A public user name, compared like an email address.
    Username
}

impl FromStr for Email {
    type Err = NameError;

    /// Accepts one `@` with text on both sides, no white space and no control character. The limit
    /// is 254 bytes (RFC 5321), before and after folding. The mail server decides about all other
    /// rules.
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
        // Folding may lengthen a text (one ligature becomes up to 18 characters). The key must hold
        // the result.
        if folded.len() > 4 * id::MAX_ID_BYTES {
            return Err(NameError::Id(id::IdError::TooLong));
        }
        Ok(Self(text.to_owned()))
    }
}
