//! Runs each trouble alone. A trouble is a fault of a backend, a crash of a function at a crash
//! point, or a wrong clock.
//!
//! Clients keep working during a trouble, and retry. After the trouble the system must finish
//! interrupted work without a manual step. Then stock and money must be exact, the data of the
//! stream's consumers must equal the table, and the quarantine must be empty. Each trouble must
//! have struck at least once.

mod work;

use bench::replay::Shop;
use fastrand::Rng;
use futures::StreamExt as _;
use local::System;
use serde_json::{Value, json};
use telemetry::crash::CRASH_POINTS;

use super::books::Books;
use super::world::{World, customer};
use super::{AT_ONCE, AT_SHIPPING, CLIENTS, Report};
use crate::support::{assert_equal_to_table, ended_session, start_embedded, stop};

/// The number of random client steps during a trouble. Additional work makes sure that the trouble
/// strikes.
const STEPS: usize = 8;
const FEW_STEPS: usize = 4;
/// Dice values below this are client calls. The others run the janitor, or set or remove faults.
const CALLS: u8 = 92;
/// Maximum repetitions of the work until the trouble has struck, and maximum attempts of a client's
/// request.
const ROUNDS: u64 = 10;
/// Several transactions place such an order, and several transactions undo it.
const LARGE: usize = 100;
/// Lines of an order so large that work remains after a crash of the function that undoes it.
const GIANT: usize = 300;
/// The number of systems that run troubles at the same time. A system mostly waits for retries,
/// leases and the stream. With several systems, each table is smaller, so a comparison, which reads
/// a whole table, takes less time.
const LANES: usize = 3;
const HOUR: i64 = 60 * 60;
/// The crash points that no trouble reaches. The tests of `documents` and of the janitor stop the
/// removals of documents and drafts at every point. The janitor reaches `orders.lapsed` when an
/// order lapses, and `tests/suite/lapses.rs` covers it. The consumer reaches
/// `stream.quarantine.kept` with an unreadable record, which no client can write. The tests of
/// `stream` cover it. `tests/suite/agents.rs` covers `checkouts.placed`.
const TESTED_ELSEWHERE: [&str; 8] = [
    "checkouts.placed",
    "courier.sent",
    "documents.draft.discarded",
    "documents.draft.removed",
    "documents.retired",
    "documents.texts.removed",
    "orders.lapsed",
    "stream.quarantine.kept",
];

/// The janitor's crash points while it undoes a half-placed large order, and while it finishes a
/// half-cancelled one.
const UNDO_POINT: &str = "orders.staged.undone";
const RETURN_POINT: &str = "orders.staged.given_back";

/// The crash point between another number of shards and level shards.
const STOCK_POINT: &str = "catalog.stock.resharded";

#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// A backend, its fault, the share of requests that the fault hits, and the maximum number of
    /// hits.
    Backend(&'static str, &'static str, f64, u32),
    /// A function, and a fault of its process before the process begins its work.
    Process(&'static str, &'static str),
    Point(&'static str, &'static str),
    /// A function, and the error of its clock in seconds.
    Clock(&'static str, i64),
}

use Trouble::{Backend, Clock, Point, Process};

