//! Tests of products and categories that arrive at or below the old path during the move.

use key_schema::category::relocation::Phase;
use workflows::relocation::Mover;

use crate::shop::{Shop, far, path};
use crate::{TOPS, from, furnished, to};

/// Returns a catalogue with a move that has removed the old categories. The move still waits for
/// requests that may have read these categories.
async fn settling() -> Shop {
    let shop = furnished().await;
    shop.begin(&from(), &to()).await;
    assert_eq!(shop.mover().go_on(far()).await.unwrap().unwrap().phase, Phase::Settling);
    shop
}

#[tokio::test]
async fn a_product_also_moves_if_a_late_request_creates_it_in_the_old_category() {
    let mut shop = settling().await;
    shop.create_late("late", &from()).await;
    shop.create_late("late below", &path(&["A", "B #1", "x"])).await;
    // The next request is from a client that had created the category `new` after the move made
    // its copies. The move then removed `new` together with its parent.
    shop.create_late("late at a new place", &path(&["A", "B #1", "x", "new"])).await;
    shop.put_into("p6", &path(&["A", "B #1", "x"])).await;
    let done = shop.finish().await;
    assert_eq!((done.products, done.memberships), (8 + 3, 3 + 1));
    shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
}

#[tokio::test]
async fn a_move_ends_only_after_all_requests_that_saw_the_old_category_have_ended() {
    let mut shop = settling().await;
    let waiting = shop.current().await;
    assert_eq!(
        Mover::new(shop.own()).go_on(far()).await.unwrap(),
        Some(waiting.clone()),
        "a mover with the default waiting time does not go on"
    );
    shop.create_late("late", &from()).await;
    assert_eq!(shop.mover().go_on(far()).await.unwrap(), Some(waiting));
    shop.finish().await;
    shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
}

#[tokio::test]
async fn the_missing_ancestors_of_a_late_category_are_restored() {
    let shop = settling().await;
    // A request that saw the ancestors before their removal creates this category.
    let orphan = path(&["A", "B #1", "ä~/%", "new"]);
    shop.add_alone(&orphan).await;
    shop.finish().await;
    shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
    assert!(shop.categories(&TOPS).await.contains_key(&orphan));
}

#[tokio::test]
async fn a_category_that_is_created_after_the_copying_phase_moves_with_its_description() {
    let mut shop = furnished().await;
    shop.begin(&from(), &to()).await;
    while shop.current().await.phase != Phase::Placing {
        let now = shop.current().await;
        assert_eq!(now.phase, Phase::Copying);
        crate::crash_after(16, shop.mover().go_on(far())).await;
    }
    let new = path(&["A", "B #1", "a", "new"]);
    shop.create("new", &new).await;
    assert!(shop.describe(&new, "New").await);
    assert!(!shop.describe(&path(&["A", "B #1", "x"]), "X").await, "a moved category is described at its new path");
    assert!(shop.describe(&path(&["Neu / 新", "100 %", "x"]), "X").await);
    shop.finish().await;
    shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
    assert!(!shop.categories(&TOPS).await.contains_key(&from()));
}

#[tokio::test]
async fn a_product_and_its_categories_stay_if_the_new_path_would_be_too_deep() {
    let mut shop = Shop::open().await;
    let (from, to) = (path(&["A", "B"]), path(&["Out", "1", "2", "3", "4"]));
    let deep = path(&["A", "B", "C", "D", "E", "F", "G"]);
    shop.create("deep", &deep).await;
    shop.create("flat", &path(&["A", "B", "C", "side"])).await;
    shop.put_into("flat", &deep).await;
    assert!(shop.describe(&deep, "Deep").await);
    shop.begin(&from, &to).await;
    assert_eq!(shop.mover().go_on(far()).await.unwrap().unwrap().phase, Phase::Settling);
    let categories = shop.categories(&TOPS).await;
    assert!(deep.lineage().all(|above| categories.contains_key(&above)), "a category always has its ancestors");
    shop.finish().await;
    shop.assert_is(&shop.known.moved(&from, &to), &TOPS).await;
    let categories = shop.categories(&TOPS).await;
    assert!(!categories.contains_key(&path(&["A", "B", "C", "side"])), "categories with a valid new path have moved");
    assert!(shop.describe(&from, "Bee").await, "a remaining category can be described");
}

#[tokio::test]
async fn a_category_stays_if_its_new_path_has_another_description() {
    let mut shop = Shop::open().await;
    let (from, to) = (path(&["A", "B"]), path(&["Out", "B"]));
    shop.grow(&path(&["A", "B", "C"])).await;
    shop.grow(&path(&["Out", "B", "C"])).await;
    for (place, title) in [(path(&["A", "B", "C"]), "old"), (path(&["Out", "B", "C"]), "new")] {
        assert!(shop.describe(&place, title).await);
    }
    // A move begins only if its new path does not exist.
    shop.remove_node(&to).await;
    shop.create("p", &path(&["A", "B", "C"])).await;
    shop.begin(&from, &to).await;
    shop.finish().await;
    let mut expected = shop.known.moved(&from, &to);
    expected.titles.clone_from(&shop.known.titles);
    shop.assert_is(&expected, &TOPS).await;
}

#[tokio::test]
async fn after_the_move_a_product_of_both_categories_is_in_the_new_category_once() {
    let mut shop = furnished().await;
    shop.begin(&from(), &to()).await;
    shop.put_into("p7", &from()).await;
    shop.put_into("p7", &to()).await;
    shop.finish().await;
    shop.assert_is(&shop.known.moved(&from(), &to()), &TOPS).await;
}
