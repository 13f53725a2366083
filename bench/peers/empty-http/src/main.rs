//! A function that does nothing, on `lambda_http`. It shows the cost of the HTTP adapter.

use lambda_http::{Error, Request, Response, run, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(|_: Request| async { Ok::<_, Error>(Response::new("{}".to_owned())) })).await
}
