//! Promotions, which only staff see and change.

mod body;

use std::collections::HashMap;

use http_api::contract::rules::{VERSION, any, as_sent};
use http_api::contract::{Page, Schema, route};
use http_api::url::location;
use http_api::{Code, Once, Problem, Request, Response, Services};
use key_schema::id::PromotionId;
use key_schema::instant::Instant;
use key_schema::item::{Stored, size};
use key_schema::pricing::Rules;
use key_schema::promotion::PromotionItem;
use key_schema::promotion::{
    self, Conditions, Goods, Leases, MAX_AUTOMATIC, MAX_PROMOTION_BYTES, Promotion, PromotionAction, PromotionUses,
    USE_SHARDS,
};
use serde::Serialize;
use table::{Refusals, retry_on_conflict};

use crate::promotions::body::{
    CODE, ConditionsPatch, GOODS, LIMIT, NAME, NewPromotion, PRIORITY, Patch, ReductionView,
};
use crate::rules::rules;

/// Create a promotion
///
/// A promotion with a code is for customers who enter the code. The comparison of codes ignores
/// letter case and invisible characters. A promotion without a code is applied to each cart
/// that meets its conditions. The shop can have at most 20 promotions without a code. A
/// promotion takes at most 4 KB. The id of a deleted promotion cannot be used again.
///
/// If a promotion has a `limit_total` below 1,000, each order with the promotion updates one counter.
/// So the shop can place only a few dozen orders with this promotion in a second. Uses with a higher
/// limit are counted in 64 shards. A customer can use a promotion for the first order only once.
#[route(POST "/v1/promotions", id = "createPromotion", who = staff, task = "pricing",
    parameters(OptionalIdempotencyKey), body = NewPromotion,
    answers(201 = PromotionView<'_> "The new promotion" [Location, ETag, IdempotencyReplayed]),
    refuses(already_exists = "for the id or the code", too_many_rules))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let once = Once::optional(request)?;
    let now = Instant::now();
    let promotion = request.body::<NewPromotion>()?.promotion(PromotionId::generate(now, services.random()?))?;
    let promotion = &Stored::new(promotion, services.born(now)?, now);
    check_size(promotion)?;
    let answer = || {
        let view = PromotionView::with_uses(promotion, promotion.limit_total.map(|_| 0));
        Response::created(path(&promotion.id), &view).etag(promotion.meta.version)
    };
    let claim = once.as_ref().map(|once| once.claim_with(&answer(), promotion.meta.born.clone(), now)).transpose()?;
    retry_on_conflict(async || {
        let rules = if promotion.code.is_none() { rules(services).await? } else { Rules::default() };
        let problem = if promotion.code.is_none() && rules.promotions.len() >= MAX_AUTOMATIC {
            let detail = format!("There can be at most {MAX_AUTOMATIC} promotions without a code.");
            Problem::new(Code::TooManyRules, detail)
        } else {
            let create = promotion::create(&rules, promotion, claim.clone())?;
            let Err(refusals) = services.table.transact(&create).await? else { return Ok(Some(answer())) };
            match refused(&promotion.id, &refusals) {
                Some(problem) => problem,
                None if refusals.names(PromotionAction::Idempotency) => Once::in_progress(),
                // Only the head of pricing has changed since it was read.
                None => return Ok(None),
            }
        };
        match &once {
            Some(once) => once.replay_or(services, problem).await.map(Some),
            None => Err(problem),
        }
    })
    .await
}

/// List all promotions
///
/// Returns the promotions with the numbers of their uses, sorted by id.
#[route(GET "/v1/promotions", id = "listPromotions", who = staff, task = "pricing",
    parameters(Limit, Cursor), answers(200 = Page<PromotionView<'_>> "A page of promotions" [Link, LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let mut list = request.list(services, promotion::list()?, &[]).await?;
    let limited = list.found.items.iter().filter(|promotion| promotion.limit_total.is_some());
    let read = services.table.batch_get_readable(&promotion::uses(limited.map(|promotion| &promotion.id))?).await?;
    list.page.leave_out(read.unreadable.len());
    let uses: HashMap<_, _> = read.items.iter().flatten().map(|uses| (&uses.promotion_id, uses.uses)).collect();
    list.answer(|promotion| PromotionView::with_uses(promotion, uses.get(&promotion.id).copied())).await
}

/// Read a promotion with the number of its uses
#[route(GET "/v1/promotions/{id}", id = "readPromotion", who = staff, task = "pricing",
    path(id: PromotionId), answers(200 = PromotionView<'_> "The promotion" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (promotion, uses) = load(services, &request.path("id")?).await?;
    Ok(current(&promotion, uses))
}

/// Change a promotion
///
/// Changes the promotion with a JSON Merge Patch (RFC 7396). `kind` and `code` cannot be
/// changed. Orders keep the discounts with which they were placed.
#[route(PATCH "/v1/promotions/{id}", id = "changePromotion", who = staff, task = "pricing",
    path(id: PromotionId), parameters(IfMatch), body = Patch,
    answers(200 = PromotionView<'_> "The promotion" [ETag]))]
pub async fn change(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: PromotionId = request.path("id")?;
    let version = request.if_match()?;
    let patch: Patch = request.body()?;
    let (mut promotion, uses) = load(services, &id).await?;
    if promotion.meta.version != version {
        return Err(Problem::version_mismatch());
    }
    let wanted = patch.apply(&promotion)?;
    let at = Instant::now();
    let change = promotion::change(&promotion, &wanted, at)?;
    promotion.data = wanted;
    promotion.meta.version += 1;
    promotion.meta.updated_at = at;
    check_size(&promotion)?;
    match services.table.transact(&change).await? {
        Ok(()) => {
            let uses = uses.filter(|_| promotion.limit_total.is_some());
            Ok(current(&promotion, uses))
        }
        Err(refusals) if refusals.names(PromotionAction::Promotion) => Err(Problem::version_mismatch()),
        Err(refusals) => Err(Problem::unexpected(&refusals)),
    }
}

/// Delete a promotion
///
/// The code becomes free for another promotion. Orders keep the discounts with which they were
/// placed.
#[route(DELETE "/v1/promotions/{id}", id = "deletePromotion", who = staff, task = "pricing",
    path(id: PromotionId), parameters(IfMatch), answers(204 = () "Deleted"))]
