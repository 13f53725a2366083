//! The selection of the promotions that apply to a basket.

use std::cmp::Reverse;

use crate::arithmetic::sum;
use crate::promotion::{MAX_PROMOTIONS, discounts};
use crate::{Line, PricingError, Promotion, Reduction};

/// The reason why a promotion does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    /// The basket has none of the promotion's lines.
    NoGoods,
    /// The price of the promotion's lines is below its minimum.
    MinimumNotReached,
    /// The promotion would reduce nothing, alone or after the promotions that apply.
    NothingToReduce,
    /// An exclusive promotion applies.
    NotCombinable,
    /// [`MAX_PROMOTIONS`] promotions with higher priorities apply.
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
    pub lines: &'a [Line],
    pub promotions: &'a [Promotion],
    /// The price of each line before discounts.
    pub amounts: &'a [i64],
    /// Returns the price of shipping for an amount after discounts.
    pub shipping: S,
}

impl<S: Fn(i64) -> i64> Basket<'_, S> {
    /// Selects the promotions, at most [`MAX_PROMOTIONS`]. If an exclusive promotion reduces the
    /// price alone, only the first exclusive promotion of this kind applies.
    pub fn select(&self) -> Result<Selection, PricingError> {
        let (mut fitting, mut unused) = (Vec::new(), Vec::new());
        for (at, promotion) in self.promotions.iter().enumerate() {
            match self.misfit(promotion)? {
                Some(reason) => unused.push((at, reason)),
                None => fitting.push((at, promotion)),
            }
        }
        fitting.sort_by_key(|(_, promotion)| Reverse(promotion.priority));
        for exclusive in fitting.iter().filter(|(_, promotion)| promotion.exclusive) {
            let mut alone = self.apply(&[*exclusive])?;
            if alone.applied.is_empty() {
                continue;
            }
            for other in fitting.iter().filter(|(at, _)| *at != exclusive.0) {
                let reason = if self.apply(&[*other])?.applied.is_empty() {
                    Unused::NothingToReduce
                } else {
                    Unused::NotCombinable
                };
                unused.push((other.0, reason));
            }
            alone.unused = unused;
            return Ok(alone);
        }
        let (exclusive, others): (Vec<_>, Vec<_>) = fitting.into_iter().partition(|(_, promotion)| promotion.exclusive);
        let mut selection = self.apply(&others)?;
        selection.unused.extend(exclusive.iter().map(|(at, _)| (*at, Unused::NothingToReduce)));
        selection.unused.append(&mut unused);
        Ok(selection)
    }

    fn misfit(&self, promotion: &Promotion) -> Result<Option<Unused>, PricingError> {
        let own: Vec<i64> = promotion.lines.iter().filter_map(|at| self.amounts.get(*at)).copied().collect();
        Ok(if own.is_empty() {
            Some(Unused::NoGoods)
        } else if sum(own)? < promotion.min_amount.unwrap_or_default() {
            Some(Unused::MinimumNotReached)
        } else {
            None
        })
    }

    /// Applies promotions in their sequence, and leaves out those that reduce nothing.
    ///
    /// The price of shipping depends on all discounts. So a promotion for free shipping first takes
    /// its place. If shipping then costs nothing, the next round leaves the promotion out.
    fn apply(&self, candidates: &[(usize, &Promotion)]) -> Result<Selection, PricingError> {
        let mut useless = Vec::new();
        loop {
            let mut selection = Selection { applied: Vec::new(), unused: Vec::new(), left: self.amounts.to_vec() };
            for (at, promotion) in candidates {
                let frees_shipping = promotion.reduction == Reduction::FreeShipping;
                let discounts = discounts(promotion, self.lines, &selection.left)?;
                let reduces = if frees_shipping {
                    selection.frees_shipping().is_none() && !useless.contains(at)
                } else {
                    discounts.iter().any(|discount| *discount > 0)
                };
                if !reduces {
                    selection.unused.push((*at, Unused::NothingToReduce));
                } else if selection.applied.len() == MAX_PROMOTIONS {
                    selection.unused.push((*at, Unused::TooMany));
                } else {
                    for (left, discount) in selection.left.iter_mut().zip(&discounts) {
                        *left -= discount;
                    }
                    selection.applied.push(Applied { promotion: *at, discounts, frees_shipping });
                }
            }
            let is_free = (self.shipping)(sum(selection.left.iter().copied())?) == 0;
            let frees_shipping = |(at, promotion): &&(usize, &Promotion)| {
                promotion.reduction == Reduction::FreeShipping && !useless.contains(at)
            };
            match candidates.iter().find(frees_shipping).filter(|_| is_free) {
                Some((at, _)) => useless.push(*at),
                None => return Ok(selection),
            }
        }
    }
}
