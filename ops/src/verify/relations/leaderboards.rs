//! Ranks of products on leaderboards, with the counts that they sum up. The stream's consumer
//! writes a rank some time after its counts, so a difference may disappear by itself.

use std::collections::HashMap;

use key_schema::entity::AnyEntity;
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Item, Meta, Stored};
use key_schema::key::{Key, KeyError};
use key_schema::leaderboard::{Board, Period, Rank, Tally};
use key_schema::like::{self, LikeCount};
use key_schema::product::{self, Product};
use key_schema::shard::Shards;

use super::{Problem, Seen, Skip, find};
use crate::error::OpsError;
use crate::items::{Items, Repair, RepairWrite, Repaired};
use crate::pace::Pace;
use crate::verify::report::Kind;

/// No check uses counts of a week that expire within this number of seconds. The stream's consumer
/// sums counts until one day before they expire.
const MARGIN_SECONDS: i64 = 2 * 24 * 60 * 60;

/// The key fields of a rank: the board, the product and the period.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::verify) struct Position {
    board: Board,
    product: ProductId,
    period: Period,
}

impl Position {
    fn of(rank: &Rank) -> Self {
        Self { board: rank.board, product: rank.product_id.clone(), period: rank.period }
    }

    /// Returns the positions whose ranks contain a count. Leaves out a period if one of its counts
    /// is expired or is about to expire.
    fn of_count(tally: &Tally, now: Instant) -> Vec<Self> {
        let periods = match tally.period {
            Period::Day(day) => vec![tally.period, Period::week(day)],
            Period::All | Period::Week(_) => vec![tally.period],
        };
        let position = |period| Self { board: tally.board, product: tally.product_id.clone(), period };
        periods.into_iter().map(position).filter(|position| position.has_counts(now)).collect()
    }

    /// Returns whether all counts of the period are stored, and none is about to expire.
    fn has_counts(&self, now: Instant) -> bool {
        let is_expired = |day| Period::day(day).is_expired(now.plus_seconds(MARGIN_SECONDS));
        !self.period.days().is_some_and(|(first, _)| is_expired(first))
    }

    fn key(&self) -> Result<Key, KeyError> {
        Rank { board: self.board, product_id: self.product.clone(), period: self.period, count: 0 }.key()
    }

    /// Returns the keys of the counts that the rank sums up.
    fn sources(&self) -> Result<Vec<Key>, KeyError> {
        let parts = parts(self.board);
        if (self.board, self.period) == (Board::Likes, Period::All) {
            let count = |shard| LikeCount { product_id: self.product.clone(), shard, likes: 0 }.key();
            return parts.all().map(count).collect();
        }
        let days = match self.period.days() {
            None => vec![Period::All],
            Some((first, last)) => {
                let next = |day: &Instant| Some(day.plus_seconds(24 * 60 * 60)).filter(|day| *day <= last);
                std::iter::successors(Some(first), next).map(Period::day).collect()
            }
        };
        let tally =
            |period, part| Tally { board: self.board, product_id: self.product.clone(), period, part, count: 0 }.key();
        days.into_iter().flat_map(|day| parts.all().map(move |part| tally(day, part))).collect()
    }

    /// Returns the rank that the stored counts give, or [`None`] if no count is stored.
    fn sum(&self, others: &HashMap<Key, Item>, now: Instant) -> Result<Option<Stored<Rank>>, Skip> {
        let mut counts: Vec<(Meta, i64)> = Vec::new();
        for key in self.sources()? {
            if (self.board, self.period) == (Board::Likes, Period::All) {
                let count = find::<LikeCount>(others, &key, now)?;
                counts.extend(count.map(|item| (item.meta, i64::try_from(item.data.likes).unwrap_or(i64::MAX))));
            } else {
                counts.extend(find::<Tally>(others, &key, now)?.map(|item| (item.meta, item.data.count)));
            }
        }
        let counts = counts.iter().map(|(meta, count)| (meta, *count));
        Ok(Rank::sum(self.board, &self.product, self.period, counts))
    }

