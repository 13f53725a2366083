//! Explores every schedule of a small world, and random schedules of larger worlds.

use std::collections::{BTreeSet, HashSet};

use fastrand::Rng;
use fixture::crash_after;
use key_schema::id::PaymentId;
use key_schema::order::OrderStatus;
use key_schema::payment::{CaptureMode, OperationKind, PaymentStatus};
use payments::IntentStatus;

use crate::bank::Fault;
use crate::model::{Worker, World};
use crate::shop::{Shop, summary};

const TOTAL: i64 = 1000;

/// What staff do in an exploration.
#[derive(Debug, Clone, Copy)]
enum Staff {
    Capture(i64),
    Refund(i64),
}

/// How an order ends in an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Cancel,
    Lapse,
}

/// A state of an exploration. Each part of the future happens once, at any time.
#[derive(Debug, Clone)]
struct State {
    world: World,
    workers: Vec<Worker>,
    is_confirmed: bool,
    is_touched: bool,
    is_ended: bool,
    /// The number of webhooks that have arrived. At most one is delivered twice.
    arrived: usize,
    /// How many calls can still lose their response, and how many workers can still stop.
    losses: usize,
    crashes: usize,
}

const WORKERS: usize = 2;

impl State {
    fn new(capture: CaptureMode) -> (Self, PaymentId) {
        let mut world = World::new(TOTAL);
        let payment = world.pay(TOTAL, capture).unwrap();
        let workers = vec![Worker::new(None)];
        let (is_confirmed, is_touched, is_ended) = (false, false, false);
        (Self { world, workers, is_confirmed, is_touched, is_ended, arrived: 0, losses: 1, crashes: 1 }, payment)
    }

    /// Returns every state that can follow.
    fn next(&self, payment: &PaymentId, staff: Staff, end: End) -> Vec<Self> {
        let mut next = Vec::new();
        let mut follow = |act: &dyn Fn(&mut Self) -> bool| {
            let mut state = self.clone();
            if act(&mut state) {
                next.push(state);
            }
        };
        let intent = self.world.items.payment(payment).intent.clone();
        if let Some(intent) = intent.as_deref() {
            if !self.is_confirmed {
                follow(&|state| {
                    state.is_confirmed = true;
                    state.world.books.confirm(intent)
                });
            }
            if self.workers.len() < WORKERS && self.arrived <= self.world.books.events.len() {
                follow(&|state| {
                    state.arrived += 1;
                    state.workers.push(Worker::new(Some(intent.to_owned())));
                    true
                });
            }
        }
        if !self.is_touched {
            follow(&|state| {
                state.is_touched = true;
                match staff {
                    Staff::Capture(amount) => state.world.staff(payment, OperationKind::Capture, amount),
                    Staff::Refund(amount) => state.world.staff(payment, OperationKind::Refund, amount),
                }
            });
        }
        if !self.is_ended {
            follow(&|state| {
                state.is_ended = true;
                if end == End::Cancel { state.world.end() } else { state.world.lapse() }
            });
        }
        for number in 0..self.workers.len() {
            let step = |state: &mut Self, fault| {
                let mut worker = state.workers.remove(number);
                if !worker.step(&mut state.world, fault) {
                    state.workers.insert(number, worker);
                }
                true
            };
            follow(&|state| step(state, None));
            if self.losses > 0 && self.workers[number].is_calling() {
                follow(&|state| {
                    state.losses -= 1;
                    step(state, Some(Fault::LostResponse))
                });
            }
            if self.crashes > 0 {
                follow(&|state| {
                    state.crashes -= 1;
                    state.workers.remove(number);
                    true
                });
            }
        }
        next
    }
}

