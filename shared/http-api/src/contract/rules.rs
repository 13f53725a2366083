//! Rules for the values in bodies: each reads a value, and describes it in `openapi.yaml`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;

use key_schema::id::{CustomerId, ME};
use key_schema::money::Money;
use key_schema::order::MAX_QUANTITY;

use super::{Context, FromBody, Node, Schema, Schemas};
use crate::body::Invalid;
use crate::fields::{self, MAX_AMOUNT};
use crate::json::Value;

/// Reads a value of the type `T`.
pub trait Rule<T> {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<T, Invalid>;
}

/// Describes the values that a rule permits.
pub trait RuleSchema {
    fn schema(&self, schemas: &mut Schemas) -> Node;

    fn example(&self) -> Option<Node> {
        None
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Line,
    Visible,
    Lines,
    Exact,
    HttpsUrl,
}

/// A text with a length in bytes of UTF-8.
#[derive(Debug, Clone)]
pub struct Text {
    kind: Kind,
    bytes: RangeInclusive<usize>,
}

/// A line that a person reads ([`fields::text`]).
#[must_use]
pub const fn text(bytes: RangeInclusive<usize>) -> Text {
    Text { kind: Kind::Line, bytes }
}

/// A name in its one spelling ([`fields::visible_text`]).
#[must_use]
pub const fn visible_text(bytes: RangeInclusive<usize>) -> Text {
    Text { kind: Kind::Visible, bytes }
}

/// Text of several lines ([`fields::long_text`]).
#[must_use]
pub const fn long_text(bytes: RangeInclusive<usize>) -> Text {
    Text { kind: Kind::Lines, bytes }
}

/// A line that only programs read ([`fields::exact_text`]).
#[must_use]
pub const fn exact_text(bytes: RangeInclusive<usize>) -> Text {
    Text { kind: Kind::Exact, bytes }
}

/// The cursor of a list that has only one page.
pub const NO_CURSOR: Described = described(r#"{"type": "null", "description": "Always null: the list has one page."}"#);

/// A URL of a page ([`fields::https_url`]).
#[must_use]
pub const fn https_url(bytes: RangeInclusive<usize>) -> Text {
    Text { kind: Kind::HttpsUrl, bytes }
}

impl Rule<String> for Text {
    fn read(&self, value: Value<'_>, _: &Context<'_>) -> Result<String, Invalid> {
        let bytes = self.bytes.clone();
        match self.kind {
            Kind::Line => fields::text(bytes)(value),
            Kind::Visible => fields::visible_text(bytes)(value),
            Kind::Lines => fields::long_text(bytes)(value),
            Kind::Exact => fields::exact_text(bytes)(value),
            Kind::HttpsUrl => fields::https_url(bytes)(value),
        }
    }
}

impl RuleSchema for Text {
    fn schema(&self, _: &mut Schemas) -> Node {
        let node = Node::map([("type", "string".into())]);
        let node = if *self.bytes.start() > 0 { node.with("minLength", (*self.bytes.start()).into()) } else { node };
        let node = node.with("maxLength", (*self.bytes.end()).into());
        if matches!(self.kind, Kind::HttpsUrl) { node.with("pattern", fields::HTTPS_URL.into()) } else { node }
    }
}

/// An integer in a range. The schema leaves out a maximum that only the type has.
#[derive(Debug, Clone)]
pub struct Integer<T>(RangeInclusive<T>);

#[must_use]
pub const fn integer<T>(range: RangeInclusive<T>) -> Integer<T> {
    Integer(range)
}

impl<T: TryFrom<i128> + Copy + PartialOrd + Display> Rule<T> for Integer<T> {
    fn read(&self, value: Value<'_>, _: &Context<'_>) -> Result<T, Invalid> {
        fields::integer(self.0.clone())(value)
    }
}

impl<T: Copy + Into<Node>> RuleSchema for Integer<T> {
    fn schema(&self, _: &mut Schemas) -> Node {
        let node = Node::map([("type", "integer".into()), ("minimum", (*self.0.start()).into())]);
        let maximum: Node = (*self.0.end()).into();
        if maximum == u64::MAX.into() { node } else { node.with("maximum", maximum) }
    }
}

/// Money whose amount is in a range.
#[derive(Debug, Clone)]
pub struct MoneyIn {
    amount: RangeInclusive<i64>,
    name: &'static str,
    doc: &'static str,
}

/// Money whose amount is in a range. The schema has a name, because many bodies contain it.
#[must_use]
pub const fn money(amount: RangeInclusive<i64>, name: &'static str, doc: &'static str) -> MoneyIn {
    MoneyIn { amount, name, doc }
}

pub const PRICE: MoneyIn = money(0..=MAX_AMOUNT, "Price", "An amount of money that is not negative.");
pub const MOVED_MONEY: MoneyIn = money(1..=MAX_AMOUNT, "MovedMoney", "An amount of money above zero.");

impl Rule<Money> for MoneyIn {
    fn read(&self, value: Value<'_>, _: &Context<'_>) -> Result<Money, Invalid> {
        fields::money(self.amount.clone())(value)
    }
}

impl RuleSchema for MoneyIn {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        schemas.named(self.name, |schemas| {
            let amount = Node::map([("type", "integer".into()), ("format", "int64".into())])
                .with("minimum", (*self.amount.start()).into())
                .with("maximum", (*self.amount.end()).into())
                .about("Minor units, cents for USD.");
            let currency = <key_schema::money::Currency as Schema>::schema(schemas);
            Node::map([
                ("type", "object".into()),
                ("required", Node::List(vec!["amount".into(), "currency".into()])),
                ("additionalProperties", false.into()),
                ("properties", Node::map([("amount", amount), ("currency", currency)])),
            ])
            .about(self.doc)
        })
    }

    fn example(&self) -> Option<Node> {
        Some(Node::map([("amount", 129.into()), ("currency", "USD".into())]))
    }
}

/// The number of pieces in a line of a cart or an order.
pub const QUANTITY: Named<Integer<u64>> = named("Quantity", "Pieces.", integer(1..=MAX_QUANTITY));

/// One of a few names.
#[derive(Debug, Clone, Copy)]
pub struct OneOf(&'static [&'static str]);

