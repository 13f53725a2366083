//! Runs the three phases of an import: products, customers, orders. Each phase counts created,
//! existing and refused rows, with the reasons of refusals.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use futures::stream::{self, StreamExt as _};
use indicatif::ProgressBar;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::client::{Answer, Client};
use super::source::{self, Basket, HouseholdRow, ProductRow, SourceError, Survey};

/// Products per call, the API's maximum.
const PRODUCTS_PER_CALL: usize = 1000;
/// Maximum number of attempts for a product while the table is throttled.
const ROUNDS: u32 = 6;
const CONCURRENCY: usize = 8;
/// Price of a new product that no basket contains.
const DEFAULT_PRICE_CENTS: i64 = 100;

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

#[derive(Debug, Default)]
pub struct Tally {
    /// Counts by outcome: `created`, `already there`, `updated`.
    pub done: BTreeMap<String, u64>,
    /// Names of refused rows, by the reason of the refusal.
    pub refused: BTreeMap<String, Vec<String>>,
    /// Number of order lines that the import left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Names of rows that failed without a refusal by the API, with their errors.
    pub failed: Vec<(String, String)>,
}

impl Tally {
    fn done(&mut self, outcome: &str) {
        *self.done.entry(outcome.to_owned()).or_default() += 1;
    }

    fn refused(&mut self, reason: impl Into<String>, name: impl Into<String>) {
        self.refused.entry(reason.into()).or_default().push(name.into());
    }

    fn add(&mut self, name: String, outcome: Outcome) {
        match outcome {
            Outcome::Done(how) => self.done(how),
            Outcome::Refused(reason) => self.refused(reason, name),
            Outcome::Failed(error) => self.failed.push((name, error)),
        }
    }

    /// Returns the number of rows that the system has now, from this run or an earlier run.
    pub fn taken(&self) -> u64 {
        self.done.values().sum()
    }
}

#[derive(Debug)]
enum Outcome {
    Done(&'static str),
    Refused(String),
    Failed(String),
}

impl Outcome {
    fn of(answer: Result<Answer, String>) -> Self {
        match answer {
            Ok(Answer { status: StatusCode::CREATED, .. }) => Self::Done("created"),
            Ok(Answer { code: Some(code), .. }) if code == "already_exists" => Self::Done("already there"),
            Ok(Answer { status, code: Some(code), .. }) if status.is_client_error() && !is_ours(status) => {
                Self::Refused(code)
            }
            Ok(answer) => Self::Failed(answer.to_string()),
            Err(error) => Self::Failed(error),
        }
    }
}

impl Outcome {
    /// Converts the outcome of a whole call into an error message.
    fn into_failure(self) -> String {
        match self {
            Self::Done(how) => format!("unexpected answer: {how}"),
            Self::Refused(error) | Self::Failed(error) => error,
        }
    }
}

/// Returns whether a status means an error of the import, and not of the row.
fn is_ours(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST)
}

/// Loads the products of a file. Their prices come from the baskets.
pub async fn products(client: &Client, rows: Vec<ProductRow>, survey: &Survey, stock: u64, bar: &ProgressBar) -> Tally {
    let mut tally = Tally::default();
    let calls = rows.chunks(PRODUCTS_PER_CALL).map(|rows| take(client, rows, survey, stock));
    let mut taken = stream::iter(calls).buffer_unordered(2);
    while let Some(outcomes) = taken.next().await {
        for (id, outcome) in outcomes {
            bar.inc(1);
            tally.add(id, outcome);
        }
    }
    tally
}

