use http_api::fields::{MAX_AMOUNT, array, boolean, instant, integer, money, one_of, parsed, visible_text};
use http_api::json::Value;
use http_api::{Code, FieldPatch, Invalid, Problem, Request, read_fields};
use key_schema::customer::Tier;
use key_schema::id::{MAX_ID_BYTES, ProductId, PromotionId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::product::{CategoryPath, MAX_CATEGORY_DEPTH};
use key_schema::promotion::{Conditions, Goods, MAX_CODE_BYTES, MAX_PRODUCTS, Promotion, Reduction};

/// The highest limit of uses.
const MAX_LIMIT: u64 = 1_000_000_000;
/// The highest number of pieces in `buy` or `get`.
const MAX_PIECES: u64 = 1_000;
/// The highest priority. The lowest one is its negative.
const MAX_PRIORITY: i64 = 1_000_000;
const KINDS: &[&str] = &["percentage", "amount", "buy_x_get_y", FREE_SHIPPING];
const FREE_SHIPPING: &str = "free_shipping";
const TIERS: &[&str] = &["bronze", "silver", "gold"];

/// Reads a new promotion from a request's body. `generated` is its id if the body has none.
pub fn new_promotion(request: &Request<'_>, generated: PromotionId) -> Result<Promotion, Problem> {
    read_fields!(request.object()? => {
        id: optional(parsed::<PromotionId>),
        name: required(visible_text(1..=128)),
        code: optional(visible_text(1..=MAX_CODE_BYTES)),
        kind: required(one_of::<String>(KINDS)),
        value: replaced(reduction),
        applies_to: optional(goods),
        conditions: optional(conditions),
        limit_total: optional(limit),
        limit_per_customer: optional(limit),
        exclusive: optional(boolean),
        priority: optional(priority),
    });
    let reduction = match value {
        None if kind == FREE_SHIPPING => Reduction::FreeShipping,
        Some(reduction) if kind_of(&reduction) == kind => reduction,
        None => return Err(refused("/value", "is missing")),
        Some(_) => return Err(refused("/value", "does not fit the kind of the promotion")),
    };
    checked(Promotion {
        id: id.unwrap_or(generated),
        code,
        name,
        reduction,
        applies_to: applies_to.unwrap_or(Goods::All),
        conditions: conditions.map(|given| given.apply(Conditions::default())).unwrap_or_default(),
        limit_total,
        limit_per_customer,
        exclusive: exclusive.unwrap_or(false),
        priority: priority.unwrap_or(0),
    })
}

/// A partial change of a promotion (JSON Merge Patch, RFC 7396). The kind and the code cannot be
/// changed.
pub struct Patch {
    name: Option<String>,
    reduction: Option<Reduction>,
    applies_to: Option<Goods>,
    conditions: Option<ConditionsPatch>,
    limit_total: FieldPatch<u64>,
    limit_per_customer: FieldPatch<u64>,
    exclusive: Option<bool>,
    priority: Option<i64>,
}

impl Patch {
    pub fn read(request: &Request<'_>) -> Result<Self, Problem> {
        read_fields!(request.object()? => {
            name: replaced(visible_text(1..=128)),
            value: replaced(reduction),
            applies_to: replaced(goods),
            conditions: replaced(conditions),
            limit_total: changed(limit),
            limit_per_customer: changed(limit),
            exclusive: replaced(boolean),
            priority: replaced(priority),
        });
        let is_empty = name.is_none()
            && value.is_none()
            && applies_to.is_none()
            && conditions.is_none()
            && !limit_total.is_given()
            && !limit_per_customer.is_given()
            && exclusive.is_none()
            && priority.is_none();
        if is_empty {
            return Err(Invalid::new("must change at least one field").into());
        }
        let reduction = value;
        Ok(Self { name, reduction, applies_to, conditions, limit_total, limit_per_customer, exclusive, priority })
    }

    /// Returns the promotion after the change. Uses without a limit are not counted, so a limit
    /// cannot be added.
    pub fn apply(self, before: &Promotion) -> Result<Promotion, Problem> {
        if self.reduction.as_ref().is_some_and(|reduction| kind_of(reduction) != kind_of(&before.reduction)) {
            return Err(refused("/value", "does not fit the kind of the promotion"));
        }
        for (pointer, change, limit) in [
            ("/limit_total", &self.limit_total, before.limit_total),
            ("/limit_per_customer", &self.limit_per_customer, before.limit_per_customer),
        ] {
            if matches!(change, FieldPatch::Set(_)) && limit.is_none() {
                return Err(refused(pointer, "cannot be added to a promotion without this limit"));
            }
        }
        let before = before.clone();
        let conditions = match self.conditions {
            Some(patch) => patch.apply(before.conditions),
            None => before.conditions,
        };
        checked(Promotion {
            id: before.id,
            code: before.code,
            name: self.name.unwrap_or(before.name),
            reduction: self.reduction.unwrap_or(before.reduction),
            applies_to: self.applies_to.unwrap_or(before.applies_to),
            conditions,
            limit_total: self.limit_total.apply(before.limit_total),
            limit_per_customer: self.limit_per_customer.apply(before.limit_per_customer),
            exclusive: self.exclusive.unwrap_or(before.exclusive),
            priority: self.priority.unwrap_or(before.priority),
        })
    }
}

/// Checks the rules that span several fields.
fn checked(promotion: Promotion) -> Result<Promotion, Problem> {
    let Conditions { min_amount, from, until, .. } = &promotion.conditions;
    if let (Reduction::Amount(amount), Some(min)) = (&promotion.reduction, min_amount)
        && amount.currency != min.currency
    {
        return Err(refused("/value/currency", "must be the currency of the minimum amount"));
    }
    if let (Some(from), Some(until)) = (from, until)
        && until <= from
    {
        return Err(refused("/conditions/until", "must be later than `from`"));
    }
    Ok(promotion)
}

fn refused(pointer: &'static str, detail: &'static str) -> Problem {
    Problem::new(Code::InvalidBody, "The promotion is invalid.").error(pointer, detail)
}

const fn kind_of(reduction: &Reduction) -> &'static str {
    match reduction {
        Reduction::Percentage(_) => "percentage",
        Reduction::Amount(_) => "amount",
        Reduction::BuyXGetY { .. } => "buy_x_get_y",
        Reduction::FreeShipping => FREE_SHIPPING,
    }
}

