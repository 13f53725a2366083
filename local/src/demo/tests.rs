#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;

/// The products that the demo shows without a picture, as a real shop has some.
const WITHOUT_PICTURE: [&str; 3] = ["gift-card-25", "postcards", "wrapping-paper"];

#[test]
fn each_product_has_a_picture_or_is_listed_as_without() {
    let content = Content::read().unwrap();
    let bare = content.products.iter().filter(|product| product.pictures.is_empty());
    let bare: BTreeSet<&str> = bare.map(|product| product.id.as_str()).collect();
    assert_eq!(bare, BTreeSet::from(WITHOUT_PICTURE));
}

#[test]
fn each_picture_belongs_to_a_product_and_is_a_small_webp_file() {
    let content = Content::read().unwrap();
    let used = content.products.iter().flat_map(|product| {
        let own = product.pictures.iter().map(|(name, _)| name.as_str());
        own.chain(product.variants.iter().map(|variant| variant.picture.as_str()))
    });
    let used: BTreeSet<&str> = used.collect();
    let present: BTreeSet<&str> = DEMO_PICTURES.iter().map(|(name, _)| *name).collect();
    assert_eq!(used, present);
    for (name, file) in DEMO_PICTURES {
        assert!(file.starts_with(b"RIFF") && file.get(8..12) == Some(b"WEBP"), "{name}");
    }
    let total: usize = DEMO_PICTURES.iter().map(|(_, file)| file.len()).sum();
    assert!(total < 450 << 10, "{total} bytes");
}

#[test]
fn customers_review_only_products_that_they_have_received() {
    let content = Content::read().unwrap();
    let parent = |id: &str| {
        let parent = content.products.iter().find(|product| product.variants.iter().any(|variant| variant.id == id));
        parent.map_or(id.to_owned(), |parent| parent.id.clone())
    };
    for customer in &content.customers {
        let received = content.orders.iter().filter(|order| {
            order.customer.as_deref() == Some(&customer.id)
                && matches!(order.status, Status::Delivered | Status::Returned)
        });
        let received: BTreeSet<String> = received.flat_map(|order| order.lines.keys()).map(|id| parent(id)).collect();
        for (product, ..) in &customer.reviews {
            assert!(received.contains(product), "{} reviews {product}", customer.id);
        }
    }
}
