//! The access patterns of the lists of orders, and of orders small enough for one transaction.

use item_model::prelude::*;

use crate::index::{GSI1, GSI2, GSI3};
use crate::pattern::Consistency;

patterns! {
    PREPARE {
        id: "orders.prepare",
        purpose: "Read everything that placing an order needs",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE; for a customer's order PK = CUSTOMER#<id>, SK = \
            OPEN, and PK = PRICING, SK = PRICING; PK = IDEMPOTENCY#<caller>#<key>; PK = PRODUCT#<id>, \
            SK = PRODUCT, for each line",
        returns: "customer, open orders, number of pricing rules, stored response, products",
        consistency: Consistency::Strong("a retry must see the effect of the first attempt"),
        callers: "owner",
    }
    PLACE {
        id: "orders.place",
        purpose: "Place an order: head, lines, history, copy, stock, all or nothing",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…, ITEM#<line>; PK = CUSTOMER#<id>, SK = \
            ORDER#<id>; PK = STOCK#<id>#<location>#<shard>, SK = STOCK; PK = NUMBER#<number>; PK = \
            REFERENCE#…; PK = IDEMPOTENCY#…; PK = CUSTOMER#<id>, SK = PROFILE (check), \
            SHIPTO#<id> and, for a customer's order, OPEN; PK = CART#<id>, GUESTCART#<id> or CHECKOUT#<id>; PK = PROMOTION#<id>, \
            SK = USES and USE#<customer hash>, for each promotion with a limit",
        requires: "every stock has enough pieces, is for sale and belongs to the product that was \
            read; number, reference and idempotency key are free; the customer exists and no erasure has \
            begun; open orders and cart are unchanged; the uses of each promotion are below their \
            limits",
        callers: "owner",
    }
    GET {
        id: "orders.get",
        purpose: "Read an order with its lines, history and payments in one request",
        request: Query,
        key: "PK = ORDER#<id>",
        returns: "lines, head, history, payments with operations",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    EDIT {
        id: "orders.edit",
        purpose: "Read an order before its status changes, or to answer a repeated request",
        request: Query,
        key: "PK = ORDER#<id>",
        returns: "lines, head, history, payments with operations",
        consistency: Consistency::Strong("the next step depends on the order's present state"),
        callers: "owner",
    }
    LINES {
        id: "orders.lines",
        purpose: "Read an order's lines alone",
        request: Query,
        key: "PK = ORDER#<id>, SK under ITEM#",
        returns: "lines",
        consistency: Consistency::Strong("a missed line would make sales or limits wrong"),
        callers: "owner",
    }
    HEAD {
        id: "orders.head",
        purpose: "Read an order's head",
        request: GetItem,
        key: "PK = ORDER#<id>, SK = ORDER",
        returns: "the head",
        consistency: Consistency::Strong("a stream record may be older than the stored head"),
        callers: "owner",
    }
    MOVE {
        id: "orders.move",
        purpose: "Change an order's status: head, list, history, copy, stock, payment, money",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…; PK = CUSTOMER#<id>, SK = ORDER#<id>; PK = \
            STOCK#<id>#<location>#<shard>, SK = STOCK when stock returns; PK = CUSTOMER#<id>, SK = OPEN \
            when a customer's order leaves pending; PK = ORDER#<id>, SK = TENDER#<payment> and \
            TENDER#<payment>#<operation> when money moves; PK = WALLET#<customer>, SK = WALLET and ENTRY#<entry> when the \
            wallet pays or gets a refund; PK = PROMOTION#<id>, SK = USES and USE#<customer hash> \
            when an order with promotions is cancelled; PK = CHECKOUT#<id>, SK = CHECKOUT when an agent's \
            checkout is open again",
        requires: "version = the If-Match; the payments are new or unchanged; the wallet \
            has enough money; stock returns only to the \
            product that was ordered (same born)",
        callers: "owner",
    }
    LAPSE {
        id: "orders.lapse",
        purpose: "Cancel a pending order that has lapsed",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…; PK = CUSTOMER#<id>, SK = ORDER#<id> and, for \
            a customer's order, OPEN; PK = STOCK#<id>#<location>#<shard>, SK = STOCK; PK = PROMOTION#<id>, SK = \
            USES and USE#<customer hash>; PK = ORDER#<id>, SK = TENDER#<payment> and \
            TENDER#<payment>#<operation>, and PK = WALLET#<customer>, SK = WALLET and ENTRY#<entry>, when \
            money goes back",
        requires: "version = the version that was read; pending and due; stock returns only to the \
            product that was ordered (same born)",
        callers: "system",
    }
    REVIVE {
        id: "orders.revive",
        purpose: "Take the stock of a lapsed order again, because its payment arrived late",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…; PK = CUSTOMER#<id>, SK = ORDER#<id>; PK = \
            STOCK#<id>#<location>#<shard>, SK = STOCK; PK = ORDER#<id>, SK = TENDER#<payment> and \
            TENDER#<payment>#<operation>",
        requires: "version = the version that was read; lapsed, with captured payments of the whole total; \
            every stock has enough pieces, is for sale and belongs to the product that was ordered",
        callers: "system",
    }
    OF_CUSTOMER {
        id: "orders.of-customer",
        purpose: "List a customer's orders by date",
        request: Query,
        key: "PK = CUSTOMER#<id>, SK between ORDER#<from> and ORDER#<to>, backward",
        returns: "order copies, newest first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    EARLIER {
        id: "orders.earlier",
        purpose: "Find out whether a customer has an earlier order",
        request: Query,
        key: "PK = CUSTOMER#<id>, SK under ORDER#, backward",
        returns: "order copies, newest first",
        consistency: Consistency::Strong("a promotion for first orders must not apply to a later order"),
        callers: "owner",
    }
    BY_STATUS {
        id: "orders.by-status",
        purpose: "List orders by status and date",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = STATUS#<status>#<shard>, GSI2SK between <from> and <to>$, backward",
        returns: "order summaries, newest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    SHIPMENTS {
        id: "orders.shipments",
        purpose: "List a customer's shipments",
        request: Query on GSI3,
        key: "GSI3PK = SHIPPED#<customer>, GSI3SK between <since> and the end, backward",
        returns: "shipped orders, newest shipment first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    REFERENCE {
        id: "orders.reference",
        purpose: "Find the order with a given reference, for a customer who may place no further \
            order",
        request: GetItem,
        key: "PK = REFERENCE#<reference>#<customer>, SK = REFERENCE",
        returns: "the claim on the reference",
        consistency: Consistency::Strong("a repeated request must find the order of the first \
            request"),
        callers: "owner",
    }
    NUMBER {
        id: "orders.number",
        purpose: "Find the order with a given number",
        request: GetItem,
        key: "PK = NUMBER#<number>, SK = NUMBER",
        returns: "the claim on the number",
        consistency: Consistency::Strong("staff may ask for the number of an order that was just placed"),
        callers: "staff",
    }
    RETIRE {
        id: "orders.retire",
        purpose: "Retire a closed order: head, lines, history, payments and copy get a time to live",
        request: TransactWriteItems,
        key: "PK = ORDER#<id>, SK = ORDER, STATUS#…, ITEM#<line>, TENDER#<payment>, \
            TENDER#<payment>#<operation>; PK = CUSTOMER#<id>, SK = ORDER#<id>",
        requires: "version = the version that was read; the order is closed",
        callers: "system",
    }
    ADD_LOG {
        id: "orders.add-log",
        purpose: "Add to an order's log",
        request: TransactWriteItems,
        key: "PK = LOG#<id>, SK = LOG; PK = ORDER#<order>, SK = ORDER (check)",
        requires: "the log line does not exist; the order exists, is not placing and has not \
            expired",
        callers: "staff",
    }
    LOG {
        id: "orders.log",
        purpose: "Read an order's log",
        request: Query on GSI1,
        key: "GSI1PK = ORDERLOG#<order>, GSI1SK = <at>#<id>",
        returns: "log lines, oldest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
}