/// Reads the value of a promotion of any kind. The form of the value shows the kind.
fn reduction(value: Value<'_>) -> Result<Reduction, Invalid> {
    match &value {
        Value::Object(members) if members.contains_key("buy") || members.contains_key("get") => {
            read_fields!(value.object()? => {
                buy: required(integer(1..=MAX_PIECES)),
                get: required(integer(1..=MAX_PIECES)),
            });
            Ok(Reduction::BuyXGetY { buy, get })
        }
        Value::Object(_) => Ok(Reduction::Amount(money(1..=MAX_AMOUNT)(value)?)),
        _ => Ok(Reduction::Percentage(integer(1..=10_000)(value)?)),
    }
}

fn goods(value: Value<'_>) -> Result<Goods, Invalid> {
    if let Value::Text(text) = &value {
        return if text == "all" { Ok(Goods::All) } else { Err(not_goods()) };
    }
    read_fields!(value.object()? => {
        products: optional(array(1..=MAX_PRODUCTS, parsed::<ProductId>)),
        category: optional(category),
    });
    match (products, category) {
        (Some(products), None) => Ok(Goods::Products(products)),
        (None, Some(category)) => Ok(Goods::Category(category)),
        _ => Err(not_goods()),
    }
}

fn not_goods() -> Invalid {
    Invalid::new("must be \"all\", or an object with either `products` or `category`")
}

fn category(value: Value<'_>) -> Result<CategoryPath, Invalid> {
    let names = array(1..=MAX_CATEGORY_DEPTH, visible_text(1..=MAX_ID_BYTES))(value)?;
    CategoryPath::new(names).map_err(|error| Invalid::new(error.to_string()))
}

struct ConditionsPatch {
    min_amount: FieldPatch<Money>,
    tier: FieldPatch<Tier>,
    first_order: FieldPatch<bool>,
    from: FieldPatch<Instant>,
    until: FieldPatch<Instant>,
}

fn conditions(value: Value<'_>) -> Result<ConditionsPatch, Invalid> {
    read_fields!(value.object()? => {
        min_amount: changed(money(0..=MAX_AMOUNT)),
        tier: changed(one_of::<Tier>(TIERS)),
        first_order: changed(boolean),
        from: changed(instant),
        until: changed(instant),
    });
    Ok(ConditionsPatch { min_amount, tier, first_order, from, until })
}

impl ConditionsPatch {
    fn apply(self, before: Conditions) -> Conditions {
        Conditions {
            min_amount: self.min_amount.apply(before.min_amount),
            tier: self.tier.apply(before.tier),
            first_order: self.first_order.apply(Some(before.first_order)).unwrap_or(false),
            from: self.from.apply(before.from),
            until: self.until.apply(before.until),
        }
    }
}

fn limit(value: Value<'_>) -> Result<u64, Invalid> {
    integer(1..=MAX_LIMIT)(value)
}

fn priority(value: Value<'_>) -> Result<i64, Invalid> {
    integer(-MAX_PRIORITY..=MAX_PRIORITY)(value)
}
