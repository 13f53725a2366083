use std::collections::HashMap;

use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsError;
use aws_sdk_dynamodb::types::{AttributeValue, Get, ReturnConsumedCapacity, TransactGetItem};
use futures::future::try_join_all;
use key_schema::item::{Item, key_of};
use key_schema::key::{Key, PartitionKey};
use key_schema::request::MAX_TRANSACTION_ACTIONS;

use super::{Attributes, Items, attributes, consumed, failure, persist};
use crate::error::OpsError;
use crate::pace::Pace;
use crate::progress::Progress;

const SEGMENTS: i32 = 4;
/// The number is small, so that [`Pace`] takes effect, and so that one bulk request holds a page's
/// search documents.
const PAGE: i32 = 500;

#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    /// The names of the entities to pass on. If empty, every item is passed on.
    pub entities: &'a [&'a str],
    pub segments: i32,
    pub units: &'a Pace,
    pub progress: &'a Progress,
}

struct Page {
    items: Vec<Item>,
    /// The number of items that the page read, including those of other entities.
    scanned: usize,
    units: usize,
    next: Option<Attributes>,
}

impl Items {
    /// Scans the whole table and passes the items of these entities to `take`, page by page.
    /// Several segments are scanned at once.
    ///
    /// An item that changes during the scan is passed in its state before or after the change. An
    /// item that exists during the whole scan is always passed.
    pub async fn scan<F>(&self, entities: &[&str], pace: &Pace, progress: &Progress, take: F) -> Result<(), OpsError>
    where
        F: AsyncFn(Vec<Item>) -> Result<(), OpsError>,
    {
        let take = &take;
        let segments = (0..SEGMENTS).map(async |segment| {
            let mut start = None;
            // The loop ends, because each page starts after the previous one.
            loop {
                let page = self.page((segment, SEGMENTS), entities, start).await?;
                // The wait comes after the read, because only the response has the number of items.
                pace.admit(page.scanned).await;
                if !page.items.is_empty() {
                    take(page.items).await?;
                }
                progress.step(page.scanned);
                match page.next {
                    Some(next) => start = Some(next),
                    None => return Ok::<(), OpsError>(()),
                }
            }
        });
        try_join_all(segments).await.map(|_| ())
    }

