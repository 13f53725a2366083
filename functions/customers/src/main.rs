//! The Lambda function `Customers`.

/// Answers requests until Lambda shuts down the execution environment.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    customers::run().await
}
