use std::collections::BTreeSet;

use key_schema::agent::{self, Agent, AgentKey, AgentScope, Agents};
use key_schema::checkout_session::{
    self, Buyer, CheckoutSession, Origin, SessionDestination, SessionKind, SessionLine, Wish,
};
use key_schema::entity::AnyEntity as Any;
use key_schema::id::CheckoutId;
use key_schema::idempotency::{self, StoredResponse};
use key_schema::item::Stored;
use key_schema::order::open::OpenOrders;
use key_schema::order::{self, Order, OrderAction, OrderStatus, PlacedOrder, Step};

use crate::exercises::NOW;
use crate::goldens::{Golden, with};
use crate::rendering::{Request as _, Shown};
use crate::support::at;
use crate::world::World;

impl World {
    pub fn agent_key(&self) -> AgentKey {
        AgentKey::new(&self.agent, [0xA6; 32])
    }

    pub fn agent(&self) -> Stored<Agent> {
        self.stored(Agent {
            id: self.agent.clone(),
            name: "Acme Assistant".into(),
            profile_url: "https://agent.example/profile".into(),
            scopes: BTreeSet::from([AgentScope::Catalog, AgentScope::Checkout]),
            checkouts_per_day: 500,
            key_hash: self.agent_key().hash(),
            key_created_at: at("2017-02-03T09:00:00.000Z"),
        })
    }

    pub fn agents(&self) -> Stored<Agents> {
        self.stored(Agents { agents: 2 })
    }

    pub fn checkout(&self) -> CheckoutId {
        CheckoutId::generate(at("2017-02-03T09:30:00.000Z"), [0xA5; 10])
    }

    /// Makes a cart with one line, or a checkout with everything that a purchase needs.
    pub fn checkout_session(&self, kind: SessionKind) -> Stored<CheckoutSession> {
        let lines = vec![SessionLine { id: "li_1".into(), product_id: self.product.clone(), quantity: 6 }];
        let mut wish = Wish { lines, ..Wish::default() };
        if kind == SessionKind::Checkout {
            wish.buyer = Some(Buyer {
                email: Some(self.email.as_str().into()),
                first_name: Some("Zoë".into()),
                ..Buyer::default()
            });
            wish.destinations = vec![SessionDestination {
                id: "dest_1".into(),
                line1: Some("Limmatquai 1".into()),
                city: Some("Zürich".into()),
                country: Some("CH".into()),
                ..SessionDestination::default()
            }];
            wish.destination = Some("dest_1".into());
            wish.method = Some("parcel".parse().unwrap());
            wish.codes = vec!["SUMMER10".into()];
        }
        let began = at("2017-02-03T09:30:00.000Z");
        let id = match kind {
            SessionKind::Cart => CheckoutId::generate(began, [0xA4; 10]),
            SessionKind::Checkout => self.checkout(),
        };
        let session = CheckoutSession::new(id, self.agent.clone(), kind, wish, &self.cart_token(), began);
        self.stored(session)
    }

    pub fn order_of_agent(&self) -> Stored<Order> {
        with(self.guest_order(), |order| {
            order.origin = Some(Origin {
                agent: self.agent.clone(),
                checkout: self.checkout(),
                api: "https://api.example".into(),
            });
        })
    }
}

pub fn agents_goldens(world: &World) -> Vec<Golden> {
    let completed = with(world.checkout_session(SessionKind::Checkout), |session| {
        session.quote = Some("{}".into());
        session.order_id = Some(world.order.clone());
        session.tries = 2;
    });
    let converted =
        with(world.checkout_session(SessionKind::Cart), |session| session.checkout = Some(world.checkout()));
    let cancelled = with(world.checkout_session(SessionKind::Cart), |session| session.cancelled = true);
    vec![
        Golden::of("Agent", world.agent(), Any::Agent),
        Golden::of("Agents", world.agents(), Any::Agents),
        Golden::of("CheckoutSession", world.checkout_session(SessionKind::Checkout), Any::CheckoutSession),
        Golden::of("CheckoutSession-completed", completed, Any::CheckoutSession),
        Golden::of("CheckoutSession-converted", converted, Any::CheckoutSession),
        Golden::of("CheckoutSession-cancelled", cancelled, Any::CheckoutSession),
        Golden::of("Order-agent", world.order_of_agent(), Any::Order),
    ]
}

pub fn agents(world: &World) -> Vec<Shown> {
    let (now, stored, key) = (at(NOW), world.agent(), world.agent_key());
    vec![
        agent::get(&world.agent).unwrap().show("agent::get"),
        agent::list().unwrap().show("agent::list"),
        agent::signers().unwrap().show("agent::signers"),
        agent::create(&stored).unwrap().show("agent::create"),
        agent::change(&stored, 3, now).unwrap().show("agent::change"),
        agent::renew_key(&world.agent, &key, now).unwrap().show("agent::renew_key"),
        agent::remove(&stored, now).unwrap().show("agent::remove"),
    ]
}

pub fn checkout_sessions(world: &World) -> Vec<Shown> {
    let now = at(NOW);
    let (cart, session) = (world.checkout_session(SessionKind::Cart), world.checkout_session(SessionKind::Checkout));
    let response = StoredResponse::Checkout(session.id.clone());
    let claim = || Some(idempotency::claim(&world.idempotency_record(response.clone()), now).unwrap());
    let head = world.order_of_agent();
    let placed = PlacedOrder::new(head.clone(), vec![world.order_line()], head.customer_id.as_str());
    let of_guest = OpenOrders { customer_id: head.customer_id.clone(), ..world.open_orders().data };
    let open = order::open::enter(&head, world.open_order(), Some(&world.stored(of_guest))).unwrap();
    let completed = checkout_session::complete(&session, &world.order, now).unwrap();
    let reopened = [(OrderAction::Cart, checkout_session::reopen(&session, now).unwrap())];
    let lines = [world.order_line()];
    let cancelled = Step { with: &reopened, ..Step::new(&head, &lines, OrderStatus::Cancelled, now, "c1") };
    vec![
        checkout_session::get(&session.id).unwrap().show("checkout_session::get"),
        checkout_session::create(&session, 500, None, None).unwrap().show("checkout_session::create"),
        checkout_session::create(&session, 500, Some(&cart), claim()).unwrap().show("checkout_session::create"),
        checkout_session::replace(&session, &cart.wish, &None, claim(), now).unwrap().show("checkout_session::replace"),
        checkout_session::replace(&cart, &session.wish, &Some("{}".into()), None, now)
            .unwrap()
            .show("checkout_session::replace"),
        checkout_session::cancel(&session, claim(), now).unwrap().show("checkout_session::cancel"),
        checkout_session::try_again(&session, claim(), now).unwrap().show("checkout_session::try_again"),
        order::place(&placed, &[(OrderAction::Open, open), (OrderAction::Cart, completed)])
            .unwrap()
            .show("order::place"),
        order::transition(cancelled).unwrap().show("order::transition"),
    ]
}
