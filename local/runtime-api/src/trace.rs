use std::time::{SystemTime, UNIX_EPOCH};

/// The trace of one invocation. It is not sampled.
///
/// A function passes its trace on with its calls of AWS services. So the trace tells which
/// invocation made a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    root: String,
    parent: String,
}

impl Trace {
    /// Creates a new trace.
    #[must_use]
    pub fn begin() -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let random = uuid::Uuid::new_v4().simple().to_string();
        let (root, parent) = random.split_at(24.min(random.len()));
        Self { root: format!("1-{seconds:08x}-{root}"), parent: format!("{parent:0>16}") }
    }

    /// Returns the id of the trace: `1-` and two hexadecimal numbers.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.root
    }

    /// Returns X-Ray's header.
    pub(crate) fn header(&self) -> String {
        format!("Root={};Parent={};Sampled=0", self.root, self.parent)
    }
}
