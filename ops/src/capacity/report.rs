use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::metrics::{Kind, MINUTE, Series};
use super::simulation::{Bounds, bounds, initial, simulate};
use crate::cost::money::Nano;
use crate::cost::prices::Prices;
use crate::error::OpsError;

/// Hours of an average month.
const MONTH_HOURS: i128 = 730;
/// The smallest saving for which provisioned capacity is recommended, in percent of the on-demand
/// bill. A smaller saving does not outweigh the delay with which auto scaling reacts to peaks.
const WORTH_PERCENT: i128 = 10;
/// A recommendation from a shorter series is marked as weak, because traffic differs by weekday.
const WEEK_HOURS: i128 = 7 * 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// AWS bills each unit.
    OnDemand,
    /// AWS bills the capacity by the hour, even if it is unused.
    Provisioned,
}

impl Mode {
    /// Returns the value of the template's parameter `CapacityMode`.
    #[must_use]
    pub const fn parameter(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Provisioned => "provisioned",
        }
    }
}

/// One kind of capacity of the table or of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Throughput {
    pub place: String,
    pub kind: Kind,
    pub units: u64,
    /// The consumption in the busiest minute, in units per second, rounded up.
    pub peak: u64,
    pub bounds: Bounds,
    /// The capacity with which a provisioned table starts, from the last hour of the series.
    pub initial: u64,
    /// The monthly bill on demand.
    #[serde(rename = "on_demand_nano_dollars")]
    pub on_demand: Nano,
    /// The monthly bill with auto scaling.
    #[serde(rename = "provisioned_nano_dollars")]
    pub provisioned: Nano,
    /// The minutes of the series in which requests would have been throttled.
    pub throttled_minutes: u64,
    pub throttled_units: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub region: String,
    /// The date of the prices.
    pub prices_of: String,
    pub target_percent: u64,
    pub hours: i128,
    pub throughputs: Vec<Throughput>,
    #[serde(rename = "on_demand_nano_dollars")]
    pub on_demand: Nano,
    /// The sum of the monthly bills with auto scaling.
    #[serde(rename = "provisioned_nano_dollars")]
    pub provisioned: Nano,
    pub recommended: Mode,
    pub reasons: Vec<String>,
    pub parameters: BTreeMap<&'static str, String>,
    /// The stack whose update has begun.
    pub updated: Option<String>,
}

impl Report {
    /// Compares the modes over series that cover the same time.
    pub fn new(series: &[Series], prices: &Prices, target_percent: u64) -> Result<Self, OpsError> {
        let minutes = || series.iter().flat_map(|series| series.minutes.keys().copied());
        let (start, end) = (minutes().min().unwrap_or_default(), minutes().max().unwrap_or_default() + MINUTE);
        let hours = i128::from((end - start) / 3_600);
        if hours == 0 {
            return Err(OpsError::Usage("the metrics cover less than an hour".to_owned()));
        }
        let seconds = i128::from(end - start);
        let throughput = |series: &Series| {
            let (unit, hour, parts) = match series.kind {
                Kind::Reads => ("dynamodb.reads", "dynamodb.read-capacity", 2),
                Kind::Writes => ("dynamodb.writes", "dynamodb.write-capacity", 2),
            };
            let a_month = |Nano(nano)| Nano(nano * MONTH_HOURS * 3_600 / seconds);
            let half_units: u64 = series.minutes.values().sum();
            let bounds = bounds(series, (start, end), target_percent);
            let simulated = simulate(series, (start, end), bounds, target_percent);
            Ok(Throughput {
                place: series.place.clone(),
                kind: series.kind,
                units: half_units.div_ceil(2),
                peak: series.minutes.values().copied().max().unwrap_or_default().div_ceil(2 * MINUTE.unsigned_abs()),
                bounds,
                initial: initial(series, end, bounds, target_percent),
                on_demand: a_month(prices.amount(unit, half_units.into(), parts)?),
                provisioned: a_month(prices.amount(hour, simulated.unit_hours.into(), 1)?),
                throttled_minutes: simulated.throttled_minutes,
                throttled_units: simulated.throttled_units,
            })
        };
        let throughputs: Vec<Throughput> = series.iter().map(throughput).collect::<Result<_, OpsError>>()?;
        let on_demand = throughputs.iter().map(|one| one.on_demand).sum();
        let provisioned = throughputs.iter().map(|one| one.provisioned).sum();
        let (recommended, reasons) = recommend(&throughputs, on_demand, provisioned, hours);
        Ok(Self {
            region: prices.region.clone(),
            prices_of: prices.date.clone(),
            target_percent,
            hours,
            parameters: parameters(recommended, &throughputs, target_percent),
            throughputs,
            on_demand,
            provisioned,
            recommended,
            reasons,
            updated: None,
        })
    }

