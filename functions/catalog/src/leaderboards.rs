//! Leaderboards: the products with the most sales, views or likes of a day, a week or all time.

use std::collections::BTreeSet;
use std::str::FromStr;

use http_api::contract::rules::{Described, OneOf, PRICE, any, described, integer, list_of, one_of};
use http_api::contract::{Schema, route};
use http_api::{Code, MAX_LIMIT, Problem, Request, Response, Services};
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::leaderboard::{self, Board, Period, RankEntry};
use key_schema::money::Money;
use key_schema::product::Product;
use serde::Serialize;

use crate::body::{BRAND, NAME, PACKAGE_SIZE};
use crate::view::{THUMBNAIL, thumbnail};

/// The maximum number of pages of a board that one request reads. Retired products are left out, so
/// a page may yield fewer products than it has entries.
const MAX_PAGES: usize = 4;
const BOARDS: OneOf = one_of(&["sales", "views", "likes"]);
const PERIODS: OneOf = one_of(&["day", "week", "all"]);
/// A day, or null for all time.
const DATE: Described = described(r#"{"type": ["string", "null"], "format": "date"}"#);

/// List the products with the most sales, views or likes
///
/// Returns the products with the largest counts of a day, of a week from Monday to Sunday, or of all
/// time. Days are in UTC. A change is visible within seconds. The counts of `sales` and `likes` are
/// exact, and the counts of `views` are estimates with the standard error `bound`. The leaderboard
/// of sales has no `count`, because only staff may see how many pieces were sold. Products that are
/// not in the catalogue are left out. `GET
/// /v1/leaderboards/likes?period=week&date=2026-11-25&limit=10` returns the week from 2026-11-23.
/// The counts of a day expire 35 days after the end of its week. The counts of a week expire 65
/// weeks after its Monday. Leaderboards whose counts have expired are empty. A shared cache may keep
/// the list for five seconds.
#[route(GET "/v1/leaderboards/{by}", id = "readLeaderboard", who = any, task = "browse", path(Board),
    parameters(
        period = described(r#"{"type": "string", "enum": ["day", "week", "all"], "default": "day"}"#) "",
        date = described(r#"{"type": "string", "format": "date", "examples": ["2026-11-20"]}"#) "The day, or any day \
            of the week. The default is today. With `period=all`, leave out `date`.",
        Limit,
    ),
    answers(200 = BoardView<'_> "The first products of the leaderboard" [ETag, LeftOut]))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let by: Board = request.path("by")?;
    let kind = request.query_as("period")?.unwrap_or(Kind::Day);
    let date = request.query_day("date")?;
    let limit = request.limit()?;
    let now = Instant::now();
    let period = match kind {
        Kind::All if date.is_some() => {
            return Err(Problem::new(Code::InvalidParameter, "`date` must be left out when `period` is `all`."));
        }
        Kind::All => Period::All,
        Kind::Day => Period::day(date.unwrap_or(now)),
        Kind::Week => Period::week(date.unwrap_or(now)),
    };
    // DynamoDB may remove ranks long after they expire, so the table may still have them.
    let (found, left_out) = match period.is_expired(now) {
        true => (Vec::new(), 0),
        false => first(services, by, period, limit).await?,
    };
    let largest = found.first().map_or(0, |(rank, _)| rank.count);
    let items = found.iter().zip(1..);
    let (from, until) = period.days().map(|(first, last)| (first.day(), last.day())).unzip();
    let view = BoardView {
        items: items.map(|((rank, product), place)| EntryView::new(by, place, rank, product)).collect(),
        by: by.as_str(),
        period: kind,
        from,
        until,
        bound: (by == Board::Views).then(|| leaderboard::standard_error(largest)),
    };
    Ok(Response::ok(&view).leaving_out(left_out))
}

/// Reads the first products of a board, without retired products. Also returns the number of
/// unreadable items.
async fn first(
    services: &Services,
    by: Board,
    period: Period,
    limit: usize,
) -> Result<(Vec<(RankEntry, Stored<Product>)>, usize), Problem> {
    let (mut first, mut left_out, mut after, mut listed) = (Vec::new(), 0, None, BTreeSet::new());
    for page in 0..MAX_PAGES {
        // Retired products are rare, so the first page is nearly always enough.
        let size = if page == 0 { limit } else { MAX_LIMIT };
        let found = services.table.query_readable(&leaderboard::top(by, period)?.limit(size).after(after)).await?;
        let ids: Vec<&ProductId> = found.items.iter().map(|rank| &rank.product_id).collect();
        if ids.is_empty() {
            break;
        }
        let products = services.table.batch_get_readable(&leaderboard::products(ids)?).await?;
        left_out += found.left_out() + products.unreadable.len();
        let on_sale = |product: Option<Stored<Product>>| product.filter(|product| !product.retired);
        let ranked = found.items.into_iter().zip(products.items);
        let ranked = ranked.filter_map(|(rank, product)| Some((rank, on_sale(product)?)));
        // A product may be on two pages, because its count may change between the two reads.
        first.extend(ranked.filter(|(rank, _)| listed.insert(rank.product_id.clone())));
        after = found.next;
        if first.len() >= limit || after.is_none() {
            break;
        }
    }
    first.truncate(limit);
    Ok((first, left_out))
}

/// The length of a board's period.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Day,
    Week,
    All,
}

impl FromStr for Kind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "day" => Ok(Self::Day),
            "week" => Ok(Self::Week),
            "all" => Ok(Self::All),
            _ => Err("must be day, week or all"),
        }
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "Leaderboard")]
struct BoardView<'a> {
    #[field(rule = list_of(any::<EntryView<'_>>(), 0..=MAX_LIMIT))]
    items: Vec<EntryView<'a>>,
    #[field(rule = BOARDS, example = "views")]
    by: &'static str,
    #[field(rule = PERIODS, example = "week")]
    period: Kind,
    /// The first day, null for all time.
    #[field(rule = DATE, not_null, example = "2026-11-23")]
    from: Option<String>,
    /// The last day, null for all time.
    #[field(rule = DATE, not_null, example = "2026-11-29")]
    until: Option<String>,
    /// The standard error of the first count, which is the largest one. Only the leaderboard of
    /// views has it.
    #[field(example = 151)]
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<u64>,
}

#[derive(Serialize, Schema)]
#[schema(name = "LeaderboardEntry")]
struct EntryView<'a> {
    #[field(rule = integer(1..=MAX_LIMIT), example = 1)]
    rank: usize,
    product_id: &'a ProductId,
    /// Absent on the leaderboard of sales.
    #[field(rule = integer(1..=u64::MAX), example = 1504)]
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[field(rule = NAME, example = "Ice 22 LB")]
    name: &'a str,
    #[field(rule = BRAND, example = "Private")]
    brand: &'a str,
    #[field(rule = PACKAGE_SIZE, example = "22 LB")]
    package_size: Option<&'a str>,
    #[field(rule = PRICE)]
    price: Money,
    #[field(rule = THUMBNAIL, not_null, example = null)]
    thumbnail: Option<String>,
}

impl<'a> EntryView<'a> {
    fn new(by: Board, rank: usize, found: &'a RankEntry, product: &'a Product) -> Self {
        Self {
            rank,
            product_id: &found.product_id,
            count: (by != Board::Sales).then_some(found.count),
            name: &product.name,
            brand: &product.brand,
            package_size: product.package_size.as_deref(),
            price: product.price,
            thumbnail: thumbnail(&product.id, product.thumbnail.as_ref()),
        }
    }
}
