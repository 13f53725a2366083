//! A function that does nothing, on `lambda_runtime`. It shows the lowest possible cost.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Error>(json!({ "statusCode": 200, "body": "{}" })) })).await
}
