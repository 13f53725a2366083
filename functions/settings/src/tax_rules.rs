use http_api::fields::{boolean, integer, parsed, visible_text};
use http_api::{Code, Problem, Request, read_fields};
use key_schema::address::Country;
use key_schema::id::{TaxCategory, TaxRuleId};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::pricing::{self, BASIS_POINT, MAX_TAX_RULES, PricingAction, Rules, TaxRule};
use key_schema::request::Transaction;
use serde::Serialize;

use crate::rules::{self, Rule};

impl Rule for TaxRule {
    type Id = TaxRuleId;
    type View<'a> = TaxRuleView<'a>;

    const WHAT: &'static str = "tax rule";
    const PATH: [&'static str; 2] = ["tax", "rules"];

    fn all(rules: &Rules) -> &[Stored<Self>] {
        &rules.tax_rules
    }

    fn id(&self) -> &TaxRuleId {
        &self.id
    }

    fn view(&self) -> TaxRuleView<'_> {
        let Self { id, country, region, category, rate_millionths, included } = self;
        TaxRuleView {
            id,
            country,
            region: region.as_deref(),
            category,
            rate_basis_points: rate_millionths / BASIS_POINT,
            further_millionths: rate_millionths % BASIS_POINT,
            included: *included,
        }
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

#[derive(Serialize)]
pub struct TaxRuleView<'a> {
    id: &'a TaxRuleId,
    country: &'a Country,
    region: Option<&'a str>,
    category: &'a TaxCategory,
    rate_basis_points: u32,
    further_millionths: u32,
    included: bool,
}

/// Reads a tax rule from a request's body. A rate such as 8.875 % is between two basis points and
/// has further millionths.
pub fn read(request: &Request<'_>, id: TaxRuleId) -> Result<TaxRule, Problem> {
    read_fields!(request.object()? => {
        country: required(parsed::<Country>),
        region: optional(visible_text(1..=128)),
        category: required(parsed::<TaxCategory>),
        rate_basis_points: required(integer(0..=10_000_u32)),
        further_millionths: optional(integer(0..=BASIS_POINT - 1)),
        included: required(boolean),
    });
    let rate_millionths = rate_basis_points * BASIS_POINT + further_millionths.unwrap_or(0);
    Ok(TaxRule { id, country, region, category, rate_millionths, included })
}
