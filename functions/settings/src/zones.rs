use std::collections::{BTreeMap, BTreeSet};

use http_api::contract::rules::{
    Any, ListOf, Named, PRICE, Text, VERSION, any, as_sent, integer, list_of, named, visible_text,
};
use http_api::contract::{self, Body, Context, Node, RuleSchema, Schema, Schemas, route};
use http_api::json::Value;
use http_api::{Code, Invalid, Problem, Request, Response, Services};
use key_schema::address::Country;
use key_schema::id::{Born, MethodId, ZoneId};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored, size};
use key_schema::money::Money;
use key_schema::pricing::{
    self, MAX_COUNTRIES, MAX_METHODS, MAX_RATES, MAX_REGIONS, MAX_ZONE_BYTES, MAX_ZONES, PricingAction, Rules,
    ShippingMethod, ShippingRate, ShippingZone,
};
use key_schema::request::Transaction;
use key_schema::text::fold;
use serde::Serialize;

use crate::rules::{self, Rule};

/// The highest weight of a rate: a hundred tonnes.
const MAX_GRAMS: u64 = 100_000_000;
const NAME: Text = visible_text(1..=128);
const COUNTRIES: Named<Distinct<Any<Country>, Country>> =
    named("ZoneCountries", "", Distinct(list_of(any(), 1..=MAX_COUNTRIES), |one, other| one == other));
const REGIONS: Named<Distinct<Text, String>> =
    named("ZoneRegions", "", Distinct(list_of(NAME, 1..=MAX_REGIONS), |one, other| fold(one) == fold(other)));
const METHODS: Named<ListOf<Any<Method>>> =
    named("ShippingMethods", "The shipping methods. Their ids differ.", list_of(any(), 1..=MAX_METHODS));

/// List the countries to which the shop ships
///
/// Returns each country of the shipping zones, by its code. A country with `regions` gets goods only in
/// these regions. A shop without shipping zones ships nowhere.
#[route(GET "/v1/shipping/countries", id = "listShippingCountries", who = any, task = "pricing",
    answers(200 = CountryList<'_> "The countries" [ETag]))]
pub async fn countries(services: &Services, _: &Request<'_>) -> Result<Response, Problem> {
    let rules = Rules::from_items(services.table.query(&pricing::read()?).await?.items);
    let mut found = BTreeMap::<&str, ShippingCountry<'_>>::new();
    for zone in &rules.zones {
        for country in &zone.countries {
            let regions = Some(BTreeSet::new());
            let known = found.entry(country.as_str()).or_insert(ShippingCountry { country, regions });
            match (&zone.regions, &mut known.regions) {
                (Some(regions), Some(known)) => known.extend(regions.iter().map(String::as_str)),
                (None, known) => *known = None,
                (Some(_), None) => {}
            }
        }
    }
    let items = found.into_values();
    Ok(Response::ok(&CountryList { items: items.collect(), version: rules.version }).etag(rules.version))
}

#[derive(Serialize, Schema)]
#[schema(name = "ShippingCountryList")]
struct CountryList<'a> {
    #[field(rule = list_of(any::<ShippingCountry<'_>>(), 0..=MAX_ZONES * MAX_COUNTRIES))]
    items: Vec<ShippingCountry<'a>>,
    /// Counts the changes of zones and tax rules, and the creations and deletions of promotions
    /// without a code.
    version: u64,
}

#[derive(Serialize, Schema)]
#[schema(name = "ShippingCountry")]
struct ShippingCountry<'a> {
    country: &'a Country,
    /// The regions of the country that get goods, or null for the whole country.
    #[field(rule = list_of(NAME, 1..=MAX_ZONES * MAX_REGIONS), example = null)]
    regions: Option<BTreeSet<&'a str>>,
}

/// List the shipping zones
///
/// Returns all shipping zones, by id. Their number is limited, so there are no pages.
#[route(GET "/v1/shipping/zones", id = "listShippingZones", who = staff, task = "pricing",
    answers(200 = ZoneList<'_> "All shipping zones"))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    rules::list::<ShippingZone>(services, request).await
}

/// Read a shipping zone
#[route(GET "/v1/shipping/zones/{id}", id = "readShippingZone", who = staff, task = "pricing",
    path(id: ZoneId), answers(200 = ZoneView<'_> "The shipping zone" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    rules::read::<ShippingZone>(services, request).await
}

