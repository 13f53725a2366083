//! Tests of promotions: discounts, refused codes and changed promotions.

use http_api::sample::{Answered, Call};
use key_schema::customer::Tier;
use key_schema::id::{CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::{Stored, key_of};
use key_schema::money::Money;
use key_schema::order::open::{OpenOrder, OpenOrders};
use key_schema::promotion::{self, Conditions, Goods, Promotion, Reduction};
use key_schema::quota::Quota;
use serde_json::{Value, json};

use crate::quote::{address, usd, zone};
use crate::shop::{Shop, money, moved, order, stored};

/// Returns a promotion of 10 % with the code `TEN`, without limits.
pub fn ten() -> Promotion {
    Promotion {
        id: "ten".parse().unwrap(),
        code: Some("TEN".to_owned()),
        name: "Ten percent".to_owned(),
        reduction: Reduction::Percentage(1000),
        applies_to: Goods::All,
        conditions: Conditions::default(),
        limit_total: None,
        limit_per_customer: None,
        limit_since: 0,
        exclusive: false,
        priority: 0,
    }
}

pub fn named(id: &str, code: Option<&str>) -> Promotion {
    Promotion { id: id.parse().unwrap(), code: code.map(str::to_owned), ..ten() }
}

fn under(conditions: Conditions) -> Promotion {
    Promotion { conditions, ..ten() }
}

impl Shop {
    pub async fn promote(&self, promotion: Promotion) -> Stored<Promotion> {
        let promotion = stored(promotion);
        self.transact(&promotion::create(&self.rules().await, &promotion, None).unwrap()).await;
        promotion
    }

    pub async fn end(&self, promotion: &Stored<Promotion>) {
        self.transact(&promotion::delete(&self.rules().await, promotion, Instant::now()).unwrap()).await;
    }

    pub async fn with_codes(&self, codes: &[&str]) -> Answered {
        self.quoted(&json!({ "codes": codes })).await
    }

    /// Gets a quote with these codes and checks out with it.
    pub async fn buy_with(&self, codes: &[&str]) -> Answered {
        let quoted = self.with_codes(codes).await;
        assert_eq!(quoted.status, 200, "{}", quoted.body);
        self.check_out(&json!({ "quote_id": quoted.body["id"] })).await
    }
}

pub fn ann() -> CustomerId {
    CustomerId::new("ann").unwrap()
}

/// Opens a shop with tea for 10 dollars and cake for 3 dollars, and a cart with 2 teas and a cake.
pub async fn shop() -> Shop {
    let shop = Shop::open().await;
    shop.priced_product("tea", money(1000)).await;
    shop.priced_product("cake", money(300)).await;
    shop.fill_cart(&[("tea", 2), ("cake", 1)]).await;
    shop
}

pub fn discounts(body: &Value) -> Vec<(&str, i64)> {
    let discount = |discount: &'_ Value| discount["amount"]["amount"].as_i64().unwrap();
    let all = body["discounts"].as_array().unwrap();
    all.iter().map(|one| (one["promotion_id"].as_str().unwrap(), discount(one))).collect()
}

fn line_discounts(body: &Value) -> Vec<i64> {
    body["lines"].as_array().unwrap().iter().map(|line| line["discount"]["amount"].as_i64().unwrap()).collect()
}

const UNFIT: &str = "promotion_not_applicable";

fn reasons(refused: &Answered) -> Vec<(&str, &str)> {
    let errors = refused.body["errors"].as_array().unwrap();
    errors.iter().map(|error| (error["pointer"].as_str().unwrap(), error["reason"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_code_reduces_each_line_and_the_order_keeps_the_discount() {
    let shop = shop().await;
    shop.promote(ten()).await;
    let quoted = shop.with_codes(&["ten"]).await.body;
    let discount = json!({ "promotion_id": "ten", "name": "Ten percent", "code": "TEN", "amount": usd(230) });
    assert_eq!(quoted["discounts"], json!([discount]), "{quoted}");
    assert_eq!(line_discounts(&quoted), [200, 30]);
    let totals = json!({ "items": usd(2300), "discount": usd(230), "shipping": usd(0), "tax": usd(0),
        "total": usd(2070) });
    assert_eq!(quoted["totals"], totals);
    let placed = shop.check_out(&json!({ "quote_id": quoted["id"], "expected_total": usd(2070) })).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    for field in ["discounts", "totals"] {
        assert_eq!(placed.body[field], quoted[field], "{field}");
    }
    assert_eq!(line_discounts(&placed.body), [200, 30]);
}

#[tokio::test]
async fn the_order_of_the_codes_does_not_change_the_price() {
    let shop = shop().await;
    shop.promote(ten()).await;
    shop.promote(Promotion { reduction: Reduction::Amount(money(500)), ..named("off", Some("OFF")) }).await;
    for codes in [["TEN", "OFF"], ["OFF", "TEN"]] {
        let quoted = shop.with_codes(&codes).await.body;
        assert_eq!(discounts(&quoted), [("off", 500), ("ten", 180)], "{quoted}");
    }
}

#[tokio::test]
async fn promotions_without_a_code_apply_to_the_goods_that_they_name() {
    let shop = shop().await;
    let products = Goods::Products(vec!["tea".parse().unwrap()]);
    let one_free = Promotion { reduction: Reduction::BuyXGetY { buy: 1, get: 1 }, ..named("one-free", None) };
    shop.promote(Promotion { applies_to: products, priority: 1, ..one_free }).await;
    let off = Promotion { reduction: Reduction::Amount(money(100)), ..named("off", None) };
    shop.promote(Promotion { priority: 2, ..off }).await;
    let elsewhere = Goods::Category(key_schema::product::CategoryPath::new(vec!["ELSEWHERE".into()]).unwrap());
    shop.promote(Promotion { applies_to: elsewhere, ..named("elsewhere", None) }).await;
    let quoted = shop.with_codes(&[]).await.body;
    // First the discount of a dollar is spread over the lines: 87 cents for the tea, and 13 for the
    // cake. Then one of the two teas is free.
    assert_eq!(discounts(&quoted), [("off", 100), ("one-free", 957)], "{quoted}");
    assert_eq!(line_discounts(&quoted), [1044, 13]);
    let placed = shop.check_out(&json!({ "quote_id": quoted["id"] })).await;
    assert_eq!((placed.status, &placed.body["total"]), (201, &usd(1243)), "{}", placed.body);
}

#[tokio::test]
async fn free_shipping_frees_only_what_is_shipped_and_the_tax_follows() {
    let shop = shop().await;
    shop.add_zone().await;
    shop.add_tax("all", "standard", 100_000, false).await;
    shop.promote(Promotion { reduction: Reduction::FreeShipping, ..ten() }).await;
    let quoted = shop.quoted(&json!({ "shipping_address": address("CH"), "codes": ["TEN"] })).await.body;
    let totals = json!({ "items": usd(2300), "discount": usd(500), "shipping": usd(500), "tax": usd(230),
        "total": usd(2530) });
    assert_eq!(quoted["totals"], totals, "{quoted}");
    let placed = shop.check_out(&json!({ "quote_id": quoted["id"] })).await.body;
    assert_eq!(placed["totals"], totals, "{placed}");
    shop.sell_with("song", 100, |song| song.shippable = Some(false)).await;
    shop.fill_cart(&[("song", 1)]).await;
    let refused = shop.quoted(&json!({ "shipping_address": address("CH"), "codes": ["TEN"] })).await;
    assert_eq!(refused.code(), Some("promotion_not_applicable"), "{}", refused.body);
}

#[tokio::test]
async fn an_exclusive_promotion_excludes_others_and_at_most_five_apply() {
    let shop = shop().await;
    for number in 0..7 {
        let off = Promotion { reduction: Reduction::Amount(money(10 + number)), ..named(&format!("p{number}"), None) };
        shop.promote(Promotion { priority: number, ..off }).await;
    }
    let quoted = shop.with_codes(&[]).await.body;
    assert_eq!(discounts(&quoted), [("p6", 16), ("p5", 15), ("p4", 14), ("p3", 13), ("p2", 12)]);
    shop.promote(Promotion { exclusive: true, ..ten() }).await;
    assert_eq!(discounts(&shop.with_codes(&["TEN"]).await.body), [("ten", 230)]);
    shop.promote(named("other", Some("OTHER"))).await;
    let refused = shop.with_codes(&["OTHER", "TEN"]).await;
    assert_eq!(
        (refused.code(), reasons(&refused)),
        (Some("promotion_not_applicable"), vec![("/codes/0", "not_combinable")])
    );
}

/// Each code has the reason that would keep it from applying alone, even below an exclusive
/// promotion and beside five promotions with higher priorities.
#[tokio::test]
async fn each_refused_code_of_a_request_has_its_own_reason() {
    let shop = shop().await;
    let rich = Conditions { min_amount: Some(money(2301)), ..Conditions::default() };
    let later = Conditions { from: Some(Instant::now().plus_seconds(600)), ..Conditions::default() };
    let rock = Goods::Products(vec!["rock".parse().unwrap()]);
    shop.promote(Promotion { conditions: rich, ..named("rich", Some("RICH")) }).await;
    shop.promote(Promotion { conditions: later, ..named("later", Some("LATER")) }).await;
    shop.promote(Promotion { applies_to: rock, ..named("rock", Some("ROCK")) }).await;
    shop.promote(Promotion { reduction: Reduction::FreeShipping, ..named("free", Some("FREE")) }).await;
    shop.promote(ten()).await;
    let own = [
        ("/codes/0", "minimum_not_reached"),
        ("/codes/1", "not_yet_valid"),
        ("/codes/2", "no_goods"),
        ("/codes/3", "nothing_to_reduce"),
    ];
    let codes = ["RICH", "LATER", "ROCK", "FREE", "TEN"];
    assert_eq!(reasons(&shop.with_codes(&codes).await), own);
    for number in 0..5 {
        let off = Promotion { reduction: Reduction::Amount(money(1)), ..named(&format!("p{number}"), None) };
        shop.promote(Promotion { priority: 1, ..off }).await;
    }
    let beside = [&own[..], &[("/codes/4", "too_many_promotions")]].concat();
    assert_eq!(reasons(&shop.with_codes(&codes).await), beside);
    shop.promote(Promotion { exclusive: true, ..named("all", None) }).await;
    let below = [&own[..], &[("/codes/4", "not_combinable")]].concat();
    assert_eq!(reasons(&shop.with_codes(&codes).await), below);
}

#[tokio::test]
async fn a_promotion_without_an_effect_excludes_no_other() {
    let shop = shop().await;
    shop.promote(ten()).await;
    let three = Promotion { reduction: Reduction::BuyXGetY { buy: 3, get: 1 }, ..named("three", None) };
    shop.promote(Promotion { exclusive: true, ..three }).await;
    assert_eq!(discounts(&shop.with_codes(&["TEN"]).await.body), [("ten", 230)]);
    shop.replace_cart(&[("tea", 4)]).await;
    let refused = shop.with_codes(&["TEN"]).await;
    assert_eq!(refused.code(), Some("promotion_not_applicable"), "{}", refused.body);
    assert_eq!(discounts(&shop.with_codes(&[]).await.body), [("three", 1000)]);
}

#[tokio::test]
async fn a_code_for_free_shipping_is_refused_for_a_method_that_costs_nothing() {
    let shop = shop().await;
    shop.add_zone_with(0).await;
    shop.promote(Promotion { reduction: Reduction::FreeShipping, ..ten() }).await;
    let with = |method: Option<&str>| json!({ "shipping_address": address("CH"), "shipping_method": method, "codes": ["TEN"] });
    for free in [None, Some("post")] {
        let refused = shop.quoted(&with(free)).await;
        assert_eq!((refused.status, refused.code()), (409, Some("promotion_not_applicable")), "{}", refused.body);
    }
    assert_eq!(discounts(&shop.quoted(&with(Some("courier"))).await.body), [("ten", 2000)]);
    // The refusal is the same if the zone has only the free method.
    let mut only = zone(0);
    only.methods.remove(0);
    shop.change_zone(&only).await;
    let refused = shop.quoted(&with(None)).await;
    assert_eq!((refused.status, refused.code()), (409, Some("promotion_not_applicable")), "{}", refused.body);
}

/// The parcel is free from 10 dollars, and the cart costs 23 dollars.
#[tokio::test]
async fn free_shipping_that_reduces_nothing_excludes_no_code() {
    let shop = shop().await;
    let mut zone = zone(500);
    zone.methods[1].free_from = Some(money(1000));
    shop.add_rule(zone).await;
    shop.promote(ten()).await;
    let free = Promotion { reduction: Reduction::FreeShipping, ..named("free", None) };
    shop.promote(Promotion { exclusive: true, ..free }).await;
    let with = |codes: &[&str]| json!({ "shipping_address": address("CH"), "codes": codes });
    let quoted = shop.quoted(&with(&["TEN"])).await;
    assert_eq!((quoted.status, discounts(&quoted.body)), (200, vec![("ten", 230)]), "{}", quoted.body);
    assert_eq!(quoted.body["totals"]["total"], usd(2070));
    let dear = json!({ "shipping_address": address("CH"), "shipping_method": "courier" });
    assert_eq!(discounts(&shop.quoted(&dear).await.body), [("free", 2000)]);
}

#[tokio::test]
async fn a_code_for_free_shipping_below_its_minimum_or_beside_another_one_is_refused() {
    let shop = shop().await;
    shop.add_zone().await;
    let free = |id, code| Promotion { reduction: Reduction::FreeShipping, ..named(id, code) };
    let rich = Conditions { min_amount: Some(money(2301)), ..Conditions::default() };
    shop.promote(Promotion { conditions: rich, ..free("rich", Some("RICH")) }).await;
    let with = |codes: &[&str]| json!({ "shipping_address": address("CH"), "codes": codes });
    let refused = shop.quoted(&with(&["RICH"])).await;
    assert_eq!((refused.code(), refused.pointers()), (Some("promotion_not_applicable"), vec!["/codes/0"]));
    shop.promote(free("free", Some("FREE"))).await;
    assert_eq!(discounts(&shop.quoted(&with(&["FREE"])).await.body), [("free", 500)]);
    shop.promote(free("further", Some("FURTHER"))).await;
    let refused = shop.quoted(&with(&["RICH", "FREE", "FURTHER"])).await;
    assert_eq!(reasons(&refused), [("/codes/0", "minimum_not_reached"), ("/codes/2", "nothing_to_reduce")]);
}

#[tokio::test]
async fn codes_are_equal_in_any_case_and_without_invisible_characters() {
    let shop = shop().await;
    shop.promote(named("ten", Some("Süß 10"))).await;
    for spelling in ["süß 10", "SÜSS 10", "S\u{AD}üß 1\u{200B}0", "Ｓüß 10"] {
        assert_eq!(discounts(&shop.with_codes(&[spelling]).await.body), [("ten", 230)], "{spelling}");
    }
    let both = shop.with_codes(&["süß 10", "SÜSS 10"]).await;
    assert_eq!(discounts(&both.body), [("ten", 230)], "two spellings of a code are one");
    assert_eq!(shop.with_codes(&["SUSS 10"]).await.code(), Some("promotion_unknown"));
}

#[tokio::test]
async fn a_code_that_cannot_be_used_is_refused_with_its_reason() {
    let shop = shop().await;
    let now = Instant::now();
    let euros = Money::new(1, "EUR".parse().unwrap());
    let none = Conditions::default;
    let three = Promotion { reduction: Reduction::BuyXGetY { buy: 3, get: 1 }, ..ten() };
    let cases = [
        ("ended", under(Conditions { until: Some(now), ..none() }), "promotion_expired", "expired"),
        ("later", under(Conditions { from: Some(now.plus_seconds(600)), ..none() }), UNFIT, "not_yet_valid"),
        ("silver", under(Conditions { tier: Some(Tier::Silver), ..none() }), UNFIT, "tier_too_low"),
        ("rich", under(Conditions { min_amount: Some(money(2301)), ..none() }), UNFIT, "minimum_not_reached"),
        ("euro", under(Conditions { min_amount: Some(euros), ..none() }), UNFIT, "other_currency"),
        ("euros", Promotion { reduction: Reduction::Amount(euros), ..ten() }, UNFIT, "other_currency"),
        ("three", three, UNFIT, "nothing_to_reduce"),
    ];
    for (id, promotion, code, reason) in cases {
        shop.promote(Promotion { id: id.parse().unwrap(), code: Some(id.to_owned()), ..promotion }).await;
        let refused = shop.with_codes(&[id]).await;
        assert_eq!((refused.status, refused.code()), (409, Some(code)), "{id}");
        assert_eq!(reasons(&refused), [("/codes/0", reason)], "{id}");
        assert!(refused.body["errors"][0]["detail"].as_str().unwrap().contains(id), "{}", refused.body);
    }
    assert_eq!(reasons(&shop.with_codes(&["none"]).await), [("/codes/0", "unknown")]);
    let exact = [
        ("enough", under(Conditions { min_amount: Some(money(2300)), ..none() })),
        ("bronze", under(Conditions { tier: Some(Tier::Bronze), ..none() })),
        ("running", under(Conditions { from: Some(now), until: Some(now.plus_seconds(600)), ..none() })),
    ];
    for (id, promotion) in exact {
        shop.promote(Promotion { id: id.parse().unwrap(), code: Some(id.to_owned()), ..promotion }).await;
        assert_eq!(shop.with_codes(&[id]).await.status, 200, "{id}");
    }
    let refused = shop.quoted(&json!({ "codes": ["a", "b", "c", "d", "e", "f"] })).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/codes"]));
}

#[tokio::test]
async fn a_customer_can_guess_codes_only_up_to_the_daily_quota() {
    let shop = shop().await;
    shop.promote(ten()).await;
    shop.use_up(&ann(), Quota::PromotionCodes, 2).await;
    let refused = shop.with_codes(&["TEN", "a", "b"]).await;
    assert_eq!((refused.status, refused.code()), (409, Some("promotion_unknown")), "{}", refused.body);
    assert_eq!(refused.pointers(), ["/codes/1", "/codes/2"]);
    for code in ["c", "TEN"] {
        let refused = shop.with_codes(&[code]).await;
        assert_eq!((refused.status, refused.code()), (429, Some("quota_exceeded")), "{code}: {}", refused.body);
        assert!(refused.header("retry-after").is_some());
        assert!(refused.body["detail"].as_str().unwrap().contains("50 promotion codes a day"), "{}", refused.body);
    }
    assert_eq!(shop.with_codes(&[]).await.status, 200, "a quote without a code");
    let staffs = Call::new("POST /v1/customers/{id}/cart/quote").path("id", "ann").staff("sam");
    for (code, status) in [("d", 409), ("TEN", 200)] {
        assert_eq!(shop.send(staffs.clone().json(&json!({ "codes": [code] }))).await.status, status, "{code}");
    }
    for quota in shop.items("QUOTA#").await {
        let key = key_of(&quota).unwrap();
        shop.spoil(key.pk.as_str(), key.sk.as_str(), "promotion_codes").await;
    }
    assert_eq!(shop.with_codes(&["TEN"]).await.status, 500, "an unreadable count permits no guess");
    assert_eq!(shop.send(staffs.json(&json!({ "codes": ["TEN"] }))).await.status, 200);
}

#[tokio::test]
async fn a_first_order_is_one_without_another_order_except_cancelled_ones() {
    let shop = shop().await;
    shop.promote(under(Conditions { first_order: true, ..Conditions::default() })).await;
    let placed = shop.buy_with(&["TEN"]).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    shop.fill_cart(&[("tea", 1)]).await;
    assert_eq!(shop.with_codes(&["TEN"]).await.code(), Some("promotion_used_up"));
    assert_eq!(shop.send(moved(&placed.body, "cancelled")).await.status, 200);
    assert_eq!(shop.with_codes(&["TEN"]).await.status, 200);
    assert_eq!(shop.send(order(&[("tea", 1)], "k")).await.status, 201);
    assert_eq!(reasons(&shop.with_codes(&["TEN"]).await), [("/codes/0", "not_first_order")]);
}

/// An order of several transactions is among the open orders before it is in the customer's list.
/// All orders of a customer change the open orders, so of two concurrent orders one is the first.
#[tokio::test]
async fn a_promotion_for_the_first_order_counts_orders_that_are_being_placed() {
    for (code, refusal) in
        [(Some("TEN"), ("promotion_not_applicable", "/quote_id")), (None, ("quote_changed", "/discounts"))]
    {
        let shop = shop().await;
        let conditions = Conditions { first_order: true, ..Conditions::default() };
        shop.promote(Promotion { code: code.map(str::to_owned), ..under(conditions) }).await;
        let quote = shop.with_codes(code.as_slice()).await.body;
        let id = OrderId::generate(Instant::now(), [7; 10]);
        let open = OpenOrders {
            customer_id: ann(),
            expires_at: Instant::now().plus_seconds(60),
            entries: [(id, OpenOrder { most: 1, lines: 1 })].into(),
            day: Instant::now().day(),
            placed: 0,
        };
        shop.put(&stored(open)).await;
        let again = shop.with_codes(code.as_slice()).await;
        match code {
            Some(_) => assert_eq!(again.body["errors"][0]["reason"], json!("not_first_order"), "{}", again.body),
            None => assert_eq!((&again.body["discounts"], again.status), (&json!([]), 200), "{}", again.body),
        }
        let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
        assert_eq!((refused.status, refused.code(), refused.pointers()), (409, Some(refusal.0), vec![refusal.1]));
        shop.delete_at("CUSTOMER#ann", "OPEN").await;
        let placed = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
        assert_eq!(placed.status, 201, "{}", placed.body);
    }
}

/// The other order has no promotion, so only the open orders decide between the two.
#[tokio::test]
async fn of_two_concurrent_orders_at_most_the_first_uses_a_promotion_for_the_first_order() {
    let shop = shop().await;
    shop.product("rice", 100).await;
    shop.promote(under(Conditions { first_order: true, ..Conditions::default() })).await;
    for round in 0..10 {
        shop.replace_cart(&[("tea", 2)]).await;
        let quote = shop.with_codes(&["TEN"]).await.body;
        let (key, body) = (format!("race-{round}"), json!({ "quote_id": quote["id"] }));
        let (other, with_code) = futures::join!(shop.send(order(&[("rice", 1)], &key)), shop.check_out(&body));
        assert_eq!(other.status, 201, "{}", other.body);
        if with_code.status == 201 {
            // The order with the promotion was written first.
            let open = shop.open_orders().await;
            assert_eq!(open.len(), 2);
            assert_eq!(shop.send(moved(&with_code.body, "cancelled")).await.status, 200);
        } else {
            assert_eq!(with_code.code(), Some("promotion_not_applicable"), "{}", with_code.body);
        }
        assert_eq!(shop.send(moved(&other.body, "cancelled")).await.status, 200);
    }
}

#[tokio::test]
async fn a_quote_names_changed_promotions() {
    let shop = shop().await;
    let automatic = shop.promote(named("sale", None)).await;
    let coded = shop.promote(ten()).await;
    let refused = async |quote: &Value| {
        let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        (refused.code().unwrap().to_owned(), refused.pointers().join(" "))
    };
    let quote = shop.with_codes(&["TEN"]).await.body;
    assert_eq!(discounts(&quote), [("sale", 230), ("ten", 207)]);
    let more = Promotion { reduction: Reduction::Percentage(2000), ..automatic.data.clone() };
    shop.transact(&promotion::change(&automatic, &more, Instant::now()).unwrap()).await;
    assert_eq!(refused(&quote).await, ("quote_changed".to_owned(), "/discounts".to_owned()));

    let quote = shop.with_codes(&["TEN"]).await.body;
    shop.end(&coded).await;
    assert_eq!(refused(&quote).await, ("promotion_unknown".to_owned(), "/quote_id".to_owned()));
    assert!(shop.has_cart().await);
}
