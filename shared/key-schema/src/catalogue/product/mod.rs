//! Products: summary, stock, review statistics and content, each in a separate item, and the stock
//! also in a separate partition.
//!
//! The items change at different rates. With separate items, a sale or a review does not make an
//! editor's request with If-Match fail, and a list page never reads content.
//!
//! In the partition `PRODUCT#<id>` the sort keys are `CONTENT`, `IN#<category>`, `LIKES#<shard>`,
//! `MEDIA`, `OBJECT#<id>`, `PRODUCT`, `PRODUCT#CATEGORIES`, `PRODUCT#SALES`, `PRODUCT#STATS`,
//! `PRODUCT#VARIANT#<options_hash>` and `REVIEW#<customer>`. One Query between `PRODUCT` and
//! `PRODUCT$` reads the product page: the four items from `PRODUCT` to `PRODUCT#STATS`, and one item
//! for each variant ([`crate::variant`]). A request beside it reads the stock, which is in the
//! partition `STOCK#<id>#<location>#<shard>`. The Query reads no content, pictures
//! ([`crate::picture`]), reviews, memberships ([`crate::membership`]) or count of likes
//! ([`crate::like`]).

mod category_path;
pub mod copies;
pub mod old_stock;
mod patterns;
mod requests;
pub mod segment;
mod stock;
mod stock_at;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::IndexEntry;
use crate::encoding::{DELIMITER, Part as _};
use crate::expression::{Condition, value};
use crate::id::{MediaId, ProductId, TaxCategory};
use crate::index::GSI2;
use crate::item::{DecodeError, EncodeError, Entity, FromItem, Item, Meta, decode, entity_name};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::media::MediaObject;
use crate::membership::Membership;
use crate::money::Money;
use crate::pricing::STANDARD;
use crate::shard::Shards;
use crate::variant::Options;

pub use category_path::{CategoryError, CategoryPath, MAX_CATEGORY_BYTES, MAX_CATEGORY_DEPTH};
pub use copies::{Copied, copy_rating, copy_shards, copy_stock};
pub use old_stock::{is_old_stock, move_stock, old_stock};
pub use patterns::*;
pub use requests::*;
pub use stock::*;
pub use stock_at::*;

/// The shards of each top category's list. A top category is a low-cardinality value, and without
/// shards its list would be a hot partition.
pub const CATEGORY_SHARDS: Shards = Shards(4);

entity! {
    /// The attributes of a product that appear in lists and in search. A product that is taken out
    /// of the catalogue is *retired*: its item stays, without index keys. So its `rev` never
    /// restarts. A record of an older state never has a higher `rev` than a record of a newer
    /// state.
    Product = "Product" {
        fixed {
            id: ProductId,
            /// The product's own category, which is part of the category list's key.
            category_path: CategoryPath,
            /// Whether the product was taken out of the catalogue. No list contains a retired
            /// product.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            retired: bool,
            /// The product of which this product is a variant ([`crate::variant`]).
            #[serde(skip_serializing_if = "Option::is_none", default)]
            parent: Option<ProductId>,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            options: Option<Options>,
            /// The number of variants in the catalogue. A product that has ever had a variant has
            /// this attribute until it is retired and revived.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            variants: Option<u64>,
            /// The id of the product's first picture. The transactions of the pictures
            /// ([`crate::picture`]) write it, without a new `version`. Its stored name is
            /// `reference`, because the index of the category lists projects that attribute for
            /// orders, and already projects 20 attributes, the most that DynamoDB allows.
            #[serde(rename = "reference", skip_serializing_if = "Option::is_none", default)]
            thumbnail: Option<MediaId>,
            /// The number of shards of the stock ([`Stock::shards`]), if there are several.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            stock_shards: Option<u32>,
            /// The copies of other items' attributes that the search document needs.
            #[serde(flatten)]
            copied: Copied,
        }
        mutable by ProductChanges {
            name: String,
            brand: String,
            /// The size of the package, such as `22 LB`.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            package_size: Option<String>,
            price: Money,
            /// A former price, which a shop can show crossed out.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            compare_at: Option<Money>,
            /// A description of a line or two.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            summary: Option<String>,
            /// The weight of one piece in grams, for the price of shipping.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            weight_grams: Option<u64>,
            /// Whether the product is sent to the customer. Only `false` is stored.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            shippable: Option<bool>,
            /// The category of goods for tax. A product without it has the category
            /// [`STANDARD`](crate::pricing::STANDARD).
            #[serde(skip_serializing_if = "Option::is_none", default)]
            tax_category: Option<TaxCategory>,
        }
    }
}

impl Product {
    /// Creates a product that is not retired and has no optional attributes.
    #[must_use]
    pub fn new(id: ProductId, name: String, brand: String, price: Money, category_path: CategoryPath) -> Self {
        Self {
            id,
            category_path,
            retired: false,
            parent: None,
            options: None,
            variants: None,
            thumbnail: None,
            stock_shards: None,
            copied: Copied::default(),
            name,
            brand,
            package_size: None,
            price,
            compare_at: None,
            summary: None,
            weight_grams: None,
            shippable: None,
            tax_category: None,
        }
    }

    /// Returns the former price while it is above the price.
    #[must_use]
    pub fn compare_at(&self) -> Option<Money> {
        above(self.compare_at, self.price)
    }

