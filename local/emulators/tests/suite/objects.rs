//! Tests the object store with requests that Bodega's client does not send, and tests stored data.
//! The crate `storage` tests the client.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use emulators::objects::{CorsRule, Error, ObjectServer};
use reqwest::{Client, Method, RequestBuilder};

const BUCKET: &str = "archive";

async fn start(data: Option<&Path>) -> ObjectServer {
    ObjectServer::start(data, &[BUCKET.to_owned(), "failed-records".to_owned()]).await.unwrap()
}

fn request(server: &ObjectServer, method: Method, path: &str) -> RequestBuilder {
    // The header makes the request look like a function's call. The store does not verify its
    // signature.
    Client::new().request(method, format!("{}/{path}", server.url())).header("authorization", "AWS4-HMAC-SHA256")
}

/// Returns the status and the error code, if there is one.
async fn answer(request: RequestBuilder) -> (u16, String) {
    let answer = request.send().await.unwrap();
    let (status, body) = (answer.status().as_u16(), answer.text().await.unwrap());
    (status, element(&body, "Code").first().cloned().unwrap_or_default())
}

fn element(xml: &str, name: &str) -> Vec<String> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(&start).skip(1).map(|piece| piece.split(&end).next().unwrap().to_owned()).collect()
}

fn names(server: &ObjectServer, bucket: &str) -> Vec<String> {
    server.list(bucket, None, 1000).unwrap().items.into_iter().map(|item| item.name).collect()
}

