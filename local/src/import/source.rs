use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("{path}: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    #[error("{path}: no rows")]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// No line of the file is a basket.
    #[error("{path}: no line is a basket; --baskets takes newline-delimited JSON")]
    NoBaskets {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not CSV with the required columns.
    #[error("{path}: {source}")]
    Csv {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: csv::Error,
    },
}

#[derive(Debug, Deserialize)]
pub struct ProductRow {
    pub product_id: String,
    /// The outermost category.
    #[serde(default)]
    pub department: String,
    /// `National` or `Private`.
    #[serde(default)]
    pub brand: String,
    /// The category inside the department.
    #[serde(default)]
    pub product_category: String,
    /// The innermost category, which also names the product.
    #[serde(default)]
    pub product_type: String,
    /// Size of the package, such as `22 LB`.
    #[serde(default)]
    pub package_size: String,
}

impl ProductRow {
    /// Returns the product's name: type and size, or the id if the data has no type.
    pub fn name(&self) -> String {
        match (self.product_type.trim(), self.package_size.trim()) {
            ("", _) => format!("Product {}", self.product_id),
            (kind, "") => kind.to_owned(),
            (kind, size) => format!("{kind} {size}"),
        }
    }

    /// Returns department, category and type. A missing level is `UNKNOWN` if a level below it
    /// exists. A missing department is always `UNKNOWN`. Other missing levels are dropped.
    pub fn category_path(&self) -> Vec<String> {
        let mut path: Vec<&str> =
            [&self.department, &self.product_category, &self.product_type].map(|name| name.trim()).to_vec();
        while path.len() > 1 && path.last().is_some_and(|name| name.is_empty()) {
            path.pop();
        }
        path.into_iter().map(|name| if name.is_empty() { "UNKNOWN" } else { name }.to_owned()).collect()
    }
}

#[derive(Debug, Deserialize)]
pub struct HouseholdRow {
    pub household_id: String,
}

#[derive(Debug, Deserialize)]
pub struct Basket {
    /// Id of the basket, assigned by the till.
    pub basket_id: u64,
    pub household_id: u64,
    pub store_id: u64,
    pub placed_at: String,
    pub lines: Vec<BasketLine>,
}

#[derive(Debug, Deserialize)]
pub struct BasketLine {
    pub product_id: u64,
    /// Number of pieces.
    pub quantity: i64,
    /// Price of the whole line in dollars, as text from the file. A float would not be exact.
    pub sales_value: Box<RawValue>,
    /// Discount of the retailer in dollars. It is already deducted from the price.
    pub retail_disc: Option<Box<RawValue>>,
    /// Discount of a coupon in dollars. It is already deducted from the price.
    pub coupon_disc: Option<Box<RawValue>>,
}

impl BasketLine {
    /// Returns the price of the whole line in cents.
    pub fn cents(&self) -> Option<i64> {
        cents(self.sales_value.get())
    }

    /// Returns the discounts in cents that are not zero, with the names of their columns. Returns
    /// `None` if one of them is negative or unreadable.
    pub fn discounts(&self) -> Option<Vec<(&'static str, i64)>> {
        let columns = [("retail_disc", &self.retail_disc), ("coupon_disc", &self.coupon_disc)];
        let given = columns.into_iter().filter_map(|(name, text)| Some((name, cents(text.as_deref()?.get()))));
        let read = given.map(|(name, cents)| Some((name, cents.filter(|cents| *cents >= 0)?)));
        let read: Option<Vec<_>> = read.collect();
        Some(read?.into_iter().filter(|(_, cents)| *cents > 0).collect())
    }
}

/// Converts decimal dollars to cents without rounding. Returns `None` for a fraction of a cent, or
/// for text that is not a plain decimal number.
fn cents(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 2 || !plain(whole) || !plain(fraction) {
        return None;
    }
    let fraction: i64 = format!("{fraction:0<2}").parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(fraction)?.checked_mul(sign)
}

/// The facts that a first pass over the baskets collects.
#[derive(Debug, Default)]
pub struct Survey {
    /// Number of lines that are not blank, up to the limit.
    pub baskets: u64,
    pub households: BTreeSet<u64>,
    /// The last unit price of each product in the file, in cents.
    pub prices: BTreeMap<String, i64>,
}

/// Opens a file. Detects gzip by its content, and unpacks it.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>, SourceError> {
    let failed = |source| SourceError::Read { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let packed = file.fill_buf().map_err(failed)?.starts_with(&[0x1F, 0x8B]);
    Ok(if packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) })
}

