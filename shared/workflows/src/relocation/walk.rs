//! Walks through the categories below one category: parents before their children, children by
//! name.

use std::collections::VecDeque;

use key_schema::category::CategoryNode;
use key_schema::category::relocation;
use key_schema::item::Stored;
use key_schema::product::CategoryPath;
use table::Table;

use crate::relocation::RelocationError;

const PAGE: usize = 100;

#[derive(Debug)]
pub(crate) struct Children {
    pub(crate) parent: CategoryPath,
    page: VecDeque<Stored<CategoryNode>>,
    last: Option<CategoryPath>,
    more: bool,
}

impl Children {
    pub(crate) const fn of(parent: CategoryPath) -> Self {
        Self { parent, page: VecDeque::new(), last: None, more: true }
    }

    fn behind(parent: CategoryPath, last: CategoryPath) -> Self {
        Self { last: Some(last), ..Self::of(parent) }
    }

    pub(super) async fn next(&mut self, table: &Table) -> Result<Option<Stored<CategoryNode>>, RelocationError> {
        if self.page.is_empty() && self.more {
            let page = table.query(&relocation::below(&self.parent, self.last.as_ref())?.limit(PAGE)).await?;
            self.more = page.next.is_some();
            self.page = page.items.into();
            self.last = self.page.back().map(|node| node.path.clone());
        }
        Ok(self.page.pop_front())
    }
}

/// A walk through the categories below one category: parents before their children, children by
/// name. One request reads at most 100 children of one category.
#[derive(Debug)]
pub struct Walk<'a> {
    table: &'a Table,
    open: Vec<Children>,
}

impl<'a> Walk<'a> {
    /// Starts a walk below `root`.
    #[must_use]
    pub fn below(table: &'a Table, root: &CategoryPath) -> Self {
        Self { table, open: vec![Children::of(root.clone())] }
    }

    /// Resumes a walk below `root` after `reached`, the last category of an earlier walk. Starts a
    /// new walk if `reached` is not below `root`.
    #[must_use]
    pub fn resumed(table: &'a Table, root: &CategoryPath, reached: Option<&CategoryPath>) -> Self {
        let Some(reached) = reached.filter(|reached| reached.is_within(root)) else { return Self::below(table, root) };
        let mut open = Vec::new();
        let mut parent = root.clone();
        for path in reached.lineage().skip(root.names().len()) {
            open.push(Children::behind(parent, path.clone()));
            parent = path;
        }
        open.push(Children::of(parent));
        Self { table, open }
    }

    pub async fn next(&mut self) -> Result<Option<Stored<CategoryNode>>, RelocationError> {
        while let Some(children) = self.open.last_mut() {
            if let Some(node) = children.next(self.table).await? {
                self.open.push(Children::of(node.path.clone()));
                return Ok(Some(node));
            }
            self.open.pop();
        }
        Ok(None)
    }

    /// Skips the subcategories of the last returned category.
    pub(super) fn skip_below(&mut self) {
        self.open.pop();
    }
}
