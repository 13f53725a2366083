use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    ApiGateway,
    Lambda,
    /// Reads, writes, storage and recovery.
    DynamoDb,
    Streams,
    /// Pictures, long texts and the archive.
    S3,
    EventBridge,
    Sqs,
    Ses,
    OpenSearch,
    Logs,
    /// Metrics, alarms, the dashboard and Contributor Insights.
    CloudWatch,
    XRay,
    /// Transfer to the internet.
    Transfer,
}

impl Service {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApiGateway => "API Gateway",
            Self::Lambda => "Lambda",
            Self::DynamoDb => "DynamoDB",
            Self::Streams => "DynamoDB Streams",
            Self::S3 => "S3",
            Self::EventBridge => "EventBridge",
            Self::Sqs => "SQS",
            Self::Ses => "SES",
            Self::OpenSearch => "OpenSearch",
            Self::Logs => "CloudWatch Logs",
            Self::CloudWatch => "CloudWatch",
            Self::XRay => "X-Ray",
            Self::Transfer => "Data transfer",
        }
    }
}
