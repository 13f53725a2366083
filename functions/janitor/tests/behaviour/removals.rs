//! Tests of interrupted erasures of customers, deletions of documents and discards of drafts. No
//! client has retried them.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::{TestTable, crash_after, seed};
use janitor::Grace;
use janitor::round::Round;
use key_schema::document::{self, Document, Edit, Right};
use key_schema::follow::{self, Follow};
use key_schema::id::{Born, CustomerId, DocumentId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::Role;
use key_schema::{customer, erasure};
use tokio::time;

use crate::support::{ARCHIVE, Shop};

fn ann() -> CustomerId {
    "ann".parse().unwrap()
}

async fn run_round(shop: &Shop, grace: u32) -> Round {
    run_at(shop, Instant::now(), grace, 60).await
}

async fn run_at(shop: &Shop, now: Instant, grace: u32, seconds: u64) -> Round {
    let until = time::Instant::now() + Duration::from_secs(seconds);
    let (round, listed) = shop.janitor().run_round(now, Grace::seconds(grace), until).await;
    listed.unwrap();
    round
}

fn removed(removed: u32) -> Round {
    Round { removed, ..Round::default() }
}

/// Writes a document with these texts.
async fn draw_up(shop: &Shop, id: &str, owner: &str, texts: &[(&str, &str)]) {
    let (head, sections) = seed::document(id, owner, None, texts);
    shop.write((head, sections)).await;
}

/// Marks a document as deleted. An interrupted request for its deletion leaves the same state.
async fn retire(shop: &Shop, id: &str, version: u64) {
    let retire = document::retire(&DocumentId::new(id).unwrap(), version, None, Instant::now()).unwrap();
    shop.own().update(&retire).await.unwrap().unwrap();
}

fn edit<'a>(old: &'a Stored<Document>, by: &'a CustomerId, born: &'a Born) -> Edit<'a> {
    Edit { old, right: Right::Staff, by, at: Instant::now(), born }
}

