use std::cmp::Reverse;
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::root;

static API: LazyLock<Api> = LazyLock::new(|| {
    let text = std::fs::read_to_string(root().join("openapi.yaml")).unwrap();
    Api(template::parse_yaml(&text).unwrap_or_else(|error| panic!("openapi.yaml:{error}")))
});

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

pub struct Api(pub Json);

#[derive(Clone, Copy)]
pub struct Operation<'a> {
    api: &'a Api,
    /// The method, for example `GET`.
    pub method: &'static str,
    /// The path's template, for example `/v1/orders/{id}`.
    pub path: &'a str,
    item: &'a Json,
    /// The operation's own description, without the parameters that all methods of the path share.
    pub own: &'a Json,
}

/// Returns the API's description. The file is read only once.
pub fn api() -> &'static Api {
    &API
}

impl Api {
    /// Returns every operation, ordered by path.
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

    /// Returns all operations: reads first, deletions last. So no operation needs data that an
    /// earlier operation has deleted. Within each method, the checkout comes after the other
    /// operations on the cart, because it empties the cart. Operations on the customer come last,
    /// because the customer owns the other data.
    pub fn in_working_order(&self) -> Vec<Operation<'_>> {
        let mut operations: Vec<Operation<'_>> = self.operations().collect();
        let rank = |method: &str| ["GET", "POST", "PUT", "PATCH", "DELETE"].iter().position(|known| *known == method);
        operations.sort_by_key(|operation| {
            let is_customer = operation.path == "/v1/customers/{id}";
            let is_checkout = operation.path.ends_with("/cart/checkout");
            (rank(operation.method), is_customer, is_checkout, Reverse(operation.path.len()))
        });
        operations
    }

    pub fn operation(&self, key: &str) -> Option<Operation<'_>> {
        self.operations().find(|operation| operation.key() == key)
    }

    /// Returns this node, or the node that its `$ref` names.
    pub fn follow<'a>(&'a self, node: &'a Json) -> &'a Json {
        match node.get("$ref").and_then(Json::as_str) {
            Some(reference) => self.find(reference).unwrap_or_else(|| panic!("{reference} refers to nothing")),
            None => node,
        }
    }

    pub fn find(&self, reference: &str) -> Option<&Json> {
        self.0.pointer(reference.strip_prefix('#')?)
    }

    pub fn schema(&self, name: &str) -> &Json {
        self.find(&format!("#/components/schemas/{name}")).unwrap_or_else(|| panic!("there is no schema {name}"))
    }

    /// Returns the last example of the schema with this name.
    pub fn example(&self, name: &str) -> Json {
        self.schema(name)["examples"].as_array().unwrap().last().unwrap().clone()
    }
}

impl<'a> Operation<'a> {
    /// Returns whether the body is signed. A signature of a changed body is wrong, so the function
    /// does not read that body.
    pub fn is_signed(&self) -> bool {
        self.parameters().any(|parameter| parameter["name"] == "Stripe-Signature")
    }

    /// Returns the route key, for example `GET /v1/orders/{id}`.
    pub fn key(self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns `x-who`, the kind of caller that may call the operation.
    pub fn who(self) -> &'a str {
        self.own["x-who"].as_str().unwrap()
    }

    /// The operation's own `security` overrides the API's `security`.
    pub fn is_secured(self) -> bool {
        !self.security().is_empty()
    }

    fn security(self) -> &'a [Json] {
        self.own.get("security").unwrap_or(&self.api.0["security"]).as_array().unwrap()
    }

    /// Returns the parameters. The parameters that all methods of the path share come first.
    pub fn parameters(self) -> impl Iterator<Item = &'a Json> {
        let of = |node: &'a Json| node.get("parameters").and_then(Json::as_array).into_iter().flatten();
        of(self.item).chain(of(self.own)).map(move |parameter| self.api.follow(parameter))
    }

    /// Returns whether a secret in a header, and not the caller's token, gives access.
    pub fn takes_secret(self) -> bool {
        self.parameters().any(|parameter| matches!(parameter["name"].as_str(), Some("Cart-Token" | "Order-Token")))
    }

    /// Returns the schema of the request body, for the first listed media type.
    pub fn body(self) -> Option<&'a Json> {
        let content = self.own.get("requestBody")?["content"].as_object()?;
        content.values().next().map(|media| &media["schema"])
    }

    /// Returns the responses by status, `default` included.
    pub fn responses(self) -> impl Iterator<Item = (&'a str, &'a Json)> {
        self.own["responses"].as_object().unwrap().iter().map(|(status, response)| (status.as_str(), response))
    }

    /// Returns the response for a status, or the default response if the status is not listed.
    pub fn response(self, status: u16) -> &'a Json {
        let responses = &self.own["responses"];
        responses.get(status.to_string()).unwrap_or(&responses["default"])
    }

    /// Returns the schema of a response body with this media type, or `None` if the response has no
    /// such body.
    pub fn response_schema(self, status: u16, media_type: &str) -> Option<&'a Json> {
        self.api.follow(self.response(status)).get("content")?.get(media_type)?.get("schema")
    }

    /// Returns the problem codes in a response's description: every text in backticks except
    /// `errors`, the name of a member. A response's own description takes precedence over the
    /// description of the response to which its `$ref` leads.
    pub fn codes(self, response: &'a Json) -> Vec<&'a str> {
        let described = response.get("description").or_else(|| self.api.follow(response).get("description"));
        let text = described.and_then(Json::as_str).unwrap_or_default();
        text.split('`').skip(1).step_by(2).filter(|name| *name != "errors").collect()
    }
}
