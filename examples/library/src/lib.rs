//! A public library on `item-model` and `table`: books, members and loans.
//!
//! It is a second product on the engine of Bodega, and uses no code of the shop. Copy it to start
//! your own schema.
//!
//! - [`member`], [`book`] and [`loan`] are the schema. Each module declares its entities, their
//!   keys, the access patterns, and a constructor for each request.
//! - [`schema`] has the indexes, the table's definition, and the list of all patterns.
//! - [`Library`] executes the requests and maps each refusal to an error.
//! - [`migration`] brings stored items to a later schema while the library is open.

pub mod book;
mod library;
pub mod loan;
pub mod member;
pub mod migration;
pub mod schema;

pub use library::{Library, LibraryError, ListPage};
