//! Serves the API reference: `openapi.yaml` unchanged, and as an HTML page. The page loads no
//! external resources.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use serde_json::{Map, Value as Json, json};

use crate::built_in;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
code{background:#f3f3f3;padding:0 .25em}h3{margin-top:2.5rem;border-top:1px solid #ddd;padding-top:1rem}\
h3 b{display:inline-block;min-width:4.5em}table{border-collapse:collapse}td,th{border:1px solid #ddd;padding:.2em .6em;\
text-align:left;vertical-align:top}";

/// Returns the routes `/v1/openapi.yaml` and `/docs`. `/` redirects to `/docs`.
///
/// They serve the file next to the template. Without a template file they serve the description
/// that is compiled into the program.
pub fn router<S: Clone + Send + Sync + 'static>(template: Option<&Path>) -> Router<S> {
    let source = match template {
        Some(template) => Source::File(template.with_file_name("openapi.yaml")),
        None => Source::BuiltIn,
    };
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/docs") }))
        .route("/v1/openapi.yaml", get(source_text))
        .route("/docs", get(page))
        .route("/docs/", get(page))
        .with_state(Arc::new(source))
}

/// The source of the API description.
#[derive(Debug)]
enum Source {
    /// Read at each request, so that an edit shows at once.
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
        None => missing("openapi.yaml is not beside the template"),
    }
}

async fn page(State(source): State<Arc<Source>>) -> Response {
    let Some(text) = source.text().await else {
        return missing("openapi.yaml is not beside the template");
    };
    match template::parse_yaml(&text) {
        Ok(api) => Html(render(&api)).into_response(),
        Err(error) => missing(&format!("openapi.yaml:{error}")),
    }
}

fn missing(message: &str) -> Response {
    let body = axum::Json(json!({"message": message}));
    (StatusCode::NOT_FOUND, body).into_response()
}

/// Renders the reference as one HTML page.
fn render(api: &Json) -> String {
    let title = text(api, "/info/title");
    let mut html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{STYLE}</style>\
         <h1>{title}</h1>{}<p><a href=/v1/openapi.yaml>openapi.yaml</a></p><h2>Routes</h2>",
        paragraphs(&text(api, "/info/description"))
    );
    let paths = api.get("paths").and_then(Json::as_object);
    for (path, item) in paths.into_iter().flatten() {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                render_operation(&mut html, api, path, method, item, operation);
            }
        }
    }
    html.push_str("<h2>Shapes</h2>");
    let schemas = api.pointer("/components/schemas").and_then(Json::as_object);
    for (name, schema) in schemas.into_iter().flatten() {
        // Writing to a String does not fail.
        let _ = write!(html, "<h3 id=\"{0}\">{0}</h3>", escape(name));
        html.push_str(&paragraphs(&text(schema, "/description")));
        render_properties(&mut html, schema);
    }
    html.push_str("</html>");
    html
}

fn render_operation(html: &mut String, api: &Json, path: &str, method: &str, item: &Json, operation: &Json) {
    let _ = write!(
        html,
        "<h3><b>{}</b> <code>{}</code> <small>{}</small></h3>{}{}",
        method.to_uppercase(),
        escape(path),
        text(operation, "/x-who"),
        paragraphs(&text(operation, "/summary")),
        paragraphs(&text(operation, "/description"))
    );
    let shared = item.get("parameters").and_then(Json::as_array);
    let own = operation.get("parameters").and_then(Json::as_array);
    let parameters: Vec<&Json> =
        shared.into_iter().chain(own).flatten().map(|parameter| follow(api, parameter)).collect();
    if !parameters.is_empty() {
        html.push_str("<table><tr><th>Parameter<th>In<th>Type<th>");
        for parameter in parameters {
            let _ = write!(
                html,
                "<tr><td><code>{}</code><td>{}<td>{}<td>{}",
                text(parameter, "/name"),
                text(parameter, "/in"),
                kind(parameter.get("schema")),
                text(parameter, "/description")
            );
        }
        html.push_str("</table>");
    }
    if let Some(body) = operation.get("requestBody") {
        let _ = write!(html, "<p>Body: {}</p>", content(follow(api, body)));
    }
    html.push_str("<table><tr><th>Answer<th>Body<th>");
    let responses = operation.get("responses").and_then(Json::as_object);
    for (status, response) in responses.into_iter().flatten() {
        let response = follow(api, response);
        let _ =
            write!(html, "<tr><td>{}<td>{}<td>{}", escape(status), content(response), text(response, "/description"));
    }
    html.push_str("</table>");
}

