//! Endpoints: addresses of other systems to which the shop sends its events. Staff register them.
//!
//! An agent also has an endpoint, which gets the agent's orders, and no events. Over UCP, the shop finds it
//! in the agent's profile. Over ACP, staff register it, and it has a secret.
//!
//! All endpoints are in one partition, and its head counts them, so one Query lists them.

use std::collections::BTreeSet;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, MAX_AGENTS};
use crate::change::Change;
use crate::expression::{Condition, value};
use crate::id::{AgentId, Born, EndpointId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Query, Range, Single, Transaction};
use crate::webhook_secret::SecretSeed;

pub const MAX_ENDPOINTS: u32 = 20;
/// How long a replaced secret still signs, so that the receiver can configure the new one.
pub const OVERLAP_SECONDS: i64 = 24 * 60 * 60;
/// The maximum number of valid secrets.
pub const MAX_SECRETS: usize = 3;
/// An endpoint that has failed for this long without a success is disabled.
pub const FAILING_SECONDS: i64 = 3 * 24 * 60 * 60;

/// What an endpoint can want: a kind of events, all kinds of a group, or all kinds.
pub const KINDS: &[&str] = &[
    "*",
    "customer.*",
    "customer.tier_changed",
    "order.*",
    "order.placed",
    "order.status_changed",
    "payment.*",
    "payment.reversed",
    "review.*",
    "review.posted",
    "stock.*",
    "stock.low",
];

const ENDPOINT: &str = "ENDPOINT";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    Staff,
    /// The endpoint answered 410 Gone.
    Gone,
    /// The endpoint has failed for [`FAILING_SECONDS`].
    Failing,
}

impl DisabledReason {
    /// The names that clients see.
    pub const NAMES: &'static [&'static str] = &["staff", "gone", "failing"];
}

/// Why and since when an endpoint gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disabled {
    pub reason: DisabledReason,
    pub at: Instant,
}

entity! {
    WebhookEndpoint = "WebhookEndpoint" {
        fixed {
            id: EndpointId,
            /// The agent that gets its orders here.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            agent: Option<AgentId>,
            /// The seeds of the secrets, the newest one first. An endpoint from a profile has none.
            secrets: Vec<SecretSeed>,
            /// When an attempt failed first after the last success.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            failing_since: Option<Instant>,
        }
        mutable by WebhookEndpointChanges {
            url: String,
            /// Some of [`KINDS`]. An agent's endpoint has none.
            kinds: BTreeSet<String>,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            description: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            disabled: Option<Disabled>,
        }
    }
}

entity! {
    /// The head of the endpoints.
    WebhookEndpoints = "WebhookEndpoints" {
        fixed {
            endpoints: u64,
        }
        mutable {}
    }
}

impl WebhookEndpoint {
    /// Returns whether the endpoint gets events of a kind, such as `order.placed`.
    #[must_use]
    pub fn wants(&self, kind: &str) -> bool {
        let fits = |wanted: &String| match wanted.strip_suffix('*') {
            Some(beginning) => kind.starts_with(beginning),
            None => wanted == kind,
        };
        self.disabled.is_none() && self.kinds.iter().any(fits)
    }

    /// Returns whether the address is that of an agent's profile.
    #[must_use]
    pub const fn is_from_profile(&self) -> bool {
        self.agent.is_some() && self.secrets.is_empty()
    }

    /// Returns the secrets' seeds after a new one has replaced the former. A former secret remains valid
    /// for a while, also if its successor was replaced, whose response may have been lost.
    #[must_use]
    pub fn rotated(&self, new: SecretSeed) -> Vec<SecretSeed> {
        let now = new.created_at;
        let valid = self.secrets.iter().filter(|former| former.is_valid(now)).cloned();
        let end = |former: SecretSeed| {
            let ends_at = former.ends_at.or(Some(now.plus_seconds(OVERLAP_SECONDS)));
            SecretSeed { ends_at, ..former }
        };
        [new].into_iter().chain(valid.map(end)).take(MAX_SECRETS).collect()
    }
}

impl Entity for WebhookEndpoint {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }
}

impl Entity for WebhookEndpoints {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        head_key()
    }
}

fn partition() -> Result<PartitionKey, KeyError> {
    PartitionKey::new("WEBHOOKS")
}

fn head_key() -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::new("WEBHOOKS")? })
}

fn key(id: &EndpointId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::of(ENDPOINT, &[id])? })
}

