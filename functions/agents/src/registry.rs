//! The agents that staff have registered.

use std::collections::BTreeSet;

use aws::Target;
use http_api::contract::rules::{NO_CURSOR, Text, any, exact_text, integer, list_of, one_of, visible_text};
use http_api::contract::{Body, Schema, route};
use http_api::url::location as path_of;
use http_api::{Code, Precondition, Problem, Request, Response, Services};
use key_schema::agent::{
    self, Agent, AgentAction, AgentKey, AgentScope, CHECKOUTS_PER_DAY, MAX_AGENTS, MAX_CHECKOUTS_PER_DAY,
};
use key_schema::id::AgentId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde::Serialize;

use crate::App;

const NAME: Text = visible_text(1..=200);
const PROFILE_URL: Text = exact_text(1..=500);
const API_KEY: Text = exact_text(1..=200);

#[derive(Body)]
#[body(name = "AgentChange")]
struct NewAgent {
    /// 1 to 200 bytes.
    #[field(rule = NAME, example = "Acme Assistant")]
    name: String,
    /// The https URL of the agent's UCP profile, 1 to 500 bytes. Its host must have a public address. The
    /// agent names it in the header `UCP-Agent` of each request.
    #[field(rule = PROFILE_URL, example = "https://agent.example/profile")]
    profile_url: String,
    /// What the agent may do.
    #[field(rule = list_of(one_of(AgentScope::NAMES), 1..=3), example = ["catalog", "checkout", "orders"])]
    scopes: Vec<AgentScope>,
    /// How many carts and checkouts the agent may begin in a day.
    #[field(rule = integer(1..=MAX_CHECKOUTS_PER_DAY), default = CHECKOUTS_PER_DAY, example = 10000)]
    checkouts_per_day: u64,
}

/// List the agents
///
/// Returns all agents, by id. There are at most 50, so there are no pages.
#[route(GET "/v1/agents", id = "listAgents", who = staff, task = "agents",
    answers(200 = AgentList<'_> "All agents" [LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let page = services.table.query_readable(&agent::list()?).await?;
    let left_out = page.left_out();
    let items = page.items.iter().map(AgentView::from).collect();
    Ok(Response::ok(&AgentList { items, next_cursor: () }).leaving_out(left_out))
}

/// Read an agent
#[route(GET "/v1/agents/{id}", id = "readAgent", who = staff, task = "agents", path(id: AgentId),
    answers(200 = AgentView<'_> "The agent" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let found = services.table.get(&agent::get(&request.path("id")?)?).await?.ok_or_else(no_such_agent)?;
    Ok(Response::ok(&AgentView::from(&found)).etag(found.meta.version))
}

/// Register or change an agent
///
/// `If-None-Match: *` registers the agent, `If-Match` replaces it. Only the response to the registration
/// has the `api_key`, which the agent sends in the header `X-API-Key`. The table holds only a hash of it.
/// A shop can have at most 50 agents.
#[route(PUT "/v1/agents/{id}", id = "putAgent", who = staff, task = "agents", path(id: AgentId),
    parameters(IfMatchOrNone, IfNoneMatch), body = NewAgent,
    answers(
        200 = AgentView<'_> "The agent" [ETag],
        201 = AgentWithKey<'_> "The new agent with its key" [Location, ETag],
    ),
    refuses(already_exists = "with Location", too_many_agents))]
pub async fn put(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.shop.services;
    request.staff()?;
    let id: AgentId = request.path("id")?;
    let precondition = request.precondition()?;
    let NewAgent { name, profile_url, scopes, checkouts_per_day } = request.body()?;
    if let Err(bad) = Target::new(&profile_url, app.profiles.reach()) {
        return Err(Problem::new(Code::InvalidBody, "The URL is not usable.").error("/profile_url", bad.to_string()));
    }
    let (key, at) = (AgentKey::new(&id, services.random()?), Instant::now());
    let scopes: BTreeSet<AgentScope> = scopes.into_iter().collect();
    let (key_hash, key_created_at) = (key.hash(), at);
    let agent = Agent { id, name, profile_url, scopes, checkouts_per_day, key_hash, key_created_at };
    let path = path_of(&["agents", agent.id.as_str()]);
    match precondition {
        Precondition::Version(version) => match services.table.update(&agent::change(&agent, version, at)?).await? {
            Ok(agent) => Ok(Response::ok(&AgentView::from(&agent)).etag(agent.meta.version)),
            Err(refusal) if refusal.item.is_some() => Err(Problem::version_mismatch()),
            Err(_) => Err(no_such_agent()),
        },
        Precondition::Absent => {
            let agent = Stored::new(agent, services.born(at)?, at);
            match services.table.transact(&agent::create(&agent)?).await? {
                Ok(()) => Ok(Response::created(path, &AgentWithKey::new(&agent, &key)).etag(agent.meta.version)),
                Err(refusals) if refusals.names(AgentAction::Agent) => {
                    Err(Problem::new(Code::AlreadyExists, "An agent with this id already exists.").location(path))
                }
                Err(_) => {
                    let detail = format!("There can be at most {MAX_AGENTS} agents.");
                    Err(Problem::new(Code::TooManyAgents, detail))
                }
            }
        }
    }
}

