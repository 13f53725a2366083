//! Keeps the category tree complete: the category of every product exists, and so do all ancestors
//! of the category.

use std::collections::BTreeSet;

use http_api::{Problem, Services};
use key_schema::category::{self, CategoryNode};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Stored};
use key_schema::product::CategoryPath;
use key_schema::request::BatchWriteAction;
use table::TableError;

/// Returns those nodes of a path (the category and its ancestors) that do not exist. The caller
/// writes them together with the item that needs them.
pub async fn missing(
    services: &Services,
    path: &CategoryPath,
    at: Instant,
) -> Result<Vec<Stored<CategoryNode>>, Problem> {
    let lineage: Vec<CategoryPath> = path.lineage().collect();
    let known = services.table.batch_get(&category::known(&lineage)?).await?;
    let missing = lineage.iter().zip(known).filter(|(_, node)| node.is_none());
    missing.map(|(path, _)| new_node(services, path, at)).collect()
}

/// Adds those nodes of a path (the category and its ancestors) that do not exist.
///
/// # Errors
/// 503 `throttled` when the table does not accept all of them. A retry adds the rest.
pub async fn grow(services: &Services, path: &CategoryPath, at: Instant) -> Result<(), Problem> {
    let left = grow_all(services, [path], at).await?;
    if left.is_empty() { Ok(()) } else { Err(TableError::Unprocessed(left.len()).into()) }
}

/// Adds the missing categories of many paths, with their ancestors. Returns the categories that
/// the table did not accept. The caller must not write items below these categories.
///
/// The read before the write is eventually consistent. A node that it misses is written again,
/// which has no visible effect.
pub async fn grow_all<'a>(
    services: &Services,
    paths: impl IntoIterator<Item = &'a CategoryPath>,
    at: Instant,
) -> Result<BTreeSet<CategoryPath>, Problem> {
    let wanted: BTreeSet<CategoryPath> = paths.into_iter().flat_map(CategoryPath::lineage).collect();
    if wanted.is_empty() {
        return Ok(BTreeSet::new());
    }
    let known = services.table.batch_get(&category::known(&wanted)?).await?;
    let missing = wanted.iter().zip(known).filter(|(_, node)| node.is_none());
    let nodes = missing.map(|(path, _)| new_node(services, path, at)).collect::<Result<Vec<_>, _>>()?;
    if nodes.is_empty() {
        return Ok(BTreeSet::new());
    }
    let left = services.table.batch_write(&category::add(&nodes)?).await?;
    left.into_iter().filter_map(path_of).collect()
}

/// Builds a category's node. If several requests build a node for the same category, the table may
/// keep any one of these nodes.
pub fn new_node(services: &Services, path: &CategoryPath, at: Instant) -> Result<Stored<CategoryNode>, Problem> {
    Ok(Stored::new(CategoryNode::new(path.clone()), services.born(at)?, at))
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
