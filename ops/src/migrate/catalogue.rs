//! The migrations of this release.

use std::collections::HashMap;

use key_schema::customer;
use key_schema::document::{CustomerDocument, Document, Tie};
use key_schema::entity::AnyEntity;
use key_schema::id::CustomerId;
use key_schema::index::{GSI1, GSI2, GSI3};
use key_schema::item::{Entity as _, FromItem as _, Item, Stored};
use key_schema::key::Key;
use key_schema::money::Currency;
use key_schema::order::{self, Order};
use key_schema::review::Review;
use key_schema::review::recent::{self, Month, RecentReview, ReviewMonth};
use key_schema::wallet::Wallet;

use crate::error::OpsError;
use crate::items::{Change, Check, Repair, sets};

/// A migration of the data model.
#[derive(Debug)]
pub struct Migration {
    /// The number. A migration to a newer form has a higher number.
    pub number: u32,
    /// The name.
    pub name: &'static str,
    /// A description of the items that the migration writes.
    pub about: &'static str,
    /// The entities whose items the migration reads.
    pub entities: &'static [&'static str],
    /// Returns the keys of the other items on which the new form of an item depends.
    pub needs: fn(&AnyEntity) -> Result<Vec<Key>, OpsError>,
    /// Returns the work that is left for an item, and writes nothing.
    pub plan: fn(&Seen<'_>) -> Result<Plan, OpsError>,
}

/// Work on the items of some entities, one by one.
pub trait Work: Sync {
    /// Returns the name.
    fn name(&self) -> &'static str;

    /// Returns the entities whose items the work reads.
    fn entities(&self) -> &[&'static str];

    /// Returns the keys of the other items on which the plan depends.
    ///
    /// # Errors
    /// [`OpsError`].
    fn needs(&self, entity: &AnyEntity) -> Result<Vec<Key>, OpsError>;

    /// Returns the work that is left for an item, and writes nothing.
    ///
    /// # Errors
    /// [`OpsError`].
    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError>;
}

impl Work for Migration {
    fn name(&self) -> &'static str {
        self.name
    }

    fn entities(&self) -> &[&'static str] {
        self.entities
    }

    fn needs(&self, entity: &AnyEntity) -> Result<Vec<Key>, OpsError> {
        (self.needs)(entity)
    }

    fn plan(&self, seen: &Seen<'_>) -> Result<Plan, OpsError> {
        (self.plan)(seen)
    }
}

/// An item as it was read, with the items on which its new form depends.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The stored item.
    pub item: &'a Item,
    /// The same item, decoded.
    pub entity: &'a AnyEntity,
    /// The items on which the new form depends, as far as they exist.
    pub others: &'a HashMap<Key, Item>,
}

impl Seen<'_> {
    /// Returns the check that another item is as it was read.
    fn check(&self, key: &Key) -> Check {
        Check::of(key, self.others.get(key))
    }

    /// Returns the check that the item itself is as it was read.
    fn unchanged(&self) -> Result<Check, OpsError> {
        let key = key_schema::item::key_of(self.item).ok_or_else(|| OpsError::Failed("an item has no key".into()))?;
        Ok(Check::of(&key, Some(self.item)))
    }
}

/// The work that is left for an item.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Nothing: the item has the new form.
    Done,
    /// These writes, in this order.
    Write(Vec<Repair>),
    /// The item keeps its old form, for this reason.
    Keep(&'static str),
}

impl Plan {
    fn of(writes: Vec<Repair>) -> Self {
        if writes.is_empty() { Self::Done } else { Self::Write(writes) }
    }
}

/// Every migration, in the order of the numbers.
pub const ALL: [&Migration; 5] = [&DOCUMENT_ROLES, &NEWEST_REVIEWS, &WALLET_BALANCES, &SALE_CUSTOMERS, &LIST_ENTRIES];

/// Returns the migration of this name or number.
#[must_use]
pub fn find(name: &str) -> Option<&'static Migration> {
    ALL.into_iter().find(|migration| migration.name == name || migration.number.to_string() == name)
}

