//! Customers: profiles, unique names, and lists by tier.
//!
//! The partition `CUSTOMER#<id>` holds, in this byte order, `DOCUMENT#…`, `FOLLOWS#…`, `LIKE#…`,
//! `ORDER#<order id>`, `PROFILE`, `QUESTION#<complement of time>#<id>` and `VERIFICATION`. Order
//! ids grow with time, question keys shrink with time, and the profile is between them. So one
//! Query backward from `PROFILE` reads the profile and the newest orders. One Query forward from it
//! reads the profile and the newest questions. Nothing else may sort between `ORDER#` and
//! `QUESTION$`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry, entity};
use crate::entity::AnyEntity;
use crate::erasure::{self, Erasure};
use crate::expression::{Condition, value};
use crate::id::{AddressName, CustomerId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction};
use crate::residence::Residence;
use crate::shard::Shards;
use crate::text::{Email, Username, fold};
use crate::verification;

/// The maximum number of addresses of a customer. It keeps the profile far below DynamoDB's 400 KB.
pub const MAX_ADDRESSES: usize = 50;
/// The shards of each tier's list.
pub const TIER_SHARDS: Shards = Shards(4);
/// The number of orders in an overview.
pub const OVERVIEW_ORDERS: usize = 20;

/// A customer's tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The lowest tier, in which every customer begins.
    #[default]
    Bronze,
    /// The middle tier.
    Silver,
    /// The highest tier.
    Gold,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 3] = [Self::Bronze, Self::Silver, Self::Gold];

    /// Returns the name in keys, JSON and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bronze => "bronze",
            Self::Silver => "silver",
            Self::Gold => "gold",
        }
    }
}

/// The error for a text that names no tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be bronze, silver or gold")]
pub struct UnknownTier;

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, UnknownTier> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text).ok_or(UnknownTier)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The country and city in which a customer lives. The shop needs no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The country.
    pub country: String,
    /// The city.
    pub city: String,
}

/// A postal address. Only street, city and country are required, because the world's addresses
/// differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Street and number, or the local equivalent.
    pub street: String,
    /// The city.
    pub city: String,
    /// The postal code.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub postal_code: Option<String>,
    /// State, province or canton.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub region: Option<String>,
    /// The country.
    pub country: String,
}

entity! {
    /// A customer's profile.
    Customer = "Customer" {
        keyed {
            /// The caller's `sub`, or an id that staff gave.
            id: CustomerId,
            /// The email address. A verified one is unique in its folded form. It changes only
            /// together with its claim ([`rename`]).
            email: Email,
            /// Whether the customer has proven that the address is theirs, or staff vouches for it.
            /// Only a verified address has a claim. Profiles of earlier versions lack this
            /// attribute. They all have a claim, and count as verified.
            #[serde(default = "verified_before")]
            email_verified: bool,
            /// The user name, unique in its folded form. It changes only together with its claim
            /// ([`rename`]).
            username: Username,
            /// The tier, part of the key of the tier's list.
            tier: Tier,
            /// The place in which the customer lives, part of the key of the place's list.
            /// [`crate::residence::settle`] changes it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            place: Option<Place>,
        }
        free {
            /// The name by which to address the customer.
            name: String,
            /// The addresses by name.
            addresses: BTreeMap<AddressName, Address>,
        }
    }
}

const fn verified_before() -> bool {
    true
}

/// A customer's place in the list of a tier, oldest customer first.
#[derive(Debug, Clone, Copy)]
pub struct TierPlace<'a> {
    /// The tier.
    pub tier: Tier,
    /// The instant at which the customer was created.
    pub created_at: Instant,
    /// The customer's id.
    pub id: &'a CustomerId,
}

impl TierPlace<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: Index::Gsi2,
            partition: tier_partition(self.tier, TIER_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(crate::encoding::join(&self.created_at.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for TierPlace<'_> {
    type Entity = Customer;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("tier", value(self.tier)?)])
    }
}

