//! Orders: placing, payment, refunds, status changes, invoices, and lists by customer, status,
//! shipment and product.

mod bounds;
mod checkout;
mod invoice;
mod limits;
mod list;
mod log;
mod picking;
mod place;
mod refund;
mod refusal;
mod sales;
mod status;
mod view;

use http_api::{Error, Measured, PatternCost, Routes, Services, SettingsCache};
use key_schema::order::open::Limits;

/// The function's state, built once at start-up.
#[derive(Debug)]
pub struct App {
    /// The table.
    pub services: Services,
    /// The settings that this execution environment has cached.
    pub settings: SettingsCache,
    /// The limits of open orders, where the settings have none.
    pub defaults: Limits,
}

impl App {
    /// Creates the state with empty settings and the usual limits.
    #[must_use]
    pub fn new(services: Services) -> Self {
        Self { services, settings: SettingsCache::default(), defaults: Limits::default() }
    }
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.services.take()
    }
}

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<App> {
    Routes::new()
        .checking(|app: &App| app.services.sign_ins())
        .on("POST /v1/orders", |app, request| Box::pin(place::create(app, request)))
        .on("GET /v1/orders", |app, request| Box::pin(list::by_status(&app.services, request)))
        .on("GET /v1/orders/{id}", |app, request| Box::pin(list::get(&app.services, request)))
        .on("POST /v1/orders/{id}/status", |app, request| Box::pin(status::change(&app.services, request)))
        .on("POST /v1/orders/{id}/refunds", |app, request| Box::pin(refund::create(&app.services, request)))
        .on("POST /v1/orders/{id}/invoice", |app, request| Box::pin(invoice::issue(&app.services, request)))
        .on("GET /v1/invoices/{number}", |app, request| Box::pin(invoice::get(&app.services, request)))
        .on("POST /v1/orders/{id}/log", |app, request| Box::pin(log::add(&app.services, request)))
        .on("GET /v1/orders/{id}/log", |app, request| Box::pin(log::list(&app.services, request)))
        .on("POST /v1/customers/{id}/cart/checkout", |app, request| Box::pin(checkout::checkout(app, request)))
        .on("GET /v1/picking", |app, request| Box::pin(picking::queue(&app.services, request)))
        .on("GET /v1/customers/{id}/orders", |app, request| Box::pin(list::of_customer(&app.services, request)))
        .on("GET /v1/customers/{id}/shipments", |app, request| Box::pin(list::shipments(&app.services, request)))
        .on("GET /v1/products/{id}/sales", |app, request| Box::pin(sales::of_product(&app.services, request)))
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting or has a wrong one, or when the Runtime API
/// breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("orders");
    let defaults = limits::defaults(std::env::var("PENDING_ORDER_MINUTES").ok().as_deref())?;
    let app = App { defaults, ..App::new(Services::from_env().await?) };
    http_api::run(routes(), app).await
}
