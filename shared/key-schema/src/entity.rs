//! One decoder for every item, whether it was read from the table or came with the stream.

use crate::cart::Cart;
use crate::category::{CategoryAbout, CategoryNode};
use crate::customer::{Customer, EmailClaim, UsernameClaim};
use crate::idempotency::IdempotencyRecord;
use crate::item::{DecodeError, Entity, FromItem, Item, Stored, entity_name};
use crate::order::{CustomerOrder, Order, OrderLine, OrderLog, OrderStatusEvent, ReferenceClaim};
use crate::product::{Product, ProductContent, ReviewStats, Stock};
use crate::quarantine::Quarantined;
use crate::review::Review;
use crate::sales::Sale;
use crate::session::Session;

macro_rules! entities {
    ($($name:ident)*) => {
        /// Any item of the table, typed.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyEntity {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name(Stored<$name>),)*
        }

        impl AnyEntity {
            /// The names of all entities, as the attribute `entity` has them.
            pub const NAMES: &'static [&'static str] = &[$(<$name as Entity>::NAME),*];
        }

        impl FromItem for AnyEntity {
            fn from_item(item: Item) -> Result<Self, DecodeError> {
                let name = entity_name(&item)?;
                $(if name == <$name as Entity>::NAME {
                    return Stored::from_item(item).map(Self::$name);
                })*
                Err(DecodeError::UnknownEntity(name.to_owned()))
            }
        }
    };
}

entities! {
    Cart CategoryAbout CategoryNode Customer CustomerOrder EmailClaim IdempotencyRecord Order OrderLine OrderLog OrderStatusEvent
    Product ProductContent Quarantined ReferenceClaim Review ReviewStats Sale Session Stock UsernameClaim
}
