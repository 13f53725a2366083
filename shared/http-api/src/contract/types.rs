//! The readers and schemas of the types that bodies share.

use std::borrow::Cow;
use std::collections::BTreeMap;

use key_schema::address::Country;
use key_schema::customer::Tier;
use key_schema::graph::EdgeKind;
use key_schema::id::{Id, OrderId, OrderReference};
use key_schema::instant::Instant;
use key_schema::metric::{Decimal, DecimalError};
use key_schema::money::{Currency, Money};
use key_schema::order::{OrderNumber, OrderStatus};
use key_schema::product::{CategoryPath, MAX_CATEGORY_BYTES, MAX_CATEGORY_DEPTH};
use key_schema::question::QuestionStatus;
use key_schema::text::{Email, Username};
use key_schema::variant::{MAX_OPTION_NAME_BYTES, MAX_OPTION_VALUE_BYTES, MAX_OPTIONS, Options};
use key_schema::wallet::EntryKind;

use super::rules::{self, Rule as _, RuleSchema as _};
use super::{Context, FromBody, Node, Schema, Schemas};
use crate::body::Invalid;
use crate::fields::{self, MAX_AMOUNT};
use crate::json::Value;

fn string() -> Node {
    Node::map([("type", "string".into())])
}

fn id(schemas: &mut Schemas) -> Node {
    if schemas.is_request() {
        return schemas.named("GivenId", |_| {
            string()
                .with("minLength", 1.into())
                .with("maxLength", key_schema::id::MAX_ID_BYTES.into())
                .with(
                    "pattern",
                    r"^(\.{0,2}[^\s.\x00-\x1F/?%\\\x7F-\x9F]([^\x00-\x1F/?%\\\x7F-\x9F]*[^\s\x00-\x1F/?%\\\x7F-\x9F])?|\.{1,2}[^.\x00-\x1F/?%\\\x7F-\x9F][^\x00-\x1F/?%\\\x7F-\x9F]*[^\s\x00-\x1F/?%\\\x7F-\x9F]|\.{3}([^\x00-\x1F/?%\\\x7F-\x9F]*[^\s\x00-\x1F/?%\\\x7F-\x9F])?)$".into(),
                )
                .about(
                    "An id from a client: 1 to 128 bytes of UTF-8 without the characters that a path cannot contain, \
                     without invisible characters, and without a space at the ends or two spaces in a row. `.` and \
                     `..` are no ids.",
                )
                .with("examples", Node::List(vec!["ann".into()]))
        });
    }
    schemas.named("Id", |_| {
        string()
            .with("minLength", 1.into())
            .with("maxLength", key_schema::id::MAX_ID_BYTES.into())
            .about(
                "1 to 128 bytes of UTF-8 without control and invisible characters, and without a space at the ends \
                 or two spaces in a row.",
            )
            .with("examples", Node::List(vec!["ann".into()]))
    })
}

/// Implements both traits for types that are read from a text by their own rule.
macro_rules! texts {
    ($($ty:ty, $example:expr, $schema:expr;)*) => {
        $(impl FromBody for $ty {
            fn read(value: Value<'_>, _: &Context<'_>) -> Result<Self, Invalid> {
                fields::parsed(value)
            }
        }

        impl Schema for $ty {
            fn schema(schemas: &mut Schemas) -> Node {
                let schema: fn(&mut Schemas) -> Node = $schema;
                schema(schemas)
            }

            fn example() -> Option<Node> {
                Some($example.into())
            }
        })*
    };
}

const GENERATED: &str = "0190163d-8694-739b-aea5-966c26f8ad91";

/// An id that only the server generates.
fn generated(schemas: &mut Schemas) -> Node {
    if schemas.is_request() {
        return id(schemas);
    }
    schemas.named("GeneratedId", |_| {
        string()
            .with("format", "uuid".into())
            .about("An id that the server generated. Later ids are greater.")
            .with("examples", Node::List(vec![GENERATED.into()]))
    })
}

macro_rules! names {
    ($name:literal, $ty:ident) => {
        |schemas: &mut Schemas| {
            schemas.named($name, |_| Node::one_of(&$ty::ALL.iter().map(|known| known.as_str()).collect::<Vec<_>>()))
        }
    };
}

macro_rules! ids {
    ($(($ty:path $(= $example:literal)?))*) => {
        $(ids! { $ty $(= $example)? })*
    };
    ($ty:path = $example:literal) => {
        texts! { $ty, $example, id; }
    };
    ($ty:path) => {
        texts! { $ty, GENERATED, generated; }
    };
}

key_schema::each_id! { ids }

