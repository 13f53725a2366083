//! The rules of pricing: shipping zones, tax rules and the promotions without a code.
//!
//! All rules are in the partition `PRICING`, so one Query reads them. The sort keys are `PRICING`,
//! `PROMOTION#<id>` ([`crate::promotion`]), `TAX#<id>` and `ZONE#<id>`. Two zones may not be for
//! the same whole country or for the same region. Two tax rules may not be for the same goods in
//! one place. So each change reads all rules first. The item `PRICING` is the head: its version is
//! the number of changes. A change is a transaction on condition that this version is unchanged, so
//! no two changes overlook each other.
//!
//! One Query must be enough for all rules. The limits [`MAX_ZONES`], [`MAX_ZONE_BYTES`],
//! [`MAX_TAX_RULES`], [`MAX_AUTOMATIC`] and [`MAX_PROMOTION_BYTES`] keep them below the 1 MB of a
//! Query.
//!
//! [`MAX_PROMOTION_BYTES`]: crate::promotion::MAX_PROMOTION_BYTES

mod tax;
mod zone;

use item_model::prelude::*;

use crate::address::Country;
use crate::change::Change;
use crate::expression::Condition;
use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::promotion::{MAX_AUTOMATIC, Promotion};
use crate::request::{Guarded, Query, Range, Transaction};
use crate::text::fold;

pub use tax::{BASIS_POINT, SHIPPING, STANDARD, TaxRule, TaxRuleChanges, change_tax_rule};
pub use zone::{
    MAX_COUNTRIES, MAX_METHODS, MAX_RATES, MAX_REGIONS, MAX_ZONE_BYTES, ShippingMethod, ShippingRate, ShippingZone,
    ShippingZoneChanges, change_zone,
};

pub const MAX_ZONES: usize = 40;
/// The maximum number of tax rules. A rule takes less than 1,000 bytes.
pub const MAX_TAX_RULES: usize = 300;
/// The maximum number of items in the partition: the rules and the head.
const MAX_ITEMS: usize = MAX_ZONES + MAX_TAX_RULES + MAX_AUTOMATIC + 1;

entity! {
    /// The head of the rules of pricing. Its version is the number of changes of all rules.
    Pricing = "Pricing" {
        fixed {}
        mutable by PricingChanges {
            /// The number of zones, tax rules and promotions.
            rules: u64,
        }
    }
}

impl Entity for Pricing {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        head_key()
    }
}

/// Returns the form in which regions are compared: folded, and without blanks at the ends.
fn folded(region: &str) -> String {
    fold(region).trim().to_owned()
}

pub(crate) fn partition() -> Result<PartitionKey, KeyError> {
    PartitionKey::new("PRICING")
}

pub(crate) fn head_key() -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::new("PRICING")? })
}

patterns! {
    READ {
        id: "pricing.read",
        purpose: "Read all shipping zones, tax rules and automatic promotions",
        request: Query,
        key: "PK = PRICING",
        returns: "the head, the promotions, the tax rules and the shipping zones, each by id",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    EDIT {
        id: "pricing.edit",
        purpose: "Read all rules of pricing before a change",
        request: Query,
        key: "PK = PRICING",
        returns: "the head, the promotions, the tax rules and the shipping zones, each by id",
        consistency: Consistency::Strong("the change depends on the version of the head and on all \
            rules"),
        callers: "staff",
    }
    CHANGE {
        id: "pricing.change",
        purpose: "Add, replace or delete a shipping zone or a tax rule",
        request: TransactWriteItems,
        key: "PK = PRICING, SK = PRICING; PK = PRICING, SK = ZONE#<id> or TAX#<id>",
        requires: "the head is unchanged since it was read; a new rule does not exist, and another \
            rule is at the If-Match",
        callers: "staff",
    }
}

/// An action of the transaction that changes a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PricingAction {
    Head,
    Rule,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// The number of changes.
    pub version: u64,
    /// The shipping zones, by id.
    pub zones: Vec<Stored<ShippingZone>>,
    /// The tax rules, by id.
    pub tax_rules: Vec<Stored<TaxRule>>,
    /// The promotions without a code, by id.
    pub promotions: Vec<Stored<Promotion>>,
}

impl Rules {
    /// Collects the rules from the items of the partition.
    #[must_use]
    pub fn from_items(items: Vec<RulesItem>) -> Self {
        let mut rules = Self::default();
        for item in items {
            match item {
                RulesItem::Pricing(head) => rules.version = head.meta.version,
                RulesItem::ShippingZone(zone) => rules.zones.push(zone),
                RulesItem::TaxRule(rule) => rules.tax_rules.push(rule),
                RulesItem::Promotion(promotion) => rules.promotions.push(promotion),
            }
        }
        rules
    }

