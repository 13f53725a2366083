use std::fmt::Write as _;
use std::path::PathBuf;

use fastrand::Rng;
use serde_json::{Value, json};
use tempfile::TempDir;

const HOUSEHOLDS: u32 = 50;
const STORES: u32 = 6;

/// Files in a folder. Dropping the value removes the folder.
pub struct History {
    folder: TempDir,
}

impl History {
    /// Writes this many products and baskets. `lines` returns the number of lines of a basket.
    pub fn write(seed: u64, products: usize, baskets: usize, lines: impl Fn(usize, &mut Rng) -> usize) -> Self {
        let history = Self { folder: tempfile::tempdir().unwrap() };
        let mut csv = "product_id,department,brand,product_category,product_type,package_size\n".to_owned();
        for n in 1..=products {
            writeln!(csv, "{n},GROCERY,Private,AISLE {},THING {n},{n} OZ", n % 7).unwrap();
        }
        std::fs::write(history.products(), csv).unwrap();
        let (mut text, mut rng) = (String::new(), Rng::with_seed(seed));
        for basket in 0..baskets {
            let first = rng.usize(0..products);
            let line = |n: usize| {
                let quantity = n % 3 + 1;
                let discount = |every: usize, amount: f64| if n.is_multiple_of(every) { amount } else { 0.0 };
                json!({
                    "product_id": (first + n * 7) % products + 1, "quantity": quantity, "sales_value": 1.25,
                    "retail_disc": discount(2, 0.3), "coupon_disc": discount(5, 0.55),
                })
            };
            let bought: Vec<Value> = (0..lines(basket, &mut rng)).map(line).collect();
            let placed_at = format!("2017-01-{:02}T{:02}:00:00Z", basket / 80 + 1, basket % 24);
            let basket = json!({
                "basket_id": 31_000_000_000_u64 + u64::try_from(basket).unwrap(),
                "household_id": rng.u32(1..=HOUSEHOLDS), "store_id": rng.u32(1..=STORES), "placed_at": placed_at,
                "lines": bought,
            });
            writeln!(text, "{basket}").unwrap();
        }
        std::fs::write(history.baskets(), text).unwrap();
        history
    }

    pub fn products(&self) -> PathBuf {
        self.folder.path().join("products.csv")
    }

    pub fn baskets(&self) -> PathBuf {
        self.folder.path().join("baskets.ndjson")
    }
}
