//! Tests of the rules that derive events from changes.

use bus::{Data, EmailVerificationRequested, Event, Kind, Reason, Reversal};
use key_schema::customer::{Customer, Tier};
use key_schema::item::{Entity, IMPORTED, Meta, Stored};
use key_schema::order::{Charges, OrderStatus};
use key_schema::payment::{CaptureMode, Payment, PaymentStatus};
use key_schema::product::Stock;
use key_schema::promotion::AppliedPromotion;
use key_schema::review::Review;
use key_schema::verification::EmailVerification;
use serde_json::{Value, json};
use stream::batch::Batch;
use stream::transitions::{Rules, UnreadableOldImage};

use crate::support::{event, insert, line, modify, order, product, remove};

/// Returns the event of one record, if there is one, for the table `shop` and a stock threshold of 10.
pub fn event_of(record: Value) -> Result<Option<Event>, UnreadableOldImage> {
    told_in("shop", record)
}

fn told_in(table: &str, record: Value) -> Result<Option<Event>, UnreadableOldImage> {
    let event = event(&[record]);
    let batch = Batch::decode(&event).unwrap();
    assert_eq!((batch.records.len(), batch.malformed.len()), (1, 0), "{:?}", batch.malformed);
    Rules { table: table.to_owned(), stock_low: 10 }.event(&batch.records[0])
}

/// Returns the data of the record's event, if there is one.
fn data(record: Value) -> Option<Data> {
    event_of(record).unwrap().map(|event| event.data)
}

/// Makes the record's old image unreadable.
fn unreadable(mut record: Value) -> Value {
    record["dynamodb"]["OldImage"]["rev"] = json!({"S": "eight"});
    record
}

fn meta(rev: u64) -> Meta {
    order("o1", OrderStatus::Pending, rev, 1).meta
}

fn stock(available: u64, sellable: bool, rev: u64) -> Stored<Stock> {
    let data = Stock { sellable, ..Stock::new("p1".parse().unwrap(), available) };
    Stored { meta: meta(rev), data }
}

fn customer(tier: Tier, rev: u64) -> Stored<Customer> {
    let data = Customer {
        tier,
        ..Customer::new(
            "c1".parse().unwrap(),
            "ada@example.com".parse().unwrap(),
            "ada".parse().unwrap(),
            "Ada".to_owned(),
        )
    };
    Stored { meta: meta(rev), data }
}

fn review(rating: u64, rev: u64) -> Stored<Review> {
    let data = Review {
        product_id: "p1".parse().unwrap(),
        customer_id: "c1".parse().unwrap(),
        rating,
        display_name: None,
        title: "Cold".to_owned(),
        text: "As ice should be.".to_owned(),
    };
    Stored { meta: meta(rev), data }
}

fn verification(code_expires_at: &str, tries: u64, nonce: Option<&str>, rev: u64) -> Stored<EmailVerification> {
    let data = EmailVerification {
        customer_id: "c1".parse().unwrap(),
        email: "ada@example.com".parse().unwrap(),
        expires_at: "2017-01-02T12:00:00.000Z".parse().unwrap(),
        nonce: nonce.map(str::to_owned),
        key: "k1".to_owned(),
        code_expires_at: code_expires_at.parse().unwrap(),
        tries,
        requested_at: Vec::new(),
    };
    Stored { meta: meta(rev), data }
}

#[test]
fn a_low_stock_at_a_further_location_is_no_event() {
    let at = |location: &str, available, rev| {
        let mut stock = stock(available, true, rev);
        stock.data.location = location.parse().unwrap();
        stock
    };
    let fallen = |location| data(modify("1", &at(location, 1_000, 1), &at(location, 1, 2)));
    assert!(fallen("main").is_some());
    assert_eq!(fallen("ulm"), None);
}

#[test]
fn a_code_request_is_one_event_but_attempts_and_the_use_of_the_code_cause_no_event() {
    let (first, second) = ("2017-01-01T12:10:00.000Z", "2017-01-01T12:20:00.000Z");
    let told_of = |expires_at: &str| {
        let (customer_id, expires_at) = ("c1".parse().unwrap(), expires_at.parse().unwrap());
        Some(Data::from(EmailVerificationRequested { customer_id, expires_at }))
    };
    let new = |at, tries, rev| verification(at, tries, Some("n"), rev);
    assert_eq!(data(insert("1", &new(first, 0, 1))), told_of(first));
    assert_eq!(data(modify("1", &new(first, 0, 1), &new(first, 1, 2))), None);
    assert_eq!(data(modify("1", &new(first, 1, 2), &verification(first, 1, None, 3))), None);
    assert_eq!(data(modify("1", &new(first, 1, 2), &new(second, 0, 3))), told_of(second));
    assert_eq!(data(modify("1", &verification(first, 1, None, 2), &new(second, 0, 3))), told_of(second));
    assert_eq!(data(remove("1", &new(first, 0, 1))), None);
    assert_eq!(event_of(unreadable(modify("1", &new(first, 0, 1), &new(second, 0, 2)))), Err(UnreadableOldImage));
    let shown = event_of(insert("1", &new(first, 0, 1))).unwrap().unwrap().to_detail().unwrap();
    assert!(!shown.contains("ada@example.com") && !shown.contains("nonce"), "{shown}");
}

