#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

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
    assert_eq!(
        (site.status().as_u16(), &site.headers()["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
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
async fn a_program_outside_of_its_source_folder_has_the_template_the_api_description_and_the_demo() {
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
    assert!(get("/v1/products/teapot").await.contains("Teapot, 1.2 litres"));
    child.kill().unwrap();
    child.wait().unwrap();
    // The folder can be removed only if the program has left no files in it.
    std::fs::remove_dir(&folder).unwrap();
}

#[tokio::test]
async fn a_restart_with_the_demo_keeps_a_changed_product() {
    let folder = std::env::temp_dir().join(format!("bodega-demo-{:016x}", fastrand::u64(..)));
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
        client.patch(format!("{url}/v1/products/teapot")).bearer_auth(token.trim()).header("if-match", "\"1\"");
    let change = change.header("content-type", "application/json").body(r#"{"name":"Our teapot"}"#);
    assert_eq!(change.send().await.unwrap().status(), 200);
    stop(child);
    let (child, url) = start();
    let product = client.get(format!("{url}/v1/products/teapot")).send().await.unwrap().text().await.unwrap();
    stop(child);
    assert!(product.contains("Our teapot"), "{product}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Sends a GET request, and returns the document of the response.
async fn read(url: &str, token: Option<&str>) -> Value {
    let mut call = reqwest::Client::new().get(url);
    if let Some(token) = token {
        call = call.bearer_auth(token);
    }
    let answer = call.send().await.unwrap();
    assert_eq!(answer.status(), 200, "{url}");
    answer.json().await.unwrap()
}

fn items(page: &Value) -> Vec<Value> {
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_demo_has_orders_in_each_status_pictures_reviews_and_a_search() {
    let (mut child, url) = started(Command::new(BODEGA).args(["--port", "0", "--demo"]));
    let token = String::from_utf8(bodega(&["token", "--sub", "s", "--group", "staff"]).stdout).unwrap();
    let token = Some(token.trim());
    reqwest::Client::new().post(format!("{url}/_local/drain")).send().await.unwrap();
    for list in ["/_local/quarantine", "/_local/failures"] {
        assert_eq!(items(&read(&format!("{url}{list}"), None).await), [Value::Null; 0], "{list}");
    }

    let mut orders = Vec::new();
    for status in ["pending", "paid", "picking", "shipped", "delivered", "cancelled", "returned"] {
        let found = items(&read(&format!("{url}/v1/orders?status={status}&limit=100"), token).await);
        assert!(!found.is_empty(), "{status}");
        orders.extend(found);
    }
    let written: Vec<Value> = serde_json::from_str(include_str!("../demo/orders.json")).unwrap();
    assert_eq!(orders.len(), written.len());
    let (mut lapsed, mut tracked, mut guests) = (0, 0, 0);
    for order in &orders {
        let order = read(&format!("{url}/v1/orders/{}", order["id"].as_str().unwrap()), token).await;
        lapsed += usize::from(order["history"].as_array().unwrap().iter().any(|step| step["note"] == "lapsed"));
        tracked += usize::from(order["tracking"].is_string());
        guests += usize::from(order["guest"].is_object());
    }
    assert_eq!((lapsed, guests), (1, 2));
    assert!(tracked >= 5, "{tracked}");

    let written: Vec<Value> = serde_json::from_str(include_str!("../demo/products.json")).unwrap();
    let mut thumbnail = None;
    for product in &written {
        let shown = read(&format!("{url}/v1/products/{}", product["id"].as_str().unwrap()), None).await;
        assert_eq!(shown["thumbnail"].is_string(), product["pictures"].is_array(), "{shown}");
        let variants = product["variants"].as_array().map_or(0, Vec::len);
        assert_eq!(shown["variants"].as_array().map_or(0, Vec::len), variants, "{shown}");
        thumbnail = thumbnail.or(shown["thumbnail"].as_str().map(str::to_owned));
    }
    let picture = reqwest::get(format!("{url}{}", thumbnail.unwrap())).await.unwrap();
    assert!(picture.bytes().await.unwrap().starts_with(b"RIFF"));

    let hits = items(&read(&format!("{url}/v1/search/products?q=cofee"), None).await);
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit["thumbnail"].is_string()), "{hits:?}");
    let mugs = items(&read(&format!("{url}/v1/search/products?q=mug"), None).await);
    assert!(mugs.iter().any(|hit| hit["parent"] == "mug" && hit["thumbnail"].is_string()), "{mugs:?}");
    let reviews = read(&format!("{url}/v1/products/espresso-beans/reviews"), None).await;
    assert_eq!((&reviews["count"], items(&reviews).len()), (&3.into(), 3));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn the_option_open_shows_the_system_in_the_browser() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = std::env::temp_dir().join(format!("bodega-open-{:016x}", fastrand::u64(..)));
    std::fs::create_dir(&folder).unwrap();
    let (opener, opened) = (folder.join("xdg-open"), folder.join("opened"));
    // The file appears complete, because it is renamed.
    let script = format!("#!/bin/sh\necho \"$1\" > {0}.new && /bin/mv {0}.new {0}\n", opened.display());
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (mut child, url) = started(Command::new(BODEGA).args(["--port", "0", "--open"]).env("PATH", &folder));
    while !opened.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_to_string(&opened).unwrap().trim(), format!("{url}/"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Runs `doctor` in a folder. Returns the exit code and the lines.
fn doctor(folder: &Path, args: &[&str]) -> (Option<i32>, Vec<String>) {
    let mut command = Command::new(BODEGA);
    command.arg("doctor").args(args).current_dir(folder).env_remove("BODEGA_TEMPLATE");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text.lines().map(str::to_owned).collect())
}

#[test]
fn the_doctor_finds_a_busy_port_a_damaged_data_folder_and_another_compiler() {
    let folder = std::env::temp_dir().join(format!("bodega-doctor-{:016x}", fastrand::u64(..)));
    std::fs::create_dir(&folder).unwrap();
    let (code, lines) = doctor(&folder, &["--port", "0", "--data", "new/shop"]);
    assert_eq!(code, Some(0), "{lines:?}");
    assert!(lines.len() == 4 && lines.iter().all(|line| line.starts_with("ok ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("new/shop can be created")), "{lines:?}");
    // The folder can be removed only if the doctor has left nothing in it.
    std::fs::remove_dir(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();

    let failed = |args: &[&str]| {
        let (code, lines) = doctor(&folder, args);
        assert_eq!(code, Some(1), "{lines:?}");
        let failed: Vec<String> = lines.into_iter().filter(|line| line.starts_with("failed ")).collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        failed.concat()
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let line = failed(&["--port", &port]);
    assert!(line.contains(&format!("{port} is in use by")) && line.contains("--port"), "{line}");
    if cfg!(target_os = "linux") {
        assert!(line.contains(&format!("({})", std::process::id())), "{line}");
    }

    std::fs::write(folder.join("table.sqlite3"), "no database").unwrap();
    assert!(failed(&["--port", "0", "--data", "."]).contains("table.sqlite3 is not a table"));
    assert!(failed(&["--port", "0", "--data", "table.sqlite3"]).contains("table.sqlite3 is not a folder"));
    std::fs::write(folder.join("broken.yaml"), "Resources: {}").unwrap();
    assert!(failed(&["--port", "0", "--template", "broken.yaml"]).contains("broken.yaml"));

    std::fs::write(folder.join("rust-toolchain.toml"), "[toolchain]\nchannel = \"0.0.1\"\n").unwrap();
    std::fs::write(folder.join("template.yaml"), include_str!("../../template.yaml")).unwrap();
    assert!(failed(&["--port", "0"]).contains("rustup toolchain install 0.0.1"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_doctor_says_that_a_running_system_uses_the_data_folder() {
    let folder = std::env::temp_dir().join(format!("bodega-doctor-{:016x}", fastrand::u64(..)));
    let data = folder.to_str().unwrap();
    let (mut child, _) = started(Command::new(BODEGA).args(["--port", "0", "--quiet", "--data", data]));
    let outside = std::env::temp_dir();
    let (code, lines) = doctor(&outside, &["--port", "0", "--data", data]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(code, Some(1), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("in use by another running system")), "{lines:?}");
    let (code, lines) = doctor(&outside, &["--port", "0", "--data", data]);
    assert_eq!(code, Some(0), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("has a table")), "{lines:?}");
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
        assert!(!Path::new(&format!("/proc/{function}")).exists(), "process {function} still runs");
    }
}
