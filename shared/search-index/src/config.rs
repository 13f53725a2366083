//! The engine's endpoint, and the limits of its calls.

use std::time::Duration;

use aws::{Connector, Limits, Signing};
use http::Uri;
use http::uri::Scheme;
use thiserror::Error;

/// The default limits of a call, which [`SearchConfig::with_limits`] can replace.
const LIMITS: Limits = Limits {
    attempt: Duration::from_secs(3),
    total: Duration::from_secs(5),
    attempts: 4,
    backoff: Duration::from_millis(50),
};

/// The configuration of a [`crate::SearchClient`]. Clients that are created from one configuration
/// share its connections.
#[derive(Debug, Clone)]
pub struct SearchConfig {
    pub(crate) endpoint: Uri,
    pub(crate) index_prefix: String,
    pub(crate) limits: Limits,
    /// The signer of calls: for `es` (OpenSearch Service) or `aoss` (Serverless).
    pub(crate) signing: Option<Signing>,
    pub(crate) connector: Connector,
}

impl SearchConfig {
    /// Creates the configuration of an engine at `endpoint`: `http` or `https`, host and optional
    /// port, no path.
    ///
    /// The names of the indices begin with `index_prefix`: 1 to 100 lower-case letters, digits and
    /// hyphens, beginning with a letter or digit. This is the engine's rule for names, restricted
    /// so that no name needs encoding.
    pub fn new(endpoint: &str, index_prefix: &str) -> Result<Self, ConfigError> {
        let endpoint: Uri = endpoint.parse().map_err(|_| ConfigError::Endpoint)?;
        let known_scheme = endpoint.scheme() == Some(&Scheme::HTTP) || endpoint.scheme() == Some(&Scheme::HTTPS);
        if !known_scheme || endpoint.authority().is_none() || !matches!(endpoint.path(), "" | "/") {
            return Err(ConfigError::Endpoint);
        }
        let valid_name = index_prefix.len() <= 100
            && index_prefix.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && index_prefix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !valid_name {
            return Err(ConfigError::IndexPrefix);
        }
        let connector = aws::connector().map_err(|error| ConfigError::Tls(error.to_string()))?;
        Ok(Self { endpoint, index_prefix: index_prefix.to_owned(), limits: LIMITS, signing: None, connector })
    }

