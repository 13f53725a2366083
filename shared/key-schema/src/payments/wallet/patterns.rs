use item_model::prelude::*;

use crate::pattern::Consistency;

patterns! {
    READ {
        id: "wallet.read",
        purpose: "Read a balance",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE; PK = WALLET#<id>, SK = WALLET",
        returns: "the customer, and the wallet if it was opened",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    EDIT {
        id: "wallet.edit",
        purpose: "Read a balance before a deposit",
        request: GetItem,
        key: "PK = WALLET#<id>, SK = WALLET",
        returns: "the wallet",
        consistency: Consistency::Strong("the response reports the balance computed from the one \
            that was read, on condition that it is unchanged"),
        callers: "staff",
    }
    ENTRIES {
        id: "wallet.entries",
        purpose: "List the movements of a wallet",
        request: Query,
        key: "PK = WALLET#<id>, SK under ENTRY#, backward",
        returns: "the movements, newest first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    DEPOSIT {
        id: "wallet.deposit",
        purpose: "Pay money into a wallet, only once for each idempotency key",
        request: TransactWriteItems,
        key: "PK = WALLET#<id>, SK = WALLET and ENTRY#<entry>; PK = CUSTOMER#<id>, SK = PROFILE \
            (check); PK = IDEMPOTENCY#<caller>#<key>",
        requires: "the balance in the money's currency is unchanged; the customer exists; the \
            entry and the key are new",
        callers: "staff",
    }
    TRANSFER {
        id: "wallet.transfer",
        purpose: "Move money from one wallet to another, only once for each idempotency key",
        request: TransactWriteItems,
        key: "PK = WALLET#<from> and WALLET#<to>, SK = WALLET and ENTRY#<entry>; PK = \
            CUSTOMER#<from> and CUSTOMER#<to>, SK = PROFILE (check); PK = \
            IDEMPOTENCY#<caller>#<key>; for a customer PK = QUOTA#<customer hash>, SK = DAY#<day>",
        requires: "the payer's wallet has enough money of the currency; the receiver's \
            balance stays within its limit; both customers exist; the entries and the key are new; \
            the payer has made fewer transfers on the day than the quota; ADD 1 to its counter",
        callers: "owner",
    }
}
