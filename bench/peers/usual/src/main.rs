//! `GET /v1/customers/{id}` on `lambda_http` and the SDK with its default features.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use lambda_http::{Body, Error, Request, RequestExt, Response, run, service_fn, tracing};
use serde_json::{Value, json};

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
        Some(item) => (200, object(&item)),
        None => (404, json!({ "message": "no such customer" })),
    };
    Ok(Response::builder().status(status).header("content-type", "application/json").body(body.to_string().into())?)
}

fn object(item: &HashMap<String, AttributeValue>) -> Value {
    json!(item.iter().map(|(name, value)| (name.as_str(), plain(value))).collect::<HashMap<_, _>>())
}

fn plain(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!(text),
        AttributeValue::N(number) => number.parse::<i64>().map_or(Value::Null, Value::from),
        AttributeValue::Bool(flag) => json!(flag),
        AttributeValue::M(map) => object(map),
        AttributeValue::L(list) => json!(list.iter().map(plain).collect::<Vec<_>>()),
        _ => Value::Null,
    }
}