    /// Scans the whole table within a limit of capacity units. The scan keeps a state for each
    /// segment, and passes it to `take` with each page. The last call of a segment has no items.
    ///
    /// DynamoDB returns the items of one partition one after another in one segment. Callers may
    /// rely on this order for speed, but not for correctness.
    pub async fn walk<S, F>(&self, walk: Walk<'_>, take: F) -> Result<(), OpsError>
    where
        S: Default,
        F: AsyncFn(&mut S, Vec<Item>) -> Result<(), OpsError>,
    {
        let take = &take;
        let segments = (0..walk.segments).map(async |segment| {
            let mut state = S::default();
            let pages = self.segment(&walk, segment, None, async |items: Vec<Item>, _: Option<Key>| {
                if items.is_empty() { Ok(()) } else { take(&mut state, items).await }
            });
            pages.await?;
            take(&mut state, Vec::new()).await
        });
        try_join_all(segments).await.map(|_| ())
    }

    /// Scans one segment of the table, from its start or after a key. Passes each page to `take`,
    /// with the key after which the next page starts. The last page has no such key.
    pub async fn segment(
        &self,
        walk: &Walk<'_>,
        segment: i32,
        after: Option<&Key>,
        mut take: impl AsyncFnMut(Vec<Item>, Option<Key>) -> Result<(), OpsError>,
    ) -> Result<(), OpsError> {
        let mut start = after.map(attributes);
        // The loop ends, because each page starts after the previous one.
        loop {
            let page = self.page((segment, walk.segments), walk.entities, start.take()).await?;
            walk.units.admit(page.units).await;
            start = page.next;
            let next = start.clone().and_then(|key| key_of(&Item::from(key)));
            take(page.items, next).await?;
            walk.progress.step(page.scanned);
            if start.is_none() {
                return Ok(());
            }
        }
    }

    async fn page(
        &self,
        (segment, segments): (i32, i32),
        entities: &[&str],
        start: Option<Attributes>,
    ) -> Result<Page, OpsError> {
        let names: Vec<String> = (0..entities.len()).map(|number| format!(":e{number}")).collect();
        persist(async || {
            let mut scan = self
                .client
                .scan()
                .table_name(&self.table)
                .consistent_read(true)
                .total_segments(segments)
                .segment(segment)
                .limit(PAGE)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .set_exclusive_start_key(start.clone());
            if !entities.is_empty() {
                scan = scan
                    .filter_expression(format!("#entity IN ({})", names.join(", ")))
                    .expression_attribute_names("#entity", "entity");
            }
            for (name, entity) in names.iter().zip(entities) {
                scan = scan.expression_attribute_values(name, AttributeValue::S((*entity).to_owned()));
            }
            let answer = scan.send().await.map_err(|error| failure(&error))?;
            Ok(Page {
                scanned: usize::try_from(answer.scanned_count).unwrap_or_default(),
                units: consumed(answer.consumed_capacity()),
                items: answer.items.unwrap_or_default().into_iter().map(Item::from).collect(),
                next: answer.last_evaluated_key,
            })
        })
        .await
    }

    /// Reads up to 100 items at one instant. More items are read in several parts, each at its own
    /// instant.
    pub async fn snapshot(&self, keys: &[Key], units: &Pace) -> Result<HashMap<Key, Item>, OpsError> {
        let mut distinct: Vec<&Key> = keys.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut found = HashMap::with_capacity(distinct.len());
        for keys in distinct.chunks(MAX_TRANSACTION_ACTIONS) {
            let gets = keys.iter().map(|key| {
                let get = Get::builder().table_name(&self.table).set_key(Some(attributes(key))).build();
                Ok(TransactGetItem::builder().get(get.map_err(OpsError::failed)?).build())
            });
            let gets: Vec<TransactGetItem> = gets.collect::<Result<_, OpsError>>()?;
            let answer = persist(async || {
                let get = self.client.transact_get_items().set_transact_items(Some(gets.clone()));
                let get = get.return_consumed_capacity(ReturnConsumedCapacity::Total);
                get.send().await.map_err(|error| match error.as_service_error() {
                    // DynamoDB cancels the read while another transaction writes one of the items.
                    Some(TransactGetItemsError::TransactionCanceledException(_)) => {
                        OpsError::Unreachable { what: "the table", reason: "another writer".to_owned() }
                    }
                    _ => failure(&error),
                })
            });
            let answer = answer.await?;
            units.admit(consumed(answer.consumed_capacity())).await;
            let items = answer.responses.unwrap_or_default().into_iter().filter_map(|response| response.item);
            found.extend(items.map(Item::from).filter_map(|item| Some((key_of(&item)?, item))));
        }
        Ok(found)
    }

    /// Reads all items of a partition with strong consistency, and passes each to `take`.
    pub async fn partition(
        &self,
        key: &PartitionKey,
        units: &Pace,
        mut take: impl FnMut(Item),
    ) -> Result<(), OpsError> {
        let mut start = None;
        // The loop ends, because each page starts after the previous one.
        loop {
            let answer = persist(async || {
                let query = self.client.query().table_name(&self.table).consistent_read(true);
                let query = query.key_condition_expression("PK = :pk").set_exclusive_start_key(start.clone());
                let query = query.expression_attribute_values(":pk", AttributeValue::S(key.as_str().to_owned()));
                let query = query.return_consumed_capacity(ReturnConsumedCapacity::Total);
                query.send().await.map_err(|error| failure(&error))
            });
            let answer = answer.await?;
            units.admit(consumed(answer.consumed_capacity())).await;
            answer.items.unwrap_or_default().into_iter().map(Item::from).for_each(&mut take);
            match answer.last_evaluated_key {
                Some(next) => start = Some(next),
                None => return Ok(()),
            }
        }
    }
}
