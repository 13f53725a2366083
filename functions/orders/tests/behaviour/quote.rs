//! Tests of quotes, and of checkouts with a quote.

use http_api::sample::{Answered, Call};
use key_schema::cart;
use key_schema::id::TaxCategory;
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::pricing::{self, Rules, ShippingMethod, ShippingRate, ShippingZone, TaxRule};
use key_schema::product::Product;
use serde_json::{Value, json};

use crate::shop::{Shop, checkout, errors, money, reasons, stored};

pub fn address(country: &str) -> Value {
    let code = if country == "DE" { "80331" } else { "8000" };
    json!({ "name": "Ann", "line1": "Main Street 1", "city": "Town", "postal_code": code, "country": country })
}

fn quote() -> Call {
    Call::new("POST /v1/customers/{id}/cart/quote").path("id", "ann").customer("ann")
}

pub fn usd(amount: i64) -> Value {
    json!(money(amount))
}

impl Shop {
    pub async fn rules(&self) -> Rules {
        Rules::from_items(self.own().query(&pricing::read_for_update().unwrap()).await.unwrap().items)
    }

    pub async fn add_rule<E: Entity>(&self, rule: E) {
        self.transact(&pricing::create(&self.rules().await, &stored(rule)).unwrap()).await;
    }

    /// Adds a zone of Switzerland. A parcel costs 5 dollars up to 2 kg and 9 dollars up to 10 kg. A
    /// courier costs 20 dollars.
    pub async fn add_zone(&self) {
        self.add_zone_with(500).await;
    }

    /// Adds the same zone with another price of the lighter parcel.
    pub async fn add_zone_with(&self, price: i64) {
        self.add_rule(zone(price)).await;
    }

    pub async fn change_zone(&self, zone: &ShippingZone) {
        let rules = self.rules().await;
        let version = rules.zones[0].meta.version;
        self.transact(&pricing::change_zone(&rules, zone, version, Instant::now()).unwrap()).await;
    }

    pub async fn add_tax(&self, id: &str, category: &str, rate_millionths: u32, included: bool) {
        let (country, category) = ("CH".parse().unwrap(), TaxCategory::new(category).unwrap());
        self.add_rule(TaxRule { id: id.parse().unwrap(), country, region: None, category, rate_millionths, included })
            .await;
    }

    /// Creates a product with changed fields.
    pub async fn sell_with(&self, id: &str, price: i64, change: impl FnOnce(&mut Product)) {
        let mut product = fixture::seed::product(id, money(price));
        change(&mut product);
        self.sell(product, 10).await;
    }

    pub async fn quoted(&self, body: &Value) -> Answered {
        self.send(quote().json(body)).await
    }
}

fn rate(up_to_grams: Option<u64>, price: i64) -> ShippingRate {
    ShippingRate { up_to_grams, from_amount: None, price: money(price) }
}

pub fn zone(price: i64) -> ShippingZone {
    let method = |id: &str, name: &str, days, rates| ShippingMethod {
        id: id.parse().unwrap(),
        name: name.to_owned(),
        days,
        rates,
        free_from: None,
    };
    ShippingZone {
        id: "alps".parse().unwrap(),
        countries: vec!["CH".parse().unwrap()],
        regions: None,
        methods: vec![
            method("courier", "Courier", (1, 1), vec![rate(None, 2000)]),
            method("post", "Parcel", (2, 4), vec![rate(Some(2000), price), rate(Some(10_000), 900)]),
        ],
    }
}

/// Opens a shop with a zone, two tax rates, and a cart with 3 teas and a book.
async fn shop() -> Shop {
    let shop = Shop::open().await;
    shop.add_zone().await;
    shop.add_tax("goods", "standard", 81_000, true).await;
    shop.add_tax("books", "reduced", 26_000, true).await;
    shop.sell_with("tea", 1081, |tea| tea.weight_grams = Some(500)).await;
    shop.sell_with("book", 2052, |book| {
        book.weight_grams = Some(400);
        book.tax_category = Some(TaxCategory::new("reduced").unwrap());
    })
    .await;
    shop.fill_cart(&[("tea", 3), ("book", 1)]).await;
    shop
}

