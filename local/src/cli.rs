use std::fmt::Display;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use time::OffsetDateTime;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use key_schema::id::CustomerId;
use key_schema::text::Email;

use crate::demo;
use crate::doctor::{self, DoctorArgs};
use crate::import::{self, ImportArgs};
use crate::token::{MoreClaims, SigningKey, is_group};
use crate::{Log, Options, System, functions};

/// Exit code for a fatal error, such as a usage error, a busy port or an invalid template.
const EXIT_USAGE: u8 = 2;
/// Maximum duration of a shutdown. Child processes that take longer are killed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs all of Bodega on this machine. Without a command, starts the system.
#[derive(Debug, Parser)]
#[command(name = "bodega", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a token for the running system.
    Token(TokenArgs),
    /// Load retail data into the running system through its API.
    Import(ImportArgs),
    /// Check whether the system can be built and started here.
    Doctor(DoctorArgs),
    /// Run as one function, behind a Lambda Runtime API.
    #[command(hide = true)]
    Function {
        /// The function's name in the template.
        logical_id: String,
    },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Port of the HTTP API. 0 selects a free port.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    port: u16,
    /// Keep the data in this folder. Without a folder, all data is lost at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Fill the shop with products, customers and orders. A data folder gets them only once.
    #[arg(long)]
    demo: bool,
    /// Open the system's page in the browser.
    #[arg(long)]
    open: bool,
    /// Use this DynamoDB instead of the embedded table [env: AWS_ENDPOINT_URL_DYNAMODB].
    #[arg(long, value_name = "URL")]
    table_endpoint: Option<String>,
    /// Name of the table. Without a name, the DynamoDB at --table-endpoint gets a fresh table,
    /// which is deleted at the end.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Use this template [default: template.yaml here or in a parent folder, or the built-in
    /// template].
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Set a parameter of the template, as `sam deploy` does. May be given more than once.
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
    /// Serve the build of the site in this folder instead of the one in the program.
    #[arg(long, value_name = "DIR")]
    site: Option<PathBuf>,
    /// Let the table's explorer change items.
    #[arg(long)]
    explorer_write: bool,
    /// Maximum number of processes of one function.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    environments: u16,
    /// Select which log lines of the functions appear.
    #[arg(long, value_enum, default_value_t = LogArg::Problems)]
    log: LogArg,
    /// Print only the line that says that the system is ready.
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogArg {
    /// No lines.
    Off,
    /// Warnings and errors.
    Problems,
    /// Every line.
    All,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) =
        pair.ok_or_else(|| "it must have a name and a value, as in CorsOrigins=http://localhost:5173".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Debug, Args)]
struct TokenArgs {
    /// The customer that the token is for.
    #[arg(long, value_name = "ID")]
    sub: String,
    /// A group of the token's owner, such as staff. May be given more than once.
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// The token's claim `sid`, which names the sign-in that the token belongs to. If the token
    /// begins a session, the end of that session also ends the token.
    #[arg(long, value_name = "S")]
    sid: Option<String>,
    /// A verified email address of the token's owner. If the owner's profile has this address, the
    /// address counts as verified.
    #[arg(long, value_name = "ADDRESS")]
    email: Option<Email>,
    /// Data folder of the running system, if the system has one. It contains the signing key.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command {
        None => run(cli.run),
        Some(Command::Token(args)) => token(&args),
        Some(Command::Import(args)) => import(args),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Function { logical_id }) => function(&logical_id),
    }
}

/// Prints clap's help unchanged. Prints an error in one line, with clap's suggestion if there is
/// one.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // An error is ignored, because standard output may be closed.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let message: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = message.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    match text.lines().find_map(|line| line.trim().strip_prefix("tip: ").filter(|tip| tip.contains("similar"))) {
        Some(tip) => refuse(&format_args!("{message}; {tip}")),
        None => refuse(&message),
    }
}

fn token(args: &TokenArgs) -> ExitCode {
    if let Err(error) = CustomerId::new(args.sub.as_str()) {
        return refuse(&format_args!("--sub {error}"));
    }
    if !args.groups.iter().all(|group| is_group(group)) {
        return refuse(&"--group must be a name without spaces, commas and brackets");
    }
    let now = OffsetDateTime::now_utc().unix_timestamp();
    if args.sid.as_deref().is_some_and(str::is_empty) {
        return refuse(&"--sid must not be empty");
    }
    let more = MoreClaims { sid: args.sid.as_deref(), email: args.email.as_ref().map(Email::as_str) };
    let issue = |key: SigningKey| key.issue_with(&args.sub, &args.groups, more, now);
    let issued = SigningKey::of_running(args.data.as_deref()).and_then(issue);
    match issued {
        Ok(token) => {
            say(&token);
            ExitCode::SUCCESS
        }
        Err(error) => refuse(&error),
    }
}

