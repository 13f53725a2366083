//! Stock locations. Only staff see and change them.

use http_api::contract::rules::{NO_CURSOR, Text, any, integer, list_of, visible_text};
use http_api::contract::{Body, Schema, route};
use http_api::url::location as path_of;
use http_api::{Code, Precondition, Problem, Request, Response, Services};
use key_schema::address::PostalAddress;
use key_schema::id::{Born, LocationId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::location::{self, LocationAction, MAX_LOCATIONS, StockLocation};
use serde::Serialize;

const NAME: Text = visible_text(1..=200);

#[derive(Body)]
#[body(name = "StockLocationChange")]
struct NewLocation {
    /// 1 to 200 bytes.
    #[field(rule = NAME, example = "Warehouse Ulm")]
    name: String,
    #[field(left_out)]
    address: Option<PostalAddress>,
}

/// List the stock locations
///
/// Returns all locations, by id. There are at most 50 besides `main`, so there are no pages. The location
/// `main` exists in every shop. Its version is 0 until staff create it to give it a name and an address.
#[route(GET "/v1/locations", id = "listLocations", who = staff, task = "stock",
    answers(200 = LocationList<'_> "All locations" [LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let page = services.table.query_readable(&location::list()?).await?;
    let left_out = page.left_out();
    let mut locations = page.items;
    if left_out == 0 && locations.iter().all(|location| location.id != LocationId::main()) {
        locations.push(unnamed_main());
        locations.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
    }
    let items = locations.iter().map(LocationView::from).collect();
    Ok(Response::ok(&LocationList { items, next_cursor: () }).leaving_out(left_out))
}

/// Read a stock location
#[route(GET "/v1/locations/{id}", id = "readLocation", who = staff, task = "stock", path(id: LocationId),
    answers(200 = LocationView<'_> "The location" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: LocationId = request.path("id")?;
    let found = services.table.get(&location::get(&id)?).await?;
    Ok(current(&found.or_else(|| (id == LocationId::main()).then(unnamed_main)).ok_or_else(no_such_location)?))
}

/// Create or change a stock location
///
/// `If-None-Match: *` creates the location, `If-Match` replaces it. A shop can have at most 50
/// locations besides `main`. Customers buy the pieces of the location `main`.
#[route(PUT "/v1/locations/{id}", id = "putLocation", who = staff, task = "stock", path(id: LocationId),
    parameters(IfMatchOrNone, IfNoneMatch), body = NewLocation,
    answers(
        200 = LocationView<'_> "The location" [ETag],
        201 = LocationView<'_> "The new location" [Location, ETag],
    ),
    refuses(already_exists = "with Location", too_many_locations))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: LocationId = request.path("id")?;
    let precondition = request.precondition()?;
    let NewLocation { name, address } = request.body()?;
    let (location, at) = (StockLocation { id, name, address }, Instant::now());
    match precondition {
        Precondition::Absent => create(services, location, at).await,
        Precondition::Version(version) => {
            match services.table.update(&location::change(&location, version, at)?).await? {
                Ok(location) => Ok(current(&location)),
                Err(refusal) => {
                    let exists = refusal.item.is_some() || location.id == LocationId::main();
                    Err(if exists { Problem::version_mismatch() } else { no_such_location() })
                }
            }
        }
    }
}

async fn create(services: &Services, location: StockLocation, at: Instant) -> Result<Response, Problem> {
    let location = Stored::new(location, services.born(at)?, at);
    let path = path_of(&["locations", location.id.as_str()]);
    let Err(refusals) = services.table.transact(&location::create(&location)?).await? else {
        return Ok(Response::created(path, &LocationView::from(&location)).etag(location.meta.version));
    };
    Err(if refusals.names(LocationAction::Location) {
        Problem::new(Code::AlreadyExists, "A location with this id already exists.").location(path)
    } else {
        let detail = format!("There can be at most {MAX_LOCATIONS} locations besides `main`.");
        Problem::new(Code::TooManyLocations, detail)
    })
}

/// Returns the location `main` of a shop that has not named it. Its version is 0.
fn unnamed_main() -> Stored<StockLocation> {
    let mut main = Stored::new(StockLocation::main(), Born::counter(), Instant::EPOCH);
    main.meta.version = 0;
    main
}

fn current(location: &Stored<StockLocation>) -> Response {
    let response = Response::ok(&LocationView::from(location));
    if location.meta.version == 0 { response } else { response.etag(location.meta.version) }
}

fn no_such_location() -> Problem {
    Problem::not_found("location")
}

#[derive(Serialize, Schema)]
#[schema(name = "StockLocation")]
struct LocationView<'a> {
    #[field(example = "ulm")]
    id: &'a LocationId,
    #[field(rule = NAME, example = "Warehouse Ulm")]
    name: &'a str,
    #[field(example = null)]
    address: Option<&'a PostalAddress>,
    /// 0 for the location `main` until staff create it.
    #[field(rule = integer(0..=i64::MAX.unsigned_abs()), example = 1)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<StockLocation>> for LocationView<'a> {
    fn from(Stored { meta, data }: &'a Stored<StockLocation>) -> Self {
        let StockLocation { id, name, address } = data;
        let (version, created_at, updated_at) = (meta.version, meta.created_at, meta.updated_at);
        Self { id, name, address: address.as_ref(), version, created_at, updated_at }
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "StockLocationList")]
struct LocationList<'a> {
    #[field(rule = list_of(any::<LocationView<'_>>(), 0..=MAX_LOCATIONS as usize + 1))]
    items: Vec<LocationView<'a>>,
    #[field(rule = NO_CURSOR, example = null)]
    next_cursor: (),
}
