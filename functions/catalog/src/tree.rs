//! Keeping the category tree complete: a product's category and all above it exist before the product does.

use std::collections::BTreeSet;

use http_api::{Problem, Store};
use key_schema::category::{self, CategoryNode};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Stored};
use key_schema::product::CategoryPath;
use key_schema::request::BatchWriteAction;
use table::TableError;

/// The category of a path and those above it, as far as they are missing: to be written with what stands below them.
///
/// # Errors
/// When the table fails.
pub async fn missing(store: &Store, path: &CategoryPath, at: Instant) -> Result<Vec<Stored<CategoryNode>>, Problem> {
    let lineage: Vec<CategoryPath> = path.lineage().collect();
    let known = store.table.batch_get(&category::known(&lineage)?).await?;
    let missing = lineage.iter().zip(known).filter(|(_, node)| node.is_none());
    missing.map(|(path, _)| new_node(store, path, at)).collect()
}

/// Adds the category of a path and those above it, as far as they are missing.
///
/// # Errors
/// 503 `throttled` when the table does not take them; nothing else was written then that anybody could miss.
pub async fn grow(store: &Store, path: &CategoryPath, at: Instant) -> Result<(), Problem> {
    let left = grow_all(store, [path], at).await?;
    if left.is_empty() { Ok(()) } else { Err(TableError::Unprocessed(left.len()).into()) }
}

/// Adds the categories of many paths and those above them, as far as they are missing. Gives back those that the table did not take,
/// retries included: what stands below them must wait.
///
/// The look before is eventually consistent. What it misses is written once more, which changes nothing that anybody sees.
///
/// # Errors
/// When the table fails as a whole.
pub async fn grow_all<'a>(
    store: &Store,
    paths: impl IntoIterator<Item = &'a CategoryPath>,
    at: Instant,
) -> Result<BTreeSet<CategoryPath>, Problem> {
    let wanted: BTreeSet<CategoryPath> = paths.into_iter().flat_map(CategoryPath::lineage).collect();
    if wanted.is_empty() {
        return Ok(BTreeSet::new());
    }
    let known = store.table.batch_get(&category::known(&wanted)?).await?;
    let missing = wanted.iter().zip(known).filter(|(_, node)| node.is_none());
    let nodes = missing.map(|(path, _)| new_node(store, path, at)).collect::<Result<Vec<_>, _>>()?;
    if nodes.is_empty() {
        return Ok(BTreeSet::new());
    }
    let left = store.table.batch_write(&category::add(&nodes)?).await?;
    left.into_iter().filter_map(path_of).collect()
}

/// A category's node, as good as any other of the same path.
///
/// # Errors
/// 500 `internal` when the system has no randomness to give.
pub fn new_node(store: &Store, path: &CategoryPath, at: Instant) -> Result<Stored<CategoryNode>, Problem> {
    Ok(Stored::new(CategoryNode::new(path.clone()), store.born(at)?, at))
}

fn path_of(unwritten: BatchWriteAction) -> Option<Result<CategoryPath, Problem>> {
    match unwritten {
        BatchWriteAction::Put(item) => {
            let node = Stored::<CategoryNode>::from_item(item);
            Some(node.map(|node| node.data.path).map_err(Problem::internal))
        }
        BatchWriteAction::Delete(_) => None,
    }
}
