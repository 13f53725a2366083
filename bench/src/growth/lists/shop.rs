use http_api::sample::Call;
use key_schema::category::CategoryNode;
use key_schema::expiration::{Expiration, RemovedBy};
use key_schema::id::{Born, LogId, MetricName, PointId, PromotionId, StoreId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::lists;
use key_schema::metric::MetricPoint;
use key_schema::money::Currency;
use key_schema::order::{CustomerOrder, OrderLog, OrderStatus};
use key_schema::picking::WaitingJob;
use key_schema::promotion::{Conditions, Goods, Promotion, Reduction};
use key_schema::region::{self, RegionSales};
use key_schema::review::Review;
use key_schema::review::recent::RecentReview;
use key_schema::sales::Sale;

use super::List;
use crate::BenchError;
use crate::examples::{
    OWNER, STAFF, at, bytes, category, customer_id, item, numbered, order, order_id, owned_product, owner, product,
    product_id, stored, usd,
};

const DAY_MILLIS: i64 = 86_400_000;
const SECOND_MILLIS: u64 = 1_000;

pub(super) fn lists() -> Result<Vec<List>, BenchError> {
    let mut lists = catalog()?;
    lists.extend(orders()?);
    lists.extend(insights()?);
    Ok(lists)
}

fn catalog() -> Result<Vec<List>, BenchError> {
    let reviews = |sort: &'static str| -> Result<List, BenchError> {
        Ok(List {
            call: Call::new("GET /v1/products/{id}/reviews").path("id", OWNER).query("sort", sort),
            function: super::catalog,
            around: vec![item(product(owned_product()?)?, 0)?],
            item: Box::new(|n| item(Review { customer_id: customer_id(n)?, ..review(n)? }, n)),
        })
    };
    // The list begins with the current month. An entry's shard is a hash of its sort key, which
    // contains the time. So times with random milliseconds spread the entries over the shards.
    let now = Instant::now();
    let month = now.as_millis() - now.as_millis().rem_euclid(DAY_MILLIS) - DAY_MILLIS * day_of_month(now)?;
    let moment = |n: u64| n * SECOND_MILLIS + fastrand::Rng::with_seed(n).u64(..SECOND_MILLIS);
    let root = category(&["GROCERY"])?;
    Ok(vec![
        List::new(Call::new("GET /v1/categories/{path}/products").path("path", "GROCERY"), super::catalog, |n| {
            item(product(product_id(n)?)?, n)
        }),
        List {
            call: Call::new("GET /v1/categories/{path}/children").path("path", "GROCERY"),
            function: super::catalog,
            around: vec![item(CategoryNode::new(root), 0)?],
            item: Box::new(|n| item(CategoryNode::new(category(&["GROCERY", &numbered("child", n)])?), n)),
        },
        List::new(Call::new("GET /v1/categories"), super::catalog, |n| {
            item(CategoryNode::new(category(&[&numbered("top", n)])?), n)
        }),
        List::new(Call::new("GET /v1/categories/{path}/subtree").path("path", "GROCERY"), super::catalog, |n| {
            let (child, leaf) = (numbered("child", n / 100), numbered("leaf", n % 100));
            let names = ["GROCERY", &child, &leaf];
            item(CategoryNode::new(category(if n % 100 == 0 { &names[..2] } else { &names[..] })?), n)
        }),
        reviews("newest")?,
        reviews("best")?,
        List::of_owner("GET /v1/customers/{id}/reviews", super::catalog, |n| {
            item(Review { product_id: product_id(n)?, ..review(n)? }, n)
        }),
        List::new(Call::new("GET /v1/reviews/recent"), super::catalog, move |n| {
            let written = Instant::from_millis(month.saturating_add_unsigned(moment(n))).unwrap_or(Instant::EPOCH);
            let review = Review { customer_id: customer_id(n)?, ..review(n)? };
            let review = Stored::new(review, Born::generate(written, bytes(n)), written);
            RecentReview::of(&review).to_item().map_err(BenchError::from)
        }),
    ])
}

/// Returns the number of whole days that have passed since the month began.
fn day_of_month(at: Instant) -> Result<i64, BenchError> {
    let day = at.day();
    let day = day.rsplit('-').next().unwrap_or_default();
    Ok(day.parse::<i64>()? - 1)
}

fn review(n: u64) -> Result<Review, BenchError> {
    let (display_name, title, text) = (None, "Cold".to_owned(), "As ice should be.".to_owned());
    Ok(Review { product_id: owned_product()?, customer_id: owner()?, rating: n % 5 + 1, display_name, title, text })
}

