//! Regions: the locations of shops, and the daily sales of each shop.
//!
//! The hierarchy is country / city / shop / day. The partition key contains the country and the
//! month, and the sort key contains the rest. So one range of sort keys has the totals of any
//! prefix of the hierarchy, and no collection grows for ever. [`crate::sales`] adds to the totals
//! and keeps a record of each addition.
//!
//! An order has one currency, and amounts of different currencies are never added. Each currency of
//! a day has its own total.
//!
//! # Why a total has several items
//!
//! Every order that was placed in no shop counts for the shop `online`. A single item would take
//! one write for each of these orders on a day. Two concurrent transactions on one item conflict,
//! and a partition takes 1,000 write units a second. So the totals of a country's month use
//! [`SHARDS`] partitions. The order's id chooses the shard of an online order, and the shop's id
//! chooses the shard of every other order. Only the online total is split.
//!
//! # Why the sum is exact
//!
//! The record of an addition ([`SaleRegion`]) has the number of the shard that counted the order. A
//! cancellation subtracts the amount from that shard. A reader reads every shard that may have a
//! part of the total, and adds the parts ([`RegionSales::add`]).

mod path;

use item_model::prelude::*;

use crate::change::Change;
use crate::encoding::{encode, join};
use crate::expression::Condition;
use crate::id::{OrderId, StoreId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::money::{Currency, Money};
use crate::order::Order;
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Query, Range, Single};
use crate::shard::Shards;

pub use path::{Month, MonthError, RegionPath, RegionPathError};

/// The number of partitions of a country's month. One transaction on a total costs two write units,
/// so the online total of a country accepts at most 32,000 transactions a second. A change of this
/// number needs a migration of the totals, because the total of a shop is read from that shop's
/// shard.
pub const SHARDS: Shards = Shards(64);

/// The country of a shop without a [`StoreLocation`] item.
pub const UNKNOWN_COUNTRY: &str = "US";
/// The city of a shop without a [`StoreLocation`] item.
pub const UNKNOWN_CITY: &str = "unknown";

entity! {
    /// A shop.
    StoreLocation = "Store" {
        fixed {
            id: StoreId,
        }
        mutable by StoreLocationChanges {
            country: String,
            city: String,
            name: String,
        }
    }
}

impl Entity for StoreLocation {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }
}

fn key(id: &StoreId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("STORE", &[id])?, sk: SortKey::new("STORE")? })
}

entity! {
    /// The record that an order was counted, with the region whose total counts it. A cancellation
    /// or return subtracts from the same region, even if the shop has moved since.
    SaleRegion = "SalePlace" {
        fixed {
            order_id: OrderId,
            /// The country of the shop when the order was counted.
            country: String,
            /// The city of the shop when the order was counted.
            city: String,
            store_id: StoreId,
            /// The instant of placement, which gives the month and day of the totals.
            placed_at: Instant,
            total: Money,
            /// Whether the order was cancelled or returned. A reversed order is not counted.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            reversed: bool,
            /// The shard of the total that counts the order.
            shard: u32,
        }
        mutable {}
    }
}

impl Entity for SaleRegion {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: PartitionKey::of("SALES", &[&self.order_id])?, sk: SortKey::new("PLACE")? })
    }
}

impl SaleRegion {
    /// Returns the region that counts an order of this shop. `store` is [`None`] if the shop has no
    /// [`StoreLocation`] item.
    #[must_use]
    pub fn of(order: &Order, store: Option<&StoreLocation>, store_id: StoreId) -> Self {
        let (country, city) =
            store.map_or((UNKNOWN_COUNTRY, UNKNOWN_CITY), |store| (store.country.as_str(), store.city.as_str()));
        let shard = shard_of(&store_id, &order.id);
        Self {
            order_id: order.id.clone(),
            country: country.to_owned(),
            city: city.to_owned(),
            store_id,
            placed_at: order.placed_at,
            total: order.total,
            reversed: !order.status.is_sale(),
            shard,
        }
    }
}

fn shard_of(store: &StoreId, order: &OrderId) -> u32 {
    SHARDS.of(if *store == StoreId::online() { order.as_str() } else { store.as_str() })
}

/// Returns the shop that counts an order: [`StoreId::online`] for an order that was placed in no
/// shop.
#[must_use]
pub fn store_of(order: &Order) -> StoreId {
    order.store_id.clone().unwrap_or_else(StoreId::online)
}

entity! {
    /// The sales of a shop on one day in one currency, or only the part in one shard. The total is
    /// the sum of the shards.
    RegionSales = "PlaceSales" {
        fixed {
            country: String,
            city: String,
            store_id: StoreId,
            /// The day in UTC, such as `2017-01-01`.
            date: String,
            currency: Currency,
            orders: i64,
            /// The sum of the orders' totals, in minor units.
            #[serde(deserialize_with = "crate::money::saturating")]
            amount: i64,
            shard: u32,
        }
        mutable {}
    }
}

