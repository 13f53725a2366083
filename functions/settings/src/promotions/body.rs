use http_api::contract::rules::{
    Integer, MOVED_MONEY, Named, PRICE, Text, any, integer, list_of, named, one_of, visible_text,
};
use http_api::contract::{
    Body, BodyFields, Context, Fields, FromBody, Node, ObjectSchema, Rule, RuleSchema, Schema, Schemas,
};
use http_api::json::Value;
use http_api::{Code, FieldPatch, Invalid, Object, Problem};
use key_schema::customer::Tier;
use key_schema::id::{ProductId, PromotionId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::product::CategoryPath;
use key_schema::promotion::{Conditions, Goods, MAX_CODE_BYTES, MAX_PRODUCTS, Promotion, Reduction};

/// The highest limit of uses.
const MAX_LIMIT: u64 = 1_000_000_000;
/// The highest number of pieces in `buy` or `get`.
const MAX_PIECES: u64 = 1_000;
/// The highest priority. The lowest one is its negative.
const MAX_PRIORITY: i64 = 1_000_000;
const KINDS: &[&str] = &["percentage", "amount", "buy_x_get_y", FREE_SHIPPING];
const FREE_SHIPPING: &str = "free_shipping";
pub const CODE: Named<Text> = named("PromotionCode", "1 to 64 bytes.", visible_text(1..=MAX_CODE_BYTES));

pub const NAME: Named<Text> = named("PromotionName", "The name for shoppers, 1 to 128 bytes.", visible_text(1..=128));
pub const LIMIT: Integer<u64> = integer(1..=MAX_LIMIT);
pub const PRIORITY: Named<Integer<i64>> = named(
    "PromotionPriority",
    "A promotion with a higher priority is applied earlier. With equal priorities, the order of the ids decides.",
    integer(-MAX_PRIORITY..=MAX_PRIORITY),
);

#[derive(Debug, Body)]
pub struct NewPromotion {
    /// The id. Without it the shop generates one.
    id: Option<PromotionId>,
    #[field(rule = NAME, example = "Summer sale")]
    name: String,
    /// The code that customers enter. A promotion without a code is applied automatically.
    #[field(rule = CODE, example = "SUMMER")]
    code: Option<String>,
    #[field(flatten)]
    reduction: NewReduction,
    #[field(rule = GOODS, default = Goods::All)]
    applies_to: Goods,
    #[field(example = {"min_amount": {"amount": 2000, "currency": "USD"}})]
    conditions: Option<ConditionsPatch>,
    /// The maximum number of uses by all customers.
    #[field(rule = LIMIT, example = 100)]
    limit_total: Option<u64>,
    /// The maximum number of uses by one customer.
    #[field(rule = LIMIT, example = 1)]
    limit_per_customer: Option<u64>,
    /// Whether the promotion excludes all others.
    #[field(default, example = false)]
    exclusive: bool,
    #[field(rule = PRIORITY, default, example = 0)]
    priority: i64,
}

impl NewPromotion {
    /// Returns the promotion. `generated` is its id if the body has none.
    pub fn promotion(self, generated: PromotionId) -> Result<Promotion, Problem> {
        checked(Promotion {
            id: self.id.unwrap_or(generated),
            code: self.code,
            name: self.name,
            reduction: self.reduction.reduction()?,
            applies_to: self.applies_to,
            conditions: self.conditions.map(|given| given.apply(Conditions::default())).unwrap_or_default(),
            limit_total: self.limit_total,
            limit_per_customer: self.limit_per_customer,
            limit_since: 0,
            exclusive: self.exclusive,
            priority: self.priority,
        })
    }
}

/// A partial change of a promotion. The kind and the code cannot be changed.
#[derive(Debug, Body)]
#[body(name = "PromotionChange", not_empty)]
pub struct Patch {
    #[field(rule = NAME, not_null, example = "Winter sale")]
    name: Option<String>,
    #[field(rule = VALUE, not_null)]
    value: Option<Reduction>,
    #[field(rule = GOODS, not_null)]
    applies_to: Option<Goods>,
    #[field(not_null, example = {"until": "2026-12-31T23:00:00.000Z"})]
    conditions: Option<ConditionsPatch>,
    /// The new limit, or `null` to remove it. A promotion without this limit cannot get one.
    #[field(rule = LIMIT, example = null)]
    limit_total: FieldPatch<u64>,
    /// The new limit, or `null` to remove it. A promotion without this limit cannot get one.
    #[field(rule = LIMIT, example = null)]
    limit_per_customer: FieldPatch<u64>,
    #[field(not_null, example = false)]
    exclusive: Option<bool>,
    #[field(rule = PRIORITY, not_null, example = 5)]
    priority: Option<i64>,
}

impl Patch {
    /// Returns the promotion after the change. Uses without a limit are not counted, so a limit
    /// cannot be added.
    pub fn apply(self, before: &Promotion) -> Result<Promotion, Problem> {
        if self.value.as_ref().is_some_and(|value| kind_of(value) != kind_of(&before.reduction)) {
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
            reduction: self.value.unwrap_or(before.reduction),
            applies_to: self.applies_to.unwrap_or(before.applies_to),
            conditions,
            limit_since: before.limit_since,
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

/// The kind of a new promotion, and its value if the kind has one.
#[derive(Debug)]
struct NewReduction {
    kind: String,
    value: Option<Reduction>,
}

impl NewReduction {
    fn reduction(self) -> Result<Reduction, Problem> {
        match self.value {
            None if self.kind == FREE_SHIPPING => Ok(Reduction::FreeShipping),
            Some(reduction) if kind_of(&reduction) == self.kind => Ok(reduction),
            None => Err(refused("/value", "is missing")),
            Some(_) => Err(refused("/value", "does not fit the kind of the promotion")),
        }
    }
}

impl BodyFields for NewReduction {
    fn read_fields(object: &mut Object<'_>, context: &Context<'_>) -> Option<Self> {
        let kind = object.required("kind", |kind| one_of(KINDS).read(kind, context));
        let value = object.replaced("value", |value| VALUE.read(value, context));
        Some(Self { kind: kind?, value: value? })
    }
}

impl Fields for NewReduction {
    fn describe(object: &mut ObjectSchema, schemas: &mut Schemas) {
        let mut form = |kind, doc, value: Option<(Node, Node)>| {
            let mut fields = ObjectSchema::default();
            if let Some((schema, example)) = value {
                fields.field("value", "", schema, true, Some(example));
            }
            object.variant("kind", kind, doc, fields);
        };
        let value = VALUE.example().unwrap_or(Node::Null);
        form(
            "percentage",
            "A part of the price. `value` is in basis points.",
            Some((PERCENTAGE.schema(schemas), value)),
        );
        let amount = MOVED_MONEY.example().unwrap_or(Node::Null);
        form("amount", "An amount of money.", Some((MOVED_MONEY.schema(schemas), amount)));
        let free = "For every `buy + get` pieces of the promotion's goods, `get` pieces are free. The pieces that are \
            cheapest after the earlier promotions are free.";
        let pieces = FreePieces::example().unwrap_or(Node::Null);
        form("buy_x_get_y", free, Some((schemas.of_request(FreePieces::schema), pieces)));
        let shipping = "Makes any shipping method free for the whole parcel, if the cart has a piece of the promotion's \
            goods. It has no `value`.";
        form(FREE_SHIPPING, shipping, None);
    }
}

/// A promotion's kind and value, as a response shows them.
#[derive(serde::Serialize)]
#[serde(transparent)]
pub struct ReductionView<'a>(pub &'a Reduction);

impl Fields for ReductionView<'_> {
    fn describe(object: &mut ObjectSchema, schemas: &mut Schemas) {
        NewReduction::describe(object, schemas);
    }
}

#[derive(Debug, Body)]
struct FreePieces {
    /// The number of pieces that are paid for.
    #[field(rule = integer(1..=MAX_PIECES), example = 2)]
    buy: u64,
    /// The number of pieces that are free.
    #[field(rule = integer(1..=MAX_PIECES), example = 1)]
    get: u64,
}

const PERCENTAGE: Named<Integer<u32>> =
    named("BasisPoints", "Basis points, such as 1000 for 10 %.", integer(1..=10_000));

/// The value of a promotion of any kind. The form of the value shows the kind.
#[derive(Debug)]
struct AnyValue;

const VALUE: AnyValue = AnyValue;

impl Rule<Reduction> for AnyValue {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<Reduction, Invalid> {
        match &value {
            Value::Object(members) if members.contains_key("buy") || members.contains_key("get") => {
                FreePieces::read(value, context).map(|FreePieces { buy, get }| Reduction::BuyXGetY { buy, get })
            }
            Value::Object(_) => Ok(Reduction::Amount(MOVED_MONEY.read(value, context)?)),
            _ => Ok(Reduction::Percentage(PERCENTAGE.read(value, context)?)),
        }
    }
}

impl RuleSchema for AnyValue {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        schemas.named("PromotionValue", |schemas| {
            let pieces = schemas.of_request(FreePieces::schema);
            Node::choice(vec![PERCENTAGE.schema(schemas), MOVED_MONEY.schema(schemas), pieces])
        })
    }

    fn example(&self) -> Option<Node> {
        Some(1000.into())
    }
}

/// The goods to which a promotion applies.
#[derive(Debug)]
pub struct AnyGoods;

pub const GOODS: AnyGoods = AnyGoods;

#[derive(Debug, Body)]
struct SomeGoods {
    #[field(rule = list_of(any::<ProductId>(), 1..=MAX_PRODUCTS))]
    products: Option<Vec<ProductId>>,
    category: Option<CategoryPath>,
}

impl Rule<Goods> for AnyGoods {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<Goods, Invalid> {
        let refused = || Invalid::new("must be \"all\", or an object with either `products` or `category`");
        if let Value::Text(text) = &value {
            return if text == "all" { Ok(Goods::All) } else { Err(refused()) };
        }
        match SomeGoods::read(value, context)? {
            SomeGoods { products: Some(products), category: None } => Ok(Goods::Products(products)),
            SomeGoods { products: None, category: Some(category) } => Ok(Goods::Category(category)),
            _ => Err(refused()),
        }
    }
}

impl RuleSchema for AnyGoods {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        schemas.named("PromotionGoods", |schemas| {
            let form = |name: &str, schema: Node| {
                Node::map([
                    ("type", "object".into()),
                    ("required", Node::List(vec![name.into()])),
                    ("additionalProperties", false.into()),
                    ("properties", Node::map([(name, schema)])),
                ])
            };
            let products = schemas.of_request(|schemas| list_of(any::<ProductId>(), 1..=MAX_PRODUCTS).schema(schemas));
            let category = CategoryPath::schema(schemas);
            Node::choice(vec![Node::one_of(&["all"]), form("products", products), form("category", category)]).about(
                "The goods that the promotion applies to. A product includes its variants, and a category includes the \
                 categories below it. Further categories of a product do not count. A promotion keeps the path of its \
                 category when the category is moved.",
            )
        })
    }

    fn example(&self) -> Option<Node> {
        Some("all".into())
    }
}

/// The conditions. Each one that is present must hold.
#[derive(Debug, Body)]
#[body(name = "PromotionConditions")]
pub struct ConditionsPatch {
    /// The minimum total price of the promotion's goods in the cart, before discounts.
    #[field(rule = PRICE, example = {"amount": 2000, "currency": "USD"})]
    min_amount: FieldPatch<Money>,
    /// The lowest tier whose customers get the promotion.
    tier: FieldPatch<Tier>,
    /// True: only for customers without another order. Cancelled orders do not count.
    first_order: FieldPatch<bool>,
    /// The first instant at which the promotion applies.
    from: FieldPatch<Instant>,
    /// The instant from which the promotion no longer applies.
    #[field(example = "2026-12-31T23:00:00.000Z")]
    until: FieldPatch<Instant>,
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
