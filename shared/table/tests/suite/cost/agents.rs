//! Measures agents, and their carts and checkouts.

use std::collections::BTreeSet;

use key_schema::agent::{self, Agent, AgentKey, AgentScope};
use key_schema::checkout_session::{self, Buyer, CheckoutSession, SessionDestination, SessionKind, SessionLine, Wish};
use key_schema::guest_cart::CartToken;
use key_schema::id::{AgentId, CheckoutId};
use key_schema::idempotency::{self, IdempotencyRecord, Scope, StoredResponse};
use key_schema::item::Stored;
use key_schema::request::Guarded;

use super::meter::Bench;
use super::webhooks;
use crate::data::{self, at, product_id};

pub(super) async fn measure(bench: &mut Bench) {
    let id = AgentId::new("acme").unwrap();
    for number in 1..=20 {
        let own = if number == 1 { id.clone() } else { AgentId::new(format!("agent-{number}")).unwrap() };
        let create = agent::create(&data::stored(registered(own), number)).unwrap();
        if number == 1 {
            bench.transact("one agent", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let one = bench.get("one agent", agent::get(&id).unwrap()).await;
    bench.query("20 agents", 20, agent::list().unwrap()).await;
    bench.query("20 agents", 20, agent::signers().unwrap()).await;
    let one = bench.update("one agent", agent::change(&one.data, one.meta.version, at(1)).unwrap()).await;
    let key = AgentKey::new(&one.id, [7; 32]);
    let one = bench.update("one agent", agent::renew_key(&id, &key, at(2)).unwrap()).await;
    webhooks::adopt(bench, &one).await;
    bench.transact("one agent", agent::remove(&one, at(3)).unwrap()).await;
    sessions(bench, &id).await;
}

async fn sessions(bench: &mut Bench, agent: &AgentId) {
    let (cart, session) = (session(agent, 1, SessionKind::Cart), session(agent, 2, SessionKind::Checkout));
    bench.table.transact(&checkout_session::create(&cart, 10, None, None).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let create = checkout_session::create(&session, 10, None, Some(claim(agent, 1))).unwrap();
    bench.transact("5 lines, with a key", create).await;
    let session = bench.get("5 lines, a buyer and an address", checkout_session::get(&session.id).unwrap()).await;
    // A price of 5 lines with its addresses has about as many bytes.
    let quote = Some("q".repeat(900));
    let record = Some(claim(agent, 2));
    let replace = checkout_session::replace(&session, &session.wish, &quote, record, at(1)).unwrap();
    bench.transact("5 lines with their price, with a key", replace).await;
    let session = bench.table.get(&checkout_session::get(&session.id).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.transact("5 lines, without a key", checkout_session::cancel(&session, None, at(2)).unwrap()).await;
    bench.write("5 lines", idempotency::keep(&first(agent, 4), at(0)).unwrap()).await;
    let bought = Stored::new(
        CheckoutSession { id: CheckoutId::generate(at(0), [3; 10]), ..session.data.clone() },
        data::born(3),
        at(0),
    );
    let convert = checkout_session::create(&bought, 10, Some(&cart), None).unwrap();
    bench.transact("5 lines of a cart, without a key", convert).await;
}

fn claim(agent: &AgentId, number: u8) -> Guarded {
    idempotency::claim(&first(agent, number), at(0)).unwrap()
}

/// Returns the record of a first response, which has about as many bytes for 5 lines.
fn first(agent: &AgentId, number: u8) -> Stored<IdempotencyRecord> {
    let scope = Scope { caller: format!("agent {agent}"), key: format!("{number:036}") };
    let answer = StoredResponse::Body { status: 200, body: "r".repeat(3_000) };
    let record = IdempotencyRecord { scope, answer, request_hash: "f".repeat(64), expires_at: at(86_400) };
    data::stored(record, number)
}

fn registered(id: AgentId) -> Agent {
    Agent {
        key_hash: AgentKey::new(&id, [6; 32]).hash(),
        id,
        name: "Acme Assistant".to_owned(),
        profile_url: "https://agent.example/profile".to_owned(),
        scopes: BTreeSet::from([AgentScope::Catalog, AgentScope::Checkout, AgentScope::Orders]),
        checkouts_per_day: 10_000,
        key_created_at: at(0),
    }
}

fn session(agent: &AgentId, number: u8, kind: SessionKind) -> Stored<CheckoutSession> {
    let line = |number| SessionLine { id: format!("li_{number}"), product_id: product_id(number), quantity: 2 };
    let address = data::address();
    let wish = Wish {
        lines: (1..=5).map(line).collect(),
        buyer: Some(Buyer {
            email: Some("ada@example.com".to_owned()),
            first_name: Some("Augusta Ada".to_owned()),
            last_name: Some("King".to_owned()),
            phone: None,
        }),
        contact: None,
        destinations: vec![SessionDestination {
            id: "dest_1".to_owned(),
            line1: Some(address.line1),
            city: Some(address.city),
            postal_code: Some("8001".to_owned()),
            country: Some("CH".to_owned()),
            ..SessionDestination::default()
        }],
        destination: Some("dest_1".to_owned()),
        method: Some("parcel".parse().unwrap()),
        codes: vec!["SUMMER10".to_owned()],
    };
    let id = CheckoutId::generate(at(0), [number; 10]);
    let secret = CartToken::new([number; 32]);
    data::stored(CheckoutSession::new(id, agent.clone(), kind, wish, &secret, at(0)), number)
}