#[must_use]
pub const fn one_of(names: &'static [&'static str]) -> OneOf {
    OneOf(names)
}

impl<T: FromStr> Rule<T> for OneOf {
    fn read(&self, value: Value<'_>, _: &Context<'_>) -> Result<T, Invalid> {
        fields::one_of(self.0)(value)
    }
}

impl RuleSchema for OneOf {
    fn schema(&self, _: &mut Schemas) -> Node {
        Node::one_of(self.0)
    }

    fn example(&self) -> Option<Node> {
        self.0.first().map(|name| (*name).into())
    }
}

/// The id of a customer, or [`ME`] for the caller.
#[derive(Debug, Clone, Copy)]
pub struct Customer;

#[must_use]
pub const fn customer() -> Customer {
    Customer
}

impl Rule<CustomerId> for Customer {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<CustomerId, Invalid> {
        match (&value, context.caller()) {
            (Value::Text(text), crate::Caller::SignedIn(caller)) if text == ME => Ok(caller.id().clone()),
            _ => fields::parsed(value),
        }
    }
}

impl RuleSchema for Customer {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        CustomerId::schema(schemas)
    }

    fn example(&self) -> Option<Node> {
        CustomerId::example()
    }
}

/// A list whose length is in a range.
#[derive(Debug, Clone)]
pub struct List<T>(RangeInclusive<usize>, PhantomData<fn() -> T>);

#[must_use]
pub const fn list<T>(length: RangeInclusive<usize>) -> List<T> {
    List(length, PhantomData)
}

impl<T: FromBody> Rule<Vec<T>> for List<T> {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<Vec<T>, Invalid> {
        fields::array(self.0.clone(), |element| T::read(element, context))(value)
    }
}

impl<T: Schema> RuleSchema for List<T> {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        list_schema(&self.0, T::schema(schemas))
    }

    fn example(&self) -> Option<Node> {
        T::example().map(|example| Node::List(vec![example]))
    }
}

/// A list whose elements have a rule.
#[derive(Debug, Clone)]
pub struct ListOf<R>(R, RangeInclusive<usize>);

#[must_use]
pub const fn list_of<R>(rule: R, length: RangeInclusive<usize>) -> ListOf<R> {
    ListOf(rule, length)
}

impl<T, R: Rule<T>> Rule<Vec<T>> for ListOf<R> {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<Vec<T>, Invalid> {
        fields::array(self.1.clone(), |element| self.0.read(element, context))(value)
    }
}

impl<R: RuleSchema> RuleSchema for ListOf<R> {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        list_schema(&self.1, self.0.schema(schemas))
    }

    fn example(&self) -> Option<Node> {
        self.0.example().map(|example| Node::List(vec![example]))
    }
}

fn list_schema(length: &RangeInclusive<usize>, items: Node) -> Node {
    let node = Node::map([("type", "array".into())]);
    let node = if *length.start() > 0 { node.with("minItems", (*length.start()).into()) } else { node };
    let node = if *length.end() < usize::MAX { node.with("maxItems", (*length.end()).into()) } else { node };
    node.with("items", items)
}

/// An object as a map from keys of the type `K`, with a limited number of entries.
#[derive(Debug, Clone)]
pub struct MapOf<K, R>(R, usize, PhantomData<fn() -> K>);

