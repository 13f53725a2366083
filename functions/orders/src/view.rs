mod price;

use http_api::contract::Schema;
use http_api::contract::rules::{VERSION, integer, list, one_of};
use http_api::{Problem, Services};
use key_schema::address::PostalAddress;
use key_schema::id::{CustomerId, OrderId, OrderReference, PaymentId, StoreId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::money::Money;
use key_schema::order::OrderItem;
use key_schema::order::addresses::{self, Destination, OrderAddresses};
use key_schema::order::{MAX_LINES, Order, OrderLine, OrderStatus, OrderStatusEvent, TaxRounding};
use key_schema::payment::{Payment, PaymentMethod};
use serde::Serialize;

pub use price::{
    DISCOUNTS, DiscountView, LineView, MethodView, PricedLineView, QuoteLineView, RateView, ShippingView, TAX_LINES,
    TAX_ROUNDING, TaxLineView, TotalsView, picture,
};

/// An order with its lines and history, read from its partition.
#[derive(Debug, Clone)]
pub struct OrderCollection {
    pub order: Stored<Order>,
    /// The lines, by number.
    pub lines: Vec<OrderLine>,
    /// The steps, by time.
    pub history: Vec<OrderStatusEvent>,
    /// The payments, by time.
    pub payments: Vec<Stored<Payment>>,
    /// The addresses, if the order has any, they were read, and the customer was not erased.
    pub addresses: Option<Stored<OrderAddresses>>,
}

impl OrderCollection {
    /// Assembles an order that is visible at `now`. A retired order is invisible from its expiry,
    /// even while its items still exist.
    pub fn visible(items: Vec<OrderItem>, now: Instant) -> Option<Self> {
        Self::assemble(items).filter(|collection| !collection.order.is_expired(now))
    }

    /// Assembles an order from the items of its partition. An order in status `placing` is
    /// invisible. A Query is not isolated from the transaction that places an order. If it returns
    /// only some of the items, the order is invisible, too.
    pub fn assemble(items: Vec<OrderItem>) -> Option<Self> {
        Self::parts(items).filter(|parts| parts.has_all_lines() && parts.has_begun())
    }

    /// Assembles the parts of an order that were read. Returns `None` without the head, or if the
    /// status is `placing`.
    pub fn parts(items: Vec<OrderItem>) -> Option<Self> {
        let (mut head, mut lines, mut history, mut payments) = (None, Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match item {
                OrderItem::Order(order) => head = Some(order),
                OrderItem::OrderLine(line) => lines.push(line.data),
                OrderItem::OrderStatusEvent(event) => history.push(event.data),
                OrderItem::Payment(payment) => payments.push(payment),
            }
        }
        let order = head.filter(|order| order.status != OrderStatus::Placing)?;
        Some(Self { order, lines, history, payments, addresses: None })
    }

    /// Reads the addresses, if the order has any.
    pub async fn with_addresses(mut self, services: &Services) -> Result<Self, Problem> {
        if self.order.destination.is_some() {
            self.addresses = services.table.get(&addresses::get(&self.order)?).await?;
        }
        Ok(self)
    }

    pub fn has_all_lines(&self) -> bool {
        u64::try_from(self.lines.len()) == Ok(self.order.line_count)
    }

    /// Returns whether the first step was read.
    pub fn has_begun(&self) -> bool {
        self.history.iter().any(|step| step.status == OrderStatus::Pending)
    }

    pub fn line_views(&self) -> Vec<LineView<'_>> {
        self.lines.iter().map(LineView::from).collect()
    }

    /// Returns the steps. Only staff see the notes and the ids of staff.
    pub fn history_views(&self, for_staff: bool) -> Vec<StepView<'_>> {
        let customer = &self.order.customer_id;
        self.history.iter().map(|step| StepView::new(step, for_staff || !step.is_by_staff(customer))).collect()
    }

    /// Returns whether the order was paid, but its payment was not read. A Query is not isolated from
    /// the transaction that pays the order. A caller that decides about money must read again.
    pub fn lacks_payment(&self) -> bool {
        let is_paid = self.order.status.is_sale() && self.order.status != OrderStatus::Pending;
        is_paid && self.order.total.amount > 0 && self.payments.is_empty()
    }

    /// Returns the order as the first response showed it. Lines, total and the first step never
    /// change.
    pub fn into_placed(mut self) -> Self {
        self.order.meta.version = 1;
        self.order.data.status = OrderStatus::Pending;
        self.order.data.invoice_number = None;
        self.order.data.refunded = 0;
        self.order.data.lapsed = false;
        self.payments.clear();
        self.history.retain(|step| step.status == OrderStatus::Pending);
        self
    }

    pub fn view(&self, for_staff: bool) -> OrderView<'_> {
        let shipped = self.history.iter().find(|step| step.status == OrderStatus::Shipped);
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
        } = &self.order.data;
        OrderView {
            id,
            reference: reference.as_ref(),
            customer_id,
            store_id: store_id.as_ref(),
            shipping_address: AddressView::of(self.addresses.as_deref(), destination.as_ref()),
            billing_address: self.addresses.as_ref().and_then(|addresses| addresses.billing_address.as_ref()),
            status: *status,
            lines: self.line_views(),
            total: *total,
            totals: TotalsView::new(&self.order.charges(), *total),
            shipping_method: charges.as_ref().and_then(|charges| ShippingView::of(charges, total.currency)),
            discounts: charges.as_ref().map(|charges| DiscountView::all(charges, total.currency)),
            tax_lines: charges.as_ref().map(|charges| TaxLineView::all(&charges.tax_lines, total.currency)),
            tax_rounding: charges.as_ref().map(|charges| charges.tax_rounding),
            placed_at: *placed_at,
            lapses_at: lapses_at.filter(|_| *status == OrderStatus::Pending),
            history: self.history_views(for_staff),
            payments: self.payments.iter().map(|payment| PaymentView::new(payment, for_staff)).collect(),
            shipped_at: shipped.map(|step| step.at),
            carrier: shipped.and_then(|step| step.carrier.as_deref()),
            tracking: shipped.and_then(|step| step.tracking.as_deref()),
            invoice_number: *invoice_number,
            refunded: (*refunded > 0).then(|| Money::new(*refunded, total.currency)),
            version: self.order.meta.version,
        }
    }

    pub fn location(&self) -> String {
        location(&self.order.id)
    }
}

