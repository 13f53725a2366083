//! Reads: one item, a range, a range of every shard.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use futures::future::try_join_all;
use key_schema::item::{FromItem, Item, size};
use key_schema::key::{Key, PartitionKey};
use key_schema::request::{Get, Query, Range};

use crate::Table;
use crate::error::{TableError, classify};
use crate::merge::{self, Part};

/// How many times one partition is asked for one page: DynamoDB stops after 1 MB, which a page of large items may exceed.
const MAX_REQUESTS_PER_PAGE: usize = 16;

/// How long a function's start may take longer because the table does not answer.
const REACH_TIMEOUT: Duration = Duration::from_secs(1);

/// How many queries of a list that lies in several are asked at once.
const MAX_QUERIES_AT_ONCE: usize = 8;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The sort key to go on behind, if there is more.
    pub next: Option<String>,
    /// The items' sort keys.
    keys: Vec<String>,
}

impl<T> Page<T> {
    /// A page of items with their sort keys.
    #[must_use]
    pub fn new(found: impl IntoIterator<Item = (String, T)>, next: Option<String>) -> Self {
        let (keys, items) = found.into_iter().unzip();
        Self { items, next, keys }
    }

    /// The sort key to go on behind when a reader gets the first `kept` items only; `None` at the list's end.
    #[must_use]
    pub fn end(&self, kept: usize) -> Option<String> {
        if kept < self.keys.len() { self.keys.get(kept.checked_sub(1)?).cloned() } else { self.next.clone() }
    }

    fn into_found(self) -> impl Iterator<Item = (String, T)> {
        self.keys.into_iter().zip(self.items)
    }

    /// The items for which `view` gives something, as that.
    #[must_use]
    pub fn filter_map<U>(mut self, mut view: impl FnMut(T) -> Option<U>) -> Page<U> {
        let next = self.next.take();
        Page::new(self.into_found().filter_map(|(key, item)| Some((key, view(item)?))), next)
    }

    /// One item for each sort key: `add` adds the further items of a key to the first one.
    #[must_use]
    pub fn sum(mut self, mut add: impl FnMut(&mut T, T)) -> Self {
        let next = self.next.take();
        let mut totals: Vec<(String, T)> = Vec::new();
        for (key, item) in self.into_found() {
            match totals.last_mut() {
                Some((last, total)) if *last == key => add(total, item),
                _ => totals.push((key, item)),
            }
        }
        Self::new(totals, next)
    }

    /// Adds the page that follows.
    pub fn append(&mut self, more: Self) {
        self.items.extend(more.items);
        self.keys.extend(more.keys);
        self.next = more.next;
    }
}

