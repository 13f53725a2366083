//! Reads one item, a range of one partition, or a range of each shard.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use futures::future::try_join_all;
use item_model::item::{DecodeError, FromItem, Item, size};
use item_model::key::{Key, PartitionKey};
use item_model::pattern::Pattern;
use item_model::request::{Get, Plan, Query, Range};

use crate::Table;
use crate::error::{TableError, classify};
use crate::merge::{self, Part};

/// The maximum number of requests to one partition in one round of a page. DynamoDB stops after 1
/// MB, which a page of large items may exceed.
const MAX_REQUESTS_PER_PAGE: usize = 16;

/// The maximum time for which a function's start waits for the table's response.
const REACH_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of concurrent queries of a list that spans several queries.
const MAX_QUERIES_AT_ONCE: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The sort key after which the next page starts, if there is a next page.
    pub next: Option<String>,
    keys: Vec<String>,
    left_out: usize,
}

impl<T> Page<T> {
    #[must_use]
    pub fn new(found: impl IntoIterator<Item = (String, T)>, next: Option<String>) -> Self {
        let (keys, items) = found.into_iter().unzip();
        Self { items, next, keys, left_out: 0 }
    }

    /// Returns the number of items that the page leaves out because they cannot be decoded
    /// ([`Table::query_readable`]).
    #[must_use]
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns the sort key after which the next page starts, if the response has only the first
    /// `kept` items. Returns `None` at the list's end, or if no item is kept.
    #[must_use]
    pub fn end(&self, kept: usize) -> Option<String> {
        if kept < self.keys.len() { self.keys.get(kept.checked_sub(1)?).cloned() } else { self.next.clone() }
    }

    /// Keeps the first items of the page, so that the next page starts after them.
    pub fn truncate(&mut self, kept: usize) {
        self.next = self.end(kept);
        self.items.truncate(kept);
        self.keys.truncate(kept);
    }

    /// Adds to the number of items that the page leaves out.
    pub const fn leave_out(&mut self, items: usize) {
        self.left_out += items;
    }

    fn into_found(self) -> impl Iterator<Item = (String, T)> {
        self.keys.into_iter().zip(self.items)
    }

    /// Keeps the items for which `view` returns a value, converted to that value.
    #[must_use]
    pub fn filter_map<U>(mut self, mut view: impl FnMut(T) -> Option<U>) -> Page<U> {
        let (next, left_out) = (self.next.take(), self.left_out);
        let page = Page::new(self.into_found().filter_map(|(key, item)| Some((key, view(item)?))), next);
        Page { left_out, ..page }
    }

    /// Merges the items of each sort key into one item: `add` adds a further item to the first
    /// item.
    #[must_use]
    pub fn sum(mut self, mut add: impl FnMut(&mut T, T)) -> Self {
        let (next, left_out) = (self.next.take(), self.left_out);
        let mut totals: Vec<(String, T)> = Vec::new();
        for (key, item) in self.into_found() {
            match totals.last_mut() {
                Some((last, total)) if *last == key => add(total, item),
                _ => totals.push((key, item)),
            }
        }
        Self { left_out, ..Self::new(totals, next) }
    }

    pub fn append(&mut self, more: Self) {
        self.items.extend(more.items);
        self.keys.extend(more.keys);
        self.next = more.next;
        self.left_out += more.left_out;
    }
}

