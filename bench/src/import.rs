//! `bench import`: imports real baskets through the API. Meanwhile the function that places the
//! orders crashes at random. Then the command compares the totals with those of the files.
//!
//! From the files, this module computes the expected orders, and the sold quantity and money of
//! each product. It does not use the importer's code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;
use key_schema::entity::AnyEntity;
use key_schema::id::LocationId;
use key_schema::item::Entity as _;
use key_schema::order::{Order, OrderLine, OrderStatus};
use key_schema::product::Stock;
use local::import::{self as importer, ImportArgs};
use local::{Options, System};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::BenchError;
use crate::replay::Shop;
use crate::report::Differences;

const STOCK: u64 = 1_000_000_000;
/// An order with at least this many lines needs more than one transaction.
const LARGE: usize = 47;
/// The janitor's interval. [`GRACE_SECONDS`] is the minimum age of the orders that it undoes or
/// finishes. Placing an order takes much less time.
const JANITOR: Duration = Duration::from_secs(2);
const GRACE_SECONDS: u64 = 3;
const ROUNDS: usize = 50;

/// The files, the selected baskets, and the rate of crashes.
#[derive(Debug, clap::Args)]
pub struct ImportBenchArgs {
    /// Products: CSV, plain or gzip.
    #[arg(long, value_name = "FILE")]
    products: PathBuf,
    /// Households: CSV, plain or gzip.
    #[arg(long, value_name = "FILE")]
    households: Option<PathBuf>,
    /// Baskets: newline-delimited JSON, plain or gzip.
    #[arg(long, value_name = "FILE")]
    baskets: PathBuf,
    /// Only the first N baskets, and all with more than 46 lines.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// At each crash point, crash the orders function N times out of a thousand.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=200))]
    kills: u64,
    /// Seed of the random crashes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub async fn run(args: ImportBenchArgs) -> Result<(), BenchError> {
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.port = 0;
    let system = System::start(options).await?;
    let folder = tempfile::tempdir()?;
    let measured = measure(&system, folder.path(), args).await;
    system.shutdown().await;
    measured
}

async fn measure(system: &System, folder: &Path, args: ImportBenchArgs) -> Result<(), BenchError> {
    let baskets = chosen(&args.baskets, args.limit, folder)?;
    let started = Instant::now();
    let compared = import(system, &args.products, args.households.as_deref(), &baskets, args.kills, args.seed).await?;
    println!("{:.0} s\n{compared}", started.elapsed().as_secs_f64());
    let verified = Shop::of(system).await?.verify().await?;
    println!("{verified}");
    match (compared.is_equal(), verified.is_clean() && verified.unsettled == 0) {
        (true, true) => Ok(()),
        (false, _) => Err(wrong!("the shop's totals differ from those of the files")),
        (_, false) => Err(wrong!("the table breaks an invariant")),
    }
}

#[derive(Debug, Default)]
pub struct Totals {
    pub orders: usize,
    /// Orders that took more than one transaction.
    pub large: usize,
    /// Crashes of the orders function during the import.
    pub crashes: u64,
    pub differences: Differences,
}

impl Totals {
    #[must_use]
    pub const fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { orders, large, crashes, differences } = self;
        write!(f, "  {orders} orders, {large} with at least {LARGE} lines, {crashes} crashes: {differences}")
    }
}

/// Imports into a running system while its orders function crashes, and compares the orders in the
/// table with the files.
pub async fn import(
    system: &System,
    products: &Path,
    households: Option<&Path>,
    baskets: &Path,
    kills: u64,
    seed: u64,
) -> Result<Totals, BenchError> {
    let shop = Shop::of(system).await?;
    let files = ImportArgs {
        port: 0,
        products: Some(products.to_path_buf()),
        households: households.map(Path::to_path_buf),
        baskets: None,
        limit: None,
        stock: STOCK,
        data: None,
    };
    let token = || system.token("import", &["staff".to_owned()]);
    let _ = importer::run(files.clone(), system.url(), token()).await;
    crash(&shop, kills, seed).await?;
    let orders = ImportArgs { products: None, households: None, baskets: Some(baskets.to_path_buf()), ..files };
    let imported = importer::run(orders, system.url(), token());
    tokio::select! {
        // The result is not needed. The comparison below detects missing orders.
        _ = imported => {}
        error = keep_clean(&shop) => return Err(error),
    }
    let faults = shop.local("GET", "/_local/faults", None).await?;
    let faults = faults.get("function:Orders").and_then(Value::as_array).into_iter().flatten();
    let crashes = faults.filter_map(|fault| fault.get("fired").and_then(Value::as_u64)).sum();
    shop.local("DELETE", "/_local/faults", None).await?;
    clean_up(&shop).await?;
    Ok(Totals { crashes, ..compare(&shop, products, baskets).await? })
}