const STATUSES: [OrderStatus; 8] = [
    OrderStatus::Placing,
    OrderStatus::Pending,
    OrderStatus::Paid,
    OrderStatus::Picking,
    OrderStatus::Shipped,
    OrderStatus::Delivered,
    OrderStatus::Cancelled,
    OrderStatus::Returned,
];

#[test]
fn an_order_is_placed_when_it_becomes_visible() {
    for status in STATUSES {
        let new = order("o1", status, 2, 3);
        // Only a restoration from the archive creates an order in a closed status.
        let created = (!status.is_closed()).then(|| insert("1", &new));
        let committed = modify("1", &order("o1", OrderStatus::Placing, 1, 3), &new);
        for record in created.into_iter().chain([committed]) {
            match data(record) {
                None => assert_eq!(status, OrderStatus::Placing),
                Some(Data::OrderPlaced(placed)) => {
                    assert_ne!(status, OrderStatus::Placing);
                    assert_eq!((placed.order_id, placed.status, placed.line_count), (new.id.clone(), status, 3));
                    assert_eq!((placed.totals.total, placed.placed_at), (new.total, new.placed_at));
                    assert_eq!((placed.lines, placed.lines_left_out), (Vec::new(), 3));
                    assert_eq!((placed.customer_id, placed.store_id), (new.customer_id.clone(), None));
                }
                other => panic!("{status}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_event_of_a_placed_order_has_the_parts_of_the_total_and_no_code() {
    let mut new = order("o1", OrderStatus::Pending, 2, 3);
    let promotion = AppliedPromotion {
        id: "summer".parse().unwrap(),
        name: "Summer sale".to_owned(),
        code: Some("SUMMER".to_owned()),
        discount: 40,
        counted: false,
        counted_per_customer: false,
    };
    new.data.charges = Some(Charges {
        shipping: 500,
        shipping_total: 500,
        tax: 12,
        promotions: vec![promotion],
        ..Charges::of_lines(new.total.amount - 500, 40)
    });
    let placed = event_of(insert("1", &new)).unwrap().unwrap();
    let shown: Value = serde_json::from_str(&placed.to_detail().unwrap()).unwrap();
    let money = |amount: i64| json!({"amount": amount, "currency": new.total.currency});
    let total = new.total.amount;
    let parts = json!({
        "items": money(total - 460), "discount": money(40), "shipping": money(500), "tax": money(12),
        "total": money(total),
    });
    assert_eq!((&shown["data"]["totals"], &shown["type"]), (&parts, &json!("OrderPlaced")));
    assert_eq!(shown["data"]["promotions"], json!([{"promotion_id": "summer", "amount": money(40)}]));
    assert!(!shown.to_string().contains("SUMMER"), "{shown}");
}

#[test]
fn an_order_restored_from_the_archive_is_not_placed_again() {
    for status in [OrderStatus::Delivered, OrderStatus::Cancelled, OrderStatus::Returned] {
        assert_eq!(data(insert("1", &order("o1", status, 8, 1))), None, "{status}");
    }
}

#[test]
fn a_status_change_is_an_event_with_both_statuses_and_an_unchanged_status_is_no_event() {
    for from in OrderStatus::VISIBLE {
        for to in OrderStatus::VISIBLE {
            match data(modify("1", &order("o1", from, 4, 1), &order("o1", to, 5, 1))) {
                None => assert_eq!(from, to),
                Some(Data::OrderStatusChanged(changed)) => {
                    assert_ne!(from, to);
                    assert_eq!((changed.from, changed.to), (from, to));
                }
                other => panic!("{from} {to}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_event_of_a_lapsed_order_has_a_reason_and_the_events_of_other_steps_have_none() {
    let reason = |to: OrderStatus, lapsed: bool| {
        let mut new = order("o1", to, 5, 1);
        new.data.lapsed = lapsed;
        match data(modify("1", &order("o1", OrderStatus::Pending, 4, 1), &new)) {
            Some(Data::OrderStatusChanged(changed)) => changed.reason,
            other => panic!("{to}: {other:?}"),
        }
    };
    assert_eq!(reason(OrderStatus::Cancelled, true), Some(Reason::Lapsed));
    assert_eq!(reason(OrderStatus::Cancelled, false), None);
    assert_eq!(reason(OrderStatus::Paid, false), None);
}

#[test]
fn a_stock_runs_low_when_it_falls_below_the_threshold_while_it_can_be_sold() {
    for ((before, was_sellable), (after, is_sellable), low) in [
        ((10, true), (9, true), true),
        ((1_000, true), (0, true), true),
        ((11, true), (10, true), false),
        ((9, true), (8, true), false),
        ((9, true), (10, true), false),
        ((5, true), (20, true), false),
        ((10, false), (9, false), false),
        ((50, true), (3, false), false),
        // The product was not sellable before, so its stock did not run low.
        ((50, false), (3, true), false),
        ((50, false), (50, true), false),
        ((3, false), (3, true), false),
    ] {
        let events_of = data(modify("1", &stock(before, was_sellable, 1), &stock(after, is_sellable, 2)));
        match events_of {
            Some(Data::StockLow(events_of)) => {
                assert!(low && (events_of.available, events_of.threshold) == (after, 10), "{events_of:?}")
            }
            other => assert!(other.is_none() && !low, "{before} {was_sellable} {after} {is_sellable}: {other:?}"),
        }
    }
    assert_eq!(data(insert("1", &stock(0, true, 1))), None);
}

#[test]
fn a_new_review_is_an_event_but_its_changes_and_its_removal_are_not() {
    assert!(matches!(data(insert("1", &review(4, 1))), Some(Data::ReviewPosted(posted)) if posted.rating == 4));
    assert_eq!(data(modify("1", &review(4, 1), &review(5, 2))), None);
    assert_eq!(data(remove("1", &review(5, 2))), None);
}

#[test]
fn a_tier_change_is_an_event_and_a_new_customers_tier_is_not() {
    for from in Tier::ALL {
        assert_eq!(data(insert("1", &customer(from, 1))), None);
        for to in Tier::ALL {
            match data(modify("1", &customer(from, 1), &customer(to, 2))) {
                Some(Data::CustomerTierChanged(changed)) => {
                    assert!(from != to && (changed.from, changed.to) == (from, to))
                }
                other => assert!(other.is_none() && from == to, "{from} {to}: {other:?}"),
            }
        }
    }
}

fn payment(status: PaymentStatus, authorised: i64, refunded: i64, rev: u64) -> Stored<Payment> {
    let order = order("o1", OrderStatus::Paid, 1, 1);
    let (id, at) = ("p1".parse().unwrap(), order.placed_at);
    let mut payment = Payment::card(id, &order, order.total, CaptureMode::AtShipping, at, "c1");
    (payment.status, payment.authorised, payment.refunded) = (status, authorised, refunded);
    payment.captured = if status == PaymentStatus::Captured { authorised } else { 0 };
    Stored { meta: meta(rev), data: payment }
}

#[test]
fn money_of_a_payment_that_goes_back_is_an_event_with_the_amount_of_this_change() {
    use PaymentStatus::{Authorised, Cancelled, Captured, Pending};
    for ((before, authorised, refunded), (after, held, refunded_after), expected) in [
        ((Captured, 900, 0), (Captured, 900, 900), Some((Reversal::Refund, 900))),
        ((Captured, 900, 300), (Captured, 900, 350), Some((Reversal::Refund, 50))),
        ((Authorised, 900, 0), (Cancelled, 900, 0), Some((Reversal::Release, 900))),
        // The provider says later that a refund has failed.
        ((Captured, 900, 350), (Captured, 900, 300), None),
        ((Captured, 900, 350), (Captured, 900, 350), None),
        ((Authorised, 900, 0), (Captured, 900, 0), None),
        // The customer has not paid, so nothing goes back.
        ((Pending, 0, 0), (Cancelled, 0, 0), None),
        ((Cancelled, 900, 0), (Cancelled, 900, 0), None),
    ] {
        let (old, new) = (payment(before, authorised, refunded, 1), payment(after, held, refunded_after, 2));
        let reversed = data(modify("1", &old, &new)).map(|data| match data {
            Data::PaymentReversed(reversed) => reversed,
            other => panic!("{other:?}"),
        });
        let amounts = reversed.as_ref().map(|reversed| (reversed.reversal, reversed.amount.amount));
        assert_eq!(amounts, expected, "{before:?} {after:?}");
        if let Some(reversed) = reversed {
            assert_eq!((reversed.order_id, reversed.customer_id), (new.order_id.clone(), new.customer_id.clone()));
            assert_eq!((reversed.payment_id, reversed.method), (new.id.clone(), new.method));
            assert_eq!(event_of(unreadable(modify("1", &old, &new))), Err(UnreadableOldImage));
        }
        // An order that is restored from the archive gives nothing back.
        assert_eq!(data(insert("1", &new)), None);
    }
}

#[test]
fn changes_without_subscribers_cause_no_event() {
    for record in [
        insert("1", &product("p", 1)),
        insert("1", &line("o1", 1)),
        remove("1", &order("o1", OrderStatus::Delivered, 9, 1)),
        remove("1", &stock(20, true, 3)),
        remove("1", &customer(Tier::Gold, 2)),
    ] {
        assert_eq!(event_of(record), Ok(None));
    }
}

#[test]
fn an_unreadable_old_image_is_an_error_only_where_an_event_depends_on_it() {
    fn change<T: Entity>(old: &Stored<T>, new: &Stored<T>) -> Result<Option<Event>, UnreadableOldImage> {
        event_of(unreadable(modify("1", old, new)))
    }
    let pending = order("o1", OrderStatus::Pending, 1, 1);
    assert_eq!(change(&pending, &order("o1", OrderStatus::Paid, 2, 1)), Err(UnreadableOldImage));
    assert_eq!(change(&stock(10, true, 1), &stock(9, true, 2)), Err(UnreadableOldImage));
    assert_eq!(change(&customer(Tier::Gold, 1), &customer(Tier::Gold, 2)), Err(UnreadableOldImage));
    // These new states give no event for any old image.
    assert_eq!(change(&pending, &order("o1", OrderStatus::Placing, 2, 1)), Ok(None));
    assert_eq!(change(&stock(20, true, 1), &stock(10, true, 2)), Ok(None));
    assert_eq!(change(&stock(20, true, 1), &stock(9, false, 2)), Ok(None));
    assert_eq!(change(&review(1, 1), &review(2, 2)), Ok(None));
    assert_eq!(change(&product("p", 1), &product("p", 2)), Ok(None));
}

#[test]
fn an_event_is_a_function_of_the_change_and_not_of_its_delivery() {
    let (old, new) = (order("o1", OrderStatus::Pending, 1, 1), order("o1", OrderStatus::Paid, 2, 1));
    let first = event_of(modify("1", &old, &new)).unwrap().unwrap();
    let mut again = modify("77", &old, &new);
    again["eventID"] = json!("another");
    again["awsRegion"] = json!("elsewhere");
    again["dynamodb"]["ApproximateCreationDateTime"] = json!(1_900_000_000);
    assert_eq!(event_of(again).unwrap().as_ref(), Some(&first));
    assert_eq!((first.occurred_at, first.sequence), (new.meta.updated_at, new.meta.rev));
    assert_eq!(first.kind(), Kind::OrderStatusChanged);
}

#[test]
fn two_changes_have_two_ids_despite_equal_fields() {
    let pending = |id: &str, rev| order(id, OrderStatus::Pending, rev, 1);
    let mut reborn = pending("o1", 1);
    reborn.meta.born = "b2".parse().unwrap();
    let records = [
        insert("1", &pending("o1", 1)),
        insert("1", &pending("o1", 2)),
        insert("1", &pending("o2", 1)),
        insert("1", &reborn),
        modify("1", &pending("o1", 1), &order("o1", OrderStatus::Paid, 2, 1)),
        modify("1", &order("o1", OrderStatus::Paid, 2, 1), &pending("o1", 3)),
    ];
    let events = records.into_iter().filter_map(|record| event_of(record).unwrap());
    let mut ids: Vec<String> = events.map(|event| event.id.to_string()).collect();
    ids.push(told_in("another", insert("1", &pending("o1", 1))).unwrap().unwrap().id.to_string());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 7);
}

#[test]
fn an_import_of_an_item_causes_no_event_but_a_later_change_of_the_item_does() {
    let imported = |mut record: Value| {
        record["dynamodb"]["NewImage"]["req"] = json!({"S": IMPORTED});
        record
    };
    let (pending, paid) = (order("o1", OrderStatus::Pending, 1, 1), order("o1", OrderStatus::Paid, 2, 1));
    assert!(data(insert("1", &pending)).is_some());
    assert_eq!(data(imported(insert("1", &pending))), None);
    // This change has no request id, so the item keeps the value `IMPORTED` in the attribute of the
    // id.
    assert!(data(imported(modify("2", &pending, &paid))).is_some());
}
