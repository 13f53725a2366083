//! Tests that a URL is valid only for one object, media type and length, and for a limited time.

use std::io::{Read as _, Write as _};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use ring::digest::{SHA256, digest};
use storage::media::{Expected, Media, READ_LIFE, UPLOAD_LIFE};

use crate::{BUCKET, send, start};

const NAME: &str = "pending/picture/p1~0001";
const BODY: &[u8] = b"a picture of ice";
const WEBP: (&str, &str) = ("content-type", "image/webp");

fn expected() -> Expected<'static> {
    Expected { content_type: "image/webp", bytes: BODY.len() as u64, sha256: None }
}

async fn upload(media: &Media) -> String {
    media.upload(NAME, expected(), SystemTime::now()).await.unwrap().url
}

#[tokio::test]
async fn an_upload_with_the_signed_headers_is_accepted_and_read_back() {
    let (server, media) = start().await;
    let (now, sum) = (SystemTime::now(), STANDARD.encode(digest(&SHA256, BODY)));
    let upload = media.upload(NAME, Expected { sha256: Some(&sum), ..expected() }, now).await.unwrap();
    let names: Vec<&str> = upload.headers.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["content-length", "content-type", "x-amz-checksum-sha256"]);
    assert_eq!(upload.expires_at, now + UPLOAD_LIFE);
    let headers: Vec<(&str, &str)> = upload.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(send(Method::PUT, &upload.url, &headers, BODY).await, (200, String::new()));
    assert_eq!(server.get(BUCKET, NAME).unwrap().as_deref(), Some(BODY));
    let reading = media.reading(NAME, now).await.unwrap();
    let answer = reqwest::get(&reading.url).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["content-type"].as_bytes()), (200, &b"image/webp"[..]));
    // A browser asks again before it uses its copy, because the copy may lack CORS headers.
    assert_eq!(answer.headers()["cache-control"], "no-cache");
    let tag = answer.headers()["etag"].clone();
    assert_eq!(answer.bytes().await.unwrap(), BODY);
    let again = reqwest::Client::new().get(&reading.url).header("if-none-match", tag);
    let again = again.header("if-modified-since", "Fri, 20 Nov 2026 00:00:00 GMT").send().await.unwrap();
    assert_eq!((again.status().as_u16(), again.bytes().await.unwrap().len()), (304, 0));
    assert!(reading.expires_at > now + READ_LIFE - READ_LIFE / 4 - Duration::from_secs(1));
}

#[tokio::test]
async fn an_upload_with_the_wrong_length_or_type_or_content_is_refused_and_leaves_no_object() {
    let (server, media) = start().await;
    let url = upload(&media).await;
    let refused = (403, "SignatureDoesNotMatch".to_owned());
    assert_eq!(send(Method::PUT, &url, &[WEBP], b"a picture of ices").await, refused, "longer");
    assert_eq!(send(Method::PUT, &url, &[WEBP], b"a picture of ic").await, refused, "shorter");
    assert_eq!(send(Method::PUT, &url, &[WEBP], b"").await, refused, "empty");
    assert_eq!(send(Method::PUT, &url, &[("content-type", "text/html")], BODY).await, refused);
    assert_eq!(send(Method::PUT, &url, &[], BODY).await, refused, "no type");
    let unsaid = {
        let url = url.clone();
        tokio::task::spawn_blocking(move || chunked(&url)).await.unwrap()
    };
    assert_eq!(unsaid, "HTTP/1.1 403 Forbidden", "no length");
    let more = [WEBP, ("x-amz-acl", "public-read")];
    assert_eq!(
        send(Method::PUT, &url, &more, BODY).await,
        (403, "AccessDenied".to_owned()),
        "a header that is not signed"
    );
    let sum = STANDARD.encode(digest(&SHA256, b"another picture!"));
    let upload = media.upload(NAME, Expected { sha256: Some(&sum), ..expected() }, SystemTime::now()).await.unwrap();
    let headers = [WEBP, ("x-amz-checksum-sha256", sum.as_str())];
    assert_eq!(send(Method::PUT, &upload.url, &headers, BODY).await, (400, "BadDigest".to_owned()));
    assert_eq!(send(Method::PUT, &upload.url, &[WEBP], BODY).await, refused, "no checksum");
    assert!(server.list(BUCKET, None, 10).unwrap().items.is_empty());
}

