//! Moves a category to another path.
//!
//! The move takes along the whole subtree: its categories, their descriptions, and the products and
//! memberships in them.
//!
//! A subtree has no size limit, so the work takes many transactions, in [`Phase`]s. One item,
//! [`CategoryMove`], records the move and its progress. The table has one such item, so one move
//! runs at a time. Every transaction of the work also changes that item, on the condition that it
//! is still the same move in the same phase. A late worker therefore changes nothing, and each step
//! counts once.
//!
//! # Why nothing is lost and nothing doubled
//!
//! - At any time a product has exactly one `category_path`. One attribute and one index key record
//!   it, and one write changes both at the version that was read.
//! - A membership and the list that names it change in one transaction, as everywhere. The product
//!   changes in the same transaction if it moves too.
//! - A category's successor exists before anything moves into it. A category is removed only after
//!   its successor has its description. Once copied, the category is marked
//!   ([`CategoryNode::moving`]), and nothing new can describe it.
//! - A request that creates a product, or adds one to a category, has read the tree before. So the
//!   work removes the old categories first and then waits longer than such a request may take
//!   ([`Phase::Settling`]). After the wait it moves the late products and memberships too.
//! - Old categories that other requests have created again stay. They get their missing ancestors
//!   back ([`Phase::Checking`]). The work deletes nothing after the wait.
//! - A new path can be too deep or too long. Then the category or product stays, together with all
//!   categories above it.

use crate::index::GSI2;
use std::collections::BTreeSet;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::{CategoryAbout, CategoryNode, MOVING, about_key, children_partition, node_key};
use crate::change::Change;
use crate::entity::AnyEntity;
use crate::expression::{Condition, number, value};
use crate::id::{Born, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::membership::{self, ProductCategories};
use crate::pattern::Consistency;
use crate::product::{self, CategoryIndexKey, CategoryPath, Product, ProductSummary};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction, Write};

/// The number of products that one transaction moves at most.
pub const PLACED_AT_ONCE: usize = 25;
/// The number of categories that one transaction adds at most.
pub const ADDED_AT_ONCE: usize = 50;
/// How long the work waits after it has removed the old categories. It is longer than a request
/// that has seen them may take, and longer than an index may lag.
pub const SETTLING_SECONDS: i64 = 90;

/// The progress of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The categories get their successors, from the top.
    Copying,
    /// The products and memberships move.
    Placing,
    /// The old categories are removed, from the bottom.
    Clearing,
    /// The work waits for requests that have seen the old categories, then moves the products and
    /// memberships that they left there.
    Settling,
    /// Old categories that exist again get their missing ancestors back.
    Checking,
    /// The move is over.
    Done,
}

impl Phase {
    const fn next(self) -> Self {
        match self {
            Self::Copying => Self::Placing,
            Self::Placing => Self::Clearing,
            Self::Clearing => Self::Settling,
            Self::Settling => Self::Checking,
            Self::Checking | Self::Done => Self::Done,
        }
    }
}

entity! {
    /// The category move in progress, or the last one.
    CategoryMove = "CategoryMove" {
        fixed {
            /// The path of the category before the move.
            from: CategoryPath,
            /// The path of the category after the move.
            to: CategoryPath,
            /// The current phase.
            phase: Phase,
            /// When the current phase began.
            since: Instant,
            /// The category at which a walk of this phase has arrived. The walk has finished all
            /// categories before it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            reached: Option<CategoryPath>,
            /// The number of categories that have a successor.
            categories: u64,
            /// The number of products that have moved.
            products: u64,
            /// The number of memberships that have moved.
            memberships: u64,
        }
        mutable {}
    }
}

impl Entity for CategoryMove {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        move_key()
    }
}

impl CategoryMove {
    /// Creates a move in its first phase.
    #[must_use]
    pub const fn new(from: CategoryPath, to: CategoryPath, at: Instant) -> Self {
        let phase = Phase::Copying;
        Self { from, to, phase, since: at, reached: None, categories: 0, products: 0, memberships: 0 }
    }

    /// Returns the path of a category after the move. Returns `None` for a category outside the
    /// moved subtree, and for a new path that would be too deep or too long.
    #[must_use]
    pub fn destination(&self, path: &CategoryPath) -> Option<CategoryPath> {
        path.rebased(&self.from, &self.to)
    }

    /// Returns the path that a category of the new subtree had before the move.
    #[must_use]
    pub fn source(&self, path: &CategoryPath) -> Option<CategoryPath> {
        path.rebased(&self.to, &self.from)
    }
}

fn move_key() -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::new("CATEGORYMOVE")?, sk: SortKey::new("CATEGORYMOVE")? })
}

/// An action of a transaction of a category move, which labels its refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CategoryMoveAction {
    /// The move is another one, or is in another phase.
    Move,
    /// The node of the old category.
    From,
    /// The node of its successor.
    To,
    /// The description of the old category.
    About,
    /// The description of its successor.
    AboutTo,
    /// The product at this position of the argument.
    Product(usize),
    /// The list of a product's further categories, or a membership.
    Membership,
}

