//! A world under way: where each shard is, and what is being delivered.

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use stream::answer::Answer;
use tokio::time::Instant;

use crate::check::check;
use crate::explore::{Bounds, Move};
use crate::history::{History, consumer};
use crate::process::Process;
use crate::world::World;

/// A delivery that has begun and is not acknowledged.
struct Delivery {
    /// The positions of its records in the shard.
    range: Range<usize>,
    /// Whether it moves the shard on; a repetition does not.
    repeats: bool,
    process: Process,
    work: Pin<Box<dyn Future<Output = Answer>>>,
    /// What it answered, until that arrives.
    answer: Option<Answer>,
}

#[derive(Default)]
struct Shard {
    place: Place,
    delivery: Option<Delivery>,
}

/// How far a shard is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Place {
    /// How many of the shop's writes were made.
    written: usize,
    /// How many records have passed.
    delivered: usize,
}

/// One run through a history.
pub struct Run<'h> {
    history: &'h History,
    world: Arc<Mutex<World>>,
    shards: Vec<Shard>,
    bounds: Bounds,
    crashes: usize,
    repeats: usize,
    /// What was done, for whoever reads that it went wrong.
    path: Vec<Move>,
}

/// A run in which no delivery is under way. It can be gone on with any number of times.
pub struct Quiet<'h> {
    history: &'h History,
    world: World,
    places: Vec<Place>,
    bounds: Bounds,
    crashes: usize,
    repeats: usize,
    path: Vec<Move>,
}

impl<'h> Quiet<'h> {
    /// Nothing has happened yet.
    pub fn start(history: &'h History, bounds: Bounds) -> Self {
        let places = history.writes.iter().map(|_| Place::default()).collect();
        Self { history, world: history.world.clone(), places, bounds, crashes: 0, repeats: 0, path: Vec::new() }
    }

    pub fn resume(&self) -> Run<'h> {
        Run {
            history: self.history,
            world: Arc::new(Mutex::new(self.world.clone())),
            shards: self.places.iter().map(|place| Shard { place: *place, delivery: None }).collect(),
            bounds: self.bounds,
            crashes: self.crashes,
            repeats: self.repeats,
            path: self.path.clone(),
        }
    }
}

impl<'h> Run<'h> {
    /// The run as it is, if no delivery is under way.
    pub fn quiet(&self) -> Option<Quiet<'h>> {
        self.shards.iter().all(|shard| shard.delivery.is_none()).then(|| Quiet {
            history: self.history,
            world: self.world().clone(),
            places: self.shards.iter().map(|shard| shard.place).collect(),
            bounds: self.bounds,
            crashes: self.crashes,
            repeats: self.repeats,
            path: self.path.clone(),
        })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Every move that can be made now.
    pub fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        let busy = self.shards.iter().position(|shard| shard.delivery.is_some());
        for shard in 0..self.shards.len() {
            if self.bounds.side_by_side || busy.is_none_or(|busy| busy == shard) {
                self.moves_of(shard, &mut moves);
            }
        }
        moves
    }

    fn moves_of(&self, number: usize, moves: &mut Vec<Move>) {
        let shard = &self.shards[number];
        let may_write = shard.delivery.is_none() || self.bounds.side_by_side;
        if may_write && shard.place.written < self.history.writes[number].len() {
            moves.push(Move::Write { shard: number });
        }
        if shard.delivery.is_some() {
            if self.crashes < self.bounds.crashes {
                moves.push(Move::Crash { shard: number });
            }
            moves.push(Move::Step { shard: number });
            return;
        }
        if self.repeats < self.bounds.repeats {
            for from in 0..shard.place.delivered {
                moves.extend((from + 1..=shard.place.delivered).map(|to| Move::Repeat { shard: number, from, to }));
            }
        }
        let waiting = self.written(number) - shard.place.delivered;
        moves.extend((1..=waiting).map(|count| Move::Deliver { shard: number, count }));
    }

    pub fn take(&mut self, step: Move) {
        self.path.push(step);
        match step {
            Move::Write { shard } => {
                let write = &self.history.writes[shard][self.shards[shard].place.written];
                self.world().write(write);
                self.shards[shard].place.written += 1;
            }
            Move::Deliver { shard, count } => {
                let from = self.shards[shard].place.delivered;
                self.begin(shard, from..from + count, false);
            }
            Move::Repeat { shard, from, to } => {
                self.repeats += 1;
                self.begin(shard, from..to, true);
            }
            Move::Step { shard } => self.step(shard),
            Move::Crash { shard } => {
                self.crashes += 1;
                self.shards[shard].delivery = None;
            }
        }
    }

    fn begin(&mut self, shard: usize, range: Range<usize>, repeats: bool) {
        let records = self.world().stream[shard][range.clone()].to_vec();
        let process = Process::new(self.world.clone());
        let consumer = consumer(&process);
        let work = async move {
            let event = crate::records::event(&records);
            let stop = Instant::now() + Duration::from_secs(60);
            consumer.take(&event, stop).await.unwrap().answer
        };
        let work = Box::pin(tokio::task::unconstrained(work));
        let mut delivery = Delivery { range, repeats, process, work, answer: None };
        // Up to its first call.
        delivery.answer = poll(&mut delivery.work);
        self.shards[shard].delivery = Some(delivery);
    }

    fn step(&mut self, shard: usize) {
        let shard = &mut self.shards[shard];
        let delivery = shard.delivery.as_mut().unwrap();
        if let Some(answer) = delivery.answer.take() {
            assert_eq!(answer.earliest(), None, "nothing fails in this world but by a crash");
            if !delivery.repeats {
                shard.place.delivered = delivery.range.end;
            }
            shard.delivery = None;
            return;
        }
        delivery.process.gate.open();
        delivery.answer = poll(&mut delivery.work);
        assert!(!delivery.process.gate.is_open(), "the delivery waits for something that is not of this world");
    }

    /// Everything was written and delivered.
    pub fn is_settled(&self) -> bool {
        self.shards.iter().enumerate().all(|(number, shard)| {
            let written = shard.place.written == self.history.writes[number].len();
            written && shard.delivery.is_none() && shard.place.delivered == self.written(number)
        })
    }

    /// How many records a shard has, those of the consumer's own changes too.
    fn written(&self, shard: usize) -> usize {
        self.world().stream[shard].len()
    }

    /// A digest of everything that later moves can depend on.
    pub fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.world().digest().hash(&mut hasher);
        (self.crashes, self.repeats).hash(&mut hasher);
        for shard in &self.shards {
            shard.place.hash(&mut hasher);
            if let Some(delivery) = &shard.delivery {
                let seen = delivery.process.gate.seen();
                (&delivery.range, delivery.repeats, seen, delivery.answer.is_some()).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Everything is as the table's history says.
    pub fn check(&self) {
        if let Err(wrong) = check(&self.world(), self.crashes) {
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
