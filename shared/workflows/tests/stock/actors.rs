//! Orders, a cancellation, and requests that change the number of shards, one step at a time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;

use fixture::seed;
use key_schema::id::{Born, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::key::Key;
use key_schema::order::{self, Order, OrderAction, OrderLine, OrderStatus, PlacedOrder, Step};
use key_schema::product::{self, Pick, Picks, ProductAction, ReshardReason, Stock};
use key_schema::request::{Guarded, Transaction};

use crate::memory::Memory;

#[derive(Debug, Clone)]
pub struct World {
    table: Memory,
    /// The pieces that all orders together may have: those in the stock and those of the cancelled
    /// order.
    pieces: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Placed,
    Refused,
}

#[derive(Debug, Clone)]
pub enum Actor {
    Order(Rc<Buyer>),
    /// An earlier order, whose pieces return.
    Cancel {
        line: Rc<Stored<OrderLine>>,
        is_done: bool,
    },
    Reshard(Rc<Resharding>),
}

#[derive(Debug, Clone)]
pub struct Buyer {
    line: Stored<OrderLine>,
    phase: Phase,
    /// The shards of the last complete pass, by their `rev`.
    before: Option<Vec<u64>>,
    /// Whether all shards together had enough pieces since the order began.
    was_enough: bool,
}

#[derive(Debug, Clone)]
enum Phase {
    /// Reads the product with its number of shards.
    Begin,
    Send,
    /// Reads the shards one after the other.
    Collect(Vec<Rc<Stored<Stock>>>),
    End(Outcome),
}

#[derive(Debug, Clone)]
pub struct Resharding {
    to: u32,
    /// The number of attempts that are left.
    attempts: u32,
    phase: Change,
}

/// Moves of pieces that are left, and the shards for which they were made.
#[derive(Debug, Clone)]
struct Moves {
    seen: Vec<Rc<Stored<Stock>>>,
    left: Vec<Rc<Transaction<ProductAction>>>,
}

impl Moves {
    fn new(seen: &[Rc<Stored<Stock>>], moves: Vec<Transaction<ProductAction>>) -> Self {
        Self { seen: seen.to_vec(), left: moves.into_iter().map(Rc::new).collect() }
    }
}

/// The steps of a change of the number of shards. The shards are those that were read so far.
#[derive(Debug, Clone)]
enum Change {
    Reshard(Vec<Rc<Stored<Stock>>>),
    /// Empties the shards that would end, after a refused merge.
    Drain(Moves),
    Level(Vec<Rc<Stored<Stock>>>),
    Move(Moves),
    End,
}

fn id() -> ProductId {
    ProductId::new("tea").unwrap()
}

fn line(number: usize, quantity: u64) -> Stored<OrderLine> {
    let at = Instant::EPOCH;
    let order = OrderId::generate(at, [u8::try_from(number).unwrap(); 10]);
    Stored::new(OrderLine { quantity, ..seed::line(&order, 1, id()) }, Born::counter(), at)
}

fn head(line: &OrderLine) -> Stored<Order> {
    let order = Order::new(line.order_id.clone(), "ann".parse().unwrap(), Instant::EPOCH, line.total, 1);
    Stored::new(order, Born::counter(), Instant::EPOCH)
}

/// The writes of orders, by their picks, and the shards, by their numbers. An exploration needs the same
/// ones very often.
#[derive(Default)]
struct Known {
    writes: HashMap<(OrderId, Vec<Pick>), Rc<[Guarded]>>,
    shards: HashMap<[Option<i64>; 4], Rc<Stored<Stock>>>,
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
    static KEYS: [Rc<Key>; 2] = {
        let first = Stock { shards: Some(2), ..Stock::new(id(), 0) };
        let further = product::further_shards(&first).unwrap().unwrap();
        [product::stock(&id()).unwrap().key(), &further.keys()[0]].map(|key| Rc::new(key.clone()))
    };
}

/// Returns the writes of stocks in the transaction that places the order.
fn placing(line: &Stored<OrderLine>) -> Rc<[Guarded]> {
    let make = || {
        let order = PlacedOrder::new(head(line), vec![line.clone()], "ann");
        of_stock(&order::place(&order, &[]).unwrap()).into()
    };
    let of = (line.order_id.clone(), line.picks.taken.clone());
    KNOWN.with_borrow_mut(|known| Rc::clone(known.writes.entry(of).or_insert_with(make)))
}

/// Returns the writes of stocks in an order's transaction.
fn of_stock(transaction: &Transaction<OrderAction>) -> Vec<Guarded> {
    let actions = transaction.actions().iter();
    actions.filter(|(action, _)| matches!(action, OrderAction::Stock(_))).map(|(_, write)| write.clone()).collect()
}

impl World {
    pub fn new(shards: u32, pieces: u64) -> Self {
        let mut table = Memory::default();
        let at = Instant::EPOCH;
        let product = seed::product("tea", seed::usd(129));
        table.put(&Stored::new(product, Born::counter(), at));
        let first = Stored::new(Stock::new(id(), pieces), Born::counter(), at);
        table.put(&first);
        if shards > 1 {
            let grow = product::grow(&first, shards, ReshardReason::Asked, at).unwrap();
            table.transact(grow.actions().iter().map(|(_, write)| write)).unwrap();
        }
        Self { table, pieces }
    }

    fn numbers(&self, name: &str) -> Vec<Option<i64>> {
        self.table.numbers("STOCK#", name).collect()
    }

    fn available(&self) -> u64 {
        let available = self.numbers("available").into_iter().map(|pieces| u64::try_from(pieces.unwrap()).unwrap());
        available.sum()
    }

    /// Returns a digest of what decides about the future. Orders only compare the `rev` of a shard with
    /// another one of that shard, so its rank among those is enough.
    pub fn digest(&self, actors: &[Actor]) -> u64 {
        let mut known: [Vec<u64>; 2] = Default::default();
        for revs in actors.iter().flat_map(Actor::compared).chain([self.revs()]) {
            revs.into_iter().zip(&mut known).for_each(|(rev, known)| known.push(rev));
        }
        for known in &mut known {
            known.sort_unstable();
            known.dedup();
        }
        let rank = |shard: usize, rev: u64| known[shard].binary_search(&rev).unwrap();
        let mut hasher = DefaultHasher::new();
        (self.numbers("available"), self.numbers("shards")).hash(&mut hasher);
        self.revs().into_iter().enumerate().for_each(|(shard, rev)| rank(shard, rev).hash(&mut hasher));
        actors.iter().for_each(|actor| actor.print(&mut hasher, rank));
        hasher.finish()
    }

    fn revs(&self) -> Vec<u64> {
        self.numbers("rev").into_iter().map(|rev| u64::try_from(rev.unwrap()).unwrap()).collect()
    }

    /// Checks what holds at any time.
    pub fn check(&self, actors: &[Actor]) {
        let (mut sold, mut back) = (0, 0);
        for actor in actors {
            match actor {
                Actor::Order(buyer) if matches!(buyer.phase, Phase::End(Outcome::Placed)) => {
                    sold += buyer.line.quantity
                }
                Actor::Cancel { line, is_done: true } => back += line.quantity,
                _ => {}
            }
        }
        assert_eq!(self.available() + sold, self.pieces + back, "a piece was lost or sold twice: {self:#?}");
        let shards = self.numbers("shards")[0];
        assert_eq!(self.numbers("shard"), (0..shards.unwrap_or(1)).map(Some).collect::<Vec<_>>());
        assert_eq!(self.table.numbers("PRODUCT#", "stock_shards").collect::<Vec<_>>(), [shards]);
    }

    /// Notes which orders have seen a moment without enough pieces.
    pub fn note_shortage(&self, actors: &mut [Actor]) {
        let available = self.available();
        for actor in actors {
            if let Actor::Order(buyer) = actor
                && available < buyer.line.quantity
                && buyer.was_enough
            {
                Rc::make_mut(buyer).was_enough = false;
            }
        }
    }
}

impl Actor {
    pub fn order(number: usize, quantity: u64) -> Self {
        let line = line(number, quantity);
        Self::Order(Rc::new(Buyer { line, phase: Phase::Begin, before: None, was_enough: true }))
    }

    pub fn cancel(quantity: u64) -> Self {
        Self::Cancel { line: Rc::new(line(99, quantity)), is_done: false }
    }

    /// Returns a request for so many shards, which makes at most so many attempts.
    pub fn reshard(to: u32, attempts: u32) -> Self {
        Self::Reshard(Rc::new(Resharding { to, attempts, phase: Change::Reshard(Vec::new()) }))
    }

    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Order(buyer) => match buyer.phase {
                Phase::End(outcome) => Some(outcome),
                _ => None,
            },
            _ => None,
        }
    }

    /// Takes the next step. Returns `false` after the last step.
    pub fn step(&mut self, world: &mut World) -> bool {
        match self {
            Self::Order(buyer) => Rc::make_mut(buyer).step(world),
            Self::Cancel { is_done: true, .. } => false,
            Self::Cancel { line, is_done } => {
                let (head, lines) = (head(line), std::slice::from_ref(&**line));
                let step = Step::new(&head, lines, OrderStatus::Cancelled, Instant::EPOCH, "ann");
                let writes = of_stock(&order::transition(step).unwrap());
                assert_eq!(writes.len(), 1);
                world.table.transact(writes.iter()).unwrap();
                *is_done = true;
                true
            }
            Self::Reshard(resharding) => Rc::make_mut(resharding).step(world),
        }
    }

    /// Adds what decides about the future of the actor. `rank` returns the rank of a `rev` of a shard.
    fn print(&self, hasher: &mut DefaultHasher, rank: impl Fn(usize, u64) -> usize) {
        let shards = |stocks: &[Rc<Stored<Stock>>], hasher: &mut DefaultHasher| {
            stocks.iter().for_each(|stock| (stock.available, stock.shards).hash(hasher));
        };
        let ranks = |revs: &[u64]| -> Vec<usize> { revs.iter().enumerate().map(|(at, rev)| rank(at, *rev)).collect() };
        match self {
            Self::Order(buyer) => match &buyer.phase {
                Phase::Begin => (0, buyer.was_enough).hash(hasher),
                Phase::Send => (1, buyer.was_enough, &buyer.line.picks.taken).hash(hasher),
                Phase::Collect(seen) => {
                    (2, buyer.was_enough, seen.len()).hash(hasher);
                    (buyer.before.as_deref().map(ranks), ranks(&revs(seen))).hash(hasher);
                    shards(seen, hasher);
                }
                Phase::End(outcome) => (3, outcome).hash(hasher),
            },
            Self::Cancel { is_done, .. } => is_done.hash(hasher),
            Self::Reshard(resharding) => {
                (resharding.attempts, std::mem::discriminant(&resharding.phase)).hash(hasher);
                match &resharding.phase {
                    Change::Reshard(seen) | Change::Level(seen) => shards(seen, hasher),
                    Change::Drain(moves) | Change::Move(moves) => {
                        moves.left.len().hash(hasher);
                        shards(&moves.seen, hasher);
                    }
                    Change::End => {}
                }
            }
        }
    }

    /// Returns the `rev` of each shard that the actor will compare with a later one.
    fn compared(&self) -> [Vec<u64>; 2] {
        match self {
            Self::Order(buyer) => match &buyer.phase {
                Phase::Collect(seen) => [buyer.before.clone().unwrap_or_default(), revs(seen)],
                _ => Default::default(),
            },
            _ => Default::default(),
        }
    }
}

