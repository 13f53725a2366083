//! Measures a product with five pictures and a long text.

use key_schema::id::MediaId;
use key_schema::item::Stored;
use key_schema::media::{self, MediaKind, MediaObject, UnsettledObject};
use key_schema::picture::PicturesItem;
use key_schema::picture::{self, Picture, ProductPictures};
use key_schema::product::{self, ProductContent};

use super::Bench;
use crate::data::{at, product_id, stored};

fn object(number: u8) -> MediaObject {
    let id = MediaId::generate(at(i64::from(number)), [number; 10]);
    MediaObject { id, content_type: "image/webp".to_owned(), bytes: 482_113 }
}

fn note(kind: MediaKind, number: u8) -> Stored<UnsettledObject> {
    stored(UnsettledObject::new(kind, product_id(4), object(number).id, at(i64::from(number))), number)
}

pub async fn measure(bench: &mut Bench) {
    let mut known: Option<Stored<ProductPictures>> = None;
    for number in 1..=5 {
        let note = note(MediaKind::Picture, number);
        let alt = Some("A bag of ice in front of a bath".to_owned());
        let picture = Picture { object: object(number), alt, shape: None, added_at: at(0) };
        let add = picture::add(&picture, &note, known.as_ref(), at(1)).unwrap();
        if number == 5 {
            bench.write("one object", media::note(&note).unwrap()).await;
            bench.transact("the fifth picture", add).await;
        } else {
            bench.table.write(&media::note(&note).unwrap()).await.unwrap().unwrap();
            if number == 1 {
                let _ = bench.table.meter().take();
                bench.transact("the first picture", add).await;
            } else {
                bench.table.transact(&add).await.unwrap().unwrap();
            }
        }
        known = list(bench).await;
    }
    let known = known.unwrap();
    bench.batch_get("5 pictures", picture::list(&product_id(4)).unwrap()).await;
    bench.batch_get("5 pictures", picture::prepare(&product_id(4)).unwrap()).await;
    bench.update("one of 5 pictures", picture::describe(&known, &object(5).id, Some("Ice"), at(2)).unwrap()).await;
    let (known, left) = (list(bench).await.unwrap(), note(MediaKind::Picture, 5));
    bench.transact("one of 5 pictures", picture::remove(&known, &left, at(3)).unwrap()).await;
    texts(bench).await;
    janitor(bench, &left).await;
    let (known, first) = (list(bench).await.unwrap(), note(MediaKind::Picture, 1));
    bench.transact("the first of 4 pictures", picture::remove(&known, &first, at(3)).unwrap()).await;
}

async fn list(bench: &mut Bench) -> Option<Stored<ProductPictures>> {
    let found = bench.table.batch_get(&picture::list(&product_id(4)).unwrap()).await.unwrap();
    let _ = bench.table.meter().take();
    found.into_iter().flatten().find_map(|item| match item {
        PicturesItem::ProductPictures(known) => Some(known),
        _ => None,
    })
}

async fn texts(bench: &mut Bench) {
    let long = note(MediaKind::Content, 6);
    let file = ProductContent { product_id: product_id(4), text: String::new(), file: Some(object(6)) };
    bench.table.write(&media::note(&long).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let create = product::create_content(&stored(file.clone(), 6), Some(&long)).unwrap();
    bench.transact("a text that was uploaded", create).await;
    let next = note(MediaKind::Content, 7);
    bench.table.write(&media::note(&next).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let file = ProductContent { file: Some(object(7)), ..file };
    let replace = product::replace_content(&file, Some(&next), Some(&long), 1, at(4)).unwrap();
    bench.transact("a replaced upload", replace).await;
}

async fn janitor(bench: &mut Bench, left: &Stored<UnsettledObject>) {
    bench.query("2 objects", 2, media::unsettled_since(at(100)).unwrap()).await;
    let listed = media::Unsettled { product_id: left.product_id.clone(), id: left.id.clone() };
    let doomed = bench.update("one object", media::doom(&listed, at(100), at(100)).unwrap()).await;
    bench.batch_get("5 pictures", media::references(&doomed).unwrap()).await;
    bench.write("one object", media::forget(&doomed).unwrap()).await;
}
