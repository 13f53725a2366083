//! Tests of what agents hear about their orders.

use agents::profiles::Profiles;
use agents::{App, notices};
use aws::Reach;
use aws_sdk_dynamodb::types::AttributeValue;
use bus::queue::Batch;
use bus::{Data, Event, OrderPlaced, OrderStatusChanged, PaymentReversed, Reversal};
use emulators::faults::FaultKind;
use fixture::CURSOR_KEYS;
use fixture::records::delivered;
use http_api::Keys;
use http_api::sample::Call;
use key_schema::agent;
use key_schema::id::{Born, EndpointId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{OrderStatus, PlacedOrder};
use key_schema::payment::PaymentMethod;
use key_schema::webhook_delivery::{self, DeliveryState, WebhookDelivery};
use key_schema::webhook_endpoint::{self, Disabled, DisabledReason, WebhookEndpoint};
use key_schema::webhook_secret::{SecretSeed, WebhookKeys};
use serde_json::{Value, json};
use signatures::SigningKeys;

use crate::acp;
use crate::profiles::Platform;
use crate::shop::{CREATE, ORDER, Shop, payment, usd, wanted};

const VERSION: &str = "2026-04-08";

/// A shop with an agent that has bought a tea.
struct Sold {
    shop: Shop,
    platform: Platform,
    order: PlacedOrder,
}

impl Sold {
    async fn new() -> Self {
        Self::paying("pm_card_visa").await
    }

    async fn paying(token: &str) -> Self {
        let shop = Shop::reaching(Reach::Any).await;
        let platform = Platform::register(&shop).await;
        let session = shop.expect(201, platform.keyed(CREATE).json(&wanted(&[("tea", 1)]))).await;
        let complete = platform.keyed("POST /ucp/checkout-sessions/{id}/complete");
        let complete = complete.path("id", session["id"].as_str().unwrap());
        shop.ok(complete.json(&payment(token))).await;
        let order = shop.orders().await.remove(0);
        Self { shop, platform, order }
    }

    fn placed(&self, number: u32) -> Value {
        message(number, OrderPlaced::from(&self.order.head.data))
    }

    async fn take(&self, messages: &[Value]) -> (Vec<String>, u32) {
        take(&self.shop, messages).await
    }

    /// Handles a message in another environment, which has read no profile. Returns the number of notices.
    async fn take_anew(&self, message: Value) -> u32 {
        self.fail_anew(message).await.1
    }

    /// Does the same, and returns how many messages failed, too.
    async fn fail_anew(&self, message: Value) -> (usize, u32) {
        let keys = SigningKeys::of(&WebhookKeys::new(CURSOR_KEYS).unwrap());
        let app = App {
            shop: ordering::Shop::new(self.shop.services()),
            search: None,
            signing: Some(Keys::known(keys)),
            profiles: Profiles::new(Reach::Any),
        };
        let (answer, kept) = notices::take(&app, &batch(&[message])).await;
        (answer.failed().len(), kept)
    }

    async fn endpoint(&self) -> Option<Stored<WebhookEndpoint>> {
        let all = self.shop.own().query(&webhook_endpoint::list().unwrap()).await.unwrap().items;
        assert!(all.len() < 2);
        all.into_iter().next()
    }

    async fn deliveries(&self) -> Vec<Stored<WebhookDelivery>> {
        let get = agent::get(&"robot".parse().unwrap()).unwrap();
        let agent = self.shop.own().get(&get).await.unwrap().unwrap();
        let list = webhook_delivery::list(&webhook_endpoint::id_of_agent(&agent)).unwrap();
        self.shop.own().query(&list).await.unwrap().items
    }
}

fn batch(messages: &[Value]) -> Batch {
    serde_json::from_value(json!({ "Records": messages })).unwrap()
}

async fn take(shop: &Shop, messages: &[Value]) -> (Vec<String>, u32) {
    let (answer, kept) = notices::take(&shop.app, &batch(messages)).await;
    (answer.failed().into_iter().map(str::to_owned).collect(), kept)
}

/// Returns a message with an event of now.
fn message(number: u32, data: impl Into<Data>) -> Value {
    let id = format!("{number:032x}").parse().unwrap();
    let event = Event { id, occurred_at: Instant::now(), sequence: 2, correlation_id: None, data: data.into() };
    let detail: Value = serde_json::from_str(&event.to_detail().unwrap()).unwrap();
    json!({ "messageId": format!("m{number}"), "body": delivered(&detail).to_string() })
}

fn changed(order: &PlacedOrder, to: OrderStatus) -> OrderStatusChanged {
    OrderStatusChanged {
        order_id: order.head.id.clone(),
        customer_id: order.head.customer_id.clone(),
        agent: Some("robot".parse().unwrap()),
        from: OrderStatus::Pending,
        to,
        reason: None,
        total: order.head.total,
        placed_at: order.head.placed_at,
    }
}

fn changed_from_paid(order: &PlacedOrder) -> OrderStatusChanged {
    OrderStatusChanged { from: OrderStatus::Paid, ..changed(order, OrderStatus::Picking) }
}

#[tokio::test]
async fn an_event_of_an_agents_order_becomes_one_delivery_with_the_whole_order() {
    let sold = Sold::new().await;
    let reversed = PaymentReversed {
        order_id: sold.order.head.id.clone(),
        customer_id: sold.order.head.customer_id.clone(),
        payment_id: sold.order.payments[0].id.clone(),
        method: PaymentMethod::Card,
        reversal: Reversal::Refund,
        amount: usd(100),
    };
    let placed = sold.placed(1);
    let messages = [placed.clone(), message(2, changed(&sold.order, OrderStatus::Paid)), message(3, reversed), placed];
    assert_eq!(sold.take(&messages).await, (vec![], 3));
    assert_eq!(sold.take(&messages).await, (vec![], 0), "a repeated event makes no second delivery");
    let deliveries = sold.deliveries().await;
    assert_eq!(deliveries.len(), 3);
    let first = deliveries.iter().find(|known| known.event_id == format!("{:032x}", 1)).unwrap();
    assert_eq!((first.kind.as_str(), first.state, first.tries), ("ucp.order", DeliveryState::Pending, 0));
    assert!(first.due_at.unwrap() <= Instant::now());
    let headers = first.signed_headers.as_ref().unwrap();
    assert_eq!(headers["ucp-agent"], "profile=\"https://api.example/.well-known/ucp\"");
    assert_eq!((&headers["webhook-id"], &headers["idempotency-key"]), (&first.event_id, &first.event_id));
    assert!(headers["webhook-timestamp"].parse::<i64>().is_ok());

    let read = sold.platform.keyed(ORDER).path("id", sold.order.head.id.as_str());
    let mut read = sold.shop.expect(200, read).await;
    let body: Value = serde_json::from_str(&first.body).unwrap();
    // The link of the buyer is a secret, and the log of deliveries keeps none.
    let link = read["permalink_url"].as_str().unwrap();
    let (page, token) = link.split_once("#token=").unwrap();
    assert!(!first.body.contains(token) && !first.body.contains("gil@example.com"));
    read["permalink_url"] = json!(page);
    assert_eq!(body, read);

    let endpoint = sold.endpoint().await.unwrap();
    assert_eq!(endpoint.url, sold.platform.receiver.url);
    assert!(endpoint.kinds.is_empty() && endpoint.secrets.is_empty());
}

#[tokio::test]
async fn a_payment_after_the_placing_is_told_once() {
    let sold = Sold::new().await;
    let mut placed = OrderPlaced::from(&sold.order.head.data);
    placed.status = OrderStatus::Pending;
    let messages = [message(1, placed), message(2, changed(&sold.order, OrderStatus::Paid))];
    assert_eq!(sold.take(&messages).await, (vec![], 1), "the order is paid when the first message is handled");
    assert_eq!(sold.deliveries().await[0].event_id, format!("{:032x}", 2));
}

#[tokio::test]
async fn an_order_that_was_cancelled_and_paid_after_all_goes_on() {
    let sold = Sold::new().await;
    let mut cancelled = sold.order.history[0].clone();
    cancelled.data.status = OrderStatus::Cancelled;
    sold.shop.put(&cancelled).await;
    let read = || sold.platform.keyed(ORDER).path("id", sold.order.head.id.as_str());
    assert_eq!(sold.shop.expect(200, read()).await["adjustments"], json!([]));
    // Its line keeps a name that means the same product without the session.
    let session = &sold.order.head.origin.as_ref().unwrap().checkout;
    sold.shop.delete_at(&format!("CHECKOUT#{session}"), "CHECKOUT").await;
    assert_eq!(sold.shop.expect(200, read()).await["line_items"][0]["id"], "tea");
}

#[tokio::test]
async fn an_agent_hears_of_no_order_that_was_not_paid_and_of_nobody_elses() {
    let unpaid = Sold::paying("pm_card_chargeDeclined").await;
    assert_eq!(unpaid.order.head.status, OrderStatus::Pending);
    let cancelled = message(2, changed(&unpaid.order, OrderStatus::Cancelled));
    assert_eq!(unpaid.take(&[unpaid.placed(1), cancelled]).await, (vec![], 0));

    let sold = Sold::new().await;
    let mut unknown = OrderPlaced::from(&sold.order.head.data);
    unknown.order_id = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
    assert_eq!(sold.take(&[message(1, unknown)]).await, (vec![], 0));
    let key = format!("ORDER#{}", sold.order.head.id);
    sold.shop.set(&key, "ORDER", "origin", AttributeValue::Null(true)).await;
    assert_eq!(sold.take(&[sold.placed(2)]).await, (vec![], 0), "a customer's own order");
    assert!(sold.deliveries().await.is_empty() && sold.endpoint().await.is_none());
}

#[tokio::test]
async fn the_address_follows_the_profile_and_staff_can_close_it() {
    let sold = Sold::new().await;
    assert_eq!(sold.take(&[sold.placed(1)]).await.1, 1);
    let put = |scopes: Value, version: u64| {
        let body = json!({ "name": "x", "profile_url": sold.platform.profile_url, "scopes": scopes });
        let call = Call::new("PUT /v1/agents/{id}").path("id", "robot").staff("sam");
        call.header("if-match", &format!("\"{version}\"")).json(&body)
    };
    sold.shop.ok(put(json!(["checkout"]), 1)).await;
    assert_eq!(sold.take(&[sold.placed(2)]).await.1, 0, "without the scope");
    sold.shop.ok(put(json!(["checkout", "orders"]), 2)).await;

    let endpoint = sold.endpoint().await.unwrap();
    let disabled = Some(Disabled { reason: DisabledReason::Gone, at: Instant::now() });
    let gone = WebhookEndpoint { disabled, ..endpoint.data.clone() };
    let change = webhook_endpoint::change(&gone, endpoint.meta.version, false, Instant::now()).unwrap();
    sold.shop.own().update(&change).await.unwrap().unwrap();
    assert_eq!(sold.take(&[sold.placed(3)]).await.1, 0, "a disabled endpoint gets nothing");

    // Another environment reads the new address.
    let url = sold.platform.receiver.url.replace("shop=1", "shop=2");
    sold.platform.describe_at(&url, VERSION, &["checkout", "order"], &sold.platform.keys());
    assert_eq!(sold.take_anew(sold.placed(4)).await, 1, "another address begins without failures");
    let endpoint = sold.endpoint().await.unwrap();
    assert_eq!((endpoint.url.as_str(), endpoint.disabled), (url.as_str(), None));

    // Without an address the agent wants to hear nothing.
    sold.platform.describe(VERSION, &["checkout"], &sold.platform.keys());
    assert_eq!(sold.take_anew(sold.placed(5)).await, 0);

    sold.shop.ok(Call::new("DELETE /v1/agents/{id}").path("id", "robot").staff("sam")).await;
    assert!(sold.endpoint().await.is_none(), "the endpoint is removed with its agent");
    assert_eq!(sold.take(&[sold.placed(6)]).await, (vec![], 0));
}

#[tokio::test]
async fn an_agent_hears_over_acp_at_the_endpoints_that_staff_register_for_it() {
    let sold = Sold::new().await;
    assert_eq!(sold.take(&[sold.placed(1)]).await.1, 1);
    let seed = SecretSeed { key: "test".to_owned(), nonce: "n".to_owned(), created_at: Instant::now(), ends_at: None };
    let endpoint = |number: u8, agent: &str| WebhookEndpoint {
        id: EndpointId::generate(Instant::now(), [number; 10]),
        agent: Some(agent.parse().unwrap()),
        secrets: vec![seed.clone()],
        failing_since: None,
        url: format!("https://agent.example/{number}"),
        kinds: [].into(),
        description: None,
        disabled: None,
    };
    let [one, two, other] = [endpoint(1, "robot"), endpoint(2, "robot"), endpoint(3, "other")];
    let former = Stored::new(endpoint(4, "robot"), Born::new("former").unwrap(), Instant::EPOCH);
    let new = |endpoint: &WebhookEndpoint| {
        Stored::new(endpoint.clone(), Born::new(endpoint.id.as_str()).unwrap(), Instant::now())
    };
    for endpoint in [new(&one), new(&two), new(&other), former.clone()] {
        sold.shop.own().transact(&webhook_endpoint::create(&endpoint, None).unwrap()).await.unwrap().unwrap();
    }
    // The agent's server has no profile for ACP, and none is needed.
    sold.platform.receiver.withdraw(503);
    let messages = [message(2, changed(&sold.order, OrderStatus::Paid)), message(3, changed_from_paid(&sold.order))];
    for kept in [2, 0] {
        assert_eq!(sold.take(&messages).await, (vec![], kept));
    }
    let log = async |id: &EndpointId| sold.shop.own().query(&webhook_delivery::list(id).unwrap()).await.unwrap().items;
    for endpoint in [&one, &two] {
        let mut told = log(&endpoint.id).await;
        told.sort_by(|one, other| one.event_id.cmp(&other.event_id));
        let bodies: Vec<Value> = told.iter().map(|told| serde_json::from_str(&told.body).unwrap()).collect();
        assert_eq!(bodies.iter().map(|body| &body["type"]).collect::<Vec<_>>(), ["order_create", "order_update"]);
        for (told, body) in told.iter().zip(&bodies) {
            acp::check("Order", &body["data"]);
            assert_eq!((told.kind.as_str(), &told.signed_headers), ("acp.order", &None));
            assert_eq!(
                (&body["data"]["type"], &body["data"]["status"], &body["data"]["line_items"][0]["quantity"]),
                (&json!("order"), &json!("confirmed"), &json!({ "ordered": 1, "current": 1, "fulfilled": 0 }))
            );
            assert!(!told.body.contains("#token=") && !told.body.contains("gil@example.com"));
        }
    }
    assert!(log(&other.id).await.is_empty() && log(&former.id).await.is_empty());
    assert_eq!(sold.deliveries().await.len(), 1, "nothing over UCP any more");
    // An endpoint that staff disable gets nothing, and the profile's does not take its place.
    for endpoint in [&one, &two] {
        let disabled = Some(Disabled { reason: DisabledReason::Staff, at: Instant::now() });
        let closed = WebhookEndpoint { disabled, ..endpoint.clone() };
        let change = webhook_endpoint::change(&closed, 1, false, Instant::now()).unwrap();
        sold.shop.own().update(&change).await.unwrap().unwrap();
    }
    assert_eq!(sold.take(&[sold.placed(5)]).await, (vec![], 0));
}

#[tokio::test]
async fn an_agent_that_was_registered_again_gets_nothing_of_the_former() {
    let sold = Sold::new().await;
    assert_eq!(sold.take(&[sold.placed(1)]).await.1, 1);
    let (former, endpoint) = (sold.deliveries().await, sold.endpoint().await.unwrap());
    let get = agent::get(&"robot".parse().unwrap()).unwrap();
    let agent = sold.shop.own().get(&get).await.unwrap().unwrap();
    let call = |route| Call::new(route).path("id", "robot").staff("sam");
    sold.shop.ok(call("DELETE /v1/agents/{id}")).await;
    let body = json!({ "name": "x", "profile_url": sold.platform.profile_url, "scopes": ["orders"] });
    sold.shop.expect(201, call("PUT /v1/agents/{id}").header("if-none-match", "*").json(&body)).await;
    // An event that was being handled meanwhile gives the removed agent no endpoint again.
    let adopt = webhook_endpoint::adopt(&endpoint, &agent).unwrap();
    assert!(sold.shop.own().transact(&adopt).await.unwrap().is_err());
    assert_eq!(sold.take(&[sold.placed(2)]).await, (vec![], 0));
    assert!(sold.endpoint().await.is_none() && sold.deliveries().await.is_empty());
    assert_eq!(former.len(), 1);
}

#[tokio::test]
async fn a_message_that_fails_is_handled_again_and_the_last_address_counts_without_a_profile() {
    let sold = Sold::new().await;
    assert_eq!(sold.take(&[sold.placed(1)]).await.1, 1);
    sold.platform.receiver.serve("no profile any more");
    assert_eq!(sold.take_anew(sold.placed(2)).await, 1);
    sold.shop.break_with(FaultKind::Error, 1.0, None, 1);
    let broken = json!({ "messageId": "m9", "body": "{}" });
    let (failed, kept) = sold.take(&[sold.placed(3), broken]).await;
    assert_eq!((failed, kept), (vec!["m3".to_owned(), "m9".to_owned()], 0));
    sold.shop.clear_faults();
    assert_eq!(sold.take(&[sold.placed(3)]).await, (vec![], 1));

    // An agent without an address hears later, unless it has no profile at all.
    let sold = Sold::new().await;
    sold.platform.receiver.withdraw(503);
    assert_eq!(sold.fail_anew(sold.placed(1)).await, (1, 0));
    sold.platform.receiver.withdraw(404);
    assert_eq!(sold.fail_anew(sold.placed(1)).await, (0, 0));
}
