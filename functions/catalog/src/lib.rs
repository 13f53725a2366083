//! The catalogue: products with content and stock, the category tree, reviews, leaderboards and the
//! import.
//!
//! Everybody may read the catalogue. Staff write it, except for reviews, which customers write.
//! Data that changes at different rates is in separate items. Each area has its own module.

mod body;
mod categories;
mod content;
mod import;
mod leaderboards;
mod memberships;
mod moves;
mod pictures;
mod products;
mod recent;
mod reviews;
mod stock;
mod tree;
mod uploads;
mod variants;
mod view;

use std::time::Duration;

use http_api::{Error, Measured, PatternCost, Routes, Services};
use key_schema::media::MediaKind;
use key_schema::product::{MAX_STOCK, STOCK_LOW};
use storage::SetupError;
use storage::media::Media;

/// The function's state, built once at start-up.
#[derive(Debug)]
pub struct App {
    pub services: Services,
    /// The bucket of pictures and long texts.
    pub media: Media,
    /// The number of pieces below which a stock is low.
    pub stock_low: u64,
    /// The longest time that a request waits for the write that counts a view.
    pub view_time: Duration,
}

/// The value of [`App::view_time`]. The write usually takes some milliseconds.
pub const VIEW_TIME: Duration = Duration::from_millis(50);

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.services.take()
    }
}

#[derive(Debug, thiserror::Error)]
enum StartError {
    /// A variable is not set, or the client of the table or bucket cannot be set up.
    #[error(transparent)]
    Media(#[from] SetupError),
    /// `STOCK_LOW_THRESHOLD` is not a valid number of pieces.
    #[error("the environment variable STOCK_LOW_THRESHOLD must be a number from 0 to {MAX_STOCK}")]
    StockLow,
}

#[must_use]
pub fn routes() -> Routes<App> {
    Routes::<App>::new()
        .checking(|app| app.services.checks())
        .on("POST /v1/products", |app, request| Box::pin(products::create(app, request)))
        .on("POST /v1/products/import", |app, request| Box::pin(import::import(&app.services, request)))
        .public("GET /v1/products", |app, request| Box::pin(products::by_ids(&app.services, request)))
        .public("GET /v1/products/{id}", |app, request| Box::pin(products::read(app, request)))
        .on("GET /v1/products/{id}/numbers", |app, request| Box::pin(products::numbers(app, request)))
        .on("POST /v1/products/{id}/views", |app, request| Box::pin(products::count_view(app, request)))
        .on("PATCH /v1/products/{id}", |app, request| Box::pin(products::change(app, request)))
        .on("DELETE /v1/products/{id}", |app, request| Box::pin(products::retire(&app.services, request)))
        .public("GET /v1/products/{id}/content", |app, request| Box::pin(content::read(app, request)))
        .on("PUT /v1/products/{id}/content", |app, request| Box::pin(content::put(app, request)))
        .on("POST /v1/products/{id}/content/uploads", |app, request| {
            Box::pin(uploads::permit(app, request, MediaKind::Content))
        })
        .on("PUT /v1/products/{id}/content/uploads/{upload}", |app, request| {
            Box::pin(content::put_upload(app, request))
        })
        .public("GET /v1/products/{id}/pictures", |app, request| Box::pin(pictures::list(app, request)))
        .on("POST /v1/products/{id}/pictures", |app, request| {
            Box::pin(uploads::permit(app, request, MediaKind::Picture))
        })
        .public("GET /v1/products/{id}/pictures/{picture}", |app, request| Box::pin(pictures::redirect(app, request)))
        .on("PUT /v1/products/{id}/pictures/{picture}", |app, request| Box::pin(pictures::put(app, request)))
        .on("DELETE /v1/products/{id}/pictures/{picture}", |app, request| Box::pin(pictures::remove(app, request)))
        .on("PUT /v1/products/{id}/stock", |app, request| Box::pin(stock::set(&app.services, request)))
        .on("POST /v1/products/{id}/stock/adjustments", |app, request| Box::pin(stock::adjust(&app.services, request)))
        .on("PUT /v1/products/{id}/categories/{path}", |app, request| {
            Box::pin(memberships::put(&app.services, request))
        })
        .on("DELETE /v1/products/{id}/categories/{path}", |app, request| {
            Box::pin(memberships::remove(&app.services, request))
        })
        .public("GET /v1/products/{id}/reviews", |app, request| Box::pin(reviews::of_product(&app.services, request)))
        .on("GET /v1/customers/{id}/reviews/{product}", |app, request| Box::pin(reviews::own(&app.services, request)))
        .on("GET /v1/reviews", |app, request| Box::pin(reviews::all(&app.services, request)))
        .public("GET /v1/products/{id}/reviews/{customer}", |app, request| {
            Box::pin(reviews::read(&app.services, request))
        })
        .on("PUT /v1/products/{id}/reviews/{customer}", |app, request| Box::pin(reviews::put(&app.services, request)))
        .on("DELETE /v1/products/{id}/reviews/{customer}", |app, request| {
            Box::pin(reviews::delete(&app.services, request))
        })
        .on("GET /v1/customers/{id}/reviews", |app, request| Box::pin(reviews::of_customer(&app.services, request)))
        .public("GET /v1/leaderboards/{by}", |app, request| Box::pin(leaderboards::read(&app.services, request)))
        .public("GET /v1/reviews/recent", |app, request| Box::pin(recent::list(&app.services, request)))
        .on("PUT /v1/categories/{path}", |app, request| Box::pin(categories::put(&app.services, request)))
        .on("POST /v1/categories/{path}/move", |app, request| Box::pin(moves::start(&app.services, request)))
        .public("GET /v1/categories/{path}", |app, request| Box::pin(categories::read(&app.services, request)))
        .public("GET /v1/categories/{path}/products", |app, request| {
            Box::pin(categories::products(&app.services, request))
        })
        .public("GET /v1/categories/{path}/children", |app, request| {
            Box::pin(categories::children(&app.services, request))
        })
        .public("GET /v1/categories", |app, request| Box::pin(categories::top(&app.services, request)))
        .public("GET /v1/categories/{path}/subtree", |app, request| {
            Box::pin(categories::subtree(&app.services, request))
        })
        .public("GET /v1/categories/{path}/ancestors", |app, request| {
            Box::pin(categories::ancestors(&app.services, request))
        })
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("catalog");
    let services = Services::from_env().await.map_err(StartError::from)?;
    let media = Media::from_env("MEDIA_BUCKET").map_err(StartError::from)?;
    let stock_low = stock_low(std::env::var("STOCK_LOW_THRESHOLD").ok().as_deref())?;
    http_api::run(routes(), App { services, media, stock_low, view_time: VIEW_TIME }).await
}

fn stock_low(given: Option<&str>) -> Result<u64, StartError> {
    let Some(text) = given.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(STOCK_LOW) };
    text.parse().ok().filter(|number| *number <= MAX_STOCK).ok_or(StartError::StockLow)
}
