//! `openapi.yaml`, read.

use std::cmp::Reverse;
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::root;

static API: LazyLock<Api> = LazyLock::new(|| {
    let text = std::fs::read_to_string(root().join("openapi.yaml")).unwrap();
    Api(template::parse_yaml(&text).unwrap_or_else(|error| panic!("openapi.yaml:{error}")))
});

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// The description of the API.
pub struct Api(pub Json);

/// One operation of it.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    api: &'a Api,
    /// `GET`.
    pub method: &'static str,
    /// `/v1/orders/{id}`.
    pub path: &'a str,
    item: &'a Json,
    /// What is said of it.
    pub own: &'a Json,
}

/// The description, read once.
pub fn api() -> &'static Api {
    &API
}

impl Api {
    /// Every operation, in the order of the paths' names.
    pub fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        self.0["paths"].as_object().unwrap().iter().flat_map(move |(path, item)| {
            METHODS.iter().filter_map(move |method| {
                let own = item.get(method)?;
                let method = match *method {
                    "get" => "GET",
                    "post" => "POST",
                    "put" => "PUT",
                    "patch" => "PATCH",
                    "delete" => "DELETE",
                    other => panic!("{other} {path}: no route has this method"),
                };
                Some(Operation { api: self, method, path, item, own })
            })
        })
    }

    /// All of them so that each finds what it needs: what reads comes first; the customer, whose things the others are, goes last.
    pub fn in_working_order(&self) -> Vec<Operation<'_>> {
        let mut operations: Vec<Operation<'_>> = self.operations().collect();
        let rank = |method: &str| ["GET", "POST", "PUT", "PATCH", "DELETE"].iter().position(|known| *known == method);
        operations.sort_by_key(|operation| {
            let is_customer = operation.path == "/v1/customers/{id}";
            (rank(operation.method), is_customer, Reverse(operation.path.len()))
        });
        operations
    }

    /// The operation with a route's key.
    pub fn operation(&self, key: &str) -> Option<Operation<'_>> {
        self.operations().find(|operation| operation.key() == key)
    }

    /// What stands here, or what the reference that stands here leads to.
    pub fn follow<'a>(&'a self, node: &'a Json) -> &'a Json {
        match node.get("$ref").and_then(Json::as_str) {
            Some(reference) => self.find(reference).unwrap_or_else(|| panic!("{reference} leads nowhere")),
            None => node,
        }
    }

    /// What a reference leads to.
    pub fn find(&self, reference: &str) -> Option<&Json> {
        self.0.pointer(reference.strip_prefix('#')?)
    }

    /// A schema by its name.
    pub fn schema(&self, name: &str) -> &Json {
        self.find(&format!("#/components/schemas/{name}")).unwrap_or_else(|| panic!("there is no schema {name}"))
    }
}

impl<'a> Operation<'a> {
    /// The route's key: `GET /v1/orders/{id}`.
    pub fn key(self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Who may call it.
    pub fn who(self) -> &'a str {
        self.own["x-who"].as_str().unwrap()
    }

    /// Whether it needs a token: its own security, or else the API's.
    pub fn is_secured(self) -> bool {
        !self.security().is_empty() && !self.takes_a_token()
    }

    /// Whether it makes use of a token and needs none: of its ways in, one is empty.
    pub fn takes_a_token(self) -> bool {
        self.security().iter().any(|way| way.as_object().unwrap().is_empty())
    }

    fn security(self) -> &'a [Json] {
        self.own.get("security").unwrap_or(&self.api.0["security"]).as_array().unwrap()
    }

    /// Its parameters, those of the path first.
    pub fn parameters(self) -> impl Iterator<Item = &'a Json> {
        let of = |node: &'a Json| node.get("parameters").and_then(Json::as_array).into_iter().flatten();
        of(self.item).chain(of(self.own)).map(move |parameter| self.api.follow(parameter))
    }

    /// The schema of its body, whatever the body's type.
    pub fn body(self) -> Option<&'a Json> {
        let content = self.own.get("requestBody")?["content"].as_object()?;
        content.values().next().map(|media| &media["schema"])
    }

    /// Its answers by status, `default` included.
    pub fn responses(self) -> impl Iterator<Item = (&'a str, &'a Json)> {
        self.own["responses"].as_object().unwrap().iter().map(|(status, response)| (status.as_str(), response))
    }

    /// The answer of a status; the default one for what is not listed.
    pub fn response(self, status: u16) -> &'a Json {
        let responses = &self.own["responses"];
        responses.get(status.to_string()).unwrap_or(&responses["default"])
    }

    /// The schema of an answer's body of this type; `None` when the answer has none of it.
    pub fn response_schema(self, status: u16, media_type: &str) -> Option<&'a Json> {
        self.api.follow(self.response(status)).get("content")?.get(media_type)?.get("schema")
    }

    /// The codes of problems that the description of an answer names, its own before that of what it refers to:
    /// whatever stands there between backticks, but for the member `errors`.
    pub fn codes(self, response: &'a Json) -> Vec<&'a str> {
        let described = response.get("description").or_else(|| self.api.follow(response).get("description"));
        let text = described.and_then(Json::as_str).unwrap_or_default();
        text.split('`').skip(1).step_by(2).filter(|name| *name != "errors").collect()
    }
}