pub async fn delete(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: PromotionId = request.path("id")?;
    let version = request.if_match()?;
    retry_on_conflict(async || {
        let (promotion, _) = load(services, &id).await?;
        if promotion.meta.version != version {
            return Err(Problem::version_mismatch());
        }
        let rules = if promotion.code.is_none() { rules(services).await? } else { Rules::default() };
        let deleted = services.table.transact(&promotion::delete(&rules, &promotion, Instant::now())?).await?;
        Ok(deleted.is_ok().then(Response::no_content))
    })
    .await
}

/// Reads a promotion, and the number of its uses if it has a limit.
async fn load(services: &Services, id: &PromotionId) -> Result<(Stored<Promotion>, Option<u64>), Problem> {
    let (mut found, mut uses) = (None, None);
    for item in services.table.batch_get(&promotion::get(id)?).await?.into_iter().flatten() {
        match item {
            PromotionItem::Promotion(promotion) => found = Some(promotion),
            PromotionItem::PromotionUses(stored) => uses = counted(services, &stored).await?,
            PromotionItem::CustomerUses(_) => {}
        }
    }
    Ok((found.ok_or_else(|| Problem::not_found("promotion"))?, uses))
}

/// Returns the number of uses if there is a limit, without those that shards have left.
async fn counted(services: &Services, head: &PromotionUses) -> Result<Option<u64>, Problem> {
    if head.limit.is_none() || !head.leased {
        return Ok(head.limit.map(|_| head.uses));
    }
    let all = promotion::leases(&head.promotion_id, USE_SHARDS.all())?;
    let leases = Leases::of(services.table.batch_get(&all).await?.into_iter().flatten());
    Ok(leases.map(|leases| leases.used()))
}

/// Explains a refused creation if the id or the code is in use.
fn refused(id: &PromotionId, refusals: &Refusals<PromotionAction>) -> Option<Problem> {
    if refusals.names(PromotionAction::Promotion) || refusals.names(PromotionAction::Uses) {
        let detail = "A promotion with this id exists already, or existed before.";
        return Some(Problem::new(Code::AlreadyExists, detail).location(path(id)).error("/id", "is in use"));
    }
    if refusals.names(PromotionAction::Code) {
        return Some(Problem::new(Code::AlreadyExists, "Another promotion has this code.").error("/code", "is in use"));
    }
    None
}

fn check_size(promotion: &Stored<Promotion>) -> Result<(), Problem> {
    if size(&promotion.to_item()?) > MAX_PROMOTION_BYTES {
        let detail = format!("A promotion can have at most {MAX_PROMOTION_BYTES} bytes.");
        return Err(Problem::new(Code::InvalidBody, detail).error("/applies_to", "has too many products"));
    }
    Ok(())
}

fn path(id: &PromotionId) -> String {
    location(&["promotions", id.as_str()])
}

fn current(promotion: &Stored<Promotion>, uses: Option<u64>) -> Response {
    Response::ok(&PromotionView::with_uses(promotion, uses)).etag_of_parts(promotion.meta.version)
}

#[derive(Serialize, Schema)]
struct PromotionView<'a> {
    id: &'a PromotionId,
    #[field(rule = NAME, example = "Summer sale")]
    name: &'a str,
    #[field(rule = CODE, example = "SUMMER")]
    code: Option<&'a str>,
    #[serde(flatten)]
    reduction: ReductionView<'a>,
    #[field(rule = GOODS)]
    applies_to: &'a Goods,
    #[field(rule = as_sent(any::<ConditionsPatch>()), example = {"min_amount": {"amount": 2000, "currency": "USD"}})]
    conditions: &'a Conditions,
    #[field(rule = LIMIT, example = 100)]
    limit_total: Option<u64>,
    #[field(rule = LIMIT, example = 1)]
    limit_per_customer: Option<u64>,
    #[field(example = false)]
    exclusive: bool,
    #[field(rule = PRIORITY, example = 0)]
    priority: i64,
    /// The number of uses by orders that were not cancelled. In a list, it includes up to 6,400 uses
    /// that are reserved for the next orders, if the limit is at least 1,000. Absent without a
    /// `limit_total`, because only a limit counts the uses.
    #[field(example = 3)]
    #[serde(skip_serializing_if = "Option::is_none")]
    uses: Option<u64>,
    #[field(rule = VERSION)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> PromotionView<'a> {
    fn with_uses(Stored { meta, data }: &'a Stored<Promotion>, uses: Option<u64>) -> Self {
        Self {
            id: &data.id,
            name: &data.name,
            code: data.code.as_deref(),
            reduction: ReductionView(&data.reduction),
            applies_to: &data.applies_to,
            conditions: &data.conditions,
            limit_total: data.limit_total,
            limit_per_customer: data.limit_per_customer,
            exclusive: data.exclusive,
            priority: data.priority,
            uses,
            version: meta.version,
            created_at: meta.created_at,
            updated_at: meta.updated_at,
        }
    }
}
