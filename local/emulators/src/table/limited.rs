//! An embedded table behind the model of DynamoDB's limits, without sockets.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use serde_json::Value;

use super::Error;
use super::embedded::EmbeddedTable;
use super::limits::{Clocked, Counts, Model, Schema};
use super::proxy::Operation;

/// A table that answers calls in this process, within DynamoDB's limits and in its time. With
/// tokio's paused clock, the time is simulated.
pub struct LimitedTable {
    table: EmbeddedTable,
    limits: Clocked,
}

impl LimitedTable {
    /// Creates the table. `definition` is the body of a `CreateTable` request. Call it inside a
    /// runtime.
    pub fn create(definition: &Value, schema: Schema, model: Model) -> Result<Self, Error> {
        let table = EmbeddedTable::start(None)?;
        let created = table.answer("CreateTable", definition.to_string().as_bytes());
        created.map_err(Error::Engine)?;
        Ok(Self { table, limits: Clocked::new(schema, model) })
    }

    /// Answers a request. `target` is its header `x-amz-target`.
    pub async fn answer(&self, target: &str, body: &[u8]) -> Response<Full<Bytes>> {
        let name = target.split_once('.').map_or(target, |(_, name)| name);
        let forward = async { self.forward(name, body) };
        self.limits.pass(Operation::named(target), body, forward).await.unwrap_or_else(|refusal| refusal)
    }

    /// Answers a request at once, without limits.
    pub fn forward(&self, operation: &str, body: &[u8]) -> Response<Full<Bytes>> {
        let (status, text) = match self.table.answer(operation, body) {
            Ok(text) => (StatusCode::OK, text),
            Err(error) => {
                (StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::BAD_REQUEST), error.to_json())
            }
        };
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
    }

    /// Returns what the model has counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.limits.counts()
    }

    /// Deletes stream records ([`EmbeddedTable::trim_stream`]).
    pub fn trim_stream(&self, table: &str, up_to_sequence_number: &str) -> Result<u64, Error> {
        self.table.trim_stream(table, up_to_sequence_number)
    }
}
