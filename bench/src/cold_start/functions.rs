//! The measured functions: the consumer that writes the search index, and the functions that answer
//! clients. Each function that answers clients is measured with one of its main reads.

use std::collections::{BTreeMap, BTreeSet};

use http_api::sample::Call;
use key_schema::agent::{Agent, AgentKey, AgentScope};
use key_schema::entity::AnyEntity;
use key_schema::follow::Follow;
use key_schema::id::{AgentId, DocumentId, OrganizationId, StoreId};
use key_schema::item::Item;
use key_schema::lists::Lists;
use key_schema::money::Currency;
use key_schema::order::OrderStatusEvent;
use key_schema::organization::{Organization, Team};
use key_schema::product::Stock;
use key_schema::region::StoreLocation;
use key_schema::settings::{COPIES, Settings};
use key_schema::wallet::Wallet;
use search_index::{BulkOperation, document_id};
use stream::documents::written;

use crate::BenchError;
use crate::examples::{
    OWNER, STAFF, at, customer, customer_id, document, item, order, order_line, owned_product, owner, product,
    question, stored,
};

pub(super) struct Subject {
    /// The name of its program, and of its package without the prefix `bodega-`.
    pub name: &'static str,
    pub event: String,
    pub items: Vec<Item>,
}

impl Subject {
    fn new(name: &'static str, call: &Call, items: Vec<Item>) -> Self {
        Self { name, event: call.event().to_string(), items }
    }
}

/// Returns the operation that writes the search index's only document, a product.
pub(super) fn indexed() -> Result<BulkOperation, BenchError> {
    let product = AnyEntity::Product(stored(product(owned_product()?)?, 0));
    let written = written(document_id("bench", "product"), &product);
    Ok(written.ok_or_else(|| wrong!("a product has no search document"))??)
}

/// Returns the function that serves the same route as the peers.
pub(super) fn customers() -> Result<Subject, BenchError> {
    Ok(Subject::new(
        "customers",
        &Call::new("GET /v1/customers/{id}").path("id", OWNER).customer(OWNER),
        vec![item(customer(owner()?, 0)?, 0)?],
    ))
}

pub(super) fn all() -> Result<Vec<Subject>, BenchError> {
    let order = order(0)?;
    let question = question(0)?;
    let club = || OrganizationId::new("chess-club").map_err(BenchError::from);
    let store = StoreLocation {
        id: StoreId::new("364")?,
        country: "DE".to_owned(),
        city: "Ulm".to_owned(),
        name: "By the river".to_owned(),
    };
    let placed = OrderStatusEvent {
        order_id: order.id.clone(),
        status: order.status,
        at: at(0),
        by: OWNER.to_owned(),
        note: None,
        message: None,
        carrier: None,
        tracking: None,
        expires_at: None,
    };
    let settings = (0..COPIES)
        .map(|copy| {
            item(Settings { copy, lists: Lists::default(), values: "{}".to_owned(), private: "{}".to_owned() }, 0)
        })
        .collect::<Result<_, _>>()?;
    let stock = Stock::new(owned_product()?, 5);
    Ok(vec![
        customers()?,
        Subject::new(
            "catalog",
            &Call::new("GET /v1/products/{id}").path("id", OWNER),
            vec![item(product(owned_product()?)?, 0)?, item(stock, 0)?],
        ),
        Subject::new(
            "orders",
            &Call::new("GET /v1/orders/{id}").path("id", order.id.as_str()).customer(OWNER),
            vec![item(order_line(&order.id)?, 0)?, item(placed, 0)?, item(order, 0)?],
        ),
        Subject::new(
            "wallet",
            &Call::new("GET /v1/customers/{id}/wallet").path("id", OWNER).customer(OWNER),
            vec![item(Wallet { customer_id: owner()?, balances: BTreeMap::from([(Currency::USD, 4_500)]) }, 0)?],
        ),
        Subject::new(
            "community",
            &Call::new("GET /v1/customers/{id}/following/{other}")
                .path("id", OWNER)
                .path("other", customer_id(1)?.as_str())
                .customer(OWNER),
            vec![item(Follow { customer_id: owner()?, followed_id: customer_id(1)? }, 0)?],
        ),
        Subject::new(
            "organizations",
            &Call::new("GET /v1/organizations/{id}").path("id", "chess-club").staff(STAFF),
            vec![
                item(Organization { id: club()?, teams: 1, admins: 1, invited: 0, name: "Chess club".to_owned() }, 0)?,
                item(
                    Team {
                        organization_id: club()?,
                        id: key_schema::id::TeamId::new("bishops")?,
                        members: 0,
                        name: "Bishops".to_owned(),
                    },
                    0,
                )?,
            ],
        ),
        Subject::new(
            "documents",
            &Call::new("GET /v1/documents/{id}").path("id", "statutes").customer(OWNER),
            vec![item(document(DocumentId::new("statutes")?)?, 0)?],
        ),
        Subject::new(
            "support",
            &Call::new("GET /v1/questions/{id}").path("id", question.id.as_str()).customer(OWNER),
            vec![item(question, 0)?],
        ),
        Subject::new(
            "insights",
            &Call::new("GET /v1/stores/{id}").path("id", "364").staff(STAFF),
            vec![item(store, 0)?],
        ),
        Subject::new("search", &Call::new("GET /v1/search/products").query("q", "ice"), Vec::new()),
        // This is the consumer `StreamSearch`: its variable `SINKS` is `search`.
        Subject {
            name: "stream",
            event: include_str!("../../../events/stream-search-insert.json").to_owned(),
            items: Vec::new(),
        },
        Subject::new("settings", &Call::new("GET /v1/settings"), settings),
        Subject::new(
            "agents",
            &Call::new("GET /v1/agents/{id}").path("id", "acme").staff(STAFF),
            vec![item(agent()?, 0)?],
        ),
    ])
}

fn agent() -> Result<Agent, BenchError> {
    let id: AgentId = AgentId::new("acme")?;
    Ok(Agent {
        key_hash: AgentKey::new(&id, [1; 32]).hash(),
        id,
        name: "Acme Assistant".to_owned(),
        profile_url: "https://agent.example/profile".to_owned(),
        scopes: BTreeSet::from([AgentScope::Catalog]),
        checkouts_per_day: 10_000,
        key_created_at: at(0),
    })
}
