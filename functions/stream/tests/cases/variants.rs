//! Tests of variants in the lists of their parents: the copies converge to the newest state.

use key_schema::item::Stored;
use key_schema::product::PageItem;
use key_schema::product::{self as schema, Product};
use key_schema::variant::{self, Options, Variant};

use crate::derived::Shop;
use crate::support::{insert, modify, product};

/// Returns a variant of the product `shirt` at this `rev`.
fn shirt(rev: u64) -> Stored<Product> {
    let mut product = product("p1", rev);
    product.data.parent = Some("shirt".parse().unwrap());
    product.data.options = Some(Options::new([("size".to_owned(), "M".to_owned())].into()).unwrap());
    product
}

impl Shop {
    /// Returns the variants in the list of the parent.
    async fn shirts(&self) -> Vec<Variant> {
        let page = self.table.query(&schema::page(&"shirt".parse().unwrap()).unwrap()).await.unwrap();
        let variant = |item| if let PageItem::Variant(variant) = item { Some(variant.data) } else { None };
        page.items.into_iter().filter_map(variant).collect()
    }
}

#[tokio::test]
async fn a_variant_renamed_during_a_replay_has_its_new_name_in_the_list() {
    for seed in 0..8 {
        let shop = Shop::open().await;
        let [one, two, mut three] = [1, 2, 3].map(shirt);
        three.data.price.amount += 1;
        three.data.copied.in_stock = !one.copied.in_stock;
        three.data.thumbnail = Some("m1".parse().unwrap());
        shop.put(&Variant::of(&one).unwrap()).await;
        let mut records =
            vec![insert("1", &one), modify("2", &one, &two), modify("3", &two, &three), modify("2", &one, &two)];
        fastrand::Rng::with_seed(seed).shuffle(&mut records);
        shop.deliver(&[&records[..2], &records[2..]]).await;
        let [listed] = shop.shirts().await.try_into().unwrap();
        assert_eq!((&listed.name, listed.price, listed.in_stock), (&three.name, three.price, three.copied.in_stock));
        assert_eq!(listed.thumbnail, three.thumbnail);
        // The write of a slower consumer is refused.
        assert!(shop.table.write(&variant::refresh(&two).unwrap().unwrap()).await.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_retired_variant_does_not_return_to_the_list() {
    let shop = Shop::open().await;
    let (one, two, mut three) = (shirt(1), shirt(2), shirt(3));
    three.data.retired = true;
    shop.deliver(&[&[insert("1", &one), modify("2", &one, &two), modify("3", &two, &three)]]).await;
    assert_eq!(shop.shirts().await, []);
    // Another product now has the options. A late record of the first product does not change the
    // entry of the other product.
    let mut other = shirt(1);
    other.data.id = "p2".parse().unwrap();
    shop.put(&Variant::of(&other).unwrap()).await;
    shop.deliver(&[&[modify("2", &one, &two)]]).await;
    let [listed] = shop.shirts().await.try_into().unwrap();
    assert_eq!((listed.product_id.as_str(), &listed.name), ("p2", &other.name));
}

#[tokio::test]
async fn a_change_that_the_list_does_not_show_causes_no_write() {
    let shop = Shop::open().await;
    let one = shirt(1);
    let mut summarised = one.clone();
    summarised.meta.rev = 7;
    summarised.data.summary = Some("Warm.".to_owned());
    shop.put(&Variant::of(&one).unwrap()).await;
    let _ = shop.table.meter().take();
    shop.deliver(&[&[modify("2", &one, &summarised)]]).await;
    assert!(shop.table.meter().take().iter().all(|cost| cost.pattern.id != "variants.refresh"));
}
