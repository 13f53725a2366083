//! Money, the wallets that hold it, and the payments of orders.

pub mod money;
pub mod payment;
pub mod wallet;
