//! Tests of stores, and of sales by place.

use std::ops::Deref;

use fixture::{Harness, TestTable};
use http_api::Services;
use http_api::sample::Call;
use key_schema::id::Born;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::{Currency, Money};
use key_schema::order::Order;
use key_schema::region::{self, SaleRegion};
use key_schema::sales::{self, Derived};
use serde_json::{Value, json};

struct Shop(Harness<Services>);

impl Deref for Shop {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A sale: store, day, currency, amount.
type Sold<'a> = (&'a str, &'a str, &'a str, i64);

impl Shop {
    async fn open() -> Self {
        Self(Harness::start(insights::routes(), TestTable::services).await)
    }

    /// Creates a store and expects success.
    async fn enter(&self, id: &str, country: &str, city: &str) {
        let body = json!({"country": country, "city": city, "name": "Shop"});
        self.expect(201, put(id).header("if-none-match", "*").json(&body).staff("s1")).await;
    }

    /// Counts an order, as the stream's consumer does.
    async fn sell(&self, number: usize, (store, day, currency, amount): Sold<'_>) {
        let order = Order {
            store_id: Some(store.parse().unwrap()),
            ..Order::new(
                format!("o{number}").parse().unwrap(),
                "c1".parse().unwrap(),
                format!("{day}T12:00:00Z").parse().unwrap(),
                Money::new(amount, currency.parse::<Currency>().unwrap()),
                0,
            )
        };
        let (table, id) = (self.own(), region::store_of(&order));
        let store = table.get(&region::read_for_update(&id).unwrap()).await.unwrap();
        let counted_at = SaleRegion::of(&order, store.as_deref(), id);
        let head = Stored::new(order, Born::new("b1").unwrap(), Instant::EPOCH);
        for transaction in sales::apply(&head, &[], &Derived::default(), counted_at, Instant::now()).unwrap() {
            self.transact(&transaction).await;
        }
    }

    /// Returns the entries of the list: city, store, day, orders, total.
    async fn sales(&self, country: &str, query: &[(&str, &str)]) -> Vec<String> {
        let page = self.expect(200, list(country, query).staff("s1")).await;
        page["items"].as_array().unwrap().iter().map(line).collect()
    }
}

fn line(item: &Value) -> String {
    let text = |name: &str| item[name].as_str().unwrap().to_owned();
    let (total, orders) = (&item["total"], &item["orders"]);
    let amount = format!("{} {}", total["amount"], total["currency"].as_str().unwrap());
    format!("{}/{}/{}: {orders} for {amount}", text("city"), text("store_id"), text("date"))
}

fn put(id: &str) -> Call {
    Call::new("PUT /v1/stores/{id}").path("id", id)
}

fn get(id: &str) -> Call {
    Call::new("GET /v1/stores/{id}").path("id", id)
}

fn list(country: &str, query: &[(&str, &str)]) -> Call {
    let call = Call::new("GET /v1/sales/{country}").path("country", country);
    query.iter().fold(call, |call, (name, value)| call.query(name, value))
}

#[tokio::test]
async fn a_shop_is_created_once_and_changed_only_at_its_current_version() {
    let shop = Shop::open().await;
    let body = json!({"country": "CH", "city": "Zürich #8", "name": "By the lake"});
    let entered = shop.send(put("3#64").header("if-none-match", "*").json(&body).staff("s1")).await;
    assert_eq!((entered.status, entered.version()), (201, Some(1)));
    assert_eq!(entered.header("location"), Some("/v1/stores/3%2364"));
    let again = shop.send(put("3#64").header("if-none-match", "*").json(&body).staff("s1")).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    assert_eq!(again.header("location"), Some("/v1/stores/3%2364"));
    let read = shop.send(get("3#64").staff("s1")).await;
    assert_eq!((read.status, read.version(), &read.body), (200, Some(1), &entered.body));
    let moved = json!({"country": "DE", "city": "Konstanz", "name": "By the lake"});
    let change = |tag| put("3#64").header("if-match", tag).json(&moved).staff("s1");
    let changed = shop.send(change("\"1\"")).await;
    assert_eq!((changed.status, changed.version(), &changed.body["city"]), (200, Some(2), &json!("Konstanz")));
    let stale = shop.send(change("\"1\"")).await;
    assert_eq!((stale.status, stale.code()), (412, Some("version_mismatch")));
    assert_eq!(shop.send(get("3#64").staff("s1")).await.body, changed.body);
}

