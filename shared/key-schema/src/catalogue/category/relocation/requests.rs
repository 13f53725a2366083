use std::collections::BTreeSet;

use item_model::prelude::*;

use super::super::{CategoryAbout, CategoryNode, MOVING, about_key, children_partition, node_key};
use super::{
    ABOUT, ADD, ADVANCE, BEGIN, BELOW, CLEAR, COPY, CategoryMove, CategoryMoveAction, GET, KEEP, LISTED, MOVE_PRODUCTS,
    READ, TRANSFER, move_key,
};
use crate::change::Change;
use crate::expression::{Condition, number, value};
use crate::id::{Born, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Meta, Stored};
use crate::key::KeyError;
use crate::membership::{self, CategorizedItem, ProductCategories};
use crate::product::{self, CategoryIndexKey, CategoryPath, Product, ProductSummary};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction};

/// Reads the move in progress, or the last move.
pub fn get() -> Result<Get<Stored<CategoryMove>>, KeyError> {
    Ok(Get::new(&GET, move_key()?))
}

/// Begins a move. `last` is the previous move, if there is one, and must be over. The caller
/// [adds](super::super::add) the ancestors of the new path first.
pub fn begin(
    wanted: CategoryMove,
    last: Option<&Stored<CategoryMove>>,
    born: Born,
    at: Instant,
) -> Result<Transaction<CategoryMoveAction>, EncodeError> {
    let (from, to) = (node_key(&wanted.from)?, wanted.to.clone());
    let mut wanted = Stored::new(wanted, born.clone(), at);
    let condition = match last {
        Some(last) => {
            let Meta { version, rev, .. } = last.meta;
            (wanted.meta.version, wanted.meta.rev) = (version + 1, rev + 1);
            Condition::Is("rev", number(rev))
        }
        None => Condition::NotExists,
    };
    let node = Stored::new(CategoryNode::new(to), born, at);
    Ok(Transaction::new(&BEGIN)
        .action(CategoryMoveAction::Move, Guarded::put(&wanted, condition)?)
        .action(CategoryMoveAction::From, Guarded::check(from, Condition::Exists))
        .action(CategoryMoveAction::To, Guarded::put(&node, Condition::NotExists)?))
}

/// Updates the move. The condition is that the item still has the same move in the same phase.
fn step(
    moving: &Stored<CategoryMove>,
    change: impl FnOnce(Change<CategoryMove>) -> Result<Change<CategoryMove>, EncodeError>,
    at: Instant,
) -> Result<Guarded, EncodeError> {
    let same = Condition::Is("born", value(&moving.meta.born)?).and(Condition::Is("phase", value(moving.phase)?));
    Ok(Guarded::update(move_key()?, change(Change::visible(at))?, same))
}

fn counted(change: Change<CategoryMove>, what: &'static str, by: usize) -> Result<Change<CategoryMove>, EncodeError> {
    Ok(change.add(what, i64::try_from(by).unwrap_or(i64::MAX)))
}

fn node(moving: &Stored<CategoryMove>, path: CategoryPath, at: Instant) -> Result<Guarded, EncodeError> {
    let node = Stored::new(CategoryNode::new(path), moving.meta.born.clone(), at);
    Guarded::overwrite(&node)
}

/// Lists a category's children by name, beginning after `after`.
pub fn below(path: &CategoryPath, after: Option<&CategoryPath>) -> Result<Query<Stored<CategoryNode>>, KeyError> {
    let after = after.map(node_key).transpose()?.map(|key| key.sk.into_string());
    Ok(Query::new(&BELOW, children_partition(Some(path))?, Range::under("CHILD")).after(after))
}

pub fn about(path: &CategoryPath) -> Result<Get<Stored<CategoryAbout>>, KeyError> {
    Ok(Get::new(&ABOUT, about_key(path)?))
}

/// Creates the successor of a category, moves the description to it, and marks the old category.
pub fn copy(
    moving: &Stored<CategoryMove>,
    path: &CategoryPath,
    to: &CategoryPath,
    about: Option<&Stored<CategoryAbout>>,
    at: Instant,
) -> Result<Transaction<CategoryMoveAction>, EncodeError> {
    let reached = |change| counted(change, "categories", 1)?.set("reached", path);
    let mark = Change::<CategoryNode>::copied().set(MOVING, true)?;
    let unmarked = Condition::Exists.and(Condition::Lacks(MOVING));
    let copy = Transaction::new(&COPY)
        .action(CategoryMoveAction::Move, step(moving, reached, at)?)
        .action(CategoryMoveAction::From, Guarded::update(node_key(path)?, mark, unmarked))
        .action(CategoryMoveAction::To, node(moving, to.clone(), at)?);
    let Some(about) = about else {
        return Ok(copy.action(CategoryMoveAction::About, Guarded::check(about_key(path)?, Condition::NotExists)));
    };
    let mut successor = about.clone();
    successor.data.path = to.clone();
    // A category may move back to an earlier path. The `rev` of a key must never restart, so the
    // copy continues from the old description's `rev`.
    successor.meta.rev += 1;
    let unchanged = Condition::Is("rev", number(about.meta.rev));
    Ok(copy
        .action(CategoryMoveAction::About, Guarded::delete(about_key(path)?, unchanged))
        .action(CategoryMoveAction::AboutTo, Guarded::put(&successor, Condition::NotExists)?))
}

/// Lists the products and memberships in a category and its subtree, by category and id.
pub fn listed(path: &CategoryPath) -> Result<Query<ProductSummary>, KeyError> {
    Ok(Query::sharded(&LISTED, product::list_partitions(path)?, Range::under(&path.key_text())))
}

