//! The operations tool `ops`, with which operators maintain a running shop.
//!
//! It uses the crates and the environment variables of the functions, so a command writes the same
//! data as a function. An operator may stop any command at any time and run it again. Commands find
//! the remaining work in the table, the index, the bucket or the folder that they write.
//!
//! Only this tool scans the whole table ([`items`]). The functions have no permission to scan.
//!
//! Summaries are printed to standard output as text, or as JSON with `--json`. Progress bars are
//! printed to standard error if it is a terminal. Otherwise long runs print a line every half
//! minute.
//!
//! # Exit status
//! - 0: done.
//! - 1: something is wrong or unfinished, and the summary names it.
//! - 2: the command is not valid as given.
//! - 3: the table, the engine, a bucket or the local system cannot be reached.

pub mod analytics;
pub mod archive;
pub mod capacity;
pub mod cli;
pub mod cost;
pub mod customer;
pub mod doctor;
pub mod error;
pub mod explain;
pub mod export;
pub mod feed;
pub mod hot;
pub mod import;
pub mod item;
pub mod items;
mod local;
pub mod migrate;
pub mod orders;
pub mod outcome;
pub mod pace;
pub mod payments;
pub mod prewarm;
pub mod progress;
pub mod redrive;
pub mod rotate;
pub mod search;
pub mod shards;
pub mod verify;

use key_schema::pattern::Pattern;
use key_schema::{archive as archived, document, expiration, order, product, region, sales, settings};

pub use error::OpsError;
pub use items::Items;
pub use outcome::Outcome;
pub use pace::Pace;

const OWN: [&Pattern; 19] = [
    &order::EDIT,
    &order::RETIRE,
    &order::BY_STATUS,
    &order::HEAD,
    &order::LINES,
    &order::REFERENCE,
    &order::staged::UNFINISHED,
    &order::addresses::READ,
    &order::LOG,
    &sales::DERIVED,
    &sales::APPLY,
    &region::EDIT,
    &expiration::OF_DAY,
    &archived::RESTORE,
    &settings::READ,
    &settings::ARRANGE,
    &document::HISTORY,
    &document::TEXTS,
    &product::LIST_SHARDED,
];

/// Returns the access patterns of all commands, with those of the copy of a customer's data.
#[must_use]
pub fn patterns() -> Vec<&'static Pattern> {
    OWN.iter().chain(workflows::personal::PATTERNS).chain(workflows::stock::PATTERNS).copied().collect()
}
