//! Moves the products and their memberships.

use std::collections::BTreeSet;

use key_schema::category::relocation::{self, CategoryMove, CategoryMoveAction, PLACED_AT_ONCE};
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::membership::PlacedItem;
use key_schema::membership::ProductCategories;
use key_schema::product::{CategoryPath, Product};
use table::TableError;

use crate::relocation::{Mover, RelocationError, Stop};

/// The number of entries that one request reads from the list of products. One product may have
/// several entries.
const PAGE: usize = 100;

type ProductMove<'a> = (&'a Stored<Product>, CategoryPath);

impl Mover<'_> {
    /// Moves all products and memberships in the category and below it. Repeats until a complete
    /// pass over the list of products finds nothing to move.
    pub(super) async fn place_all(&self, moving: &Stored<CategoryMove>) -> Result<(), Stop> {
        while self.pass(moving).await? {}
        Ok(())
    }

    /// Makes one pass over the list of products. Returns whether there was anything to move.
    async fn pass(&self, moving: &Stored<CategoryMove>) -> Result<bool, Stop> {
        let (mut found, mut after) = (false, None);
        loop {
            let page = self.table.query(&relocation::listed(&moving.from)?.limit(PAGE).after(after)).await?;
            let ids: BTreeSet<ProductId> = page.items.into_iter().map(|listed| listed.id).collect();
            found |= !ids.is_empty() && self.place_page(moving, &ids).await?;
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Moves the products that are still at or below the old path. The list that gave the `ids` is
    /// an index and may be outdated, so this method reads the products.
    async fn place_page(&self, moving: &Stored<CategoryMove>, ids: &BTreeSet<ProductId>) -> Result<bool, Stop> {
        let items = self.table.batch_get(&relocation::read(ids)?).await?;
        let (mut places, mut members, mut new) = (Vec::<ProductMove<'_>>::new(), Vec::new(), BTreeSet::new());
        for pair in items.chunks(2) {
            let [Some(PlacedItem::Product(product)), further] = pair else { continue };
            if product.retired {
                continue;
            }
            let place = moving.destination(&product.category_path);
            new.extend(place.clone());
            match further {
                Some(PlacedItem::ProductCategories(further))
                    if further.paths.iter().any(|path| moving.destination(path).is_some()) =>
                {
                    new.extend(further.paths.iter().filter_map(|path| moving.destination(path)));
                    members.push((product, further));
                }
                _ => places.extend(place.map(|to| (product, to))),
            }
        }
        if places.is_empty() && members.is_empty() {
            return Ok(false);
        }
        // A category that was created after the copies were made has no successor yet.
        let new: BTreeSet<CategoryPath> = new.iter().flat_map(CategoryPath::lineage).collect();
        self.add_missing(moving, new.into_iter().filter(|path| path.is_within(&moving.to)).collect()).await?;
        for (product, further) in members {
            self.transfer(moving, product, further).await?;
        }
        for places in places.chunks(PLACED_AT_ONCE) {
            self.place(moving, places).await?;
        }
        Ok(true)
    }

    /// Moves a product's memberships, and also the product itself if it is at or below the old
    /// path. If the product has changed since it was read, the next pass moves it.
    async fn transfer(
        &self,
        moving: &Stored<CategoryMove>,
        product: &Stored<Product>,
        further: &Stored<ProductCategories>,
    ) -> Result<(), Stop> {
        if let Some(transfer) = relocation::transfer(moving, product, further, Instant::now())?
            && self.transact(&transfer).await?.is_ok()
        {
            telemetry::crash_point("catalog.move.transferred");
        }
        Ok(())
    }

    /// Moves several products with one transaction. If a product has changed since it was read, the
    /// next pass moves it. A group with repeated conflicts is split into smaller groups.
    async fn place(&self, moving: &Stored<CategoryMove>, places: &[ProductMove<'_>]) -> Result<(), Stop> {
        let mut groups = vec![places.to_vec()];
        while let Some(mut group) = groups.pop() {
            let place = relocation::place(moving, &group, Instant::now())?;
            let refusals = match self.transact(&place).await {
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
            let rest: Vec<ProductMove<'_>> = kept.map(|(_, place)| place).collect();
            if !rest.is_empty() && rest.len() < whole {
                groups.push(rest);
            }
        }
        Ok(())
    }
}
