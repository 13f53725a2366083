//! Agents: the programs of other companies that buy for people. Staff register them.
//!
//! Every request of an agent has its API key. The key names the agent, and the table holds only a hash of
//! it. Each request reads the agent, so a new key or a removed agent takes effect at once. All agents
//! are in one partition, and its head counts them, so one Query lists them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::{Condition, value};
use crate::guest_cart::{hash, hexadecimal, secret};
use crate::id::{AgentId, Born};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Query, Range, Single, Transaction};
use crate::webhook_endpoint;

pub const MAX_AGENTS: u32 = 50;
/// The bounds and the default of the carts and checkouts that an agent begins in a day.
pub const MAX_CHECKOUTS_PER_DAY: u64 = 1_000_000;
pub const CHECKOUTS_PER_DAY: u64 = 10_000;

const AGENT: &str = "AGENT";

/// What an agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentScope {
    /// Search and read products.
    Catalog,
    /// Make carts and checkouts, and place orders.
    Checkout,
    /// Read the orders that it has placed.
    Orders,
}

impl AgentScope {
    pub const NAMES: &'static [&'static str] = &["catalog", "checkout", "orders"];
    const ALL: [Self; 3] = [Self::Catalog, Self::Checkout, Self::Orders];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Checkout => "checkout",
            Self::Orders => "orders",
        }
    }
}

impl fmt::Display for AgentScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be catalog, checkout or orders")]
pub struct UnknownScope;

impl FromStr for AgentScope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.name() == text).ok_or(UnknownScope)
    }
}

entity! {
    Agent = "Agent" {
        fixed {
            id: AgentId,
        }
        mutable by AgentChanges {
            name: String,
            /// The URL of the profile that the agent names in each request.
            profile_url: String,
            scopes: BTreeSet<AgentScope>,
            /// How many carts and checkouts the agent may begin in a day.
            checkouts_per_day: u64,
            key_hash: String,
            key_created_at: Instant,
        }
    }
}

entity! {
    /// The head of the agents.
    Agents = "Agents" {
        fixed {
            agents: u64,
        }
        mutable {}
    }
}

secret! {
    /// The secret with which an agent proves who it is: the agent's id, a dot, and 64 hexadecimal
    /// digits.
    AgentKey
}

impl AgentKey {
    #[must_use]
    pub fn new(agent: &AgentId, random: [u8; 32]) -> Self {
        Self::given(&format!("{agent}.{}", hexadecimal(&random)))
    }

    /// Returns the agent that the key names. Only [`Agent::opens`] proves it.
    #[must_use]
    pub fn agent(&self) -> Option<AgentId> {
        self.as_str().rsplit_once('.').and_then(|(agent, _)| agent.parse().ok())
    }

    /// Returns the hash that the table holds.
    #[must_use]
    pub fn hash(&self) -> String {
        hash(&["bodega key of an agent", self.as_str()])
    }
}

impl Agent {
    /// Returns whether this is the agent's present key.
    #[must_use]
    pub fn opens(&self, key: &AgentKey) -> bool {
        self.key_hash == key.hash()
    }
}

impl Entity for Agent {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }
}

impl Entity for Agents {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        head_key()
    }
}

fn partition() -> Result<PartitionKey, KeyError> {
    PartitionKey::new("AGENTS")
}

fn head_key() -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::new("AGENTS")? })
}

fn key(id: &AgentId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::of(AGENT, &[id])? })
}