texts! {
    OrderReference, "web-4711", |schemas| schemas.named("Reference", |_| {
        string().with("minLength", 1.into()).with("maxLength", 128.into()).about(
            "The client's own number for the order, 1 to 128 bytes. If the customer places the order, it is unique \
             among the orders that this customer places. If staff places the order, it is unique among all orders \
             that staff places.",
        )
    });
    Email, "ann@example.com", |schemas| schemas.named("Email", |_| {
        string().with("minLength", 3.into()).with("maxLength", 254.into())
            .about(
                "At most 254 bytes. Spellings that differ only in case, Unicode form or invisible characters are one \
                 address. Invisible characters, such as soft hyphens and joiners, are removed.",
            )
            .with("examples", Node::List(vec!["ann@example.com".into()]))
    });
    Username, "Ann", |schemas| schemas.named("Username", |_| {
        string().with("minLength", 1.into()).with("maxLength", 128.into())
            .about(
                "1 to 128 bytes with a visible character. Line separators, private-use characters and noncharacters \
                 are refused. User names are compared like email addresses.",
            )
            .with("examples", Node::List(vec!["Ann".into()]))
    });
    Country, "DE", |schemas| schemas.named("Country", |_| {
        string().with("pattern", "^[A-Z]{2}$".into()).about("A country code of ISO 3166-1 alpha-2.")
            .with("examples", Node::List(vec!["CH".into()]))
    });
    Currency, "USD", |schemas| schemas.named("Currency", |_| {
        string().with("pattern", "^[A-Z]{3}$".into()).about("A currency that ISO 4217 lists, by its code.")
            .with("examples", Node::List(vec!["USD".into()]))
    });
    Tier, "bronze", names!("Tier", Tier);
    OrderStatus, "pending", |schemas| schemas.named("OrderStatus", |_| {
        Node::one_of(&OrderStatus::VISIBLE.iter().map(|known| known.as_str()).collect::<Vec<_>>())
    });
}

/// Implements the trait of the schema for names that only responses contain.
macro_rules! shown {
    ($($ty:ident, $name:literal;)*) => {
        $(impl Schema for $ty {
            fn schema(schemas: &mut Schemas) -> Node {
                names!($name, $ty)(schemas)
            }

            fn example() -> Option<Node> {
                $ty::ALL.first().map(|first| first.as_str().into())
            }
        })*
    };
}

shown! {
    EdgeKind, "EdgeKind";
    QuestionStatus, "QuestionStatus";
    EntryKind, "EntryKind";
}

impl Schema for OrderNumber {
    fn schema(schemas: &mut Schemas) -> Node {
        schemas.named("OrderNumber", |_| {
            string()
                .with("pattern", "^[2-9A-HJKMNPQRTV-Z]{4}-[2-9A-HJKMNPQRTV-Z]{4}$".into())
                .about("The short number of an order, which people read out. The last character is a check character.")
                .with("examples", Node::List(Self::example().into_iter().collect()))
        })
    }

    fn example() -> Option<Node> {
        let id = OrderId::new(GENERATED).ok()?;
        Some(Self::of(&id).to_string().into())
    }
}

impl FromBody for bool {
    fn read(value: Value<'_>, _: &Context<'_>) -> Result<Self, Invalid> {
        fields::boolean(value)
    }
}

impl Schema for bool {
    fn schema(_: &mut Schemas) -> Node {
        Node::map([("type", "boolean".into())])
    }

    fn example() -> Option<Node> {
        Some(true.into())
    }
}

impl FromBody for Instant {
    fn read(value: Value<'_>, _: &Context<'_>) -> Result<Self, Invalid> {
        fields::instant(value)
    }
}

impl Schema for Instant {
    fn schema(schemas: &mut Schemas) -> Node {
        schemas.named("Instant", |_| {
            string()
                .with("format", "date-time".into())
                .with("examples", Node::List(vec!["2017-01-01T11:53:26.000Z".into()]))
        })
    }

    fn example() -> Option<Node> {
        Some("2026-11-20T12:00:00.000Z".into())
    }
}

impl FromBody for Decimal {
    fn read(value: Value<'_>, context: &Context<'_>) -> Result<Self, Invalid> {
        match (value, context.number()) {
            (Value::Integer(_) | Value::OtherNumber, Some(text)) => {
                text.parse().map_err(|error: DecimalError| Invalid::new(error.to_string()))
            }
            _ => Err(Invalid::new("must be a number")),
        }
    }
}

impl Schema for Decimal {
    fn schema(schemas: &mut Schemas) -> Node {
        schemas.named("MetricValue", |_| {
            Node::map([("type", "number".into())]).about(
                "A number of at most 38 digits, with an exponent of at most three digits. All digits are stored as \
                 sent.",
            )
        })
    }

    fn example() -> Option<Node> {
        Node::json("12.5")
    }
}

impl FromBody for Money {
    fn read(value: Value<'_>, _: &Context<'_>) -> Result<Self, Invalid> {
        fields::money(0..=MAX_AMOUNT)(value)
    }
}

impl Schema for Money {
    fn schema(schemas: &mut Schemas) -> Node {
        schemas.named("Money", |schemas| {
            let amount = Node::map([("type", "integer".into()), ("format", "int64".into())])
                .about("Minor units, cents for USD.");
            let currency = Currency::schema(schemas);
            Node::map([
                ("type", "object".into()),
                ("required", Node::List(vec!["amount".into(), "currency".into()])),
                ("additionalProperties", false.into()),
                ("properties", Node::map([("amount", amount), ("currency", currency)])),
                ("examples", Node::List(Self::example().into_iter().collect())),
            ])
        })
    }

