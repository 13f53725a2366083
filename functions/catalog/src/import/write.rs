//! Carries out an import and reports on each of its lines.
//!
//! Each round reads the stored products with strong consistency, decides, and writes. A line whose
//! product another request changed first, or whose write had no response, is decided again in the
//! next round from the stored data. So a retry neither repeats nor undoes a write. Rounds and time
//! are bounded: the lines that remain at the end are refused with `throttled`.

use std::time::{Duration, Instant as Clock};

use futures::StreamExt as _;
use futures::stream;
use http_api::{Problem, Services};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::{self, Product};
use table::{Batch, TableError};

use super::plan::{Decision, Step, Wanted, decide};
use super::report::{Outcome, Report};
use crate::{body, stock, tree};

/// The number of products in a transaction. Each product takes two of the transaction's 100
/// actions.
const PRODUCTS_A_TRANSACTION: usize = 50;
/// The number of concurrent requests. Four requests hide the table's latency, and leave capacity
/// for other callers.
const CONCURRENCY: usize = 4;
const ROUNDS: usize = 4;
/// The time that is kept for the last write and the report. A write to a throttled table may take
/// 13 s: 5 s of retries, then one last call of 8 s.
const LAST_WRITE: Duration = Duration::from_secs(16);

/// Writes the wanted products and reports on each line. `end` is the end of the invocation.
///
/// # Errors
/// Fails when the table fails before the first write of a product. No product was written then.
pub async fn all(
    services: &Services,
    wanted: Vec<Wanted>,
    at: Instant,
    end: Clock,
    report: &mut Report,
) -> Result<(), Problem> {
    let deadline = end.checked_sub(LAST_WRITE).unwrap_or_else(Clock::now);
    let stored = look(services, &wanted).await?;
    let mut steps = judge(wanted, stored, report);
    let missing = tree::grow_all(services, steps.iter().map(Step::category), at).await?;
    let (homeless, rest): (Vec<Step>, Vec<Step>) =
        steps.into_iter().partition(|step| step.category().lineage().any(|above| missing.contains(&above)));
    refuse(homeless.into_iter().map(Step::into_wanted), &Outcome::throttled(), report);
    steps = rest;
    for _ in 0..ROUNDS {
        let again = carry_out(services, steps, at, deadline, report).await;
        if again.is_empty() {
            return Ok(());
        }
        steps = match look(services, &again).await {
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

async fn look(services: &Services, wanted: &[Wanted]) -> Result<Batch<Stored<Product>>, Problem> {
    let ids = wanted.iter().map(|wanted| &wanted.product.data.id);
    Ok(services.table.batch_get_readable(&product::many(ids)?).await?)
}

fn judge(wanted: Vec<Wanted>, stored: Batch<Stored<Product>>, report: &mut Report) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut unreadable = stored.unreadable.into_iter().peekable();
    for (at, (wanted, stored)) in wanted.into_iter().zip(stored.items).enumerate() {
        if let Some((_, error)) = unreadable.next_if(|(position, _)| *position == at) {
            settle(wanted, Outcome::from(&Problem::from(TableError::Decode(error))), report);
            continue;
        }
        match decide(wanted, stored) {
            Decision::Do(step) => steps.push(step),
            Decision::Settled(wanted, outcome) => settle(wanted, outcome, report),
        }
    }
    steps
}

/// A product and the result of its request.
type Settled = (Wanted, Verdict);

enum Verdict {
    Done(Outcome),
    /// The line needs another round: another request was faster, the response was lost, or the
    /// deadline passed before a retry.
    Again,
}

/// A request that can run concurrently with others.
enum Job {
    Create(Vec<Wanted>),
    Revive(Wanted, Box<Stored<Product>>),
    Update(Wanted, u64),
}

async fn carry_out(
    services: &Services,
    steps: Vec<Step>,
    at: Instant,
    deadline: Clock,
    report: &mut Report,
) -> Vec<Wanted> {
    let running = jobs(steps).into_iter().map(|job| run(services, job, at, deadline));
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

async fn run(services: &Services, job: Job, at: Instant, deadline: Clock) -> Vec<Settled> {
    if Clock::now() >= deadline {
        let wanted = match job {
            Job::Create(wanted) => wanted,
            Job::Revive(wanted, _) | Job::Update(wanted, _) => vec![wanted],
        };
        return wanted.into_iter().map(|wanted| (wanted, Verdict::Done(Outcome::throttled()))).collect();
    }
    match job {
        Job::Create(wanted) => create(services, wanted, deadline).await,
        Job::Revive(wanted, retired) => vec![revive(services, wanted, &retired).await],
        Job::Update(wanted, version) => vec![update(services, wanted, version, at).await],
    }
}

/// Creates products in one transaction. After a refusal it retries without the refused products.
async fn create(services: &Services, mut wanted: Vec<Wanted>, deadline: Clock) -> Vec<Settled> {
    let mut settled = Vec::with_capacity(wanted.len());
    while !wanted.is_empty() {
        let members = wanted.iter().map(|wanted| (&wanted.product, wanted.stock));
        let answer = match product::create_many(members) {
            Ok(transaction) => services.table.transact(&transaction).await,
            Err(error) => {
                let outcome = Outcome::from(&Problem::from(error));
                settled.extend(wanted.into_iter().map(|wanted| (wanted, Verdict::Done(outcome.clone()))));
                break;
            }
        };
        match answer {
            Ok(Ok(())) => {
                settled.extend(wanted.into_iter().map(|wanted| (wanted, Verdict::Done(Outcome::Created))));
                break;
            }
            Ok(Err(refusals)) => {
                let (refused, rest): (Vec<_>, Vec<_>) =
                    wanted.into_iter().enumerate().partition(|(position, _)| refusals.names(*position));
                // Each iteration removes at least one product, and no iteration begins after the
                // deadline. So the loop ends.
                let late = refused.is_empty() || Clock::now() >= deadline;
                settled.extend(refused.into_iter().map(|(_, wanted)| (wanted, Verdict::Again)));
                wanted = rest.into_iter().map(|(_, wanted)| wanted).collect();
                if late {
                    settled.extend(wanted.into_iter().map(|wanted| (wanted, Verdict::Again)));
                    break;
                }
            }
            Err(error) => {
                settled.extend(wanted.into_iter().map(|wanted| failed(wanted, &error)));
                break;
            }
        }
    }
    settled
}

async fn revive(services: &Services, wanted: Wanted, retired: &Stored<Product>) -> Settled {
    let new = &wanted.product;
    // The revival must find no stock that is not moved yet.
    if let Err(problem) = stock::found(services, &new.id).await {
        return (wanted, Verdict::Done(Outcome::from(&problem)));
    }
    let transaction = match product::revive(retired, new, wanted.stock, &[]) {
        Ok(transaction) => transaction,
        Err(error) => return (wanted, Verdict::Done(Outcome::from(&Problem::from(error)))),
    };
    match services.table.transact(&transaction).await {
        Ok(Ok(())) => (wanted, Verdict::Done(Outcome::Created)),
        Ok(Err(_)) => (wanted, Verdict::Again),
        Err(error) => failed(wanted, &error),
    }
}

/// Updates a product to match its line. Its stock stays unchanged.
async fn update(services: &Services, wanted: Wanted, version: u64, at: Instant) -> Settled {
    let new = &wanted.product.data;
    let update = body::overwrite(new, at).and_then(|change| Ok(product::update(&new.id, change, version)?));
    let update = match update {
        Ok(update) => update,
        Err(error) => return (wanted, Verdict::Done(Outcome::from(&Problem::from(error)))),
    };
    match services.table.update(&update).await {
        Ok(Ok(_)) => (wanted, Verdict::Done(Outcome::Updated)),
        Ok(Err(_)) => (wanted, Verdict::Again),
        Err(error) => failed(wanted, &error),
    }
}

/// Decides how a line continues after a failed write. If the response was missing or unreadable,
/// the table may have executed the write, and the next round reads the stored data. A throttled or
/// contended write changed nothing. All other errors are defects.
fn failed(wanted: Wanted, error: &TableError) -> Settled {
    match error {
        TableError::Unavailable(_) | TableError::Decode(_) => (wanted, Verdict::Again),
        TableError::Throttled | TableError::Contended | TableError::Unprocessed(_) | TableError::OverBudget => {
            (wanted, Verdict::Done(Outcome::throttled()))
        }
        TableError::Rejected(_) | TableError::NoTable(_) | TableError::TooManyActions(_) => {
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
