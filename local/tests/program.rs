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

/// Starts a system on a free port, without a data folder. Returns the process and the address.
fn running() -> (Child, String) {
    started(Command::new(BODEGA).args(["--port", "0", "--quiet"]))
}

fn started(command: &mut Command) -> (Child, String) {
    command.env_remove("AWS_ENDPOINT_URL_DYNAMODB").env_remove("SEARCH_ENDPOINT");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.find_map(|line| line.unwrap().strip_prefix("ready: ").map(str::to_owned)).unwrap();
    (child, url)
}

/// Runs the program with `args`, which must be refused with exit code 2. Returns the one-line
/// error.
fn refusal(args: &[&str]) -> String {
    let output = bodega(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty());
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn a_failed_start_is_reported_in_one_line_with_exit_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let busy = refusal(&["--port", &port]);
    assert!(busy.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{busy}");
    assert!(busy.contains("choose another port with --port"), "{busy}");

    let file = std::env::temp_dir().join(format!("bodega-broken-{}.yaml", std::process::id()));
    std::fs::write(&file, "Resources: {Table: {Type: 'AWS::DynamoDB::Table'}}").unwrap();
    let path = file.to_str().unwrap();
    assert!(refusal(&["--template", path]).contains(":1: Table: Properties is missing"));
    std::fs::remove_file(&file).unwrap();

    for (wrong, meant) in
        [(&["--prt", "1"][..], "--port"), (&["tokn"], "token"), (&["import", "--product"], "--products")]
    {
        let text = refusal(wrong);
        assert!(text.contains("similar") && text.trim_end().ends_with(&format!("'{meant}'")), "{text}");
    }
    assert!(refusal(&["--port", "x"]).contains("'x'"));
    assert!(refusal(&["--parameter", "CorsOrigins"]).contains("it must have a name and a value"));
    assert!(refusal(&["--port", "0", "--parameter", "Speling=x"]).contains("there is no parameter Speling"));
    assert!(refusal(&["token"]).contains("--sub"));
    assert!(refusal(&["token", "--sub", "c", "--email", "ann"]).contains("must be an email address"));
    assert!(refusal(&["function", "Moon"]).contains("there is no function Moon"));
    assert!(refusal(&["--port", "0", "--table-endpoint", "http://127.0.0.1:1"]).contains("http://127.0.0.1:1"));
}

#[test]
fn the_token_command_prints_only_the_token() {
    let output = bodega(&["token", "--sub", "c", "--group", "staff", "--email", "ann@example.com"]);
    assert!(output.status.success() && output.stderr.is_empty());
    let token = String::from_utf8(output.stdout).unwrap();
    assert_eq!(token.lines().count(), 1);
    assert_eq!(token.split('.').count(), 3);
}

#[test]
fn the_token_command_needs_the_data_folder_of_a_system_and_creates_no_folder() {
    let folder = std::env::temp_dir().join(format!("bodega-no-data-{:016x}", fastrand::u64(..)));
    let path = folder.to_str().unwrap();
    for args in [&["token", "--sub", "c", "--data", path][..], &["import", "--products", "p.csv", "--data", path]] {
        let text = refusal(args);
        assert!(text.contains(&format!("no signing key in {path}")), "{text}");
        assert!(!folder.exists());
    }
}

#[tokio::test]
async fn the_root_path_shows_the_site_and_the_docs_path_the_api_reference() {
    let (mut child, url) = running();
    let site = reqwest::get(&url).await.unwrap();
    assert_eq!((site.status().as_u16(), &site.headers()["content-type"]), (200, &"text/html; charset=utf-8".parse().unwrap()));
    assert_eq!(site.headers()["content-encoding"], "gzip");
    assert_eq!(reqwest::get(format!("{url}/config.json")).await.unwrap().status(), 200);
    assert_eq!(reqwest::get(format!("{url}/none")).await.unwrap().status(), 404, "only a browser gets a page");
    for path in ["/docs", "/docs/"] {
        let answer = reqwest::get(format!("{url}{path}")).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(answer.text().await.unwrap().contains("/docs/page.js"), "{path}");
    }
    for (path, encoding) in [
        ("/docs/page.js", None),
        ("/docs/page.css", None),
        ("/docs/swagger-ui-bundle.js", Some("gzip")),
        ("/docs/swagger-ui.css", Some("gzip")),
        ("/v1/openapi.yaml", None),
    ] {
        let answer = reqwest::get(format!("{url}{path}")).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let said = answer.headers().get("content-encoding").map(|value| value.to_str().unwrap());
        assert_eq!(said, encoding, "{path}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Runs the printed example commands in a shell, as a new user would.
#[cfg(unix)]
#[test]
fn the_printed_example_commands_end_with_a_search_that_finds_a_product() {
    let mut command = Command::new(BODEGA);
    command.args(["--port", "0"]).env_remove("AWS_ENDPOINT_URL_DYNAMODB").env_remove("SEARCH_ENDPOINT");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let printed: Vec<String> = lines.take_while(|line| !line.starts_with("ready: ")).collect();
    let is_shell =
        |line: &&String| ["ANN=", "STAFF=", "curl ", "  -", "       "].iter().any(|start| line.starts_with(start));
    let script: Vec<&str> = printed.iter().filter(is_shell).map(String::as_str).collect();
    let last = script.last().unwrap();
    assert!(last.contains("/v1/search/"), "{last}");
    // The `echo` puts each response on its own line.
    let output = Command::new("sh").args(["-ec", &script.join("\n").replace("curl -s", "echo; curl -sS")]).output();
    let output = output.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    let found = text.lines().last().unwrap();
    assert!(found.contains(r#""id":"tea""#), "{found}");
}

#[tokio::test]
async fn a_token_that_the_token_command_prints_is_valid_in_a_running_system() {
    let (mut child, url) = running();
    let output = bodega(&["token", "--sub", "c"]);
    let token = String::from_utf8(output.stdout).unwrap();
    let call = reqwest::Client::new().get(format!("{url}/v1/customers/c")).bearer_auth(token.trim());
    assert_ne!(call.send().await.unwrap().status(), 401);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_program_outside_of_its_source_folder_has_the_template_the_api_description_and_the_sample_data() {
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
    assert!(get("/docs").await.contains("/docs/page.js"));
    assert!(get("/docs/page.js").await.contains("/v1/openapi.yaml"));
    assert!(get("/v1/products/819765").await.contains("NATURAL CHEESE"));
    child.kill().unwrap();
    child.wait().unwrap();
    // The folder can be removed only if the program has left no files in it.
    std::fs::remove_dir(&folder).unwrap();
}

#[tokio::test]
async fn a_restart_with_the_sample_keeps_a_changed_product() {
    let folder = std::env::temp_dir().join(format!("bodega-sample-{:016x}", fastrand::u64(..)));
    let data = folder.to_str().unwrap();
    let start = || started(Command::new(BODEGA).args(["--port", "0", "--demo", "--data", data]));
    let stop = |mut child: Child| {
        child.kill().unwrap();
        child.wait().unwrap();
    };
    let (child, url) = start();
    let token = String::from_utf8(bodega(&["token", "--sub", "s", "--group", "staff", "--data", data]).stdout).unwrap();
    let client = reqwest::Client::new();
    let change =
        client.patch(format!("{url}/v1/products/819765")).bearer_auth(token.trim()).header("if-match", "\"1\"");
    let change = change.header("content-type", "application/json").body(r#"{"name":"Our cheese"}"#);
    assert_eq!(change.send().await.unwrap().status(), 200);
    stop(child);
    let (child, url) = start();
    let product = client.get(format!("{url}/v1/products/819765")).send().await.unwrap().text().await.unwrap();
    stop(child);
    assert!(product.contains("Our cheese"), "{product}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn sigterm_ends_the_system_and_every_function() {
    let (mut child, _) = running();
    let pid = child.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    // Linux lists the children of each thread. Any thread may have started them, so the test
    // reads the lists of all threads.
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
        assert!(!std::path::Path::new(&format!("/proc/{function}")).exists(), "process {function} still runs");
    }
}
