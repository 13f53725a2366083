mod deployment;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use emulators::access::Denied;
use emulators::payments::PaymentServer;
use emulators::table::{Counts, EmbeddedTable};
use event_pattern::PatternError;
use runtime_api::Functions;
use search_index::{ConfigError, SearchClient, SearchConfig, SearchError};
use stream_poller::{HttpStream, Pace, Poller, SettingsError, SourceError};
use template::{Template, TemplateError};
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::deployment::{deployment, environment, in_program, specs};
use crate::backends::Backends;
use crate::control::{self, Control};
use crate::crash::CrashPoints;
use crate::dynamodb::{DynamoDb, DynamoDbError};
use crate::gateway::{Causes, Gateway};
use crate::grants::Grants;
use crate::site::Site;
use crate::subscribers::Subscribers;
use crate::token::{KeyError, MoreClaims, SigningKey};
use crate::{Options, built_in, docs, schedules, streams};

/// Interval at which expired items of the embedded table are deleted. AWS may take days.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum wait for open connections at shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// A running system. [`System::shutdown`] ends it in an orderly way. Dropping the value kills the
/// functions.
pub struct System {
    address: SocketAddr,
    key: SigningKey,
    table: String,
    table_url: String,
    access_key: String,
    search_url: String,
    functions: Arc<Functions>,
    /// The client that deletes a fresh table of an external DynamoDB at the end.
    fresh_table: Option<DynamoDb>,
    stop: watch::Sender<bool>,
    /// Whether the stream's consumers wait.
    held: watch::Sender<bool>,
    server: JoinHandle<()>,
    background: Vec<JoinHandle<()>>,
    // The backends, and the state of the routes that inspect them. They end after the functions.
    control: Arc<Control>,
}