patterns! {
    GET {
        id: "category-moves.get",
        purpose: "Read the progress of a category move",
        request: GetItem,
        key: "PK = CATEGORYMOVE, SK = CATEGORYMOVE",
        returns: "the move that is under way, or the last one",
        consistency: Consistency::Strong("the next step depends on it"),
        callers: "staff",
    }
    BEGIN {
        id: "category-moves.begin",
        purpose: "Begin a category move",
        request: TransactWriteItems,
        key: "PK = CATEGORYMOVE; PK = CATEGORY#<parent>, SK = CHILD#<name>, new and old (check)",
        requires: "no move is under way; the new node does not exist; the old node exists",
        callers: "staff",
    }
    BELOW {
        id: "category-moves.below",
        purpose: "List the children of a category that moves",
        request: Query,
        key: "PK = CATEGORY#<path>, SK under CHILD#",
        returns: "the children by name",
        consistency: Consistency::Strong("a missed category would stay without its ancestors"),
        callers: "staff",
    }
    ABOUT {
        id: "category-moves.about",
        purpose: "Read the description of a category that moves",
        request: GetItem,
        key: "PK = CATEGORY#<path>, SK = ABOUT",
        returns: "the description",
        consistency: Consistency::Strong("the move is conditional on the description that was read"),
        callers: "staff",
    }
    COPY {
        id: "category-moves.copy",
        purpose: "Create the successor of a category",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>, new and old; PK = CATEGORY#<path>, SK = \
            ABOUT, new and old; PK = CATEGORYMOVE",
        requires: "the move is in its phase; the old node exists unmarked; the description is \
            unchanged",
        callers: "staff",
    }
    LISTED {
        id: "category-moves.products",
        purpose: "Find the products and memberships in a category that moves",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = CATEGORYLIST#<top>#<shard>, GSI2SK under <path>#",
        returns: "products and memberships in the category and its subtree",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    READ {
        id: "category-moves.read",
        purpose: "Read the products that may have to move",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#CATEGORIES, for each id",
        returns: "products and their further categories",
        consistency: Consistency::Strong("the index may lag, and the change is conditional on the \
            stored items"),
        callers: "staff",
    }
    ADD {
        id: "category-moves.add",
        purpose: "Add categories that are missing",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>, for up to 50; PK = CATEGORYMOVE",
        requires: "the move is in its phase",
        callers: "staff",
    }
    PLACE {
        id: "category-moves.place",
        purpose: "Move products",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT, for up to 25; PK = CATEGORYMOVE",
        requires: "the move is in its phase; the products are in the catalogue, at the versions \
            that were read",
        callers: "staff",
    }
    TRANSFER {
        id: "category-moves.transfer",
        purpose: "Move a product's memberships, and the product if its own category moves",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = IN#<path>, new and old, PRODUCT#CATEGORIES and PRODUCT; PK = \
            CATEGORYMOVE",
        requires: "the move is in its phase; the list and the product's version are unchanged",
        callers: "staff",
    }
    CLEAR {
        id: "category-moves.clear",
        purpose: "Remove a category that has moved",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>; PK = CATEGORY#<path>, SK = ABOUT (check); \
            PK = CATEGORYMOVE",
        requires: "the move is in its phase; the node is marked and has no description",
        callers: "staff",
    }
    KEEP {
        id: "category-moves.keep",
        purpose: "Keep a category that is still in use",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>; PK = CATEGORYMOVE",
        requires: "the move is in its phase; the node exists",
        callers: "staff",
    }
    ADVANCE {
        id: "category-moves.advance",
        purpose: "Begin the next phase of a move, or record its progress",
        request: UpdateItem,
        key: "PK = CATEGORYMOVE, SK = CATEGORYMOVE",
        requires: "the move is in its phase",
        callers: "staff",
    }
}

/// Reads the move in progress, or the last one.
///
/// # Errors
/// [`KeyError`].
pub fn get() -> Result<Get<Stored<CategoryMove>>, KeyError> {
    Ok(Get::new(&GET, move_key()?))
}

/// Begins a move. `last` is the previous move, if any, which must be over. The caller
/// [adds](super::add) the ancestors of the new path first.
///
/// # Errors
/// [`EncodeError`].
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

/// Updates the move within a transaction of the work, on the condition that it is still the same
/// move in the same phase.
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

/// Writes a node that the move adds.
fn node(moving: &Stored<CategoryMove>, path: CategoryPath, at: Instant) -> Result<Guarded, EncodeError> {
    let node = Stored::new(CategoryNode::new(path), moving.meta.born.clone(), at);
    Ok(Guarded { write: Write::Put { item: node.to_item()? }, condition: None })
}

/// Lists a category's children by name, beginning after `after`.
///
/// # Errors
/// [`KeyError`].
pub fn below(path: &CategoryPath, after: Option<&CategoryPath>) -> Result<Query<Stored<CategoryNode>>, KeyError> {
    let after = after.map(node_key).transpose()?.map(|key| key.sk.into_string());
    Ok(Query::new(&BELOW, children_partition(Some(path))?, Range::under("CHILD")).after(after))
}

/// Reads a category's description.
///
/// # Errors
/// [`KeyError`].
pub fn about(path: &CategoryPath) -> Result<Get<Stored<CategoryAbout>>, KeyError> {
    Ok(Get::new(&ABOUT, about_key(path)?))
}

/// Gives a category its successor, moves the description there, and marks the category.
///
/// # Errors
/// [`EncodeError`].
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
    // A category may move back to an earlier path, and the `rev` of a key must never restart.
    successor.meta.rev += 1;
    let unchanged = Condition::Is("rev", number(about.meta.rev));
    Ok(copy
        .action(CategoryMoveAction::About, Guarded::delete(about_key(path)?, unchanged))
        .action(CategoryMoveAction::AboutTo, Guarded::put(&successor, Condition::NotExists)?))
}

