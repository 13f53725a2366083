//! Generates the operations and schemas of `openapi.yaml` and the HTTP events of `template.yaml`
//! from the declarations at the handlers.

use std::collections::{BTreeMap, BTreeSet};

use http_api::Code;
use http_api::contract::{Node, Operation, Schemas, Who};
use regex::Regex;

use super::yaml;
use crate::support::{read, root, template};

/// The functions whose routes are declared at their handlers, by the name of their crate.
pub fn functions() -> Vec<(&'static str, Vec<Operation>)> {
    vec![
        ("agents", agents::operations()),
        ("catalog", catalog::operations()),
        ("community", community::operations()),
        ("customers", customers::operations()),
        ("documents", documents::operations()),
        ("insights", insights::operations()),
        ("orders", orders::operations()),
        ("organizations", organizations::operations()),
        ("search", search::operations()),
        ("settings", settings::operations()),
        ("support", ::support::operations()),
        ("wallet", wallet::operations()),
    ]
}

const STALE: &str = "is stale: UPDATE_DOCS=1 cargo test -p bodega-tests --test suite contract";

fn compare(name: &str, generated: &str) {
    let path = root().join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, generated).unwrap();
    }
    let kept = read(&path);
    if let Some((line, _)) = kept.lines().zip(generated.lines()).enumerate().find(|(_, (kept, now))| kept != now) {
        panic!("{name}:{} {STALE}", line + 1);
    }
    assert!(kept == generated, "{name} {STALE}");
}

#[test]
fn the_operations_and_schemas_of_openapi_yaml_are_those_of_the_handlers() {
    compare("openapi.yaml", &document(&read(&root().join("openapi.yaml"))));
}

#[test]
fn the_http_events_of_the_template_are_those_of_the_handlers() {
    let mut text = read(&root().join("template.yaml"));
    for (crate_name, operations) in functions() {
        let template = template();
        let function = template.functions.iter().find(|function| function.crate_name() == crate_name).unwrap();
        let start = text.find(&format!("\n  {}:\n", function.logical_id)).unwrap() + 1;
        let end = text[start..].find("\n\n").map_or(text.len(), |at| start + at + 1);
        let kept = text[start..end].lines().filter(|line| !line.contains("{Type: HttpApi, "));
        let events: String = operations.iter().map(event).collect();
        let kept: String = kept
            .map(|line| if line == "      Events:" { format!("{line}\n{events}") } else { format!("{line}\n") })
            .collect();
        text.replace_range(start..end, &kept);
    }
    compare("template.yaml", &text);
}

fn event(operation: &Operation) -> String {
    let name: String =
        operation.id.chars().take(1).flat_map(char::to_uppercase).chain(operation.id.chars().skip(1)).collect();
    let path = operation.template();
    let path = if path.contains('{') { format!("'{path}'") } else { path.to_owned() };
    let auth = if operation.who == Who::Any { ", Auth: {Authorizer: NONE}" } else { "" };
    format!(
        "        {name}: {{Type: HttpApi, Properties: {{ApiId: !Ref HttpApi, Method: {}, Path: {path}{auth}}}}}\n",
        operation.method()
    )
}

/// A part of the document: a name at some indentation, with its lines.
struct Block {
    name: String,
    text: String,
}

/// Splits a text at the lines that have a name at this indentation. The first text comes before
/// the first name.
fn blocks(text: &str, indent: usize) -> (String, Vec<Block>) {
    let (mut before, mut blocks) = (String::new(), Vec::<Block>::new());
    for line in text.split_inclusive('\n') {
        let rest =
            line.get(indent..).filter(|rest| line[..indent].trim().is_empty() && !rest.starts_with([' ', '#', '\n']));
        if let Some(name) = rest.and_then(|rest| rest.split(':').next()) {
            blocks.push(Block { name: name.trim_matches('\'').to_owned(), text: line.to_owned() });
        } else if let Some(block) = blocks.last_mut() {
            block.text += line;
        } else {
            before += line;
        }
    }
    (before, blocks)
}

fn document(text: &str) -> String {
    let (head, sections) = blocks(text, 0);
    let mut schemas = Schemas::default();
    let mut generated = BTreeMap::new();
    let described = functions().into_iter().flat_map(|(_, operations)| operations);
    for operation in described.filter(|operation| operation.spec.is_none()) {
        let node = operation.describe(&mut schemas);
        let known = generated.insert(operation.key, (operation.path_parameters(&mut schemas), node));
        assert!(known.is_none(), "{} is declared twice", operation.key);
    }
    let (schemas, responses) = schemas.into_parts();
    let mut output = head;
    let mut components = String::new();
    for section in sections {
        match section.name.as_str() {
            "paths" => output += &paths(&section.text, &generated),
            "components" => components = section.text,
            _ => output += &section.text,
        }
    }
    let components = with_generated(&components, &schemas, &responses);
    output.clone() + &used(&output, &components)
}

