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
use key_schema::pattern::Pattern;
use key_schema::{cart, customer, idempotency, order, pricing, promotion, settings};

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

const PLACE_ORDER: &[&Pattern] = &[
    &order::PREPARE,
    &order::PLACE,
    &order::EDIT,
    &order::LINES,
    &order::HEAD,
    &order::REFERENCE,
    &order::addresses::READ,
    &order::open::OPEN,
    &order::staged::AVAILABLE,
    &order::staged::BEGIN,
    &order::staged::RESERVE,
    &order::staged::COMMIT,
    &order::staged::UNDO,
    &settings::READ,
    &idempotency::GET,
];

const CHECK_OUT: &[&Pattern] = &[
    &cart::GET,
    &order::addresses::READ,
    &order::PREPARE,
    &order::PLACE,
    &order::EDIT,
    &order::LINES,
    &order::open::OPEN,
    &order::staged::AVAILABLE,
    &order::staged::BEGIN,
    &order::staged::RESERVE,
    &order::staged::COMMIT,
    &order::staged::UNDO,
    &settings::READ,
    &pricing::READ,
    &promotion::FIND,
    &promotion::READ,
    &customer::GET,
    &order::EARLIER,
    &idempotency::GET,
];

#[must_use]
pub fn routes() -> Routes<App> {
    Routes::new()
        .checking(|app: &App| app.services.checks())
        .on("POST /v1/orders", PLACE_ORDER, |app, request| Box::pin(place::create(app, request)))
        .on("GET /v1/orders", &[&order::BY_STATUS], |app, request| Box::pin(list::by_status(&app.services, request)))
        .on("GET /v1/orders/{id}", &[&order::GET, &order::addresses::READ], |app, request| {
            Box::pin(list::get(&app.services, request))
        })
        .on(
            "POST /v1/orders/{id}/status",
            &[&order::EDIT, &order::HEAD, &order::MOVE, &order::staged::GIVE_BACK, &order::addresses::READ],
            |app, request| Box::pin(status::change(&app.services, request)),
        )
        .on("POST /v1/orders/{id}/refunds", &[&order::EDIT, &order::REFUND, &idempotency::GET], |app, request| {
            Box::pin(refund::create(&app.services, request))
        })
        .on(
            "POST /v1/orders/{id}/invoice",
            &[&order::HEAD, &key_schema::invoice::GET, &key_schema::invoice::COUNTER, &key_schema::invoice::ISSUE],
            |app, request| Box::pin(invoice::issue(&app.services, request)),
        )
        .on("GET /v1/invoices/{number}", &[&key_schema::invoice::GET], |app, request| {
            Box::pin(invoice::get(&app.services, request))
        })
        .on("POST /v1/orders/{id}/log", &[&order::ADD_LOG], |app, request| Box::pin(log::add(&app.services, request)))
        .on("GET /v1/orders/{id}/log", &[&order::HEAD, &order::LOG], |app, request| {
            Box::pin(log::list(&app.services, request))
        })
        .on("GET /v1/log", &[&order::daily_log::OF_DAY, &order::daily_log::READ], |app, request| {
            Box::pin(log::of_day(&app.services, request))
        })
        .on("GET /v1/orders/{id}/lines", &[&order::parts::WITH_LINES], |app, request| {
            Box::pin(list::lines(&app.services, request))
        })
        .on("GET /v1/orders/{id}/history", &[&order::parts::WITH_HISTORY], |app, request| {
            Box::pin(list::history(&app.services, request))
        })
        .on("POST /v1/customers/{id}/cart/checkout", CHECK_OUT, |app, request| {
            Box::pin(checkout::checkout(app, request))
        })
        .on(
            "POST /v1/customers/{id}/cart/quote",
            &[
                &cart::GET,
                &cart::PRODUCTS,
                &customer::GET,
                &pricing::READ,
                &promotion::FIND,
                &promotion::UNKNOWN_CODES,
                &promotion::READ,
                &order::EARLIER,
                &order::open::OPEN,
                &settings::READ,
            ],
            |app, request| Box::pin(quote::create(app, request)),
        )
        .on("GET /v1/picking", &[&key_schema::picking::STATIONS, &key_schema::picking::WAITING], |app, request| {
            Box::pin(picking::queue(&app.services, request))
        })
        .on("GET /v1/customers/{id}/orders", &[&order::OF_CUSTOMER], |app, request| {
            Box::pin(list::of_customer(&app.services, request))
        })
        .on("GET /v1/customers/{id}/shipments", &[&order::SHIPMENTS], |app, request| {
            Box::pin(list::shipments(&app.services, request))
        })
        .on("GET /v1/products/{id}/sales", &[&key_schema::sales::OF_PRODUCT], |app, request| {
            Box::pin(sales::of_product(&app.services, request))
        })
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("orders");
    let defaults = limits::defaults(std::env::var("PENDING_ORDER_MINUTES").ok().as_deref())?;
    let app = App { defaults, ..App::new(Services::from_env().await?) };
    http_api::run(routes(), app).await
}
