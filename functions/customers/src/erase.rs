//! Erasing a customer.

use std::time::{Duration, Instant as Clock};

use http_api::{Problem, Request, Response, Store};
use key_schema::customer;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::request::BatchWrite;
use key_schema::{cart, question, session};
use table::{TransactError, WriteError};

use crate::profile::{no_customer, refused};
use crate::{documents, edges, memberships, owner};

/// Sessions that are ended with one page of the list.
const PAGE: usize = 100;
/// Pages of sessions that one request ends. Who has more than 5,000 is asked to try again, which goes on with what is left.
const MAX_PAGES: usize = 50;
/// Questions that are erased with one page of the list.
const QUESTIONS: usize = 25;
/// Pages of questions that one request erases: each question takes a look for its answers, and the function's time is short. Who has asked more than 500 is
/// asked to try again, too.
const MAX_QUESTION_PAGES: usize = 20;

/// How long one request goes on with edges, memberships and documents. Who has more of them is asked to try again, too.
const BUDGET: Duration = Duration::from_secs(5);

/// DELETE /v1/customers/{id}
///
/// The profile goes last: while there is one, a request that broke off can be repeated, and each step done twice does no harm. Profile and claims go
/// together, so that both names are free as soon as the profile is gone. What was written between a step and the profile goes after the profile, without
/// which nothing of it can be written but sessions, which end by themselves; a request that broke off there is repeated, too, though the answer is 404 then. What the archive has of the customer
/// goes after that, whether or not anybody repeats anything ([`key_schema::erasure`]). Orders stay, because the books need them, and so do reviews.
pub async fn erase(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let version = request.if_match()?;
    let budget = Budget::begin();
    let Some(customer) = store.table.get(&customer::edit(owner.customer())?).await? else {
        belongings(store, owner.customer(), budget).await?;
        return Err(no_customer());
    };
    if customer.meta.version != version {
        return Err(Problem::version_mismatch());
    }
    belongings(store, owner.customer(), budget).await?;
    telemetry::crash_point("customers.belongings.erased");
    match store.table.transact(&customer::delete(&customer, Instant::now())?).await {
        Ok(()) => telemetry::crash_point("customers.profile.erased"),
        Err(TransactError::Refused(refusals)) => return Err(refused(&refusals)),
        Err(TransactError::Table(error)) => return Err(error.into()),
    }
    belongings(store, owner.customer(), budget).await?;
    Ok(Response::no_content())
}

/// The time that one request has for what may be without bound.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    until: Clock,
}

impl Budget {
    fn begin() -> Self {
        Self { until: Clock::now() + BUDGET }
    }

    /// Asked before anything more is begun, but not before the first: each request gets on.
    ///
    /// # Errors
    /// 503 `throttled` when it is used up.
    pub fn is_left(self) -> Result<(), Problem> {
        if Clock::now() < self.until { Ok(()) } else { Err(Problem::throttled("more than one request erases")) }
    }
}

/// What the customer, or somebody who deals with the customer, may add to as long as there is a profile.
async fn belongings(store: &Store, customer: &CustomerId, budget: Budget) -> Result<(), Problem> {
    end_sessions(store, customer).await?;
    store.table.write(&cart::discard(customer)?).await.map_err(|error| match error {
        WriteError::Refused(_) => Problem::internal("an unconditional write was refused"),
        WriteError::Table(error) => error.into(),
    })?;
    erase_questions(store, customer).await?;
    edges::erase(store, customer, budget).await?;
    memberships::erase(store, customer, budget).await?;
    documents::erase(store, customer, budget).await
}

/// Ends all sessions, also those that have expired and are not removed yet: what the time to live removes is archived.
async fn end_sessions(store: &Store, customer: &CustomerId) -> Result<(), Problem> {
    let mut after = None;
    for _ in 0..MAX_PAGES {
        // Page by page: the index may still show what has ended.
        let page = store.table.query(&session::of_customer(customer)?.limit(PAGE).after(after)).await?;
        remove(store, &session::end_all(page.items.iter().map(|session| &session.id))?).await?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
    Err(Problem::throttled("more sessions than one request ends"))
}

/// Erases the questions with their answers, a copy after all that it leads to (see [`question`]).
async fn erase_questions(store: &Store, customer: &CustomerId) -> Result<(), Problem> {
    for _ in 0..MAX_QUESTION_PAGES {
        // Always from the beginning: what was erased is not there any more.
        let page = store.table.query(&question::erasable(customer)?.limit(QUESTIONS)).await?;
        let copies = || page.items.iter().map(|copy| &copy.data);
        remove(store, &question::erase(copies().map(|copy| &copy.id))?).await?;
        // Whatever the copy counts: another answer may have come before the question went.
        for copy in copies() {
            let answers = store.table.query(&question::answers(&copy.id)?).await?;
            remove(store, &question::erase_answers(answers.items.iter().map(|answer| &answer.data))?).await?;
        }
        remove(store, &question::erase_copies(copies())?).await?;
        if page.next.is_none() {
            return Ok(());
        }
    }
    Err(Problem::throttled("more questions than one request erases"))
}

/// Removes items, if there are any.
///
/// # Errors
/// 503 `throttled` when some are left.
pub async fn remove(store: &Store, items: &BatchWrite) -> Result<(), Problem> {
    if items.writes().is_empty() {
        return Ok(());
    }
    match store.table.batch_write(items).await?.len() {
        0 => Ok(()),
        left => Err(Problem::throttled(format!("{left} items could not be removed"))),
    }
}
