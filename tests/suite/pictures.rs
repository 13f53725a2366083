//! Tests pictures, from the signed URL to the deletion by the janitor. The client sends the upload
//! directly to the bucket.

use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::{Call, http};
use crate::support::{drain, shop, with_own_system, with_parameter};

const ICE: &str = "a picture of ice";

/// Requests a signed URL at this path, uploads the body to this URL and returns the upload's id.
async fn uploaded(system: &System, path: &str, content_type: &str, body: String) -> String {
    let wanted = json!({ "content_type": content_type, "bytes": body.len() });
    let permit = Call::new("POST", path).staff().json(&wanted).send(system).await.expect(201).body;
    let url = permit["upload"]["url"].as_str().unwrap();
    let put = http().put(url).header("content-type", content_type).body(body);
    assert_eq!(put.send().await.unwrap().status().as_u16(), 200);
    permit["id"].as_str().unwrap().to_owned()
}

/// Uploads a picture and adds it to a product. Returns the picture's entry in the product's list.
async fn pictured(system: &System, product: &str) -> Json {
    let pictures = shop::path(&["products", product, "pictures"]);
    let id = uploaded(system, &pictures, "image/webp", ICE.to_owned()).await;
    let path = shop::path(&["products", product, "pictures", &id]);
    Call::new("PUT", &path).staff().json(&json!({ "alt": "Ice" })).send(system).await.expect(201);
    Call::new("GET", &pictures).send(system).await.expect(200).body["items"].as_array().unwrap().last().unwrap().clone()
}

async fn read(picture: &Json) -> (u16, String) {
    let answer = http().get(picture["url"].as_str().unwrap()).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Adds, reads and removes a picture, and lets the janitor delete the object.
pub async fn add_and_remove(system: &System, product: &str) {
    let picture = pictured(system, product).await;
    assert_eq!(read(&picture).await, (200, ICE.to_owned()));
    let path = shop::path(&["products", product, "pictures", picture["id"].as_str().unwrap()]);
    Call::new("DELETE", &path).staff().send(system).await.expect(204);
    assert_eq!(read(&picture).await.0, 200, "the object exists until the janitor runs");
    let janitor = Call::new("POST", "/_local/invoke/Janitor").json(&json!({ "grace_seconds": 0 }));
    let round = janitor.send(system).await.expect(200).body;
    assert!(round["deleted"].as_u64().unwrap() > 0, "{round}");
    assert_eq!(read(&picture).await.0, 404);
}

#[test]
fn a_picture_is_uploaded_and_read_by_signed_urls_and_deleted_by_the_janitor() {
    with_own_system(async |system| {
        shop::products(system, &["pictures-ice"], 1).await;
        let kept = pictured(system, "pictures-ice").await;
        add_and_remove(system, "pictures-ice").await;
        assert_eq!(read(&kept).await, (200, ICE.to_owned()), "a referenced object stays");
        // The signed URL gives access to no other object.
        let url = kept["url"].as_str().unwrap();
        let other = url.replace("kept/picture", "pending/picture");
        assert_eq!(http().get(other).send().await.unwrap().status().as_u16(), 403);
        assert_eq!(http().get(url.split('?').next().unwrap()).send().await.unwrap().status().as_u16(), 403);
    });
}

/// A thumbnail is a path. A client appends it to the API's address, and follows the redirection.
#[test]
fn every_list_of_products_shows_the_first_picture() {
    with_own_system(async |system| {
        let id = "pictures-shown";
        shop::products(system, &[id], 9).await;
        let further = shop::path(&["products", id, "categories", "SHOWN"]);
        Call::new("PUT", &further).staff().send(system).await.expect(201);
        shop::customer(system, "pictured").await;
        let line = shop::path(&["customers", "pictured", "cart", "items", id]);
        Call::new("PUT", &line).customer("pictured").json(&json!({ "quantity": 1 })).send(system).await.expect(200);
        let like = shop::path(&["customers", "pictured", "likes", id]);
        Call::new("PUT", &like).customer("pictured").send(system).await.expect(201);
        let first = pictured(system, id).await["id"].as_str().unwrap().to_owned();
        pictured(system, id).await;
        drain(system).await;
        let path = shop::path(&["products", id, "pictures", &first]);
        let product = shop::path(&["products", id]);
        let cart = shop::path(&["customers", "pictured", "cart"]);
        let lists = [
            (product.as_str(), "/thumbnail"),
            ("/v1/categories/SHOWN/products", "/items/0/thumbnail"),
            (&cart, "/items/0/thumbnail"),
            ("/v1/leaderboards/likes", "/items/0/thumbnail"),
            ("/v1/search/products?q=pictures-shown", "/items/0/thumbnail"),
        ];
        for (list, pointer) in lists {
            let shown = Call::new("GET", list).customer("pictured").send(system).await.expect(200).body;
            assert_eq!(shown.pointer(pointer), Some(&json!(path)), "{list}: {shown}");
        }
        let answer = reqwest::get(format!("{}{path}", system.url())).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap()), (200, ICE.to_owned()));
    });
}

#[test]
fn a_page_of_an_allowed_origin_uploads_a_picture() {
    const SHOP: &str = "http://localhost:5173";
    with_parameter("CorsOrigins", SHOP, async |system| {
        shop::products(system, &["pictures-page"], 1).await;
        let wanted = json!({ "content_type": "image/webp", "bytes": ICE.len() });
        let path = shop::path(&["products", "pictures-page", "pictures"]);
        let permit = Call::new("POST", &path).staff().json(&wanted).send(system).await.expect(201).body;
        let url = permit["upload"]["url"].as_str().unwrap();
        let allowed = |answer: &reqwest::Response| {
            let origin = answer.headers().get("access-control-allow-origin");
            (answer.status().as_u16(), origin.map(|origin| origin.to_str().unwrap().to_owned()))
        };
        let asked = |origin| {
            let request = http().request(reqwest::Method::OPTIONS, url).header("origin", origin);
            let request = request.header("access-control-request-method", "PUT");
            request.header("access-control-request-headers", "content-type").send()
        };
        assert_eq!(allowed(&asked(SHOP).await.unwrap()), (200, Some(SHOP.to_owned())));
        assert_eq!(allowed(&asked("http://localhost:9").await.unwrap()), (403, None));
        let put = http().put(url).header("origin", SHOP).header("content-type", "image/webp").body(ICE);
        assert_eq!(allowed(&put.send().await.unwrap()), (200, Some(SHOP.to_owned())));
    });
}

#[test]
fn a_text_too_long_for_an_item_is_uploaded_and_read_by_signed_urls() {
    with_own_system(async |system| {
        shop::products(system, &["pictures-book"], 1).await;
        let content = shop::path(&["products", "pictures-book", "content"]);
        let text = "Call me Ishmael. ".repeat(100_000);
        let id = uploaded(system, &format!("{content}/uploads"), "text/markdown", text.clone()).await;
        let put = Call::new("PUT", &format!("{content}/uploads/{id}")).staff().header("if-none-match", "*");
        put.send(system).await.expect(201);
        let read = Call::new("GET", &content).send(system).await.expect(200).body;
        assert_eq!(self::read(&read["file"]).await, (200, text), "{read}");
    });
}
