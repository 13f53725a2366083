use key_schema::category::CategoryNode;
use key_schema::entity::AnyEntity;
use key_schema::id::{LocationId, ProductId};
use key_schema::item::{Entity as _, Item, MAX_COUNT, Stored};
use key_schema::key::Key;
use key_schema::location::{self, StockLocation};
use key_schema::membership::{Membership, ProductCategories};
use key_schema::picture::ProductPictures;
use key_schema::product::{self, CategoryPath, Copied, MAX_STOCK, Product, ReviewStats, Stock};
use key_schema::review::recent::{self, Month, RecentReview, ReviewMonth};
use key_schema::review::{self, Review};
use serde_dynamo::AttributeValue;

use super::{Problem, Seen, Skip};
use crate::error::OpsError;
use crate::items::{Check, Repair, sets};
use crate::verify::report::Kind;

/// The attributes of a membership that are copied from its product.
const SHOWN: [&str; 11] = [
    "brand",
    "category_path",
    "name",
    "package_size",
    "price",
    "reference",
    "retired",
    "source_rev",
    "version",
    "GSI2PK",
    "GSI2SK",
];
/// The attributes of a product that are copied from its stock and its statistics.
const COPIED: [&str; 5] = ["in_stock", "stock_rev", "rating_count", "rating_sum", "rating_rev"];

