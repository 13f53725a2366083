//! Tax rules: the rate for a category of goods in a country or in a region of it.

use item_model::prelude::*;

use super::{PricingAction, Rules, folded, partition, transaction};
use crate::address::Country;
use crate::change::Change;
use crate::expression::Condition;
use crate::id::{TaxCategory, TaxRuleId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity};
use crate::key::{Key, KeyError, SortKey};
use crate::request::{Guarded, Transaction};

/// The category of every product that names no category.
pub const STANDARD: &str = "standard";
/// The category of shipping. Without a rule of this category, shipping is taxed as [`STANDARD`].
pub const SHIPPING: &str = "shipping";
/// One basis point in millionths.
pub const BASIS_POINT: u32 = 100;

entity! {
    TaxRule = "TaxRule" {
        fixed {
            id: TaxRuleId,
        }
        mutable by TaxRuleChanges {
            country: Country,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            region: Option<String>,
            category: TaxCategory,
            /// The rate in millionths: 190,000 is 19 %.
            rate_millionths: u32,
            included: bool,
        }
    }
}

impl Entity for TaxRule {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: partition()?, sk: SortKey::of("TAX", &[&self.id])? })
    }
}

impl TaxRule {
    /// Returns whether the rule names the region, which must be folded.
    pub(super) fn names(&self, region: &str) -> bool {
        self.region.as_deref().is_some_and(|named| folded(named) == region)
    }

    /// Returns whether both rules are for the same goods in the same country and region.
    pub(super) fn conflicts_with(&self, other: &Self) -> bool {
        let region = match &other.region {
            Some(region) => self.names(&folded(region)),
            None => self.region.is_none(),
        };
        region && self.country == other.country && self.category == other.category
    }
}

/// Replaces a tax rule that is at `version`.
pub fn change_tax_rule(
    rules: &Rules,
    rule: &TaxRule,
    version: u64,
    at: Instant,
) -> Result<Transaction<PricingAction>, EncodeError> {
    let change = Change::<TaxRule>::visible(at)
        .country(&rule.country)?
        .region(&rule.region)?
        .category(&rule.category)?
        .rate_millionths(&rule.rate_millionths)?
        .included(&rule.included)?;
    transaction(rules, rules.count(), Guarded::update(rule.key()?, change, Condition::version(version)), at)
}
