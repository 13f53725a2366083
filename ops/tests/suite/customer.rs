//! Tests of `ops customer export`.

use fixture::seed;
use key_schema::document::{CustomerDocument, Tie};
use key_schema::id::LogId;
use key_schema::instant::Instant;
use key_schema::order::{CustomerOrder, OrderLog, OrderStatus};
use ops::customer::{PersonalData, export};

use crate::shop::Shop;
use crate::things::{order, with_meta};

async fn exported(shop: &Shop, customer: &str) -> PersonalData {
    export(&shop.table.table(), &customer.parse().unwrap()).await.unwrap()
}

#[tokio::test]
async fn the_export_has_orders_with_their_log_and_documents_with_their_texts() {
    let shop = Shop::open().await;
    for customer in ["c1", "c2"] {
        shop.table.sign_up(customer).await;
    }
    let head = order("o1", OrderStatus::Paid, 1);
    shop.put(&head).await;
    shop.put(&with_meta(CustomerOrder::of(&head), 1)).await;
    let log = OrderLog {
        id: LogId::generate(Instant::now(), [1; 10]),
        order_id: head.id.clone(),
        at: Instant::now(),
        by: "clerk".to_owned(),
        list_shards: key_schema::lists::FIRST,
        text: "Called back".to_owned(),
    };
    shop.put(&with_meta(log, 1)).await;
    shop.table.write(seed::document("d1", "c1", None, &[("a", "A text")])).await;
    // This document belongs to another customer.
    shop.table.write(seed::document("d2", "c2", None, &[("a", "Not mine")])).await;
    let tie =
        CustomerDocument { customer_id: "c1".parse().unwrap(), document_id: "d2".parse().unwrap(), tie: Tie::Editor };
    shop.put(&with_meta(tie, 1)).await;

    let data = exported(&shop, "c1").await;
    let text = serde_json::to_string(&data).unwrap();
    for part in ["Called back", "A text", "c1@example.com"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Not mine"), "{text}");
    let nobody = exported(&shop, "nobody").await;
    assert!(nobody.kinds.values().all(Vec::is_empty));
}
