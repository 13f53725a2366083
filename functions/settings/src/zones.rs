use std::collections::BTreeSet;

use http_api::fields::{MAX_AMOUNT, array, integer, money, parsed, visible_text};
use http_api::json::Value;
use http_api::{Code, Invalid, Problem, Request, read_fields};
use key_schema::address::Country;
use key_schema::id::{Born, MethodId, ZoneId};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored, size};
use key_schema::pricing::{
    self, MAX_COUNTRIES, MAX_METHODS, MAX_RATES, MAX_REGIONS, MAX_ZONE_BYTES, MAX_ZONES, PricingAction, Rules,
    ShippingMethod, ShippingRate, ShippingZone,
};
use key_schema::request::Transaction;
use key_schema::text::fold;
use serde::Serialize;

use crate::rules::{self, Rule};

/// The highest number of days until delivery.
const MAX_DAYS: u64 = 365;
/// The highest weight of a rate: a hundred tonnes.
const MAX_GRAMS: u64 = 100_000_000;

impl Rule for ShippingZone {
    type Id = ZoneId;
    type View<'a> = ZoneView<'a>;

    const WHAT: &'static str = "shipping zone";
    const PATH: [&'static str; 2] = ["shipping", "zones"];

    fn all(rules: &Rules) -> &[Stored<Self>] {
        &rules.zones
    }

    fn id(&self) -> &ZoneId {
        &self.id
    }

    fn view(&self) -> ZoneView<'_> {
        let Self { id, countries, regions, methods } = self;
        ZoneView { id, countries, regions: regions.as_deref(), methods }
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

#[derive(Serialize)]
pub struct ZoneView<'a> {
    id: &'a ZoneId,
    countries: &'a [Country],
    regions: Option<&'a [String]>,
    methods: &'a [ShippingMethod],
}

pub fn read(request: &Request<'_>, id: ZoneId) -> Result<ShippingZone, Problem> {
    read_fields!(request.object()? => {
        countries: required(distinct(1..=MAX_COUNTRIES, parsed::<Country>, |one, other| one == other)),
        regions: optional(distinct(1..=MAX_REGIONS, visible_text(1..=128), |one, other| fold(one) == fold(other))),
        methods: required(methods),
    });
    let zone = ShippingZone { id, countries, regions, methods };
    let item = Stored::new(zone.clone(), Born::counter(), Instant::EPOCH).to_item();
    if size(&item.map_err(Problem::internal)?) > MAX_ZONE_BYTES {
        let detail = format!("A shipping zone can have at most {MAX_ZONE_BYTES} bytes.");
        return Err(Problem::new(Code::InvalidBody, detail).error("", "has too many regions, methods or rates"));
    }
    Ok(zone)
}

/// Reads an array whose elements all differ.
fn distinct<'a, T>(
    length: std::ops::RangeInclusive<usize>,
    read: impl Fn(Value<'a>) -> Result<T, Invalid>,
    is_same: impl Fn(&T, &T) -> bool,
) -> impl Fn(Value<'a>) -> Result<Vec<T>, Invalid> {
    let elements = array(length, read);
    move |value| {
        let all = elements(value)?;
        match all.iter().enumerate().find(|(at, element)| all.iter().take(*at).any(|earlier| is_same(earlier, element)))
        {
            Some(_) => Err(Invalid::new("has the same element twice")),
            None => Ok(all),
        }
    }
}

fn methods(value: Value<'_>) -> Result<Vec<ShippingMethod>, Invalid> {
    let methods = array(1..=MAX_METHODS, method)(value)?;
    let ids: BTreeSet<_> = methods.iter().map(|method| &method.id).collect();
    if ids.len() < methods.len() { Err(Invalid::new("has two methods with the same id")) } else { Ok(methods) }
}

fn method(value: Value<'_>) -> Result<ShippingMethod, Invalid> {
    read_fields!(value.object()? => {
        id: required(parsed::<MethodId>),
        name: required(visible_text(1..=128)),
        days: required(array(2..=2, integer(0..=MAX_DAYS))),
        rates: required(array(1..=MAX_RATES, rate)),
        free_from: optional(money(0..=MAX_AMOUNT)),
    });
    let days = match days.as_slice() {
        [min, max] if min <= max => (*min, *max),
        _ => return Err(Invalid::new("must have in `days` the lowest and the highest number, in this order")),
    };
    let currencies = rates.iter().flat_map(|rate| [Some(rate.price), rate.from_amount]).chain([free_from]);
    let currencies: BTreeSet<_> = currencies.flatten().map(|money| money.currency.as_str().to_owned()).collect();
    if currencies.len() > 1 {
        return Err(Invalid::new("has prices in several currencies"));
    }
    check_limits(&rates)?;
    Ok(ShippingMethod { id, name, days, rates, free_from })
}

fn rate(value: Value<'_>) -> Result<ShippingRate, Invalid> {
    read_fields!(value.object()? => {
        up_to_grams: optional(integer(0..=MAX_GRAMS)),
        from_amount: optional(money(0..=MAX_AMOUNT)),
        price: required(money(0..=MAX_AMOUNT)),
    });
    if up_to_grams.is_some() && from_amount.is_some() {
        return Err(Invalid::new("must have only one of `up_to_grams` and `from_amount`"));
    }
    Ok(ShippingRate { up_to_grams, from_amount, price })
}

/// Checks that all rates have the same kind of limit, and that no two limits are equal.
fn check_limits(rates: &[ShippingRate]) -> Result<(), Invalid> {
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
