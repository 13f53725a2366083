//! The Lambda functions `StreamSearch` and `StreamEvents`.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    stream::run().await
}
