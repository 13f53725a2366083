//! The decoder for every item, from the table or from the stream.

use crate::agent::{Agent, Agents};
use crate::cart::Cart;
use crate::category::relocation::CategoryMove;
use crate::category::{CategoryAbout, CategoryNode};
use crate::checkout_session::CheckoutSession;
use crate::counter::{Counter, CounterShard};
use crate::customer::{Customer, EmailClaim, UsernameClaim};
use crate::document::{CustomerDocument, Document, DocumentSection, DocumentVersion};
use crate::erasure::Erasure;
use crate::expiration::Expiration;
use crate::follow::Follow;
use crate::guest_cart::GuestCart;
use crate::heartbeat::Heartbeat;
use crate::idempotency::IdempotencyRecord;
use crate::invoice::{Invoice, InvoiceCounter};
use crate::item::{DecodeError, EncodeError, Entity, FromItem, Item, Stored, entity_name};
use crate::leaderboard::{Rank, Tally};
use crate::like::{Like, LikeCount};
use crate::location::{StockLocation, StockLocations};
use crate::mail::Mail;
use crate::mark::Mark;
use crate::media::UnsettledObject;
use crate::membership::{Membership, ProductCategories};
use crate::metric::MetricPoint;
use crate::order::addresses::OrderAddresses;
use crate::order::open::OpenOrders;
use crate::order::{CustomerOrder, NumberClaim, Order, OrderLine, OrderLog, OrderStatusEvent, ReferenceClaim};
use crate::organization::invitation::{Invitation, Invitations};
use crate::organization::{Member, Organization, Team};
use crate::payment::{Payment, PaymentOperation};
use crate::picking::{PickingStations, WaitingJob};
use crate::picture::ProductPictures;
use crate::pricing::{Pricing, ShippingZone, TaxRule};
use crate::product::{Product, ProductContent, ProductSales, ReviewStats, ShardedStock, Stock};
use crate::promotion::{CustomerUses, Promotion, PromotionCode, PromotionUses, UsesShard};
use crate::provider_event::ProviderEvent;
use crate::question::{Answer, CustomerQuestion, Question};
use crate::quota::QuotaDay;
use crate::recipient::{MailDay, MailStop};
use crate::region::{RegionSales, SaleRegion, StoreLocation};
use crate::review::Review;
use crate::review::recent::{RecentReview, ReviewMonth};
use crate::revocation::Revocation;
use crate::sales::Sale;
use crate::session::Session;
use crate::settings::Settings;
use crate::variant::Variant;
use crate::verification::EmailVerification;
use crate::wallet::{Wallet, WalletEntry};
use crate::webhook_delivery::WebhookDelivery;
use crate::webhook_endpoint::{WebhookEndpoint, WebhookEndpoints};

macro_rules! entities {
    ($($name:ident)*) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyEntity {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name(Stored<$name>),)*
        }

        impl AnyEntity {
            /// The names of all entities, as in the attribute `entity`.
            pub const NAMES: &'static [&'static str] = &[$(<$name as Entity>::NAME),*];

            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$name as Entity>::NAME,)*
                }
            }

            /// Encodes the whole item: [`Stored::to_item`].
            pub fn to_item(&self) -> Result<Item, EncodeError> {
                match self {
                    $(Self::$name(stored) => stored.to_item(),)*
                }
            }
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
    Agent Agents Answer Cart CategoryAbout CategoryMove CategoryNode CheckoutSession Counter CounterShard Customer CustomerDocument
    CustomerOrder CustomerQuestion CustomerUses Document DocumentSection DocumentVersion EmailClaim
    EmailVerification Erasure Expiration Follow GuestCart Heartbeat IdempotencyRecord Invitation Invitations
    Invoice InvoiceCounter Like LikeCount Mail MailDay MailStop Mark Member Membership MetricPoint NumberClaim
    OpenOrders Order OrderAddresses OrderLine OrderLog OrderStatusEvent Organization Payment PaymentOperation
    PickingStations RegionSales Pricing Product ProductCategories ProductContent ProductPictures ProductSales
    Promotion PromotionCode PromotionUses ProviderEvent Question QuotaDay Rank RecentReview ReferenceClaim
    Review ReviewMonth ReviewStats Revocation Sale SaleRegion Session Settings ShardedStock ShippingZone Stock
    StockLocation StockLocations StoreLocation Tally TaxRule Team UnsettledObject UsernameClaim UsesShard
    Variant WaitingJob Wallet WalletEntry WebhookDelivery WebhookEndpoint WebhookEndpoints
}
