//! Promotions: the selection of those that apply to a basket, and their discounts.

use std::cmp::Reverse;

use key_schema::money::{Currency, Money};
use key_schema::promotion::{MAX_APPLIED, Promotion, Reduction};

use crate::arithmetic::{part, spread, sum};
use crate::{Line, PricingError, WHOLE};

/// The reason why a promotion does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    /// The promotion has amounts in another currency than the basket.
    OtherCurrency,
    /// The basket has none of the promotion's lines.
    NoGoods,
    /// The price of the promotion's lines is below its minimum.
    MinimumNotReached,
    /// The promotion would reduce nothing, alone or after the promotions that apply.
    NothingToReduce,
    /// An exclusive promotion applies.
    NotCombinable,
    /// [`MAX_APPLIED`] promotions with higher priorities apply.
    TooMany,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The position of the promotion.
    pub promotion: usize,
    pub discounts: Vec<i64>,
    pub frees_shipping: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The promotions that apply, in the sequence in which they are applied.
    pub applied: Vec<Applied>,
    /// The other promotions.
    pub unused: Vec<(usize, Unused)>,
    /// The price of each line after discounts.
    pub left: Vec<i64>,
}

impl Selection {
    pub fn frees_shipping(&self) -> Option<usize> {
        self.applied.iter().find(|applied| applied.frees_shipping).map(|applied| applied.promotion)
    }
}

/// A basket before the selection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basket<'a, S> {
    pub lines: &'a [Line<'a>],
    pub currency: Currency,
    pub promotions: &'a [&'a Promotion],
    /// The price of each line before discounts.
    pub amounts: &'a [i64],
    /// Returns the price of shipping for an amount after discounts.
    pub shipping: S,
}

/// A promotion that fits the basket.
#[derive(Debug, Clone)]
struct Fitting<'a> {
    /// The position of the promotion.
    at: usize,
    promotion: &'a Promotion,
    /// Whether the promotion reduces the line, for each line.
    included: Vec<bool>,
}

impl<S: Fn(i64) -> i64> Basket<'_, S> {
    /// Selects the promotions, at most [`MAX_APPLIED`]. If an exclusive promotion reduces the
    /// price alone, only the first exclusive promotion of this kind applies.
    pub fn select(&self) -> Result<Selection, PricingError> {
        let (mut fitting, mut unused) = (Vec::new(), Vec::new());
        for (at, promotion) in self.promotions.iter().enumerate() {
            let included: Vec<bool> =
                self.lines.iter().map(|line| promotion.applies_to.include(line.product)).collect();
            match self.misfit(promotion, &included)? {
                Some(reason) => unused.push((at, reason)),
                None => fitting.push(Fitting { at, promotion, included }),
            }
        }
        fitting.sort_by_key(|fitting| Reverse(fitting.promotion.priority));
        for exclusive in fitting.iter().filter(|fitting| fitting.promotion.exclusive) {
            let mut alone = self.apply(std::slice::from_ref(exclusive))?;
            if alone.applied.is_empty() {
                continue;
            }
            for other in fitting.iter().filter(|other| other.at != exclusive.at) {
                let reason = if self.apply(std::slice::from_ref(other))?.applied.is_empty() {
                    Unused::NothingToReduce
                } else {
                    Unused::NotCombinable
                };
                unused.push((other.at, reason));
            }
            alone.unused = unused;
            return Ok(alone);
        }
        let (exclusive, others): (Vec<_>, Vec<_>) =
            fitting.into_iter().partition(|fitting| fitting.promotion.exclusive);
        let mut selection = self.apply(&others)?;
        selection.unused.extend(exclusive.iter().map(|exclusive| (exclusive.at, Unused::NothingToReduce)));
        selection.unused.append(&mut unused);
        Ok(selection)
    }

    fn misfit(&self, promotion: &Promotion, included: &[bool]) -> Result<Option<Unused>, PricingError> {
        let minimum = promotion.conditions.min_amount;
        let is_foreign = |money: &Money| money.currency != self.currency;
        let has_foreign = minimum.as_ref().is_some_and(is_foreign)
            || matches!(&promotion.reduction, Reduction::Amount(amount) if is_foreign(amount));
        let own = self.amounts.iter().zip(included).filter(|(_, is_included)| **is_included).map(|(amount, _)| *amount);
        Ok(if has_foreign {
            Some(Unused::OtherCurrency)
        } else if !included.contains(&true) {
            Some(Unused::NoGoods)
        } else if sum(own)? < minimum.map_or(0, |minimum| minimum.amount) {
            Some(Unused::MinimumNotReached)
        } else {
            None
        })
    }

    /// Applies promotions in their sequence, and leaves out those that reduce nothing.
    ///
    /// The price of shipping depends on all discounts. So a promotion for free shipping first takes
    /// its place. If shipping then costs nothing, the next round leaves the promotion out.
    fn apply(&self, candidates: &[Fitting<'_>]) -> Result<Selection, PricingError> {
        let mut useless = Vec::new();
        loop {
            let mut selection = Selection { applied: Vec::new(), unused: Vec::new(), left: self.amounts.to_vec() };
            for Fitting { at, promotion, included } in candidates {
                let frees_shipping = promotion.reduction == Reduction::FreeShipping;
                let discounts = discounts(promotion, included, self.lines, &selection.left)?;
                let reduces = if frees_shipping {
                    selection.frees_shipping().is_none() && !useless.contains(at)
                } else {
                    discounts.iter().any(|discount| *discount > 0)
                };
                if !reduces {
                    selection.unused.push((*at, Unused::NothingToReduce));
                } else if selection.applied.len() == MAX_APPLIED {
                    selection.unused.push((*at, Unused::TooMany));
                } else {
                    for (left, discount) in selection.left.iter_mut().zip(&discounts) {
                        *left -= discount;
                    }
                    selection.applied.push(Applied { promotion: *at, discounts, frees_shipping });
                }
            }
            let is_free = (self.shipping)(sum(selection.left.iter().copied())?) == 0;
            let frees_shipping = |fitting: &&Fitting<'_>| {
                fitting.promotion.reduction == Reduction::FreeShipping && !useless.contains(&fitting.at)
            };
            match candidates.iter().find(frees_shipping).filter(|_| is_free) {
                Some(fitting) => useless.push(fitting.at),
                None => return Ok(selection),
            }
        }
    }
}

/// Returns the discount of each line of a basket. `left` is the price of each line after the
/// earlier promotions, and `included` says which lines the promotion reduces.
fn discounts(
    promotion: &Promotion,
    included: &[bool],
    lines: &[Line<'_>],
    left: &[i64],
) -> Result<Vec<i64>, PricingError> {
    let weights: Vec<i64> = left.iter().zip(included).map(|(left, is_reduced)| i64::from(*is_reduced) * left).collect();
    let whole = sum(weights.iter().copied())?;
    match &promotion.reduction {
        Reduction::Percentage(basis_points) => {
            spread(part(whole, u64::from((*basis_points).min(WHOLE)), u64::from(WHOLE))?, &weights)
        }
        Reduction::Amount(money) => spread(money.amount.min(whole), &weights),
        Reduction::BuyXGetY { buy, get } => free_pieces(*buy, *get, lines, &weights),
        Reduction::FreeShipping => Ok(vec![0; left.len()]),
    }
}

/// Returns the price of the free pieces of each line. Earlier discounts of a line are spread evenly
/// over its pieces. The cheapest pieces are those with the lowest price after these discounts.
fn free_pieces(buy: u64, get: u64, lines: &[Line<'_>], left: &[i64]) -> Result<Vec<i64>, PricingError> {
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
