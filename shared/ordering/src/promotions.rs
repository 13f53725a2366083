//! The promotions that a customer may use: the automatic ones, and those of the codes that the
//! customer entered.
//!
//! This module checks the conditions that do not depend on the goods of the cart. [`crate::price`]
//! then checks the other conditions. The transaction of the order counts the uses, so the limits
//! hold although the counts that this module reads may be out of date.

use std::collections::HashMap;

use ::pricing::Unused;
use http_api::contract::rules::{ListOf, Named, Text, list_of, named, visible_text};
use http_api::{Code, FieldError, Problem, Reason, Services};
use key_schema::customer;
use key_schema::id::{CustomerId, PromotionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::open::{self, OpenOrders};
use key_schema::order::{self, OrderAction, OrderStatus};
use key_schema::pricing::Rules;
use key_schema::promotion::{self, AppliedPromotion, MAX_CODE_BYTES, MAX_CODES, Promotion, PromotionUses};
use key_schema::promotion::{FoundItem, PromotionItem};
use key_schema::quota::Quota;
use table::Refusals;
use workflows::uses;

use crate::place::workflow_failed;
use crate::quote::{self, Quoted};

/// The codes of a quote, in any letter case.
pub const CODES: ListOf<Named<Text>> =
    list_of(named("PromotionCode", "1 to 64 bytes.", visible_text(1..=MAX_CODE_BYTES)), 0..=MAX_CODES);
// An order's transaction has room for the counts of this many promotions.
/// The number of latest orders that the check of a first order reads.
const RECENT_ORDERS: usize = 20;

/// Returns the error of a code that was entered or is in a quote.
fn code_error(pointer: impl Into<String>, code: &str, reason: Reason) -> FieldError {
    let detail = match reason {
        Reason::Unknown => "is unknown",
        Reason::Expired => "has expired",
        Reason::UsedUp => "has reached its limit of uses",
        Reason::NotYetValid => "is not valid yet",
        Reason::TierTooLow => "is for customers of a higher tier",
        Reason::NotFirstOrder => "is only for the first order",
        Reason::AccountRequired => "is only for customers with an account",
        Reason::OtherCurrency => "has amounts in another currency than this cart",
        Reason::NoGoods => "is for goods that are not in this cart",
        Reason::MinimumNotReached => "needs goods for a higher amount",
        Reason::NotCombinable => "cannot be combined with another promotion of this cart",
        Reason::TooManyPromotions => "is one too many, because five promotions with higher priorities apply",
        _ => "does not reduce the price of this cart",
    };
    FieldError::new(pointer, format!("the code {code} {detail}")).reason(reason)
}

pub const fn reason_of(unused: Unused) -> Reason {
    match unused {
        Unused::OtherCurrency => Reason::OtherCurrency,
        Unused::NoGoods => Reason::NoGoods,
        Unused::MinimumNotReached => Reason::MinimumNotReached,
        Unused::NothingToReduce => Reason::NothingToReduce,
        Unused::NotCombinable => Reason::NotCombinable,
        Unused::TooMany => Reason::TooManyPromotions,
    }
}

/// A promotion that the customer may use.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub promotion: Promotion,
    /// The position of the promotion's code among the entered codes, or `None` for an automatic
    /// promotion.
    pub code: Option<usize>,
    /// The condition that does not hold, for the promotion of a code. [`crate::price`] refuses the
    /// code, together with those that do not fit the cart.
    pub refused: Option<Reason>,
}

