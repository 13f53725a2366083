//! Measures payments, refunds, invoices, and orders that need several transactions.

use key_schema::id::PaymentId;
use key_schema::idempotency;
use key_schema::invoice::{self, Invoice};
use key_schema::item::Stored;
use key_schema::order::open::{self, OpenOrder};
use key_schema::order::staged::{self, Claims, Unfinished, Work};
use key_schema::order::{
    self, Order, OrderAction, OrderLine, OrderNumber, OrderStatus, PlacedOrder, ReferenceClaim, Step,
};
use key_schema::payment::{self, CaptureMode, Closing, Ledger, Payment, PaymentMethod, PaymentStatus, Present};
use key_schema::provider_event;

use super::Bench;
use crate::data::{self, at, born, customer_id, product_id};

pub(super) fn payment(number: u8, order: &Order, method: PaymentMethod) -> Stored<Payment> {
    let id = PaymentId::generate(at(500 + i64::from(number)), [number; 10]);
    let payment = Payment::received(id.clone(), order, method, order.total, at(500), "staff-7");
    Stored::new(payment, id.born(), at(500))
}

/// Returns the payments of an order that is paid with this payment.
pub(super) fn paid_with(order: &Stored<Order>, payment: Stored<Payment>) -> Ledger<'_> {
    let mut ledger = Ledger::new(order, &[], &[], at(500));
    ledger.add(payment.data).unwrap();
    ledger
}

fn step<'a>(order: &'a Stored<Order>, to: OrderStatus, money: &'a Ledger<'a>) -> Step<'a> {
    Step { money: Some(money), ..Step::new(order, &[], to, at(500), "staff-7") }
}

/// Stages an order of five lines as if it were too large for one transaction, and reserves all
/// lines. Returns the head and the lines.
async fn stage(bench: &mut Bench, number: u8, measured: bool) -> (Stored<Order>, Vec<Stored<OrderLine>>) {
    let (mut head, lines) = data::order(number, 5);
    let (claim, work) = (data::record(number), Work::Placing { key: Some(data::scope(number)), lines: 0 });
    head.data.status = OrderStatus::Placing;
    head.data.unfinished = Some(Unfinished { since: at(500), work });
    let claim = (OrderAction::Idempotency, idempotency::claim(&claim, at(0)).unwrap());
    let begin = staged::begin(&head, &[claim]).unwrap();
    let reserve = staged::reserve(&head, &lines).unwrap();
    if measured {
        bench.transact("with reference and key", begin).await;
        bench.transact("5 lines of a large order", reserve).await;
    } else {
        bench.table.transact(&begin).await.unwrap().unwrap();
        bench.table.transact(&reserve).await.unwrap().unwrap();
    }
    head = staged::counted(&head, lines.len(), true);
    let _ = bench.table.meter().take();
    (head, lines)
}

/// Measures an order that its customer places and does not pay.
async fn own_order(bench: &mut Bench) {
    let (mut own, lines) = data::order(72, 5);
    (own.data.by_customer, own.data.lapses_at) = (true, Some(at(400)));
    let entry = OpenOrder { most: 2, lines: 5 };
    let open = (OrderAction::Open, open::enter(&own, entry, None).unwrap());
    let by = own.customer_id.to_string();
    let place = order::place(&PlacedOrder::new(own.clone(), lines.clone(), &by), &[open]).unwrap();
    bench.transact("5 lines of a customer, with reference", place).await;
    bench.get("one order", open::get(&own.customer_id).unwrap()).await;
    bench.get("one claim", order::numbered(OrderNumber::of(&own.id)).unwrap()).await;
    bench.get("one claim", order::reference(&ReferenceClaim::of(&own).unwrap()).unwrap()).await;
    bench.query("one order", 1, open::lapsing(at(600)).unwrap().limit(20)).await;
    bench.transact("5 stocks return", order::lapse(&own, &lines, None, at(500)).unwrap()).await;
}

/// Measures a card payment that pays an order of a customer, from its beginning to `paid`.
async fn card(bench: &mut Bench) {
    let (own, lines) = data::order(73, 5);
    let by = own.customer_id.to_string();
    let place = order::place(&PlacedOrder::new(own.clone(), lines, &by), &[]).unwrap();
    bench.table.transact(&place).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let read = async |bench: &Bench| {
        let items = bench.table.query(&order::read_for_update(&own.id).unwrap()).await.unwrap().items;
        let _ = bench.table.meter().take();
        PlacedOrder::of(items).unwrap()
    };
    let id = PaymentId::generate(at(500), [73; 10]);
    let order = read(bench).await;
    let mut begun = order.ledger(at(500));
    begun.add(Payment::card(id.clone(), &own, own.total, CaptureMode::AtOnce, at(500), &by)).unwrap();
    bench.transact("begin a card payment", order::change_payments(&begun, &[]).unwrap()).await;
    let order = read(bench).await;
    bench.query("one operation", 1, payment::unsettled(at(600)).unwrap().limit(20)).await;
    bench.query("none", 0, payment::expiring(at(600)).unwrap().limit(20)).await;
    let mut created = order.ledger(at(501));
    let present = Present {
        intent: "pi_3MtwBwLkdIwHu7ix28a3tqPa".into(),
        status: PaymentStatus::Pending,
        authorised: 0,
        captured: 0,
        capture_before: None,
        declined: None,
    };
    created.apply(&id, &present);
    created.close(&order.operations[0].id, &Closing::Done);
    bench.transact("record its creation", order::change_payments(&created, &[]).unwrap()).await;
    let order = read(bench).await;
    let mut paid = order.ledger(at(502));
    let amount = own.total.amount;
    paid.apply(&id, &Present { status: PaymentStatus::Captured, authorised: amount, captured: amount, ..present });
    assert!(paid.settle());
    let step = Step { money: Some(&paid), ..Step::new(&order.head, &[], OrderStatus::Paid, at(502), "system") };
    bench.transact("paid by card", order::transition(step).unwrap()).await;
    paid_late(bench, &id).await;
    let event = provider_event::receive("evt_1".into(), "pi_1".into(), Some(own.id.clone()), id.born(), at(500));
    bench.write("one event", event.unwrap()).await;
}