/// A folder. Dropping the value removes it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bodega-objects-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        let buckets = fs::read_dir(&self.0).unwrap().map(|bucket| bucket.unwrap().path());
        buckets.flat_map(|bucket| fs::read_dir(bucket).unwrap()).map(|file| file.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn the_store_refuses_requests_that_it_does_not_know() {
    let server = start(None).await;
    server.put(BUCKET, "a", Bytes::from_static(b"1")).unwrap();
    let to = |method, path: &str| request(&server, method, path);
    for (request, status, code) in [
        (to(Method::GET, "archive/a?versionId=1"), 501, "NotImplemented"),
        (to(Method::GET, "archive/a?acl"), 501, "NotImplemented"),
        (to(Method::GET, "archive/a").header("range", "bytes=0-1"), 501, "NotImplemented"),
        (to(Method::GET, "archive?list-type=2&delimiter=%2F"), 501, "NotImplemented"),
        (to(Method::GET, "archive?list-type=2&max-keys=many"), 400, "InvalidArgument"),
        (to(Method::GET, "archive?list-type=2&continuation-token=~"), 400, "InvalidArgument"),
        (to(Method::GET, "archive"), 501, "NotImplemented"),
        (to(Method::PUT, "archive"), 501, "NotImplemented"),
        (to(Method::GET, ""), 501, "NotImplemented"),
        (to(Method::POST, "archive/a?uploads"), 501, "NotImplemented"),
        (to(Method::POST, "archive/a"), 501, "NotImplemented"),
        (to(Method::PUT, "archive/b").header("if-none-match", "\"1\""), 501, "NotImplemented"),
        (to(Method::PUT, "archive/b").header("if-match", "\"1\""), 501, "NotImplemented"),
        (to(Method::PUT, "archive/b").header("content-encoding", "aws-chunked"), 501, "NotImplemented"),
        (
            to(Method::PUT, "archive/b").header("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
            501,
            "NotImplemented",
        ),
        (to(Method::PUT, "archive/b").header("x-amz-checksum-crc32", "AAAAAA==").body("x"), 400, "BadDigest"),
        (to(Method::PUT, "archive/b").header("x-amz-storage-class", "FROZEN"), 400, "InvalidStorageClass"),
        (to(Method::PUT, "archive/b"), 411, "MissingContentLength"),
        (to(Method::PUT, "archive/%ff"), 400, "InvalidURI"),
        (to(Method::PUT, &format!("archive/{}", "x".repeat(1025))), 400, "KeyTooLongError"),
        (to(Method::GET, "archive/b"), 404, "NoSuchKey"),
        (to(Method::GET, "elsewhere/a"), 404, "NoSuchBucket"),
        (to(Method::HEAD, "archive/b"), 404, ""),
        (to(Method::HEAD, "elsewhere"), 404, ""),
        (to(Method::HEAD, "archive"), 200, ""),
        (to(Method::HEAD, "archive/a"), 200, ""),
        (to(Method::DELETE, "archive/b"), 204, ""),
    ] {
        let what = format!("{request:?}");
        assert_eq!(answer(request).await, (status, code.to_owned()), "{what}");
    }
    assert_eq!(names(&server, BUCKET), ["a"]);
}

#[tokio::test]
async fn a_list_continues_by_its_token() {
    let server = start(None).await;
    for n in 0..5 {
        server.put(BUCKET, &format!("p/{n}&\n"), Bytes::new()).unwrap();
    }
    let (mut found, mut token) = (Vec::new(), None::<String>);
    loop {
        let mut list =
            request(&server, Method::GET, "archive").query(&[("list-type", "2"), ("prefix", "p/"), ("max-keys", "2")]);
        if let Some(token) = &token {
            list = list.query(&[("continuation-token", token)]);
        }
        let page = list.send().await.unwrap().text().await.unwrap();
        found.extend(element(&page, "Key"));
        token = element(&page, "NextContinuationToken").pop();
        assert_eq!(element(&page, "IsTruncated"), [if token.is_some() { "true" } else { "false" }]);
        if token.is_none() {
            break;
        }
    }
    assert_eq!(found, ["p/0&amp;&#xA;", "p/1&amp;&#xA;", "p/2&amp;&#xA;", "p/3&amp;&#xA;", "p/4&amp;&#xA;"]);
}

#[tokio::test]
async fn objects_in_a_folder_survive_a_restart_and_deleted_objects_stay_deleted() {
    let folder = Folder::new("restart");
    let long = "é".repeat(512);
    let hostile = ["a", "A", "a/b", "a//b", "a/../b", "..%2f", "CON", " ", "/etc/passwd", "日本語", "x\ny", &long];
    {
        let server = start(Some(&folder.0)).await;
        for name in hostile {
            server.put(BUCKET, name, Bytes::from(format!("1\n{name}"))).unwrap();
            server.put(BUCKET, name, Bytes::from(format!("2\n{name}"))).unwrap();
        }
        server.put("failed-records", "a", Bytes::new()).unwrap();
        server.put(BUCKET, "gone", Bytes::from_static(b"x")).unwrap();
        let put = request(&server, Method::PUT, "archive/cold").header("x-amz-storage-class", "GLACIER_IR");
        assert_eq!(answer(put.body("x")).await.0, 200);
        let deleted = request(&server, Method::DELETE, "archive/gone");
        assert_eq!(answer(deleted).await.0, 204);
    }
    let before = folder.files();
    assert_eq!(before.len(), hostile.len() + 2);
    // A killed process may leave this file.
    fs::write(before[0].with_extension("unfinished"), "{").unwrap();
    fs::write(folder.0.join(BUCKET).join(".DS_Store"), "file managers").unwrap();

    let server = start(Some(&folder.0)).await;
    let mut expected: Vec<&str> = hostile.iter().copied().chain(["cold"]).collect();
    expected.sort_unstable();
    assert_eq!(names(&server, BUCKET), expected);
    assert_eq!(names(&server, "failed-records"), ["a"]);
    for name in hostile {
        assert_eq!(server.get(BUCKET, name).unwrap().unwrap(), format!("2\n{name}"), "{name}");
    }
    let cold = request(&server, Method::HEAD, "archive/cold").send().await.unwrap();
    assert_eq!(cold.headers()["x-amz-storage-class"], "GLACIER_IR");
    let again = request(&server, Method::PUT, "archive/a").header("if-none-match", "*").body("x");
    assert_eq!(answer(again).await, (412, "PreconditionFailed".to_owned()));
    assert!(!before[0].with_extension("unfinished").exists());
}

#[tokio::test]
async fn no_name_leads_out_of_the_folder() {
    let folder = Folder::new("traversal");
    let data = folder.0.join("data");
    let server = start(Some(&data)).await;
    for name in ["../x", "..", "a/../../x", ""] {
        assert!(matches!(server.put(BUCKET, name, Bytes::new()), Err(Error::Name)), "{name}");
    }
    for name in ["/x", "a/../x", "..\\x"] {
        server.put(BUCKET, name, Bytes::new()).unwrap();
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "a file is outside the data folder");
    assert_eq!(fs::read_dir(data.join(BUCKET)).unwrap().count(), 3);
    for bucket in ["..", ".", "", "a", "a/b", "-ab", "ab.", "a\\b", &"x".repeat(64)] {
        let opened = ObjectServer::start(Some(&data), &[bucket.to_owned()]).await;
        assert!(matches!(opened, Err(Error::BucketName(_))), "{bucket}");
    }
}

#[tokio::test]
async fn the_error_names_a_file_that_the_store_did_not_write() {
    let folder = Folder::new("damaged");
    start(Some(&folder.0)).await.put(BUCKET, "a", Bytes::from_static(b"12345")).unwrap();
    let path = folder.files().pop().unwrap();
    let whole = fs::read(&path).unwrap();
    let shorter = &whole[..whole.len() - 1];
    for damaged in [shorter, b"", b"{}\n", &[0xff; 100]] {
        fs::write(&path, damaged).unwrap();
        let opened = ObjectServer::start(Some(&folder.0), &[BUCKET.to_owned()]).await;
        assert!(matches!(&opened, Err(Error::Damaged(named)) if *named == path));
    }
    fs::write(&path, &whole).unwrap();
    let elsewhere = path.with_file_name("another.object");
    fs::rename(&path, &elsewhere).unwrap();
    let opened = ObjectServer::start(Some(&folder.0), &[BUCKET.to_owned()]).await;
    assert!(matches!(&opened, Err(Error::Damaged(named)) if *named == elsewhere));
    fs::rename(&elsewhere, &path).unwrap();
    assert_eq!(start(Some(&folder.0)).await.get(BUCKET, "a").unwrap().unwrap(), "12345");
}

#[tokio::test]
async fn the_in_process_interface_replaces_objects_and_lists_them_in_pages() {
    let server = start(None).await;
    for name in ["b", "a", "c", "a"] {
        server.put(BUCKET, name, Bytes::from(name.to_owned())).unwrap();
    }
    let page = server.list(BUCKET, None, 2).unwrap();
    let sizes: Vec<(&str, u64)> = page.items.iter().map(|item| (item.name.as_str(), item.size)).collect();
    assert_eq!((sizes, page.next.as_deref()), (vec![("a", 1), ("b", 1)], Some("b")));
    let page = server.list(BUCKET, page.next.as_deref(), 2).unwrap();
    assert_eq!((page.items[0].name.as_str(), page.items.len(), page.next), ("c", 1, None));
    assert_eq!(server.get(BUCKET, "d").unwrap(), None);
    assert!(matches!(server.get("elsewhere", "a"), Err(Error::NoBucket(_))));
    assert!(matches!(server.list("elsewhere", None, 1), Err(Error::NoBucket(_))));
    assert!(matches!(server.put("elsewhere", "a", Bytes::new()), Err(Error::NoBucket(_))));
}

#[tokio::test]
async fn a_dropped_store_no_longer_answers() {
    let server = start(None).await;
    let (client, url) = (Client::new(), format!("{}/archive", server.url()));
    assert!(client.head(&url).send().await.is_ok());
    drop(server);
    // When the runtime next runs its tasks, the server closes the open connection and refuses new
    // connections.
    tokio::task::yield_now().await;
    assert!(client.head(&url).send().await.is_err());
}

const SHOP: &str = "https://shop.example";

/// Starts a store whose first bucket has CORS rules for the web pages of [`SHOP`].
async fn with_pages() -> ObjectServer {
    let server = start(None).await;
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let rule = CorsRule {
        origins: texts(&[SHOP, "https://*.shop.example"]),
        methods: texts(&["GET", "PUT"]),
        headers: texts(&["content-type", "x-amz-*"]),
        exposed: texts(&["ETag"]),
        max_age: Some(3600),
    };
    server.set_cors_rules(BTreeMap::from([(BUCKET.to_owned(), vec![rule])]));
    server
}

/// Returns the status and the CORS headers of a response.
async fn shared(request: RequestBuilder) -> (u16, BTreeMap<String, String>) {
    let answer = request.send().await.unwrap();
    let headers = answer.headers().iter().filter(|(name, _)| name.as_str().starts_with("access-control-"));
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    (answer.status().as_u16(), headers)
}

#[tokio::test]
async fn the_response_to_a_preflight_request_has_the_rules_of_the_bucket() {
    let server = with_pages().await;
    // Browsers do not sign preflight requests.
    let asked = |path: &str, origin: &str, method: &str, headers: &str| {
        let request = Client::new().request(Method::OPTIONS, format!("{}/{path}", server.url()));
        let request = request.header("origin", origin).header("access-control-request-method", method);
        request.header("access-control-request-headers", headers.to_owned())
    };
    let told = |origin: &str, headers: &str| {
        let all = [
            ("access-control-allow-origin", origin),
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-methods", "GET, PUT"),
            ("access-control-allow-headers", headers),
            ("access-control-expose-headers", "ETag"),
            ("access-control-max-age", "3600"),
        ];
        let all = all.into_iter().filter(|(_, value)| !value.is_empty());
        (200, all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>())
    };
    for (origin, headers, allowed) in [
        (SHOP, "", ""),
        (SHOP, "Content-Type,x-amz-checksum-sha256", "content-type, x-amz-checksum-sha256"),
        ("https://beta.shop.example", "content-type", "content-type"),
    ] {
        let path = "archive/a?X-Amz-Algorithm=AWS4-HMAC-SHA256";
        assert_eq!(shared(asked(path, origin, "PUT", headers)).await, told(origin, allowed), "{origin} {headers}");
    }
    for (path, origin, method, headers) in [
        ("archive/a", "https://elsewhere.example", "PUT", ""),
        ("archive/a", "https://shop.example.org", "PUT", ""),
        ("archive/a", "null", "PUT", ""),
        ("archive/a", SHOP, "DELETE", ""),
        ("archive/a", SHOP, "PUT", "content-type,authorization"),
        ("failed-records/a", SHOP, "PUT", ""),
        ("nowhere/a", SHOP, "PUT", ""),
    ] {
        let refused = answer(asked(path, origin, method, headers)).await;
        assert_eq!(refused, (403, "AccessForbidden".to_owned()), "{path} {origin} {method} {headers}");
    }
    let nobody = Client::new().request(Method::OPTIONS, format!("{}/archive/a", server.url()));
    assert_eq!(answer(nobody).await, (400, "BadRequest".to_owned()));
}

#[tokio::test]
async fn a_web_page_may_read_the_responses_of_a_bucket_that_allows_its_origin() {
    let server = with_pages().await;
    server.put(BUCKET, "a", Bytes::from_static(b"1")).unwrap();
    for (path, status) in [("archive/a", 200), ("archive/none", 404)] {
        let (seen, headers) = shared(request(&server, Method::GET, path).header("origin", SHOP)).await;
        assert_eq!((seen, headers["access-control-allow-origin"].as_str()), (status, SHOP), "{path}");
    }
    for origin in ["https://elsewhere.example", "null"] {
        let other = shared(request(&server, Method::GET, "archive/a").header("origin", origin)).await;
        assert_eq!(other, (200, BTreeMap::new()), "{origin}");
    }
    assert_eq!(shared(request(&server, Method::GET, "archive/a")).await, (200, BTreeMap::new()));
}
