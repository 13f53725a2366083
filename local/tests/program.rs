//! `bodega` as a program: its exit codes, its one-line refusals, and its end.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

const BODEGA: &str = env!("CARGO_BIN_EXE_bodega");

fn bodega(args: &[&str]) -> Output {
    let mut command = Command::new(BODEGA);
    command.args(args).env_remove("AWS_ENDPOINT_URL_DYNAMODB").env_remove("SEARCH_ENDPOINT");
    command.output().unwrap()
}

/// A running system with nothing kept, on a port of its own, and its address.
fn running() -> (Child, String) {
    started(Command::new(BODEGA).args(["--port", "0", "--quiet"]))
}

/// The system that `command` starts, and its address.
fn started(command: &mut Command) -> (Child, String) {
    command.env_remove("AWS_ENDPOINT_URL_DYNAMODB").env_remove("SEARCH_ENDPOINT");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.find_map(|line| line.unwrap().strip_prefix("ready: ").map(str::to_owned)).unwrap();
    (child, url)
}

/// The usage error of `args`: one line, exit 2, nothing else.
fn refusal(args: &[&str]) -> String {
    let output = bodega(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty());
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn what_cannot_be_started_is_refused_in_one_line_with_exit_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert!(refusal(&["--port", &port]).contains(&format!("cannot listen on 127.0.0.1:{port}")));

    let file = std::env::temp_dir().join(format!("bodega-broken-{}.yaml", std::process::id()));
    std::fs::write(&file, "Resources: {Table: {Type: 'AWS::DynamoDB::Table'}}").unwrap();
    let path = file.to_str().unwrap();
    assert!(refusal(&["--template", path]).contains(":1: Table: Properties is missing"));
    std::fs::remove_file(&file).unwrap();

    assert!(refusal(&["--prt", "1"]).contains("'--prt'"));
    assert!(refusal(&["--port", "x"]).contains("'x'"));
    assert!(refusal(&["--parameter", "CorsOrigins"]).contains("it has a name and a value"));
    assert!(refusal(&["--port", "0", "--parameter", "Speling=x"]).contains("there is no parameter Speling"));
    assert!(refusal(&["token"]).contains("--sub"));
    assert!(refusal(&["function", "Moon"]).contains("there is no function Moon"));
    assert!(refusal(&["--port", "0", "--table-endpoint", "http://127.0.0.1:1"]).contains("http://127.0.0.1:1"));
}

#[test]
fn a_token_is_all_that_the_command_prints() {
    let output = bodega(&["token", "--sub", "c", "--group", "staff"]);
    assert!(output.status.success() && output.stderr.is_empty());
    let token = String::from_utf8(output.stdout).unwrap();
    assert_eq!(token.lines().count(), 1);
    assert_eq!(token.split('.').count(), 3);
}

#[tokio::test]
async fn a_token_of_the_command_is_good_for_a_system_that_runs() {
    let (mut child, url) = running();
    let output = bodega(&["token", "--sub", "c"]);
    let token = String::from_utf8(output.stdout).unwrap();
    let call = reqwest::Client::new().get(format!("{url}/v1/customers/c")).bearer_auth(token.trim());
    assert_ne!(call.send().await.unwrap().status(), 401);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn outside_of_its_source_the_program_has_the_template_the_api_and_the_sample() {
    let folder = std::env::temp_dir().join(format!("bodega-outside-{:016x}", fastrand::u64(..)));
    std::fs::create_dir(&folder).unwrap();
    let mut command = Command::new(BODEGA);
    command.args(["--port", "0", "--demo"]).current_dir(&folder).env_remove("BODEGA_TEMPLATE");
    let (mut child, url) = started(&mut command);
    let get = async |path: &str| {
        let answer = reqwest::get(format!("{url}{path}")).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.text().await.unwrap()
    };
    get("/health").await;
    assert_eq!(get("/v1/openapi.yaml").await, include_str!("../../openapi.yaml"));
    assert!(get("/docs").await.contains("/v1/orders"));
    // A product of the sample.
    assert!(get("/v1/products/819765").await.contains("NATURAL CHEESE"));
    child.kill().unwrap();
    child.wait().unwrap();
    // The program leaves nothing where it runs.
    std::fs::remove_dir(&folder).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn sigterm_ends_the_system_and_every_function() {
    let (mut child, _) = running();
    let pid = child.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    // The main thread starts none of them: the runtime's threads do.
    let mut functions: Vec<String> = children.unwrap().split_whitespace().map(str::to_owned).collect();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let children = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap();
        functions.extend(children.split_whitespace().map(str::to_owned));
    }
    assert!(functions.len() >= 6, "{functions:?}");

    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    for function in functions {
        assert!(!std::path::Path::new(&format!("/proc/{function}")).exists(), "{function} is left");
    }
}
