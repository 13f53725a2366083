//! Keeps the embedded table's stream fast.
//!
//! Before each write, the engine queries the highest sequence number of the table. For each page
//! that a reader requests, it queries the records after a sequence number. It keeps the records in
//! the table `_stream_records`, which never shrinks and has no index for these queries. A write
//! therefore gets slower with the number of earlier writes: 0.1 ms at first, 0.8 ms after 8,000
//! records. This module uses a second connection to the same database. It adds the missing index,
//! and deletes the records that every reader has read.
//!
//! The schema is an internal part of the engine. When the store opens, it checks the columns that
//! it uses. The engine's version is pinned exactly, and the tests below run the engine's own
//! queries.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, params};

use super::Error;

const COLUMNS: [&str; 4] = ["id", "table_name", "sequence_number", "shard_id"];
/// SQLite uses an index on an expression only if the query contains exactly this expression. So the
/// index's expression must equal the engine's expression in every character. The index
/// includes `shard_id`, so a query for a shard's range reads only the index.
const INDEX: &str = "CREATE INDEX IF NOT EXISTS bodega_stream_order ON _stream_records \
                     (table_name, CAST(sequence_number AS INTEGER), shard_id)";
/// The statement keeps the newest record, because the engine derives the next number from it.
const TRIM: &str = "DELETE FROM _stream_records WHERE id IN (
    SELECT id FROM _stream_records
    WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) <= ?2
      AND CAST(sequence_number AS INTEGER) <
          (SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = ?1)
    ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?3)";
/// Number of rows that one transaction deletes. A concurrent write of the engine waits about a
/// millisecond for this transaction. The engine's connection allows waits of up to five seconds.
const TRIM_AT_ONCE: i64 = 500;
const BUSY: Duration = Duration::from_secs(5);
/// The engine adds this offset to a stored number, so that the number has 21 digits as in AWS.
const PUBLIC_OFFSET: u128 = 100_000_000_000_000_000_000;

pub(super) struct StreamStore {
    connection: Mutex<Connection>,
}

impl StreamStore {
    /// Opens the second connection to `database` and adds the index. With `durable`, the database
    /// survives a crash of the machine, at the cost of occasional syncs.
    pub(super) fn open(database: &Path, durable: bool) -> Result<Self, Error> {
        let connection = Connection::open(database)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "synchronous", if durable { "NORMAL" } else { "OFF" })?;
        for missing in COLUMNS {
            let known: bool = connection.query_row(
                "SELECT EXISTS (SELECT 1 FROM pragma_table_info('_stream_records') WHERE name = ?1)",
                [missing],
                |row| row.get(0),
            )?;
            if !known {
                return Err(Error::UnknownSchema { missing });
            }
        }
        connection.execute_batch(INDEX)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Deletes the records of `table` up to and including `sequence_number` in short transactions.
    /// Returns the number of deleted records. If the database is busy for too long, the function
    /// stops early without an error. The next call deletes the remaining records.
    pub(super) fn trim(&self, table: &str, sequence_number: &str) -> Result<u64, Error> {
        let up_to = stored(sequence_number)?;
        let mut removed = 0;
        loop {
            let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = match connection.prepare_cached(TRIM)?.execute(params![table, up_to, TRIM_AT_ONCE]) {
                Ok(rows) => rows,
                Err(error) if is_busy(&error) => return Ok(removed),
                Err(error) => return Err(error.into()),
            };
            removed += u64::try_from(rows).unwrap_or(u64::MAX);
            if i64::try_from(rows).is_ok_and(|rows| rows < TRIM_AT_ONCE) {
                return Ok(removed);
            }
        }
    }
}

