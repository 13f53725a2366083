use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};

/// Maximum length of a line in bytes. The rest of a longer line is dropped.
const LONGEST_LINE: usize = 16 * 1024;

/// Maximum number of lines in memory, and the maximum size of all these lines in bytes.
const MAX_LINES: usize = 20_000;
const MAX_BYTES: usize = 8 << 20;

/// Selects which lines of the functions appear on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Log {
    Off,
    /// Shows warnings, errors, and lines that are not JSON, such as a panic's message.
    #[default]
    Problems,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub function: String,
    /// The line, without its line ending.
    pub text: String,
}

/// The newest lines of all functions, shown or not, in the order in which they were read.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Buffer>);

#[derive(Debug, Default)]
struct Buffer {
    lines: VecDeque<Line>,
    bytes: usize,
}

impl Lines {
    fn keep(&self, line: Line) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.bytes += line.text.len();
        buffer.lines.push_back(line);
        while buffer.bytes > MAX_BYTES || buffer.lines.len() > MAX_LINES {
            let Some(oldest) = buffer.lines.pop_front() else { return };
            buffer.bytes -= oldest.text.len();
        }
    }

    /// Returns the newest lines that `wanted` accepts, at most `limit`, oldest first.
    pub(crate) fn find(&self, wanted: impl Fn(&Line) -> bool, limit: usize) -> Vec<Line> {
        let buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<Line> = buffer.lines.iter().rev().filter(|line| wanted(line)).take(limit).cloned().collect();
        found.reverse();
        found
    }
}

impl Log {
    pub(crate) fn tell(self, name: &str, message: &str) {
        if self != Self::Off {
            eprintln!("{name}: {message}");
        }
    }

    /// Reads `source` to its end, stores its lines, and shows the selected lines with the
    /// function's name.
    pub(crate) async fn forward(self, lines: Arc<Lines>, name: String, source: impl tokio::io::AsyncRead + Unpin) {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        while read_line(&mut source, &mut line).await {
            let text = String::from_utf8_lossy(&line);
            if self.shows(&text) {
                eprintln!("{name}: {text}");
            }
            lines.keep(Line { function: name.clone(), text: text.into_owned() });
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

/// Reads one line into `line`, without its line ending. Returns false at the end of the source.
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
    fn warnings_and_errors_and_lines_that_are_not_json_are_problems() {
        let log = Log::Problems;
        assert!(log.shows(r#"{"level":"ERROR","message":"x"}"#));
        assert!(log.shows("thread 'main' panicked"));
        assert!(!log.shows(r#"{"level":"INFO","message":"x"}"#));
        assert!(!log.shows(r#"{"_aws":{"CloudWatchMetrics":[]}}"#));
        assert!(!Log::Off.shows("thread 'main' panicked"));
        assert!(Log::All.shows(r#"{"level":"INFO"}"#));
    }

    #[tokio::test]
    async fn the_newest_lines_up_to_a_bound_are_kept_whether_they_are_shown_or_not() {
        let lines = Arc::new(Lines::default());
        let texts = |found: Vec<Line>| found.into_iter().map(|line| line.text).collect::<Vec<_>>();
        Log::Off.forward(Arc::clone(&lines), "A".to_owned(), "one\ntwo\n".as_bytes()).await;
        Log::Off.forward(Arc::clone(&lines), "B".to_owned(), "three\n".as_bytes()).await;
        assert_eq!(texts(lines.find(|_| true, 2)), ["two", "three"]);
        assert_eq!(texts(lines.find(|line| line.function == "A" && line.text.contains('n'), 10)), ["one"]);
        let many = format!("{}\n", "x".repeat(LONGEST_LINE)).repeat(MAX_BYTES / LONGEST_LINE + 5);
        Log::Off.forward(Arc::clone(&lines), "A".to_owned(), many.as_bytes()).await;
        assert_eq!(lines.find(|_| true, usize::MAX).len(), MAX_BYTES / LONGEST_LINE);
        Log::Off.forward(Arc::clone(&lines), "A".to_owned(), "y\n".repeat(MAX_LINES + 5).as_bytes()).await;
        assert_eq!(lines.find(|_| true, usize::MAX).len(), MAX_LINES);
    }

    #[tokio::test]
    async fn a_line_beyond_the_bound_is_cut_and_the_next_line_is_whole() {
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
