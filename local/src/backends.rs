//! Starts the services that the functions use: the table, the search engine, the bus, the buckets
//! the mail service and the secrets. Also starts an emulated CloudWatch that reports throttled keys.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::access::Access;
use emulators::contributors::InsightServer;
use emulators::events::{EventBusServer, Published};
use emulators::mail::MailServer;
use emulators::objects::{CorsRule, ObjectServer};
use emulators::payments::{self, PaymentServer, Webhook};
use emulators::search::SearchServer;
use emulators::secrets::SecretServer;
use emulators::table::{EmbeddedTable, FaultProxy, Schema};
use event_bus::{Accepted, Journal};
use stream_poller::{Endpoint, Swept};
use template::{Deployment, Template};

use crate::Options;
use crate::dynamodb::REGION;
use crate::system::StartError;
use crate::token::{AUDIENCE, ISSUER, SigningKey};

pub(crate) const ACCOUNT: &str = "000000000000";
const TABLE: &str = "bodega";
/// Access key for all local services. For a fresh table, a random number is added to it.
const ACCESS_KEY: &str = "local";
const MAIL_FROM: &str = "shop@example.com";
/// The secrets, each with the purpose for which its key is derived.
const SECRETS: [(&str, &str); 3] =
    [("CursorKeys", "page cursors"), ("EmailCodeKeys", "email codes"), ("WebhookKeys", "secrets of webhooks")];

/// The secret with which the local payment provider signs its webhooks.
const WEBHOOK_SECRET: &str = "whsec_local";

pub(crate) struct Backends {
    pub(crate) embedded: Option<Arc<EmbeddedTable>>,
    pub(crate) proxy: FaultProxy,
    pub(crate) upstream: String,
    streams_url: String,
    pub(crate) table: String,
    pub(crate) access_key: String,
    pub(crate) is_fresh: bool,
    pub(crate) swept: Swept,
    pub(crate) search: Option<SearchServer>,
    pub(crate) search_url: String,
    pub(crate) events: EventBusServer,
    /// The journal of events that the bus has accepted and that its subscribers have not finished.
    /// `None` if the system has no data folder, or if the table is fresh.
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) objects: ObjectServer,
    pub(crate) mail: MailServer,
    pub(crate) payments: PaymentServer,
    pub(crate) insights: InsightServer,
    pub(crate) secrets: SecretServer,
    /// Names of the buses, buckets and queues by logical id.
    names: BTreeMap<String, String>,
}

