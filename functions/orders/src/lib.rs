//! Orders: placing, payment, refunds, status changes, invoices and lists.

mod addresses;
mod asker;
mod bounds;
mod checkout;
mod guest;
mod invoice;
mod limits;
mod lines;
mod list;
mod log;
mod new_order;
mod payments;
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
mod webhook;

use ::payments::Account;
use http_api::{Error, Has, Measured, PatternCost, Services};
use key_schema::order::open::Limits;

#[derive(Debug)]
pub struct App {
    pub services: Services,
    /// The limits of open orders that apply if the settings contain none.
    pub defaults: Limits,
    /// The account at the payment provider.
    pub account: Account,
}

impl App {
    #[must_use]
    pub fn new(services: Services) -> Self {
        Self { services, defaults: Limits::default(), account: Account::with(None) }
    }
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.services.take()
    }
}

impl Has<Services> for App {
    fn part(&self) -> &Services {
        &self.services
    }
}

http_api::routes! {
    App;
    checkout::create, quote::create, place::create, list::by_status, list::get, status::change, refund::create,
    payments::create, payments::list, payments::capture, payments::cancel, payments::refund, webhook::receive,
    invoice::issue, invoice::get, log::add, log::list, list::lines, list::history, log::of_day, list::of_customer,
    picking::queue, list::shipments, sales::of_product, guest::price, guest::order, guest::read, guest::change,
    guest::pay, guest::list_payments, guest::claim
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("orders");
    let defaults = limits::defaults(std::env::var("PENDING_ORDER_MINUTES").ok().as_deref())?;
    let app = App { defaults, account: Account::from_env()?, ..App::new(Services::from_env().await?) };
    http_api::run(routes(), app).await
}
