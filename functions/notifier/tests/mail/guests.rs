//! Tests of the mail about the orders of guests. Anybody can enter anybody's address, so mail goes
//! only to a guest who has paid.

use key_schema::customer::Customer;
use key_schema::id::{CustomerId, OrderId};
use key_schema::order::addresses::{Guest, OrderAddresses};
use key_schema::order::{self, CustomerOrder, Order, OrderStatus, OrderStatusEvent};
use notifier::notifier::Outcome;

use crate::support::{NOW, Shop, at, at_once};

fn guest(email: &str) -> CustomerId {
    CustomerId::guest(&email.parse().unwrap())
}

/// Opens a shop with a customer, whose order is that of a guest with this address.
async fn shop(email: &str, name: &str) -> Shop {
    let mut shop = Shop::open().await;
    another(&mut shop, 9, email, name).await;
    shop
}

/// Stores another order of a guest, and makes it the order of the events.
async fn another(shop: &mut Shop, number: u8, email: &str, name: &str) {
    shop.customer = guest(email);
    shop.order = OrderId::generate(at(NOW), [number; 10]);
    shop.put(head(shop)).await;
    shop.put(shop.copy()).await;
    shop.put(OrderAddresses {
        order_id: shop.order.clone(),
        customer_id: shop.customer.clone(),
        shipping_address: None,
        billing_address: None,
        guest: Some(Guest { email: email.parse().unwrap(), name: name.to_owned() }),
        expires_at: None,
    })
    .await;
    step(shop, OrderStatus::Pending, 0, None).await;
}

fn head(shop: &Shop) -> Order {
    Order::new(shop.order.clone(), shop.customer.clone(), at(NOW), shop.copy().total, 2)
}

/// Stores a step of the order, `second` seconds after its placement.
async fn step(shop: &Shop, status: OrderStatus, second: i64, message: Option<&str>) {
    let step = order::history(&head(shop), status, at(NOW).plus_seconds(second), "clerk", Some("shelf 7".to_owned()));
    shop.put(OrderStatusEvent { message: message.map(str::to_owned), ..step }).await;
}

/// Moves the order to c1, as a claim does.
async fn claim(shop: &Shop) {
    let customer: CustomerId = "c1".parse().unwrap();
    let partition = format!("CUSTOMER#{}", shop.customer);
    for kind in ["ORDER", "SHIPTO"] {
        shop.table.delete_at(&partition, &format!("{kind}#{}", shop.order)).await;
    }
    let head = Order { customer_id: customer, ..head(shop) };
    shop.put(CustomerOrder::of(&head)).await;
    shop.put(head).await;
}

#[tokio::test]
async fn a_guest_who_has_not_paid_gets_no_mail() {
    let shop = shop("gil@example.com", "Gil").await;
    assert_eq!(shop.notifier.take(&shop.placed(1), at(NOW), at_once()).await.unwrap(), Outcome::Unverified);
    step(&shop, OrderStatus::Cancelled, 1, None).await;
    for event in [
        shop.moved(2, "pending", "cancelled"),
        shop.moved_because(3, "pending", "cancelled", "lapsed"),
        shop.moved(4, "pending", "paid"),
    ] {
        assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Unverified);
    }
    assert_eq!(shop.post.calls(), 0);
}

/// The payment arrived after the order had lapsed, so the order was never paid.
#[tokio::test]
async fn a_guest_whose_late_payment_goes_back_gets_mail() {
    let shop = shop("gil@example.com", "Gil").await;
    step(&shop, OrderStatus::Cancelled, 1, None).await;
    let event = shop.reversed(1, "card", "refund", 357);
    assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    let [sent] = shop.post.sent().try_into().unwrap();
    assert_eq!((sent.to.as_str(), sent.subject.as_str()), ("gil@example.com", "Your refund"));
}

