//! Checks that a peer does the same as Bodega. Otherwise a comparison of times means nothing.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::routes::{LINES, PAGE, Server};
use super::shop::{SCARCE, Shop};
use crate::BenchError;

/// Places an order through a peer, repeats the request, and orders more than the stock. Bodega must
/// then show the same order and the right stock. Peer and Bodega must return equal products and
/// equal lists of orders.
pub(super) async fn same(shop: &Shop, peer: Server) -> Result<(), BenchError> {
    let (ours, theirs) = (Server::Bodega, peer);
    // Bodega shows a level of the stock, and the peers show the stock. So the closure removes both.
    let product = async |server, id: &str| {
        let mut product = shop.json(shop.get(server, &format!("/products/{id}")), StatusCode::OK).await?;
        if let Some(fields) = product.as_object_mut() {
            fields.retain(|name, _| !["in_stock", "availability", "stock", "sold"].contains(&name.as_str()));
        }
        Ok::<_, BenchError>(product)
    };
    for id in [shop.product(0).as_str(), SCARCE] {
        equal(peer, "the product", &product(theirs, id).await?, &product(ours, id).await?)?;
    }

    let stocks = async || {
        let mut stocks = Vec::with_capacity(LINES);
        for n in 0..LINES {
            stocks.push(Some(shop.stock(&shop.product(n)).await?));
        }
        Ok::<_, BenchError>(stocks)
    };
    let before = stocks().await?;
    // Each product has a different quantity.
    let lines = |first: u64| -> Vec<Value> {
        (0..LINES)
            .zip(first..)
            .map(|(n, quantity)| json!({"product_id": shop.product(n), "quantity": quantity}))
            .collect()
    };
    let customer = shop.customer(0);
    let key = format!("check-{peer:?}");
    let place = async |key: &str, lines: Vec<Value>, expected| {
        let body = json!({"customer_id": customer.id, "lines": lines});
        let order = shop.post(theirs, "/orders", &body).bearer_auth(&customer.token).header("idempotency-key", key);
        shop.json(order, expected).await
    };
    let order = place(&key, lines(1), StatusCode::CREATED).await?;
    shop.placed((1..).take(LINES).sum());
    let again = place(&key, lines(1), StatusCode::CREATED).await?;
    equal(peer, "the repeated order", &again, &order)?;
    let path = format!("/orders/{}", order.get("id").and_then(Value::as_str).unwrap_or_default());
    let stored = shop.json(shop.get(ours, &path).bearer_auth(&customer.token), StatusCode::OK).await?;
    equal(peer, "the order", &order, &stored)?;
    place(&key, lines(2), StatusCode::UNPROCESSABLE_ENTITY).await?;

    let mut too_much = lines(1);
    too_much.push(json!({"product_id": SCARCE, "quantity": 2}));
    let refused = place(&format!("{key}-scarce"), too_much, StatusCode::CONFLICT).await?;
    equal(peer, "the refusal", refused.get("code").unwrap_or(&Value::Null), &json!("insufficient_stock"))?;
    let left = before.iter().zip(1..).map(|(stock, taken)| stock.map(|stock| stock.saturating_sub(taken)));
    equal(peer, "the stock", &json!(stocks().await?), &json!(left.collect::<Vec<Option<u64>>>()))?;

    let list = async |server| {
        let path = format!("/customers/{}/orders?limit={PAGE}", customer.id);
        shop.json(shop.get(server, &path).bearer_auth(&customer.token), StatusCode::OK).await
    };
    let (found, expected) = (list(theirs).await?, list(ours).await?);
    let items = |page: &Value| page.get("items").cloned().unwrap_or_default();
    equal(peer, "the list of orders", &items(&found), &items(&expected))?;
    if items(&found).get(0).and_then(|first| first.get("id")) != order.get("id") {
        return Err(wrong!("{peer:?}: the newest order is not the first of the list"));
    }
    // Wait for the effects of the orders, so that the consumer is idle when the measurement starts.
    shop.drain().await.map(drop)
}

fn equal(peer: Server, what: &str, found: &Value, expected: &Value) -> Result<(), BenchError> {
    if found == expected { Ok(()) } else { Err(wrong!("{peer:?}: {what} is {found} instead of {expected}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_difference_shows_both_values() {
        assert!(equal(Server::Node, "x", &json!({"a": 1, "b": [2]}), &json!({"b": [2], "a": 1})).is_ok());
        let told = equal(Server::Node, "the stock", &json!([1]), &json!([2])).map_err(|error| error.to_string());
        assert_eq!(told, Err("Node: the stock is [1] instead of [2]".to_owned()));
    }
}