const TROUBLES: &[Trouble] = &[
    Backend("table", "throttle", 0.3, 60),
    Backend("table", "error", 0.3, 60),
    Backend("table", "conflict", 0.4, 60),
    Backend("table", "partial", 0.5, 60),
    Backend("table", "slow", 0.2, 30),
    Backend("table", "reset", 0.3, 60),
    Backend("table", "truncate", 0.2, 60),
    Backend("table", "timeout", 0.05, 4),
    Backend("search", "throttle", 0.5, 20),
    Backend("search", "error", 0.5, 20),
    Backend("search", "partial", 0.5, 20),
    Backend("search", "slow", 0.5, 10),
    Backend("search", "reset", 0.5, 20),
    Backend("search", "truncate", 0.5, 20),
    Backend("search", "timeout", 0.5, 2),
    Backend("bus", "throttle", 0.5, 20),
    Backend("bus", "error", 0.5, 20),
    Backend("bus", "partial", 0.5, 20),
    Backend("bus", "slow", 0.5, 10),
    Backend("bus", "reset", 0.5, 20),
    Backend("bus", "truncate", 0.5, 20),
    Backend("bus", "timeout", 0.5, 2),
    Backend("store", "throttle", 0.5, 5),
    Backend("store", "error", 0.5, 5),
    Backend("store", "conflict", 0.5, 5),
    Backend("store", "slow", 0.5, 5),
    Backend("store", "reset", 0.5, 5),
    Backend("store", "truncate", 0.5, 5),
    Backend("store", "timeout", 0.5, 2),
    Backend("mail", "throttle", 0.5, 5),
    Backend("mail", "error", 0.5, 5),
    Backend("mail", "slow", 0.5, 5),
    Backend("mail", "reset", 0.5, 2),
    Backend("mail", "truncate", 0.5, 2),
    Backend("mail", "timeout", 0.5, 2),
    Backend("payments", "throttle", 0.5, 5),
    Backend("payments", "conflict", 0.5, 5),
    Backend("payments", "error", 0.5, 2),
    Backend("payments", "error_after", 0.5, 2),
    Backend("payments", "slow", 0.5, 5),
    Backend("payments", "timeout", 0.5, 1),
    Backend("payments", "timeout_before", 0.5, 1),
    Backend("payments", "wrong_signature", 0.5, 3),
    Process("Orders", "crash"),
    Process("Orders", "error"),
    Process("Orders", "throttle"),
    Process("Wallet", "crash"),
    Process("Catalog", "crash"),
    Process("Customers", "crash"),
    Process("Janitor", "crash"),
    Process("Cashier", "crash"),
    Process("StreamSearch", "crash"),
    Process("StreamSearch", "error"),
    Process("StreamSearch", "throttle"),
    Process("StreamEvents", "crash"),
    Process("StreamEvents", "error"),
    Process("StreamEvents", "throttle"),
    Process("Notifier", "crash"),
    Process("Notifier", "error"),
    Process("Fulfilment", "crash"),
    Process("Fulfilment", "error"),
    Point("Catalog", "catalog.move.advanced"),
    Point("Catalog", "catalog.move.begun"),
    Point("Catalog", "catalog.move.cleared"),
    Point("Catalog", "catalog.move.copied"),
    Point("Catalog", "catalog.move.placed"),
    Point("Catalog", "catalog.move.transferred"),
    Point("Catalog", STOCK_POINT),
    Point("Customers", "customers.belongings.erased"),
    Point("Customers", "customers.erasure.begun"),
    Point("Customers", "customers.profile.erased"),
    Point("Janitor", "janitor.archive.emptied"),
    Point("Fulfilment", "fulfilment.admitted"),
    Point("Fulfilment", "fulfilment.waiting"),
    Point("Notifier", "notifier.claimed"),
    Point("Notifier", "notifier.sent"),
    Point("Orders", "orders.moved"),
    Point("Orders", "orders.placed"),
    Point("Orders", "orders.staged.begun"),
    Point("Orders", "orders.staged.given_back"),
    Point("Orders", "orders.staged.reserved"),
    Point("Janitor", "orders.staged.undone"),
    Point("Janitor", "orders.staged.given_back"),
    Point("Orders", "payments.begun"),
    Point("Orders", "payments.called"),
    Point("Orders", "payments.recorded"),
    Point("Cashier", "payments.refreshed"),
    Point("StreamEvents", "stream.audit.archived"),
    Point("StreamEvents", "stream.audit.recorded"),
    Point("StreamEvents", "stream.bus.marked"),
    Point("StreamEvents", "stream.bus.published"),
    Point("StreamEvents", "stream.derived.applied"),
    Point("StreamSearch", "stream.search.written"),
    // With these clocks, a large order in progress seems younger or older than it is. No record
    // that lives for a day expires, because the clocks' errors are too small for that.
    Clock("Orders", HOUR),
    Clock("Orders", -HOUR),
    Clock("Wallet", -HOUR),
    Clock("Catalog", 2 * HOUR),
    Clock("Customers", -HOUR),
    Clock("Janitor", 2 * HOUR),
    Clock("Janitor", -2 * HOUR),
    Clock("StreamSearch", -HOUR),
    Clock("StreamEvents", 2 * HOUR),
    Clock("StreamEvents", -2 * HOUR),
    Clock("Notifier", 2 * HOUR),
    Clock("Fulfilment", -2 * HOUR),
];

