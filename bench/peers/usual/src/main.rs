//! `GET /v1/customers/{id}` on `lambda_http` and the SDK with its default features.

mod plain;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use lambda_http::{Body, Error, Request, RequestExt, Response, run, service_fn, tracing};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let config = aws_config::load_from_env().await;
    let (client, table) = (&Client::new(&config), &std::env::var("TABLE_NAME")?);
    run(service_fn(move |request: Request| async move { get(client, table, &request).await })).await
}

async fn get(client: &Client, table: &str, request: &Request) -> Result<Response<Body>, Error> {
    let parameters = request.path_parameters();
    let id = parameters.first("id").unwrap_or_default();
    let found = client
        .get_item()
        .table_name(table)
        .key("PK", AttributeValue::S(format!("CUSTOMER#{id}")))
        .key("SK", AttributeValue::S("PROFILE".to_owned()))
        .send()
        .await?;
    let (status, body) = match found.item {
        Some(item) => (200, plain::object(&item)),
        None => (404, json!({ "message": "no such customer" })),
    };
    Ok(Response::builder().status(status).header("content-type", "application/json").body(body.to_string().into())?)
}