fn tier_partition(tier: Tier, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("TIER", &[&tier.as_str(), &shard])
}

impl Entity for Customer {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let tier = TierPlace { tier: self.tier, created_at: meta.created_at, id: &self.id }.key()?;
        let place = self.place.as_ref().map(|place| Residence { place, id: &self.id }.key()).transpose()?;
        Ok([tier].into_iter().chain(place).collect())
    }
}

/// The sort key of the profile in the customer's partition.
pub(crate) const PROFILE: &str = "PROFILE";

/// Returns the partition of a customer's profile and of the items stored beside it.
pub(crate) fn partition(id: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("CUSTOMER", &[id])
}

pub(crate) fn key(id: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new(PROFILE)? })
}

/// Returns a check that a customer exists, as an action for a transaction that needs the customer.
pub(crate) fn check(id: &CustomerId) -> Result<Guarded, KeyError> {
    Ok(Guarded::check(key(id)?, Condition::Exists))
}

/// A sentinel item that reserves a verified email address for one customer. Its key is the folded address,
/// so two spellings conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmailClaim {
    /// The folded address.
    pub email: String,
    /// The customer who has the address.
    pub customer_id: CustomerId,
}

impl Entity for EmailClaim {
    const NAME: &'static str = "EmailClaim";

    fn key(&self) -> Result<Key, KeyError> {
        email_key(&self.email)
    }
}

fn email_key(folded: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("EMAIL", &[&folded])?, sk: SortKey::new("EMAIL")? })
}

/// A sentinel item that reserves a user name for one customer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsernameClaim {
    /// The folded name.
    pub username: String,
    /// The customer who has the name.
    pub customer_id: CustomerId,
}

impl Entity for UsernameClaim {
    const NAME: &'static str = "UsernameClaim";

    fn key(&self) -> Result<Key, KeyError> {
        username_key(&self.username)
    }
}

fn username_key(folded: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("USERNAME", &[&folded])?, sk: SortKey::new("USERNAME")? })
}

/// A customer as the tier index shows it. The id is enough to read the profile by key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listed {
    /// The customer's id.
    pub id: CustomerId,
}

crate::item::view!(Listed of Customer);

/// An action of a customer transaction. It labels the refusal of that action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The profile already exists, or is not at the version that the caller saw.
    Profile,
    /// Another customer has verified the email address.
    Email,
    /// Another customer has the user name.
    Username,
    /// An old claim does not belong to this customer. The profile that was read is out of date.
    OldClaim,
    /// The note of an erasure. No condition guards it.
    Erasure,
    /// The customer's request to verify the email address, which is removed with the profile. No
    /// condition guards it.
    Verification,
}

