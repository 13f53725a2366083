//! Endpoints: addresses of other systems to which the shop sends its events, with the log of deliveries.

use std::collections::BTreeSet;

use http_api::contract::rules::{NO_CURSOR, Text, VERSION, any, exact_text, integer, list_of, one_of, visible_text};
use http_api::contract::{Body, Page, Schema, route};
use http_api::url::location as path_of;
use http_api::{Code, List, Once, Problem, Request, Response, Services};
use key_schema::agent::{self, MAX_AGENTS};
use key_schema::id::{AgentId, DeliveryId, EndpointId};
use key_schema::idempotency::{self, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::webhook_delivery::{
    self, Attempt, DeliveryState, MAX_ATTEMPTS, MAX_BODY_BYTES, MAX_TRIES, WebhookDelivery,
};
use key_schema::webhook_endpoint::{
    self, Disabled, DisabledReason, EndpointAction, KINDS, MAX_ENDPOINTS, WebhookEndpoint,
};
use key_schema::webhook_secret::{SecretSeed, WebhookKeys};
use serde::Serialize;

const URL: Text = exact_text(1..=500);
const DESCRIPTION: Text = visible_text(1..=200);
const SECRET: Text = exact_text(1..=200);

#[derive(Body)]
#[body(name = "WebhookEndpointChange")]
struct NewEndpoint {
    /// An https URL without user name and fragment, 1 to 500 bytes. Its host must have a public
    /// address.
    #[field(rule = URL, example = "https://erp.example/webhooks/bodega")]
    url: String,
    /// The kinds of events that the endpoint gets. `order.*` are all kinds of the group, and `*` are all
    /// kinds. Only the endpoint of an agent has none.
    #[field(rule = list_of(one_of(KINDS), 0..=KINDS.len()), example = ["order.*", "stock.low"])]
    kinds: Vec<String>,
    /// 1 to 200 bytes.
    #[field(rule = DESCRIPTION, example = "The warehouse")]
    description: Option<String>,
    /// An agent that gets its orders here, over the Agentic Commerce Protocol. The endpoint has no `kinds`
    /// then. A change cannot name another agent.
    #[field(example = null)]
    agent: Option<AgentId>,
    /// Whether the endpoint gets events.
    #[field(default = true, example = true)]
    enabled: bool,
}

/// Register an endpoint for webhooks
///
/// From now on the endpoint gets the shop's events of these kinds, as POST requests in the form of
/// [Standard Webhooks](https://www.standardwebhooks.com). The `secret` of the response signs them. Only
/// this response shows it. A shop can have at most 20 endpoints.
#[route(POST "/v1/webhooks/endpoints", id = "createWebhookEndpoint", who = staff, task = "webhooks",
    parameters(OptionalIdempotencyKey), body = NewEndpoint,
    answers(201 = EndpointWithSecret<'_> "The new endpoint with its secret" [Location, ETag, IdempotencyReplayed]),
    refuses(too_many_endpoints))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let webhooks = services.webhooks()?;
    let once = Once::optional(request)?;
    let NewEndpoint { url, kinds, description, agent, enabled } = request.body()?;
    webhooks.check(&url)?;
    check_kinds(&kinds, agent.as_ref())?;
    // The time comes first, so an agent that is registered again meanwhile does not hear here.
    let (keys, at) = (webhooks.keys.get().await?, Instant::now());
    if let Some(agent) = &agent
        && services.table.get(&agent::get(agent)?).await?.is_none()
    {
        let detail = "There is no such agent.";
        return Err(Problem::new(Code::InvalidBody, detail).error("/agent", "must be registered"));
    }
    let endpoint = WebhookEndpoint {
        id: EndpointId::generate(at, services.random()?),
        agent,
        secrets: vec![seed(services, keys, at)?],
        failing_since: None,
        url,
        kinds: kinds.into_iter().collect(),
        description,
        disabled: disabled(enabled, at),
    };
    let endpoint = Stored::new(endpoint, services.born(at)?, at);
    let claim = |once: &Once| once.claim(StoredResponse::Endpoint(endpoint.id.clone()), services.born(at)?, at);
    let claim = once.as_ref().map(claim).transpose()?;
    let Err(refusals) = services.table.transact(&webhook_endpoint::create(&endpoint, claim)?).await? else {
        return created(keys, &endpoint);
    };
    if let Some(once) = &once
        && let Some(first) = replay(services, keys, once).await?
    {
        return Ok(first);
    }
    Err(if refusals.names(EndpointAction::Idempotency) {
        Once::in_progress()
    } else {
        let detail = format!("There can be at most {MAX_ENDPOINTS} endpoints.");
        Problem::new(Code::TooManyEndpoints, detail)
    })
}

