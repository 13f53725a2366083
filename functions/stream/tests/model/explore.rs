//! Every schedule of a small world.
//!
//! A schedule is a sequence of moves: the table is written, a batch of a shard is delivered, a delivery takes its next call, a delivery dies, an
//! earlier stretch of a shard is delivered once more. Two shards deliver side by side, call by call. The search goes depth first and remembers
//! the states it has been in; a state is everything that later moves can depend on. Futures cannot be copied, so a branch is entered from
//! the last state in which no delivery was under way, by taking the moves since then again. Of schedules that differ only in the order of
//! moves which do not touch each other one is taken ([`crate::territory`]), and where there is one move only, it is made without a look at the state.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::rc::Rc;

use crate::history::History;
use crate::run::Quiet;

/// Which schedules there are.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many deliveries die.
    pub crashes: usize,
    /// How many stretches are delivered once more.
    pub repeats: usize,
    /// How many calls fail, or their last parts.
    pub failures: usize,
    /// Whether the two shards deliver at the same time, call by call, and the shop writes meanwhile. Otherwise a delivery that has begun ends, or
    /// dies, before anything else happens.
    pub side_by_side: bool,
    /// Whether schedules are left out that others stand for.
    pub reduced: bool,
}

/// One move of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// The next write of a shard's items reaches the table, and the stream.
    Write { shard: usize },
    /// The next records of a shard are delivered.
    Deliver { shard: usize, count: usize },
    /// An earlier stretch of a shard is delivered once more.
    Repeat { shard: usize, from: usize, to: usize },
    /// The delivery of a shard takes its next call, or its answer arrives.
    Step { shard: usize },
    /// The call that the delivery of a shard waits for fails, or the last part of it.
    Fail { shard: usize },
    /// The delivery of a shard dies where it is.
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

/// What was explored.
#[derive(Debug, Clone, Default)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Moves between them.
    pub moves: usize,
    /// States in which everything was delivered, each of which was checked.
    pub ends: usize,
    /// How it can end: what everything is then, and what has happened on the way.
    pub endings: BTreeSet<u64>,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states, {} moves, {} ends checked", self.states, self.moves, self.ends)
    }
}

/// A branch that is still to be entered.
struct Branch<'h> {
    from: Rc<Quiet<'h>>,
    since: Vec<Move>,
}

/// Explores every schedule; a wrong end is a panic that names the schedule.
pub fn explore(history: &History, bounds: Bounds) -> Explored {
    let mut explored = Explored::default();
    let mut seen: HashSet<u64> = HashSet::new();
    let mut open = vec![Branch { from: Rc::new(Quiet::start(history, bounds)), since: Vec::new() }];
    while let Some(Branch { mut from, mut since }) = open.pop() {
        let mut run = from.resume();
        for step in &since {
            run.take(*step);
        }
        // Onward as far as states are new; the other branches are left for later.
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
