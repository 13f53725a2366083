//! Moves a category to another path.
//!
//! The move includes the whole subtree: its categories, their descriptions, and the products and
//! memberships ([`crate::membership`]) in them. The *successor* of a category is its node at the
//! new path.
//!
//! A subtree has no size limit, so a move takes many transactions. They belong to the [`Phase`]s of
//! the move. One item, [`CategoryMove`], records the move and its progress. The table has only one
//! such item, so only one move runs at a time. Every transaction also changes that item, on the
//! condition that it still has the same move in the same phase. So a late worker changes nothing,
//! and the item counts each step once.
//!
//! # Why a move neither loses nor duplicates an item
//!
//! - At any time a product has exactly one `category_path`. One attribute and one index key record
//!   it. One write changes both, on the condition that the product's version is unchanged.
//! - One transaction changes a membership and the product's list of further categories. If the
//!   product moves too, the same transaction changes the product.
//! - A category's successor exists before anything moves into the successor. A category is removed
//!   only after its description has moved to the successor. The transaction that copies a category
//!   also marks the old category ([`CategoryNode::moving`]). A marked category accepts no new
//!   description, so no description is lost.
//! - A request that creates a product, or adds a product to a category, first reads the tree. So it
//!   may write to an old category after the move has removed that category. After the removal, the
//!   move waits longer than such a request may take ([`Phase::Settling`]). Then it also moves the
//!   products and memberships that were written late.
//! - A request may create an old category again. That category stays, and the move adds its missing
//!   ancestors ([`Phase::Checking`]). The move removes no category after the wait.
//! - A new path can be too deep or too long. Then the category or product stays at its old path,
//!   together with all categories above it.

mod patterns;
mod requests;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::instant::Instant;
use crate::item::Entity;
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::product::CategoryPath;

pub use patterns::*;
pub use requests::*;

/// The number of products that one transaction moves at most.
pub const MOVED_AT_ONCE: usize = 25;
/// The number of categories that one transaction adds at most.
pub const ADDED_AT_ONCE: usize = 50;
/// How long the move waits after it has removed the old categories. Within this time, all requests
/// that have read the old categories end, and the indexes become up to date.
pub const SETTLING_SECONDS: i64 = 90;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The categories get their successors, from the top.
    Copying,
    /// The products and memberships move.
    Placing,
    /// The old categories are removed, from the bottom.
    Clearing,
    /// The move waits for requests that have read the old categories. Then it moves the products
    /// and memberships that these requests added to the old categories.
    Settling,
    /// Old categories that exist again get their missing ancestors back.
    Checking,
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
    /// The category move in progress, or the last move.
    CategoryMove = "CategoryMove" {
        fixed {
            from: CategoryPath,
            to: CategoryPath,
            phase: Phase,
            /// When the current phase began.
            since: Instant,
            /// The category that the current phase has reached. All categories before it are done.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            reached: Option<CategoryPath>,
            /// The number of categories that have a successor.
            categories: u64,
            products: u64,
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
    #[must_use]
    pub const fn new(from: CategoryPath, to: CategoryPath, at: Instant) -> Self {
        let phase = Phase::Copying;
        Self { from, to, phase, since: at, reached: None, categories: 0, products: 0, memberships: 0 }
    }

    /// Returns the path of a category after the move. Returns `None` if the category is outside the
    /// moved subtree, or if its new path would be too deep or too long.
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

/// A refusal names the action whose condition failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CategoryMoveAction {
    /// The move. Its condition fails if the table has another move, or the move is in another
    /// phase.
    Move,
    From,
    /// The node of its successor.
    To,
    /// The description of the old category.
    About,
    /// The description of its successor.
    AboutTo,
    /// The product at this position in the argument of [`move_products`]. In [`transfer`], the
    /// position is 0.
    Product(usize),
    /// The list of a product's further categories, or a membership.
    Membership,
}
