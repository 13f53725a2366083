//! Tests of `ops verify`.

mod damage;
mod picking;
mod promotions;
mod ranks;
pub mod variants;
pub mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::{TestTable, seed, with_writer};
use key_schema::id::{CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Entity as _;
use key_schema::product::Stock;
use key_schema::{customer, like, location, product};
use ops::Items;
use ops::verify::{Kind, MAX_TOTALS, Verified, VerifyOptions, verify};

/// The options of a test: no rate limit, and a short wait for copies that nothing refreshes.
pub fn options(fix: bool) -> VerifyOptions {
    VerifyOptions {
        fix,
        entities: Vec::new(),
        segments: 4,
        max_read_units: None,
        limit: 100,
        settle: Duration::from_millis(10),
        max_totals: MAX_TOTALS,
    }
}

fn items(table: &TestTable) -> Items {
    Items::new(table.client(), table.name().to_owned())
}

async fn run(table: &TestTable, options: &VerifyOptions) -> Verified {
    verify(&items(table), options).await.unwrap()
}

#[tokio::test]
async fn verify_reports_no_difference_in_a_shop_filled_by_requests() {
    let table = TestTable::create().await;
    world::fill(&table).await;
    let verified = run(&table, &options(false)).await;
    assert!(verified.is_clean() && verified.findings.is_empty() && verified.unsettled == 0, "{verified}");
    assert_eq!(verified.items, u64::try_from(table.items("").await.len()).unwrap());
    let before = table.items("").await.len();
    assert!(run(&table, &options(true)).await.is_clean());
    assert_eq!(table.items("").await.len(), before);
}

/// The run may hold only four totals at a time. So it checks the table's totals in several parts.
#[tokio::test]
async fn totals_are_checked_in_parts_if_there_are_many() {
    let table = TestTable::create().await;
    world::fill(&table).await;
    table.sell(seed::product("ice", seed::usd(129)), 50).await;
    for number in 0..40 {
        table.sign_up(&format!("c{number}")).await;
        let data = like::Like {
            customer_id: CustomerId::new(format!("c{number}")).unwrap(),
            product_id: ProductId::new("ice").unwrap(),
        };
        table.transact(&like::put(&seed::stored(data)).unwrap()).await;
    }
    world::derived(&table).await;
    let few = VerifyOptions { max_totals: 4, ..options(false) };
    let verified = run(&table, &few).await;
    assert!(verified.is_clean(), "{verified}");
    let wrong = AttributeValue::N("99".to_owned());
    let counts = table.keys("PRODUCT#ice").await.into_iter().filter(|(_, sk)| sk.starts_with("LIKES#"));
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts.len(), 8);
    for (pk, sk) in &counts {
        table.set(pk, sk, "likes", wrong.clone()).await;
    }
    assert_eq!(run(&table, &few).await.found[&Kind::Total].left, 8);
    let fixed = run(&table, &VerifyOptions { fix: true, ..few }).await;
    assert!(fixed.is_clean() && fixed.found[&Kind::Total].repaired == 8, "{fixed}");
}

/// The total changes before each request, so no two reads agree on a difference.
#[tokio::test(flavor = "multi_thread")]
async fn a_total_that_keeps_changing_is_not_checked_and_the_command_says_so() {
    let table = Arc::new(TestTable::create().await);
    world::fill(&table).await;
    let (written, sum) = (Arc::clone(&table), AtomicU64::new(1_000));
    let changing = with_writer(&table.client(), move |_| {
        let (table, sum) = (Arc::clone(&written), sum.fetch_add(1, Ordering::Relaxed).to_string());
        async move { table.set("PRODUCT#tea", "PRODUCT#STATS", "rating_sum", AttributeValue::N(sum)).await }
    });
    let changing = Items::new(changing, table.name().to_owned());
    let verified = verify(&changing, &options(false)).await.unwrap();
    assert!(verified.unsettled == 1 && !verified.is_clean(), "{verified}");
    assert!(verified.to_string().contains("1 totals kept changing and were NOT CHECKED"), "{verified}");
    let settled = run(&table, &options(true)).await;
    assert!(settled.is_clean() && settled.found[&Kind::Total].repaired == 1, "{settled}");
}

#[tokio::test]
async fn a_summary_shows_the_first_findings_and_counts_all() {
    let table = TestTable::create().await;
    for number in 0..20 {
        table.sign_up(&format!("c{number}")).await;
        table.delete_at(&format!("EMAIL#c{number}@example.com"), "EMAIL").await;
    }
    let verified = run(&table, &VerifyOptions { limit: 3, ..options(false) }).await;
    assert_eq!((verified.left(), verified.findings.len()), (20, 3), "{verified}");
    assert!(verified.to_string().ends_with("and 17 more: give a higher --limit\n"), "{verified}");
    let fixed = run(&table, &VerifyOptions { limit: 3, ..options(true) }).await;
    assert_eq!((fixed.repaired(), fixed.left(), fixed.findings.len()), (20, 0, 3), "{fixed}");
}

