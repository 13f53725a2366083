//! Reads every list from the first page to the last. The cost of a page must not depend on the
//! list's length or on the page's position.
//!
//! The key schema's types make the items. Each list has its own embedded table, and the benchmark
//! writes the items directly into it. It reads the pages through the function's routes, with
//! requests as API Gateway passes them on.
//!
//! A run fails when an item is missing or appears twice, or when full pages take different numbers
//! of requests. A few pages may take one request more, because the merge reads one shard twice
//! for them (`shared/table/src/merge.rs`).

mod people;
mod shop;
#[cfg(test)]
mod sizes;

use std::collections::HashSet;

use aws::s3::Bucket;
use aws::{Credentials, SharedCredentialsProvider};
use clap::Args;
use futures::future::BoxFuture;
use http_api::sample::{Answered, Call};
use http_api::{Issuer, Routes, Services};
use key_schema::item::Item;
use key_schema::product::STOCK_LOW;
use serde::Serialize;
use serde_json::Value;
use storage::media::Media;

use crate::BenchError;
use crate::examples::{OWNER, STAFF};
use crate::loaded::LoadedTable;
use crate::report::{Output, Table};

/// The largest page that a client may request.
const PAGE: usize = 100;

#[derive(Debug, Args)]
pub(crate) struct ListsArgs {
    /// Items in each list.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(200..=1_000_000))]
    items: u64,
    /// Only the lists whose route contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    #[command(flatten)]
    output: Output,
}

/// Makes a function with the table as a part of its state.
pub(crate) type Open = fn(Services) -> Result<Box<dyn Function>, BenchError>;
/// The result of making an item.
pub(crate) type Made = Result<Item, BenchError>;

/// A list of the API, and its entries.
pub(crate) struct List {
    /// The request for its first page.
    pub call: Call,
    /// Makes the function that serves the list.
    pub function: Open,
    /// The items that the list needs in addition to its entries.
    pub around: Vec<Item>,
    /// Makes the item of the n-th entry.
    pub item: Box<dyn Fn(u64) -> Made>,
}

/// A function without Lambda around it.
pub(crate) trait Function {
    /// Sends a request and returns the response.
    fn send(&self, call: Call) -> BoxFuture<'_, Answered>;

    /// Returns the function's state, which has the table.
    fn services(&self) -> &Services;
}

/// Routes with their state.
struct Served<S> {
    routes: Routes<S>,
    app: S,
    services: fn(&S) -> &Services,
}

impl<S: Sync> Function for Served<S> {
    fn send(&self, call: Call) -> BoxFuture<'_, Answered> {
        Box::pin(async move { call.send(&self.routes, &self.app).await })
    }

    fn services(&self) -> &Services {
        (self.services)(&self.app)
    }
}

/// Returns a function with only the table as its state.
#[expect(clippy::unnecessary_wraps, reason = "other functions of type `Open` may fail")]
fn served(routes: Routes<Services>, services: Services) -> Result<Box<dyn Function>, BenchError> {
    Ok(Box::new(Served { routes, app: services, services: |services| services }))
}

macro_rules! with_only_the_table {
    ($($name:ident)*) => {$(
        pub(crate) fn $name(services: Services) -> Result<Box<dyn Function>, BenchError> {
            served($name::routes(), services)
        }
    )*};
}

with_only_the_table!(customers documents insights organizations settings support wallet);

/// Returns the function of the orders.
#[expect(clippy::unnecessary_wraps, reason = "other functions of type `Open` may fail")]
pub(crate) fn orders(services: Services) -> Result<Box<dyn Function>, BenchError> {
    Ok(Box::new(Served { routes: orders::routes(), app: orders::App::new(services), services: |app| &app.services }))
}

/// Returns an issuer that no request uses, because no request has a token to verify.
fn unused_issuer() -> Result<Issuer, BenchError> {
    Issuer::new("urn:bench", "bench", Some("http://127.0.0.1:1")).map_err(BenchError::from)
}

