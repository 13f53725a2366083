//! Categories by their names from the top, in keys and in URLs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::encoding::encode;
use crate::id::check;
use crate::product::segment;

/// How deep a category path may be.
pub const MAX_CATEGORY_DEPTH: usize = 8;
/// How long a category path may be as key text, so that a path and an id fit one sort key, and the cursor that holds both fits
/// [`MAX_CURSOR_BYTES`](crate::cursor::MAX_CURSOR_BYTES).
pub const MAX_CATEGORY_BYTES: usize = 580;

/// A category by its names from the top: 1 to 8 of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CategoryPath(Vec<String>);

/// Why names are not a category path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CategoryError {
    /// No name, or more than [`MAX_CATEGORY_DEPTH`].
    #[error("must have 1 to {MAX_CATEGORY_DEPTH} names")]
    Depth,
    /// A name breaks the rule of ids.
    #[error("each name {0}")]
    Name(#[from] crate::id::IdError),
    /// Over [`MAX_CATEGORY_BYTES`] with every special byte escaped.
    #[error("the path is too long")]
    TooLong,
    /// The text is not a category path in a URL: see [`CategoryPath::from_segment`].
    #[error("must be names joined by `~`, with every byte outside A-Z a-z 0-9 - written _HH")]
    Segment,
}

impl CategoryPath {
    /// Takes names from the top.
    ///
    /// # Errors
    /// [`CategoryError`].
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

    /// Reads the form that a URL carries: names joined by `~`, and inside a name every byte outside `A-Z a-z 0-9 -` written `_HH`.
    ///
    /// # Errors
    /// [`CategoryError::Segment`] for any other spelling, so that one category has one address.
    pub fn from_segment(segment: &str) -> Result<Self, CategoryError> {
        Self::new(segment::decode(segment).ok_or(CategoryError::Segment)?)
    }

    /// The form that a URL carries.
    #[must_use]
    pub fn to_segment(&self) -> String {
        segment::encode(&self.0)
    }

    /// The names from the top.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The last name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The category above, if this is not a top one.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        (!above.is_empty()).then(|| Self(above.to_vec()))
    }

    /// This category and those above it, from the top.
    pub fn lineage(&self) -> impl Iterator<Item = Self> {
        (1..=self.0.len()).filter_map(|depth| self.0.get(..depth)).map(|names| Self(names.to_vec()))
    }

    /// Whether it is the category, or below it.
    #[must_use]
    pub fn is_within(&self, category: &Self) -> bool {
        self.0.starts_with(&category.0)
    }

    /// Where it is when `from`, in which it lies, has become `to`. `None` for a path outside of `from`, and for one that would be too deep or too long.
    #[must_use]
    pub fn rebased(&self, from: &Self, to: &Self) -> Option<Self> {
        let below = self.0.strip_prefix(from.0.as_slice())?;
        Self::new([to.0.as_slice(), below].concat()).ok()
    }

    /// The names as key text.
    #[must_use]
    pub fn key_text(&self) -> String {
        self.0.iter().map(|name| encode(name)).collect::<Vec<_>>().join("#")
    }

    pub(super) fn top(&self) -> &str {
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
