use std::fmt;

use key_schema::address::Country;
use key_schema::customer::Tier;
use key_schema::id::{
    AgentId, CustomerId, MethodId, OrderId, OrderReference, PaymentId, ProductId, PromotionId, StoreId,
};
use key_schema::instant::Instant;
use key_schema::money::{Currency, Money};
use key_schema::order::{Order, OrderLine, OrderNumber, OrderStatus};
use key_schema::payment::PaymentMethod;
use key_schema::promotion::AppliedPromotion;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Declares the kinds of events, each with its name and version. A test requires a schema for each
/// kind (`tests/schemas.rs`). A later version of a kind is a kind of its own, whose name ends with
/// the version, such as `OrderPlaced.v2`. So subscribers choose a version by the detail-type.
macro_rules! kinds {
    ($($name:ident $text:literal = $version:literal)*) => {
        /// A kind of event. Its name is the detail-type on the bus.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name,)*
        }

        impl Kind {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name: the event's `type`, and its detail-type on the bus.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Returns the version that this program publishes. It reads no other version.
            #[must_use]
            pub const fn version(self) -> u32 {
                match self {
                    $(Self::$name => $version,)*
                }
            }

            pub(crate) fn decode(self, data: &Value) -> Result<Data, serde_json::Error> {
                match self {
                    $(Self::$name => $name::deserialize(data).map(Data::$name),)*
                }
            }
        }

        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        #[allow(clippy::large_enum_variant, reason = "a batch has few events at once")]
        pub enum Data {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        impl Data {
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Self::$name(_) => Kind::$name,)*
                }
            }
        }

        $(impl From<$name> for Data {
            fn from(data: $name) -> Self {
                Self::$name(data)
            }
        })*
    };
}

kinds! {
    OrderPlaced "OrderPlaced" = 1
    OrderStatusChanged "OrderStatusChanged" = 1
    StockLow "StockLow" = 1
    ReviewPosted "ReviewPosted" = 1
    CustomerTierChanged "CustomerTierChanged" = 1
    EmailVerificationRequested "EmailVerificationRequested" = 1
    PaymentNotified "PaymentNotified" = 1
    PaymentReversed "PaymentReversed" = 1
}

impl Kind {
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// Returns the name of the kind in webhooks, or `None` if only the shop's own functions need such
    /// events.
    #[must_use]
    pub const fn in_webhooks(self) -> Option<&'static str> {
        match self {
            Self::OrderPlaced => Some("order.placed"),
            Self::OrderStatusChanged => Some("order.status_changed"),
            Self::StockLow => Some("stock.low"),
            Self::ReviewPosted => Some("review.posted"),
            Self::CustomerTierChanged => Some("customer.tier_changed"),
            Self::PaymentReversed => Some("payment.reversed"),
            Self::EmailVerificationRequested | Self::PaymentNotified => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The maximum size of the lines in an event, as JSON text. The rest of the limit of an entry
/// ([`crate::MAX_REQUEST_BYTES`]) is for the event's other fields and for the envelope in which
/// EventBridge delivers it.
pub const MAX_LINES_BYTES: usize = 250 * 1024;

/// An order became visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPlaced {
    pub order_id: OrderId,
    /// The short number that people read out.
    pub number: OrderNumber,
    /// The client's own number for the order.
    pub reference: Option<OrderReference>,
    pub customer_id: CustomerId,
    /// Whether the customer, and not staff, placed the order.
    pub by_customer: bool,
    /// The agent that placed the order for a guest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<AgentId>,
    pub store_id: Option<StoreId>,
    /// The status with which the order became visible.
    pub status: OrderStatus,
    pub totals: PlacedTotals,
    pub shipping_method: Option<MethodId>,
    /// The country to which the goods are sent, if the order has an address.
    pub country: Option<Country>,
    pub promotions: Vec<PlacedPromotion>,
    pub line_count: u64,
    /// All lines, or none.
    pub lines: Vec<PlacedLine>,
    /// The number of lines that the event leaves out. If it is not 0, a subscriber that needs the
    /// lines reads the order.
    pub lines_left_out: u64,
    pub placed_at: Instant,
}

/// The total of an order and its parts, as the API shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedTotals {
    /// The price of all lines before discounts.
    #[serde(deserialize_with = "money")]
    pub items: Money,
    #[serde(deserialize_with = "money")]
    pub discount: Money,
    /// The price of shipping before its discount.
    #[serde(deserialize_with = "money")]
    pub shipping: Money,
    /// All taxes, whether prices include them or not.
    #[serde(deserialize_with = "money")]
    pub tax: Money,
    /// The amount that is charged.
    #[serde(deserialize_with = "money")]
    pub total: Money,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedPromotion {
    pub promotion_id: PromotionId,
    #[serde(deserialize_with = "money")]
    pub amount: Money,
}

/// Leaves the lines out. [`OrderPlaced::add_lines`] adds them.
impl From<&Order> for OrderPlaced {
    fn from(order: &Order) -> Self {
        let charges = order.charges();
        let money = |amount| Money::new(amount, order.total.currency);
        let promotion = |promotion: &AppliedPromotion| PlacedPromotion {
            promotion_id: promotion.id.clone(),
            amount: money(promotion.discount),
        };
        Self {
            order_id: order.id.clone(),
            number: OrderNumber::of(&order.id),
            reference: order.reference.clone(),
            customer_id: order.customer_id.clone(),
            by_customer: order.by_customer,
            agent: order.origin.as_ref().map(|origin| origin.agent.clone()),
            store_id: order.store_id.clone(),
            status: order.status,
            totals: PlacedTotals {
                items: money(charges.items),
                discount: money(charges.discount),
                shipping: money(charges.shipping),
                tax: money(charges.tax),
                total: order.total,
            },
            shipping_method: charges.method.as_ref().map(|method| method.id.clone()),
            country: order.destination.as_ref().map(|destination| destination.country.clone()),
            promotions: order.promotions().iter().map(promotion).collect(),
            line_count: order.line_count,
            lines: Vec::new(),
            lines_left_out: order.line_count,
            placed_at: order.placed_at,
        }
    }
}

impl OrderPlaced {
    /// Adds the lines, if they are complete and not larger than [`MAX_LINES_BYTES`].
    pub fn add_lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a OrderLine>) {
        let lines: Vec<PlacedLine> = lines.into_iter().map(PlacedLine::from).collect();
        let fits = serde_json::to_vec(&lines).is_ok_and(|json| json.len() <= MAX_LINES_BYTES);
        if fits && u64::try_from(lines.len()) == Ok(self.line_count) {
            (self.lines, self.lines_left_out) = (lines, 0);
        }
    }
}

