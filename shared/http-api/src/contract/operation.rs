use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::node::paragraphs;
use super::{Fields, Node, ObjectSchema, Schema, Schemas};
use crate::problem::Code;
use crate::url;

const JSON: &str = "application/json";

/// The callers of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Any,
    SignedIn,
    Customer,
    Reader,
    Editor,
    Owner,
    Staff,
}

/// A parameter in the path, in the query or in a header.
#[derive(Debug, Clone, Copy)]
pub enum Parameter {
    /// The name of a parameter in `components`.
    Shared(&'static str),
    Path {
        name: &'static str,
        /// The name of the id's type. The description follows from it and `name` if `doc` is empty.
        ty: &'static str,
        doc: &'static str,
        schema: fn(&mut Schemas) -> Node,
    },
    Query {
        name: &'static str,
        doc: &'static str,
        is_required: bool,
        schema: fn(&mut Schemas) -> Node,
    },
}

#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub status: u16,
    pub doc: &'static str,
    /// The names of headers in `components`.
    pub headers: &'static [&'static str],
    pub schema: fn(&mut Schemas) -> Node,
}

/// A route as `openapi.yaml` describes it.
#[derive(Debug, Clone)]
pub struct Operation {
    pub key: &'static str,
    pub id: &'static str,
    pub who: Who,
    pub task: &'static str,
    /// The doc comment: the summary, then the description.
    pub doc: &'static str,
    pub path: Vec<Parameter>,
    pub parameters: Vec<Parameter>,
    pub body: Option<fn(&mut Schemas) -> Node>,
    /// Whether the body has one such document on each line. Each line is accepted or refused by itself.
    pub is_lines: bool,
    pub answers: Vec<Answer>,
    /// The errors of this route, each with its reason. Errors that follow from the declaration need
    /// no entry.
    pub refuses: &'static [(Code, &'static str)],
    /// The public specification that describes the route. `openapi.yaml` leaves such a route out.
    pub spec: Option<&'static str>,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page<T>(PhantomData<fn() -> T>);

impl<T: Schema> Schema for Page<T> {
    fn schema(schemas: &mut Schemas) -> Node {
        let items = T::schema(schemas);
        let name = match items.get("$ref") {
            Some(Node::Text(reference)) => reference.rsplit('/').next().unwrap_or_default().to_owned(),
            _ => return Node::Null,
        };
        schemas.named(&T::page().map_or_else(|| format!("{name}Page"), str::to_owned), |_| {
            let page = Node::map([
                ("type", "object".into()),
                ("required", Node::List(vec!["items".into(), "next_cursor".into()])),
                (
                    "properties",
                    Node::map([
                        ("items", Node::map([("type", "array".into()), ("items", items)])),
                        ("next_cursor", Node::reference("schemas", "NextCursor")),
                    ]),
                ),
            ]);
            match T::example() {
                Some(example) => {
                    let example = Node::map([("items", Node::List(vec![example])), ("next_cursor", Node::Null)]);
                    page.with("examples", Node::List(vec![example]))
                }
                None => page,
            }
        })
    }
}

/// A page of a list with the further fields of `M`. The schema of the page has the name of `M`.
#[derive(Debug)]
pub struct PageWith<T, M>(PhantomData<fn() -> (T, M)>);

impl<T: Schema, M: Schema + Fields> Schema for PageWith<T, M> {
    fn schema(schemas: &mut Schemas) -> Node {
        let items = <[T]>::schema(schemas);
        let name = match M::schema(&mut Schemas::default()).get("$ref") {
            Some(Node::Text(reference)) => reference.rsplit('/').next().unwrap_or_default().to_owned(),
            _ => return Node::Null,
        };
        schemas.named(&name, |schemas| {
            let mut object = ObjectSchema::default();
            object.field("items", "", items, true, <[T]>::example());
            M::describe(&mut object, schemas);
            object.field("next_cursor", "", Node::reference("schemas", "NextCursor"), true, Some(Node::Null));
            object.finish("", false, &[])
        })
    }
}

impl Who {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::SignedIn => "signed in",
            Self::Customer => "customer",
            Self::Reader => "reader",
            Self::Editor => "editor",
            Self::Owner => "owner",
            Self::Staff => "staff",
        }
    }
}