/// Lists the products and memberships in a category and its subtree, by category and id.
///
/// # Errors
/// [`KeyError`].
pub fn listed(path: &CategoryPath) -> Result<Query<ProductSummary>, KeyError> {
    Ok(Query::sharded(&LISTED, product::list_partitions(path)?, Range::under(&path.key_text())))
}

/// Reads each product, followed by its further categories.
///
/// # Errors
/// [`KeyError`].
pub fn read<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<AnyEntity>, KeyError> {
    let mut keys = Vec::new();
    for id in ids {
        keys.extend([product::key(id)?, product::categories_key(id)?]);
    }
    Ok(BatchGet::new(&READ, keys))
}

/// Adds up to [`ADDED_AT_ONCE`] categories.
///
/// # Errors
/// [`EncodeError`].
pub fn add<'a>(
    moving: &Stored<CategoryMove>,
    paths: impl IntoIterator<Item = &'a CategoryPath>,
    at: Instant,
) -> Result<Transaction<CategoryMoveAction>, EncodeError> {
    let add = Transaction::new(&ADD).action(CategoryMoveAction::Move, step(moving, Ok, at)?);
    paths.into_iter().try_fold(add, |add, path| Ok(add.action(CategoryMoveAction::To, node(moving, path.clone(), at)?)))
}

/// Moves up to [`PLACED_AT_ONCE`] products, each to the category given with it.
///
/// # Errors
/// [`EncodeError`].
pub fn place(
    moving: &Stored<CategoryMove>,
    products: &[(&Stored<Product>, CategoryPath)],
    at: Instant,
) -> Result<Transaction<CategoryMoveAction>, EncodeError> {
    let count = |change| counted(change, "products", products.len());
    let place = Transaction::new(&PLACE).action(CategoryMoveAction::Move, step(moving, count, at)?);
    products.iter().enumerate().try_fold(place, |place, (position, (product, category_path))| {
        Ok(place.action(CategoryMoveAction::Product(position), stand(product, category_path, at)?))
    })
}

/// Moves a product that was read to another category.
fn stand(product: &Stored<Product>, category_path: &CategoryPath, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::<Product>::visible(at).enter(&CategoryIndexKey { category_path, id: &product.id })?;
    let same = product::in_catalogue().and(Condition::version(product.meta.version));
    Ok(Guarded::update(product::key(&product.id)?, change, same))
}

/// Moves the memberships of a product that are in the moved subtree. Returns `None` if there is no
/// such membership.
///
/// If the product already has a membership in the new category, the old one is only removed. The
/// product moves in the same transaction if its own category moves too. Memberships copy that
/// category, and the copy decides whether a list shows the product twice.
///
/// # Errors
/// [`EncodeError`].
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
    let place = moving.destination(&product.category_path);
    let count = |change| {
        let change = counted(change, "memberships", gone.len())?;
        if place.is_some() { counted(change, "products", 1) } else { Ok(change) }
    };
    let mut shown = product.clone();
    let guarded = match &place {
        Some(place) => {
            (shown.data.category_path, shown.meta.version) = (place.clone(), product.meta.version + 1);
            stand(product, place, at)?
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

/// Removes a category that has its successor.
///
/// # Errors
/// [`EncodeError`].
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

/// Removes the mark from a category that must stay, because something stays in it or below it.
///
/// # Errors
/// [`EncodeError`].
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
///
/// # Errors
/// [`EncodeError`].
pub fn advance(moving: &Stored<CategoryMove>, at: Instant) -> Result<Single<Stored<CategoryMove>>, EncodeError> {
    let next = |change: Change<CategoryMove>| {
        change.set("phase", moving.phase.next())?.set("since", at)?.set("reached", None::<CategoryPath>)
    };
    Ok(Single::new(&ADVANCE, step(moving, next, at)?))
}

/// Records the category at which a walk has arrived.
///
/// # Errors
/// [`EncodeError`].
pub fn reach(
    moving: &Stored<CategoryMove>,
    path: &CategoryPath,
    at: Instant,
) -> Result<Single<Stored<CategoryMove>>, EncodeError> {
    Ok(Single::new(&ADVANCE, step(moving, |change| change.set("reached", path), at)?))
}
