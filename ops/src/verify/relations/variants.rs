use key_schema::entity::AnyEntity;
use key_schema::item::{Entity as _, Stored};
use key_schema::key::Key;
use key_schema::product::{self, Product, Stock};
use key_schema::variant::Variant;

use super::{Problem, Seen, Skip, catalogue};
use crate::error::OpsError;
use crate::items::{Check, Repair, sets};
use crate::verify::report::Kind;

/// The attributes of an entry that are copied from the variant's product.
const COPIED: [&str; 5] = ["name", "price", "thumbnail", "in_stock", "source_rev"];

pub(super) fn needs(entity: &AnyEntity, keys: &mut Vec<Key>) -> Result<(), OpsError> {
    match entity {
        AnyEntity::Product(item) => {
            if let Some(entry) = Variant::of(item) {
                keys.extend([entry.key()?, product::read_for_update(&entry.parent)?.key().clone()]);
            }
        }
        AnyEntity::Variant(item) => keys.push(product::read_for_update(&item.product_id)?.key().clone()),
        _ => {}
    }
    Ok(())
}

pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    match entity {
        AnyEntity::Product(item) if !item.retired => {
            let mut problems = claim(item, seen)?;
            problems.extend(stock(item, seen)?);
            Ok(problems)
        }
        AnyEntity::Variant(item) => copy(item, seen),
        _ => Ok(Vec::new()),
    }
}

/// Checks that a variant has its entry in the list of its parent, and that the parent exists.
fn claim(item: &Stored<Product>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let Some(right) = Variant::of(item) else { return Ok(Vec::new()) };
    let mut problems = Vec::new();
    match seen.find::<Variant>(&right.key()?)? {
        None => {
            let problem = Problem::of(&right, Kind::Claim, "the variant is missing in the list of its parent");
            problems.push(problem.repaired_by(seen.put(&right)?));
        }
        Some(entry) if entry.product_id != item.id => {
            problems.push(Problem::new(Kind::Claim, "another variant has the options"));
        }
        Some(_) => {}
    }
    let parent = seen.find::<Product>(product::read_for_update(&right.parent)?.key())?;
    if !parent.is_some_and(|parent| !parent.retired && parent.parent.is_none() && parent.variants.is_some()) {
        problems.push(Problem::new(Kind::Link, "the parent is missing, or is no parent"));
    }
    Ok(problems)
}

/// Checks that a parent has no stock.
fn stock(item: &Stored<Product>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let stock = seen.find::<Stock>(&catalogue::stock_key(&item.id, seen)?)?;
    let is_open = stock.is_some_and(|stock| stock.sellable || stock.available > 0);
    if item.variants.is_none() || !is_open {
        return Ok(Vec::new());
    }
    Ok(vec![Problem::new(Kind::Bounds, "a parent of variants has pieces, or its stock is for sale")])
}

/// Checks that an entry belongs to a variant, and shows its present name, price, picture and
/// availability.
fn copy(item: &Stored<Variant>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let key = product::read_for_update(&item.product_id)?.key().clone();
    let source = seen.find::<Product>(&key)?.filter(|source| !source.retired);
    let right = source.as_ref().and_then(Variant::of);
    let Some(right) = right.filter(|right| right.key().ok() == item.key().ok()) else {
        let problem = Problem::new(Kind::Orphan, "no variant of the parent has the options");
        return Ok(vec![problem.repaired_by(seen.delete(&key))]);
    };
    let shown = |variant: &Variant| (variant.name.clone(), variant.price, variant.thumbnail.clone(), variant.in_stock);
    // An entry with a later `rev` than the product would miss the product's next change.
    if shown(&right) == shown(item) && item.source_rev <= right.source_rev {
        return Ok(Vec::new());
    }
    let right = Stored { meta: item.meta.clone(), data: right.data };
    let change = sets(seen.item, &right.to_item()?, COPIED, true);
    let repair = Repair { checks: vec![Check::of(&key, seen.others.get(&key))], change };
    Ok(vec![Problem::new(Kind::Behind, "the entry is behind the variant").lagging().repaired_by(repair)])
}
