//! Stock locations: the places that keep stock, such as a warehouse.
//!
//! Every shop has the location `main`, also while it has no item. All locations are in one partition,
//! so one Query reads them. Its head counts the others, and a transaction that creates one raises the
//! count. So there are never more than [`MAX_LOCATIONS`] besides `main`, and no list is cut off.

use item_model::prelude::*;

use crate::address::PostalAddress;
use crate::change::Change;
use crate::expression::Condition;
use crate::id::{Born, LocationId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Query, Range, Single, Transaction};

/// The maximum number of locations besides `main`.
pub const MAX_LOCATIONS: u32 = 50;

const LOCATION: &str = "LOCATION";

entity! {
    /// A place that keeps stock.
    StockLocation = "StockLocation" {
        fixed {
            id: LocationId,
        }
        mutable by StockLocationChanges {
            name: String,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            address: Option<PostalAddress>,
        }
    }
}

entity! {
    /// The head of the stock locations.
    StockLocations = "StockLocations" {
        fixed {
            /// The number of locations besides `main`.
            locations: u64,
        }
        mutable {}
    }
}

impl StockLocation {
    /// Returns the location of all stock of a shop that has named no location.
    #[must_use]
    pub fn main() -> Self {
        let id = LocationId::main();
        Self { name: id.to_string(), id, address: None }
    }
}

impl Entity for StockLocation {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }
}

impl Entity for StockLocations {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        head_key()
    }
}

fn partition() -> Result<PartitionKey, KeyError> {
    PartitionKey::new("LOCATIONS")
}

fn head_key() -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::new("LOCATIONS")? })
}

pub(crate) fn key(id: &LocationId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition()?, sk: SortKey::of(LOCATION, &[id])? })
}

patterns! {
    GET {
        id: "locations.get",
        purpose: "Read a stock location",
        request: GetItem,
        key: "PK = LOCATIONS, SK = LOCATION#<id>",
        returns: "the location",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    LIST {
        id: "locations.list",
        purpose: "List the stock locations",
        request: Query,
        key: "PK = LOCATIONS, SK under LOCATION#",
        returns: "the locations, by id",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    CREATE {
        id: "locations.create",
        purpose: "Create a stock location",
        request: TransactWriteItems,
        key: "PK = LOCATIONS, SK = LOCATION#<id>; PK = LOCATIONS, SK = LOCATIONS",
        requires: "the location does not exist; there are fewer than 50 besides `main`",
        callers: "staff",
    }
    CHANGE {
        id: "locations.change",
        purpose: "Change a stock location",
        request: UpdateItem,
        key: "PK = LOCATIONS, SK = LOCATION#<id>",
        requires: "version = the If-Match",
        callers: "staff",
    }
}

/// An action of the transaction that creates a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocationAction {
    /// The location. The condition fails if it exists.
    Location,
    /// The head. The condition fails if there are [`MAX_LOCATIONS`].
    Head,
}

pub fn get(id: &LocationId) -> Result<Get<Stored<StockLocation>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Lists the stored locations, by id.
pub fn list() -> Result<Query<Stored<StockLocation>>, KeyError> {
    Ok(Query::new(&LIST, partition()?, Range::under(LOCATION)).limit(MAX_LOCATIONS as usize + 1))
}

pub fn create(location: &Stored<StockLocation>) -> Result<Transaction<LocationAction>, EncodeError> {
    let at = location.meta.created_at;
    let create =
        Transaction::new(&CREATE).action(LocationAction::Location, Guarded::put(location, Condition::NotExists)?);
    if location.id == LocationId::main() {
        return Ok(create);
    }
    let counted = Change::<StockLocations>::visible(at).or_create(&Born::counter(), at).add("locations", 1);
    let has_room = Condition::count_below("locations", MAX_LOCATIONS.into());
    Ok(create.action(LocationAction::Head, Guarded::update(head_key()?, counted, has_room)))
}

/// Replaces name and address of a location that is at `version`, and returns the location.
pub fn change(
    location: &StockLocation,
    version: u64,
    at: Instant,
) -> Result<Single<Stored<StockLocation>>, EncodeError> {
    let change = Change::<StockLocation>::visible(at).name(&location.name)?.address(&location.address)?;
    Ok(Single::new(&CHANGE, Guarded::update(key(&location.id)?, change, Condition::version(version))))
}
