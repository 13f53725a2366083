//! Tests of permissions to upload, and of texts that are too large for an item.

use http_api::sample::{Answered, Call};
use serde_json::{Value, json};

use crate::shop::{ICE, Shop, permit, upload};

const TEXT: &[u8] = b"# Ice\n\nVery, very cold.";

fn text(bytes: usize) -> Call {
    let body = json!({"content_type": "text/markdown", "bytes": bytes});
    Call::new("POST /v1/products/{id}/content/uploads").path("id", "p1").json(&body)
}

fn put(upload: &str, condition: (&str, &str)) -> Call {
    let call = Call::new("PUT /v1/products/{id}/content/uploads/{upload}").path("id", "p1").path("upload", upload);
    call.header(condition.0, condition.1)
}

fn say(text: &str, condition: (&str, &str)) -> Call {
    let call = Call::new("PUT /v1/products/{id}/content").path("id", "p1").json(&json!({"text": text}));
    call.header(condition.0, condition.1)
}

const ABSENT: (&str, &str) = ("if-none-match", "*");

async fn get(shop: &Shop) -> Answered {
    shop.send(Call::new("GET /v1/products/{id}/content").path("id", "p1")).await
}

/// Returns the body without the URL of the file, which is signed again every quarter of an hour.
fn without_url(answer: &Answered) -> Value {
    let mut body = answer.body.clone();
    for signed in ["url", "url_expires_at"] {
        assert!(body["file"].as_object_mut().unwrap().remove(signed).is_some(), "{body}");
    }
    body
}

/// Uploads [`TEXT`] and returns the upload's id.
async fn uploaded(shop: &Shop) -> String {
    let permit = shop.staff(text(TEXT.len())).await;
    let id = permit.body["id"].as_str().unwrap();
    assert_eq!(permit.header("location"), Some(&*format!("/v1/products/p1/content/uploads/{id}")));
    assert_eq!(upload(&permit, TEXT).await, 200);
    id.to_owned()
}

#[tokio::test]
async fn an_upload_permission_is_for_a_product_and_has_the_checksum_of_the_upload() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let sum = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    let most = json!({"content_type": "image/avif", "bytes": 10 * 1024 * 1024, "sha256": sum});
    let taken = shop.staff(permit("p1").json(&most)).await;
    assert_eq!((taken.status, &taken.body["upload"]["headers"]["x-amz-checksum-sha256"]), (201, &json!(sum)));
    assert_eq!(shop.staff(permit("p2")).await.status, 404);
    let picture = text(1).json(&json!({"content_type": "image/png", "bytes": 1}));
    assert_eq!(shop.staff(picture).await.pointers(), ["/content_type"]);
}

#[tokio::test]
async fn an_upload_that_differs_from_its_permission_is_refused() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let (agreed, mut other) = (shop.staff(permit("p1")).await, shop.staff(permit("p1")).await);
    assert_eq!(upload(&agreed, b"a longer picture of ice").await, 403);
    assert_eq!(upload(&agreed, b"a picture").await, 403);
    other.body["upload"]["headers"]["content-type"] = json!("text/html");
    assert_eq!(upload(&other, ICE).await, 403);
    assert_eq!(shop.names(""), Vec::<String>::new());
    assert_eq!(upload(&agreed, ICE).await, 200);
}

#[tokio::test]
async fn a_text_that_is_too_large_for_an_item_is_uploaded_and_read_by_a_url() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let id = uploaded(&shop).await;
    let created = shop.staff(put(&id, ABSENT)).await;
    assert_eq!((created.status, created.version()), (201, Some(1)));
    let read = get(&shop).await;
    assert_eq!((read.status, without_url(&read)), (200, without_url(&created)));
    let file = &read.body["file"];
    assert_eq!((&read.body["text"], &file["id"], &file["bytes"]), (&Value::Null, &json!(id), &json!(TEXT.len())));
    let answer = reqwest::get(file["url"].as_str().unwrap()).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/markdown");
    assert_eq!(answer.bytes().await.unwrap(), TEXT);
    assert_eq!(shop.noted().await, Vec::<String>::new());

    let again = shop.staff(put(&id, ABSENT)).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    let stale = shop.staff(put(&id, ("if-match", "\"7\""))).await;
    assert_eq!((stale.status, stale.code()), (412, Some("version_mismatch")));
    // The refused requests left one `UnsettledObject`, but the content references the object. So
    // the janitor keeps the object.
    assert_eq!(shop.noted().await, [id.as_str()]);
    assert_eq!(without_url(&get(&shop).await), without_url(&created));
}

#[tokio::test]
async fn the_write_that_replaces_an_uploaded_text_adds_a_note_about_its_unused_object() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    assert_eq!(shop.staff(say("short", ABSENT)).await.status, 201);
    let (first, second) = (uploaded(&shop).await, uploaded(&shop).await);
    let done = async |call: Call, version: u64| {
        let answer = shop.staff(call.header("if-match", &format!("\"{version}\""))).await;
        assert_eq!((answer.status, answer.version()), (200, Some(version + 1)), "{}", answer.body);
        answer
    };
    let to = |upload: &str| put(upload, ("x", "y"));
    let long = done(to(&first), 1).await;
    assert_eq!((long.body["file"]["id"].as_str(), shop.noted().await), (Some(&*first), vec![]));
    let other = done(to(&second), 2).await;
    assert_eq!((other.body["file"]["id"].as_str(), shop.noted().await), (Some(&*second), vec![first.clone()]));
    // A second request with the same upload adds no `UnsettledObject`, because the content still
    // references the upload.
    done(to(&second), 3).await;
    let short = done(say("short again", ("x", "y")), 4).await;
    assert_eq!((short.body["text"].as_str(), short.body.get("file")), (Some("short again"), None));
    assert_eq!(get(&shop).await.body, short.body);
    let mut noted = shop.noted().await;
    noted.sort();
    assert_eq!(noted, [first, second]);
}

#[tokio::test]
async fn content_needs_an_upload_of_a_text_for_this_product() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let picture = shop.uploaded("p1").await;
    for id in [&picture, "never", "..x"] {
        let refused = shop.staff(put(id, ABSENT)).await;
        assert_eq!((refused.status, refused.code()), (409, Some("not_uploaded")), "{id}");
    }
    let id = uploaded(&shop).await;
    assert_eq!(shop.staff(put(&id, ("if-match", "\"1\""))).await.status, 404, "there is no content to replace");
    assert_eq!(get(&shop).await.body["version"], Value::Null);
}
