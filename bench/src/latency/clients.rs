//! Concurrent clients. Each sends its next request after the previous response.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::task::JoinSet;

use super::routes::{LINES, Route, Server};
use super::shop::Shop;
use crate::BenchError;

/// One part of the requests of a table row, with its clients. A row has [`super::TURNS`] turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub route: Route,
    pub server: Server,
    pub clients: u16,
    pub requests: u64,
    /// The time after the turn's start from which no request starts.
    pub longest: Duration,
    pub seed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Timings {
    /// The time of each request, from its sending to the last byte of its response.
    pub latencies: Vec<Duration>,
    pub elapsed: Duration,
}

impl Turn {
    /// Sends the requests and waits for the last response.
    pub async fn run(self, shop: &Arc<Shop>) -> Result<Timings, BenchError> {
        let begun = Arc::new(AtomicU64::new(0));
        let started = Instant::now();
        let mut clients: JoinSet<Result<Vec<Duration>, BenchError>> = (0..self.clients)
            .map(|client| self.client(usize::from(client), Arc::clone(shop), Arc::clone(&begun), started))
            .collect();
        let mut timings = Timings::default();
        while let Some(client) = clients.join_next().await {
            timings.latencies.extend(client??);
        }
        timings.elapsed = started.elapsed();
        Ok(timings)
    }

    async fn client(
        self,
        client: usize,
        shop: Arc<Shop>,
        begun: Arc<AtomicU64>,
        started: Instant,
    ) -> Result<Vec<Duration>, BenchError> {
        let mut rng = Rng::with_seed((self.seed << 16) | client as u64);
        let mut latencies = Vec::new();
        while started.elapsed() < self.longest && begun.fetch_add(1, Ordering::Relaxed) < self.requests {
            let request = self.route.request(&shop, self.server, client, shop.number(), &mut rng);
            let request = request.build()?;
            let sent = Instant::now();
            let answer = shop.http().execute(request).await?;
            let status = answer.status();
            let body = answer.bytes().await?;
            latencies.push(sent.elapsed());
            if status != self.route.expected() {
                let (name, body) = (self.route.name(), String::from_utf8_lossy(&body));
                return Err(wrong!("the response to {name} by {:?} is {status}: {body}", self.server));
            }
            if self.route == Route::Place {
                shop.placed(LINES as u64);
            }
        }
        Ok(latencies)
    }
}