/// Create or change a shipping zone
///
/// `If-None-Match: *` creates the zone, `If-Match` replaces it. A zone with `regions` has only
/// these regions of its countries, and takes precedence over the zone of the whole country. A
/// whole country can belong to only one zone, and so can a region. The comparison with the
/// `region` of an address ignores letter case. Use the spelling that your checkout form offers.
#[route(PUT "/v1/shipping/zones/{id}", id = "putShippingZone", who = staff, task = "pricing",
    path(id: ZoneId), parameters(IfMatchOrNone, IfNoneMatch), body = NewZone,
    answers(
        200 = ZoneView<'_> "The shipping zone" [ETag],
        201 = ZoneView<'_> "The new shipping zone" [Location, ETag],
    ),
    refuses(already_exists = "with Location", rule_overlaps = "with Location", too_many_rules))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    rules::put(services, request, zone).await
}

/// Delete a shipping zone
///
/// Orders keep the price and the tax with which they were placed.
#[route(DELETE "/v1/shipping/zones/{id}", id = "deleteShippingZone", who = staff, task = "pricing",
    path(id: ZoneId), parameters(IfMatch), answers(204 = () "Deleted"))]
pub async fn delete(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    rules::delete::<ShippingZone>(services, request).await
}

impl Rule for ShippingZone {
    type Id = ZoneId;
    type View<'a> = ZoneView<'a>;
    type List<'a> = ZoneList<'a>;

    const WHAT: &'static str = "shipping zone";
    const PATH: [&'static str; 2] = ["shipping", "zones"];

    fn all(rules: &Rules) -> &[Stored<Self>] {
        &rules.zones
    }

    fn id(&self) -> &ZoneId {
        &self.id
    }

    fn view(Stored { meta, data }: &Stored<Self>) -> ZoneView<'_> {
        let Self { id, countries, regions, methods } = data;
        let (version, created_at, updated_at) = (meta.version, meta.created_at, meta.updated_at);
        ZoneView { id, countries, regions: regions.as_deref(), methods, version, created_at, updated_at }
    }

    fn list(rules: &Rules) -> ZoneList<'_> {
        ZoneList { items: rules.zones.iter().map(Self::view).collect(), version: rules.version }
    }

    fn check(&self, rules: &Rules) -> Result<(), Problem> {
        if let Some(other) = rules.overlapping_zone(self) {
            let detail = "Another shipping zone has one of these countries or regions.";
            return Err(rules::overlaps(detail, Self::PATH, other.id.as_str()));
        }
        let is_new = rules.zones.iter().all(|zone| zone.id != self.id);
        if is_new && rules.zones.len() >= MAX_ZONES {
            return Err(Problem::new(Code::TooManyRules, format!("There can be at most {MAX_ZONES} shipping zones.")));
        }
        Ok(())
    }

    fn change(&self, rules: &Rules, version: u64, at: Instant) -> Result<Transaction<PricingAction>, EncodeError> {
        pricing::change_zone(rules, self, version, at)
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "ShippingZone")]
pub struct ZoneView<'a> {
    #[field(example = "alps")]
    id: &'a ZoneId,
    #[field(rule = COUNTRIES, example = ["CH", "LI"])]
    countries: &'a [Country],
    #[field(rule = REGIONS, example = null)]
    regions: Option<&'a [String]>,
    #[field(rule = as_sent(METHODS))]
    methods: &'a [ShippingMethod],
    #[field(rule = VERSION)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

#[derive(Serialize, Schema)]
#[schema(name = "ShippingZoneList")]
pub struct ZoneList<'a> {
    #[field(rule = list_of(any::<ZoneView<'_>>(), 0..=MAX_ZONES))]
    items: Vec<ZoneView<'a>>,
    /// Counts the changes of zones and tax rules, and the creations and deletions of promotions
    /// without a code.
    version: u64,
}

#[derive(Debug, Body)]
#[body(name = "ShippingZoneChange", check(methods) = have_different_ids)]
struct NewZone {
    #[field(rule = COUNTRIES, example = ["CH", "LI"])]
    countries: Vec<Country>,
    /// The zone is limited to these regions of its countries.
    #[field(rule = REGIONS)]
    regions: Option<Vec<String>>,
    #[field(rule = METHODS)]
    methods: Vec<Method>,
}

#[derive(Debug, Body)]
#[body(name = "ShippingMethod", check(days, rates, free_from) = fit_together)]
struct Method {
    #[field(example = "post")]
    id: MethodId,
    #[field(rule = NAME, example = "Parcel post")]
    name: String,
    #[field(rule = named("DeliveryDays", "The lowest and the highest number of days until delivery.",
        list_of(integer(0..=365_u64), 2..=2)), example = [2, 4])]
    days: Vec<u64>,
    /// One price without a limit, or prices with different limits of one kind. All prices of a
    /// method have one currency. A method without a rate for a parcel cannot send it. A product
    /// without `weight_grams` weighs nothing.
    #[field(rule = list_of(any::<Rate>(), 1..=MAX_RATES), example = [
        {"up_to_grams": 2000, "price": {"amount": 700, "currency": "USD"}},
        {"up_to_grams": 10000, "price": {"amount": 1100, "currency": "USD"}}
    ])]
    rates: Vec<Rate>,
    /// The lowest amount of a cart, after discounts, for which shipping is free.
    #[field(rule = PRICE, example = {"amount": 10000, "currency": "USD"})]
    free_from: Option<Money>,
}

