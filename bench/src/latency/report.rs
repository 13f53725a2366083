use std::time::Duration;

use serde::Serialize;

use super::clients::Timings;
use super::routes::{Route, Server};
use super::{Plan, TURNS};
use crate::report::{Table, millis, quantile};

/// The measurements of one row: the sum of its turns.
#[derive(Debug)]
pub(super) struct Measured {
    pub server: Server,
    route: Route,
    clients: u16,
    timings: Timings,
    cpu: Duration,
    processes: usize,
}

/// The figures of one route on one server with one number of clients.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub route: Route,
    pub server: Server,
    pub clients: u16,
    /// Requests with the expected response.
    pub requests: usize,
    pub requests_per_second: f64,
    /// The median latency, in milliseconds.
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    /// CPU time of the function's processes for one request, in microseconds.
    pub cpu_us: f64,
    pub processes: usize,
}

impl Measured {
    pub fn new(route: Route, server: Server, clients: u16) -> Self {
        Self { server, route, clients, timings: Timings::default(), cpu: Duration::ZERO, processes: 0 }
    }

    /// Adds a turn and its CPU time, and keeps the highest number of processes.
    pub fn add(&mut self, timings: Timings, cpu: Duration, processes: usize) {
        self.timings.latencies.extend(timings.latencies);
        self.timings.elapsed += timings.elapsed;
        self.cpu += cpu;
        self.processes = self.processes.max(processes);
    }

    pub fn into_row(self) -> Row {
        let Self { server, route, clients, timings: Timings { latencies, elapsed }, cpu, processes } = self;
        let at = |thousandths| millis(quantile(&latencies, thousandths));
        let requests = latencies.len() as f64;
        Row {
            route,
            server,
            clients,
            requests: latencies.len(),
            requests_per_second: requests / elapsed.as_secs_f64().max(f64::EPSILON),
            p50_ms: at(500),
            p90_ms: at(900),
            p99_ms: at(990),
            max_ms: at(1_000),
            cpu_us: millis(cpu) * 1e3 / requests.max(1.0),
            processes,
        }
    }
}

pub(super) struct Report {
    pub rows: Vec<Row>,
    pub peers: Vec<String>,
    pub plan: Plan,
}

impl Report {
    pub fn markdown(&self) -> String {
        let Plan { requests, seconds, environments, products, customers, .. } = &self.plan;
        let beside = if self.peers.is_empty() { "none".to_owned() } else { self.peers.join("; ") };
        let mut table = Table::new(
            "route | clients | answered by | requests | a second | p50 ms | p90 | p99 | slowest | CPU µs a request | \
            processes",
        );
        for row in &self.rows {
            table.row(format_args!(
                "`{}` | {} | {:?} | {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {}",
                row.route.name(),
                row.clients,
                row.server,
                row.requests,
                row.requests_per_second,
                row.p50_ms,
                row.p90_ms,
                row.p99_ms,
                row.max_ms,
                row.cpu_us,
                row.processes,
            ));
        }
        format!(
            "At most {requests} requests and {seconds} s per row, in {TURNS} turns in which the servers alternate. At \
            most {environments} processes of a function, {products} products, {customers} customers. Peers: \
            {beside}.\n\n{table}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: impl Iterator<Item = u64>) -> Vec<Duration> {
        millis.map(Duration::from_millis).collect()
    }

    #[test]
    fn a_row_is_the_sum_of_its_turns() {
        let mut measured = Measured::new(Route::Product, Server::Node, 2);
        for turn in [of(1..=2), of(3..=4)] {
            let timings = Timings { latencies: turn, elapsed: Duration::from_secs(2) };
            measured.add(timings, Duration::from_micros(600), 3);
        }
        let row = measured.into_row();
        assert_eq!((row.requests, row.processes, row.clients), (4, 3, 2));
        let figures = [row.requests_per_second, row.p50_ms, row.max_ms, row.cpu_us];
        for (figure, expected) in figures.into_iter().zip([1.0, 2.0, 4.0, 300.0]) {
            assert!((figure - expected).abs() < 1e-9, "{figure} instead of {expected}");
        }
    }
}
