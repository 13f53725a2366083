//! Tests of `ops payments reconcile` with the local payment provider.

use std::time::Duration;

use emulators::payments::{PaymentServer, Settings};
use fixture::{TestTable, seed};
use key_schema::id::{OrderId, PaymentId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::{self, Order, OrderStatus, PlacedOrder, Step};
use key_schema::payment::{CaptureMode, Payment, PaymentStatus};
use ops::payments::{Difference, Reconciled, reconcile};
use ops::{Items, Pace};
use payments::{Capture, Provider as _, Stripe};
use workflows::payments::settle;

struct Shop {
    table: TestTable,
    provider: PaymentServer,
    stripe: Stripe,
}

fn dollars(amount: i64) -> Money {
    Money::new(amount, "USD".parse().unwrap())
}

impl Shop {
    async fn open() -> Self {
        let provider = PaymentServer::start(Settings::default()).await.unwrap();
        let service = aws::Service::new(aws::connector().unwrap(), provider.url(), None);
        let stripe = Stripe::new(service, "sk_test_1".to_owned());
        Self { table: TestTable::create().await, provider, stripe }
    }

    /// Places an order and begins a card payment of its total. Returns the provider's id.
    async fn begin(&self, number: u8) -> (OrderId, String) {
        self.begin_with(number, CaptureMode::AtOnce).await
    }

    async fn begin_with(&self, number: u8, capture: CaptureMode) -> (OrderId, String) {
        let now = Instant::now();
        let id = OrderId::generate(now, [number; 10]);
        self.table.sign_up(&format!("c{number}")).await;
        let customer = format!("c{number}").parse().unwrap();
        let head = Stored::new(Order::new(id.clone(), customer, now, dollars(500), 1), seed::born(), now);
        let line =
            Stored { meta: head.meta.clone(), data: seed::line(&id, 1, ProductId::new(format!("p{number}")).unwrap()) };
        let placed = PlacedOrder::new(head, vec![line], "staff");
        for item in [placed.head.to_item().unwrap(), placed.lines[0].to_item().unwrap()] {
            let put = self.table.client().put_item().table_name(self.table.name());
            put.set_item(Some(item.into())).send().await.unwrap();
        }
        self.table.put(&placed.history[0]).await;
        self.table.put(&Stored { meta: placed.head.meta.clone(), data: order::CustomerOrder::of(&placed.head) }).await;
        let placed = self.read(&id).await;
        let mut ledger = placed.ledger(now);
        let payment = PaymentId::generate(now, [number; 10]);
        ledger.add(Payment::card(payment, &placed.head, dollars(500), capture, now, "staff")).unwrap();
        self.table.transact(&order::change_payments(&ledger, &[]).unwrap()).await;
        let settled = settle(self.table.own(), &self.stripe, &id, None).await.unwrap().unwrap();
        (id, settled.order.payments[0].intent.clone().unwrap())
    }

    async fn read(&self, id: &OrderId) -> PlacedOrder {
        let items = self.table.own().query(&order::read_for_update(id).unwrap()).await.unwrap().items;
        PlacedOrder::of(items).unwrap()
    }

    async fn reconcile(&self, fix: bool) -> Reconciled {
        let day = format!("{}T00:00:00.000Z", Instant::now().day()).parse().unwrap();
        let items = Items::new(self.table.client(), self.table.name().to_owned());
        reconcile(&items, &self.stripe, day, fix, &Pace::new(None)).await.unwrap()
    }
}

fn differences(reconciled: &Reconciled) -> Vec<(Difference, bool)> {
    let mut found: Vec<_> = reconciled.found.iter().map(|found| (found.difference, found.repaired)).collect();
    found.sort_unstable();
    found
}

#[tokio::test]
async fn a_payment_without_a_webhook_is_found_and_pays_its_order() {
    let shop = Shop::open().await;
    let (order, intent) = shop.begin(1).await;
    let (other, _) = shop.begin(2).await;
    assert!(differences(&shop.reconcile(false).await).is_empty());
    shop.provider.confirm(&intent, None).unwrap();
    let found = shop.reconcile(false).await;
    assert_eq!((found.compared, found.known, found.is_clean()), (2, 2, false));
    assert_eq!(differences(&found), [(Difference::State, false)]);
    assert_eq!(shop.read(&order).await.head.status, OrderStatus::Pending, "without --fix nothing is written");
    assert_eq!(differences(&shop.reconcile(true).await), [(Difference::State, true)]);
    let paid = shop.read(&order).await;
    assert_eq!((paid.head.status, paid.payments[0].status), (OrderStatus::Paid, PaymentStatus::Captured));
    assert_eq!(shop.read(&other).await.head.status, OrderStatus::Pending);
    assert!(differences(&shop.reconcile(true).await).is_empty());
}

/// The provider authorised a payment, and the order was cancelled before the webhook arrived. The repair
/// cancels the payment, so the provider's books change, too.
#[tokio::test]
async fn a_repair_that_changes_the_providers_books_is_complete() {
    let shop = Shop::open().await;
    let (order, intent) = shop.begin_with(1, CaptureMode::AtShipping).await;
    shop.provider.confirm(&intent, None).unwrap();
    let read = shop.read(&order).await;
    let cancelled = Step::new(&read.head, &[], OrderStatus::Cancelled, Instant::now(), "staff");
    shop.table.transact(&order::transition(cancelled).unwrap()).await;
    assert_eq!(differences(&shop.reconcile(false).await), [(Difference::State, false)]);
    assert_eq!(differences(&shop.reconcile(true).await), [(Difference::State, true)]);
    assert_eq!(shop.read(&order).await.payments[0].status, PaymentStatus::Cancelled);
    assert!(differences(&shop.reconcile(false).await).is_empty());
}

#[tokio::test]
async fn what_only_the_provider_knows_is_reported() {
    let shop = Shop::open().await;
    let (order, intent) = shop.begin(1).await;
    shop.provider.confirm(&intent, None).unwrap();
    shop.reconcile(true).await;
    // Somebody refunds a part in the provider's dashboard, and creates a payment there.
    let paid = shop.stripe.read(&intent).await.unwrap();
    shop.stripe.refund(&paid, dollars(200), "by-hand").await.unwrap();
    let foreign = OrderId::generate(Instant::now(), [9; 10]);
    shop.stripe.create(&foreign, dollars(900), Capture::AtOnce, "foreign").await.unwrap();
    let found = shop.reconcile(true).await;
    assert_eq!(differences(&found), [(Difference::Unknown, false), (Difference::Refunds, false)]);
    assert!(found.to_string().contains("2 differences") && found.to_string().contains("LEFT"), "{found}");
    assert_eq!(shop.read(&order).await.payments[0].refunded, 0);
    shop.provider.advance(Duration::from_secs(1));
}
