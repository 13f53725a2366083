//! Tests of product pictures.

use std::collections::BTreeSet;

use emulators::faults::{Fault, FaultKind};
use futures::future::join_all;
use http_api::sample::Call;
use serde_json::json;

use crate::shop::{BUCKET, ICE, Shop, add, each, permit, pictures, product, upload};

fn described(product: &str, picture: &str, alt: &str) -> Call {
    add(product, picture).json(&json!({"alt": alt}))
}

fn remove(product: &str, picture: &str) -> Call {
    Call::new("DELETE /v1/products/{id}/pictures/{picture}").path("id", product).path("picture", picture)
}

#[tokio::test]
async fn a_picture_is_uploaded_added_listed_and_read() {
    let shop = Shop::open().await;
    shop.stock_up("p+1 #é", 1).await;
    let permit = shop.staff(permit("p+1 #é")).await;
    let id = permit.body["id"].as_str().unwrap();
    assert_eq!((permit.status, &permit.body["bytes"]), (201, &json!(ICE.len())));
    assert_eq!(permit.header("location"), Some(&*format!("/v1/products/p%2B1%20%23%C3%A9/pictures/{id}")));
    let headers = json!({"content-length": ICE.len().to_string(), "content-type": "image/webp"});
    assert_eq!(permit.body["upload"]["headers"], headers);
    assert_eq!(shop.send(pictures("p+1 #é")).await.body["items"], json!([]), "an upload URL alone adds no picture");
    assert_eq!(upload(&permit, ICE).await, 200);
    assert_eq!(shop.send(pictures("p+1 #é")).await.body["items"], json!([]), "an upload alone adds no picture");

    let added = shop.staff(described("p+1 #é", id, "A bag of ice")).await;
    assert_eq!((added.status, &added.body["alt"]), (201, &json!("A bag of ice")));
    assert_eq!(added.header("location"), permit.header("location"));
    let listed = shop.send(pictures("p+1 #é")).await;
    assert_eq!(
        (listed.status, listed.header("cache-control")),
        (200, Some("public, max-age=5, stale-while-revalidate=30"))
    );
    assert_eq!(listed.body["items"], json!([added.body]));
    let read = reqwest::get(added.body["url"].as_str().unwrap()).await.unwrap();
    assert_eq!(read.headers()["content-type"], "image/webp");
    assert_eq!(read.bytes().await.unwrap(), ICE);
    assert_eq!(shop.noted().await, Vec::<String>::new());
    assert_eq!(shop.product("p+1 #é").await.version(), Some(1), "a picture does not change the product's version");
}

#[tokio::test]
async fn adding_and_removing_can_be_repeated() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let (first, second) = (shop.pictured("p1").await, shop.pictured("p1").await);
    let again = shop.staff(add("p1", &first)).await;
    assert_eq!(again.status, 200);
    let described = shop.staff(described("p1", &first, "Ice")).await;
    assert_eq!((described.status, &described.body["alt"]), (200, &json!("Ice")));
    let listed = shop.send(pictures("p1")).await;
    assert_eq!(
        each(&listed, "id"),
        [first.as_str(), second.as_str()],
        "pictures are listed in the order of their addition"
    );
    assert_eq!(listed.body["items"][0], described.body);
    for _ in 0..2 {
        assert_eq!(shop.staff(remove("p1", &first)).await.status, 204);
        assert_eq!(each(&shop.send(pictures("p1")).await, "id"), [second.as_str()]);
        assert_eq!(shop.noted().await, [first.as_str()], "the janitor finds the unused object");
    }
    assert_eq!(shop.staff(remove("p1", "never")).await.status, 204);
    // The upload still exists, because a lifecycle rule deletes it only after a day. So the picture
    // can be added again.
    assert_eq!(shop.staff(add("p1", &first)).await.status, 201);
    assert_eq!(shop.noted().await, Vec::<String>::new());
    assert_eq!(each(&shop.send(pictures("p1")).await, "id"), [second.as_str(), first.as_str()]);
}

