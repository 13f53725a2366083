//! What CloudWatch knows of a table's throttled keys: Contributor Insights for DynamoDB, as far as [`GetInsightRuleReport`] gives it.
//!
//! [`GetInsightRuleReport`]: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetInsightRuleReport.html

mod server;
mod throttles;

pub use server::InsightServer;
pub use throttles::Throttles;
