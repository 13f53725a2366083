use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use crate::access::Denied;
use crate::contributors::Throttles;
use crate::endpoint::json_answer;

const ERROR_PREFIX: &str = "com.amazonaws.dynamodb.v20120810#";
const MEDIA_TYPE: &str = "application/x-amz-json-1.0";

/// The code and the message of an action's reason.
type Reason = (&'static str, &'static str);

pub(in crate::table) const CONFLICT: Reason = ("TransactionConflict", "Transaction is ongoing for the item");
pub(in crate::table) const THROTTLED: Reason =
    ("ThrottlingError", "Throughput exceeds the current capacity for one or more partitions of your table or index.");

/// Returns the response to a throttled call. `reason` is one of those in the API reference,
/// `ThrottlingReason`.
pub(in crate::table) fn throttled(reason: &str) -> Response<Full<Bytes>> {
    json_answer(
        MEDIA_TYPE,
        StatusCode::BAD_REQUEST,
        &json!({
            "__type": format!("{ERROR_PREFIX}ProvisionedThroughputExceededException"),
            "message": "The level of configured provisioned throughput for the table was exceeded. Consider \
                increasing your provisioning level with the UpdateTable API.",
            "ThrottlingReasons": [{"reason": reason}],
        }),
    )
}

/// Returns the response to `DescribeContributorInsights` for a table whose only rule is the one for
/// throttled keys.
pub(super) fn insights(body: &[u8], throttles: &Throttles) -> Response<Full<Bytes>> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(table) = request.get("TableName").and_then(Value::as_str) else {
        return error(StatusCode::BAD_REQUEST, "ValidationException", "TableName is missing");
    };
    json_answer(
        MEDIA_TYPE,
        StatusCode::OK,
        &json!({
            "TableName": table,
            "ContributorInsightsRuleList": [throttles.rule(table)],
            "ContributorInsightsStatus": "ENABLED",
            "ContributorInsightsMode": "THROTTLED_KEYS",
        }),
    )
}

pub(super) fn internal() -> Response<Full<Bytes>> {
    error(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", "Internal server error")
}

pub(super) fn unavailable() -> Response<Full<Bytes>> {
    error(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "The table behind the proxy cannot be reached.")
}

pub(super) fn too_large() -> Response<Full<Bytes>> {
    error(StatusCode::PAYLOAD_TOO_LARGE, "SerializationException", "A request holds at most 16 MB.")
}

pub(super) fn forbidden(denied: &Denied) -> Response<Full<Bytes>> {
    let body = json!({"__type": "com.amazon.coral.service#AccessDeniedException", "Message": denied.to_string()});
    json_answer(MEDIA_TYPE, StatusCode::BAD_REQUEST, &body)
}

pub(in crate::table) fn conflict() -> Response<Full<Bytes>> {
    error(StatusCode::BAD_REQUEST, "TransactionConflictException", CONFLICT.1)
}

/// Returns the response to a transaction of `actions` actions that action `culprit` cancelled for this
/// reason.
pub(in crate::table) fn cancelled(actions: usize, culprit: usize, (code, text): Reason) -> Response<Full<Bytes>> {
    let codes: Vec<&str> = (0..actions).map(|at| if at == culprit { code } else { "None" }).collect();
    let reasons: Vec<Value> = (0..actions)
        .map(|at| match at == culprit {
            true => json!({"Code": code, "Message": text}),
            false => json!({"Code": "None"}),
        })
        .collect();
    let message =
        format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{}]", codes.join(", "));
    json_answer(
        MEDIA_TYPE,
        StatusCode::BAD_REQUEST,
        &json!({
            "__type": format!("{ERROR_PREFIX}TransactionCanceledException"),
            "Message": message,
            "CancellationReasons": reasons,
        }),
    )
}

fn error(status: StatusCode, code: &str, message: &str) -> Response<Full<Bytes>> {
    // Clients verify the checksum `x-amz-crc32` only if it is present.
    json_answer(MEDIA_TYPE, status, &json!({"__type": format!("{ERROR_PREFIX}{code}"), "message": message}))
}
