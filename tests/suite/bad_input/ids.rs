//! Tests ids in any script and with every special character of a path, from creation to removal.

use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::shop::{listed, order_body, order_call, path, product_body, stock};
use crate::support::{drain, with_system};

/// Returns unusual but valid ids.
fn ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "a#b",
        "#",
        "a b",
        "a+b",
        "a&b=c",
        "a@b|c",
        "a~b_20",
        "..a",
        "'\"`",
        "<b>",
        "{id}",
        "$",
        "CUSTOMER#x",
        "PROFILE",
        "import",
        "Ä",
        "Straße",
        "Ελλάδα",
        "Россия",
        "ישראל",
        "العربية",
        "भारत",
        "商品",
        "日本語",
        "한국",
        "🧊",
        "null",
        "0",
        "-1",
        "True",
    ]
    .map(|id| format!("ids-{id}"))
    .into();
    // These are the longest ids. Their characters need the most bytes in a key, in UTF-8 or in a
    // URL.
    ids.extend([
        format!("ids-{}", "#".repeat(124)),
        format!("ids-{}", "ä".repeat(62)),
        format!("ids-{}", "🧊".repeat(31)),
    ]);
    ids
}

fn staff(path: &str) -> Call {
    Call::new("GET", path).staff()
}

async fn read(system: &System, path: &str) -> Json {
    staff(path).send(system).await.expect(200).body
}

/// Returns whether a list has an entry with this id in this field.
async fn is_listed(system: &System, path: &str, field: &str, id: &str) -> bool {
    listed(system, path, 100, staff).await.iter().any(|entry| entry[field] == id)
}

async fn delete(system: &System, path: &str) {
    let thing = staff(path).send(system).await;
    let tag = thing.headers.get("etag").cloned().unwrap_or_default();
    let call = Call::new("DELETE", path).staff();
    let call = if tag.is_empty() { call } else { call.header("if-match", &tag) };
    // A removal that ends with 503 may be complete. Then its repetition gets 404.
    let removed = call.settled(system).await;
    assert!([204, 404].contains(&removed.status), "{path}: {}", removed.body);
    let gone = staff(path).send(system).await;
    assert!([404, 403].contains(&gone.status), "{path} is still there: {}", gone.status);
}

