//! Totals: counts and sums that must equal the sum of their parts.
//!
//! One transaction changes a part and its total. So a difference is real if two complete reads
//! find it and the total has the same `rev` in both. A repair is conditional on that `rev`.

mod orders;
mod parts;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use key_schema::agent::Agents;
use key_schema::entity::AnyEntity;
use key_schema::id::{DocumentId, LocationId};
use key_schema::instant::Instant;
use key_schema::invoice::InvoiceCounter;
use key_schema::item::{Entity, Item, Stored};
use key_schema::key::{Key, KeyError};
use key_schema::like::{COUNTERS, LikeCount};
use key_schema::location::StockLocations;
use key_schema::organization::{self, Role, Team};
use key_schema::pricing::Pricing;
use key_schema::product::{self, ProductSales};
use key_schema::promotion::PromotionUses;
use key_schema::webhook_endpoint::WebhookEndpoints;
use key_schema::{customer, document, order, question, wallet};

use crate::error::OpsError;

pub(super) use parts::fresh;
use parts::{fingerprint, region_total, since, stats};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// In the partition of the total.
    Partition,
    /// Anywhere in the table.
    Table,
}

/// The entities whose totals have parts anywhere in the table.
pub(super) const TABLE_WIDE: &[&str] = &[
    "CustomerUses",
    "Invoice",
    "InvoiceCounter",
    "Like",
    "LikeCount",
    "Order",
    "PlaceSales",
    "Pricing",
    "ProductSales",
    "Promotion",
    "PromotionUses",
    "Sale",
    "SalePlace",
    "ShippingZone",
    "TaxRule",
    "UsesShard",
];

/// The attributes that a repair may set, because their parts are the source of truth. Differences
/// of balances, invoices and order totals are only reported. Their parts may be wrong, so a person
/// decides.
pub(super) const REPAIRABLE: &[&str] = &[
    "admins",
    "agents",
    "amount",
    "answer_count",
    "captured_pending",
    "endpoints",
    "likes",
    "locations",
    "members",
    "orders",
    "quantity",
    "rating_count",
    "rating_sum",
    "refunded_pending",
    "teams",
    "uses",
    "variants",
];

/// A value that one item contributes to the check of a total.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    pub scope: Scope,
    /// The key of the item that holds the total.
    pub total: Key,
    /// The attribute of the total, or the name of a check.
    pub field: String,
    pub says: Says,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Says {
    /// The stored value of a total, or one item's share of that value.
    Is(i128),
    /// The `rev` of the item that holds the total.
    Held(u64),
    Part(i128),
    /// The `rev` of a part that may change while the total does not.
    Changing(u64),
    /// The total is not complete at this time, so it is not checked.
    Open,
}

/// A use stays after its order has expired, so there may be fewer orders than uses.
const USES: &str = "uses";

/// The name of the check that the payments of a paid order reach its total. More than the total may
/// have arrived, and is then refunded.
const PAID: &str = "paid";

/// The name of the check for orphans: the item to which another item belongs must exist.
pub(super) const HEAD: &str = "head";

/// A total and the sum of its parts, as far as the items were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub is: i128,
    pub parts: i128,
    pub rev: Option<u64>,
    /// The sum of the `rev` of all parts that may change while the total does not.
    pub part_revs: u64,
    open: bool,
    /// A new item for a total that has no item, built from the total's first part.
    pub fresh: Option<Box<Item>>,
}

impl Sum {
    fn is_wrong(&self, field: &str) -> bool {
        match field {
            HEAD => self.is_orphan(),
            USES => self.is < self.parts,
            PAID => !self.open && self.is > self.parts,
            _ => !self.open && self.is != self.parts,
        }
    }

    /// Returns whether items belong to an item that does not exist.
    const fn is_orphan(&self) -> bool {
        self.rev.is_none() && self.parts > 0
    }
}

/// The totals of some items. Memory is bounded by the number of totals, not of items.
#[derive(Debug, Default)]
pub(super) struct Tally(HashMap<(Key, String), Sum>);

