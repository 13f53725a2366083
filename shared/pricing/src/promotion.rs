use crate::arithmetic::{part, spread, sum};
use crate::{Line, PricingError, WHOLE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// A part of the price of the promotion's lines, in basis points: 1,250 is 12.5 %.
    Percentage(u32),
    /// An amount, at most the price of the promotion's lines.
    Amount(i64),
    /// For every `buy + get` pieces of the promotion's lines, `get` pieces are free. The cheapest
    /// pieces of these lines are free.
    BuyGet {
        /// The number of pieces that are paid for.
        buy: u64,
        /// The number of pieces that are free.
        get: u64,
    },
    FreeShipping,
}

/// A promotion that the customer may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    pub reduction: Reduction,
    /// The positions of the lines that the promotion reduces. Free shipping reduces no line, but
    /// the price of these lines must reach its `min_amount`.
    pub lines: Vec<usize>,
    /// The minimum price of the promotion's lines before all discounts.
    pub min_amount: Option<i64>,
    /// Whether the promotion excludes all others.
    pub exclusive: bool,
    /// The rank. Promotions with a higher priority are applied first. Promotions with the same
    /// priority are applied in their order in the list.
    pub priority: i64,
}

pub const MAX_PROMOTIONS: usize = 5;

/// Returns the discount of each line of a basket. `left` is the price of each line after the
/// earlier promotions.
pub(crate) fn discounts(promotion: &Promotion, lines: &[Line], left: &[i64]) -> Result<Vec<i64>, PricingError> {
    let is_reduced = |at: usize| promotion.lines.contains(&at);
    let weights: Vec<i64> = left.iter().enumerate().map(|(at, left)| if is_reduced(at) { *left } else { 0 }).collect();
    let whole = sum(weights.iter().copied())?;
    match promotion.reduction {
        Reduction::Percentage(basis_points) => {
            spread(part(whole, u64::from(basis_points.min(WHOLE)), u64::from(WHOLE))?, &weights)
        }
        Reduction::Amount(amount) => spread(amount.min(whole), &weights),
        Reduction::BuyGet { buy, get } => free_pieces(buy, get, lines, &weights),
        Reduction::FreeShipping => Ok(vec![0; left.len()]),
    }
}

/// Returns the price of the free pieces of each line. Earlier discounts of a line are spread evenly
/// over its pieces. The cheapest pieces are those with the lowest price after these discounts.
fn free_pieces(buy: u64, get: u64, lines: &[Line], left: &[i64]) -> Result<Vec<i64>, PricingError> {
    let mut reduced: Vec<_> = lines.iter().zip(left).enumerate().filter(|(_, (_, left))| **left > 0).collect();
    let pieces = reduced.iter().map(|(_, (line, _))| line.quantity);
    let pieces = pieces.fold(0_u64, u64::saturating_add);
    let mut free = pieces.checked_div(buy.saturating_add(get)).unwrap_or_default().saturating_mul(get);
    // Sorts the lines by the price of one piece, without a division.
    let times = |amount: i64, quantity: u64| i128::from(amount) * i128::from(quantity);
    reduced.sort_by(|(_, (a, of_a)), (_, (b, of_b))| times(**of_a, b.quantity).cmp(&times(**of_b, a.quantity)));
    let mut discounts = vec![0; left.len()];
    for (at, (line, left)) in reduced {
        let of_line = free.min(line.quantity);
        free -= of_line;
        if let Some(discount) = discounts.get_mut(at) {
            *discount = part(*left, of_line, line.quantity)?;
        }
    }
    Ok(discounts)
}
