//! Reads one page of a list from the table, and builds the response.

use key_schema::item::FromItem;
use key_schema::request::Query;
use serde::Serialize;
use table::Page as Found;

use crate::page::Page;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::Response;
use crate::services::Services;

/// A requested page of a list, with its items.
#[derive(Debug)]
pub struct List<'p, T> {
    pub page: Page<'p>,
    pub found: Found<T>,
}

impl Request<'_> {
    /// Reads the requested page of the query's list. `parameters` are the parameters that select
    /// the list. A cursor is valid only for the same access pattern, parameters and caller.
    pub async fn list<'p, T: FromItem>(
        &'p self,
        services: &'p Services,
        query: Query<T>,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<List<'p, T>, Problem> {
        self.page(services.cursors().await?, query.pattern().id, parameters)?.read(services, query).await
    }
}

impl<'p> Page<'p> {
    /// Reads this page of a query, for handlers that check something before the read.
    ///
    /// An item that cannot be decoded is left out, and the response has the number of such items.
    pub async fn read<T: FromItem>(mut self, services: &Services, query: Query<T>) -> Result<List<'p, T>, Problem> {
        let found = services.table.query_readable(&query.limit(self.limit()).after(self.after())).await?;
        self.leave_out(found.left_out());
        Ok(List { page: self, found })
    }
}

impl<T> List<'_, T> {
    /// Builds a response with the views of the items, as [`Page::answer`] does.
    pub fn answer<'a, V: Serialize>(&'a self, view: impl Fn(&'a T) -> V) -> Result<Response, Problem> {
        self.answer_with(view, &serde_json::Map::new())
    }

    /// Builds a response with the views of the items, as [`Page::answer_with`] does.
    pub fn answer_with<'a, V: Serialize>(
        &'a self,
        view: impl Fn(&'a T) -> V,
        more: &impl Serialize,
    ) -> Result<Response, Problem> {
        let items: Vec<V> = self.found.items.iter().map(view).collect();
        self.page.answer_with(&items, |kept| self.found.end(kept), more)
    }
}