/// List the endpoints for webhooks
///
/// Returns all endpoints, by id: at most 20, and one for each agent. So there are no pages.
#[route(GET "/v1/webhooks/endpoints", id = "listWebhookEndpoints", who = staff, task = "webhooks",
    answers(200 = EndpointList<'_> "All endpoints" [LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let page = services.table.query_readable(&webhook_endpoint::list()?).await?;
    let left_out = page.left_out();
    let items = page.items.iter().map(EndpointView::from).collect();
    Ok(Response::ok(&EndpointList { items, next_cursor: () }).leaving_out(left_out))
}

/// Read an endpoint for webhooks
#[route(GET "/v1/webhooks/endpoints/{id}", id = "readWebhookEndpoint", who = staff, task = "webhooks",
    path(id: EndpointId), answers(200 = EndpointView<'_> "The endpoint" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let found = find(services, &request.path("id")?).await?;
    // The version does not count failures.
    Ok(Response::ok(&EndpointView::from(&found)).etag_of_parts(found.meta.version))
}

/// Change an endpoint for webhooks
///
/// Replaces what staff set. If an address comes from an agent's profile, staff can only disable and enable
/// the endpoint, and describe it. `enabled: true` also enables an endpoint that was disabled because it
/// failed. Within a minute, a disabled endpoint gets no more events, and none are kept for it. Deliveries that were
/// due go on when it is enabled again, if they are still in the log.
#[route(PUT "/v1/webhooks/endpoints/{id}", id = "changeWebhookEndpoint", who = staff, task = "webhooks",
    path(id: EndpointId), parameters(IfMatch), body = NewEndpoint,
    answers(200 = EndpointView<'_> "The endpoint" [ETag]), refuses(not_found))]
pub async fn change(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: EndpointId = request.path("id")?;
    let webhooks = services.webhooks()?;
    let version = request.if_match()?;
    let NewEndpoint { url, kinds, description, agent, enabled } = request.body()?;
    webhooks.check(&url)?;
    let at = Instant::now();
    let Stored { data, .. } = find(services, &id).await?;
    if agent.is_some() && agent != data.agent {
        let detail = "An endpoint stays that of its agent.";
        return Err(Problem::new(Code::InvalidBody, detail).error("/agent", "must stay as it is"));
    }
    if data.is_from_profile() && url != data.url {
        let detail = "The address of this agent comes from its profile.";
        return Err(Problem::new(Code::InvalidBody, detail).error("/url", "must stay as it is"));
    }
    check_kinds(&kinds, data.agent.as_ref())?;
    let kinds = kinds.into_iter().collect();
    // An endpoint that stays disabled keeps the reason.
    let disabled = disabled(enabled, at).map(|now| data.disabled.unwrap_or(now));
    let fresh = data.url != url || data.disabled.is_some() && disabled.is_none();
    let wanted = WebhookEndpoint { url, kinds, description, disabled, ..data };
    match services.table.update(&webhook_endpoint::change(&wanted, version, fresh, at)?).await? {
        Ok(endpoint) => Ok(current(&endpoint)),
        Err(refusal) if refusal.item.is_some() => Err(Problem::version_mismatch()),
        Err(_) => Err(no_such_endpoint()),
    }
}

/// Give an endpoint for webhooks a new secret
///
/// Returns the endpoint with its new `secret`. For 24 hours, the former secret signs the requests, too. To
/// an agent over ACP, only the new one signs. The request has no body. At most three secrets are valid, so
/// three new ones end a secret at once.
#[route(POST "/v1/webhooks/endpoints/{id}/secret", id = "renewWebhookSecret", who = staff, task = "webhooks",
    path(id: EndpointId), parameters(IfMatch),
    answers(200 = EndpointWithSecret<'_> "The endpoint with its new secret" [ETag]),
    refuses(not_found, conflict, malformed_json, body_too_large, unsupported_content_encoding, invalid_body))]