/// Returns the function of the catalog. No request uses its bucket.
pub(crate) fn catalog(services: Services) -> Result<Box<dyn Function>, BenchError> {
    let credentials = Credentials::new("bench", "bench", None, None, "bench");
    let credentials = SharedCredentialsProvider::new(credentials);
    let media = Media::new(Bucket::new("bench", "us-east-1", None, credentials)?);
    let (issuer, view_time) = (unused_issuer()?, catalog::VIEW_TIME);
    let app = catalog::App { services, media, issuer, stock_low: STOCK_LOW, view_time };
    Ok(Box::new(Served { routes: catalog::routes(), app, services: |app| &app.services }))
}

/// Returns the function of the community.
pub(crate) fn community(services: Services) -> Result<Box<dyn Function>, BenchError> {
    let app = community::App { services, issuer: unused_issuer()? };
    Ok(Box::new(Served { routes: community::routes(), app, services: |app| &app.services }))
}

/// The figures of one list.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    /// The route, with its query.
    pub list: String,
    /// The number of entries.
    pub items: u64,
    /// The number of full pages, without the last page.
    pub pages: usize,
    /// The lowest number of requests to the table for one of these pages. Most pages take this
    /// number.
    pub requests: u32,
    /// The additional requests of the other pages, in total. These pages read a shard again.
    pub further: u32,
    /// Read units of the first page, and the highest number of any page. The last pages cost less,
    /// because some shards have no entries left.
    pub units: (f64, f64),
    /// Bytes of a full page's body: the lowest and the highest number.
    pub bytes: (usize, usize),
}

/// Returns all lists of the API that read the table.
///
/// # Errors
/// When an example violates the key schema's rules.
pub(crate) fn all() -> Result<Vec<List>, BenchError> {
    let mut lists = shop::lists()?;
    lists.extend(people::lists()?);
    Ok(lists)
}

/// Measures, prints the table, and writes the figures to a file.
pub(crate) async fn run(args: ListsArgs) -> Result<(), BenchError> {
    let mut measured = Vec::new();
    let mut table = Table::new(
        "list | items | full pages | requests per page | further requests of all pages | read units, first page | \
         read units, most | bytes, least | bytes, most",
    );
    for list in all()?.iter().filter(|list| list.name().contains(&args.only)) {
        let figures = measure(list, args.items).await?;
        let Figures { list, items, pages, requests, further, units: (first, most), bytes: (least, largest) } = &figures;
        table.row(format_args!(
            "`{list}` | {items} | {pages} | {requests} | {further} | {first:.1} | {most:.1} | {least} | {largest}"
        ));
        measured.push(figures);
    }
    args.output.publish("lists", &table.to_string(), &measured)
}

impl List {
    /// Returns a list that needs only its entries.
    fn new(call: Call, function: Open, item: impl Fn(u64) -> Made + 'static) -> Self {
        Self { call, function, around: Vec::new(), item: Box::new(item) }
    }

    /// Returns a list of [`OWNER`], as staff reads it.
    fn of_owner(route: &'static str, function: Open, item: impl Fn(u64) -> Made + 'static) -> Self {
        Self::new(Call::new(route).path("id", OWNER).staff(STAFF), function, item)
    }

    /// Returns the route, with its query.
    #[must_use]
    pub fn name(&self) -> String {
        self.call.name()
    }

    /// Returns a table with this many entries.
    pub async fn load(&self, entries: u64) -> Result<LoadedTable, BenchError> {
        let table = LoadedTable::create().await?;
        table.load(self.around.iter().cloned().map(Ok)).await?;
        table.load((0..entries).map(&self.item)).await?;
        Ok(table)
    }

    /// Returns the request for a page with this many entries.
    pub fn page(&self, entries: usize, cursor: Option<&str>) -> Call {
        let call = self.call.clone().query("limit", &entries.to_string());
        cursor.into_iter().fold(call, |call, cursor| call.query("cursor", cursor))
    }
}