patterns! {
    GET {
        id: "webhooks.endpoint",
        purpose: "Read an endpoint",
        request: GetItem,
        key: "PK = WEBHOOKS, SK = ENDPOINT#<id>",
        returns: "the endpoint",
        consistency: Consistency::Strong("staff read an endpoint right after changing it"),
        callers: "staff",
    }
    LIST {
        id: "webhooks.endpoints",
        purpose: "List the endpoints, for staff or to find those that get an event",
        request: Query,
        key: "PK = WEBHOOKS, SK under ENDPOINT#",
        returns: "the endpoints, by id",
        consistency: Consistency::Strong("an endpoint gets no event after it was disabled"),
        callers: "staff",
    }
    CREATE {
        id: "webhooks.create",
        purpose: "Register an endpoint",
        request: TransactWriteItems,
        key: "PK = WEBHOOKS, SK = ENDPOINT#<id>; PK = WEBHOOKS, SK = WEBHOOKS; PK = \
            IDEMPOTENCY#<caller>#<key>, SK = IDEMPOTENCY",
        requires: "the endpoint does not exist; there are fewer than 20; the key is free",
        callers: "staff",
    }
    ADOPT {
        id: "webhooks.adopt",
        purpose: "Create the endpoint of an agent, whose profile names it",
        request: TransactWriteItems,
        key: "PK = WEBHOOKS, SK = ENDPOINT#<id>; PK = AGENTS, SK = AGENT#<id>",
        requires: "the endpoint does not exist; the agent does",
        callers: "system",
    }
    CHANGE {
        id: "webhooks.change",
        purpose: "Change an endpoint, or give it a new secret",
        request: UpdateItem,
        key: "PK = WEBHOOKS, SK = ENDPOINT#<id>",
        requires: "version = the If-Match, or the endpoint is unchanged",
        callers: "staff",
    }
    REMOVE {
        id: "webhooks.remove",
        purpose: "Remove an endpoint",
        request: TransactWriteItems,
        key: "PK = WEBHOOKS, SK = ENDPOINT#<id>; PK = WEBHOOKS, SK = WEBHOOKS",
        requires: "the endpoint exists",
        callers: "staff",
    }
    HEALTH {
        id: "webhooks.health",
        purpose: "Note that an endpoint has begun to fail, works again, or is disabled",
        request: UpdateItem,
        key: "PK = WEBHOOKS, SK = ENDPOINT#<id>",
        requires: "the endpoint exists; for a first failure, no earlier one is noted; to disable, it is unchanged",
        callers: "system",
    }
}

/// An action of the transaction that registers or removes an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointAction {
    /// The endpoint. The condition fails if it exists, or if it does not.
    Endpoint,
    /// The head. The condition fails if there are [`MAX_ENDPOINTS`].
    Head,
    /// The agent whose endpoint it is. The condition fails if the agent was removed.
    Agent,
    Idempotency,
}

pub fn get(id: &EndpointId) -> Result<Get<Stored<WebhookEndpoint>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Lists the endpoints, by id.
pub fn list() -> Result<Query<Stored<WebhookEndpoint>>, KeyError> {
    Ok(Query::new(&LIST, partition()?, Range::under(ENDPOINT)).limit((MAX_ENDPOINTS + MAX_AGENTS) as usize))
}

/// Returns the id of the endpoint from an agent's profile. An agent that is registered again under its id has another
/// endpoint, with other deliveries.
#[must_use]
pub fn id_of_agent(agent: &Stored<Agent>) -> EndpointId {
    let name = format!("endpoint of {} {}", agent.id, agent.meta.born);
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let mut bytes = [0; 10];
    bytes.iter_mut().zip(digest.as_ref()).for_each(|(byte, digit)| *byte = *digit);
    EndpointId::generate(Instant::EPOCH, bytes)
}

/// Returns an action that removes the endpoint from an agent's profile, if it has one.
pub fn remove_of_agent(agent: &Stored<Agent>) -> Result<Guarded, EncodeError> {
    let own = Condition::NotExists.or(Condition::Is("agent", value(&agent.id)?));
    Ok(Guarded::delete(key(&id_of_agent(agent))?, own))
}

/// Creates the endpoint of an agent that was read.
pub fn adopt(
    endpoint: &Stored<WebhookEndpoint>,
    agent: &Stored<Agent>,
) -> Result<Transaction<EndpointAction>, EncodeError> {
    let same = Condition::Is("born", value(&agent.meta.born)?);
    Ok(Transaction::new(&ADOPT)
        .action(EndpointAction::Endpoint, Guarded::put(endpoint, Condition::NotExists)?)
        .action(EndpointAction::Agent, Guarded::check(agent.data.key()?, same)))
}