fn revs(seen: &[Rc<Stored<Stock>>]) -> Vec<u64> {
    seen.iter().map(|stock| stock.meta.rev).collect()
}

/// Reads a shard.
fn shard(world: &World, number: u32) -> Option<Rc<Stored<Stock>>> {
    let key = KEYS.with(|keys| Rc::clone(&keys[usize::try_from(number).unwrap()]));
    let numbers = ["shard", "available", "rev", "shards"].map(|name| world.table.number(&key, name));
    numbers[0]?;
    let read = || Rc::new(world.table.get(&key).unwrap());
    Some(KNOWN.with_borrow_mut(|known| Rc::clone(known.shards.entry(numbers).or_insert_with(read))))
}

/// Reads the next shard. Returns whether all shards were read. After a merge, the reads begin again.
fn read_next(world: &World, seen: &mut Vec<Rc<Stored<Stock>>>) -> bool {
    let next = u32::try_from(seen.len()).unwrap();
    match shard(world, next) {
        Some(shard) => seen.push(shard),
        None => seen.clear(),
    }
    seen.first().is_some_and(|first| next + 1 == first.shards())
}

fn plain(seen: &[Rc<Stored<Stock>>]) -> Vec<Stored<Stock>> {
    seen.iter().map(|shard| (**shard).clone()).collect()
}

