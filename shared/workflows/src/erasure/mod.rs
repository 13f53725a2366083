//! The erasure of a customer.
//!
//! The request first marks the profile. From then on the table refuses transactions that need the
//! customer, so the customer gets no further items. Every step can run again.
//!
//! The function `customers` does this work within the budget of its request. If no client repeats
//! an interrupted request, the janitor finishes the erasure.

mod documents;
mod edges;
mod memberships;

use key_schema::customer::{Customer, CustomerAction};
use key_schema::id::{CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::pattern::Pattern;
use key_schema::session::{self, Session};
use key_schema::{cart, customer, document, follow, graph, like, order, organization, question, review};
use table::{Budget, Table, retry_on_conflict};

use crate::engine::{self, Bound, ONCE, Standing, Stop, Worker, workflow};
use crate::removal::RemovalError;

const PAGE: usize = 100;
/// The questions of one page. Each question has further items.
const QUESTIONS: usize = 25;

/// The access patterns with which an erasure continues. The pattern that begins it is not among
/// them.
pub const PATTERNS: &[&Pattern] = &[
    &session::OF_CUSTOMER,
    &session::READ_ALL,
    &session::REVOKE_ALL,
    &session::END_ALL,
    &cart::DISCARD,
    &order::addresses::OF_CUSTOMER,
    &order::addresses::ERASE,
    &customer::EDIT,
    &customer::DELETE,
    &follow::FOLLOWERS,
    &follow::ERASE,
    &like::ERASE,
    &graph::OWN,
    &question::ERASABLE,
    &question::ANSWERS,
    &question::ERASE,
    &organization::ERASABLE,
    &organization::ERASE_MEMBER,
    &organization::OF_CUSTOMER,
    &organization::invitation::ROSTER,
    &organization::invitation::ERASE,
    &organization::invitation::FORGET,
    &document::EDIT,
    &document::RETIRE,
    &document::HISTORY,
    &document::SWEEP,
    &document::DELETE,
    &document::OF_CUSTOMER,
    &document::RELEASE,
    &document::FORGET,
    &review::BY_CUSTOMER,
    &review::EDIT,
    &review::ERASE_NAME,
];

/// Returns a function's other access patterns, followed by [`PATTERNS`].
#[must_use]
pub const fn with_patterns<const N: usize>(others: &[&'static Pattern]) -> [&'static Pattern; N] {
    let mut all = [&cart::DISCARD; N];
    let (first, rest) = all.split_at_mut(others.len());
    first.copy_from_slice(others);
    rest.copy_from_slice(PATTERNS);
    all
}

/// The kinds of items that the customer or others may add while the profile exists.
#[derive(Debug, Clone, Copy)]
enum Belonging {
    Cart,
    Addresses,
    Questions,
    OwnEdges,
    Followers,
    Invitations,
    Memberships,
    Documents,
    DisplayNames,
}

impl Belonging {
    const ALL: [Self; 9] = [
        Self::Cart,
        Self::Addresses,
        Self::Questions,
        Self::OwnEdges,
        Self::Followers,
        Self::Invitations,
        Self::Memberships,
        Self::Documents,
        Self::DisplayNames,
    ];

    async fn erase(
        self,
        table: &Table,
        customer: &CustomerId,
        until: Instant,
        budget: &Budget<'_>,
    ) -> Result<(), RemovalError> {
        match self {
            Self::Cart => {
                // A refusal means that there is no cart from before `until`.
                let _ = table.write(&cart::discard_earlier(customer, until)?).await?;
                Ok(())
            }
            Self::Addresses => erase_addresses(table, customer, until, budget).await,
            Self::Questions => erase_questions(table, customer, until, budget).await,
            Self::OwnEdges => edges::erase_own(table, customer, until, budget).await,
            Self::Followers => edges::erase_followers(table, customer, until, budget).await,
            Self::Invitations => memberships::erase_invitations(table, customer, until, budget).await,
            Self::Memberships => memberships::erase(table, customer, until, budget).await,
            Self::Documents => documents::erase(table, customer, until, budget).await,
            Self::DisplayNames => erase_display_names(table, customer, until, budget).await,
        }
    }
}

/// Removes the addresses of the customer's orders, and who the guest was. The orders keep only country
/// and city.
async fn erase_addresses(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        let page = table.query(&order::addresses::of_customer(customer)?.limit(PAGE).after(after)).await?;
        let earlier = page.items.iter().filter(|addresses| addresses.meta.created_at < until);
        budget.write(&order::addresses::erase(earlier.map(|addresses| &addresses.data))?).await?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Erases the questions with their answers. The customer's copy of a question is removed last,
/// because a repeated erasure finds the other items through this copy (see [`question`]).
async fn erase_questions(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        let page = table.query(&question::erasable(customer)?.limit(QUESTIONS).after(after)).await?;
        let copies = || page.items.iter().filter(|copy| copy.meta.created_at < until).map(|copy| &copy.data);
        budget.write(&question::erase(copies().map(|copy| &copy.id))?).await?;
        // The copy's count of answers may be too small, because another answer may have been added
        // before the question was erased. So the loop reads the answers themselves.
        for copy in copies() {
            let answers = table.query(&question::answers(&copy.id)?).await?;
            budget.write(&question::erase_answers(answers.items.iter().map(|answer| &answer.data))?).await?;
        }
        budget.write(&question::erase_copies(copies())?).await?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Removes the display name from the customer's reviews, which stay. A review that was changed after
/// `until` has the name that a new customer with the same id chose.
async fn erase_display_names(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        // The index may still show removed names, so the loop reads each page once.
        let page = table.query(&review::by_customer(customer)?.limit(PAGE).after(after)).await?;
        let named = page.items.iter().filter(|found| found.display_name.is_some() && found.updated_at < until);
        for found in named {
            erase_display_name(table, &found.product_id, customer, until).await?;
            budget.pace().await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

async fn erase_display_name(
    table: &Table,
    product: &ProductId,
    customer: &CustomerId,
    until: Instant,
) -> Result<(), RemovalError> {
    retry_on_conflict(async || {
        let review = table.get(&review::read_for_update(product, customer)?).await?;
        let named = review.filter(|review| review.display_name.is_some() && review.meta.updated_at < until);
        let Some(review) = named else { return Ok(Some(())) };
        Ok(table.transact(&review::erase_name(&review, Instant::now())?).await?.ok())
    })
    .await
}

/// Ends the sessions that began before `until`, even expired sessions that DynamoDB has not removed
/// yet. Otherwise the stream's consumer would archive the expired sessions when DynamoDB removes
/// them. Passes the sessions of each page to `ended`.
///
/// # Errors
/// [`table::TableError::OverBudget`] when there are more sessions than one request ends.
pub async fn end_sessions(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
    ended: impl Fn(&[Stored<Session>]),
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        // The loop reads no page again, because the index may still show ended sessions.
        let page = table.query(&session::of_customer(customer)?.limit(PAGE).after(after)).await?;
        let ids = || page.items.iter().filter(|session| session.created_at < until).map(|session| &session.id);
        if ids().next().is_some() {
            let sessions: Vec<_> = table.batch_get(&session::read_all(ids())?).await?.into_iter().flatten().collect();
            budget.write(&session::revoke_all(&sessions, Instant::now())?).await?;
            budget.write(&session::end_all(ids())?).await?;
            ended(&sessions);
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Removes the items that the customer or others added before `until`, while the profile existed:
/// the cart, addresses of orders, questions, follows, likes, invitations, memberships,
/// documents, and the display names of reviews.
///
/// The caller reads the clock before it reads the profile. So items of a customer who signs up
/// again under the same id are newer than `until`, and stay.
///
/// # Errors
/// [`table::TableError::OverBudget`] when there are more items than one request removes. An error about
/// one item does not stop the removal of the other kinds of items. The first such error is returned
/// at the end.
pub async fn erase_belongings(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut failed = Ok(());
    for belonging in Belonging::ALL {
        let erased = belonging.erase(table, customer, until, budget).await;
        let is_last = erased.as_ref().is_err_and(RemovalError::ends_request);
        failed = failed.and(erased);
        if is_last {
            break;
        }
    }
    failed
}

workflow! {
    /// Erases a customer. The profile is deleted after the customer's other items, so that another
    /// worker can continue an interrupted erasure.
    EraseCustomer of CustomerAction, by Eraser, begun ["customers.erasure.begun"];
    Belongings => {
        run erase_belongings, at most Bound::Budget, crash "customers.belongings.erased";
        forward only;
    }
    Profile => {
        run delete_profile, at most ONCE, crash "customers.profile.erased";
        forward only;
    }
}

struct Eraser<'a> {
    table: &'a Table,
    profile: &'a Stored<Customer>,
    until: Instant,
    budget: &'a Budget<'a>,
}

impl Worker for Eraser<'_> {
    type End = ();

    async fn stands(&mut self, done: Option<EraseCustomer>) -> Result<Standing<EraseCustomer, ()>, RemovalError> {
        Ok(match done {
            None => Standing::At(EraseCustomer::Belongings),
            Some(EraseCustomer::Belongings) => Standing::At(EraseCustomer::Profile),
            Some(EraseCustomer::Profile) => Standing::Over(()),
        })
    }
}

impl Eraser<'_> {
    async fn erase_belongings(&mut self) -> Result<(), Stop<CustomerAction>> {
        erase_belongings(self.table, &self.profile.id, self.until, self.budget).await?;
        if self.profile.email_verified {
            let guest = CustomerId::guest(&self.profile.email);
            erase_addresses(self.table, &guest, self.until, self.budget).await?;
        }
        Ok(())
    }

    async fn delete_profile(&mut self) -> Result<(), Stop<CustomerAction>> {
        Ok(self.table.transact(&customer::delete(self.profile, Instant::now())?).await??)
    }
}

/// Erases a customer whose profile is marked, until the profile is deleted. `until` is as in
/// [`erase_belongings`]. The transaction that deletes the profile also writes an
/// [`Erasure`](key_schema::erasure::Erasure). When the janitor finds that item, it does the rest of
/// the erasure.
///
/// # Errors
/// As [`erase_belongings`]. [`WorkflowError::Refused`](crate::WorkflowError::Refused) when the
/// profile has changed, or the claim of one of the customer's names is missing or belongs to
/// another customer.
pub async fn erase(
    table: &Table,
    profile: &Stored<Customer>,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    engine::run(&mut Eraser { table, profile, until, budget }).await
}

/// Continues an erasure that has begun. Returns whether this call deleted the profile.
///
/// # Errors
/// As [`erase`], but not if another worker has deleted the profile.
pub async fn go_on(table: &Table, customer: &CustomerId, budget: &Budget<'_>) -> Result<bool, RemovalError> {
    let until = Instant::now();
    // The caller may have found the customer in an outdated list, so the profile decides.
    let profile = table.get(&customer::read_for_update(customer)?).await?;
    let Some(profile) = profile.filter(|profile| profile.erasing_since.is_some()) else { return Ok(false) };
    match erase(table, &profile, until, budget).await {
        Err(RemovalError::Refused(refusals)) if refusals.names(CustomerAction::Profile) => Ok(false),
        erased => erased.map(|()| true),
    }
}