impl Tally {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps only the totals whose keys are in this share of all keys.
    pub(super) fn keep(&mut self, part: u64, parts: u64) {
        self.0.retain(|(key, _), _| in_part(key, part, parts));
    }

    pub(super) fn add(&mut self, fact: Fact, fresh: impl FnOnce() -> Option<Item>) {
        let sum = self.0.entry((fact.total, fact.field)).or_default();
        match fact.says {
            Says::Is(amount) => sum.is += amount,
            Says::Held(rev) => (sum.rev, sum.fresh) = (Some(rev), None),
            Says::Part(amount) => {
                sum.parts += amount;
                if sum.rev.is_none() && sum.fresh.is_none() {
                    sum.fresh = fresh().map(Box::new);
                }
            }
            Says::Changing(rev) => sum.part_revs = sum.part_revs.wrapping_add(rev),
            Says::Open => sum.open = true,
        }
    }

    /// If an item that holds totals is missing, the result has one entry for the missing item and
    /// none for its totals.
    pub(super) fn wrong(&self) -> HashMap<(Key, String), Sum> {
        let is_missing = |key: &Key| self.0.get(&(key.clone(), HEAD.to_owned())).is_some_and(Sum::is_orphan);
        let wrong =
            self.0.iter().filter(|((key, field), sum)| sum.is_wrong(field) && (field == HEAD || !is_missing(key)));
        wrong.map(|(name, sum)| (name.clone(), sum.clone())).collect()
    }
}

pub(super) fn in_part(key: &Key, part: u64, parts: u64) -> bool {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() % parts.max(1) == part
}

struct Facts(Vec<Fact>);

impl Facts {
    fn push(&mut self, scope: Scope, total: &Key, field: &str, says: Says) {
        self.0.push(Fact { scope, total: total.clone(), field: field.to_owned(), says });
    }

    fn is<T>(&mut self, scope: Scope, item: &Stored<T>, total: &Key, fields: &[(&str, i128)]) {
        for (field, amount) in fields {
            self.push(scope, total, field, Says::Held(item.meta.rev));
            self.push(scope, total, field, Says::Is(*amount));
        }
    }

    fn part(&mut self, scope: Scope, total: &Key, field: &str, amount: impl Into<i128>) {
        self.push(scope, total, field, Says::Part(amount.into()));
    }

    /// Adds the fact that the item belongs to the item with this key, in the same partition.
    fn under(&mut self, head: &Key) {
        self.push(Scope::Partition, head, HEAD, Says::Part(1));
    }
}