impl Buyer {
    fn step(&mut self, world: &mut World) -> bool {
        match &mut self.phase {
            Phase::Begin => {
                let shards = world.table.numbers("PRODUCT#", "stock_shards").next().unwrap();
                let shards = shards.map(|shards| u32::try_from(shards).unwrap());
                self.line.data.picks = Picks::first(&self.line.order_id, shards, self.line.quantity);
                self.phase = Phase::Send;
            }
            Phase::Send => {
                let writes = placing(&self.line);
                self.phase = match world.table.transact(writes.iter()) {
                    Ok(()) => Phase::End(Outcome::Placed),
                    Err(_) => {
                        let first = shard(world, 0).unwrap();
                        // The refusal has the shard as it is. Without further shards it is final.
                        let is_final = self.line.picks.taken.is_empty() && first.shards.is_none();
                        self.before = None;
                        if is_final { self.refused() } else { Phase::Collect(Vec::new()) }
                    }
                };
            }
            Phase::Collect(seen) => {
                if !read_next(world, seen) {
                    return true;
                }
                let seen = std::mem::take(seen);
                if let Some(picks) = Picks::among(&self.line, &plain(&seen)) {
                    self.line.data.picks = picks;
                    self.phase = Phase::Send;
                    return true;
                }
                let revs = revs(&seen);
                if self.before.as_ref() == Some(&revs) {
                    self.phase = self.refused();
                } else {
                    (self.before, self.phase) = (Some(revs), Phase::Collect(Vec::new()));
                }
            }
            Phase::End(_) => return false,
        }
        true
    }

