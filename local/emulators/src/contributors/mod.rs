//! Emulates Contributor Insights for DynamoDB: a table's throttled keys, as
//! [`GetInsightRuleReport`] returns them.
//!
//! [`GetInsightRuleReport`]: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetInsightRuleReport.html

mod server;
mod throttles;

pub use server::InsightServer;
pub use throttles::Throttles;
