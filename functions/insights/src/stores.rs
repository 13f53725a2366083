//! Stores, each with its country and city. A sale counts for the current country and city of its
//! store.

use http_api::fields::visible_text;
use http_api::url::location;
use http_api::{Code, Invalid, Precondition, Problem, Request, Response, Services, read_fields};
use key_schema::id::{MAX_ID_BYTES, StoreId, check_id};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::place::{self, StoreLocation};
use serde::Serialize;

/// The longest name of a store, in bytes of UTF-8.
const MAX_NAME: usize = 200;

pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: StoreId = request.path("id")?;
    let store = services.table.get(&place::get(&id)?).await?.ok_or_else(no_such_store)?;
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
    match services.table.write(&place::create(&store)?).await? {
        Ok(()) => Ok(Response::created(location, &StoreView::from(&store)).etag(store.meta.version)),
        Err(_) => Err(Problem::new(Code::AlreadyExists, "A store with this id already exists.").location(location)),
    }
}

async fn change(services: &Services, store: &StoreLocation, version: u64, at: Instant) -> Result<Response, Problem> {
    match services.table.update(&place::change(store, version, at)?).await? {
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
