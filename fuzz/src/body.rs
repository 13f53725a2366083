//! Bodies: the functions read JSON like other parsers, and refuse texts on which parsers differ. An
//! accepted body is within its bounds. It is the same after it is written and read again.

use http_api::fields::{MAX_AMOUNT, array, boolean, instant, integer, long_text, map, money, one_of, parsed, text};
use http_api::{FieldPatch, Invalid, Object, json};
use key_schema::id::{AddressName, MAX_ID_BYTES, ProductId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::product::CategoryPath;
use key_schema::text::Email;
use serde_json::{Map, Value, json};

/// The maximum number of lines in the body of this target.
const MAX_LINES: usize = 3;
/// The maximum number of names in the body's map.
const MAX_NAMES: usize = 3;
/// The maximum number of bytes of a text in the body.
const MAX_BYTES: usize = 200;

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    agree(text);
    let Ok(body) = Object::parse(text) else { return };
    match Body::read(body) {
        Ok(body) => {
            body.within_bounds();
            let again = body.written().to_string();
            let read = Object::parse(&again).ok().and_then(|again| Body::read(again).ok());
            assert_eq!(read.as_ref(), Some(&body), "{again}");
        }
        Err(invalid) => refused(&invalid, text),
    }
    for number in json::texts_of(text, "lines", "quantity").into_iter().flatten() {
        assert!(serde_json::from_str::<Value>(number).is_ok(), "{number}");
    }
}

/// A body with one field of every kind.
#[derive(Debug, PartialEq)]
struct Body {
    id: Option<ProductId>,
    email: Option<Email>,
    name: String,
    summary: FieldPatch<String>,
    price: Option<Money>,
    at: Option<Instant>,
    tier: Option<u8>,
    is_public: Option<bool>,
    category_path: Option<CategoryPath>,
    lines: Option<Vec<(ProductId, u64)>>,
    names: Option<Vec<(AddressName, i64)>>,
}

impl Body {
    fn read(mut body: Object<'_>) -> Result<Self, Invalid> {
        let id = body.optional("id", parsed::<ProductId>);
        let email = body.optional("email", parsed::<Email>);
        let name = body.required("name", text(1..=MAX_BYTES));
        let summary = body.changed("summary", long_text(1..=MAX_BYTES));
        let price = body.optional("price", money(0..=MAX_AMOUNT));
        let at = body.optional("at", instant);
        let tier = body.optional("tier", one_of::<u8>(&["1", "2"]));
        let is_public = body.replaced("public", boolean);
        let path = body.optional("category_path", array(1..=8, text(1..=MAX_ID_BYTES)));
        let lines = body.optional(
            "lines",
            array(1..=MAX_LINES, |line| {
                let mut line = line.object()?;
                let product = line.required("product_id", parsed::<ProductId>);
                let quantity = line.required("quantity", integer(1..=1_000_000_u64));
                line.finish(product.zip(quantity))
            }),
        );
        let names = body.optional("names", map::<AddressName, _>(MAX_NAMES, integer(i64::MIN..=i64::MAX)));
        let texts = id.zip(email).zip(name).zip(summary).zip(path).zip(names);
        let others = price.zip(at).zip(tier).zip(is_public).zip(lines);
        let read = body.finish(texts.zip(others))?;
        let (((((id, email), name), summary), path), names) = read.0;
        let ((((price, at), tier), is_public), lines) = read.1;
        let category_path = path.map(CategoryPath::new).transpose().map_err(|error| Invalid::new(error.to_string()))?;
        let names = names.map(|names| names.into_iter().collect());
        Ok(Self { id, email, name, summary, price, at, tier, is_public, category_path, lines, names })
    }

    fn within_bounds(&self) {
        assert!((1..=MAX_BYTES).contains(&self.name.len()) && !self.name.contains(char::is_control));
        if let FieldPatch::Set(summary) = &self.summary {
            let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
            assert!((1..=MAX_BYTES).contains(&summary.len()) && !summary.contains(odd));
        }
        assert!(self.price.is_none_or(|price| (0..=MAX_AMOUNT).contains(&price.amount)));
        assert!(self.at.is_none_or(|at| (Instant::MIN..=Instant::MAX).contains(&at)));
        assert!(self.tier.is_none_or(|tier| tier == 1 || tier == 2));
        let lines = self.lines.as_deref();
        assert!(lines.is_none_or(|lines| (1..=MAX_LINES).contains(&lines.len())));
        assert!(lines.into_iter().flatten().all(|(_, quantity)| (1..=1_000_000).contains(quantity)));
        assert!(self.names.as_ref().is_none_or(|names| names.len() <= MAX_NAMES));
    }

