//! Tests of erased customers and their archived items.

use std::time::Duration;

use bytes::Bytes;
use emulators::faults::{Fault, FaultKind};
use fixture::seed;
use futures::future::join_all;
use janitor::Grace;
use janitor::round::Round;
use key_schema::archive::{belongings, collection};
use key_schema::cart::{self, Cart};
use key_schema::customer;
use key_schema::erasure;
use key_schema::id::{Born, CustomerId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order;
use key_schema::revocation::{self, SignIn};
use key_schema::session;
use tokio::time;

use crate::support::{ARCHIVE, Shop, begun};

fn ann() -> CustomerId {
    "ann".parse().unwrap()
}

/// Erases ann, as if her profile had been deleted this many seconds ago.
async fn erase(shop: &Shop, seconds: i64) {
    let profile = shop.own().get(&customer::read_for_update(&ann()).unwrap()).await.unwrap().unwrap();
    let at = Instant::now().plus_seconds(-seconds);
    shop.own().transact(&customer::delete(&profile, at).unwrap()).await.unwrap().unwrap();
}

/// Archives this many objects under each of these prefixes.
fn archive(shop: &Shop, prefixes: &[String], objects: usize) {
    for prefix in prefixes {
        for number in 0..objects {
            shop.objects.put(ARCHIVE, &format!("{prefix}{number:04}.json"), Bytes::from_static(b"{}")).unwrap();
        }
    }
}

fn archived(shop: &Shop) -> Vec<String> {
    let (mut names, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let page = shop.objects.list(ARCHIVE, after.as_deref(), 1000).unwrap().items;
        let Some(last) = page.last() else { return names };
        after = Some(last.name.clone());
        names.extend(page.into_iter().map(|object| object.name));
    }
}

async fn noted(shop: &Shop) -> usize {
    shop.own().query(&erasure::pending(Instant::MAX).unwrap()).await.unwrap().items.len()
}

async fn run_round(shop: &Shop, grace: u32) -> Round {
    let until = time::Instant::now() + Duration::from_secs(60);
    let (round, listed) = shop.janitor().run_round(Instant::now(), Grace::seconds(grace), until).await;
    listed.unwrap();
    round
}

fn erased(erased: u32) -> Round {
    Round { erased, ..Round::default() }
}

/// Begins a session of ann.
async fn begin_session(shop: &Shop, id: &str, at: Instant) {
    let data = seed::session(id, "ann", Instant::now().plus_seconds(3_600));
    shop.put(&Stored::new(data, Born::new("b2").unwrap(), at)).await;
}

async fn begin_cart(shop: &Shop, at: Instant) {
    let cart = Cart { customer_id: ann(), expires_at: Instant::now().plus_seconds(3_600), lines: [].into() };
    let cart = Stored::new(cart, Born::new("b2").unwrap(), at);
    shop.own().write(&cart::create(&cart, Instant::now()).unwrap()).await.unwrap().unwrap();
}

async fn sessions(shop: &Shop) -> Vec<String> {
    let page = shop.own().query(&session::of_customer(&ann()).unwrap()).await.unwrap();
    page.items.into_iter().map(|session| session.id.to_string()).collect()
}

#[tokio::test]
async fn an_erased_customers_objects_leave_the_archive_and_all_other_objects_stay() {
    let shop = Shop::open(1).await;
    let (hers, his) = (belongings(&ann()).unwrap(), belongings(&"bob".parse().unwrap()).unwrap());
    let books = [collection(&order::head(&"o1".parse().unwrap()).unwrap().key().pk), collection(&profile_key().pk)];
    archive(&shop, &hers, 3);
    archive(&shop, &his, 2);
    archive(&shop, &books, 1);
    // The janitor does not touch the archive while ann is a customer.
    assert_eq!(run_round(&shop, 0).await, erased(0));
    assert_eq!(archived(&shop).len(), 12);
    erase(&shop, 0).await;
    assert_eq!(run_round(&shop, 0).await, erased(1));
    let left = archived(&shop);
    assert_eq!(left.len(), 6);
    assert!(!left.iter().any(|name| hers.iter().any(|prefix| name.starts_with(prefix))), "{left:?}");
    assert_eq!(noted(&shop).await, 0);
    assert_eq!(run_round(&shop, 0).await, erased(0), "a later round finds no erasure");
}

fn profile_key() -> key_schema::key::Key {
    customer::get(&ann()).unwrap().key().clone()
}

#[tokio::test]
async fn an_erasure_waits_twice_the_grace_for_late_archiving() {
    let shop = Shop::open(1).await;
    erase(&shop, 100).await;
    assert_eq!(run_round(&shop, 60).await, erased(0));
    archive(&shop, &belongings(&ann()).unwrap(), 1);
    assert_eq!(run_round(&shop, 60).await, erased(0));
    assert_eq!((archived(&shop).len(), noted(&shop).await), (2, 1));
    assert_eq!(run_round(&shop, 45).await, erased(1));
    assert_eq!((archived(&shop).len(), noted(&shop).await), (0, 0));
}

#[tokio::test]
async fn sessions_and_a_cart_begun_at_the_instant_of_the_erasure_are_deleted() {
    let shop = Shop::open(1).await;
    erase(&shop, 0).await;
    let moment = Instant::now().plus_seconds(-1);
    begin_session(&shop, "s1", moment).await;
    begin_cart(&shop, moment).await;
    assert_eq!(run_round(&shop, 0).await, erased(1));
    assert_eq!(sessions(&shop).await, Vec::<String>::new());
    let ended = revocation::get(&SignIn::of(&ann(), "s1")).unwrap();
    assert!(shop.own().get(&ended).await.unwrap().is_some());
    assert_eq!(shop.own().get(&cart::get(&ann()).unwrap()).await.unwrap(), None);
}

#[tokio::test]
async fn the_many_sessions_of_an_erased_customer_end_at_the_permitted_rate() {
    // The end of a session costs two write units, and one request may use 5,000.
    const SESSIONS: usize = 3_000;
    let shop = Shop::open(1).await;
    erase(&shop, 0).await;
    let moment = Instant::now().plus_seconds(-1);
    for numbers in (0..SESSIONS).collect::<Vec<_>>().chunks(100) {
        let ids = numbers.iter().map(|number| format!("s{number:04}")).collect::<Vec<_>>();
        join_all(ids.iter().map(|id| begin_session(&shop, id, moment))).await;
    }
    assert_eq!(run_round(&shop, 0).await, Round { left: 1, ..erased(0) });
    assert!((1..SESSIONS).contains(&sessions(&shop).await.len()));
    while run_round(&shop, 0).await != erased(1) {}
    assert_eq!(sessions(&shop).await, Vec::<String>::new());
}

/// Ann keeps her new items even if the erasure takes several rounds.
#[tokio::test]
async fn a_customer_who_returns_keeps_the_sessions_and_the_cart_begun_since_the_erasure() {
    let shop = Shop::open(1).await;
    archive(&shop, &belongings(&ann()).unwrap(), 1);
    erase(&shop, 0).await;
    let earlier = begun().plus_seconds(-60);
    begin_session(&shop, "before", earlier).await;
    begin_cart(&shop, earlier).await;
    // Ann signs up again. Her new profile begins at `begun`.
    shop.sign_up().await;
    begin_session(&shop, "since", Instant::now()).await;
    shop.objects.faults().add(Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 1 }).unwrap();
    assert_eq!(run_round(&shop, 0).await, Round { failed: 1, ..erased(0) });
    assert_eq!(sessions(&shop).await, ["since"]);
    assert_eq!(shop.own().get(&cart::get(&ann()).unwrap()).await.unwrap(), None);
    begin_cart(&shop, Instant::now()).await;
    assert_eq!(run_round(&shop, 0).await, Round { failed: 1, ..erased(0) });
    shop.objects.faults().clear();
    assert_eq!(run_round(&shop, 0).await, erased(1));
    assert_eq!(sessions(&shop).await, ["since"]);
    assert!(shop.own().get(&cart::get(&ann()).unwrap()).await.unwrap().is_some());
}