    /// Writes a missing rank. A refusal means that the stream's consumer has written it, or that no
    /// readable count is left.
    pub(in crate::verify) async fn derive(&self, items: &Items, units: &Pace) -> Result<Repaired, OpsError> {
        let others = items.snapshot(&self.sources()?, units).await?;
        let Ok(Some(rank)) = self.sum(&others, Instant::now()) else { return Ok(Repaired::Refused) };
        items.repair(&Repair { checks: Vec::new(), change: RepairWrite::Put(rank.to_item()?) }, units).await
    }
}

/// Returns the number of items that together hold one count.
pub(in crate::verify) const fn parts(board: Board) -> Shards {
    if matches!(board, Board::Likes) { like::COUNTERS } else { Shards(1) }
}

fn product_of(id: &ProductId) -> Result<Key, KeyError> {
    Ok(product::read_for_update(id)?.key().clone())
}

/// Returns the positions of the ranks that contain this count, and the product of the count.
fn counted(entity: &AnyEntity, now: Instant) -> Option<(Vec<Position>, &ProductId)> {
    match entity {
        AnyEntity::Tally(tally) => Some((Position::of_count(tally, now), &tally.data.product_id)),
        AnyEntity::LikeCount(count) => {
            let product = &count.data.product_id;
            let position = Position { board: Board::Likes, product: product.clone(), period: Period::All };
            Some((vec![position], product))
        }
        _ => None,
    }
}

pub(super) fn needs(entity: &AnyEntity, keys: &mut Vec<Key>) -> Result<(), OpsError> {
    if let AnyEntity::Rank(rank) = entity {
        let position = Position::of(rank);
        keys.push(product_of(&position.product)?);
        if position.has_counts(Instant::now()) {
            keys.extend(position.sources()?);
        }
    } else if let Some((positions, product)) = counted(entity, Instant::now()) {
        keys.push(product_of(product)?);
        for position in positions {
            keys.push(position.key()?);
        }
    }
    Ok(())
}

pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    if let AnyEntity::Rank(rank) = entity {
        return of_rank(rank, seen);
    }
    let Some((positions, product)) = counted(entity, seen.now) else { return Ok(Vec::new()) };
    // The rank of a missing product would be an orphan.
    if seen.find::<Product>(&product_of(product)?)?.is_none() {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    for position in positions {
        let key = position.key()?;
        if seen.find::<Rank>(&key)?.is_none() {
            let problem = Problem::at(&key, Kind::Behind, "the rank of the counts is missing");
            problems.push(problem.lagging().ranked(position));
        }
    }
    Ok(problems)
}

/// Checks that a rank has a product, and equals the sum of its counts. A repair is refused if a
/// consumer has changed the rank since it was read.
fn of_rank(rank: &Stored<Rank>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let position = Position::of(rank);
    let repair = |change| Repair { checks: Vec::new(), change };
    let orphan =
        |what| Problem::new(Kind::Orphan, what).lagging().repaired_by(repair(RepairWrite::Delete(seen.item.clone())));
    if seen.find::<Product>(&product_of(&position.product)?)?.is_none() {
        return Ok(vec![orphan("the product of the rank is missing")]);
    }
    if !position.has_counts(seen.now) {
        return Ok(Vec::new());
    }
    let Some(right) = position.sum(seen.others, seen.now)? else {
        // The sales of all time are not counted in a tally.
        let is_counted = position.period != Period::All || matches!(position.board, Board::Views | Board::Likes);
        return Ok(is_counted.then(|| orphan("the counts of the rank are missing")).into_iter().collect());
    };
    if (right.data.count, right.meta.rev) == (rank.data.count, rank.meta.rev) {
        return Ok(Vec::new());
    }
    let (count, sum) = (rank.data.count, right.data.count);
    let what = format!("the rank is {count} at rev {}, but its counts give {sum}", rank.meta.rev);
    let problem = Problem::new(Kind::Behind, what).lagging();
    let change = RepairWrite::Rewrite { old: seen.item.clone(), new: right.to_item()? };
    Ok(vec![problem.repaired_by(repair(change))])
}
