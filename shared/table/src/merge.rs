//! Merges a page of a list from the list's shards.
//!
//! # Two rounds
//!
//! The hash of an id selects the shard of each item. With N shards, the number of items that one
//! shard has among the next `wanted` items is binomial. Its mean is `wanted / N`, and its variance
//! `wanted · (N − 1) / N²`. The first round reads the mean plus three standard deviations from each
//! shard. This completes about 99 of 100 pages. For a page of 100 from four shards, the first round
//! reads 156 items. It would read 404 items if it took from each shard a full page, and one item
//! more to see whether the list continues.
//!
//! For the other pages, a second round reads more items from the shards that may have further items
//! of the page. From each of them it reads as many items as the page can need. So the page is then
//! complete. Every page therefore takes at most two rounds, for any distribution of the items. No
//! shard gets more than two requests, unless DynamoDB ends a response early at 1 MB.
//!
//! # Sort keys
//!
//! In most lists the sort key ends in an id, so each sort key belongs to one item. Two kinds of
//! lists are different. In a list of sums, each sum has one item in each shard, and these items
//! have the same sort key. An index may have several items with the same sort key in one shard. A
//! page therefore counts sort keys instead of items, and contains all items of its sort keys.

use std::cmp::Ordering;

pub const ROUNDS: usize = 2;

/// The items that were read from one shard.
#[derive(Debug)]
pub struct Part<T> {
    /// The items with their sort keys, in the list's order.
    pub found: Vec<(String, T)>,
    /// Whether the shard has no further items.
    pub ended: bool,
}

/// Returns how many items the first round reads from each shard for a page of `wanted` items.
pub const fn share(wanted: usize, shards: usize) -> usize {
    let three_deviations = wanted.saturating_mul(9).saturating_mul(shards.saturating_sub(1)).isqrt();
    match wanted.saturating_add(three_deviations).checked_div(shards) {
        Some(share) if share < wanted => share + 1,
        _ => wanted,
    }
}

/// Returns for each shard how many more sort keys must be read before all items of the first
/// `wanted` sort keys are known.
///
/// A shard's unread items have the sort key of its last read item, or come after that item. If `n`
/// known sort keys do not come after that item, at most `wanted - n` unread sort keys of the shard
/// are among the first `wanted`.
pub fn missing<T>(parts: &[&Part<T>], wanted: usize, descending: bool) -> Vec<usize> {
    let mut known: Vec<&str> = parts.iter().flat_map(|part| &part.found).map(|(sort, _)| sort.as_str()).collect();
    known.sort_unstable_by(|a, b| order(a, b, descending));
    known.dedup();
    let before = |last: &str| known.partition_point(|sort| order(sort, last, descending).is_le());
    let missing = |part: &&Part<T>| match part.found.last() {
        _ if part.ended => 0,
        Some((last, _)) => wanted.saturating_sub(before(last)),
        None => wanted,
    };
    parts.iter().map(missing).collect()
}

/// Returns the items of the first `wanted` sort keys of the list. The caller must already have read
/// all [`missing`] items. All later items are dropped, because some shards were not read that far.
pub fn first<T>(parts: impl IntoIterator<Item = Part<T>>, wanted: usize, descending: bool) -> Vec<(String, T)> {
    let mut found: Vec<(String, T)> = parts.into_iter().flat_map(|part| part.found).collect();
    found.sort_by(|(a, _), (b, _)| order(a, b, descending));
    found.truncate(end(&found, wanted));
    found
}

/// Returns the number of distinct sort keys of the sorted items.
pub fn keys<T>(found: &[(String, T)]) -> usize {
    found.chunk_by(|(a, _), (b, _)| a == b).count()
}

/// Returns how many of the sorted items have one of the first `keys` sort keys.
pub fn end<T>(found: &[(String, T)], keys: usize) -> usize {
    found.chunk_by(|(a, _), (b, _)| a == b).take(keys).map(<[_]>::len).sum()
}

