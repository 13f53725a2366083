//! Content of any size: documents, pictures, and the objects of the media bucket.

use crate::pattern::Pattern;

pub mod document;
pub mod media;
pub mod picture;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[document::PATTERNS, picture::PATTERNS, media::PATTERNS];
