//! The declaration of a route, from which the function's router and `openapi.yaml` come.
//!
//! A route is declared at its handler. The doc comment is the operation's summary and description:
//!
//! ```
//! # mod things {
//! # use http_api::contract::{Body, Schema, rules::visible_text, route};
//! # use http_api::{Problem, Request, Response, Services};
//! # use key_schema::id::ProductId;
//! /// A product that a client creates.
//! #[derive(Body)]
//! struct NewThing {
//!     /// The server generates an id if it is missing.
//!     id: Option<ProductId>,
//!     #[field(rule = visible_text(1..=200), example = "Ice")]
//!     name: String,
//! }
//!
//! #[derive(serde::Serialize, Schema)]
//! struct ThingView<'a> {
//!     id: &'a ProductId,
//!     #[field(rule = visible_text(1..=200), example = "Ice")]
//!     name: &'a str,
//! }
//!
//! /// Create a thing
//! ///
//! /// The thing is visible at once.
//! #[route(POST "/v1/things", id = "createThing", who = staff, task = "things", body = NewThing,
//!     answers(201 = ThingView<'_> "The thing" [Location]),
//!     refuses(already_exists = "another thing has this id"))]
//! pub async fn create(_: &Services, request: &Request<'_>) -> Result<Response, Problem> {
//!     request.staff()?;
//!     let NewThing { id, name } = request.body()?;
//!     # let id = id.unwrap();
//!     Ok(Response::created("/v1/things/…", &ThingView { id: &id, name: &name }))
//! }
//!
//! http_api::routes! { Services; create }
//! # }
//! # fn main() {}
//! ```
//!
//! A field of a body is required. An `Option` may be missing or `null`, and `not_null` refuses
//! `null`. A [`FieldPatch`](crate::FieldPatch) is a field of a JSON Merge Patch. `default` gives the value
//! of a missing field. Only staff may send a field with `staff`. The example of the object has no
//! field with `left_out`. `rule` is a reader of
//! [`rules`]; without it, the type's own [`FromBody`] reads the value. `check(a, b) = function`
//! checks several valid fields together, and `not_empty` refuses a body without any field. In this
//! crate, `of = Type` implements the traits for a type of another crate with the same fields.
//!
//! `path(id: ProductId, picture: MediaId)` declares the ids of the path, in its order. A description
//! follows from the names, or `= "…"` gives one. A name without a type is a parameter under
//! `components` of `openapi.yaml`, which is written by hand.
//!
//! A route of a public protocol names the `spec` that describes it, and `errors = function` writes its
//! errors as the protocol wants them.
//!
//! Deployed programs contain no part of the description, because only [`crate::routes!`]'s
//! `operations` refers to it and the linker removes what nobody calls.

mod node;
mod operation;
pub mod rules;
mod types;

pub use declare::{Body, Schema, route};

pub use node::Node;
pub use operation::{Answer, Operation, Page, PageWith, Parameter, Who};
pub use rules::{Rule, RuleSchema};

use std::collections::BTreeMap;

use crate::body::{Invalid, Object};
use crate::identity::Caller;
use crate::json::Value;

/// What the reader of a body knows about its request.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c> {
    caller: &'c Caller,
    numbers: &'c [Option<&'c str>],
    number: Option<&'c str>,
}

impl<'c> Context<'c> {
    #[must_use]
    pub const fn new(caller: &'c Caller) -> Self {
        Self { caller, numbers: &[], number: None }
    }

    #[must_use]
    pub fn is_staff(&self) -> bool {
        self.caller.is_staff()
    }

    /// Adds the texts of the numbers in the elements of the body's array, for [`rules::each`].
    pub(crate) const fn with_numbers(self, numbers: &'c [Option<&'c str>]) -> Self {
        Self { numbers, ..self }
    }

    /// Returns the context of an element of this array.
    pub(crate) fn of_element(self, index: usize) -> Self {
        Self { number: self.numbers.get(index).copied().flatten(), ..self }
    }

    /// Returns the number of this element as the client wrote it.
    pub(crate) const fn number(&self) -> Option<&'c str> {
        self.number
    }

    pub(crate) const fn caller(&self) -> &'c Caller {
        self.caller
    }
}

/// A type that a body contains.
pub trait FromBody: Sized {
    fn read(value: Value<'_>, context: &Context<'_>) -> Result<Self, Invalid>;
}

/// A struct whose fields can also be a part of another body's fields.
pub trait BodyFields: Sized {
    /// Reads the fields. Records each error in the object, and returns `None` if there is one.
    fn read_fields(object: &mut Object<'_>, context: &Context<'_>) -> Option<Self>;

