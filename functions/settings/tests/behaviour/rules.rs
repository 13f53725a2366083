//! Tests of shipping zones and tax rules.

use futures::future::join_all;
use http_api::sample::{Answered, Call};
use key_schema::pricing::{MAX_TAX_RULES, MAX_ZONES};
use serde_json::{Value, json};

use crate::shop::{Function, Shop};

/// The routes of one kind of rules.
#[derive(Clone, Copy)]
struct Path {
    list: &'static str,
    get: &'static str,
    put: &'static str,
    delete: &'static str,
}

const ZONES: Path = Path {
    list: "GET /v1/shipping/zones",
    get: "GET /v1/shipping/zones/{id}",
    put: "PUT /v1/shipping/zones/{id}",
    delete: "DELETE /v1/shipping/zones/{id}",
};
const COUNTRIES: &str = "GET /v1/shipping/countries";
const TAX: Path = Path {
    list: "GET /v1/tax/rules",
    get: "GET /v1/tax/rules/{id}",
    put: "PUT /v1/tax/rules/{id}",
    delete: "DELETE /v1/tax/rules/{id}",
};

fn call(route: &'static str, id: &str) -> Call {
    Call::new(route).path("id", id).staff("sam")
}

fn at(version: u64) -> String {
    format!("\"{version}\"")
}

/// Returns a successful call of each route, in an order in which they succeed.
pub fn calls() -> Vec<(&'static str, Call)> {
    [(ZONES, zone(&["CH"])), (TAX, tax("CH", 810))]
        .into_iter()
        .flat_map(|(path, body)| {
            [
                (path.put, call(path.put, "x").header("if-none-match", "*").json(&body)),
                (path.put, call(path.put, "x").header("if-match", &at(1)).json(&body)),
                (path.get, call(path.get, "x")),
                (path.list, Call::new(path.list).staff("sam")),
                (path.delete, call(path.delete, "x").header("if-match", &at(2))),
            ]
        })
        .chain([(COUNTRIES, Call::new(COUNTRIES))])
        .collect()
}

async fn create(function: &Function, path: Path, id: &str, body: &Value) -> Answered {
    function.send(call(path.put, id).header("if-none-match", "*").json(body)).await
}

async fn replace(function: &Function, path: Path, id: &str, version: u64, body: &Value) -> Answered {
    function.send(call(path.put, id).header("if-match", &at(version)).json(body)).await
}

async fn delete(function: &Function, path: Path, id: &str, version: u64) -> Answered {
    function.send(call(path.delete, id).header("if-match", &at(version))).await
}

async fn ids(function: &Function, path: Path) -> Vec<Value> {
    let list = function.send(Call::new(path.list).staff("sam")).await.body;
    list["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect()
}

fn usd(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "USD" })
}

fn zone(countries: &[&str]) -> Value {
    json!({ "countries": countries, "methods": [
        { "id": "post", "name": "Parcel post", "days": [2, 4], "rates": [
            { "up_to_grams": 1000, "price": usd(500) }, { "up_to_grams": 5000, "price": usd(900) } ],
          "free_from": usd(10_000) },
        { "id": "courier", "name": "Courier", "days": [1, 1], "rates": [{ "price": usd(1500) }] } ] })
}

fn tax(country: &str, basis_points: u64) -> Value {
    json!({ "country": country, "category": "standard", "rate_basis_points": basis_points, "included": true })
}

#[tokio::test]
async fn anybody_sees_the_countries_and_regions_to_which_the_shop_ships() {
    let function = Shop::open().await.function();
    let countries = async || function.send(Call::new(COUNTRIES)).await;
    let none = countries().await;
    assert_eq!((none.status, &none.body["items"]), (200, &json!([])));
    let regions = |names: &[&str], country: &str| {
        let mut zone = zone(&[country]);
        zone["regions"] = json!(names);
        zone
    };
    for (id, body) in [
        ("alps", zone(&["LI", "CH"])),
        ("east", regions(&["Wien"], "AT")),
        ("west", regions(&["Tirol"], "AT")),
        // The whole country has a zone, too.
        ("ticino", regions(&["Ticino"], "CH")),
    ] {
        assert_eq!(create(&function, ZONES, id, &body).await.status, 201);
    }
    let all = countries().await;
    let country = |code: &str, regions: Value| json!({ "country": code, "regions": regions });
    let expected = [country("AT", json!(["Tirol", "Wien"])), country("CH", json!(null)), country("LI", json!(null))];
    assert_eq!(all.body["items"], json!(expected));
    assert_eq!(all.header("etag"), Some(format!("\"{}\"", all.body["version"]).as_str()));
}

