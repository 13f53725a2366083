//! Converts wallets that earlier releases opened in another currency than the shop's.

use http_api::{Problem, Services};
use key_schema::wallet::{self, Wallet};

/// Converts a wallet that an earlier release opened in another currency, and returns `true`. Then
/// the caller repeats its movement, even if another request has converted the wallet first. Returns
/// `false` for any other wallet.
pub async fn converted(services: &Services, wallet: &Wallet) -> Result<bool, Problem> {
    let Some(write) = wallet::convert(wallet)? else { return Ok(false) };
    let _ = services.table.write(&write).await?;
    Ok(true)
}
