//! Removes the old categories: children before their parents.

use key_schema::category::relocation::{self, CategoryMoveAction};
use key_schema::instant::Instant;
use key_schema::product::CategoryPath;
use table::Backoff;

use crate::relocation::copy::Copied;
use crate::relocation::walk::Children;
use crate::relocation::{Moving, Stop};

/// A category with children that are not yet processed.
struct Open {
    children: Children,
    /// Whether at least one child is kept.
    keeps: bool,
}

impl Open {
    const fn at(path: CategoryPath) -> Self {
        Self { children: Children::of(path), keeps: false }
    }
}

impl Moving<'_> {
    /// Removes the category and all categories below it. If a category cannot move, it is kept
    /// together with its ancestors.
    pub(super) async fn clear_all(&self) -> Result<(), Stop> {
        let mut open = vec![Open::at(self.moving.from.clone())];
        while let Some(last) = open.last_mut() {
            if let Some(node) = last.children.next(self.table).await? {
                match self.moving.destination(&node.path) {
                    Some(_) => open.push(Open::at(node.data.path)),
                    None => last.keeps = true,
                }
                continue;
            }
            let Some(Open { children, keeps }) = open.pop() else { break };
            let stays = if keeps { self.keep(&children.parent).await? } else { !self.clear(&children.parent).await? };
            if let Some(above) = open.last_mut() {
                above.keeps |= stays;
            }
        }
        Ok(())
    }

    /// Removes one category. Returns whether it is gone.
    async fn clear(&self, path: &CategoryPath) -> Result<bool, Stop> {
        let mut backoff = Backoff::new();
        loop {
            let Err(refusals) = self.transact(&relocation::clear(&self.moving, path, Instant::now())?).await? else {
                telemetry::crash_point("catalog.move.cleared");
                return Ok(true);
            };
            match refusals.of(CategoryMoveAction::From) {
                Some(refusal) if refusal.item.is_none() => return Ok(true),
                // A client created or changed the category after the copy, so the category is not
                // marked as moving.
                Some(_) => {
                    let Some(to) = self.moving.destination(path) else { return Ok(false) };
                    if self.copy(path, &to).await? == Copied::Stays {
                        return Ok(false);
                    }
                }
                // The category is marked as moving but has a description, so the table refuses the
                // removal. `keep` sets `moving` to false, and the next attempt then copies the
                // description.
                None => {
                    self.keep(path).await?;
                }
            }
            if !backoff.wait().await {
                self.keep(path).await?;
                return Ok(false);
            }
        }
    }

    /// Sets `moving` to false in a category that is kept. Returns whether the category exists.
    async fn keep(&self, path: &CategoryPath) -> Result<bool, Stop> {
        Ok(self.transact(&relocation::keep(&self.moving, path, Instant::now())?).await?.is_ok())
    }
}
