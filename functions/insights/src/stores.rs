//! Stores, each with its country and city. A sale counts for the current country and city of its
//! store. Staff read the sales by place.

use http_api::fields::visible_text;
use http_api::url::location;
use http_api::{Code, Invalid, List, Precondition, Problem, Request, Response, Services, read_fields};
use key_schema::id::{MAX_ID_BYTES, StoreId, check, check_id};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::region::{self, Month, RegionPath, RegionSales, StoreLocation};
use serde::Serialize;

/// The longest name of a store, in bytes of UTF-8.
const MAX_NAME: usize = 200;

pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: StoreId = request.path("id")?;
    let store = services.table.get(&region::get(&id)?).await?.ok_or_else(no_such_store)?;
    Ok(current(&store))
}

/// PUT stores/{id}: creates a store with `If-None-Match: *`, or replaces it with If-Match. Earlier
/// sales still count for the former country and city.
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: StoreId = request.path("id")?;
    let precondition = request.precondition()?;
    read_fields!(request.object()? => {
        // `GET sales/{country}` has the country in its path, so the country must be a valid id.
        country: required(|value| {
        let country: String = visible_text(1..=MAX_ID_BYTES)(value)?;
        check_id(&country).map_err(|error| Invalid::new(error.to_string()))?;
        Ok(country)
    }),
        city: required(visible_text(1..=MAX_ID_BYTES)),
        name: required(visible_text(1..=MAX_NAME)),
    });
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

#[derive(Serialize)]
struct StoreView<'a> {
    id: &'a StoreId,
    country: &'a str,
    city: &'a str,
    name: &'a str,
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

/// GET sales/{country}?month=&path=: lists the sales of a month by city, store, day and currency.
/// `path` restricts the list to a city, a store or a day of one store.
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

/// The sales of a store on one day, in one currency.
#[derive(Serialize)]
struct TotalView<'a> {
    country: &'a str,
    city: &'a str,
    store_id: &'a StoreId,
    date: &'a str,
    orders: u64,
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
