//! The whole system: everything that template.yaml describes, on one machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::search::SearchServer;
use emulators::table::{EmbeddedTable, FaultProxy};
use runtime_api::{FunctionSpec, Functions};
use search_index::{ConfigError, SearchClient, SearchConfig, SearchError};
use stream_poller::{Endpoint, HttpStream, Pace, Poller, SettingsError, SourceError};
use template::{Deployment, Template, TemplateError};
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::control::{self, Control};
use crate::dynamodb::{ACCESS_KEY, DynamoDb, DynamoDbError, REGION};
use crate::gateway::Gateway;
use crate::streams::{self, Discarded};
use crate::token::{KeyError, SigningKey};
use crate::{Options, docs};

const ACCOUNT: &str = "000000000000";
/// Name of the embedded table, which is its own database.
const TABLE: &str = "bodega";
/// How often the embedded table is swept for expired items. AWS promises days.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Longest that open connections are waited for at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// A running system. [`System::shutdown`] ends it in order; dropping it kills the functions.
pub struct System {
    address: SocketAddr,
    key: SigningKey,
    table: String,
    table_url: String,
    search_url: String,
    functions: Arc<Functions>,
    /// A table of another DynamoDB to be deleted at the end.
    fresh_table: Option<DynamoDb>,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
    background: Vec<JoinHandle<()>>,
    // What the functions talk to. It outlives them.
    _control: Arc<Control>,
}

