//! Serves the site of the shop, which is built into the program. `site/README.md` explains it.
//!
//! `local/site/site.json.gz` has the files of the build. They are texts, so they are one JSON object of
//! paths and contents. A deployment serves the same files from a bucket.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Method};

const PACKED: &[u8] = include_bytes!("../site/site.json.gz");
const INDEX: &str = "index.html";

/// Allows the pages to use only this program. Pictures come from its bucket, which has a port of its
/// own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' http://127.0.0.1:* http://localhost:*; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The compressed files by path, or nothing if the packed file is damaged.
static FILES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| files().unwrap_or_default());

fn files() -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut text = String::new();
    GzDecoder::new(PACKED).read_to_string(&mut text)?;
    let files: BTreeMap<String, String> = serde_json::from_str(&text)?;
    let compressed = files.into_iter().map(|(path, content)| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content.as_bytes())?;
        Ok((path, encoder.finish()?))
    });
    compressed.collect()
}

/// Returns the file of the site that a request asks for, or [`None`] if the API must answer. Every other
/// path that a browser opens outside of `/v1` is a page, and the page finds out what it shows.
pub(crate) fn answer(request: &Request) -> Option<Response> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return None;
    }
    let path = request.uri().path().trim_start_matches('/');
    let is_page = || {
        let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|types| types.contains("text/html"));
        let is_api = path == "v1" || path.starts_with("v1/") || path.starts_with("_local/");
        !is_api && request.headers().get_all(ACCEPT).iter().any(accepts)
    };
    let name = if FILES.contains_key(path) { path } else { Some(INDEX).filter(|_| path.is_empty() || is_page())? };
    let mut response = Response::new(Body::from(FILES.get(name)?.clone()));
    let caching = if name.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers: [(HeaderName, &'static str); 6] = [
        (CONTENT_TYPE, media_type(name)),
        (CONTENT_ENCODING, "gzip"),
        (CACHE_CONTROL, caching),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
    ];
    for (header, value) in headers {
        response.headers_mut().insert(header, HeaderValue::from_static(value));
    }
    Some(response)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, kind)| kind) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn get(path: &str, accept: &str) -> Option<Response> {
        answer(&Request::get(path).header(ACCEPT, accept).body(Body::empty()).unwrap())
    }

    #[test]
    fn the_site_has_at_most_400_kilobytes_and_no_script_in_a_page() {
        assert!(PACKED.len() <= 400 * 1024, "{} bytes", PACKED.len());
        let mut page = String::new();
        GzDecoder::new(FILES.get(INDEX).unwrap().as_slice()).read_to_string(&mut page).unwrap();
        assert_eq!(page.matches("<script").count(), page.matches("src=\"/").count() - page.matches("<img").count());
        assert!(!page.contains("<style") && !page.contains("onload") && !POLICY.contains("unsafe"), "{page}");
        assert!(FILES.keys().all(|name| media_type(name) != "application/octet-stream"));
    }

    #[test]
    fn a_browser_gets_pages_and_a_client_of_the_api_does_not() {
        let html = "text/html,application/xhtml+xml";
        for path in ["/", "/c/tea/green", "/orders/o1", "/staff"] {
            assert_eq!(get(path, html).unwrap().headers()[CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
        }
        assert_eq!(get("/", "*/*").unwrap().headers()[CACHE_CONTROL], "no-cache");
        for (path, accept) in [("/v1/products/tea", html), ("/v1", html), ("/_local/none", html), ("/none", "*/*")] {
            assert!(get(path, accept).is_none(), "{path}");
        }
        let asset = FILES.keys().find(|name| name.starts_with("assets/")).unwrap();
        let asset = get(&format!("/{asset}"), "*/*").unwrap();
        assert!(asset.headers()[CACHE_CONTROL].to_str().unwrap().ends_with("immutable"));
        let post = Request::post("/").header(ACCEPT, html).body(Body::empty()).unwrap();
        assert!(answer(&post).is_none());
    }
}
