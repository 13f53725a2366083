//! What a function asks for as it starts: nothing.
//!
//! The first request to the table pays for the connection, most of all for the handshake of TLS, and a client waits for it. A function that answers
//! clients therefore reads, before it takes its first event, one item that is never there. The key has no part that could name anything else, and no entity has it.

use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::Get;

patterns! {
    NOTHING = "table.reach": GetItem, "PK = REACH, SK = REACH" => "nothing: no such item is ever written", Consistency::Eventual, "system", "Open the connection before a client waits for it", ["start"];
}

/// Asks for the item that is not there. It has no type, so that it cannot be read as anything either.
///
/// # Errors
/// [`KeyError`].
pub fn nothing() -> Result<Get<()>, KeyError> {
    Ok(Get::new(&NOTHING, Key { pk: PartitionKey::new("REACH")?, sk: SortKey::new("REACH")? }))
}