impl Backends {
    /// `template` defines the buses and buckets. The keys of cursors and codes are derived from
    /// `signing_key`.
    pub(crate) async fn start(
        options: &Options,
        template: &Template,
        signing_key: &SigningKey,
    ) -> Result<Self, StartError> {
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
        let key = &template.table.key;
        let insights =
            InsightServer::start(proxy.count_throttles(&key.partition)).await.map_err(StartError::Endpoint)?;
        if let Some(model) = options.limits {
            let index = |index: &template::Index| (index.name.clone(), index.key.partition.clone());
            let indexes = template.table.indexes.iter().map(index).collect();
            proxy.limit(Schema { key: vec![key.partition.clone(), key.sort.clone()], indexes }, model);
        }
        let streams_url = match (&options.streams_endpoint, &options.table_endpoint) {
            (Some(streams), Some(_)) => streams.clone(),
            _ => proxy.url().to_owned(),
        };
        let is_fresh = embedded.is_none() && options.table.is_none();
        let (table, access_key) = match &options.table {
            Some(name) => (name.clone(), ACCESS_KEY.to_owned()),
            // DynamoDB Local has a separate database for each access key. The stream records of all
            // tables in a database make the database slower. So a fresh table has its own access
            // key.
            None if is_fresh => {
                let number = fastrand::u32(..);
                (format!("{TABLE}-{number:08x}"), format!("{ACCESS_KEY}{number:08x}"))
            }
            None => (TABLE.to_owned(), ACCESS_KEY.to_owned()),
        };
        let folder = |name: &str| data.map(|folder| folder.join(name));
        let search = match &options.search_endpoint {
            Some(_) => None,
            None => Some(SearchServer::start(folder("search").as_deref()).await?),
        };
        let search_url = match (&search, &options.search_endpoint) {
            (Some(search), _) => search.url().to_owned(),
            (None, endpoint) => endpoint.clone().unwrap_or_default(),
        };
        let names = names(template);
        let named = |ids: Vec<&String>| ids.into_iter().filter_map(|id| names.get(id).cloned()).collect::<Vec<_>>();
        let buses = named(template.buses.iter().map(|bus| &bus.logical_id).collect());
        let buckets = named(template.buckets.iter().map(|bucket| &bucket.logical_id).collect());
        let objects = ObjectServer::start(folder("objects").as_deref(), &buckets).await?;
        // Events refer to the items of one table. A fresh table is deleted at the end, so its
        // events are not kept.
        let kept = data.filter(|_| !is_fresh).map(|data| data.join("bus").join(index_prefix(&table)));
        let (events, mail, journal) = match &kept {
            Some(folder) => bus_and_mail(folder, &buses).await?,
            None => {
                let events = EventBusServer::start(&buses).await.map_err(StartError::Endpoint)?;
                (events, MailServer::start().await.map_err(StartError::Endpoint)?, None)
            }
        };
        mail.report_to(events.service_events());
        let payments = PaymentServer::start(payments::Settings::default()).await.map_err(StartError::Endpoint)?;
        let secret =
            |(name, purpose)| (secret_arn(name), format!("local:{}", STANDARD.encode(signing_key.derive(purpose))));
        let payment_keys = serde_json::json!({
            "api_key": "sk_test_local",
            "webhook_secrets": [WEBHOOK_SECRET],
        });
        let mut texts: Vec<_> = SECRETS.into_iter().map(secret).collect();
        texts.push((secret_arn("PaymentKeys"), payment_keys.to_string()));
        let secrets = SecretServer::start(texts.into_iter().collect());
        let secrets = secrets.await.map_err(StartError::Endpoint)?;
        Ok(Self {
            embedded,
            proxy,
            upstream,
            streams_url,
            table,
            access_key,
            is_fresh,
            swept: Swept::default(),
            search,
            search_url,
            events,
            journal,
            objects,
            mail,
            payments,
            insights,
            secrets,
            names,
        })
    }

    /// Returns the prefix of the search indexes. It is derived from the table's name, so a fresh
    /// table has fresh indexes.
    pub(crate) fn index_prefix(&self) -> String {
        index_prefix(&self.table)
    }

    pub(crate) fn deployment(&self) -> Deployment {
        let deployment = Deployment::new(REGION, ACCOUNT)
            .parameter("SearchEndpoint", &self.search_url)
            .parameter("SearchArn", Self::search_arn())
            .parameter("SearchIndexPrefix", self.index_prefix())
            .parameter("CursorKeysSecret", secret_arn("CursorKeys"))
            .parameter("EmailCodeKeysSecret", secret_arn("EmailCodeKeys"))
            .parameter("PaymentKeysSecret", secret_arn("PaymentKeys"))
            .parameter("PaymentProviderUrl", self.payments.url())
            .parameter("WebhookKeysSecret", secret_arn("WebhookKeys"))
            // So a program on the same machine can receive webhooks.
            .parameter("WebhookTargets", "any")
            .parameter("JwtIssuer", ISSUER)
            .parameter("JwtAudience", AUDIENCE)
            .parameter("MailFrom", MAIL_FROM)
            .parameter("MailIdentity", "example.com")
            .name("Table", &self.table);
        self.names.iter().fold(deployment, |deployment, (id, name)| deployment.name(id, name))
    }

    /// Returns the name of the bucket with this logical id, or the id itself if the template has no
    /// such bucket.
    pub(crate) fn bucket<'a>(&'a self, logical_id: &'a str) -> &'a str {
        self.names.get(logical_id).map_or(logical_id, String::as_str)
    }

    /// Returns an ARN for the search engine, in the form of the ARN of an OpenSearch domain.
    pub(crate) fn search_arn() -> String {
        format!("arn:aws:es:{REGION}:{ACCOUNT}:domain/local")
    }

    /// Pages of the system itself, at these origins, may use the buckets like those of `CorsOrigins`.
    pub(crate) fn set_cors_rules(&self, template: &Template, own: &[String]) {
        let rule = |rule: &template::BucketCors| {
            let template::BucketCors { mut origins, methods, headers, exposed, max_age } = rule.clone();
            origins.extend_from_slice(own);
            CorsRule { origins, methods, headers, exposed, max_age }
        };
        let of_bucket = |bucket: &template::Bucket| (bucket.name.clone(), bucket.cors.iter().map(rule).collect());
        self.objects.set_cors_rules(template.buckets.iter().map(of_bucket).collect());
    }

