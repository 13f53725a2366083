//! The catalogue: products with their content and stock, the category tree, reviews, and the import of many products.
//!
//! Anybody may read it; staff write it, but for reviews, which belong to the customers who write them. What changes at another pace lies on
//! another item, so each area is a module of its own: products, content, stock, categories, memberships, reviews, import.

mod body;
mod categories;
mod content;
mod import;
mod memberships;
mod moves;
mod products;
mod recent;
mod reviews;
mod stock;
mod tree;
mod view;

use http_api::{Error, Routes, Store};

/// The routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .on("POST /v1/products", |store, request| Box::pin(products::create(store, request)))
        .on("POST /v1/products/import", |store, request| Box::pin(import::import(store, request)))
        .on("GET /v1/products/{id}", |store, request| Box::pin(products::read(store, request)))
        .on("PATCH /v1/products/{id}", |store, request| Box::pin(products::change(store, request)))
        .on("DELETE /v1/products/{id}", |store, request| Box::pin(products::retire(store, request)))
        .on("GET /v1/products/{id}/content", |store, request| Box::pin(content::read(store, request)))
        .on("PUT /v1/products/{id}/content", |store, request| Box::pin(content::put(store, request)))
        .on("PUT /v1/products/{id}/stock", |store, request| Box::pin(stock::set(store, request)))
        .on("POST /v1/products/{id}/stock/adjustments", |store, request| Box::pin(stock::adjust(store, request)))
        .on("PUT /v1/products/{id}/categories/{path}", |store, request| Box::pin(memberships::put(store, request)))
        .on("DELETE /v1/products/{id}/categories/{path}", |store, request| {
            Box::pin(memberships::remove(store, request))
        })
        .on("GET /v1/products/{id}/reviews", |store, request| Box::pin(reviews::of_product(store, request)))
        .on("GET /v1/products/{id}/reviews/{customer}", |store, request| Box::pin(reviews::read(store, request)))
        .on("PUT /v1/products/{id}/reviews/{customer}", |store, request| Box::pin(reviews::put(store, request)))
        .on("DELETE /v1/products/{id}/reviews/{customer}", |store, request| Box::pin(reviews::delete(store, request)))
        .on("GET /v1/customers/{id}/reviews", |store, request| Box::pin(reviews::of_customer(store, request)))
        .on("GET /v1/reviews/recent", |store, request| Box::pin(recent::list(store, request)))
        .on("PUT /v1/categories/{path}", |store, request| Box::pin(categories::put(store, request)))
        .on("POST /v1/categories/{path}/move", |store, request| Box::pin(moves::start(store, request)))
        .on("GET /v1/categories/{path}", |store, request| Box::pin(categories::read(store, request)))
        .on("GET /v1/categories/{path}/products", |store, request| Box::pin(categories::products(store, request)))
        .on("GET /v1/categories/{path}/children", |store, request| Box::pin(categories::children(store, request)))
        .on("GET /v1/categories/{path}/ancestors", |store, request| Box::pin(categories::ancestors(store, request)))
}

/// Answers requests until the environment is shut down.
///
/// # Errors
/// When the environment lacks what the function needs, or the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("catalog");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}
