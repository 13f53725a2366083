//! Access to AWS services: region and credentials from the environment, one TLS stack, and the few
//! roots that AWS endpoints chain to.
//!
//! `DynamoDB` is called through its SDK crate with [`config()`]. Every other service is called
//! through [`Service`]. Bodega uses few operations of each of these services, and one SDK crate
//! costs more build time than the rest of a function.
//!
//! # Roots
//!
//! Loading the system's trust store costs more instructions than the rest of a cold start. The
//! roots of Amazon Trust Services are therefore embedded (`roots/`, valid to 2037 and later;
//! <https://www.amazontrust.com/repository/>).
//!
//! AWS may change its issuers, and a function may run for years without a new version. When a
//! server's certificate has an unknown issuer, the connector tries once more with the system's
//! roots. The runtime image keeps these roots current. A process loads them once. It remembers and
//! logs each host that needs them, and counts these hosts in the metric `UnknownIssuers`. An alarm
//! on that metric tells operators to deploy a new version. With the system's roots, a function
//! trusts the same servers as every AWS SDK. `AWS_CA_BUNDLE` names a PEM file that replaces both
//! sets, as it does for AWS's own tools.
//!
//! # Configuration
//!
//! The SDK's standard variables configure the SDK and [`Service`]: `AWS_REGION`,
//! `AWS_ACCESS_KEY_ID` and the other credential variables, `AWS_USE_FIPS_ENDPOINT`,
//! `AWS_USE_DUALSTACK_ENDPOINT`, and the endpoints. `AWS_ENDPOINT_URL` applies to all services.
//! `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL_S3` and others apply to one service each. This
//! crate leaves out the SDK's chains for profiles and other sources of credentials. A function has
//! none of these sources, and the chains are larger than all other code of a function.

mod cloudwatch;
mod connector;
pub mod s3;
mod secrets;
mod service;

use std::sync::OnceLock;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider};
use aws_config::meta::region::ProvideRegion as _;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

pub use crate::cloudwatch::{CloudWatch, CloudWatchError};
pub use crate::connector::{BadTarget, Connector, NoConnection, Reach, Target, Tls};
pub use crate::secrets::{Secret, SecretError};
pub use crate::service::{Api, Call, CallError, Failure, Limits, Response, Service, Signing, is_transient};
pub use aws_config::SdkConfig;
pub use aws_credential_types::Credentials;
pub use aws_credential_types::provider::SharedCredentialsProvider;
pub use http::Method;

/// The roots of Amazon Trust Services: Amazon Root CA 1 to 4 and Starfield Services G2.
const AMAZON_ROOTS: &[u8] = include_bytes!("../roots/amazon-trust-services.pem");

const CONNECT_TIMEOUT: Duration = Duration::from_millis(1000);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// The time limit of one call with its retries. A test checks that it is shorter than every
/// function's timeout in template.yaml.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(8);
/// The maximum number of attempts of one call, the first one included.
const ATTEMPTS: u32 = 4;

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The environment does not name the region, or the table, bucket or bus.
    #[error("the environment variable {0} is not set")]
    NotSet(&'static str),
    #[error("the TLS client cannot be built: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
    /// The trust store has no certificates, or an entry that is not a certificate.
    #[error("the trust store must contain certificates in PEM, and nothing else")]
    Roots,
    /// `AWS_CA_BUNDLE` does not name a readable file.
    #[error("AWS_CA_BUNDLE cannot be read: {0}")]
    CaBundle(#[from] std::io::Error),
}

/// Reads the configuration of SDK clients from the SDK's standard environment variables. Clients
/// made from one value share its connections.
pub async fn config() -> Result<SdkConfig, SetupError> {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(OPERATION_TIMEOUT)
        .build();
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .credentials_provider(credentials())
        .http_client(connector()?)
        .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
        .timeout_config(timeouts)
        .service_config(Environment);
    config.set_region(EnvironmentVariableRegionProvider::new().region().await);
    config.set_endpoint_url(variable("AWS_ENDPOINT_URL").ok());
    config.set_use_fips(boolean_variable("AWS_USE_FIPS_ENDPOINT"));
    config.set_use_dual_stack(boolean_variable("AWS_USE_DUALSTACK_ENDPOINT"));
    Ok(config.build())
}

/// Reads SDK settings from the environment variable of one service, such as
/// `AWS_ENDPOINT_URL_DYNAMODB`.
#[derive(Debug)]
struct Environment;

impl LoadServiceConfig for Environment {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace(' ', "_");
        std::env::var(format!("{}_{service}", key.env())).ok().filter(|value| !value.is_empty())
    }
}

/// Reads a boolean variable. Returns `None` when it is not set, or is neither `true` nor `false`.
fn boolean_variable(name: &'static str) -> Option<bool> {
    variable(name).ok()?.to_ascii_lowercase().parse().ok()
}

fn region() -> Result<String, SetupError> {
    variable("AWS_REGION").or_else(|missing| variable("AWS_DEFAULT_REGION").map_err(|_| missing))
}

/// Returns a provider that reads the credentials from the environment for each call.
#[must_use]
pub fn credentials() -> SharedCredentialsProvider {
    SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new())
}

/// Creates a connector with its own pool, which trusts the servers that [`tls`] trusts.
pub fn connector() -> Result<Connector, SetupError> {
    Ok(Connector::new(tls()?, CONNECT_TIMEOUT))
}

/// Creates a connector to one host, like [`connector()`]. For hosts outside AWS it trusts the
/// system's roots from the start, unless `AWS_CA_BUNDLE` is set.
pub fn connector_to(host: &str, is_encrypted: bool) -> Result<Connector, SetupError> {
    let is_of_aws = service::is_of_aws(host) || std::env::var_os("AWS_CA_BUNDLE").is_some();
    let tls = if is_encrypted && !is_of_aws { Tls::of_system()? } else { tls()? };
    Ok(Connector::new(tls, CONNECT_TIMEOUT))
}

/// Returns a TLS client for hosts outside AWS. It trusts the system's roots, or those of [`tls`] if the
/// system has none.
pub fn tls_of_internet() -> Result<Tls, SetupError> {
    match Tls::of_system() {
        Err(SetupError::Roots) => tls(),
        tls => tls,
    }
}

/// Returns the TLS client of this process, which reads its roots once.
///
/// It trusts the roots that AWS endpoints chain to, and falls back to the system's roots. With
/// `AWS_CA_BUNDLE` it trusts only the roots of that file.
pub fn tls() -> Result<Tls, SetupError> {
    static TLS: OnceLock<Tls> = OnceLock::new();
    if let Some(tls) = TLS.get() {
        return Ok(tls.clone());
    }
    let tls = match std::env::var_os("AWS_CA_BUNDLE") {
        Some(path) => Tls::trusting(&std::fs::read(path)?)?,
        None => embedded()?,
    };
    Ok(TLS.get_or_init(|| tls).clone())
}

/// Returns the TLS client of a deployed function: embedded roots first, then the system's roots
/// too.
fn embedded() -> Result<Tls, SetupError> {
    Ok(Tls::trusting(AMAZON_ROOTS)?.falling_back(|| Tls::of_system_and(AMAZON_ROOTS)))
}

/// Reads an environment variable, such as the name of a table, a bucket or a bus.
///
/// # Errors
/// [`SetupError::NotSet`] when it is missing, empty or not Unicode.
pub fn variable(name: &'static str) -> Result<String, SetupError> {
    std::env::var(name).ok().filter(|value| !value.is_empty()).ok_or(SetupError::NotSet(name))
}