#[tokio::test]
async fn the_first_picture_is_the_thumbnail_and_its_path_redirects_to_the_picture() {
    let shop = Shop::open().await;
    shop.stock_up("p#1", 1).await;
    let shown = async || {
        let page = shop.product("p#1").await;
        assert_eq!(page.version(), Some(1), "a picture does not change the product's version");
        let list = Call::new("GET /v1/categories/{path}/products").path("path", "GROCERY");
        let listed = shop.send(list).await.body["items"][0]["thumbnail"].clone();
        assert_eq!(page.body["thumbnail"], listed, "{}", page.body);
        listed
    };
    assert_eq!(shown().await, json!(null));
    let (first, second) = (shop.pictured("p#1").await, shop.pictured("p#1").await);
    assert_eq!(shown().await, json!(format!("/v1/products/p%231/pictures/{first}")));

    let read = |id: &str| Call::new("GET /v1/products/{id}/pictures/{picture}").path("id", "p#1").path("picture", id);
    let redirected = shop.send(read(&first)).await;
    assert_eq!(
        (redirected.status, redirected.header("cache-control")),
        (307, Some("public, max-age=900, stale-while-revalidate=0"))
    );
    assert_eq!(redirected.header("vary"), Some("origin"));
    let picture = reqwest::get(redirected.header("location").unwrap()).await.unwrap();
    assert_eq!(
        (picture.headers()["content-type"].clone(), picture.bytes().await.unwrap()),
        ("image/webp".parse().unwrap(), ICE.into())
    );

    assert_eq!(shop.staff(remove("p#1", &first)).await.status, 204);
    assert_eq!(shown().await, json!(format!("/v1/products/p%231/pictures/{second}")));
    assert_eq!((shop.send(read(&first)).await.status, shop.send(read("never")).await.status), (404, 404));
    assert_eq!(shop.staff(remove("p#1", &second)).await.status, 204);
    assert_eq!(shown().await, json!(null));

    let kept = shop.pictured("p#1").await;
    let retire = Call::new("DELETE /v1/products/{id}").path("id", "p#1").header("if-match", "\"1\"");
    assert_eq!(shop.staff(retire).await.status, 204);
    assert_eq!(shop.send(read(&kept)).await.status, 307, "earlier orders show the picture");
    assert_eq!(shop.staff(remove("p#1", &kept)).await.status, 204);
    assert_eq!(shop.send(read(&kept)).await.status, 404);
    assert_eq!(shop.staff(Call::new("POST /v1/products").json(&product("p#1", 1))).await.status, 201);
    assert_eq!(shop.product("p#1").await.body["thumbnail"], json!(null), "removed before the product came back");
}

#[tokio::test]
async fn a_decoded_picture_has_its_dimensions_and_smaller_copies_that_its_path_leads_to() {
    let shop = Shop::open().await;
    shop.stock_up("p 1", 1).await;
    let mut file = std::io::Cursor::new(Vec::new());
    let red = image::RgbImage::from_pixel(1000, 500, image::Rgb([200, 30, 30]));
    red.write_to(&mut file, image::ImageFormat::Png).unwrap();
    let file = file.into_inner();
    let body = json!({"content_type": "image/png", "bytes": file.len()});
    let permit = shop.staff(Call::new("POST /v1/products/{id}/pictures").path("id", "p 1").json(&body)).await;
    assert_eq!(upload(&permit, &file).await, 200);
    let id = permit.body["id"].as_str().unwrap();
    let added = shop.staff(add("p 1", id)).await;
    assert_eq!((added.status, &added.body["width"], &added.body["height"]), (201, &json!(1000), &json!(500)));
    let path = |size: &str| format!("/v1/products/p%201/pictures/{id}?size={size}");
    let sizes = json!([
        {"name": "small", "width": 320, "height": 160, "path": path("small")},
        {"name": "medium", "width": 800, "height": 400, "path": path("medium")},
    ]);
    assert_eq!(added.body["sizes"], sizes);
    assert_eq!(shop.staff(add("p 1", id)).await.body, added.body, "a repetition decodes nothing");
    assert_eq!(shop.send(pictures("p 1")).await.body["items"], json!([added.body]));

    let read = || Call::new("GET /v1/products/{id}/pictures/{picture}").path("id", "p 1").path("picture", id);
    for (size, content_type, width) in
        [("small", "image/jpeg", 320), ("medium", "image/jpeg", 800), ("large", "image/png", 1000)]
    {
        let redirected = shop.send(read().query("size", size)).await;
        assert_eq!(redirected.status, 307, "{size}");
        let picture = reqwest::get(redirected.header("location").unwrap()).await.unwrap();
        assert_eq!(picture.headers()["content-type"], content_type, "{size}");
        let bytes = picture.bytes().await.unwrap();
        assert_eq!(image::load_from_memory(&bytes).unwrap().width(), width, "{size}");
    }
    let refused = shop.send(read().query("size", "huge")).await;
    assert_eq!((refused.status, refused.code()), (400, Some("invalid_parameter")));
    let kept = shop.names("kept/");
    let copy = |suffix: &str| format!("kept/picture/p_201~{id}{suffix}");
    assert_eq!(kept, [copy(""), copy("~medium"), copy("~small")]);

    // The bytes of a damaged file are kept as they are, because only staff upload.
    let damaged = shop.pictured("p 1").await;
    let listed = shop.send(pictures("p 1")).await.body["items"][1].clone();
    assert_eq!((&listed["id"], &listed["width"], &listed["sizes"]), (&json!(damaged), &json!(null), &json!([])));
}