impl Candidate {
    pub fn applied(&self, discount: i64) -> AppliedPromotion {
        let Promotion { id, name, limit_total, .. } = &self.promotion;
        AppliedPromotion {
            id: id.clone(),
            name: name.clone(),
            code: self.promotion.code.clone(),
            discount,
            counted: limit_total.is_some(),
            counted_per_customer: self.promotion.uses_per_customer().is_some(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Codes<'a> {
    pub texts: &'a [String],
    /// Whether the codes are in a quote and not in the body.
    pub quoted: bool,
}

impl Codes<'_> {
    fn error(self, problem: Problem, at: usize, reason: Reason) -> Problem {
        let pointer = if self.quoted { "/quote_id".to_owned() } else { format!("/codes/{at}") };
        problem.errors([code_error(pointer, self.texts.get(at).map_or("", String::as_str), reason)])
    }

    /// Returns the problem of codes whose promotions do not apply. Each has its position and the
    /// reason.
    pub fn not_applicable(self, unused: &[(usize, Reason)]) -> Problem {
        let problem = Problem::new(Code::PromotionNotApplicable, "A code does not reduce the price of this cart.");
        unused.iter().fold(problem, |problem, (at, reason)| self.error(problem, *at, *reason))
    }

    fn unknown(self, positions: &[usize]) -> Problem {
        let problem = Problem::new(Code::PromotionUnknown, "The shop has no promotion with this code.");
        positions.iter().fold(problem, |problem, at| self.error(problem, *at, Reason::Unknown))
    }

    fn expired(self, at: usize) -> Problem {
        self.error(Problem::new(Code::PromotionExpired, "A promotion has ended."), at, Reason::Expired)
    }

    fn used_up(self, at: usize) -> Problem {
        self.error(Problem::new(Code::PromotionUsedUp, "A promotion has reached its limit."), at, Reason::UsedUp)
    }
}

/// Returns the promotions that the customer may use now, and those of codes with a condition that
/// does not hold. All guests are one customer. `guesser` is the customer whose unknown
/// codes are counted. It is `None` for a request by staff, and for the codes of a quote.
///
/// # Errors
/// - 409 `promotion_unknown`, `promotion_expired` or `promotion_used_up` for a code.
/// - 429 `quota_exceeded` for a customer who has entered too many unknown codes on this day.
pub async fn usable(
    services: &Services,
    customer: &CustomerId,
    rules: &Rules,
    codes: Codes<'_>,
    guesser: Option<&CustomerId>,
    now: Instant,
) -> Result<Vec<Candidate>, Problem> {
    let coded = find(services, customer, codes, guesser, now).await?;
    let automatic = rules.promotions.iter().map(|promotion| &promotion.data);
    let automatic: Vec<_> = automatic.filter(|promotion| promotion.is_running(now)).collect();
    let known = Known::read(services, customer, &coded, &automatic).await?;
    let mut candidates = Vec::new();
    for (id, code) in coded {
        let promotion = known.promotions.get(&id).ok_or_else(|| codes.unknown(&[code]))?;
        if promotion.conditions.until.is_some_and(|until| until <= now) {
            return Err(codes.expired(code));
        }
        if known.is_used_up(services, promotion).await? {
            return Err(codes.used_up(code));
        }
        let refused = (!promotion.is_running(now)).then_some(Reason::NotYetValid);
        candidates.push(Candidate { promotion: promotion.clone(), code: Some(code), refused });
    }
    for promotion in automatic {
        if !known.is_used_up(services, promotion).await? {
            candidates.push(Candidate { promotion: promotion.clone(), code: None, refused: None });
        }
    }
    // With equal priorities, the ids decide, and not the order in which the customer enters codes.
    candidates.sort_by(|a, b| a.promotion.id.cmp(&b.promotion.id));
    for_customer(services, customer, candidates).await
}

/// Returns the promotion of each code, in the sequence of the codes. Two spellings of a code count
/// once.
async fn find(
    services: &Services,
    customer: &CustomerId,
    codes: Codes<'_>,
    guesser: Option<&CustomerId>,
    now: Instant,
) -> Result<Vec<(PromotionId, usize)>, Problem> {
    if codes.texts.is_empty() {
        return Ok(Vec::new());
    }
    let (mut found, mut unknown) = (Vec::<(PromotionId, usize)>::new(), Vec::new());
    // The promotion of an unreadable code counts as unknown.
    let mut read = services.table.batch_get_readable(&promotion::find(codes.texts, customer, now)?).await?;
    // Without this check, a customer beyond the quota could still find out which codes exist. So the
    // item of the quota, the last one, must be readable.
    if guesser.is_some() {
        read.require(codes.texts.len()..usize::MAX)?;
    }
    let mut items = read.items;
    let counts = items.pop();
    let quota = Quota::of_codes(customer);
    if let (Some(_), Some(Some(FoundItem::QuotaDay(counts)))) = (guesser, counts)
        && counts.unknown_codes(quota) >= quota.limit()
    {
        return Err(too_many_guesses(quota, now));
    }
    for (at, item) in items.into_iter().enumerate() {
        match item {
            Some(FoundItem::PromotionCode(claim)) if found.iter().any(|(id, _)| *id == claim.promotion_id) => {}
            Some(FoundItem::PromotionCode(claim)) => found.push((claim.data.promotion_id, at)),
            _ => unknown.push(at),
        }
    }
    if let (Some(guesser), false) = (guesser, unknown.is_empty()) {
        let count = promotion::count_unknown_codes(guesser, unknown.len(), now)?;
        let counted = services.table.write(&count).await?;
        counted.map_err(|_| too_many_guesses(quota, now))?;
    }
    if unknown.is_empty() { Ok(found) } else { Err(codes.unknown(&unknown)) }
}

fn too_many_guesses(quota: Quota, now: Instant) -> Problem {
    match quota {
        Quota::GuestCodes => {
            let detail = "Guests have entered too many unknown codes today. Sign in to use a code.";
            Problem::new(Code::QuotaExceeded, detail).retry_after(now.seconds_left_of_day())
        }
        _ => Problem::quota_exceeded(quota, now),
    }
}

/// The promotions of codes, and the uses of all candidates.
#[derive(Default)]
struct Known {
    promotions: HashMap<PromotionId, Promotion>,
    uses: HashMap<PromotionId, PromotionUses>,
    customer_uses: HashMap<PromotionId, u64>,
}

impl Known {
    async fn read(
        services: &Services,
        customer: &CustomerId,
        coded: &[(PromotionId, usize)],
        automatic: &[&Promotion],
    ) -> Result<Self, Problem> {
        let mut known = Self::default();
        let is_counted =
            |promotion: &&&Promotion| promotion.limit_total.is_some() || promotion.uses_per_customer().is_some();
        let counted: Vec<_> = automatic.iter().filter(is_counted).map(|promotion| &promotion.id).collect();
        if coded.is_empty() && counted.is_empty() {
            return Ok(known);
        }
        let read = promotion::read(coded.iter().map(|(id, _)| id), counted, customer)?;
        // An unreadable promotion counts as unknown. The order's transaction refuses unreadable uses.
        for item in services.table.batch_get_readable(&read).await?.items.into_iter().flatten() {
            match item {
                PromotionItem::Promotion(Stored { data, .. }) => {
                    known.promotions.insert(data.id.clone(), data);
                }
                PromotionItem::PromotionUses(Stored { data, .. }) => {
                    known.uses.insert(data.promotion_id.clone(), data);
                }
                PromotionItem::CustomerUses(Stored { data, .. }) => {
                    known.customer_uses.insert(data.promotion_id, data.uses);
                }
            }
        }
        Ok(known)
    }

    async fn is_used_up(&self, services: &Services, promotion: &Promotion) -> Result<bool, Problem> {
        let customer_uses = self.customer_uses.get(&promotion.id).copied().unwrap_or(0);
        if promotion.uses_per_customer().is_some_and(|limit| customer_uses >= limit) {
            return Ok(true);
        }
        match (promotion.limit_total, self.uses.get(&promotion.id)) {
            (Some(limit), Some(uses)) if uses.uses >= limit && uses.leased => {
                let is_used_up = uses::is_used_up(&services.table, &promotion.id, limit).await;
                is_used_up.map_err(workflow_failed::<OrderAction>)
            }
            (Some(limit), Some(uses)) => Ok(uses.uses >= limit),
            _ => Ok(false),
        }
    }
}

/// Checks the conditions on the customer. Leaves out automatic promotions with a condition that does
/// not hold.
async fn for_customer(
    services: &Services,
    customer: &CustomerId,
    mut candidates: Vec<Candidate>,
) -> Result<Vec<Candidate>, Problem> {
    let is_guest = customer.is_guest();
    let any =
        |depends: fn(&Promotion) -> bool| !is_guest && candidates.iter().any(|candidate| depends(&candidate.promotion));
    let profile = async {
        let depends = any(|promotion| promotion.conditions.tier.is_some());
        Ok::<_, Problem>(if depends { services.table.get(&customer::get(customer)?).await? } else { None })
    };
    let first = async {
        if !any(|promotion| promotion.conditions.first_order) {
            return Ok(false);
        }
        let open = services.table.get(&open::get(customer)?).await?;
        is_first(services, customer, open.as_deref()).await
    };
    let (profile, is_first) = tokio::try_join!(profile, first)?;
    for candidate in &mut candidates {
        let conditions = &candidate.promotion.conditions;
        let has_tier = conditions.tier.is_none_or(|tier| profile.as_ref().is_some_and(|profile| profile.tier >= tier));
        let unmet = if is_guest && candidate.promotion.depends_on_customer() {
            Some(Reason::AccountRequired)
        } else if !has_tier {
            Some(Reason::TierTooLow)
        } else if conditions.first_order && !is_first {
            Some(Reason::NotFirstOrder)
        } else {
            None
        };
        candidate.refused = candidate.refused.or(unmet);
    }
    candidates.retain(|candidate| candidate.code.is_some() || candidate.refused.is_none());
    Ok(candidates)
}

/// Returns whether an order would be the customer's first one: the customer has no open order, and
/// at most [`RECENT_ORDERS`] orders, all of them cancelled.
///
/// An order may not be in the customer's list yet, because it takes several transactions. It is
/// already among the open orders, which must be read before the list.
async fn is_first(services: &Services, customer: &CustomerId, open: Option<&OpenOrders>) -> Result<bool, Problem> {
    if open.is_some_and(|open| !open.entries.is_empty()) {
        return Ok(false);
    }
    let recent = services.table.query(&order::earlier(customer)?.limit(RECENT_ORDERS)).await?;
    Ok(recent.next.is_none() && recent.items.iter().all(|order| order.status == OrderStatus::Cancelled))
}

/// Checks once more that an order with a promotion for first orders is the first one. `open` has the
/// open orders, which were read before. A customer's order is placed on the condition that the open
/// orders are unchanged. So of several concurrent orders only one is the first.
///
/// # Errors
/// 409 `promotion_not_applicable` for a code, and `quote_changed` for an automatic promotion.
pub async fn check_first(
    services: &Services,
    customer: &CustomerId,
    quoted: &Quoted,
    applied: &[AppliedPromotion],
    open: Option<&OpenOrders>,
) -> Result<(), Problem> {
    let is_for_first = |candidate: &&Candidate| {
        let Promotion { id, conditions, .. } = &candidate.promotion;
        conditions.first_order && applied.iter().any(|applied| applied.id == *id)
    };
    let used: Vec<_> = quoted.promotions.iter().filter(is_for_first).map(|candidate| candidate.code).collect();
    if used.is_empty() || is_first(services, customer, open).await? {
        return Ok(());
    }
    let unused: Vec<_> = used.into_iter().flatten().map(|code| (code, Reason::NotFirstOrder)).collect();
    Err(match unused.is_empty() {
        true => quote::changed([quote::differs("/discounts")]),
        false => quoted.quote.codes().not_applicable(&unused),
    })
}

/// Returns the problem of an order whose transaction was refused because the uses of a promotion
/// have reached their limit.
///
/// If staff have changed or removed the limit since it was read, the problem is a conflict, and the
/// client can try again.
pub fn refused(promotions: &[AppliedPromotion], refusals: &Refusals<OrderAction>) -> Option<Problem> {
    let refusal = refusals
        .iter()
        .find(|refusal| matches!(refusal.action, OrderAction::Uses(_) | OrderAction::CustomerUses(_)))?;
    let (OrderAction::Uses(at) | OrderAction::CustomerUses(at)) = refusal.action else { return None };
    let uses = refusal.stored::<Stored<PromotionUses>>().ok().flatten();
    if uses.is_some_and(|uses| uses.leased || uses.limit.is_none_or(|limit| uses.uses < limit)) {
        return Some(Problem::new(Code::Conflict, "A promotion changed during the checkout. Try again."));
    }
    let code = usize::try_from(at).ok().and_then(|at| promotions.get(at)?.code.as_deref());
    Some(match code {
        Some(code) => Problem::new(Code::PromotionUsedUp, "A promotion has reached its limit.").errors([code_error(
            "/quote_id",
            code,
            Reason::UsedUp,
        )]),
        None => quote::changed([quote::differs("/discounts")]),
    })
}
