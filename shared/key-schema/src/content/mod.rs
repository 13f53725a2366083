//! Content of any size: documents, pictures, and the objects of the media bucket.

pub mod document;
pub mod media;
pub mod picture;