pub fn rows<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>, SourceError> {
    let mut text = Vec::new();
    open(path)?.read_to_end(&mut text).map_err(|source| SourceError::Read { path: path.to_owned(), source })?;
    let failed = |source| SourceError::Csv { path: path.to_owned(), source };
    // Spreadsheets write column names with blanks and capitals. A column that is not found would
    // silently be empty.
    let mut file = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_slice());
    let columns = file.headers().map_err(failed)?.iter().map(str::to_lowercase).collect();
    file.set_headers(columns);
    let rows: Vec<T> = file.deserialize().collect::<Result<_, _>>().map_err(failed)?;
    if rows.is_empty() { Err(SourceError::Empty { path: path.to_owned() }) } else { Ok(rows) }
}

/// Returns the lines of a basket file, in order. For a line that is not a basket, it returns the
/// line number, so that the caller can report it.
pub fn baskets(
    path: &Path,
    limit: Option<u64>,
) -> Result<impl Iterator<Item = Result<Result<Basket, u64>, SourceError>>, SourceError> {
    let path = path.to_owned();
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let lines = open(&path)?.lines().zip(1_u64..);
    let baskets = lines.filter(|(line, _)| !matches!(line, Ok(text) if text.trim().is_empty())).take(limit);
    Ok(baskets.map(move |(line, number)| {
        let text = line.map_err(|source| SourceError::Read { path: path.clone(), source })?;
        Ok(serde_json::from_str(&text).map_err(|_| number))
    }))
}

/// Collects the facts about the baskets that the import needs before it places the first order.
pub fn survey(path: &Path, limit: Option<u64>) -> Result<Survey, SourceError> {
    let mut survey = Survey::default();
    let mut is_readable = false;
    for basket in baskets(path, limit)? {
        survey.baskets += 1;
        let Ok(basket) = basket? else { continue };
        is_readable = true;
        survey.households.insert(basket.household_id);
        for line in &basket.lines {
            if let (Some(cents), 1..) = (line.cents(), line.quantity) {
                // The price is rounded to the nearest cent. Fuel is sold by thousandths of a unit,
                // but a catalogue price is in whole cents.
                let price = cents.checked_add(line.quantity / 2).map_or(cents, |sum| sum / line.quantity);
                survey.prices.insert(line.product_id.to_string(), price.max(0));
            }
        }
    }
    // If no line up to the limit is a basket, the lines after the limit decide whether the file has
    // a basket.
    let has_basket = is_readable || (limit.is_some() && baskets(path, None)?.any(|basket| matches!(basket, Ok(Ok(_)))));
    if has_basket { Ok(survey) } else { Err(SourceError::NoBaskets { path: path.to_owned() }) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used)]

    use super::*;

    #[test]
    fn dollars_become_cents_without_a_float_in_between() {
        for (text, expected) in
            [("0.5", Some(50)), ("0.99", Some(99)), ("12", Some(1200)), ("0.0", Some(0)), ("-1.5", Some(-150))]
        {
            assert_eq!(cents(text), expected, "{text}");
        }
        for text in ["0.999", "1e3", "", ".5", "\"1\"", "null", "99999999999999999999"] {
            assert_eq!(cents(text), None, "{text}");
        }
    }

    #[test]
    fn a_missing_level_is_unknown_above_an_existing_level_and_is_dropped_at_the_end() {
        let row = |department: &str, category: &str, kind: &str, size: &str| ProductRow {
            product_id: "7".into(),
            department: department.into(),
            brand: "National".into(),
            product_category: category.into(),
            product_type: kind.into(),
            package_size: size.into(),
        };
        assert_eq!(row("A", "B", "C", "1 LB").category_path(), ["A", "B", "C"]);
        assert_eq!(row("A", "", "C", "").category_path(), ["A", "UNKNOWN", "C"]);
        assert_eq!(row("A", "B", "", "").category_path(), ["A", "B"]);
        assert_eq!(row("A", "", "", "").category_path(), ["A"]);
        assert_eq!(row("", "", "", "").category_path(), ["UNKNOWN"]);
        assert_eq!(row("A", "B", "C", "1 LB").name(), "C 1 LB");
        assert_eq!(row("A", "B", "", "1 LB").name(), "Product 7");
    }

    #[test]
    fn columns_and_values_of_a_file_may_have_blanks_at_their_ends() {
        let path = std::env::temp_dir().join(format!("bodega-columns-{}.csv", std::process::id()));
        std::fs::write(&path, "\u{feff}PRODUCT_ID, Brand ,product_type\n 7 , National , ICE \n").unwrap();
        let read: Vec<ProductRow> = rows(&path).unwrap();
        std::fs::write(&path, "product_id,brand,Brand \n7,A,B\n").unwrap();
        let twice = rows::<ProductRow>(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            (read[0].product_id.as_str(), read[0].brand.as_str(), read[0].name().as_str()),
            ("7", "National", "ICE")
        );
        assert!(matches!(twice, Err(SourceError::Csv { .. })), "{twice:?}");
    }
}