#[tokio::test]
async fn a_guest_who_has_paid_gets_mail_at_the_address_of_the_order() {
    let shop = shop("Gil@Example.com", "Gil Ångström").await;
    step(&shop, OrderStatus::Paid, 1, Some("Thank you")).await;
    step(&shop, OrderStatus::Shipped, 2, None).await;
    for (number, (from, to, subject)) in (1..).zip([
        ("pending", "paid", "is paid"),
        ("picking", "shipped", "is on its way"),
        ("paid", "cancelled", "was cancelled"),
        ("delivered", "returned", "was returned"),
    ]) {
        let outcome = shop.notifier.take(&shop.moved(number, from, to), at(NOW), at_once()).await.unwrap();
        let sent = shop.post.sent().pop().unwrap();
        assert_eq!((outcome, sent.to.as_str()), (Outcome::Sent, "Gil@Example.com"), "{to}");
        assert!(sent.subject.ends_with(subject) && sent.text.starts_with("Dear Gil Ångström,\n\n"), "{sent:?}");
        assert!(!sent.text.contains("shelf") && sent.text.contains("Thank you") == (to == "paid"), "{}", sent.text);
    }
    let again = shop.moved(1, "pending", "paid");
    assert_eq!(shop.notifier.take(&again, at(NOW), at_once()).await.unwrap(), Outcome::Known);
    // The confirmation of the placement is not sent later, either.
    assert_eq!(shop.notifier.take(&shop.placed(9), at(NOW), at_once()).await.unwrap(), Outcome::Unverified);
    assert_eq!(shop.post.calls(), 4);
}

#[tokio::test]
async fn each_order_of_an_address_has_its_own_spelling_and_name() {
    let mut shop = shop("gil@example.com", "Gil").await;
    step(&shop, OrderStatus::Paid, 1, None).await;
    let first = shop.moved(1, "pending", "paid");
    another(&mut shop, 10, "GIL@Example.com", "Gilberte").await;
    step(&shop, OrderStatus::Paid, 1, None).await;
    assert_eq!(shop.customer, guest("gil@example.com"));
    for event in [first, shop.moved(2, "pending", "paid")] {
        assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
    }
    let sent = shop.post.sent();
    let to: Vec<_> = sent.iter().map(|sent| (sent.to.as_str(), sent.text.split('\n').next().unwrap())).collect();
    assert_eq!(to, [("gil@example.com", "Dear Gil,"), ("GIL@Example.com", "Dear Gilberte,")]);
}

/// The payment of one order says nothing about another order.
#[tokio::test]
async fn a_guest_gets_no_mail_about_an_unpaid_order_beside_a_paid_one() {
    let mut shop = shop("gil@example.com", "Gil").await;
    step(&shop, OrderStatus::Paid, 1, None).await;
    another(&mut shop, 10, "gil@example.com", "Gil").await;
    let cancelled = shop.moved(1, "pending", "cancelled");
    assert_eq!(shop.notifier.take(&cancelled, at(NOW), at_once()).await.unwrap(), Outcome::Unverified);
    assert_eq!(shop.post.calls(), 0);
}

/// The event has the id of the guest, because it is older than the claim.
#[tokio::test]
async fn the_mail_about_a_claimed_order_goes_to_the_customer() {
    for paid in [true, false] {
        let shop = shop("gil@example.com", "Gil").await;
        if paid {
            step(&shop, OrderStatus::Paid, 1, None).await;
        }
        claim(&shop).await;
        let event = if paid { shop.moved(1, "pending", "paid") } else { shop.moved(1, "pending", "cancelled") };
        assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
        let [sent] = shop.post.sent().try_into().unwrap();
        assert_eq!(sent.to, "zoe@example.com");
        assert!(sent.text.starts_with("Dear Zoë,\n"), "{}", sent.text);
    }
}

#[tokio::test]
async fn the_mail_about_a_claimed_order_needs_the_customers_verified_address() {
    let shop = shop("gil@example.com", "Gil").await;
    step(&shop, OrderStatus::Paid, 1, None).await;
    claim(&shop).await;
    let zoe =
        Customer::new("c1".parse().unwrap(), "zoe@example.com".parse().unwrap(), "zoe".parse().unwrap(), "Zoë".into());
    shop.put(Customer { email_verified: false, ..zoe }).await;
    let paid = shop.moved(1, "pending", "paid");
    assert_eq!(shop.notifier.take(&paid, at(NOW), at_once()).await.unwrap(), Outcome::Unverified);
    shop.table.delete_at("CUSTOMER#c1", "PROFILE").await;
    assert_eq!(shop.notifier.take(&paid, at(NOW), at_once()).await.unwrap(), Outcome::NotFound);
    assert_eq!(shop.post.calls(), 0);
}

#[tokio::test]
async fn an_erased_guest_gets_no_mail() {
    let shop = shop("gil@example.com", "Gil").await;
    step(&shop, OrderStatus::Paid, 1, None).await;
    shop.table.delete_at(&format!("CUSTOMER#{}", shop.customer), &format!("SHIPTO#{}", shop.order)).await;
    let shipped = shop.moved(1, "picking", "shipped");
    assert_eq!(shop.notifier.take(&shipped, at(NOW), at_once()).await.unwrap(), Outcome::NotFound);
    assert_eq!(shop.post.calls(), 0);
}
