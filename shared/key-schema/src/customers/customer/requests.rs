use item_model::prelude::*;

use super::{
    ALL, BEGIN_ERASURE, BY_EMAIL, BY_TIER, COUNT_DATA_PAGE, CREATE, Customer, CustomerSummary, DATA_PARTS, DELETE,
    EDIT, EmailClaim, ErasingIndexKey, GET, HYDRATE, MAX_ADDRESSES, OVERVIEW, OVERVIEW_ORDERS, PROFILE, PUT_ADDRESS,
    REMOVE_ADDRESS, RENAME, Tier, UPDATE, UsernameClaim, email_key, key, partition, stays, tier_partition,
};
use crate::address::PostalAddress;
use crate::change::Change;
use crate::erasure::{self, Erasure};
use crate::expression::{Condition, value};
use crate::id::{AddressName, CustomerId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity as _, Raw, Stored};
use crate::key::KeyError;
use crate::order::CustomerOrder;
use crate::quota::{self, Quota};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction};
use crate::shard::Layout;
use crate::text::{Email, Username, fold};
use crate::verification;

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomerAction {
    /// The profile already exists, is not at the version that the caller has read, or is being
    /// erased.
    Profile,
    /// Another customer has verified the email address.
    Email,
    /// Another customer has the user name.
    Username,
    /// An old claim does not belong to this customer, so the profile that was read is out of date.
    OldClaim,
    /// The [`Erasure`] item. Its write has no condition, so it is never refused.
    Erasure,
    /// The customer's request to verify the email address. Its removal has no condition, so it is
    /// never refused.
    Verification,
}

/// Creates a customer and claims the user name, and the email address if it is verified.
pub fn create(customer: &Stored<Customer>) -> Result<Transaction<CustomerAction>, EncodeError> {
    let claims = Claims::of(customer);
    let mut transaction =
        Transaction::new(&CREATE).action(CustomerAction::Profile, Guarded::put(customer, Condition::NotExists)?);
    if let Some(email) = &claims.email {
        transaction = transaction.action(CustomerAction::Email, Guarded::put(email, Condition::NotExists)?);
    }
    Ok(transaction.action(CustomerAction::Username, Guarded::put(&claims.username, Condition::NotExists)?))
}

struct Claims {
    email: Option<Stored<EmailClaim>>,
    username: Stored<UsernameClaim>,
}

impl Claims {
    fn of(customer: &Stored<Customer>) -> Self {
        let stored = |at| (customer.meta.born.clone(), at);
        let (born, at) = stored(customer.meta.updated_at);
        let email = EmailClaim { email: customer.email.folded(), customer_id: customer.id.clone() };
        let username = UsernameClaim { username: customer.username.folded(), customer_id: customer.id.clone() };
        Self {
            email: customer.email_verified.then(|| Stored::new(email, born.clone(), at)),
            username: Stored::new(username, born, at),
        }
    }

    fn address(&self) -> Option<&str> {
        self.email.as_ref().map(|claim| claim.email.as_str())
    }
}

pub fn get(id: &CustomerId) -> Result<Get<Stored<Customer>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Reads a customer with strong consistency, before a change of unique names or an erasure.
pub fn read_for_update(id: &CustomerId) -> Result<Get<Stored<Customer>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

/// Changes the customer that was read, and returns the customer. DynamoDB refuses the write if the
/// customer has changed since or is being erased.
pub fn update(read: &Stored<Customer>, change: Change<Customer>) -> Result<Single<Stored<Customer>>, EncodeError> {
    let condition = Condition::unchanged(&read.meta)?.and(stays());
    Ok(Single::new(&UPDATE, Guarded::update(key(&read.id)?, change, condition)))
}

/// The names of a profile after a change.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    pub email: &'a Email,
    pub email_verified: bool,
    pub username: &'a Username,
}

/// Changes the email address, its verification or the user name, and makes the changes of `change`
/// in the same write. `old` is the profile that was read.
pub fn rename(
    old: &Stored<Customer>,
    names: Names<'_>,
    change: Change<Customer>,
    at: Instant,
) -> Result<Transaction<CustomerAction>, EncodeError> {
    let Names { email, email_verified, username } = names;
    let change = change.set("email", email)?.set("email_verified", email_verified)?.set("username", username)?;
    let mine = Condition::Is("customer_id", value(&old.id)?);
    let mut renamed = old.clone();
    renamed.data.email = email.clone();
    renamed.data.email_verified = email_verified;
    renamed.data.username = username.clone();
    renamed.meta.updated_at = at;
    let (before, after) = (Claims::of(old), Claims::of(&renamed));
    let update = Guarded::update(key(&old.id)?, change, Condition::unchanged(&old.meta)?.and(stays()));
    let mut transaction = Transaction::new(&RENAME).action(CustomerAction::Profile, update);
    // If a new spelling has the same folded form, the claim stays.
    if before.address() != after.address() {
        if let Some(claim) = &after.email {
            transaction = transaction.action(CustomerAction::Email, Guarded::put(claim, Condition::NotExists)?);
        }
        if let Some(own) = &before.email {
            transaction = transaction.action(CustomerAction::OldClaim, Guarded::delete(own.key()?, mine.clone()));
        }
    }
    if before.username.username != after.username.username {
        transaction = transaction
            .action(CustomerAction::Username, Guarded::put(&after.username, Condition::NotExists)?)
            .action(CustomerAction::OldClaim, Guarded::delete(before.username.key()?, mine));
    }
    Ok(transaction)
}

