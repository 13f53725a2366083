//! Serves the public key of the local token issuer, as a Cognito user pool does.
//!
//! The issuer's name is not an address. So a function that verifies tokens itself reads the
//! issuer's address from `JWT_ISSUER_ENDPOINT`.

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use serde_json::{Value as Json, json};

use crate::control::loopback_only;
use crate::token::{ISSUER, SigningKey};

const PATH: &str = "/_local/issuer";
const DISCOVERY: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/.well-known/jwks.json";

pub(crate) fn endpoint(url: &str) -> String {
    format!("{url}{PATH}")
}

/// Returns the routes of the discovery document and the key set for the system at `url`.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(key: &SigningKey, url: &str) -> Router<S> {
    let keys = key.key_set();
    let discovery = json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{}{KEYS}", endpoint(url)),
        "id_token_signing_alg_values_supported": ["ES256"],
        "subject_types_supported": ["public"],
    });
    let shown = |document: Json| get(async move || axum::Json(document));
    Router::new()
        .route(&format!("{PATH}{DISCOVERY}"), shown(discovery))
        .route(&format!("{PATH}{KEYS}"), shown(keys))
        .layer(from_fn(loopback_only))
}
