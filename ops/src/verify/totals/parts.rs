use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use key_schema::agent::Agents;
use key_schema::document;
use key_schema::entity::AnyEntity;
use key_schema::id::{Born, ProductId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Item, Stored};
use key_schema::key::KeyError;
use key_schema::like::{COUNTERS, LikeCount};
use key_schema::location::StockLocations;
use key_schema::product::{Product, ProductSales, ReviewStats};
use key_schema::region::{RegionSales, SaleRegion};
use key_schema::variant::Variant;
use key_schema::webhook_endpoint::WebhookEndpoints;

use super::{Facts, HEAD, Says, Scope, product_of};

/// Returns a hash of one text's name and number. A check compares two sets of texts by the sums of
/// these hashes, so it needs constant memory.
pub(super) fn fingerprint(name: &SectionName, number: u64) -> i128 {
    let mut hasher = DefaultHasher::new();
    (name.as_str(), number).hash(&mut hasher);
    i128::from(hasher.finish())
}

/// Returns the sum of the fingerprints of the texts that a version introduced.
pub(super) fn since(sections: &document::Manifest, number: u64) -> i128 {
    sections.iter().filter(|(_, since)| **since == number).map(|(name, _)| fingerprint(name, number)).sum()
}

pub(super) const fn stats(product_id: ProductId, rating_count: u64, rating_sum: u64) -> ReviewStats {
    ReviewStats { product_id, rating_count, rating_sum }
}

pub(super) fn region_total(region: &SaleRegion) -> RegionSales {
    RegionSales {
        country: region.country.clone(),
        city: region.city.clone(),
        store_id: region.store_id.clone(),
        date: region.placed_at.day(),
        currency: region.total.currency,
        orders: 0,
        amount: 0,
        shard: region.shard,
    }
}

/// Adds the facts of a product. A parent has the count of its variants.
pub(super) fn of_product(facts: &mut Facts, item: &Stored<Product>) -> Result<(), KeyError> {
    let key = item.key()?;
    facts.push(Scope::Partition, &key, HEAD, Says::Held(item.meta.rev));
    if let Some(variants) = item.variants {
        facts.is(Scope::Partition, item, &key, &[("variants", variants.into())]);
    }
    Ok(())
}

pub(super) fn of_variant(facts: &mut Facts, item: &Stored<Variant>) -> Result<(), KeyError> {
    let parent = product_of(&item.parent)?;
    facts.under(&parent);
    facts.part(Scope::Partition, &parent, "variants", 1);
    Ok(())
}

/// Returns an empty total for a part, as the item to write if the total does not exist.
pub(in super::super) fn fresh(part: &AnyEntity) -> Option<Item> {
    fn new<T: Entity>(data: T, born: &Born, at: Instant) -> Option<Item> {
        Stored::new(data, born.clone(), at).to_item().ok()
    }
    match part {
        AnyEntity::Review(item) => new(stats(item.product_id.clone(), 0, 0), &item.meta.born, item.meta.updated_at),
        AnyEntity::Like(item) => {
            let shard = COUNTERS.of(item.customer_id.as_str());
            let data = LikeCount { product_id: item.product_id.clone(), shard, likes: 0 };
            new(data, &item.meta.born, item.meta.created_at)
        }
        AnyEntity::Sale(item) => {
            new(ProductSales::none(item.product_id.clone(), 0), &item.meta.born, item.meta.updated_at)
        }
        AnyEntity::Agent(item) => new(Agents { agents: 0 }, &item.meta.born, item.meta.created_at),
        AnyEntity::WebhookEndpoint(item) => {
            new(WebhookEndpoints { endpoints: 0 }, &item.meta.born, item.meta.created_at)
        }
        AnyEntity::StockLocation(item) => new(StockLocations { locations: 0 }, &item.meta.born, item.meta.created_at),
        AnyEntity::SaleRegion(item) => new(region_total(item), &item.meta.born, item.meta.updated_at),
        _ => None,
    }
}
