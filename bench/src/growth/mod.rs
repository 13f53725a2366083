//! Measures the lists, most other reads and the main writes with a thousand, ten thousand and more
//! items. The cost of a route must not depend on the number of items.
//!
//! All [`lists`] are in one table and have the same number of entries. The table
//! also has the items of [`routes`]. Each route then receives requests one after the other. The
//! requests to a list read consecutive pages. Most writes change a different record with each
//! request. A route's figure is the median.
//!
//! The run fails if the requests to the table or their capacity units depend on the number of
//! items. Read units may differ by half a unit. The run shows the latency but does not check it.
//! The latency covers the function and the embedded table, without Lambda. It grows a little,
//! because the table's B-trees get deeper.
//!
//! Each list is also measured with many entries in a table of its own.

mod lists;
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use clap::Args;
use http_api::Measured as _;
use http_api::sample::{Answered, Call};
use key_schema::item::{Item, key_of};
use key_schema::key::Key;
use serde::Serialize;
use serde_json::Value;

use crate::BenchError;
use crate::loaded::LoadedTable;
use crate::report::{Output, Table, millis, quantile};
use lists::{Function, List};
use routes::Route;

const PAGE: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct GrowthArgs {
    /// Numbers of items in the table.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    #[arg(value_parser = clap::value_parser!(u64).range(1_000..=5_000_000))]
    items: Vec<u64>,
    /// Entries of one list in its own table, or 0 to skip these measurements.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    collection: u64,
    /// Requests to each route.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    repeat: u64,
    /// Only the routes that contain this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// The shop's table, with this many items in total.
    Items(u64),
    /// The list's own table, with this many entries.
    Collection(u64),
}

/// The cost of a response: the function's requests to the table, and their capacity units.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
struct Cost {
    requests: u32,
    read_units: f64,
    write_units: f64,
}

impl Cost {
    /// Returns whether two costs count as equal: only their read units may differ, by at most half
    /// a unit. The numbers in the ids differ between the stages, and so can the size of a page. A
    /// page of about 4 KB may need half a unit more.
    fn is_as(self, other: Self) -> bool {
        const HALF: f64 = 0.5;
        self.requests == other.requests
            && self.write_units == other.write_units
            && (self.read_units - other.read_units).abs() <= HALF
    }
}

/// The figures of a route at one stage. The cost is the median cost.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    stage: Stage,
    #[serde(flatten)]
    cost: Cost,
    median_ms: f64,
    p95_ms: f64,
}

#[derive(Debug, Serialize)]
struct Growth {
    route: String,
    figures: Vec<Figures>,
}

pub(crate) async fn run(args: GrowthArgs) -> Result<(), BenchError> {
    let growth = measure(&args.items, args.collection, args.repeat, &args.only).await?;
    same_cost(&growth)?;
    args.output.publish("growth", &table(&growth), &growth)
}

async fn measure(items: &[u64], collection: u64, repeat: u64, only: &str) -> Result<Vec<Growth>, BenchError> {
    let lists = lists::all()?;
    let mut growth: BTreeMap<String, Vec<Figures>> = BTreeMap::new();
    let mut failed = BTreeSet::new();
    let mut keep = |route: String, figures: Result<Figures, BenchError>| match figures {
        Ok(figures) => growth.entry(route).or_default().push(figures),
        Err(error) => {
            failed.insert(error.to_string());
        }
    };
    for items in items.iter().copied().collect::<BTreeSet<_>>() {
        let table = shop(&lists, items, repeat).await?;
        for list in lists.iter().filter(|list| list.name().contains(only)) {
            keep(list.name(), read(&table, Stage::Items(items), list, repeat).await);
        }
        for route in routes::all()?.iter().filter(|route| route.name.contains(only)) {
            keep(route.name.clone(), ask(&table, Stage::Items(items), route, repeat).await);
        }
    }
    for list in lists.iter().filter(|list| collection > 0 && list.name().contains(only)) {
        let table = list.load(collection).await?;
        keep(list.name(), read(&table, Stage::Collection(collection), list, repeat).await);
    }
    if !failed.is_empty() {
        return Err(BenchError(failed.into_iter().collect::<Vec<_>>().join("\n")));
    }
    Ok(growth.into_iter().map(|(route, figures)| Growth { route, figures }).collect())
}

