//! What becomes of the lines that functions write.

use serde_json::Value as Json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};

/// Bytes of a line that are shown; the rest of a longer one is dropped.
const LONGEST_LINE: usize = 16 * 1024;

/// Which lines of the functions are shown on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Log {
    /// None.
    Off,
    /// Warnings and errors, and whatever is not a JSON log line, such as a panic's message.
    #[default]
    Problems,
    /// Every line.
    All,
}

impl Log {
    /// Shows a line of this process about a function.
    pub(crate) fn tell(self, name: &str, message: &str) {
        if self != Self::Off {
            eprintln!("{name}: {message}");
        }
    }

    /// Reads `source` to its end and shows the lines that are asked for, each with the function's name.
    pub(crate) async fn forward(self, name: String, source: impl tokio::io::AsyncRead + Unpin) {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        while read_line(&mut source, &mut line).await {
            let text = String::from_utf8_lossy(&line);
            if self.shows(&text) {
                eprintln!("{name}: {text}");
            }
            line.clear();
        }
    }

    fn shows(self, line: &str) -> bool {
        match self {
            Self::Off => false,
            Self::All => true,
            Self::Problems => match serde_json::from_str::<Json>(line) {
                Ok(json) => matches!(json.get("level").and_then(Json::as_str), Some("WARN" | "ERROR" | "FATAL")),
                Err(_) => !line.trim().is_empty(),
            },
        }
    }
}

/// Reads one line into `line`, without its end; false at the end of the source.
async fn read_line(source: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> bool {
    loop {
        let Ok(buffer) = source.fill_buf().await else {
            return false;
        };
        if buffer.is_empty() {
            return !line.is_empty();
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or(buffer);
        let room = LONGEST_LINE.saturating_sub(line.len());
        line.extend(part.iter().take(room));
        let used = part.len() + usize::from(end.is_some());
        source.consume(used);
        if end.is_some() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_warnings_errors_and_what_is_no_log_line() {
        let log = Log::Problems;
        assert!(log.shows(r#"{"level":"ERROR","message":"x"}"#));
        assert!(log.shows("thread 'main' panicked"));
        assert!(!log.shows(r#"{"level":"INFO","message":"x"}"#));
        assert!(!log.shows(r#"{"_aws":{"CloudWatchMetrics":[]}}"#));
        assert!(!Log::Off.shows("thread 'main' panicked"));
        assert!(Log::All.shows(r#"{"level":"INFO"}"#));
    }

    #[tokio::test]
    async fn a_line_beyond_the_bound_is_cut_and_the_next_one_is_whole() {
        let text = format!("{}\nnext\nlast", "x".repeat(3 * LONGEST_LINE));
        let mut source = BufReader::new(text.as_bytes());
        let mut lines = Vec::new();
        let mut line = Vec::new();
        while read_line(&mut source, &mut line).await {
            lines.push(String::from_utf8_lossy(&line).into_owned());
            line.clear();
        }
        assert_eq!(lines.first().map(String::len), Some(LONGEST_LINE));
        assert_eq!(lines.get(1..), Some(&["next".to_owned(), "last".to_owned()][..]));
    }
}
