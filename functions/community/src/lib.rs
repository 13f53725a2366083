//! Community: follows, likes, and the graph of customers that contains them.
//!
//! A follow or a like either exists or does not. So a write needs no If-Match, and a client can
//! repeat each request.

mod edges;
mod following;
mod likes;
mod places;
mod view;

use http_api::{Error, Issuer, Measured, PatternCost, Problem, Routes, Store};

/// The function's state, built once at start-up.
#[derive(Debug)]
pub struct App {
    /// The table.
    pub store: Store,
    /// The issuer of the tokens that callers send to the route without an authorizer.
    pub issuer: Issuer,
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.store.take()
    }
}

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<App> {
    Routes::<App>::new()
        .checking(|app| app.store.sign_ins())
        .on("PUT /v1/customers/{id}/following/{other}", |app, request| Box::pin(following::put(&app.store, request)))
        .on("GET /v1/customers/{id}/following/{other}", |app, request| Box::pin(following::read(&app.store, request)))
        .on("DELETE /v1/customers/{id}/following/{other}", |app, request| {
            Box::pin(following::remove(&app.store, request))
        })
        .on("GET /v1/customers/{id}/following", |app, request| Box::pin(following::following(&app.store, request)))
        .on("GET /v1/customers/{id}/followers", |app, request| Box::pin(following::followers(&app.store, request)))
        .on("PUT /v1/customers/{id}/likes/{product}", |app, request| Box::pin(likes::put(&app.store, request)))
        .on("GET /v1/customers/{id}/likes/{product}", |app, request| Box::pin(likes::read(&app.store, request)))
        .on("DELETE /v1/customers/{id}/likes/{product}", |app, request| Box::pin(likes::remove(&app.store, request)))
        .on("GET /v1/customers/{id}/likes", |app, request| Box::pin(likes::of_customer(&app.store, request)))
        .on("GET /v1/products/{id}/likes", |app, request| Box::pin(likes::of_product(app, request)))
        .on("GET /v1/products/{id}/likers", |app, request| Box::pin(likes::likers(&app.store, request)))
        .on("GET /v1/graph/{node}/edges", |app, request| Box::pin(edges::of_node(&app.store, request)))
        .on("GET /v1/places/{path}/customers", |app, request| Box::pin(places::customers(&app.store, request)))
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("community");
    let app = App { store: Store::from_env().await?, issuer: Issuer::from_env()? };
    http_api::run(routes(), app).await
}

fn no_customer() -> Problem {
    Problem::not_found("customer")
}
