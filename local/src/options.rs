//! What a system is started with.

use std::path::PathBuf;
use std::time::Duration;

use runtime_api::Log;

/// How to start a [`System`](crate::System).
#[derive(Debug, Clone)]
pub struct Options {
    /// The `bodega` program, which is started again for every function.
    pub program: PathBuf,
    /// Folder of the functions' own programs, each named for its crate, to be run instead of `program`: what would be deployed.
    pub bootstraps: Option<PathBuf>,
    /// Port of the HTTP API; 0 for any that is free.
    pub port: u16,
    /// Folder to keep data in; without one everything is gone at the end.
    pub data: Option<PathBuf>,
    /// The template; without one [`Options::template_file`] looks for it.
    pub template: Option<PathBuf>,
    /// Parameters of the template that do not have their default, by name.
    pub parameters: Vec<(String, String)>,
    /// A DynamoDB to use instead of the embedded one.
    pub table_endpoint: Option<String>,
    /// Where that DynamoDB has its streams, when it is not the same address.
    pub streams_endpoint: Option<String>,
    /// Name of the table. Another DynamoDB gets a fresh one without it, which is deleted at the end.
    pub table: Option<String>,
    /// An OpenSearch to use instead of the embedded search engine.
    pub search_endpoint: Option<String>,
    /// Which lines of the functions are shown.
    pub log: Log,
    /// Most processes of one function at once.
    pub environments: usize,
    /// Whether the embedded table's stream is kept whole, for whoever reads it later, instead of being trimmed behind its consumers.
    pub keeps_stream: bool,
    /// How long a transaction of the table is under way, in which nobody else writes its items; without it they follow one another, and none meets another.
    pub transaction_time: Option<Duration>,
}

impl Options {
    /// The defaults, with other endpoints and programs where the environment names them:
    /// `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL_DYNAMODB_STREAMS`, `SEARCH_ENDPOINT`, `BODEGA_BOOTSTRAPS`.
    #[must_use]
    pub fn from_environment(program: PathBuf) -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            program,
            bootstraps: variable("BODEGA_BOOTSTRAPS").map(PathBuf::from),
            port: 0,
            data: None,
            template: None,
            parameters: Vec::new(),
            table_endpoint: variable("AWS_ENDPOINT_URL_DYNAMODB"),
            streams_endpoint: variable("AWS_ENDPOINT_URL_DYNAMODB_STREAMS"),
            table: None,
            search_endpoint: variable("SEARCH_ENDPOINT"),
            log: Log::default(),
            environments: 2,
            keeps_stream: false,
            transaction_time: None,
        }
    }

    /// The template's file: the given one, that of `BODEGA_TEMPLATE`, or the next one at or above
    /// the current directory. Without a file the system uses the template that the program carries.
    #[must_use]
    pub fn template_file(&self) -> Option<PathBuf> {
        const NAME: &str = "template.yaml";
        let named = || std::env::var_os("BODEGA_TEMPLATE").map(PathBuf::from);
        let near = || {
            let directory = std::env::current_dir().ok()?;
            directory.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file())
        };
        self.template.clone().or_else(named).or_else(near)
    }
}
