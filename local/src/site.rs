//! Serves the site of the shop, which is built into the program. `site/README.md` explains it.
//!
//! `local/site/site.json.gz` has the files of the build. They are texts, so they are one JSON object of
//! paths and contents. A deployment serves the same files from a bucket.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

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

/// Allows the pages to use only this program. Its bucket of pictures, which the pages read and staff
/// upload to, has a port of its own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' http://127.0.0.1:* http://localhost:*; \
                      connect-src 'self' http://127.0.0.1:* http://localhost:*; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The files of the site by path, each compressed.
pub(crate) struct Site(BTreeMap<String, Vec<u8>>);

impl Site {
    /// Opens the site in the program, or a build of the site in this folder.
    pub(crate) fn open(folder: Option<&Path>) -> io::Result<Self> {
        let contents: BTreeMap<String, Vec<u8>> = match folder {
            Some(folder) => read(folder)?,
            None => {
                let texts: BTreeMap<String, String> = serde_json::from_reader(GzDecoder::new(PACKED))?;
                texts.into_iter().map(|(path, text)| (path, text.into_bytes())).collect()
            }
        };
        let compressed = contents.into_iter().map(|(path, content)| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&content)?;
            Ok((path, encoder.finish()?))
        });
        compressed.collect::<io::Result<_>>().map(Self)
    }

    /// Returns the file of the site that a request asks for, or [`None`] if the API must answer. Every
    /// other path that a browser opens outside of `/v1` is a page, and the page finds out what it shows.
    pub(crate) fn answer(&self, request: &Request) -> Option<Response> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return None;
        }
        let path = request.uri().path().trim_start_matches('/');
        let is_page = || {
            let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|types| types.contains("text/html"));
            let is_api = path == "v1" || path.starts_with("v1/") || path.starts_with("_local/");
            !is_api && request.headers().get_all(ACCEPT).iter().any(accepts)
        };
        let name =
            if self.0.contains_key(path) { path } else { Some(INDEX).filter(|_| path.is_empty() || is_page())? };
        let mut response = Response::new(Body::from(self.0.get(name)?.clone()));
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
}

/// Reads the files of a folder and of its folders.
fn read(root: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                files.insert(name.to_owned(), std::fs::read(&path)?);
            }
        }
    }
    if files.contains_key(INDEX) {
        Ok(files)
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("it has no {INDEX}")))
    }
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

    use std::io::Read as _;

    use super::*;

    fn get(path: &str, accept: &str) -> Option<Response> {
        Site::open(None).unwrap().answer(&Request::get(path).header(ACCEPT, accept).body(Body::empty()).unwrap())
    }

    #[test]
    fn the_site_has_at_most_400_kilobytes_and_no_script_in_a_page() {
        assert!(PACKED.len() <= 400 * 1024, "{} bytes", PACKED.len());
        let Site(files) = Site::open(None).unwrap();
        let mut page = String::new();
        GzDecoder::new(files.get(INDEX).unwrap().as_slice()).read_to_string(&mut page).unwrap();
        assert_eq!(page.matches("<script").count(), page.matches("src=\"/").count() - page.matches("<img").count());
        assert!(!page.contains("<style") && !page.contains("onload") && !POLICY.contains("unsafe"), "{page}");
        assert!(files.keys().all(|name| media_type(name) != "application/octet-stream"));
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
        let Site(files) = Site::open(None).unwrap();
        let asset = files.keys().find(|name| name.starts_with("assets/")).unwrap();
        let asset = get(&format!("/{asset}"), "*/*").unwrap();
        assert!(asset.headers()[CACHE_CONTROL].to_str().unwrap().ends_with("immutable"));
        let post = Request::post("/").header(ACCEPT, html).body(Body::empty()).unwrap();
        assert!(Site::open(None).unwrap().answer(&post).is_none());
    }

    #[test]
    fn a_build_in_a_folder_is_served_like_the_one_in_the_program() {
        let folder = std::env::temp_dir().join(format!("bodega-site-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("assets")).unwrap();
        assert!(Site::open(Some(&folder)).is_err());
        std::fs::write(folder.join("assets/x.js"), "1").unwrap();
        std::fs::write(folder.join(INDEX), "<p>").unwrap();
        let site = Site::open(Some(&folder)).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let asset = site.answer(&Request::get("/assets/x.js").body(Body::empty()).unwrap()).unwrap();
        assert_eq!(asset.headers()[CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert_eq!(site.0.len(), 2);
    }
}