#[derive(Debug, Body)]
#[body(name = "ShippingRate", check(up_to_grams, from_amount) = has_one_limit)]
struct Rate {
    /// The highest weight for this price.
    #[field(rule = integer(0..=MAX_GRAMS), example = 2000)]
    up_to_grams: Option<u64>,
    /// The lowest amount of a cart, after discounts, for this price.
    #[field(rule = PRICE, example = null)]
    from_amount: Option<Money>,
    #[field(rule = PRICE, example = {"amount": 700, "currency": "USD"})]
    price: Money,
}

fn zone(request: &Request<'_>, id: ZoneId) -> Result<ShippingZone, Problem> {
    let NewZone { countries, regions, methods } = request.body()?;
    let zone =
        ShippingZone { id, countries, regions, methods: methods.into_iter().map(ShippingMethod::from).collect() };
    let item = Stored::new(zone.clone(), Born::counter(), Instant::EPOCH).to_item();
    if size(&item.map_err(Problem::internal)?) > MAX_ZONE_BYTES {
        let detail = format!("A shipping zone can have at most {MAX_ZONE_BYTES} bytes.");
        return Err(Problem::new(Code::InvalidBody, detail).error("", "has too many regions, methods or rates"));
    }
    Ok(zone)
}

impl From<Method> for ShippingMethod {
    fn from(Method { id, name, days, rates, free_from }: Method) -> Self {
        let rates = rates.into_iter().map(|Rate { up_to_grams, from_amount, price }| ShippingRate {
            up_to_grams,
            from_amount,
            price,
        });
        let days = days.first().copied().zip(days.last().copied()).unwrap_or_default();
        Self { id, name, days, rates: rates.collect(), free_from }
    }
}

/// A list whose elements all differ.
#[derive(Debug)]
struct Distinct<R, T>(ListOf<R>, fn(&T, &T) -> bool);

impl<R: contract::Rule<T>, T> contract::Rule<Vec<T>> for Distinct<R, T> {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<Vec<T>, Invalid> {
        let all = self.0.read(value, context)?;
        let is_repeated =
            |(at, element): (usize, &T)| all.iter().take(at).any(|earlier: &T| (self.1)(earlier, element));
        if all.iter().enumerate().any(is_repeated) { Err(Invalid::new("has the same element twice")) } else { Ok(all) }
    }
}

impl<R: RuleSchema, T> RuleSchema for Distinct<R, T> {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        self.0.schema(schemas).with("uniqueItems", true.into())
    }

    fn example(&self) -> Option<Node> {
        self.0.example()
    }
}

fn have_different_ids(methods: &[Method]) -> Result<(), Invalid> {
    let ids: BTreeSet<_> = methods.iter().map(|method| &method.id).collect();
    if ids.len() < methods.len() {
        return Err(Invalid::new("has two methods with the same id").under("methods"));
    }
    Ok(())
}

fn fit_together(days: &[u64], rates: &[Rate], free_from: &Option<Money>) -> Result<(), Invalid> {
    if !days.is_sorted() {
        return Err(Invalid::new("must have in `days` the lowest and the highest number, in this order"));
    }
    let currencies = rates.iter().flat_map(|rate| [Some(rate.price), rate.from_amount]).chain([*free_from]);
    let currencies: BTreeSet<_> = currencies.flatten().map(|money| money.currency.as_str().to_owned()).collect();
    if currencies.len() > 1 {
        return Err(Invalid::new("has prices in several currencies"));
    }
    check_limits(rates)
}

fn has_one_limit(up_to_grams: &Option<u64>, from_amount: &Option<Money>) -> Result<(), Invalid> {
    if up_to_grams.is_some() && from_amount.is_some() {
        return Err(Invalid::new("must have only one of `up_to_grams` and `from_amount`"));
    }
    Ok(())
}

/// Checks that all rates have the same kind of limit, and that no two limits are equal.
fn check_limits(rates: &[Rate]) -> Result<(), Invalid> {
    let grams: BTreeSet<_> = rates.iter().filter_map(|rate| rate.up_to_grams).collect();
    let amounts: BTreeSet<_> = rates.iter().filter_map(|rate| Some(rate.from_amount?.amount)).collect();
    let is_flat = rates.len() == 1 && grams.is_empty() && amounts.is_empty();
    if is_flat || grams.len() == rates.len() || amounts.len() == rates.len() {
        return Ok(());
    }
    Err(Invalid::new(
        "must have one rate without a limit, or rates with different limits that are either all `up_to_grams` or all \
         `from_amount`",
    ))
}
