//! Tests of responses that start correctly and then break.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use storage::objects::{ObjectError, ObjectStore};

use super::{BUCKET, bucket};

const WHOLE: &str =
    "content-length: 4\r\nx-amz-checksum-sha256: Iw2DWNyOiJC0xY3utikS7i8gNXrpKlzIYbmOaP4xrLU=\r\n\r\nbody";
const SHORT: &str = "content-length: 4\r\n\r\nbo";
const ALTERED: &str =
    "content-length: 4\r\nx-amz-checksum-sha256: 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\r\n\r\nbody";

/// Starts a server that sends these responses, one on each connection. The channel gets one message
/// for each response.
fn serve(answers: &'static [&'static str]) -> (ObjectStore, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (given, count) = mpsc::channel();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            given.send(()).unwrap();
            write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n{answer}").unwrap();
        }
    });
    (ObjectStore::new(bucket(&url, BUCKET)), count)
}

#[tokio::test]
async fn a_body_that_breaks_off_or_was_altered_is_read_again() {
    let (store, given) = serve(&[SHORT, ALTERED, WHOLE]);
    assert_eq!(store.get("a").await.unwrap().unwrap(), b"body");
    assert_eq!(given.try_iter().count(), 3);
}

#[tokio::test]
async fn a_body_that_is_incomplete_or_altered_at_every_attempt_is_an_error() {
    for answers in [&[SHORT; 4], &[ALTERED; 4]] {
        let (store, given) = serve(answers);
        let error = store.get("a").await.unwrap_err();
        assert!(matches!(&error, ObjectError::Unavailable(reason) if reason.ends_with("broke off")), "{error:?}");
        assert_eq!(given.try_iter().count(), 4, "four attempts");
    }
}

#[tokio::test]
async fn a_body_announced_as_too_large_is_refused_at_once() {
    let (store, _given) = serve(&["content-length: 999999999999\r\n\r\nx"]);
    assert!(matches!(store.get("a").await, Err(ObjectError::TooLarge)));
}