patterns! {
    CREATE = "customers.create": TransactWriteItems, "PK = CUSTOMER#<id>, SK = PROFILE; PK = EMAIL#<folded>; PK = USERNAME#<folded>; claims of earlier versions (check)" => "none of the items exists, also in the form of earlier versions; EMAIL#… only for a verified address", Consistency::Write, "owner", "Create a customer and claim the verified email and the user name", ["POST /v1/customers"];
    GET = "customers.get": GetItem, "PK = CUSTOMER#<id>, SK = PROFILE" => "the profile", Consistency::Eventual, "owner", "Read a customer", ["GET /v1/customers/{id}", "GET /v1/customers"];
    EDIT = "customers.edit": GetItem, "PK = CUSTOMER#<id>, SK = PROFILE" => "the profile", Consistency::Strong("the next change compares its names with the stored ones"), "owner", "Read a customer before changing unique names or erasing", ["PATCH /v1/customers/{id}", "DELETE /v1/customers/{id}"];
    UPDATE = "customers.update": UpdateItem, "PK = CUSTOMER#<id>, SK = PROFILE" => "version = the If-Match", Consistency::Write, "owner", "Change a customer", ["PATCH /v1/customers/{id}"];
    RENAME = "customers.rename": TransactWriteItems, "PK = CUSTOMER#<id>, SK = PROFILE; old and new EMAIL#…, USERNAME#…" => "version = the If-Match; the new names are free, also in the form of earlier versions; the old claims are this customer's; EMAIL#… only for verified addresses", Consistency::Write, "owner", "Change email or user name with their claims", ["PATCH /v1/customers/{id}"];
    DELETE = "customers.delete": TransactWriteItems, "PK = CUSTOMER#<id>, SK = PROFILE, VERIFICATION; EMAIL#… of a verified address; USERNAME#…; ERASURE#<id>" => "version = the If-Match; the claims are this customer's", Consistency::Write, "owner", "Erase a customer, free the names and note the erasure for the archive", ["DELETE /v1/customers/{id}"];
    PUT_ADDRESS = "customers.put-address": UpdateItem, "PK = CUSTOMER#<id>, SK = PROFILE" => "exists and has this address or room for one more; SET addresses.<name>", Consistency::Write, "owner", "Set one address without touching the others", ["PUT /v1/customers/{id}/addresses/{name}"];
    REMOVE_ADDRESS = "customers.remove-address": UpdateItem, "PK = CUSTOMER#<id>, SK = PROFILE" => "has this address; REMOVE addresses.<name>", Consistency::Write, "owner", "Remove one address", ["DELETE /v1/customers/{id}/addresses/{name}"];
    BY_EMAIL = "customers.by-email": GetItem, "PK = EMAIL#<folded>, SK = EMAIL" => "the claim, which names the customer", Consistency::Eventual, "staff", "Find the customer who has verified an email address", ["GET /v1/customers"];
    BY_TIER = "customers.by-tier": ShardedQuery on Gsi2, "GSI2PK = TIER#<tier>#<shard>, GSI2SK = <created_at>#<id>" => "ids, oldest customer first", Consistency::Eventual, "staff", "List the customers of a tier", ["GET /v1/customers"];
    HYDRATE = "customers.hydrate": BatchGetItem, "PK = CUSTOMER#<id>, SK = PROFILE, for each id" => "the profiles", Consistency::Eventual, "staff", "Read the profiles of a page", ["GET /v1/customers"];
    OVERVIEW = "customers.overview": Query, "PK = CUSTOMER#<id>, SK between ORDER# and PROFILE, backward" => "the profile, then the newest 20 orders", Consistency::Eventual, "owner", "Read the profile and the newest orders in one request", ["GET /v1/customers/{id}/overview"];
}

/// Creates a customer and claims the user name, and the email address if it is verified.
///
/// # Errors
/// [`EncodeError`] when the profile cannot be stored.
pub fn create(customer: &Stored<Customer>) -> Result<Transaction<Part>, EncodeError> {
    let claims = Claims::of(customer);
    let mut transaction =
        Transaction::new(&CREATE).action(Part::Profile, Guarded::put(customer, Condition::NotExists)?);
    if let Some(email) = &claims.email {
        transaction = transaction.action(Part::Email, Guarded::put(email, Condition::NotExists)?);
        transaction = free_earlier(transaction, Part::Email, earlier_email(&customer.email)?);
    }
    let transaction = transaction.action(Part::Username, Guarded::put(&claims.username, Condition::NotExists)?);
    Ok(free_earlier(transaction, Part::Username, earlier_username(&customer.username)?))
}

/// Returns the key of the claim of an earlier version, if it differs from today's claim.
fn earlier_email(email: &Email) -> Result<Option<Key>, KeyError> {
    email.folded_earlier().map(|folded| email_key(&folded)).transpose()
}

fn earlier_username(username: &Username) -> Result<Option<Key>, KeyError> {
    username.folded_earlier().map(|folded| username_key(&folded)).transpose()
}

/// Requires that no customer of an earlier version has the name in exactly this spelling.
fn free_earlier(transaction: Transaction<Part>, part: Part, claim: Option<Key>) -> Transaction<Part> {
    match claim {
        Some(claim) => transaction.action(part, Guarded::check(claim, Condition::NotExists)),
        None => transaction,
    }
}

