//! Reads secrets from Secrets Manager with its JSON protocol.

use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};

use crate::{Api, Call, Limits, Response, Service, SetupError, is_transient, variable};

/// A request waits for the keys, so the limits are shorter than those of other calls.
const LIMITS: Limits = Limits {
    attempt: Duration::from_secs(1),
    total: Duration::from_secs(2),
    attempts: 4,
    backoff: Duration::from_millis(50),
};
/// The maximum size of a secret is 65,536 bytes. In JSON an escaped byte can take six bytes.
const MAX_RESPONSE: usize = 512 << 10;

/// A secret cannot be read. The message contains no part of a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("the secret of {variable} cannot be read: {reason}")]
    Unreadable { variable: &'static str, reason: String },
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Request<'a> {
    secret_id: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Value {
    secret_string: String,
}

/// The variable that has keys themselves, for a function without a stack. No deployment has it.
const PLAIN: &str = "CURSOR_KEYS";

/// The place of a secret.
#[derive(Debug)]
pub struct Secret {
    variable: &'static str,
    place: Place,
}

enum Place {
    Text(String),
    Arn(String),
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Text(_)) { "Text" } else { "Arn" })
    }
}

impl Secret {
    /// Finds the secret whose ARN is in this environment variable. Without a stack, `CURSOR_KEYS`
    /// has the text of every secret.
    pub fn from_env(name: &'static str) -> Result<Self, SetupError> {
        let place = variable(PLAIN).map(Place::Text).or_else(|_| variable(name).map(Place::Arn))?;
        Ok(Self { variable: name, place })
    }

    /// Finds a secret that has no other text without a stack.
    pub fn of(name: &'static str) -> Result<Self, SetupError> {
        Ok(Self { variable: name, place: Place::Arn(variable(name)?) })
    }

    /// Reads the secret. The endpoint, the region and the credentials come from the SDK's variables.
    pub async fn read(&self) -> Result<String, SecretError> {
        match &self.place {
            Place::Text(text) => Ok(text.clone()),
            Place::Arn(id) => {
                let service = Service::from_env(Api::SecretsManager)?.with_limits(LIMITS);
                read(&service, self.variable, id).await
            }
        }
    }
}

async fn read(service: &Service, variable: &'static str, id: &str) -> Result<String, SecretError> {
    let unreadable = |reason: String| SecretError::Unreadable { variable, reason };
    let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "secretsmanager.GetSecretValue")];
    let body = serde_json::to_vec(&Request { secret_id: id }).map_err(|error| unreadable(error.to_string()))?.into();
    let call = Call { headers: &headers, body, max_response: MAX_RESPONSE, ..Call::new(Method::POST, "/") };
    let response = service.call(&call, is_retryable).await;
    let response = response.map_err(|error| unreadable(error.to_string()))?;
    if response.status != 200 {
        let code = response.json_error().unwrap_or_default();
        return Err(unreadable(format!("status {} {code}", response.status)));
    }
    // The parser's own message can quote the secret.
    let value = serde_json::from_slice::<Value>(&response.body);
    value.map(|value| value.secret_string).map_err(|_| unreadable("the response has no SecretString".to_owned()))
}

fn is_retryable(response: &Response) -> bool {
    is_transient(response.status, response.json_error().as_deref())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used)]

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the result of a read that gets this status and body.
    async fn answered(status: u16, body: &'static str) -> Result<String, SecretError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            assert!(String::from_utf8_lossy(&head[..read]).contains("secretsmanager.GetSecretValue"));
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let service = Service::new(crate::connector().unwrap(), &url, None).with_limits(LIMITS);
        let result = read(&service, "KEYS", "arn:a").await;
        server.await.unwrap();
        result
    }

    #[tokio::test]
    async fn a_secret_is_read_and_an_error_names_the_variable_and_no_part_of_a_secret() {
        assert_eq!(answered(200, r#"{"ARN":"arn:a","SecretString":"k1:x"}"#).await.unwrap(), "k1:x");
        let said = answered(200, r#"{"SecretString":{"k1":"x1y2"}}"#).await.unwrap_err().to_string();
        assert!(said.contains("KEYS") && !said.contains("x1y2"), "{said}");
        let denied = answered(400, r#"{"__type":"AccessDeniedException"}"#).await.unwrap_err().to_string();
        assert_eq!(denied, "the secret of KEYS cannot be read: status 400 AccessDeniedException");
    }
}
