use std::collections::BTreeMap;

use serde::Deserialize;

use super::money::{Nano, Price};
use crate::error::OpsError;

const BUILT_IN: &str = include_str!("../../prices/2026-11.toml");

#[derive(Debug, Clone)]
pub struct Prices {
    pub region: String,
    /// The day on which somebody last compared the file with its sources.
    pub date: String,
    prices: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    price: Price,
    source: String,
    confirmed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    date: String,
    prices: BTreeMap<String, Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    per: u64,
    /// The unit, for readers of the file.
    #[serde(rename = "unit")]
    _unit: String,
    source: String,
    /// The day of the comparison with the source, for readers of the file.
    #[serde(rename = "date")]
    _date: String,
    #[serde(default)]
    unconfirmed: Vec<String>,
    dollars: BTreeMap<String, String>,
}

impl Prices {
    pub fn built_in(region: &str) -> Result<Self, OpsError> {
        Self::parse(BUILT_IN, region)
    }

    /// Reads the text of a file in the format of `ops/prices`.
    pub fn parse(text: &str, region: &str) -> Result<Self, OpsError> {
        let file: File = toml::from_str(text).map_err(|error| OpsError::Usage(format!("the prices: {error}")))?;
        let mut regions: Vec<&str> =
            file.prices.values().flat_map(|row| row.dollars.keys()).map(String::as_str).collect();
        regions.sort_unstable();
        regions.dedup();
        if !regions.contains(&region) {
            let known = regions.join(", ");
            let hint = template::near::hint(region, regions.iter().copied());
            return Err(OpsError::Usage(format!(
                "there are no prices of the Region {region:?}, only of {known}{hint}"
            )));
        }
        let mut prices = BTreeMap::new();
        for (name, row) in &file.prices {
            let Some(dollars) = row.dollars.get(region) else { continue };
            let price = Price::parse(dollars, row.per)
                .map_err(|error| OpsError::Usage(format!("the price of {name} in {region}: {error}")))?;
            let confirmed = !row.unconfirmed.iter().any(|known| known == region);
            prices.insert(name.clone(), Entry { price, source: row.source.clone(), confirmed });
        }
        Ok(Self { region: region.to_owned(), date: file.date, prices })
    }

    pub fn price(&self, item: &str) -> Result<Price, OpsError> {
        let missing = || {
            let hint = "add the price to a copy of the file, and name the copy with --prices";
            OpsError::Usage(format!("the prices of {} lack {item}: {hint}", self.region))
        };
        Ok(self.prices.get(item).ok_or_else(missing)?.price)
    }

    /// Returns the cost of `quantity` parts of a unit, where one unit has `parts` parts. A quantity
    /// of 0 costs nothing, even if the file lacks the price.
    pub fn amount(&self, item: &str, quantity: u128, parts: u64) -> Result<Nano, OpsError> {
        if quantity == 0 { Ok(Nano::default()) } else { Ok(self.price(item)?.of(quantity, parts)) }
    }

    /// Returns the items whose price no second source confirmed.
    pub fn unconfirmed(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.prices.iter().filter(|(_, entry)| !entry.confirmed);
        entries.map(|(name, entry)| (name.as_str(), entry.source.as_str()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn each_built_in_price_has_a_source_and_a_date_and_covers_every_region() {
        let file: File = toml::from_str(BUILT_IN).unwrap();
        let is_date = |text: &str| text.len() == 10 && text.starts_with("2026-");
        assert!(is_date(&file.date));
        for (name, row) in &file.prices {
            let regions: Vec<&str> = row.dollars.keys().map(String::as_str).collect();
            // The file has the prices of larger search nodes for one Region only.
            let all = ["ap-southeast-2", "eu-central-1", "us-east-1"];
            assert!(regions == all || (name.contains("large") && regions == ["us-east-1"]), "{name}");
            assert!(row.source.starts_with("https://aws.amazon.com/") && is_date(&row._date), "{name}");
            assert!(row.unconfirmed.iter().all(|region| row.dollars.contains_key(region)), "{name}");
            for region in regions {
                assert!(Prices::built_in(region).unwrap().price(name).unwrap().pico > 0, "{name}");
            }
        }
    }

    #[test]
    fn an_unknown_region_and_a_missing_price_are_usage_errors() {
        let message = Prices::built_in("mars-1").unwrap_err();
        assert!(matches!(&message, OpsError::Usage(text) if text.contains("eu-central-1")), "{message}");
        let prices = Prices::built_in("us-east-1").unwrap();
        assert!(matches!(prices.price("nothing"), Err(OpsError::Usage(text)) if text.contains("--prices")));
        assert_eq!(prices.amount("nothing", 0, 1).unwrap(), Nano::default());
    }
}