/// Loads the products of one call. Sends throttled products again.
async fn take(client: &Client, rows: &[ProductRow], survey: &Survey, stock: u64) -> Vec<(String, Outcome)> {
    let (mut outcomes, mut pending): (Vec<_>, Vec<&ProductRow>) = (Vec::new(), rows.iter().collect());
    for round in (0..ROUNDS).rev() {
        let body: String = pending.iter().map(|row| format!("{}\n", product(row, survey, stock))).collect();
        let results = match client.post("/v1/products/import", NDJSON, body, None).await {
            Ok(Answer { status: StatusCode::OK, body, .. }) => body.get("results").and_then(Value::as_array).cloned(),
            other => {
                let error = Outcome::of(other).into_failure();
                outcomes.extend(pending.iter().map(|row| (row.product_id.clone(), Outcome::Failed(error.clone()))));
                return outcomes;
            }
        };
        let results = results.into_iter().flatten().map(Some).chain(std::iter::repeat(None));
        let mut busy = Vec::new();
        for (row, result) in pending.into_iter().zip(results) {
            let text = |name| result.as_ref().and_then(|result| result.get(name)).and_then(Value::as_str);
            let outcome = match (text("status"), text("code")) {
                (Some("created"), _) => Outcome::Done("created"),
                (Some("unchanged"), _) => Outcome::Done("already there"),
                (Some("updated"), _) => Outcome::Done("updated"),
                (Some("refused"), Some("throttled")) if round > 0 => {
                    busy.push(row);
                    continue;
                }
                (Some("refused"), Some("throttled")) => Outcome::Failed("throttled".to_owned()),
                (Some("refused"), code) => Outcome::Refused(code.unwrap_or("no reason given").to_owned()),
                _ => Outcome::Failed("the response has no result for this product".to_owned()),
            };
            outcomes.push((row.product_id.clone(), outcome));
        }
        pending = busy;
        if pending.is_empty() {
            break;
        }
        client.pause().await;
    }
    outcomes
}

fn product(row: &ProductRow, survey: &Survey, stock: u64) -> Value {
    // If no basket has a price for the product, an existing product keeps its price.
    let (price_field, price) = match survey.prices.get(&row.product_id) {
        Some(price) => ("price", *price),
        None => ("price_if_new", DEFAULT_PRICE_CENTS),
    };
    let size = row.package_size.trim();
    json!({
        "id": row.product_id,
        "name": row.name(),
        "brand": if row.brand.trim().is_empty() { "UNKNOWN" } else { row.brand.trim() },
        "category_path": row.category_path(),
        price_field: { "amount": price, "currency": "USD" },
        "stock": stock,
        "package_size": (!size.is_empty()).then_some(size),
    })
}

/// Loads the households of the file, each with a `place`. Also loads, without a `place`, the
/// households that are in the baskets but not in the file.
pub async fn customers(client: &Client, rows: Vec<HouseholdRow>, survey: &Survey, bar: &ProgressBar) -> Tally {
    let known: std::collections::BTreeSet<String> = rows.into_iter().map(|row| row.household_id).collect();
    let bare = survey.households.iter().map(u64::to_string).filter(|id| !known.contains(id));
    let all: Vec<(String, bool)> =
        known.iter().map(|id| (id.clone(), true)).chain(bare.map(|id| (id, false))).collect();
    bar.set_length(u64::try_from(all.len()).unwrap_or_default());
    let calls = all.into_iter().map(|(id, placed)| async move {
        let body = json!({
            "id": id,
            "email": format!("household-{id}@example.com"),
            "username": format!("household-{id}"),
            "name": format!("Household {id}"),
            "place": placed.then(|| json!({ "country": "US", "city": "unknown" })),
        });
        let outcome = Outcome::of(client.post("/v1/customers", JSON, body.to_string(), None).await);
        (id, outcome)
    });
    let mut tally = Tally::default();
    let mut answers = stream::iter(calls).buffer_unordered(CONCURRENCY);
    while let Some((id, outcome)) = answers.next().await {
        bar.inc(1);
        tally.add(id, outcome);
    }
    tally
}

/// Loads the baskets as orders with the time of the purchase.
pub async fn orders(client: &Client, path: &Path, limit: Option<u64>, bar: &ProgressBar) -> Result<Tally, SourceError> {
    let (mut tally, mut seen) = (Tally::default(), HashSet::new());
    let calls = source::baskets(path, limit)?.map(|basket| {
        // If two baskets have the same id, only the first in the file is loaded, even if they
        // differ. Otherwise the order of concurrent calls would decide, and a second run could have
        // another result.
        let is_repeated = matches!(&basket, Ok(Ok(basket)) if !seen.insert(basket.basket_id));
        async move {
            let refused =
                |name, reason: &str| Placed { name, outcome: Outcome::Refused(reason.into()), left_out: Vec::new() };
            Ok(match basket? {
                Ok(basket) if is_repeated => refused(basket.basket_id.to_string(), "the file has the basket twice"),
                Ok(basket) => place(client, basket).await,
                Err(line) => refused(format!("line {line}"), "not a basket"),
            })
        }
    });
    let mut answers = stream::iter(calls).buffer_unordered(CONCURRENCY);
    while let Some(placed) = answers.next().await {
        let Placed { name, outcome, left_out } = placed?;
        bar.inc(1);
        for reason in left_out {
            *tally.left_out.entry(reason.to_owned()).or_default() += 1;
        }
        tally.add(name, outcome);
    }
    Ok(tally)
}

