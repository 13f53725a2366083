//! Objects in S3: [`media`], which clients upload and read by signed URLs, and [`objects`], which
//! Lambda functions write once and never change.

pub mod media;
pub mod objects;

pub use aws::SetupError;
