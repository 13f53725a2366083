//! Tests of the catalogue through its routes, called with the events that API Gateway sends. The
//! table is the embedded one, or the DynamoDB that `AWS_ENDPOINT_URL_DYNAMODB` names.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod availability;
mod categories;
mod content;
mod import;
mod import_faults;
mod leaderboards;
mod locations;
mod memberships;
mod moves;
mod pictures;
mod products;
mod recent;
mod registry;
mod reviews;
mod shop;
mod stock;
mod uploads;
mod variants;
