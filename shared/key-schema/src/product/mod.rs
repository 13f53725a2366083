//! Products: summary, stock, review statistics and content, each on an item of its own.
//!
//! What changes at another pace lies apart, so that a sale or a review never breaks an editor's If-Match and a list page never
//! reads content. In the partition `PRODUCT#<id>` the sort keys are `CONTENT`, `IN#<category>`, `LIKES#<shard>`, `MEDIA`,
//! `OBJECT#<id>`, `PRODUCT`, `PRODUCT#CATEGORIES`, `PRODUCT#SALES`, `PRODUCT#STATS`, `PRODUCT#STOCK` and `REVIEW#<customer>`: one Query between `PRODUCT`
//! and `PRODUCT$` gives everything that a product page shows, without content, pictures ([`crate::picture`]), reviews, the entries of further categories
//! ([`crate::membership`]) and the count of likes ([`crate::like`]).

mod category_path;
pub mod copies;
mod requests;
pub mod segment;

use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{IndexEntry, entity};
use crate::encoding::{DELIMITER, Part as _};
use crate::expression::{Condition, value};
use crate::id::{CustomerId, ProductId};
use crate::instant::Instant;
use crate::item::{DecodeError, EncodeError, Entity, FromItem, Item, Meta, decode, entity_name};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::media::MediaObject;
use crate::membership::Membership;
use crate::money::Money;
use crate::shard::Shards;

pub use category_path::{CategoryError, CategoryPath, MAX_CATEGORY_BYTES, MAX_CATEGORY_DEPTH};
pub use copies::{Copied, copy_rating, copy_stock};
pub use requests::*;

/// The shards of each top category's list. A top category is a low-cardinality value: alone it would be a hot partition.
pub const CATEGORY_SHARDS: Shards = Shards(4);
/// The most pieces that a stock can hold, and that one adjustment can move.
pub const MAX_STOCK: u64 = 1_000_000_000_000;

entity! {
    /// What lists and search show of a product. A product that is taken out of the catalogue is *retired*: its item stays, without
    /// index keys, so that `rev` never restarts and a late stream record can never outrank a newer one.
    Product = "Product" {
        keyed {
            /// The product.
            id: ProductId,
            /// Where it stands; part of the category list's key.
            category_path: CategoryPath,
            /// Whether it was taken out of the catalogue; a retired product is in no list.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            retired: bool,
            /// What the search document needs of other items, copied here.
            #[serde(flatten)]
            copied: Copied,
        }
        free {
            /// Its name.
            name: String,
            /// Its brand.
            brand: String,
            /// Such as `22 LB`.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            package_size: Option<String>,
            /// What one piece costs.
            price: Money,
            /// A line or two about it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            summary: Option<String>,
        }
    }
}

/// A product's place in the list of its category and every category above.
#[derive(Debug, Clone, Copy)]
pub struct CategoryPlace<'a> {
    /// The category.
    pub category_path: &'a CategoryPath,
    /// The product.
    pub id: &'a ProductId,
}

impl CategoryPlace<'_> {
    pub(crate) fn key(&self) -> Result<IndexKey, KeyError> {
        let mut sort = self.category_path.key_text();
        sort.push('#');
        self.id.write(&mut sort);
        Ok(IndexKey {
            index: Index::Gsi2,
            partition: category_partition(self.category_path.top(), CATEGORY_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(sort)?,
        })
    }
}

impl IndexEntry for CategoryPlace<'_> {
    type Entity = Product;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("category_path", value(self.category_path)?)])
    }
}

fn category_partition(top: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("CATEGORYLIST", &[&top, &shard])
}

impl Product {
    /// Whether two products are described alike, whatever was copied onto them.
    #[must_use]
    pub fn is_described_as(&self, other: &Self) -> bool {
        Self { copied: other.copied, ..self.clone() } == *other
    }
}

impl Entity for Product {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        if self.retired {
            return Ok(Vec::new());
        }
        Ok(vec![CategoryPlace { category_path: &self.category_path, id: &self.id }.key()?])
    }
}

entity! {
    /// How many pieces can be sold. It outlives its product, so that a cancelled order always has somewhere to return to.
    Stock = "Stock" {
        keyed {
            /// Whose.
            product_id: ProductId,
            /// Pieces; never negative, by condition of every write. Moves only with the functions of this module.
            available: u64,
            /// Whether orders may take from it: not after the product was retired.
            sellable: bool,
        }
        free {
            /// Who moved it by hand the last time, and why; for whoever reads the stream.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            last_adjustment: Option<Adjustment>,
        }
    }
}