impl Operation {
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.key.split_once(' ').map_or("", |(method, _)| method)
    }

    #[must_use]
    pub fn template(&self) -> &'static str {
        self.key.split_once(' ').map_or("", |(_, path)| path)
    }

    /// Returns the parameters of the path, which all operations of the path share.
    #[must_use]
    pub fn path_parameters(&self, schemas: &mut Schemas) -> Vec<Node> {
        self.path.iter().map(|parameter| parameter.describe(schemas)).collect()
    }

    /// Returns the operation as a node of the document, and adds its schemas.
    pub fn describe(&self, schemas: &mut Schemas) -> Node {
        let (summary, description) = self.doc.split_once("\n\n").unwrap_or((self.doc, ""));
        let mut node = Node::map([
            ("operationId", self.id.into()),
            ("tags", Node::List(vec![self.task.into()])),
            ("x-who", self.who.name().into()),
            ("summary", paragraphs(summary).into()),
        ])
        .about(description);
        if self.who == Who::Any {
            node = node.with("security", Node::List(Vec::new()));
        }
        if !self.parameters.is_empty() {
            let parameters = self.parameters.iter().map(|parameter| parameter.describe(schemas)).collect();
            node = node.with("parameters", Node::List(parameters));
        }
        if let Some(body) = self.body {
            let schema = schemas.of_request(body);
            let schema = Node::map([("schema", if self.is_lines { lines(schema, schemas) } else { schema })]);
            let kinds: &[_] = match self.method() {
                "PATCH" => &["application/merge-patch+json", JSON],
                _ if self.is_lines => &["application/x-ndjson"],
                _ => &[JSON],
            };
            let content = kinds.iter().map(|kind| ((*kind).to_owned(), schema.clone())).collect();
            node = node.with("requestBody", Node::map([("required", true.into()), ("content", Node::Map(content))]));
        }
        let mut responses: Vec<(String, Node)> =
            self.answers.iter().map(|answer| (answer.status.to_string(), answer.describe(schemas))).collect();
        let has_tag = self.answers.iter().any(|answer| answer.headers.contains(&"ETag"));
        if self.method() == "GET" && has_tag {
            responses.push(("304".to_owned(), Node::reference("responses", "NotModified")));
        }
        for (status, codes) in self.problems() {
            responses.push((status.to_string(), problem(&codes, schemas)));
        }
        responses.sort_by(|(a, _), (b, _)| a.cmp(b));
        responses.push(("default".to_owned(), Node::reference("responses", "Failure")));
        node.with("responses", Node::Map(responses))
    }

    /// Returns the error codes of each status: those of the declaration with their reasons, and
    /// those that follow from the declaration.
    #[must_use]
    pub fn problems(&self) -> BTreeMap<u16, Vec<(Code, &'static str)>> {
        let mut all: Vec<(Code, &'static str)> = self.refuses.to_vec();
        let mut add = |codes: &[Code]| {
            for code in codes {
                if !all.iter().any(|(known, _)| known == code) {
                    all.push((*code, ""));
                }
            }
        };
        let shared = |name: &str| {
            self.parameters.iter().any(|parameter| matches!(parameter, Parameter::Shared(known) if *known == name))
        };
        add(&[Code::MalformedRequest, Code::InvalidParameter]);
        if self.who != Who::Any {
            add(&[Code::Unauthenticated, Code::Forbidden]);
        }
        if self.template().split('/').any(|segment| url::parameter(segment).is_some()) {
            add(&[Code::InvalidId]);
            if !matches!(self.who, Who::Any | Who::Staff | Who::SignedIn) {
                add(&[Code::NotFound]);
            }
        }
        if self.body.is_some() {
            add(&[
                Code::MalformedJson,
                Code::BodyTooLarge,
                Code::UnsupportedMediaType,
                Code::UnsupportedContentEncoding,
            ]);
        }
        if self.body.is_some() && !self.is_lines {
            add(&[Code::InvalidBody]);
        }
        if shared("Cursor") {
            add(&[Code::CursorInvalid]);
        }
        if shared("IdempotencyKey") {
            add(&[Code::IdempotencyKeyMissing]);
        }
        if shared("IdempotencyKey") || shared("OptionalIdempotencyKey") {
            add(&[Code::InvalidHeader, Code::IdempotencyInProgress, Code::IdempotencyKeyReused]);
        }
        let is_conditional =
            ["IfMatch", "IfMatchOrAny", "IfMatchOptional", "IfMatchOrNone"].into_iter().find(|name| shared(name));
        if let Some(name) = is_conditional {
            add(&[Code::InvalidHeader, Code::VersionMismatch, Code::NotFound]);
            if name != "IfMatchOptional" {
                add(&[Code::IfMatchMissing]);
            }
        }
        let mut by_status = BTreeMap::<u16, Vec<_>>::new();
        for (code, reason) in all.into_iter().filter(|(code, _)| code.status().is_client_error()) {
            by_status.entry(code.status().as_u16()).or_default().push((code, reason));
        }
        by_status
    }
}

impl Parameter {
    fn describe(&self, schemas: &mut Schemas) -> Node {
        match self {
            Self::Shared(name) => Node::reference("parameters", name),
            Self::Path { name, ty, doc, schema } => {
                let text = if doc.is_empty() { of_id(name, ty) } else { (*doc).to_owned() };
                let node = Node::map([("name", (*name).into()), ("in", "path".into()), ("required", true.into())]);
                node.about(&text).with("schema", schemas.of_request(*schema))
            }
            Self::Query { name, doc, is_required, schema } => {
                let schema = schemas.of_request(*schema);
                let node = Node::map([("name", (*name).into()), ("in", "query".into())]);
                let node = if *is_required { node.with("required", true.into()) } else { node };
                node.about(doc).with("schema", schema)
            }
        }
    }
}

