mod price;

use http_api::contract::Schema;
use http_api::contract::rules::{VERSION, any, integer, list, list_of, one_of};
use http_api::view::CUSTOMER_NAME;
use key_schema::address::PostalAddress;
use key_schema::id::{CustomerId, OrderId, OrderReference, PaymentId, StoreId, is_guest};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::order::addresses::{Destination, Guest, OrderAddresses};
use key_schema::order::{MAX_LINES, Order, OrderNumber, OrderStatus, OrderStatusEvent, PlacedOrder, TaxRounding};
use key_schema::payment::{Payment, PaymentMethod, PaymentStatus};
use key_schema::text::Email;
use serde::Serialize;

pub use price::{
    DISCOUNTS, DiscountView, LineView, MethodView, PricedLineView, QuoteLineView, RateView, ShippingView, TAX_LINES,
    TAX_ROUNDING, TaxLineView, TotalsView, picture,
};

pub fn line_views(order: &PlacedOrder) -> Vec<LineView<'_>> {
    order.lines.iter().map(|line| LineView::from(&line.data)).collect()
}

/// Returns the steps. Only staff see the notes and the ids of staff.
pub fn history_views(order: &PlacedOrder, for_staff: bool) -> Vec<StepView<'_>> {
    let customer = &order.head.customer_id;
    order.history.iter().map(|step| StepView::new(step, for_staff || !step.is_by_staff(customer))).collect()
}

pub fn guest_location(id: &OrderId) -> String {
    http_api::url::location(&["guest", "orders", id.as_str()])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Pay,
    Cancel,
}

impl Action {
    fn all(order: &PlacedOrder) -> Vec<Self> {
        let head = &order.head;
        let ledger = order.ledger(head.placed_at);
        let pay = (ledger.takes_money() && ledger.due() > 0).then_some(Self::Pay);
        let may_cancel = next_statuses(head).any(|to| to == OrderStatus::Cancelled && head.status.owner_may(to));
        let cancel = (may_cancel && !is_final(head)).then_some(Self::Cancel);
        pay.into_iter().chain(cancel).collect()
    }
}

/// Returns whether only staff may cancel the order. The customer has taken the goods of a sale in a
/// store, and an invoice may be in the customer's books.
pub fn is_final(order: &Order) -> bool {
    order.store_id.is_some() || order.invoice_number.is_some()
}

/// Returns the statuses to which staff may change the order. An archived order cannot change.
fn next_statuses(order: &Order) -> impl Iterator<Item = OrderStatus> {
    order.status.next().filter(|_| order.expires_at.is_none())
}

#[derive(Debug, Serialize, Schema)]
pub struct OrderView<'a> {
    id: &'a OrderId,
    number: OrderNumber,
    reference: Option<&'a OrderReference>,
    /// The customer. The ids of guests begin with `guest:`.
    customer_id: &'a CustomerId,
    /// The guest who placed the order. Absent for an order of a customer, and after an erasure.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<GuestView<'a>>,
    /// The store where the order was placed, if any.
    #[field(example = null)]
    store_id: Option<&'a StoreId>,
    /// The address to which the order is sent, as it was at the placement. The field is absent if the
    /// order has no address. After the erasure of the customer, only country and city remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    shipping_address: Option<AddressView<'a>>,
    /// The address on the invoice. Absent if the order has no separate one.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    billing_address: Option<&'a PostalAddress>,
    status: OrderStatus,
    /// What the customer may do with the order now: `pay` it, or `cancel` it.
    #[field(rule = list_of(one_of(&["pay", "cancel"]), 0..=2), example = ["pay", "cancel"])]
    actions: Vec<Action>,
    /// The statuses to which staff may change the order.
    #[field(rule = list_of(any::<OrderStatus>(), 0..=2), example = ["paid", "cancelled"])]
    next_statuses: Vec<OrderStatus>,
    #[field(rule = list::<LineView<'_>>(1..=MAX_LINES))]
    lines: Vec<LineView<'a>>,
    /// The amount that is charged.
    #[field(example = {"amount": 758, "currency": "USD"})]
    total: Money,
    totals: TotalsView,
    /// The shipping method and its price at the placement. Absent without a quote, or if nothing is
    /// shipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    shipping_method: Option<ShippingView<'a>>,
    /// The discounts of promotions. Absent without a quote, and empty if only the lines have
    /// `discounts`.
    #[field(rule = DISCOUNTS, example = [])]
    #[serde(skip_serializing_if = "Option::is_none")]
    discounts: Option<Vec<DiscountView<'a>>>,
    /// The tax of each rate. Absent without a quote, and empty if only the lines have `discounts`.
    #[field(rule = TAX_LINES)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tax_lines: Option<Vec<TaxLineView>>,
    /// How the tax was rounded. Absent without a quote and without `discounts` of lines.
    #[field(rule = TAX_ROUNDING)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tax_rounding: Option<TaxRounding>,
    placed_at: Instant,
    /// The instant at which the order lapses if it is still `pending` then. The cancellation usually
    /// follows within a minute. The field is absent if the order never lapses, or if it is no longer
    /// `pending`.
    #[field(example = "2026-11-20T13:00:00.000Z")]
    #[serde(skip_serializing_if = "Option::is_none")]
    lapses_at: Option<Instant>,
    /// The status changes, oldest first.
    #[field(rule = list::<StepView<'_>>(1..=usize::MAX))]
    history: Vec<StepView<'a>>,
    /// The payments, oldest first. The lists of orders do not have this field.
    #[field(example = [])]
    payments: Vec<PaymentView<'a>>,
    /// When the order was shipped. Absent before.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    shipped_at: Option<Instant>,
    /// The carrier, if staff gave it with the status `shipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    carrier: Option<&'a str>,
    /// The carrier's tracking number.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking: Option<&'a str>,
    #[field(rule = integer(1..=u64::MAX), example = null)]
    invoice_number: Option<u64>,
    /// The sum of all refunds. It includes money that arrived beyond the total and went back. Absent
    /// before the first refund.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    refunded: Option<Money>,
    #[field(rule = VERSION)]
    version: u64,
}

