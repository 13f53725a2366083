//! What stands in for AWS on one machine: the table and the search engine.

pub mod search;
pub mod table;
