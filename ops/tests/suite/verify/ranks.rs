//! Plants damage in leaderboards: in counts of days, and in the ranks that sum them up.

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::TestTable;
use key_schema::instant::Instant;
use key_schema::leaderboard::{Board, Period, Rank, Tally};
use ops::verify::Kind::{self, Behind, Bounds, Index, Orphan};

use super::damage::Damage::{Delete, Remove, Set};
use super::damage::{each, finds, put};
use super::world;

const DAY: &str = "TALLY#likes#tea RANK#2";
const WEEK: &str = "TALLY#likes#tea RANK#W";
const ALL: &str = "TALLY#likes#tea RANK#ALL";
const VIEWS: &str = "TALLY#views#tea RANK#ALL";

fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

#[tokio::test]
async fn a_rank_that_differs_from_its_counts_is_written_again() {
    each([
        (DAY, Set("count", number(9)), &[(Index, DAY), (Behind, DAY)] as &[_], true),
        // No record of the stream would replace a rank with so high a `rev`.
        (WEEK, Set("rev", number(99)), &[(Behind, WEEK)], true),
        (VIEWS, Remove("GSI2PK"), &[(Index, VIEWS)], true),
        (DAY, Delete, &[(Behind, DAY)], true),
        (ALL, Delete, &[(Behind, ALL)], true),
        (VIEWS, Delete, &[(Behind, VIEWS)], true),
    ])
    .await;
}

#[tokio::test]
async fn a_rank_without_product_or_counts_is_deleted() {
    let period = Period::day(Instant::now());
    let rank = |product: &str, board, period| Rank { board, product_id: product.parse().unwrap(), period, count: 3 };
    put(rank("gone", Board::Sales, Period::All), &[(Orphan, "TALLY#")], true).await;
    put(rank("milk", Board::Views, period), &[(Orphan, "TALLY#views#milk RANK#")], true).await;
    let table = TestTable::create().await;
    world::fill(&table).await;
    let mut counts = table.keys("TALLY#likes#tea").await;
    counts.retain(|(_, sk)| sk.starts_with('2'));
    assert_eq!(counts.len(), 2, "ann and bob like tea");
    table.delete_at(&counts[0].0, &counts[0].1).await;
    finds(&table, "one count", &[(Behind, DAY), (Behind, WEEK)], true).await;
    table.delete_at(&counts[1].0, &counts[1].1).await;
    finds(&table, "both counts", &[(Orphan, DAY), (Orphan, WEEK)], true).await;
}

#[tokio::test]
async fn a_count_beyond_its_bounds_is_reported() {
    let count = |board, part, count| Tally {
        board,
        product_id: "tea".parse().unwrap(),
        period: Period::day("2017-01-01T00:00:00Z".parse().unwrap()),
        part,
        count,
    };
    let bounds: &[(Kind, &str)] = &[(Bounds, "TALLY#")];
    put(count(Board::Likes, 9, 1), bounds, false).await;
    put(count(Board::Views, 0, 17), bounds, false).await;
    put(count(Board::Views, 0, -16), bounds, false).await;
    put(count(Board::Likes, 0, -1), &[], true).await;
}