/// Measures a payment that arrives after its order has lapsed.
async fn paid_late(bench: &mut Bench, id: &PaymentId) {
    let (mut own, lines) = data::order(75, 5);
    own.data.lapses_at = Some(at(400));
    let by = own.customer_id.to_string();
    let place = order::place(&PlacedOrder::new(own.clone(), lines.clone(), &by), &[]).unwrap();
    bench.table.transact(&place).await.unwrap().unwrap();
    bench.table.transact(&order::lapse(&own, &lines, None, at(500)).unwrap()).await.unwrap().unwrap();
    own = bench.table.get(&order::head(&own.id).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let mut late = Ledger::new(&own, &[], &[], at(600));
    late.add(Payment::received(id.clone(), &own, PaymentMethod::Manual, own.total, at(600), &by)).unwrap();
    assert!(late.revive());
    bench.transact("5 lines", order::revive(&lines, &late).unwrap()).await;
}

pub async fn measure(bench: &mut Bench) {
    let products: Vec<_> = (1..=5).map(product_id).collect();
    bench.batch_get("5 stocks", staged::available(&products).unwrap()).await;
    let (head, lines) = stage(bench, 70, true).await;
    bench.query("one order", 1, staged::unfinished(at(600)).unwrap().limit(20)).await;
    let order = PlacedOrder::new(head, lines, customer_id(1).as_str());
    bench.transact("one order", staged::commit(&order, &[]).unwrap()).await;

    own_order(bench).await;

    let (mut head, lines) = stage(bench, 71, false).await;
    let (first, rest) = lines.split_at(2);
    bench.transact("2 lines", staged::undo(&head, first, at(501)).unwrap()).await;
    head = staged::counted(&head, first.len(), false);
    let claims = Claims { number: true, reference: true, idempotency: true, open: false };
    bench.transact("3 lines and the head", staged::undo_last(&head, rest, claims, at(501)).unwrap()).await;

    let (mut head, lines) = data::order(4, 5);
    head = bench.table.get(&order::head(&head.id).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let paid = payment(1, &head, PaymentMethod::Wallet);
    let put = bench.test.client().put_item().table_name(bench.test.name());
    put.set_item(Some(paid.to_item().unwrap().into())).send().await.unwrap();
    // This cancellation gets no lines, so it returns no stock. Afterwards the test sets the head's
    // count of returned lines to 0, and then measures the return of the stock.
    let payments = [paid];
    let mut back = Ledger::new(&head, &payments, &[], at(500));
    back.refund_to_wallet(&payments[0].id, 1).unwrap();
    let cancelled = step(&head, OrderStatus::Cancelled, &back);
    let cancelled = order::transition(cancelled).unwrap();
    bench.transact("cancelled, with a refund", cancelled).await;
    head = bench.table.get(&order::head(&head.id).unwrap()).await.unwrap().unwrap();
    head.data.unfinished = Some(Unfinished { since: at(500), work: Work::Returning(0) });
    let put = bench.test.client().put_item().table_name(bench.test.name());
    put.set_item(Some(head.to_item().unwrap().into())).send().await.unwrap();
    let _ = bench.table.meter().take();
    bench.transact("5 lines", staged::give_back(&head, &lines, at(502)).unwrap().unwrap()).await;

    let head = bench.table.get(&order::head(&data::order_id(15)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let payment = payment(2, &head, PaymentMethod::Wallet);
    let money = paid_with(&head, payment.clone());
    let paid = order::transition(step(&head, OrderStatus::Paid, &money)).unwrap();
    bench.transact("paid from the wallet", paid).await;
    let head = bench.table.get(&order::head(&data::order_id(15)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let claim = idempotency::claim(&data::record(115), at(0)).unwrap();
    let payments = [payment];
    let mut back = Ledger::new(&head, &payments, &[], at(503));
    back.refund_to_wallet(&payments[0].id, 100).unwrap();
    let refund = order::change_payments(&back, &[(OrderAction::Idempotency, claim)]).unwrap();
    bench.transact("one refund to the wallet", refund).await;
    card(bench).await;

    for number in [1, 2] {
        let order_id = data::order_id(15 + u8::try_from(number).unwrap());
        let order = bench.table.get(&order::head(&order_id).unwrap()).await.unwrap().unwrap();
        let seen = bench.table.get(&invoice::counter().unwrap()).await.unwrap();
        let (customer_id, total, issued_at) = (order.customer_id.clone(), order.total, at(504));
        let invoice = Invoice { number, order_id, customer_id, total, issued_at };
        let invoice = Stored::new(invoice, born(1), at(504));
        let _ = bench.table.meter().take();
        let issue = invoice::issue(&invoice, &order, seen.as_ref()).unwrap();
        if number == 2 {
            bench.transact("one order", issue).await;
        } else {
            bench.table.transact(&issue).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    bench.get("the last number", invoice::counter().unwrap()).await;
    bench.get("one invoice", invoice::get(1).unwrap()).await;
}
