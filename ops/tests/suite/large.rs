//! `ops migrate` and `ops verify` over 100,000 items: each run is killed half way, and resumed.
//!
//! `cargo test -p bodega-ops --test suite -- --ignored --nocapture large` takes some minutes and
//! prints its measurements.

use std::time::{Duration, Instant};

use fixture::{TestTable, seed};
use futures::future::join_all;
use key_schema::customer::{self, UsernameClaim};
use key_schema::id::EntryId;
use key_schema::instant::Instant as Timestamp;
use key_schema::item::{Entity as _, Item, Stored};
use key_schema::key::Key;
use key_schema::wallet::{EntryKind, WalletEntry};
use ops::Items;
use ops::migrate::{MigrateOptions, run_migration};
use ops::verify::verify;

use crate::migrate::{BALANCE, Euros, OLD_EUROS, id, old_wallet, wallet};
use crate::verify::options;

/// After the repairs, each customer has five items: the profile, two claims, a wallet and its
/// entry.
const CUSTOMERS: usize = 20_000;
/// One in this many customers has a wallet in the old form, and no claim of the user name.
const DAMAGED: usize = 5;
/// The number of customers by which the test measures the progress of a run. All of them are
/// damaged.
const SAMPLE: usize = 400;
const OPTIONS: MigrateOptions =
    MigrateOptions { dry_run: false, segments: 4, max_read_units: None, max_write_units: None };

fn claim(number: usize) -> Stored<UsernameClaim> {
    let id = id(number);
    let username = seed::customer(id.as_str()).username.folded();
    seed::stored(UsernameClaim { username, customer_id: id })
}

async fn fill(test: &TestTable) {
    for first in (0..CUSTOMERS).step_by(1_000) {
        let numbers = || first..first + 1_000;
        let is_sound = |number: &usize| !number.is_multiple_of(DAMAGED);
        let profile = |number: usize| seed::customer(id(number).as_str());
        let email =
            |number: usize| customer::EmailClaim { email: profile(number).email.folded(), customer_id: id(number) };
        let entry = |number: usize| WalletEntry {
            customer_id: id(number),
            id: EntryId::generate(Timestamp::EPOCH, [1; 10]),
            amount: BALANCE,
            currency: "EUR".parse().unwrap(),
            kind: EntryKind::Deposit,
            at: Timestamp::EPOCH,
            counterparty: None,
            order_id: None,
            note: None,
        };
        test.put_all(numbers().map(|number| seed::stored(profile(number)))).await;
        test.put_all(numbers().map(|number| seed::stored(email(number)))).await;
        test.put_all(numbers().filter(is_sound).map(claim)).await;
        test.put_all(numbers().filter(is_sound).map(wallet)).await;
        for number in numbers().filter(|number| !is_sound(number)) {
            test.put_item(old_wallet(number)).await;
        }
        test.put_all(numbers().map(|number| seed::stored(entry(number)))).await;
    }
}

/// Kills a run when `share` says that at least half of its work is done. Returns that share and the
/// time, or `None` if the run ended first.
async fn kill_half_way<T>(run: impl Future<Output = T>, share: impl AsyncFn() -> f64) -> Option<(f64, Duration)> {
    let start = Instant::now();
    let half = async {
        loop {
            let done = share().await;
            if done >= 0.5 {
                return (done, start.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        half = half => Some(half),
        _ = run => None,
    }
}

/// Returns the share of the sample for which an item exists and passes the test.
async fn share(items: &Items, keys: &[Key], is_done: impl Fn(&Item) -> bool) -> f64 {
    let done = items.get(keys).await.unwrap().values().filter(|item| is_done(item)).count();
    f64::from(u32::try_from(done).unwrap()) / f64::from(u32::try_from(keys.len()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn runs_that_are_killed_half_way_through_100_000_items_are_resumed() {
    let test = TestTable::create().await;
    let start = Instant::now();
    fill(&test).await;
    println!("filled in {:?}", start.elapsed());
    let items = Items::new(test.client(), test.name().to_owned());
    let sample = || (0..CUSTOMERS).step_by(CUSTOMERS / SAMPLE);

    let wallets: Vec<Key> = sample().map(|number| wallet(number).key().unwrap()).collect();
    let is_converted = |item: &Item| !item.contains_key(OLD_EUROS);
    let migration = run_migration(&items, &Euros, &OPTIONS);
    let killed = kill_half_way(migration, async || share(&items, &wallets, is_converted).await).await;
    let (done, time) = killed.expect("the run is killed before its end");
    println!("migrate: killed after {time:?} with {:.0}% done", done * 100.0);
    let start = Instant::now();
    let resumed = run_migration(&items, &Euros, &OPTIONS).await.unwrap();
    println!("migrate: resumed, {:?}: {resumed}", start.elapsed());
    assert!(resumed.is_complete());
    let (all, damaged) = (u64::try_from(CUSTOMERS).unwrap(), u64::try_from(CUSTOMERS / DAMAGED).unwrap());
    let half = damaged * 3 / 10..damaged * 6 / 10;
    assert_eq!(resumed.migrated + resumed.done, all);
    assert!(half.contains(&resumed.migrated), "{resumed}");
    let again = run_migration(&items, &Euros, &OPTIONS).await.unwrap();
    assert_eq!((again.migrated, again.done), (0, all));

    let claims: Vec<Key> = sample().map(|number| claim(number).key().unwrap()).collect();
    let fix = options(true);
    let killed = kill_half_way(verify(&items, &fix), async || share(&items, &claims, |_| true).await).await;
    let (done, time) = killed.expect("the run is killed before its end");
    println!("verify: killed after {time:?} with {:.0}% done", done * 100.0);
    let start = Instant::now();
    let resumed = verify(&items, &fix).await.unwrap();
    println!("verify: resumed, {:?}: {} repaired, {} left", start.elapsed(), resumed.repaired(), resumed.left());
    assert!(resumed.is_clean() && resumed.unsettled == 0, "{resumed}");
    assert!(half.contains(&resumed.repaired()), "{resumed}");
    assert_eq!(resumed.items, 5 * all);
    let start = Instant::now();
    let verified = verify(&items, &options(false)).await.unwrap();
    println!("verify: {} items in {:?}", verified.items, start.elapsed());
    assert!(verified.is_clean() && verified.items == 5 * all, "{verified}");
    let claims = join_all((0..CUSTOMERS).step_by(997).map(async |number| {
        let key = claim(number).key().unwrap();
        items.get(std::slice::from_ref(&key)).await.unwrap().contains_key(&key)
    }));
    assert!(claims.await.into_iter().all(|exists| exists));
}
