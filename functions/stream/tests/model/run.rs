//! A run: the position of each shard, and the deliveries in progress.

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use stream::answer::Answer;
use tokio::time::Instant;

use crate::check::{check, repeated};
use crate::explore::{Bounds, Move};
use crate::history::{History, consumer};
use crate::process::{CallOutcome, Process, digest};
use crate::territory::{Actor, Footprint, Reach, Territory};
use crate::world::World;

/// A delivery that has begun and whose response has not arrived.
struct Delivery {
    /// The positions of its records in the shard.
    range: Range<usize>,
    /// Whether it repeats earlier records. Then it does not advance the shard.
    repeats: bool,
    process: Process,
    work: Pin<Box<dyn Future<Output = Answer>>>,
    /// The response, if the delivery has ended. It arrives in the next step.
    answer: Option<Answer>,
    /// Whether the delivery's last step changed something. Then a crash now differs from an earlier
    /// crash.
    changed: bool,
}

#[derive(Default)]
struct Shard {
    position: Position,
    delivery: Option<Delivery>,
}

/// The progress of a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Position {
    /// The number of writes by sources so far.
    written: usize,
    /// The number of acknowledged records.
    delivered: usize,
}

/// One run through a history.
pub struct Run<'h> {
    history: &'h History,
    world: Arc<Mutex<World>>,
    shards: Vec<Shard>,
    bounds: Bounds,
    spent: Spent,
    territory: Arc<Territory>,
    /// The moves so far, for the report of a failure.
    path: Vec<Move>,
}

/// The used part of the bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Spent {
    pub crashes: usize,
    pub repeats: usize,
    pub failures: usize,
    /// The current shard, if the shards share nothing. They then run one after the other, from the
    /// last shard to the first.
    front: usize,
}

/// A run without a delivery in progress. It can be resumed any number of times.
pub struct Quiet<'h> {
    history: &'h History,
    world: World,
    positions: Vec<Position>,
    bounds: Bounds,
    spent: Spent,
    territory: Arc<Territory>,
    path: Vec<Move>,
}

impl<'h> Quiet<'h> {
    /// Returns the initial state.
    pub fn start(history: &'h History, bounds: Bounds) -> Self {
        let positions = history.writes.iter().map(|_| Position::default()).collect();
        let territory = Arc::new(Territory::new(history.sharing.clone()));
        let spent = Spent { front: history.writes.len() - 1, ..Spent::default() };
        Self { history, world: history.world.clone(), positions, bounds, spent, territory, path: Vec::new() }
    }

    pub fn resume(&self) -> Run<'h> {
        Run {
            history: self.history,
            world: Arc::new(Mutex::new(self.world.clone())),
            shards: self.positions.iter().map(|position| Shard { position: *position, delivery: None }).collect(),
            bounds: self.bounds,
            spent: self.spent,
            territory: self.territory.clone(),
            path: self.path.clone(),
        }
    }
}

