//! The category tree. A node is stored under its parent, so one Query reads a category's children
//! without the rest of the subtree.
//!
//! A subtree is one range of the index [`GSI2`]. In this index, a node's sort key is its whole
//! path, so the categories below a category directly follow it. The tree of a top category has one
//! partition and no shards. Categories rarely change, and shared caches answer most readers.
//!
//! A category has one or two items. The node ([`CategoryNode`]) records that the category exists.
//! All requests that create a node write the same path, so an import may write it without a
//! condition. The optional description ([`CategoryAbout`]) is a separate item with a separate
//! version.
//!
//! The module [`relocation`] moves a category with its subtree.

pub mod relocation;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::Change;
use crate::expression::Condition;
use crate::index::GSI2;
use crate::instant::Instant;
use crate::item::{DecodeError, EncodeError, Entity, FromItem, Item, Meta, Stored, entity_name};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::product::CategoryPath;
use crate::request::{BatchGet, BatchWrite, BatchWriteAction, Guarded, Query, Range, Single, Transaction};

/// A category's node, which records that the category exists. It is stored under the parent
/// category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryNode {
    pub path: CategoryPath,
    /// Whether a move ([`relocation`]) has already created the category's successor and moved the
    /// description to the successor. Later, the move removes this node or clears `moving`
    /// ([`relocation::keep`]).
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub moving: bool,
}

impl CategoryNode {
    #[must_use]
    pub const fn new(path: CategoryPath) -> Self {
        Self { path, moving: false }
    }
}

impl Entity for CategoryNode {
    const NAME: &'static str = "CategoryNode";

    fn key(&self) -> Result<Key, KeyError> {
        node_key(&self.path)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: GSI2,
            partition: tree_partition(&self.path)?,
            sort: SortKey::new(self.path.key_text())?,
        }])
    }
}

/// A category as the list of a subtree returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategoryBelow {
    /// The category, read from the index key. The index projects no other field of a node.
    pub path: CategoryPath,
}

impl FromItem for CategoryBelow {
    fn from_item(item: Item) -> Result<Self, DecodeError> {
        let found = entity_name(&item)?;
        if found != CategoryNode::NAME {
            return Err(DecodeError::OtherEntity { expected: CategoryNode::NAME, found: found.to_owned() });
        }
        let path = match item.get(GSI2.sort_attribute()) {
            Some(AttributeValue::S(text)) => CategoryPath::from_key_text(text),
            _ => None,
        };
        path.map(|path| Self { path })
            .ok_or_else(|| DecodeError::malformed(CategoryNode::NAME, &item, "its index key is no category"))
    }
}

entity! {
    /// The description of a category, written by an editor.
    CategoryAbout = "CategoryAbout" {
        fixed {
            path: CategoryPath,
        }
        mutable by CategoryAboutChanges {
            /// The title that pages show instead of the category's name.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            title: Option<String>,
            /// A description of one or two lines.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            description: Option<String>,
        }
    }
}

impl Entity for CategoryAbout {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        about_key(&self.path)
    }
}

/// Returns the partition of a category's children. `None` is the root of the tree.
fn children_partition(parent: Option<&CategoryPath>) -> Result<PartitionKey, KeyError> {
    match parent {
        Some(parent) => PartitionKey::new(format!("CATEGORY#{}", parent.key_text())),
        None => PartitionKey::new("CATEGORY"),
    }
}

/// Returns the index partition of the category's tree: the top category and all categories below
/// it.
fn tree_partition(path: &CategoryPath) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("CATEGORYTREE", &[&path.top()])
}

/// The attribute of [`CategoryNode::moving`].
const MOVING: &str = "moving";

fn node_key(path: &CategoryPath) -> Result<Key, KeyError> {
    Ok(Key { pk: children_partition(path.parent().as_ref())?, sk: SortKey::of("CHILD", &[&path.name()])? })
}

fn about_key(path: &CategoryPath) -> Result<Key, KeyError> {
    Ok(Key { pk: children_partition(Some(path))?, sk: SortKey::new("ABOUT")? })
}

/// A refusal names the action whose condition failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CategoryAction {
    /// The node. When a category is created, the condition fails if the node exists already. When a
    /// category is described, the condition fails if the node is missing or moving.
    Node,
    /// The description. The condition fails if the description exists already.
    About,
}

