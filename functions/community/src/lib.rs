//! Community: who follows whom, who likes what, and the graph that comes of it.
//!
//! Follows and likes are relations: there is one or there is none, so they need no If-Match, and every request can be repeated.

mod edges;
mod following;
mod likes;
mod places;
mod view;

use http_api::{Error, Problem, Routes, Store};

/// The routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .on("PUT /v1/customers/{id}/following/{other}", |store, request| Box::pin(following::put(store, request)))
        .on("GET /v1/customers/{id}/following/{other}", |store, request| Box::pin(following::read(store, request)))
        .on("DELETE /v1/customers/{id}/following/{other}", |store, request| Box::pin(following::remove(store, request)))
        .on("GET /v1/customers/{id}/following", |store, request| Box::pin(following::following(store, request)))
        .on("GET /v1/customers/{id}/followers", |store, request| Box::pin(following::followers(store, request)))
        .on("PUT /v1/customers/{id}/likes/{product}", |store, request| Box::pin(likes::put(store, request)))
        .on("GET /v1/customers/{id}/likes/{product}", |store, request| Box::pin(likes::read(store, request)))
        .on("DELETE /v1/customers/{id}/likes/{product}", |store, request| Box::pin(likes::remove(store, request)))
        .on("GET /v1/customers/{id}/likes", |store, request| Box::pin(likes::of_customer(store, request)))
        .on("GET /v1/products/{id}/likes", |store, request| Box::pin(likes::of_product(store, request)))
        .on("GET /v1/products/{id}/likers", |store, request| Box::pin(likes::likers(store, request)))
        .on("GET /v1/graph/{node}/edges", |store, request| Box::pin(edges::of_node(store, request)))
        .on("GET /v1/places/{path}/customers", |store, request| Box::pin(places::customers(store, request)))
}

/// Answers requests until the environment is shut down.
///
/// # Errors
/// When the environment lacks what the function needs, or the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("community");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}

fn no_customer() -> Problem {
    Problem::not_found("customer")
}