/// Sends a request without a content length. Returns the status line of the response.
fn chunked(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let headers =
        format!("host: {host}\r\ncontent-type: image/webp\r\ntransfer-encoding: chunked\r\nconnection: close");
    let body = std::str::from_utf8(BODY).unwrap();
    write!(stream, "PUT /{path} HTTP/1.1\r\n{headers}\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", BODY.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_url_is_valid_only_for_its_object_and_its_method() {
    let (server, media) = start().await;
    let url = upload(&media).await;
    let refused = (403, "SignatureDoesNotMatch".to_owned());
    for (from, to) in [
        ("p1~0001", "p1~0002"),
        ("p1~0001", "p2~0001"),
        ("pending/", "kept/"),
        (BUCKET, "other"),
        ("X-Amz-Expires=900", "X-Amz-Expires=9000"),
        ("%2Fus-east-1%2F", "%2Feu-west-1%2F"),
        ("Credential=local", "Credential=other"),
        ("X-Amz-SignedHeaders=content-length%3Bcontent-type%3Bhost", "X-Amz-SignedHeaders=content-type%3Bhost"),
        ("X-Amz-Signature=", "X-Amz-Signature=00"),
        ("X-Amz-Signature=", "X-Amz-Signature=x"),
    ] {
        let altered = url.replace(from, to);
        assert_ne!(altered, url, "{from}");
        assert_eq!(send(Method::PUT, &altered, &[WEBP], BODY).await, refused, "{from} {to}");
    }
    assert_eq!(send(Method::DELETE, &url, &[WEBP], BODY).await, refused);
    assert_eq!(send(Method::GET, &url, &[WEBP], BODY).await, refused);
    assert_eq!(send(Method::PUT, &format!("{url}&x=y"), &[WEBP], BODY).await, refused);
    let bare = url.split('?').next().unwrap();
    assert_eq!(send(Method::PUT, bare, &[WEBP], BODY).await, (403, "AccessDenied".to_owned()), "without a signature");
    let without = url.replace("X-Amz-Expires=900&", "");
    assert_eq!(send(Method::PUT, &without, &[WEBP], BODY).await.1, "AuthorizationQueryParametersError");
    assert!(server.list(BUCKET, None, 10).unwrap().items.is_empty());
    assert_eq!(send(Method::PUT, &url, &[WEBP], BODY).await.0, 200);
}

#[tokio::test]
async fn a_url_is_valid_only_until_it_expires() {
    let (server, media) = start().await;
    let second = Duration::from_secs(1);
    let refused = (403, "AccessDenied".to_owned());
    for (at, good) in [
        (SystemTime::now() - UPLOAD_LIFE - 2 * second, false),
        (SystemTime::now() - UPLOAD_LIFE + 60 * second, true),
        (SystemTime::now() + UPLOAD_LIFE + 60 * second, false),
    ] {
        let url = media.upload(NAME, expected(), at).await.unwrap().url;
        let answer = send(Method::PUT, &url, &[WEBP], BODY).await;
        assert_eq!(answer, if good { (200, String::new()) } else { refused.clone() });
        let there = server.get(BUCKET, NAME).unwrap().is_some();
        assert!(there || !good);
    }
    let old = media.reading(NAME, SystemTime::now() - READ_LIFE - second).await.unwrap();
    assert_eq!(send(Method::GET, &old.url, &[], b"").await, refused);
}

#[tokio::test]
async fn the_url_of_an_object_stays_the_same_for_a_quarter_of_an_hour() {
    let (_server, media) = start().await;
    let quarter = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 / 900 * 900);
    let at = async |seconds| media.reading(NAME, quarter + Duration::from_secs(seconds)).await.unwrap();
    assert_eq!(at(0).await, at(899).await);
    assert_ne!(at(899).await, at(900).await);
    assert_eq!(at(899).await.expires_at, quarter + READ_LIFE);
}