/// The claims that belong to a profile.
struct Claims {
    /// The claim of a verified address.
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

    /// Returns the folded address of the claim.
    fn address(&self) -> Option<&str> {
        self.email.as_ref().map(|claim| claim.email.as_str())
    }
}

/// Reads a customer.
///
/// # Errors
/// [`KeyError`].
pub fn get(id: &CustomerId) -> Result<Get<Stored<Customer>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Reads a customer with strong consistency, before a change of unique names or an erasure.
///
/// # Errors
/// [`KeyError`].
pub fn edit(id: &CustomerId) -> Result<Get<Stored<Customer>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

/// Changes a customer at `version`, and returns the customer.
///
/// # Errors
/// [`KeyError`].
pub fn update(id: &CustomerId, change: Change<Customer>, version: u64) -> Result<Single<Stored<Customer>>, KeyError> {
    Ok(Single::new(&UPDATE, Guarded::update(key(id)?, change, Condition::version(version))))
}

/// The names of a profile after a change.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The email address.
    pub email: &'a Email,
    /// Whether it is verified.
    pub email_verified: bool,
    /// The user name.
    pub username: &'a Username,
}

/// Changes the email address, its verification or the user name, together with the other steps of
/// `change`. `old` is the profile that was read.
///
/// # Errors
/// [`EncodeError`].
pub fn rename(
    old: &Stored<Customer>,
    names: Names<'_>,
    change: Change<Customer>,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let Names { email, email_verified, username } = names;
    let change = change.set("email", email)?.set("email_verified", email_verified)?.set("username", username)?;
    let mine = Condition::Is("customer_id", value(&old.id)?);
    let mut renamed = old.clone();
    renamed.data.email = email.clone();
    renamed.data.email_verified = email_verified;
    renamed.data.username = username.clone();
    renamed.meta.updated_at = at;
    let (before, after) = (Claims::of(old), Claims::of(&renamed));
    let update = Guarded::update(key(&old.id)?, change, Condition::version(old.meta.version));
    let mut transaction = Transaction::new(&RENAME).action(Part::Profile, update);
    // Another spelling with the same folded form keeps its claim.
    if before.address() != after.address() {
        let own = before.email.as_ref().map(|claim| claim.key()).transpose()?;
        if let Some(claim) = &after.email {
            let earlier = earlier_email(email)?.filter(|earlier| own.as_ref() != Some(earlier));
            transaction = transaction.action(Part::Email, Guarded::put(claim, Condition::NotExists)?);
            transaction = free_earlier(transaction, Part::Email, earlier);
        }
        if let Some(own) = own {
            transaction = transaction.action(Part::OldClaim, Guarded::delete(own, mine.clone()));
        }
    }
    if before.username.username != after.username.username {
        transaction = transaction
            .action(Part::Username, Guarded::put(&after.username, Condition::NotExists)?)
            .action(Part::OldClaim, Guarded::delete(before.username.key()?, mine));
        let earlier = earlier_username(username)?.filter(|claim| before.username.key().is_ok_and(|own| own != *claim));
        transaction = free_earlier(transaction, Part::Username, earlier);
    }
    Ok(transaction)
}

/// Removes a customer's profile at the version that was read, frees the claimed names, and notes
/// the erasure ([`crate::erasure`]).
///
/// # Errors
/// [`EncodeError`].
pub fn delete(customer: &Stored<Customer>, at: Instant) -> Result<Transaction<Part>, EncodeError> {
    let erasure = Erasure { customer_id: customer.id.clone() };
    let erasure = Stored::new(erasure, customer.meta.born.clone(), at);
    let claims = Claims::of(customer);
    let mine = Condition::Is("customer_id", value(&customer.id)?);
    let mut transaction = Transaction::new(&DELETE)
        .action(Part::Profile, Guarded::delete(key(&customer.id)?, Condition::version(customer.meta.version)));
    if let Some(claim) = &claims.email {
        transaction = transaction.action(Part::OldClaim, Guarded::delete(claim.key()?, mine.clone()));
    }
    Ok(transaction
        .action(Part::OldClaim, Guarded::delete(claims.username.key()?, mine))
        .action(Part::Verification, verification::discard(&customer.id)?)
        .action(Part::Erasure, erasure::note(&erasure)?))
}