#[tokio::test]
async fn an_upload_for_another_purpose_is_refused_as_a_picture() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    shop.stock_up("p2", 1).await;
    let of_another = shop.uploaded("p2").await;
    let permitted = shop.staff(permit("p1")).await.body["id"].as_str().unwrap().to_owned();
    let text = Call::new("POST /v1/products/{id}/content/uploads").path("id", "p1");
    let text = shop.staff(text.json(&json!({"content_type": "text/plain", "bytes": ICE.len()}))).await;
    assert_eq!(upload(&text, ICE).await, 200);
    let forgotten = shop.uploaded("p1").await;
    let gone = format!("pending/picture/p1~{forgotten}");
    reqwest::Client::new()
        .delete(format!("{}/{BUCKET}/{gone}", shop.objects.url()))
        .header("authorization", "AWS4-HMAC-SHA256")
        .send()
        .await
        .unwrap();
    let text = text.body["id"].as_str().unwrap();
    let beside = format!("../p2~{of_another}");
    for id in [&of_another, &permitted, text, &forgotten, "p2~x", "never"] {
        let refused = shop.staff(add("p1", id)).await;
        assert_eq!((refused.status, refused.code()), (409, Some("not_uploaded")), "{id}");
    }
    let elsewhere = shop.staff(add("p1", &beside)).await;
    assert_eq!((elsewhere.status, elsewhere.code()), (422, Some("invalid_id")));
    assert_eq!(shop.send(pictures("p1")).await.body["items"], json!([]));
    assert_eq!((shop.names("kept/"), shop.noted().await), (vec![], vec![]), "a refused request copies no object");
}

#[tokio::test]
async fn a_product_has_up_to_20_pictures() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let waiting = shop.uploaded("p1").await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(shop.pictured("p1").await);
    }
    let refused = shop.staff(add("p1", &waiting)).await;
    assert_eq!((refused.status, refused.code()), (422, Some("too_many_pictures")));
    assert_eq!(shop.staff(permit("p1")).await.code(), Some("too_many_pictures"), "the limit applies before the upload");
    assert_eq!(shop.staff(described("p1", &ids[7], "Ice")).await.status, 200);
    assert_eq!(shop.staff(remove("p1", &ids[7])).await.status, 204);
    assert_eq!(shop.staff(add("p1", &waiting)).await.status, 201);
}

