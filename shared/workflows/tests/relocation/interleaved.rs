//! Tests random trees, with random changes by clients between the steps of the move. Every run must
//! end in the state of a model that moves everything at once.

use fixture::crash_after;
use key_schema::product::CategoryPath;
use proptest::prelude::*;
use workflows::relocation::Mover;

use crate::shop::{Shop, far, path};

const TOPS: [&str; 2] = ["A", "Z"];

#[derive(Debug, Clone)]
enum Change {
    Create(CategoryPath),
    /// A request read the categories before the move began, and creates its product now.
    CreateLate(CategoryPath),
    PutElsewhere(usize, CategoryPath),
    PutInto(usize, CategoryPath),
    Describe(CategoryPath),
}

/// There are few names, so that changes often concern the same category.
fn places() -> impl Strategy<Value = CategoryPath> {
    prop::collection::vec(prop::sample::select(vec!["B", "C#", "ä %"]), 0..4)
        .prop_map(|names| path(&[vec!["A"], names].concat()))
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        2 => places().prop_map(Change::Create),
        2 => places().prop_map(Change::CreateLate),
        2 => (any::<usize>(), places()).prop_map(|(number, place)| Change::PutElsewhere(number, place)),
        2 => (any::<usize>(), places()).prop_map(|(number, place)| Change::PutInto(number, place)),
        1 => places().prop_map(Change::Describe),
    ]
}

impl Shop {
    async fn apply(&mut self, change: &Change) {
        let name = |number: usize| format!("p{}", number % self.known.products.len().max(1));
        let new = format!("p{}", self.known.products.len());
        match change {
            Change::Create(place) => self.create(&new, place).await,
            Change::CreateLate(place) => self.create_late(&new, place).await,
            Change::PutElsewhere(number, place) => self.put_elsewhere(&name(*number), place).await,
            Change::PutInto(number, place) => self.put_into(&name(*number), place).await,
            Change::Describe(place) => {
                self.describe(place, &format!("{place}, descriptions {new}")).await;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_interleaving_ends_with_all_items_at_the_new_place(
        first in prop::collection::vec(changes(), 1..8),
        meanwhile in prop::collection::vec((0usize..40, changes()), 0..10),
        from in prop::sample::select(vec![vec!["A", "B"], vec!["A", "C#"], vec!["A"], vec!["A", "B", "ä %"]]),
        to in prop::sample::select(vec![vec!["Z"], vec!["Z", "ä"], vec!["A", "N"]]),
    ) {
        prop_assume!(!to.starts_with(&from));
        let (from, to) = (path(&from), path(&to));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut shop = Shop::open().await;
            shop.grow(&from).await;
            shop.create("p0", &from).await;
            for change in &first {
                if let Change::CreateLate(place) = change {
                    shop.grow(place).await;
                }
                shop.apply(change).await;
            }
            shop.begin(&from, &to).await;
            for (waits, change) in &meanwhile {
                let somebody = shop.table();
                crash_after(*waits, Mover::new(&somebody).settling(1_000_000).go_on(far())).await;
                // A late request has read its category, so the category existed. Outside the moved
                // subtree the move removes no category, so the test creates a category that is
                // missing there.
                if let Change::CreateLate(place) = change && !place.is_within(&from) {
                    shop.grow(place).await;
                }
                shop.apply(change).await;
            }
            shop.finish().await;
            let model = shop.known.moved(&from, &to);
            let titles = shop.titles(&TOPS).await;
            shop.assert_is(&crate::shop::Known { titles, ..model.clone() }, &TOPS).await;
            // A category that was created again keeps its new description at the old path. The
            // earlier description is at the new path. No description is lost.
            let descriptions = shop.titles(&TOPS).await;
            for title in &shop.descriptions {
                assert!(descriptions.values().any(|known| known == title), "{title}");
            }
        });
    }
}
