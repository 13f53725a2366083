//! Tests that the samples cover each route and each family of routes.

use std::collections::BTreeSet;

use super::{Case, cases, route_key};
use crate::support::template;

/// The route families by path prefix. A route belongs to the longest matching prefix.
const FAMILIES: &[&str] = &[
    "/v1/audit",
    "/v1/carts",
    "/v1/categories",
    "/v1/counters",
    "/v1/customers",
    "/v1/customers/{id}/addresses",
    "/v1/customers/{id}/cart",
    "/v1/customers/{id}/cart/checkout",
    "/v1/customers/{id}/followers",
    "/v1/customers/{id}/following",
    "/v1/customers/{id}/likes",
    "/v1/customers/{id}/orders",
    "/v1/customers/{id}/organizations",
    "/v1/customers/{id}/overview",
    "/v1/customers/{id}/questions",
    "/v1/customers/{id}/reviews",
    "/v1/customers/{id}/sessions",
    "/v1/customers/{id}/shipments",
    "/v1/customers/{id}/support",
    "/v1/customers/{id}/wallet",
    "/v1/graph",
    "/v1/documents",
    "/v1/invoices",
    "/v1/leaderboards",
    "/v1/log",
    "/v1/metrics",
    "/v1/orders",
    "/v1/orders/{id}/log",
    "/v1/orders/{id}/refunds",
    "/v1/orders/{id}/status",
    "/v1/organizations",
    "/v1/picking",
    "/v1/places",
    "/v1/promotions",
    "/v1/products",
    "/v1/products/import",
    "/v1/products/{id}/content",
    "/v1/products/{id}/reviews",
    "/v1/products/{id}/categories",
    "/v1/products/{id}/likers",
    "/v1/products/{id}/likes",
    "/v1/products/{id}/sales",
    "/v1/products/{id}/stock",
    "/v1/questions",
    "/v1/reviews",
    "/v1/sales",
    "/v1/search/orders",
    "/v1/search/products",
    "/v1/sessions",
    "/v1/settings",
    "/v1/shipping",
    "/v1/stores",
    "/v1/tax",
    "/v1/transfers",
];

/// This route needs an upload to a URL that is valid only for minutes, so no sample can call it.
/// `pictures.rs` tests it.
const OF_AN_UPLOAD: &str = "PUT /v1/products/{id}/content/uploads/{upload}";

#[test]
fn every_route_has_a_good_sample_and_every_family_of_routes_a_bad_one() {
    let cases = cases();
    let of = |good: bool| -> BTreeSet<&str> {
        let fits = |case: &&Case| case.expected.status.is_some_and(|status| (status < 400) == good);
        cases.iter().filter(fits).filter_map(|case| route_key(&case.event)).collect()
    };
    let mut routes: BTreeSet<String> = template().routes.iter().map(ToString::to_string).collect();
    assert!(routes.remove(OF_AN_UPLOAD));
    assert_eq!(of(true), routes.iter().map(String::as_str).collect());
    let families: BTreeSet<&str> = of(false).into_iter().map(family).collect();
    assert_eq!(families, FAMILIES.iter().copied().collect());
}

fn family(key: &str) -> &'static str {
    let (_, path) = key.split_once(' ').unwrap();
    let all = FAMILIES
        .iter()
        .copied()
        .filter(|family| path.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    all.max_by_key(|family| family.len()).unwrap_or_else(|| panic!("{key} is in no family"))
}
