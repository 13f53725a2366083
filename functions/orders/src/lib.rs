//! Orders: placing, payment, refunds, status changes, invoices, and lists by customer, status,
//! shipment and product.

mod checkout;
mod invoice;
mod list;
mod log;
mod picking;
mod place;
mod refund;
mod sales;
mod status;
mod view;

use http_api::{Error, Routes, Store};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .on("POST /v1/orders", |store, request| Box::pin(place::create(store, request)))
        .on("GET /v1/orders", |store, request| Box::pin(list::by_status(store, request)))
        .on("GET /v1/orders/{id}", |store, request| Box::pin(list::get(store, request)))
        .on("POST /v1/orders/{id}/status", |store, request| Box::pin(status::change(store, request)))
        .on("POST /v1/orders/{id}/refunds", |store, request| Box::pin(refund::create(store, request)))
        .on("POST /v1/orders/{id}/invoice", |store, request| Box::pin(invoice::issue(store, request)))
        .on("GET /v1/invoices/{number}", |store, request| Box::pin(invoice::get(store, request)))
        .on("POST /v1/orders/{id}/log", |store, request| Box::pin(log::add(store, request)))
        .on("GET /v1/orders/{id}/log", |store, request| Box::pin(log::list(store, request)))
        .on("POST /v1/customers/{id}/cart/checkout", |store, request| Box::pin(checkout::checkout(store, request)))
        .on("GET /v1/picking", |store, request| Box::pin(picking::queue(store, request)))
        .on("GET /v1/customers/{id}/orders", |store, request| Box::pin(list::of_customer(store, request)))
        .on("GET /v1/customers/{id}/shipments", |store, request| Box::pin(list::shipments(store, request)))
        .on("GET /v1/products/{id}/sales", |store, request| Box::pin(sales::of_product(store, request)))
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("orders");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}
