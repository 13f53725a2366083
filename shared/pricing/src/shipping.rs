#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates {
    pub rate: Rate,
    /// The lowest amount of a basket, after discounts, from which shipping is free.
    pub free_from: Option<i64>,
}

/// How the price of shipping is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rate {
    /// One price for every parcel.
    Flat(i64),
    /// Prices up to a weight in grams. A parcel has the price of the lowest limit that it does not
    /// exceed. A parcel over the highest limit cannot be sent.
    ByWeight(Vec<Tier>),
    /// Prices from an amount on. An order has the price of the highest limit that its amount after
    /// discounts reaches. An order below the lowest limit cannot be sent.
    ByAmount(Vec<Tier>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// The limit, in grams or minor units.
    pub limit: i64,
    pub price: i64,
}

impl Rates {
    /// Returns the price of a parcel, or `None` if the method cannot send it.
    #[must_use]
    pub fn price(&self, grams: i64, amount: i64) -> Option<i64> {
        let price = match &self.rate {
            Rate::Flat(price) => Some(*price),
            Rate::ByWeight(tiers) => {
                tiers.iter().filter(|tier| tier.limit >= grams).min_by_key(|tier| tier.limit).map(|tier| tier.price)
            }
            Rate::ByAmount(tiers) => {
                tiers.iter().filter(|tier| tier.limit <= amount).max_by_key(|tier| tier.limit).map(|tier| tier.price)
            }
        }?;
        Some(if self.free_from.is_some_and(|from| amount >= from) { 0 } else { price })
    }
}
