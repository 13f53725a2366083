//! The catalogue: products with content and stock, the category tree, reviews, leaderboards and the
//! import.
//!
//! Everybody may read the catalogue. Staff write it, except for reviews, which customers write.
//! Data that changes at different rates is in separate items. Each area has its own module.

mod body;
mod categories;
mod content;
mod import;
mod include;
mod leaderboards;
mod locations;
mod memberships;
mod moves;
mod pictures;
mod products;
mod recent;
mod reviews;
mod sizes;
mod stock;
mod stock_at;
mod tree;
mod uploads;
mod variants;
mod view;

use std::time::Duration;

use http_api::{Error, Has, Measured, PatternCost, Services};
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

impl Has<Services> for App {
    fn part(&self) -> &Services {
        &self.services
    }
}

http_api::routes! {
    App;
    products::create, import::import, products::by_ids, products::read, products::numbers, products::count_view,
    products::change, products::retire,
    content::read, content::put, uploads::text, content::put_upload,
    pictures::list, uploads::picture, pictures::redirect, pictures::put, pictures::remove,
    stock::set, stock::adjust, stock::put_shards, stock_at::read,
    locations::list, locations::read, locations::put,
    memberships::put, memberships::remove,
    reviews::of_product, reviews::own, reviews::all, reviews::read, reviews::put, reviews::delete,
    reviews::of_customer, recent::list,
    leaderboards::read,
    categories::put, moves::start, categories::read, categories::products, categories::children, categories::top,
    categories::subtree, categories::ancestors
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