pub(super) fn needs(entity: &AnyEntity, keys: &mut Vec<Key>) -> Result<(), OpsError> {
    match entity {
        AnyEntity::Product(item) => {
            keys.extend(stock_keys(&item.id)?);
            keys.extend([stats_key(item)?, pictures_key(item)?]);
            keys.extend(further_shards(item)?);
        }
        AnyEntity::Stock(item) => {
            keys.push(product::read_for_update(&item.product_id)?.key().clone());
            keys.push(product::stock(&item.product_id)?.key().clone());
            keys.push(location::get(&item.location)?.key().clone());
        }
        AnyEntity::Membership(item) => {
            keys.extend([product::read_for_update(&item.id)?.key().clone(), list_key(&item.id, Vec::new())?]);
        }
        AnyEntity::ProductCategories(item) => {
            for path in &item.paths {
                keys.push(member(item, path).key()?);
            }
        }
        AnyEntity::Review(item) => {
            keys.extend([RecentReview::of(item).key()?, month_of(item)?]);
        }
        AnyEntity::RecentReview(item) => {
            keys.push(review::get(&item.product_id, &item.customer_id)?.key().clone());
        }
        AnyEntity::CategoryNode(item) => {
            if let Some(parent) = item.path.parent() {
                keys.push(CategoryNode::new(parent).key()?);
            }
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    match entity {
        AnyEntity::Product(item) => {
            let mut problems = copies(item, seen)?;
            problems.extend(thumbnail(item, seen)?);
            Ok(problems)
        }
        AnyEntity::Stock(item) => {
            let product = seen.find::<Product>(product::read_for_update(&item.product_id)?.key())?;
            let first = product::stock(&item.product_id)?.key().clone();
            if product::is_old_stock(item, seen.key) && seen.others.contains_key(&first) {
                let what = "the product has a stock under the present key: nobody sells the pieces of this one";
                return Ok(vec![Problem::new(Kind::Orphan, what).repaired_by(seen.delete(&first))]);
            }
            let is_known = item.location == LocationId::main()
                || seen.find::<StockLocation>(location::get(&item.location)?.key())?.is_some();
            if !is_known {
                return Ok(vec![Problem::new(Kind::Orphan, "the location is missing")]);
            }
            Ok(match product {
                None => vec![Problem::new(Kind::Orphan, "the product is missing")],
                Some(product) if item.shard >= sold_shards(item, &product) => {
                    vec![Problem::new(Kind::Orphan, "the stock has fewer shards: nobody finds the pieces of this one")]
                }
                Some(_) => Vec::new(),
            })
        }
        AnyEntity::Membership(item) => membership(item, seen),
        AnyEntity::ProductCategories(item) => {
            let mut problems = Vec::new();
            for path in &item.paths {
                if seen.find::<Membership>(&member(item, path).key()?)?.is_none() {
                    problems
                        .push(Problem::new(Kind::Link, "the list names a category in which the product has no entry"));
                }
            }
            Ok(problems)
        }
        AnyEntity::Review(item) => newest(item, seen),
        AnyEntity::RecentReview(item) => {
            let key = review::get(&item.product_id, &item.customer_id)?.key().clone();
            let review = seen.find::<Review>(&key)?;
            if review.is_some_and(|review| review.meta.created_at == item.written_at) {
                return Ok(Vec::new());
            }
            Ok(vec![Problem::new(Kind::Orphan, "the review is missing").repaired_by(seen.delete(&key))])
        }
        AnyEntity::CategoryNode(item) => {
            let Some(parent) = item.path.parent() else { return Ok(Vec::new()) };
            let parent = Stored { meta: item.meta.clone(), data: CategoryNode::new(parent) };
            if seen.find::<CategoryNode>(&parent.key()?)?.is_some() {
                return Ok(Vec::new());
            }
            // The difference may be temporary. A request may create a category below one that a
            // category move has removed. The move later adds the missing parent.
            Ok(vec![
                Problem::new(Kind::Link, "the category above is missing").lagging().repaired_by(seen.put(&parent)?),
            ])
        }
        _ => Ok(Vec::new()),
    }
}

fn stats_key(product: &Product) -> Result<Key, key_schema::key::KeyError> {
    ReviewStats { product_id: product.id.clone(), rating_count: 0, rating_sum: 0 }.key()
}

fn pictures_key(product: &Product) -> Result<Key, key_schema::key::KeyError> {
    ProductPictures { product_id: product.id.clone(), pictures: Vec::new() }.key()
}

fn list_key(id: &ProductId, paths: Vec<CategoryPath>) -> Result<Key, key_schema::key::KeyError> {
    ProductCategories { product_id: id.clone(), paths }.key()
}

/// Returns a membership with placeholder values, to compute the key of an entry of a list.
fn member(list: &ProductCategories, path: &CategoryPath) -> Membership {
    Membership {
        id: list.product_id.clone(),
        path: path.clone(),
        retired: false,
        source_rev: 0,
        thumbnail: None,
        category_path: path.clone(),
        name: String::new(),
        brand: String::new(),
        package_size: None,
        price: key_schema::money::Money::new(0, key_schema::money::Currency::SHOP),
    }
}

/// Returns the keys under which the first shard of a product's stock can be: the present key, and that
/// of a stock that is not moved yet.
fn stock_keys(id: &ProductId) -> Result<[Key; 2], key_schema::key::KeyError> {
    Ok([product::stock(id)?.key().clone(), product::old_stock(id)?.key().clone()])
}

/// Returns the key under which the first shard of a product's stock is.
pub(super) fn stock_key(id: &ProductId, seen: &Seen<'_>) -> Result<Key, Skip> {
    let [present, old] = stock_keys(id)?;
    let is_old = !seen.others.contains_key(&present) && seen.others.contains_key(&old);
    Ok(if is_old { old } else { present })
}

/// Returns the number of shards that the stock at this location has.
fn sold_shards(stock: &Stock, product: &Product) -> u32 {
    if stock.location == LocationId::main() { product.stock_shards.unwrap_or(1) } else { 1 }
}

/// Returns the keys of the further shards of the stock, by the number on the product.
fn further_shards(item: &Product) -> Result<Vec<Key>, key_schema::key::KeyError> {
    let first = Stock { shards: item.stock_shards, ..Stock::new(item.id.clone(), 0) };
    Ok(product::further_shards(&first)?.map_or_else(Vec::new, |read| read.keys().to_vec()))
}

/// Checks that the copies on a product equal its stock and its statistics. The stream's consumer
/// copies only changes that the product shows. So the `rev` of a source may be higher than the
/// copied `rev`.
fn copies(item: &Stored<Product>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let key = stock_key(&item.id, seen)?;
    let stock = match (seen.find::<Stock>(&key), seen.others.get(&key)) {
        (Ok(Some(stock)), _) => stock,
        // The repair writes only under the present key, and the item is a finding itself.
        (Err(Skip), Some(_)) if key != *product::stock(&item.id)?.key() => return Err(Skip),
        (Err(Skip), Some(unreadable)) => return Ok(vec![unreadable_stock(item, unreadable, seen)?]),
        _ => {
            let right = product::restored_stock(item, 0, item.copied.stock_rev.saturating_add(1), seen.now);
            let problem = Problem::new(Kind::Link, "the stock is missing: the repair sets 0 pieces");
            return Ok(vec![problem.repaired_by(seen.put(&right)?)]);
        }
    };
    if stock.shards != item.stock_shards {
        return Ok(vec![Problem::new(Kind::Link, "the product and its stock differ in the number of shards")]);
    }
    let mut stock = stock;
    for key in further_shards(item)? {
        let Some(shard) = seen.find::<Stock>(&key)? else {
            return Ok(vec![Problem::new(Kind::Link, "a shard of the stock is missing")]);
        };
        stock.data.available += shard.available;
    }
    let stats = seen.find::<ReviewStats>(&stats_key(item)?)?;
    let mut right = item.clone();
    let (count, sum) = stats.as_ref().map_or((0, 0), |stats| (stats.rating_count, stats.rating_sum));
    let held = item.copied;
    let is_rated = (held.rating_count, held.rating_sum) == (count, sum);
    let is_stocked = held.in_stock == stock.in_stock();
    let is_ahead =
        held.stock_rev > stock.meta.rev || stats.as_ref().is_some_and(|stats| held.rating_rev > stats.meta.rev);
    if is_rated && is_stocked && !is_ahead {
        return Ok(Vec::new());
    }
    right.data.copied = Copied {
        in_stock: stock.in_stock(),
        stock_rev: stock.meta.rev,
        rating_count: count,
        rating_sum: sum,
        rating_rev: stats.as_ref().map_or(held.rating_rev, |stats| stats.meta.rev),
    };
    let what = match (is_stocked, is_rated) {
        (false, _) => "the availability is behind the stock",
        (_, false) => "the rating is behind the statistics",
        _ => "a copy has a later `rev` than its source, so it would miss the next change",
    };
    // The repair changes the product, on the condition that the sources are unchanged.
    let checks = [key, stats_key(item)?];
    let checks = checks.iter().map(|key| Check::of(key, seen.others.get(key))).collect();
    let change = sets(seen.item, &right.to_item()?, COPIED, true);
    Ok(vec![Problem::new(Kind::Behind, what).lagging().repaired_by(Repair { checks, change })])
}

/// Returns the repair of a stock that cannot be decoded. It keeps the number of pieces if that can be
/// read.
fn unreadable_stock(item: &Stored<Product>, old: &Item, seen: &Seen<'_>) -> Result<Problem, Skip> {
    let number = |name: &str| match old.get(name) {
        Some(AttributeValue::N(number)) => number.parse::<u64>().ok(),
        _ => None,
    };
    let pieces = number("available").filter(|pieces| *pieces <= MAX_STOCK);
    let last = number("rev").unwrap_or_default().max(item.copied.stock_rev);
    let rev = last.saturating_add(1).min(MAX_COUNT);
    let right = product::restored_stock(item, pieces.unwrap_or_default(), rev, seen.now);
    let what = match pieces {
        Some(pieces) => format!("the stock cannot be read: the repair keeps its {pieces} pieces"),
        None => "the stock cannot be read: the repair sets 0 pieces".to_owned(),
    };
    let right_item = right.to_item()?;
    let names = right_item.keys().map(String::as_str).chain(["last_adjustment"]);
    let change = sets(old, &right_item, names, false);
    let repair = Repair { checks: vec![Check::of(seen.key, Some(seen.item))], change };
    Ok(Problem::of(&right, Kind::Link, what).repaired_by(repair))
}

fn thumbnail(item: &Stored<Product>, seen: &Seen<'_>) -> Result<Option<Problem>, Skip> {
    let key = pictures_key(item)?;
    let pictures = seen.find::<ProductPictures>(&key)?;
    let mut right = item.clone();
    right.data.thumbnail = pictures.and_then(|list| list.pictures.first().map(|picture| picture.object.id.clone()));
    if right.thumbnail == item.thumbnail {
        return Ok(None);
    }
    let change = sets(seen.item, &right.to_item()?, ["reference"], true);
    let repair = Repair { checks: vec![Check::of(&key, seen.others.get(&key))], change };
    Ok(Some(Problem::new(Kind::Behind, "the thumbnail is not the first picture").repaired_by(repair)))
}

/// Checks that a membership is in its product's list and equals the product.
fn membership(item: &Stored<Membership>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let list = seen.find::<ProductCategories>(&list_key(&item.id, Vec::new())?)?;
    if !list.is_some_and(|list| list.paths.contains(&item.path)) {
        return Ok(vec![Problem::new(Kind::Link, "the product's list does not name this category")]);
    }
    let key = product::read_for_update(&item.id)?.key().clone();
    let Some(source) = seen.find::<Product>(&key)? else { return Ok(Vec::new()) };
    let Product { category_path, retired, thumbnail, name, brand, package_size, price, .. } = source.data.clone();
    let right = Membership { category_path, retired, thumbnail, name, brand, package_size, price, ..item.data.clone() };
    // A copy with a later `rev` than the product would miss the product's next change.
    if right == item.data && item.source_rev <= source.meta.rev {
        return Ok(Vec::new());
    }
    let mut stored = Stored { meta: item.meta.clone(), data: right };
    (stored.data.source_rev, stored.meta.version) = (source.meta.rev, source.meta.version);
    let change = sets(seen.item, &stored.to_item()?, SHOWN, true);
    let repair = Repair { checks: vec![Check::of(&key, seen.others.get(&key))], change };
    Ok(vec![Problem::new(Kind::Behind, "the copy is behind the product").lagging().repaired_by(repair)])
}

fn month_of(review: &Stored<Review>) -> Result<Key, key_schema::key::KeyError> {
    Ok(recent::month(&Month::of(review.meta.created_at))?.key().clone())
}

/// Checks that a review has its entry in the list of the newest reviews, and that the item of its
/// month exists.
fn newest(item: &Stored<Review>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let (right, mut problems) = (RecentReview::of(item), Vec::new());
    match seen.find::<RecentReview>(&right.key()?)? {
        None => {
            let problem = Problem::of(&right, Kind::Copy, "the entry in the list of the newest reviews is missing");
            problems.push(problem.repaired_by(seen.put(&right)?));
        }
        Some(entry) if entry.data != right.data => {
            let names = ["rating", "title", "text", "version", "rev", "born", "updated_at"];
            let problem = Problem::of(&right, Kind::Copy, "the entry differs from the review");
            problems.push(problem.repaired_by(seen.correct(&right, names, false)?));
        }
        Some(_) => {}
    }
    if !seen.others.contains_key(&month_of(item)?) {
        let note = ReviewMonth { month: Month::of(item.meta.created_at) };
        let note = Stored::new(note, item.meta.born.clone(), item.meta.created_at);
        let problem = Problem::of(&note, Kind::Link, "the item of the review's month is missing");
        problems.push(problem.repaired_by(seen.put(&note)?));
    }
    Ok(problems)
}
