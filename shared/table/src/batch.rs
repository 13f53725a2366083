//! Batch reads by key and unconditional batch writes. DynamoDB may process only a part of a batch.
//! This module retries the rest with full jitter. It reports the items that remain unprocessed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use aws_sdk_dynamodb::types::{
    AttributeValue, DeleteRequest, KeysAndAttributes, PutRequest, ReturnConsumedCapacity, WriteRequest,
};
use futures::future::try_join_all;
use item_model::item::{DecodeError, FromItem, Item, key_of, size};
use item_model::key::Key;
use item_model::pattern::Pattern;
use item_model::request::{BatchGet, BatchWrite, BatchWriteAction, MAX_BATCH_GET, MAX_BATCH_WRITE};

use crate::Table;
use crate::error::{TableError, classify};
use crate::read::key_map;
use crate::retry::Backoff;

const CONCURRENCY: usize = 4;

/// The items of a batch.
#[derive(Debug)]
pub struct Batch<T> {
    /// The items in the order of the keys, with `None` for items that are missing or unreadable.
    pub items: Vec<Option<T>>,
    /// The positions of the unreadable items, with the reasons.
    pub unreadable: Vec<(usize, DecodeError)>,
}

impl<T> Batch<T> {
    /// Fails if an item at one of these positions is unreadable, for items that decide.
    pub fn require(&mut self, positions: Range<usize>) -> Result<(), TableError> {
        match self.unreadable.iter().position(|(at, _)| positions.contains(at)) {
            Some(found) => Err(TableError::Decode(self.unreadable.swap_remove(found).1)),
            None => Ok(()),
        }
    }
}

impl Table {
    /// Reads many items, in the order of the keys, with `None` for missing items. More than 100
    /// keys are split into several requests.
    ///
    /// # Errors
    /// [`TableError::Unprocessed`] when DynamoDB left some keys unprocessed until the retry budget
    /// was used up. Otherwise the errors of [`Table::get`].
    pub async fn batch_get<T: FromItem>(&self, batch: &BatchGet<T>) -> Result<Vec<Option<T>>, TableError> {
        let found = self.stored(batch.pattern(), batch.keys(), batch.is_strong()).await?;
        batch.keys().iter().map(|key| Ok(found.get(key).cloned().map(T::from_item).transpose()?)).collect()
    }

    /// Reads many items like [`Table::batch_get`]. An item that cannot be decoded is logged and left
    /// out, so that it does not hide the other items.
    pub async fn batch_get_readable<T: FromItem>(&self, batch: &BatchGet<T>) -> Result<Batch<T>, TableError> {
        let found = self.stored(batch.pattern(), batch.keys(), batch.is_strong()).await?;
        let mut read = Batch { items: Vec::with_capacity(batch.keys().len()), unreadable: Vec::new() };
        for (at, key) in batch.keys().iter().enumerate() {
            read.items.push(match found.get(key).cloned().map(T::from_item) {
                None => None,
                Some(Ok(item)) => Some(item),
                Some(Err(error)) => {
                    let batch = batch.pattern().id;
                    tracing::error!(cause = error.for_log(), batch, "an unreadable item is left out of a batch");
                    read.unreadable.push((at, error));
                    None
                }
            });
        }
        Ok(read)
    }

    /// Returns the stored items of a batch by key.
    async fn stored(
        &self,
        pattern: &'static Pattern,
        keys: &[Key],
        strong: bool,
    ) -> Result<BTreeMap<Key, Item>, TableError> {
        // DynamoDB refuses a batch with duplicate keys.
        let distinct: Vec<&Key> = keys.iter().collect::<BTreeSet<_>>().into_iter().collect();
        let chunks: Vec<&[&Key]> = distinct.chunks(MAX_BATCH_GET).collect();
        let mut found: BTreeMap<Key, Item> = BTreeMap::new();
        for wave in chunks.chunks(CONCURRENCY) {
            for items in try_join_all(wave.iter().map(|keys| self.get_chunk(pattern, keys, strong))).await? {
                found.extend(items.into_iter().filter_map(|item| Some((key_of(&item)?, item))));
            }
        }
        Ok(found)
    }