/// Begins the erasure of the customer who was read. The version stays the same, so that the client
/// can repeat the request.
pub fn begin_erasure(customer: &Stored<Customer>, at: Instant) -> Result<Single<Stored<Customer>>, EncodeError> {
    let change = Change::<Customer>::copied().enter(&ErasingIndexKey { since: at, id: &customer.id })?;
    let unchanged = Condition::unchanged(&customer.meta)?;
    Ok(Single::new(&BEGIN_ERASURE, Guarded::update(key(&customer.id)?, change, unchanged)))
}

/// Removes a customer's profile at the version that was read, frees the claimed names, and writes
/// an [`Erasure`] item.
pub fn delete(customer: &Stored<Customer>, at: Instant) -> Result<Transaction<CustomerAction>, EncodeError> {
    let erasure = Erasure { customer_id: customer.id.clone() };
    let erasure = Stored::new(erasure, customer.meta.born.clone(), at);
    let claims = Claims::of(customer);
    let mine = Condition::Is("customer_id", value(&customer.id)?);
    let mut transaction = Transaction::new(&DELETE)
        .action(CustomerAction::Profile, Guarded::delete(key(&customer.id)?, Condition::unchanged(&customer.meta)?));
    if let Some(claim) = &claims.email {
        transaction = transaction.action(CustomerAction::OldClaim, Guarded::delete(claim.key()?, mine.clone()));
    }
    Ok(transaction
        .action(CustomerAction::OldClaim, Guarded::delete(claims.username.key()?, mine))
        .action(CustomerAction::Verification, verification::discard(&customer.id)?)
        .action(CustomerAction::Erasure, erasure::note(&erasure)?))
}

/// Sets one address, and returns the customer. DynamoDB refuses the write if the customer does not
/// exist, is being erased, is not at `version`, or has no room for another address.
pub fn put_address(
    id: &CustomerId,
    name: &AddressName,
    address: &PostalAddress,
    version: Option<u64>,
    at: Instant,
) -> Result<Single<Stored<Customer>>, EncodeError> {
    let change = Change::<Customer>::visible(at).set_entry("addresses", name.as_str(), address)?;
    let room =
        Condition::HasEntry("addresses", name.to_string()).or(Condition::FewerEntries("addresses", MAX_ADDRESSES));
    let condition = at_version(Condition::Exists.and(room).and(stays()), version);
    Ok(Single::new(&PUT_ADDRESS, Guarded::update(key(id)?, change, condition)))
}

/// Removes one address, and returns the customer. DynamoDB refuses the write if the customer or the
/// address does not exist, or if the customer is being erased or not at `version`.
pub fn remove_address(
    id: &CustomerId,
    name: &AddressName,
    version: Option<u64>,
    at: Instant,
) -> Result<Single<Stored<Customer>>, KeyError> {
    let change = Change::<Customer>::visible(at).remove_entry("addresses", name.as_str());
    let condition = at_version(Condition::HasEntry("addresses", name.to_string()).and(stays()), version);
    Ok(Single::new(&REMOVE_ADDRESS, Guarded::update(key(id)?, change, condition)))
}

fn at_version(condition: Condition, version: Option<u64>) -> Condition {
    match version {
        Some(version) => condition.and(Condition::version(version)),
        None => condition,
    }
}

/// Reads the claim of a verified email address, which may be given in any spelling.
pub fn by_email(email: &str) -> Result<Get<Stored<EmailClaim>>, KeyError> {
    Ok(Get::new(&BY_EMAIL, email_key(&fold(email))?))
}

/// Lists the customers of a tier, oldest first. `layout` is the present layout of the lists by
/// tier.
pub fn by_tier(tier: Tier, layout: Layout) -> Result<Query<CustomerSummary>, KeyError> {
    Query::in_layout(&BY_TIER, layout, |shard| Ok(vec![tier_partition(tier, shard)?]), Range::All)
}

/// Lists all customers, oldest first. Every customer is in the list of a tier, with a sort key that
/// does not depend on the tier. So the lists of all tiers are the shards of one list. While a
/// customer's tier changes, the index may show the customer in two tiers. Both entries are on the
/// same page. `layout` is the present layout of the lists by tier.
pub fn all(layout: Layout) -> Result<Query<CustomerSummary>, KeyError> {
    let partitions = |shard| Tier::ALL.into_iter().map(|tier| tier_partition(tier, shard)).collect();
    Query::in_layout(&ALL, layout, partitions, Range::All)
}

pub fn hydrate<'a>(ids: impl IntoIterator<Item = &'a CustomerId>) -> Result<BatchGet<Stored<Customer>>, KeyError> {
    Ok(BatchGet::new(&HYDRATE, ids.into_iter().map(key).collect::<Result<_, _>>()?))
}

/// Reads items of a copy of the customer's data as they are stored, in the order of `gets`.
pub fn data_parts<T>(gets: impl IntoIterator<Item = Result<Get<T>, KeyError>>) -> Result<BatchGet<Raw>, KeyError> {
    let keys = gets.into_iter().map(|get| Ok(get?.key().clone())).collect::<Result<_, _>>()?;
    Ok(BatchGet::new(&DATA_PARTS, keys))
}

/// Counts a page of a copy of the customer's data. DynamoDB refuses the write if the day's quota is
/// used up.
pub fn count_data_page(customer: &CustomerId, now: Instant) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&COUNT_DATA_PAGE, quota::count(customer, Quota::DataPages, now)?))
}

one_of! {
    pub enum OverviewItem { Customer CustomerOrder }
}

/// Reads the profile and the newest orders, newest first.
pub fn overview(id: &CustomerId) -> Result<Query<OverviewItem>, KeyError> {
    let range = Range::Between("ORDER#".into(), PROFILE.into());
    Ok(Query::new(&OVERVIEW, partition(id)?, range).descending().limit(OVERVIEW_ORDERS + 1))
}