    #[must_use]
    pub fn is_shippable(&self) -> bool {
        self.shippable.unwrap_or(true)
    }

    #[must_use]
    pub fn tax_category(&self) -> &str {
        self.tax_category.as_ref().map_or(STANDARD, TaxCategory::as_str)
    }
}

/// Returns the former price if it is above the price and in its currency.
#[must_use]
pub fn above(former: Option<Money>, price: Money) -> Option<Money> {
    former.filter(|former| former.currency == price.currency && former.amount > price.amount)
}

/// The key of a product in the list of its category. The lists of the category's ancestors use the
/// same key.
#[derive(Debug, Clone, Copy)]
pub struct CategoryIndexKey<'a> {
    pub category_path: &'a CategoryPath,
    pub id: &'a ProductId,
}

impl CategoryIndexKey<'_> {
    pub(crate) fn key(&self) -> Result<IndexKey, KeyError> {
        let mut sort = self.category_path.key_text();
        sort.push('#');
        self.id.write(&mut sort);
        Ok(IndexKey {
            index: GSI2,
            partition: category_partition(self.category_path.top(), CATEGORY_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(sort)?,
        })
    }
}

impl IndexEntry for CategoryIndexKey<'_> {
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
    /// Returns whether two products are equal in everything that an import sets. An import sets
    /// neither the copies nor the attributes of variants, pictures and shards.
    #[must_use]
    pub fn is_described_as(&self, other: &Self) -> bool {
        let Self { copied, parent, options, variants, thumbnail, stock_shards, .. } = other.clone();
        Self { copied, parent, options, variants, thumbnail, stock_shards, ..self.clone() } == *other
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
        Ok(vec![CategoryIndexKey { category_path: &self.category_path, id: &self.id }.key()?])
    }
}

entity! {
    /// The review statistics of a product. The transaction of each review updates them.
    ReviewStats = "ReviewStats" {
        fixed {
            product_id: ProductId,
            rating_count: u64,
            rating_sum: u64,
        }
        mutable {}
    }
}

impl Entity for ReviewStats {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        stats_key(&self.product_id)
    }
}

entity! {
    /// The sales of a product over all time: the sum of its sales rows ([`crate::sales`]). The
    /// transaction in which the stream's consumer writes rows also updates the sum.
    ///
    /// While the stock has several shards, the new sales are spread over as many items. Once a minute,
    /// the `splitter` moves them to the first item, which the product page shows.
    ProductSales = "ProductSales" {
        fixed {
            product_id: ProductId,
            /// The number of the item. The first one is in the product's partition.
            #[serde(skip_serializing_if = "is_first", default)]
            shard: u32,
            /// The first item may be below zero until the sales of a cancelled order arrive.
            quantity: i64,
            orders: i64,
        }
        mutable {}
    }
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_first(shard: &u32) -> bool {
    *shard == 0
}

impl ProductSales {
    /// Returns an item that has counted nothing.
    #[must_use]
    pub const fn none(product_id: ProductId, shard: u32) -> Self {
        Self { product_id, shard, quantity: 0, orders: 0 }
    }
}

impl Entity for ProductSales {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        sales_key(&self.product_id, self.shard)
    }
}

entity! {
    /// A product's long description. Clients read it with a separate request.
    ProductContent = "ProductContent" {
        fixed {
            product_id: ProductId,
        }
        mutable by ProductContentChanges {
            /// The text in Markdown, or an empty text if there is a file.
            text: String,
            /// The object with the text, if the text is too large for an item.
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

pub(crate) fn stats_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#STATS")? })
}

pub(crate) fn sales_key(id: &ProductId, shard: u32) -> Result<Key, KeyError> {
    Ok(match shard {
        0 => Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#SALES")? },
        _ => Key { pk: PartitionKey::of("PRODUCTSALES", &[id, &shard])?, sk: SortKey::new("PRODUCTSALES")? },
    })
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

/// The stored name of [`Product::thumbnail`].
pub(crate) const THUMBNAIL: &str = "reference";

pub(crate) fn in_catalogue() -> Condition {
    Condition::Exists.and(Condition::Lacks("retired"))
}

/// A product as the category index returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProductSummary {
    pub id: ProductId,
    pub name: String,
    pub brand: String,
    /// The size of the package, such as `22 LB`.
    #[serde(default)]
    pub package_size: Option<String>,
    /// The product's own category, even if the product is listed for a further category.
    pub category_path: CategoryPath,
    pub price: Money,
    /// The id of the product's first picture.
    #[serde(rename = "reference", default)]
    pub thumbnail: Option<MediaId>,
    pub version: u64,
    /// The further category of this entry, as key text. [`None`] for the entry of the product's own
    /// category.
    #[serde(skip)]
    pub further: Option<String>,
}

impl FromItem for ProductSummary {
    fn from_item(item: Item) -> Result<Self, DecodeError> {
        let further = match entity_name(&item)? {
            Product::ENTITY => false,
            Membership::ENTITY => true,
            found => return Err(DecodeError::OtherEntity { expected: Product::NAME, found: found.to_owned() }),
        };
        let category = match item.get(GSI2.sort_attribute()) {
            Some(AttributeValue::S(sort)) if further => sort.rsplit_once(DELIMITER).map(|(path, _)| path.to_owned()),
            _ => None,
        };
        Ok(Self { further: category, ..decode(Product::NAME, item)? })
    }
}