fn order(a: &str, b: &str, descending: bool) -> Ordering {
    if descending { b.cmp(a) } else { a.cmp(b) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    /// A list in shards. Each shard is in the list's order.
    struct List {
        shards: Vec<Vec<String>>,
        descending: bool,
    }

    impl List {
        fn new(members: &[usize], shards: usize, descending: bool) -> Self {
            let mut list = Self { shards: vec![Vec::new(); shards], descending };
            for (position, shard) in members.iter().enumerate() {
                list.shards[shard % shards].push(format!("{position:04}"));
            }
            if descending {
                list.shards.iter_mut().for_each(|shard| shard.reverse());
            }
            list
        }

        /// Reads further items as DynamoDB does: a read that stops at its limit reports that there
        /// may be more items.
        fn read(&self, parts: &mut [Part<()>], more: &[usize]) -> usize {
            let asked = parts.iter_mut().zip(&self.shards).zip(more).filter(|(_, more)| **more > 0);
            asked
                .map(|((part, shard), more)| {
                    let wanted = keys(&part.found) + more;
                    while !part.ended && keys(&part.found) < wanted {
                        let limit = wanted - keys(&part.found);
                        let read: Vec<_> = shard.iter().skip(part.found.len()).take(limit).collect();
                        part.ended = read.len() < limit;
                        part.found.extend(read.into_iter().map(|sort| (sort.clone(), ())));
                    }
                })
                .count()
        }

        /// Returns the page and the number of its requests. Like the real code, it reads one sort
        /// key more than the page has. That key shows that the list continues, and that all items
        /// of the previous key were read.
        fn page(&self, limit: usize) -> (Vec<String>, usize) {
            let wanted = limit + 1;
            let mut parts: Vec<Part<()>> =
                self.shards.iter().map(|_| Part { found: Vec::new(), ended: false }).collect();
            let mut requests = self.read(&mut parts, &vec![share(wanted, self.shards.len()); self.shards.len()]);
            let more = missing(&parts.iter().collect::<Vec<_>>(), wanted, self.descending);
            requests += self.read(&mut parts, &more);
            let left = missing(&parts.iter().collect::<Vec<_>>(), wanted, self.descending);
            assert!(left.iter().all(|left| *left == 0), "{left:?} after two rounds");
            let mut found = first(parts, wanted, self.descending);
            found.truncate(end(&found, limit));
            (found.into_iter().map(|(sort, ())| sort).collect(), requests)
        }

        /// Returns all items of the first `wanted` sort keys, merged from all items of all shards.
        fn plain(&self, wanted: usize) -> Vec<String> {
            let mut all: Vec<String> = self.shards.concat();
            all.sort();
            if self.descending {
                all.reverse();
            }
            let mut keys = all.clone();
            keys.dedup();
            if let Some(behind) = keys.get(wanted) {
                all.truncate(all.iter().position(|sort| sort == behind).unwrap());
            }
            all
        }
    }

    proptest! {
        #[test]
        fn a_page_is_a_prefix_of_the_plain_merge_for_every_distribution_of_items(
            members in prop_oneof![
                prop::collection::vec(0..8_usize, 0..300),
                // Long runs of items are in one shard. A real hash would not distribute them like
                // this.
                prop::collection::vec((0..8_usize, 1..60_usize), 0..8)
                    .prop_map(|runs| runs.into_iter().flat_map(|(shard, long)| vec![shard; long]).collect()),
            ],
            shards in 1..9_usize,
            wanted in 1..130_usize,
            descending: bool,
        ) {
            let list = List::new(&members, shards, descending);
            let (page, requests) = list.page(wanted);
            prop_assert_eq!(page, list.plain(wanted));
            prop_assert!(requests <= 2 * shards);
        }

        #[test]
        fn a_sort_key_of_several_items_counts_once_and_all_of_its_items_are_on_the_page(
            shards in prop::collection::vec(prop::collection::vec(0..80_usize, 0..100), 1..9),
            wanted in 1..100_usize,
            descending: bool,
        ) {
            let sorted = |mut shard: Vec<usize>| {
                shard.sort_unstable();
                let mut shard: Vec<String> = shard.into_iter().map(|key| format!("{key:04}")).collect();
                if descending {
                    shard.reverse();
                }
                shard
            };
            let list = List { shards: shards.into_iter().map(sorted).collect(), descending };
            let (page, requests) = list.page(wanted);
            prop_assert_eq!(page, list.plain(wanted));
            prop_assert!(requests <= 2 * list.shards.len());
        }

        #[test]
        fn the_first_round_reads_at_least_a_page_from_all_shards_together_and_at_most_a_page_from_each(
            wanted in 1..1_000_usize, shards in 1..100_usize,
        ) {
            let share = share(wanted, shards);
            prop_assert!(share <= wanted && share * shards >= wanted);
        }
    }

    #[test]
    fn a_list_with_more_shards_reads_fewer_items_of_each_shard() {
        assert_eq!([share(101, 1), share(101, 2), share(101, 4), share(21, 4), share(2, 4)], [101, 66, 39, 12, 2]);
    }

    #[test]
    fn a_list_with_all_items_in_one_shard_takes_a_second_request_to_that_shard() {
        let list = List::new(&[2; 300], 4, false);
        assert_eq!(list.page(100), (list.plain(100), 5));
    }

    /// Uses ids in the form of real customer ids, and the hash that selects a real customer's
    /// shard.
    #[test]
    fn at_most_two_of_a_hundred_pages_take_a_further_request() {
        let (mut pages, mut further) = (0, 0);
        for seed in 0..200_u64 {
            let mut random = fastrand::Rng::with_seed(seed);
            let shards = item_model::shard::Shards(4);
            let members: Vec<usize> =
                (0..400).map(|_| usize::try_from(shards.of(&format!("{:032x}", random.u128(..)))).unwrap()).collect();
            for wanted in [20, 100] {
                let list = List::new(&members, 4, false);
                let (page, requests) = list.page(wanted);
                assert_eq!(page, list.plain(wanted));
                (pages, further) = (pages + 1, further + requests - 4);
            }
        }
        assert!(pages == 400 && further > 0 && further <= 8, "{further} of {pages}");
    }
}
