#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use hyper::Method;

use super::books::Books;
use super::calls::Call;
use super::idempotency::Keys;
use super::webhooks::{Event, Queue, Webhook};
use super::wire::{Form, Refusal, Reply};
use super::{MAX_EVENTS, MAX_INTENTS, MAX_KEYS, MAX_REFUNDS, Mode};

fn execute(books: &mut Books, path: &str, body: &str) -> Result<serde_json::Value, Refusal> {
    let form = Form::read(body.as_bytes()).unwrap();
    books.execute(Call::read(&Method::POST, path, form).unwrap(), 0)
}

fn is_full(refusal: &Refusal) -> bool {
    refusal.error()["message"].as_str().unwrap().contains("keeps at most")
}

#[test]
fn the_books_are_bounded() {
    let mut books = Books::new(1);
    let paid = "amount=99999999&currency=eur&confirm=true&payment_method=pm_card_visa";
    let first = execute(&mut books, "/v1/payment_intents", paid).unwrap();
    for _ in 1..MAX_INTENTS {
        execute(&mut books, "/v1/payment_intents", "amount=50&currency=eur").unwrap();
    }
    assert!(is_full(&execute(&mut books, "/v1/payment_intents", paid).unwrap_err()));
    let refund = format!("amount=1&payment_intent={}", first["id"].as_str().unwrap());
    for _ in 0..MAX_REFUNDS {
        execute(&mut books, "/v1/refunds", &refund).unwrap();
    }
    assert!(is_full(&execute(&mut books, "/v1/refunds", &refund).unwrap_err()));
}

#[test]
fn the_keys_are_bounded_and_a_key_in_use_outlives_a_day() {
    let (mut keys, form) = (Keys::default(), Form::read(b"").unwrap());
    for n in 0..MAX_KEYS {
        assert!(keys.begin(&n.to_string(), "/", &form, 0).unwrap().is_none());
    }
    assert!(is_full(&keys.begin("one more", "/", &form, 0).unwrap_err()));
    assert!(is_full(&keys.begin("one more", "/", &form, 86_400).unwrap_err()));
    keys.finish("0", &Reply::from(Ok(serde_json::Value::Null)));
    assert!(keys.begin("one more", "/", &form, 86_400).unwrap().is_none());
}

#[test]
fn the_queue_of_events_keeps_the_newest() {
    let endpoint = Webhook::new(Vec::new(), Box::new(|_| Box::pin(async { true })));
    let mut queue = Queue { endpoint: Some(endpoint.into()), mode: Mode::Held, ..Queue::default() };
    let event = |n: usize| Event {
        id: n.to_string(),
        kind: String::new(),
        intent: String::new(),
        created: 0,
        body: String::new(),
    };
    queue.add((0..MAX_EVENTS + 2).map(event).collect(), MAX_EVENTS);
    let taken = queue.take();
    assert_eq!((taken.len(), taken.first().unwrap().id.as_str()), (MAX_EVENTS, "2"));
}
