//! A small retail data set with every kind of fault of the real data set, and the expected content
//! of the system.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};

pub const STOCK: u64 = 20_000;
/// The first of the products that fill the large baskets.
const SHELF: u64 = 2001;
/// The maximum number of lines that fit into one transaction.
const FITTING: u64 = 47;

/// A product as the API must return it.
#[derive(Debug)]
pub struct Product {
    pub id: u64,
    pub name: String,
    pub brand: &'static str,
    pub package_size: Option<&'static str>,
    pub category_path: Vec<&'static str>,
    pub cents: i64,
}

/// An order as the API must return it.
#[derive(Debug)]
pub struct Order {
    pub basket: u64,
    pub household: u64,
    pub placed_at: String,
    /// Product, quantity, cents.
    pub lines: Vec<(u64, u64, i64)>,
}

impl Order {
    pub fn total(&self) -> i64 {
        self.lines.iter().map(|(_, _, cents)| cents).sum()
    }
}

#[derive(Debug)]
pub struct Expected {
    pub products: Vec<Product>,
    pub orders: Vec<Order>,
    /// Households with a row in the household file.
    pub placed: BTreeSet<u64>,
    /// Households that only a basket names. They have no row in the household file.
    pub bare: BTreeSet<u64>,
}

impl Expected {
    /// Pieces sold, by product.
    pub fn sold(&self) -> BTreeMap<u64, u64> {
        let mut sold = BTreeMap::new();
        for (product, quantity, _) in self.orders.iter().flat_map(|order| &order.lines) {
            *sold.entry(*product).or_default() += quantity;
        }
        sold
    }
}

/// A folder of files. Dropping the value removes the folder.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bodega-suite-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file and returns its path. Compresses it if its name ends in `.gz`.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        let bytes = if name.ends_with(".gz") {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        } else {
            text.as_bytes().to_vec()
        };
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the operating system clears its temporary folder later.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the product file. Like the real file, it has rows without a name, a category or a size.
/// The API refuses one row.
pub fn products() -> String {
    let too_long = "9".repeat(65);
    let mut rows = vec![
        "product_id,manufacturer_id,department,brand,product_category,product_type,package_size".to_owned(),
        "1001,2,GROCERY,National,FRZN ICE,ICE - CRUSHED/CUBED,22 LB".to_owned(),
        "1002,2,GROCERY,Private,FRZN ICE,ICE - CRUSHED/CUBED,".to_owned(),
        "1003,69,PRODUCE,National,,POTATOES & ONIONS,5 LB".to_owned(),
        "1004,69,MISCELLANEOUS,National,,,".to_owned(),
        "1005,69,PASTRY,Private,BREAD,,10 OZ".to_owned(),
        "1006,2,KIOSK-GAS,Private,COUPON/MISC ITEMS,GASOLINE-REG UNLEADED,".to_owned(),
        "1007,2,,,,,".to_owned(),
        format!("1008,2,GROCERY,National,FRZN ICE,ICE,{too_long}"),
    ];
    rows.extend((0..=FITTING).map(|n| format!("{},7,SHELF,National,ROW,Thing,{n} OZ", SHELF + n)));
    rows.join("\n") + "\n"
}

/// Returns the household file. Household 9 buys nothing, and household 77 has no row.
pub fn households() -> String {
    let header = "household_id,age,income,home_ownership,marital_status,household_size,household_comp,kids_count";
    let rows = [1, 2, 9].map(|id| format!("{id},65+,35-49K,Homeowner,Married,2,2 Adults No Kids,0\n"));
    format!("{header}\n{}", rows.concat())
}

pub fn baskets() -> String {
    let shelf = |count: u64| -> Vec<(u64, i64, &str)> { (0..count).map(|n| (SHELF + n, 1, "0.5")).collect() };
    let mut lines = vec![
        basket(5001, 1, 1, &[(1001, 2, "2.58"), (1002, 1, "0.99")]),
        basket(5002, 1, 2, &[(1001, 0, "0.0"), (1003, 1, "0.0")]),
        basket(5003, 2, 3, &[(4444, 1, "1.0"), (1001, 1, "1.5"), (1008, 2, "2.0")]),
        basket(5004, 2, 4, &[(1001, 0, "1.0"), (1002, 0, "0.0")]),
        basket(5005, 2, 5, &[(4444, 1, "1.0")]),
        basket(5006, 2, 6, &shelf(FITTING + 1)),
        basket(5007, 2, 7, &shelf(FITTING)),
        // Neither amount is divisible by its quantity.
        basket(5008, 77, 8, &[(1006, 14_237, "21.41"), (1004, 3, "1.0")]),
        r#"{"basket_id": 5009, "household_id": 1, "lines": ["#.to_owned(),
        String::new(),
        r#"{"basket_id": 5010, "household_id": 1, "store_id": 1, "placed_at": "2017-01-02T00:00:00Z", "lines": 3}"#
            .to_owned(),
        // This basket has the number of an earlier basket but different content.
        basket(5001, 2, 9, &[(1005, 1, "7.77")]),
        basket(5011, 2, 9, &[(1005, 1, "3.5"), (1006, 30_000, "300.0")]),
    ];
    // This customer has more orders than the overview shows. The orders come in pairs with the
    // same time.
    lines.extend((0..26).map(|n| basket(6000 + n, 1, 10 + n / 2, &[(1005, 1, "3.5"), (1001, 1, "1.29")])));
    lines.join("\n")
}