    fn refused(&self) -> Phase {
        assert!(!self.was_enough, "refused although all shards together always had enough: {self:#?}");
        Phase::End(Outcome::Refused)
    }
}

impl Resharding {
    fn step(&mut self, world: &mut World) -> bool {
        let writes = |transaction: &Transaction<ProductAction>| -> Vec<Guarded> {
            transaction.actions().iter().map(|(_, write)| write.clone()).collect()
        };
        match &mut self.phase {
            Change::Reshard(seen) => {
                if !read_next(world, seen) {
                    return true;
                }
                let (at, asked) = (Instant::EPOCH, ReshardReason::Asked);
                if self.to == 1 && seen[0].shards.is_none() {
                    self.phase = Change::End;
                    return true;
                }
                let reshard = match self.to >= seen[0].shards() {
                    true => product::grow(&seen[0], self.to, asked, at).unwrap(),
                    false => product::merge(&plain(seen), self.to, asked, at).unwrap(),
                };
                self.attempts -= 1;
                let is_done = world.table.transact(writes(&reshard).iter()).is_ok();
                self.phase = match is_done {
                    true => Change::Level(Vec::new()),
                    false if self.attempts > 0 => {
                        Change::Drain(Moves::new(seen, product::drain(&plain(seen), self.to, at).unwrap()))
                    }
                    false => Change::End,
                };
            }
            Change::Level(seen) => {
                if read_next(world, seen) {
                    self.phase = Change::Move(Moves::new(seen, product::level(&plain(seen), Instant::EPOCH).unwrap()));
                }
            }
            Change::Drain(moves) => match moves.left.pop() {
                Some(step) => drop(world.table.transact(writes(&step).iter())),
                None => self.phase = Change::Reshard(Vec::new()),
            },
            Change::Move(moves) => match moves.left.pop() {
                // A refused move leaves the pieces where they are.
                Some(step) => drop(world.table.transact(writes(&step).iter())),
                None => self.phase = Change::End,
            },
            Change::End => return false,
        }
        true
    }
}