/// Makes the orders function crash at each of its crash points, `kills` times out of a thousand.
async fn crash(shop: &Shop, kills: u64, seed: u64) -> Result<(), BenchError> {
    let points = telemetry::CRASH_POINTS.iter().map(|(point, _)| *point).filter(|point| point.starts_with("orders."));
    for point in points.filter(|_| kills > 0) {
        let fault = json!({
            "target": "function:Orders", "kind": "crash", "point": point, "rate": kills as f64 / 1000.0,
            "count": 10_000, "seed": seed,
        });
        shop.local("POST", "/_local/faults", Some(&fault)).await?;
    }
    Ok(())
}

async fn janitor(shop: &Shop, grace: u64) -> Result<Value, BenchError> {
    shop.local("POST", "/_local/invoke/Janitor", Some(&json!({"grace_seconds": grace}))).await
}

/// Runs the janitor more often than once a minute, so that the import does not wait for it. Returns
/// only with an error.
async fn keep_clean(shop: &Shop) -> BenchError {
    let mut ticks = tokio::time::interval(JANITOR);
    loop {
        ticks.tick().await;
        if let Err(error) = janitor(shop, GRACE_SECONDS).await {
            return error;
        }
    }
}

/// Runs the janitor until it finds no unfinished order.
async fn clean_up(shop: &Shop) -> Result<(), BenchError> {
    for _ in 0..ROUNDS {
        if janitor(shop, 0).await?.get("found").and_then(Value::as_u64) == Some(0) {
            return Ok(());
        }
    }
    Err(wrong!("the janitor still finds unfinished orders after {ROUNDS} runs"))
}

#[derive(Debug, Deserialize)]
struct Basket {
    basket_id: u64,
    lines: Vec<BasketLine>,
}

#[derive(Debug, Deserialize)]
struct BasketLine {
    product_id: u64,
    quantity: u64,
    sales_value: Box<RawValue>,
    retail_disc: Option<Box<RawValue>>,
    coupon_disc: Option<Box<RawValue>>,
}

impl BasketLine {
    /// Returns the amount paid, and the retailer's and the coupon's discounts, in cents.
    fn amounts(&self) -> Option<Amounts> {
        let discount = |text: &Option<Box<RawValue>>| text.as_deref().map_or(Some(0), Self::cents);
        let [retail, coupon] = [discount(&self.retail_disc)?, discount(&self.coupon_disc)?];
        Some(Amounts { paid: Self::cents(&self.sales_value)?, retail, coupon })
    }

    /// Converts decimal text to cents without floating point. Half a cent is rounded up.
    fn cents(text: &RawValue) -> Option<i64> {
        let (whole, fraction) = text.get().split_once('.').unwrap_or((text.get(), ""));
        let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |digit| i64::from(digit.saturating_sub(b'0')));
        let cents = whole.parse::<i64>().ok()?.checked_mul(100)?;
        Some(cents + 10 * digit(0) + digit(1) + i64::from(digit(2) >= 5))
    }
}

/// Amounts of money in cents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amounts {
    paid: i64,
    retail: i64,
    coupon: i64,
}

impl Amounts {
    const fn add(&mut self, other: Self) {
        self.paid += other.paid;
        self.retail += other.retail;
        self.coupon += other.coupon;
    }

    /// Returns the price before discounts, the discounts, and the amount paid.
    const fn totals(self) -> (i64, i64, i64) {
        let discount = self.retail + self.coupon;
        (self.paid + discount, discount, self.paid)
    }
}