    /// Returns the body as JSON in a fixed form.
    fn written(&self) -> Value {
        let mut body = Map::new();
        body.insert("name".to_owned(), self.name.as_str().into());
        match &self.summary {
            FieldPatch::Keep => None,
            FieldPatch::Clear => body.insert("summary".to_owned(), Value::Null),
            FieldPatch::Set(summary) => body.insert("summary".to_owned(), summary.as_str().into()),
        };
        let fields = [
            ("id", self.id.as_ref().map(|id| json!(id))),
            ("email", self.email.as_ref().map(|email| json!(email))),
            ("price", self.price.map(|price| json!(price))),
            ("at", self.at.map(|at| json!(at))),
            ("tier", self.tier.map(|tier| json!(tier.to_string()))),
            ("public", self.is_public.map(Value::Bool)),
            ("category_path", self.category_path.as_ref().map(|path| json!(path))),
            (
                "lines",
                self.lines.as_ref().map(|lines| {
                    lines.iter().map(|(id, pieces)| json!({"product_id": id, "quantity": pieces})).collect()
                }),
            ),
            (
                "names",
                self.names
                    .as_ref()
                    .map(|names| names.iter().map(|(name, number)| (name.to_string(), json!(number))).collect()),
            ),
        ];
        body.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        body.into()
    }
}

/// Checks that each error names a position, and that there are at most a hundred errors.
fn refused(invalid: &Invalid, text: &str) {
    assert!((1..=100).contains(&invalid.errors().len()), "{text}");
    for error in invalid.errors() {
        assert!(error.pointer.is_empty() || error.pointer.starts_with('/'), "{error:?}");
        assert!(!error.detail.is_empty());
    }
}

/// Checks that the functions' JSON reader accepts the same texts as `serde_json`, with the same
/// meaning. Numbers out of range and duplicate names are exceptions, because parsers differ on
/// them.
fn agree(text: &str) {
    let (ours, usual) = (json::Value::parse(text), serde_json::from_str::<Value>(text));
    match (ours, usual) {
        (Ok(ours), Ok(usual)) => {
            assert!(same(&ours, &usual), "{text}");
            assert_eq!(members(&usual), colons(text), "a duplicate name is accepted: {text}");
        }
        (Ok(_), Err(error)) => panic!("accepted, but serde_json refuses it: {error}: {text}"),
        (Err(json::ParseError::DuplicateName { .. } | json::ParseError::NumberOutOfRange), _) | (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => panic!("refused, but serde_json accepts it: {error}: {text}"),
    }
}

/// Returns the number of members of all objects in the value.
fn members(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(members).sum(),
        Value::Object(object) => object.len() + object.values().map(members).sum::<usize>(),
        _ => 0,
    }
}

/// Returns the number of colons outside of strings in a JSON text. Each member has one such colon.
fn colons(text: &str) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_text = !is_text,
            b':' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

fn same(ours: &json::Value<'_>, usual: &Value) -> bool {
    match (ours, usual) {
        (json::Value::Null, Value::Null) | (json::Value::OtherNumber, Value::Number(_)) => true,
        (json::Value::Boolean(ours), Value::Bool(usual)) => ours == usual,
        (json::Value::Integer(ours), Value::Number(usual)) => {
            Some(*ours) == usual.as_i64().map(i128::from).or_else(|| usual.as_u64().map(i128::from))
        }
        (json::Value::Text(ours), Value::String(usual)) => ours == usual,
        (json::Value::Array(ours), Value::Array(usual)) => {
            ours.len() == usual.len() && ours.iter().zip(usual).all(|(ours, usual)| same(ours, usual))
        }
        (json::Value::Object(ours), Value::Object(usual)) => {
            let has = |(name, ours): (&std::borrow::Cow<'_, str>, &json::Value<'_>)| {
                usual.get(name.as_ref()).is_some_and(|usual| same(ours, usual))
            };
            ours.len() == usual.len() && ours.iter().all(has)
        }
        _ => false,
    }
}
