//! Handles the same request as the other peers, with only the foundation of Bodega's functions.
//!
//! The foundation is `lambda_runtime`, the SDK without its default features, one thread, and a
//! table connection before the first event. There are no checks, logs or metrics. The difference
//! from a Bodega function is the cost of that function's code.
//!
//! With the argument `bare`, retries and timeouts are off.

#[path = "../../usual/src/plain.rs"]
mod plain;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::get_item::GetItemOutput;
use aws_sdk_dynamodb::types::AttributeValue;
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "pathParameters")]
    parameters: Parameters,
}

#[derive(Deserialize)]
struct Parameters {
    id: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut config = aws::config().await?;
    if std::env::args().nth(1).as_deref() == Some("bare") {
        config = config
            .into_builder()
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled())
            .build();
    }
    let (client, table) = (&Client::new(&config), &std::env::var("TABLE_NAME")?);
    // The request opens the connection. Its result does not matter.
    let _ = get(client, table, "nobody").await;
    run(service_fn(move |event: LambdaEvent<Event>| async move {
        let found = get(client, table, &event.payload.parameters.id).await?;
        let (status, body) = match found.item {
            Some(item) => (200, plain::object(&item)),
            None => (404, json!({ "message": "no such customer" })),
        };
        let headers = json!({ "content-type": "application/json" });
        Ok::<Value, Error>(json!({ "statusCode": status, "headers": headers, "body": body.to_string() }))
    }))
    .await
}

async fn get(client: &Client, table: &str, id: &str) -> Result<GetItemOutput, Error> {
    let key = AttributeValue::S(format!("CUSTOMER#{id}"));
    let request = client.get_item().table_name(table).key("PK", key).key("SK", AttributeValue::S("PROFILE".to_owned()));
    Ok(request.send().await?)
}