/// Sets one address, and returns the customer. DynamoDB refuses the write if the customer does not
/// exist, is not at `version`, or has no room.
///
/// # Errors
/// [`EncodeError`].
pub fn put_address(
    id: &CustomerId,
    name: &AddressName,
    address: &Address,
    version: Option<u64>,
    at: Instant,
) -> Result<Single<Stored<Customer>>, EncodeError> {
    let change = Change::<Customer>::visible(at).set_entry("addresses", name.as_str(), address)?;
    let room =
        Condition::HasEntry("addresses", name.to_string()).or(Condition::FewerEntries("addresses", MAX_ADDRESSES));
    let condition = at_version(Condition::Exists.and(room), version);
    Ok(Single::new(&PUT_ADDRESS, Guarded::update(key(id)?, change, condition)))
}

/// Removes one address, and returns the customer. DynamoDB refuses the write if the customer or the
/// address does not exist, or if the customer is not at `version`.
///
/// # Errors
/// [`KeyError`].
pub fn remove_address(
    id: &CustomerId,
    name: &AddressName,
    version: Option<u64>,
    at: Instant,
) -> Result<Single<Stored<Customer>>, KeyError> {
    let change = Change::<Customer>::visible(at).remove_entry("addresses", name.as_str());
    let condition = at_version(Condition::HasEntry("addresses", name.to_string()), version);
    Ok(Single::new(&REMOVE_ADDRESS, Guarded::update(key(id)?, change, condition)))
}

/// Adds the version to a condition, if the client has named one.
fn at_version(condition: Condition, version: Option<u64>) -> Condition {
    match version {
        Some(version) => condition.and(Condition::version(version)),
        None => condition,
    }
}

/// Reads the claim of a verified email address, in any spelling.
///
/// # Errors
/// [`KeyError`] when the text is too long for a key.
pub fn by_email(email: &str) -> Result<Get<Stored<EmailClaim>>, KeyError> {
    Ok(Get::new(&BY_EMAIL, email_key(&fold(email))?))
}

/// Reads the claim of an email address that an earlier version stored with its invisible characters.
/// Returns [`None`] for an address without any.
///
/// # Errors
/// [`KeyError`].
pub fn by_earlier_email(email: &Email) -> Result<Option<Get<Stored<EmailClaim>>>, KeyError> {
    Ok(earlier_email(email)?.map(|claim| Get::new(&BY_EMAIL, claim)))
}

/// Lists the customers of a tier, oldest first.
///
/// # Errors
/// [`KeyError`].
pub fn by_tier(tier: Tier) -> Result<Query<Listed>, KeyError> {
    let shards = TIER_SHARDS.all().map(|shard| tier_partition(tier, shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&BY_TIER, shards, Range::All))
}

/// Reads the profiles of a page.
///
/// # Errors
/// [`KeyError`].
pub fn hydrate<'a>(ids: impl IntoIterator<Item = &'a CustomerId>) -> Result<BatchGet<Stored<Customer>>, KeyError> {
    Ok(BatchGet::new(&HYDRATE, ids.into_iter().map(key).collect::<Result<_, _>>()?))
}

/// Reads the profile and the newest orders, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn overview(id: &CustomerId) -> Result<Query<AnyEntity>, KeyError> {
    let range = Range::Between("ORDER#".into(), PROFILE.into());
    Ok(Query::new(&OVERVIEW, partition(id)?, range).descending().limit(OVERVIEW_ORDERS + 1))
}