#[tokio::test]
async fn an_erasure_that_the_archive_refuses_is_kept_and_finished_later() {
    let shop = Shop::open(1).await;
    archive(&shop, &belongings(&ann()).unwrap(), 1);
    erase(&shop, 0).await;
    shop.objects.faults().add(Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 1 }).unwrap();
    assert_eq!(run_round(&shop, 0).await, Round { failed: 1, ..erased(0) });
    assert_eq!((archived(&shop).len(), noted(&shop).await), (2, 1));
    shop.objects.faults().clear();
    assert_eq!(run_round(&shop, 0).await, erased(1));
    assert_eq!((archived(&shop).len(), noted(&shop).await), (0, 0));
}

/// The archive has more than one page of objects, and requests to it fail now and then. No round
/// adds objects, and in the end all objects are deleted.
#[tokio::test]
async fn an_erasure_of_more_than_one_round_continues_where_it_stopped() {
    let shop = Shop::open(1).await;
    archive(&shop, &belongings(&ann()).unwrap(), 1_100);
    erase(&shop, 0).await;
    shop.objects.faults().add(Fault { kind: FaultKind::Error, rate: 0.1, count: None, seed: 7 }).unwrap();
    let (mut rounds, mut left) = (0, archived(&shop).len());
    assert_eq!(left, 2_200);
    while noted(&shop).await > 0 {
        let (round, _) = shop.try_tidy(Duration::from_secs(10)).await;
        let now = archived(&shop).len();
        assert!(now <= left, "{left} objects before, {now} after {round:?}");
        (rounds, left) = (rounds + 1, now);
        assert!(rounds < 1000, "{left} objects are left");
    }
    assert!(rounds > 1 && left == 0, "{rounds} rounds, {left} objects");
}

#[tokio::test]
async fn a_second_erasure_of_a_customer_who_returned_waits_again() {
    let shop = Shop::open(1).await;
    erase(&shop, 500).await;
    let first = shop.own().query(&erasure::pending(Instant::MAX).unwrap()).await.unwrap().items.remove(0);
    shop.sign_up().await;
    erase(&shop, 0).await;
    // A janitor that is finishing the first erasure cannot remove the `Erasure` item of the second
    // one.
    assert!(shop.own().write(&erasure::done(&first).unwrap()).await.unwrap().is_err());
    assert_eq!(run_round(&shop, 60).await, erased(0));
    assert_eq!(noted(&shop).await, 1);
}
