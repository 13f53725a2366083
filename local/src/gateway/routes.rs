use std::cmp::Reverse;

use template::Route;

pub struct RouteTable(Vec<Entry>);

struct Entry {
    route: Route,
    segments: Vec<Segment>,
}

enum Segment {
    Literal(String),
    Parameter(String),
}

/// A route, and the values of its path parameters in a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Match<'a> {
    pub route: &'a Route,
    pub parameters: Vec<(&'a str, String)>,
}

impl RouteTable {
    #[must_use]
    pub fn new(routes: Vec<Route>) -> Self {
        let entry = |route: Route| Entry { segments: route.path.split('/').skip(1).map(Segment::new).collect(), route };
        Self(routes.into_iter().map(entry).collect())
    }

    /// Returns the most specific route for `method` and the decoded `path`.
    ///
    /// If two routes match, the more specific route has a literal segment where they first differ,
    /// as in API Gateway.
    pub fn find(&self, method: &str, path: &str) -> Option<Match<'_>> {
        let path = path.strip_prefix('/')?;
        let given: Vec<&str> = path.split('/').collect();
        let entry = self
            .0
            .iter()
            .filter(|entry| entry.route.method == method && entry.takes(&given))
            .min_by_key(|entry| Reverse(entry.literals()))?;
        let mut parameters = Vec::new();
        for (segment, given) in entry.segments.iter().zip(given) {
            if let Segment::Parameter(name) = segment {
                parameters.push((name.as_str(), given.to_owned()));
            }
        }
        Some(Match { route: &entry.route, parameters })
    }
}

impl Entry {
    fn takes(&self, given: &[&str]) -> bool {
        self.segments.len() == given.len()
            && self.segments.iter().zip(given).all(|(segment, given)| match segment {
                Segment::Literal(literal) => literal == given,
                Segment::Parameter(_) => !given.is_empty(),
            })
    }

    /// Returns for each segment whether it is a literal. In comparisons, `true` is greater than
    /// `false`.
    fn literals(&self) -> Vec<bool> {
        let is_literal = |segment: &Segment| matches!(segment, Segment::Literal(_));
        self.segments.iter().map(is_literal).collect()
    }
}

impl Segment {
    fn new(text: &str) -> Self {
        let parameter = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match parameter {
            Some(name) => Self::Parameter(name.to_owned()),
            None => Self::Literal(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn route(method: &str, path: &str) -> Route {
        Route { method: method.to_owned(), path: path.to_owned(), function: "F".to_owned(), authorizer: None }
    }

    fn table() -> RouteTable {
        RouteTable::new(vec![
            route("GET", "/v1/products/{id}"),
            route("GET", "/v1/products/import"),
            route("GET", "/v1/products/{id}/reviews/{customer}"),
            route("POST", "/v1/products"),
        ])
    }

    #[test]
    fn a_literal_segment_takes_precedence_over_a_parameter() {
        let table = table();
        let found = table.find("GET", "/v1/products/import").unwrap();
        assert_eq!(found.route.path, "/v1/products/import");
        let found = table.find("GET", "/v1/products/imports").unwrap();
        assert_eq!(found.route.path, "/v1/products/{id}");
    }

    #[test]
    fn path_parameters_are_the_unchanged_segments() {
        let table = table();
        let found = table.find("GET", "/v1/products/a%?#+c/reviews/\u{20ac} x").unwrap();
        assert_eq!(found.parameters, [("id", "a%?#+c".to_owned()), ("customer", "\u{20ac} x".to_owned())]);
    }

    #[test]
    fn a_request_without_a_matching_route_is_not_found() {
        let table = table();
        for (method, path) in [
            ("GET", "/v1/products"),
            ("DELETE", "/v1/products/1"),
            ("GET", "/v1/products/"),
            ("GET", "/v1/products/1/"),
            ("GET", "/v1/products//reviews/x"),
            ("GET", "/v1"),
            ("GET", "/"),
            ("GET", ""),
            ("get", "/v1/products/1"),
        ] {
            assert_eq!(table.find(method, path), None, "{method} {path}");
        }
    }
}