fn import(args: ImportArgs) -> ExitCode {
    let now = OffsetDateTime::now_utc().unix_timestamp();
    let issued =
        SigningKey::of_running(args.data.as_deref()).and_then(|key| key.issue("import", &["staff".to_owned()], now));
    let token = match issued {
        Ok(token) => token,
        Err(error) => return refuse(&error),
    };
    let base = format!("http://127.0.0.1:{}", args.port);
    match threads() {
        Ok(runtime) => runtime.block_on(import::run(args, base, token)),
        Err(error) => refuse(&error),
    }
}

/// Runs one function on one thread, as its deployed program does.
fn function(logical_id: &str) -> ExitCode {
    // A function that a user starts by hand has no Runtime API, so it prints an error and ends. A
    // closed standard input must not end its process before it prints the error.
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        end_with_parent();
    }
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    match runtime.block_on(functions::run(logical_id)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ functions::FunctionExit::Unknown(_)) => refuse(&error),
        Err(error) => {
            eprintln!("bodega: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Ends this process when the local system ends for any reason. The local system holds the other
/// end of this process's standard input.
fn end_with_parent() {
    // Reading standard input blocks, so it needs a thread. The thread ends with the process.
    std::thread::spawn(|| {
        let mut nothing = [0_u8; 64];
        while matches!(io::stdin().lock().read(&mut nothing), Ok(read) if read > 0) {}
        std::process::exit(0);
    });
}

fn run(args: RunArgs) -> ExitCode {
    show_warnings();
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return refuse(&error),
    };
    let from_environment = Options::from_environment(program);
    let options = Options {
        port: args.port,
        data: args.data.clone(),
        template: args.template.clone(),
        parameters: args.parameters.clone(),
        site: args.site.clone(),
        table_endpoint: args.table_endpoint.clone().or(from_environment.table_endpoint.clone()),
        table: args.table.clone(),
        log: match args.log {
            LogArg::Off => Log::Off,
            LogArg::Problems => Log::Problems,
            LogArg::All => Log::All,
        },
        environments: usize::from(args.environments),
        explorer_write: args.explorer_write,
        ..from_environment
    };
    match threads() {
        Ok(runtime) => {
            let code = runtime.block_on(serve(options, &args));
            runtime.shutdown_background();
            code
        }
        Err(error) => refuse(&error),
    }
}

async fn serve(options: Options, args: &RunArgs) -> ExitCode {
    // The signal handlers must exist before the system starts. Otherwise an early Ctrl-C would
    // leave processes running.
    let mut interrupted = std::pin::pin!(interrupted());
    let system = tokio::select! {
        started = System::start(options) => match started {
            Ok(system) => system,
            Err(error) => return refuse(&error),
        },
        () = &mut interrupted => return ExitCode::SUCCESS,
    };
    let code = tokio::select! {
        code = attend(&system, args) => code,
        () = &mut interrupted => ExitCode::SUCCESS,
    };
    // At the timeout, dropping the system kills the remaining processes.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, system.shutdown()).await;
    code
}

/// Loads the demo if `--demo` is given, prints the introduction, and waits for ever. Returns only if
/// the demo cannot be loaded.
async fn attend(system: &System, args: &RunArgs) -> ExitCode {
    let loaded = loaded_demo(args);
    if args.demo && !loaded.as_ref().is_some_and(|file| file.exists()) {
        let token = system.token("demo", &["staff".to_owned()]);
        if !args.quiet {
            say("Filling the shop ...");
        }
        system.hold_streams(true);
        let demo = demo::load(system.url(), token).await;
        system.hold_streams(false);
        match demo {
            Ok(Some(demo)) if !args.quiet => say(&format!("{demo}\n")),
            Ok(Some(_)) => {}
            Ok(None) => eprintln!("bodega: the shop has products of --demo already, so it is not loaded again"),
            Err(error) => return refuse(&format_args!("cannot load the demo: {error}")),
        }
        if let Some(Err(error)) = loaded.map(|file| std::fs::write(file, "")) {
            return refuse(&format_args!("cannot write to the data folder: {error}"));
        }
    }
    if !args.quiet {
        introduce(system, args);
    }
    say(&format!("ready: {}", system.url()));
    if args.open {
        open(&format!("{}/", system.url()));
    }
    std::future::pending().await
}

/// Returns the file that says that the data folder has the demo. A second load would overwrite
/// products that were changed since. Another DynamoDB keeps its own data, so it has no such file.
fn loaded_demo(args: &RunArgs) -> Option<PathBuf> {
    let is_embedded = args.table_endpoint.is_none() && std::env::var_os("AWS_ENDPOINT_URL_DYNAMODB").is_none();
    args.data.as_ref().filter(|_| is_embedded).map(|data| data.join("sample.loaded"))
}

/// Shows a page in the browser. Without a browser, the user can still open the printed address.
fn open(url: &str) {
    let opener: &[&str] = match std::env::consts::OS {
        "macos" => &["open"],
        "windows" => &["cmd", "/C", "start", ""],
        _ => &["xdg-open"],
    };
    let [program, args @ ..] = opener else { return };
    let mut command = std::process::Command::new(program);
    command.args(args).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The opener may run as long as the browser, so nothing waits for it.
    if command.spawn().is_err() {
        eprintln!("bodega: cannot start {program}; open {url} yourself");
    }
}

fn introduce(system: &System, args: &RunArgs) {
    let url = system.url();
    let (table, table_url) = (system.table(), system.table_url());
    let search_url = system.search_url();
    let customer = system.token("ann", &[]);
    let staff = system.token("sam", &["staff".to_owned()]);
    say(&format!(
        r#"Bodega is up.

  Shop       {url}/
  Staff      {url}/staff
  Explorer   {url}/table, which shows what each request does in the table
  API        {url}/v1
  Reference  {url}/docs
  Table      {table} at {table_url}
  Search     {search_url}

Tokens of the customer ann and of a member of staff, valid for 12 hours:

ANN={customer}
STAFF={staff}

To try (set the two variables first):
"#
    ));
    say(&if args.demo { tour_of_demo(&url) } else { first_steps(&url) });
    if !args.demo && io::stdout().is_terminal() {
        say("To see a filled shop, start with --demo --open.\n");
    }
}

/// Returns requests that fill an empty shop.
fn first_steps(url: &str) -> String {
    format!(
        r#"curl -s {url}/v1/products -H "Authorization: Bearer $STAFF" -H 'Content-Type: application/json' \
  -d '{{"id":"tea","name":"Green tea","brand":"Leaf","category_path":["GROCERY","TEA"],
       "price":{{"amount":349,"currency":"USD"}},"stock":50}}'
curl -s {url}/v1/customers -H "Authorization: Bearer $ANN" -H 'Content-Type: application/json' \
  -d '{{"email":"ann@example.com","username":"ann","name":"Ann"}}'
curl -s {url}/v1/orders -H "Authorization: Bearer $ANN" -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: first' -d '{{"customer_id":"ann","lines":[{{"product_id":"tea","quantity":2}}]}}'
curl -s {url}/v1/customers/ann/overview -H "Authorization: Bearer $ANN"
curl -s -X POST {url}/_local/drain   # waits until the search index has all changes
curl -s '{url}/v1/search/products?q=gren+tea'
"#
    )
}