#[tokio::test]
async fn a_quote_has_the_parts_of_the_price_and_a_checkout_charges_exactly_that() {
    let shop = shop().await;
    let quoted = shop.quoted(&json!({ "shipping_address": address("CH") })).await;
    assert_eq!(quoted.status, 200, "{}", quoted.body);
    let body = &quoted.body;
    // The cart's 1,900 grams are within the first rate. The cheapest method is chosen.
    assert_eq!(body["shipping_method"], json!("post"));
    assert_eq!(
        body["shipping_methods"],
        json!([
            { "id": "post", "name": "Parcel", "days": [2, 4], "price": usd(500) },
            { "id": "courier", "name": "Courier", "days": [1, 1], "price": usd(2000) },
        ])
    );
    // The tea costs 3 × 1,081 = 3,243, which includes a tax of 243. The book's 2,052 include 52,
    // and the 500 for shipping include 37.
    let lines = body["lines"].as_array().unwrap();
    let of = |line: &Value| (line["product_id"].clone(), line["tax"].clone(), line["total"].clone());
    assert_eq!(
        lines.iter().map(of).collect::<Vec<_>>(),
        [(json!("tea"), usd(243), usd(3243)), (json!("book"), usd(52), usd(2052))]
    );
    let rate =
        |basis_points: u64| json!({ "rate_basis_points": basis_points, "further_millionths": 0, "included": true });
    let rates: Vec<&Value> = lines.iter().map(|line| &line["tax_rate"]).collect();
    assert_eq!(rates, [&rate(810), &rate(260)]);
    let totals = json!({ "items": usd(5295), "discount": usd(0), "shipping": usd(500), "tax": usd(332),
        "total": usd(5795) });
    assert_eq!((&body["totals"], &body["tax_rounding"]), (&totals, &json!("line")));
    let tax_line = |rate: u64, amount: i64, tax: i64| {
        json!({ "rate_basis_points": rate, "further_millionths": 0, "included": true, "amount": usd(amount),
            "tax": usd(tax) })
    };
    assert_eq!(body["tax_lines"], json!([tax_line(260, 2052, 52), tax_line(810, 3743, 280)]));

    let other = shop.check_out(&json!({ "quote_id": body["id"], "expected_total": usd(5794) })).await;
    assert_eq!((other.status, other.code()), (409, Some("price_changed")), "{}", other.body);
    let placed = shop.check_out(&json!({ "quote_id": body["id"], "expected_total": usd(5795) })).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    let order = &placed.body;
    assert_eq!((&order["total"], &order["totals"]), (&usd(5795), &totals));
    let method = &order["shipping_method"];
    for field in ["id", "name", "days", "price"] {
        assert_eq!(method[field], body["shipping_methods"][0][field], "{field}");
    }
    assert_eq!((&method["tax"], &method["total"]), (&usd(37), &usd(500)));
    assert_eq!(method["tax_lines"], json!([tax_line(810, 500, 37)]));
    assert_eq!((&order["tax_lines"], &order["tax_rounding"]), (&body["tax_lines"], &body["tax_rounding"]));
    assert_eq!(order["shipping_address"], address("CH"));
    for (line, quoted) in order["lines"].as_array().unwrap().iter().zip(lines) {
        for field in ["product_id", "quantity", "unit_price", "discount", "tax", "total"] {
            assert_eq!(line[field], quoted[field], "{field}");
        }
    }
    let read = Call::new("GET /v1/orders/{id}").path("id", order["id"].as_str().unwrap()).customer("ann");
    assert_eq!(shop.send(read).await.body, *order);
}

