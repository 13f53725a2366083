//! Tests of a product in further categories: its entries converge to the product's newest state.

use std::slice::from_ref;

use key_schema::item::Stored;
use key_schema::membership;
use key_schema::product::{self as schema, CategoryPath, Product, ProductSummary};

use crate::derived::Shop;
use crate::support::{insert, modify, product, retired};

fn summer() -> CategoryPath {
    CategoryPath::new(vec!["SUMMER".into(), "Party #1".into()]).unwrap()
}

impl Shop {
    /// Returns the entries in the list of the further category.
    async fn summer(&self) -> Vec<ProductSummary> {
        self.table.query(&schema::in_category(&summer()).unwrap()).await.unwrap().items
    }

    async fn names(&self) -> Vec<String> {
        self.summer().await.into_iter().map(|listed| listed.name).collect()
    }

    /// Adds the product to the further category, if the product in the table equals `seen`.
    async fn join(&self, seen: &Stored<Product>) -> bool {
        let add = membership::add(seen, &summer(), None, &seen.meta.born, seen.meta.updated_at).unwrap();
        matches!(self.table.transact(&add).await, Ok(Ok(())))
    }
}

#[tokio::test]
async fn a_further_category_lists_the_newest_state_of_a_product_with_the_products_own_category() {
    let shop = Shop::open().await;
    let one = product("p1", 1);
    shop.put(&one).await;
    assert!(shop.join(&one).await);
    let listed = shop.summer().await;
    assert_eq!((listed.len(), listed[0].version, &listed[0].category_path), (1, 1, &one.data.category_path));
    let mut moved = product("p1", 2);
    moved.data.category_path = CategoryPath::new(vec!["ELSEWHERE".into()]).unwrap();
    moved.data.package_size = Some("22 LB".into());
    shop.deliver(&[&[modify("2", &one, &moved)]]).await;
    let listed = shop.summer().await;
    assert_eq!((listed[0].version, &listed[0].category_path), (2, &moved.data.category_path));
    assert_eq!(listed[0].package_size, moved.data.package_size);
}

#[tokio::test]
async fn case_38_a_product_renamed_during_a_replay_has_its_new_name_in_all_copies() {
    for seed in 0..8 {
        let shop = Shop::open().await;
        let [one, two, three] = [1, 2, 3].map(|rev| product("p1", rev));
        shop.put(&one).await;
        assert!(shop.join(&one).await);
        shop.put(&three).await;
        let mut records =
            vec![insert("1", &one), modify("2", &one, &two), modify("3", &two, &three), modify("2", &one, &two)];
        fastrand::Rng::with_seed(seed).shuffle(&mut records);
        shop.deliver(&[&records[..2], &records[2..]]).await;
        assert_eq!(shop.names().await, ["p1 at rev 3"], "seed {seed}");
        // The write of a consumer that read the membership before the refresh is refused.
        assert!(shop.table.write(&membership::refresh(&two, &summer()).unwrap()).await.unwrap().is_err());
    }
}

#[tokio::test]
async fn case_38_a_membership_created_before_an_old_record_arrives_keeps_the_newest_name() {
    let shop = Shop::open().await;
    let [one, two] = [1, 2].map(|rev| product("p1", rev));
    shop.put(&two).await;
    assert!(!shop.join(&one).await, "the product has changed since it was read");
    assert!(shop.join(&two).await);
    shop.deliver(&[&[insert("1", &one), modify("2", &one, &two)]]).await;
    assert_eq!(shop.names().await, ["p1 at rev 2"]);
}

#[tokio::test]
async fn a_further_category_has_the_newest_first_picture() {
    let shop = Shop::open().await;
    let [seen, mut pictured] = [1, 1].map(|rev| product("p1", rev));
    pictured.meta.rev = 2;
    pictured.data.thumbnail = Some("m1".parse().unwrap());
    shop.put(&pictured).await;
    assert!(!shop.join(&seen).await, "the first picture has changed since the product was read");
    assert!(shop.join(&pictured).await);
    let thumbnail = async || shop.summer().await[0].thumbnail.clone();
    assert_eq!(thumbnail().await, pictured.data.thumbnail);
    let mut bare = pictured.clone();
    bare.meta.rev = 3;
    bare.data.thumbnail = None;
    shop.deliver(&[&[modify("3", &pictured, &bare), modify("2", &seen, &pictured)]]).await;
    assert_eq!(thumbnail().await, None);
}

#[tokio::test]
async fn a_copied_stock_flag_does_not_block_a_membership_or_cause_a_write_to_it() {
    let shop = Shop::open().await;
    let seen = product("p1", 1);
    let mut copied = seen.clone();
    copied.meta.rev = 7;
    copied.data.copied.in_stock = true;
    shop.put(&copied).await;
    assert!(shop.join(&seen).await);
    let _ = shop.table.meter().take();
    shop.deliver(&[&[modify("2", &seen, &copied)]]).await;
    assert!(shop.table.meter().take().is_empty());
}

#[tokio::test]
async fn a_retired_product_leaves_the_list_and_a_revived_one_comes_back() {
    let shop = Shop::open().await;
    let (one, gone, back) = (product("p1", 1), retired("p1", 2), product("p1", 3));
    shop.put(&one).await;
    assert!(shop.join(&one).await);
    let (went, came) = (modify("2", &one, &gone), modify("3", &gone, &back));
    shop.deliver(&[from_ref(&went)]).await;
    assert!(shop.summer().await.is_empty());
    shop.deliver(&[from_ref(&came), from_ref(&went)]).await;
    assert_eq!(shop.names().await, ["p1 at rev 3"]);
    // The same records arrive again, in the opposite order.
    shop.deliver(&[&[came, went]]).await;
    assert_eq!(shop.names().await, ["p1 at rev 3"]);
}

#[tokio::test]
async fn a_record_does_not_restore_a_removed_membership() {
    let shop = Shop::open().await;
    let [one, two] = [1, 2].map(|rev| product("p1", rev));
    shop.put(&one).await;
    assert!(shop.join(&one).await);
    let lists = membership::lists([&one.data.id]).unwrap();
    let known = shop.table.batch_get(&lists).await.unwrap().remove(0).unwrap();
    shop.table.transact(&membership::remove(&known, &summer(), known.meta.updated_at).unwrap()).await.unwrap().unwrap();
    // This write is from a consumer that read the membership before its removal.
    let late = membership::refresh(&two, &summer()).unwrap();
    assert!(shop.table.write(&late).await.unwrap().is_err());
    shop.deliver(&[&[modify("2", &one, &two)]]).await;
    assert!(shop.summer().await.is_empty());
}