#[tokio::test]
async fn only_the_given_entities_are_checked() {
    let table = TestTable::create().await;
    world::fill(&table).await;
    let number = |number: &str| AttributeValue::N(number.to_owned());
    table.set("STOCK#tea#main#00000000000000000000", "STOCK", "available", number("2000000000000")).await;
    let only = |entity: &str| VerifyOptions { entities: vec![entity.to_owned()], ..options(false) };
    assert!(run(&table, &only("Order")).await.is_clean());
    assert_eq!(run(&table, &only("Stock")).await.left(), 1);
}

#[tokio::test]
async fn a_stock_at_a_location_that_does_not_exist_is_an_orphan() {
    let table = TestTable::create().await;
    table.sell(seed::product("tea", seed::usd(129)), 5).await;
    let ulm = location::StockLocation { id: "ulm".parse().unwrap(), name: "Ulm".to_owned(), address: None };
    table.transact(&location::create(&seed::stored(ulm.clone())).unwrap()).await;
    let tea = ProductId::new("tea").unwrap();
    let set = product::set_stock_at(&tea, &ulm.id, 7, &seed::born(), Instant::now()).unwrap();
    table.transact(&set).await;
    assert!(run(&table, &options(false)).await.is_clean());
    // Only the stock that orders sell has several shards.
    let stock = Stock { location: ulm.id.clone(), shard: 5, ..Stock::new(tea, 1) };
    table.put(&seed::stored(stock.clone())).await;
    assert_eq!(run(&table, &options(false)).await.found[&Kind::Orphan].left, 1);
    table.delete(&seed::stored(stock).key().unwrap()).await;
    table.delete(location::get(&ulm.id).unwrap().key()).await;
    let verified = run(&table, &options(false)).await;
    let left = |kind| verified.found[&kind].left;
    assert_eq!((verified.left(), left(Kind::Orphan), left(Kind::Total)), (2, 1, 1), "{verified}");
}

/// Requests run all the time. No state between two of their writes counts as a difference.
#[tokio::test(flavor = "multi_thread")]
async fn verify_reports_no_difference_in_a_shop_in_use() {
    let table = Arc::new(TestTable::create().await);
    world::fill(&table).await;
    let ended = Arc::new(AtomicBool::new(false));
    let writer = |number: usize| {
        let (table, ended) = (Arc::clone(&table), Arc::clone(&ended));
        tokio::spawn(async move {
            let mut rounds = 0;
            while !ended.load(Ordering::Relaxed) {
                let name = format!("w{number}x{rounds}");
                let (customer, tea) = (CustomerId::new(&name).unwrap(), ProductId::new("tea").unwrap());
                let profile = seed::stored(seed::customer(&name));
                table.transact(&customer::create(&profile).unwrap()).await;
                let data = like::Like { customer_id: customer.clone(), product_id: tea.clone() };
                let _ = table.own().transact(&like::put(&seed::stored(data)).unwrap()).await.unwrap();
                let _ = table.own().transact(&like::remove(&customer, &tea, Instant::now()).unwrap()).await.unwrap();
                table.transact(&customer::delete(&profile, Instant::now()).unwrap()).await;
                let _ = table.own().update(&product::set_stock(&tea, 50, Instant::now()).unwrap()).await;
                rounds += 1;
            }
            rounds
        })
    };
    let writers = [writer(1), writer(2)];
    let mut runs = 0;
    // No consumer writes the ranks of the likes, so they stay behind.
    let is_right = |verified: &Verified| {
        let mut others = verified.findings.iter().filter(|finding| !finding.key.starts_with("TALLY#likes#tea RANK#"));
        others.next().is_none()
    };
    for _ in 0..10 {
        let verified = run(&table, &options(false)).await;
        assert!(is_right(&verified), "{verified}");
        runs += 1;
    }
    // A repair in a running shop breaks nothing either.
    assert!(is_right(&run(&table, &options(true)).await));
    ended.store(true, Ordering::Relaxed);
    let mut rounds = 0;
    for writer in writers {
        rounds += writer.await.unwrap();
    }
    assert!(rounds > runs, "{rounds} rounds of requests in {runs} runs");
    assert!(run(&table, &options(true)).await.is_clean());
}