fn open(path: &Path) -> Result<Box<dyn Read>, BenchError> {
    let file = std::fs::File::open(path)?;
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    Ok(if packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

fn read(path: &Path) -> Result<Vec<(String, Basket)>, BenchError> {
    let mut baskets = Vec::new();
    for line in BufReader::new(open(path)?).lines() {
        let line = line?;
        if let Ok(basket) = serde_json::from_str(&line) {
            baskets.push((line, basket));
        }
    }
    Ok(baskets)
}

/// Writes the first baskets and all large ones to a separate file.
fn chosen(baskets: &Path, limit: Option<usize>, folder: &Path) -> Result<PathBuf, BenchError> {
    let Some(limit) = limit else { return Ok(baskets.to_path_buf()) };
    let path = folder.join("baskets.ndjson");
    let mut file = std::fs::File::create(&path)?;
    for (at, (line, basket)) in read(baskets)?.into_iter().enumerate() {
        if at < limit || basket.lines.len() >= LARGE {
            writeln!(file, "{line}")?;
        }
    }
    Ok(path)
}

/// The sold quantity and the amounts of money, by product.
type Sold = BTreeMap<String, (u64, Amounts)>;

/// The price before discounts, the discounts and the amount paid, by basket.
type Paid = BTreeMap<String, (i64, i64, i64)>;

async fn compare(shop: &Shop, products: &Path, baskets: &Path) -> Result<Totals, BenchError> {
    let known: BTreeSet<u64> =
        csv::Reader::from_reader(open(products)?).records().filter_map(|row| row.ok()?.get(0)?.parse().ok()).collect();
    let (mut wanted, mut sold) = (Paid::new(), Sold::new());
    for (_, basket) in read(baskets)? {
        let lines = basket.lines.iter().filter(|line| line.quantity > 0 && known.contains(&line.product_id));
        let mut total: Option<Amounts> = None;
        for line in lines {
            let amounts = line.amounts().ok_or_else(|| wrong!("{line:?} has no amount"))?;
            let (pieces, money) = sold.entry(line.product_id.to_string()).or_default();
            *pieces += line.quantity;
            money.add(amounts);
            total.get_or_insert_default().add(amounts);
        }
        if let Some(total) = total {
            wanted.insert(basket.basket_id.to_string(), total.totals());
        }
    }
    let mut stored = StoredOrders::default();
    shop.read(&[Order::NAME, OrderLine::NAME, Stock::NAME], |entity| stored.enter(entity)).await?;
    Ok(stored.totals(&wanted, &sold))
}

#[derive(Default)]
struct StoredOrders {
    orders: Paid,
    sold: Sold,
    stocks: BTreeMap<String, u64>,
    unfinished: Vec<String>,
    large: usize,
    twice: Vec<String>,
}

impl StoredOrders {
    fn enter(&mut self, entity: AnyEntity) {
        match entity {
            AnyEntity::Order(order) => {
                if order.status == OrderStatus::Placing || order.unfinished.is_some() {
                    self.unfinished.push(order.id.to_string());
                }
                self.large += usize::from(order.line_count >= LARGE as u64);
                let name = order.reference.as_ref().map_or_else(|| order.id.to_string(), ToString::to_string);
                let charges = order.charges();
                let paid = (charges.items, charges.discount, order.total.amount);
                if self.orders.insert(name.clone(), paid).is_some() {
                    self.twice.push(name);
                }
            }
            AnyEntity::OrderLine(line) => {
                let (pieces, money) = self.sold.entry(line.product_id.to_string()).or_default();
                *pieces += line.quantity;
                let [retail, coupon] = ["retail_disc", "coupon_disc"].map(|name| {
                    line.discounts.iter().filter(|given| given.name == name).map(|given| given.amount).sum()
                });
                money.add(Amounts { paid: line.total.amount, retail, coupon });
            }
            AnyEntity::Stock(stock) if stock.location != LocationId::main() => {}
            AnyEntity::Stock(stock) => *self.stocks.entry(stock.product_id.to_string()).or_default() += stock.available,
            _ => {}
        }
    }

    fn totals(self, wanted: &Paid, sold: &Sold) -> Totals {
        let mut totals = Totals { orders: self.orders.len(), large: self.large, ..Totals::default() };
        totals.differences.add("unfinished orders", self.unfinished);
        totals.differences.add("baskets with two orders", self.twice);
        let lacking = wanted.keys().filter(|basket| !self.orders.contains_key(*basket)).cloned();
        totals.differences.add("baskets without an order", lacking);
        totals
            .differences
            .add("orders without a basket", self.orders.keys().filter(|name| !wanted.contains_key(*name)).cloned());
        let other = self.orders.iter().filter(|(name, total)| wanted.get(*name).is_some_and(|wanted| wanted != *total));
        totals.differences.add("orders with wrong totals", other.map(|(name, _)| name.clone()));
        let products: BTreeSet<&String> = sold.keys().chain(self.sold.keys()).collect();
        let unlike = products.iter().filter(|id| sold.get(**id) != self.sold.get(**id));
        totals
            .differences
            .add("products with a wrong number of sold pieces or wrong amounts", unlike.map(|id| (*id).clone()));
        let left = |id: &String| STOCK.checked_sub(sold.get(id).map_or(0, |(pieces, _)| *pieces));
        let wrong = self.stocks.iter().filter(|(id, available)| left(id) != Some(**available));
        totals.differences.add("products with a wrong stock", wrong.map(|(id, _)| id.clone()));
        totals
    }
}