/// A movement of a stock by hand: goods came in, broke, were counted again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// Pieces, negative for what went out.
    pub by: i64,
    /// Why.
    pub reason: String,
    /// The member of staff.
    pub staff: CustomerId,
    /// When.
    pub at: Instant,
}

/// Why a stock cannot be moved by so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StockError {
    /// It would be negative.
    #[error("fewer pieces are in stock")]
    Insufficient,
    /// It would exceed [`MAX_STOCK`].
    #[error("would make the stock larger than {MAX_STOCK}")]
    TooLarge,
}

impl Stock {
    /// Whether somebody can buy a piece now.
    #[must_use]
    pub const fn in_stock(&self) -> bool {
        self.sellable && self.available > 0
    }

    /// The pieces after a movement.
    ///
    /// # Errors
    /// [`StockError`].
    pub fn moved(&self, by: i64) -> Result<u64, StockError> {
        match self.available.checked_add_signed(by) {
            Some(pieces) if pieces <= MAX_STOCK => Ok(pieces),
            None if by < 0 => Err(StockError::Insufficient),
            _ => Err(StockError::TooLarge),
        }
    }
}

impl Entity for Stock {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        stock_key(&self.product_id)
    }
}

entity! {
    /// What the reviews of a product add up to; written in the transaction of each review.
    ReviewStats = "ReviewStats" {
        keyed {
            /// Whose.
            product_id: ProductId,
            /// How many reviews.
            rating_count: u64,
            /// The sum of their ratings.
            rating_sum: u64,
        }
        free {}
    }
}

impl Entity for ReviewStats {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        stats_key(&self.product_id)
    }
}

entity! {
    /// What was sold of a product, all in all; moved by the stream together with the rows that prove it ([`crate::sales`]).
    ProductSales = "ProductSales" {
        keyed {
            /// Whose.
            product_id: ProductId,
            /// How many pieces.
            quantity: u64,
            /// In how many orders.
            orders: u64,
        }
        free {}
    }
}

impl Entity for ProductSales {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        sales_key(&self.product_id)
    }
}

entity! {
    /// A product's long description, read on the product's own page only.
    ProductContent = "ProductContent" {
        keyed {
            /// Whose.
            product_id: ProductId,
        }
        free {
            /// Markdown; empty where there is a file.
            text: String,
            /// The text as an object, where it is too large for an item.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            file: Option<MediaObject>,
        }
    }
}

impl Entity for ProductContent {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        content_key(&self.product_id)
    }
}

pub(crate) fn partition(id: &ProductId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PRODUCT", &[id])
}

pub(crate) fn key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT")? })
}

pub(crate) fn stock_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#STOCK")? })
}

pub(crate) fn stats_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#STATS")? })
}

pub(crate) fn sales_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#SALES")? })
}

pub(crate) fn categories_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#CATEGORIES")? })
}

pub(crate) fn pictures_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("MEDIA")? })
}

pub(crate) fn content_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("CONTENT")? })
}

/// The condition that a product is in the catalogue.
pub(crate) fn in_catalogue() -> Condition {
    Condition::Exists.and(Condition::Lacks("retired"))
}

/// A product as the category index shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The product.
    pub id: ProductId,
    /// Its name.
    pub name: String,
    /// Its brand.
    pub brand: String,
    /// Such as `22 LB`.
    #[serde(default)]
    pub package_size: Option<String>,
    /// Where it stands; not the further category that it may be listed for.
    pub category_path: CategoryPath,
    /// What one piece costs.
    pub price: Money,
    /// The product's version.
    pub version: u64,
    /// The further category that it is listed for, as key text; `None` where it is listed for the one in which it stands.
    #[serde(skip)]
    pub further: Option<String>,
}

impl FromItem for Listed {
    fn from_item(item: Item) -> Result<Self, DecodeError> {
        let further = match entity_name(&item)? {
            Product::ENTITY => false,
            Membership::ENTITY => true,
            found => return Err(DecodeError::OtherEntity { expected: Product::NAME, found: found.to_owned() }),
        };
        let place = match item.get(Index::Gsi2.sort_attribute()) {
            Some(AttributeValue::S(sort)) if further => sort.rsplit_once(DELIMITER).map(|(path, _)| path.to_owned()),
            _ => None,
        };
        Ok(Self { further: place, ..decode(Product::NAME, item)? })
    }
}
