//! Unique names, and the comparison of their spellings.

use std::fmt;
use std::str::FromStr;

pub use item_model::characters::is_blank;
use item_model::characters::is_invisible;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::id;

/// Returns the NFKC_Casefold form of a text: without invisible characters, with NFKC and full case
/// folding. It makes `Straße` equal to `STRASSE`, `ﬁ` to `fi`, full-width letters to plain letters,
/// and `a\u{200D}nn` to `ann`.
///
/// This form includes the mappings of the PRECIS profile `UsernameCaseMapped` (RFC 8265): width,
/// case and NFC. The profile also refuses spaces and symbols, but Bodega's user names may contain
/// them.
#[must_use]
pub fn fold(text: &str) -> String {
    // A quick path: most names are ASCII, and every read of a customer folds two names.
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // The second round makes the result stable.
    let folded: String = without_invisible(text).nfkc().collect();
    let folded: String = caseless::default_case_fold_str(&folded).nfkc().collect();
    caseless::default_case_fold_str(&folded).nfkc().collect()
}

/// Removes the characters with Unicode's property `Default_Ignorable_Code_Point`. These characters
/// have no glyph. Examples are joiners, soft hyphens, variation selectors and marks of direction.
fn without_invisible(text: &str) -> String {
    text.chars().filter(|c| !is_invisible(*c)).collect()
}

/// Returns whether a character has no defined appearance: separators of lines and paragraphs, marks
/// of annotations, the private-use areas and noncharacters. Two names that differ only in such
/// characters would look alike.
const fn is_unprintable(c: char) -> bool {
    let is_noncharacter = matches!(c, '\u{FDD0}'..='\u{FDEF}') || c as u32 & 0xFFFE == 0xFFFE;
    is_noncharacter
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..)
}

/// Returns the one spelling of a name from a request: in NFC, without invisible characters, without
/// white space at its ends, and with one space between words. So names that look alike are equal,
/// except for case and for look-alike letters.
///
/// # Errors
/// [`NameError::Unprintable`], or [`NameError::Blank`] if no visible character remains.
pub fn visible_name(text: &str) -> Result<String, NameError> {
    let visible: String = without_invisible(text).nfc().collect();
    if visible.contains(|c: char| c.is_control() || is_unprintable(c)) {
        return Err(NameError::Unprintable);
    }
    if visible.chars().all(is_blank) {
        return Err(NameError::Blank);
    }
    let words: Vec<&str> = visible.split_whitespace().collect();
    Ok(words.join(" "))
}

/// The maximum length of a name in a mail, in characters.
pub const MAX_MAILED_NAME: usize = 60;

/// Returns a customer's name in a form that is safe in a mail, or `None` if no letter or digit
/// remains.
///
/// A customer could choose a name that misleads the reader of a mail. So the result is one line of
/// at most [`MAX_MAILED_NAME`] characters. It has no control characters, and no characters that
/// reorder or hide text. It has no web or mail address: no path, no scheme, no `www…` and no dotted
/// domain in any script. Digits stay, so a mail program may show a link to a telephone number.
#[must_use]
pub fn mailed_name(name: &str) -> Option<String> {
    // NFKC turns look-alikes such as full-width letters, colons and dots into plain characters.
    let plain: String = name.nfkc().filter_map(mailed_char).collect();
    let mut mailed = String::new();
    for word in plain.split_whitespace().filter(|word| !is_link(word)) {
        if !mailed.is_empty() {
            mailed.push(' ');
        }
        mailed.push_str(word);
    }
    let mailed: String = mailed.chars().take(MAX_MAILED_NAME).collect();
    let mailed = mailed.trim_end();
    mailed.chars().any(char::is_alphanumeric).then(|| mailed.to_owned())
}

