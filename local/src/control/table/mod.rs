//! `/_local/table…`: lets a page explore the table, and the calls that reach it.
//!
//! The routes read the table directly, behind the proxy of the functions. So their requests are not
//! among the calls, no fault hits them, and no function's permission limits them.

mod calls;
mod hot;
mod model;
mod partitions;
mod patterns;
mod request;
mod requests;

use std::sync::OnceLock;

use serde_json::Value as Json;
use tokio::sync::Mutex;

pub(super) use self::calls::{call, calls};
pub(super) use self::hot::hot;
pub(super) use self::model::model;
use self::partitions::Cached;
pub(super) use self::partitions::partitions;
use self::patterns::Matcher;
pub(super) use self::requests::send;
use crate::built_in;
use crate::gateway::Causes;

/// The state of the explorer's routes.
pub(crate) struct Explorer {
    causes: Causes,
    /// Whether the explorer may write to the table.
    is_writable: bool,
    matcher: OnceLock<Matcher>,
    partitions: Mutex<Option<Cached>>,
}

impl Explorer {
    pub(crate) fn new(causes: Causes, is_writable: bool) -> Self {
        Self { causes, is_writable, matcher: OnceLock::new(), partitions: Mutex::default() }
    }

    /// The matcher is made at the first use, so that the start of the system takes no longer.
    fn matcher(&self) -> &Matcher {
        self.matcher.get_or_init(|| Matcher::new(&parsed(built_in::ROUTES)))
    }
}

/// Parses a file that is compiled into the program.
fn parsed(text: &str) -> Json {
    text.parse().unwrap_or_default()
}
