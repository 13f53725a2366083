//! A migration: loans enter an index that the first schema of this library did not have.
//!
//! The first schema had no list of all loans. Its loans have no key in [`GSI2`], so the list of
//! overdue loans lacks them. Every other reader accepts both forms. Three ways lead to the new
//! form, and all of them write the same item:
//!
//! - **A write that touches the loan.** A renewal sets both index keys of any loan.
//! - **A scan** ([`scan_segment`]), which reaches the loans that no request writes. The segments
//!   are read in parallel. The table itself holds the progress: a scan that was stopped begins
//!   again, and writes only old loans.
//! - **The stream.** A consumer passes each record's new image to [`migrate`]. It reaches the loans
//!   that programs with the first schema write while both schemas are deployed.
//!
//! [`plan`] is pure: it decides from the stored item alone. The condition of its write makes each
//! way safe beside requests, beside the other ways, and with old stream records.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::DisplayErrorContext;
use item_model::change::Change;
use item_model::expression::{Condition, value};
use item_model::item::{Entity as _, FromItem as _, Item, Stored, entity_name};
use item_model::prelude::*;
use item_model::request::{Guarded, Single};
use table::{Table, TableError};

use crate::LibraryError;
use crate::loan::{Loan, due_entries, is_out};
use crate::schema::GSI2;

patterns! {
    ENTER {
        id: "migration.enter",
        purpose: "Add a loan of the first schema to the list of all loans",
        request: UpdateItem,
        key: "PK = MEMBER#<member>, SK = LOAN#<id>",
        requires: "the loan is out, and has this due date and no key of GSI2; SET the key of GSI2",
        callers: "system",
    }
}

/// Returns the write that is left for a stored item, or [`None`].
///
/// The write does not change the loan's version, so a member's read of the loan stays current.
///
/// # Errors
/// [`LibraryError::Table`] when the item does not match the schema.
pub fn plan(item: &Item) -> Result<Option<Single<()>>, LibraryError> {
    if entity_name(item).map_err(TableError::from)? != Loan::NAME || item.contains_key(GSI2.partition_attribute()) {
        return Ok(None);
    }
    let loan = Stored::<Loan>::from_item(item.clone()).map_err(TableError::from)?;
    if loan.returned_at.is_some() {
        return Ok(None);
    }
    let [_, entry] = due_entries(&loan.member_id, &loan.id, loan.due_at)?;
    let is_old = Condition::Is("due_at", value(loan.due_at).map_err(item_model::item::EncodeError::from)?)
        .and(Condition::Lacks(GSI2.partition_attribute()));
    let change = Change::copied().enter(&entry)?;
    Ok(Some(Single::new(&ENTER, Guarded::update(loan.key()?, change, is_out().and(is_old)))))
}

/// Executes the write that is left for a stored item. Returns whether it wrote. After a refusal
/// nothing is left: the loan was returned, or has its new key already. If a program with the first
/// schema has renewed it, the stream has a newer record.
pub async fn migrate(table: &Table, item: &Item) -> Result<bool, LibraryError> {
    let Some(write) = plan(item)? else { return Ok(false) };
    Ok(table.write(&write).await?.is_ok())
}

/// Migrates one of `segments` parts of the table, and returns the number of written loans.
pub async fn scan_segment(client: &Client, table: &Table, segment: i32, segments: i32) -> Result<u64, LibraryError> {
    let scan = client.scan().table_name(table.name()).segment(segment).total_segments(segments);
    let mut items = scan.consistent_read(true).into_paginator().items().send();
    let mut written = 0;
    while let Some(item) = items.next().await {
        let item = item.map_err(|error| TableError::Unavailable(DisplayErrorContext(error).to_string()))?;
        written += u64::from(migrate(table, &item.into()).await?);
    }
    Ok(written)
}
