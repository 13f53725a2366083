//! Moves the products and their memberships.

use std::collections::BTreeSet;

use key_schema::category::relocation::{self, CategoryMoveAction, MOVED_AT_ONCE};
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::membership::CategorizedItem;
use key_schema::membership::ProductCategories;
use key_schema::product::{CategoryPath, Product};
use table::TableError;

use crate::relocation::{Moving, RelocationError, Stop};

/// The number of entries that one request reads from the list of products. One product may have
/// several entries.
const PAGE: usize = 100;

type ProductMove<'a> = (&'a Stored<Product>, CategoryPath);

impl Moving<'_> {
    /// Moves all products and memberships in the category and below it. Repeats until a complete
    /// pass over the list of products finds nothing to move.
    pub(super) async fn move_all(&self) -> Result<(), Stop> {
        while self.pass().await? {}
        Ok(())
    }

    /// Makes one pass over the list of products. Returns whether there was anything to move.
    async fn pass(&self) -> Result<bool, Stop> {
        let (mut found, mut after) = (false, None);
        loop {
            let page = self.table.query(&relocation::listed(&self.moving.from)?.limit(PAGE).after(after)).await?;
            let ids: BTreeSet<ProductId> = page.items.into_iter().map(|listed| listed.id).collect();
            found |= !ids.is_empty() && self.move_page(&ids).await?;
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Moves the products that are still at or below the old path. The list that gave the `ids` is
    /// an index and may be outdated, so this method reads the products.
    async fn move_page(&self, ids: &BTreeSet<ProductId>) -> Result<bool, Stop> {
        let items = self.table.batch_get(&relocation::read(ids)?).await?;
        let (mut moves, mut members, mut new) = (Vec::<ProductMove<'_>>::new(), Vec::new(), BTreeSet::new());
        for pair in items.chunks(2) {
            let [Some(CategorizedItem::Product(product)), further] = pair else { continue };
            if product.retired {
                continue;
            }
            let destination = self.moving.destination(&product.category_path);
            new.extend(destination.clone());
            match further {
                Some(CategorizedItem::ProductCategories(further))
                    if further.paths.iter().any(|path| self.moving.destination(path).is_some()) =>
                {
                    new.extend(further.paths.iter().filter_map(|path| self.moving.destination(path)));
                    members.push((product, further));
                }
                _ => moves.extend(destination.map(|to| (product, to))),
            }
        }
        if moves.is_empty() && members.is_empty() {
            return Ok(false);
        }
        // A category that was created after the copies were made has no successor yet.
        let new: BTreeSet<CategoryPath> = new.iter().flat_map(CategoryPath::lineage).collect();
        self.add_missing(new.into_iter().filter(|path| path.is_within(&self.moving.to)).collect()).await?;
        for (product, further) in members {
            self.transfer(product, further).await?;
        }
        for moves in moves.chunks(MOVED_AT_ONCE) {
            self.move_products(moves).await?;
        }
        Ok(true)
    }

    /// Moves a product's memberships, and also the product itself if it is at or below the old
    /// path. If the product has changed since it was read, the next pass moves it.
    async fn transfer(&self, product: &Stored<Product>, further: &Stored<ProductCategories>) -> Result<(), Stop> {
        if let Some(transfer) = relocation::transfer(&self.moving, product, further, Instant::now())?
            && self.transact(&transfer).await?.is_ok()
        {
            telemetry::crash_point("catalog.move.transferred");
        }
        Ok(())
    }

    /// Moves several products with one transaction. If a product has changed since it was read, the
    /// next pass moves it. A group with repeated conflicts is split into smaller groups.
    async fn move_products(&self, moves: &[ProductMove<'_>]) -> Result<(), Stop> {
        let mut groups = vec![moves.to_vec()];
        while let Some(mut group) = groups.pop() {
            let transaction = relocation::move_products(&self.moving, &group, Instant::now())?;
            let refusals = match self.transact(&transaction).await {
                Ok(Ok(())) => {
                    telemetry::crash_point("catalog.move.placed");
                    continue;
                }
                Ok(Err(refusals)) => refusals,
                Err(Stop::Failed(RelocationError::Table(TableError::Contended))) => {
                    if group.len() > 1 {
                        groups.push(group.split_off(group.len() / 2));
                        groups.push(group);
                    }
                    continue;
                }
                Err(stop) => return Err(stop),
            };
            let whole = group.len();
            let is_kept = |position: usize| !refusals.names(CategoryMoveAction::Product(position));
            let kept = group.into_iter().enumerate().filter(|(position, _)| is_kept(*position));
            let rest: Vec<ProductMove<'_>> = kept.map(|(_, product)| product).collect();
            if !rest.is_empty() && rest.len() < whole {
                groups.push(rest);
            }
        }
        Ok(())
    }
}