impl Trouble {
    /// Returns whether the trouble can strike the placing or cancellation of a large order.
    fn is_of_orders(self) -> bool {
        match self {
            _ if self.is_of_cards() => false,
            Backend(target, ..) => target == "table",
            Process(function, _) | Point(function, _) | Clock(function, _) => {
                ["Orders", "Wallet", "Janitor"].contains(&function)
            }
        }
    }

    /// Returns whether the trouble strikes only payments by card.
    fn is_of_cards(self) -> bool {
        match self {
            Backend(target, ..) => target == "payments",
            Process(function, _) | Clock(function, _) => function == "Cashier",
            Point(_, point) => point.starts_with("payments."),
        }
    }

    /// Returns whether the trouble can strike a customer's erasure.
    fn is_of_erasures(self) -> bool {
        matches!(self, Process("Customers", _) | Point("Customers" | "Janitor", _) | Clock("Customers" | "Janitor", _))
    }

    /// Returns whether the trouble can strike a category's move.
    fn is_of_categories(self) -> bool {
        matches!(self, Process("Catalog", _) | Point("Catalog", _) | Clock("Catalog", _)) && !self.is_only_of_stocks()
    }

    /// Returns whether the trouble strikes only changes of the shards of stocks.
    fn is_only_of_stocks(self) -> bool {
        matches!(self, Point(_, STOCK_POINT))
    }

    /// Returns whether the trouble can strike changes of the shards of stocks.
    fn is_of_stocks(self) -> bool {
        matches!(self, Process("Catalog", _) | Backend("table", ..)) || self.is_only_of_stocks()
    }
}

#[test]
fn the_system_recovers_from_each_trouble_alone_without_loss_or_repetition() {
    let missing = |point: &&str| !TROUBLES.iter().any(|trouble| matches!(trouble, Point(_, name) if name == point));
    let missing: Vec<&str> = CRASH_POINTS.iter().map(|(name, _)| *name).filter(missing).collect();
    assert_eq!(missing, TESTED_ELSEWHERE);
    let only = std::env::var("BODEGA_TROUBLE").unwrap_or_default();
    let troubles: Vec<Trouble> =
        TROUBLES.iter().filter(|trouble| format!("{trouble:?}").contains(&only)).copied().collect();
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let troubles: Vec<Trouble> = troubles.iter().skip(lane).step_by(LANES).copied().collect();
            let capture = if lane.is_multiple_of(2) { AT_ONCE } else { AT_SHIPPING };
            scope.spawn(move || run(&troubles, capture));
        }
    });
}

/// Runs troubles one after the other, in a separate system.
#[tokio::main]
async fn run(troubles: &[Trouble], capture: &str) {
    let system = start_embedded().await;
    let world = World::open(&system, troubles.len() * STEPS, capture).await;
    let (mut rng, mut struck) = (Rng::with_seed(1), 0);
    for trouble in troubles {
        world.begin(*trouble).await;
        let mut times = 0;
        for round in 1..=ROUNDS {
            world.work(&system, *trouble, &mut rng).await;
            times = world.strikes(*trouble).await;
            if times > 0 {
                break;
            }
            assert!(round < ROUNDS, "{trouble:?} has not struck");
        }
        struck += times;
        world.clients.local("DELETE", "/_local/faults", None).await;
        world.settle().await;
        let report = world.report(&system).await;
        println!("{trouble:?}: {times}");
        assert!(report.wrong.is_empty(), "{trouble:?}\n{report}");
        assert_eq!(world.clients.all("/_local/quarantine").await, [Value::Null; 0], "{trouble:?}");
    }
    assert_equal_to_table(&system, "").await;
    let calls = world.clients.calls.load(std::sync::atomic::Ordering::Relaxed);
    println!("{} troubles, {struck} strikes, {calls} calls", troubles.len());
    stop(system).await;
}

fn order(lines: Vec<Value>) -> Value {
    json!({"customer_id": customer(0), "lines": lines})
}

