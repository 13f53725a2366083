//! Keys of the table and of its indexes, with DynamoDB's limits.

use std::fmt;

use ring::digest::{Context, SHA256};

use crate::encoding::{Part, join};

/// The maximum length of a partition key in bytes, after encoding (DynamoDB limit, also for
/// indexes).
pub const MAX_PARTITION_KEY_BYTES: usize = 2048;
/// The maximum length of a sort key in bytes, after encoding (DynamoDB limit, also for indexes).
pub const MAX_SORT_KEY_BYTES: usize = 1024;

/// The maximum number of non-key attributes in one index (DynamoDB API reference, `Projection`).
pub const MAX_PROJECTED: usize = 20;
/// The maximum number of non-key attributes in all indexes of a table together (DynamoDB API
/// reference, `Projection`).
pub const MAX_PROJECTED_TOTAL: usize = 100;

/// A key that DynamoDB would refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is empty. DynamoDB allows no empty keys.
    #[error("a key must not be empty")]
    Empty,
    /// The key is longer than the limit, in bytes after escaping.
    #[error("a key of {bytes} bytes is longer than the limit of {limit}")]
    TooLong {
        /// The length of the key.
        bytes: usize,
        limit: usize,
    },
}

macro_rules! key_text {
    ($($(#[$doc:meta])* $name:ident <= $limit:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Creates a key from text that is already escaped.
            pub fn new(text: impl Into<String>) -> Result<Self, KeyError> {
                let text = text.into();
                match text.len() {
                    0 => Err(KeyError::Empty),
                    bytes if bytes > $limit => Err(KeyError::TooLong { bytes, limit: $limit }),
                    _ => Ok(Self(text)),
                }
            }

            /// Creates a key from a prefix and parts. This function escapes the parts.
            pub fn of(prefix: &str, parts: &[&dyn Part]) -> Result<Self, KeyError> {
                Self::new(join(prefix, parts))
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

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

/// Returns the hash of a key, for names that must be short or must not reveal the key.
///
/// It is the hexadecimal SHA-256 of the partition key and the sort key, each preceded by its
/// length. With the lengths, no two keys have the same hash input.
#[must_use]
pub fn hash(partition: &str, sort: &str) -> String {
    let mut context = Context::new(&SHA256);
    for part in [partition, sort] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The number of characters of a hash that replaces a part of a key.
const SHOWN_HASH: usize = 16;
/// The partitions whose keys hold a text that a person wrote.
const PERSONAL: [&str; 4] = ["EMAIL", "IDEMPOTENCY", "REFERENCE", "USERNAME"];

/// Returns a key as reports and logs show it. A hash replaces texts that a person wrote, but not
/// ids and names of sections.
#[must_use]
pub fn shown(key: &Key) -> String {
    let (pk, sk) = (key.pk.as_str(), key.sk.as_str());
    let hash = || hash(pk, sk).chars().take(SHOWN_HASH).collect::<String>();
    match pk.split_once('#') {
        // The sort key has the city of a person.
        Some((prefix @ "PLACE", _)) => format!("{prefix}#<{}>", hash()),
        Some((prefix, _)) if PERSONAL.contains(&prefix) => format!("{prefix}#<{}> {sk}", hash()),
        _ => format!("{pk} {sk}"),
    }
}

/// Returns a key as a function's log shows it: the kind of its partition, a hash and the kind of its
/// sort key. Any other part may identify a person.
#[must_use]
pub fn logged(key: &Key) -> String {
    let (pk, sk) = (key.pk.as_str(), key.sk.as_str());
    let kind = |text: &str| text.split('#').next().unwrap_or_default().to_owned();
    let hash: String = hash(pk, sk).chars().take(SHOWN_HASH).collect();
    format!("{}#<{hash}> {}", kind(pk), kind(sk))
}

/// A secondary index: its key attributes and its projection.
///
/// Several entities share each index, and the prefix of the partition key distinguishes them. A
/// schema declares its indexes as constants.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    name: &'static str,
    partition_attribute: &'static str,
    sort_attribute: &'static str,
    projected: &'static [&'static str],
    projection_reason: &'static str,
}

/// Two indexes are equal if they have the same name, because a table never has two indexes with the
/// same name.
impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Index {}

impl PartialOrd for Index {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Index {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name.cmp(other.name)
    }
}

impl Index {
    /// Declares the index `name` with the key attributes `[partition, sort]`.
    ///
    /// The key attributes begin with `GSI`, so that no field can have their name. `projected` are
    /// the non-key attributes that the index carries (projection INCLUDE), and `projection_reason`
    /// is the reason for this choice.
    ///
    /// # Panics
    /// A constant does not compile when a key attribute does not begin with `GSI`, or when
    /// `projected` has more than [`MAX_PROJECTED`] attributes.
    #[must_use]
    pub const fn new(
        name: &'static str,
        [partition, sort]: [&'static str; 2],
        projected: &'static [&'static str],
        projection_reason: &'static str,
    ) -> Self {
        assert!(is_index_attribute(partition) && is_index_attribute(sort), "a key attribute must begin with GSI");
        assert!(projected.len() <= MAX_PROJECTED, "DynamoDB takes at most 20 projected attributes for an index");
        Self { name, partition_attribute: partition, sort_attribute: sort, projected, projection_reason }
    }

    /// Returns the name in the table definition.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the attribute that holds the index's partition key.
    #[must_use]
    pub const fn partition_attribute(self) -> &'static str {
        self.partition_attribute
    }

    /// Returns the attribute that holds the index's sort key.
    #[must_use]
    pub const fn sort_attribute(self) -> &'static str {
        self.sort_attribute
    }

    /// Returns the non-key attributes that the index carries (projection INCLUDE).
    ///
    /// An index has at most [`MAX_PROJECTED`] of them, and DynamoDB cannot change them later:
    /// another projection needs another index. An index carries the attributes that a list shows,
    /// so that one request reads a page. It carries no other attributes, because each write that
    /// changes a projected attribute costs extra.
    #[must_use]
    pub const fn projected(self) -> &'static [&'static str] {
        self.projected
    }

    /// Returns why the index carries these attributes and no others.
    #[must_use]
    pub const fn projection_reason(self) -> &'static str {
        self.projection_reason
    }
}

/// Returns whether an attribute name is reserved for the keys of indexes.
pub(crate) const fn is_index_attribute(name: &str) -> bool {
    matches!(name.as_bytes(), [b'G', b'S', b'I', ..])
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexKey {
    pub index: Index,
    pub partition: PartitionKey,
    pub sort: SortKey,
}