    fn example() -> Option<Node> {
        Some(Node::map([("amount", 129.into()), ("currency", "USD".into())]))
    }
}

const CATEGORY_NAMES: rules::ListOf<rules::Text> =
    rules::list_of(rules::visible_text(1..=key_schema::id::MAX_ID_BYTES), 1..=MAX_CATEGORY_DEPTH);

impl FromBody for CategoryPath {
    fn read(value: Value<'_>, context: &Context<'_>) -> Result<Self, Invalid> {
        Self::new(CATEGORY_NAMES.read(value, context)?).map_err(|error| Invalid::new(error.to_string()))
    }
}

impl Schema for CategoryPath {
    fn schema(schemas: &mut Schemas) -> Node {
        schemas.named("CategoryNames", |schemas| {
            CATEGORY_NAMES.schema(schemas).about(&format!(
                "The category's names from the top. Each has 1 to 128 bytes. Together, with special bytes escaped, \
                 they have at most {MAX_CATEGORY_BYTES} bytes."
            ))
        })
    }

    fn example() -> Option<Node> {
        Some(Node::List(vec!["GROCERY".into(), "FRZN ICE".into()]))
    }
}

const OPTIONS: rules::MapOf<String, rules::Text> =
    rules::map_of(rules::visible_text(1..=MAX_OPTION_VALUE_BYTES), MAX_OPTIONS);

impl FromBody for Options {
    fn read(value: Value<'_>, context: &Context<'_>) -> Result<Self, Invalid> {
        Self::new(OPTIONS.read(value, context)?).map_err(|error| Invalid::new(error.to_string()))
    }
}

impl Schema for Options {
    fn schema(schemas: &mut Schemas) -> Node {
        schemas.named("Options", |schemas| {
            OPTIONS.schema(schemas).with("minProperties", 1.into()).about(&format!(
                "The options of a variant by name, such as size and colour. A name has at most \
                 {MAX_OPTION_NAME_BYTES} bytes of UTF-8, and a value at most {MAX_OPTION_VALUE_BYTES} bytes."
            ))
        })
    }

    fn example() -> Option<Node> {
        Some(Node::map([("size", "M".into()), ("colour", "red".into())]))
    }
}

macro_rules! integers {
    ($($ty:ty)*) => {
        $(impl Schema for $ty {
            fn schema(_: &mut Schemas) -> Node {
                Node::map([("type", "integer".into()), ("minimum", 0.into())])
            }

            fn example() -> Option<Node> {
                Some(1.into())
            }
        })*
    };
}

integers! { u8 u16 u32 u64 usize }

impl Schema for i64 {
    fn schema(_: &mut Schemas) -> Node {
        Node::map([("type", "integer".into()), ("format", "int64".into())])
    }

    fn example() -> Option<Node> {
        Some(1.into())
    }
}

impl Schema for f64 {
    fn schema(_: &mut Schemas) -> Node {
        Node::map([("type", "number".into())])
    }

    fn example() -> Option<Node> {
        Some(1.into())
    }
}

macro_rules! strings {
    ($($ty:ty)*) => {
        $(impl Schema for $ty {
            fn schema(_: &mut Schemas) -> Node {
                string()
            }
        })*
    };
}

strings! { str String Cow<'_, str> }

/// The end of a response without a body.
impl Schema for () {
    fn schema(_: &mut Schemas) -> Node {
        Node::Null
    }
}

impl<T: Schema + ?Sized> Schema for &T {
    fn schema(schemas: &mut Schemas) -> Node {
        T::schema(schemas)
    }

    fn example() -> Option<Node> {
        T::example()
    }
}

impl<T: FromBody> FromBody for Box<T> {
    fn read(value: Value<'_>, context: &Context<'_>) -> Result<Self, Invalid> {
        T::read(value, context).map(Self::new)
    }
}

impl<T: Schema + ?Sized> Schema for Box<T> {
    fn schema(schemas: &mut Schemas) -> Node {
        T::schema(schemas)
    }

    fn example() -> Option<Node> {
        T::example()
    }
}

impl<T: Schema> Schema for [T] {
    fn schema(schemas: &mut Schemas) -> Node {
        let items = T::schema(schemas);
        Node::map([("type", "array".into()), ("items", items)])
    }

    fn example() -> Option<Node> {
        T::example().map(|example| Node::List(vec![example]))
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema(schemas: &mut Schemas) -> Node {
        <[T]>::schema(schemas)
    }

    fn example() -> Option<Node> {
        <[T]>::example()
    }
}

impl<T: Schema> Schema for Option<T> {
    fn schema(schemas: &mut Schemas) -> Node {
        T::schema(schemas).or_null()
    }

    fn example() -> Option<Node> {
        T::example()
    }
}

impl<K: Id, V: Schema> Schema for BTreeMap<K, V> {
    fn schema(schemas: &mut Schemas) -> Node {
        let values = V::schema(schemas);
        Node::map([("type", "object".into()), ("additionalProperties", values)])
    }
}
