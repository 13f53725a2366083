//! The lists of the API, their entries, and the functions that serve them.
//!
//! The key schema's types make the items, and the benchmark writes them directly into the table. It
//! reads the pages through the function's routes, with requests as API Gateway passes them on.

mod people;
mod shop;

use aws::s3::Bucket;
use aws::{Credentials, SharedCredentialsProvider};
use futures::future::BoxFuture;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Services};
use key_schema::item::Item;
use key_schema::product::STOCK_LOW;
use storage::media::Media;

use crate::BenchError;
use crate::examples::{OWNER, STAFF};
use crate::loaded::LoadedTable;

/// Makes a function with the table as a part of its state.
pub(crate) type Open = fn(Services) -> Result<Box<dyn Function>, BenchError>;
pub(crate) type Made = Result<Item, BenchError>;

pub(crate) struct List {
    /// The request for its first page.
    pub call: Call,
    pub function: Open,
    /// The items that the list needs in addition to its entries.
    pub around: Vec<Item>,
    pub item: Box<dyn Fn(u64) -> Made>,
}

pub(crate) trait Function {
    fn send(&self, call: Call) -> BoxFuture<'_, Answered>;

    fn services(&self) -> &Services;
}

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

#[expect(clippy::unnecessary_wraps, reason = "other functions of type `Open` may fail")]
pub(crate) fn orders(services: Services) -> Result<Box<dyn Function>, BenchError> {
    Ok(Box::new(Served { routes: orders::routes(), app: orders::App::new(services), services: |app| &app.services }))
}

/// Returns the function of the catalog. No request uses its bucket.
pub(crate) fn catalog(services: Services) -> Result<Box<dyn Function>, BenchError> {
    let credentials = Credentials::new("bench", "bench", None, None, "bench");
    let credentials = SharedCredentialsProvider::new(credentials);
    let media = Media::new(Bucket::new("bench", "us-east-1", None, credentials)?);
    let app = catalog::App { services, media, stock_low: STOCK_LOW, view_time: catalog::VIEW_TIME };
    Ok(Box::new(Served { routes: catalog::routes(), app, services: |app| &app.services }))
}

pub(crate) fn community(services: Services) -> Result<Box<dyn Function>, BenchError> {
    Ok(Box::new(Served { routes: community::routes(), app: services, services: |services| services }))
}

pub(crate) fn all() -> Result<Vec<List>, BenchError> {
    let mut lists = shop::lists()?;
    lists.extend(people::lists()?);
    Ok(lists)
}

impl List {
    fn new(call: Call, function: Open, item: impl Fn(u64) -> Made + 'static) -> Self {
        Self { call, function, around: Vec::new(), item: Box::new(item) }
    }

    /// Returns a list of [`OWNER`], as staff reads it.
    fn of_owner(route: &'static str, function: Open, item: impl Fn(u64) -> Made + 'static) -> Self {
        Self::new(Call::new(route).path("id", OWNER).staff(STAFF), function, item)
    }

    #[must_use]
    pub fn name(&self) -> String {
        self.call.name()
    }

    pub async fn load(&self, entries: u64) -> Result<LoadedTable, BenchError> {
        let table = LoadedTable::create().await?;
        table.load(self.around.iter().cloned().map(Ok)).await?;
        table.load((0..entries).map(&self.item)).await?;
        Ok(table)
    }

    pub fn page(&self, entries: usize, cursor: Option<&str>) -> Call {
        let call = self.call.clone().query("limit", &entries.to_string());
        cursor.into_iter().fold(call, |call, cursor| call.query("cursor", cursor))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::collections::BTreeSet;

    use http_api::sample::with_page_bytes;
    use http_api::{MAX_LIMIT, MAX_PAGE_BYTES};
    use serde_json::Value;

    use super::*;

    const ENTRIES: u64 = 210;
    /// The size of a page with fewer than 100 entries of any list.
    const FEW_BYTES: usize = 5_000;

    async fn pages(list: &List, function: &dyn Function, bytes: usize) -> (Vec<String>, usize) {
        let (mut entries, mut number, mut cursor) = (Vec::new(), 0, None::<String>);
        loop {
            let answer = with_page_bytes(bytes, function.send(list.page(MAX_LIMIT, cursor.as_deref()))).await;
            assert_eq!(answer.status, 200, "{}: {}", list.name(), answer.body);
            let wire = serde_json::to_string(&answer.body.to_string()).unwrap().len();
            assert!(wire <= bytes, "{}: a page has {wire} bytes", list.name());
            entries.extend(answer.body["items"].as_array().unwrap().iter().map(Value::to_string));
            number += 1;
            match answer.body["next_cursor"].as_str() {
                Some(next) if entries.len() as u64 <= ENTRIES => cursor = Some(next.to_owned()),
                _ => return (entries, number),
            }
        }
    }

    #[tokio::test]
    async fn a_list_has_each_entry_once_even_if_its_pages_end_early_because_of_their_size() {
        for list in all().unwrap() {
            let (table, name) = (list.load(ENTRIES).await.unwrap(), list.name());
            let function = (list.function)(table.services().unwrap()).unwrap();
            let (entries, number) = pages(&list, &*function, MAX_PAGE_BYTES).await;
            let different = entries.iter().collect::<BTreeSet<_>>().len();
            assert_eq!((entries.len() as u64, different as u64), (ENTRIES, ENTRIES), "{name}");
            let (again, more) = pages(&list, &*function, FEW_BYTES).await;
            assert!(again == entries, "{name}: an entry is missing, duplicate or out of order");
            assert!(more > number, "{name}: {more} pages");
        }
    }
}