/// Returns the character for a mail: a blank instead of a control character or a line break, and
/// nothing for an invisible character.
fn mailed_char(c: char) -> Option<char> {
    match c {
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => Some(' '),
        // Interlinear annotation characters are invisible too.
        '\u{FFF9}'..='\u{FFFB}' => None,
        c if is_invisible(c) => None,
        c => Some(c),
    }
}

/// Returns whether a mail program could turn a word into a link.
fn is_link(word: &str) -> bool {
    const DOTS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];
    if word.contains([':', '/', '\\', '@', '<', '>']) || word.to_lowercase().starts_with("www") {
        return true;
    }
    // In a domain, a label of two or more characters follows a dot. In initials such as `J.R.R.`,
    // no label is that long.
    let labels: Vec<&str> = word.split(DOTS).collect();
    let is_long = |label: &str| label.chars().filter(|c| c.is_alphanumeric()).count() >= 2;
    labels.iter().zip(labels.iter().skip(1)).any(|(before, after)| !before.is_empty() && is_long(after))
}

/// The reason why a text is not an email address or user name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text does not consist of a local part, one `@` and a domain. Or it has white space, a
    /// control character, or more than 254 bytes.
    #[error("must be an email address of at most 254 bytes")]
    Email,
    /// The user name is invalid ([`id::check`]).
    #[error(transparent)]
    Id(#[from] id::IdError),
    /// The text has no visible character.
    #[error("must contain a visible character")]
    Blank,
    /// The text has a control character, or another character without a defined appearance.
    #[error("must not contain control characters, line separators, private-use characters or noncharacters")]
    Unprintable,
}

macro_rules! folded {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the text as the customer wrote it, in its one spelling.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the text of the name's claim ([`fold`]), for comparisons.
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

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::spelling(text).map(Self)
            }
        }
    )*};
}

folded! {
    /// An email address. It keeps the text as the customer wrote it, without invisible characters.
    /// Uniqueness and lookup use [`fold`].
    Email
    /// A public user name, compared like an email address.
    Username
}

impl Email {
    /// Accepts one `@` with text on both sides, no white space and no control character. The limit
    /// is 254 bytes (RFC 5321), before and after folding. The mail server decides about all other
    /// rules.
    fn spelling(text: &str) -> Result<String, NameError> {
        let plausible = |text: &str| {
            text.len() <= 254
                && !text.chars().any(|c| c.is_control() || c.is_whitespace() || is_unprintable(c))
                && matches!(text.split_once('@'), Some((local, domain))
                    if !local.is_empty() && !domain.is_empty() && !domain.contains('@'))
        };
        if plausible(text) && plausible(&fold(text)) { Ok(without_invisible(text)) } else { Err(NameError::Email) }
    }

    /// Returns whether a mail service reads the text as exactly one recipient.
    ///
    /// Some characters are refused because they make lists, names, groups and comments in an
    /// address field. The beginning of an encoded word (RFC 2047), `=?`, is refused because a mail
    /// service could decode the word to such characters. Characters outside ASCII are refused
    /// because SES sends only to ASCII addresses. A domain with an empty label, such as a dot at
    /// its end, is refused too. Otherwise one address would have several spellings, and each
    /// spelling has a separate limit of mails.
    #[must_use]
    pub fn is_mailable(&self) -> bool {
        const SPECIAL: [char; 11] = [',', ';', ':', '<', '>', '(', ')', '[', ']', '"', '\\'];
        let mut labels = self.0.split(['@', '.']);
        let is_plain = self.0.is_ascii() && !self.0.contains(SPECIAL) && !self.0.contains("=?");
        is_plain && labels.all(|label| !label.is_empty())
    }
}

impl Username {
    fn spelling(text: &str) -> Result<String, NameError> {
        let name = visible_name(text)?;
        id::check(&name)?;
        // Folding may lengthen a text (one ligature becomes up to 18 characters). The key must hold
        // the result.
        if fold(&name).len() > 4 * id::MAX_ID_BYTES {
            return Err(NameError::Id(id::IdError::TooLong));
        }
        Ok(name)
    }
}