/// The discounts of each line in cents: by the retailer and by a coupon.
pub const DISCOUNTS: [i64; 2] = [10, 5];

fn basket(id: u64, household: u64, minute: u64, lines: &[(u64, i64, &str)]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|(product, quantity, paid)| {
            let bought = format!(r#""product_id": {product}, "quantity": {quantity}, "sales_value": {paid}"#);
            format!(r#"{{{bought}, "retail_disc": 0.1, "coupon_disc": 0.05, "coupon_match_disc": 0.0}}"#)
        })
        .collect();
    let ids = format!(r#""basket_id": {id}, "household_id": {household}, "store_id": 330"#);
    format!(r#"{{{ids}, "placed_at": "2017-01-01T10:{minute:02}:26Z", "lines": [{}]}}"#, lines.join(", "))
}

pub fn expected() -> Expected {
    let product = |id, name: &str, brand, size, category_path: &[&'static str], cents| Product {
        id,
        name: name.to_owned(),
        brand,
        package_size: size,
        category_path: category_path.to_vec(),
        cents,
    };
    let ice = ["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"];
    let mut products = vec![
        // A product's price comes from its last basket line, rounded to the nearest cent. Without a
        // line the price is 1.00.
        product(1001, "ICE - CRUSHED/CUBED 22 LB", "National", Some("22 LB"), &ice, 129),
        product(1002, "ICE - CRUSHED/CUBED", "Private", None, &ice, 99),
        product(
            1003,
            "POTATOES & ONIONS 5 LB",
            "National",
            Some("5 LB"),
            &["PRODUCE", "UNKNOWN", "POTATOES & ONIONS"],
            0,
        ),
        product(1004, "Product 1004", "National", None, &["MISCELLANEOUS"], 33),
        product(1005, "Product 1005", "Private", Some("10 OZ"), &["PASTRY", "BREAD"], 350),
        product(
            1006,
            "GASOLINE-REG UNLEADED",
            "Private",
            None,
            &["KIOSK-GAS", "COUPON/MISC ITEMS", "GASOLINE-REG UNLEADED"],
            1,
        ),
        product(1007, "Product 1007", "UNKNOWN", None, &["UNKNOWN"], 100),
    ];
    products.extend((0..=FITTING).map(|n| {
        let size: &'static str = Box::leak(format!("{n} OZ").into_boxed_str());
        product(SHELF + n, &format!("Thing {size}"), "National", Some(size), &["SHELF", "ROW", "Thing"], 50)
    }));
    let order = |basket, household, minute: u64, lines: &[(u64, u64, i64)]| Order {
        basket,
        household,
        placed_at: format!("2017-01-01T10:{minute:02}:26.000Z"),
        lines: lines.to_vec(),
    };
    let shelf: Vec<(u64, u64, i64)> = (0..FITTING).map(|n| (SHELF + n, 1, 50)).collect();
    let mut orders = vec![
        order(5001, 1, 1, &[(1001, 2, 258), (1002, 1, 99)]),
        order(5002, 1, 2, &[(1003, 1, 0)]),
        order(5003, 2, 3, &[(1001, 1, 150)]),
        order(5006, 2, 6, &[&shelf[..], &[(SHELF + FITTING, 1, 50)]].concat()),
        order(5007, 2, 7, &shelf),
        order(5008, 77, 8, &[(1006, 14_237, 2141), (1004, 3, 100)]),
    ];
    orders.extend((0..26).map(|n| order(6000 + n, 1, 10 + n / 2, &[(1005, 1, 350), (1001, 1, 129)])));
    Expected { products, orders, placed: [1, 2, 9].into(), bare: [77].into() }
}

pub fn money(cents: i64) -> Json {
    json!({ "amount": cents, "currency": "USD" })
}
