//! The search through every schedule of a [`History`].
//!
//! A schedule is a sequence of moves ([`Move`]). A source of changes writes to the table, a batch
//! of a shard is delivered, or earlier records of a shard are delivered again. A delivery makes its
//! next call, or crashes. The deliveries of two shards are concurrent, call by call.
//!
//! The search goes depth first and remembers the states that it has visited. A state is everything
//! that later moves can depend on. Futures cannot be copied. So the search enters a branch from the
//! last state without a running delivery, and repeats the moves since then. If schedules differ
//! only in the order of independent moves, the search takes only one of these schedules
//! ([`crate::territory`]). If only one move is possible, the search makes it without a check of the
//! state.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::rc::Rc;

use crate::history::History;
use crate::run::Quiet;

/// The limits of the schedules.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The maximum number of deliveries that crash.
    pub crashes: usize,
    /// The maximum number of times that earlier records are delivered again.
    pub repeats: usize,
    /// The maximum number of calls that fail completely or in their last part.
    pub failures: usize,
    /// Whether the two shards deliver concurrently, call by call, while the sources write.
    /// Otherwise a delivery ends or crashes before any other move.
    pub side_by_side: bool,
    /// Whether the search skips schedules that are equivalent to another schedule.
    pub reduced: bool,
}

/// One move of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// The next write of a shard's items is applied to the table and the stream.
    Write { shard: usize },
    /// The next records of a shard are delivered.
    Deliver { shard: usize, count: usize },
    /// Some earlier records of a shard are delivered again.
    Repeat { shard: usize, from: usize, to: usize },
    /// The delivery of a shard makes its next call, or its response arrives.
    Step { shard: usize },
    /// The awaited call of a shard's delivery fails, completely or in its last part.
    Fail { shard: usize },
    /// The delivery of a shard crashes at its current call.
    Crash { shard: usize },
}

impl Move {
    pub fn shard(self) -> usize {
        match self {
            Self::Write { shard }
            | Self::Deliver { shard, .. }
            | Self::Repeat { shard, .. }
            | Self::Step { shard }
            | Self::Fail { shard }
            | Self::Crash { shard } => shard,
        }
    }
}

/// The extent of a search.
#[derive(Debug, Clone, Default)]
pub struct Explored {
    /// The number of different states.
    pub states: usize,
    /// The number of moves between the states.
    pub moves: usize,
    /// The number of states in which all records were delivered. The search checks each of them.
    pub ends: usize,
    /// Digests of the possible ends. An end is the final state with the number of each fault before
    /// it.
    pub endings: BTreeSet<u64>,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states, {} moves, {} ends checked", self.states, self.moves, self.ends)
    }
}

/// A branch that the search has not entered yet.
struct Branch<'h> {
    from: Rc<Quiet<'h>>,
    since: Vec<Move>,
}

/// Explores every schedule. Panics if a schedule ends in a wrong state, and shows the schedule.
pub fn explore(history: &History, bounds: Bounds) -> Explored {
    let mut explored = Explored::default();
    let mut seen: HashSet<u64> = HashSet::new();
    let mut open = vec![Branch { from: Rc::new(Quiet::start(history, bounds)), since: Vec::new() }];
    while let Some(Branch { mut from, mut since }) = open.pop() {
        let mut run = from.resume();
        for step in &since {
            run.take(*step);
        }
        // The search follows one branch while its states are new. It explores the other branches
        // later.
        while seen.insert(run.state()) {
            explored.states += 1;
            if run.is_settled() {
                explored.ends += 1;
                explored.endings.insert(run.end());
                run.check();
            }
            if let Some(quiet) = run.quiet() {
                from = Rc::new(quiet);
                since.clear();
            }
            let mut moves = run.moves();
            explored.moves += moves.len();
            let Some(next) = moves.pop() else { break };
            for other in moves {
                let since = since.iter().copied().chain([other]).collect();
                open.push(Branch { from: from.clone(), since });
            }
            run.take(next);
            since.push(next);
        }
    }
    explored
}