/// Follows every schedule. Returns the number of states, and the statuses in which the order ends. The
/// status of an order that was paid after it had lapsed is `revived` here.
fn explore(capture: CaptureMode, staff: Staff, end: End, has_stock: bool) -> (usize, BTreeSet<&'static str>) {
    let (mut first, payment) = State::new(capture);
    first.world.has_stock = has_stock;
    let (mut open, mut seen, mut ends) = (vec![first], HashSet::new(), BTreeSet::new());
    while let Some(state) = open.pop() {
        let rest = (state.is_confirmed, state.is_touched, state.is_ended, state.arrived, state.losses, state.crashes);
        if !seen.insert(state.world.print(&(&state.workers, rest))) {
            continue;
        }
        if state.workers.is_empty() {
            // The schedule may end here. The cashier does the rest.
            let mut world = state.world.clone();
            world.reconcile();
            world.check_settled();
            ends.insert(if world.is_revived { "revived" } else { world.status().as_str() });
        }
        open.extend(state.next(&payment, staff, end));
    }
    (seen.len(), ends)
}

#[test]
fn every_schedule_of_a_refund_and_the_end_of_the_order_keeps_the_books() {
    for (end, has_stock, amounts) in
        [(End::Cancel, true, &[400, TOTAL][..]), (End::Lapse, false, &[TOTAL]), (End::Lapse, true, &[400])]
    {
        for &amount in amounts {
            let (states, ends) = explore(CaptureMode::AtOnce, Staff::Refund(amount), end, has_stock);
            println!("refund of {amount}, {end:?}, {has_stock}: {states} states");
            assert!(states > 1000, "{states}");
            let may_revive = end == End::Lapse && has_stock;
            let revived = may_revive.then_some("revived");
            assert_eq!(ends, ["pending", "paid", "cancelled"].into_iter().chain(revived).collect());
        }
    }
}

#[test]
fn every_schedule_of_a_capture_and_the_end_of_the_order_keeps_the_books() {
    for end in [End::Cancel, End::Lapse] {
        for amount in [400, TOTAL] {
            let (states, ends) = explore(CaptureMode::AtShipping, Staff::Capture(amount), end, true);
            println!("capture of {amount}, {end:?}: {states} states");
            assert!(states > 1000, "{states}");
            assert_eq!(ends, BTreeSet::from(["pending", "paid", "cancelled"]));
        }
    }
}

/// One random schedule of several payments. What staff do before the order is paid is a part of it
/// only if `has_staff`.
fn random_schedule(seed: u64, has_staff: bool) -> World {
    let mut random = Rng::with_seed(seed);
    let mut world = World::new(TOTAL);
    world.has_stock = random.bool();
    let (mut workers, mut delivered) = (Vec::<Worker>::new(), 0);
    let ships = random.bool();
    for _ in 0..random.usize(20..80) {
        let fault = match random.u8(..12) {
            0 => Some(Fault::NotSent),
            1 => Some(Fault::Lost),
            2 => Some(Fault::LostResponse),
            _ => None,
        };
        let items = std::rc::Rc::clone(&world.items);
        let payment = random.choice(&items.payments).map(|payment| payment.data.clone());
        let intent = payment.as_ref().and_then(|payment| payment.intent.clone());
        let account = intent.as_deref().map(|intent| world.books.account(intent).clone());
        match (random.u8(..40), payment, intent) {
            (0..=3, ..) if items.payments.len() < 6 => {
                let capture = if random.bool() { CaptureMode::AtOnce } else { CaptureMode::AtShipping };
                if world.pay(*random.choice(&[300, 600, 700, TOTAL]).unwrap(), capture).is_some() {
                    workers.push(Worker::new(None));
                }
            }
            (4..=6, _, Some(intent)) => drop(world.books.confirm(&intent)),
            (7, _, Some(intent)) => {
                let status = [IntentStatus::Open, IntentStatus::ActionRequired, IntentStatus::Processing];
                world.books.hold_up(&intent, *random.choice(&status).unwrap());
            }
            (8 | 9, Some(payment), _)
                if has_staff && payment.captured > 0 && world.status() != OrderStatus::Shipped =>
            {
                world.staff(&payment.id, OperationKind::Refund, random.i64(1..=payment.captured));
            }
            (10, Some(payment), _) if has_staff && payment.status == PaymentStatus::Authorised => {
                if matches!(world.status(), OrderStatus::Pending | OrderStatus::Paid) {
                    world.staff(&payment.id, OperationKind::Capture, random.i64(1..=payment.authorised));
                }
            }
            (11, Some(payment), _) if has_staff => drop(world.staff(&payment.id, OperationKind::Cancel, 0)),
            (12, ..) if random.u8(..6) == 0 => drop(world.lapse()),
            (13, ..) if random.u8(..6) == 0 => drop(world.end()),
            (14 | 15, ..) if ships => drop(world.ship()),
            // A hint about any payment, which may be late, early or repeated.
            (16..=21, ..) if workers.len() < 4 && !world.books.events.is_empty() => {
                let is_next = delivered < world.books.events.len() && random.bool();
                let which = if is_next { delivered } else { random.usize(..world.books.events.len()) };
                delivered += usize::from(is_next);
                workers.push(Worker::new(Some(world.books.events[which].clone())));
            }
            (22, ..) if workers.len() < 4 => workers.push(Worker::new(None)),
            (23, ..) if !workers.is_empty() => drop(workers.swap_remove(random.usize(..workers.len()))),
            _ if !workers.is_empty() => {
                let number = random.usize(..workers.len());
                if workers[number].step(&mut world, fault) {
                    workers.swap_remove(number);
                }
            }
            _ => drop(account),
        }
    }
    world.reconcile();
    world.check_settled();
    if world.status() == OrderStatus::Pending && random.u8(..4) > 0 {
        world.lapse();
        world.reconcile();
        world.check_settled();
    }
    world
}