impl Table {
    /// Opens the connection before a client waits for it, by one attempt at what is not there ([`key_schema::reach`]), which is on nobody's meter. A table
    /// that does not answer in time is no reason not to start: the first request comes to it with all its retries.
    pub async fn reach(&self, nothing: &Get<()>) {
        let asked = self.once.get_item().table_name(&self.name).set_key(Some(key_map(nothing.key()))).send();
        match tokio::time::timeout(REACH_TIMEOUT, asked).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(cause = %classify(&error), "the table was not reached at the start"),
            Err(_) => tracing::warn!("the table did not answer in time at the start"),
        }
    }

    /// Reads one item.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get<T: FromItem>(&self, get: &Get<T>) -> Result<Option<T>, TableError> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.name)
            .set_key(Some(key_map(get.key())))
            .consistent_read(get.is_strong())
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| classify(&error))?;
        let item: Option<Item> = answer.item.map(Into::into);
        let bytes = item.as_ref().map_or(0, size);
        self.meter.record(get.pattern(), answer.consumed_capacity.as_ref(), usize::from(item.is_some()), bytes);
        Ok(item.map(T::from_item).transpose()?)
    }

    /// Reads a page of a list. Every partition of a sharded list is asked at once for its share of the page and the answers are merged by sort key, so a page
    /// costs one request a shard, whatever the list's length; seldom one has to be asked again (`merge.rs`).
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn query<T: FromItem>(&self, query: &Query<T>) -> Result<Page<T>, TableError> {
        cut(self.gather(query).await?, query.item_limit())
    }

    /// Reads a page of a list that lies in several queries, one behind the other, such as those of consecutive days. What the page before has passed is
    /// not asked for. The first query with something left usually has a page; where it has not, two are asked at once, then four, at most
    /// eight, so that a list with many empty parts is walked in few rounds.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn query_in_turn<T: FromItem>(
        &self,
        queries: Vec<Query<T>>,
        limit: usize,
        after: Option<String>,
    ) -> Result<Page<T>, TableError> {
        let queries = queries.into_iter().map(|query| query.limit(limit).after(after.clone()));
        let left: Vec<Query<T>> = queries.filter(|query| query.bounds().is_some()).collect();
        let (mut left, mut found, mut at_once) = (left.as_slice(), Vec::new(), 1);
        while !left.is_empty() && merge::end(&found, limit) == found.len() {
            let (round, later) = left.split_at(left.len().min(at_once));
            found.extend(try_join_all(round.iter().map(|query| self.gather(query))).await?.into_iter().flatten());
            (left, at_once) = (later, MAX_QUERIES_AT_ONCE.min(at_once * 2));
        }
        cut(found, limit)
    }

    /// The items of a page with their sort keys, in the list's order, and those of one more sort key at least if there is more.
    async fn gather<T>(&self, query: &Query<T>) -> Result<Vec<(String, Item)>, TableError> {
        let Some(bounds) = query.bounds() else { return Ok(Vec::new()) };
        let (wanted, descending) = (query.item_limit() + 1, query.is_descending());
        let mut shards: Vec<Shard<'_>> = query.partitions().iter().map(Shard::unread).collect();
        let mut missing = vec![merge::share(wanted, shards.len()); shards.len()];
        for _ in 0..merge::ROUNDS {
            let asked = shards.iter_mut().zip(missing).filter(|(_, more)| *more > 0);
            try_join_all(asked.map(|(shard, more)| self.read_on(query, &bounds, shard, more))).await?;
            missing = merge::missing(&shards.iter().map(|shard| &shard.part).collect::<Vec<_>>(), wanted, descending);
        }
        Ok(merge::first(shards.into_iter().map(|shard| shard.part), wanted, descending))
    }

    /// Reads so many more sort keys of a shard, or the rest of it.
    async fn read_on<T>(
        &self,
        query: &Query<T>,
        bounds: &Range,
        shard: &mut Shard<'_>,
        more: usize,
    ) -> Result<(), TableError> {
        let (pk, sk) =
            query.index().map_or(("PK", "SK"), |index| (index.partition_attribute(), index.sort_attribute()));
        let wanted = merge::keys(&shard.part.found) + more;
        for _ in 0..MAX_REQUESTS_PER_PAGE {
            let begins = shard.start.is_none();
            // The bounds include the former page's end, which is then dropped: one more item is asked for.
            let missing = wanted - merge::keys(&shard.part.found) + usize::from(begins && query.page_end().is_some());
            let mut request = self
                .client
                .query()
                .table_name(&self.name)
                .set_index_name(query.index().map(|index| index.name().to_owned()))
                .expression_attribute_names("#pk", pk)
                .expression_attribute_values(":pk", AttributeValue::S(shard.partition.as_str().to_owned()))
                .scan_index_forward(!query.is_descending())
                .consistent_read(query.is_strong())
                .limit(i32::try_from(missing).unwrap_or(i32::MAX))
                .set_exclusive_start_key(shard.start.take())
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            request = match bounds {
                Range::All => request.key_condition_expression("#pk = :pk"),
                Range::Between(low, high) => request
                    .key_condition_expression("#pk = :pk AND #sk BETWEEN :low AND :high")
                    .expression_attribute_names("#sk", sk)
                    .expression_attribute_values(":low", AttributeValue::S(low.clone()))
                    .expression_attribute_values(":high", AttributeValue::S(high.clone())),
            };
            let answer = request.send().await.map_err(|error| classify(&error))?;
            let items: Vec<Item> = answer.items.unwrap_or_default().into_iter().map(Into::into).collect();
            let bytes = items.iter().map(size).sum();
            self.meter.record(query.pattern(), answer.consumed_capacity.as_ref(), items.len(), bytes);
            for item in items {
                let Some(serde_dynamo::AttributeValue::S(sort)) = item.get(sk) else { continue };
                let sort = sort.clone();
                if query.page_end() != Some(sort.as_str()) {
                    shard.part.found.push((sort, item));
                }
            }
            shard.start = answer.last_evaluated_key;
            shard.part.ended = shard.start.is_none();
            if shard.part.ended || merge::keys(&shard.part.found) >= wanted {
                return Ok(());
            }
        }
        // What was found is a true beginning of the page; pretending that it is the end would lose the rest.
        Err(TableError::Unprocessed(wanted - merge::keys(&shard.part.found)))
    }
}

/// One partition of a list, as far as it was read.
struct Shard<'q> {
    partition: &'q PartitionKey,
    part: Part<Item>,
    /// Where the next request goes on.
    start: Option<HashMap<String, AttributeValue>>,
}

impl<'q> Shard<'q> {
    const fn unread(partition: &'q PartitionKey) -> Self {
        Self { partition, part: Part { found: Vec::new(), ended: false }, start: None }
    }
}

/// The items of so many sort keys of what was found, and where to go on behind them.
fn cut<T: FromItem>(mut found: Vec<(String, Item)>, limit: usize) -> Result<Page<T>, TableError> {
    let end = merge::end(&found, limit);
    let more = found.len() > end;
    found.truncate(end);
    let next = if more { found.last().map(|(sort, _)| sort.clone()) } else { None };
    let read = found.into_iter().map(|(key, item)| Ok((key, T::from_item(item)?)));
    Ok(Page::new(read.collect::<Result<Vec<_>, TableError>>()?, next))
}

pub(crate) fn key_map(key: &Key) -> HashMap<String, AttributeValue> {
    HashMap::from([
        ("PK".to_owned(), AttributeValue::S(key.pk.as_str().to_owned())),
        ("SK".to_owned(), AttributeValue::S(key.sk.as_str().to_owned())),
    ])
}