/// Registers an endpoint. `claim` is the claim of the idempotency key.
pub fn create(
    endpoint: &Stored<WebhookEndpoint>,
    claim: Option<Guarded>,
) -> Result<Transaction<EndpointAction>, EncodeError> {
    let at = endpoint.meta.created_at;
    let counted = Change::<WebhookEndpoints>::visible(at).or_create(&Born::counter(), at).add("endpoints", 1);
    let has_room = Condition::count_below("endpoints", MAX_ENDPOINTS.into());
    Ok(Transaction::new(&CREATE)
        .action(EndpointAction::Endpoint, Guarded::put(endpoint, Condition::NotExists)?)
        .action(EndpointAction::Head, Guarded::update(head_key()?, counted, has_room))
        .optional(EndpointAction::Idempotency, claim))
}

/// Replaces what staff can change of an endpoint that is at `version`, and returns the endpoint. An
/// endpoint with another address, or that staff enable, is `fresh`: it begins without failures.
pub fn change(
    endpoint: &WebhookEndpoint,
    version: u64,
    fresh: bool,
    at: Instant,
) -> Result<Single<Stored<WebhookEndpoint>>, EncodeError> {
    let change = Change::<WebhookEndpoint>::visible(at)
        .url(&endpoint.url)?
        .kinds(&endpoint.kinds)?
        .description(&endpoint.description)?
        .disabled(&endpoint.disabled)?;
    let change = if fresh { change.set("failing_since", None::<Instant>)? } else { change };
    Ok(Single::new(&CHANGE, Guarded::update(key(&endpoint.id)?, change, Condition::version(version))))
}

/// Gives an endpoint that was read a new secret, and returns the endpoint.
pub fn rotate(
    endpoint: &Stored<WebhookEndpoint>,
    new: SecretSeed,
) -> Result<Single<Stored<WebhookEndpoint>>, EncodeError> {
    let change = Change::<WebhookEndpoint>::visible(new.created_at).set("secrets", endpoint.rotated(new))?;
    let unchanged = Condition::unchanged(&endpoint.meta)?;
    Ok(Single::new(&CHANGE, Guarded::update(key(&endpoint.id)?, change, unchanged)))
}

/// Removes an endpoint. Its deliveries stay until they expire.
pub fn remove(id: &EndpointId, at: Instant) -> Result<Transaction<EndpointAction>, EncodeError> {
    let counted = Change::<WebhookEndpoints>::visible(at).add("endpoints", -1);
    Ok(Transaction::new(&REMOVE)
        .action(EndpointAction::Endpoint, Guarded::delete(key(id)?, Condition::Exists))
        .action(EndpointAction::Head, Guarded::update(head_key()?, counted, Condition::Exists)))
}

/// Notes the first failure of an endpoint after a success. The endpoint's version stays, so that an
/// If-Match of staff still fits.
pub fn fails(id: &EndpointId, at: Instant) -> Result<Single<()>, EncodeError> {
    let change = Change::<WebhookEndpoint>::copied().set("failing_since", at)?;
    let first = Condition::Exists.and(Condition::Lacks("failing_since"));
    Ok(Single::new(&HEALTH, Guarded::update(key(id)?, change, first)))
}

/// Notes that an endpoint works again after a failure at `since`.
pub fn works(id: &EndpointId, since: Instant) -> Result<Single<()>, EncodeError> {
    let change = Change::<WebhookEndpoint>::copied().set("failing_since", None::<Instant>)?;
    Ok(Single::new(&HEALTH, Guarded::update(key(id)?, change, Condition::Is("failing_since", value(since)?))))
}

/// Disables an endpoint, unless staff have changed it since it was read at `version`. A failing endpoint
/// is disabled only if it still fails since `failing_since`.
pub fn disable(
    id: &EndpointId,
    version: u64,
    disabled: Disabled,
    failing_since: Option<Instant>,
) -> Result<Single<()>, EncodeError> {
    let change = Change::<WebhookEndpoint>::visible(disabled.at).disabled(&Some(disabled))?;
    let open = Condition::version(version).and(Condition::Lacks("disabled"));
    let still = match failing_since {
        Some(since) => open.and(Condition::Is("failing_since", value(since)?)),
        None => open,
    };
    Ok(Single::new(&HEALTH, Guarded::update(key(id)?, change, still)))
}
