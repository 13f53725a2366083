//! Community: follows, likes, the customers of a place, and the graph of customers.
//!
//! A follow or a like either exists or does not. So a write needs no If-Match and can be repeated.

mod following;
mod likes;
mod nodes;
mod view;

use http_api::{Error, Problem, Services};

http_api::routes! {
    Services;
    following::put, following::read, following::remove, following::following, following::followers,
    likes::put, likes::read, likes::remove, likes::of_customer, likes::of_product, likes::likers,
    nodes::of_node, nodes::of_location
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("community");
    http_api::run(routes(), Services::from_env().await?).await
}

fn no_customer() -> Problem {
    Problem::not_found("customer")
}
