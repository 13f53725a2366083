//! Writes YAML: a mapping that fits on a line in flow style, otherwise in block style.

use std::sync::LazyLock;

use http_api::contract::Node;
use regex::Regex;

const COLUMNS: usize = 100;

/// A scalar that needs no quotes, in flow style and in block style.
static PLAIN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[A-Za-z_/$][A-Za-z0-9 _./()$+-]*$").unwrap());
static PLAIN_IN_BLOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[A-Za-z_/$][A-Za-z0-9 _./()$+,'-]*$").unwrap());

/// Returns the lines of a member of a mapping, at this indentation.
pub fn member(name: &str, node: &Node, indent: usize) -> String {
    let (space, name) = (" ".repeat(indent), scalar(name));
    let line = match node {
        Node::Text(text) if PLAIN_IN_BLOCK.is_match(text) && text.contains(' ') => format!("{space}{name}: {text}\n"),
        node => format!("{space}{name}: {}\n", flow(node)),
    };
    let is_line = line.chars().count() <= COLUMNS && !line.trim_end().contains('\n');
    match node {
        Node::Text(text) if text.contains('\n') => {
            let lines: String = text.lines().map(|line| format!("{}\n", indented(line, indent + 2))).collect();
            format!("{space}{name}: |-\n{lines}")
        }
        Node::Text(text) if !is_line => {
            let lines: String =
                wrapped(text, indent + 2).iter().map(|line| format!("{}\n", indented(line, indent + 2))).collect();
            format!("{space}{name}: >-\n{lines}")
        }
        Node::Map(members) if !members.is_empty() && (!is_line || !is_small(node)) => {
            let lines: String = members.iter().map(|(name, node)| member(name, node, indent + 2)).collect();
            format!("{space}{name}:\n{lines}")
        }
        Node::List(elements) if !elements.is_empty() && !is_line => {
            let lines: String = elements.iter().map(|node| element(node, indent + 2)).collect();
            format!("{space}{name}:\n{lines}")
        }
        _ => line,
    }
}

fn element(node: &Node, indent: usize) -> String {
    let space = " ".repeat(indent);
    let line = format!("{space}- {}\n", flow(node));
    match node {
        Node::Map(members) if line.chars().count() > COLUMNS => {
            let lines: String = members.iter().map(|(name, node)| member(name, node, indent + 2)).collect();
            format!("{space}- {}", &lines[indent + 2..])
        }
        _ => line,
    }
}

/// Returns whether a mapping may be on one line: its values are scalars or such mappings themselves.
fn is_small(node: &Node) -> bool {
    match node {
        Node::Map(members) => {
            members.len() <= 4 && members.iter().all(|(name, node)| name != "description" && is_small(node))
        }
        _ => true,
    }
}

fn indented(line: &str, indent: usize) -> String {
    if line.is_empty() { String::new() } else { format!("{}{line}", " ".repeat(indent)) }
}

fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().unwrap();
        if line.is_empty() {
            *line += word;
        } else if indent + line.chars().count() + 1 + word.chars().count() <= COLUMNS {
            *line += &format!(" {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn flow(node: &Node) -> String {
    match node {
        Node::Null => "null".to_owned(),
        Node::Boolean(value) => value.to_string(),
        Node::Number(number) => number.to_string(),
        Node::Text(text) => scalar(text),
        Node::List(elements) => format!("[{}]", elements.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Node::Map(members) => {
            let members = members.iter().map(|(name, node)| format!("{}: {}", scalar(name), flow(node)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

fn scalar(text: &str) -> String {
    let is_keyword =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    if PLAIN.is_match(text) && !text.ends_with(' ') && !is_keyword {
        text.to_owned()
    } else if text.chars().any(char::is_control) {
        serde_json::to_string(text).unwrap()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}
