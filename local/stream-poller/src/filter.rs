use event_pattern::{Dialect, Pattern, PatternError};
use serde_json::Value;

const MAX_PATTERN: usize = 4096;
const MAX_PATTERNS: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// There are more than ten patterns, or a pattern has more than 4,096 characters.
    #[error("a mapping has at most {MAX_PATTERNS} patterns of {MAX_PATTERN} characters")]
    TooLong,
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

/// The patterns of one mapping. A record passes if at least one pattern matches, or if there are no
/// patterns.
#[derive(Debug, Clone, Default)]
pub struct Filter(Vec<Pattern>);

impl Filter {
    /// Reads the patterns of a mapping. Each is a JSON text.
    pub fn new<T: AsRef<str>>(patterns: &[T]) -> Result<Self, FilterError> {
        if patterns.len() > MAX_PATTERNS {
            return Err(FilterError::TooLong);
        }
        let read = |pattern: &T| {
            let text = pattern.as_ref();
            if text.chars().count() > MAX_PATTERN {
                return Err(FilterError::TooLong);
            }
            Ok(Pattern::read(text, Dialect::Lambda)?)
        };
        patterns.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether a record passes. `event` is the record as the function would receive it.
    #[must_use]
    pub fn matches(&self, event: &Value) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.matches(event))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn one_matching_pattern_is_enough_and_without_patterns_every_record_passes() {
        let event = json!({"eventName": "REMOVE"});
        let filter = |patterns: &[&str]| Filter::new(patterns).unwrap().matches(&event);
        assert!(filter(&[]));
        assert!(filter(&[r#"{"eventName":["X"]}"#, r#"{"eventName":["REMOVE"]}"#]));
        assert!(!filter(&[r#"{"eventName":["X"]}"#]));
    }

    #[test]
    fn patterns_that_are_too_many_or_too_long_or_invalid_are_refused() {
        let long = format!(r#"{{"a":["{}"]}}"#, "x".repeat(MAX_PATTERN));
        assert_eq!(Filter::new(&[long]).unwrap_err(), FilterError::TooLong);
        assert_eq!(Filter::new(&["{}"; 11]).unwrap_err(), FilterError::TooLong);
        assert_eq!(Filter::new(&["{"]).unwrap_err(), FilterError::Pattern(PatternError::Json));
        // Lambda supports only some of EventBridge's operators.
        assert!(Filter::new(&[r#"{"a":[{"wildcard":"x*"}]}"#]).is_err());
    }
}