/// Writes the missing role items of documents from releases without role items. An erasure finds
/// the documents of a customer by these items.
pub const DOCUMENT_ROLES: Migration = Migration {
    number: 1,
    name: "document-roles",
    about: "role items of documents from before these items existed",
    entities: &["Document"],
    needs: |entity| {
        let AnyEntity::Document(head) = entity else { return Ok(Vec::new()) };
        let mut keys = Vec::new();
        for (customer, tie) in holders(head) {
            keys.extend([role(head, &customer, tie).key()?, customer::get(&customer)?.key().clone()]);
        }
        Ok(keys)
    },
    plan: |seen| {
        let AnyEntity::Document(head) = seen.entity else { return Ok(Plan::Done) };
        // If the document is being deleted, its role items are deleted with its head.
        if head.deleting {
            return Ok(Plan::Done);
        }
        let (mut writes, mut is_ghost) = (Vec::new(), false);
        for (customer, tie) in holders(head) {
            let data = role(head, &customer, tie);
            let profile = customer::get(&customer)?.key().clone();
            if seen.others.contains_key(&data.key()?) {
                continue;
            }
            // Only the erasure of a profile needs the item, so it is not written without a profile.
            if !seen.others.contains_key(&profile) {
                is_ghost = true;
                continue;
            }
            let item = Stored::new(data, head.meta.born.clone(), head.meta.updated_at).to_item()?;
            writes.push(Repair { checks: vec![seen.unchanged()?, seen.check(&profile)], change: Change::Put(item) });
        }
        if writes.is_empty() && is_ghost {
            return Ok(Plan::Keep("the owner or an editor has no profile"));
        }
        Ok(Plan::of(writes))
    },
};

fn holders(head: &Document) -> Vec<(CustomerId, Tie)> {
    let owner = head.owner_id.iter().map(|owner| (owner.clone(), Tie::Owner));
    owner.chain(head.editors.iter().map(|editor| (editor.clone(), Tie::Editor))).collect()
}

fn role(head: &Document, customer: &CustomerId, tie: Tie) -> CustomerDocument {
    CustomerDocument { customer_id: customer.clone(), document_id: head.id.clone(), tie }
}

/// Adds the reviews of an earlier release to the list of the newest reviews. That release had no
/// such list.
pub const NEWEST_REVIEWS: Migration = Migration {
    number: 2,
    name: "newest-reviews",
    about: "entries of reviews that are older than the list of the newest reviews",
    entities: &["Review"],
    needs: |entity| {
        let AnyEntity::Review(review) = entity else { return Ok(Vec::new()) };
        Ok(vec![RecentReview::of(review).key()?, month_of(review)?])
    },
    plan: |seen| {
        let AnyEntity::Review(review) = seen.entity else { return Ok(Plan::Done) };
        let (entry, month) = (RecentReview::of(review), month_of(review)?);
        let (key, right) = (entry.key()?, entry.to_item()?);
        let mut writes = Vec::new();
        if !seen.others.contains_key(&month) {
            let note = ReviewMonth { month: Month::of(review.meta.created_at) };
            let note = Stored::new(note, review.meta.born.clone(), review.meta.created_at).to_item()?;
            writes.push(Repair { checks: Vec::new(), change: Change::Put(note) });
        }
        let checks = vec![seen.unchanged()?];
        match seen.others.get(&key) {
            None => writes.push(Repair { checks, change: Change::Put(right) }),
            // The entry is out of date if a release without the list has changed the review.
            Some(stored) if rev(stored) < review.meta.rev => {
                let names: Vec<&str> = right.keys().map(String::as_str).collect();
                writes.push(Repair { checks, change: sets(stored, &right, names, false) });
            }
            Some(_) => {}
        }
        Ok(Plan::of(writes))
    },
};

fn month_of(review: &Stored<Review>) -> Result<Key, OpsError> {
    Ok(recent::month(&Month::of(review.meta.created_at))?.key().clone())
}