fn random_schedules(seeds: std::ops::Range<u64>, has_staff: bool) {
    let mut ends = BTreeSet::new();
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| random_schedule(seed, has_staff));
        match outcome {
            Ok(world) if world.is_revived => drop(ends.insert("revived")),
            Ok(world) => drop(ends.insert(world.status().as_str())),
            Err(_) => panic!("the schedule with seed {seed} breaks an invariant"),
        }
    }
    assert_eq!(ends, BTreeSet::from(["pending", "paid", "shipped", "cancelled", "revived"]));
}

#[test]
fn random_schedules_without_operations_of_staff_keep_the_books() {
    random_schedules(0..5000, false);
}

#[test]
fn random_schedules_with_operations_of_staff_keep_the_books() {
    random_schedules(5000..10_000, true);
}

/// Webhooks arrive in any number after each step, and the table has the same state in the end.
#[tokio::test]
async fn every_arrival_of_webhooks_ends_in_the_same_state_of_the_table() {
    let shop = Shop::open().await;
    let mut number = 0;
    for (capture, staff) in [
        (CaptureMode::AtOnce, Staff::Refund(400)),
        (CaptureMode::AtShipping, Staff::Capture(400)),
        (CaptureMode::AtShipping, Staff::Capture(TOTAL)),
    ] {
        let mut ends = HashSet::new();
        // How often the webhooks arrive after each of three steps.
        for arrivals in 0..27 {
            number += 1;
            let id = shop.order(number, TOTAL).await;
            let payment = shop.pay(&id, TOTAL, capture).await;
            shop.settle(&id, None).await;
            let intent = shop.intent(&id, &payment).await;
            let arrive = async |times: usize| {
                for _ in 0..times {
                    assert_eq!(shop.settle(&id, Some(&intent)).await, None);
                }
            };
            assert!(shop.bank.with(|books| books.confirm(&intent)));
            // Staff see the payment first, because its operation needs it.
            arrive(1 + arrivals % 3).await;
            match staff {
                Staff::Refund(amount) => shop.staff(&id, &payment, OperationKind::Refund, amount).await,
                Staff::Capture(amount) => shop.staff(&id, &payment, OperationKind::Capture, amount).await,
            };
            arrive(arrivals / 3 % 3).await;
            assert!(shop.cancel(&id).await);
            arrive(arrivals / 9).await;
            ends.insert(format!("{:?}", summary(&shop.check(&id, 0).await)));
        }
        assert_eq!(ends.len(), 1, "{staff:?}: {ends:#?}");
    }
}