/// Returns the section of the paths, in which the declared operations replace their earlier text.
fn paths(section: &str, generated: &BTreeMap<&str, (Vec<Node>, Node)>) -> String {
    let without_comments = |line: &&str| !line.starts_with("  # -");
    let section: String = section.split_inclusive('\n').skip(1).filter(without_comments).collect();
    let (mut output, paths) = blocks(&section, 2);
    let mut left: BTreeSet<&str> = generated.keys().copied().collect();
    let of = |path: &str| -> Vec<&str> {
        generated.keys().copied().filter(|key| key.split_once(' ').unwrap().1 == path).collect()
    };
    for path in paths {
        let declared = of(&path.name);
        let (first, rest) = path.text.split_once('\n').unwrap();
        let (_, methods) = blocks(rest, 4);
        output += &format!("{first}\n");
        output += &shared_parameters(&declared, generated).unwrap_or_default();
        for method in methods {
            let key = format!("{} {}", method.name.to_uppercase(), path.name);
            if let Some(declared) = declared.iter().find(|declared| **declared == key) {
                if left.remove(declared) {
                    output += &yaml::member(&method.name, &generated[declared].1, 4);
                }
            } else if method.name != "parameters" || declared.is_empty() {
                output += &method.text;
            }
        }
        for key in declared.iter().filter(|key| left.contains(**key)).copied().collect::<Vec<_>>() {
            left.remove(key);
            output += &yaml::member(&key.split_once(' ').unwrap().0.to_lowercase(), &generated[key].1, 4);
        }
        if !output.ends_with("\n\n") {
            output += "\n";
        }
    }
    while let Some(key) = left.first().copied() {
        let path = key.split_once(' ').unwrap().1;
        output += &format!("  {path}:\n{}", shared_parameters(&of(path), generated).unwrap_or_default());
        for key in of(path) {
            left.remove(key);
            output += &yaml::member(&key.split_once(' ').unwrap().0.to_lowercase(), &generated[key].1, 4);
        }
        output += "\n";
    }
    format!("paths:\n{output}")
}

fn shared_parameters(keys: &[&str], generated: &BTreeMap<&str, (Vec<Node>, Node)>) -> Option<String> {
    let parameters = generated[keys.first()?].0.clone();
    (!parameters.is_empty()).then(|| yaml::member("parameters", &Node::List(parameters), 4))
}

/// Returns the components, in which the generated schemas and examples replace their earlier text.
fn with_generated(components: &str, schemas: &[(String, Node)], responses: &[(String, Node)]) -> String {
    let (mut output, sections) = blocks(components.split_once('\n').unwrap().1, 2);
    for section in sections.iter().filter(|section| section.name != "examples") {
        let (first, rest) = section.text.split_once('\n').unwrap();
        let generated = match section.name.as_str() {
            "schemas" => schemas,
            "responses" => responses,
            _ => {
                output += &section.text;
                continue;
            }
        };
        if section.name == "schemas" {
            output += "  examples:\n";
            for code in Code::ALL {
                output += &yaml::member(code.name(), &example(*code), 4);
            }
        }
        output += &format!("{first}\n");
        let mut left: BTreeMap<&str, &Node> = generated.iter().map(|(name, node)| (name.as_str(), node)).collect();
        for block in blocks(rest, 4).1 {
            match left.remove(block.name.as_str()) {
                Some(node) => output += &yaml::member(&block.name, node, 4),
                None => output += &block.text,
            }
        }
        for (name, node) in left {
            output += &yaml::member(name, node, 4);
        }
    }
    format!("components:\n{output}")
}

fn example(code: Code) -> Node {
    let problem = Node::map([
        ("type", format!("urn:bodega:problem:{}", code.name()).into()),
        ("title", code.title().into()),
        ("status", code.status().as_u16().into()),
        ("code", code.name().into()),
        ("detail", format!("{}.", code.title()).into()),
        ("request_id", "c2JqIvUyPMCD36Y=".into()),
    ]);
    Node::map([("value", problem)])
}

/// Removes components to which nothing refers.
fn used(document: &str, components: &str) -> String {
    let reference = Regex::new("#/components/([A-Za-z]+)/([A-Za-z0-9_]+)").unwrap();
    let mut components = components.to_owned();
    loop {
        let whole = format!("{document}{components}");
        let used: BTreeSet<(&str, &str)> =
            reference.captures_iter(&whole).map(|found| found.extract::<2>().1.into()).collect();
        let (before, sections) = blocks(components.split_once('\n').unwrap().1, 2);
        let mut output = format!("components:\n{before}");
        for section in sections {
            let (first, rest) = section.text.split_once('\n').unwrap();
            let (inner, entries) = blocks(rest, 4);
            output += &format!("{first}\n{inner}");
            for entry in entries {
                if section.name == "securitySchemes" || used.contains(&(section.name.as_str(), entry.name.as_str())) {
                    output += &entry.text;
                }
            }
        }
        if output == components {
            return output;
        }
        components = output;
    }
}
