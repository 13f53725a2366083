//! Orders: placing, payment, refunds, status changes, invoices and lists.

mod addresses;
mod bounds;
mod checkout;
mod invoice;
mod limits;
mod lines;
mod list;
mod log;
mod picking;
mod place;
mod price;
mod promotions;
mod quote;
mod refund;
mod refusal;
mod sales;
mod status;
mod view;

use http_api::{Error, Measured, PatternCost, Routes, Services};
use key_schema::order::open::Limits;

#[derive(Debug)]
pub struct App {
    pub services: Services,
    /// The limits of open orders that apply if the settings contain none.
    pub defaults: Limits,
}

impl App {
    #[must_use]
    pub fn new(services: Services) -> Self {
        Self { services, defaults: Limits::default() }
    }
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.services.take()
    }
}

#[must_use]
pub fn routes() -> Routes<App> {
    Routes::new()
        .checking(|app: &App| app.services.checks())
        .on("POST /v1/orders", |app, request| Box::pin(place::create(app, request)))
        .on("GET /v1/orders", |app, request| Box::pin(list::by_status(&app.services, request)))
        .on("GET /v1/orders/{id}", |app, request| Box::pin(list::get(&app.services, request)))
        .on("POST /v1/orders/{id}/status", |app, request| Box::pin(status::change(&app.services, request)))
        .on("POST /v1/orders/{id}/refunds", |app, request| Box::pin(refund::create(&app.services, request)))
        .on("POST /v1/orders/{id}/invoice", |app, request| Box::pin(invoice::issue(&app.services, request)))
        .on("GET /v1/invoices/{number}", |app, request| Box::pin(invoice::get(&app.services, request)))
        .on("POST /v1/orders/{id}/log", |app, request| Box::pin(log::add(&app.services, request)))
        .on("GET /v1/orders/{id}/log", |app, request| Box::pin(log::list(&app.services, request)))
        .on("GET /v1/log", |app, request| Box::pin(log::of_day(&app.services, request)))
        .on("GET /v1/orders/{id}/lines", |app, request| Box::pin(list::lines(&app.services, request)))
        .on("GET /v1/orders/{id}/history", |app, request| Box::pin(list::history(&app.services, request)))
        .on("POST /v1/customers/{id}/cart/checkout", |app, request| Box::pin(checkout::checkout(app, request)))
        .on("POST /v1/customers/{id}/cart/quote", |app, request| Box::pin(quote::create(app, request)))
        .on("GET /v1/picking", |app, request| Box::pin(picking::queue(&app.services, request)))
        .on("GET /v1/customers/{id}/orders", |app, request| Box::pin(list::of_customer(&app.services, request)))
        .on("GET /v1/customers/{id}/shipments", |app, request| Box::pin(list::shipments(&app.services, request)))
        .on("GET /v1/products/{id}/sales", |app, request| Box::pin(sales::of_product(&app.services, request)))
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("orders");
    let defaults = limits::defaults(std::env::var("PENDING_ORDER_MINUTES").ok().as_deref())?;
    let app = App { defaults, ..App::new(Services::from_env().await?) };
    http_api::run(routes(), app).await
}
