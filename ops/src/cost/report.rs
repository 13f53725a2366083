use std::fmt::{self, Display};

use serde::Serialize;

use super::bill::{Bill, Line};
use super::capacity::{BreakEven, Modes, break_even, modes};
use super::choices::{Choice, choices};
use super::money::Nano;
use super::prices::Prices;
use super::profile::Profile;
use crate::error::OpsError;

const SHOWN: usize = 20;

/// The amount of a service, a route, the table or an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sum {
    pub name: String,
    #[serde(rename = "nano_dollars")]
    pub amount: Nano,
}

/// A price that no second source confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unconfirmed {
    pub price: String,
    /// The page that has the price.
    pub source: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub region: String,
    pub prices_of: String,
    #[serde(rename = "total_nano_dollars")]
    pub total: Nano,
    /// The part of the total that is the same without traffic.
    #[serde(rename = "idle_nano_dollars")]
    pub idle: Nano,
    /// The amounts by service, the largest first.
    pub services: Vec<Sum>,
    /// The amounts by route, the largest first.
    pub routes: Vec<Sum>,
    /// The amounts for capacity units by table and index, the largest first.
    pub places: Vec<Sum>,
    /// The utilization above which provisioned capacity is cheaper.
    pub break_even_hundredths_of_percent: Option<BreakEven>,
    /// The utilization at which `capacity` compares the modes, in percent.
    pub target_percent: u64,
    pub capacity: Vec<Modes>,
    /// Utilizations in percent, each with the amount for provisioned capacity of the table and all
    /// indexes.
    pub provisioned_by_utilization: Vec<(u64, Nano)>,
    pub choices: Vec<Choice>,
    pub unconfirmed: Vec<Unconfirmed>,
    pub lines: Vec<Line>,
}

impl Report {
    pub fn new(bill: &Bill, profile: &Profile, prices: &Prices) -> Result<Self, OpsError> {
        let named = |sums: Vec<(String, Nano)>| sums.into_iter().map(|(name, amount)| Sum { name, amount }).collect();
        let target_percent = profile.capacity.target_percent;
        // A file of prices may lack the prices of provisioned capacity.
        let has_both = break_even(prices).ok();
        let at = |percent| match has_both {
            Some(_) => modes(bill, prices, profile.hours_per_month, percent),
            None => Ok(Vec::new()),
        };
        let mut provisioned_by_utilization = Vec::new();
        for percent in (5..=100).step_by(5) {
            let sum: Nano = at(percent)?.iter().map(|modes| modes.provisioned).sum();
            provisioned_by_utilization.push((percent, sum));
        }
        let unconfirmed = prices.unconfirmed();
        Ok(Self {
            region: prices.region.clone(),
            prices_of: prices.date.clone(),
            total: bill.total(),
            idle: bill.sum(|line| line.idle),
            services: named(bill.sums_by(|line| Some(line.service.name().to_owned()))),
            routes: named(bill.sums_by(|line| Some(line.route.clone()))),
            places: named(bill.sums_by(|line| line.place.map(str::to_owned))),
            break_even_hundredths_of_percent: has_both,
            target_percent,
            capacity: at(target_percent)?,
            provisioned_by_utilization,
            choices: if profile.stack { choices(profile, bill, prices)? } else { Vec::new() },
            unconfirmed: unconfirmed
                .map(|(price, source)| Unconfirmed { price: price.to_owned(), source: source.to_owned() })
                .collect(),
            lines: bill.lines.clone(),
        })
    }

    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "service,item,route,place,quantity,dollars,idle\n".to_owned();
        for line in &self.lines {
            let (whole, thousandths) = (line.milli_quantity / 1_000, line.milli_quantity % 1_000);
            let nano = line.amount.0;
            let cells = [
                line.service.name().to_owned(),
                line.item.to_owned(),
                quoted(&line.route),
                line.place.unwrap_or_default().to_owned(),
                format!("{whole}.{thousandths:03}"),
                format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000),
                line.idle.to_string(),
            ];
            text += &cells.join(",");
            text.push('\n');
        }
        text
    }
}

/// Quotes a cell of CSV. A spreadsheet would read a cell with a leading sign as a formula, so the
/// cell gets an apostrophe.
fn quoted(cell: &str) -> String {
    let safe = if cell.starts_with(['=', '+', '-', '@']) { format!("'{cell}") } else { cell.to_owned() };
    format!("\"{}\"", safe.replace('"', "\"\""))
}

pub(crate) fn percent(hundredths: u64) -> String {
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} dollars a month in {}, prices of {}", self.total, self.region, self.prices_of)?;
        writeln!(f, "{} of these dollars accrue even without traffic", self.idle)?;
        table(f, "by service", &self.services, usize::MAX)?;
        table(f, "by route", &self.routes, SHOWN)?;
        table(f, "of these, for capacity units by table and index", &self.places, usize::MAX)?;
        if let Some(break_even) = &self.break_even_hundredths_of_percent {
            writeln!(f, "\non demand or provisioned, at {} % utilization", self.target_percent)?;
            for modes in &self.capacity {
                let Modes { place, on_demand, provisioned, read_capacity, write_capacity, .. } = modes;
                writeln!(
                    f,
                    "  {place:<10} {on_demand:>14} {provisioned:>14}  with {read_capacity} read and \
                     {write_capacity} write units a second"
                )?;
            }
            let (reads, writes) = (percent(break_even.reads), percent(break_even.writes));
            writeln!(f, "  provisioned capacity is cheaper above {reads} (reads) and {writes} (writes) utilization")?;
        }
        if !self.choices.is_empty() {
            writeln!(f, "\ndifference that a choice makes")?;
        }
        for Choice { choice, difference } in &self.choices {
            writeln!(f, "  {choice:<60} {difference:>14}")?;
        }
        if !self.unconfirmed.is_empty() {
            let names: Vec<&str> = self.unconfirmed.iter().map(|one| one.price.as_str()).collect();
            writeln!(f, "\nprices that no second source confirmed: {}", names.join(", "))?;
        }
        Ok(())
    }
}

fn table(f: &mut fmt::Formatter<'_>, title: &str, sums: &[Sum], most: usize) -> fmt::Result {
    if sums.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    for Sum { name, amount } in sums.iter().take(most) {
        writeln!(f, "  {name:<60} {amount:>14}")?;
    }
    let rest = sums.get(most..).unwrap_or_default();
    if !rest.is_empty() {
        let amount: Nano = rest.iter().map(|sum| sum.amount).sum();
        writeln!(f, "  {:<60} {amount:>14}", format!("{} others", rest.len()))?;
    }
    Ok(())
}
