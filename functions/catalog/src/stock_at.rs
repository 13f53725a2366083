//! Stock at further locations: staff read, set and adjust it. Orders take pieces only from the location
//! `main`.

use http_api::contract::route;
use http_api::contract::rules::{Any, any};
use http_api::{Code, Once, Problem, Request, Response, Services};
use key_schema::id::{LocationId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Stored, take};
use key_schema::location::StockLocation;
use key_schema::product::{self, Adjustment, Product, ProductAction, Stock};
use table::{Refusals, retry_on_conflict};

use crate::products::{no_such_product, stock_missing};
use crate::stock::{impossible, not_for_sale, seen, whole};
use crate::view::StockView;

const LOCATION: Any<LocationId> = any();

/// Read the stock at a location
///
/// Returns 0 for a location that never had pieces of the product.
#[route(GET "/v1/products/{id}/stock", id = "readStock", who = staff, task = "stock", path(id: ProductId),
    parameters(location = LOCATION "The location, `main` by default."),
    answers(200 = StockView "The stock"),
    refuses(not_found = "also for the location", has_variants = "a parent has no stock at the location main"))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let Some(location) = further(request.query_as("location")?) else {
        let first = seen(services, &id).await?;
        let Some(first) = first.filter(|first| first.sellable) else { return Err(not_for_sale(services, &id).await?) };
        return Ok(Response::ok(&StockView { stock: whole(services, first).await?.available }));
    };
    let (_, stock) = known(services, &id, &location).await?;
    Ok(Response::ok(&StockView { stock: stock.map_or(0, |stock| stock.available) }))
}

/// Returns the location if it is not `main`.
pub fn further(location: Option<LocationId>) -> Option<LocationId> {
    location.filter(|location| *location != LocationId::main())
}

/// Sets the stock at a further location.
pub async fn set(
    services: &Services,
    id: &ProductId,
    location: &LocationId,
    available: u64,
) -> Result<Response, Problem> {
    known(services, id, location).await?;
    let at = Instant::now();
    let set = product::set_stock_at(id, location, available, &services.born(at)?, at)?;
    match services.table.transact(&set).await? {
        Ok(()) => Ok(Response::ok(&StockView { stock: available })),
        Err(refusals) => Err(refused(services, id, &refusals).await?),
    }
}

/// Adjusts the stock at a further location once.
pub async fn adjust(
    services: &Services,
    (id, location): (&ProductId, &LocationId),
    once: &Once,
    adjustment: Adjustment,
) -> Result<Response, Problem> {
    retry_on_conflict(async || {
        let (product, stock) = match known(services, id, location).await {
            Ok(known) => known,
            Err(problem) => return once.replay_or(services, problem).await.map(Some),
        };
        if adjustment.by > 0 && product.variants.is_some() {
            return once.replay_or(services, not_for_sale(services, id).await?).await.map(Some);
        }
        let before = stock.as_ref().map_or_else(|| Stock::new(id.clone(), 0), |stock| stock.data.clone());
        let available = match before.moved(adjustment.by) {
            Ok(available) => available,
            Err(error) => return once.replay_or(services, impossible(error, &before)).await.map(Some),
        };
        let at = Instant::now();
        let (answer, born) = (Response::ok(&StockView { stock: available }), services.born(at)?);
        let claim = once.claim_with(&answer, born.clone(), at)?;
        let adjustment = Adjustment { at, ..adjustment.clone() };
        let adjust = product::adjust_stock_at((id, location), stock.as_ref(), available, &adjustment, &born, claim)?;
        match services.table.transact(&adjust).await? {
            Ok(()) => Ok(Some(answer)),
            Err(refusals) if refusals.names(ProductAction::Idempotency) => once.replay(services).await,
            Err(refusals) if refusals.only(ProductAction::Stock) => Ok(None),
            Err(refusals) => Err(refused(services, id, &refusals).await?),
        }
    })
    .await
}

/// Reads the product, and its stock at a further location. The product and the location must exist.
async fn known(
    services: &Services,
    id: &ProductId,
    location: &LocationId,
) -> Result<(Stored<Product>, Option<Stored<Stock>>), Problem> {
    let mut found = services.table.batch_get(&product::stock_at(id, location)?).await?;
    let product: Option<Stored<Product>> = take(&mut found);
    let product = product.filter(|product| !product.retired).ok_or_else(no_such_product)?;
    take::<StockLocation, _>(&mut found).ok_or_else(no_such_location)?;
    Ok((product, take(&mut found)))
}

async fn refused(services: &Services, id: &ProductId, refusals: &Refusals<ProductAction>) -> Result<Problem, Problem> {
    if refusals.names(ProductAction::Product) {
        return not_for_sale(services, id).await;
    }
    Ok(stock_missing(id))
}

fn no_such_location() -> Problem {
    Problem::new(Code::NotFound, "There is no location with this id. Create it with PUT /v1/locations/{id}.")
}
