//! Orders: placing, payment, refunds, status changes, invoices and lists.

mod asker;
mod checkout;
mod guest;
mod invoice;
mod list;
mod log;
mod new_order;
mod payments;
mod picking;
mod place;
mod quote;
mod refund;
mod sales;
mod status;
mod view;
mod webhook;

pub use ordering::Shop as App;

http_api::routes! {
    App;
    checkout::create, quote::create, place::create, list::by_status, list::get, status::change, refund::create,
    payments::create, payments::list, payments::capture, payments::cancel, payments::refund, webhook::receive,
    invoice::issue, invoice::get, log::add, log::list, list::lines, list::history, log::of_day, list::of_customer,
    picking::queue, list::shipments, sales::of_product, guest::price, guest::order, guest::read, guest::change,
    guest::pay, guest::list_payments, guest::claim
}

pub async fn run() -> Result<(), http_api::Error> {
    telemetry::init("orders");
    http_api::run(routes(), App::from_env().await?).await
}
