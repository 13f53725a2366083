//! Parses the shell syntax and the curl options that the pages use, and panics on any other syntax.

use std::collections::BTreeMap;

use regex::{Captures, Regex};

pub type Variables = BTreeMap<String, String>;

/// One command: its words, without quotes and with the values of variables, and its comment.
#[derive(Debug, Default, PartialEq)]
pub struct Command {
    pub words: Vec<String>,
    pub comment: String,
}

#[derive(Debug, Default)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: BTreeMap<String, String>,
    /// The bytes, or `@` and the name of a file.
    pub body: Option<String>,
}

/// A backslash at the end of a line continues a command.
pub fn take_command(text: &mut &str, variables: &Variables) -> Command {
    let mut command = Command::default();
    let mut word: Option<String> = None;
    while let Some(mark) = text.chars().next() {
        *text = &text[mark.len_utf8()..];
        match mark {
            '\n' => break,
            ' ' => command.words.extend(word.take()),
            '#' if word.is_none() => command.comment = take_until(text, '\n').trim().to_owned(),
            '\\' => assert_eq!(take_until(text, '\n'), "", "a backslash ends a line"),
            '\'' => word.get_or_insert_default().push_str(take_until(text, '\'')),
            '"' => word.get_or_insert_default().push_str(&expanded(take_until(text, '"'), variables)),
            '$' | '|' | '&' | ';' => panic!("write {mark} inside of quotes"),
            other => word.get_or_insert_default().push(other),
        }
        if !command.comment.is_empty() {
            break;
        }
    }
    command.words.extend(word);
    command
}

fn take_until<'a>(text: &mut &'a str, end: char) -> &'a str {
    let (taken, rest) = text.split_once(end).unwrap_or_else(|| panic!("there is no {end:?} after {text}"));
    *text = rest;
    taken
}

/// Replaces `$NAME`, and `${NAME%TEXT*}`, which is the part of the value before the last `TEXT`.
fn expanded(text: &str, variables: &Variables) -> String {
    let name = Regex::new(r"\$(?:([A-Z]+)|\{([A-Z]+)%(\w+)\*\})").unwrap();
    let value = |found: &Captures<'_>| {
        let name = found.get(1).or(found.get(2)).unwrap().as_str();
        let value = variables.get(name).unwrap_or_else(|| panic!("{name} has no value yet")).as_str();
        let end = found.get(3).and_then(|mark| value.rfind(mark.as_str()));
        value[..end.unwrap_or(value.len())].to_owned()
    };
    name.replace_all(text, value).into_owned()
}

impl Request {
    /// Parses the words after `curl`.
    pub fn of_curl(words: &[String]) -> Self {
        let mut request = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value")).clone();
            match word.as_str() {
                "-i" | "-s" => {}
                "-X" => request.method = value(),
                "-H" => {
                    let header = value();
                    let (name, value) = header.split_once(": ").unwrap();
                    request.headers.insert(name.to_lowercase(), value.to_owned());
                }
                "--json" => {
                    request.body = Some(value());
                    for name in ["content-type", "accept"] {
                        request.headers.entry(name.to_owned()).or_insert("application/json".to_owned());
                    }
                }
                "--data-binary" => {
                    request.body = Some(value());
                    // curl sends this content type by default, and the API refuses it.
                    let form = "application/x-www-form-urlencoded".to_owned();
                    request.headers.entry("content-type".to_owned()).or_insert(form);
                }
                url if url.starts_with("http://") && request.url.is_empty() => request.url = url.to_owned(),
                other => panic!("curl {other}: the test does not know it"),
            }
        }
        if request.method.is_empty() {
            request.method = if request.body.is_some() { "POST" } else { "GET" }.to_owned();
        }
        request
    }
}

#[test]
fn commands_are_read_as_a_shell_reads_them() {
    let variables = Variables::from([("SHOP".to_owned(), "http://shop".to_owned())]);
    let mut text = "curl -i \"$SHOP/a b\" \\\n  --json '{\"x\":\"$SHOP\",\n\"y\":1}'\n\nETAG='\"1\"'  # etag\n";
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let first = take_command(&mut text, &variables);
    assert_eq!(first.words, words(&["curl", "-i", "http://shop/a b", "--json", "{\"x\":\"$SHOP\",\n\"y\":1}"]));
    assert_eq!(take_command(&mut text, &variables), Command::default());
    let third = take_command(&mut text, &variables);
    assert_eq!(third, Command { words: words(&["ETAG=\"1\""]), comment: "etag".to_owned() });
    assert_eq!(text, "");
    let secret = Variables::from([("SECRET".to_owned(), "pi_1_secret_2".to_owned())]);
    assert_eq!(expanded("a/${SECRET%_secret_*}/b $SECRET", &secret), "a/pi_1/b pi_1_secret_2");
    let request = Request::of_curl(&first.words[1..]);
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "http://shop/a b"));
    assert_eq!(request.headers["content-type"], "application/json");
}