impl Table {
    /// Opens the connection before the first client request needs it. It reads a key that has no
    /// item ([`item_model::reach`]). The meter does not count this read. If the table does not
    /// respond in time, the function starts anyway, and its first request opens the connection.
    pub async fn reach(&self, nothing: &Get<()>) {
        let asked = self.once.get_item().table_name(&self.name).set_key(Some(key_map(nothing.key()))).send();
        match tokio::time::timeout(REACH_TIMEOUT, asked).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(cause = %classify(&error), "the table was not reached at start-up"),
            Err(_) => tracing::warn!("the table did not respond in time at start-up"),
        }
    }

    pub async fn get<T: FromItem>(&self, get: &Get<T>) -> Result<Option<T>, TableError> {
        let item = self.get_item(get.pattern(), get.key(), get.is_strong()).await?;
        Ok(item.map(T::from_item).transpose()?)
    }

    async fn get_item(&self, pattern: &'static Pattern, key: &Key, strong: bool) -> Result<Option<Item>, TableError> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.name)
            .set_key(Some(key_map(key)))
            .consistent_read(strong)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| self.failure(&error))?;
        let item: Option<Item> = answer.item.map(Into::into);
        let bytes = item.as_ref().map_or(0, size);
        self.meter.record(pattern, answer.consumed_capacity.as_ref(), usize::from(item.is_some()), bytes);
        Ok(item)
    }

    /// Reads a page of a list. The shards of a sharded list are read concurrently, each for a share
    /// of the page, and the results are merged by sort key. So a page costs one request for each
    /// shard, for any length of the list. Rarely, a shard needs a second request (`merge.rs`).
    ///
    /// # Errors
    /// [`TableError::Decode`] if an item cannot be decoded. A caller that decides, counts or deletes
    /// by the items must not miss one.
    pub async fn query<T: FromItem>(&self, query: &Query<T>) -> Result<Page<T>, TableError> {
        cut(self.gather(query).await?, query.item_limit(), decoded)
    }

    /// Reads a page of a list that a client sees. An item that cannot be decoded is left out,
    /// counted ([`Page::left_out`]) and logged, so that it does not hide the other items.
    pub async fn query_readable<T: FromItem>(&self, query: &Query<T>) -> Result<Page<T>, TableError> {
        cut(self.gather(query).await?, query.item_limit(), |found| Ok(readable(query.pattern(), found)))
    }

    /// Reads a page of a list that consists of several queries, such as one for each day. Each
    /// query comes with the table that holds its items. This method skips the queries that earlier
    /// pages have read to their end.
    ///
    /// Usually the first query with remaining items fills a page. If not, the next two queries run
    /// concurrently, then four, and then eight at a time. A list with many empty queries thus needs
    /// few rounds. Unreadable items are left out, as in [`Table::query_readable`].
    pub async fn query_in_turn<T: FromItem>(
        queries: Vec<(Self, Query<T>)>,
        limit: usize,
        after: Option<String>,
    ) -> Result<Page<T>, TableError> {
        let Some(pattern) = queries.first().map(|(_, query)| query.pattern()) else { return Ok(Page::new([], None)) };
        let queries = queries.into_iter().map(|(table, query)| (table, query.limit(limit).after(after.clone())));
        let left: Vec<(Self, Query<T>)> = queries.filter(|(_, query)| query.bounds().is_some()).collect();
        let (mut left, mut found, mut at_once) = (left.as_slice(), Vec::new(), 1);
        while !left.is_empty() && merge::end(&found, limit) == found.len() {
            let (round, later) = left.split_at(left.len().min(at_once));
            let parts = try_join_all(round.iter().map(|(table, query)| table.gather(query))).await?;
            found.extend(parts.into_iter().flatten());
            (left, at_once) = (later, MAX_QUERIES_AT_ONCE.min(at_once * 2));
        }
        cut(found, limit, |found| Ok(readable(pattern, found)))
    }

    /// Returns the items of a page with their sort keys, in the list's order. If the list
    /// continues, the result has at least one sort key more than the page.
    async fn gather(&self, query: &Plan) -> Result<Vec<(String, Item)>, TableError> {
        let Some(bounds) = query.bounds() else { return Ok(Vec::new()) };
        let (leaving, others) = query.steps();
        if leaving.is_empty() {
            return self.gather_from(query, &bounds, others).await;
        }
        // An item may move from a partition of `leaving` to one of `others` at any time. The read
        // of `others` comes second, so it finds an item that the first read missed. An item that
        // both reads found counts once.
        let mut left = self.gather_from(query, &bounds, leaving).await?;
        let mut found = self.gather_from(query, &bounds, others).await?;
        let moved: HashSet<&str> = found.iter().map(|(sort, _)| sort.as_str()).collect();
        left.retain(|(sort, _)| !moved.contains(sort.as_str()));
        found.append(&mut left);
        Ok(merge::first([Part { found, ended: true }], query.item_limit() + 1, query.is_descending()))
    }

    /// Does the work of [`Table::gather`] for some of the query's partitions.
    async fn gather_from(
        &self,
        query: &Plan,
        bounds: &Range,
        partitions: &[PartitionKey],
    ) -> Result<Vec<(String, Item)>, TableError> {
        let (wanted, descending) = (query.item_limit() + 1, query.is_descending());
        let mut shards: Vec<Shard<'_>> = partitions.iter().map(Shard::unread).collect();
        let mut missing = vec![merge::share(wanted, shards.len()); shards.len()];
        for _ in 0..merge::ROUNDS {
            let asked = shards.iter_mut().zip(missing).filter(|(_, more)| *more > 0);
            try_join_all(asked.map(|(shard, more)| self.read_on(query, bounds, shard, more))).await?;
            missing = merge::missing(&shards.iter().map(|shard| &shard.part).collect::<Vec<_>>(), wanted, descending);
        }
        Ok(merge::first(shards.into_iter().map(|shard| shard.part), wanted, descending))
    }

    /// Reads `more` further sort keys of a shard, or all remaining sort keys if there are fewer.
    async fn read_on(
        &self,
        query: &Plan,
        bounds: &Range,
        shard: &mut Shard<'_>,
        more: usize,
    ) -> Result<(), TableError> {
        let (pk, sk) =
            query.index().map_or(("PK", "SK"), |index| (index.partition_attribute(), index.sort_attribute()));
        let wanted = merge::keys(&shard.part.found) + more;
        for _ in 0..MAX_REQUESTS_PER_PAGE {
            let begins = shard.start.is_none();
            // The bounds include the last item of the previous page. The loop below drops that
            // item, so this request reads one item more.
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
            let answer = request.send().await.map_err(|error| self.failure(&error))?;
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
        // The items so far are a correct start of the page. But a caller would take them for the
        // whole page and lose the rest.
        Err(TableError::Unprocessed(wanted - merge::keys(&shard.part.found)))
    }
}