pub async fn renew_secret(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: EndpointId = request.path("id")?;
    request.refuse_body()?;
    let keys = services.webhooks()?.keys.get().await?;
    let version = request.if_match()?;
    let endpoint = find(services, &id).await?;
    if endpoint.meta.version != version {
        return Err(Problem::version_mismatch());
    }
    refuse_profiles(&endpoint, "An endpoint from a profile has no secret: the shop's own key signs.")?;
    let rotate = webhook_endpoint::rotate(&endpoint, seed(services, keys, Instant::now())?)?;
    let renewed = services.table.update(&rotate).await?;
    let endpoint = renewed.map_err(|_| Problem::version_mismatch())?;
    Ok(Response::ok(&EndpointWithSecret::new(keys, &endpoint)?).etag(endpoint.meta.version))
}

/// Remove an endpoint for webhooks
///
/// Within a minute, the endpoint gets no further request. If it is missing, the request also succeeds. The
/// endpoint from an agent's profile is removed with the agent.
#[route(DELETE "/v1/webhooks/endpoints/{id}", id = "removeWebhookEndpoint", who = staff, task = "webhooks",
    path(id: EndpointId), answers(204 = () "Done"), refuses(conflict))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: EndpointId = request.path("id")?;
    if let Some(endpoint) = services.table.get(&webhook_endpoint::get(&id)?).await? {
        let detail = "This endpoint comes from an agent's profile. Remove the agent, or disable the endpoint.";
        refuse_profiles(&endpoint, detail)?;
    }
    match services.table.transact(&webhook_endpoint::remove(&id, Instant::now())?).await? {
        Err(refusals) if !refusals.names(EndpointAction::Endpoint) => Err(Problem::unexpected(&refusals)),
        _ => Ok(Response::no_content()),
    }
}