impl World<'_> {
    async fn begin(&self, trouble: Trouble) {
        let fault = match trouble {
            Backend(target, kind, rate, count) => {
                // The provider stores the response of an error.
                self.cards.lock().unwrap().has_stored_errors |= target == "payments" && kind.starts_with("error");
                json!({"target": target, "kind": kind, "rate": rate, "count": count, "seed": 1})
            }
            Process(function, kind) => {
                json!({"target": format!("function:{function}"), "kind": kind, "rate": 0.5, "count": 3, "seed": 1})
            }
            Point(function, point) => {
                let fault =
                    json!({"target": format!("function:{function}"), "kind": "crash", "point": point, "count": 2});
                if trouble.is_of_categories() {
                    // The janitor continues moves of categories, so it may crash at the same point.
                    let mut another = fault.clone();
                    another["target"] = json!("function:Janitor");
                    self.clients.fault(another).await;
                }
                fault
            }
            Clock(function, seconds) => {
                json!({"target": format!("function:{function}"), "kind": "clock", "seconds": seconds})
            }
        };
        self.clients.fault(fault).await;
    }

    /// Returns how often the trouble has occurred. A wrong clock counts once.
    async fn strikes(&self, trouble: Trouble) -> u64 {
        let target = match trouble {
            Backend(target, ..) => target.to_owned(),
            Process(function, _) | Point(function, _) => format!("function:{function}"),
            Clock(..) => return 1,
        };
        let faults = self.clients.local("GET", "/_local/faults", None).await;
        let others = trouble.is_of_categories().then_some("function:Janitor");
        let entries =
            [Some(target.as_str()), others].into_iter().flatten().filter_map(|target| faults[target].as_array());
        entries.flatten().filter_map(|entry| entry["fired"].as_u64()).sum()
    }

    /// Runs random client steps, and work that the trouble can strike.
    async fn work(&self, system: &System, trouble: Trouble, rng: &mut Rng) {
        let is_of_picking =
            matches!(trouble, Process("Fulfilment", _) | Point("Fulfilment", _) | Clock("Fulfilment", _));
        if is_of_picking {
            self.free_the_stations().await;
        }
        let is_of_orders = trouble.is_of_orders();
        let steps = match trouble {
            _ if is_of_orders => STEPS,
            _ if trouble.is_of_cards() => 0,
            _ => FEW_STEPS,
        };
        let steps: Vec<(u64, u8)> = (0..steps).map(|_| (rng.u64(..), rng.u8(0..CALLS))).collect();
        let steps = futures::stream::iter(steps)
            .for_each_concurrent(CLIENTS, |(seed, dice)| self.step(Rng::with_seed(seed), dice));
        let (large, paid, moved) = (Rng::with_seed(rng.u64(..)), Rng::with_seed(rng.u64(..)), rng.u64(..));
        let expired = async {
            ended_session(system, &format!("s{:x}", rng.u64(..))).await;
            self.clients.local("POST", "/_local/ttl-sweep", None).await;
        };
        let large = async {
            if is_of_orders {
                self.large(large).await;
            }
        };
        let paid = async {
            match trouble.is_of_cards() {
                true => self.paid_by_card(paid).await,
                false => self.paid(paid, is_of_picking).await,
            }
        };
        futures::join!(steps, large, paid, expired);
        match trouble {
            Point("Janitor", UNDO_POINT) => self.leave_half_placed(&mut Rng::with_seed(moved)).await,
            Point("Janitor", RETURN_POINT) => self.leave_half_cancelled(&mut Rng::with_seed(moved)).await,
            _ => {}
        }
        if trouble.is_of_categories() {
            self.move_a_category(&format!("{moved:x}")).await;
        }
        if trouble.is_of_stocks() {
            for _ in 0..ROUNDS {
                self.spread(rng).await;
            }
        }
        if trouble.is_of_erasures() {
            self.erase_somebody(&format!("{moved:x}")).await;
        }
        self.clean(u8::from(!matches!(trouble, Point("Janitor", _)))).await;
        if !is_of_orders {
            // This trouble may strike a consumer of the stream, so wait for the consumers.
            self.clients.staff("POST", "/_local/drain?timeout_s=300", &[], None).await;
        }
    }

    async fn report(&self, system: &System) -> Report {
        let shop = Shop::of(system).await.unwrap();
        Books::compared(&shop, system.payments(), self).await.1
    }
}
