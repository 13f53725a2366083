//! Tests that the message of an error names the kind of its cause.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use key_schema::customer;
use table::{Table, TableError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::data::customer_id;

fn table_at(address: &str) -> Table {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .http_client(aws::connector().unwrap())
        .endpoint_url(address);
    Table::new(Client::from_conf(config.build()), "table".to_owned())
}

/// Creates a table with an endpoint that sends the same response to every request.
async fn answering(response: String) -> Table {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    table_at(&format!("http://127.0.0.1:{port}"))
}

fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn an_unreadable_response_is_reported_as_unreadable() {
    let page = "<html>sign in, ann@example.com</html>";
    for (given, said) in [
        (response("200 OK", page), "status 200 with a body that cannot be read"),
        (response("200 OK", r#"{"Table": 7}"#), "status 200 with a body that cannot be read"),
        (response("503 Service Unavailable", page), "status 503 without an error code"),
        (response("403 Forbidden", "{}"), "status 403 without an error code"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_owned(), "the response broke off"),
        ("SSH-2.0-OpenSSH\r\n".to_owned(), "connection"),
    ] {
        let error = answering(given).await.stream_view().await.unwrap_err();
        assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(said) && !message.contains("unknown"), "{message}");
        assert!(!message.contains("ann@example.com"), "{message}");
    }
}

#[tokio::test]
async fn the_error_says_why_a_table_cannot_be_reached() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (address, said) in [
        (format!("http://{closed}"), "the connection was refused"),
        ("http://no-such-host.invalid".to_owned(), "the host's name cannot be resolved"),
    ] {
        let error = table_at(&address).get(&customer::get(&customer_id(1)).unwrap()).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}