#[tokio::test]
async fn fifty_callers_that_add_pictures_at_once_fill_the_free_places_exactly() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let ids = join_all((0..50).map(|_| shop.uploaded("p1"))).await;
    let put = async |id: &str| {
        loop {
            let answer = shop.staff(add("p1", id)).await;
            // A client retries when the response is 503 because of contention.
            if answer.status != 503 {
                return (answer.status, answer.code().map(str::to_owned));
            }
        }
    };
    let answers = join_all(ids.iter().map(|id| put(id))).await;
    let added: BTreeSet<&str> =
        ids.iter().zip(&answers).filter(|(_, answer)| answer.0 < 300).map(|(id, _)| id.as_str()).collect();
    assert_eq!(added.len(), 20);
    let refused = answers.iter().filter(|(status, _)| *status >= 300);
    assert!(
        refused.clone().count() == 30 && refused.clone().all(|(_, code)| code.as_deref() == Some("too_many_pictures"))
    );
    let listed = shop.send(pictures("p1")).await;
    assert_eq!(each(&listed, "id").into_iter().collect::<BTreeSet<_>>(), added);
    // Every copied object is in the product's list, or has an `UnsettledObject` for the janitor.
    let noted: BTreeSet<String> = shop.noted().await.into_iter().collect();
    for name in shop.names("kept/") {
        let id = name.rsplit('~').next().unwrap();
        assert!(added.contains(id) || noted.contains(id), "{name}");
    }
    for id in &added {
        assert!(shop.names("kept/").contains(&format!("kept/picture/p1~{id}")), "{id}");
    }
}

#[tokio::test]
async fn an_interrupted_addition_leaves_no_object_without_a_note_and_a_repetition_completes_it() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let id = shop.uploaded("p1").await;
    // The bucket fails every request, also the first, which reads the upload's type and size. So
    // the function writes no `UnsettledObject` and copies no object.
    shop.objects.faults().add(Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 1 }).unwrap();
    let failed = shop.staff(add("p1", &id)).await;
    assert_eq!((failed.status, failed.code()), (503, Some("unavailable")));
    shop.objects.faults().clear();
    assert_eq!((shop.noted().await, shop.send(pictures("p1")).await.body["items"].clone()), (vec![], json!([])));
    // The seed decides which request to the table fails: the read, the write of the
    // `UnsettledObject`, or the transaction.
    for broken in 0..12 {
        shop.break_with(FaultKind::Error, 0.5, None, broken);
        let answer = shop.staff(add("p1", &id)).await;
        shop.clear_faults();
        let listed = shop.send(pictures("p1")).await;
        let is_listed = listed.body["items"] != json!([]);
        assert!(answer.status == 503 || is_listed, "{}", answer.body);
        let (kept, noted) = (shop.names("kept/"), shop.noted().await);
        assert!(kept.is_empty() || is_listed || noted == [id.as_str()], "an object without a note");
        assert!(!is_listed || !kept.is_empty(), "a picture without an object");
    }
    assert!(shop.staff(add("p1", &id)).await.status < 300);
    assert_eq!(each(&shop.send(pictures("p1")).await, "id"), [id.as_str()]);
}

#[tokio::test]
async fn a_list_of_pictures_takes_one_request_to_the_table_and_no_request_to_the_bucket() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    shop.pictured("p1").await;
    shop.objects.faults().add(Fault { kind: FaultKind::Reset, rate: 1.0, count: None, seed: 1 }).unwrap();
    let _ = shop.app.services.table.meter().take();
    let listed = shop.send(pictures("p1")).await;
    assert_eq!((listed.status, each(&listed, "id").len()), (200, 1));
    let cost = shop.app.services.table.meter().take();
    assert_eq!(cost.iter().map(|cost| (cost.pattern.id, cost.requests)).collect::<Vec<_>>(), [("pictures.list", 1)]);
    assert_eq!(shop.objects.faults().counts()[0].fired, 0);
}

#[tokio::test]
async fn a_retired_product_hides_its_list_of_pictures_until_it_is_revived() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let (kept, other, waiting) = (shop.pictured("p1").await, shop.pictured("p1").await, shop.uploaded("p1").await);
    let retire = Call::new("DELETE /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"");
    assert_eq!(shop.staff(retire).await.status, 204);
    for call in [pictures("p1"), permit("p1"), add("p1", &waiting), add("p1", &kept)] {
        assert_eq!(shop.staff(call).await.status, 404);
    }
    // Staff can remove a picture even from a retired product.
    assert_eq!(shop.staff(remove("p1", &other)).await.status, 204);
    assert_eq!(shop.staff(Call::new("POST /v1/products").json(&product("p1", 1))).await.status, 201);
    assert_eq!(each(&shop.send(pictures("p1")).await, "id"), [kept.as_str()]);
    for call in [permit("p2"), add("p2", &kept), remove("p2", &kept)] {
        assert_eq!(shop.staff(call).await.status, 404, "the product does not exist");
    }
}
