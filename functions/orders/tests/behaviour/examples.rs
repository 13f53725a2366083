//! Runs the examples of `docs/design/pricing.md`.

use fixture::examples;
use http_api::sample::Answered;
use key_schema::id::TaxCategory;
use key_schema::pricing::{BASIS_POINT, ShippingMethod, ShippingRate, ShippingZone, TaxRule};
use key_schema::promotion::Promotion;
use serde_json::{Value, json};

use crate::quote::address;
use crate::shop::{Shop, money};

/// The number of rules with an example, without the one of carts.
const EXAMPLES: usize = 14;

#[tokio::test]
async fn each_example_of_the_page_on_pricing_holds() {
    let examples: Vec<_> =
        examples::pricing().into_iter().filter(|(_, example)| example["guest_cart"].is_null()).collect();
    assert_eq!(examples.len(), EXAMPLES);
    for (heading, example) in examples {
        let answer = quote(&example).await;
        let refusal = json!({ "code": answer.code(), "reason": answer.body["errors"][0]["reason"] });
        let (expected, shown) = match example.get("refused") {
            Some(refused) => (refused, &refusal),
            None => (&example["quote"], &answer.body),
        };
        assert!(holds(expected, shown), "{heading}: {expected}\n{}", answer.body);
    }
}

async fn quote(example: &Value) -> Answered {
    let shop = Shop::open().await;
    if let Some(settings) = example.get("settings") {
        shop.limit(settings).await;
    }
    for (id, product) in example["products"].as_object().unwrap() {
        let price = product.as_i64().or_else(|| product["price"].as_i64()).unwrap();
        shop.sell_with(id, price, |sold| {
            sold.tax_category = product["category"].as_str().map(|category| TaxCategory::new(category).unwrap());
        })
        .await;
    }
    let methods = list(example, "methods").map(method).collect::<Vec<_>>();
    if !methods.is_empty() {
        let zone = ShippingZone {
            id: "alps".parse().unwrap(),
            countries: vec!["CH".parse().unwrap()],
            regions: None,
            methods,
        };
        shop.add_rule(zone).await;
    }
    for (number, rule) in list(example, "tax_rules").enumerate() {
        shop.add_rule(tax_rule(number, rule)).await;
    }
    for promotion in list(example, "promotions") {
        shop.promote(self::promotion(promotion)).await;
    }
    let cart = example["cart"].as_array().unwrap();
    let lines: Vec<_> = cart.iter().map(|line| (line[0].as_str().unwrap(), line[1].as_u64().unwrap())).collect();
    shop.fill_cart(&lines).await;
    let mut address = address("CH");
    address["region"] = example["region"].clone();
    let method = example["shipping_method"].clone();
    let codes = example.get("codes").cloned().unwrap_or_else(|| json!([]));
    shop.quoted(&json!({ "shipping_address": address, "shipping_method": method, "codes": codes })).await
}

fn list<'a>(example: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    example[name].as_array().into_iter().flatten()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

fn method(method: &Value) -> ShippingMethod {
    let price = money(method["price"].as_i64().unwrap());
    ShippingMethod {
        id: text(method, "id").unwrap().parse().unwrap(),
        name: text(method, "id").unwrap(),
        days: method.get("days").map_or((1, 2), |days| serde_json::from_value(days.clone()).unwrap()),
        rates: vec![ShippingRate { up_to_grams: None, from_amount: None, price }],
        free_from: method["free_from"].as_i64().map(money),
    }
}

fn tax_rule(number: usize, rule: &Value) -> TaxRule {
    TaxRule {
        id: format!("rule-{number}").parse().unwrap(),
        country: "CH".parse().unwrap(),
        region: text(rule, "region"),
        category: TaxCategory::new(rule["category"].as_str().unwrap()).unwrap(),
        rate_millionths: u32::try_from(rule["rate_basis_points"].as_u64().unwrap()).unwrap() * BASIS_POINT,
        included: rule["included"].as_bool().unwrap(),
    }
}

fn promotion(promotion: &Value) -> Promotion {
    let mut reduction = json!({ "kind": promotion["kind"] });
    if let Some(value) = promotion.get("value") {
        reduction["value"] = value.clone();
    }
    Promotion {
        id: text(promotion, "id").unwrap().parse().unwrap(),
        code: text(promotion, "code"),
        name: text(promotion, "id").unwrap(),
        reduction: serde_json::from_value(reduction).unwrap(),
        conditions: serde_json::from_value(promotion.get("conditions").cloned().unwrap_or_else(|| json!({}))).unwrap(),
        exclusive: promotion["exclusive"].as_bool().unwrap_or_default(),
        priority: promotion["priority"].as_i64().unwrap_or_default(),
        ..crate::promotions::ten()
    }
}

/// Returns whether a response has the expected members. An expected integer is also equal to an
/// amount of US cents.
fn holds(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(_)) => {
            expected.iter().all(|(name, expected)| holds(expected, &actual[name.as_str()]))
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| holds(expected, actual))
        }
        (Value::Number(number), Value::Object(_)) => *actual == json!({ "amount": number, "currency": "USD" }),
        _ => expected == actual,
    }
}