#[tokio::test]
async fn staff_create_replace_and_delete_a_zone_by_its_version() {
    let function = Shop::open().await.function();
    let made = create(&function, ZONES, "alps", &zone(&["CH", "AT"])).await;
    assert_eq!((made.status, &made.body["version"]), (201, &json!(1)), "{}", made.body);
    assert_eq!((made.header("etag"), made.header("location")), (Some("\"1\""), Some("/v1/shipping/zones/alps")));
    assert_eq!((&made.body["countries"], &made.body["regions"]), (&json!(["CH", "AT"]), &Value::Null));
    assert_eq!(made.body["methods"], zone(&[])["methods"]);

    let again = create(&function, ZONES, "alps", &zone(&["CH"])).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    let changed = replace(&function, ZONES, "alps", 1, &zone(&["CH", "LI"])).await;
    assert_eq!((changed.status, &changed.body["version"]), (200, &json!(2)), "{}", changed.body);
    assert_eq!(changed.body["created_at"], made.body["created_at"]);
    let read = function.send(call(ZONES.get, "alps")).await;
    assert_eq!((read.status, &read.body), (200, &changed.body));

    let late = replace(&function, ZONES, "alps", 1, &zone(&["CH"])).await;
    assert_eq!((late.status, late.code()), (412, Some("version_mismatch")));
    assert_eq!(delete(&function, ZONES, "alps", 1).await.status, 412);
    assert_eq!(delete(&function, ZONES, "alps", 2).await.status, 204);
    assert_eq!(function.send(call(ZONES.get, "alps")).await.status, 404);
    assert_eq!(delete(&function, ZONES, "alps", 2).await.status, 404);
    assert_eq!(replace(&function, ZONES, "alps", 2, &zone(&["CH"])).await.status, 404);
}

#[tokio::test]
async fn a_country_is_in_one_zone_and_a_region_of_it_can_have_its_own() {
    let function = Shop::open().await.function();
    assert_eq!(create(&function, ZONES, "us", &zone(&["US"])).await.status, 201);
    let taken = create(&function, ZONES, "america", &zone(&["CA", "US"])).await;
    assert_eq!((taken.status, taken.code()), (409, Some("rule_overlaps")));
    assert_eq!(taken.header("location"), Some("/v1/shipping/zones/us"));
    let regional = |regions: &[&str]| {
        let mut zone = zone(&["US"]);
        zone["regions"] = json!(regions);
        zone
    };
    assert_eq!(create(&function, ZONES, "far", &regional(&["Alaska", "Hawaii"])).await.status, 201);
    let taken = create(&function, ZONES, "islands", &regional(&["HAWAII"])).await;
    assert_eq!((taken.status, taken.code()), (409, Some("rule_overlaps")));
    // A zone does not overlap with itself.
    assert_eq!(replace(&function, ZONES, "far", 1, &regional(&["Hawaii"])).await.status, 200);
    assert_eq!(ids(&function, ZONES).await, ["far", "us"]);
}

#[tokio::test]
async fn the_errors_of_a_zone_name_their_fields() {
    let function = Shop::open().await.function();
    let method = |change: fn(&mut Value)| {
        let mut zone = zone(&["CH"]);
        change(&mut zone["methods"][0]);
        zone
    };
    for (body, pointer) in [
        (json!({ "countries": ["ch"], "methods": zone(&[])["methods"] }), "/countries/0"),
        (zone(&["CH", "CH"]), "/countries"),
        (zone(&[]), "/countries"),
        (json!({ "countries": ["CH"], "methods": [] }), "/methods"),
        (method(|method| method["id"] = json!("courier")), "/methods"),
        (method(|method| method["days"] = json!([4, 2])), "/methods/0"),
        (method(|method| method["days"] = json!([4])), "/methods/0/days"),
        (method(|method| method["rates"][0] = json!({ "price": usd(1) })), "/methods/0"),
        (method(|method| method["rates"][0]["up_to_grams"] = json!(5000)), "/methods/0"),
        (method(|method| method["rates"][0]["from_amount"] = usd(1)), "/methods/0/rates/0"),
        (method(|method| method["rates"][0]["price"]["currency"] = json!("EUR")), "/methods/0"),
        (method(|method| method["free_from"]["amount"] = json!(-1)), "/methods/0/free_from/amount"),
    ] {
        let refused = create(&function, ZONES, "alps", &body).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![pointer]), "{body}: {}", refused.body);
    }
    assert!(ids(&function, ZONES).await.is_empty());
}

