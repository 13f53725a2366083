//! Carrying out an import, and answering for every line of it.
//!
//! Each round reads strongly what is stored, decides, and writes. A line that somebody else overtook, or whose answer was lost, goes into the
//! next round, where it is judged by what is stored then; so a retry can neither double nor undo anything. Rounds and time are bounded: what
//! is left at the end is refused with `throttled`.

use std::time::{Duration, Instant as Clock};

use futures::StreamExt as _;
use futures::stream;
use http_api::{Problem, Store};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::{self, Product};
use table::{TableError, TransactError, WriteError};

use super::plan::{Decision, Step, Wanted, decide};
use super::report::{Outcome, Report};
use crate::{body, tree};

/// Products of one transaction: each takes two of its 100 actions.
const PRODUCTS_A_TRANSACTION: usize = 50;
/// Requests under way at once: enough to hide the way to the table, too few to crowd out a shop that is open.
const CONCURRENCY: usize = 4;
/// How often a line is looked at again.
const ROUNDS: usize = 4;
/// No write begins later than this, for one that meets a throttled table may take 14 seconds (retries of conflicts, then one last call) and
/// the function has 29.
const BEGIN_WITHIN: Duration = Duration::from_secs(12);

/// Writes what is wanted and reports on each line of it.
///
/// # Errors
/// When not even the first look at the table succeeds; nothing was written then.
pub async fn all(store: &Store, wanted: Vec<Wanted>, at: Instant, report: &mut Report) -> Result<(), Problem> {
    let deadline = Clock::now() + BEGIN_WITHIN;
    let stored = look(store, &wanted).await?;
    let mut steps = judge(wanted, stored, report);
    let missing = tree::grow_all(store, steps.iter().map(Step::category), at).await?;
    let (homeless, rest): (Vec<Step>, Vec<Step>) =
        steps.into_iter().partition(|step| step.category().lineage().any(|above| missing.contains(&above)));
    refuse(homeless.into_iter().map(Step::into_wanted), &Outcome::throttled(), report);
    steps = rest;
    for _ in 0..ROUNDS {
        let again = carry_out(store, steps, at, deadline, report).await;
        if again.is_empty() {
            return Ok(());
        }
        steps = match look(store, &again).await {
            Ok(stored) => judge(again, stored, report),
            Err(problem) => {
                refuse(again, &Outcome::from(&problem), report);
                return Ok(());
            }
        };
    }
    refuse(steps.into_iter().map(Step::into_wanted), &Outcome::throttled(), report);
    Ok(())
}

async fn look(store: &Store, wanted: &[Wanted]) -> Result<Vec<Option<Stored<Product>>>, Problem> {
    let ids = wanted.iter().map(|wanted| &wanted.product.data.id);
    Ok(store.table.batch_get(&product::many(ids)?).await?)
}

fn judge(wanted: Vec<Wanted>, stored: Vec<Option<Stored<Product>>>, report: &mut Report) -> Vec<Step> {
    let mut steps = Vec::new();
    for (wanted, stored) in wanted.into_iter().zip(stored) {
        match decide(wanted, stored) {
            Decision::Do(step) => steps.push(step),
            Decision::Settled(wanted, outcome) => settle(wanted, outcome, report),
        }
    }
    steps
}

/// What a request came to for a product.
type Settled = (Wanted, Verdict);

enum Verdict {
    /// There is nothing left to do.
    Done(Outcome),
    /// Look again: somebody was faster, or the answer was lost.
    Again,
}

/// Requests that can be under way side by side.
enum Job {
    Create(Vec<Wanted>),
    Revive(Wanted, Box<Stored<Product>>),
    Update(Wanted, u64),
}

/// Carries out the steps and gives back what must be looked at again.
async fn carry_out(store: &Store, steps: Vec<Step>, at: Instant, deadline: Clock, report: &mut Report) -> Vec<Wanted> {
    let running = jobs(steps).into_iter().map(|job| run(store, job, at, deadline));
    let mut settled = stream::iter(running).buffer_unordered(CONCURRENCY);
    let mut again = Vec::new();
    while let Some(products) = settled.next().await {
        for (wanted, verdict) in products {
            match verdict {
                Verdict::Done(outcome) => settle(wanted, outcome, report),
                Verdict::Again => again.push(wanted),
            }
        }
    }
    again
}

fn jobs(steps: Vec<Step>) -> Vec<Job> {
    let (mut jobs, mut new) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Create(wanted) => new.push(wanted),
            Step::Revive(wanted, retired) => jobs.push(Job::Revive(wanted, retired)),
            Step::Update(wanted, version) => jobs.push(Job::Update(wanted, version)),
        }
        if new.len() == PRODUCTS_A_TRANSACTION {
            jobs.push(Job::Create(std::mem::take(&mut new)));
        }
    }
    if !new.is_empty() {
        jobs.push(Job::Create(new));
    }
    jobs
}