/// Reads a list with this many items to its end.
///
/// # Errors
/// [`BenchError`] when the list differs from the loaded items, or when too many full
/// pages take more requests than the others.
pub(crate) async fn measure(list: &List, items: u64) -> Result<Figures, BenchError> {
    let name = list.name();
    let loaded = list.load(items).await?;
    let function = (list.function)(loaded.services()?)?;
    let meter = || function.services().table.meter().take();
    let (mut seen, mut found, mut full) = (HashSet::new(), 0, Vec::new());
    let mut cursor: Option<String> = None;
    loop {
        let _ = meter();
        let answer = function.send(list.page(PAGE, cursor.as_deref())).await;
        if answer.status != 200 {
            return Err(wrong!("{name}: {} {}", answer.status, answer.body));
        }
        let costs = meter();
        let page = answer.body.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        found += page.len();
        // All entries of a list are different.
        seen.extend(page.iter().map(Value::to_string));
        let next = answer.body.get("next_cursor").and_then(Value::as_str);
        // The last page is left out. It needs further requests to find that no entry follows.
        if page.len() == PAGE && next.is_some() {
            full.push(Page {
                requests: costs.iter().map(|cost| cost.requests).sum(),
                units: costs.iter().map(|cost| cost.capacity_units).sum(),
                bytes: answer.body.to_string().len(),
            });
        }
        match next {
            Some(next) if found <= usize::try_from(items).unwrap_or(usize::MAX) => cursor = Some(next.to_owned()),
            Some(_) => return Err(wrong!("{name}: the list does not end after {found} entries")),
            None => break,
        }
    }
    if u64::try_from(seen.len()).ok() != Some(items) || found != seen.len() {
        return Err(wrong!("{name}: {found} entries, {} of them different, instead of {items}", seen.len()));
    }
    Figures::of(name, items, &full)
}

/// The cost of a full page.
struct Page {
    requests: u32,
    units: f64,
    bytes: usize,
}

impl Figures {
    fn of(list: String, items: u64, pages: &[Page]) -> Result<Self, BenchError> {
        let requests = pages.iter().map(|page| page.requests).min().unwrap_or_default();
        let further: u32 = pages.iter().map(|page| page.requests - requests).sum();
        if usize::try_from(further).unwrap_or(usize::MAX) > 2 + pages.len() / 20 {
            return Err(wrong!("{list}: too many pages took more than {requests} requests: {further} more in total"));
        }
        let units = pages.iter().map(|page| page.units);
        let bytes = pages.iter().map(|page| page.bytes);
        Ok(Self {
            list,
            items,
            pages: pages.len(),
            requests,
            further,
            units: (units.clone().next().unwrap_or_default(), units.fold(0.0, f64::max)),
            bytes: (bytes.clone().min().unwrap_or_default(), bytes.max().unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use futures::stream::{self, StreamExt as _, TryStreamExt as _};

    use super::*;

    /// Returns the operations of openapi.yaml with a `limit` parameter, except searches and
    /// leaderboards. A leaderboard has only one page. The indentation marks paths and methods.
    fn described() -> BTreeSet<String> {
        let (mut lists, mut path, mut method) = (BTreeSet::new(), "", "");
        let is_other = |path: &str| ["/search/", "/leaderboards/"].iter().any(|other| path.contains(other));
        for line in include_str!("../../../openapi.yaml").lines() {
            match line.len() - line.trim_start().len() {
                2 => path = line.trim().trim_end_matches(':'),
                4 => method = line.trim().trim_end_matches(':'),
                _ if line.contains("parameters/Limit'") && !is_other(path) => {
                    lists.insert(format!("{} {path}", method.to_uppercase()));
                }
                _ => {}
            }
        }
        lists
    }

    #[tokio::test]
    async fn the_full_pages_of_each_list_take_the_same_number_of_requests() {
        let lists = all().unwrap();
        let known: BTreeSet<String> =
            lists.iter().map(|list| list.name().split('?').next().unwrap_or_default().to_owned()).collect();
        assert_eq!(known, described());
        let measured = stream::iter(&lists).map(|list| measure(list, 500)).buffer_unordered(4);
        for figures in measured.try_collect::<Vec<Figures>>().await.unwrap() {
            let Figures { list, pages, requests, further, units: (first, most), bytes: (least, largest), .. } = figures;
            assert!(pages >= 4, "{list}: {pages} pages");
            // DynamoDB rounds the read units of each request up, and a few pages read a shard
            // again.
            let begun = (f64::from(requests) / 2.0).max(1.0);
            let again = if further > 0 { first / 2.0 } else { 0.0 };
            assert!(most <= first + begun + again, "{list}: {first} read units for the first page, {most} for another");
            assert!(largest <= least + least / 20, "{list}: {least} to {largest} bytes a page");
        }
    }
}
