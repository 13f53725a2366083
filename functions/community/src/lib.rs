//! Community: follows, likes, the customers of a place, and the graph of customers.
//!
//! A follow or a like either exists or does not. So a write needs no If-Match and can be repeated.

mod following;
mod likes;
mod nodes;
mod view;

use http_api::{Error, Issuer, Measured, PatternCost, Problem, Routes, Services};

#[derive(Debug)]
pub struct App {
    pub services: Services,
    /// The issuer of the tokens that callers send to the route without an authorizer.
    pub issuer: Issuer,
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.services.take()
    }
}

#[must_use]
pub fn routes() -> Routes<App> {
    Routes::<App>::new()
        .checking(|app| app.services.checks())
        .on("PUT /v1/customers/{id}/following/{other}", |app, request| Box::pin(following::put(&app.services, request)))
        .on("GET /v1/customers/{id}/following/{other}", |app, request| {
            Box::pin(following::read(&app.services, request))
        })
        .on("DELETE /v1/customers/{id}/following/{other}", |app, request| {
            Box::pin(following::remove(&app.services, request))
        })
        .on("GET /v1/customers/{id}/following", |app, request| Box::pin(following::following(&app.services, request)))
        .on("GET /v1/customers/{id}/followers", |app, request| Box::pin(following::followers(&app.services, request)))
        .on("PUT /v1/customers/{id}/likes/{product}", |app, request| Box::pin(likes::put(&app.services, request)))
        .on("GET /v1/customers/{id}/likes/{product}", |app, request| Box::pin(likes::read(&app.services, request)))
        .on("DELETE /v1/customers/{id}/likes/{product}", |app, request| Box::pin(likes::remove(&app.services, request)))
        .on("GET /v1/customers/{id}/likes", |app, request| Box::pin(likes::of_customer(&app.services, request)))
        .on("GET /v1/products/{id}/likes", |app, request| Box::pin(likes::of_product(app, request)))
        .on("GET /v1/products/{id}/likers", |app, request| Box::pin(likes::likers(&app.services, request)))
        .on("GET /v1/graph/{node}/edges", |app, request| Box::pin(nodes::of_node(&app.services, request)))
        .on("GET /v1/places/{path}/customers", |app, request| Box::pin(nodes::of_place(&app.services, request)))
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("community");
    let app = App { services: Services::from_env().await?, issuer: Issuer::from_env()? };
    http_api::run(routes(), app).await
}

fn no_customer() -> Problem {
    Problem::not_found("customer")
}
