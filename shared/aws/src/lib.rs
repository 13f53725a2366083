//! How Bodega reaches AWS services: environment region and credentials, one TLS stack, the few
//! roots that AWS endpoints chain to.
//!
//! `DynamoDB` is reached through its SDK crate, over [`config()`]. Every other service is reached
//! through [`Service`], because each of them needs one operation or four: an SDK crate for that
//! costs more build time than the rest of a function.
//!
//! # Roots
//!
//! Loading the system's trust store costs more instructions than the rest of a cold start together, so the roots of Amazon Trust
//! Services are embedded (`roots/`, valid to 2037 and later; <https://www.amazontrust.com/repository/>).
//! AWS may change its issuers, and a function may run for years without a new version. So when a
//! server's certificate has an unknown issuer, the connection is opened once more with the system's
//! roots, which the runtime image keeps current. A process loads them once, remembers the host, logs
//! it and counts it (`UnknownIssuers`): an alarm says that a new version is due. The trust is then
//! that of every AWS SDK. `AWS_CA_BUNDLE` names a PEM file that replaces both, as it does for AWS's
//! own tools.
//!
//! The SDK's standard variables configure both ways: `AWS_REGION`, `AWS_ACCESS_KEY_ID` and its
//! companions, `AWS_ENDPOINT_URL` for all services or `AWS_ENDPOINT_URL_DYNAMODB`,
//! `AWS_ENDPOINT_URL_S3`, … for one, `AWS_USE_FIPS_ENDPOINT`, `AWS_USE_DUALSTACK_ENDPOINT`. A
//! function has no profiles and no other source of credentials, so the chains that look for them
//! are left out: they weigh more than all other code of a function.

mod connector;
pub mod s3;
mod service;

use std::sync::OnceLock;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider};
use aws_config::meta::region::ProvideRegion as _;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

pub use crate::connector::{Connector, NoConnection, Tls};
pub use crate::service::{Api, Call, CallError, Failure, Limits, Response, Service, Signing, is_transient};
pub use aws_config::SdkConfig;
pub use aws_credential_types::Credentials;
pub use aws_credential_types::provider::SharedCredentialsProvider;
pub use http::Method;

/// Roots of Amazon Trust Services: Amazon Root CA 1 to 4 and Starfield Services G2.
const AMAZON_ROOTS: &[u8] = include_bytes!("../roots/amazon-trust-services.pem");

/// One connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1000);
/// One attempt of one call.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// One call with its retries; shorter than every function's timeout in template.yaml, which a test compares.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(8);
/// Attempts of one call.
const ATTEMPTS: u32 = 4;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The environment does not say which table, bucket or bus.
    #[error("the environment variable {0} is not set")]
    NotSet(&'static str),
    /// TLS is unusable.
    #[error("the TLS client cannot be built: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
    /// The trust store is unusable.
    #[error("the trust store holds no certificates in PEM, or something else")]
    Roots,
    /// `AWS_CA_BUNDLE` names no readable file.
    #[error("AWS_CA_BUNDLE cannot be read: {0}")]
    CaBundle(#[from] std::io::Error),
}

/// What SDK clients share, from the SDK's standard environment variables. Clients made from one
/// value share its connections.
///
/// # Errors
/// As [`connector`].
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
    config.set_use_fips(switch("AWS_USE_FIPS_ENDPOINT"));
    config.set_use_dual_stack(switch("AWS_USE_DUALSTACK_ENDPOINT"));
    Ok(config.build())
}

/// What the SDK asks for by the name of a service: the endpoint of `DynamoDB` is `AWS_ENDPOINT_URL_DYNAMODB`.
#[derive(Debug)]
struct Environment;

impl LoadServiceConfig for Environment {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace(' ', "_");
        std::env::var(format!("{}_{service}", key.env())).ok().filter(|value| !value.is_empty())
    }
}

/// `None` when the variable is not set, or is neither `true` nor `false`.
fn switch(name: &'static str) -> Option<bool> {
    variable(name).ok()?.to_ascii_lowercase().parse().ok()
}

/// The region of the environment.
fn region() -> Result<String, SetupError> {
    variable("AWS_REGION").or_else(|missing| variable("AWS_DEFAULT_REGION").map_err(|_| missing))
}

/// The credentials of the environment, read anew for each call.
#[must_use]
pub fn credentials() -> SharedCredentialsProvider {
    SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new())
}

/// A pool of connections that trusts what [`tls`] trusts.
///
/// # Errors
/// [`SetupError::Roots`], [`SetupError::Tls`] and [`SetupError::CaBundle`].
pub fn connector() -> Result<Connector, SetupError> {
    Ok(Connector::new(tls()?, CONNECT_TIMEOUT))
}

/// Like [`connector()`] for a host that may be anybody's: other hosts than AWS's are trusted by the
/// system's roots at once.
///
/// # Errors
/// As [`connector()`].
pub fn connector_to(host: &str, is_encrypted: bool) -> Result<Connector, SetupError> {
    let is_of_aws = service::is_of_aws(host) || std::env::var_os("AWS_CA_BUNDLE").is_some();
    let tls = if is_encrypted && !is_of_aws { Tls::of_system()? } else { tls()? };
    Ok(Connector::new(tls, CONNECT_TIMEOUT))
}

/// Trusts the roots that endpoints of AWS chain to, and the system's roots as well where these do not fit; or
/// those of `AWS_CA_BUNDLE` alone. A process reads them once.
///
/// # Errors
/// As [`connector()`].
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

/// The roots of a deployed function.
fn embedded() -> Result<Tls, SetupError> {
    Ok(Tls::trusting(AMAZON_ROOTS)?.falling_back(|| Tls::of_system_and(AMAZON_ROOTS)))
}

/// Reads a variable of the environment: the name of a table, a bucket, a bus.
///
/// # Errors
/// [`SetupError::NotSet`] when it is missing, empty or no text.
pub fn variable(name: &'static str) -> Result<String, SetupError> {
    std::env::var(name).ok().filter(|value| !value.is_empty()).ok_or(SetupError::NotSet(name))
}
