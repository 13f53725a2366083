//! Community: follows, likes, the customers of a place, and the graph of customers.
//!
//! A follow or a like either exists or does not. So a write needs no If-Match and can be repeated.

mod following;
mod likes;
mod nodes;
mod view;

use http_api::{Error, Problem, Routes, Services};

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("PUT /v1/customers/{id}/following/{other}", |services, request| Box::pin(following::put(services, request)))
        .on("GET /v1/customers/{id}/following/{other}", |services, request| {
            Box::pin(following::read(services, request))
        })
        .on("DELETE /v1/customers/{id}/following/{other}", |services, request| {
            Box::pin(following::remove(services, request))
        })
        .on("GET /v1/customers/{id}/following", |services, request| Box::pin(following::following(services, request)))
        .on("GET /v1/customers/{id}/followers", |services, request| Box::pin(following::followers(services, request)))
        .on("PUT /v1/customers/{id}/likes/{product}", |services, request| Box::pin(likes::put(services, request)))
        .on("GET /v1/customers/{id}/likes/{product}", |services, request| Box::pin(likes::read(services, request)))
        .on("DELETE /v1/customers/{id}/likes/{product}", |services, request| Box::pin(likes::remove(services, request)))
        .on("GET /v1/customers/{id}/likes", |services, request| Box::pin(likes::of_customer(services, request)))
        .public("GET /v1/products/{id}/likes", |services, request| Box::pin(likes::of_product(services, request)))
        .on("GET /v1/products/{id}/likers", |services, request| Box::pin(likes::likers(services, request)))
        .on("GET /v1/graph/{node}/edges", |services, request| Box::pin(nodes::of_node(services, request)))
        .on("GET /v1/places/{path}/customers", |services, request| Box::pin(nodes::of_location(services, request)))
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("community");
    http_api::run(routes(), Services::from_env().await?).await
}

fn no_customer() -> Problem {
    Problem::not_found("customer")
}
