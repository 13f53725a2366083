use emulators::payments::sign;
use key_schema::expiration::{Expiration, RemovedBy};
use key_schema::id::{Born, EndpointId, LogId};
use key_schema::instant::Instant;
use key_schema::item::{Item, Stored};
use key_schema::lists;
use key_schema::media::MediaObject;
use key_schema::order::OrderLog;
use key_schema::picture::{Picture, ProductPictures};
use key_schema::webhook_delivery::{DeliveryState, LIFETIME_SECONDS, WebhookDelivery};
use key_schema::webhook_endpoint::{Disabled, DisabledReason, WebhookEndpoint, WebhookEndpoints};
use local::System;
use serde_json::{Value as Json, json};

use super::bodies::{address, body, document, points, promotion, question, settings, shop, tax_rule, zone};
use super::client::{Call, http};
use super::openapi::Operation;
use super::shop::{customer, import, moved, order, path, product_body};
use super::table::put_item;

/// An endpoint for webhooks, and two deliveries to it. It is disabled, so that nothing is sent.
const ENDPOINT: &str = "019aa136-7c00-7aaa-8bbb-0000000004bb";
const DELIVERIES: [&str; 2] = ["019aa136-7c00-7aaa-8bbb-0000000005bb", "019aa136-7c00-7aaa-8bbb-0000000005cc"];

/// The ids of records in the test data. [`World::create`] creates the records.
pub struct World {
    /// An order in status `picking`.
    order: String,
    /// A pending order to pay.
    unpaid: String,
    /// Orders with payments: an authorised one, one that the customer has not made, and one that
    /// staff reported.
    payments: [(String, String); 3],
    invoice: String,
    session: String,
    question: String,
    /// The guest carts with their tokens: one to change, one to delete, one to claim, and two with a line:
    /// one to quote and one to order.
    guest_carts: [(String, String); 5],
    /// A guest's order with its token.
    guest_order: (String, String),
    /// The id of an uploaded text.
    upload: String,
    /// The instant of the two points of the metric `bad-metric`.
    measured: String,
}

/// A valid staff request. A test can make each of its parts invalid.
#[derive(Debug, Clone)]
pub struct Good {
    pub method: &'static str,
    pub parameters: Vec<(String, String)>,
    pub template: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Option<Json>,
    pub content_type: &'static str,
}

impl Good {
    /// The values of `self` must already be percent-encoded.
    pub fn url(&self) -> String {
        let path = self
            .parameters
            .iter()
            .fold(self.template.clone(), |path, (name, value)| path.replace(&format!("{{{name}}}"), value));
        let query: Vec<String> = self.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }

    /// Returns the request without a token and without a body.
    pub fn bare(&self) -> Call {
        self.headers.iter().fold(Call::new(self.method, &self.url()), |call, (name, value)| call.header(name, value))
    }

    pub fn anonymous(&self) -> Call {
        match &self.body {
            Some(body) => self.bare().header("content-type", self.content_type).body(body.to_string()),
            None => self.bare(),
        }
    }

    pub fn call(&self) -> Call {
        self.anonymous().staff()
    }

    /// Writes `me` instead of this customer's id, in the path, the query and the body. Returns
    /// whether the request has the id.
    pub fn say_me(&mut self, customer: &str) -> bool {
        let mut texts: Vec<&mut String> =
            self.parameters.iter_mut().chain(&mut self.query).map(|(_, value)| value).collect();
        let fields = self.body.as_mut().and_then(Json::as_object_mut);
        texts.extend(fields.into_iter().flat_map(|fields| fields.values_mut()).filter_map(|value| match value {
            Json::String(text) => Some(text),
            _ => None,
        }));
        texts.retain(|text| *text == customer);
        for text in &mut texts {
            **text = "me".to_owned();
        }
        !texts.is_empty()
    }
}