#[tokio::test]
async fn one_of_many_concurrent_creations_or_changes_of_a_shop_wins() {
    let shop = Shop::open().await;
    let statuses = async |headers: (&'static str, &'static str)| {
        let attempts = (0..6).map(|number| {
            let body = json!({"country": "CH", "city": format!("City {number}"), "name": "x"});
            shop.send(put("s").header(headers.0, headers.1).json(&body).staff("s1"))
        });
        let mut statuses: Vec<u16> =
            futures::future::join_all(attempts).await.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        statuses
    };
    assert_eq!(statuses(("if-none-match", "*")).await, [201, 409, 409, 409, 409, 409]);
    assert_eq!(statuses(("if-match", "\"1\"")).await, [200, 412, 412, 412, 412, 412]);
}

#[tokio::test]
async fn sales_are_listed_by_any_part_of_a_country_in_one_query() {
    let shop = Shop::open().await;
    let cities = ["Zürich", "Züri", "Zürich #8", "a~b", "100%", "蘇黎世", "St. Gallen"];
    for (number, city) in cities.iter().enumerate() {
        shop.enter(&format!("s{number}"), "CH", city).await;
        shop.sell(number, (&format!("s{number}"), "2017-01-05", "CHF", 100)).await;
    }
    shop.enter("t#0", "CH", "Zürich").await;
    for (number, day) in ["2017-01-05", "2017-01-06", "2017-01-06", "2017-02-01"].iter().enumerate() {
        shop.sell(100 + number, ("t#0", day, "CHF", 10)).await;
    }
    shop.sell(200, ("t#0", "2017-01-06", "EUR", 7)).await;
    let january = ("month", "2017-01");
    let all = shop.sales("CH", &[january]).await;
    assert_eq!(all.len(), cities.len() + 3, "{all:?}");
    for (number, city) in cities.iter().enumerate().skip(1) {
        let segment = key_schema::product::segment::encode(&[(*city).to_owned()]);
        let of_city = shop.sales("CH", &[january, ("path", segment.as_str())]).await;
        assert_eq!(of_city, [format!("{city}/s{number}/2017-01-05: 1 for 100 CHF")]);
    }
    let of = async |path| shop.sales("CH", &[january, ("path", path)]).await;
    let in_shop = [
        "Zürich/t#0/2017-01-05: 1 for 10 CHF",
        "Zürich/t#0/2017-01-06: 2 for 20 CHF",
        "Zürich/t#0/2017-01-06: 1 for 7 EUR",
    ];
    assert_eq!(of("Z_C3_BCrich~t_230").await, in_shop);
    assert_eq!(of("Z_C3_BCrich~t_230~2017-01-06").await, in_shop[1..]);
    assert_eq!(of("Z_C3_BCrich").await.len(), 4);
    assert_eq!(shop.sales("CH", &[("month", "2017-02")]).await, ["Zürich/t#0/2017-02-01: 1 for 10 CHF"]);
    assert!(shop.sales("C", &[january]).await.is_empty());
}

/// The total of each day of the online store is a sum over shards. A page never ends between the
/// shards of a day.
#[tokio::test]
async fn a_total_of_several_items_is_one_entry_on_pages_of_every_size() {
    let shop = Shop::open().await;
    let mut expected = Vec::new();
    for day in 1..=5 {
        let date = format!("2017-01-0{day}");
        for number in 0..12 * day {
            shop.sell(100 * day + number, ("online", &date, "USD", 7)).await;
        }
        let orders = 12 * day;
        expected.push(format!("unknown/online/{date}: {orders} for {} USD", 7 * orders));
    }
    for number in 0..3 {
        shop.sell(number, (&format!("s{number}"), "2017-01-05", "USD", 1)).await;
        expected.push(format!("unknown/s{number}/2017-01-05: 1 for 1 USD"));
    }
    for path in [None, Some("unknown"), Some("unknown~online")] {
        let filtered: Vec<&String> =
            expected.iter().filter(|line| path != Some("unknown~online") || line.contains("/online/")).collect();
        for limit in ["1", "2", "3", "100"] {
            let (mut found, mut cursor) = (Vec::new(), None::<String>);
            loop {
                let mut query = vec![("month", "2017-01"), ("limit", limit)];
                query.extend(path.map(|path| ("path", path)));
                query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
                let answer = shop.send(list("US", &query).staff("s1")).await;
                found.extend(answer.body["items"].as_array().unwrap().iter().map(line));
                let Some(next) = answer.body["next_cursor"].as_str() else { break };
                cursor = Some(next.to_owned());
            }
            assert_eq!(found.iter().collect::<Vec<_>>(), filtered, "{path:?} {limit}");
        }
    }
    let of_shop = shop.sales("US", &[("month", "2017-01"), ("path", "unknown~s1")]).await;
    assert_eq!(of_shop, ["unknown/s1/2017-01-05: 1 for 1 USD"]);
}