    /// Checks the object as a whole, after its fields and the names of its members.
    fn complete(self) -> Result<Self, Invalid> {
        Ok(self)
    }
}

/// A type with a JSON schema, as `openapi.yaml` shows it.
pub trait Schema {
    fn schema(schemas: &mut Schemas) -> Node;

    /// Returns the example that is a part of its container's example.
    #[must_use]
    fn example() -> Option<Node> {
        None
    }

    /// Returns the name of the schema of a page, if it is not the name of the type's schema and
    /// `Page`.
    #[must_use]
    fn page() -> Option<&'static str> {
        None
    }
}

/// A type whose fields can also be a part of another object's fields.
pub trait Fields {
    fn describe(object: &mut ObjectSchema, schemas: &mut Schemas);
}

/// Parts of the document with their names.
pub type Named = Vec<(String, Node)>;

/// The named schemas of the document.
#[derive(Debug, Default)]
pub struct Schemas {
    named: BTreeMap<String, Node>,
    responses: BTreeMap<String, Node>,
    is_request: bool,
}

impl Schemas {
    /// Returns the named schemas and the responses that routes share, in the order of their names.
    #[must_use]
    pub fn into_parts(self) -> (Named, Named) {
        (self.named.into_iter().collect(), self.responses.into_iter().collect())
    }

    /// Returns the last example of the named schema to which a node refers.
    pub(crate) fn example(&self, reference: &Node) -> Option<&Node> {
        let Some(Node::Text(target)) = reference.get("$ref") else { return None };
        match self.named.get(target.rsplit('/').next()?)?.get("examples") {
            Some(Node::List(examples)) => examples.last(),
            _ => None,
        }
    }

    /// Adds a response that routes share, and returns the reference to it.
    pub(crate) fn response(&mut self, name: &str, response: Node) -> Node {
        self.responses.insert(name.to_owned(), response);
        Node::reference("responses", name)
    }

    /// Returns the schema of a request body.
    pub fn of_request(&mut self, schema: impl FnOnce(&mut Self) -> Node) -> Node {
        let before = std::mem::replace(&mut self.is_request, true);
        let node = schema(self);
        self.is_request = before;
        node
    }

    /// Returns whether the schema describes what a client sends, and not what the server returns.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.is_request
    }

    /// Adds a named schema, and returns the reference to it.
    ///
    /// # Panics
    /// When another schema has this name. Only tests and the generator of `openapi.yaml` call this.
    #[allow(clippy::panic)]
    pub fn named(&mut self, name: &str, build: impl FnOnce(&mut Self) -> Node) -> Node {
        let reference = Node::reference("schemas", name);
        // The entry comes first, so that a schema may refer to itself.
        let before = self.named.insert(name.to_owned(), Node::Null);
        if before != Some(Node::Null) {
            let node = build(self);
            assert!(
                before.as_ref().is_none_or(|before| *before == node),
                "two schemas have the name {name}:\n{before:?}\n{node:?}"
            );
            self.named.insert(name.to_owned(), node);
        }
        reference
    }

    /// Adds the schema of an object with these fields. `closed` means that it has no other fields.
    pub fn object<T: Fields>(&mut self, name: &str, doc: &str, closed: bool, examples: &[&str]) -> Node {
        self.named(name, |schemas| {
            let mut object = ObjectSchema::default();
            T::describe(&mut object, schemas);
            if object.variants.is_empty() {
                return object.finish(doc, closed, examples);
            }
            let (mut choices, mut mapping, mut all) = (Vec::new(), Vec::new(), Vec::new());
            for variant in &object.variants {
                let whole = object.with(variant);
                all.push(Node::Map(whole.example.clone()));
                let name = format!("{name}{}", camel(variant.name));
                let reference = schemas.named(&name, |_| whole.finish(variant.doc, closed, &[]));
                mapping.extend(reference.get("$ref").map(|target| (variant.name.to_owned(), target.clone())));
                choices.push(reference);
            }
            let tag = object.variants.first().map_or("", |variant| variant.tag);
            // Tests send the last example, which is the one of the first variant.
            all.extend(examples.iter().filter_map(|json| Node::json(json)));
            all.reverse();
            Node::choice(choices)
                .about(doc)
                .with("discriminator", Node::map([("propertyName", tag.into()), ("mapping", Node::Map(mapping))]))
                .with("examples", Node::List(all))
        })
    }
}

fn camel(name: &str) -> String {
    name.split('_')
        .flat_map(|part| part.chars().enumerate())
        .map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c })
        .collect()
}