/// Creates a table with this many items. Lists with the same keys share their items.
async fn shop(lists: &[List], items: u64, repeat: u64) -> Result<LoadedTable, BenchError> {
    let mut kinds: BTreeMap<Key, &List> = BTreeMap::new();
    for list in lists {
        let key = key_of(&(list.item)(1)?).ok_or_else(|| wrong!("an item without a key"))?;
        kinds.insert(key, list);
    }
    let around: Vec<Item> = lists.iter().flat_map(|list| list.around.clone()).chain(routes::around(repeat)?).collect();
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let each = items.saturating_sub(count(around.len())) / count(kinds.len()).max(1);
    if each <= count(2 * PAGE) {
        return Err(wrong!("{items} items are too few with {repeat} repetitions: each list has only {each} items"));
    }
    let table = LoadedTable::create().await?;
    table.load(around.into_iter().map(Ok)).await?;
    for list in kinds.into_values() {
        table.load((0..each).map(&list.item)).await?;
    }
    for (function, call) in routes::before() {
        let answer = function(table.services()?)?.send(call.clone()).await;
        accepted(&call.name(), &answer)?;
    }
    Ok(table)
}

fn accepted(name: &str, answer: &Answered) -> Result<(), BenchError> {
    match answer.status {
        200..=299 => Ok(()),
        status => Err(wrong!("{name}: {status} {}", answer.body)),
    }
}

async fn ask(table: &LoadedTable, stage: Stage, route: &Route, repeat: u64) -> Result<Figures, BenchError> {
    let function = (route.function)(table.services()?)?;
    let mut measured = Measurements::default();
    for time in 0..repeat {
        let call = (route.call)(time)?;
        let answer = measured.send(function.as_ref(), call).await;
        accepted(&route.name, &answer)?;
        measured.keep();
    }
    measured.figures(stage, &route.name)
}

/// Reads full pages of a list one after the other, and starts again at the end.
async fn read(table: &LoadedTable, stage: Stage, list: &List, repeat: u64) -> Result<Figures, BenchError> {
    let (name, function) = (list.name(), (list.function)(table.services()?)?);
    let (mut measured, mut cursor) = (Measurements::default(), None::<String>);
    // The last page of a round is not measured, because it may have fewer entries.
    for _ in 0..repeat * 2 {
        let answer = measured.send(function.as_ref(), list.page(PAGE, cursor.as_deref())).await;
        accepted(&name, &answer)?;
        let length = answer.body.get("items").and_then(Value::as_array).map_or(0, Vec::len);
        cursor = answer.body.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
        if length == PAGE && cursor.is_some() {
            measured.keep();
        }
        if measured.kept() == repeat {
            break;
        }
    }
    measured.figures(stage, &name)
}

#[derive(Default)]
struct Measurements {
    costs: Vec<Cost>,
    times: Vec<Duration>,
    last: Option<(Cost, Duration)>,
}

impl Measurements {
    async fn send(&mut self, function: &dyn Function, call: Call) -> Answered {
        let _ = function.services().take();
        let began = Instant::now();
        let answer = function.send(call).await;
        let took = began.elapsed();
        let cost = function.services().take().into_iter().fold(
            Cost { requests: 0, read_units: 0.0, write_units: 0.0 },
            |sum, cost| Cost {
                requests: sum.requests + cost.requests,
                read_units: sum.read_units + cost.read_units,
                write_units: sum.write_units + cost.write_units,
            },
        );
        self.last = Some((cost, took));
        answer
    }

    /// Includes the last response in the figures.
    fn keep(&mut self) {
        if let Some((cost, took)) = self.last.take() {
            self.costs.push(cost);
            self.times.push(took);
        }
    }

    fn kept(&self) -> u64 {
        u64::try_from(self.costs.len()).unwrap_or(u64::MAX)
    }

    /// Returns the figures. The cost is the median, because a few responses cost more. About one
    /// response in a hundred reads a shard again. A route's first request may create
    /// items that its later requests find.
    fn figures(mut self, stage: Stage, name: &str) -> Result<Figures, BenchError> {
        self.costs.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        let cost = self.costs.get(self.costs.len() / 2);
        let cost = *cost.ok_or_else(|| wrong!("{name}: the list has no full page"))?;
        let at = |thousandths| millis(quantile(&self.times, thousandths));
        if cost.requests == 0 {
            return Err(wrong!("{name}: no request reached the table"));
        }
        Ok(Figures { stage, cost, median_ms: at(500), p95_ms: at(950) })
    }
}

/// Fails if the cost of a route depends on the number of items.
fn same_cost(growth: &[Growth]) -> Result<(), BenchError> {
    let grown = growth.iter().filter(|route| {
        let mut costs = route.figures.iter().map(|figures| figures.cost);
        let first = costs.next();
        costs.any(|cost| !first.is_some_and(|first| first.is_as(cost)))
    });
    let grown: Vec<String> = grown
        .map(|Growth { route, figures }| {
            format!("{route}: {:?}", figures.iter().map(|figures| (figures.stage, figures.cost)).collect::<Vec<_>>())
        })
        .collect();
    if grown.is_empty() {
        Ok(())
    } else {
        Err(wrong!("the cost of these routes depends on the number of items:\n{}", grown.join("\n")))
    }
}

impl Stage {
    fn label(self) -> String {
        match self {
            Self::Items(items) => grouped(items),
            Self::Collection(entries) => format!("{} in the list", grouped(entries)),
        }
    }
}

