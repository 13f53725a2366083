//! Money, and the wallets that hold it.

pub mod money;
pub mod wallet;
