//! Builds paths and queries. Every value is escaped once, so it is always one segment.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except the unreserved characters of RFC 3986, section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes one segment of a path, or one name or value of a query.
#[must_use]
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Returns the path of a record under `/v1`, for Location: `location(&["customers", "a b"])` is
/// `/v1/customers/a%20b`.
#[must_use]
pub fn location(segments: &[&str]) -> String {
    segments.iter().fold("/v1".to_owned(), |path, segment| path + "/" + &encode(segment))
}

/// Returns the path of a product's picture. A GET of it redirects to the picture itself.
#[must_use]
pub fn picture(product: &str, picture: &str) -> String {
    location(&["products", product, "pictures", picture])
}

/// Fills in a route's path parameters: `/v1/orders/{id}` and `o 1` give `/v1/orders/o%201`.
pub(crate) fn fill<'v>(template: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let filled = template.split('/').map(|segment| match parameter(segment) {
        Some(name) => encode(value(name).unwrap_or_default()),
        None => segment.to_owned(),
    });
    filled.collect::<Vec<_>>().join("/")
}

/// Returns the name in `{name}`.
pub(crate) fn parameter(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_stays_one_segment() {
        assert_eq!(
            location(&["products", "a+b#c&d e", "reviews", "Ωmega~1"]),
            "/v1/products/a%2Bb%23c%26d%20e/reviews/%CE%A9mega~1"
        );
    }

    #[test]
    fn a_template_is_filled_with_encoded_values() {
        assert_eq!(fill("/v1/x/{id}/y", |name| (name == "id").then_some("a b")), "/v1/x/a%20b/y");
    }
}
