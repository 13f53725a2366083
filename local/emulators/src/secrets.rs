//! Emulates Secrets Manager's `GetSecretValue`.

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::access::{Access, Denied, Need};
use crate::endpoint::{Answer, Endpoint, Service, json_answer};
use crate::faults::{FaultKind, Faults};

const TARGET: &str = "secretsmanager.GetSecretValue";

const MEDIA_TYPE: &str = "application/x-amz-json-1.1";

/// An in-process Secrets Manager with fixed secrets. Dropping the value ends the server.
pub struct SecretServer {
    endpoint: Endpoint,
}

impl SecretServer {
    /// Opens a loopback port and serves these secrets there, by their ARNs. Needs a Tokio runtime.
    pub async fn start(secrets: BTreeMap<String, String>) -> io::Result<Self> {
        Ok(Self { endpoint: Endpoint::start(Arc::new(Secrets(secrets)), Faults::default()).await? })
    }
}

impl Deref for SecretServer {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

struct Secrets(BTreeMap<String, String>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Asked {
    secret_id: String,
}

impl Service for Secrets {
    async fn answer(&self, request: Request<Bytes>) -> Answer {
        if request.headers().get("x-amz-target").and_then(|target| target.to_str().ok()) != Some(TARGET) {
            return error(StatusCode::BAD_REQUEST, "UnknownOperationException", "only GetSecretValue is supported");
        }
        let asked: Asked = match serde_json::from_slice(request.body()) {
            Ok(asked) => asked,
            Err(reason) => {
                return error(StatusCode::BAD_REQUEST, "InvalidParameterException", &reason.to_string());
            }
        };
        let Some(secret) = self.0.get(&asked.secret_id) else {
            let message = "Secrets Manager can't find the specified secret.";
            return error(StatusCode::BAD_REQUEST, "ResourceNotFoundException", message);
        };
        let name = asked.secret_id.rsplit(':').next().unwrap_or_default();
        let body = json!({
            "ARN": asked.secret_id,
            "Name": name,
            "VersionId": "00000000-0000-0000-0000-000000000000",
            "SecretString": secret,
            "VersionStages": ["AWSCURRENT"],
            "CreatedDate": 0,
        });
        json_answer(MEDIA_TYPE, StatusCode::OK, &body)
    }

    fn refusal(&self, kind: FaultKind, _: &Request<Bytes>) -> Option<Answer> {
        match kind {
            FaultKind::Throttle => Some(error(StatusCode::BAD_REQUEST, "ThrottlingException", "Rate exceeded")),
            FaultKind::Error => Some(error(StatusCode::INTERNAL_SERVER_ERROR, "InternalServiceError", "")),
            _ => None,
        }
    }

    fn needs(&self, request: &Request<Bytes>, _: &Access) -> Vec<Need> {
        let asked = serde_json::from_slice::<Asked>(request.body()).ok();
        let secret = asked.map_or_else(|| "*".to_owned(), |asked| asked.secret_id);
        vec![Need::new("secretsmanager:GetSecretValue", secret)]
    }

    fn forbidden(&self, denied: &Denied) -> Answer {
        error(StatusCode::BAD_REQUEST, "AccessDeniedException", &denied.to_string())
    }
}

fn error(status: StatusCode, code: &str, message: &str) -> Answer {
    json_answer(MEDIA_TYPE, status, &json!({"__type": code, "Message": message}))
}
