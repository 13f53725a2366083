//! Tests of `ops feed`.

use std::fs;
use std::path::Path;

use fixture::{TestTable, seed};
use key_schema::id::{Born, MediaId};
use key_schema::instant::Instant;
use key_schema::settings;
use ops::Items;
use ops::feed::{Fed, write};
use ops::migrate::Speed;
use serde_json::{Value, json};

const FAST: Speed = Speed { segments: 2, max_read_units: u32::MAX };

async fn feed(table: &TestTable, folder: &Path) -> (Fed, Vec<Value>) {
    let items = Items::new(table.client(), table.name().to_owned());
    let fed = write(&items, folder.to_owned(), "feed_1", Some("US"), FAST).await.unwrap();
    let text = fs::read_to_string(folder.join("products.jsonl")).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.sort_by_key(|product| product["id"].to_string());
    (fed, lines)
}

#[tokio::test]
async fn a_feed_has_all_that_is_sold_and_a_second_run_replaces_it() {
    let table = TestTable::create().await;
    let values = json!({ "agents": { "shop_url": "https://shop.example/", "api_url": "https://api.example" } });
    let born = Born::new("born").unwrap();
    let create = settings::create(&values.to_string(), &"{}".to_owned(), &born, Instant::now()).unwrap();
    table.transact(&create).await;
    let mut tea = seed::product("tea", seed::usd(500));
    tea.compare_at = Some(seed::usd(700));
    tea.summary = Some("Green tea".to_owned());
    tea.thumbnail = Some(MediaId::new("0123456789abcdef0123456789abcdef").unwrap());
    table.sell(tea, 0).await;
    table.sell(seed::product("shirt", seed::usd(900)), 0).await;
    table.vary("shirt", seed::product("shirt-m", seed::usd(950)), "M", 3).await;
    table.sell(seed::product("old", seed::usd(100)), 1).await;
    table.retire("old").await;

    let folder = tempfile::tempdir().unwrap();
    let (fed, lines) = feed(&table, folder.path()).await;
    assert_eq!(fed, Fed { products: 2, variants: 2 });
    let picture = json!([{
        "type": "image", "alt_text": "tea",
        "url": "https://api.example/v1/products/tea/pictures/0123456789abcdef0123456789abcdef",
    }]);
    let category = |product: &Value| product["variants"][0]["categories"][0]["value"].clone();
    let tea = json!({
        "id": "tea", "title": "tea", "description": { "plain": "Green tea" }, "url": "https://shop.example/p/tea",
        "media": picture,
        "variants": [{
            "id": "tea", "title": "tea", "price": { "amount": 500, "currency": "USD" },
            "list_price": { "amount": 700, "currency": "USD" }, "condition": ["new"],
            "availability": { "available": false, "status": "out_of_stock" },
            "categories": [{ "value": category(&lines[1]), "taxonomy": "merchant" }],
            "url": "https://shop.example/p/tea", "media": picture,
        }],
    });
    assert_eq!(lines[1], tea);
    let shirt = &lines[0]["variants"][0];
    assert_eq!(
        (&lines[0]["id"], &shirt["id"], &shirt["price"]["amount"]),
        (&json!("shirt"), &json!("shirt-m"), &json!(950))
    );
    assert_eq!(shirt["variant_options"], json!([{ "name": "size", "value": "M" }]));
    assert_eq!(shirt["availability"], json!({ "available": true, "status": "in_stock" }));
    let metadata: Value = serde_json::from_slice(&fs::read(folder.path().join("metadata.json")).unwrap()).unwrap();
    assert_eq!((&metadata["id"], &metadata["target_country"]), (&json!("feed_1"), &json!("US")));
    assert!(metadata["updated_at"].is_string());

    table.retire("tea").await;
    assert_eq!(feed(&table, folder.path()).await.1.len(), 1);
}

#[tokio::test]
async fn a_feed_without_the_shops_addresses_has_no_links() {
    let table = TestTable::create().await;
    table.sell(seed::product("tea", seed::usd(500)), 5).await;
    let folder = tempfile::tempdir().unwrap();
    let (_, lines) = feed(&table, &folder.path().join("new")).await;
    let variant = &lines[0]["variants"][0];
    assert_eq!((lines[0].get("url"), variant.get("url"), variant.get("media")), (None, None, None));
    assert_eq!(variant["availability"]["available"], true);
}
