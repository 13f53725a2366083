//! Tests that a new process continues unfinished work. Each test has its own folder with a journal.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use super::*;

const DEAD: &str = "arn:aws:sqs:r:a:dead";
const FUNCTION: &str = "arn:aws:lambda:r:a:function:F";

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("bodega-journal-{:016x}", fastrand::u64(..)));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("bus.ndjson")
    }

    fn journal(&self) -> Arc<Journal> {
        Journal::open(&self.file()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn accepted(id: &str) -> Accepted {
    Accepted { id: id.to_owned(), bus: "shop".to_owned(), event: json!({"id": id}) }
}

fn ids(journal: &Journal) -> Vec<String> {
    journal.unsettled().accepted.into_iter().map(|accepted| accepted.id).collect()
}

/// A system with one function and one queue, which both receive every event. It starts from a
/// journal.
struct Bus {
    journal: Arc<Journal>,
    pending: Pending,
    bus: EventBus,
    dead: Arc<Queue>,
    targets: HashMap<String, TargetKind>,
    _mapping: QueueMapping,
}

impl Bus {
    async fn start(folder: &Folder, function: &Function, worker: &Function) -> Self {
        let journal = folder.journal();
        let queue = |arn: &str, redrive| {
            let (visibility_timeout, journal) = (Duration::from_secs(180), Some(Arc::clone(&journal)));
            Queue::new(QueueSettings { arn: arn.to_owned(), visibility_timeout, redrive, journal })
        };
        let dead = queue(DEAD, None);
        let jobs = queue("arn:aws:sqs:r:a:jobs", Some((Arc::clone(&dead), 3)));
        let later = asynchronous(function, &dead);
        let kinds = [TargetKind::Function(later), TargetKind::Queue(Arc::clone(&jobs))];
        let target = |kind: &TargetKind| Target {
            kind: kind.clone(),
            maximum_retries: 1,
            maximum_age: Duration::from_secs(60),
            dead_letter: None,
        };
        let pattern = Pattern::new(&json!({"id": [{"prefix": ""}]}), Dialect::EventBridge).unwrap();
        let targets = kinds.iter().map(target).collect();
        let rules = vec![Rule { name: "all".to_owned(), bus: "shop".to_owned(), pattern, targets }];
        let [later, queue] = kinds;
        let system = Self {
            journal,
            pending: Pending::default(),
            bus: EventBus::start(rules, Pace::default()),
            dead,
            targets: HashMap::from([(FUNCTION.to_owned(), later), (jobs.arn().to_owned(), queue)]),
            _mapping: mapping(worker, &jobs),
        };
        let unsettled = system.journal.unsettled();
        for given_up in unsettled.given_up {
            system.dead.restore(given_up).unwrap();
        }
        for given_up in unsettled.redriven {
            let work = system.pending.begin_kept(&system.journal, &given_up.message.id);
            system.bus.redrive_again(given_up, &system.dead, &system.targets, work).await;
        }
        for accepted in unsettled.accepted {
            system.publish(&accepted).await;
        }
        system
    }

    async fn publish(&self, accepted: &Accepted) {
        let work = self.pending.begin_kept(&self.journal, &accepted.id);
        self.bus.publish(&accepted.bus, &accepted.event, &work).await;
        work.finish();
    }

    async fn put(&self, id: &str) {
        self.journal.accept(accepted(id)).unwrap();
        self.publish(&accepted(id)).await;
    }

    async fn redrive(&self) -> usize {
        let mut redriven = 0;
        while self.bus.redrive(&self.dead, &self.targets, &self.pending).await {
            redriven += 1;
        }
        redriven
    }

    fn given_up(&self) -> Vec<(String, Value)> {
        self.dead.given_up().into_iter().map(|given_up| (given_up.to, given_up.event)).collect()
    }
}

/// Drops a system. The runtime then ends all of its tasks.
async fn end(system: Bus) {
    drop(system);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn willing() -> Function {
    Function::new(|_, _| Ok(Value::Null))
}

fn failing() -> Function {
    Function::new(|_, _| Err(failed()))
}

fn hanging() -> Function {
    Function::new(|_, _| Err(hangs()))
}

#[test]
fn unsettled_events_are_restored_in_order_and_unreadable_lines_are_skipped() {
    let folder = Folder::new();
    let journal = folder.journal();
    for id in ["c", "a", "b"] {
        journal.accept(accepted(id)).unwrap();
    }
    journal.settle("a");
    journal.settle("unknown");
    drop(journal);
    let mut file = OpenOptions::new().append(true).open(folder.file()).unwrap();
    file.write_all(b"{\"settled\":7}\n\xff\xfe\n{\"accepted\":{\"id\":\"cut o").unwrap();
    let journal = folder.journal();
    assert_eq!(ids(&journal), ["c", "b"]);
    journal.accept(accepted("d")).unwrap();
    drop(journal);
    assert_eq!(folder.journal().unsettled().accepted, ["c", "b", "d"].map(accepted));
}

#[test]
fn settled_events_do_not_make_the_file_grow_without_bound() {
    let folder = Folder::new();
    let journal = folder.journal();
    journal.accept(accepted("first")).unwrap();
    for number in 0..20_000 {
        journal.accept(accepted(&number.to_string())).unwrap();
        journal.settle(&number.to_string());
    }
    let lines = || fs::read_to_string(folder.file()).unwrap().lines().count();
    assert!(lines() <= 10_003, "{}", lines());
    journal.accept(accepted("last")).unwrap();
    assert_eq!(ids(&journal), ["first", "last"]);
    drop(journal);
    assert_eq!(ids(&folder.journal()), ["first", "last"]);
    assert_eq!(lines(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restart_repeats_deliveries_in_progress_but_no_finished_deliveries() {
    let folder = Folder::new();
    let first = Bus::start(&folder, &willing(), &willing()).await;
    first.put("done").await;
    settle(&first.pending).await;
    assert!(ids(&first.journal).is_empty());
    end(first).await;

    // In each round at least one target never finishes the event `open`.
    for (function, worker) in [(hanging(), willing()), (willing(), hanging()), (hanging(), hanging())] {
        let system = Bus::start(&folder, &function, &worker).await;
        if ids(&system.journal).is_empty() {
            system.put("open").await;
        }
        timeout(Duration::from_secs(5), system.pending.settled()).await.unwrap_err();
        assert!(function.events().len() + worker.events().len() >= 2);
        end(system).await;
        assert_eq!(ids(&folder.journal()), ["open"]);
    }
    let (function, worker) = (willing(), willing());
    let last = Bus::start(&folder, &function, &worker).await;
    settle(&last.pending).await;
    assert_eq!(function.events(), [json!({"id": "open"})]);
    assert_eq!(worker.batches(), [vec![json!({"id": "open"}).to_string()]]);
    assert_eq!(last.journal.unsettled(), Unsettled::default());
}

#[tokio::test(start_paused = true)]
async fn a_given_up_delivery_survives_restarts_until_it_is_redriven_and_finished() {
    let folder = Folder::new();
    let first = Bus::start(&folder, &failing(), &failing()).await;
    first.put("e").await;
    settle(&first.pending).await;
    let event = json!({"id": "e"});
    let mut given_up = first.given_up();
    given_up.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [(FUNCTION.to_owned(), event.clone()), ("arn:aws:sqs:r:a:jobs".to_owned(), event.clone())];
    assert_eq!(given_up, expected);
    assert!(ids(&first.journal).is_empty());
    let before = first.dead.given_up();
    end(first).await;

    let second = Bus::start(&folder, &failing(), &failing()).await;
    assert_eq!((second.dead.given_up(), second.pending.count()), (before, 0));
    assert_eq!(second.redrive().await, 2);
    assert!(second.dead.given_up().is_empty());
    settle(&second.pending).await;
    assert_eq!(second.given_up().len(), 2);
    end(second).await;

    let third = Bus::start(&folder, &hanging(), &hanging()).await;
    assert_eq!(third.redrive().await, 2);
    timeout(Duration::from_secs(5), third.pending.settled()).await.unwrap_err();
    end(third).await;

    let (function, worker) = (willing(), willing());
    let fourth = Bus::start(&folder, &function, &worker).await;
    settle(&fourth.pending).await;
    assert_eq!((function.events(), worker.batches()), (vec![event.clone()], vec![vec![event.to_string()]]));
    assert_eq!((fourth.dead.given_up().len(), fourth.redrive().await), (0, 0));
    assert_eq!(fourth.journal.unsettled(), Unsettled::default());
}

#[tokio::test(start_paused = true)]
async fn a_closed_journal_accepts_no_event() {
    let folder = Folder::new();
    let function = failing();
    let system = Bus::start(&folder, &function, &willing()).await;
    system.put("e").await;
    system.journal.close();
    settle(&system.pending).await;
    assert!(system.journal.accept(accepted("late")).is_err());
    end(system).await;
    let unsettled = folder.journal().unsettled();
    assert_eq!((unsettled.accepted, unsettled.given_up), (vec![accepted("e")], vec![]));
}