/// Uses one id as customer, address, product, reviewer, reference and store, each from creation to
/// removal.
async fn live(system: &System, id: &str, n: usize) {
    // The email address and the user name contain a number instead of the id. Bodega compares
    // addresses and names in a folded form, so two different ids could give equal addresses. It
    // compares ids unchanged.
    let body =
        json!({ "id": id, "email": format!("ids-{n}@example.com"), "username": format!("ids {n}"), "name": "N" });
    let created = Call::new("POST", "/v1/customers").staff().json(&body).send(system).await.expect(201);
    let own = path(&["customers", id]);
    assert_eq!((&created.body["id"], &created.headers["location"]), (&json!(id), &own));
    assert_eq!(read(system, &own).await, created.body);
    // The customer's token has this id as its `sub`.
    Call::new("GET", &own).customer(id).send(system).await.expect(200);

    let product = product_body(id, &["ids", id], 10);
    let created = Call::new("POST", "/v1/products").staff().json(&product).send(system).await.expect(201);
    let shelf = path(&["products", id]);
    assert_eq!((&created.body["id"], &created.headers["location"]), (&json!(id), &shelf));
    assert_eq!(read(system, &shelf).await["id"], id);
    assert_eq!(read(system, &(shelf.clone() + "/numbers")).await["stock"], created.body["stock"]);
    assert!(is_listed(system, "/v1/categories/ids/products", "id", id).await);
    let leaf = listed(system, "/v1/categories/ids/children", 100, staff).await;
    let leaf = leaf.iter().find(|category| category["name"] == id).unwrap()["id"].as_str().unwrap().to_owned();
    assert!(is_listed(system, &format!("/v1/categories/{leaf}/products"), "id", id).await);

    let put = |segments: &[&str], body: Json| Call::new("PUT", &path(segments)).staff().json(&body);
    let address = json!({ "name": "N", "line1": "S", "city": "C", "country": "QA" });
    let found = put(&["customers", id, "addresses", id], address).send(system).await.expect(200);
    assert_eq!(found.body["addresses"][id]["city"], "C");
    put(&["customers", id, "cart", "items", id], json!({ "quantity": 2 })).send(system).await.expect(200);
    assert_eq!(read(system, &path(&["customers", id, "cart", "items", id])).await["product_id"], id);
    assert_eq!(read(system, &path(&["customers", id, "cart"])).await["items"][0]["product_id"], id);
    let review = put(&["products", id, "reviews", id], json!({ "rating": 3, "title": "T", "text": "T" }));
    review.header("if-none-match", "*").send(system).await.expect(201);
    assert_eq!(read(system, &path(&["customers", id, "reviews", id])).await["customer_id"], id);
    assert!(is_listed(system, &path(&["customers", id, "reviews"]), "product_id", id).await);
    put(&["products", id, "content"], json!({ "text": id }))
        .header("if-none-match", "*")
        .send(system)
        .await
        .expect(201);
    assert_eq!(read(system, &path(&["products", id, "content"])).await["product_id"], id);
    let session = Call::new("POST", &path(&["customers", id, "sessions"])).customer(id).json(&json!({ "device": id }));
    let session = session.send(system).await.expect(201).body;
    assert!(is_listed(system, &path(&["customers", id, "sessions"]), "device", id).await);

    let question = json!({ "subject": "S", "text": id });
    let asked = Call::new("POST", &path(&["customers", id, "questions"])).customer(id).json(&question);
    let asked = asked.send(system).await.expect(201).headers["location"].clone();
    assert!(is_listed(system, &path(&["customers", id, "questions"]), "customer_id", id).await);
    assert_eq!(read(system, &path(&["customers", id, "support"])).await["questions"][0]["text"], id);
    assert_eq!(read(system, &asked).await["customer_id"], id);

    let mut body = order_body(id, &[(id, 3)]);
    body["reference"] = json!(id);
    body["store_id"] = json!(id);
    let order = order_call(&body, &format!("ids {n}")).staff().send(system).await.expect(201);
    let basket = order.headers["location"].clone();
    assert_eq!(read(system, &basket).await, order.body);
    assert_eq!((&order.body["reference"], &order.body["store_id"]), (&json!(id), &json!(id)));
    assert_eq!(order.body["lines"][0]["product_id"], id);
    assert!(is_listed(system, &path(&["customers", id, "orders"]), "reference", id).await);
    assert_eq!(stock(system, id).await, 7);
    let found = read(system, &path(&["customers", id, "overview"])).await;
    assert_eq!((&found["customer"]["id"], &found["orders"][0]["reference"]), (&json!(id), &json!(id)));
    let checkout = Call::new("POST", &path(&["customers", id, "cart", "checkout"])).customer(id).json(&json!({}));
    checkout.send(system).await.expect(201);
    assert_eq!(stock(system, id).await, 5);

    let fan = format!("fan {n} #");
    let body =
        json!({ "id": fan, "email": format!("fan-{n}@example.com"), "username": format!("fan {n}"), "name": "N" });
    Call::new("POST", "/v1/customers").staff().json(&body).send(system).await.expect(201);
    for (one, other) in [(id, fan.as_str()), (fan.as_str(), id)] {
        let edge = path(&["customers", one, "following", other]);
        let made = Call::new("PUT", &edge).staff().send(system).await.expect(201);
        assert_eq!((&made.headers["location"], &read(system, &edge).await), (&edge, &made.body));
    }
    assert!(is_listed(system, &path(&["customers", id, "following"]), "followed_id", &fan).await);
    assert!(is_listed(system, &path(&["customers", id, "followers"]), "customer_id", &fan).await);
    let liked = path(&["customers", id, "likes", id]);
    Call::new("PUT", &liked).staff().send(system).await.expect(201);
    assert_eq!(read(system, &liked).await["product_id"], id);
    assert_eq!(read(system, &path(&["products", id, "likes"])).await["count"], 1);
    assert!(is_listed(system, &path(&["customers", id, "likes"]), "product_id", id).await);
    assert!(is_listed(system, &path(&["products", id, "likers"]), "customer_id", id).await);

    drain(system).await;
    let bought = path(&["graph", id, "edges"]) + "?kind=bought";
    let bought = listed(system, &bought, 100, staff).await;
    assert!(bought.len() == 2 && bought.iter().all(|edge| edge["target"] == id));
    let sold = listed(system, &path(&["products", id, "sales"]), 100, staff).await;
    assert_eq!(sold.len(), 2);
    assert!(is_listed(system, "/v1/search/products?category=ids&sort=newest", "id", id).await);

    delete(system, &path(&["products", id, "reviews", id])).await;
    delete(system, &shelf).await;
    assert!(!is_listed(system, "/v1/categories/ids/products", "id", id).await);
    let address = path(&["customers", id, "addresses", id]);
    Call::new("DELETE", &address).staff().send(system).await.expect(204);
    let ended = path(&["sessions", session["id"].as_str().unwrap()]);
    Call::new("DELETE", &ended).customer(id).send(system).await.expect(204);
    assert_eq!(read(system, &own).await["addresses"], json!({}));
    delete(system, &own).await;
    staff(&asked).send(system).await.expect(404);
}

#[test]
fn an_id_in_any_script_and_with_any_special_character_works_from_creation_to_removal() {
    with_system(async |system| {
        let ids = ids();
        futures::future::join_all(ids.iter().enumerate().map(|(n, id)| live(system, id, n))).await;
    });
}
