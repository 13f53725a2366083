use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use http_api::contract::{Node, RuleSchema, Schemas};
use http_api::{Code, Problem, Request};
use key_schema::id;
use key_schema::product::{CategoryError, CategoryPath};
use key_schema::text::visible_name;
use search_index::{ProductSort, SearchText};

const MAX_VALUES: usize = 10;

/// The schema of a parameter.
#[derive(Debug)]
pub enum Parameter {
    Categories,
    Brands,
    InStock,
    Price,
    Sort,
}

impl RuleSchema for Parameter {
    fn schema(&self, _: &mut Schemas) -> Node {
        let several =
            |items: Node| Node::map([("type", "array".into()), ("maxItems", MAX_VALUES.into()), ("items", items)]);
        match self {
            Self::Categories => several(Node::map([("type", "string".into()), ("minLength", 1.into())])),
            Self::Brands => several(Node::reference("schemas", "Brand")),
            Self::InStock => Node::one_of(&["true", "false"]),
            Self::Price => Node::map([("type", "integer".into()), ("format", "int64".into()), ("minimum", 0.into())]),
            Self::Sort => Node::one_of(&["relevance", "price", "price_asc", "-price", "price_desc", "newest", "name"])
                .with("default", "relevance".into()),
        }
    }
}

/// Reads a parameter with `read`. The response to the client contains the error of `read`.
pub fn read<T, E: Display>(
    request: &Request<'_>,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, Problem> {
    let refuse =
        |error| Problem::new(Code::InvalidParameter, format!("The query parameter `{name}` is invalid: {error}."));
    request.query(name)?.map(|text| read(text).map_err(refuse)).transpose()
}

/// Reads a filter that can be given several times. Returns its different values, sorted.
fn read_all<E: Display>(
    request: &Request<'_>,
    name: &str,
    read: impl Fn(&str) -> Result<String, E>,
) -> Result<Vec<String>, Problem> {
    let refuse = |detail: &dyn Display| {
        Problem::new(Code::InvalidParameter, format!("The query parameter `{name}` is invalid: {detail}."))
    };
    let mut values = BTreeSet::new();
    for (number, text) in request.query_all(name)?.enumerate() {
        if number >= MAX_VALUES {
            return Err(refuse(&format!("it has more than {MAX_VALUES} values")));
        }
        values.insert(read(text).map_err(|error| refuse(&error))?);
    }
    Ok(values.into_iter().collect())
}

/// Reads `q`. Without `q` every item matches.
pub fn text(request: &Request<'_>) -> Result<SearchText, Problem> {
    Ok(read(request, "q", SearchText::parse)?.unwrap_or_default())
}

/// Reads every `category`, and returns it as the index stores it: as one segment of a URL.
pub fn categories(request: &Request<'_>) -> Result<Vec<String>, Problem> {
    read_all(request, "category", |text| path(text).map(|path| path.to_segment()))
}

/// Returns a category of the index as a facet shows it: its names joined by ` / `. If the
/// `category` parameter would read that text as another category, returns the segment instead. This
/// happens when a name contains ` / ` or looks like a segment.
pub fn shown_category(segment: &str) -> String {
    CategoryPath::from_segment(segment)
        .ok()
        .map(|category| (category.to_string(), category))
        .filter(|(text, category)| path(text).as_ref() == Ok(category))
        .map_or_else(|| segment.to_owned(), |(text, _)| text)
}

/// Parses a category in the form of a URL, `GROCERY~FRZN_20ICE`, or of a facet,
/// `GROCERY / FRZN ICE`. A text that fits both forms is read as the form of a URL.
fn path(text: &str) -> Result<CategoryPath, CategoryError> {
    match CategoryPath::from_segment(text) {
        Err(CategoryError::Segment) => CategoryPath::new(text.split(" / ").map(str::to_owned).collect()),
        path => path,
    }
}

/// Reads every `brand` in its one spelling. A product matches if one of them equals its brand.
pub fn brands(request: &Request<'_>) -> Result<Vec<String>, Problem> {
    read_all(request, "brand", |text| {
        let brand = visible_name(text).map_err(|error| error.to_string())?;
        id::check(&brand).map(|()| brand).map_err(|error| error.to_string())
    })
}

pub fn in_stock(request: &Request<'_>) -> Result<Option<bool>, Problem> {
    read(request, "in_stock", |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false"),
    })
}

/// Reads `min_price` and `max_price` in minor units, both inclusive.
pub fn prices(request: &Request<'_>) -> Result<(Option<i64>, Option<i64>), Problem> {
    let (low, high) = (read(request, "min_price", amount)?, read(request, "max_price", amount)?);
    if low.zip(high).is_some_and(|(low, high)| low > high) {
        return Err(Problem::new(Code::InvalidParameter, "`min_price` is above `max_price`."));
    }
    Ok((low, high))
}

fn amount(text: &str) -> Result<i64, &'static str> {
    // `parse` would accept a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or("must be an integer of minor units, 0 or more")
}

#[derive(Debug, Clone, Copy)]
pub struct Sort {
    pub by: ProductSort,
    /// The value's name in cursors.
    pub name: &'static str,
}

impl Default for Sort {
    fn default() -> Self {
        Self { by: ProductSort::Relevance, name: "relevance" }
    }
}

impl FromStr for Sort {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (by, name) = match text {
            "relevance" => (ProductSort::Relevance, "relevance"),
            "price" | "price_asc" => (ProductSort::PriceAscending, "price"),
            "-price" | "price_desc" => (ProductSort::PriceDescending, "-price"),
            "newest" => (ProductSort::Newest, "newest"),
            "name" => (ProductSort::Name, "name"),
            _ => return Err("must be relevance, price, -price, newest or name"),
        };
        Ok(Self { by, name })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_category_parameter_has_the_form_of_a_url_or_of_a_facet() {
        for text in ["GROCERY~FRZN_20ICE", "GROCERY / FRZN ICE"] {
            assert_eq!(path(text).unwrap().to_string(), "GROCERY / FRZN ICE");
        }
        assert_eq!(path("GROCERY").unwrap().to_string(), "GROCERY");
        assert_eq!(path("ICE - CRUSHED/CUBED").unwrap().names(), ["ICE - CRUSHED/CUBED"]);
        for bad in ["", "GROCERY / ", "a\u{0}b", &"x / ".repeat(9)] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_value_of_a_facet_selects_the_category_that_it_counts() {
        let shown = |names: &[&str]| {
            let category = CategoryPath::new(names.iter().map(|name| (*name).to_owned()).collect()).unwrap();
            let shown = shown_category(&category.to_segment());
            assert_eq!(path(&shown).unwrap(), category, "{shown}");
            shown
        };
        assert_eq!(shown(&["GROCERY"]), "GROCERY");
        assert_eq!(shown(&["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"]), "GROCERY / FRZN ICE / ICE - CRUSHED/CUBED");
        assert_eq!(shown(&["A / B", "C"]), "A_20_2F_20B~C");
        assert_eq!(shown(&["A / B"]), "A_20_2F_20B");
        assert_eq!(shown(&["A~B"]), "A_7EB");
        assert_eq!(shown(&["A_20B"]), "A_5F20B");
        assert_eq!(shown_category("an old / form"), "an old / form");
    }

    #[test]
    fn a_price_has_only_digits_and_fits_an_integer() {
        assert_eq!(amount("0"), Ok(0));
        assert_eq!(amount("9223372036854775807"), Ok(i64::MAX));
        for bad in ["", "-1", "+1", "1.0", "1e3", " 1", "9223372036854775808"] {
            assert!(amount(bad).is_err(), "{bad}");
        }
    }
}
