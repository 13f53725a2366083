//! Relations between customers: follows, likes, organizations and questions.

pub mod follow;
pub mod graph;
pub mod like;
pub mod organization;
pub mod question;