/// List the deliveries to an endpoint
///
/// Returns the events of the last 30 days for the endpoint with what came of each attempt, newest first.
#[route(GET "/v1/webhooks/endpoints/{id}/deliveries", id = "listWebhookDeliveries", who = staff, task = "webhooks",
    path(id: EndpointId), parameters(Limit, Cursor),
    answers(200 = Page<DeliveryView<'_>> "A page of deliveries" [Link, LeftOut]), refuses(not_found))]
pub async fn deliveries(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: EndpointId = request.path("id")?;
    let parameters = [("endpoint", id.as_str())];
    let page = request.page(&services.cursors, webhook_delivery::LIST.id, &parameters).await?;
    find(services, &id).await?;
    let List { page, found } = page.read(services, webhook_delivery::list(&id)?).await?;
    let now = Instant::now();
    let found = found.filter_map(|delivery| (!delivery.is_expired(now)).then_some(delivery));
    List { page, found }.answer(DeliveryView::from).await
}

/// Read a delivery to an endpoint
#[route(GET "/v1/webhooks/endpoints/{id}/deliveries/{delivery}", id = "readWebhookDelivery", who = staff,
    task = "webhooks", path(id: EndpointId, delivery: DeliveryId),
    answers(200 = DeliveryWithBody<'_> "The delivery with the body of its requests"), refuses(not_found))]
pub async fn delivery(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let endpoint = find(services, &request.path("id")?).await?;
    let get = webhook_delivery::get(&endpoint.id, &request.path("delivery")?)?;
    let found = services.table.get(&get).await?.filter(|found| !found.is_expired(Instant::now()));
    let found = found.ok_or_else(|| Problem::not_found("delivery"))?;
    Ok(Response::ok(&DeliveryWithBody { delivery: DeliveryView::from(&found), body: &found.body }))
}

/// Send a delivery to an endpoint again
///
/// Whatever came of it, the delivery is sent again within about a minute, with up to ten attempts, and stays
/// in the log for 30 days more. An endpoint that is disabled gets it when it is enabled again. The request
/// has no body.
#[route(POST "/v1/webhooks/endpoints/{id}/deliveries/{delivery}/redelivery", id = "redeliverWebhook", who = staff,
    task = "webhooks", path(id: EndpointId, delivery: DeliveryId),
    answers(202 = DeliveryView<'_> "The delivery is due"),
    refuses(not_found, malformed_json, body_too_large, unsupported_content_encoding, invalid_body))]
pub async fn redeliver(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (endpoint, id): (EndpointId, DeliveryId) = (request.path("id")?, request.path("delivery")?);
    request.refuse_body()?;
    find(services, &endpoint).await?;
    let redeliver = webhook_delivery::redeliver(&endpoint, &id, Instant::now())?;
    let due = services.table.update(&redeliver).await?.map_err(|_| Problem::not_found("delivery"))?;
    Ok(Response::accepted(&DeliveryView::from(&due)))
}

async fn find(services: &Services, id: &EndpointId) -> Result<Stored<WebhookEndpoint>, Problem> {
    services.table.get(&webhook_endpoint::get(id)?).await?.ok_or_else(no_such_endpoint)
}

/// Returns the response to the first request with a key. The table holds no secret, so the response is
/// made again from the endpoint. Failures since then are not a part of it.
async fn replay(services: &Services, keys: &WebhookKeys, once: &Once) -> Result<Option<Response>, Problem> {
    let record = services.table.get(&idempotency::get(once.scope())?).await?;
    match once.first(record.as_deref(), Instant::now())? {
        Some(StoredResponse::Endpoint(id)) => {
            let mut endpoint = find(services, id).await?;
            endpoint.data.failing_since = None;
            let response = created(keys, &endpoint)?;
            Ok(Some(response.header("idempotency-replayed", "true")))
        }
        Some(_) => Err(Problem::internal("the idempotency record holds no endpoint")),
        None => Ok(None),
    }
}

fn created(keys: &WebhookKeys, endpoint: &Stored<WebhookEndpoint>) -> Result<Response, Problem> {
    let path = path_of(&["webhooks", "endpoints", endpoint.id.as_str()]);
    Ok(Response::created(path, &EndpointWithSecret::new(keys, endpoint)?).etag(endpoint.meta.version))
}

fn current(endpoint: &Stored<WebhookEndpoint>) -> Response {
    Response::ok(&EndpointView::from(endpoint)).etag(endpoint.meta.version)
}

fn seed(services: &Services, keys: &WebhookKeys, at: Instant) -> Result<SecretSeed, Problem> {
    let nonce = services.born(at)?.to_string();
    Ok(SecretSeed { key: keys.newest().to_owned(), nonce, created_at: at, ends_at: None })
}

fn disabled(enabled: bool, at: Instant) -> Option<Disabled> {
    (!enabled).then_some(Disabled { reason: DisabledReason::Staff, at })
}

fn check_kinds(kinds: &[String], agent: Option<&AgentId>) -> Result<(), Problem> {
    let (detail, rule) = match (kinds.is_empty(), agent) {
        (true, None) => ("An endpoint needs kinds of events.", "must have at least one entry"),
        (false, Some(_)) => ("An agent gets its orders, and no kinds of events.", "must be empty"),
        _ => return Ok(()),
    };
    Err(Problem::new(Code::InvalidBody, detail).error("/kinds", rule))
}

fn refuse_profiles(endpoint: &WebhookEndpoint, detail: &'static str) -> Result<(), Problem> {
    if endpoint.is_from_profile() { Err(Problem::new(Code::Conflict, detail)) } else { Ok(()) }
}

fn no_such_endpoint() -> Problem {
    Problem::not_found("endpoint")
}

#[derive(Serialize, Schema)]
#[schema(name = "WebhookEndpoint")]
struct EndpointView<'a> {
    id: &'a EndpointId,
    /// The agent that gets its orders here.
    #[field(example = null)]
    agent: Option<&'a AgentId>,
    #[field(rule = URL, example = "https://erp.example/webhooks/bodega")]
    url: &'a str,
    #[field(rule = list_of(one_of(KINDS), 0..=KINDS.len()), example = ["order.*", "stock.low"])]
    kinds: &'a BTreeSet<String>,
    #[field(rule = DESCRIPTION, example = "The warehouse")]
    description: Option<&'a str>,
    #[field(example = true)]
    enabled: bool,
    /// Why the endpoint gets nothing: `staff` disabled it, it answered 410 (`gone`), or it has failed for
    /// three days (`failing`).
    #[field(rule = one_of(DisabledReason::NAMES), example = null)]
    disabled_reason: Option<DisabledReason>,
    disabled_at: Option<Instant>,
    /// When a request failed first after the last success.
    failing_since: Option<Instant>,
    /// When the present secret was made.
    secret_created_at: Option<Instant>,
    /// Until when the former secret signs, too. To an agent, it does not.
    former_secret_ends_at: Option<Instant>,
    #[field(rule = VERSION, example = 1)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<WebhookEndpoint>> for EndpointView<'a> {
    fn from(Stored { meta, data }: &'a Stored<WebhookEndpoint>) -> Self {
        let WebhookEndpoint { id, agent, secrets, failing_since, url, kinds, description, disabled } = data;
        Self {
            id,
            agent: agent.as_ref(),
            url,
            kinds,
            description: description.as_deref(),
            enabled: disabled.is_none(),
            disabled_reason: disabled.map(|disabled| disabled.reason),
            disabled_at: disabled.map(|disabled| disabled.at),
            failing_since: *failing_since,
            secret_created_at: secrets.first().map(|seed| seed.created_at),
            former_secret_ends_at: secrets.get(1).and_then(|former| former.ends_at),
            version: meta.version,
            created_at: meta.created_at,
            updated_at: meta.updated_at,
        }
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "WebhookEndpointWithSecret")]
struct EndpointWithSecret<'a> {
    #[serde(flatten)]
    endpoint: EndpointView<'a>,
    /// The secret that signs the requests. No other response shows it.
    #[field(rule = SECRET, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
}

