//! Tests of the environment variables. Tests share one process and must not change its environment,
//! so each test runs the code in a child process.

use std::process::Command;

use storage::SetupError;
use storage::objects::{Class, ObjectStore, Put};

use super::{BUCKET, start};

const CHILD: &str = "environment::in_the_child";

async fn run(variables: &[(&str, &str)]) -> std::process::Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([CHILD, "--exact", "--ignored", "--nocapture"]).env_clear();
    child.envs(variables.iter().copied());
    tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap()
}

#[tokio::test]
#[ignore = "run by the tests below"]
async fn in_the_child() {
    match ObjectStore::from_env("ARCHIVE_BUCKET") {
        Ok(store) => println!(
            "{:?}",
            store.put_new("a b/c", b"{}".to_vec(), Class::Cold).await.map_err(|error| error.to_string())
        ),
        Err(error @ SetupError::NotSet(_)) => println!("{error}"),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn the_endpoint_and_the_bucket_come_from_the_environment_and_the_bucket_is_in_the_path() {
    for variable in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"] {
        let (server, _) = start().await;
        // A client could put the bucket's name before a host name, but not before an IP address. So
        // the test uses a host name.
        let url = server.url().replace("127.0.0.1", "localhost");
        let output = run(&[
            (variable, &url),
            ("ARCHIVE_BUCKET", BUCKET),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
        ])
        .await;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains(&format!("Ok({:?})", Put::Created)), "{printed}");
        assert_eq!(server.get(BUCKET, "a b/c").unwrap().unwrap(), "{}");
    }
}

#[tokio::test]
async fn the_error_names_a_missing_or_empty_variable() {
    for variables in [&[][..], &[("ARCHIVE_BUCKET", "")]] {
        let output = run(variables).await;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains("the environment variable ARCHIVE_BUCKET is not set"), "{printed}");
    }
}