    #[must_use]
    pub fn change(&self) -> String {
        let pairs = self.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    }
}

fn recommend(throughputs: &[Throughput], on_demand: Nano, provisioned: Nano, hours: i128) -> (Mode, Vec<String>) {
    let saved = (on_demand - provisioned).0 * 100 / on_demand.0.max(1);
    let throttled: u64 = throughputs.iter().map(|one| one.throttled_minutes).sum();
    let mut reasons = vec![format!("the month costs {on_demand} dollars on demand, and {provisioned} provisioned")];
    let mode = if saved < WORTH_PERCENT {
        reasons.push(format!("provisioned capacity must save at least {WORTH_PERCENT} percent to be worth it"));
        Mode::OnDemand
    } else if throttled > 0 {
        let minutes = format!("with auto scaling, requests would have been throttled during {throttled} minutes");
        reasons.push(format!("{minutes}, because the traffic rises faster than the capacity"));
        Mode::OnDemand
    } else {
        reasons.push(format!("provisioned capacity saves {saved} percent, and no request would have been throttled"));
        Mode::Provisioned
    };
    if hours < WEEK_HOURS {
        reasons.push(format!("WEAK: the data cover {hours} hours, and traffic differs by weekday"));
    }
    (mode, reasons)
}

/// Returns the values of the template's parameters. The lists have a lower and an upper bound, or the
/// initial capacity, for the table and for each index.
fn parameters(mode: Mode, throughputs: &[Throughput], target: u64) -> BTreeMap<&'static str, String> {
    let mut parameters = BTreeMap::from([("CapacityMode", mode.parameter().to_owned())]);
    if mode == Mode::Provisioned {
        let list = |kind, value: fn(&Throughput) -> String| {
            let of_kind = throughputs.iter().filter(|one| one.kind == kind);
            of_kind.map(value).collect::<Vec<_>>().join(",")
        };
        let bounds = |one: &Throughput| format!("{},{}", one.bounds.min, one.bounds.max);
        let initial = |one: &Throughput| one.initial.to_string();
        parameters.insert("ReadCapacity", list(Kind::Reads, bounds));
        parameters.insert("WriteCapacity", list(Kind::Writes, bounds));
        parameters.insert("InitialReadCapacity", list(Kind::Reads, initial));
        parameters.insert("InitialWriteCapacity", list(Kind::Writes, initial));
        parameters.insert("CapacityTarget", target.to_string());
    }
    parameters
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { region, prices_of, target_percent, hours, .. } = self;
        writeln!(f, "{hours} hours, prices of {region} on {prices_of}, target {target_percent} percent\n")?;
        writeln!(f, "place  kind    peak per second  on demand  provisioned  auto scaling  throttled minutes")?;
        for one in &self.throughputs {
            let kind = if one.kind == Kind::Reads { "reads" } else { "writes" };
            let Throughput { place, peak, on_demand, provisioned, throttled_minutes, .. } = one;
            let bounds = format!("{} to {}", one.bounds.min, one.bounds.max);
            write!(f, "{place:<5}  {kind:<6}  {peak:>15}  {on_demand:>9}  {provisioned:>11}  ")?;
            writeln!(f, "{bounds:>12}  {throttled_minutes:>17}")?;
        }
        writeln!(f, "sum    {:>31}  {:>11}\n", self.on_demand, self.provisioned)?;
        writeln!(f, "recommended: {}", self.recommended.parameter())?;
        for reason in &self.reasons {
            writeln!(f, "  {reason}")?;
        }
        writeln!(f, "parameters: {}", self.change())?;
        if let Some(stack) = &self.updated {
            writeln!(
                f,
                "the update of {stack} has begun: aws cloudformation wait stack-update-complete --stack-name {stack}"
            )?;
        }
        Ok(())
    }
}
