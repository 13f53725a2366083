//! Decides for each product of an import which write it needs, given the stored product.

use key_schema::item::{Meta, Stored};
use key_schema::product::{CategoryPath, Product};

use super::report::Outcome;

#[derive(Debug)]
pub struct Wanted {
    pub line: usize,
    pub product: Stored<Product>,
    pub stock: u64,
    pub keeps_price: bool,
}

#[derive(Debug)]
pub enum Step {
    Create(Wanted),
    /// Revives a product that was retired when the function read it.
    Revive(Wanted, Box<Stored<Product>>),
    /// Updates the product at this version to match its line.
    Update(Wanted, u64),
}

impl Step {
    pub const fn category(&self) -> &CategoryPath {
        let (Self::Create(wanted) | Self::Revive(wanted, _) | Self::Update(wanted, _)) = self;
        &wanted.product.data.category_path
    }

    pub fn into_wanted(self) -> Wanted {
        let (Self::Create(wanted) | Self::Revive(wanted, _) | Self::Update(wanted, _)) = self;
        wanted
    }
}

#[derive(Debug)]
pub enum Decision {
    /// The product needs a write.
    Do(Step),
    /// The stored product equals its line.
    Settled(Wanted, Outcome),
}

pub fn decide(mut wanted: Wanted, stored: Option<Stored<Product>>) -> Decision {
    if let (true, Some(stored)) = (wanted.keeps_price, &stored) {
        wanted.product.data.price = stored.price;
    }
    match stored {
        None => Decision::Do(Step::Create(wanted)),
        Some(stored) if stored.retired => Decision::Do(Step::Revive(wanted, Box::new(stored))),
        Some(stored) if stored.is_described_as(&wanted.product) => {
            let outcome = equal(&stored.meta, &wanted.product.meta);
            Decision::Settled(wanted, outcome)
        }
        Some(stored) => Decision::Do(Step::Update(wanted, stored.meta.version)),
    }
}

/// Returns the outcome for a product that already equals its line. If the stored birth mark
/// (`born`) or time of update is from this import, this import wrote the product and lost the
/// response.
fn equal(stored: &Meta, ours: &Meta) -> Outcome {
    if stored.born == ours.born {
        Outcome::Created
    } else if stored.updated_at == ours.updated_at {
        Outcome::Updated
    } else {
        Outcome::Unchanged
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use key_schema::id::{Born, ProductId};
    use key_schema::instant::Instant;
    use key_schema::money::{Currency, Money};
    use key_schema::product::Copied;

    use super::*;

    fn wanted() -> Wanted {
        let product = Product::new(
            ProductId::new("p1").unwrap(),
            "Ice".to_owned(),
            "National".to_owned(),
            Money::new(129, Currency::USD),
            CategoryPath::new(vec!["A".to_owned()]).unwrap(),
        );
        Wanted {
            line: 1,
            product: Stored::new(product, Born::new("b1").unwrap(), Instant::EPOCH),
            stock: 7,
            keeps_price: false,
        }
    }

    fn stored(change: impl FnOnce(&mut Stored<Product>)) -> Option<Stored<Product>> {
        let mut stored = wanted().product;
        stored.meta = Meta::new(Born::new("b0").unwrap(), Instant::MIN);
        stored.meta.version = 5;
        change(&mut stored);
        Some(stored)
    }

    #[test]
    fn a_product_is_created_revived_updated_or_left_alone() {
        assert!(matches!(decide(wanted(), None), Decision::Do(Step::Create(_))));
        assert!(matches!(decide(wanted(), stored(|p| p.data.retired = true)), Decision::Do(Step::Revive(_, _))));
        assert!(matches!(decide(wanted(), stored(|p| p.data.price.amount = 1)), Decision::Do(Step::Update(_, 5))));
        assert!(matches!(decide(wanted(), stored(|_| {})), Decision::Settled(_, Outcome::Unchanged)));
        let copied = |p: &mut Stored<Product>| p.data.copied = Copied::of_new(7);
        assert!(
            matches!(decide(wanted(), stored(copied)), Decision::Settled(_, Outcome::Unchanged)),
            "a difference in the derived copies must cause no write"
        );
    }

    #[test]
    fn price_if_new_does_not_change_the_price_of_an_existing_product() {
        let unpriced = || Wanted { keeps_price: true, ..wanted() };
        assert!(matches!(decide(unpriced(), None), Decision::Do(Step::Create(new)) if new.product.price.amount == 129));
        let dear = |p: &mut Stored<Product>| p.data.price.amount = 999;
        assert!(matches!(decide(unpriced(), stored(dear)), Decision::Settled(_, Outcome::Unchanged)));
        for other in [
            stored(|p| (p.data.price.amount, p.data.retired) = (999, true)),
            stored(|p| (p.data.price.amount, p.data.name) = (999, "Snow".to_owned())),
        ] {
            let Decision::Do(step) = decide(unpriced(), other) else { panic!("the product needs no write") };
            assert_eq!(step.into_wanted().product.price.amount, 999);
        }
    }

    #[test]
    fn a_write_whose_response_was_lost_is_reported_as_done() {
        let ours = wanted().product.meta;
        let created = stored(|p| p.meta.born = ours.born.clone());
        assert!(matches!(decide(wanted(), created), Decision::Settled(_, Outcome::Created)));
        let updated = stored(|p| p.meta.updated_at = ours.updated_at);
        assert!(matches!(decide(wanted(), updated), Decision::Settled(_, Outcome::Updated)));
    }
}
