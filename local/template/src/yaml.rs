//! Reads YAML as CloudFormation does. Mappings keep their order, and scalars are text. Intrinsic
//! functions may have either form, `!Ref X` or `{Ref: X}`. Every node has its line number.

use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::Value as Json;

use crate::TemplateError;

/// Maximum nesting. It limits the recursion. No real template reaches it.
const DEEPEST: usize = 64;

/// Reads a YAML document without intrinsic functions as JSON. A plain scalar that looks like null,
/// a boolean or a number becomes that JSON value. Other scalars become text.
pub fn parse(text: &str) -> Result<Json, TemplateError> {
    to_json(&document(text)?)
}

/// One node of the document, and its first line, counted from 1. A copy shares the value, because
/// reading a template copies each node many times.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Rc<Value>,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Any scalar. `plain` means that it has no quotes and is no block (`|` or `>`). Only a plain
    /// scalar can be null, a boolean or a number.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
    /// An intrinsic function: its short name (`Ref`, `Sub`, `If`) and its argument.
    Call(String, Box<Node>),
}

impl Node {
    pub(crate) fn text(line: usize, text: impl Into<String>) -> Self {
        Self::new(line, Value::Scalar { text: text.into(), plain: false })
    }

    pub(crate) fn new(line: usize, value: Value) -> Self {
        Self { line, value: Rc::new(value) }
    }

    pub(crate) fn child(&self, key: &str) -> Option<&Self> {
        match &*self.value {
            Value::Map(entries) => entries.iter().find_map(|(name, node)| (name == key).then_some(node)),
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match &*self.value {
            Value::Scalar { text, plain: true } if is_null(text) => "nothing",
            Value::Scalar { .. } => "a scalar",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
            Value::Call(..) => "an intrinsic function",
        }
    }
}

pub(crate) fn document(text: &str) -> Result<Node, TemplateError> {
    let mut reader = Reader { events: Parser::new_from_str(text) };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
            Event::StreamEnd => break,
            Event::DocumentStart(_) if root.is_some() => {
                return Err(fault(&span, "a second document begins here"));
            }
            Event::DocumentStart(_) => {
                let (event, span) = reader.next()?;
                root = Some(reader.node(event, &span, 0)?);
            }
            _ => return Err(fault(&span, "this is not a YAML document")),
        }
    }
    root.ok_or_else(|| TemplateError::at(1, "", "the file is empty"))
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), TemplateError> {
        match self.events.next() {
            Some(Ok(pair)) => Ok(pair),
            Some(Err(error)) => Err(not_yaml(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, TemplateError> {
        if depth > DEEPEST {
            return Err(fault(span, "this is nested too deeply"));
        }
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, _, tag) => {
                let value = Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain };
                Ok(tagged(Node::new(line, value), tag.as_deref()))
            }
            Event::SequenceStart(_, tag) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        (event, span) => items.push(self.node(event, &span, depth + 1)?),
                    }
                }
                let value = Value::List(items);
                Ok(tagged(Node::new(line, value), tag.as_deref()))
            }
            Event::MappingStart(_, tag) => {
                let node = self.mapping(line, depth)?;
                Ok(tagged(long_form(node), tag.as_deref()))
            }
            Event::Alias(_) => Err(fault(span, "aliases are not supported")),
            _ => Err(fault(span, "the document ends too early")),
        }
    }

    fn mapping(&mut self, line: usize, depth: usize) -> Result<Node, TemplateError> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, _, _, None) => key.into_owned(),
                _ => return Err(fault(&span, "a key must be a plain name")),
            };
            if entries.iter().any(|(other, _)| *other == key) {
                return Err(fault(&span, format!("the key {key} is defined twice")));
            }
            let (event, span) = self.next()?;
            entries.push((key, self.node(event, &span, depth + 1)?));
        }
        Ok(Node::new(line, Value::Map(entries)))
    }
}

/// Converts `!Ref X` into a call of `Ref`. Ignores YAML's standard tags (`!!str`).
fn tagged(node: Node, tag: Option<&Tag>) -> Node {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => {
            Node::new(node.line, Value::Call(tag.suffix.clone(), Box::new(node)))
        }
        _ => node,
    }
}

/// Converts `{Ref: X}` and `{Fn::Sub: X}` into the same calls as the short form.
fn long_form(node: Node) -> Node {
    let Value::Map(entries) = &*node.value else { return node };
    let [(key, argument)] = entries.as_slice() else { return node };
    match key.strip_prefix("Fn::").or((key == "Ref").then_some("Ref")) {
        Some(name) => Node::new(node.line, Value::Call(name.to_owned(), Box::new(argument.clone()))),
        None => node,
    }
}

/// Returns a plain scalar as a number if it is an `i64` (also `+1`) or a JSON number. Returns
/// `None` for other scalars, such as `1.10.0`, which are text.
fn number(text: &str) -> Option<Json> {
    let whole = text.parse::<i64>().ok().map(Json::from);
    whole.or_else(|| serde_json::from_str::<serde_json::Number>(text).ok().map(Json::Number))
}

pub(crate) fn to_json(node: &Node) -> Result<Json, TemplateError> {
    Ok(match &*node.value {
        Value::Scalar { text, plain: true } if is_null(text) => Json::Null,
        Value::Scalar { text, plain: true } if text == "true" => Json::Bool(true),
        Value::Scalar { text, plain: true } if text == "false" => Json::Bool(false),
        Value::Scalar { text, plain: true } => number(text).unwrap_or_else(|| Json::from(text.as_str())),
        Value::Scalar { text, plain: false } => Json::from(text.as_str()),
        Value::List(items) => Json::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        Value::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, node)| Ok((key.clone(), to_json(node)?)))
                .collect::<Result<_, TemplateError>>()?,
        ),
        Value::Call(name, _) => {
            let message = format!("the tag !{name} has no meaning here");
            return Err(TemplateError::at(node.line, "", message));
        }
    })
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null")
}

fn fault(span: &Span, message: impl Into<String>) -> TemplateError {
    TemplateError::at(span.start.line(), "", message)
}

fn not_yaml(error: &ScanError) -> TemplateError {
    TemplateError::at(error.marker().line(), "", format!("not YAML: {}", error.info()))
}
