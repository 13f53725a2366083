//! A shop for one test: a fresh table, the function's routes, a payment provider, and the agent acme.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aws::Reach;
use emulators::payments::{PaymentServer, Settings};
use fixture::{CURSOR_KEYS, Harness, TestTable, seed};
use http_api::sample::{Answered, Call};
use http_api::{Keys, Services, SettingsCache};
use key_schema::checkout_session::{self, CheckoutSession};
use key_schema::entity::AnyEntity;
use key_schema::id::{Born, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, FromItem as _, Stored};
use key_schema::money::Money;
use key_schema::order::{self, PlacedOrder};
use key_schema::pricing::{self, Rules, ShippingMethod, ShippingRate, ShippingZone};
use key_schema::promotion::{self, Conditions, Goods, Promotion, Reduction};
use key_schema::webhook_secret::WebhookKeys;
use key_schema::{product, settings};
use payments::{Account, Stripe};
use serde_json::{Value, json};

use agents::App;
use agents::profiles::Profiles;
use signatures::SigningKeys;

pub const CREATE: &str = "POST /ucp/checkout-sessions";
pub const READ: &str = "GET /ucp/checkout-sessions/{id}";
pub const REPLACE: &str = "PUT /ucp/checkout-sessions/{id}";
pub const COMPLETE: &str = "POST /ucp/checkout-sessions/{id}/complete";
pub const CANCEL: &str = "POST /ucp/checkout-sessions/{id}/cancel";
pub const ORDER: &str = "GET /ucp/orders/{id}";
pub const PUT_AGENT: &str = "PUT /v1/agents/{id}";

pub struct Shop {
    harness: Harness<App>,
    clock: Arc<AtomicI64>,
    pub provider: PaymentServer,
    pub acme: Agent,
}

impl Deref for Shop {
    type Target = Harness<App>;

    fn deref(&self) -> &Self::Target {
        &self.harness
    }
}

/// An agent with its key.
#[derive(Debug, Clone)]
pub struct Agent {
    pub id: String,
    pub key: String,
}

impl Agent {
    pub fn call(&self, route: &'static str) -> Call {
        let profile = format!("profile=\"{}\"", profile(&self.id));
        on_host(route).header("x-api-key", &self.key).header("ucp-agent", &profile)
    }

    pub fn about(&self, route: &'static str, session: &Value) -> Call {
        self.call(route).path("id", session["id"].as_str().unwrap())
    }

    /// Builds the request that completes a checkout with this token of a card.
    pub fn complete(&self, session: &Value, token: &str) -> Call {
        self.about(COMPLETE, session).json(&payment(token))
    }
}

/// Builds a request to an address, which the responses repeat.
pub fn on_host(route: &'static str) -> Call {
    Call::new(route).header("host", "api.example")
}

pub fn profile(id: &str) -> String {
    format!("https://agent.example/{id}")
}

pub fn payment(token: &str) -> Value {
    json!({ "payment": { "instruments": [{
        "id": "card", "handler_id": "stripe", "type": "card", "selected": true,
        "credential": { "type": "token", "token": token },
    }] } })
}

/// Returns staff's body that registers an agent with all scopes.
pub fn registration(id: &str) -> Value {
    json!({ "name": "Acme Assistant", "profile_url": profile(id), "scopes": ["catalog", "checkout", "orders"] })
}

impl Shop {
    /// Opens a shop with ten pieces of tea for five dollars. It sends nothing.
    pub async fn open() -> Self {
        Self::reaching(Reach::Public).await
    }

    /// Opens such a shop that reads profiles from these addresses.
    pub async fn reaching(reach: Reach) -> Self {
        let provider = PaymentServer::start(Settings { seed: 7, ..Settings::default() }).await.unwrap();
        let service = aws::Service::new(aws::connector().unwrap(), provider.url(), None);
        let stripe = Stripe::new(service, "sk_test_1".to_owned());
        let keys = payments::Keys::new(Arc::new(stripe), vec!["whsec_1".to_owned()]);
        Self::open_with(provider, Account::with(Some(keys)), reach).await
    }

