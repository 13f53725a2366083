//! Shipping zones and tax rules, which only staff see and change.

use std::fmt::Display;
use std::str::FromStr;

use http_api::url::location;
use http_api::{Code, Precondition, Problem, Request, Response, Services};
use key_schema::id::Id;
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Entity, Stored};
use key_schema::pricing::{self, PricingAction, Rules};
use key_schema::request::Transaction;
use serde::Serialize;
use table::retry_on_conflict;

/// A rule of pricing: a shipping zone or a tax rule.
pub trait Rule: Entity + Clone {
    type Id: Id + PartialEq + FromStr<Err: Display> + 'static;
    type View<'a>: Serialize
    where
        Self: 'a;
    type List<'a>: Serialize;
    /// The name of the kind of rule in messages.
    const WHAT: &'static str;
    const PATH: [&'static str; 2];

    fn all(rules: &Rules) -> &[Stored<Self>];

    fn id(&self) -> &Self::Id;

    fn view(rule: &Stored<Self>) -> Self::View<'_>;

    /// Returns all rules of the kind, by id. Their number is limited, so the list has one page.
    fn list(rules: &Rules) -> Self::List<'_>;

    /// Checks a wanted rule against the stored rules.
    ///
    /// # Errors
    /// 409 `rule_overlaps`, or 409 `too_many_rules` if there is no room for another rule.
    fn check(&self, rules: &Rules) -> Result<(), Problem>;

    /// Returns the transaction that replaces the rule, if the stored rule is at `version`.
    fn change(&self, rules: &Rules, version: u64, at: Instant) -> Result<Transaction<PricingAction>, EncodeError>;
}

/// Returns the 409 for a rule that applies where `other` applies already.
pub fn overlaps(detail: &'static str, path: [&'static str; 2], other: &str) -> Problem {
    Problem::new(Code::RuleOverlaps, detail).location(location(&[path[0], path[1], other]))
}

/// Reads all rules of pricing with strong consistency.
pub async fn rules(services: &Services) -> Result<Rules, Problem> {
    Ok(Rules::from_items(services.table.query(&pricing::read_for_update()?).await?.items))
}

fn find<'a, R: Rule>(rules: &'a Rules, id: &R::Id) -> Option<&'a Stored<R>> {
    R::all(rules).iter().find(|rule| rule.id() == id)
}

pub async fn list<R: Rule>(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    Ok(Response::ok(&R::list(&rules(services).await?)))
}

pub async fn read<R: Rule>(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: R::Id = request.path("id")?;
    let rules = rules(services).await?;
    Ok(current(find::<R>(&rules, &id).ok_or_else(|| Problem::not_found(R::WHAT))?))
}

/// Creates a rule with `If-None-Match: *`, or replaces it with If-Match.
pub async fn put<R: Rule>(
    services: &Services,
    request: &Request<'_>,
    read: impl FnOnce(&Request<'_>, R::Id) -> Result<R, Problem>,
) -> Result<Response, Problem> {
    request.staff()?;
    let id: R::Id = request.path("id")?;
    let precondition = request.precondition()?;
    let rule = &read(request, id)?;
    retry_on_conflict(async || {
        let (rules, at) = (rules(services).await?, Instant::now());
        let location = location(&[R::PATH[0], R::PATH[1], rule.id().as_str()]);
        let before = find::<R>(&rules, rule.id());
        let transaction = match (precondition, before) {
            (Precondition::Absent, Some(_)) => {
                let detail = format!("A {} with this id exists already.", R::WHAT);
                return Err(Problem::new(Code::AlreadyExists, detail).location(location));
            }
            (Precondition::Absent, None) => {
                rule.check(&rules)?;
                pricing::create(&rules, &Stored::new(rule.clone(), services.born(at)?, at))?
            }
            (Precondition::Version(_), None) => return Err(Problem::not_found(R::WHAT)),
            (Precondition::Version(version), Some(before)) if version != before.meta.version => {
                return Err(Problem::version_mismatch());
            }
            (Precondition::Version(version), Some(_)) => {
                rule.check(&rules)?;
                rule.change(&rules, version, at)?
            }
        };
        if services.table.transact(&transaction).await?.is_err() {
            return Ok(None);
        }
        let mut stored = Stored::new(rule.clone(), services.born(at)?, at);
        let Some(before) = before else {
            return Ok(Some(Response::created(location, &R::view(&stored)).etag(stored.meta.version)));
        };
        stored.meta.created_at = before.meta.created_at;
        stored.meta.version = before.meta.version + 1;
        Ok(Some(current(&stored)))
    })
    .await
}

pub async fn delete<R: Rule>(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: R::Id = request.path("id")?;
    let version = request.if_match()?;
    retry_on_conflict(async || {
        let rules = rules(services).await?;
        let rule = find::<R>(&rules, &id).ok_or_else(|| Problem::not_found(R::WHAT))?;
        if rule.meta.version != version {
            return Err(Problem::version_mismatch());
        }
        let deleted = services.table.transact(&pricing::delete(&rules, &rule.data, version, Instant::now())?).await?;
        Ok(deleted.is_ok().then(Response::no_content))
    })
    .await
}

fn current<R: Rule>(rule: &Stored<R>) -> Response {
    // A rule that was removed and created again has its former version.
    Response::ok(&R::view(rule)).etag_of_parts(rule.meta.version)
}