/// Formats 100000 as 100,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a Markdown table with the cost, which is the same at each stage, and the latency at each
/// stage.
fn table(growth: &[Growth]) -> String {
    let stages: BTreeSet<Stage> = growth.iter().flat_map(|route| &route.figures).map(|figures| figures.stage).collect();
    let labels: String = stages.iter().map(|stage| format!(" | {}", stage.label())).collect();
    let mut table = Table::new(&format!("route | requests | read units | write units{labels}"));
    for Growth { route, figures } in growth {
        let Some(Figures { cost, .. }) = figures.first() else { continue };
        let latency = |stage: &Stage| match figures.iter().find(|figures| figures.stage == *stage) {
            Some(Figures { median_ms, .. }) => format!(" | {median_ms:.1}"),
            None => " | ".to_owned(),
        };
        let latencies: String = stages.iter().map(latency).collect();
        let Cost { requests, read_units, write_units } = cost;
        table.row(format_args!("`{route}` | {requests} | {read_units} | {write_units}{latencies}"));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The indentation marks paths and methods.
    fn described(method: &str) -> BTreeSet<String> {
        let (mut found, mut path) = (BTreeSet::new(), "");
        for line in include_str!("../../../openapi.yaml").lines() {
            match line.len() - line.trim_start().len() {
                2 => path = line.trim().trim_end_matches(':'),
                4 if line.trim() == method && path.starts_with('/') => {
                    found.insert(format!("{} {path}", method.trim_end_matches(':').to_uppercase()));
                }
                _ => {}
            }
        }
        found
    }

    /// The reads that are not measured. They read the search index, the settings, the rules of
    /// pricing, the locations, the endpoints, a stock, or one promotion. The numbers of rules, locations
    /// and endpoints are limited. The deliveries of an endpoint are one Query. The route of one picture
    /// makes the same Query as the list of pictures. The copy of a customer's data reads lists that are
    /// measured. Staff's numbers of a product and its author's
    /// review read what the product's page and the review read, and staff's list of reviews reads the
    /// lists of everybody.
    const UNMEASURED_READS: [&str; 25] = [
        "GET /v1/agents",
        "GET /v1/agents/{id}",
        "GET /v1/webhooks/endpoints",
        "GET /v1/webhooks/endpoints/{id}",
        "GET /v1/webhooks/endpoints/{id}/deliveries",
        "GET /v1/webhooks/endpoints/{id}/deliveries/{delivery}",
        "GET /v1/products/{id}/numbers",
        "GET /v1/products/{id}/stock",
        "GET /v1/locations",
        "GET /v1/locations/{id}",
        "GET /v1/customers/{id}/reviews/{product}",
        "GET /v1/reviews",
        "GET /v1/customers/{id}/data",
        "GET /v1/search/products",
        "GET /v1/search/suggestions",
        "GET /v1/search/orders",
        "GET /v1/products/{id}/pictures/{picture}",
        "GET /v1/settings",
        "GET /v1/settings/private",
        "GET /v1/shipping/countries",
        "GET /v1/shipping/zones",
        "GET /v1/shipping/zones/{id}",
        "GET /v1/promotions/{id}",
        "GET /v1/tax/rules",
        "GET /v1/tax/rules/{id}",
    ];

    #[tokio::test]
    async fn with_twice_the_items_every_route_costs_the_same() {
        let growth = measure(&[1_000, 2_000], 0, 3, "").await.unwrap();
        same_cost(&growth).unwrap();
        let measured: BTreeSet<&str> =
            growth.iter().map(|route| route.route.split('?').next().unwrap_or_default()).collect();
        let expected = described("get:");
        let unmeasured: Vec<&str> =
            expected.iter().map(String::as_str).filter(|read| !measured.contains(read)).collect();
        assert_eq!(unmeasured.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(UNMEASURED_READS));
        assert!(growth.iter().all(|route| route.figures.len() == 2));
    }

    #[test]
    fn a_route_that_costs_more_with_more_items_is_refused() {
        let figures = |items, read_units| Figures {
            stage: Stage::Items(items),
            cost: Cost { requests: 1, read_units, write_units: 0.0 },
            median_ms: 1.0,
            p95_ms: 2.0,
        };
        let growth = |second| {
            [Growth { route: "GET /v1/orders".to_owned(), figures: vec![figures(1_000, 0.5), figures(2_000, second)] }]
        };
        assert!(same_cost(&growth(0.5)).is_ok());
        assert!(same_cost(&growth(1.0)).is_ok());
        assert!(same_cost(&growth(1.5)).is_err());
        assert!(table(&growth(0.5)).ends_with("| `GET /v1/orders` | 1 | 0.5 | 0 | 1.0 | 1.0 |\n"));
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([999, 1_000, 100_000, 1_000_000].map(grouped), ["999", "1,000", "100,000", "1,000,000"]);
    }
}
