//! Measures the wallets of two customers.

use key_schema::id::EntryId;
use key_schema::idempotency::{self, StoredResponse};
use key_schema::money::Currency;
use key_schema::request::Guarded;
use key_schema::wallet::{self, EntryKind, Transfer, WalletEntry};

use super::Bench;
use crate::data::{self, at, customer_id, usd};

/// Returns the claim of an idempotency key, with a stored response as long as the response to a
/// wallet movement.
fn claim(number: u8) -> Guarded {
    let mut record = data::record(number);
    record.data.scope.key = format!("wallet-{number}");
    record.data.answer = StoredResponse::Body { status: 201, body: "x".repeat(320) };
    idempotency::claim(&record, at(0)).unwrap()
}

fn entry_id(number: u8) -> EntryId {
    EntryId::generate(at(400 + i64::from(number)), [number; 10])
}

fn deposit(number: u8) -> WalletEntry {
    WalletEntry {
        customer_id: customer_id(1),
        id: entry_id(number),
        amount: 5_000,
        currency: Currency::USD,
        kind: EntryKind::Deposit,
        at: at(400),
        counterparty: None,
        order_id: None,
        note: Some("gift card".to_owned()),
    }
}

fn transfer(number: u8) -> Transfer {
    Transfer {
        id: entry_id(number),
        from: customer_id(1),
        to: customer_id(2),
        money: usd(100),
        note: Some("for the ice".to_owned()),
        at: at(400),
    }
}

pub async fn measure(bench: &mut Bench) {
    let id = customer_id(1);
    bench.transact("a deposit that opens the wallet", wallet::deposit(&deposit(1), None, claim(1)).unwrap()).await;
    let seen = bench.get("one wallet", wallet::read_for_update(&id).unwrap()).await;
    bench
        .transact("a deposit into an existing wallet", wallet::deposit(&deposit(2), Some(&seen), claim(2)).unwrap())
        .await;
    for number in 3..=25 {
        let moved = wallet::transfer(&transfer(number), claim(number), true).unwrap();
        match number {
            3 => bench.transact("a transfer that opens the receiver's wallet", moved).await,
            4 => bench.transact("between two wallets", moved).await,
            _ => bench.table.transact(&moved).await.unwrap().unwrap(),
        }
    }
    let _ = bench.table.meter().take();
    bench.batch_get("customer and wallet", wallet::read(&id).unwrap()).await;
    bench.query("a page of 20", 20, wallet::entries(&id).unwrap().limit(20)).await;
}