/// A quote reserves nothing, and what is in stock may change until the checkout.
#[tokio::test]
async fn a_quote_says_which_lines_are_available_and_this_does_not_change_the_quote() {
    let shop = shop().await;
    let body = json!({ "shipping_address": address("CH") });
    let available = |quote: &Value| {
        let lines = quote["lines"].as_array().unwrap().iter();
        lines.map(|line| line["available"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    let earlier = shop.quoted(&body).await.body;
    assert_eq!(available(&earlier), [true, true]);
    shop.set_stock("tea", 2).await;
    let quote = shop.quoted(&body).await.body;
    assert_eq!((available(&quote), &quote["totals"]), (vec![false, true], &earlier["totals"]));
    let _ = shop.app.services.table.meter().take();
    shop.quoted(&body).await;
    let read = shop.app.services.table.meter().take();
    let requests: Vec<_> = read.iter().filter(|cost| cost.pattern.id == "carts.products").collect();
    assert_eq!((requests.len(), requests[0].requests), (1, 1), "all products and stocks take one request");
    for quote in [&earlier, &quote] {
        let short = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
        assert_eq!((short.status, short.code()), (409, Some("insufficient_stock")), "{}", short.body);
        assert_eq!((short.pointers(), reasons(&short)), (vec!["/items/0/quantity"], vec!["insufficient_stock"]));
    }
    shop.delete_at("STOCK#book#main#00000000000000000000", "STOCK").await;
    assert_eq!(available(&shop.quoted(&body).await.body), [false, false], "a stock must be repaired");
    shop.set_stock("book", 1).await;
    shop.set_stock("tea", 3).await;
    let placed = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
}

#[tokio::test]
async fn a_line_of_an_order_keeps_the_picture_that_the_product_had_at_the_checkout() {
    let shop = Shop::open().await;
    let pictured = |id: &str| {
        stored(Product { thumbnail: Some(id.parse().unwrap()), ..fixture::seed::product("tea", money(100)) })
    };
    let path = |id: &str| json!(format!("/v1/products/tea/pictures/{id}"));
    shop.product("tea", 10).await;
    shop.put(&pictured("first")).await;
    shop.fill_cart(&[("tea", 1)]).await;
    let quote = shop.quoted(&json!({})).await.body;
    assert_eq!(quote["lines"][0]["thumbnail"], path("first"));
    // A new picture does not change the quote.
    shop.put(&pictured("second")).await;
    let placed = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!((placed.status, &placed.body["lines"][0]["thumbnail"]), (201, &path("second")), "{}", placed.body);
    shop.put(&pictured("third")).await;
    shop.retire("tea").await;
    let of = |route: &'static str| Call::new(route).path("id", placed.body["id"].as_str().unwrap()).customer("ann");
    let [order, lines] = [of("GET /v1/orders/{id}"), of("GET /v1/orders/{id}/lines")].map(|call| shop.send(call));
    let (order, lines) = futures::future::join(order, lines).await;
    assert_eq!((&order.body["lines"], &lines.body["items"]), (&placed.body["lines"], &placed.body["lines"]));
    shop.product("rice", 10).await;
    shop.fill_cart(&[("rice", 1)]).await;
    let plain = shop.check_out(&json!({})).await;
    assert_eq!(plain.body["lines"][0].get("thumbnail"), Some(&Value::Null), "{}", plain.body);
}

#[tokio::test]
async fn tax_that_prices_do_not_include_is_added_to_lines_and_shipping() {
    let shop = Shop::open().await;
    shop.add_zone().await;
    shop.add_tax("all", "standard", 100_000, false).await;
    shop.sell_with("tea", 1000, |_| {}).await;
    shop.fill_cart(&[("tea", 2)]).await;
    let body = shop.quoted(&json!({ "shipping_address": address("CH") })).await.body;
    let totals = json!({ "items": usd(2000), "discount": usd(0), "shipping": usd(500), "tax": usd(250),
        "total": usd(2750) });
    assert_eq!((&body["totals"], &body["lines"][0]["total"]), (&totals, &usd(2200)));
    let placed = shop.check_out(&json!({ "quote_id": body["id"] })).await;
    assert_eq!((placed.status, &placed.body["totals"]), (201, &totals), "{}", placed.body);
}

#[tokio::test]
async fn the_wanted_method_is_charged_and_another_one_is_refused() {
    let shop = shop().await;
    let of = |method: &str| json!({ "shipping_address": address("CH"), "shipping_method": method });
    let body = shop.quoted(&of("courier")).await.body;
    assert_eq!((&body["shipping_method"], &body["totals"]["shipping"]), (&json!("courier"), &usd(2000)));
    let placed = shop.check_out(&json!({ "quote_id": body["id"] })).await.body;
    assert_eq!(placed["shipping_method"]["id"], json!("courier"), "{placed}");

    shop.fill_cart(&[("tea", 1)]).await;
    let refused = shop.quoted(&of("drone")).await;
    assert_eq!((refused.status, refused.code()), (409, Some("shipping_unavailable")));
    assert_eq!(refused.pointers(), ["/shipping_method"]);
    // The post takes parcels of up to 10 kg, so only the courier is left.
    shop.sell_with("rock", 100, |rock| rock.weight_grams = Some(10_001)).await;
    shop.replace_cart(&[("rock", 1)]).await;
    assert_eq!(shop.quoted(&of("post")).await.code(), Some("shipping_unavailable"));
    assert_eq!(shop.quoted(&json!({ "shipping_address": address("CH") })).await.body["shipping_method"], "courier");
}

#[tokio::test]
async fn goods_cannot_be_sent_where_no_zone_has_the_country() {
    let shop = shop().await;
    let refused = shop.quoted(&json!({ "shipping_address": address("DE") })).await;
    assert_eq!((refused.status, refused.code()), (409, Some("shipping_unavailable")), "{}", refused.body);
    let missing = shop.quoted(&json!({})).await;
    assert_eq!((missing.status, missing.pointers()), (422, vec!["/shipping_address"]));
}

#[tokio::test]
async fn goods_that_are_not_shipped_need_no_method_and_are_taxed_at_the_address() {
    let shop = shop().await;
    shop.sell_with("song", 1081, |song| song.shippable = Some(false)).await;
    shop.replace_cart(&[("song", 1)]).await;
    let body = shop.quoted(&json!({ "shipping_address": address("CH") })).await.body;
    assert_eq!((&body["shipping_methods"], &body["shipping_method"]), (&json!([]), &Value::Null), "{body}");
    assert_eq!((&body["totals"]["tax"], &body["totals"]["total"]), (&usd(81), &usd(1081)));
    assert_eq!(body["tax_lines"].as_array().unwrap().len(), 1, "nothing is taxed like shipping");
    let placed = shop.check_out(&json!({ "quote_id": body["id"] })).await;
    assert_eq!((placed.status, placed.body.get("shipping_method")), (201, None), "{}", placed.body);
}

#[tokio::test]
async fn goods_that_are_not_shipped_need_no_address_without_tax_rules() {
    let shop = Shop::open().await;
    shop.add_zone().await;
    shop.sell_with("song", 1081, |song| song.shippable = Some(false)).await;
    shop.fill_cart(&[("song", 1)]).await;
    let quoted = shop.quoted(&json!({ "shipping_method": "post" })).await;
    assert_eq!((quoted.status, &quoted.body["totals"]["total"]), (200, &usd(1081)), "{}", quoted.body);
    let placed = shop.check_out(&json!({ "quote_id": quoted.body["id"] })).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
}

#[tokio::test]
async fn a_quote_without_an_address_is_outdated_by_the_first_rule() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.fill_cart(&[("tea", 2)]).await;
    let quote = shop.quoted(&json!({})).await.body;
    shop.add_tax("all", "standard", 100_000, true).await;
    let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!((refused.status, refused.code()), (409, Some("quote_changed")), "{}", refused.body);
    let alone = shop.quoted(&json!({ "billing_address": address("CH") })).await;
    assert_eq!((alone.status, alone.pointers()), (422, vec!["/shipping_address"]));
}

#[tokio::test]
async fn a_quote_names_each_part_that_has_changed_since() {
    let shop = shop().await;
    let body = json!({ "shipping_address": address("CH") });
    let with = async |quote: &Value| {
        let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
        assert_eq!((refused.status, refused.code()), (409, Some("quote_changed")), "{}", refused.body);
        refused.pointers().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let quote = shop.quoted(&body).await.body;
    shop.put(&stored(Product { weight_grams: Some(500), ..fixture::seed::product("tea", money(1082)) })).await;
    assert_eq!(with(&quote).await, ["/items/0/unit_price", "/tax_lines"]);

    let quote = shop.quoted(&body).await.body;
    shop.change_zone(&zone(501)).await;
    assert_eq!(with(&quote).await, ["/shipping_methods", "/tax_lines"]);

    let quote = shop.quoted(&body).await.body;
    shop.replace_cart(&[("tea", 3)]).await;
    assert_eq!(with(&quote).await, ["/items", "/tax_lines"]);

    let quote = shop.quoted(&body).await.body;
    shop.change_zone(&ShippingZone { countries: vec!["DE".parse().unwrap()], ..zone(500) }).await;
    assert_eq!(with(&quote).await, ["/shipping_methods"], "the zone no longer has the country");

    shop.change_zone(&zone(500)).await;
    let quote = shop.quoted(&body).await.body;
    let mut renamed = zone(500);
    renamed.methods[1].name = "Slow boat".to_owned();
    shop.change_zone(&renamed).await;
    assert_eq!(with(&quote).await, ["/shipping_methods"]);
    assert!(shop.has_cart().await);
    assert_eq!(shop.stock("tea").await, 10);
}

/// The cart cannot be sent any more, because the rock is too heavy for the quoted method.
#[tokio::test]
async fn a_changed_quote_names_each_changed_line_with_its_old_and_new_price() {
    let shop = shop().await;
    shop.sell_with("rock", 100, |rock| rock.weight_grams = Some(10_001)).await;
    shop.replace_cart(&[("tea", 3), ("book", 1), ("song", 1)]).await;
    shop.sell_with("song", 300, |_| {}).await;
    let quote = shop.quoted(&json!({ "shipping_address": address("CH") })).await.body;
    shop.put(&stored(Product { weight_grams: Some(500), ..fixture::seed::product("tea", money(1082)) })).await;
    shop.replace_cart(&[("tea", 2), ("book", 1), ("rock", 1)]).await;
    let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!((refused.status, refused.code()), (409, Some("quote_changed")), "{}", refused.body);
    let line = |pointer, product, reason, old: Option<i64>, new: Option<i64>| {
        (pointer, json!(product), json!(reason), old.map_or(Value::Null, usd), new.map_or(Value::Null, usd))
    };
    let entries = refused.body["errors"].as_array().unwrap();
    let fields = ["product_id", "reason", "old_price", "new_price"];
    let entry = |error: &Value| {
        let [product, reason, old, new] = fields.map(|field| error[field].clone());
        (error["pointer"].as_str().unwrap().to_owned(), product, reason, old, new)
    };
    let expected = [
        line("/items/0/quantity", Some("tea"), Some("quantity_changed"), Some(1081), Some(1082)),
        line("/items/0/unit_price", Some("tea"), Some("price_changed"), Some(1081), Some(1082)),
        line("/items/2", Some("rock"), Some("line_added"), None, Some(100)),
        line("/items", Some("song"), Some("line_removed"), Some(300), None),
        line("/shipping_methods", None, None, None, None),
    ];
    let expected = expected.map(|(pointer, product, reason, old, new)| (pointer.to_owned(), product, reason, old, new));
    assert_eq!(entries.iter().map(entry).collect::<Vec<_>>(), expected);

    // Lines that were removed and added again have another sequence.
    shop.replace_cart(&[("tea", 1), ("book", 1)]).await;
    let quote = shop.quoted(&json!({ "shipping_address": address("CH") })).await.body;
    shop.replace_cart(&[("book", 1), ("tea", 1)]).await;
    let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!(refused.pointers(), ["/items", "/tax_lines"], "{}", refused.body);
}

/// Ids of 128 bytes and long addresses make the largest quotes.
#[tokio::test]
async fn a_quote_holds_the_largest_cart() {
    let shop = Shop::open().await;
    let products: Vec<String> = (0..cart::MAX_LINES).map(|number| format!("{number:\"<128}")).collect();
    for product in &products {
        shop.product(product, 10).await;
    }
    let lines: Vec<_> = products.iter().map(|product| (product.as_str(), 1)).collect();
    shop.fill_cart(&lines).await;
    let mut address = address("CH");
    for (field, bytes) in [("name", 200), ("line1", 200), ("line2", 200), ("city", 128), ("region", 128)] {
        address[field] = json!("\"".repeat(bytes));
    }
    let quote = shop.quoted(&json!({ "shipping_address": address, "billing_address": address })).await;
    assert_eq!(quote.status, 200, "{}", quote.body);
    let placed = shop.check_out(&json!({ "quote_id": quote.body["id"] })).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
}

#[tokio::test]
async fn a_quote_does_not_hold_for_another_product_with_the_same_id_and_price() {
    let shop = Shop::open().await;
    shop.priced_product("tea", money(200)).await;
    shop.fill_cart(&[("tea", 2)]).await;
    let quote = shop.quoted(&json!({})).await.body;
    shop.revive("tea", 10).await;
    let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!(
        (refused.code(), refused.pointers()),
        (Some("quote_changed"), vec!["/items/0/product_id"]),
        "{}",
        refused.body
    );
    let quote = shop.quoted(&json!({})).await.body;
    assert_eq!(shop.check_out(&json!({ "quote_id": quote["id"] })).await.status, 201);
}

#[tokio::test]
async fn a_quote_is_valid_for_its_customer_unaltered_and_for_a_time() {
    let shop = shop().await;
    let quote = shop.quoted(&json!({ "shipping_address": address("CH") })).await.body;
    let id = quote["id"].as_str().unwrap();
    let refused = async |customer: &str, id: &str| {
        let call = Call::new("POST /v1/customers/{id}/cart/checkout").path("id", customer).customer(customer);
        let refused = shop.send(call.json(&json!({ "quote_id": id }))).await;
        assert_eq!((refused.status, refused.code()), (409, Some("quote_expired")), "{}", refused.body);
    };
    let altered = format!("{}{}", &id[..id.len() - 1], if id.ends_with('A') { 'B' } else { 'A' });
    refused("ann", &altered).await;
    refused("ann", "x").await;
    shop.sign_up("bob").await;
    shop.put(&stored(fixture::seed::cart("bob", &[("tea", 3), ("book", 1)], 3_600))).await;
    refused("bob", id).await;
    let expires: Instant = quote["expires_at"].as_str().unwrap().parse().unwrap();
    let left = expires.as_millis() - Instant::now().as_millis();
    assert!((14 * 60_000..=15 * 60_000).contains(&left), "{left}");
}

#[tokio::test]
async fn customers_need_a_quote_as_soon_as_the_shop_has_rules_but_staff_do_not() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.fill_cart(&[("tea", 1)]).await;
    shop.add_tax("all", "standard", 100_000, true).await;
    let refused = shop.check_out(&json!({ "shipping_address": address("CH") })).await;
    assert_eq!((refused.status, refused.code()), (409, Some("quote_required")), "{}", refused.body);
    let order = json!({ "customer_id": "ann", "lines": [{ "product_id": "tea", "quantity": 1 }] });
    let place = || Call::new("POST /v1/orders").json(&order);
    let refused = shop.send(place().customer("ann").header("idempotency-key", "a")).await;
    assert_eq!((refused.status, refused.code()), (409, Some("quote_required")));
    let placed = shop.send(place().staff("sam").header("idempotency-key", "s")).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    let totals = json!({ "items": usd(100), "discount": usd(0), "shipping": usd(0), "tax": usd(0), "total": usd(100) });
    assert_eq!((&placed.body["totals"], placed.body.get("tax_lines")), (&totals, None));

    shop.limit(&json!({ "quote_optional": true })).await;
    shop.wait(60);
    let placed = shop.send(place().customer("ann").header("idempotency-key", "b")).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
}

#[tokio::test]
async fn a_shop_whose_rules_were_deleted_needs_no_quote() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.fill_cart(&[("tea", 1)]).await;
    shop.add_tax("all", "standard", 100_000, true).await;
    assert_eq!(shop.check_out(&json!({})).await.code(), Some("quote_required"));
    let rules = shop.rules().await;
    let rule: &Stored<TaxRule> = &rules.tax_rules[0];
    shop.transact(&pricing::delete(&rules, &rule.data, 1, Instant::now()).unwrap()).await;
    assert_eq!(shop.check_out(&json!({})).await.status, 201);
}

#[tokio::test]
async fn a_repeated_checkout_returns_the_first_order_though_its_quote_no_longer_holds() {
    let shop = shop().await;
    let quote = shop.quoted(&json!({ "shipping_address": address("CH") })).await.body;
    let attempt = || checkout().header("idempotency-key", "k").json(&json!({ "quote_id": quote["id"] }));
    let first = shop.send(attempt()).await;
    assert_eq!(first.status, 201, "{}", first.body);
    shop.change_zone(&zone(501)).await;
    let again = shop.send(attempt()).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
}

#[tokio::test]
async fn a_checkout_takes_the_addresses_of_the_quote_and_no_others() {
    let shop = shop().await;
    let quote = shop.quoted(&json!({ "shipping_address": address("CH"), "billing_address": address("DE") })).await.body;
    let both = json!({ "quote_id": quote["id"], "shipping_address": address("CH") });
    let refused = shop.check_out(&both).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/quote_id"]));
    assert_eq!(errors(&refused).len(), 1);
    let placed = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!((placed.status, &placed.body["billing_address"]), (201, &address("DE")), "{}", placed.body);
}

#[tokio::test]
async fn a_shop_without_rules_quotes_the_sum_of_the_lines() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.fill_cart(&[("tea", 2)]).await;
    let quote = shop.quoted(&json!({})).await;
    assert_eq!((quote.status, &quote.body["totals"]["total"]), (200, &usd(200)), "{}", quote.body);
    assert_eq!((&quote.body["shipping_methods"], &quote.body["tax_lines"]), (&json!([]), &json!([])));
    let placed = shop.check_out(&json!({ "quote_id": quote.body["id"] })).await;
    assert_eq!((placed.status, &placed.body["total"]), (201, &usd(200)), "{}", placed.body);
    assert_eq!(shop.quoted(&json!({})).await.code(), Some("cart_empty"));
    let other = Call::new("POST /v1/customers/{id}/cart/quote").path("id", "ann").customer("bob").json(&json!({}));
    assert_eq!(shop.send(other).await.status, 404);
}