/// Returns an item's `rev`, or 0 if the `rev` is unreadable.
fn rev(item: &Item) -> u64 {
    match item.get("rev") {
        Some(serde_dynamo::AttributeValue::N(rev)) => rev.parse().unwrap_or(0),
        _ => 0,
    }
}

/// Moves a balance in another currency than the shop's from `amount` to the attribute of its
/// currency. An earlier release stored the only balance of a wallet in `amount`. Now `amount` has
/// the balance in the shop's currency.
pub const WALLET_BALANCES: Migration = Migration {
    number: 3,
    name: "wallet-balances",
    about: "wallets that an earlier release opened in another currency than the shop's",
    entities: &["Wallet"],
    needs: |_| Ok(Vec::new()),
    plan: |seen| {
        let AnyEntity::Wallet(wallet) = seen.entity else { return Ok(Plan::Done) };
        if wallet.currency == Currency::SHOP {
            return Ok(Plan::Done);
        }
        let right = Stored { meta: wallet.meta.clone(), data: by_currency(wallet) }.to_item()?;
        let names = ["currency", "amount", wallet.currency.as_str()];
        let change = sets(seen.item, &right, names, true);
        Ok(Plan::Write(vec![Repair { checks: Vec::new(), change }]))
    },
};

/// Returns the wallet with the same balances, and with the shop's currency in `amount`.
fn by_currency(wallet: &Wallet) -> Wallet {
    let mut new = wallet.clone();
    (new.currency, new.amount) = (Currency::SHOP, wallet.balance(Currency::SHOP).amount);
    let moved = new.others.entry(wallet.currency).or_insert(0);
    *moved = moved.saturating_add(wallet.amount);
    new.others.remove(&Currency::SHOP);
    new
}

/// Names the customer in sales rows of the first release, so that the list of the customer's
/// purchases contains these rows. The stream's consumer does the same for each order whose record
/// it receives.
pub const SALE_CUSTOMERS: Migration = Migration {
    number: 4,
    name: "sale-customers",
    about: "sales rows of the first release, which do not name the customer",
    entities: &["Sale"],
    needs: |entity| match entity {
        AnyEntity::Sale(row) if row.customer_id.is_none() => Ok(vec![order::head(&row.order_id)?.key().clone()]),
        _ => Ok(Vec::new()),
    },
    plan: |seen| {
        let AnyEntity::Sale(row) = seen.entity else { return Ok(Plan::Done) };
        if row.customer_id.is_some() {
            return Ok(Plan::Done);
        }
        let Some(head) = seen.others.get(order::head(&row.order_id)?.key()) else {
            return Ok(Plan::Keep("the order has expired"));
        };
        let mut right = row.clone();
        right.data.customer_id = Some(Stored::<Order>::from_item(head.clone())?.data.customer_id);
        let names = ["customer_id", GSI1.partition_attribute(), GSI1.sort_attribute()];
        // The row keeps the `rev` of its order. With a higher `rev`, the stream's consumer would
        // treat a later state of the row as older.
        let change = sets(seen.item, &right.to_item()?, names, false);
        Ok(Plan::Write(vec![Repair { checks: Vec::new(), change }]))
    },
};

/// Adds index keys to older items: to categories for the list of a subtree, and to log lines for
/// the log of a day.
pub const LIST_ENTRIES: Migration = Migration {
    number: 5,
    name: "list-entries",
    about: "categories that are older than the list of a subtree, and log lines that are older than the log of a day",
    entities: &["CategoryNode", "OrderLog"],
    needs: |_| Ok(Vec::new()),
    plan: |seen| {
        let (right, index) = match seen.entity {
            AnyEntity::CategoryNode(node) => (node.to_item()?, GSI2),
            AnyEntity::OrderLog(line) => (line.to_item()?, GSI3),
            _ => return Ok(Plan::Done),
        };
        let names = [index.partition_attribute(), index.sort_attribute()];
        if names.iter().all(|name| seen.item.get(*name) == right.get(*name)) {
            return Ok(Plan::Done);
        }
        let change = sets(seen.item, &right, names, true);
        Ok(Plan::Write(vec![Repair { checks: Vec::new(), change }]))
    },
};