pub fn location(id: &OrderId) -> String {
    http_api::url::location(&["orders", id.as_str()])
}

/// Returns 404 for an order that does not exist or is invisible to the caller.
pub fn no_such_order() -> Problem {
    Problem::not_found("order")
}

#[derive(Debug, Serialize, Schema)]
pub struct OrderView<'a> {
    id: &'a OrderId,
    reference: Option<&'a OrderReference>,
    customer_id: &'a CustomerId,
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
    /// The payments, oldest first. Empty until the order is paid, and if its total is zero. The lists
    /// of orders do not have this field.
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
    /// The part of the total that was refunded to the wallet. Absent before the first refund.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    refunded: Option<Money>,
    #[field(rule = VERSION)]
    version: u64,
}

#[derive(Debug, Serialize, Schema)]
struct PaymentView<'a> {
    id: &'a PaymentId,
    /// `wallet`: the customer's wallet paid. `manual`: staff received the money and reported it.
    #[field(rule = one_of(&["wallet", "manual"]))]
    method: PaymentMethod,
    amount: Money,
    /// The part of the amount that was refunded to the wallet.
    #[field(example = {"amount": 0, "currency": "USD"})]
    refunded: Money,
    at: Instant,
    /// The id of the caller who paid or reported the payment. A customer does not get the ids of
    /// staff.
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
        let whole = addresses.map(|addresses| Self::Whole(&addresses.shipping_address));
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