/// Why a system does not start. Reads as one line.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The template is broken.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The port is taken, or may not be used.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Port {
        /// The port asked for.
        port: u16,
        /// What the operating system says.
        source: io::Error,
    },
    /// There is no key to sign tokens with.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The embedded table, or the proxy in front of the table, does not start.
    #[error(transparent)]
    Table(#[from] emulators::table::Error),
    /// The table cannot be created.
    #[error(transparent)]
    DynamoDb(#[from] DynamoDbError),
    /// The embedded search engine does not start.
    #[error(transparent)]
    Search(#[from] emulators::search::Error),
    /// The search endpoint or the prefix of its indexes cannot be used.
    #[error("the search engine cannot be used: {0}")]
    SearchConfig(#[from] ConfigError),
    /// The indexes cannot be created.
    #[error("the search indexes cannot be created: {0}")]
    SearchIndex(#[from] SearchError),
    /// A stream mapping has a setting that AWS would refuse.
    #[error(transparent)]
    Mapping(#[from] SettingsError),
    /// The table's stream cannot be read.
    #[error(transparent)]
    Stream(#[from] SourceError),
    /// The data folder cannot be made.
    #[error("cannot use the data folder {}: {source}", path.display())]
    Data {
        /// The folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

impl System {
    /// Starts everything and returns when it is ready for requests.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let template_path = options.template_path();
        // Read before anything starts, so that a broken template or a taken port is said at once.
        Template::read(&template_path)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await;
        let port_error = |source| StartError::Port { port: options.port, source };
        let listener = listener.map_err(port_error)?;
        let address = listener.local_addr().map_err(port_error)?;
        let data = options.data.as_deref();
        if let Some(folder) = data {
            std::fs::create_dir_all(folder).map_err(|source| StartError::Data { path: folder.to_owned(), source })?;
        }
        let key = SigningKey::open(data)?;

        let backends = Backends::start(&options).await?;
        let template = Template::read_for(&template_path, &backends.deployment(&key))?;
        let dynamodb = DynamoDb::new(&backends.upstream)?;
        dynamodb.ensure_table(&template.table, &backends.table).await?;
        let index = SearchClient::new(&SearchConfig::new(&backends.search_url, &backends.index_prefix())?);
        index.ensure_indices().await?;

        let specs = specs(&template, &options, backends.proxy.url());
        let functions = Arc::new(Functions::start(specs, options.log).await);
        let discarded = Arc::new(Discarded::default());
        let mappings = streams::mappings(&template.streams, &functions, &discarded)?;
        let stream = HttpStream::of_table(backends.stream_endpoint(), &backends.table).await?;
        let poller = Poller::start(stream, mappings, Pace::default()).await?;

        let mut background = Vec::new();
        if let Some(embedded) = &backends.embedded {
            let name = backends.table.clone();
            background.push(streams::trim(Arc::clone(embedded), name, &poller));
            background.push(tokio::spawn(sweep(Arc::clone(embedded))));
        }
        let fresh_table = backends.is_fresh.then(|| dynamodb.clone());
        let (table, table_url) = (backends.table.clone(), backends.proxy.url().to_owned());
        let search_url = backends.search_url.clone();
        let control = Arc::new(Control { poller, index, discarded, dynamodb, backends });
        let gateway = Arc::new(Gateway::new(template.routes, Arc::clone(&functions), key.clone(), address));
        let router = control::router(Arc::clone(&control))
            .merge(docs::router(&template_path))
            .fallback(Gateway::handle)
            .with_state(gateway);
        let stop = watch::Sender::new(false);
        let mut stopped = stop.subscribe();
        let serve = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>())
            .with_graceful_shutdown(async move {
                // An error means that the system was dropped, which is as good a reason to stop.
                let _ = stopped.wait_for(|stop| *stop).await;
            });
        let server = tokio::spawn(async move {
            // Ends when it is told to; single connections that fail end alone.
            let _ = serve.await;
        });
        Ok(Self {
            address,
            key,
            table,
            table_url,
            search_url,
            functions,
            fresh_table,
            stop,
            server,
            background,
            _control: control,
        })
    }

    /// Where clients call it: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The DynamoDB endpoint that the functions use.
    #[must_use]
    pub fn table_url(&self) -> &str {
        &self.table_url
    }

    /// The name of the table.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The search endpoint that the functions use.
    #[must_use]
    pub fn search_url(&self) -> &str {
        &self.search_url
    }

    /// A token for `subject`, a member of `groups`.
    #[must_use]
    pub fn token(&self, subject: &str, groups: &[String]) -> String {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        self.key.issue(subject, groups, now)
    }

    /// The functions, to be invoked directly.
    #[must_use]
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Ends the functions, the listener and the rest, within 5 s.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        self.functions.shutdown().await;
        let closed = tokio::time::timeout(CLOSE_TIMEOUT, &mut self.server);
        if closed.await.is_err() {
            self.server.abort();
        }
        if let Some(dynamodb) = self.fresh_table.take()
            && let Err(error) = dynamodb.delete_table(&self.table).await
        {
            tracing::warn!(%error, "the fresh table is left behind");
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.server.abort();
        for task in &self.background {
            task.abort();
        }
    }
}

/// The table and the search engine behind the functions.
pub(crate) struct Backends {
    pub(crate) embedded: Option<Arc<EmbeddedTable>>,
    pub(crate) proxy: FaultProxy,
    /// The DynamoDB behind the proxy.
    upstream: String,
    streams_url: String,
    pub(crate) table: String,
    is_fresh: bool,
    pub(crate) search: Option<SearchServer>,
    search_url: String,
}

impl Backends {
    async fn start(options: &Options) -> Result<Self, StartError> {
        let data = options.data.as_deref();
        let embedded = match &options.table_endpoint {
            Some(_) => None,
            None => Some(Arc::new(EmbeddedTable::start(data)?)),
        };
        let upstream = match (&embedded, &options.table_endpoint) {
            (Some(table), _) => table.url().to_owned(),
            (None, endpoint) => endpoint.clone().unwrap_or_default(),
        };
        let proxy = FaultProxy::start(&upstream).await?;
        let streams_url = match (&options.streams_endpoint, &options.table_endpoint) {
            (Some(streams), Some(_)) => streams.clone(),
            _ => proxy.url().to_owned(),
        };
        let is_fresh = embedded.is_none() && options.table.is_none();
        let table = match &options.table {
            Some(name) => name.clone(),
            None if is_fresh => format!("{TABLE}-{:08x}", fastrand::u32(..)),
            None => TABLE.to_owned(),
        };
        let search = match &options.search_endpoint {
            Some(_) => None,
            None => Some(SearchServer::start(search_folder(data).as_deref()).await?),
        };
        let search_url = match (&search, &options.search_endpoint) {
            (Some(search), _) => search.url().to_owned(),
            (None, endpoint) => endpoint.clone().unwrap_or_default(),
        };
        Ok(Self { embedded, proxy, upstream, streams_url, table, is_fresh, search, search_url })
    }

    /// Indexes are named for the table, so that a fresh table has fresh ones.
    fn index_prefix(&self) -> String {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let name = self.table.to_ascii_lowercase();
        let name = name.replace(|c| !fits(c), "-");
        name.trim_start_matches('-').chars().take(40).collect()
    }

    fn deployment(&self, key: &SigningKey) -> Deployment {
        let cursor_key = STANDARD.encode(key.derive("page cursors"));
        Deployment::new(REGION, ACCOUNT)
            .parameter("SearchEndpoint", &self.search_url)
            .parameter("SearchArn", format!("arn:aws:es:{REGION}:{ACCOUNT}:domain/local"))
            .parameter("SearchIndexPrefix", self.index_prefix())
            .parameter("CursorKeys", format!("local:{cursor_key}"))
            .name("Table", &self.table)
    }

    fn stream_endpoint(&self) -> Endpoint {
        Endpoint {
            table_url: self.proxy.url().to_owned(),
            stream_url: self.streams_url.clone(),
            access_key_id: ACCESS_KEY.to_owned(),
            region: REGION.to_owned(),
        }
    }
}

fn search_folder(data: Option<&Path>) -> Option<PathBuf> {
    data.map(|folder| folder.join("search"))
}

fn specs(template: &Template, options: &Options, table_url: &str) -> Vec<FunctionSpec> {
    let spec = |function: &template::Function| {
        let mut environment = function.environment.clone();
        let url = table_url.to_owned();
        environment.insert("AWS_ENDPOINT_URL_DYNAMODB".to_owned(), url);
        environment.insert("AWS_ACCESS_KEY_ID".to_owned(), ACCESS_KEY.to_owned());
        if let Some(level) = &function.log_level {
            environment.insert("AWS_LAMBDA_LOG_LEVEL".to_owned(), level.clone());
        }
        let (program, args) = match &options.bootstraps {
            Some(folder) => (folder.join(function.crate_name()), Vec::new()),
            None => {
                let args = vec!["function".into(), function.logical_id.clone().into()];
                (options.program.clone(), args)
            }
        };
        FunctionSpec {
            name: function.logical_id.clone(),
            program,
            args,
            environment,
            handler: function.handler.clone(),
            timeout: function.timeout,
            memory_mb: function.memory_mb,
            max_environments: options.environments.max(1),
            region: REGION.to_owned(),
            account: ACCOUNT.to_owned(),
        }
    };
    template.functions.iter().map(spec).collect()
}

/// Deletes expired items from time to time, which the embedded engine never does by itself.
async fn sweep(table: Arc<EmbeddedTable>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let table = Arc::clone(&table);
        match tokio::task::spawn_blocking(move || table.sweep_ttl()).await {
            Ok(Err(error)) => tracing::warn!(%error, "expired items cannot be swept"),
            Ok(Ok(_)) => {}
            Err(_) => return, // The runtime is going down.
        }
    }
}
