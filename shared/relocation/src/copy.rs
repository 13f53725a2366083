//! The categories: their successors, and those that come back.

use key_schema::category;
use key_schema::category::relocation::{self, ADDED_AT_ONCE, CategoryMove, Part};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::CategoryPath;
use table::Backoff;

use crate::walk::Walk;
use crate::{Mover, Stop, refusals};

/// After so many categories it is noted how far a walk is that changes nothing by itself.
const NOTED_EVERY: usize = 50;

/// Whether a category has its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    /// It has, or is not there any more.
    Yes,
    /// Something else is said about the successor, so it stays, and what is said about it.
    Stays,
}

impl Mover<'_> {
    /// Gives the category and all below it successors, from the top.
    pub(crate) async fn copy_all(&self, moving: &Stored<CategoryMove>) -> Result<(), Stop> {
        if moving.reached.is_none() {
            self.copy(moving, &moving.from, &moving.to).await?;
        }
        let mut walk = Walk::resumed(self.table, &moving.from, moving.reached.as_ref());
        while let Some(node) = walk.next().await? {
            match moving.destination(&node.path) {
                Some(_) if node.moving => {}
                Some(to) => {
                    self.copy(moving, &node.path, &to).await?;
                }
                // What lies below has no room either.
                None => walk.skip_below(),
            }
        }
        Ok(())
    }

    /// Gives a category its successor, with what is said about it.
    pub(crate) async fn copy(
        &self,
        moving: &Stored<CategoryMove>,
        path: &CategoryPath,
        to: &CategoryPath,
    ) -> Result<Copied, Stop> {
        let mut backoff = Backoff::new();
        loop {
            let about = self.table.get(&relocation::about(path)?).await?;
            let copy = relocation::copy(moving, path, to, about.as_ref(), Instant::now())?;
            let refusals = refusals(self.table.transact(&copy).await)?;
            let refused = |part| refusals.iter().any(|refusal| refusal.label == part);
            if refusals.is_empty() {
                telemetry::crash_point("catalog.move.copied");
            }
            if refusals.is_empty() || refused(Part::From) {
                return Ok(Copied::Yes);
            }
            // Said anew since it was read: that goes along too. Unless it goes on for ever.
            if refused(Part::AboutTo) || !backoff.wait().await {
                tracing::warn!("a category stays where it was: something else is said about its successor");
                return Ok(Copied::Stays);
            }
        }
    }

    /// Adds the categories above those that have come back to the old place. Only below one that has a successor is there anything to be found.
    pub(crate) async fn check_all(&self, moving: &Stored<CategoryMove>) -> Result<(), Stop> {
        if moving.reached.is_none() {
            self.check(moving, &moving.to).await?;
        }
        let mut walk = Walk::resumed(self.table, &moving.to, moving.reached.as_ref());
        let mut seen = 0;
        while let Some(node) = walk.next().await? {
            self.check(moving, &node.path).await?;
            seen += 1;
            if seen % NOTED_EVERY == 0 {
                self.update(relocation::reach(moving, &node.path, Instant::now())?).await?;
            }
        }
        Ok(())
    }

    async fn check(&self, moving: &Stored<CategoryMove>, successor: &CategoryPath) -> Result<(), Stop> {
        let Some(old) = moving.source(successor) else { return Ok(()) };
        let left = self.table.query(&relocation::below(&old, None)?.limit(1)).await?;
        if left.items.is_empty() { Ok(()) } else { self.add_missing(moving, old.lineage().collect()).await }
    }

    /// Adds those of the categories that do not exist.
    pub(crate) async fn add_missing(
        &self,
        moving: &Stored<CategoryMove>,
        paths: Vec<CategoryPath>,
    ) -> Result<(), Stop> {
        let known = self.table.batch_get(&category::known(&paths)?).await?;
        let missing: Vec<&CategoryPath> =
            paths.iter().zip(known).filter(|(_, node)| node.is_none()).map(|(path, _)| path).collect();
        for paths in missing.chunks(ADDED_AT_ONCE) {
            let add = relocation::add(moving, paths.iter().copied(), Instant::now())?;
            refusals(self.table.transact(&add).await)?;
        }
        Ok(())
    }
}
