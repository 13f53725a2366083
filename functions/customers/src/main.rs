//! The program of the function `customers`, which Lambda starts.

/// Answers requests until the environment ends.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    customers::run().await
}
