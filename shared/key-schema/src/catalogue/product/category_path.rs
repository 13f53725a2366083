//! Category paths: the names of a category from the top, in keys and in URLs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::encoding::{self, encode};
use crate::id::check;
use crate::product::segment;

pub const MAX_CATEGORY_DEPTH: usize = 8;
/// The maximum number of bytes of a category path as key text. With this limit, a path and an id
/// fit into one sort key, and the cursor that holds both fits into
/// [`MAX_CURSOR_BYTES`](crate::cursor::MAX_CURSOR_BYTES).
pub const MAX_CATEGORY_BYTES: usize = 580;

/// A category's path: the 1 to 8 names from the top category to the category itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CategoryPath(Vec<String>);

/// The reason why names are not a category path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CategoryError {
    /// There is no name, or more than [`MAX_CATEGORY_DEPTH`].
    #[error("must have 1 to {MAX_CATEGORY_DEPTH} names")]
    Depth,
    /// A name is invalid ([`check`]).
    #[error("each name {0}")]
    Name(#[from] crate::id::IdError),
    /// The path's key text exceeds [`MAX_CATEGORY_BYTES`].
    #[error("the path is too long")]
    TooLong,
    /// The text is not a path in a URL ([`CategoryPath::from_segment`]).
    #[error("must be names joined by `~`, with every byte other than A-Z, a-z, 0-9 and - written as _HH (hexadecimal)")]
    Segment,
}

impl CategoryPath {
    /// Makes a path from names, the top name first.
    pub fn new(names: Vec<String>) -> Result<Self, CategoryError> {
        if names.is_empty() || names.len() > MAX_CATEGORY_DEPTH {
            return Err(CategoryError::Depth);
        }
        for name in &names {
            check(name)?;
        }
        let path = Self(names);
        if path.key_text().len() > MAX_CATEGORY_BYTES { Err(CategoryError::TooLong) } else { Ok(path) }
    }

    pub(crate) fn from_key_text(text: &str) -> Option<Self> {
        Self::new(encoding::split(text)?).ok()
    }

    /// Parses a path from one segment of a URL: names joined by `~`. Inside a name, every byte
    /// outside `A-Z a-z 0-9 -` is written `_HH`.
    ///
    /// # Errors
    /// [`CategoryError::Segment`] for any other spelling, so that each category has only one URL.
    pub fn from_segment(segment: &str) -> Result<Self, CategoryError> {
        Self::new(segment::decode(segment).ok_or(CategoryError::Segment)?)
    }

    #[must_use]
    pub fn to_segment(&self) -> String {
        segment::encode(&self.0)
    }

    /// Returns the names, the top name first.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns the last name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// Returns the parent category, or [`None`] for a top category.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        (!above.is_empty()).then(|| Self(above.to_vec()))
    }

    /// Returns the ancestors of this category from the top, then the category itself.
    pub fn lineage(&self) -> impl Iterator<Item = Self> {
        (1..=self.0.len()).filter_map(|depth| self.0.get(..depth)).map(|names| Self(names.to_vec()))
    }

    /// Returns whether this path is `category` itself or below it.
    #[must_use]
    pub fn is_within(&self, category: &Self) -> bool {
        self.0.starts_with(&category.0)
    }

    /// Returns the path that this category has after a move of `from` to `to`. Returns [`None`] for
    /// a category outside `from`, and for a result that is too deep or too long.
    #[must_use]
    pub fn rebased(&self, from: &Self, to: &Self) -> Option<Self> {
        let below = self.0.strip_prefix(from.0.as_slice())?;
        Self::new([to.0.as_slice(), below].concat()).ok()
    }

    #[must_use]
    pub fn key_text(&self) -> String {
        self.0.iter().map(|name| encode(name)).collect::<Vec<_>>().join("#")
    }

    pub(crate) fn top(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

impl TryFrom<Vec<String>> for CategoryPath {
    type Error = CategoryError;

    fn try_from(names: Vec<String>) -> Result<Self, CategoryError> {
        Self::new(names)
    }
}

impl From<CategoryPath> for Vec<String> {
    fn from(path: CategoryPath) -> Self {
        path.0
    }
}

impl fmt::Display for CategoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" / "))
    }
}