    /// Lets the payment provider send its webhooks to this system.
    pub(crate) fn send_webhooks(&self, url: &str) -> Result<(), StartError> {
        let webhook = Webhook::at(&format!("{url}/v1/webhooks/stripe"), vec![WEBHOOK_SECRET.to_owned()]);
        let webhook = webhook.map_err(|error| StartError::Endpoint(io::Error::other(error)))?;
        self.payments.set_webhook(Some(webhook));
        Ok(())
    }

    pub(crate) fn enforce(&self, access: &Arc<Access>) {
        self.proxy.enforce(Arc::clone(access));
        self.events.enforce(Arc::clone(access));
        self.objects.enforce(Arc::clone(access));
        self.mail.enforce(Arc::clone(access));
        self.insights.enforce(Arc::clone(access));
        self.secrets.enforce(Arc::clone(access));
    }

    /// Returns the variables that direct an AWS SDK to these backends.
    pub(crate) fn sdk_variables(&self) -> BTreeMap<String, String> {
        let variables = [
            ("AWS_ENDPOINT_URL_DYNAMODB", self.proxy.url()),
            ("AWS_ENDPOINT_URL_S3", self.objects.url()),
            ("AWS_ENDPOINT_URL_EVENTBRIDGE", self.events.url()),
            ("AWS_ENDPOINT_URL_SESV2", self.mail.url()),
            ("AWS_ENDPOINT_URL_CLOUDWATCH", self.insights.url()),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", self.secrets.url()),
            ("AWS_ACCESS_KEY_ID", &self.access_key),
            ("AWS_SECRET_ACCESS_KEY", &self.access_key),
            ("AWS_REGION", REGION),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    pub(crate) fn stream_endpoint(&self) -> Endpoint {
        Endpoint {
            table_url: self.proxy.url().to_owned(),
            stream_url: self.streams_url.clone(),
            access_key_id: self.access_key.clone(),
            region: REGION.to_owned(),
            swept: self.swept.clone(),
        }
    }
}

fn secret_arn(name: &str) -> String {
    format!("arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{name}")
}

/// Starts a bus and a mail service that store events and messages in `folder`.
async fn bus_and_mail(
    folder: &Path,
    buses: &[String],
) -> Result<(EventBusServer, MailServer, Option<Arc<Journal>>), StartError> {
    let failed = |source| StartError::Data { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let journal = Journal::open(&folder.join("journal.ndjson")).map_err(failed)?;
    let keeper = Arc::clone(&journal);
    let accept = move |event: &Published| {
        let (id, bus) = (event.event_id.clone(), event.bus.clone());
        keeper.accept(Accepted { id, bus, event: event.envelope() })
    };
    let history = folder.join("events.ndjson");
    let events = EventBusServer::open(buses, &history, Box::new(accept)).await.map_err(failed)?;
    let mail = MailServer::open(&folder.join("mail.ndjson")).await.map_err(failed)?;
    Ok((events, mail, Some(journal)))
}

fn index_prefix(table: &str) -> String {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let name = table.to_ascii_lowercase().replace(|c| !fits(c), "-");
    name.trim_start_matches('-').chars().take(40).collect()
}

/// Returns names for the template's buses, buckets and queues, such as `bodega-failed-records` for
/// `FailedRecords`.
fn names(template: &Template) -> BTreeMap<String, String> {
    let buses = template.buses.iter().map(|bus| &bus.logical_id);
    let buckets = template.buckets.iter().map(|bucket| &bucket.logical_id);
    let queues = template.queues.iter().map(|queue| &queue.logical_id);
    buses.chain(buckets).chain(queues).map(|id| (id.clone(), physical_name(id))).collect()
}

fn physical_name(logical_id: &str) -> String {
    let mut name = "bodega".to_owned();
    for c in logical_id.chars() {
        if c.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_valid_bucket_names() {
        assert_eq!(physical_name("FailedRecords"), "bodega-failed-records");
        assert_eq!(physical_name("Bus"), "bodega-bus");
    }
}
