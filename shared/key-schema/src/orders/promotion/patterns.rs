use item_model::prelude::*;

use crate::pattern::Consistency;

patterns! {
    FIND {
        id: "promotions.find",
        purpose: "Find the promotions of the codes that a customer entered",
        request: BatchGetItem,
        key: "PK = PROMOTIONCODE#<folded code>, SK = PROMOTIONCODE, for each code; PK = \
            QUOTA#<customer hash>, SK = DAY#<day>",
        returns: "the claims on the codes, and the customer's counts of the day",
        consistency: Consistency::Strong("a customer may enter a code right after its creation, and \
            the count of unknown codes must be current"),
        callers: "owner",
    }
    UNKNOWN_CODES {
        id: "promotions.unknown-codes",
        purpose: "Count the unknown codes that a customer entered",
        request: UpdateItem,
        key: "PK = QUOTA#<customer hash>, SK = DAY#<day>",
        requires: "the customer has entered fewer unknown codes on the day than the quota; ADD their \
            number",
        callers: "owner",
    }
    READ {
        id: "promotions.read",
        purpose: "Read the promotions of codes, and the uses of promotions with a limit",
        request: BatchGetItem,
        key: "PK = PROMOTIONS, SK = PROMOTION#<id>, for each code; PK = PROMOTION#<id>, SK = USES \
            and USE#<customer hash>, for each promotion",
        returns: "promotions, uses by all customers, uses by this customer",
        consistency: Consistency::Strong("a customer may enter a code right after its creation, and \
            an outdated count would refuse a code that an order has given back"),
        callers: "owner",
    }
    LEASES {
        id: "promotions.leases",
        purpose: "Read the uses of a hot promotion in its head and its shards",
        request: BatchGetItem,
        key: "PK = PROMOTION#<id>, SK = USES; PK = PROMOTION#<id>#<shard>, SK = USES, for each shard",
        returns: "uses by all customers, and uses that the shards have left",
        consistency: Consistency::Strong("an order is refused only if no shard has a use left"),
        callers: "owner",
    }
    LEASE {
        id: "promotions.lease",
        purpose: "Give a shard of a promotion uses, or take them back after a change of the limit",
        request: TransactWriteItems,
        key: "PK = PROMOTION#<id>, SK = USES; PK = PROMOTION#<id>#<shard>, SK = USES, for one or each shard",
        requires: "the promotion has the limit that was read, and enough uses; the shards are unchanged",
        callers: "owner",
    }
    SPENT {
        id: "promotions.spent",
        purpose: "Record that no shard of a promotion has a use left",
        request: UpdateItem,
        key: "PK = PROMOTION#<id>, SK = USES",
        requires: "the uses are unchanged",
        callers: "owner",
    }
    GET {
        id: "promotions.get",
        purpose: "Read one promotion with its uses",
        request: BatchGetItem,
        key: "PK = PRICING, SK = PROMOTION#<id>; PK = PROMOTIONS, SK = PROMOTION#<id>; PK = \
            PROMOTION#<id>, SK = USES",
        returns: "the promotion and its uses",
        consistency: Consistency::Strong("staff read the promotion right after they change it"),
        callers: "staff",
    }
    LIST {
        id: "promotions.list",
        purpose: "List all promotions",
        request: ShardedQuery,
        key: "PK = PRICING or PROMOTIONS, SK under PROMOTION#",
        returns: "promotions, by id",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    USES {
        id: "promotions.uses",
        purpose: "Read the uses of listed promotions",
        request: BatchGetItem,
        key: "PK = PROMOTION#<id>, SK = USES, for each id",
        returns: "uses by all customers",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    CREATE {
        id: "promotions.create",
        purpose: "Create a promotion",
        request: TransactWriteItems,
        key: "PK = PRICING or PROMOTIONS, SK = PROMOTION#<id>; PK = PROMOTION#<id>, SK = USES; PK = \
            PROMOTIONCODE#<folded code>, or PK = PRICING, SK = PRICING for an automatic promotion; PK \
            = IDEMPOTENCY#<caller>#<key>",
        requires: "neither the promotion nor its uses nor the code exist; the head of pricing is \
            unchanged since it was read; the idempotency key is free",
        callers: "staff",
    }
    CHANGE {
        id: "promotions.change",
        purpose: "Change a promotion and its limit",
        request: TransactWriteItems,
        key: "PK = PRICING or PROMOTIONS, SK = PROMOTION#<id>; PK = PROMOTION#<id>, SK = USES",
        requires: "version = the If-Match",
        callers: "staff",
    }
    DELETE {
        id: "promotions.delete",
        purpose: "Delete a promotion; its uses stay",
        request: TransactWriteItems,
        key: "PK = PRICING or PROMOTIONS, SK = PROMOTION#<id>; PK = PROMOTION#<id>, SK = USES; PK = \
            PROMOTIONCODE#<folded code>, or PK = PRICING, SK = PRICING for an automatic promotion",
        requires: "version = the If-Match; the code belongs to the promotion; the head of pricing is \
            unchanged since it was read",
        callers: "staff",
    }
}