#[must_use]
pub const fn map_of<K, R>(rule: R, most: usize) -> MapOf<K, R> {
    MapOf(rule, most, PhantomData)
}

impl<K: FromStr<Err: Display> + Ord, V, R: Rule<V>> Rule<BTreeMap<K, V>> for MapOf<K, R> {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<BTreeMap<K, V>, Invalid> {
        fields::map(self.1, |value| self.0.read(value, context))(value)
    }
}

impl<K: Schema, R: RuleSchema> RuleSchema for MapOf<K, R> {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        let node = Node::map([("type", "object".into())]);
        let node = if self.1 < usize::MAX { node.with("maxProperties", self.1.into()) } else { node };
        node.with("additionalProperties", self.0.schema(schemas))
    }

    fn example(&self) -> Option<Node> {
        match (K::example(), self.0.example()) {
            (Some(Node::Text(key)), Some(value)) => Some(Node::Map(vec![(key, value)])),
            _ => None,
        }
    }
}

/// A list whose elements are accepted or refused each by itself.
#[derive(Debug, Clone)]
pub struct Each<T>(RangeInclusive<usize>, PhantomData<fn() -> T>);

#[must_use]
pub const fn each<T>(length: RangeInclusive<usize>) -> Each<T> {
    Each(length, PhantomData)
}

impl<T: FromBody> Rule<Vec<Result<T, Invalid>>> for Each<T> {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<Vec<Result<T, Invalid>>, Invalid> {
        let elements = fields::array(self.0.clone(), Ok)(value)?.into_iter().enumerate();
        Ok(elements.map(|(index, element)| T::read(element, &context.of_element(index))).collect())
    }
}

impl<T: Schema> RuleSchema for Each<T> {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        list_schema(&self.0, T::schema(schemas)).with("x-each-by-itself", true.into())
    }

    fn example(&self) -> Option<Node> {
        T::example().map(|example| Node::List(vec![example]))
    }
}

/// A value that its own code reads or writes, with its schema as JSON.
#[derive(Debug, Clone, Copy)]
pub struct Described(&'static str);

#[must_use]
pub const fn described(schema: &'static str) -> Described {
    Described(schema)
}

impl RuleSchema for Described {
    fn schema(&self, _: &mut Schemas) -> Node {
        Node::json(self.0).unwrap_or(Node::Null)
    }
}

/// The values that the type's own reader permits.
#[derive(Debug, Clone)]
pub struct Any<T>(PhantomData<fn() -> T>);

#[must_use]
pub const fn any<T>() -> Any<T> {
    Any(PhantomData)
}

impl<T: FromBody> Rule<T> for Any<T> {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<T, Invalid> {
        T::read(value, context)
    }
}

impl<T: Schema> RuleSchema for Any<T> {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        T::schema(schemas)
    }

    fn example(&self) -> Option<Node> {
        T::example()
    }
}

/// A rule whose schema has a name.
#[derive(Debug, Clone)]
pub struct Named<R> {
    name: &'static str,
    doc: &'static str,
    rule: R,
}

#[must_use]
pub const fn named<R>(name: &'static str, doc: &'static str, rule: R) -> Named<R> {
    Named { name, doc, rule }
}

impl<T, R: Rule<T>> Rule<T> for Named<R> {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<T, Invalid> {
        self.rule.read(value, context)
    }
}

impl<R: RuleSchema> RuleSchema for Named<R> {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        schemas.named(self.name, |schemas| self.rule.schema(schemas).about(self.doc))
    }

    fn example(&self) -> Option<Node> {
        self.rule.example()
    }
}

/// A value of a response whose schema is in `components` of `openapi.yaml`.
#[derive(Debug, Clone, Copy)]
pub struct Component(&'static str, &'static str);

/// Refers to a schema in `components`. The example is JSON.
#[must_use]
pub const fn component(name: &'static str, example: &'static str) -> Component {
    Component(name, example)
}

/// The version of an item, which the ETag has, too.
pub const VERSION: Component = component("Version", "1");

impl RuleSchema for Component {
    fn schema(&self, _: &mut Schemas) -> Node {
        Node::reference("schemas", self.0)
    }

    fn example(&self) -> Option<Node> {
        Node::json(self.1)
    }
}

/// A value of a response that has the form in which a client sends it.
#[derive(Debug, Clone)]
pub struct AsSent<R>(R);

#[must_use]
pub const fn as_sent<R>(rule: R) -> AsSent<R> {
    AsSent(rule)
}

impl<R: RuleSchema> RuleSchema for AsSent<R> {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        schemas.of_request(|schemas| self.0.schema(schemas))
    }

    fn example(&self) -> Option<Node> {
        self.0.example()
    }
}
