//! The retail files: products, households, baskets; plain or gzip, as they come.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be opened or read.
    #[error("{path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It has no rows.
    #[error("{path}: no rows")]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The import can read none of its lines as a basket.
    #[error("{path}: no line is a basket; --baskets takes newline-delimited JSON")]
    NoBaskets {
        /// Which file.
        path: PathBuf,
    },
    /// It is not a CSV file with the columns that are needed.
    #[error("{path}: {source}")]
    Csv {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: csv::Error,
    },
}

/// A row of the product file.
#[derive(Debug, Deserialize)]
pub struct ProductRow {
    /// The product's id.
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
    /// Such as `22 LB`.
    #[serde(default)]
    pub package_size: String,
}

impl ProductRow {
    /// What to call it: type and size, or its id where the data has no type.
    pub fn name(&self) -> String {
        match (self.product_type.trim(), self.package_size.trim()) {
            ("", _) => format!("Product {}", self.product_id),
            (kind, "") => kind.to_owned(),
            (kind, size) => format!("{kind} {size}"),
        }
    }

    /// Department, category, type: a missing inner level is `UNKNOWN`, missing trailing ones are dropped.
    pub fn category_path(&self) -> Vec<String> {
        let mut path: Vec<&str> =
            [&self.department, &self.product_category, &self.product_type].map(|name| name.trim()).to_vec();
        while path.len() > 1 && path.last().is_some_and(|name| name.is_empty()) {
            path.pop();
        }
        path.into_iter().map(|name| if name.is_empty() { "UNKNOWN" } else { name }.to_owned()).collect()
    }
}

/// A row of the household file.
#[derive(Debug, Deserialize)]
pub struct HouseholdRow {
    /// The household's id.
    pub household_id: String,
}

/// A line of the basket file.
#[derive(Debug, Deserialize)]
pub struct Basket {
    /// The till's number.
    pub basket_id: u64,
    /// Who bought.
    pub household_id: u64,
    /// Where.
    pub store_id: u64,
    /// When.
    pub placed_at: String,
    /// What.
    pub lines: Vec<BasketLine>,
}

/// A line of a basket.
#[derive(Debug, Deserialize)]
pub struct BasketLine {
    /// Which product.
    pub product_id: u64,
    /// How many pieces.
    pub quantity: i64,
    /// What was paid for the line, in dollars, as it is written: a decimal number has no exact binary form.
    pub sales_value: Box<RawValue>,
}

impl BasketLine {
    /// What was paid for the line, in cents.
    pub fn cents(&self) -> Option<i64> {
        cents(self.sales_value.get())
    }
}

/// Decimal dollars in cents, exactly; `None` for anything finer than a cent or not a plain decimal number.
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

/// What a first pass over the baskets tells.
#[derive(Debug, Default)]
pub struct Survey {
    /// How many lines the file has.
    pub baskets: u64,
    /// Everybody who bought.
    pub households: BTreeSet<u64>,
    /// The last unit price of each product, in cents.
    pub prices: BTreeMap<String, i64>,
}

/// Opens a file, unpacking it if it is gzip, whatever it is called.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>, SourceError> {
    let failed = |source| SourceError::Read { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let packed = file.fill_buf().map_err(failed)?.starts_with(&[0x1F, 0x8B]);
    Ok(if packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) })
}

/// The rows of a CSV file with a header.
pub fn rows<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>, SourceError> {
    let mut text = Vec::new();
    open(path)?.read_to_end(&mut text).map_err(|source| SourceError::Read { path: path.to_owned(), source })?;
    let rows: Vec<T> = csv::Reader::from_reader(text.as_slice())
        .deserialize()
        .collect::<Result<_, _>>()
        .map_err(|source| SourceError::Csv { path: path.to_owned(), source })?;
    if rows.is_empty() { Err(SourceError::Empty { path: path.to_owned() }) } else { Ok(rows) }
}

/// The lines of a basket file, in order; a line that is no basket comes as its number, so that none is lost silently.
pub fn baskets(
    path: &Path,
    limit: Option<u64>,
) -> Result<impl Iterator<Item = Result<Result<Basket, u64>, SourceError>>, SourceError> {
    let path = path.to_owned();
    let lines = open(&path)?
        .lines()
        .zip(1_u64..)
        .take(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
    Ok(lines.filter(|(line, _)| !matches!(line, Ok(text) if text.trim().is_empty())).map(move |(line, number)| {
        let text = line.map_err(|source| SourceError::Read { path: path.clone(), source })?;
        Ok(serde_json::from_str(&text).map_err(|_| number))
    }))
}

/// Reads the baskets once, for what must be known before the first is placed.
///
/// # Errors
/// [`SourceError::NoBaskets`] for a file without a single basket.
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
                // To the nearest cent: a catalogue price is a whole number of them, while fuel is sold by thousandths.
                let price = cents.checked_add(line.quantity / 2).map_or(cents, |sum| sum / line.quantity);
                survey.prices.insert(line.product_id.to_string(), price.max(0));
            }
        }
    }
    // The lines beyond the limit may show that the file is the right one.
    let has_basket = is_readable || (limit.is_some() && baskets(path, None)?.any(|basket| matches!(basket, Ok(Ok(_)))));
    if has_basket { Ok(survey) } else { Err(SourceError::NoBaskets { path: path.to_owned() }) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

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
    fn missing_inner_categories_are_unknown_and_missing_trailing_ones_dropped() {
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
}
