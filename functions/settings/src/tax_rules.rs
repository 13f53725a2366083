use http_api::contract::rules::{Integer, Named, Text, VERSION, any, integer, list_of, named, visible_text};
use http_api::contract::{Body, Schema, route};
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::address::Country;
use key_schema::id::{TaxCategory, TaxRuleId};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::pricing::{self, BASIS_POINT, MAX_TAX_RULES, PricingAction, Rules, TaxRule};
use key_schema::request::Transaction;
use serde::Serialize;

use crate::rules::{self, Rule};

const REGION: Text = visible_text(1..=128);
const RATE: Named<Integer<u32>> =
    named("RateBasisPoints", "The rate in basis points, such as 1900 for 19 %.", integer(0..=10_000));
/// A rate such as 8.875 % is between two basis points and has further millionths.
const MILLIONTHS: Integer<u32> = integer(0..=BASIS_POINT - 1);

/// List the tax rules
///
/// Returns all tax rules, by id. Their number is limited, so there are no pages.
#[route(GET "/v1/tax/rules", id = "listTaxRules", who = staff, task = "pricing",
    answers(200 = TaxRuleList<'_> "All tax rules"))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    rules::list::<TaxRule>(services, request).await
}

/// Read a tax rule
#[route(GET "/v1/tax/rules/{id}", id = "readTaxRule", who = staff, task = "pricing",
    path(id: TaxRuleId), answers(200 = TaxRuleView<'_> "The tax rule" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    rules::read::<TaxRule>(services, request).await
}

/// Create or change a tax rule
///
/// `If-None-Match: *` creates the rule, `If-Match` replaces it. A place has at most one rule
/// for each category of goods. A rule with a `region` takes precedence over the rule of the
/// whole country. A rate such as 8.875 % is 887 basis points and 50 further millionths.
///
/// Goods without a rule are not taxed. Shipping has the rule of the category `shipping`, or
/// else of the category `standard`.
#[route(PUT "/v1/tax/rules/{id}", id = "putTaxRule", who = staff, task = "pricing",
    path(id: TaxRuleId), parameters(IfMatchOrNone, IfNoneMatch), body = NewTaxRule,
    answers(
        200 = TaxRuleView<'_> "The tax rule" [ETag],
        201 = TaxRuleView<'_> "The new tax rule" [Location, ETag],
    ),
    refuses(already_exists = "with Location", rule_overlaps = "with Location", too_many_rules))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    rules::put(services, request, tax_rule).await
}

/// Delete a tax rule
///
/// Orders keep the price and the tax with which they were placed.
#[route(DELETE "/v1/tax/rules/{id}", id = "deleteTaxRule", who = staff, task = "pricing",
    path(id: TaxRuleId), parameters(IfMatch), answers(204 = () "Deleted"))]
pub async fn delete(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    rules::delete::<TaxRule>(services, request).await
}

impl Rule for TaxRule {
    type Id = TaxRuleId;
    type View<'a> = TaxRuleView<'a>;
    type List<'a> = TaxRuleList<'a>;

    const WHAT: &'static str = "tax rule";
    const PATH: [&'static str; 2] = ["tax", "rules"];

    fn all(rules: &Rules) -> &[Stored<Self>] {
        &rules.tax_rules
    }

    fn id(&self) -> &TaxRuleId {
        &self.id
    }

    fn view(Stored { meta, data }: &Stored<Self>) -> TaxRuleView<'_> {
        let Self { id, country, region, category, rate_millionths, included } = data;
        TaxRuleView {
            id,
            country,
            region: region.as_deref(),
            category,
            rate_basis_points: rate_millionths / BASIS_POINT,
            further_millionths: rate_millionths % BASIS_POINT,
            included: *included,
            version: meta.version,
            created_at: meta.created_at,
            updated_at: meta.updated_at,
        }
    }

    fn list(rules: &Rules) -> TaxRuleList<'_> {
        TaxRuleList { items: rules.tax_rules.iter().map(Self::view).collect(), version: rules.version }
    }

    fn check(&self, rules: &Rules) -> Result<(), Problem> {
        if let Some(other) = rules.same_tax_rule(self) {
            let detail = "Another tax rule has this country, region and category.";
            return Err(rules::overlaps(detail, Self::PATH, other.id.as_str()));
        }
        let is_new = rules.tax_rules.iter().all(|rule| rule.id != self.id);
        if is_new && rules.tax_rules.len() >= MAX_TAX_RULES {
            return Err(Problem::new(Code::TooManyRules, format!("There can be at most {MAX_TAX_RULES} tax rules.")));
        }
        Ok(())
    }

    fn change(&self, rules: &Rules, version: u64, at: Instant) -> Result<Transaction<PricingAction>, EncodeError> {
        pricing::change_tax_rule(rules, self, version, at)
    }
}

#[derive(Serialize, Schema)]
pub struct TaxRuleView<'a> {
    #[field(example = "ch")]
    id: &'a TaxRuleId,
    #[field(example = "CH")]
    country: &'a Country,
    #[field(rule = REGION, example = null)]
    region: Option<&'a str>,
    #[field(example = "standard")]
    category: &'a TaxCategory,
    #[field(rule = RATE, example = 810)]
    rate_basis_points: u32,
    #[field(rule = named("FurtherMillionths",
        "The millionths of the rate beyond whole basis points, such as 50 for 8.875 %.", MILLIONTHS), example = 0)]
    further_millionths: u32,
    included: bool,
    #[field(rule = VERSION)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

#[derive(Serialize, Schema)]
pub struct TaxRuleList<'a> {
    #[field(rule = list_of(any::<TaxRuleView<'_>>(), 0..=MAX_TAX_RULES))]
    items: Vec<TaxRuleView<'a>>,
    /// Counts the changes of zones and tax rules, and the creations and deletions of promotions
    /// without a code.
    version: u64,
}

#[derive(Debug, Body)]
#[body(name = "TaxRuleChange")]
struct NewTaxRule {
    #[field(example = "CH")]
    country: Country,
    /// The region to which the rule is limited.
    #[field(rule = REGION)]
    region: Option<String>,
    /// The category of goods: `standard`, `reduced`, `zero` or another one.
    #[field(example = "standard")]
    category: TaxCategory,
    #[field(rule = RATE, example = 810)]
    rate_basis_points: u32,
    /// The millionths of the rate beyond whole basis points, such as 50 for 8.875 %.
    #[field(rule = MILLIONTHS)]
    further_millionths: Option<u32>,
    /// Whether prices include the tax.
    included: bool,
}

fn tax_rule(request: &Request<'_>, id: TaxRuleId) -> Result<TaxRule, Problem> {
    let NewTaxRule { country, region, category, rate_basis_points, further_millionths, included } = request.body()?;
    let rate_millionths = rate_basis_points * BASIS_POINT + further_millionths.unwrap_or(0);
    Ok(TaxRule { id, country, region, category, rate_millionths, included })
}
