//! Serves the API reference: `openapi.yaml` unchanged, and a page that shows it with Swagger UI.
//!
//! The page and Swagger UI are compiled into the program, so a browser needs no other host.
//! `local/reference/README.md` names their source.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use crate::built_in;

/// Allows the page to use only this program's own scripts, styles and routes.
///
/// It also allows `data:` URLs of pictures, which the styles of Swagger UI contain.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

#[derive(Debug, Clone, Copy)]
struct Asset {
    path: &'static str,
    media_type: &'static str,
    /// Whether the content is compressed with gzip, which every browser accepts.
    is_compressed: bool,
    bytes: &'static [u8],
}

const PAGE: Asset = Asset {
    path: "/docs",
    media_type: "text/html; charset=utf-8",
    is_compressed: false,
    bytes: include_bytes!("../reference/page.html"),
};
const ASSETS: [Asset; 4] = [
    Asset {
        path: "/docs/page.js",
        media_type: "text/javascript; charset=utf-8",
        is_compressed: false,
        bytes: include_bytes!("../reference/page.js"),
    },
    Asset {
        path: "/docs/page.css",
        media_type: "text/css; charset=utf-8",
        is_compressed: false,
        bytes: include_bytes!("../reference/page.css"),
    },
    Asset {
        path: "/docs/swagger-ui-bundle.js",
        media_type: "text/javascript; charset=utf-8",
        is_compressed: true,
        bytes: include_bytes!("../reference/swagger-ui/swagger-ui-bundle.js.gz"),
    },
    Asset {
        path: "/docs/swagger-ui.css",
        media_type: "text/css; charset=utf-8",
        is_compressed: true,
        bytes: include_bytes!("../reference/swagger-ui/swagger-ui.css.gz"),
    },
];

/// Returns the routes `/v1/openapi.yaml` and `/docs`.
///
/// The API description is the file `openapi.yaml` in the template's folder. Without a template file
/// it is the description that is compiled into the program.
pub fn router<S: Clone + Send + Sync + 'static>(template: Option<&Path>) -> Router<S> {
    let source = match template {
        Some(template) => Source::File(template.with_file_name("openapi.yaml")),
        None => Source::BuiltIn,
    };
    let router = Router::new()
        .route("/v1/openapi.yaml", get(source_text))
        .route("/docs", get(async || PAGE.response()))
        .route("/docs/", get(async || PAGE.response()))
        .with_state(Arc::new(source));
    ASSETS.into_iter().fold(router, |router, asset| {
        let path = asset.path;
        router.route(path, get(async move || asset.response()))
    })
}

#[derive(Debug)]
enum Source {
    /// A file next to the template. Each request reads it, so that an edit shows at once.
    File(PathBuf),
    BuiltIn,
}

impl Source {
    async fn text(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::File(path) => tokio::fs::read_to_string(path).await.ok().map(Cow::Owned),
            Self::BuiltIn => Some(Cow::Borrowed(built_in::OPENAPI)),
        }
    }
}

async fn source_text(State(source): State<Arc<Source>>) -> Response {
    match source.text().await {
        Some(text) => ([(CONTENT_TYPE, "application/yaml")], text).into_response(),
        None => {
            let body = axum::Json(json!({"message": "openapi.yaml is not beside the template"}));
            (StatusCode::NOT_FOUND, body).into_response()
        }
    }
}

impl Asset {
    fn response(self) -> Response {
        let mut response = self.bytes.into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self.is_compressed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use serde_json::Value as Json;

    use super::*;

    fn text(asset: &Asset) -> String {
        let mut text = String::new();
        if asset.is_compressed {
            GzDecoder::new(asset.bytes).read_to_string(&mut text).unwrap();
        } else {
            text.push_str(str::from_utf8(asset.bytes).unwrap());
        }
        text
    }

    #[test]
    fn the_page_loads_every_asset_and_no_file_of_another_host() {
        let page = text(&PAGE);
        for asset in ASSETS {
            assert!(page.contains(&format!("\"{}\"", asset.path)), "{}", asset.path);
        }
        for name in ["src", "href"] {
            for value in page.split(&format!("{name}=\"")).skip(1) {
                let value = value.split('"').next().unwrap();
                let known = ASSETS.iter().any(|asset| asset.path == value);
                assert!(known || ["/v1/openapi.yaml", "data:,"].contains(&value), "{value}");
            }
        }
        // The page's own policy forbids scripts and styles inside the page.
        assert!(!page.contains("<style") && !page.contains("style=") && !page.contains("onclick"));
        assert_eq!(page.matches("<script ").count(), page.matches("<script defer src=").count());
        assert!(!POLICY.contains("unsafe") && !POLICY.contains("http"));
    }

    #[test]
    fn the_renderer_is_the_pinned_version_and_has_its_licence() {
        let package: Json = serde_json::from_str(include_str!("../reference/package.json")).unwrap();
        let version = package["dependencies"]["swagger-ui-dist"].as_str().unwrap();
        let bundle = text(&ASSETS[2]);
        assert!(bundle.contains(&format!("PACKAGE_VERSION:\"{version}\"")), "{version}");
        assert!(include_str!("../reference/swagger-ui/LICENSE").contains("Apache License"));
        assert!(include_str!("../reference/swagger-ui/NOTICE").contains("swagger-ui"));
        assert!(include_str!("../reference/swagger-ui/swagger-ui-bundle.js.LICENSE.txt").contains("MIT License"));
    }

    #[test]
    fn the_page_has_the_security_scheme_and_every_kind_of_caller_that_the_description_names() {
        let script = text(&ASSETS[0]);
        let api = template::parse_yaml(built_in::OPENAPI).unwrap();
        let schemes = api["components"]["securitySchemes"].as_object().unwrap();
        assert_eq!(schemes.keys().collect::<Vec<_>>(), ["jwt"]);
        assert!(script.contains("const SCHEME = \"jwt\";"));
        for item in api["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                let Some(who) = operation.get("x-who").and_then(Json::as_str) else { continue };
                let is_known = [format!("\n  {who}: \""), format!("\n  \"{who}\": \"")];
                assert!(is_known.iter().any(|key| script.contains(key)), "{who}");
            }
        }
    }
}
