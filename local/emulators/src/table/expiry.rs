//! Checks whether a sweep has left expired items.
//!
//! The engine's sweep reads at most as many rows as the table had when the sweep began. If clients
//! add rows during the sweep, it may end before the last rows and miss expired items. If this
//! module finds expired items, the sweep runs again without concurrent writes.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, params};

use super::Error;

/// The tables that the engine sweeps, each with its TTL attribute.
const SWEPT: &str = "SELECT table_name, ttl_attribute FROM _tables WHERE ttl_enabled = 1 AND ttl_attribute IS NOT NULL";
const BUSY: Duration = Duration::from_secs(5);

pub(super) struct Expiry(Mutex<Connection>);

impl Expiry {
    pub(super) fn open(database: &Path) -> Result<Self, Error> {
        let connection = Connection::open(database)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "query_only", true)?;
        let expiry = Self(Mutex::new(connection));
        // A connection opens its files with its first query. So the first query must run before the
        // temporary files are unlinked.
        expiry.is_left(0)?;
        Ok(expiry)
    }

    /// Returns whether a table has an item that had expired at `second`, in seconds since 1970.
    pub(super) fn is_left(&self, second: u64) -> Result<bool, Error> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut swept = connection.prepare_cached(SWEPT)?;
        let tables = swept.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for table in tables {
            let (table, attribute): (String, String) = table?;
            // The engine's rule for a time to live: a whole number that is not negative.
            let question = format!(
                "SELECT EXISTS (SELECT 1 FROM \"{}\" WHERE \
                 CAST(json_extract(item_json, ?1) AS INTEGER) < ?2 \
                 AND json_extract(item_json, ?1) NOT GLOB '*[^0-9]*')",
                table.replace('"', "\"\"")
            );
            let path = format!("$.\"{attribute}\".N");
            let second = i64::try_from(second).unwrap_or(i64::MAX);
            if connection.query_row(&question, params![path, second], |row| row.get(0))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
