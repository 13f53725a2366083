//! The kinds of events and their data.

use std::fmt;

use key_schema::customer::Tier;
use key_schema::id::{CustomerId, OrderId, OrderReference, ProductId, StoreId};
use key_schema::instant::Instant;
use key_schema::money::{Currency, Money};
use key_schema::order::OrderStatus;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Declares the kinds of events, each with its current version. A test requires a schema for each
/// of them (`tests/schemas.rs`).
macro_rules! kinds {
    ($($name:ident = $version:literal)*) => {
        /// A kind of event. Its name is the detail-type on the bus.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name: the event's `type`, and its detail-type on the bus.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
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

        /// The data of an event.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Data {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        impl Data {
            /// Returns the kind of event with this data.
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
    OrderPlaced = 1
    OrderStatusChanged = 1
    StockLow = 1
    ReviewPosted = 1
    CustomerTierChanged = 1
    EmailVerificationRequested = 1
}

impl Kind {
    /// Returns the kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An order became visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPlaced {
    /// The order.
    pub order_id: OrderId,
    /// The client's own number for the order.
    pub reference: Option<OrderReference>,
    /// The customer.
    pub customer_id: CustomerId,
    /// The shop where it was placed, if any.
    pub store_id: Option<StoreId>,
    /// The status with which the order became visible.
    pub status: OrderStatus,
    /// The sum of the order's lines.
    #[serde(deserialize_with = "money")]
    pub total: Money,
    /// The number of lines.
    pub line_count: u64,
    /// When it was placed.
    pub placed_at: Instant,
}

/// A visible order changed its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderStatusChanged {
    /// The order.
    pub order_id: OrderId,
    /// The customer.
    pub customer_id: CustomerId,
    /// The old status.
    pub from: OrderStatus,
    /// The new status.
    pub to: OrderStatus,
    /// The reason, if no caller made the change. A reader ignores reasons that it does not know.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "reason")]
    pub reason: Option<Reason>,
    /// The sum of the order's lines.
    #[serde(deserialize_with = "money")]
    pub total: Money,
    /// When it was placed.
    pub placed_at: Instant,
}

/// The reason of a status change that no caller made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The order was cancelled, because it was not paid in time.
    Lapsed,
}

/// Decodes a reason, or [`None`] for a reason of a later version.
fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Reason>, D::Error> {
    Ok(Reason::deserialize(Value::deserialize(deserializer)?).ok())
}

/// A product is for sale, and its stock fell below the threshold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockLow {
    /// The product.
    pub product_id: ProductId,
    /// The number of pieces left.
    pub available: u64,
    /// The threshold that was crossed.
    pub threshold: u64,
}

/// A customer posted a new review of a product. Changes of a review cause no event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewPosted {
    /// The product.
    pub product_id: ProductId,
    /// The customer.
    pub customer_id: CustomerId,
    /// The rating, 1 to 5.
    pub rating: u64,
}

/// A customer's tier changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomerTierChanged {
    /// The customer.
    pub customer_id: CustomerId,
    /// The old tier.
    pub from: Tier,
    /// The new tier.
    pub to: Tier,
}

/// A customer requested a mail with a code that proves their email address. The event holds neither
/// the address nor the code, nor a value from which the code is derived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmailVerificationRequested {
    /// The customer.
    pub customer_id: CustomerId,
    /// When the code expires. It identifies the request among the customer's requests.
    pub expires_at: Instant,
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
