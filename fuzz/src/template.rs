//! The template: the parser reads it completely, or returns a one-line error, which may have a line
//! number. The parts of a parsed template are consistent.

use super::Scratch;
use template::{Deployment, Template, TemplateError, parse_yaml};

/// The longest name in a single-line mapping (YAML 1.2, 7.4.2).
const MAX_NAME_BYTES: usize = 1024;

thread_local! {
    static FILE: Scratch = Scratch::new("template");
}

pub fn check(input: &[u8]) {
    let deployment = Deployment::new("eu-central-1", "123456789012");
    let read = FILE.with(|file| {
        let path = file.holding(input);
        let inspected = Template::read(path);
        assert_eq!(Template::read(path), inspected);
        (inspected, Template::read_for(path, &deployment))
    });
    let lines = input.iter().filter(|byte| **byte == b'\n' || **byte == b'\r').count() + 1;
    for read in [&read.0, &read.1] {
        match read {
            Ok(template) => sound(template),
            Err(error) => refused(error, lines),
        }
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    match parse_yaml(text) {
        // JSON is also YAML, so the parser must read the same value from the value's JSON form.
        Ok(value) => {
            let json = value.to_string();
            match parse_yaml(&json) {
                Ok(again) => assert_eq!(again, value),
                Err(error) => assert!(json.len() > MAX_NAME_BYTES || json.contains(is_odd), "{json}: {error}"),
            }
        }
        Err(error) => refused(&error, lines),
    }
}

/// Returns whether YAML needs an escape for this character and JSON does not.
fn is_odd(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn refused(error: &TemplateError, lines: usize) {
    let told = error.to_string();
    assert!(!told.contains(char::is_control), "the message has more than one line: {told:?}");
    assert!(error.line().is_none_or(|line| (1..=lines + 1).contains(&line)), "the input has {lines} lines: {error}");
}

fn sound(template: &Template) {
    for route in &template.routes {
        assert!(template.function(&route.function).is_some(), "{route:?}");
    }
    let queues: Vec<&str> = template.queues.iter().map(|queue| queue.arn.as_str()).collect();
    let functions: Vec<&str> = template.functions.iter().map(|function| function.arn.as_str()).collect();
    for rule in &template.rules {
        assert!(template.buses.iter().any(|bus| bus.name == rule.bus), "{rule:?}");
        assert!(
            rule.targets
                .iter()
                .all(|target| queues.contains(&target.arn.as_str()) || functions.contains(&target.arn.as_str())),
            "{rule:?}"
        );
    }
}
