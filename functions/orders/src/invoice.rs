//! Invoices: one per order, numbered without gaps.

use http_api::contract::rules::integer;
use http_api::contract::{Schema, route};
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::id::{CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::invoice::{self, Invoice, InvoiceAction};
use key_schema::item::{Entity as _, Stored};
use key_schema::money::Money;
use key_schema::order::{self, OrderStatus};
use ordering::no_such_order;
use serde::Serialize;
use table::retry_on_conflict;

#[derive(Debug, Serialize, Schema)]
struct InvoiceView<'a> {
    #[field(rule = integer(1..=u64::MAX), example = 1)]
    number: u64,
    order_id: &'a OrderId,
    customer_id: &'a CustomerId,
    #[field(example = {"amount": 258, "currency": "USD"})]
    total: Money,
    issued_at: Instant,
}

impl<'a> From<&'a Invoice> for InvoiceView<'a> {
    fn from(invoice: &'a Invoice) -> Self {
        let Invoice { number, order_id, customer_id, total, issued_at } = invoice;
        Self { number: *number, order_id, customer_id, total: *total, issued_at: *issued_at }
    }
}

/// Issue an order's invoice
///
/// Issues the invoice. Invoices are numbered from 1 without gaps. An order has at most one invoice,
/// and a repeated request returns it. An order with an invoice does not lapse.
#[route(POST "/v1/orders/{id}/invoice", id = "issueInvoice", who = staff, task = "fulfilment", path(id: OrderId),
    answers(200 = InvoiceView<'_> "The invoice, which was issued before" [ETag],
        201 = InvoiceView<'_> "The invoice" [Location, ETag]),
    refuses(not_found, illegal_transition = "a cancelled order gets no invoice"))]
pub async fn issue(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: OrderId = request.path("id")?;
    retry_on_conflict(async || {
        let now = Instant::now();
        let order = services.table.get(&order::head(&id)?).await?;
        let order = order
            .filter(|order| order.status != OrderStatus::Placing && !order.is_expired(now))
            .ok_or_else(no_such_order)?;
        if let Some(number) = order.invoice_number {
            return Ok(Some(shown(&read(services, number).await?)));
        }
        if order.status == OrderStatus::Cancelled {
            return Err(Problem::new(Code::IllegalTransition, "A cancelled order has no invoice."));
        }
        let seen = services.table.get(&invoice::counter()?).await?;
        let invoice = Invoice {
            number: seen.as_ref().map_or(0, |seen| seen.last) + 1,
            order_id: id.clone(),
            customer_id: order.customer_id.clone(),
            total: order.total,
            issued_at: now,
        };
        let invoice = Stored::new(invoice, services.born(now)?, now);
        let issue = invoice::issue(&invoice, &order, seen.as_ref())?;
        let Err(refusals) = services.table.transact(&issue).await? else {
            let answer = Response::created(location(invoice.number), &InvoiceView::from(&invoice.data));
            return Ok(Some(answer.etag(invoice.meta.version)));
        };
        if refusals.only(InvoiceAction::Invoice) {
            return Err(Problem::internal("the invoice counter is lower than the number of an invoice"));
        }
        // Another request took the number, changed the order, or issued the order's invoice. The
        // next attempt reads the order, its invoice and the counter again.
        Ok(None)
    })
    .await
}

/// Read an invoice
#[route(GET "/v1/invoices/{number}", id = "readInvoice", who = owner, task = "orders", path(InvoiceNumber),
    answers(200 = InvoiceView<'_> "The invoice" [ETag]))]
pub async fn get(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.signed_in()?;
    let number = request.path_number("number", "invoice")?;
    let invoice = read(services, number).await?;
    request.owner(&invoice.customer_id).map_err(|_| no_such_invoice())?;
    Ok(shown(&invoice))
}

async fn read(services: &Services, number: u64) -> Result<Stored<Invoice>, Problem> {
    services.table.get(&invoice::get(number)?).await?.ok_or_else(no_such_invoice)
}

fn shown(invoice: &Stored<Invoice>) -> Response {
    Response::ok(&InvoiceView::from(&invoice.data)).etag(invoice.meta.version)
}

fn location(number: u64) -> String {
    http_api::url::location(&["invoices", &number.to_string()])
}

fn no_such_invoice() -> Problem {
    Problem::not_found("invoice")
}
