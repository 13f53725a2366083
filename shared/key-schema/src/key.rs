//! Keys of the table and of its indexes, with DynamoDB's limits.

use std::fmt;

use ring::digest::{Context, SHA256};

use crate::encoding::{Part, join};

/// The maximum length of a partition key in bytes, after encoding (DynamoDB limit, also for
/// indexes).
pub const MAX_PARTITION_KEY_BYTES: usize = 2048;
/// The maximum length of a sort key in bytes, after encoding (DynamoDB limit, also for indexes).
pub const MAX_SORT_KEY_BYTES: usize = 1024;

/// The maximum number of non-key attributes that one index may carry (DynamoDB API reference,
/// `Projection`).
pub const MAX_PROJECTED: usize = 20;
/// The maximum number of non-key attributes that all indexes of a table may carry together
/// (DynamoDB API reference, `Projection`).
pub const MAX_PROJECTED_TOTAL: usize = 100;

/// A key that DynamoDB would refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is empty, and DynamoDB has no empty keys.
    #[error("a key must not be empty")]
    Empty,
    /// The key is over the limit, counted in bytes after escaping.
    #[error("a key of {bytes} bytes is longer than the limit of {limit}")]
    TooLong {
        /// The length of the key.
        bytes: usize,
        /// The maximum length.
        limit: usize,
    },
}

macro_rules! key_text {
    ($($(#[$doc:meta])* $name:ident <= $limit:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes text that is already escaped.
            ///
            /// # Errors
            /// [`KeyError`] when the text is empty or over the limit.
            pub fn new(text: impl Into<String>) -> Result<Self, KeyError> {
                let text = text.into();
                match text.len() {
                    0 => Err(KeyError::Empty),
                    bytes if bytes > $limit => Err(KeyError::TooLong { bytes, limit: $limit }),
                    _ => Ok(Self(text)),
                }
            }

            /// Joins a type prefix and its parts, which it escapes.
            ///
            /// # Errors
            /// [`KeyError`] when the result is over the limit.
            pub fn of(prefix: &str, parts: &[&dyn Part]) -> Result<Self, KeyError> {
                Self::new(join(prefix, parts))
            }

            /// Returns the key's text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the key's text, owned.
            #[must_use]
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

key_text! {
    /// A partition key: 1 to 2048 bytes.
    PartitionKey <= MAX_PARTITION_KEY_BYTES
    /// A sort key: 1 to 1024 bytes.
    SortKey <= MAX_SORT_KEY_BYTES
}

/// The primary key of one item of the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The partition key, which identifies the item collection.
    pub pk: PartitionKey,
    /// The sort key, which identifies the item in the collection.
    pub sk: SortKey,
}

/// Returns the hash of a key, for names where the key itself is too long or reveals too much.
///
/// It is the hexadecimal SHA-256 of both parts, each after its length, so that no two keys share an
/// input.
#[must_use]
pub fn hash(partition: &str, sort: &str) -> String {
    let mut context = Context::new(&SHA256);
    for part in [partition, sort] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A secondary index. Several entities share each index, and the prefix of the partition key
/// distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// Reverse lookups, such as a customer's sessions and reviews, or an order's log.
    Gsi1,
    /// Sharded lists over the whole shop, such as orders by status, customers by tier, products by
    /// category.
    Gsi2,
    /// Sparse and time-ranged lists, such as shipments, sales, reviews of a product by time.
    Gsi3,
}

impl Index {
    /// Every index.
    pub const ALL: [Self; 3] = [Self::Gsi1, Self::Gsi2, Self::Gsi3];

    /// Returns the name in the table definition.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gsi1 => "GSI1",
            Self::Gsi2 => "GSI2",
            Self::Gsi3 => "GSI3",
        }
    }

    /// Returns the attribute that holds the index's partition key.
    #[must_use]
    pub const fn partition_attribute(self) -> &'static str {
        match self {
            Self::Gsi1 => "GSI1PK",
            Self::Gsi2 => "GSI2PK",
            Self::Gsi3 => "GSI3PK",
        }
    }

    /// Returns the attribute that holds the index's sort key.
    #[must_use]
    pub const fn sort_attribute(self) -> &'static str {
        match self {
            Self::Gsi1 => "GSI1SK",
            Self::Gsi2 => "GSI2SK",
            Self::Gsi3 => "GSI3SK",
        }
    }

    /// Returns the non-key attributes that the index carries (projection INCLUDE).
    ///
    /// DynamoDB takes at most [`MAX_PROJECTED`] for an index and cannot change them later. Another
    /// projection needs another index. The attributes that a list shows are projected, so that one
    /// request reads a page. All others stay out, because each write that changes a projected
    /// attribute costs extra.
    #[must_use]
    pub const fn projected(self) -> &'static [&'static str] {
        match self {
            Self::Gsi1 => &[
                "entity",
                "id",
                "customer_id",
                "product_id",
                "order_id",
                "device",
                "expires_at",
                "created_at",
                "updated_at",
                "at",
                "by",
                "text",
                "title",
                "rating",
                "role",
                "team",
                "version",
            ],
            Self::Gsi2 => &[
                "entity",
                "id",
                "reference",
                "customer_id",
                "status",
                "total",
                "placed_at",
                "line_count",
                "name",
                "brand",
                "package_size",
                "category_path",
                "price",
                "rating",
                "product_id",
                "title",
                "text",
                "created_at",
                "updated_at",
                "version",
            ],
            Self::Gsi3 => &[
                "entity",
                "id",
                "reference",
                "customer_id",
                "status",
                "total",
                "placed_at",
                "line_count",
                "shipped_at",
                "carrier",
                "tracking",
                "order_id",
                "quantity",
                "product_id",
                "rating",
                "title",
                "text",
                "created_at",
                "updated_at",
                "version",
            ],
        }
    }

    /// Returns why the index carries these attributes and no others.
    #[must_use]
    pub const fn projection_reason(self) -> &'static str {
        match self {
            Self::Gsi1 => "Lists show sessions, reviews, log lines and memberships of organizations completely.",
            Self::Gsi2 => {
                "It has order summaries, the product attributes of a category page, and complete reviews. Customers by \
                 tier are read by key: that list is rare, and with projected attributes every change of a profile \
                 would cost more."
            }
            Self::Gsi3 => "It has the listed attributes of a shipment and of a sale, and complete reviews.",
        }
    }
}

/// An item's key in one index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexKey {
    /// The index.
    pub index: Index,
    /// The partition key in that index.
    pub partition: PartitionKey,
    /// The sort key in that index.
    pub sort: SortKey,
}
