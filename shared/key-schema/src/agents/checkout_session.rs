//! Carts and checkouts of agents: what an agent wants to buy for somebody, and how far it has come.
//!
//! A session is one item with a time to live. A request replaces all that the agent can say. The
//! transaction that places the order writes the order's id into the session, on the condition that the
//! session is unchanged. So a session is completed once, whatever is repeated. From then on the order
//! tells the state of the session.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::{Condition, first_alive};
use crate::guest_cart::CartToken;
use crate::id::{AgentId, CheckoutId, MethodId, OrderId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::quota;
use crate::request::{Get, Guarded, Transaction};

/// The maximum number of lines. A session with the longest texts has about 20 KB.
pub const MAX_LINES: usize = 50;
pub const MAX_DESTINATIONS: usize = 5;
/// How long a session lives after its last change.
pub const LIFETIME_SECONDS: i64 = 6 * 60 * 60;
/// How long a session with an order lives, so that its agent can still read it.
pub const COMPLETED_LIFETIME_SECONDS: i64 = 30 * 24 * 60 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// Goods with an estimate of their price.
    Cart,
    Checkout,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLine {
    /// The agent's name of the line, or a generated one.
    pub id: String,
    pub product_id: ProductId,
    pub quantity: u64,
}

/// The buyer, in the agent's words. Every part may be missing until the order is placed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buyer {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub phone: Option<String>,
}

/// A place to which the goods could be sent, in the agent's words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDestination {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line1: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line2: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub city: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub postal_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub country: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub phone: Option<String>,
}

/// All that an agent says about a purchase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    pub lines: Vec<SessionLine>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub buyer: Option<Buyer>,
    /// The person who gets the goods, who is the buyer as far as the agent names none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub contact: Option<Buyer>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub destinations: Vec<SessionDestination>,
    /// The id of the chosen destination.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination: Option<String>,
    /// The chosen shipping method, or the cheapest one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub method: Option<MethodId>,
    /// The codes of promotions, also those that do not apply.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub codes: Vec<String>,
}

impl Wish {
    /// Returns the buyer, with the contact's parts where the buyer has none.
    #[must_use]
    pub fn buyer(&self) -> Option<Buyer> {
        let (Some(buyer), Some(contact)) = (&self.buyer, &self.contact) else {
            return self.buyer.clone().or_else(|| self.contact.clone());
        };
        let Buyer { email, first_name, last_name, phone } = buyer.clone();
        let named = if first_name.is_none() && last_name.is_none() { contact } else { buyer };
        Some(Buyer {
            email: email.or_else(|| contact.email.clone()),
            first_name: named.first_name.clone(),
            last_name: named.last_name.clone(),
            phone: phone.or_else(|| contact.phone.clone()),
        })
    }
}

entity! {
    CheckoutSession = "CheckoutSession" {
        fixed {
            id: CheckoutId,
            agent: AgentId,
            kind: SessionKind,
            /// The secret from which the token of the order follows, as from that of a guest's cart. Only the
            /// session has it.
            secret: String,
            /// When the session expires. It is also the time to live. Each change sets it anew.
            expires_at: Instant,
        }
        mutable by CheckoutSessionChanges {
            wish: Wish,
            /// The price that the agent has seen, as JSON. Absent while something is missing.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            quote: Option<String>,
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            cancelled: bool,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            order_id: Option<OrderId>,
            /// How many further instruments the agent has tried for its order.
            #[serde(skip_serializing_if = "is_zero", default)]
            tries: u64,
            /// The checkout that a cart has become.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            checkout: Option<CheckoutId>,
        }
    }
}

/// Where an order of an agent comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub agent: AgentId,
    pub checkout: CheckoutId,
    /// The address of the API as the agent knows it, without a slash at its end.
    pub api: String,
}

impl CheckoutSession {
    #[must_use]
    pub fn new(
        id: CheckoutId,
        agent: AgentId,
        kind: SessionKind,
        wish: Wish,
        secret: &CartToken,
        now: Instant,
    ) -> Self {
        let (secret, expires_at) = (secret.as_str().to_owned(), now.plus_seconds(LIFETIME_SECONDS));
        Self {
            id,
            agent,
            kind,
            secret,
            expires_at,
            wish,
            quote: None,
            cancelled: false,
            order_id: None,
            tries: 0,
            checkout: None,
        }
    }

    /// Returns the secret from which the token of the order follows.
    #[must_use]
    pub fn cart_token(&self) -> CartToken {
        CartToken::given(&self.secret)
    }
}

impl Entity for CheckoutSession {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

fn key(id: &CheckoutId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("CHECKOUT", &[id])?, sk: SortKey::new("CHECKOUT")? })
}