/// Returns the description of an id in a path: "The guest cart's id" for `id: GuestCartId`, and "The
/// picture's id" for `picture: MediaId`.
fn of_id(name: &str, ty: &str) -> String {
    let owner = match name {
        "id" | "name" => {
            let owner = ty.trim_end_matches("Id").trim_end_matches("Name");
            let word = |c: char| if c.is_uppercase() { format!(" {}", c.to_lowercase()) } else { c.to_string() };
            owner.chars().map(word).collect::<String>()
        }
        owner => format!(" {owner}"),
    };
    let id = if name == "name" { name } else { "id" };
    let or_caller = if ty == "CustomerId" { ", or `me` for the caller's own id" } else { "" };
    format!("The{owner}'s {id}{or_caller}")
}

impl Answer {
    fn describe(&self, schemas: &mut Schemas) -> Node {
        let mut node = Node::map([("description", self.doc.into())]);
        if !self.headers.is_empty() {
            let header = |name: &&str| {
                let public = match *name {
                    "LeftOut" => "X-Left-Out",
                    "IdempotencyReplayed" => "Idempotency-Replayed",
                    "RetryAfter" => "Retry-After",
                    "SignedUrl" => "Location",
                    "AcceptEncoding" => "Accept-Encoding",
                    other => other,
                };
                (public.to_owned(), Node::reference("headers", name))
            };
            node = node.with("headers", Node::Map(self.headers.iter().map(header).collect()));
        }
        match (self.schema)(schemas) {
            Node::Null => node,
            schema => {
                let content = Node::map([("application/json", Node::map([("schema", schema)]))]);
                node.with("content", content)
            }
        }
    }
}

/// Returns the schema of a text with a document of this schema on each line.
fn lines(document: Node, schemas: &Schemas) -> Node {
    let example = schemas.example(&document).and_then(|example| serde_json::to_string(example).ok());
    let schema = Node::map([("type", "string".into())]).about("One JSON document on each line.");
    schema.with("x-line", document).with("examples", Node::List(example.into_iter().map(Node::from).collect()))
}

/// Returns the response of an error. Its schema lists the codes, and each code has its example.
/// Errors without reasons are a response that routes share.
fn problem(codes: &[(Code, &'static str)], schemas: &mut Schemas) -> Node {
    let described: Vec<String> = codes
        .iter()
        .map(
            |(code, reason)| {
                if reason.is_empty() { format!("`{}`", code.name()) } else { format!("`{}`: {reason}", code.name()) }
            },
        )
        .collect();
    let status = codes.first().map_or(0, |(code, _)| code.status().as_u16());
    let names = codes.iter().map(|(code, _)| code.name().into()).collect();
    let schema = Node::map([(
        "allOf",
        Node::List(vec![
            Node::reference("schemas", "Problem"),
            Node::map([("properties", Node::map([("code", Node::map([("enum", Node::List(names))]))]))]),
        ]),
    )]);
    let examples = codes.iter().map(|(code, _)| (code.name().to_owned(), Node::reference("examples", code.name())));
    let mut content = vec![(
        "application/problem+json".to_owned(),
        Node::map([("schema", schema), ("examples", Node::Map(examples.collect()))]),
    )];
    // API Gateway itself responds to some of these errors.
    let gateway = match status {
        400 => Some("Bad Request"),
        401 => Some("Unauthorized"),
        404 => Some("Not Found"),
        413 => Some("Request Entity Too Large"),
        _ => None,
    };
    content.extend(gateway.map(|message| {
        let schema = Node::reference("schemas", "GatewayMessage");
        let example = Node::map([("message", message.into())]);
        ("application/json".to_owned(), Node::map([("schema", schema), ("example", example)]))
    }));
    let mut headers = vec![("X-Request-Id".to_owned(), Node::reference("headers", "RequestId"))];
    let mut header =
        |name: &str, component: &str| headers.push((name.to_owned(), Node::reference("headers", component)));
    match status {
        401 => header("WWW-Authenticate", "WwwAuthenticate"),
        409 => header("Retry-After", "RetryAfter"),
        429 => header("Retry-After", "RetryAfter"),
        _ => {}
    }
    if codes.iter().any(|(code, _)| *code == Code::AlreadyExists) {
        header("Location", "Location");
    }
    if codes.iter().any(|(code, _)| matches!(code, Code::UnsupportedContentEncoding)) {
        header("Accept-Encoding", "AcceptEncoding");
    }
    let response = Node::map([
        ("description", described.join("; ").into()),
        ("headers", Node::Map(headers)),
        ("content", Node::Map(content)),
    ]);
    if codes.iter().any(|(_, reason)| !reason.is_empty()) {
        return response;
    }
    let name: String = codes.iter().map(|(code, _)| format!("{code:?}")).collect();
    schemas.response(&name, response)
}