    async fn get_chunk(&self, pattern: &'static Pattern, keys: &[&Key], strong: bool) -> Result<Vec<Item>, TableError> {
        let mut pending: Vec<HashMap<String, AttributeValue>> = keys.iter().map(|key| key_map(key)).collect();
        let mut found = Vec::with_capacity(keys.len());
        let mut backoff = Backoff::new();
        while !pending.is_empty() {
            let keys = KeysAndAttributes::builder()
                .set_keys(Some(std::mem::take(&mut pending)))
                .consistent_read(strong)
                .build()
                .map_err(|error| TableError::Rejected(error.to_string()))?;
            let answer = self
                .client
                .batch_get_item()
                .request_items(&self.name, keys)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| classify(&error))?;
            let items: Vec<Item> =
                answer.responses.unwrap_or_default().into_values().flatten().map(Into::into).collect();
            self.meter.record(
                pattern,
                answer.consumed_capacity.iter().flatten(),
                items.len(),
                items.iter().map(size).sum(),
            );
            found.extend(items);
            pending = answer.unprocessed_keys.unwrap_or_default().into_values().flat_map(|keys| keys.keys).collect();
            if !pending.is_empty() && !backoff.wait().await {
                return Err(TableError::Unprocessed(pending.len()));
            }
        }
        Ok(found)
    }

    /// Writes many items without conditions. More than 25 writes are split into several requests.
    /// Returns the writes that DynamoDB left unprocessed.
    ///
    /// # Errors
    /// [`TableError`] when a request fails as a whole. Some of the writes may then have happened.
    pub async fn batch_write(&self, batch: &BatchWrite) -> Result<Vec<BatchWriteAction>, TableError> {
        let chunks: Vec<&[BatchWriteAction]> = batch.writes().chunks(MAX_BATCH_WRITE).collect();
        let mut left = Vec::new();
        for wave in chunks.chunks(CONCURRENCY) {
            left.extend(
                try_join_all(wave.iter().map(|writes| self.write_chunk(batch.pattern(), writes)))
                    .await?
                    .into_iter()
                    .flatten(),
            );
        }
        Ok(left)
    }

    async fn write_chunk(
        &self,
        pattern: &'static Pattern,
        writes: &[BatchWriteAction],
    ) -> Result<Vec<BatchWriteAction>, TableError> {
        let mut pending = writes.iter().map(write_request).collect::<Result<Vec<_>, _>>()?;
        let mut backoff = Backoff::new();
        loop {
            let answer = self
                .client
                .batch_write_item()
                .request_items(&self.name, pending)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| self.failure(&error))?;
            self.meter.record(pattern, answer.consumed_capacity.iter().flatten(), 0, 0);
            pending = answer.unprocessed_items.unwrap_or_default().into_values().flatten().collect();
            if pending.is_empty() || !backoff.wait().await {
                return Ok(pending.into_iter().filter_map(unwritten).collect());
            }
        }
    }
}

fn write_request(action: &BatchWriteAction) -> Result<WriteRequest, TableError> {
    let rejected = |error: aws_sdk_dynamodb::error::BuildError| TableError::Rejected(error.to_string());
    Ok(match action {
        BatchWriteAction::Put(item) => {
            let put = PutRequest::builder().set_item(Some(item.clone().into())).build().map_err(rejected)?;
            WriteRequest::builder().put_request(put).build()
        }
        BatchWriteAction::Delete(key) => {
            let delete = DeleteRequest::builder().set_key(Some(key_map(key))).build().map_err(rejected)?;
            WriteRequest::builder().delete_request(delete).build()
        }
    })
}

fn unwritten(request: WriteRequest) -> Option<BatchWriteAction> {
    match (request.put_request, request.delete_request) {
        (Some(put), _) => Some(BatchWriteAction::Put(put.item.into())),
        (None, Some(delete)) => key_of(&delete.key.into()).map(BatchWriteAction::Delete),
        (None, None) => None,
    }
}
