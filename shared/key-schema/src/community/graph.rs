//! The graph of customers: typed edges, each stored once.
//!
//! | kind | leads to | stored as |
//! | --- | --- | --- |
//! | `follows` | a customer | [`crate::follow`], in the customer's partition |
//! | `likes` | a product | [`crate::like`], in the customer's partition |
//! | `reviewed` | a product | [`crate::review::by_customer`], an index of the reviews |
//! | `bought` | a product | [`crate::sales::bought`], an index of the sales rows |
//! | `lives-in` | a place | the profile itself, in an index ([`crate::residence::of_location`]) |
//!
//! For each kind, one request reads a customer's edges. No edge has a copy that could be outdated.

use std::fmt;
use std::str::FromStr;

use item_model::prelude::*;

use crate::customer::{self, Customer};
use crate::follow::Follow;
use crate::id::CustomerId;
use crate::item::Stored;
use crate::key::KeyError;
use crate::like::Like;
use crate::organization::invitation::Invitations;
use crate::pattern::Consistency;
use crate::request::{Get, Query, Range};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    Follows,
    Likes,
    Reviewed,
    /// Leads to a product that the customer bought in an order.
    Bought,
    /// Leads to the place in which the customer lives.
    LivesIn,
}

impl EdgeKind {
    pub const ALL: [Self; 5] = [Self::Follows, Self::Likes, Self::Reviewed, Self::Bought, Self::LivesIn];

    /// Returns the name in queries and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Follows => "follows",
            Self::Likes => "likes",
            Self::Reviewed => "reviewed",
            Self::Bought => "bought",
            Self::LivesIn => "lives-in",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be follows, likes, reviewed, bought or lives-in")]
pub struct UnknownEdgeKind;

impl FromStr for EdgeKind {
    type Err = UnknownEdgeKind;

    fn from_str(text: &str) -> Result<Self, UnknownEdgeKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownEdgeKind)
    }
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

patterns! {
    LIVES_IN {
        id: "graph.lives-in",
        purpose: "Find the place where a customer lives",
        request: GetItem,
        key: "PK = CUSTOMER#<node>, SK = PROFILE",
        returns: "the profile, which has the place",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    OWN {
        id: "graph.own",
        purpose: "Find all edges of a customer, for an erasure or a copy of the data",
        request: Query,
        key: "PK = CUSTOMER#<id>, SK between FOLLOWS# and LIKE$",
        returns: "the customer's follows, then the likes",
        consistency: Consistency::Strong("a missed edge would outlive the customer"),
        callers: "owner",
    }
}

/// Reads a customer's profile, which has the place in which the customer lives.
pub fn lives_in(node: &CustomerId) -> Result<Get<Stored<Customer>>, KeyError> {
    Ok(Get::new(&LIVES_IN, customer::key(node)?))
}

one_of! {
    /// An edge of a customer. The customer's invitations are between the edges.
    pub enum OwnEdge { Follow Invitations Like }
}

/// Lists the edges in a customer's own partition: follows, then likes.
pub fn own(customer: &CustomerId) -> Result<Query<OwnEdge>, KeyError> {
    let range = Range::Between("FOLLOWS#".into(), "LIKE$".into());
    Ok(Query::new(&OWN, customer::partition(customer)?, range))
}
