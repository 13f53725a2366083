//! Customers with wallets, in a separate table for each test.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Services};
use key_schema::customer::{self, Customer};
use key_schema::id::{Born, CustomerId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use serde_json::{Value, json};

pub struct Bank {
    pub test: TestTable,
    pub services: Services,
    routes: Routes<Services>,
}

/// Builds an amount in US dollars from cents.
pub fn usd(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "USD" })
}

pub fn euros(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "EUR" })
}

/// Builds the request of staff that pays into a customer's wallet.
pub fn deposit(to: &str, body: &Value, key: &str) -> Call {
    let call = Call::new("POST /v1/customers/{id}/wallet/deposits").path("id", to);
    call.header("idempotency-key", key).json(body).staff("s1")
}

/// Builds a transfer request of the payer.
pub fn transfer(from: &str, to: &str, amount: &Value, key: &str) -> Call {
    let body = json!({ "from": from, "to": to, "amount": amount });
    Call::new("POST /v1/transfers").header("idempotency-key", key).json(&body).customer(from)
}

pub fn balance_of(customer: &str) -> Call {
    Call::new("GET /v1/customers/{id}/wallet").path("id", customer)
}

pub fn entries_of(customer: &str) -> Call {
    Call::new("GET /v1/customers/{id}/wallet/entries").path("id", customer)
}

impl Bank {
    /// Creates a table with these customers, whose wallets do not exist yet.
    pub async fn open(customers: &[&str]) -> Self {
        let test = TestTable::create().await;
        let bank = Self { services: test.services(), test, routes: wallet::routes() };
        for id in customers {
            bank.join(id).await;
        }
        bank
    }

    /// Adds a customer.
    pub async fn join(&self, id: &str) {
        let profile = Customer::new(
            CustomerId::new(id).unwrap(),
            format!("{}@example.com", id.replace([' ', '#', '/'], "-")).parse().unwrap(),
            id.parse().unwrap(),
            id.to_owned(),
        );
        let profile = Stored::new(profile, Born::new(id).unwrap(), Instant::now());
        self.services.table.transact(&customer::create(&profile).unwrap()).await.unwrap().unwrap();
    }

    /// Erases a customer.
    pub async fn leave(&self, id: &str) {
        let id = CustomerId::new(id).unwrap();
        let profile = self.services.table.get(&customer::read_for_update(&id).unwrap()).await.unwrap().unwrap();
        self.services.table.transact(&customer::delete(&profile, Instant::now()).unwrap()).await.unwrap().unwrap();
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.services).await
    }

    /// Sends a request as a client that retries after 503, the response of a contended table.
    pub async fn settled(&self, call: impl Fn() -> Call) -> Answered {
        let mut answer = self.send(call()).await;
        for _ in 0..20 {
            if answer.status != 503 {
                break;
            }
            answer = self.send(call()).await;
        }
        answer
    }

    /// Returns the raw HTTP response.
    pub async fn raw(&self, call: &Call) -> ApiGatewayV2httpResponse {
        self.routes.answer(&self.services, serde_json::from_value(call.event()).unwrap()).await
    }

    /// Pays an amount in and expects success.
    pub async fn pay_in(&self, to: &str, amount: &Value) {
        let key = format!("paid into {to}: {:x}", fastrand::u64(..));
        let answer = self.send(deposit(to, &json!({ "amount": amount }), &key)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    }

    /// Returns a wallet's balance in US dollars, and checks all its balances.
    pub async fn balance(&self, customer: &str) -> i64 {
        self.balance_in(customer, "USD").await
    }

    /// Returns a wallet's balance in a currency. Checks that the entries of each currency add up to
    /// its balance, and that the response shows exactly the balances above zero.
    pub async fn balance_in(&self, customer: &str, currency: &str) -> i64 {
        let answer = self.send(balance_of(customer).staff("s1")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let entries = self.entries(customer, 7).await;
        let mut sums = BTreeMap::<String, i64>::new();
        for entry in &entries {
            let amount: Money = serde_json::from_value(entry["amount"].clone()).unwrap();
            *sums.entry(amount.currency.to_string()).or_default() += amount.amount;
        }
        let shown = sums.iter().filter(|(_, amount)| **amount != 0);
        let shown: Vec<Value> =
            shown.map(|(currency, amount)| json!({ "amount": amount, "currency": currency })).collect();
        assert_eq!(answer.body["balances"], json!(shown), "the entries of {customer} come to the balances");
        let of = |currency: &str| sums.get(currency).copied().unwrap_or(0);
        assert_eq!(answer.body["balance"], usd(of("USD")));
        assert_eq!(answer.body["version"], entries.len(), "each entry is one change of the wallet");
        assert!(sums.values().all(|amount| *amount >= 0));
        of(currency)
    }

    /// Opens a wallet in another currency, as earlier versions did.
    pub async fn open_in(&self, customer: &str, currency: &str, amount: i64) {
        let money = json!({ "amount": amount, "currency": currency });
        self.pay_in(customer, &money).await;
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let update = self.test.client().update_item().table_name(self.test.name());
        let update = update.key("PK", key(&format!("WALLET#{customer}"))).key("SK", key("WALLET"));
        let update = update.update_expression("SET currency = :c, amount = :a REMOVE #c");
        let update = update.expression_attribute_names("#c", currency);
        let update = update.expression_attribute_values(":c", key(currency));
        update.expression_attribute_values(":a", AttributeValue::N(amount.to_string())).send().await.unwrap();
    }

    /// Returns the currency that a wallet's `amount` has.
    pub async fn stored_currency(&self, customer: &str) -> String {
        let wallet = key_schema::wallet::read_for_update(&CustomerId::new(customer).unwrap()).unwrap();
        self.services.table.get(&wallet).await.unwrap().unwrap().currency.to_string()
    }

    /// Returns all entries of a wallet, read in pages of `limit`.
    pub async fn entries(&self, customer: &str, limit: usize) -> Vec<Value> {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let call = entries_of(customer).query("limit", &limit.to_string()).staff("s1");
            let call = cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor));
            let answer = self.send(call).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            found.extend(answer.body["items"].as_array().unwrap().iter().cloned());
            match answer.body["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return found,
            }
        }
    }

    /// Sets an attribute of an item directly in the table, without any check.
    pub async fn set(&self, pk: &str, sk: &str, attribute: &str, value: AttributeValue) {
        let update = self.test.client().update_item().table_name(self.test.name()).update_expression("SET #a = :a");
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let update = update.key("PK", key(pk)).key("SK", key(sk)).expression_attribute_names("#a", attribute);
        update.expression_attribute_values(":a", value).send().await.unwrap();
    }

    /// Makes the table fail from now on.
    pub fn break_with(&self, kind: FaultKind, rate: f64, count: Option<u32>, seed: u64) {
        self.test.faults().add(Fault { kind, rate, count, seed }).unwrap();
    }

    /// Ends the table's faults. Returns how many faults occurred.
    pub fn clear_faults(&self) -> u64 {
        let fired = self.test.faults().counts().iter().map(|count| count.fired).sum();
        self.test.faults().clear();
        fired
    }
}