impl<'a> EndpointWithSecret<'a> {
    fn new(keys: &WebhookKeys, endpoint: &'a Stored<WebhookEndpoint>) -> Result<Self, Problem> {
        let secret = endpoint.secrets.first().and_then(|seed| keys.secret(&endpoint.id, seed));
        let secret = secret.ok_or_else(|| Problem::internal("the key of the endpoint's secret is gone"))?.text();
        Ok(Self { endpoint: EndpointView::from(endpoint), secret })
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "WebhookEndpointList")]
struct EndpointList<'a> {
    #[field(rule = list_of(any::<EndpointView<'_>>(), 0..=(MAX_ENDPOINTS + MAX_AGENTS) as usize))]
    items: Vec<EndpointView<'a>>,
    #[field(rule = NO_CURSOR, example = null)]
    next_cursor: (),
}

#[derive(Serialize, Schema)]
#[schema(name = "WebhookDelivery", page = "WebhookDeliveryPage")]
struct DeliveryView<'a> {
    id: &'a DeliveryId,
    endpoint_id: &'a EndpointId,
    /// The id of the event, which is the header `webhook-id` of each request. An agent over ACP gets the
    /// delivery's `id` instead, as `Request-Id`.
    #[field(rule = exact_text(32..=32), example = "0123456789abcdef0123456789abcdef")]
    event_id: &'a str,
    /// The kind of the event.
    #[field(rule = exact_text(1..=64), example = "order.placed")]
    kind: &'a str,
    /// `pending` while attempts follow, `delivered` after a response with 2xx, and `failed` after the last
    /// attempt.
    #[field(rule = one_of(DeliveryState::NAMES), example = "delivered")]
    state: DeliveryState,
    /// When the next attempt may begin.
    #[field(example = null)]
    due_at: Option<Instant>,
    /// The number of attempts, since the last redelivery.
    #[field(rule = integer(0..=MAX_TRIES), example = 1)]
    tries: u64,
    /// What came of the latest attempts, the oldest one first.
    #[field(rule = list_of(any::<AttemptView<'_>>(), 0..=MAX_ATTEMPTS))]
    attempts: Vec<AttemptView<'a>>,
    created_at: Instant,
    /// When the delivery leaves the log.
    expires_at: Instant,
}

impl<'a> From<&'a Stored<WebhookDelivery>> for DeliveryView<'a> {
    fn from(Stored { meta, data }: &'a Stored<WebhookDelivery>) -> Self {
        Self {
            id: &data.id,
            endpoint_id: &data.endpoint_id,
            event_id: &data.event_id,
            kind: &data.kind,
            state: data.state,
            due_at: data.due_at,
            tries: data.tries.min(MAX_TRIES),
            attempts: data.attempts.iter().map(AttemptView::from).collect(),
            created_at: meta.created_at,
            expires_at: data.expires_at,
        }
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "WebhookAttempt")]
struct AttemptView<'a> {
    at: Instant,
    /// How long the attempt took.
    #[field(rule = integer(0..=60_000_u64), example = 120)]
    milliseconds: u64,
    /// The status of the response, or null without a response.
    #[field(rule = integer(100..=999_u16), example = 204)]
    status: Option<u16>,
    /// Why there was no response.
    #[field(rule = exact_text(1..=200), example = null)]
    error: Option<&'a str>,
}

impl<'a> From<&'a Attempt> for AttemptView<'a> {
    fn from(Attempt { at, milliseconds, status, error }: &'a Attempt) -> Self {
        Self { at: *at, milliseconds: *milliseconds, status: *status, error: error.as_deref() }
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "WebhookDeliveryWithBody")]
struct DeliveryWithBody<'a> {
    #[serde(flatten)]
    delivery: DeliveryView<'a>,
    /// The JSON text that each request has as its body.
    #[field(rule = exact_text(1..=MAX_BODY_BYTES), example = "{}")]
    body: &'a str,
}
