//! Tests of a category whose move was begun and abandoned.

use std::time::Duration;

use emulators::table::FaultKind;
use janitor::{Grace, Moved};
use key_schema::category::relocation::{self, CategoryMove, Phase};
use key_schema::category::{self, CategoryNode};
use key_schema::id::Born;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::CategoryPath;
use tokio::time;

use crate::support::Shop;

fn path(segment: &str) -> CategoryPath {
    CategoryPath::from_segment(segment).unwrap()
}

impl Shop {
    /// Creates a category with one child. Begins the category's move, but does not continue it.
    async fn leave_moving(&self) {
        let (born, now) = (Born::new("b1").unwrap(), Instant::now());
        let nodes: Vec<_> =
            path("A~B~C").lineage().map(|path| Stored::new(CategoryNode::new(path), born.clone(), now)).collect();
        assert_eq!(self.own().batch_write(&category::add(&nodes).unwrap()).await.unwrap(), []);
        let wanted = CategoryMove::new(path("A~B"), path("Z"), now);
        self.own().transact(&relocation::begin(wanted, None, born, now).unwrap()).await.unwrap().unwrap();
    }

    async fn phase(&self) -> Phase {
        self.own().get(&relocation::get().unwrap()).await.unwrap().unwrap().phase
    }

    /// Returns the existing categories among `paths`.
    async fn existing(&self, paths: &[&str]) -> Vec<String> {
        let wanted: Vec<CategoryPath> = paths.iter().map(|segment| path(segment)).collect();
        let found = self.own().batch_get(&category::known(&wanted).unwrap()).await.unwrap();
        found.into_iter().flatten().map(|node| node.path.to_segment()).collect()
    }
}

fn far() -> time::Instant {
    time::Instant::now() + Duration::from_secs(600)
}

const PLACES: [&str; 5] = ["A", "A~B", "A~B~C", "Z", "Z~C"];

#[tokio::test]
async fn the_janitor_finishes_an_interrupted_move_of_a_category() {
    let shop = Shop::open(0).await;
    let none = Grace::seconds(0);
    assert_eq!(shop.janitor().go_on(Instant::now(), none, far()).await, None, "no category was moved before");
    shop.leave_moving().await;
    assert_eq!(
        shop.janitor().go_on(Instant::now(), Grace::seconds(60), far()).await,
        None,
        "a recent move is left to its request"
    );
    assert_eq!(
        shop.janitor().go_on(Instant::now(), none, time::Instant::now()).await,
        Some(Moved::Continued),
        "no time was left"
    );
    assert_eq!(shop.phase().await, Phase::Copying);

    assert_eq!(shop.janitor().go_on(Instant::now(), none, far()).await, Some(Moved::Continued));
    assert_eq!(
        (shop.phase().await, shop.existing(&PLACES).await),
        (Phase::Settling, vec!["A".into(), "Z".into(), "Z~C".into()])
    );
    assert_eq!(shop.janitor().settling(0).go_on(Instant::now(), none, far()).await, Some(Moved::Done));
    assert_eq!(shop.phase().await, Phase::Done);
    assert_eq!(shop.janitor().go_on(Instant::now(), none, far()).await, None, "the move is done");
}

#[tokio::test]
async fn a_failed_move_of_a_category_is_retried_and_does_not_delay_orders() {
    let shop = Shop::open(1).await;
    shop.leave_moving().await;
    let plan = shop.plan(1, 1);
    shop.leave(&plan, 1).await;
    shop.fail(FaultKind::Error);
    assert_eq!(shop.janitor().go_on(Instant::now(), Grace::seconds(0), far()).await, Some(Moved::Failed));
    shop.clear_faults();
    assert_eq!(shop.tidy().await.undone, 1);
    assert_eq!(shop.janitor().settling(0).go_on(Instant::now(), Grace::seconds(0), far()).await, Some(Moved::Done));
    assert_eq!(shop.existing(&PLACES).await, ["A", "Z", "Z~C"]);
}
