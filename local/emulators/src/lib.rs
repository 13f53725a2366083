//! Emulates services on one machine. AWS's services are the table, the search engine, the event
//! bus, the object store, mail, secrets, and CloudWatch's report of throttled keys. Stripe's
//! service is payments.

pub mod access;
pub mod contributors;
pub mod events;
pub mod faults;
pub mod mail;
pub mod objects;
pub mod payments;
pub mod search;
pub mod secrets;
pub mod table;

mod endpoint;
mod log;

pub use log::Page;