patterns! {
    GET {
        id: "categories.get",
        purpose: "Read a category",
        request: BatchGetItem,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>; PK = CATEGORY#<path>, SK = ABOUT",
        returns: "the node and its description",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    KNOWN {
        id: "categories.known",
        purpose: "Find which categories are missing",
        request: BatchGetItem,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>, for each path",
        returns: "the nodes that exist",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    ADD {
        id: "categories.add",
        purpose: "Add the missing nodes of paths",
        request: BatchWriteItem,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>, for each path",
        requires: "no condition",
        callers: "staff",
    }
    CREATE {
        id: "categories.create",
        purpose: "Create a category, with or without a description",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>; PK = CATEGORY#<path>, SK = ABOUT",
        requires: "node and description do not exist",
        callers: "staff",
    }
    DESCRIBE {
        id: "categories.describe",
        purpose: "Describe a category for the first time",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<path>, SK = ABOUT; PK = CATEGORY#<parent>, SK = CHILD#<name> (check)",
        requires: "the description does not exist; the node exists and is not moving",
        callers: "staff",
    }
    REDESCRIBE {
        id: "categories.redescribe",
        purpose: "Change a category's description",
        request: UpdateItem,
        key: "PK = CATEGORY#<path>, SK = ABOUT",
        requires: "version = the If-Match",
        callers: "staff",
    }
    CHILDREN {
        id: "categories.children",
        purpose: "List a category's children, or the top categories",
        request: Query,
        key: "PK = CATEGORY#<path>, or CATEGORY for the top, SK under CHILD#",
        returns: "the children by name, without their subtrees",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    SUBTREE {
        id: "categories.subtree",
        purpose: "List all categories below a category",
        request: Query on GSI2,
        key: "GSI2PK = CATEGORYTREE#<top>, GSI2SK under <path>#",
        returns: "the categories below, each before its own subtree",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    ANCESTORS {
        id: "categories.ancestors",
        purpose: "Read a category's ancestors",
        request: BatchGetItem,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>, for each prefix of the path",
        returns: "the ancestors from the top, then the category itself",
        consistency: Consistency::Eventual,
        callers: "any",
    }
}

one_of! {
    pub enum CategoryItem { CategoryAbout CategoryNode }
}

/// Reads the node, then its description.
pub fn get(path: &CategoryPath) -> Result<BatchGet<CategoryItem>, KeyError> {
    Ok(BatchGet::new(&GET, vec![node_key(path)?, about_key(path)?]))
}

/// Reads the nodes that exist at these paths.
pub fn known<'a>(
    paths: impl IntoIterator<Item = &'a CategoryPath>,
) -> Result<BatchGet<Stored<CategoryNode>>, KeyError> {
    Ok(BatchGet::new(&KNOWN, paths.into_iter().map(node_key).collect::<Result<_, _>>()?))
}

/// Adds nodes. Writing an existing node again has no visible effect.
pub fn add<'a>(nodes: impl IntoIterator<Item = &'a Stored<CategoryNode>>) -> Result<BatchWrite, EncodeError> {
    let puts = nodes.into_iter().map(|node| node.to_item().map(BatchWriteAction::Put)).collect::<Result<_, _>>()?;
    Ok(BatchWrite::new(&ADD, puts))
}

/// Creates a category, with a description if one is given. The caller [`add`]s its ancestors first.
pub fn create(
    node: &Stored<CategoryNode>,
    about: Option<&Stored<CategoryAbout>>,
) -> Result<Transaction<CategoryAction>, EncodeError> {
    let create = Transaction::new(&CREATE).action(CategoryAction::Node, Guarded::put(node, Condition::NotExists)?);
    Ok(match about {
        Some(about) => create.action(CategoryAction::About, Guarded::put(about, Condition::NotExists)?),
        None => create,
    })
}

/// Describes an existing category for the first time. DynamoDB refuses the write if the category is
/// moving or already has a description.
pub fn describe(about: &Stored<CategoryAbout>) -> Result<Transaction<CategoryAction>, EncodeError> {
    Ok(Transaction::new(&DESCRIBE)
        .action(
            CategoryAction::Node,
            Guarded::check(node_key(&about.path)?, Condition::Exists.and(Condition::Lacks(MOVING))),
        )
        .action(CategoryAction::About, Guarded::put(about, Condition::NotExists)?))
}

/// Replaces the description if it is still at `version`, and returns the new description.
pub fn redescribe(
    path: &CategoryPath,
    title: &Option<String>,
    description: &Option<String>,
    version: u64,
    at: Instant,
) -> Result<Single<Stored<CategoryAbout>>, EncodeError> {
    let change = Change::<CategoryAbout>::visible(at).title(title)?.description(description)?;
    Ok(Single::new(&REDESCRIBE, Guarded::update(about_key(path)?, change, Condition::version(version))))
}

/// Lists a category's children by name, or the top categories if `parent` is [`None`].
pub fn children(parent: Option<&CategoryPath>) -> Result<Query<Stored<CategoryNode>>, KeyError> {
    Ok(Query::new(&CHILDREN, children_partition(parent)?, Range::under("CHILD")))
}

/// Lists all categories below a category, without the category itself. Each category comes before
/// its own subtree.
pub fn subtree(path: &CategoryPath) -> Result<Query<CategoryBelow>, KeyError> {
    Ok(Query::new(&SUBTREE, tree_partition(path)?, Range::under(&path.key_text())))
}

/// Reads a category's ancestors, from the top, and then the category itself.
pub fn ancestors(path: &CategoryPath) -> Result<BatchGet<Stored<CategoryNode>>, KeyError> {
    Ok(BatchGet::new(&ANCESTORS, path.lineage().map(|above| node_key(&above)).collect::<Result<_, _>>()?))
}
