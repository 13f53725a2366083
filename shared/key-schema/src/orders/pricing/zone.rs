//! Shipping zones: the places to which orders are sent, and the methods with their prices.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::{PricingAction, Rules, folded, partition, transaction};
use crate::address::Country;
use crate::change::Change;
use crate::expression::Condition;
use crate::id::{MethodId, ZoneId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity};
use crate::key::{Key, KeyError, SortKey};
use crate::money::Money;
use crate::request::{Guarded, Transaction};

pub const MAX_COUNTRIES: usize = 250;
pub const MAX_REGIONS: usize = 100;
pub const MAX_METHODS: usize = 20;
pub const MAX_RATES: usize = 20;
/// The maximum size of a zone's item.
pub const MAX_ZONE_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShippingMethod {
    /// The id of the method, which is unique in its zone.
    pub id: MethodId,
    pub name: String,
    /// The lowest and the highest number of days until delivery.
    pub days: (u64, u64),
    /// The rates. One rate without a limit is the price of every parcel. Otherwise all rates have
    /// the same kind of limit.
    pub rates: Vec<ShippingRate>,
    /// The lowest amount of a basket, after discounts, from which shipping is free.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub free_from: Option<Money>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShippingRate {
    /// The highest weight for this price.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub up_to_grams: Option<u64>,
    /// The lowest amount of a basket, after discounts, for this price.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_amount: Option<Money>,
    pub price: Money,
}

entity! {
    ShippingZone = "ShippingZone" {
        fixed {
            id: ZoneId,
        }
        mutable by ShippingZoneChanges {
            countries: Vec<Country>,
            /// The regions to which the zone is limited, in the spelling of staff. A zone without
            /// regions contains the whole countries.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            regions: Option<Vec<String>>,
            methods: Vec<ShippingMethod>,
        }
    }
}

impl Entity for ShippingZone {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: partition()?, sk: SortKey::of("ZONE", &[&self.id])? })
    }
}

impl ShippingZone {
    /// Returns whether the zone names the region, which must be folded.
    pub(super) fn names(&self, region: &str) -> bool {
        self.regions.iter().flatten().any(|named| folded(named) == region)
    }

    /// Returns whether both zones are for the same whole country, or for the same region of it.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let region = match (&self.regions, &other.regions) {
            (None, None) => true,
            (Some(regions), Some(_)) => regions.iter().any(|region| other.names(&folded(region))),
            _ => false,
        };
        region && self.countries.iter().any(|country| other.countries.contains(country))
    }
}

/// Replaces a zone that is at `version`.
pub fn change_zone(
    rules: &Rules,
    zone: &ShippingZone,
    version: u64,
    at: Instant,
) -> Result<Transaction<PricingAction>, EncodeError> {
    let change = Change::<ShippingZone>::visible(at)
        .countries(&zone.countries)?
        .regions(&zone.regions)?
        .methods(&zone.methods)?;
    transaction(rules, rules.count(), Guarded::update(zone.key()?, change, Condition::version(version)), at)
}
