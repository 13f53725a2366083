//! The request that opens the connection to the table when a Lambda function starts.
//!
//! The first request to the table takes longer, because it opens the connection. Without this
//! module, a client's request would wait for the connection. So before its first event, a Lambda
//! function that serves clients reads a key that no entity uses.

use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::prelude::{Request as _, patterns};
use crate::request::Get;

patterns! {
    NOTHING {
        id: "table.reach",
        purpose: "Open the connection before a client waits for it",
        request: GetItem,
        key: "PK = REACH, SK = REACH",
        returns: "nothing, because no such item is ever written",
        consistency: Consistency::Eventual,
        callers: "system",
    }
}

/// Reads the key that never has an item. The result type is `()`, because there is no result.
pub fn nothing() -> Result<Get<()>, KeyError> {
    Ok(Get::new(&NOTHING, Key { pk: PartitionKey::new("REACH")?, sk: SortKey::new("REACH")? }))
}