impl World {
    /// Creates the test data. Every list with pages has at least two entries.
    ///
    /// The customer `bad-ann` owns most of the data. The organization `bad-org` has the members
    /// `bad-ann` and `bad-cat`. Its admin `bad-bob` can manage its documents.
    pub async fn create(system: &System) -> Self {
        let customers = ["bad-ann", "bad-bob", "bad-cat"];
        for id in customers {
            customer(system, id).await;
            let moved = Call::new("PATCH", &path(&["customers", id])).staff().header("if-match", "\"1\"");
            moved.json(&json!({ "place": { "country": "bad", "city": "x" } })).send(system).await.expect(200);
        }
        for invited in ["bad-dan", "bad-eva"] {
            customer(system, invited).await;
        }
        let put = |path: String, body: Json| Call::new("PUT", &path).staff().json(&body);
        let new = |call: Call| call.header("if-none-match", "*");
        // The settings come first, because they allow orders without a quote.
        for call in [
            put("/v1/settings".to_owned(), settings()),
            put(path(&["shipping", "zones", "bad-zone"]), zone("DE")),
            put(path(&["shipping", "zones", "bad-zone-2"]), zone("FR")),
            put(path(&["tax", "rules", "bad-tax"]), tax_rule("DE")),
            put(path(&["tax", "rules", "bad-tax-2"]), tax_rule("FR")),
        ] {
            new(call).send(system).await.expect(201);
        }
        for (id, code) in [("bad-promotion", "SUMMER"), ("bad-promotion-2", "WINTER")] {
            let call = Call::new("POST", "/v1/promotions").staff().json(&promotion(id, code));
            call.send(system).await.expect(201);
        }
        let categories = [["bad", "x"], ["bad", "y"]];
        let products = ["bad-1", "bad-2"];
        let bodies: Vec<Json> =
            products.iter().zip(&categories).map(|(id, path)| product_body(id, path, 1000)).collect();
        import(system, &bodies).await;

        let own = |segments: &[&str]| path(&[&["customers", "bad-ann"], segments].concat());
        let mut orders = Vec::new();
        for (key, way) in [
            ("pending-1", &[][..]),
            ("pending-2", &[]),
            ("shipped-1", &["paid", "picking", "shipped"]),
            ("shipped-2", &["paid", "picking", "shipped"]),
            ("picking", &["paid", "picking"]),
        ] {
            let placed = order(system, "bad-ann", &[("bad-1", 1)], &format!("bad-{key}")).await;
            orders.push(moved(system, placed, way).await["id"].as_str().unwrap().to_owned());
        }
        let order = orders.pop().unwrap();
        let mut unpaid = Vec::new();
        for key in ["to-pay", "authorised", "to-cancel"] {
            let placed = self::order(system, "bad-ann", &[("bad-1", 1)], &format!("bad-{key}")).await;
            unpaid.push(placed["id"].as_str().unwrap().to_owned());
        }
        let pay = async |order: &str| {
            let call = Call::new("POST", &path(&["orders", order, "payments"])).staff();
            call.json(&json!({ "method": "card" })).send(system).await.body
        };
        let authorised = pay(&unpaid[1]).await;
        let intent = authorised["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
        let confirm = Call::new("POST", &format!("/_local/payments/{intent}/confirm")).json(&json!({}));
        confirm.send(system).await.expect(200);
        let to_cancel = pay(&unpaid[2]).await;
        pay(&unpaid[1]).await;
        let reported = Call::new("GET", &path(&["orders", &order, "payments"])).staff().send(system).await.expect(200);
        let id = |payment: &Json| payment["id"].as_str().unwrap().to_owned();
        let payments = [
            (unpaid[1].clone(), id(&authorised)),
            (unpaid[2].clone(), id(&to_cancel)),
            (order.clone(), id(&reported.body["items"][0])),
        ];
        let bare = |path: String| Call::new("POST", &path).staff().header("if-match", "\"1\"");
        let post = |path: String, body: Json| Call::new("POST", &path).staff().json(&body);
        let review = json!({ "rating": 4, "title": "T", "text": "T" });
        let invite = |organization: &str, customer: &str| {
            let call = Call::new("PUT", &path(&["organizations", organization, "members", customer]));
            call.customer("bad-bob").json(&json!({ "role": "member" }))
        };
        let follow = |id: &str, other: &str| Call::new("PUT", &path(&["customers", id, "following", other])).staff();
        let like = |id: &str, product: &str| Call::new("PUT", &path(&["customers", id, "likes", product])).staff();
        let log = path(&["orders", &order, "log"]);
        let measured = Instant::now();
        let sold = |store: &str| {
            let line = json!({ "product_id": "bad-1", "quantity": 1 });
            let order = json!({
                "customer_id": "bad-bob", "placed_at": "2017-01-01T00:00:00Z", "store_id": store, "lines": [line],
            });
            post("/v1/orders".to_owned(), order).header("idempotency-key", &format!("bad sold in {store}"))
        };
        let paid_in = |key: &str| {
            let amount = json!({ "amount": 5000, "currency": "USD" });
            let call = post(own(&["wallet", "deposits"]), json!({ "amount": amount, "note": "N" }));
            call.header("idempotency-key", &format!("bad paid in {key}"))
        };
        for call in [
            put(own(&["addresses", "home"]), address()),
            put(own(&["cart", "items", "bad-1"]), json!({ "quantity": 1 })),
            new(put(path(&["products", "bad-1", "content"]), json!({ "text": "#" }))),
            new(put(path(&["products", "bad-1", "reviews", "bad-ann"]), review.clone())),
            new(put(path(&["products", "bad-2", "reviews", "bad-ann"]), review.clone())),
            new(put(path(&["products", "bad-1", "reviews", "bad-bob"]), review)),
            post(log.clone(), json!({ "text": "one" })),
            post(log, json!({ "text": "two" })),
            post(own(&["sessions"]), json!({ "device": "one" })),
            new(put(path(&["stores", "bad-shop"]), shop())),
            new(put(path(&["locations", "bad-location"]), json!({ "name": "Hall" }))),
            new(put(path(&["agents", "bad-agent"]), body("putAgent"))),
            new(put(path(&["categories", "bad-mover"]), json!({ "title": "T" }))),
            follow("bad-ann", "bad-bob"),
            follow("bad-ann", "bad-cat"),
            follow("bad-bob", "bad-ann"),
            follow("bad-cat", "bad-ann"),
            like("bad-ann", "bad-1"),
            like("bad-ann", "bad-2"),
            like("bad-bob", "bad-1"),
            post(own(&["questions"]), question()),
            post("/v1/metrics".to_owned(), points(measured)),
            post("/v1/counters/bad-views".to_owned(), json!({ "add": 5 })),
            paid_in("1"),
            paid_in("2"),
            sold("330"),
            sold("331"),
        ] {
            let answer = call.send(system).await;
            assert!((200..300).contains(&answer.status), "{}", answer.body);
        }
        for call in [
            post("/v1/organizations".to_owned(), json!({ "id": "bad-org", "name": "N" })),
            post("/v1/organizations".to_owned(), json!({ "id": "bad-org-2", "name": "N" })),
            new(put(path(&["organizations", "bad-org", "teams", "bad-team"]), json!({ "name": "N" }))),
            put(path(&["organizations", "bad-org", "members", "bad-ann"]), json!({ "role": "member" })),
            put(path(&["organizations", "bad-org-2", "members", "bad-ann"]), json!({ "role": "member" })),
            put(path(&["organizations", "bad-org", "members", "bad-bob"]), json!({ "role": "admin" })),
            put(path(&["organizations", "bad-org", "members", "bad-cat"]), json!({ "role": "member" })),
            post("/v1/organizations".to_owned(), json!({ "id": "bad-org-3", "name": "N" })),
            post("/v1/organizations".to_owned(), json!({ "id": "bad-org-4", "name": "N" })),
            put(path(&["organizations", "bad-org-3", "members", "bad-bob"]), json!({ "role": "admin" })),
            put(path(&["organizations", "bad-org-4", "members", "bad-bob"]), json!({ "role": "admin" })),
            invite("bad-org", "bad-dan"),
            invite("bad-org", "bad-eva"),
            invite("bad-org-3", "bad-ann"),
            invite("bad-org-4", "bad-ann"),
            post("/v1/documents".to_owned(), document("bad-doc")),
            put(path(&["documents", "bad-doc", "sections", "a"]), json!({ "text": "A" })).header("if-match", "\"1\""),
            post("/v1/documents".to_owned(), document("bad-doc-draft")),
            bare(path(&["documents", "bad-doc-draft", "drafts"])),
            post("/v1/documents".to_owned(), document("bad-doc-discard")),
            bare(path(&["documents", "bad-doc-discard", "drafts"])),
        ] {
            let answer = call.send(system).await;
            assert!((200..300).contains(&answer.status), "{}", answer.body);
        }
        for item in ["one", "two"] {
            let expired = Expiration {
                kind: "Session".to_owned(),
                item: item.to_owned(),
                removed_at: "2017-03-06T09:30:00.000Z".parse().unwrap(),
                sequence_number: "1".to_owned(),
                removed_by: RemovedBy::Ttl,
                archive: Some("expired/x.json".to_owned()),
            };
            put_item(system, &serde_json::to_value(expired.stored().unwrap().to_item().unwrap()).unwrap()).await;
        }
        for text in ["one", "two"] {
            let at: Instant = "2017-03-06T09:30:00.000Z".parse().unwrap();
            let id = LogId::generate(at, [text.as_bytes()[0]; 10]);
            let (order_id, by) = (order.parse().unwrap(), "staff".to_owned());
            let line = OrderLog { id, order_id, at, by, text: text.to_owned(), list_shards: lists::FIRST };
            let line = Stored::new(line, Born::new("bad").unwrap(), at).to_item().unwrap();
            put_item(system, &serde_json::to_value(line).unwrap()).await;
        }
        put_endpoint(system).await;
        let object = MediaObject { id: "bad-picture".parse().unwrap(), content_type: "image/png".to_owned(), bytes: 1 };
        let picture = Picture { object, alt: None, shape: None, added_at: Instant::EPOCH };
        let pictures = ProductPictures { product_id: "bad-1".parse().unwrap(), pictures: vec![picture] };
        let pictures = Stored::new(pictures, Born::new("bad").unwrap(), Instant::EPOCH).to_item().unwrap();
        put_item(system, &serde_json::to_value(pictures).unwrap()).await;
        let session = post(own(&["sessions"]), json!({ "device": "two" })).send(system).await.expect(201);
        let question = post(own(&["questions"]), question()).send(system).await.expect(201);
        let question = question.body["id"].as_str().unwrap().to_owned();
        let invoice = Call::new("POST", &path(&["orders", &order, "invoice"])).staff().send(system).await.expect(201);
        let invoice = invoice.body["number"].to_string();
        let text = json!({ "content_type": "text/plain", "bytes": 5 });
        let permit = post(path(&["products", "bad-1", "content", "uploads"]), text).send(system).await.expect(201).body;
        let put =
            http().put(permit["upload"]["url"].as_str().unwrap()).header("content-type", "text/plain").body("# Ice");
        assert_eq!(put.send().await.unwrap().status().as_u16(), 200);
        let upload = permit["id"].as_str().unwrap().to_owned();
        let mut guest_carts = [const { (String::new(), String::new()) }; 5];
        for cart in &mut guest_carts {
            let created = Call::new("POST", "/v1/carts").send(system).await.expect(201).body;
            *cart = (created["id"].as_str().unwrap().to_owned(), created["token"].as_str().unwrap().to_owned());
        }
        let fill = async || {
            let cart = Call::new("POST", "/v1/carts").send(system).await.expect(201).body;
            let [id, token] = ["id", "token"].map(|name| cart[name].as_str().unwrap().to_owned());
            let line = Call::new("PUT", &path(&["carts", &id, "items", "bad-1"])).json(&json!({ "quantity": 1 }));
            line.header("cart-token", &token).send(system).await.expect(200);
            (id, token)
        };
        let (cart, token) = fill().await;
        let checkout = Call::new("POST", &path(&["carts", &cart, "checkout"])).json(&body("checkoutGuestCart"));
        let guest_order = checkout.header("cart-token", &token).send(system).await.expect(201).body;
        (guest_carts[3], guest_carts[4]) = (fill().await, fill().await);
        let guest_order = ["id", "order_token"].map(|name| guest_order[name].as_str().unwrap().to_owned());
        Self {
            guest_order: guest_order.into(),
            unpaid: unpaid.remove(0),
            payments,
            guest_carts,
            upload,
            measured: measured.to_string(),
            order,
            invoice,
            session: session.body["id"].as_str().unwrap().to_owned(),
            question,
        }
    }

    /// Returns the guest cart that this operation may use, with the cart's token.
    fn guest_cart(&self, operation: &str) -> &(String, String) {
        let [changed, deleted, claimed, quoted, ordered] = &self.guest_carts;
        match operation {
            "deleteGuestCart" => deleted,
            "claimCart" => claimed,
            "quoteGuestCart" => quoted,
            "checkoutGuestCart" => ordered,
            _ => changed,
        }
    }

    /// Returns the order and the payment that this operation may change.
    fn payment(&self, operation: &str) -> Option<&(String, String)> {
        let [authorised, open, reported] = &self.payments;
        match operation {
            "capturePayment" => Some(authorised),
            "cancelPayment" => Some(open),
            "refundPayment" => Some(reported),
            _ => None,
        }
    }

    /// Returns a valid request for an operation, with the record's current version if required.
    pub async fn good(&self, system: &System, operation: Operation<'_>) -> Good {
        let owner = operation.path.split('/').nth(2).unwrap();
        let id = operation.own["operationId"].as_str().unwrap();
        let parameters = operation.parameters().filter(|parameter| parameter["in"] == "path").map(|parameter| {
            let name = parameter["name"].as_str().unwrap();
            let value = match (owner, name) {
                ("customers", "id") | (_, "customer" | "node") => "bad-ann",
                (_, "other") => "bad-bob",
                (_, "picture") if id == "deletePicture" => "bad-gone",
                (_, "picture") => "bad-picture",
                (_, "upload") => &self.upload,
                ("products", "id") | (_, "product") => "bad-1",
                ("orders", "id") if id == "payOrder" => &self.unpaid,
                ("orders", "id") => self.payment(id).map_or(&self.order, |(order, _)| order),
                (_, "payment") => &self.payment(id).unwrap().1,
                ("invoices", "number") => &self.invoice,
                ("sessions", "id") => &self.session,
                ("carts", "id") => &self.guest_cart(id).0,
                ("guest", "id") => &self.guest_order.0,
                ("questions", "id") => &self.question,
                ("stores", "id") => "bad-shop",
                ("locations", "id") => "bad-location",
                ("agents", "id") => "bad-agent",
                ("webhooks", "id") => ENDPOINT,
                ("webhooks", "delivery") => DELIVERIES[0],
                ("shipping", "id") => "bad-zone",
                ("tax", "id") => "bad-tax",
                ("promotions", "id") => "bad-promotion",
                ("sales", "country") => "US",
                ("leaderboards", "by") => "likes",
                ("metrics", "name") => "bad-metric",
                ("metrics", "id") => "1",
                ("counters", "name") => "bad-views",
                ("organizations", "id") => "bad-org",
                ("organizations", "team") => "bad-team",
                // `publishDraft` and `discardDraft` each end a draft, so each has its own document
                // with a draft. Every other operation uses a document without a draft.
                ("documents", "id") => match id {
                    "publishDraft" => "bad-doc-draft",
                    "discardDraft" => "bad-doc-discard",
                    _ => "bad-doc",
                },
                ("documents", "n") => "1",
                ("documents", "name") => "a",
                (_, "name") => "home",
                // The moved category is one that no other request uses.
                (_, "path") if id == "moveCategory" => "bad-mover",
                (_, "path") => "bad",
                other => panic!("{}: no value for the path parameter {other:?}", operation.key()),
            };
            (name.to_owned(), value.to_owned())
        });
        let query: &[(&str, &str)] = match id {
            "findCustomers" => &[("tier", "bronze")],
            "listOrders" => &[("status", "pending")],
            "listQuestions" => &[("status", "open")],
            "listExpirations" | "listLog" => &[("day", "2017-03-06")],
            "listPlaceSales" => &[("month", "2017-01")],
            "readMetricPoint" => &[("at", &self.measured)],
            "listEdges" => &[("kind", "follows")],
            "readProducts" => &[("ids", "bad-1,bad-2")],
            _ => &[],
        };
        let mut good = Good {
            method: operation.method,
            template: operation.path.to_owned(),
            parameters: parameters.collect(),
            query: query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            headers: Vec::new(),
            body: operation.body().map(|_| match id {
                "claimCart" => {
                    let (cart, token) = self.guest_cart(id);
                    json!({ "cart_id": cart, "cart_token": token })
                }
                _ => body(id),
            }),
            content_type: if id == "importProducts" { "application/x-ndjson" } else { "application/json" },
        };
        for parameter in operation.parameters().filter(|parameter| parameter["in"] == "header") {
            match parameter["name"].as_str().unwrap() {
                "If-Match" if parameter["required"] == false => {}
                "If-Match" => {
                    let thing = match owner {
                        "documents" => path(&["documents", &good.parameters[0].1]),
                        "organizations" => path(&["organizations", "bad-org"]),
                        "webhooks" => path(&["webhooks", "endpoints", &good.parameters[0].1]),
                        _ if id == "putContentUpload" => path(&["products", "bad-1", "content"]),
                        _ => good.url().trim_end_matches("/status").to_owned(),
                    };
                    let read = Call::new("GET", &thing).staff().header("order-token", &self.guest_order.1);
                    let found = read.send(system).await.expect(200);
                    // A read of an organization returns the versions of its teams.
                    let tag = if operation.path.contains("{team}") {
                        format!("\"{}\"", found.body["teams"][0]["version"])
                    } else {
                        found.headers["etag"].clone()
                    };
                    good.headers.push(("if-match".to_owned(), tag));
                }
                "Idempotency-Key" => good.headers.push(("idempotency-key".to_owned(), format!("bad {id}"))),
                "Stripe-Signature" => {
                    let body = good.body.as_ref().unwrap().to_string();
                    let now = Instant::now().as_seconds();
                    good.headers.push(("stripe-signature".to_owned(), sign(&["whsec_local"], now, &body)));
                }
                "Order-Token" => good.headers.push(("order-token".to_owned(), self.guest_order.1.clone())),
                "Cart-Token" => good.headers.push(("cart-token".to_owned(), self.guest_cart(id).1.clone())),
                // The record already exists, so the request has no `If-None-Match`.
                "If-None-Match" => {}
                other => panic!("{}: no value for the header {other}", operation.key()),
            }
        }
        good
    }
}

async fn put_endpoint(system: &System) {
    let (at, id) = (Instant::now(), ENDPOINT.parse::<EndpointId>().unwrap());
    let put = async |item: Item| put_item(system, &serde_json::to_value(item).unwrap()).await;
    let born = Born::new("bad").unwrap();
    let endpoint = WebhookEndpoint {
        id: id.clone(),
        agent: None,
        secrets: Vec::new(),
        failing_since: None,
        url: "https://erp.example".to_owned(),
        kinds: ["*".to_owned()].into(),
        description: None,
        disabled: Some(Disabled { reason: DisabledReason::Staff, at }),
    };
    put(Stored::new(endpoint, born.clone(), at).to_item().unwrap()).await;
    put(Stored::new(WebhookEndpoints { endpoints: 1 }, born.clone(), at).to_item().unwrap()).await;
    for delivery in DELIVERIES {
        let delivery = WebhookDelivery {
            id: delivery.parse().unwrap(),
            endpoint_id: id.clone(),
            event_id: format!("{:032x}", 1),
            kind: "order.placed".to_owned(),
            body: "{}".to_owned(),
            signed_headers: None,
            state: DeliveryState::Delivered,
            due_at: None,
            tries: 1,
            expires_at: at.plus_seconds(LIFETIME_SECONDS),
            attempts: Vec::new(),
        };
        put(Stored::new(delivery, born.clone(), at).to_item().unwrap()).await;
    }
}
