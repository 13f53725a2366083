use item_model::prelude::*;

use crate::index::GSI1;
use crate::pattern::Consistency;

patterns! {
    AVAILABLE {
        id: "orders.available",
        purpose: "Check the stock of every line of a large order",
        request: BatchGetItem,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK, for each line",
        returns: "stocks",
        consistency: Consistency::Strong("a refusal names every line without enough stock, not \
            only the lines of one transaction"),
        callers: "owner",
    }
    BEGIN {
        id: "orders.begin",
        purpose: "Begin a large order: an invisible head, and its claims",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER; PK = NUMBER#<number>; PK = REFERENCE#…; PK = IDEMPOTENCY#…; PK = \
            CUSTOMER#<id>, SK = PROFILE (check) and, for a customer's order, OPEN; PK = \
            PROMOTION#<id>, SK = USES and USE#<customer hash>, for each promotion with a limit",
        requires: "number, reference and idempotency key are free; the customer exists; the open orders \
            are unchanged; the uses of each promotion are below their limits",
        callers: "owner",
    }
    RESERVE {
        id: "orders.reserve",
        purpose: "Reserve some lines of a large order",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, ITEM#<line>; PK = STOCK#<id>#<location>#<shard>, SK = STOCK",
        requires: "the head is placing, at the rev that was read; every stock has enough pieces, \
            is for sale and belongs to the product that was read",
        callers: "owner",
    }
    COMMIT {
        id: "orders.commit",
        purpose: "Make a large order visible",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…; PK = CUSTOMER#<id>, SK = ORDER#<id>, PROFILE \
            (check), SHIPTO#<id>; PK = CART#<id>",
        requires: "the head is placing, at the rev that was read; the customer exists; the cart is \
            unchanged",
        callers: "owner",
    }
    UNDO {
        id: "orders.undo",
        purpose: "Undo a large order that could not be placed",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, ITEM#<line>; PK = STOCK#<id>#<location>#<shard>, SK = STOCK; at \
            last PK = NUMBER#<number>; PK = REFERENCE#…; PK = IDEMPOTENCY#…; PK = CUSTOMER#<id>, SK = OPEN; PK = \
            PROMOTION#<id>, SK = USES and USE#<customer hash>",
        requires: "the head is placing, at the rev that was read; the claims are this order's; \
            stock returns only to the product that was ordered (same born)",
        callers: "owner",
    }
    GIVE_BACK {
        id: "orders.give-back",
        purpose: "Return the rest of a large order's stock",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER; PK = STOCK#<id>#<location>#<shard>, SK = STOCK",
        requires: "the count of returned lines is unchanged; stock returns only to the product \
            that was ordered (same born)",
        callers: "owner",
    }
    UNFINISHED {
        id: "orders.unfinished",
        purpose: "Find the orders with unfinished work",
        request: ShardedQuery on GSI1,
        key: "GSI1PK = UNFINISHED#<shard>, GSI1SK up to <since>",
        returns: "orders, the oldest work first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
}
