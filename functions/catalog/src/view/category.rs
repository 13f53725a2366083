use key_schema::category::relocation::{CategoryMove, Phase};
use key_schema::category::{CategoryAbout, CategoryNode};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::CategoryPath;
use serde::Serialize;

/// A category. Its `id` represents it in a URL.
#[derive(Debug, Serialize)]
pub struct CategoryView<'a> {
    #[serde(flatten)]
    node: NodeView<'a>,
    title: Option<&'a str>,
    description: Option<&'a str>,
    version: u64,
}

impl<'a> CategoryView<'a> {
    pub fn new(path: &'a CategoryPath, about: Option<&'a Stored<CategoryAbout>>) -> Self {
        Self {
            node: NodeView::from(path),
            title: about.and_then(|about| about.title.as_deref()),
            description: about.and_then(|about| about.description.as_deref()),
            version: category_version(about),
        }
    }
}

/// Returns a category's version: 1 at creation, and one more for each later description.
pub fn category_version(about: Option<&Stored<CategoryAbout>>) -> u64 {
    about.map_or(1, |about| about.meta.version)
}

#[derive(Debug, Serialize)]
pub struct NodeView<'a> {
    id: String,
    path: &'a CategoryPath,
    name: &'a str,
}

impl<'a> From<&'a CategoryPath> for NodeView<'a> {
    fn from(path: &'a CategoryPath) -> Self {
        Self { id: path.to_segment(), path, name: path.name() }
    }
}

impl<'a> From<&'a Stored<CategoryNode>> for NodeView<'a> {
    fn from(node: &'a Stored<CategoryNode>) -> Self {
        Self::from(&node.path)
    }
}

#[derive(Debug, Serialize)]
pub struct MoveView<'a> {
    from: NodeView<'a>,
    to: NodeView<'a>,
    status: &'static str,
    categories: u64,
    products: u64,
    memberships: u64,
    started_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<CategoryMove>> for MoveView<'a> {
    fn from(moving: &'a Stored<CategoryMove>) -> Self {
        let status = match moving.phase {
            Phase::Copying | Phase::Placing | Phase::Clearing => "moving",
            Phase::Settling | Phase::Checking => "settling",
            Phase::Done => "done",
        };
        Self {
            from: NodeView::from(&moving.from),
            to: NodeView::from(&moving.to),
            status,
            categories: moving.categories,
            products: moving.products,
            memberships: moving.memberships,
            started_at: moving.meta.created_at,
            updated_at: moving.meta.updated_at,
        }
    }
}