    /// Reads the environment: `SEARCH_ENDPOINT` and `SEARCH_INDEX_PREFIX`. For signing it also
    /// reads `SEARCH_SERVICE` (`es`, the default, or `aoss` for Serverless), `AWS_REGION` and the
    /// SDK's credential variables.
    ///
    /// Calls are signed when the endpoint is `https` and there are credentials. Calls to `http`
    /// endpoints, such as a server on this machine, are unsigned.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_variables(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let required = |name| variable(name).ok_or(ConfigError::Missing(name));
        let mut config = Self::new(&required("SEARCH_ENDPOINT")?, &required("SEARCH_INDEX_PREFIX")?)?;
        if config.is_encrypted() && variable("AWS_ACCESS_KEY_ID").is_some() {
            let service = match variable("SEARCH_SERVICE").as_deref() {
                None | Some("es") => "es",
                Some("aoss") => "aoss",
                Some(_) => return Err(ConfigError::Service),
            };
            config.signing = Some(Signing::new(service, &required("AWS_REGION")?, aws::credentials()));
        }
        Ok(config)
    }

    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    pub fn with_signing(self, signing: Signing) -> Self {
        Self { signing: Some(signing), ..self }
    }

    /// Returns whether the engine is OpenSearch Serverless, which supports fewer calls.
    pub(crate) fn is_serverless(&self) -> bool {
        self.signing.as_ref().is_some_and(|signing| signing.service == "aoss")
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.endpoint.scheme() == Some(&Scheme::HTTPS)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// An environment variable is not set.
    #[error("the environment variable {0} is not set")]
    Missing(&'static str),
    /// The endpoint is not `http(s)://host[:port]`.
    #[error("the search endpoint must be http(s)://host[:port]")]
    Endpoint,
    /// The prefix is not valid for an index name.
    #[error(
        "the index prefix must be 1 to 100 lower-case letters, digits and hyphens, beginning with a letter or digit"
    )]
    IndexPrefix,
    /// The service is neither `es` nor `aoss`.
    #[error("SEARCH_SERVICE must be es or aoss")]
    Service,
    /// The trust store cannot be used.
    #[error("{0}")]
    Tls(String),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn with(variables: &'static [(&str, &str)]) -> Result<SearchConfig, ConfigError> {
        SearchConfig::from_variables(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    /// Certificates of OpenSearch domains and collections come from ACM, so they chain to the
    /// embedded roots. For certificates of other authorities, the system's roots are loaded.
    #[test]
    fn clients_of_every_endpoint_trust_the_same_roots_as_clients_of_other_services() {
        let others = format!("{:?}", aws::connector().unwrap());
        for endpoint in [
            "https://search-bodega-abc.eu-central-1.es.amazonaws.com",
            "https://abc.eu-central-1.aoss.amazonaws.com",
            "https://search.shop.example",
            "http://127.0.0.1:9200",
        ] {
            let config = SearchConfig::new(endpoint, "bodega").unwrap();
            assert_eq!(format!("{:?}", config.connector), others, "{endpoint}");
        }
    }

    #[test]
    fn calls_to_a_plain_endpoint_are_not_signed_even_with_credentials() {
        let config = with(&[
            ("SEARCH_ENDPOINT", "http://127.0.0.1:9200"),
            ("SEARCH_INDEX_PREFIX", "bodega"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_REGION", "eu-central-1"),
        ]);
        assert!(config.unwrap().signing.is_none());
    }

    #[test]
    fn calls_to_an_encrypted_endpoint_are_signed_for_its_service() {
        let config = with(&[
            ("SEARCH_ENDPOINT", "https://example.aoss.amazonaws.com"),
            ("SEARCH_INDEX_PREFIX", "bodega"),
            ("SEARCH_SERVICE", "aoss"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_REGION", "eu-central-1"),
        ]);
        assert_eq!(config.unwrap().signing.unwrap().service, "aoss");
    }

    #[test]
    fn an_invalid_configuration_is_refused_with_its_reason() {
        for (variables, error) in [
            (&[("SEARCH_INDEX_PREFIX", "bodega")][..], ConfigError::Missing("SEARCH_ENDPOINT")),
            (&[("SEARCH_ENDPOINT", "http://localhost")], ConfigError::Missing("SEARCH_INDEX_PREFIX")),
            (&[("SEARCH_ENDPOINT", "localhost:9200"), ("SEARCH_INDEX_PREFIX", "a")], ConfigError::Endpoint),
            (&[("SEARCH_ENDPOINT", "ftp://localhost"), ("SEARCH_INDEX_PREFIX", "a")], ConfigError::Endpoint),
            (&[("SEARCH_ENDPOINT", "http://localhost/x"), ("SEARCH_INDEX_PREFIX", "a")], ConfigError::Endpoint),
            (&[("SEARCH_ENDPOINT", "http://localhost"), ("SEARCH_INDEX_PREFIX", "_a")], ConfigError::IndexPrefix),
            (&[("SEARCH_ENDPOINT", "http://localhost"), ("SEARCH_INDEX_PREFIX", "A")], ConfigError::IndexPrefix),
            (
                &[
                    ("SEARCH_ENDPOINT", "https://localhost"),
                    ("SEARCH_INDEX_PREFIX", "a"),
                    ("AWS_ACCESS_KEY_ID", "id"),
                    ("SEARCH_SERVICE", "s3"),
                ],
                ConfigError::Service,
            ),
        ] {
            assert_eq!(with(variables).unwrap_err(), error);
        }
    }
}
