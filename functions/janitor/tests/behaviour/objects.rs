//! Tests of objects with and without references.

use std::time::Duration;

use bytes::Bytes;
use emulators::faults::{Fault, FaultKind};
use futures::future::join_all;
use janitor::Grace;
use janitor::round::Round;
use key_schema::id::{Born, MediaId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::media::{self, MediaKind, MediaObject, UnsettledObject};
use key_schema::money::{Currency, Money};
use key_schema::picture::PicturesItem;
use key_schema::picture::{self, Picture, PictureSize, ProductPictures};
use key_schema::product::{CategoryPath, Product, ProductContent};
use tokio::time;

use crate::support::{BUCKET, Shop, begun, product};

fn id(number: u8) -> MediaId {
    MediaId::generate(begun(), [number; 10])
}

fn note(kind: MediaKind, number: u8, since: Instant) -> Stored<UnsettledObject> {
    let note = UnsettledObject::new(kind, product(1), id(number), since);
    Stored::new(note, Born::new("b1").unwrap(), since)
}

fn picture(number: u8) -> Picture {
    let object = MediaObject { id: id(number), content_type: "image/png".to_owned(), bytes: 1 };
    Picture { object, alt: None, shape: None, added_at: begun() }
}

/// Opens a shop with one product and these objects for it.
async fn shop(objects: &[(MediaKind, u8)]) -> Shop {
    let shop = Shop::open(1).await;
    shop.seed(Product::new(
        product(1),
        "Tea".to_owned(),
        "National".to_owned(),
        Money::new(1, Currency::USD),
        CategoryPath::new(vec!["TEA".to_owned()]).unwrap(),
    ))
    .await;
    for (kind, number) in objects {
        shop.objects.put(BUCKET, &kind.kept(&product(1), &id(*number)), Bytes::from_static(b"x")).unwrap();
    }
    shop
}

fn names(shop: &Shop) -> Vec<String> {
    shop.objects.list(BUCKET, None, 100).unwrap().items.into_iter().map(|object| object.name).collect()
}

async fn noted(shop: &Shop) -> usize {
    shop.own().query(&media::unsettled_since(Instant::MAX).unwrap()).await.unwrap().items.len()
}

async fn list(shop: &Shop, pictures: Vec<Picture>) {
    shop.seed(ProductPictures { product_id: product(1), pictures }).await;
}

fn deleted(deleted: u32) -> Round {
    Round { deleted, ..Round::default() }
}

async fn run_round(shop: &Shop, grace: u32) -> Round {
    let until = time::Instant::now() + Duration::from_secs(60);
    let (round, listed) = shop.janitor().run_round(Instant::now(), Grace::seconds(grace), until).await;
    listed.unwrap();
    round
}

#[tokio::test]
async fn an_unreferenced_object_is_deleted_after_the_grace() {
    let shop = shop(&[(MediaKind::Picture, 1), (MediaKind::Content, 2), (MediaKind::Picture, 3)]).await;
    let small = MediaKind::Picture.copy(&product(1), &id(1), PictureSize::Small);
    shop.objects.put(BUCKET, &small, Bytes::from_static(b"x")).unwrap();
    for (kind, number, since) in
        [(MediaKind::Picture, 1, begun()), (MediaKind::Content, 2, begun()), (MediaKind::Picture, 3, Instant::now())]
    {
        shop.own().write(&media::note(&note(kind, number, since)).unwrap()).await.unwrap().unwrap();
    }
    assert_eq!(run_round(&shop, 60).await, deleted(2));
    assert_eq!(
        names(&shop),
        [MediaKind::Picture.kept(&product(1), &id(3))],
        "another request may be copying the object"
    );
    assert_eq!(noted(&shop).await, 1);
    assert_eq!(run_round(&shop, 60).await, deleted(0));
    assert_eq!(run_round(&shop, 0).await, deleted(1));
    assert_eq!((names(&shop).len(), noted(&shop).await), (0, 0));
}

#[tokio::test]
async fn a_referenced_object_stays_despite_any_note() {
    let shop = shop(&[(MediaKind::Picture, 1), (MediaKind::Content, 2)]).await;
    list(&shop, vec![picture(1)]).await;
    let file = MediaObject { id: id(2), content_type: "text/plain".to_owned(), bytes: 1 };
    shop.seed(ProductContent { product_id: product(1), text: String::new(), file: Some(file) }).await;
    for (kind, number) in [(MediaKind::Picture, 1), (MediaKind::Content, 2)] {
        shop.own().write(&media::note(&note(kind, number, begun())).unwrap()).await.unwrap().unwrap();
    }
    assert_eq!(run_round(&shop, 60).await, deleted(0));
    assert_eq!((names(&shop).len(), noted(&shop).await), (2, 0), "the note is removed");
}

#[tokio::test]
async fn an_object_whose_deletion_failed_cannot_be_used_before_a_retry_deletes_it() {
    let shop = shop(&[(MediaKind::Picture, 1)]).await;
    let noted_before = note(MediaKind::Picture, 1, begun());
    shop.own().write(&media::note(&noted_before).unwrap()).await.unwrap().unwrap();
    shop.objects.faults().add(Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 1 }).unwrap();
    assert_eq!(run_round(&shop, 60).await, Round { failed: 1, ..deleted(0) });
    shop.objects.faults().clear();
    // An object that is being deleted gets no new `UnsettledObject` and no reference.
    let again = shop.own().write(&media::note(&note(MediaKind::Picture, 1, Instant::now())).unwrap()).await;
    assert!(again.unwrap().is_err());
    let add = picture::add(&picture(1), &noted_before, None, begun()).unwrap();
    let refusals = shop.own().transact(&add).await.unwrap().unwrap_err();
    assert_eq!(refusals.iter().map(|refusal| refusal.action).collect::<Vec<_>>(), [picture::PictureAction::Object]);
    // During the grace period no other janitor tries, because the first janitor may still be
    // deleting the object.
    assert_eq!(run_round(&shop, 60).await, deleted(0));
    assert_eq!(run_round(&shop, 0).await, deleted(1));
    assert_eq!((names(&shop).len(), noted(&shop).await), (0, 0));
    // After the deletion the object may be uploaded again.
    shop.own().write(&media::note(&note(MediaKind::Picture, 1, Instant::now())).unwrap()).await.unwrap().unwrap();
    shop.own().transact(&add).await.unwrap().unwrap();
    assert_eq!(noted(&shop).await, 0);
}