impl<'h> Run<'h> {
    /// Returns the current state, if no delivery is in progress.
    pub fn quiet(&self) -> Option<Quiet<'h>> {
        self.shards.iter().all(|shard| shard.delivery.is_none()).then(|| Quiet {
            history: self.history,
            world: self.world().clone(),
            positions: self.shards.iter().map(|shard| shard.position).collect(),
            bounds: self.bounds,
            spent: self.spent,
            territory: self.territory.clone(),
            path: self.path.clone(),
        })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Returns the possible moves, without those that [`crate::territory`] skips.
    pub fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        if self.bounds.reduced {
            if let Some(shard) = (0..self.shards.len()).find(|shard| self.unnoticed_write(*shard)) {
                return vec![Move::Write { shard }];
            }
            if let Some(shard) = (0..self.shards.len()).find(|shard| self.keeps_to_itself(*shard)) {
                self.moves_of(shard, &mut moves);
                moves.retain(|step| !matches!(step, Move::Write { .. }));
                return moves;
            }
            if !self.territory.sharing.across_shards {
                let front = self.spent.front;
                self.moves_of(front, &mut moves);
                if front > 0 && self.is_through(front) {
                    self.moves_of(front - 1, &mut moves);
                }
                return moves;
            }
        }
        let busy = self.shards.iter().position(|shard| shard.delivery.is_some());
        for shard in 0..self.shards.len() {
            if self.bounds.side_by_side || busy.is_none_or(|busy| busy == shard) {
                self.moves_of(shard, &mut moves);
            }
        }
        moves
    }

    /// Returns whether the next source write in this shard is invisible to every other actor.
    fn unnoticed_write(&self, shard: usize) -> bool {
        let next = self.history.writes[shard].get(self.shards[shard].position.written);
        next.is_some_and(|write| self.territory.is_unnoticed(shard, &write.key))
    }

    /// Returns whether the next step of the delivery is invisible to every other actor.
    fn keeps_to_itself(&self, shard: usize) -> bool {
        self.shards[shard].delivery.as_ref().is_some_and(|delivery| {
            delivery.answer.is_some() || delivery.process.gate.next().is_some_and(|reach| reach == Reach::Own)
        })
    }

    fn moves_of(&self, number: usize, moves: &mut Vec<Move>) {
        let shard = &self.shards[number];
        let may_write = shard.delivery.is_none() || self.bounds.side_by_side;
        if may_write && shard.position.written < self.history.writes[number].len() {
            moves.push(Move::Write { shard: number });
        }
        if let Some(delivery) = &shard.delivery {
            let differs = delivery.changed || !self.bounds.reduced;
            if self.spent.crashes < self.bounds.crashes && differs {
                moves.push(Move::Crash { shard: number });
            }
            if self.spent.failures < self.bounds.failures && delivery.answer.is_none() {
                moves.push(Move::Fail { shard: number });
            }
            moves.push(Move::Step { shard: number });
            return;
        }
        if self.spent.repeats < self.bounds.repeats {
            for from in 0..shard.position.delivered {
                moves.extend((from + 1..=shard.position.delivered).map(|to| Move::Repeat { shard: number, from, to }));
            }
        }
        let waiting = self.written(number) - shard.position.delivered;
        moves.extend((1..=waiting).map(|count| Move::Deliver { shard: number, count }));
    }

    /// Makes a move, and then further moves while only one is possible.
    pub fn take(&mut self, step: Move) {
        self.make(step);
        while !self.is_settled() {
            match self.moves().as_slice() {
                [only] => self.make(*only),
                _ => return,
            }
        }
    }

    fn make(&mut self, step: Move) {
        self.path.push(step);
        self.spent.front = self.spent.front.min(step.shard());
        match step {
            Move::Write { shard } => {
                let write = &self.history.writes[shard][self.shards[shard].position.written];
                self.territory.enter(Actor::Shop(shard), &Footprint::keys([write.key.clone()]));
                self.world().write(write);
                self.shards[shard].position.written += 1;
            }
            Move::Deliver { shard, count } => {
                let from = self.shards[shard].position.delivered;
                self.begin(shard, from..from + count, false);
            }
            Move::Repeat { shard, from, to } => {
                self.spent.repeats += 1;
                self.begin(shard, from..to, true);
            }
            Move::Step { shard } => self.step(shard, CallOutcome::Done),
            Move::Fail { shard } => {
                self.spent.failures += 1;
                self.step(shard, CallOutcome::Fails);
            }
            Move::Crash { shard } => {
                self.spent.crashes += 1;
                self.shards[shard].delivery = None;
            }
        }
    }

    fn begin(&mut self, shard: usize, range: Range<usize>, repeats: bool) {
        let records = self.world().stream[shard][range.clone()].to_vec();
        let process = Process::new(self.world.clone(), self.territory.clone(), shard);
        let consumer = consumer(&process);
        let work = async move {
            let event = crate::world::event(&records);
            let stop = Instant::now() + Duration::from_secs(60);
            consumer.take(&event, stop).await.unwrap().answer
        };
        let work = Box::pin(tokio::task::unconstrained(work));
        let mut delivery = Delivery { range, repeats, process, work, answer: None, changed: false };
        // The delivery runs up to its first call.
        delivery.answer = poll(&mut delivery.work);
        self.shards[shard].delivery = Some(delivery);
    }

    fn step(&mut self, number: usize, outcome: CallOutcome) {
        let before = self.world().changes();
        let shard = &mut self.shards[number];
        let delivery = shard.delivery.as_mut().unwrap();
        if let Some(answer) = delivery.answer.take() {
            let failed = self.spent.failures > 0;
            assert!(failed || answer.earliest().is_none(), "a delivery failed without an injected fault");
            if !delivery.repeats {
                // Sequence numbers count from 1.
                let earliest = answer.earliest().map(|sequence| sequence.as_str().parse::<usize>().unwrap() - 1);
                shard.position.delivered = earliest.unwrap_or(delivery.range.end);
            }
            shard.delivery = None;
            return;
        }
        delivery.process.gate.open(outcome);
        delivery.answer = poll(&mut delivery.work);
        assert!(!delivery.process.gate.is_open(), "the delivery waits for something outside of the model");
        let waits = delivery.answer.is_some() || delivery.process.gate.next().is_some();
        assert!(waits, "the delivery waits for something outside of the model");
        let world = self.world.lock().unwrap();
        delivery.changed = world.changes() != before;
        if let Err(wrong) = repeated(&world, self.spent) {
            panic!("{wrong}\nafter {:#?}", self.path);
        }
    }

    /// Returns whether all writes were made and all records were delivered.
    pub fn is_settled(&self) -> bool {
        (0..self.shards.len()).all(|shard| self.is_through(shard))
    }

    fn is_through(&self, number: usize) -> bool {
        let shard = &self.shards[number];
        let written = shard.position.written == self.history.writes[number].len();
        written && shard.delivery.is_none() && shard.position.delivered == self.written(number)
    }

    /// Returns the number of records in a shard, including those of the consumer's own changes.
    fn written(&self, shard: usize) -> usize {
        self.world().stream[shard].len()
    }

    /// Returns a digest of everything that later moves can depend on.
    pub fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.world().digest().hash(&mut hasher);
        self.spent.hash(&mut hasher);
        for shard in &self.shards {
            shard.position.hash(&mut hasher);
            if let Some(delivery) = &shard.delivery {
                // Once a delivery has responded, only its response matters.
                let earliest = delivery.answer.as_ref().map(|answer| answer.earliest().map(ToString::to_string));
                let seen = if earliest.is_some() { 0 } else { delivery.process.gate.seen() };
                let may_die = delivery.changed && self.spent.crashes < self.bounds.crashes;
                let told = (earliest, may_die);
                (&delivery.range, delivery.repeats, seen, told).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Returns a digest of the final state and of the number of each fault.
    pub fn end(&self) -> u64 {
        let Spent { crashes, repeats, failures, .. } = self.spent;
        digest(&(self.world().digest(), crashes, repeats, failures))
    }

    /// Checks that all data matches the table's history.
    pub fn check(&self) {
        if let Err(wrong) = check(&self.world()) {
            panic!("{wrong}\nafter {:#?}", self.path);
        }
    }
}

fn poll<T>(work: &mut Pin<Box<impl Future<Output = T> + ?Sized>>) -> Option<T> {
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
