//! Stores, each with its country and city. A sale counts for the current country and city of its
//! store. Staff read the sales by place.

use http_api::contract::rules::{Described, Text, VERSION, described, visible_text};
use http_api::contract::{Body, Context, Node, Page, Rule, RuleSchema, Schema, Schemas, route};
use http_api::json::Value;
use http_api::url::location;
use http_api::{Code, Invalid, List, Precondition, Problem, Request, Response, Services};
use key_schema::id::{MAX_ID_BYTES, StoreId, check, check_id};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::region::{self, Month, RegionPath, RegionSales, StoreLocation};
use serde::Serialize;

const PLACE_NAME: Text = visible_text(1..=MAX_ID_BYTES);
const NAME: Text = visible_text(1..=200);
const DATE: Described = described(r#"{"type": "string", "format": "date"}"#);
const MONTH: Described =
    described(r#"{"type": "string", "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$", "examples": ["2017-01"]}"#);
const PATH: Described = described(
    r#"{"type": "string", "pattern": "^([A-Za-z0-9-]|_[0-9A-F]{2})+(~([A-Za-z0-9-]|_[0-9A-F]{2})+){0,2}$",
    "examples": ["Z_C3_BCrich~364"]}"#,
);

#[derive(Body)]
pub struct StoreChange {
    #[field(rule = CountryName, example = "CH")]
    country: String,
    /// 1 to 128 bytes.
    #[field(rule = PLACE_NAME, example = "Zürich")]
    city: String,
    /// 1 to 200 bytes.
    #[field(rule = NAME, example = "By the lake")]
    name: String,
}

/// The name of a country. `GET sales/{country}` has it in its path, so it must be a valid id.
struct CountryName;

impl Rule<String> for CountryName {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<String, Invalid> {
        let country: String = PLACE_NAME.read(value, context)?;
        check_id(&country).map_err(|error| Invalid::new(error.to_string()))?;
        Ok(country)
    }
}

impl RuleSchema for CountryName {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        StoreId::schema(schemas)
    }
}

/// Read a store
#[route(GET "/v1/stores/{id}", id = "readStore", who = staff, task = "sales", path(id: StoreId),
    answers(200 = StoreView<'_> "The store" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: StoreId = request.path("id")?;
    let store = services.table.get(&region::get(&id)?).await?.ok_or_else(no_such_store)?;
    Ok(current(&store))
}

/// Create or change a store
///
/// `If-None-Match: *` creates the store, `If-Match` replaces it. Later orders belong to the new
/// country and city. Earlier orders still belong to the former country and city.
#[route(PUT "/v1/stores/{id}", id = "putStore", who = staff, task = "sales", path(id: StoreId),
    parameters(IfMatchOrNone, IfNoneMatch), body = StoreChange,
    answers(200 = StoreView<'_> "The store" [ETag], 201 = StoreView<'_> "The new store" [Location, ETag]),
    refuses(already_exists))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: StoreId = request.path("id")?;
    let precondition = request.precondition()?;
    let StoreChange { country, city, name } = request.body()?;
    let (store, at) = (StoreLocation { id, country, city, name }, Instant::now());
    match precondition {
        Precondition::Absent => create(services, store, at).await,
        Precondition::Version(version) => change(services, &store, version, at).await,
    }
}

async fn create(services: &Services, store: StoreLocation, at: Instant) -> Result<Response, Problem> {
    let store = Stored::new(store, services.born(at)?, at);
    let location = location(&["stores", store.id.as_str()]);
    match services.table.write(&region::create(&store)?).await? {
        Ok(()) => Ok(Response::created(location, &StoreView::from(&store)).etag(store.meta.version)),
        Err(_) => Err(Problem::new(Code::AlreadyExists, "A store with this id already exists.").location(location)),
    }
}

async fn change(services: &Services, store: &StoreLocation, version: u64, at: Instant) -> Result<Response, Problem> {
    match services.table.update(&region::change(store, version, at)?).await? {
        Ok(store) => Ok(current(&store)),
        Err(refusal) => Err(if refusal.item.is_some() { Problem::version_mismatch() } else { no_such_store() }),
    }
}

fn current(store: &Stored<StoreLocation>) -> Response {
    Response::ok(&StoreView::from(store)).etag(store.meta.version)
}

fn no_such_store() -> Problem {
    Problem::not_found("store")
}

#[derive(Serialize, Schema)]
struct StoreView<'a> {
    #[field(example = "364")]
    id: &'a StoreId,
    #[field(rule = CountryName, example = "CH")]
    country: &'a str,
    #[field(rule = CountryName, example = "Zürich")]
    city: &'a str,
    #[field(rule = NAME, example = "By the lake")]
    name: &'a str,
    #[field(rule = VERSION)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<StoreLocation>> for StoreView<'a> {
    fn from(store: &'a Stored<StoreLocation>) -> Self {
        let StoreLocation { id, country, city, name } = &store.data;
        let meta = &store.meta;
        let (version, created_at, updated_at) = (meta.version, meta.created_at, meta.updated_at);
        Self { id, country, city, name, version, created_at, updated_at }
    }
}

/// List a country's sales in a month
///
/// Returns totals by city, store, day (UTC) and currency, in this order. Cancelled and returned
/// orders are not counted. An order belongs to the place where its store was when the order was
/// first counted. A store that was never created is in the country `US` and the city `unknown`. An
/// order without a store belongs to the store `online`. The list shows orders with a short delay.
#[route(GET "/v1/sales/{country}", id = "listPlaceSales", who = staff, task = "sales", path(SalesCountry),
    parameters(
        required month = MONTH "The month of the orders in UTC.",
        path = PATH "A city, or a city and one of its stores, or a city, a store and a day, joined by `~`. Inside a \
            name, every byte outside `A-Z a-z 0-9 -` becomes `_` and two upper-case hexadecimal digits.",
        Limit, Cursor,
    ),
    answers(200 = Page<TotalView<'_>> "A page of totals" [Link, LeftOut]))]
pub async fn sales_of_region(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let country = request.path_by("country", |text| check(text).map(|()| text.to_owned()))?;
    let month: Month = request
        .query_as("month")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `month` is missing."))?;
    let within: Option<RegionPath> = request.query_as("path")?;
    let (month_text, path) = (month.to_string(), request.query("path")?.unwrap_or_default());
    let parameters = [("country", country.as_str()), ("month", month_text.as_str()), ("path", path)];
    let query = region::sales(&country, &month, within.as_ref())?;
    let List { page, found } = request.list(services, query, &parameters).await?;
    let found = found.sum(|total, part| total.data.add(&part.data));
    List { page, found }.answer(|total| TotalView::from(&total.data)).await
}

#[derive(Serialize, Schema)]
#[schema(name = "PlaceSales")]
struct TotalView<'a> {
    #[field(rule = CountryName, example = "CH")]
    country: &'a str,
    #[field(rule = CountryName, example = "Zürich")]
    city: &'a str,
    #[field(example = "364")]
    store_id: &'a StoreId,
    #[field(rule = DATE, example = "2026-11-20")]
    date: &'a str,
    #[field(example = 9)]
    orders: u64,
    #[field(example = {"amount": 6966, "currency": "USD"})]
    total: Money,
}

impl<'a> From<&'a RegionSales> for TotalView<'a> {
    fn from(sales: &'a RegionSales) -> Self {
        let RegionSales { country, city, store_id, date, currency, orders, amount, shard: _ } = sales;
        Self {
            country,
            city,
            store_id,
            date,
            orders: u64::try_from(*orders).unwrap_or(0),
            total: Money::new(*amount, *currency),
        }
    }
}
