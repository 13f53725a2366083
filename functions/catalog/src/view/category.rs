use http_api::contract::Schema;
use http_api::contract::rules::{Text, VERSION, one_of, text};
use key_schema::category::relocation::{CategoryMove, Phase};
use key_schema::category::{CategoryAbout, CategoryNode};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::CategoryPath;
use serde::Serialize;

pub const TITLE: Text = text(1..=200);
pub const DESCRIPTION: Text = text(1..=2000);

#[derive(Debug, Serialize, Schema)]
pub struct CategoryView<'a> {
    #[serde(flatten)]
    node: NodeView<'a>,
    /// The title that a page shows instead of the name.
    #[field(rule = TITLE, example = "Ice")]
    title: Option<&'a str>,
    #[field(rule = DESCRIPTION, example = null)]
    description: Option<&'a str>,
    #[field(rule = VERSION)]
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

#[derive(Debug, Serialize, Schema)]
#[schema(name = "CategoryNode", page = "CategoryPage")]
pub struct NodeView<'a> {
    /// The category's id in a URL.
    #[field(example = "GROCERY~FRZN_20ICE")]
    id: String,
    path: &'a CategoryPath,
    /// The last name of the path.
    #[field(example = "FRZN ICE")]
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

#[derive(Debug, Serialize, Schema)]
#[schema(name = "CategoryMove")]
pub struct MoveView<'a> {
    from: NodeView<'a>,
    #[field(example = {"id": "FROZEN~ICE", "path": ["FROZEN", "ICE"], "name": "ICE"})]
    to: NodeView<'a>,
    /// `settling`: everything is at the new path. Earlier requests may still write to the old path,
    /// so the move waits as long as such a request may run.
    #[field(rule = one_of(&["moving", "settling", "done"]), example = "settling")]
    status: &'static str,
    /// The number of categories at the new path.
    #[field(example = 3)]
    categories: u64,
    /// The number of moved products. A product that returns to the old path and moves again counts
    /// twice.
    #[field(example = 41)]
    products: u64,
    /// The number of moved memberships of products in further categories.
    #[field(example = 2)]
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