/// Returns requests that show the demo.
fn tour_of_demo(url: &str) -> String {
    format!(
        r#"curl -s {url}/v1/products/mug
curl -s {url}/v1/products/espresso-beans/reviews
curl -s '{url}/v1/search/products?q=cofee&in_stock=true'
curl -s {url}/v1/customers/ann/overview -H "Authorization: Bearer $ANN"
curl -s '{url}/v1/orders?status=paid' -H "Authorization: Bearer $STAFF"
"#
    )
}

/// Shows this process's warnings. For the embedded table it shows only errors, because the table
/// logs every failed condition as a warning.
fn show_warnings() {
    let targets = Targets::new().with_default(LevelFilter::WARN).with_target("dynoxide", LevelFilter::ERROR);
    tracing_subscriber::registry().with(targets).with(tracing_subscriber::fmt::layer().with_writer(io::stderr)).init();
}

fn threads() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    // If no handler can be installed, this call returns at once, and so the program ends.
    let _ = tokio::signal::ctrl_c().await;
}

/// Prints a fatal error in one line. Returns [`EXIT_USAGE`].
fn refuse(reason: &impl Display) -> ExitCode {
    eprintln!("bodega: {reason}");
    ExitCode::from(EXIT_USAGE)
}

/// Writes to standard output. Ignores errors, because standard output may be a closed pipe.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
