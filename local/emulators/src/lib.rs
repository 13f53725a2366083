//! Emulates AWS services on one machine: the table, the search engine, the event bus, the object
//! store, mail, secrets, and CloudWatch's report of throttled keys.

pub mod access;
pub mod contributors;
pub mod events;
pub mod faults;
pub mod mail;
pub mod objects;
pub mod search;
pub mod secrets;
pub mod table;

mod endpoint;
mod log;

pub use log::Page;