/// One partition of a list and the items read so far.
struct Shard<'q> {
    partition: &'q PartitionKey,
    part: Part<Item>,
    /// The start key of the next request.
    start: Option<HashMap<String, AttributeValue>>,
}

impl<'q> Shard<'q> {
    const fn unread(partition: &'q PartitionKey) -> Self {
        Self { partition, part: Part { found: Vec::new(), ended: false }, start: None }
    }
}

/// Returns a page with the items of the first `limit` sort keys, and the sort key after which the
/// next page starts.
fn cut<T>(
    mut found: Vec<(String, Item)>,
    limit: usize,
    decode: impl FnOnce(Vec<(String, Item)>) -> Result<Vec<(String, T)>, TableError>,
) -> Result<Page<T>, TableError> {
    let next = truncate(&mut found, limit);
    let count = found.len();
    let items = decode(found)?;
    let left_out = count - items.len();
    Ok(Page { left_out, ..Page::new(items, next) })
}

fn truncate(found: &mut Vec<(String, Item)>, limit: usize) -> Option<String> {
    let end = merge::end(found, limit);
    let more = found.len() > end;
    found.truncate(end);
    if more { found.last().map(|(sort, _)| sort.clone()) } else { None }
}

fn decoded<T: FromItem>(found: Vec<(String, Item)>) -> Result<Vec<(String, T)>, TableError> {
    found.into_iter().map(|(key, item)| Ok((key, T::from_item(item)?))).collect()
}

/// Returns the items that can be decoded, and logs the others.
fn readable<T: FromItem>(pattern: &Pattern, found: Vec<(String, Item)>) -> Vec<(String, T)> {
    let read = found.into_iter().filter_map(|(key, item)| match T::from_item(item) {
        Ok(item) => Some((key, item)),
        Err(error) => {
            log_left_out(pattern, &error);
            None
        }
    });
    read.collect()
}

fn log_left_out(pattern: &Pattern, error: &DecodeError) {
    tracing::error!(cause = error.for_log(), list = pattern.id, "an unreadable item is left out of a list");
}

pub(crate) fn key_map(key: &Key) -> HashMap<String, AttributeValue> {
    HashMap::from([
        ("PK".to_owned(), AttributeValue::S(key.pk.as_str().to_owned())),
        ("SK".to_owned(), AttributeValue::S(key.sk.as_str().to_owned())),
    ])
}
