use std::collections::BTreeMap;

use key_schema::entity::AnyEntity;
use key_schema::id::LocationId;
use key_schema::item::Stored;
use key_schema::membership::Membership;
use key_schema::product::{Product, ReviewStats, Stock};

use super::compare::Compared;

/// Products with the values that were copied onto them, and the items from which they were copied.
#[derive(Default)]
pub(super) struct Copies {
    products: BTreeMap<String, Stored<Product>>,
    stocks: BTreeMap<String, Stock>,
    ratings: BTreeMap<String, ReviewStats>,
    memberships: Vec<Membership>,
}

impl Copies {
    pub(super) fn enter(&mut self, entity: AnyEntity) {
        match entity {
            AnyEntity::Product(product) => drop(self.products.insert(product.id.to_string(), product)),
            AnyEntity::Stock(stock) if stock.location != LocationId::main() => {}
            AnyEntity::Stock(stock) => {
                let id = stock.product_id.to_string();
                // All shards have the same state, apart from their pieces.
                let whole = self.stocks.entry(id).or_insert_with(|| Stock { available: 0, ..stock.data.clone() });
                whole.available += stock.available;
            }
            AnyEntity::ReviewStats(stats) => drop(self.ratings.insert(stats.product_id.to_string(), stats.data)),
            AnyEntity::Membership(member) => self.memberships.push(member.data),
            _ => {}
        }
    }

    pub(super) fn check(&self, compared: &mut Compared) {
        let wrong = |differs: &dyn Fn(&str, &Product) -> bool| -> Vec<String> {
            let wrong = self.products.iter().filter(|(id, product)| differs(id, product));
            wrong.map(|(id, _)| id.clone()).collect()
        };
        let in_stock = |id: &str, product: &Product| {
            self.stocks.get(id).is_some_and(|stock| stock.in_stock() != product.copied.in_stock)
        };
        let rating = |id: &str, product: &Product| {
            let source = self.ratings.get(id).map_or((0, 0), |stats| (stats.rating_count, stats.rating_sum));
            source != (product.copied.rating_count, product.copied.rating_sum)
        };
        compared.differences.add("products with a wrong copy of the stock level", wrong(&in_stock));
        compared.differences.add("products with a wrong copy of the rating", wrong(&rating));
        let members = self
            .memberships
            .iter()
            .filter(|member| self.products.get(member.id.as_str()).is_none_or(|of| !shows(member, of)));
        compared.differences.add(
            "wrong copies in further categories",
            members.map(|member| format!("{} in {}", member.id, member.path)),
        );
        compared.copies = 2 * self.products.len() + self.memberships.len();
    }
}

/// Returns whether the membership's copied values equal the product's.
fn shows(member: &Membership, product: &Product) -> bool {
    let Membership { retired, thumbnail, category_path, name, brand, package_size, price, .. } = member;
    (retired, thumbnail, category_path, name, brand, package_size, price)
        == (
            &product.retired,
            &product.thumbnail,
            &product.category_path,
            &product.name,
            &product.brand,
            &product.package_size,
            &product.price,
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use key_schema::id::Born;
    use key_schema::money::{Currency, Money};
    use key_schema::product::{CategoryPath, Copied};

    use super::*;

    fn stored<T: key_schema::item::Entity>(data: T) -> Stored<T> {
        Stored::new(data, Born::new("b1").unwrap(), "2017-01-01T00:00:00.000Z".parse().unwrap())
    }

    fn product() -> Product {
        Product {
            copied: Copied { in_stock: true, rating_count: 1, rating_sum: 5, ..Copied::default() },
            ..Product::new(
                "p1".parse().unwrap(),
                "Ice".into(),
                "Private".into(),
                Money::new(129, Currency::USD),
                CategoryPath::new(vec!["GROCERY".into()]).unwrap(),
            )
        }
    }

    fn differences(change: impl FnOnce(&mut Product)) -> usize {
        let Product { id, category_path, retired, thumbnail, name, brand, package_size, price, .. } = product();
        let path = CategoryPath::new(vec!["PARTY".into()]).unwrap();
        let member = Membership {
            id: id.clone(),
            path,
            retired,
            source_rev: 1,
            thumbnail,
            category_path,
            name,
            brand,
            package_size,
            price,
        };
        let stock = Stock::new(id.clone(), 4);
        let mut product = product();
        change(&mut product);
        let (mut copies, mut compared) = (Copies::default(), Compared::default());
        copies.enter(AnyEntity::Membership(stored(member)));
        copies.enter(AnyEntity::Stock(stored(stock)));
        copies.enter(AnyEntity::ReviewStats(stored(ReviewStats { product_id: id, rating_count: 1, rating_sum: 5 })));
        copies.enter(AnyEntity::Product(stored(product)));
        copies.check(&mut compared);
        compared.differences.len()
    }

    #[test]
    fn a_copy_that_differs_from_its_source_is_counted() {
        assert_eq!(differences(|_| {}), 0);
        assert_eq!(differences(|product| product.copied.in_stock = false), 1);
        assert_eq!(differences(|product| product.copied.rating_sum = 4), 1);
        assert_eq!(differences(|product| product.copied.rating_count = 0), 1);
        assert_eq!(differences(|product| product.name = "Crushed ice".into()), 1);
        assert_eq!(differences(|product| product.retired = true), 1);
    }
}
