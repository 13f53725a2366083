//! Orders in a table, the local payment provider, and a cashier between them.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bus::queue::Batch;
use cashier::{Cashier, Round};
use emulators::faults::{Fault, FaultKind};
use emulators::payments::{PaymentServer, Settings};
use fixture::records::{delivered, detail};
use fixture::seed::{self, usd};
use fixture::{TestTable, records};
use key_schema::id::{OperationId, OrderId, PaymentId};
use key_schema::instant::Instant;
use key_schema::order::{self, Order, PlacedOrder};
use key_schema::payment::{CaptureMode, Ledger, LedgerError, Payment, PaymentOperation};
use payments::{Account, Keys, Stripe};
use serde_json::{Value, json};
use tokio::time;

pub const TOTAL: i64 = 1000;

pub struct Till {
    test: TestTable,
    pub server: PaymentServer,
    pub stripe: Arc<Stripe>,
    pub cashier: Cashier,
}

impl Deref for Till {
    type Target = TestTable;

    fn deref(&self) -> &TestTable {
        &self.test
    }
}

impl Till {
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        let server = PaymentServer::start(Settings { seed: 7, ..Settings::default() }).await.unwrap();
        let service = aws::Service::new(aws::connector().unwrap(), server.url(), None);
        let stripe = Arc::new(Stripe::new(service, "sk_test_1".to_owned()));
        let account = Account::with(Some(Keys::new(stripe.clone(), Vec::new())));
        let cashier = Cashier::new(test.table(), account);
        test.put(&seed::stored(seed::customer("c1"))).await;
        Self { test, server, stripe, cashier }
    }

    /// Stores a pending order with a card payment that began at `at`.
    pub async fn order(&self, number: u8, capture: CaptureMode, at: Instant) -> (OrderId, PaymentId) {
        let id = order(number);
        let head = Order::new(id.clone(), "c1".parse().unwrap(), at, usd(TOTAL), 0);
        let placed = PlacedOrder::new(records::at_rev(head, 1), Vec::new(), "c1");
        self.transact(&order::place(&placed, &[]).unwrap()).await;
        let payment = PaymentId::generate(at, [number; 10]);
        let new = Payment::card(payment.clone(), &placed.head, usd(TOTAL), capture, at, "c1");
        self.change(&id, at, |ledger| ledger.add(new)).await;
        (id, payment)
    }

    /// Stores an order whose payment the provider has, and that the customer has confirmed. No
    /// webhook has arrived. Returns the provider's id of the payment.
    pub async fn confirmed(&self, number: u8, capture: CaptureMode) -> (OrderId, String) {
        let (id, _) = self.order(number, capture, Instant::now().plus_seconds(-60)).await;
        self.run_round(Instant::now()).await;
        let intent = self.read(&id).await.payments[0].intent.clone().unwrap();
        self.server.confirm(&intent, None).unwrap();
        (id, intent)
    }

    pub async fn change<T>(
        &self,
        id: &OrderId,
        at: Instant,
        act: impl FnOnce(&mut Ledger<'_>) -> Result<T, LedgerError>,
    ) -> T {
        let order = self.read(id).await;
        let mut ledger = order.ledger(at);
        let done = act(&mut ledger).unwrap();
        self.transact(&order::change_payments(&ledger, &[]).unwrap()).await;
        done
    }

    pub async fn read(&self, id: &OrderId) -> PlacedOrder {
        PlacedOrder::of(self.own().query(&order::read_for_update(id).unwrap()).await.unwrap().items).unwrap()
    }

    pub async fn operation(&self, id: &OrderId, operation: &OperationId) -> PaymentOperation {
        self.read(id).await.operations.into_iter().find(|known| known.id == *operation).unwrap().data
    }

    /// Takes messages in one batch and returns the ids of the failed messages.
    pub async fn take(&self, messages: &[Value]) -> Vec<String> {
        let batch: Batch = serde_json::from_value(json!({"Records": messages})).unwrap();
        let answer = self.cashier.take(&batch, far()).await;
        answer.failed().into_iter().map(ToOwned::to_owned).collect()
    }

    pub async fn run_round(&self, now: Instant) -> Round {
        self.cashier.run_round(now, far()).await.unwrap()
    }

    /// Makes the provider refuse all calls.
    pub fn fail(&self) {
        self.server.faults().add(Fault { kind: FaultKind::Throttle, rate: 1.0, count: None, seed: 0 }).unwrap();
    }

    pub fn recover(&self) {
        self.server.faults().clear();
    }
}

fn far() -> time::Instant {
    time::Instant::now() + Duration::from_secs(60)
}

pub fn order(number: u8) -> OrderId {
    OrderId::generate("2026-11-20T12:00:00.000Z".parse().unwrap(), [number; 10])
}

/// Returns a message that a payment has changed.
pub fn notified(id: &str, intent: &str, order: Option<&OrderId>) -> Value {
    let data = json!({"intent": intent, "order_id": order});
    message(id, &detail("PaymentNotified", 7, "2026-11-20T12:00:00.000Z", &data))
}

pub fn message(id: &str, detail: &Value) -> Value {
    json!({"messageId": id, "body": delivered(detail).to_string()})
}