/// Publishes texts in a document. If `as_draft`, writes the texts into a draft instead, and
/// discards the draft, but leaves its texts.
async fn write_texts(shop: &Shop, id: &str, texts: usize, text: &str, as_draft: bool) {
    let (id, by, born) = (DocumentId::new(id).unwrap(), ann(), Born::new("b2").unwrap());
    let mut head = shop.own().get(&document::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    if as_draft {
        let (begin, begun) = document::begin_draft(edit(&head, &by, &born)).unwrap();
        shop.transact(&begin).await;
        head = begun;
    }
    for n in 0..texts {
        let name = SectionName::new(format!("s{n}")).unwrap();
        let (put, after) = document::put_section(edit(&head, &by, &born), &name, text.to_owned()).unwrap();
        shop.transact(&put).await;
        head = after;
    }
    if as_draft {
        let (discard, _) = document::discard_draft(edit(&head, &by, &born), head.draft.as_ref().unwrap()).unwrap();
        shop.transact(&discard).await;
    }
}

async fn stored(shop: &Shop, partition: &str) -> usize {
    shop.keys(partition).await.len()
}

#[tokio::test]
async fn an_abandoned_deletion_and_an_abandoned_discard_are_finished_after_the_grace() {
    let shop = Shop::open(0).await;
    for id in ["deleted", "discarded", "untouched", "both"] {
        draw_up(&shop, id, "ann", &[("a", "A"), ("b", "B")]).await;
    }
    write_texts(&shop, "deleted", 3, "text", false).await;
    write_texts(&shop, "discarded", 12, "text", true).await;
    write_texts(&shop, "both", 12, "text", true).await;
    retire(&shop, "deleted", 4).await;
    retire(&shop, "both", 15).await;
    assert_eq!(run_round(&shop, 60).await, removed(0), "the requests may still be at work");
    assert_eq!(stored(&shop, "DOC#discarded").await, 4 + 12);
    assert_eq!(run_round(&shop, 0).await, removed(3));
    let left = ["DOC#deleted", "DOC#both", "DOC#discarded", "DOC#untouched"];
    let mut counts = Vec::new();
    for partition in left {
        counts.push(stored(&shop, partition).await);
    }
    assert_eq!(counts, [0, 0, 4, 4]);
    assert_eq!(run_round(&shop, 0).await, removed(0), "a later round finds no removal");
    // The document can change again.
    write_texts(&shop, "discarded", 1, "text", false).await;
}

#[tokio::test]
async fn a_deletion_of_more_than_one_budget_takes_several_rounds() {
    let shop = Shop::open(0).await;
    draw_up(&shop, "large", "ann", &[]).await;
    write_texts(&shop, "large", 25, &"x".repeat(100_000), false).await;
    write_texts(&shop, "large", 10, &"x".repeat(100_000), false).await;
    retire(&shop, "large", 36).await;
    assert_eq!(run_round(&shop, 0).await, Round { left: 1, ..removed(0) });
    let halfway = stored(&shop, "DOC#large").await;
    assert!(halfway > 1 && halfway < 100, "{halfway}");
    assert_eq!(run_round(&shop, 0).await, removed(1));
    assert_eq!(stored(&shop, "DOC#large").await, 0);
}

/// Gives a customer a document that needs more than the time of a short round, and begins the
/// erasure.
async fn begin_heavy_erasure(shop: &Shop, id: &str) {
    TestTable::sign_up(shop, id).await;
    draw_up(shop, id, id, &[]).await;
    for _ in 0..3 {
        write_texts(shop, id, 50, &"x".repeat(20_000), false).await;
    }
    shop.begin_erasure(id).await;
}

#[tokio::test]
async fn removals_that_need_more_than_a_round_leave_time_for_all_others() {
    let shop = Shop::open(0).await;
    // At whichever entry the round begins, a light removal follows a heavy one.
    for (heavy, light) in [("heavy1", "light1"), ("heavy2", "light2")] {
        begin_heavy_erasure(&shop, heavy).await;
        TestTable::sign_up(&shop, light).await;
        shop.begin_erasure(light).await;
    }
    // Removals get half of the round. Without shares, one heavy removal would take all of it.
    let round = run_at(&shop, Instant::now(), 0, 10).await;
    assert_eq!(round, Round { left: 2, ..removed(2) });
    assert_eq!(stored(&shop, "CUSTOMER#light").await, 0);
}

/// Gives ann belongings of several kinds, and begins her erasure.
async fn begin_erasure(shop: &Shop) {
    TestTable::sign_up(shop, "bob").await;
    draw_up(shop, "hers", "ann", &[("a", "A")]).await;
    draw_up(shop, "his", "bob", &[("a", "A")]).await;
    let (bob, born, now): (CustomerId, _, _) = ("bob".parse().unwrap(), Born::new("b2").unwrap(), Instant::now());
    for (customer_id, followed_id) in [(ann(), bob.clone()), (bob, ann())] {
        let follow = Stored::new(Follow { customer_id, followed_id }, born.clone(), now);
        shop.transact(&follow::put(&follow).unwrap()).await;
    }
    shop.begin_erasure("ann").await;
}

/// A write to the cart or to one of the customer's own documents does not check the profile.
#[tokio::test]
async fn items_that_the_customer_adds_during_an_unfinished_erasure_are_erased_too() {
    let shop = Shop::open(0).await;
    begin_erasure(&shop).await;
    write_texts(&shop, "hers", 3, "text", false).await;
    let head = shop.own().get(&document::read_for_update(&DocumentId::new("hers").unwrap()).unwrap()).await.unwrap();
    let (bob, born, own) = ("bob".parse().unwrap(), Born::new("b3").unwrap(), ann());
    let add = document::add_editor(&head.unwrap(), &bob, Right::Own(&own), &born, Instant::now()).unwrap();
    shop.transact(&add).await;
    shop.put(&seed::stored(seed::cart("ann", &[("p1", 1)], 3_600))).await;
    assert_eq!(run_round(&shop, 0).await, removed(1));
    shop.put(&seed::stored(seed::cart("ann", &[("p1", 1)], 3_600))).await;
    assert_eq!(run_round(&shop, 0).await, Round { erased: 1, ..removed(0) });
    assert_eq!(left_of_ann(&shop).await, []);
    assert_eq!(stored(&shop, "DOC#his").await, 3);
}

/// Gives ann one item of each kind that an erasure removes.
async fn add_belongings(shop: &Shop, document: &str, followed: &str) {
    let (followed_id, at) = (followed.parse().unwrap(), Instant::now());
    let follow = Stored::new(Follow { customer_id: ann(), followed_id }, Born::new("b4").unwrap(), at);
    shop.transact(&follow::put(&follow).unwrap()).await;
    draw_up(shop, document, "ann", &[("a", "A")]).await;
    shop.enter("club", "ann", Role::Member).await;
    shop.put(&seed::stored(seed::cart("ann", &[("p1", 1)], 3_600))).await;
}

/// When ann returns, the janitor has already read her old profile, or the list that contains her
/// erasure. She then follows a different customer than before, because a follow of the same
/// customer may be lost (`docs/design/erasure.md`).
#[tokio::test]
async fn a_customer_who_returns_loses_nothing_to_a_janitor_that_still_works() {
    for waits in (0..).step_by(7) {
        let shop = Shop::open(0).await;
        TestTable::sign_up(&shop, "bob").await;
        TestTable::sign_up(&shop, "cleo").await;
        shop.found("club", "bob").await;
        add_belongings(&shop, "old", "bob").await;
        shop.begin_erasure("ann").await;
        let mut round = Box::pin(run_round(&shop, 0));
        if crash_after(waits, &mut round).await.is_some() {
            assert!(waits > 10, "{waits}");
            return;
        }
        // Other rounds finish the erasure while this round is paused.
        while run_round(&shop, 0).await != removed(0) {}
        TestTable::sign_up(&shop, "ann").await;
        add_belongings(&shop, "new", "cleo").await;
        let before = shop.keys("").await;
        let _ = round.await;
        assert_eq!(shop.keys("").await, before, "after {waits} waits");
    }
}

#[tokio::test]
async fn an_item_that_cannot_be_erased_does_not_stop_the_others() {
    let shop = Shop::open(0).await;
    begin_erasure(&shop).await;
    let object = |name: &str| shop.objects.put(ARCHIVE, name, bytes::Bytes::from_static(b"{}")).unwrap();
    for prefix in key_schema::archive::belongings(&ann()).unwrap() {
        object(&format!("{prefix}1.json"));
    }
    let unreadable = ("CUSTOMER#ann", "FOLLOWS#bob", "born", AttributeValue::Bool(true));
    shop.set(unreadable.0, unreadable.1, unreadable.2, unreadable.3).await;
    // The profile stays, so that the erasure can go on.
    assert_eq!(run_round(&shop, 0).await, Round { failed: 1, ..removed(0) });
    assert_eq!(stored(&shop, "DOC#hers").await, 0);
    let profile = shop.profile("ann").await;
    shop.transact(&customer::delete(&profile, Instant::now()).unwrap()).await;
    shop.put(&seed::stored(seed::cart("ann", &[("p1", 1)], 3_600))).await;
    assert_eq!(run_round(&shop, 0).await, Round { failed: 1, ..removed(0) });
    assert_eq!(stored(&shop, "CART#ann").await, 0);
    assert!(shop.objects.list(ARCHIVE, None, 10).unwrap().items.is_empty());
    shop.delete_at(unreadable.0, unreadable.1).await;
    assert_eq!(run_round(&shop, 0).await, Round { erased: 1, ..removed(0) });
    assert_eq!(left_of_ann(&shop).await, []);
}

#[tokio::test]
async fn an_erasure_that_can_never_finish_fails() {
    let shop = Shop::open(0).await;
    shop.begin_erasure("ann").await;
    shop.delete_at("USERNAME#ann", "USERNAME").await;
    assert_eq!(run_round(&shop, 0).await, Round { failed: 1, ..removed(0) });
}

#[tokio::test]
async fn a_removal_that_is_unfinished_for_a_day_counts_as_failed() {
    let shop = Shop::open(0).await;
    draw_up(&shop, "large", "ann", &[]).await;
    write_texts(&shop, "large", 40, &"x".repeat(100_000), false).await;
    retire(&shop, "large", 41).await;
    let tomorrow = Instant::now().plus_seconds(24 * 60 * 60 + 1);
    assert_eq!(run_at(&shop, tomorrow.plus_seconds(-60), 0, 1).await, Round { left: 1, ..removed(0) });
    assert_eq!(run_at(&shop, tomorrow, 0, 1).await, Round { left: 1, failed: 1, ..removed(0) });
}

async fn left_of_ann(shop: &Shop) -> Vec<(String, String)> {
    let keys = shop.keys("").await.into_iter();
    keys.filter(|(pk, sk)| pk.contains("ann") || sk.contains("ann") || pk == "DOC#hers").collect()
}

#[tokio::test]
async fn an_abandoned_erasure_is_finished_after_the_grace() {
    let shop = Shop::open(0).await;
    begin_erasure(&shop).await;
    let before = left_of_ann(&shop).await;
    assert_eq!(run_round(&shop, 60).await, removed(0), "the request may still be at work");
    assert_eq!(left_of_ann(&shop).await, before);
    assert_eq!(run_round(&shop, 0).await, removed(1));
    // A round reads only `Erasure` items that were written before its start. The previous round
    // wrote this one.
    assert_eq!(run_round(&shop, 0).await, Round { erased: 1, ..removed(0) });
    assert_eq!(left_of_ann(&shop).await, []);
    assert_eq!(stored(&shop, "DOC#his").await, 3);
    assert_eq!(run_round(&shop, 0).await, removed(0), "a later round finds no removal");
}

/// The request removed the profile. Then it stopped, before it removed belongings that the index
/// had not shown.
#[tokio::test]
async fn the_janitor_erases_the_belongings_that_an_interrupted_erasure_left() {
    let shop = Shop::open(0).await;
    begin_erasure(&shop).await;
    let profile = shop.profile("ann").await;
    shop.transact(&customer::delete(&profile, Instant::now()).unwrap()).await;
    assert_eq!(run_round(&shop, 0).await, Round { erased: 1, ..removed(0) });
    assert_eq!(left_of_ann(&shop).await, []);
}

#[tokio::test]
async fn a_round_that_stops_at_any_point_is_continued_by_later_rounds() {
    let mut interrupted = 0;
    for waits in (0..).step_by(3) {
        let shop = Shop::open(0).await;
        begin_erasure(&shop).await;
        draw_up(&shop, "discarded", "bob", &[("a", "A")]).await;
        write_texts(&shop, "discarded", 12, "text", true).await;
        draw_up(&shop, "deleted", "bob", &[("a", "A")]).await;
        retire(&shop, "deleted", 1).await;
        let done = crash_after(waits, Box::pin(run_round(&shop, 0))).await.is_some();
        let mut rounds = 0;
        while run_round(&shop, 0).await != removed(0) {
            rounds += 1;
            assert!(rounds < 4, "after {waits} waits");
        }
        interrupted += usize::from(rounds > 0);
        assert_eq!(left_of_ann(&shop).await, [], "after {waits} waits");
        let left = (stored(&shop, "DOC#discarded").await, stored(&shop, "DOC#deleted").await);
        assert_eq!(left, (3, 0), "after {waits} waits");
        assert_eq!(shop.own().query(&erasure::pending(Instant::MAX).unwrap()).await.unwrap().items, []);
        assert!(shop.objects.list(ARCHIVE, None, 10).unwrap().items.is_empty());
        if done {
            break;
        }
    }
    assert!(interrupted > 3, "only {interrupted} interruptions left work");
}
