//! Creates, below the new path, the successors of the moved categories. Also creates the missing
//! ancestors of categories that clients created again below the old path.

use key_schema::category;
use key_schema::category::relocation::{self, ADDED_AT_ONCE, CategoryMoveAction};
use key_schema::instant::Instant;
use key_schema::product::CategoryPath;
use table::Backoff;

use crate::relocation::walk::Walk;
use crate::relocation::{Moving, Stop};

/// The number of checked categories after which the check records its progress.
const NOTED_EVERY: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    /// The category has a successor, or no longer exists.
    Yes,
    /// The successor has another description, or clients kept changing the category's description.
    /// The category stays at its path.
    Stays,
}

impl Moving<'_> {
    /// Creates the successors of the category and of all categories below it, from the top down.
    pub(super) async fn copy_all(&self) -> Result<(), Stop> {
        if self.moving.reached.is_none() {
            self.copy(&self.moving.from, &self.moving.to).await?;
        }
        let mut walk = Walk::resumed(self.table, &self.moving.from, self.moving.reached.as_ref());
        while let Some(node) = walk.next().await? {
            match self.moving.destination(&node.path) {
                Some(_) if node.moving => {}
                Some(to) => {
                    self.copy(&node.path, &to).await?;
                }
                // There is no destination, because the path would be too deep or too long. The
                // subcategories have no destination either.
                None => walk.skip_below(),
            }
        }
        Ok(())
    }

    /// Creates a category's successor with the same description.
    pub(super) async fn copy(&self, path: &CategoryPath, to: &CategoryPath) -> Result<Copied, Stop> {
        let mut backoff = Backoff::new();
        loop {
            let about = self.table.get(&relocation::about(path)?).await?;
            let copy = relocation::copy(&self.moving, path, to, about.as_ref(), Instant::now())?;
            let Err(refusals) = self.transact(&copy).await? else {
                telemetry::crash_point("catalog.move.copied");
                return Ok(Copied::Yes);
            };
            if refusals.names(CategoryMoveAction::From) {
                return Ok(Copied::Yes);
            }
            // If `AboutTo` is not refused, a client changed the description after it was read. Then
            // the loop reads and copies the description again, a limited number of times.
            if refusals.names(CategoryMoveAction::AboutTo) || !backoff.wait().await {
                tracing::warn!("a category was not moved: its new path has another description");
                return Ok(Copied::Stays);
            }
        }
    }

    /// Adds the missing ancestors of categories that clients created again below the old path.
    /// Clients can create such categories only below a category with a successor, so this method
    /// checks the old path of every successor.
    pub(super) async fn check_all(&self) -> Result<(), Stop> {
        if self.moving.reached.is_none() {
            self.check(&self.moving.to).await?;
        }
        let mut walk = Walk::resumed(self.table, &self.moving.to, self.moving.reached.as_ref());
        let mut seen = 0;
        while let Some(node) = walk.next().await? {
            self.check(&node.path).await?;
            seen += 1;
            if seen % NOTED_EVERY == 0 {
                self.update(relocation::reach(&self.moving, &node.path, Instant::now())?).await?;
            }
        }
        Ok(())
    }

    async fn check(&self, successor: &CategoryPath) -> Result<(), Stop> {
        let Some(old) = self.moving.source(successor) else { return Ok(()) };
        let left = self.table.query(&relocation::below(&old, None)?.limit(1)).await?;
        if left.items.is_empty() { Ok(()) } else { self.add_missing(old.lineage().collect()).await }
    }

    /// Adds those of the given categories that do not exist.
    pub(super) async fn add_missing(&self, paths: Vec<CategoryPath>) -> Result<(), Stop> {
        let known = self.table.batch_get(&category::known(&paths)?).await?;
        let missing: Vec<&CategoryPath> =
            paths.iter().zip(known).filter(|(_, node)| node.is_none()).map(|(path, _)| path).collect();
        for paths in missing.chunks(ADDED_AT_ONCE) {
            let add = relocation::add(&self.moving, paths.iter().copied(), Instant::now())?;
            let _ = self.transact(&add).await?;
        }
        Ok(())
    }
}