#[tokio::test]
async fn a_zone_that_is_too_large_for_one_query_of_all_rules_is_refused() {
    let function = Shop::open().await.function();
    let mut large = zone(&["CH"]);
    large["regions"] = (0..100).map(|n| format!("{n:0128}")).collect();
    assert_eq!(create(&function, ZONES, "fits", &large).await.status, 201);
    large["methods"][1]["rates"] =
        (0..20).map(|n| json!({ "up_to_grams": n, "price": usd(1_000_000_000_000) })).collect();
    for n in 0..18 {
        let mut method = large["methods"][1].clone();
        method["id"] = json!(format!("m{n}"));
        large["methods"].as_array_mut().unwrap().push(method);
    }
    let refused = replace(&function, ZONES, "fits", 1, &large).await;
    assert_eq!((refused.status, refused.code()), (422, Some("invalid_body")), "{}", refused.body);
}

#[tokio::test]
async fn white_space_and_letter_case_make_no_other_region() {
    let function = Shop::open().await.function();
    let of = |region: &str| {
        let mut body = tax("US", 800);
        body["region"] = json!(region);
        body
    };
    let made = create(&function, TAX, "ny", &of(" NY\u{200B} ")).await;
    assert_eq!((made.status, &made.body["region"]), (201, &json!("NY")), "{}", made.body);
    let again = create(&function, TAX, "ny2", &of("ny")).await;
    assert_eq!((again.status, again.code()), (409, Some("rule_overlaps")));
    let blank = create(&function, TAX, "blank", &of("  ")).await;
    assert_eq!((blank.status, blank.pointers()), (422, vec!["/region"]));
}

#[tokio::test]
async fn a_tax_rate_is_given_in_basis_points_and_further_millionths() {
    let function = Shop::open().await.function();
    let rate =
        |answer: &Answered| [&answer.body["rate_basis_points"], &answer.body["further_millionths"]].map(Value::as_u64);
    let made = create(&function, TAX, "de", &tax("DE", 1900)).await;
    assert_eq!((made.status, made.header("location")), (201, Some("/v1/tax/rules/de")), "{}", made.body);
    assert_eq!(rate(&made), [Some(1900), Some(0)]);
    let with = |further: u64| {
        let mut body = tax("US", 887);
        body["further_millionths"] = json!(further);
        body
    };
    assert_eq!(rate(&create(&function, TAX, "nyc", &with(50)).await), [Some(887), Some(50)]);
    for (body, pointer) in [(tax("FR", 10_001), "/rate_basis_points"), (with(100), "/further_millionths")] {
        let refused = create(&function, TAX, "fr", &body).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![pointer]), "{}", refused.body);
    }
    assert_eq!(ids(&function, TAX).await, ["de", "nyc"]);
}

#[tokio::test]
async fn one_rule_taxes_the_same_goods_in_the_same_place() {
    let function = Shop::open().await.function();
    assert_eq!(create(&function, TAX, "de", &tax("DE", 1900)).await.status, 201);
    let same = create(&function, TAX, "de-2", &tax("DE", 700)).await;
    assert_eq!((same.status, same.code()), (409, Some("rule_overlaps")));
    let mut other = tax("DE", 700);
    other["category"] = json!("reduced");
    assert_eq!(create(&function, TAX, "de-2", &other).await.status, 201);
    let moved = replace(&function, TAX, "de-2", 1, &tax("DE", 700)).await;
    assert_eq!((moved.status, moved.code()), (409, Some("rule_overlaps")));
}

/// Each change also writes the head of the rules, if its version is still the same. Without this
/// condition, several requests could pass the check for overlaps.
#[tokio::test]
async fn of_concurrent_rules_for_one_place_one_is_created() {
    let shop = Shop::open().await;
    let functions: Vec<_> = (0..6).map(|_| shop.function()).collect();
    let requests = functions
        .iter()
        .enumerate()
        .map(async |(n, function)| create(function, TAX, &format!("r{n}"), &tax("DE", 100 * n as u64)).await.status);
    let mut statuses = join_all(requests).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn the_numbers_of_zones_and_of_tax_rules_are_limited() {
    let shop = Shop::open().await;
    let function = shop.function();
    let countries = [
        "AD", "AE", "AF", "AG", "AI", "AL", "AM", "AO", "AQ", "AR", "AS", "AT", "AU", "AW", "AX", "AZ", "BA", "BB",
        "BD", "BE", "BF", "BG", "BH", "BI", "BJ", "BL", "BM", "BN", "BO", "BQ", "BR", "BS", "BT", "BV", "BW", "BY",
        "BZ", "CA", "CC", "CD", "CF",
    ];
    for (n, country) in countries.iter().enumerate() {
        let made = create(&function, ZONES, &format!("z{n}"), &zone(&[country])).await;
        let expected = if n < MAX_ZONES { (201, None) } else { (409, Some("too_many_rules")) };
        assert_eq!((made.status, made.code()), expected);
    }
    shop.store_tax_rules(MAX_TAX_RULES).await;
    let made = create(&function, TAX, "more", &tax("DE", 1)).await;
    assert_eq!((made.status, made.code()), (409, Some("too_many_rules")));
}
