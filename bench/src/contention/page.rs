//! docs/contention.md: its tables and plots, and the targets.

use std::path::Path;

use ops::cost::svg::{Axis, Line, chart};

use super::{grid, mix};
use crate::BenchError;
use crate::report::{Table, conditions, rewrite};

const PAGE: &str = "docs/contention.md";
const PICTURES: &str = "../docs/pictures";

const CLIENTS: Axis = Axis { title: "clients", factor: Some(2.0) };
const RATE: Axis = Axis { title: "orders a second", factor: Some(10.0) };
const MILLIS: Axis = Axis { title: "95th percentile, milliseconds", factor: Some(10.0) };
const TIME: Axis = Axis { title: "seconds since the sale began", factor: None };
const LAG: Axis = Axis { title: "age of the oldest order that the consumer has not counted, seconds", factor: None };

pub(super) fn grid(figures: &[grid::Figures]) -> Result<(), BenchError> {
    let lines = |value: fn(&grid::Figures) -> f64| {
        let mut shards: Vec<u32> = figures.iter().map(|figures| figures.shards).collect();
        shards.dedup();
        let line = |shards: u32| {
            let of = figures.iter().filter(|figures| figures.shards == shards);
            let label = format!("{shards} shard{}", if shards == 1 { "" } else { "s" });
            Line { label, points: of.map(|figures| (f64::from(figures.clients), value(figures))).collect() }
        };
        shards.into_iter().map(line).collect::<Vec<_>>()
    };
    let title = "Orders a second of one product, simulated";
    picture("contention-rate", &chart(title, CLIENTS, RATE, &lines(|figures| figures.orders_per_second)))?;
    let title = "How long an order of one product takes, simulated";
    picture("contention-p95", &chart(title, CLIENTS, MILLIS, &lines(|figures| figures.p95_ms)))?;
    write("simulated", &grid::table(figures))
}

pub(super) fn real(figures: &[grid::Figures]) -> Result<(), BenchError> {
    write("real", &grid::table(figures))
}

pub(super) fn sale(figures: &mix::Figures) -> Result<(), BenchError> {
    let label = format!("{} orders a second", figures.rate);
    let points = figures.points.iter().map(|point| (point.second, point.lag_s)).collect();
    picture("contention-lag", &chart("The lag of the consumer, simulated", TIME, LAG, &[Line { label, points }]))?;
    write("sale", &mix::table(figures))
}

/// Writes the targets, and what the figures reach of them.
pub(super) fn targets(grid: &[grid::Figures], sale: Option<&mix::Figures>) -> Result<(), BenchError> {
    write("targets", &table(grid, sale))
}

fn table(grid: &[grid::Figures], sale: Option<&mix::Figures>) -> Table {
    let mut table = Table::new("target | reached | met");
    let mut row = |target: &str, reached: String, met: bool| {
        table.row(format_args!("{target} | {reached} | {}", if met { "yes" } else { "no" }));
    };
    let of = |shards: u32| grid.iter().filter(move |figures| figures.shards == shards);
    let best = |shards: u32| of(shards).map(|figures| figures.orders_per_second).fold(0.0, f64::max);
    let one = best(1).max(f64::EPSILON);
    for (shards, factor) in [(16, 12.0), (64, 40.0)] {
        let times = best(shards) / one;
        let target = format!("{shards} shards place at least {factor} times as many orders as one shard");
        row(&target, format!("{times:.1} times: {:.0}/s and {one:.0}/s", best(shards)), times >= factor);
    }
    if let Some(figures) = of(16).find(|figures| figures.clients == 32) {
        let target = "p95 of an order is at most 150 ms, for 32 clients and 16 shards";
        row(target, format!("{:.0} ms", figures.p95_ms), figures.p95_ms <= 150.0);
    }
    let alone = of(1).map(|figures| figures.write_units_per_order).fold(f64::INFINITY, f64::min);
    for shards in [16, 64] {
        let half = of(shards).find(|figures| figures.orders_per_second >= best(shards) / 2.0);
        if let Some(figures) = half {
            let conflicts = figures.conflicts_per_order;
            let target = format!("at most 0.2 conflicts an order at half load, {shards} shards");
            let reached = format!("{conflicts:.2} with {} clients", figures.clients);
            row(&target, reached, conflicts <= 0.2);
            let same = of(1).find(|one| one.clients == figures.clients);
            let units = figures.write_units_per_order;
            let of_one = same.map_or(alone, |one| one.write_units_per_order);
            let target = format!("an order costs at most 1.15 times as much as with one shard, {shards} shards");
            let reached = format!(
                "{:.2} times with {} clients each: {units:.1} write units; {:.2} times an order without conflicts",
                units / of_one,
                figures.clients,
                units / alone,
            );
            row(&target, reached, units / of_one <= 1.15);
        }
    }
    for shards in [1, 4, 16, 64] {
        let Some(last) = of(shards).max_by_key(|figures| figures.clients) else { continue };
        let peak = of(shards).max_by(|a, b| a.orders_per_second.total_cmp(&b.orders_per_second));
        let Some(peak) = peak else { continue };
        let share = last.orders_per_second / peak.orders_per_second;
        let target = format!("the rate stays within 20 % of its peak under overload, {shards} shards");
        let reached = format!("{:.0} %: {} instead of {} clients", share * 100.0, last.clients, peak.clients);
        row(&target, reached, share >= 0.8);
    }
    if let Some(sale) = sale {
        let reached = match sale.caught_up_s {
            Some(seconds) => format!("{seconds:.0} s"),
            None => format!("{} orders were not counted after 10 minutes", sale.uncounted),
        };
        row("the consumer has no lag a minute after the sale", reached, sale.caught_up_s.is_some_and(|s| s <= 60.0));
    }
    table
}

fn write(section: &str, table: &Table) -> Result<(), BenchError> {
    rewrite(PAGE, &format!("contention {section}"), format!("{}\n\n{table}", conditions()).trim_end())
}

fn picture(name: &str, svg: &str) -> Result<(), BenchError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURES);
    Ok(std::fs::write(folder.join(format!("{name}.svg")), svg)?)
}
