pub mod webhook_delivery;
pub mod webhook_endpoint;
pub mod webhook_secret;

use crate::pattern::Pattern;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[webhook_endpoint::PATTERNS, webhook_delivery::PATTERNS];
