//! Tests of erasures, deletions of documents and discarded drafts that no client repeats.

use std::time::Duration;

use fixture::{TestTable, crash_after, seed};
use janitor::Grace;
use janitor::round::Round;
use key_schema::document::{self, Document, Edit, Right};
use key_schema::follow::{self, Follow};
use key_schema::id::{Born, CustomerId, DocumentId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::{customer, erasure};
use tokio::time;

use crate::support::{ARCHIVE, Shop};

fn ann() -> CustomerId {
    "ann".parse().unwrap()
}

async fn run_round(shop: &Shop, grace: u32) -> Round {
    let until = time::Instant::now() + Duration::from_secs(60);
    let (round, listed) = shop.janitor().run_round(Instant::now(), Grace::seconds(grace), until).await;
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

/// Writes texts into a document, published or in a draft. Discards the draft and leaves its texts.
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
    assert_eq!(run_round(&shop, 0).await, removed(0), "once");
    // The document can change again.
    write_texts(&shop, "discarded", 1, "text", false).await;
}

#[tokio::test]
async fn a_deletion_of_more_than_one_budget_takes_several_rounds() {
    let shop = Shop::open(0).await;
    draw_up(&shop, "large", "ann", &[]).await;
    write_texts(&shop, "large", 50, &"x".repeat(100_000), false).await;
    write_texts(&shop, "large", 10, &"x".repeat(100_000), false).await;
    retire(&shop, "large", 61).await;
    assert_eq!(run_round(&shop, 0).await, Round { left: 1, ..removed(0) });
    let halfway = stored(&shop, "DOC#large").await;
    assert!(halfway > 1 && halfway < 100, "{halfway}");
    assert_eq!(run_round(&shop, 0).await, removed(1));
    assert_eq!(stored(&shop, "DOC#large").await, 0);
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
    // A round reads only erasures that were noted before its start. The first round wrote the note.
    assert_eq!(run_round(&shop, 0).await, Round { erased: 1, ..removed(0) });
    assert_eq!(left_of_ann(&shop).await, []);
    assert_eq!(stored(&shop, "DOC#his").await, 3);
    assert_eq!(run_round(&shop, 0).await, removed(0), "once");
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
async fn a_janitor_that_stops_at_any_point_is_continued_by_the_next() {
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