async fn run(store: &Store, job: Job, at: Instant, deadline: Clock) -> Vec<Settled> {
    if Clock::now() >= deadline {
        let wanted = match job {
            Job::Create(wanted) => wanted,
            Job::Revive(wanted, _) | Job::Update(wanted, _) => vec![wanted],
        };
        return wanted.into_iter().map(|wanted| (wanted, Verdict::Done(Outcome::throttled()))).collect();
    }
    match job {
        Job::Create(wanted) => create(store, wanted, deadline).await,
        Job::Revive(wanted, retired) => vec![revive(store, wanted, &retired).await],
        Job::Update(wanted, version) => vec![update(store, wanted, version, at).await],
    }
}

/// Creates products, all in one transaction. One that exists by now is taken out, and its neighbours are tried without it.
async fn create(store: &Store, mut wanted: Vec<Wanted>, deadline: Clock) -> Vec<Settled> {
    let mut settled = Vec::with_capacity(wanted.len());
    while !wanted.is_empty() {
        let members = wanted.iter().map(|wanted| (&wanted.product, wanted.stock));
        let failure = match product::create_many(members) {
            Ok(transaction) => store.table.transact(&transaction).await.err(),
            Err(error) => {
                let outcome = Outcome::from(&Problem::from(error));
                settled.extend(wanted.into_iter().map(|wanted| (wanted, Verdict::Done(outcome.clone()))));
                break;
            }
        };
        match failure {
            None => {
                settled.extend(wanted.into_iter().map(|wanted| (wanted, Verdict::Done(Outcome::Created))));
                break;
            }
            Some(TransactError::Refused(refusals)) => {
                let is_refused = |position: usize| refusals.iter().any(|refusal| refusal.label == position);
                let (refused, rest): (Vec<_>, Vec<_>) =
                    wanted.into_iter().enumerate().partition(|(position, _)| is_refused(*position));
                // Each turn takes somebody out, and none begins too late, so there is an end.
                let late = refused.is_empty() || Clock::now() >= deadline;
                settled.extend(refused.into_iter().map(|(_, wanted)| (wanted, Verdict::Again)));
                wanted = rest.into_iter().map(|(_, wanted)| wanted).collect();
                if late {
                    settled.extend(wanted.into_iter().map(|wanted| (wanted, Verdict::Again)));
                    break;
                }
            }
            Some(TransactError::Table(error)) => {
                settled.extend(wanted.into_iter().map(|wanted| failed(wanted, &error)));
                break;
            }
        }
    }
    settled
}

async fn revive(store: &Store, wanted: Wanted, retired: &Stored<Product>) -> Settled {
    let new = &wanted.product;
    let transaction = match product::revive(retired, new, wanted.stock, &[]) {
        Ok(transaction) => transaction,
        Err(error) => return (wanted, Verdict::Done(Outcome::from(&Problem::from(error)))),
    };
    match store.table.transact(&transaction).await {
        Ok(()) => (wanted, Verdict::Done(Outcome::Created)),
        Err(TransactError::Refused(_)) => (wanted, Verdict::Again),
        Err(TransactError::Table(error)) => failed(wanted, &error),
    }
}

/// Makes a product what its line says; its stock stays as it is.
async fn update(store: &Store, wanted: Wanted, version: u64, at: Instant) -> Settled {
    let new = &wanted.product.data;
    let update = body::overwrite(new, at).and_then(|change| Ok(product::update(&new.id, change, version)?));
    let update = match update {
        Ok(update) => update,
        Err(error) => return (wanted, Verdict::Done(Outcome::from(&Problem::from(error)))),
    };
    match store.table.update(&update).await {
        Ok(_) => (wanted, Verdict::Done(Outcome::Updated)),
        Err(WriteError::Refused(_)) => (wanted, Verdict::Again),
        Err(WriteError::Table(error)) => failed(wanted, &error),
    }
}

/// A write without an answer may have happened: what is stored will tell. Any other failure did nothing.
fn failed(wanted: Wanted, error: &TableError) -> Settled {
    match error {
        TableError::Unavailable(_) => (wanted, Verdict::Again),
        TableError::Throttled | TableError::Contended | TableError::Unprocessed(_) => {
            (wanted, Verdict::Done(Outcome::throttled()))
        }
        TableError::Rejected(_) | TableError::Decode(_) | TableError::TooManyActions(_) => {
            tracing::error!(line = wanted.line, %error, "a line of an import could not be written");
            (wanted, Verdict::Done(Outcome::internal()))
        }
    }
}

fn refuse(wanted: impl IntoIterator<Item = Wanted>, outcome: &Outcome, report: &mut Report) {
    for wanted in wanted {
        settle(wanted, outcome.clone(), report);
    }
}

fn settle(wanted: Wanted, outcome: Outcome, report: &mut Report) {
    report.add(wanted.line, Some(wanted.product.data.id), outcome);
}