patterns! {
    GET {
        id: "agents.get",
        purpose: "Read an agent, to check its key",
        request: GetItem,
        key: "PK = AGENTS, SK = AGENT#<id>",
        returns: "the agent",
        consistency: Consistency::Strong("a removed agent and an old key are refused at once"),
        callers: "any",
    }
    LIST {
        id: "agents.list",
        purpose: "List the agents",
        request: Query,
        key: "PK = AGENTS, SK under AGENT#",
        returns: "the agents, by id",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    SIGNERS {
        id: "agents.signers",
        purpose: "Find the agent of a profile whose key has signed a request",
        request: Query,
        key: "PK = AGENTS, SK under AGENT#",
        returns: "the agents, by id",
        consistency: Consistency::Strong("a removed agent is refused at once"),
        callers: "any",
    }
    CREATE {
        id: "agents.create",
        purpose: "Register an agent",
        request: TransactWriteItems,
        key: "PK = AGENTS, SK = AGENT#<id>; PK = AGENTS, SK = AGENTS",
        requires: "the agent does not exist; there are fewer than 50",
        callers: "staff",
    }
    CHANGE {
        id: "agents.change",
        purpose: "Change an agent",
        request: UpdateItem,
        key: "PK = AGENTS, SK = AGENT#<id>",
        requires: "version = the If-Match",
        callers: "staff",
    }
    RENEW {
        id: "agents.renew-key",
        purpose: "Give an agent a new key",
        request: UpdateItem,
        key: "PK = AGENTS, SK = AGENT#<id>",
        requires: "the agent exists",
        callers: "staff",
    }
    REMOVE {
        id: "agents.remove",
        purpose: "Remove an agent with its endpoint",
        request: TransactWriteItems,
        key: "PK = AGENTS, SK = AGENT#<id>; PK = AGENTS, SK = AGENTS; PK = WEBHOOKS, SK = ENDPOINT#<id>",
        requires: "the agent was not registered again since it was read",
        callers: "staff",
    }
}

/// An action of the transaction that registers or removes an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAction {
    /// The agent. The condition fails if it exists, or if it does not.
    Agent,
    /// The head. The condition fails if there are [`MAX_AGENTS`].
    Head,
    /// The endpoint, which is removed with its agent.
    Endpoint,
}

pub fn get(id: &AgentId) -> Result<Get<Stored<Agent>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Lists the agents, by id.
pub fn list() -> Result<Query<Stored<Agent>>, KeyError> {
    Ok(Query::new(&LIST, partition()?, Range::under(AGENT)).limit(MAX_AGENTS as usize))
}

/// Lists the agents, to find the one of a profile.
pub fn signers() -> Result<Query<Stored<Agent>>, KeyError> {
    Ok(Query::new(&SIGNERS, partition()?, Range::under(AGENT)).limit(MAX_AGENTS as usize))
}

pub fn create(agent: &Stored<Agent>) -> Result<Transaction<AgentAction>, EncodeError> {
    let at = agent.meta.created_at;
    let counted = Change::<Agents>::visible(at).or_create(&Born::counter(), at).add("agents", 1);
    let has_room = Condition::count_below("agents", MAX_AGENTS.into());
    Ok(Transaction::new(&CREATE)
        .action(AgentAction::Agent, Guarded::put(agent, Condition::NotExists)?)
        .action(AgentAction::Head, Guarded::update(head_key()?, counted, has_room)))
}

/// Replaces what staff can change of an agent that is at `version`, and returns the agent.
pub fn change(agent: &Agent, version: u64, at: Instant) -> Result<Single<Stored<Agent>>, EncodeError> {
    let change = Change::<Agent>::visible(at)
        .name(&agent.name)?
        .profile_url(&agent.profile_url)?
        .scopes(&agent.scopes)?
        .checkouts_per_day(&agent.checkouts_per_day)?;
    Ok(Single::new(&CHANGE, Guarded::update(key(&agent.id)?, change, Condition::version(version))))
}

/// Replaces the key of an agent, and returns the agent. The former key is refused from now on.
pub fn renew_key(id: &AgentId, new: &AgentKey, at: Instant) -> Result<Single<Stored<Agent>>, EncodeError> {
    let change = Change::<Agent>::visible(at).key_hash(&new.hash())?.key_created_at(&at)?;
    Ok(Single::new(&RENEW, Guarded::update(key(id)?, change, Condition::Exists)))
}

/// Removes an agent that was read.
pub fn remove(agent: &Stored<Agent>, at: Instant) -> Result<Transaction<AgentAction>, EncodeError> {
    let same = Condition::Is("born", value(&agent.meta.born)?);
    let counted = Change::<Agents>::visible(at).add("agents", -1);
    Ok(Transaction::new(&REMOVE)
        .action(AgentAction::Agent, Guarded::delete(key(&agent.id)?, same))
        .action(AgentAction::Head, Guarded::update(head_key()?, counted, Condition::Exists))
        .action(AgentAction::Endpoint, webhook_endpoint::remove_of_agent(agent)?))
}