patterns! {
    GET {
        id: "checkouts.get",
        purpose: "Read a cart or checkout of an agent",
        request: GetItem,
        key: "PK = CHECKOUT#<id>, SK = CHECKOUT",
        returns: "the session",
        consistency: Consistency::Strong("an agent reads the session right after changing it"),
        callers: "any",
    }
    CREATE {
        id: "checkouts.create",
        purpose: "Begin a cart or checkout of an agent",
        request: TransactWriteItems,
        key: "PK = CHECKOUT#<id>, SK = CHECKOUT; PK = QUOTA#<hash of the agent>, SK = DAY#<day>; PK = \
            CHECKOUT#<cart>, SK = CHECKOUT, if a cart becomes a checkout; PK = IDEMPOTENCY#<caller>#<key>, SK = \
            IDEMPOTENCY",
        requires: "the session does not exist; the agent has begun fewer than it may on this day; the cart is \
            unchanged; the key is free",
        callers: "any",
    }
    CHANGE {
        id: "checkouts.change",
        purpose: "Change or cancel a cart or checkout of an agent, or try another card",
        request: TransactWriteItems,
        key: "PK = CHECKOUT#<id>, SK = CHECKOUT; PK = IDEMPOTENCY#<caller>#<key>, SK = IDEMPOTENCY",
        requires: "the session is unchanged; the key is free",
        callers: "any",
    }
}

/// An action of a session's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAction {
    Session,
    /// The count of the agent's sessions on this day. The condition fails at the agent's limit.
    Quota,
    /// The cart that becomes a checkout. The condition fails if it has changed.
    Cart,
    Idempotency,
}

pub fn get(id: &CheckoutId) -> Result<Get<Stored<CheckoutSession>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Begins a session. `per_day` is the agent's limit. `cart` is the cart that becomes a checkout. `claim`
/// is the claim of the idempotency key.
pub fn create(
    session: &Stored<CheckoutSession>,
    per_day: u64,
    cart: Option<&Stored<CheckoutSession>>,
    claim: Option<Guarded>,
) -> Result<Transaction<SessionAction>, EncodeError> {
    let at = session.meta.created_at;
    let becomes = |cart: &Stored<CheckoutSession>| {
        let change = Change::<CheckoutSession>::visible(at).checkout(&Some(session.id.clone()))?;
        Ok::<_, EncodeError>(Guarded::update(key(&cart.id)?, change, open(cart, at)?))
    };
    Ok(Transaction::new(&CREATE)
        .action(SessionAction::Session, Guarded::put(session, Condition::NotExists)?)
        .action(SessionAction::Quota, quota::count_checkout(&session.agent, per_day, at)?)
        .optional(SessionAction::Cart, cart.map(becomes).transpose()?)
        .optional(SessionAction::Idempotency, claim))
}

/// Replaces the wish and the quote of a session that was read.
pub fn replace(
    session: &Stored<CheckoutSession>,
    wish: &Wish,
    quote: &Option<String>,
    claim: Option<Guarded>,
    at: Instant,
) -> Result<Transaction<SessionAction>, EncodeError> {
    let change = alive_until(Change::visible(at).wish(wish)?.quote(quote)?, at.plus_seconds(LIFETIME_SECONDS))?;
    Ok(Transaction::new(&CHANGE)
        .action(SessionAction::Session, Guarded::update(key(&session.id)?, change, open(session, at)?))
        .optional(SessionAction::Idempotency, claim))
}

pub fn cancel(
    session: &Stored<CheckoutSession>,
    claim: Option<Guarded>,
    at: Instant,
) -> Result<Transaction<SessionAction>, EncodeError> {
    let change = Change::<CheckoutSession>::visible(at).cancelled(&true)?;
    Ok(Transaction::new(&CHANGE)
        .action(SessionAction::Session, Guarded::update(key(&session.id)?, change, open(session, at)?))
        .optional(SessionAction::Idempotency, claim))
}

/// Gives a session its order, as an action of the transaction that places the order. DynamoDB refuses
/// the action if the session has changed since it was read.
pub fn complete(session: &Stored<CheckoutSession>, order: &OrderId, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::visible(at).order_id(&Some(order.clone()))?;
    let change = alive_until(change, at.plus_seconds(COMPLETED_LIFETIME_SECONDS))?;
    Ok(Guarded::update(key(&session.id)?, change, open(session, at)?))
}

/// Counts a further instrument for the order of a session that was read.
pub fn try_again(
    session: &Stored<CheckoutSession>,
    claim: Option<Guarded>,
    at: Instant,
) -> Result<Transaction<SessionAction>, EncodeError> {
    let change = Change::visible(at).tries(&session.tries.saturating_add(1))?;
    Ok(Transaction::new(&CHANGE)
        .action(SessionAction::Session, Guarded::update(key(&session.id)?, change, open(session, at)?))
        .optional(SessionAction::Idempotency, claim))
}

/// Takes the order from a session, as an action of the transaction that cancels the unpaid order.
pub fn reopen(session: &Stored<CheckoutSession>, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::visible(at).order_id(&None)?.quote(&None)?;
    let change = alive_until(change, at.plus_seconds(LIFETIME_SECONDS))?;
    Ok(Guarded::update(key(&session.id)?, change, Condition::unchanged(&session.meta)?))
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn alive_until(change: Change<CheckoutSession>, at: Instant) -> Result<Change<CheckoutSession>, EncodeError> {
    Ok(change.set("expires_at", at)?.expire_at(at))
}

/// Returns the condition that a session is unchanged since it was read, and has not expired.
fn open(session: &Stored<CheckoutSession>, now: Instant) -> Result<Condition, EncodeError> {
    Ok(Condition::unchanged(&session.meta)?.and(Condition::AtLeast("expires_at", first_alive(now))))
}
