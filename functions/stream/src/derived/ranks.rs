//! The ranks of products on leaderboards. A rank is a sum of counts, and a board sorts its products
//! by rank. [`key_schema::leaderboard`] explains why the ranks converge.

use key_schema::instant::Instant;
use key_schema::item::{Meta, Stored};
use key_schema::leaderboard::{self, Board, Period, Rank, Tally};
use key_schema::like::{self, LikeCount};

use super::{DeriveError, copy};
use crate::ports::Items;

/// The consumer stops summing a week's tallies this many seconds before they expire. The margin
/// covers the difference between clocks, so that no sum misses a tally that DynamoDB has removed.
const MARGIN_SECONDS: i64 = 24 * 60 * 60;

/// Ranks a product by its likes of all time.
pub(super) async fn likes<I: Items>(table: &I, changed: &LikeCount) -> Result<(), DeriveError> {
    let product = &changed.product_id;
    let parts = table.query(&like::sum(product)?).await?.items;
    let counts = parts.iter().map(|part| (&part.meta, i64::try_from(part.likes).unwrap_or(i64::MAX)));
    store_rank(table, Rank::sum(Board::Likes, product, Period::All, counts)).await
}

/// Ranks a product by the tallies of a day and of the day's week, or by the single tally of all
/// time.
pub(super) async fn tally<I: Items>(table: &I, changed: &Stored<Tally>) -> Result<(), DeriveError> {
    let (board, product) = (changed.board, &changed.product_id);
    let Period::Day(day) = changed.period else {
        return store_rank(table, Rank::sum(board, product, changed.period, [counted(changed)])).await;
    };
    if changed.period.is_expired(Instant::now().plus_seconds(MARGIN_SECONDS)) {
        return Ok(());
    }
    let week = table.query(&leaderboard::days(board, product, day)?).await?.items;
    let of_day = week.iter().filter(|tally| tally.period == changed.period);
    store_rank(table, Rank::sum(board, product, changed.period, of_day.map(counted))).await?;
    store_rank(table, Rank::sum(board, product, Period::week(day), week.iter().map(counted))).await
}

fn counted(tally: &Stored<Tally>) -> (&Meta, i64) {
    (&tally.meta, tally.count)
}

async fn store_rank<I: Items>(table: &I, rank: Option<Stored<Rank>>) -> Result<(), DeriveError> {
    match rank {
        Some(rank) => copy(table, &leaderboard::store_rank(&rank)?).await,
        // An operator has removed the counts since the record was written.
        None => Ok(()),
    }
}