fn stored(sequence_number: &str) -> Result<i64, Error> {
    sequence_number
        .parse::<u128>()
        .ok()
        .and_then(|public| public.checked_sub(PUBLIC_OFFSET))
        .and_then(|stored| i64::try_from(stored).ok())
        .ok_or_else(|| Error::SequenceNumber(sequence_number.to_owned()))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::super::files::Files;
    use super::*;

    /// These are the engine's queries, copied from its source (`storage.rs`). The engine runs them
    /// before each write, for each page of records, and for each description of a shard.
    const BEFORE_EACH_WRITE: &str = "SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 \
         FROM _stream_records WHERE table_name = 't'";
    const EACH_PAGE: &str = "SELECT event_name, keys_json, new_image, old_image, sequence_number, \
         created_at, user_identity, event_id FROM _stream_records WHERE table_name = 't' AND \
         shard_id = 's' AND CAST(sequence_number AS INTEGER) > 7 \
         ORDER BY CAST(sequence_number AS INTEGER) ASC LIMIT 1000";
    const EACH_DESCRIPTION: &str = "SELECT MIN(CAST(sequence_number AS INTEGER)), \
         MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records \
         WHERE table_name = 't' AND shard_id = 's'";

    fn plan(store: &StreamStore, question: &str) -> String {
        let connection = store.connection.lock().unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {question}")).unwrap();
        let steps: Vec<String> = statement.query_map([], |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        steps.join("; ")
    }

    fn opened() -> (Files, dynoxide::Database, StreamStore) {
        let files = Files::scratch().unwrap();
        let engine = dynoxide::Database::new(files.database().to_str().unwrap()).unwrap();
        let store = StreamStore::open(&files.database(), false).unwrap();
        (files, engine, store)
    }

    #[test]
    fn every_query_of_the_engine_is_a_lookup_in_an_index() {
        let (_files, _engine, store) = opened();
        for question in [BEFORE_EACH_WRITE, EACH_PAGE, EACH_DESCRIPTION] {
            let plan = plan(&store, question);
            assert!(
                plan.starts_with("SEARCH _stream_records USING")
                    && plan.contains("bodega_stream_order")
                    && !plan.contains("TEMP B-TREE"),
                "{question}: {plan}"
            );
        }
    }

    #[test]
    fn an_engine_with_another_schema_is_refused_and_the_error_names_the_missing_column() {
        let files = Files::scratch().unwrap();
        Connection::open(files.database())
            .unwrap()
            .execute_batch("CREATE TABLE _stream_records (id INTEGER, table_name TEXT)")
            .unwrap();
        let error = StreamStore::open(&files.database(), false).err().unwrap();
        assert!(error.to_string().contains("`sequence_number`"), "{error}");
    }

    #[test]
    fn a_sequence_number_that_no_stream_issued_is_refused() {
        let (_files, _engine, store) = opened();
        for text in ["", "5", "-1", "abc", "999999999999999999999999999999999999999"] {
            assert!(matches!(store.trim("t", text), Err(Error::SequenceNumber(_))));
        }
        assert_eq!(store.trim("t", "100000000000000000005").unwrap(), 0);
    }

    #[test]
    fn concurrent_trimming_and_writing_both_succeed() {
        let (files, _engine, store) = opened();
        let other = Connection::open(files.database()).unwrap();
        other.busy_timeout(BUSY).unwrap();
        let insert = |from: i64, to: i64| {
            for number in from..to {
                other
                    .execute(
                        "INSERT INTO _stream_records (table_name, event_name, keys_json, \
                         sequence_number, shard_id, created_at) VALUES ('t','INSERT','{}',?1,'s',0)",
                        [number.to_string()],
                    )
                    .unwrap();
            }
        };
        insert(1, 2_000);
        std::thread::scope(|scope| {
            let trimming = scope.spawn(|| {
                let last = PUBLIC_OFFSET + 1_999;
                store.trim("t", &last.to_string()).unwrap()
            });
            insert(2_000, 3_000);
            trimming.join().unwrap();
        });
        let last = (PUBLIC_OFFSET + 5_000).to_string();
        store.trim("t", &last).unwrap();
        let left: i64 = other
            .query_row("SELECT group_concat(sequence_number) FROM _stream_records", [], |row| {
                row.get::<_, String>(0).map(|text| text.parse().unwrap())
            })
            .unwrap();
        assert_eq!(left, 2_999, "the newest record must stay");
    }
}
