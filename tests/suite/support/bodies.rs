use key_schema::instant::Instant;
use serde_json::{Value as Json, json};

use super::openapi::api;

/// The base64 SHA-256 of an empty text.
const SHA256: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

pub fn address() -> Json {
    json!({
        "name": "Ann", "line1": "Münsterplatz 1", "city": "Ulm", "region": "BW", "postal_code": "89073",
        "country": "DE",
    })
}

pub fn question() -> Json {
    json!({ "subject": "Ice", "text": "Does it melt?" })
}

pub fn settings() -> Json {
    let orders = json!({ "quote_optional": true });
    let payments = json!({ "capture": "at_shipping" });
    json!({ "values": { "banner": "Ice", "orders": orders, "payments": payments }, "private": { "partner": "acme" } })
}

/// Returns a shipping zone of this country. Its method can ship every order.
pub fn zone(country: &str) -> Json {
    let rate = json!({ "price": { "amount": 500, "currency": "USD" } });
    let free_from = json!({ "amount": 9000, "currency": "USD" });
    let method = json!({ "id": "post", "name": "Post", "days": [1, 2], "rates": [rate], "free_from": free_from });
    json!({ "countries": [country], "regions": ["Ulm"], "methods": [method] })
}

/// Returns a promotion of 10 % with a code and limits.
pub fn promotion(id: &str, code: &str) -> Json {
    json!({
        "id": id, "name": "Sale", "code": code, "kind": "percentage", "value": 1000, "limit_total": 1_000_000,
        "limit_per_customer": 1_000_000,
    })
}

pub fn tax_rule(country: &str) -> Json {
    json!({
        "country": country, "region": "Ulm", "category": "standard", "rate_basis_points": 1900,
        "further_millionths": 0, "included": true,
    })
}

fn destination(country: &str) -> Json {
    json!({
        "name": "Ann", "line1": "1 Minster Square", "city": "Ulm", "region": "ulm", "postal_code": "89073",
        "country": country,
    })
}

pub fn shop() -> Json {
    json!({ "country": "DE", "city": "Ulm", "name": "By the minster" })
}

pub fn points(at: Instant) -> Json {
    let point = |id: &str| json!({ "name": "bad-metric", "value": 1.5, "at": at, "id": id });
    json!({ "points": [point("1"), point("2")] })
}

pub fn document(id: &str) -> Json {
    json!({ "id": id, "title": "T", "organization_id": "bad-org", "sections": { "a": "A" } })
}

/// Returns a body with every field that the operation accepts: the example in `openapi.yaml`, or
/// another one if the example lacks a field or names things that do not exist in the tests.
pub fn body(operation: &str) -> Json {
    let product = json!({
        "name": "Ice", "brand": "Private", "package_size": "22 LB", "category_path": ["bad", "x"],
        "price": { "amount": 129, "currency": "USD" }, "summary": "Cold.",
    });
    let with = |mut body: Json, more: Json| {
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let customer = json!({
        "email": "new@example.com", "username": "new", "name": "N", "place": { "country": "DE", "city": "Ulm" },
    });
    match operation {
        "createCustomer" => with(customer, json!({ "id": "bad-new" })),
        "changeCustomer" => with(customer, json!({ "email": "ann@example.com", "username": "ann", "tier": "gold" })),
        "putAddress" => address(),
        "createSession" | "putSession" => json!({ "device": "phone", "ttl_seconds": 3600 }),
        "createProduct" => with(product, json!({ "id": "bad-new", "stock": 5 })),
        "importProducts" => with(product, json!({ "id": "bad-imported", "stock": 5 })),
        "changeProduct" => product,
        "moveCategory" => json!({ "to": ["bad-moved", "x"] }),
        "uploadContent" => json!({ "content_type": "text/plain", "bytes": 5, "sha256": SHA256 }),
        "uploadPicture" => json!({ "content_type": "image/png", "bytes": 5, "sha256": SHA256 }),
        "putStock" => json!({ "set": 500 }),
        "putStockShards" => json!({ "shards": 4 }),
        "checkoutCart" => {
            with(api().example("Checkout"), json!({ "expected_total": { "amount": 129, "currency": "USD" } }))
        }
        "checkoutGuestCart" => {
            with(api().example("GuestCheckout"), json!({ "expected_total": { "amount": 129, "currency": "USD" } }))
        }
        "quoteGuestCart" => json!({
            "email": "ann@example.com", "name": "Ann", "shipping_address": destination("DE"),
            "billing_address": destination("FR"), "shipping_method": "post", "codes": [],
        }),
        "moveGuestOrder" => json!({ "to": "cancelled", "note": "N" }),
        "quoteCart" => json!({
            "shipping_address": destination("DE"), "billing_address": destination("FR"), "shipping_method": "post",
            "codes": ["SUMMER"],
        }),
        "createPromotion" => with(
            api().example("NewPromotion"),
            json!({
                "id": "bad-new", "code": "NEW", "exclusive": true, "priority": 1,
                "conditions": {
                    "min_amount": { "amount": 100, "currency": "USD" }, "tier": "silver", "first_order": true,
                    "from": "2026-01-01T00:00:00.000Z", "until": "2036-01-01T00:00:00.000Z",
                },
            }),
        ),
        "changePromotion" => json!({
            "name": "N", "value": 500, "applies_to": "all", "limit_total": 5, "limit_per_customer": 1,
            "exclusive": false, "priority": 2, "conditions": { "first_order": false, "tier": null },
        }),
        "putShippingZone" => zone("DE"),
        "putTaxRule" => tax_rule("DE"),
        "placeOrder" => with(
            api().example("NewOrder"),
            json!({
                "customer_id": "bad-ann", "reference": "bad-reference", "placed_at": "2017-01-01T00:00:00Z",
                "store_id": "330",
                "lines": [{ "product_id": "bad-1", "quantity": 1, "total": { "amount": 100, "currency": "USD" } }],
            }),
        ),
        "moveOrder" => json!({
            "to": "shipped", "note": "N", "carrier": "DHL", "tracking": "0034", "pay_from_wallet": false,
        }),
        "payOrder" | "payGuestOrder" => json!({ "method": "card", "amount": { "amount": 100, "currency": "USD" } }),
        "capturePayment" => json!({ "amount": { "amount": 100, "currency": "USD" } }),
        "refundPayment" => json!({
            "amount": { "amount": 5, "currency": "USD" }, "reason": "R", "lines": [{ "line": 1, "quantity": 1 }],
        }),
        "refundOrder" => json!({ "amount": { "amount": 29, "currency": "USD" } }),
        "transferMoney" => {
            json!({ "from": "bad-ann", "to": "bad-bob", "amount": { "amount": 100, "currency": "USD" }, "note": "N" })
        }
        "putStore" => shop(),
        "putSettings" => settings(),
        "storeMetrics" => points(Instant::now()),
        "foundOrganization" => json!({ "id": "bad-new", "name": "N" }),
        "putMember" => json!({ "role": "admin", "team": "bad-team" }),
        "createDocument" => document("bad-new"),
        other => {
            let operation = api().operations().find(|operation| operation.own["operationId"] == other).unwrap();
            let schema = api().follow(operation.body().unwrap());
            schema["examples"].as_array().and_then(|examples| examples.last()).unwrap().clone()
        }
    }
}