struct Placed {
    name: String,
    outcome: Outcome,
    left_out: Vec<&'static str>,
}

async fn place(client: &Client, basket: Basket) -> Placed {
    let name = basket.basket_id.to_string();
    let mut left_out = Vec::new();
    let mut lines: Vec<Value> = Vec::with_capacity(basket.lines.len());
    for line in &basket.lines {
        let usd = |cents: i64| json!({ "amount": cents, "currency": "USD" });
        match (line.quantity, line.cents(), line.discounts()) {
            (0, ..) => left_out.push("quantity 0"),
            (1.., Some(cents @ 0..), Some(discounts)) => lines.push(json!({
                "product_id": line.product_id.to_string(),
                "quantity": line.quantity,
                "total": usd(cents),
                "discounts": discounts
                    .into_iter()
                    .map(|(name, cents)| json!({ "name": name, "amount": usd(cents) }))
                    .collect::<Vec<_>>(),
            })),
            _ => left_out.push("unreadable quantity or amount"),
        }
    }
    // There are at most two attempts. The second attempt omits products that the system does not
    // have.
    for attempt in ["a", "b"] {
        if lines.is_empty() {
            return Placed { name, outcome: Outcome::Refused("no line left".into()), left_out };
        }
        let body = json!({
            "customer_id": basket.household_id.to_string(),
            "reference": name,
            "placed_at": basket.placed_at,
            "store_id": basket.store_id.to_string(),
            "lines": lines,
        });
        let answer = client.post("/v1/orders", JSON, body.to_string(), Some(&format!("{name}-{attempt}"))).await;
        let unknown = match &answer {
            Ok(answer) if answer.code.as_deref() == Some("unknown_product") => unknown_lines(&answer.body),
            _ => Vec::new(),
        };
        if unknown.is_empty() || attempt == "b" {
            let outcome = match &answer {
                Ok(answer) if answer.code.as_deref() == Some("already_exists") => found(client, answer, &body).await,
                _ => Outcome::of(answer),
            };
            return Placed { name, outcome, left_out };
        }
        left_out.extend(unknown.iter().map(|_| "unknown product"));
        let mut position = 0;
        lines.retain(|_| {
            position += 1;
            !unknown.contains(&(position - 1))
        });
    }
    Placed { name, outcome: Outcome::Failed("unreachable".into()), left_out }
}

/// Reads the order with a basket's number, and compares it with the basket, because another order
/// may have this number.
async fn found(client: &Client, answer: &Answer, basket: &Value) -> Outcome {
    let Some(location) = &answer.location else {
        return Outcome::Failed("the response does not name the order".into());
    };
    match client.get(location).await {
        Ok(Answer { status: StatusCode::OK, body: order, .. }) if is_same(&order, basket) => {
            Outcome::Done("already there")
        }
        Ok(Answer { status: StatusCode::OK, .. }) => Outcome::Refused("another order has this number".into()),
        Ok(Answer { status: StatusCode::NOT_FOUND, .. }) => {
            Outcome::Refused("the order with this number has expired".into())
        }
        other => Outcome::Failed(Outcome::of(other).into_failure()),
    }
}

fn is_same(order: &Value, basket: &Value) -> bool {
    let lines = |of: &Value| -> Vec<Value> {
        let shown = |line: &Value| json!([line["product_id"], line["quantity"], line["total"]]);
        of["lines"].as_array().into_iter().flatten().map(shown).collect()
    };
    let paid = lines(basket).iter().filter_map(|line| line.pointer("/2/amount")?.as_i64()).sum::<i64>();
    order["customer_id"] == basket["customer_id"]
        && lines(order) == lines(basket)
        && order["total"] == json!({ "amount": paid, "currency": "USD" })
}

/// Returns the positions of the lines that an error response points at, as in
/// `/lines/3/product_id`.
fn unknown_lines(body: &Value) -> Vec<usize> {
    let errors = body.get("errors").and_then(Value::as_array).into_iter().flatten();
    errors
        .filter_map(|error| error.get("pointer")?.as_str()?.strip_prefix("/lines/")?.split('/').next()?.parse().ok())
        .collect()
}
