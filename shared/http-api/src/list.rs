//! Reads one page of a list from the table, and builds the response.

use std::future::Future;

use key_schema::item::FromItem;
use key_schema::request::Query;
use serde::Serialize;
use table::Page as Found;

use crate::page::{Nothing, PageRequest};
use crate::problem::Problem;
use crate::request::Request;
use crate::response::Response;
use crate::services::Services;

/// A requested page of a list, with its items.
#[derive(Debug)]
pub struct List<'p, T> {
    pub page: PageRequest<'p>,
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
        self.page(&services.cursors, query.pattern().id, parameters).await?.read(services, query).await
    }
}

impl<'p> PageRequest<'p> {
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
    /// Builds a response with the views of the items, as [`PageRequest::answer`] does.
    pub fn answer<'a, V: Serialize>(
        &'a self,
        view: impl Fn(&'a T) -> V,
    ) -> impl Future<Output = Result<Response, Problem>> + Send {
        self.answer_with(view, &Nothing {})
    }

    /// Builds a response with the views of the items, as [`PageRequest::answer_with`] does.
    pub fn answer_with<'a, V: Serialize>(
        &'a self,
        view: impl Fn(&'a T) -> V,
        more: &impl Serialize,
    ) -> impl Future<Output = Result<Response, Problem>> + Send {
        let items: Vec<V> = self.found.items.iter().map(view).collect();
        let (page, unsealed) = (&self.page, self.page.unsealed(&items, |kept| self.found.end(kept), more));
        async move { page.sealed(unsealed?).await }
    }
}