/// An object's schema that is being built field by field.
#[derive(Debug, Default, Clone)]
pub struct ObjectSchema {
    required: Vec<Node>,
    properties: Vec<(String, Node)>,
    example: Vec<(String, Node)>,
    variants: Vec<Variant>,
    is_not_empty: bool,
}

/// One of the forms of an object, which the text of the member `tag` names.
#[derive(Debug, Clone)]
struct Variant {
    tag: &'static str,
    name: &'static str,
    doc: &'static str,
    fields: ObjectSchema,
}

impl ObjectSchema {
    /// Adds a form of the object: these fields, if the member `tag` is `name`. The schema of an
    /// object with forms is a choice with a discriminator.
    pub fn variant(&mut self, tag: &'static str, name: &'static str, doc: &'static str, fields: Self) {
        self.variants.push(Variant { tag, name, doc, fields });
    }

    /// Requires at least one member.
    pub const fn not_empty(&mut self) {
        self.is_not_empty = true;
    }

    /// Returns the object in one of its forms.
    fn with(&self, Variant { tag, name, fields, .. }: &Variant) -> Self {
        let mut whole = Self { variants: Vec::new(), ..self.clone() };
        whole.field(tag, "", Node::one_of(&[name]), true, Some((*name).into()));
        whole.required.extend(fields.required.iter().cloned());
        whole.properties.extend(fields.properties.iter().cloned());
        whole.example.extend(fields.example.iter().cloned());
        whole
    }

    pub fn field(&mut self, name: &str, doc: &str, schema: Node, required: bool, example: Option<Node>) {
        if required {
            self.required.push(name.into());
        }
        self.properties.push((name.to_owned(), schema.about(doc)));
        self.example.extend(example.map(|example| (name.to_owned(), example)));
    }

    fn finish(self, doc: &str, closed: bool, examples: &[&str]) -> Node {
        let mut node = Node::map([("type", "object".into())]).about(doc);
        if !self.required.is_empty() {
            node = node.with("required", Node::List(self.required));
        }
        if closed {
            node = node.with("additionalProperties", false.into());
        }
        if self.is_not_empty {
            node = node.with("minProperties", 1.into());
        }
        node = node.with("properties", Node::Map(self.properties));
        let mut all: Vec<Node> = examples.iter().filter_map(|json| Node::json(json)).collect();
        if !self.example.is_empty() {
            // Tests send the last example.
            all.push(Node::Map(self.example));
        }
        if all.is_empty() { node } else { node.with("examples", Node::List(all)) }
    }
}

/// Returns the documentation of a field with a default. The schema does not have the default,
/// because generators of clients then require the field.
#[must_use]
pub fn with_default(doc: &str, default: &impl serde::Serialize) -> String {
    let default = serde_json::to_string(default).unwrap_or_default();
    format!("{doc} The default is `{default}`.").trim_start().to_owned()
}

/// Returns the example that the examples of the fields make up.
#[must_use]
pub fn example_of<T: Fields>() -> Option<Node> {
    let mut object = ObjectSchema::default();
    T::describe(&mut object, &mut Schemas::default());
    if let Some(first) = object.variants.first() {
        object = object.with(first);
    }
    (!object.example.is_empty()).then_some(Node::Map(object.example))
}

/// Returns one of the objects of an enum's schema.
pub fn choice(describe: impl FnOnce(&mut ObjectSchema, &mut Schemas), schemas: &mut Schemas) -> Node {
    let mut object = ObjectSchema::default();
    describe(&mut object, schemas);
    object.example.clear();
    let closed = schemas.is_request;
    object.finish("", closed, &[])
}

#[must_use]
pub fn first_example(examples: &[&str]) -> Option<Node> {
    examples.first().and_then(|json| Node::json(json))
}

/// Declares `routes`, the router of a function, and `operations`, which describes its routes.
///
/// The first name is the function's state. Then come the handlers.
#[macro_export]
macro_rules! routes {
    ($state:ty $(, seal = $seal:path)?; $($($handler:ident)::+),+ $(,)?) => {
        /// Returns the routes of this function.
        #[must_use]
        pub fn routes() -> $crate::Routes<$state> {
            $crate::Routes::new()
                .checking(|state| $crate::Has::<$crate::Services>::part(state).checks())
                $(.sealing(|state, request, response| ::std::boxed::Box::pin($seal(state, request, response))))?
                $(.with($($handler)::+::route()))+
        }

        /// Returns the descriptions of the routes, for `openapi.yaml`.
        #[must_use]
        pub fn operations() -> Vec<$crate::contract::Operation> {
            vec![$($($handler)::+::operation()),+]
        }
    };
}
