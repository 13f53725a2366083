//! Explores every interleaving of orders, a cancellation, and changes of a stock's shards.
//!
//! The transactions are those of [`key_schema::product`] and [`key_schema::order`], and [`memory`]
//! executes them. The actors take the same steps as [`workflows::stock`]. Each step is one read of an
//! item or one transaction, so reads of several shards see different moments.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod actors;
mod memory;

use std::collections::{BTreeSet, HashSet};

use actors::Outcome::{Placed, Refused};
use actors::{Actor, Outcome, World};

/// Follows every schedule. Returns the number of states, and the outcomes of the orders.
fn explore(world: World, actors: &[Actor]) -> (usize, BTreeSet<Vec<Outcome>>) {
    let (mut open, mut seen, mut ends) = (vec![(world, actors.to_vec())], HashSet::new(), BTreeSet::new());
    while let Some((world, actors)) = open.pop() {
        if !seen.insert(world.digest(&actors)) {
            continue;
        }
        world.check(&actors);
        let mut is_over = true;
        for number in 0..actors.len() {
            let (mut world, mut actors) = (world.clone(), actors.clone());
            if actors[number].step(&mut world) {
                world.note_shortage(&mut actors);
                open.push((world, actors));
                is_over = false;
            }
        }
        if is_over {
            ends.insert(actors.iter().filter_map(Actor::outcome).collect());
        }
    }
    (seen.len(), ends)
}

/// Explores orders of these quantities, a cancellation of two pieces, a growth and a merge.
fn explore_all(shards: u32, pieces: u64, quantities: &[u64], attempts: u32) -> BTreeSet<Vec<Outcome>> {
    let world = World::new(shards, pieces);
    let mut actors: Vec<_> = quantities.iter().enumerate().map(|(at, pieces)| Actor::order(at, *pieces)).collect();
    actors.extend([Actor::cancel(2), Actor::reshard(2, attempts), Actor::reshard(1, attempts)]);
    let (states, ends) = explore(world, &actors);
    println!("{shards} shards, {pieces} pieces, orders of {quantities:?}: {states} states, {} ends", ends.len());
    ends
}

#[test]
fn every_interleaving_sells_each_piece_once() {
    // With the two cancelled pieces, seven of the eight wanted ones exist.
    let ends = explore_all(1, 5, &[2, 4, 2], 1);
    assert!(ends.contains(&vec![Placed, Placed, Refused]) && ends.contains(&vec![Placed, Refused, Placed]));
    assert!(!ends.contains(&vec![Placed; 3]));
}

#[test]
fn no_interleaving_refuses_an_order_while_enough_is_left() {
    for shards in [1, 2] {
        assert_eq!(explore_all(shards, 6, &[2, 3, 1], 1), BTreeSet::from([vec![Placed; 3]]));
    }
}

/// A merge that is refused empties the shards that it ends, and tries again.
#[test]
fn no_interleaving_with_a_repeated_merge_loses_a_piece() {
    let ends = explore_all(2, 4, &[2, 3], 2);
    assert!(ends.contains(&vec![Placed; 2]) && ends.contains(&vec![Placed, Refused]));
}