/// For these janitors, the `UnsettledObject` of a new object is already older than the grace
/// period. So a copy may complete after the object's deletion and remain, but no picture may lose
/// its object.
#[tokio::test]
async fn janitors_that_run_too_early_delete_no_referenced_object() {
    let shop = shop(&[]).await;
    let (shop, product_id): (&Shop, &ProductId) = (&shop, &product(1));
    let media = &shop.media();
    for number in 0..6 {
        let pending = MediaKind::Picture.pending(product_id, &id(number));
        shop.objects.put(BUCKET, &pending, Bytes::from_static(b"x")).unwrap();
    }
    // Adds or removes a picture. A conflict with a concurrent call is ignored.
    let turn = async |number: u8| {
        let (known, at) = (pictures(shop).await, Instant::now());
        let mut note = note(MediaKind::Picture, number, begun());
        note.meta.born = Born::generate(at, [number; 10]);
        if let Some(known) = known.as_ref().filter(|known| known.find(&id(number)).is_some()) {
            return drop(shop.own().transact(&picture::remove(known, &note, at).unwrap()).await);
        }
        if shop.own().write(&media::note(&note).unwrap()).await.unwrap().is_ok() {
            let (kind, id) = (MediaKind::Picture, id(number));
            media.copy(&kind.pending(product_id, &id), &kind.kept(product_id, &id)).await.unwrap();
            let _ = shop.own().transact(&picture::add(&picture(number), &note, known.as_ref(), at).unwrap()).await;
        }
    };
    let (mut listed, mut cleared) = (0, 0);
    for number in 0..30 {
        let turns = join_all((0..12).map(|number| turn(number % 6)));
        // The janitors run only in every second step, so that some objects exist.
        let rounds = join_all((0..2).filter(|_| number % 2 == 1).map(|_| run_round(shop, 60)));
        let (_, rounds) = futures::future::join(turns, rounds).await;
        cleared += rounds.iter().map(|round| round.deleted).sum::<u32>();
        let objects = names(shop);
        for picture in pictures(shop).await.iter().flat_map(|known| &known.pictures) {
            listed += 1;
            let object = MediaKind::Picture.kept(product_id, &picture.object.id);
            assert!(objects.contains(&object), "a picture without an object");
        }
    }
    assert!(listed > 5 && cleared > 5, "{listed} pictures, {cleared} deletions");
}

async fn pictures(shop: &Shop) -> Option<Stored<ProductPictures>> {
    let found = shop.own().batch_get(&picture::prepare(&product(1)).unwrap()).await.unwrap();
    found.into_iter().flatten().find_map(|item| match item {
        PicturesItem::ProductPictures(known) => Some(known),
        _ => None,
    })
}
