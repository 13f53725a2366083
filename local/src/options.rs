use std::path::PathBuf;

use emulators::table::Model;
use runtime_api::Log;

#[derive(Debug, Clone)]
pub struct Options {
    /// The `bodega` program. The system starts it again for every function.
    pub program: PathBuf,
    /// Folder with the functions' deployable programs, each named after its crate. The system runs
    /// them instead of `program`.
    pub bootstraps: Option<PathBuf>,
    /// Port of the HTTP API. 0 selects a free port.
    pub port: u16,
    /// Folder for the data. Without a folder, all data is lost at the end.
    pub data: Option<PathBuf>,
    /// The file of the template. If it is `None`, [`Options::template_file`] searches for the file.
    pub template: Option<PathBuf>,
    /// Parameters of the template with values other than their default, by name.
    pub parameters: Vec<(String, String)>,
    /// Folder with a build of the site to serve instead of the one in the program.
    pub site: Option<PathBuf>,
    /// A DynamoDB to use instead of the embedded table.
    pub table_endpoint: Option<String>,
    /// Address of the streams of the DynamoDB at `table_endpoint`, if the streams have another
    /// address.
    pub streams_endpoint: Option<String>,
    /// Name of the table. Without a name, the DynamoDB at `table_endpoint` gets a fresh table,
    /// which is deleted at the end.
    pub table: Option<String>,
    /// An OpenSearch to use instead of the embedded search engine.
    pub search_endpoint: Option<String>,
    pub log: Log,
    pub environments: usize,
    /// Whether the embedded table keeps its whole stream for a later reader. By default the system
    /// deletes the records that every consumer has processed or given up.
    pub keeps_stream: bool,
    /// The model of DynamoDB's limits in front of the table. Without a model, requests run one
    /// after the other, never conflict and are never throttled.
    pub limits: Option<Model>,
    /// Whether the routes of the explorer may write to the table.
    pub explorer_write: bool,
}

impl Options {
    /// Returns the defaults, with endpoints and programs from the environment variables
    /// `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL_DYNAMODB_STREAMS`, `SEARCH_ENDPOINT` and
    /// `BODEGA_BOOTSTRAPS`.
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
            site: None,
            table_endpoint: variable("AWS_ENDPOINT_URL_DYNAMODB"),
            streams_endpoint: variable("AWS_ENDPOINT_URL_DYNAMODB_STREAMS"),
            table: None,
            search_endpoint: variable("SEARCH_ENDPOINT"),
            log: Log::default(),
            environments: 2,
            keeps_stream: false,
            limits: None,
            explorer_write: false,
        }
    }

    /// Returns the template's file: the given file, the file in `BODEGA_TEMPLATE`, or the nearest
    /// `template.yaml` at or above the current directory. Without a file, the system uses the
    /// template that is compiled into the program.
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
