//! What can happen.

use std::fmt;

use key_schema::customer::Tier;
use key_schema::id::{CustomerId, OrderId, OrderReference, ProductId, StoreId};
use key_schema::instant::Instant;
use key_schema::money::{Currency, Money};
use key_schema::order::OrderStatus;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Declares the kinds of events, each with its current version. A schema for each is demanded by a test (`tests/schemas.rs`).
macro_rules! kinds {
    ($($name:ident = $version:literal)*) => {
        /// A kind of event; its name is the detail-type on the bus.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name: the event's `type`, and its detail-type on the bus.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The version that this program publishes, and the only one that it reads.
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

        /// What happened.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Data {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        impl Data {
            /// Which kind of event tells this.
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
}

impl Kind {
    /// The kind with this name.
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

/// An order can be seen from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPlaced {
    /// The order.
    pub order_id: OrderId,
    /// The client's own number for it.
    pub reference: Option<OrderReference>,
    /// Whose.
    pub customer_id: CustomerId,
    /// The shop where it was placed, if any.
    pub store_id: Option<StoreId>,
    /// Where it stands; an order that was paid on the spot begins further on than `pending`.
    pub status: OrderStatus,
    /// The sum of its lines.
    #[serde(deserialize_with = "money")]
    pub total: Money,
    /// How many lines.
    pub line_count: u64,
    /// When it was placed.
    pub placed_at: Instant,
}

/// An order that could be seen before stands elsewhere now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderStatusChanged {
    /// The order.
    pub order_id: OrderId,
    /// Whose.
    pub customer_id: CustomerId,
    /// Where it stood.
    pub from: OrderStatus,
    /// Where it stands.
    pub to: OrderStatus,
    /// The sum of its lines.
    #[serde(deserialize_with = "money")]
    pub total: Money,
    /// When it was placed.
    pub placed_at: Instant,
}

/// A product that is for sale has fewer pieces in stock than the threshold, and had not before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockLow {
    /// The product.
    pub product_id: ProductId,
    /// How many pieces are left.
    pub available: u64,
    /// The threshold that was crossed.
    pub threshold: u64,
}

/// A customer reviewed a product that he had not reviewed before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewPosted {
    /// The product.
    pub product_id: ProductId,
    /// Who.
    pub customer_id: CustomerId,
    /// 1 to 5.
    pub rating: u64,
}

/// A customer's standing changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomerTierChanged {
    /// The customer.
    pub customer_id: CustomerId,
    /// The standing before.
    pub from: Tier,
    /// The standing now.
    pub to: Tier,
}

/// [`Money`] that passes over unknown fields: its own decoder is for bodies of requests, which may have none.
fn money<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
    #[derive(Deserialize)]
    struct Tolerant {
        amount: i64,
        currency: Currency,
    }
    let Tolerant { amount, currency } = Tolerant::deserialize(deserializer)?;
    Ok(Money { amount, currency })
}
