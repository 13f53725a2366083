//! Tests parallelization: records of one item stay in order and are never processed concurrently,
//! even after failures.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::common::{MemoryStream, age, failed, failures, insert, sequences, settings};
use bytes::Bytes;
use futures::future::BoxFuture;
use proptest::prelude::*;
use stream_poller::{FunctionError, Invoke, Mapping, MappingSettings};

/// A function that checks each call against the settled records, and takes its responses from a
/// script of numbers.
struct Witness {
    keys: Vec<u8>,
    script: Vec<u8>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    calls: usize,
    settled: HashMap<u8, usize>,
    under_way: HashSet<u8>,
    most_at_once: usize,
    at_once: usize,
    complaint: Option<String>,
}

impl Witness {
    fn key(&self, sequence: u64) -> u8 {
        self.keys[usize::try_from(sequence).unwrap()]
    }

    /// Returns the records of a key in the order of the stream.
    fn of_key(&self, key: u8) -> Vec<u64> {
        let all = 0..u64::try_from(self.keys.len()).unwrap();
        all.filter(|sequence| self.key(*sequence) == key).collect()
    }

    fn begin(&self, batch: &[u64]) -> u8 {
        let mut seen = self.seen.lock().unwrap();
        let mut by_key: HashMap<u8, Vec<u64>> = HashMap::new();
        for sequence in batch {
            by_key.entry(self.key(*sequence)).or_default().push(*sequence);
        }
        for (key, records) in by_key {
            let settled = seen.settled.get(&key).copied().unwrap_or_default();
            let expected: Vec<u64> = self.of_key(key).into_iter().skip(settled).take(records.len()).collect();
            if records != expected {
                seen.complaint = Some(format!("key {key}: {records:?}, expected {expected:?}"));
            }
            if !seen.under_way.insert(key) {
                seen.complaint = Some(format!("key {key} in two calls at once"));
            }
        }
        seen.at_once += 1;
        seen.most_at_once = seen.most_at_once.max(seen.at_once);
        seen.calls += 1;
        self.script[seen.calls % self.script.len()]
    }

    fn end(&self, batch: &[u64], settled: usize) {
        let mut seen = self.seen.lock().unwrap();
        seen.at_once -= 1;
        for sequence in batch {
            seen.under_way.remove(&self.key(*sequence));
        }
        for sequence in batch.iter().take(settled) {
            *seen.settled.entry(self.key(*sequence)).or_default() += 1;
        }
    }
}

struct Function(Arc<Witness>);

impl Invoke for Function {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>> {
        Box::pin(async move {
            let batch = sequences(&payload);
            let choice = self.0.begin(&batch);
            for _ in 0..choice % 5 {
                tokio::task::yield_now().await;
            }
            let (settled, answer) = match choice % 4 {
                0 => (0, Err(failed())),
                1 => {
                    let first = usize::from(choice) % batch.len();
                    (first, Ok(failures(&batch[first..])))
                }
                _ => (batch.len(), Ok(failures::<u64>(&[]))),
            };
            self.0.end(&batch, settled);
            answer.map(|answer| answer.to_string().into())
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_of_one_item_stay_in_order_and_all_arrive(
        keys in prop::collection::vec(0_u8..12, 1..120),
        mut script in prop::collection::vec(any::<u8>(), 1..20),
        batch_size in 1_usize..12,
        parallelization_factor in 1_usize..=10,
        bisect in any::<bool>(),
    ) {
        // The script has at least one success, so that the test ends.
        script.push(2);
        let witness = Arc::new(Witness { keys: keys.clone(), script, seen: Mutex::default() });
        let settings = MappingSettings {
            batch_size,
            parallelization_factor,
            bisect_on_function_error: bisect,
            report_batch_item_failures: true,
            ..settings()
        };
        let function = Arc::new(Function(Arc::clone(&witness)));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let progress = runtime.block_on(async {
            let stream = MemoryStream::new();
            for (number, key) in (0..).zip(&keys) {
                stream.push("s1", insert(number, &key.to_string(), age(0)));
            }
            crate::common::run(&stream, Mapping::new(settings, function, None).unwrap()).await
        });
        let seen = witness.seen.lock().unwrap();
        prop_assert_eq!(&seen.complaint, &None);
        prop_assert_eq!(seen.settled.values().sum::<usize>(), keys.len());
        prop_assert_eq!(progress.delivered, keys.len() as u64);
        prop_assert!(seen.most_at_once <= parallelization_factor);
    }
}