/// Reads each product, followed by its further categories.
pub fn read<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<CategorizedItem>, KeyError> {
    let mut keys = Vec::new();
    for id in ids {
        keys.extend([product::key(id)?, product::categories_key(id)?]);
    }
    Ok(BatchGet::new(&READ, keys))
}

/// Adds up to [`ADDED_AT_ONCE`] categories.
pub fn add<'a>(
    moving: &Stored<CategoryMove>,
    paths: impl IntoIterator<Item = &'a CategoryPath>,
    at: Instant,
) -> Result<Transaction<CategoryMoveAction>, EncodeError> {
    let add = Transaction::new(&ADD).action(CategoryMoveAction::Move, step(moving, Ok, at)?);
    paths.into_iter().try_fold(add, |add, path| Ok(add.action(CategoryMoveAction::To, node(moving, path.clone(), at)?)))
}

/// Moves up to [`MOVED_AT_ONCE`] products, each to the category given with it.
pub fn move_products(
    moving: &Stored<CategoryMove>,
    products: &[(&Stored<Product>, CategoryPath)],
    at: Instant,
) -> Result<Transaction<CategoryMoveAction>, EncodeError> {
    let count = |change| counted(change, "products", products.len());
    let moves = Transaction::new(&MOVE_PRODUCTS).action(CategoryMoveAction::Move, step(moving, count, at)?);
    products.iter().enumerate().try_fold(moves, |moves, (position, (product, category_path))| {
        Ok(moves.action(CategoryMoveAction::Product(position), stand(product, category_path, at)?))
    })
}

/// Moves a product to another category, on the condition that the product is unchanged.
fn stand(product: &Stored<Product>, category_path: &CategoryPath, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::<Product>::visible(at).enter(&CategoryIndexKey { category_path, id: &product.id })?;
    let same = product::in_catalogue().and(Condition::version(product.meta.version));
    Ok(Guarded::update(product::key(&product.id)?, change, same))
}

/// Moves a product's memberships in the moved subtree. `known` is the list of the product's further
/// categories, as it was read. Returns `None` if no membership is in the moved subtree.
///
/// If the product already has a membership in the new category, the function only removes the old
/// membership. If the product's own category moves too, the product moves in the same transaction.
/// So the moved memberships copy the product's new category, and no list shows the product twice.
pub fn transfer(
    moving: &Stored<CategoryMove>,
    product: &Stored<Product>,
    known: &Stored<ProductCategories>,
    at: Instant,
) -> Result<Option<Transaction<CategoryMoveAction>>, EncodeError> {
    let gone: BTreeSet<&CategoryPath> = known.paths.iter().filter(|path| moving.destination(path).is_some()).collect();
    if gone.is_empty() {
        return Ok(None);
    }
    let new: BTreeSet<CategoryPath> = gone.iter().filter_map(|path| moving.destination(path)).collect();
    let destination = moving.destination(&product.category_path);
    let count = |change| {
        let change = counted(change, "memberships", gone.len())?;
        if destination.is_some() { counted(change, "products", 1) } else { Ok(change) }
    };
    let mut shown = product.clone();
    let guarded = match &destination {
        Some(destination) => {
            (shown.data.category_path, shown.meta.version) = (destination.clone(), product.meta.version + 1);
            stand(product, destination, at)?
        }
        None => membership::unchanged(product)?,
    };
    let mut transfer = Transaction::new(&TRANSFER)
        .action(CategoryMoveAction::Move, step(moving, count, at)?)
        .action(CategoryMoveAction::Product(0), guarded);
    for action in membership::exchange(&shown, known, &gone, &new, at)? {
        transfer = transfer.action(CategoryMoveAction::Membership, action);
    }
    Ok(Some(transfer))
}

pub fn clear(
    moving: &Stored<CategoryMove>,
    path: &CategoryPath,
    at: Instant,
) -> Result<Transaction<CategoryMoveAction>, EncodeError> {
    Ok(Transaction::new(&CLEAR)
        .action(CategoryMoveAction::Move, step(moving, Ok, at)?)
        .action(CategoryMoveAction::From, Guarded::delete(node_key(path)?, Condition::Has(MOVING)))
        .action(CategoryMoveAction::About, Guarded::check(about_key(path)?, Condition::NotExists)))
}

/// Removes the mark from a category. Then the category stays, or the move copies it once more.
pub fn keep(
    moving: &Stored<CategoryMove>,
    path: &CategoryPath,
    at: Instant,
) -> Result<Transaction<CategoryMoveAction>, EncodeError> {
    let unmark = Change::<CategoryNode>::copied().set(MOVING, None::<bool>)?;
    Ok(Transaction::new(&KEEP)
        .action(CategoryMoveAction::Move, step(moving, Ok, at)?)
        .action(CategoryMoveAction::From, Guarded::update(node_key(path)?, unmark, Condition::Exists)))
}

/// Begins the next phase.
pub fn next_phase(moving: &Stored<CategoryMove>, at: Instant) -> Result<Single<Stored<CategoryMove>>, EncodeError> {
    let next = |change: Change<CategoryMove>| {
        change.set("phase", moving.phase.next())?.set("since", at)?.set("reached", None::<CategoryPath>)
    };
    Ok(Single::new(&ADVANCE, step(moving, next, at)?))
}

/// Records the category that the move has reached.
pub fn reach(
    moving: &Stored<CategoryMove>,
    path: &CategoryPath,
    at: Instant,
) -> Result<Single<Stored<CategoryMove>>, EncodeError> {
    Ok(Single::new(&ADVANCE, step(moving, |change| change.set("reached", path), at)?))
}