    /// Opens such a shop without an account at the payment provider.
    pub async fn open_without_cards() -> Self {
        let provider = PaymentServer::start(Settings::default()).await.unwrap();
        Self::open_with(provider, Account::with(None), Reach::Public).await
    }

    async fn open_with(provider: PaymentServer, account: Account, reach: Reach) -> Self {
        let clock = Arc::new(AtomicI64::new(0));
        let ahead = Arc::clone(&clock);
        let settings = SettingsCache::new(move || Instant::now().plus_seconds(ahead.load(Ordering::Relaxed)));
        let app = |test: &TestTable| {
            let services = Services { settings, ..test.services() };
            let shop = ordering::Shop { account, ..ordering::Shop::new(services) };
            let signing = Some(Keys::known(SigningKeys::of(&WebhookKeys::new(CURSOR_KEYS).unwrap())));
            App { shop, search: None, signing, profiles: Profiles::new(reach) }
        };
        let harness = Harness::start(agents::routes(), app).await;
        let none = Agent { id: String::new(), key: String::new() };
        let mut shop = Self { harness, clock, provider, acme: none };
        shop.acme = shop.agent("acme").await;
        shop.priced("tea", 500, 10).await;
        shop
    }

    /// Advances the clock of the settings' cache.
    pub fn wait(&self, seconds: i64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Registers an agent with all scopes.
    pub async fn agent(&self, id: &str) -> Agent {
        self.agent_with(id, &registration(id)).await
    }

    pub async fn agent_with(&self, id: &str, body: &Value) -> Agent {
        let put = Call::new(PUT_AGENT).path("id", id).staff("sam").header("if-none-match", "*");
        let made = self.expect(201, put.json(body)).await;
        Agent { id: id.to_owned(), key: made["api_key"].as_str().unwrap().to_owned() }
    }

    /// Creates a product with a price in cents.
    pub async fn priced(&self, id: &str, price: i64, stock: u64) {
        self.sell(seed::product(id, usd(price)), stock).await;
    }

    /// Changes the price of a product.
    pub async fn reprice(&self, id: &str, price: i64) {
        self.put(&seed::stored(seed::product(id, usd(price)))).await;
    }

    pub async fn set_stock(&self, id: &str, pieces: u64) {
        self.put(&seed::stored(seed::stock(ProductId::new(id).unwrap(), pieces))).await;
    }

    pub async fn stock(&self, id: &str) -> u64 {
        self.own().get(&product::stock(&ProductId::new(id).unwrap()).unwrap()).await.unwrap().unwrap().available
    }

    async fn rules(&self) -> Rules {
        Rules::from_items(self.own().query(&pricing::read_for_update().unwrap()).await.unwrap().items)
    }

    async fn add_rule<E: Entity>(&self, rule: E) {
        self.transact(&pricing::create(&self.rules().await, &seed::stored(rule)).unwrap()).await;
    }

    /// Adds a zone of Switzerland: a parcel for 7 dollars, and a courier for 20 dollars.
    pub async fn ship(&self) {
        let method = |id: &str, days, price| ShippingMethod {
            id: id.parse().unwrap(),
            name: id.to_owned(),
            days,
            rates: vec![ShippingRate { up_to_grams: None, from_amount: None, price: usd(price) }],
            free_from: None,
        };
        self.add_rule(ShippingZone {
            id: "alps".parse().unwrap(),
            countries: vec!["CH".parse().unwrap()],
            regions: None,
            methods: vec![method("courier", (1, 1), 2000), method("parcel", (2, 4), 700)],
        })
        .await;
    }

    /// Adds a promotion of 10 % with this code.
    pub async fn promote(&self, code: &str, conditions: Conditions) {
        let promotion = seed::stored(Promotion {
            id: code.to_lowercase().parse().unwrap(),
            code: Some(code.to_owned()),
            name: "Ten percent".to_owned(),
            reduction: Reduction::Percentage(1000),
            applies_to: Goods::All,
            conditions,
            limit_total: None,
            limit_per_customer: None,
            limit_since: 0,
            exclusive: false,
            priority: 0,
        });
        self.transact(&promotion::create(&self.rules().await, &promotion, None).unwrap()).await;
    }

    /// Creates the shop's settings with these public values.
    pub async fn set_values(&self, values: &Value) {
        let values = values.to_string();
        let create = settings::create(&values, &"{}".to_owned(), &Born::new("born").unwrap(), Instant::now()).unwrap();
        self.transact(&create).await;
        // The cached settings expire.
        self.wait(30);
    }

    /// Creates a checkout of acme for these lines.
    pub async fn check_out(&self, lines: &[(&str, u64)]) -> Value {
        self.expect(201, self.acme.call(CREATE).json(&wanted(lines))).await
    }

    /// Creates a checkout of acme that has all that the purchase of a tea needs.
    pub async fn ready(&self) -> Value {
        let session = self.check_out(&[("tea", 1)]).await;
        assert_eq!(session["status"], "ready_for_complete", "{session}");
        session
    }

    pub async fn see(&self, session: &Value) -> Value {
        self.expect(200, self.acme.about(READ, session)).await
    }

    pub async fn session(&self, session: &Value) -> Stored<CheckoutSession> {
        let id = session["id"].as_str().unwrap().parse().unwrap();
        self.own().get(&checkout_session::get(&id).unwrap()).await.unwrap().unwrap()
    }

    pub async fn order(&self, id: &OrderId) -> PlacedOrder {
        PlacedOrder::of(self.own().query(&order::read_for_update(id).unwrap()).await.unwrap().items).unwrap()
    }

    /// Returns all orders of the table.
    pub async fn orders(&self) -> Vec<PlacedOrder> {
        let mut orders = Vec::new();
        for item in self.items("ORDER#").await {
            if let Ok(AnyEntity::Order(head)) = AnyEntity::from_item(item) {
                orders.push(self.order(&head.id).await);
            }
        }
        orders
    }
}

pub fn usd(amount: i64) -> Money {
    seed::usd(amount)
}

/// Returns a body with these lines and a buyer.
pub fn wanted(lines: &[(&str, u64)]) -> Value {
    let line = |(id, quantity): &(&str, u64)| json!({ "item": { "id": id }, "quantity": quantity });
    json!({
        "line_items": lines.iter().map(line).collect::<Vec<_>>(),
        "buyer": { "email": "gil@example.com", "first_name": "Gil", "last_name": "Roth" },
    })
}

/// Returns a body with these further members.
pub fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Returns the fulfillment of goods that go to this country, by this method.
pub fn shipping(country: &str, option: Option<&str>) -> Value {
    json!({ "fulfillment": { "methods": [{
        "type": "shipping",
        "destinations": [{
            "id": "home", "street_address": "Main Street 1", "address_locality": "Town", "postal_code": "8000",
            "address_country": country,
        }],
        "selected_destination_id": "home",
        "groups": [{ "selected_option_id": option }],
    }] } })
}

/// Returns the codes of a result's messages.
pub fn codes(body: &Value) -> Vec<&str> {
    body["messages"].as_array().unwrap().iter().map(|message| message["code"].as_str().unwrap()).collect()
}

/// Returns the amount of a part of the total.
pub fn amount(body: &Value, kind: &str) -> Option<i64> {
    body["totals"].as_array().unwrap().iter().find(|total| total["type"] == kind)?["amount"].as_i64()
}

/// Returns the status and the code of a refused request.
pub fn refused(answer: &Answered) -> (u16, &str) {
    (answer.status, answer.code().unwrap_or_default())
}