/// Payments of an order race with its end. The webhooks arrive before the end, after it, or both.
#[tokio::test]
async fn every_arrival_around_the_end_of_an_order_keeps_the_money_where_it_belongs() {
    let shop = Shop::open().await;
    let mut number = 0;
    for (capture, end, has_stock, expected) in [
        (CaptureMode::AtOnce, End::Cancel, true, 1),
        // With its stock the order is paid in the end, whenever the webhook comes.
        (CaptureMode::AtOnce, End::Lapse, true, 1),
        // Without it, only an order whose webhook comes before its end is paid, and does not lapse.
        (CaptureMode::AtOnce, End::Lapse, false, 2),
        (CaptureMode::AtShipping, End::Cancel, true, 1),
        (CaptureMode::AtShipping, End::Lapse, true, 2),
    ] {
        let mut ends = HashSet::new();
        for arrivals in 0..9 {
            number += 1;
            shop.restock(10_000).await;
            let id = shop.order(number, TOTAL).await;
            let payment = shop.pay(&id, TOTAL, capture).await;
            shop.settle(&id, None).await;
            let intent = shop.intent(&id, &payment).await;
            shop.bank.with(|books| books.confirm(&intent));
            for _ in 0..arrivals % 3 {
                shop.settle(&id, Some(&intent)).await;
            }
            match end {
                End::Cancel => drop(shop.cancel(&id).await),
                End::Lapse => drop(shop.lapse(&id).await),
            }
            if !has_stock {
                shop.restock(0).await;
            }
            for _ in 0..arrivals / 3 {
                shop.settle(&id, Some(&intent)).await;
            }
            ends.insert(format!("{:?}", summary(&shop.check(&id, 0).await)));
        }
        assert_eq!(ends.len(), expected, "{capture:?} {end:?} {has_stock}: {ends:#?}");
    }
}

/// Random schedules of the real workflow on a real table. Workers crash at any wait.
#[tokio::test]
async fn random_schedules_on_a_real_table_keep_the_books() {
    let shop = Shop::open().await;
    for seed in 0..100_u8 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed.into());
        shop.bank.clear_faults();
        let id = shop.order(seed, TOTAL).await;
        for _ in 0..random.usize(6..14) {
            let order = shop.read(&id).await;
            let payment = random.choice(&order.payments).map(|payment| payment.data.clone());
            let intent = payment.as_ref().and_then(|payment| payment.intent.clone());
            match (random.u8(..16), payment, intent) {
                (0..=3, ..) if order.payments.len() < 4 => {
                    let capture = if random.bool() { CaptureMode::AtOnce } else { CaptureMode::AtShipping };
                    let amount = *random.choice(&[300, 600, 700, TOTAL]).unwrap();
                    shop.pay_at(&id, amount, capture, key_schema::instant::Instant::now()).await;
                }
                (4..=6, _, Some(intent)) => drop(shop.bank.with(|books| books.confirm(&intent))),
                (7, _, Some(intent)) => drop(shop.bank.with(|books| books.hold_up(&intent, IntentStatus::Processing))),
                (8, ..) if random.bool() => drop(shop.cancel(&id).await),
                (9, ..) if random.bool() => drop(shop.lapse(&id).await),
                (10, ..) => {
                    let faults = [Fault::NotSent, Fault::Lost, Fault::LostResponse];
                    shop.bank.fault(*random.choice(&faults).unwrap());
                }
                // Two workers at once, of which one may crash.
                (_, _, intent) => {
                    let (one, two) = (shop.table(), shop.table());
                    let first = shop.try_settle(&one, &id, intent.as_deref());
                    let second = shop.try_settle(&two, &id, None);
                    let (waits, alone) = (random.usize(..60), random.bool());
                    let first = crash_after(waits, first);
                    if alone {
                        drop(first.await);
                    } else {
                        drop(futures::join!(first, second));
                    }
                }
            }
        }
        shop.bank.clear_faults();
        let order = shop.check(&id, 0).await;
        if order.head.status == OrderStatus::Pending {
            shop.lapse(&id).await;
            shop.check(&id, 0).await;
        }
    }
}