/// A reason why a system does not start. The message is one line.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The local system sets this parameter itself, or it was given twice.
    #[error("the local system sets the parameter {0} itself, or it was given twice")]
    Parameter(String),
    /// The port is in use or not permitted.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another port with --port")]
    Port {
        /// The requested port.
        port: u16,
        /// The operating system's error.
        source: io::Error,
    },
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Table(#[from] emulators::table::Error),
    #[error(transparent)]
    DynamoDb(#[from] DynamoDbError),
    #[error(transparent)]
    Search(#[from] emulators::search::Error),
    /// The search endpoint or the prefix of its indexes cannot be used.
    #[error("the search engine cannot be used: {0}")]
    SearchConfig(#[from] ConfigError),
    #[error("the search indexes cannot be created: {0}")]
    SearchIndex(#[from] SearchError),
    /// The listener of an emulated service does not start.
    #[error("an emulated service cannot listen: {0}")]
    Endpoint(#[source] io::Error),
    #[error("the buckets cannot be used: {0}")]
    Objects(#[from] emulators::objects::Error),
    #[error("a rule of the event bus cannot be used: {0}")]
    Rule(#[from] PatternError),
    /// A stream mapping has a setting that AWS would refuse.
    #[error(transparent)]
    Mapping(#[from] SettingsError),
    /// A function's role lacks a permission for its event source mapping. AWS would not create the
    /// mapping.
    #[error("the mapping {mapping} cannot be created: {denied}")]
    Role {
        /// Logical id of the mapping in the template.
        mapping: String,
        /// The missing permission.
        denied: Box<Denied>,
    },
    /// The table's stream cannot be read.
    #[error(transparent)]
    Stream(#[from] SourceError),
    #[error("cannot serve the site in {}: {source}", path.display())]
    Site {
        /// The folder of the build, or nothing for the site in the program.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The data folder, or a folder or file in it, cannot be used.
    #[error("cannot use the data folder {}: {source}", path.display())]
    Data {
        /// The folder that cannot be used.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl System {
    /// Starts the system and returns when it is ready for requests.
    ///
    /// # Errors
    /// [`StartError`]. After an error, no process or listener keeps running.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let template_file = options.template_file();
        // The template and the port are checked first, so that their errors appear at once.
        let template = match &template_file {
            Some(file) => Template::read(file),
            None => Template::parse(built_in::TEMPLATE).map_err(in_program),
        }?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await;
        let port_error = |source| StartError::Port { port: options.port, source };
        let listener = listener.map_err(port_error)?;
        let address = listener.local_addr().map_err(port_error)?;
        let data = options.data.as_deref();
        if let Some(folder) = data {
            std::fs::create_dir_all(folder).map_err(|source| StartError::Data { path: folder.to_owned(), source })?;
        }
        let site = Site::open(options.site.as_deref());
        let site =
            site.map_err(|source| StartError::Site { path: options.site.clone().unwrap_or_default(), source })?;
        let key = SigningKey::open(data)?;
        let url = url_of(address);

        let backends = Arc::new(Backends::start(&options, &template, &key).await?);
        let deployment = deployment(&options, &backends)?;
        let template = match &template_file {
            Some(file) => Template::read_for(file, &deployment),
            None => Template::parse_for(built_in::TEMPLATE, &deployment).map_err(in_program),
        }?;
        let own = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{}", address.port()));
        backends.set_cors_rules(&template, &own);
        // The roles are checked before the table is created, so that after a refusal there is no
        // table to delete.
        let grants = Grants::enforce(&template, &backends).await?;
        let dynamodb = DynamoDb::new(&backends.upstream, &backends.access_key)?;
        dynamodb.ensure_table(&template.table, &backends.table).await?;
        let index = SearchClient::new(&SearchConfig::new(&backends.search_url, &backends.index_prefix())?);
        index.ensure_indices().await?;

        let crash_points = CrashPoints::new();
        let specs = specs(&template, &options, &backends, &grants, &crash_points);
        let functions = Arc::new(Functions::start(specs, options.log).await);
        let (access, journal) = (grants.access(), backends.journal.as_ref());
        let subscribers = Subscribers::start(&template, &backends.events, &functions, access, journal)?;
        let held = watch::Sender::new(false);
        let mappings = streams::mappings(&template, &functions, &backends, access, &held.subscribe())?;
        let stream = HttpStream::of_table(backends.stream_endpoint(), &backends.table).await?;
        let poller = Poller::start(stream, mappings, Pace::default()).await?;

        let stop = watch::Sender::new(false);
        let mut background = schedules::start(&template, &functions, &stop);
        if let Some(embedded) = &backends.embedded {
            if !options.keeps_stream {
                let name = backends.table.clone();
                background.push(streams::trim(Arc::clone(embedded), name, &poller));
            }
            background.push(tokio::spawn(sweep(Arc::clone(embedded))));
        }
        let fresh_table = backends.is_fresh.then(|| dynamodb.clone());
        let (table, table_url) = (backends.table.clone(), backends.proxy.url().to_owned());
        let access_key = backends.access_key.clone();
        let search_url = backends.search_url.clone();
        let environment = environment(&template, &backends, &url);
        backends.send_webhooks(&url)?;
        let causes = Causes::default();
        let control = Arc::new(Control {
            poller,
            subscribers,
            index,
            functions: Arc::clone(&functions),
            crash_points,
            environment,
            grants,
            key: key.clone(),
            backends,
            dynamodb,
            table: template.table.clone(),
            cors: template.cors.clone(),
            sign_ins: control::SignIns::default(),
            explorer: control::Explorer::new(causes.clone(), options.explorer_write),
        });
        let audience = template.authorizers.into_iter().flat_map(|authorizer| authorizer.audience).collect();
        let authorizer = key.clone().for_audience(audience);
        let gateway =
            Gateway::new(template.routes, template.cors, Arc::clone(&functions), authorizer, address, site, causes);
        let gateway = Arc::new(gateway);
        let router = control::router(Arc::clone(&control))
            .merge(docs::router(template_file.as_deref()))
            .merge(control::issuer_router(&key, &url))
            .fallback(Gateway::handle)
            .with_state(gateway);
        let mut stopped = stop.subscribe();
        let serve = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>())
            .with_graceful_shutdown(async move {
                // An error means that the system was dropped. Then the server must stop, too.
                let _ = stopped.wait_for(|stop| *stop).await;
            });
        let server = tokio::spawn(async move {
            // The server ends at the stop signal. An error of one connection does not end the
            // server.
            let _ = serve.await;
        });
        Ok(Self {
            address,
            key,
            table,
            table_url,
            access_key,
            search_url,
            functions,
            fresh_table,
            stop,
            held,
            server,
            background,
            control,
        })
    }

    /// Returns the address for clients: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        url_of(self.address)
    }

    #[must_use]
    pub fn table_url(&self) -> &str {
        &self.table_url
    }

    /// Returns the access key for the table. Any secret key is accepted.
    #[must_use]
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// Returns what the model of DynamoDB's limits has counted ([`Options::limits`]).
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.control.backends.proxy.counts()
    }

    /// Returns the local provider of card payments.
    #[must_use]
    pub fn payments(&self) -> &PaymentServer {
        &self.control.backends.payments
    }

    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    #[must_use]
    pub fn search_url(&self) -> &str {
        &self.search_url
    }

    /// Returns a token for `subject`, a member of `groups`. If the operating system provides no
    /// random numbers for the signature, the token is empty and therefore invalid.
    #[must_use]
    pub fn token(&self, subject: &str, groups: &[String]) -> String {
        self.token_of(subject, groups, OffsetDateTime::now_utc())
    }

    /// Works like [`System::token`], for a customer whose token has a verified email address.
    #[must_use]
    pub fn token_with_email(&self, subject: &str, email: &str) -> String {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        self.key.issue_with(subject, &[], MoreClaims { email: Some(email), sid: None }, now).unwrap_or_default()
    }

    /// Works like [`System::token`], with another time of issue. The token is valid for 12 hours
    /// from that time.
    #[must_use]
    pub fn token_of(&self, subject: &str, groups: &[String], issued: OffsetDateTime) -> String {
        self.key.issue(subject, groups, issued.unix_timestamp()).unwrap_or_default()
    }

    /// Works like [`System::token`], for a token whose claim `sid` names this sign-in.
    #[must_use]
    pub fn token_in(&self, sid: &str, subject: &str, groups: &[String]) -> String {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        self.key.issue_with(subject, groups, MoreClaims { sid: Some(sid), email: None }, now).unwrap_or_default()
    }

    /// Lets the stream's consumers wait, or continue. The records of a load then come to them in
    /// full batches, and the load does not share the processor with them.
    pub(crate) fn hold_streams(&self, held: bool) {
        self.held.send_replace(held);
    }

    #[must_use]
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Ends the functions and the listener within 5 s. Then deletes a fresh table, and ends the
    /// background tasks.
    pub async fn shutdown(mut self) {
        self.control.subscribers.close();
        self.stop.send_replace(true);
        self.functions.shutdown().await;
        let closed = tokio::time::timeout(CLOSE_TIMEOUT, &mut self.server);
        if closed.await.is_err() {
            self.server.abort();
        }
        if let Some(dynamodb) = self.fresh_table.take()
            && let Err(error) = dynamodb.delete_table(&self.table).await
        {
            tracing::warn!(%error, "the fresh table cannot be deleted");
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.control.subscribers.close();
        self.control.crash_points.remove();
        self.server.abort();
        for task in &self.background {
            task.abort();
        }
    }
}

fn url_of(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// Deletes expired items at intervals, because the embedded engine does not do so itself.
async fn sweep(table: Arc<EmbeddedTable>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let table = Arc::clone(&table);
        match tokio::task::spawn_blocking(move || table.sweep_ttl()).await {
            Ok(Err(error)) => tracing::warn!(%error, "expired items cannot be swept"),
            Ok(Ok(_)) => {}
            Err(_) => return, // The runtime is shutting down.
        }
    }
}
