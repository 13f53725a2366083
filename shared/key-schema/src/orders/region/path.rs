//! The parameters of the list of a region's sales: a month, and a part of a country.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::encoding::encode;
use crate::id::{IdError, check};
use crate::instant::Instant;
use crate::product::segment;

/// Returns whether the text is a day as [`Instant::day`] writes it. The parser of instants also
/// accepts other spellings, so its result is compared with the text.
fn is_day(text: &str) -> bool {
    format!("{text}T00:00:00Z").parse::<Instant>().is_ok_and(|midnight| midnight.day() == text)
}

/// A calendar month, such as `2017-01`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Month(pub(super) String);

/// An error for a text that is not a month such as `2017-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a month such as 2017-01")]
pub struct MonthError;

impl FromStr for Month {
    type Err = MonthError;

    fn from_str(text: &str) -> Result<Self, MonthError> {
        if is_day(&format!("{text}-01")) { Ok(Self(text.to_owned())) } else { Err(MonthError) }
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part of a country: a city, a shop in it, or a day of that shop. In a URL, the names have the
/// same encoding as the names of a category path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionPath(Vec<String>);

/// An error for a text that is not a part of a country.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RegionPathError {
    /// The text is not 1 to 3 names joined by `~`.
    #[error(
        "must be `city`, `city~shop` or `city~shop~day` with a day such as 2017-01-01, and with \
         every byte of a name other than A-Z, a-z, 0-9 and - written as _HH (hexadecimal)"
    )]
    Form,
    /// A name in the path is invalid ([`check`]).
    #[error("each name {0}")]
    Name(#[from] IdError),
    /// The third name is not a day.
    #[error("the third name must be a day such as 2017-01-01")]
    Day,
}

impl FromStr for RegionPath {
    type Err = RegionPathError;

    fn from_str(text: &str) -> Result<Self, RegionPathError> {
        let names = segment::decode(text).filter(|names| names.len() <= 3).ok_or(RegionPathError::Form)?;
        for name in &names {
            check(name)?;
        }
        if names.get(2).is_none_or(|day| is_day(day)) { Ok(Self(names)) } else { Err(RegionPathError::Day) }
    }
}

impl RegionPath {
    /// Returns the shop, if the path names one.
    pub(super) fn shop(&self) -> Option<&str> {
        self.0.get(1).map(String::as_str)
    }

    pub(super) fn key_text(&self) -> String {
        self.0.iter().map(|name| encode(name)).collect::<Vec<_>>().join("#")
    }
}
