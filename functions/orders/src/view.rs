mod price;

use http_api::{Problem, Services};
use key_schema::address::PostalAddress;
use key_schema::id::{CustomerId, OrderId, OrderReference, PaymentId, StoreId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::order::OrderItem;
use key_schema::order::addresses::{self, Destination, OrderAddresses};
use key_schema::order::{Order, OrderStatus, OrderStatusEvent, PlacedOrder, TaxRounding};
use key_schema::payment::{Payment, PaymentMethod};
use serde::Serialize;

pub use price::{
    DiscountView, LineView, MethodView, PricedLineView, QuoteLineView, RateView, ShippingView, TaxLineView, TotalsView,
    picture,
};

/// Puts an order together that is visible at `now`, from the items of its partition. A Query is not
/// isolated from the transaction that places an order. If it has returned only some of the items, the
/// order is invisible, too.
pub fn visible(items: Vec<OrderItem>, now: Instant) -> Option<PlacedOrder> {
    PlacedOrder::of(items).filter(|order| order.is_visible(now) && order.has_all_lines() && order.has_begun())
}

/// Reads the addresses, if the order has any.
pub async fn with_addresses(services: &Services, mut order: PlacedOrder) -> Result<PlacedOrder, Problem> {
    if order.head.destination.is_some() {
        order.addresses = services.table.get(&addresses::get(&order.head)?).await?;
    }
    Ok(order)
}

pub fn line_views(order: &PlacedOrder) -> Vec<LineView<'_>> {
    order.lines.iter().map(|line| LineView::from(&line.data)).collect()
}

/// Returns the steps. Only staff see the notes and the ids of staff.
pub fn history_views(order: &PlacedOrder, for_staff: bool) -> Vec<StepView<'_>> {
    let customer = &order.head.customer_id;
    order.history.iter().map(|step| StepView::new(step, for_staff || !step.is_by_staff(customer))).collect()
}

pub fn location(id: &OrderId) -> String {
    http_api::url::location(&["orders", id.as_str()])
}

/// Returns 404 for an order that does not exist or is invisible to the caller.
pub fn no_such_order() -> Problem {
    Problem::not_found("order")
}

#[derive(Debug, Serialize)]
pub struct View<'a> {
    id: &'a OrderId,
    reference: Option<&'a OrderReference>,
    customer_id: &'a CustomerId,
    store_id: Option<&'a StoreId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shipping_address: Option<AddressView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    billing_address: Option<&'a PostalAddress>,
    status: OrderStatus,
    lines: Vec<LineView<'a>>,
    total: Money,
    totals: TotalsView,
    #[serde(skip_serializing_if = "Option::is_none")]
    shipping_method: Option<ShippingView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discounts: Option<Vec<DiscountView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tax_lines: Option<Vec<TaxLineView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tax_rounding: Option<TaxRounding>,
    placed_at: Instant,
    /// The time at which the order is cancelled if it is still unpaid.
    #[serde(skip_serializing_if = "Option::is_none")]
    lapses_at: Option<Instant>,
    history: Vec<StepView<'a>>,
    payments: Vec<PaymentView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shipped_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    carrier: Option<&'a str>,
    /// The carrier's tracking number.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking: Option<&'a str>,
    invoice_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refunded: Option<Money>,
    version: u64,
}

impl<'a> View<'a> {
    pub fn new(order: &'a PlacedOrder, for_staff: bool) -> Self {
        let PlacedOrder { head, payments, addresses, .. } = order;
        let shipped = order.history.iter().find(|step| step.status == OrderStatus::Shipped);
        let Order {
            id,
            customer_id,
            status,
            placed_at,
            reference,
            lapses_at,
            store_id,
            destination,
            total,
            charges,
            invoice_number,
            refunded,
            ..
        } = &head.data;
        Self {
            id,
            reference: reference.as_ref(),
            customer_id,
            store_id: store_id.as_ref(),
            shipping_address: AddressView::of(addresses.as_deref(), destination.as_ref()),
            billing_address: addresses.as_ref().and_then(|addresses| addresses.billing_address.as_ref()),
            status: *status,
            lines: line_views(order),
            total: *total,
            totals: TotalsView::new(&head.charges(), *total),
            shipping_method: charges.as_ref().and_then(|charges| ShippingView::of(charges, total.currency)),
            discounts: charges.as_ref().map(|charges| DiscountView::all(charges, total.currency)),
            tax_lines: charges.as_ref().map(|charges| TaxLineView::all(&charges.tax_lines, total.currency)),
            tax_rounding: charges.as_ref().map(|charges| charges.tax_rounding),
            placed_at: *placed_at,
            lapses_at: lapses_at.filter(|_| *status == OrderStatus::Pending),
            history: history_views(order, for_staff),
            payments: payments.iter().map(|payment| PaymentView::new(payment, for_staff)).collect(),
            shipped_at: shipped.map(|step| step.at),
            carrier: shipped.and_then(|step| step.carrier.as_deref()),
            tracking: shipped.and_then(|step| step.tracking.as_deref()),
            invoice_number: *invoice_number,
            refunded: (*refunded > 0).then(|| Money::new(*refunded, total.currency)),
            version: head.meta.version,
        }
    }
}

#[derive(Debug, Serialize)]
struct PaymentView<'a> {
    id: &'a PaymentId,
    method: PaymentMethod,
    amount: Money,
    refunded: Money,
    at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
}

impl<'a> PaymentView<'a> {
    /// Only staff see the ids of staff.
    fn new(payment: &'a Payment, for_staff: bool) -> Self {
        let Payment { id, customer_id, method, amount, at, by, .. } = payment;
        let by = (for_staff || by == customer_id.as_str()).then_some(by.as_str());
        Self { id, method: *method, amount: *amount, refunded: payment.refunded(), at: *at, by }
    }
}

/// The address to which an order is sent. An erased customer's order keeps only country and city.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum AddressView<'a> {
    Whole(&'a PostalAddress),
    Erased(&'a Destination),
}

impl<'a> AddressView<'a> {
    fn of(addresses: Option<&'a OrderAddresses>, destination: Option<&'a Destination>) -> Option<Self> {
        let whole = addresses.map(|addresses| Self::Whole(&addresses.shipping_address));
        whole.or_else(|| destination.map(Self::Erased))
    }
}

#[derive(Debug, Serialize)]
pub struct StepView<'a> {
    status: OrderStatus,
    at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl<'a> StepView<'a> {
    fn new(event: &'a OrderStatusEvent, with_author: bool) -> Self {
        let OrderStatusEvent { status, at, by, note, message, .. } = event;
        Self {
            status: *status,
            at: *at,
            by: with_author.then_some(by),
            note: note.as_deref().filter(|_| with_author),
            message: message.as_deref(),
        }
    }
}
