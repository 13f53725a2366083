//! Tests of placing an order.

use crate::shop::{Shop, errors, order};

#[tokio::test]
async fn a_refused_order_names_the_product_of_each_line() {
    let shop = Shop::open().await;
    for (product, stock) in [("tea", 1), ("rice", 10), ("salt", 0)] {
        shop.product(product, stock).await;
    }
    let short = shop.send(order(&[("tea", 2), ("rice", 1), ("salt", 3)], "short")).await;
    assert_eq!((short.status, short.code()), (409, Some("insufficient_stock")));
    // Only staff see the exact stock. Every caller sees that a product is out of stock.
    let lines = [("/lines/0/quantity", "tea", "not enough in stock"), ("/lines/2/quantity", "salt", "out of stock")];
    assert_eq!(errors(&short), lines);
    let by_staff = shop.send(order(&[("tea", 2), ("rice", 1), ("salt", 3)], "staff").staff("s1")).await;
    assert_eq!((by_staff.status, by_staff.code()), (409, Some("insufficient_stock")));
    let lines = [("/lines/0/quantity", "tea", "only 1 in stock"), ("/lines/2/quantity", "salt", "out of stock")];
    assert_eq!(errors(&by_staff), lines);

    let twice = shop.send(order(&[("tea", 1), ("rice", 1), ("tea", 1)], "twice")).await;
    assert_eq!((twice.status, twice.code()), (422, Some("invalid_body")));
    assert_eq!(errors(&twice), [("/lines/2/product_id", "tea", "is in an earlier line already")]);

    shop.retire("salt").await;
    let gone = shop.send(order(&[("nothing", 1), ("rice", 1), ("salt", 1)], "gone")).await;
    assert_eq!((gone.status, gone.code()), (422, Some("unknown_product")));
    let detail = "is not in the catalogue";
    assert_eq!(errors(&gone), [("/lines/0/product_id", "nothing", detail), ("/lines/2/product_id", "salt", detail)]);
    assert_eq!(shop.stock("rice").await, 10);
}
