//! Requests in API Gateway's format, for tests. They pass through the same code as requests to the
//! deployed function.
//!
//! ```
//! # use http_api::{Routes, sample::Call};
//! # async fn test(routes: Routes<()>) {
//! let answer = Call::new("GET /v1/orders/{id}").path("id", "o1").customer("c1").send(&routes, &()).await;
//! assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
//! # }
//! ```

use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use serde_json::{Map, Value, json};

use crate::routes::Routes;
use crate::url;

/// Limits pages to `bytes` while the future runs, instead of [`crate::MAX_PAGE_BYTES`].
pub async fn with_page_bytes<F: Future>(bytes: usize, future: F) -> F::Output {
    crate::page::TEST_PAGE_BYTES.scope(bytes, future).await
}

#[derive(Debug, Clone)]
pub struct Call {
    route: &'static str,
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    headers: Map<String, Value>,
    claims: Option<Value>,
    body: Option<String>,
    id: &'static str,
}

#[derive(Debug, Clone)]
pub struct Answered {
    pub status: u16,
    /// The body, or null if there is none or it is not JSON.
    pub body: Value,
    headers: Vec<(String, String)>,
}

impl Call {
    /// Creates an anonymous request to the route with this key, such as `GET /v1/orders/{id}`.
    #[must_use]
    pub fn new(route: &'static str) -> Self {
        Self {
            route,
            path: Vec::new(),
            query: Vec::new(),
            headers: Map::new(),
            claims: None,
            body: None,
            id: "sample-request",
        }
    }

    #[must_use]
    pub fn id(self, id: &'static str) -> Self {
        Self { id, ..self }
    }

    /// Sets a path parameter to an unencoded value.
    #[must_use]
    pub fn path(mut self, name: &str, value: &str) -> Self {
        self.path.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a query parameter with an unencoded value.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_ascii_lowercase(), value.into());
        self
    }

    #[must_use]
    pub fn customer(self, id: &str) -> Self {
        self.claims(json!({ "sub": id }))
    }

    /// Signs in as a customer with a verified email address.
    #[must_use]
    pub fn customer_with_email(self, id: &str, email: &str) -> Self {
        self.claims(json!({ "sub": id, "email": email, "email_verified": "true" }))
    }

    #[must_use]
    pub fn staff(self, id: &str) -> Self {
        self.claims(json!({ "sub": id, "cognito:groups": "[staff]" }))
    }

    #[must_use]
    pub fn claims(mut self, claims: Value) -> Self {
        self.claims = Some(claims);
        self
    }

    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// Sets the body to this text, which need not be JSON.
    #[must_use]
    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Returns the route with the query, as a label for a list of calls.
    #[must_use]
    pub fn name(&self) -> String {
        let query: Vec<String> = self.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if query.is_empty() { self.route.to_owned() } else { format!("{}?{}", self.route, query.join("&")) }
    }

    /// Returns the event, payload format 2.0.
    #[must_use]
    pub fn event(&self) -> Value {
        let (method, template) = self.route.split_once(' ').unwrap_or(("GET", self.route));
        let parameter = |name: &str| self.path.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        // Recorded requests show that an HTTP API passes on a decoded path:
        // <https://github.com/hotsock/voker/pull/8>.
        let plain = |segment| url::parameter(segment).map_or(segment, |name| parameter(name).unwrap_or_default());
        let path = template.split('/').map(plain).collect::<Vec<_>>().join("/");
        let query: Vec<_> =
            self.query.iter().map(|(name, value)| url::encode(name) + "=" + &url::encode(value)).collect();
        let object = |pairs: &[(String, String)]| -> Map<String, Value> {
            pairs.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
        };
        let authorizer = self.claims.as_ref().map(|claims| json!({ "jwt": { "claims": claims, "scopes": null } }));
        json!({
            "version": "2.0",
            "routeKey": self.route,
            "rawPath": path,
            "rawQueryString": query.join("&"),
            "headers": self.headers,
            "queryStringParameters": object(&self.query),
            "pathParameters": object(&self.path),
            "requestContext": {
                "accountId": "123456789012", "apiId": "bodega", "domainName": "bodega.example",
                "domainPrefix": "bodega",
                "routeKey": self.route, "stage": "$default", "requestId": self.id,
                "time": "20/Nov/2026:12:00:00 +0000", "timeEpoch": 1_795_176_000_000_u64,
                "http": {
                    "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1",
                    "userAgent": "sample",
                },
                "authorizer": authorizer,
            },
            "body": self.body,
            "isBase64Encoded": false,
        })
    }

    /// Sends the request through a function's routes.
    pub async fn send<S>(&self, routes: &Routes<S>, app: &S) -> Answered {
        // If `aws_lambda_events` refuses the event, the function gets an empty event, and no route
        // matches it.
        let event: ApiGatewayV2httpRequest = serde_json::from_value(self.event()).unwrap_or_default();
        let response = routes.answer(app, event).await;
        Answered {
            status: u16::try_from(response.status_code).unwrap_or_default(),
            body: response.body.as_deref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default(),
            headers: response
                .headers
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
                .collect(),
        }
    }
}

impl Answered {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.body.get("code").and_then(Value::as_str)
    }

    #[must_use]
    pub fn pointers(&self) -> Vec<&str> {
        let errors = self.body.get("errors").and_then(Value::as_array);
        errors.into_iter().flatten().filter_map(|error| error.get("pointer").and_then(Value::as_str)).collect()
    }

    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.header("etag")?.trim_matches('"').split('.').next()?.parse().ok()
    }
}