fn render_properties(html: &mut String, schema: &Json) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Json::as_object);
    let properties = properties.unwrap_or(&empty);
    if properties.is_empty() {
        let _ = write!(html, "<p>{}</p>", kind(Some(schema)));
        return;
    }
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    html.push_str("<table><tr><th>Field<th>Type<th>");
    for (name, property) in properties {
        let _ = write!(
            html,
            "<tr><td><code>{}</code>{}<td>{}<td>{}",
            escape(name),
            if is_required(name) { "" } else { " (optional)" },
            kind(Some(property)),
            text(property, "/description")
        );
    }
    html.push_str("</table>");
}

/// Renders a body's media types, each with its schema.
fn content(holder: &Json) -> String {
    let types = holder.get("content").and_then(Json::as_object);
    let types = types.into_iter().flatten();
    let described: Vec<String> =
        types.map(|(name, media)| format!("{} <small>{}</small>", kind(media.get("schema")), escape(name))).collect();
    described.join("<br>")
}

/// Renders a schema in a few words. A reference becomes a link.
fn kind(schema: Option<&Json>) -> String {
    let Some(schema) = schema else {
        return String::new();
    };
    if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
        let name = escape(reference.rsplit('/').next().unwrap_or(reference));
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    for (key, joiner) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(parts) = schema.get(key).and_then(Json::as_array) {
            let parts: Vec<String> = parts.iter().map(|part| kind(Some(part))).collect();
            return parts.join(joiner);
        }
    }
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        let values: Vec<String> = values.iter().map(plain).collect();
        return values.join(" | ");
    }
    match schema.get("type") {
        Some(Json::Array(types)) => {
            let types: Vec<String> = types.iter().map(plain).collect();
            types.join(" or ")
        }
        Some(array) if array == "array" => format!("list of {}", kind(schema.get("items"))),
        Some(name) => plain(name),
        None => String::new(),
    }
}

/// Resolves a reference within the document. Returns other nodes unchanged.
fn follow<'a>(api: &'a Json, node: &'a Json) -> &'a Json {
    let target = node.get("$ref").and_then(Json::as_str);
    let target = target.and_then(|reference| api.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(node)
}

fn text(node: &Json, pointer: &str) -> String {
    node.pointer(pointer).map(plain).unwrap_or_default()
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => escape(text),
        other => escape(&other.to_string()),
    }
}

/// Renders escaped text: blank lines separate paragraphs, and backticks mark code.
fn paragraphs(text: &str) -> String {
    let mut html = String::new();
    for part in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        html.push_str("<p>");
        for (position, piece) in part.split('`').enumerate() {
            if position % 2 == 1 {
                let _ = write!(html, "<code>{piece}</code>");
            } else {
                html.push_str(piece);
            }
        }
        html.push_str("</p>");
    }
    html
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_page_shows_routes_parameters_answers_and_shapes() {
        let page = render(&json!({
            "info": {"title": "Shop <1>"},
            "paths": {"/v1/things/{id}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "get": {
                    "summary": "Read a thing",
                    "responses": {"200": {"description": "It", "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}
                    }}},
                },
            }},
            "components": {
                "parameters": {"Id": {"name": "id", "in": "path", "schema": {"type": "string"}}},
                "schemas": {"Thing": {"required": ["a"], "properties": {
                    "a": {"type": ["integer", "null"]},
                    "b": {"type": "array", "items": {"enum": ["x", "y"]}},
                }}},
            },
        }));
        for expected in [
            "<h1>Shop &lt;1&gt;</h1>",
            "<b>GET</b> <code>/v1/things/{id}</code>",
            "<td><code>id</code><td>path<td>string<td>",
            "<tr><td>200<td><a href=\"#Thing\">Thing</a>",
            "<h3 id=\"Thing\">Thing</h3>",
            "<td><code>a</code><td>integer or null<td>",
            "<td><code>b</code> (optional)<td>list of x | y<td>",
        ] {
            assert!(page.contains(expected), "{expected} is not in {page}");
        }
    }
    #[test]
    fn the_description_of_this_api_can_be_shown() {
        let api = template::parse_yaml(built_in::OPENAPI).unwrap();
        let page = render(&api);
        assert!(page.contains("<b>POST</b> <code>/v1/orders</code>"));
    }
}
