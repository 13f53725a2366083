use std::time::Duration;

use crate::FilterError;

/// The settings of one event source mapping. Names and limits are those of
/// [`AWS::Lambda::EventSourceMapping`](https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html).
#[derive(Debug, Clone)]
pub struct MappingSettings {
    /// Name of the function in logs, in [`Progress`](crate::Progress) and in discarded batches.
    pub function: String,
    /// Maximum records in one call, 1 to 10,000.
    pub batch_size: usize,
    /// Maximum wait for a full batch, up to 300 s. Zero means no wait.
    pub batching_window: Duration,
    /// Concurrent calls for one shard, 1 to 10. Records of one item stay in order.
    pub parallelization_factor: usize,
    /// Maximum retries of a failed batch, up to 10,000. `None` (-1 in the template) means retries
    /// until the records expire, 24 h after their write.
    pub maximum_retry_attempts: Option<u32>,
    /// Age at which records are discarded, 60 s to 7 days. `None` (-1 in the template) means that
    /// records are discarded only when they expire.
    pub maximum_record_age: Option<Duration>,
    /// Whether a failed batch is halved before its retry.
    pub bisect_on_function_error: bool,
    /// Whether the function's response may name the records that failed.
    pub report_batch_item_failures: bool,
    /// The starting position in shards that exist when the mapping starts.
    pub starting_position: StartingPosition,
    /// Filter patterns as JSON text. A record that matches one of them is delivered. Without
    /// patterns, every record is delivered.
    pub filters: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartingPosition {
    /// At the oldest record that the stream still has.
    TrimHorizon,
    /// At the first record written after the start.
    Latest,
}

/// A setting that AWS would reject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A number is outside the limits of the service.
    #[error("{name} of the stream mapping of {function} must be {limits}")]
    OutOfRange {
        /// The function of the mapping.
        function: String,
        /// Name of the setting in the template.
        name: &'static str,
        /// The allowed values.
        limits: &'static str,
    },
    #[error("a filter of the stream mapping of {function} is not a valid pattern: {source}")]
    Filter {
        /// The function of the mapping.
        function: String,
        /// The error in the pattern.
        source: FilterError,
    },
}

impl MappingSettings {
    /// Returns the settings that a mapping has if the template sets none of them.
    #[must_use]
    pub fn for_function(function: impl Into<String>) -> Self {
        Self {
            function: function.into(),
            batch_size: 100,
            batching_window: Duration::ZERO,
            parallelization_factor: 1,
            maximum_retry_attempts: None,
            maximum_record_age: None,
            bisect_on_function_error: false,
            report_batch_item_failures: false,
            starting_position: StartingPosition::TrimHorizon,
            filters: Vec::new(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let age = self.maximum_record_age.map(|age| age.as_secs());
        let checks = [
            ("BatchSize", "1 to 10,000", (1..=10_000).contains(&self.batch_size)),
            ("MaximumBatchingWindowInSeconds", "0 to 300", self.batching_window <= Duration::from_secs(300)),
            ("ParallelizationFactor", "1 to 10", (1..=10).contains(&self.parallelization_factor)),
            (
                "MaximumRetryAttempts",
                "-1 to 10,000",
                self.maximum_retry_attempts.is_none_or(|retries| retries <= 10_000),
            ),
            (
                "MaximumRecordAgeInSeconds",
                "-1 or 60 to 604,800",
                age.is_none_or(|seconds| (60..=604_800).contains(&seconds)),
            ),
        ];
        match checks.into_iter().find(|(_, _, fine)| !fine) {
            None => Ok(()),
            Some((name, limits, _)) => Err(SettingsError::OutOfRange { function: self.function.clone(), name, limits }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_error_names_a_setting_outside_the_limits_of_the_service() {
        type Change = fn(&mut MappingSettings);
        let changes: [(Change, &str); 6] = [
            (|s| s.batch_size = 0, "BatchSize"),
            (|s| s.batch_size = 10_001, "BatchSize"),
            (|s| s.batching_window = Duration::from_secs(301), "MaximumBatchingWindowInSeconds"),
            (|s| s.parallelization_factor = 11, "ParallelizationFactor"),
            (|s| s.maximum_retry_attempts = Some(10_001), "MaximumRetryAttempts"),
            (|s| s.maximum_record_age = Some(Duration::from_secs(59)), "MaximumRecordAgeInSeconds"),
        ];
        for (change, name) in changes {
            let mut settings = MappingSettings::for_function("F");
            settings.check().unwrap();
            change(&mut settings);
            assert!(settings.check().unwrap_err().to_string().starts_with(name));
        }
    }
}
