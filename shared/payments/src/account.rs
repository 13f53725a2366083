//! The shop's account at the payment provider: the address of the provider, and the keys.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws::{Connector, Secret, Service, SetupError};
use serde::Deserialize;
use tokio::time::Instant;

use crate::{Provider, Stripe};

/// How long the keys are used before the secret is read again. So a function uses a rotated key
/// after this time.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// The variable with the ARN of the secret. An empty value switches card payments off.
const SECRET: &str = "PAYMENT_KEYS_SECRET";
const URL: &str = "PAYMENT_PROVIDER_URL";
const DEFAULT_URL: &str = "https://api.stripe.com";

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// This deployment has no account at a payment provider.
    #[error("this deployment takes no card payments")]
    Off,
    /// The text contains no part of a key.
    #[error("the keys of the payment provider cannot be read: {0}")]
    Unreadable(String),
}

/// The provider with a key, and the secrets of its webhooks.
#[derive(Debug, Clone)]
pub struct Keys {
    pub provider: Arc<dyn Provider>,
    webhooks: Secrets,
}

#[derive(Clone)]
struct Secrets(Arc<Vec<String>>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Keys {
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>, webhook_secrets: Vec<String>) -> Self {
        Self { provider, webhooks: Secrets(Arc::new(webhook_secrets)) }
    }

    /// Returns the secrets with which webhooks are signed. During a rotation there are two.
    #[must_use]
    pub fn webhook_secrets(&self) -> Vec<&str> {
        self.webhooks.0.iter().map(String::as_str).collect()
    }
}

/// The text of the secret.
#[derive(Deserialize)]
struct Text {
    api_key: String,
    webhook_secrets: Vec<String>,
}

/// Reads the keys when they are needed first, and again after some minutes.
#[derive(Debug)]
pub struct Account {
    place: Option<(Secret, Service)>,
    read: Mutex<Option<(Instant, Keys)>>,
    is_fixed: bool,
}

impl Account {
    /// Finds the account: the secret that `PAYMENT_KEYS_SECRET` names, and the address
    /// `PAYMENT_PROVIDER_URL`, which is Stripe's by default.
    pub fn from_env() -> Result<Self, SetupError> {
        let set = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let place = match set(SECRET) {
            None => None,
            Some(_) => {
                let url = set(URL).unwrap_or_else(|| DEFAULT_URL.to_owned());
                Some((Secret::of(SECRET)?, Service::new(connector(&url)?, &url, None)))
            }
        };
        Ok(Self { place, read: Mutex::default(), is_fixed: false })
    }

    /// An account with these keys, or none, for tests.
    #[must_use]
    pub fn with(keys: Option<Keys>) -> Self {
        Self { place: None, read: Mutex::new(keys.map(|keys| (Instant::now(), keys))), is_fixed: true }
    }

    /// Returns the keys.
    ///
    /// # Errors
    /// [`AccountError`]. While the secret cannot be read, the former keys serve on.
    pub async fn keys(&self) -> Result<Keys, AccountError> {
        let known = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, keys)) = known.as_ref().filter(|(at, _)| self.is_fixed || at.elapsed() < FRESH) {
            return Ok(keys.clone());
        }
        let Some((secret, service)) = &self.place else { return Err(AccountError::Off) };
        match read(secret, service).await {
            Ok(keys) => {
                *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), keys.clone()));
                Ok(keys)
            }
            Err(error) => match known {
                Some((_, keys)) => {
                    tracing::warn!(%error, "the former keys of the payment provider serve on");
                    Ok(keys)
                }
                None => Err(error),
            },
        }
    }
}

/// Returns a connector to the provider, which is outside AWS.
fn connector(url: &str) -> Result<Connector, SetupError> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    aws::connector_to(host, scheme == "https")
}

async fn read(secret: &Secret, service: &Service) -> Result<Keys, AccountError> {
    let text = secret.read().await.map_err(|error| AccountError::Unreadable(error.to_string()))?;
    // The parser's own message could quote a key.
    let Text { api_key, webhook_secrets } =
        serde_json::from_str(&text).map_err(|_| AccountError::Unreadable("the secret has another form".to_owned()))?;
    Ok(Keys::new(Arc::new(Stripe::new(service.clone(), api_key)), webhook_secrets))
}
