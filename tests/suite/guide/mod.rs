//! Sends the requests of the pages for client developers, in order, and compares the responses with
//! the printed responses.

mod printed;
mod shell;

use std::collections::BTreeMap;

use local::System;
use reqwest::header::HeaderValue;
use serde_json::{Value as Json, json};

use self::printed::Response;
use self::shell::{Command, Request, Variables};
use crate::support::client::{Call, http};
use crate::support::{read, root, with_own_system};

/// The address in the pages. The test replaces it with the address of its system.
const ADDRESS: &str = "http://127.0.0.1:3000";
/// The command that prints a token, without its options.
const TOKEN: &str = "$(cargo run --quiet -- token ";

#[test]
fn every_request_of_build_a_shop_gets_the_printed_response() {
    let page = read(&root().join("docs/build-a-shop.md"));
    let sent = with_own_system(async |system| Reader::new(system).follow(&page).await);
    assert!(sent > 25, "the page has {sent} requests");
}

#[test]
fn the_session_of_the_readme_up_to_the_card_payment_prints_the_shown_output() {
    let page = read(&root().join("README.md"));
    let (_, sections) = page.split_once("\n## A shop in 30 seconds\n").unwrap();
    let (sections, _) = sections.split_once("\n## What is guaranteed\n").unwrap();
    assert!(sections.contains("\n## Pay by card\n"));
    let sent = with_own_system(async |system| Reader::new(system).follow(sections).await);
    assert!(sent > 7, "the sections have {sent} requests");
}

/// Executes the blocks of a page as a reader would, in one shell.
struct Reader<'a> {
    system: &'a System,
    variables: Variables,
    files: BTreeMap<String, Vec<u8>>,
    last: Response,
    /// The last request, until its response is compared.
    unread: Option<String>,
    sent: usize,
}

impl<'a> Reader<'a> {
    fn new(system: &'a System) -> Self {
        Self {
            system,
            variables: Variables::new(),
            files: BTreeMap::new(),
            last: Response::default(),
            unread: None,
            sent: 0,
        }
    }

    /// Executes the `sh` blocks, and compares the response of a block's last request with the
    /// following `http` block. A request without a printed response must succeed. Returns the
    /// number of requests.
    async fn follow(mut self, page: &str) -> usize {
        // Every second part is a code block. It starts with the name of its language.
        for block in page.split("\n```").skip(1).step_by(2) {
            let (language, text) = block.split_once('\n').unwrap();
            match language {
                "sh" => {
                    let lines = format!("{text}\n");
                    let mut text = lines.as_str();
                    while !text.is_empty() {
                        let command = shell::take_command(&mut text, &self.variables);
                        self.run(command).await;
                    }
                }
                "http" => {
                    let request = self.unread.take();
                    let request = request.unwrap_or_else(|| panic!("a response without a request: {text}"));
                    let differences = Response::parse(text).differences(&self.last);
                    assert!(differences.is_empty(), "{request}: {}\n{:#?}", differences.join("; "), self.last);
                }
                "text" | "mermaid" => {}
                other => panic!("a block of {other}"),
            }
        }
        self.expect_success();
        self.sent
    }

    async fn run(&mut self, command: Command) {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => {}
            ["curl", ..] => {
                self.expect_success();
                self.send(Request::of_curl(&command.words[1..])).await;
            }
            // The page creates a file of random bytes in place of a picture.
            ["head", "-c", bytes, "/dev/urandom", ">", name] => {
                self.files.insert((*name).to_owned(), vec![7; bytes.parse().unwrap()]);
            }
            [assignment] => {
                let (name, value) = assignment.split_once('=').unwrap_or_else(|| panic!("{assignment}: no command"));
                let value = if let Some(options) = value.strip_prefix(TOKEN) {
                    self.token(options.strip_suffix(')').unwrap()).await
                } else if value == ADDRESS {
                    self.system.url()
                } else {
                    let member = self.last.member(&command.comment);
                    member.unwrap_or_else(|| panic!("{name}: the response has no {}", command.comment)).to_owned()
                };
                self.variables.insert(name.to_owned(), value);
            }
            other => panic!("{other:?}: the test does not know this command"),
        }
    }

    /// Issues the token that the program prints for these options.
    async fn token(&self, options: &str) -> String {
        let mut body = json!({});
        let words: Vec<&str> = options.split(' ').collect();
        for option in words.chunks(2) {
            match option {
                ["--group", name] => body["groups"] = json!([name]),
                [name, value] => body[name.strip_prefix("--").unwrap()] = json!(value),
                _ => panic!("{options}: an option without a value"),
            }
        }
        let issued = Call::new("POST", "/_local/tokens").json(&body).send(self.system).await.expect(200);
        issued.body["token"].as_str().unwrap().to_owned()
    }

    async fn send(&mut self, request: Request) {
        let mut call = http().request(request.method.parse().unwrap(), &request.url);
        for (name, value) in &request.headers {
            call = call.header(name, value);
        }
        call = match &request.body {
            Some(body) => match body.strip_prefix('@') {
                Some(file) => call.body(self.files[file].clone()),
                None => call.body(body.clone()),
            },
            None => call,
        };
        let answer = call.send().await.unwrap();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = answer.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let status = answer.status().as_u16();
        let body: Option<Json> = serde_json::from_slice(&answer.bytes().await.unwrap()).ok();
        self.last = Response { status, headers, body };
        self.unread = Some(format!("{} {}", request.method, request.url));
        self.sent += 1;
    }

    /// Checks that the last request succeeded, if the page does not print its response.
    fn expect_success(&mut self) {
        if let Some(request) = self.unread.take() {
            assert!((200..300).contains(&self.last.status), "{request}: {:#?}", self.last);
        }
    }
}