/// Give an agent a new key
///
/// Returns the agent with its new `api_key`. The former key is refused from now on. The request has no
/// body. Each request makes another key.
#[route(POST "/v1/agents/{id}/key", id = "renewAgentKey", who = staff, task = "agents", path(id: AgentId),
    answers(200 = AgentWithKey<'_> "The agent with its new key" [ETag]),
    refuses(not_found, malformed_json, body_too_large, unsupported_content_encoding, invalid_body))]
pub async fn renew_key(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: AgentId = request.path("id")?;
    request.refuse_body()?;
    let key = AgentKey::new(&id, services.random()?);
    let renewed = services.table.update(&agent::renew_key(&id, &key, Instant::now())?).await?;
    let agent = renewed.map_err(|_| no_such_agent())?;
    Ok(Response::ok(&AgentWithKey::new(&agent, &key)).etag(agent.meta.version))
}

/// Remove an agent
///
/// The agent's key is refused from now on. Its orders stay, and it hears of them no more. If the agent is
/// missing, the request also succeeds.
#[route(DELETE "/v1/agents/{id}", id = "removeAgent", who = staff, task = "agents", path(id: AgentId),
    answers(204 = () "Done"))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: AgentId = request.path("id")?;
    let Some(agent) = services.table.get(&agent::get(&id)?).await? else { return Ok(Response::no_content()) };
    match services.table.transact(&agent::remove(&agent, Instant::now())?).await? {
        Err(refusals) if !refusals.names(AgentAction::Agent) => Err(Problem::unexpected(&refusals)),
        _ => Ok(Response::no_content()),
    }
}

fn no_such_agent() -> Problem {
    Problem::not_found("agent")
}

#[derive(Serialize, Schema)]
#[schema(name = "Agent")]
struct AgentView<'a> {
    #[field(example = "acme")]
    id: &'a AgentId,
    #[field(rule = NAME, example = "Acme Assistant")]
    name: &'a str,
    #[field(rule = PROFILE_URL, example = "https://agent.example/profile")]
    profile_url: &'a str,
    #[field(rule = list_of(one_of(AgentScope::NAMES), 1..=3), example = ["catalog", "checkout", "orders"])]
    scopes: Vec<AgentScope>,
    #[field(rule = integer(1..=MAX_CHECKOUTS_PER_DAY), example = 10000)]
    checkouts_per_day: u64,
    /// When the agent got its present key.
    key_created_at: Instant,
    #[field(rule = http_api::contract::rules::VERSION, example = 1)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<Agent>> for AgentView<'a> {
    fn from(Stored { meta, data }: &'a Stored<Agent>) -> Self {
        let Agent { id, name, profile_url, scopes, checkouts_per_day, key_created_at, .. } = data;
        Self {
            id,
            name,
            profile_url,
            scopes: scopes.iter().copied().collect(),
            checkouts_per_day: *checkouts_per_day,
            key_created_at: *key_created_at,
            version: meta.version,
            created_at: meta.created_at,
            updated_at: meta.updated_at,
        }
    }
}

#[derive(Serialize, Schema)]
struct AgentWithKey<'a> {
    #[serde(flatten)]
    agent: AgentView<'a>,
    /// The secret of the agent. No other response shows it.
    #[field(rule = API_KEY, example = "acme.9d0c4c1b6c2e4f0fa0a1b5f6c7d8e9f00112233445566778899aabbccddeeff0")]
    api_key: &'a str,
}

impl<'a> AgentWithKey<'a> {
    fn new(agent: &'a Stored<Agent>, key: &'a AgentKey) -> Self {
        Self { agent: AgentView::from(agent), api_key: key.as_str() }
    }
}

#[derive(Serialize, Schema)]
struct AgentList<'a> {
    #[field(rule = list_of(any::<AgentView<'_>>(), 0..=MAX_AGENTS as usize))]
    items: Vec<AgentView<'a>>,
    #[field(rule = NO_CURSOR, example = null)]
    next_cursor: (),
}