impl<'a> OrderView<'a> {
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
            number: OrderNumber::of(id),
            reference: reference.as_ref(),
            customer_id,
            guest: addresses.as_ref().and_then(|addresses| addresses.guest.as_ref()).map(GuestView::from),
            store_id: store_id.as_ref(),
            shipping_address: AddressView::of(addresses.as_deref(), destination.as_ref()),
            billing_address: addresses.as_ref().and_then(|addresses| addresses.billing_address.as_ref()),
            status: *status,
            actions: Action::all(order),
            next_statuses: next_statuses(head).collect(),
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

/// The order of a guest, in the response that creates it.
#[derive(Serialize, Schema)]
#[schema(name = "GuestOrder")]
pub struct GuestOrderView<'a> {
    #[serde(flatten)]
    pub order: OrderView<'a>,
    /// The secret that gives access to the order. Send it in the header `Order-Token`.
    #[field(example = "9d0c4c1b6c2e4f0fa0a1b5f6c7d8e9f00112233445566778899aabbccddeeff0")]
    pub order_token: &'a str,
}

#[derive(Debug, Serialize, Schema)]
#[schema(name = "OrderGuest")]
struct GuestView<'a> {
    email: &'a Email,
    #[field(rule = CUSTOMER_NAME, example = "Ann Ångström")]
    name: &'a str,
}

impl<'a> From<&'a Guest> for GuestView<'a> {
    fn from(Guest { email, name }: &'a Guest) -> Self {
        Self { email, name }
    }
}

#[derive(Debug, Serialize, Schema)]
pub struct PaymentView<'a> {
    id: &'a PaymentId,
    /// `card`: the payment provider. `wallet`: the customer's wallet paid. `manual`: staff received the
    /// money and reported it.
    #[field(rule = one_of(&["card", "wallet", "manual"]))]
    method: PaymentMethod,
    /// `starting`: the provider does not have the payment yet. `pending`: the customer gives the card.
    /// `action_required`: the customer has to do something, such as 3-D Secure. `processing`: the provider
    /// waits for the result. `authorised`: the amount is reserved. `captured`: the shop has the money.
    /// `cancelled`: no money came, or it was released. `failed`: the provider refused the payment.
    #[field(rule = one_of(PaymentStatus::NAMES), example = "captured")]
    status: PaymentStatus,
    amount: Money,
    #[field(example = {"amount": 0, "currency": "USD"})]
    authorised: Money,
    #[field(example = {"amount": 0, "currency": "USD"})]
    captured: Money,
    #[field(example = {"amount": 0, "currency": "USD"})]
    refunded: Money,
    /// The instant after which the authorisation expires. Absent unless `authorised`.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    capture_before: Option<Instant>,
    /// The code of the last refusal by the provider or by the card's issuer, such as
    /// `insufficient_funds`. The customer may try again while the payment is `pending`.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    declined: Option<&'a str>,
    at: Instant,
    /// The id of the caller who paid or reported the payment. A customer does not get the ids of
    /// staff.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
}

impl<'a> PaymentView<'a> {
    /// Only staff see the ids of staff.
    pub fn new(payment: &'a Payment, for_staff: bool) -> Self {
        let Payment { id, customer_id, method, status, amount, at, by, capture_before, .. } = payment;
        let by = (for_staff || by == customer_id.as_str() || is_guest(by)).then_some(by.as_str());
        Self {
            id,
            method: *method,
            status: *status,
            amount: *amount,
            authorised: payment.money(payment.authorised),
            captured: payment.money(payment.captured),
            refunded: payment.money(payment.refunded),
            capture_before: *capture_before,
            declined: payment.declined.as_deref(),
            at: *at,
            by,
        }
    }
}

#[derive(Debug, Serialize, Schema)]
#[schema(name = "OrderAddress", example = {"name": "Ann", "line1": "Münsterplatz 1", "city": "Ulm",
    "postal_code": "89073", "country": "DE"})]
#[serde(untagged)]
enum AddressView<'a> {
    Whole(&'a PostalAddress),
    Erased(&'a Destination),
}

impl<'a> AddressView<'a> {
    fn of(addresses: Option<&'a OrderAddresses>, destination: Option<&'a Destination>) -> Option<Self> {
        let whole = addresses.and_then(|addresses| addresses.shipping_address.as_ref()).map(Self::Whole);
        whole.or_else(|| destination.map(Self::Erased))
    }
}

#[derive(Debug, Serialize, Schema)]
#[schema(name = "OrderStep")]
pub struct StepView<'a> {
    status: OrderStatus,
    at: Instant,
    /// The id of the caller who changed the status, or `system`. A customer does not get the ids of
    /// staff.
    #[field(example = "ann")]
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    /// The note of that caller. A customer does not get the notes of staff.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    /// The words of staff for the customer.
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