    /// Returns the rules that apply in a place. A rule that names the region comes before a rule of
    /// the whole country.
    #[must_use]
    pub fn at(&self, country: &Country, region: Option<&str>) -> LocalRules<'_> {
        // A customer chooses the region, and the folding of a long text takes time. So the function
        // folds the region only once.
        let region = region.map(folded);
        let zones = || self.zones.iter().map(|zone| &zone.data).filter(|zone| zone.countries.contains(country));
        let named = region.as_deref().and_then(|region| zones().find(|zone| zone.names(region)));
        let zone = named.or_else(|| zones().find(|zone| zone.regions.is_none()));
        let (mut tax_rules, mut national) = (Vec::new(), Vec::new());
        for rule in self.tax_rules.iter().map(|rule| &rule.data).filter(|rule| rule.country == *country) {
            if rule.region.is_none() {
                national.push(rule);
            } else if region.as_deref().is_some_and(|region| rule.names(region)) {
                tax_rules.push(rule);
            }
        }
        tax_rules.append(&mut national);
        LocalRules { zone, tax_rules }
    }

    /// Returns another zone for the same whole country or for the same region as `zone`.
    #[must_use]
    pub fn overlapping_zone(&self, zone: &ShippingZone) -> Option<&ShippingZone> {
        self.zones.iter().map(|other| &other.data).find(|other| other.id != zone.id && other.overlaps(zone))
    }

    /// Returns another tax rule for the same goods in the same country and region.
    #[must_use]
    pub fn same_tax_rule(&self, rule: &TaxRule) -> Option<&TaxRule> {
        self.tax_rules.iter().map(|other| &other.data).find(|other| other.id != rule.id && other.conflicts_with(rule))
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.zones.len() + self.tax_rules.len() + self.promotions.len()
    }

    /// Writes the head for a change after which there are `count` rules.
    pub(crate) fn head(&self, count: usize, at: Instant) -> Result<Guarded, EncodeError> {
        let change = Change::<Pricing>::visible(at).rules(&u64::try_from(count).unwrap_or(u64::MAX))?;
        let (change, condition) = if self.version == 0 {
            (change.or_create(&Born::counter(), at), Condition::NotExists)
        } else {
            (change, Condition::version(self.version))
        };
        Ok(Guarded::update(head_key()?, change, condition))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalRules<'a> {
    pub zone: Option<&'a ShippingZone>,
    /// The tax rules. The rules of the region come first.
    tax_rules: Vec<&'a TaxRule>,
}

impl<'a> LocalRules<'a> {
    #[must_use]
    pub fn tax_rule(&self, category: &str) -> Option<&'a TaxRule> {
        self.tax_rules.iter().copied().find(|rule| rule.category.as_str() == category)
    }
}

one_of! {
    pub enum RulesItem { Pricing Promotion ShippingZone TaxRule }
}

pub fn read() -> Result<Query<RulesItem>, KeyError> {
    Ok(Query::new(&READ, partition()?, Range::All).limit(MAX_ITEMS))
}

/// Reads all rules with strong consistency.
pub fn read_for_update() -> Result<Query<RulesItem>, KeyError> {
    Ok(Query::new(&EDIT, partition()?, Range::All).limit(MAX_ITEMS))
}

/// Adds a zone or a tax rule.
pub fn create<E: Entity>(rules: &Rules, rule: &Stored<E>) -> Result<Transaction<PricingAction>, EncodeError> {
    transaction(rules, rules.count() + 1, Guarded::put(rule, Condition::NotExists)?, rule.meta.created_at)
}

/// Deletes a zone or a tax rule that is at `version`.
pub fn delete<E: Entity>(
    rules: &Rules,
    rule: &E,
    version: u64,
    at: Instant,
) -> Result<Transaction<PricingAction>, EncodeError> {
    let count = rules.count().saturating_sub(1);
    transaction(rules, count, Guarded::delete(rule.key()?, Condition::version(version)), at)
}

fn transaction(
    rules: &Rules,
    count: usize,
    rule: Guarded,
    at: Instant,
) -> Result<Transaction<PricingAction>, EncodeError> {
    Ok(Transaction::new(&CHANGE).action(PricingAction::Rule, rule).action(PricingAction::Head, rules.head(count, at)?))
}