#[allow(clippy::too_many_lines, reason = "one arm for each entity")]
pub(super) fn facts(entity: &AnyEntity, now: Instant) -> Result<Vec<Fact>, OpsError> {
    use Scope::{Partition, Table};
    let mut facts = Facts(Vec::new());
    let has = |facts: &mut Facts, key: Key, rev: u64| facts.push(Partition, &key, HEAD, Says::Held(rev));
    match entity {
        AnyEntity::Product(item) => parts::of_product(&mut facts, item)?,
        AnyEntity::Variant(item) => parts::of_variant(&mut facts, item)?,
        AnyEntity::Customer(item) => has(&mut facts, item.key()?, item.meta.rev),
        AnyEntity::ProductContent(item) => facts.under(&product_of(&item.product_id)?),
        AnyEntity::ProductPictures(item) => facts.under(&product_of(&item.product_id)?),
        AnyEntity::ProductCategories(item) => facts.under(&product_of(&item.product_id)?),
        AnyEntity::Membership(item) => facts.under(&product_of(&item.id)?),
        AnyEntity::ReviewStats(item) => {
            facts.under(&product_of(&item.product_id)?);
            let sums = [("rating_count", item.rating_count.into()), ("rating_sum", item.rating_sum.into())];
            facts.is(Partition, item, &item.key()?, &sums);
        }
        AnyEntity::Review(item) => {
            facts.under(&product_of(&item.product_id)?);
            let total = stats(item.product_id.clone(), 0, 0).key()?;
            facts.part(Partition, &total, "rating_count", 1);
            facts.part(Partition, &total, "rating_sum", item.rating);
        }
        AnyEntity::LikeCount(item) => {
            facts.under(&product_of(&item.product_id)?);
            facts.is(Table, item, &item.key()?, &[("likes", item.likes.into())]);
        }
        AnyEntity::Like(item) => {
            facts.under(customer::get(&item.customer_id)?.key());
            let shard = COUNTERS.of(item.customer_id.as_str());
            let total = LikeCount { product_id: item.product_id.clone(), shard, likes: 0 }.key()?;
            facts.part(Table, &total, "likes", 1);
        }
        AnyEntity::Follow(item) => facts.under(customer::get(&item.customer_id)?.key()),
        AnyEntity::ProductSales(item) => {
            let sums = [("quantity", item.quantity.into()), ("orders", item.orders.into())];
            let total = ProductSales::none(item.product_id.clone(), 0).key()?;
            if item.shard == 0 {
                facts.is(Table, item, &total, &sums);
            } else {
                // The first item counts the rows that the further ones do not count.
                for (field, counted) in sums {
                    facts.part(Table, &total, field, -counted);
                    facts.push(Table, &total, field, Says::Changing(item.meta.rev));
                }
            }
        }
        AnyEntity::Sale(item) if !item.reversed => {
            let total = ProductSales::none(item.product_id.clone(), 0).key()?;
            facts.part(Table, &total, "quantity", item.quantity);
            facts.part(Table, &total, "orders", 1);
        }
        AnyEntity::RegionSales(item) => {
            let sums = [("orders", item.orders.into()), ("amount", item.amount.into())];
            facts.is(Table, item, &item.key()?, &sums);
        }
        AnyEntity::SaleRegion(item) if !item.reversed => {
            let total = region_total(item).key()?;
            facts.part(Table, &total, "orders", 1);
            facts.part(Table, &total, "amount", item.total.amount);
        }
        AnyEntity::StockLocations(item) => {
            facts.is(Partition, item, &item.key()?, &[("locations", item.locations.into())]);
        }
        AnyEntity::StockLocation(item) if item.id != LocationId::main() => {
            facts.part(Partition, &StockLocations { locations: 0 }.key()?, "locations", 1);
        }
        AnyEntity::Agents(item) => facts.is(Partition, item, &item.key()?, &[("agents", item.agents.into())]),
        AnyEntity::Agent(_) => facts.part(Partition, &Agents { agents: 0 }.key()?, "agents", 1),
        AnyEntity::WebhookEndpoints(item) => {
            facts.is(Partition, item, &item.key()?, &[("endpoints", item.endpoints.into())]);
        }
        AnyEntity::WebhookEndpoint(_) => {
            facts.part(Partition, &WebhookEndpoints { endpoints: 0 }.key()?, "endpoints", 1);
        }
        AnyEntity::InvoiceCounter(item) => facts.is(Table, item, &item.key()?, &[("last", item.last.into())]),
        AnyEntity::Invoice(_) => facts.part(Table, &InvoiceCounter { last: 0 }.key()?, "last", 1),
        AnyEntity::Wallet(item) => {
            let key = item.key()?;
            has(&mut facts, key.clone(), item.meta.rev);
            for balance in item.balances() {
                let currency = balance.currency.to_string();
                facts.is(Partition, item, &key, &[(&currency, balance.amount.into())]);
            }
        }
        AnyEntity::WalletEntry(item) => {
            let wallet = wallet::read_for_update(&item.customer_id)?.key().clone();
            facts.under(&wallet);
            facts.part(Partition, &wallet, item.currency.as_str(), item.amount);
        }
        AnyEntity::Order(item) => orders::order(&mut facts, item, now)?,
        AnyEntity::Pricing(item) => facts.is(Table, item, &item.key()?, &[("rules", item.rules.into())]),
        AnyEntity::PromotionUses(item) => facts.is(Table, item, &item.key()?, &[(USES, item.uses.into())]),
        // The head also counts the uses that a shard has left.
        AnyEntity::UsesShard(item) => {
            let total = PromotionUses::key_of(&item.promotion_id)?;
            facts.part(Table, &total, USES, item.unused);
            facts.push(Table, &total, USES, Says::Changing(item.meta.rev));
        }
        AnyEntity::CustomerUses(item) => facts.is(Table, item, &item.key()?, &[(USES, item.uses.into())]),
        AnyEntity::Promotion(item) if item.code.is_none() => {
            facts.part(Table, &Pricing { rules: 0 }.key()?, "rules", 1);
        }
        AnyEntity::ShippingZone(_) | AnyEntity::TaxRule(_) => {
            facts.part(Table, &Pricing { rules: 0 }.key()?, "rules", 1);
        }
        AnyEntity::OrderLine(item) if item.expires_at.is_none_or(|at| at > now) => orders::line(&mut facts, item)?,
        AnyEntity::Payment(item) if item.expires_at.is_none_or(|at| at > now) => orders::payment(&mut facts, item)?,
        AnyEntity::PaymentOperation(item) if item.expires_at.is_none_or(|at| at > now) => {
            orders::operation(&mut facts, item)?;
        }
        AnyEntity::OrderStatusEvent(item) if item.expires_at.is_none_or(|at| at > now) => {
            facts.under(order::head(&item.order_id)?.key());
        }
        AnyEntity::Question(item) => {
            has(&mut facts, item.key()?, item.meta.rev);
            facts.is(Partition, item, &item.key()?, &[("answer_count", item.answer_count.into())]);
        }
        AnyEntity::Answer(item) => {
            let question = question::read_for_update(&item.question_id)?.key().clone();
            facts.under(&question);
            facts.part(Partition, &question, "answer_count", 1);
        }
        AnyEntity::Organization(item) => {
            has(&mut facts, item.key()?, item.meta.rev);
            let sums = [("teams", item.teams.into()), ("admins", item.admins.into())];
            facts.is(Partition, item, &item.key()?, &sums);
        }
        AnyEntity::Team(item) => {
            let head = organization::head(&item.organization_id)?.key().clone();
            facts.under(&head);
            facts.part(Partition, &head, "teams", 1);
            facts.is(Partition, item, &item.key()?, &[("members", item.members.into())]);
        }
        AnyEntity::Member(item) => {
            let head = organization::head(&item.id)?.key().clone();
            facts.under(&head);
            facts.part(Partition, &head, "admins", i128::from(item.role == Role::Admin));
            if let Some(team) = &item.team {
                let team = Team { organization_id: item.id.clone(), id: team.clone(), members: 0, name: String::new() };
                facts.part(Partition, &team.key()?, "members", 1);
            }
        }
        AnyEntity::Invitation(item) if item.expires_at > now => {
            facts.under(organization::head(&item.id)?.key());
        }
        AnyEntity::Document(item) => {
            let key = item.key()?;
            has(&mut facts, key.clone(), item.meta.rev);
            facts.is(Partition, item, &key, &[("versions", item.current.into()), ("texts", 0)]);
            if let Some(draft) = &item.draft {
                facts.push(Partition, &key, "texts", Says::Is(since(&draft.sections, item.next())));
            }
            for name in &item.discarded {
                facts.push(Partition, &key, "texts", Says::Is(fingerprint(name, item.next())));
            }
            if item.deleting {
                for field in ["versions", "texts"] {
                    facts.push(Partition, &key, field, Says::Open);
                }
            }
        }
        AnyEntity::DocumentVersion(item) => {
            let head = head_of(&item.id)?;
            facts.under(&head);
            facts.part(Partition, &head, "versions", 1);
            facts.push(Partition, &head, "texts", Says::Is(since(&item.sections, item.number)));
        }
        AnyEntity::DocumentSection(item) => {
            let head = head_of(&item.id)?;
            facts.under(&head);
            facts.part(Partition, &head, "texts", fingerprint(&item.name, item.number));
        }
        _ => {}
    }
    Ok(facts.0)
}

fn product_of(id: &key_schema::id::ProductId) -> Result<Key, KeyError> {
    Ok(product::read_for_update(id)?.key().clone())
}

fn head_of(id: &DocumentId) -> Result<Key, KeyError> {
    Ok(document::get(id)?.key().clone())
}