impl Entity for RegionSales {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        let Self { country, city, store_id, date, currency, shard, .. } = self;
        total_key(country, city, store_id, date, *currency, *shard)
    }
}

impl RegionSales {
    /// Adds another part of the same total.
    pub const fn add(&mut self, part: &Self) {
        self.orders = self.orders.saturating_add(part.orders);
        self.amount = self.amount.saturating_add(part.amount);
    }
}

/// The length of a month's text, `2017-01`.
const MONTH: usize = 7;

fn total_key(
    country: &str,
    city: &str,
    store: &StoreId,
    date: &str,
    currency: Currency,
    shard: u32,
) -> Result<Key, KeyError> {
    // A day's text starts with its month.
    let month: String = date.chars().take(MONTH).collect();
    let sort = join(&encode(city), &[store, &date, &currency.as_str()]);
    Ok(Key { pk: totals_partition(country, &month, shard)?, sk: SortKey::new(sort)? })
}

fn totals_partition(country: &str, month: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PLACESALES", &[&country, &month, &shard])
}

/// Adds orders and an amount to the total of a region. Negative values subtract. The action belongs
/// to the transaction that writes `region`.
pub(crate) fn count(region: &Stored<SaleRegion>, orders: i64, amount: i64) -> Result<Guarded, EncodeError> {
    let SaleRegion { country, city, store_id, placed_at, total, shard, .. } = &region.data;
    let (date, currency) = (placed_at.day(), total.currency);
    let change = Change::<RegionSales>::visible(region.meta.updated_at)
        .or_create(&region.meta.born, region.meta.updated_at)
        .set("country", country)?
        .set("city", city)?
        .set("store_id", store_id)?
        .set("date", &date)?
        .set("currency", currency)?
        .set("shard", shard)?
        .add("orders", orders)
        .add("amount", amount);
    let key = total_key(country, city, store_id, &date, currency, *shard)?;
    Ok(Guarded::modify(key, change))
}

patterns! {
    GET {
        id: "stores.get",
        purpose: "Read a shop",
        request: GetItem,
        key: "PK = STORE#<id>, SK = STORE",
        returns: "the shop",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    EDIT {
        id: "stores.edit",
        purpose: "Read a shop to count an order",
        request: GetItem,
        key: "PK = STORE#<id>, SK = STORE",
        returns: "the shop",
        consistency: Consistency::Strong("an order is counted at the shop's current region"),
        callers: "system",
    }
    CREATE {
        id: "stores.create",
        purpose: "Create a shop",
        request: PutItem,
        key: "PK = STORE#<id>, SK = STORE",
        requires: "does not exist",
        callers: "staff",
    }
    CHANGE {
        id: "stores.change",
        purpose: "Change a shop",
        request: UpdateItem,
        key: "PK = STORE#<id>, SK = STORE",
        requires: "version = the If-Match",
        callers: "staff",
    }
    SALES {
        id: "sales.of-place",
        purpose: "List a region's sales of a month",
        request: ShardedQuery,
        key: "PK = PLACESALES#<country>#<month>#<shard>, SK under <city>#<store>#<date>#, or a \
            prefix of it",
        returns: "totals by city, shop, day and currency; the online shop has several items per \
            total",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
}

pub fn get(id: &StoreId) -> Result<Get<Stored<StoreLocation>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Reads a shop with strong consistency.
pub fn read_for_update(id: &StoreId) -> Result<Get<Stored<StoreLocation>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

pub fn create(store: &Stored<StoreLocation>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&CREATE, Guarded::put(store, Condition::NotExists)?))
}

/// Replaces country, city and name of a shop that is at `version`, and returns the shop. Sales that
/// were counted at its former region stay there.
pub fn change(store: &StoreLocation, version: u64, at: Instant) -> Result<Single<Stored<StoreLocation>>, EncodeError> {
    let change = Change::<StoreLocation>::visible(at).country(&store.country)?.city(&store.city)?.name(&store.name)?;
    Ok(Single::new(&CHANGE, Guarded::update(key(&store.id)?, change, Condition::version(version))))
}

/// Lists a month's sales of a country, or of a part of it, by city, shop, day and currency.
/// The items of one total share a sort key, and [`RegionSales::add`] adds them. For a shop other
/// than the online shop, the query reads only the shop's shard.
pub fn sales(
    country: &str,
    month: &Month,
    within: Option<&RegionPath>,
) -> Result<Query<Stored<RegionSales>>, KeyError> {
    let range = within.map_or(Range::All, |path| Range::under(&path.key_text()));
    let shards = match within.and_then(RegionPath::shop) {
        Some(shop) if shop != StoreId::online().as_str() => vec![SHARDS.of(shop)],
        _ => SHARDS.all().collect(),
    };
    let partition = |shard| totals_partition(country, &month.0, shard);
    Ok(Query::sharded(&SALES, shards.into_iter().map(partition).collect::<Result<_, _>>()?, range))
}