fn orders() -> Result<Vec<List>, BenchError> {
    let logged = stored(order(0)?, 0);
    let id = logged.id.clone();
    let day: Instant = "2017-01-03T00:00:00Z".parse()?;
    Ok(vec![
        List::of_owner("GET /v1/customers/{id}/orders", super::orders, |n| item(copy(n, false)?, n)),
        List::of_owner("GET /v1/customers/{id}/shipments", super::orders, |n| item(copy(n, true)?, n)),
        List::new(Call::new("GET /v1/orders").query("status", "pending").staff(STAFF), super::orders, |n| {
            item(order(n)?, n)
        }),
        List {
            call: Call::new("GET /v1/orders/{id}/log").path("id", id.as_str()).staff(STAFF),
            function: super::orders,
            around: vec![logged.to_item()?],
            item: Box::new(move |n| {
                let text = numbered("The customer called, call", n);
                let line = LogId::generate(at(n), bytes(n));
                item(
                    OrderLog {
                        id: line,
                        order_id: id.clone(),
                        at: at(n),
                        by: STAFF.to_owned(),
                        text,
                        list_shards: lists::FIRST,
                    },
                    n,
                )
            }),
        },
        List::new(Call::new("GET /v1/log").query("day", "2017-01-03").staff(STAFF), super::orders, move |n| {
            let at = day.plus_millis(i64::try_from(n)?);
            let (id, text) = (LogId::generate(at, bytes(n)), numbered("The customer called, call", n));
            item(OrderLog { id, order_id: order_id(n), at, by: STAFF.to_owned(), text, list_shards: lists::FIRST }, n)
        }),
        List::new(Call::new("GET /v1/picking").staff(STAFF), super::orders, |n| {
            item(WaitingJob { order_id: order_id(n) }, n)
        }),
        List::new(
            Call::new("GET /v1/products/{id}/sales")
                .path("id", OWNER)
                .query("from", "2017-01-01T00:00:00Z")
                .query("to", "2017-12-31T23:59:59Z")
                .staff(STAFF),
            super::orders,
            |n| item(sale(n)?, n),
        ),
        List::new(
            Call::new("GET /v1/graph/{node}/edges").path("node", OWNER).query("kind", "bought").staff(STAFF),
            super::community,
            |n| item(Sale { product_id: product_id(n)?, line: 2, ..sale(n)? }, n),
        ),
        List::new(Call::new("GET /v1/promotions").staff(STAFF), super::settings, |n| item(promotion(n)?, n)),
    ])
}

fn promotion(n: u64) -> Result<Promotion, BenchError> {
    Ok(Promotion {
        id: PromotionId::new(numbered("promotion", n))?,
        code: Some(numbered("CODE", n)),
        name: "Ten percent".to_owned(),
        reduction: Reduction::Percentage(1_000),
        applies_to: Goods::All,
        conditions: Conditions::default(),
        limit_total: Some(100),
        limit_per_customer: Some(1),
        limit_since: 0,
        exclusive: false,
        priority: 0,
    })
}

fn copy(n: u64, shipped: bool) -> Result<CustomerOrder, BenchError> {
    Ok(CustomerOrder {
        status: if shipped { OrderStatus::Shipped } else { OrderStatus::Pending },
        shipped_at: shipped.then(|| at(n)),
        carrier: shipped.then(|| "Post".to_owned()),
        tracking: shipped.then(|| numbered("CH", n)),
        ..CustomerOrder::of(&order(n)?)
    })
}

fn sale(n: u64) -> Result<Sale, BenchError> {
    Ok(Sale {
        order_id: order_id(n),
        line: 1,
        product_id: owned_product()?,
        placed_at: at(n),
        quantity: 6,
        total: usd(774),
        store_id: None,
        customer_id: owner()?,
        reversed: false,
        ranked_at: None,
    })
}

fn insights() -> Result<Vec<List>, BenchError> {
    // A page reads the points day by day. All points are in one day, so that a page reads only that
    // day. Points are kept for 30 days, so the day is ten days ago.
    let midnight = (Instant::now().as_millis() / DAY_MILLIS - 10) * DAY_MILLIS;
    let instant = |millis: i64| Instant::from_millis(millis).unwrap_or(Instant::EPOCH);
    let (from, to) = (instant(midnight), instant(midnight + DAY_MILLIS - 1));
    let name = MetricName::new("till")?;
    Ok(vec![
        List::new(
            Call::new("GET /v1/metrics/{name}")
                .path("name", "till")
                .query("from", &from.to_string())
                .query("to", &to.to_string())
                .staff(STAFF),
            super::insights,
            move |n| {
                let at = instant(midnight.saturating_add_unsigned(n));
                let (name, id) = (name.clone(), PointId::generate(at, bytes(n)));
                let value = "12.50".parse()?;
                MetricPoint { name, at, id, value }.stored().to_item().map_err(BenchError::from)
            },
        ),
        List::new(
            Call::new("GET /v1/sales/{country}").path("country", "DE").query("month", "2017-02").staff(STAFF),
            super::insights,
            |n| {
                let store_id = StoreId::new(numbered("store", n))?;
                let total = RegionSales {
                    shard: region::SHARDS.of(store_id.as_str()),
                    country: "DE".to_owned(),
                    city: format!("City {:02}", n % 50),
                    store_id,
                    date: "2017-02-01".to_owned(),
                    currency: Currency::USD,
                    orders: 9,
                    amount: 6_966,
                };
                item(total, n)
            },
        ),
        List::new(
            Call::new("GET /v1/audit/expirations").query("day", "2017-02-01").staff(STAFF),
            super::insights,
            |n| {
                let removed = Expiration {
                    kind: "Session".to_owned(),
                    item: format!("{n:032x}"),
                    removed_at: at(0).plus_millis(i64::try_from(n).unwrap_or(i64::MAX)),
                    sequence_number: format!("{:021}", 100_000_000_000 + u128::from(n)),
                    removed_by: RemovedBy::Ttl,
                    archive: Some(format!("expired/{n:032x}.json")),
                };
                removed.stored()?.to_item().map_err(BenchError::from)
            },
        ),
    ])
}
