//! Records everything that the functions receive from a table's stream.
//!
//! The stream must still have all its records. Start the system with
//! [`Options::keeps_stream`](local::Options::keeps_stream).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use local::System;
use serde::Deserialize;
use serde_json::value::RawValue;
use stream_poller::{Endpoint, FunctionError, HttpStream, Invoke, Mapping, MappingSettings, Pace, Poller};
use template::Template;

use super::FUNCTIONS;
use super::shop::Shop;
use crate::BenchError;

#[derive(Debug, Default)]
pub struct Recorded(BTreeMap<&'static str, Vec<String>>);

/// A function that records every stream record that it receives, by padded sequence number.
#[derive(Default)]
struct Receiver(Mutex<BTreeMap<String, String>>);

/// Reads the stream from its beginning, and applies the event filters of each function.
pub async fn record(system: &System, template: &Template, shop: &Shop) -> Result<Recorded, BenchError> {
    let endpoint = Endpoint {
        table_url: system.table_url().to_owned(),
        stream_url: system.table_url().to_owned(),
        access_key_id: shop.access_key().to_owned(),
        region: shop.region().to_owned(),
        swept: stream_poller::Swept::default(),
    };
    let stream = HttpStream::of_table(endpoint, system.table()).await?;
    let mut receivers = Vec::new();
    let mut mappings = Vec::new();
    for function in FUNCTIONS {
        let mut settings = MappingSettings::for_function(function);
        let mapping = template.streams.iter().find(|stream| stream.function == function);
        settings.filters = mapping.iter().flat_map(|stream| &stream.filters).map(ToString::to_string).collect();
        settings.batch_size = 1_000;
        let receiver = Arc::new(Receiver::default());
        receivers.push((function, Arc::clone(&receiver)));
        mappings.push(Mapping::new(settings, receiver, None)?);
    }
    let poller = Poller::start(stream, mappings, Pace::default()).await?;
    poller.drained().await;
    let lost: u64 = poller.progress().mappings.iter().map(|mapping| mapping.lost).sum();
    drop(poller);
    if lost > 0 {
        return Err(wrong!("{lost} records of the stream are missing"));
    }
    let take = |receiver: &Receiver| std::mem::take(&mut *receiver.0.lock().unwrap_or_else(PoisonError::into_inner));
    let recorded = receivers.iter().map(|(name, receiver)| (*name, take(receiver).into_values().collect()));
    Ok(Recorded(recorded.collect()))
}

impl Recorded {
    /// Returns the records of each function, in the order of the stream.
    pub fn by_function(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        self.0.iter().map(|(function, records)| (*function, records.as_slice()))
    }

    /// A record that several functions received counts once for each function.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct StreamRecord {
    dynamodb: StreamData,
}

#[derive(Deserialize)]
struct StreamData {
    #[serde(rename = "SequenceNumber")]
    sequence_number: String,
}

impl Receiver {
    fn record(&self, payload: &[u8]) -> Result<(), serde_json::Error> {
        let event: Event = serde_json::from_slice(payload)?;
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for record in event.records {
            let StreamRecord { dynamodb: StreamData { sequence_number } } = serde_json::from_str(record.get())?;
            // Padding makes the texts sort like the numbers. The poller may deliver a record twice,
            // and the map keeps one.
            records.insert(format!("{sequence_number:0>40}"), record.get().to_owned());
        }
        Ok(())
    }
}

impl Invoke for Receiver {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>> {
        let recorded = self.record(&payload).map_err(|error| FunctionError::Failed(error.to_string()));
        Box::pin(async move { recorded.map(|()| Bytes::from_static(br#"{"batchItemFailures":[]}"#)) })
    }
}