/// A line of a placed order, as sold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedLine {
    /// The number of the line, from 1.
    pub line: u64,
    pub product_id: ProductId,
    /// The name of the product at the sale.
    pub name: String,
    pub quantity: u64,
    /// The catalogue price of one piece at the sale.
    #[serde(deserialize_with = "money")]
    pub unit_price: Money,
    /// The price of the line, with its discounts and taxes.
    #[serde(deserialize_with = "money")]
    pub total: Money,
}

impl From<&OrderLine> for PlacedLine {
    fn from(line: &OrderLine) -> Self {
        Self {
            line: line.line,
            product_id: line.product_id.clone(),
            name: line.name.clone(),
            quantity: line.quantity,
            unit_price: line.unit_price,
            total: line.total,
        }
    }
}

/// A visible order changed its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderStatusChanged {
    pub order_id: OrderId,
    pub customer_id: CustomerId,
    /// The agent that placed the order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<AgentId>,
    pub from: OrderStatus,
    pub to: OrderStatus,
    /// The reason, if no caller made the change. A reader ignores reasons that it does not know.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "reason")]
    pub reason: Option<Reason>,
    /// The amount that is charged: the sum of the order's lines plus the price of shipping.
    #[serde(deserialize_with = "money")]
    pub total: Money,
    pub placed_at: Instant,
}

/// The reason of a status change that no caller made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The order was cancelled, because it was not paid in time.
    Lapsed,
}

/// Decodes a reason. Returns [`None`] for a reason that only a later release knows.
fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Reason>, D::Error> {
    Ok(Reason::deserialize(Value::deserialize(deserializer)?).ok())
}

/// A product is for sale, and its stock fell below the threshold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockLow {
    pub product_id: ProductId,
    /// The number of pieces. For a stock in shards it is an estimate: the pieces of the first shard
    /// times the number of shards.
    pub available: u64,
    pub threshold: u64,
}

/// A customer posted a new review of a product. Changes of a review cause no event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewPosted {
    pub product_id: ProductId,
    pub customer_id: CustomerId,
    /// The rating, 1 to 5.
    pub rating: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomerTierChanged {
    pub customer_id: CustomerId,
    pub from: Tier,
    pub to: Tier,
}

/// A customer requested a mail with a code that verifies their email address. The event holds
/// neither the address nor the code, nor a value from which the code is derived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmailVerificationRequested {
    pub customer_id: CustomerId,
    /// When the code expires. It identifies the request among the customer's requests.
    pub expires_at: Instant,
}

/// The payment provider said that a payment has changed. The event says nothing about the change: its
/// reader reads the provider's present state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentNotified {
    /// The provider's id of the payment.
    pub intent: String,
    /// The order of the payment, if the provider named it.
    pub order_id: Option<OrderId>,
}

/// Money of a payment went back to the customer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentReversed {
    pub order_id: OrderId,
    pub customer_id: CustomerId,
    pub payment_id: PaymentId,
    pub method: PaymentMethod,
    pub reversal: Reversal,
    #[serde(deserialize_with = "money")]
    pub amount: Money,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reversal {
    /// The shop had the money and has given it back.
    Refund,
    /// The amount was reserved on the customer's card, and the reservation has ended.
    Release,
}

/// Decodes [`Money`] and ignores unknown fields. The decoder of [`Money`] itself refuses unknown
/// fields, because it reads the bodies of requests.
fn money<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
    #[derive(Deserialize)]
    struct Tolerant {
        amount: i64,
        currency: Currency,
    }
    let Tolerant { amount, currency } = Tolerant::deserialize(deserializer)?;
    Ok(Money { amount, currency })
}
