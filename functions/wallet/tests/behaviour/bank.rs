//! Customers with wallets, in a separate table for each test.

use std::collections::BTreeMap;
use std::ops::Deref;

use fixture::{Harness, TestTable};
use http_api::Services;
use http_api::sample::Call;
use key_schema::money::Money;
use serde_json::{Value, json};

pub struct Bank(Harness<Services>);

impl Deref for Bank {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Builds an amount in US dollars from cents.
pub fn usd(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "USD" })
}

pub fn euros(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "EUR" })
}

/// Builds staff's request to pay into a customer's wallet.
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
        let bank = Self(Harness::start(::wallet::routes(), TestTable::services).await);
        for id in customers {
            bank.sign_up(id).await;
        }
        bank
    }

    /// Pays an amount in and expects success.
    pub async fn pay_in(&self, to: &str, amount: &Value) {
        let key = format!("paid into {to}: {:x}", fastrand::u64(..));
        self.expect(201, deposit(to, &json!({ "amount": amount }), &key)).await;
    }

    /// Returns a wallet's balance in US dollars, and checks all its balances.
    pub async fn balance(&self, customer: &str) -> i64 {
        self.balance_in(customer, "USD").await
    }

    /// Returns a wallet's balance in a currency. Checks that the entries of each currency add up to
    /// its balance, and that the response shows exactly the balances above zero.
    pub async fn balance_in(&self, customer: &str, currency: &str) -> i64 {
        let wallet = self.expect(200, balance_of(customer).staff("s1")).await;
        let entries = self.entries(customer, 7).await;
        let mut sums = BTreeMap::<String, i64>::new();
        for entry in &entries {
            let amount: Money = serde_json::from_value(entry["amount"].clone()).unwrap();
            *sums.entry(amount.currency.to_string()).or_default() += amount.amount;
        }
        let shown = sums.iter().filter(|(_, amount)| **amount != 0);
        let shown: Vec<Value> =
            shown.map(|(currency, amount)| json!({ "amount": amount, "currency": currency })).collect();
        assert_eq!(wallet["balances"], json!(shown), "the entries of {customer} sum to the balances");
        let of = |currency: &str| sums.get(currency).copied().unwrap_or(0);
        assert_eq!(wallet["balance"], usd(of("USD")));
        assert_eq!(wallet["version"], entries.len(), "each entry is one change of the wallet");
        assert!(sums.values().all(|amount| *amount >= 0));
        of(currency)
    }

    /// Returns all entries of a wallet, read in pages of `limit`.
    pub async fn entries(&self, customer: &str, limit: usize) -> Vec<Value> {
        self.all(&entries_of(customer).staff("s1"), limit).await.0
    }
}
