use item_model::prelude::*;

use crate::index::GSI2;
use crate::pattern::Consistency;

patterns! {
    CREATE {
        id: "products.create",
        purpose: "Create a product with its stock and the missing categories",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = STOCK#<id>#<location>#<shard>, SK = STOCK; PK = \
            CATEGORY#<parent>, SK = CHILD#<name>, for each missing node",
        requires: "product and stock do not exist",
        callers: "staff",
    }
    CREATE_MANY {
        id: "products.create-many",
        purpose: "Create the new products of an import",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = STOCK#<id>#<location>#<shard>, SK = STOCK; for up to \
            50 products",
        requires: "the products and stocks do not exist",
        callers: "staff",
    }
    REVIVE {
        id: "products.revive",
        purpose: "Bring a retired product back under its id",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = STOCK#<id>#<location>#<shard>, SK = STOCK; PK = \
            CATEGORY#<parent>, SK = CHILD#<name>, for each missing node",
        requires: "the product is retired, at the version that was read",
        callers: "staff",
    }
    PAGE {
        id: "products.page",
        purpose: "Read what a product page shows, except stock and content",
        request: Query,
        key: "PK = PRODUCT#<id>, SK between PRODUCT and PRODUCT$",
        returns: "the product, its further categories, sales, review statistics and variants",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    EDIT {
        id: "products.edit",
        purpose: "Read a product to revive it, or to explain a refused change",
        request: GetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT",
        returns: "the product",
        consistency: Consistency::Strong("the explanation of a refusal must match the stored \
            product"),
        callers: "staff",
    }
    MANY {
        id: "products.many",
        purpose: "Read the products that an import names",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT, for each id",
        returns: "the products",
        consistency: Consistency::Strong("an import compares its rows with the stored products"),
        callers: "staff",
    }
    BY_IDS {
        id: "products.by-ids",
        purpose: "Read products by their ids, or those of a page of a category",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT, for each id",
        returns: "the products, which may be retired",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    UPDATE {
        id: "products.update",
        purpose: "Change a product, and also its index key if the category changes",
        request: UpdateItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT",
        requires: "in the catalogue, version = the If-Match",
        callers: "staff",
    }
    RETIRE {
        id: "products.retire",
        purpose: "Take a product out of the catalogue",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = STOCK#<id>#<location>#<shard>, SK = STOCK",
        requires: "in the catalogue, version = the If-Match; no variant, and no parent of variants",
        callers: "staff",
    }
    SET_STOCK {
        id: "stock.set",
        purpose: "Set a stock",
        request: UpdateItem,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK",
        requires: "the stock is sellable and has one shard",
        callers: "staff",
    }
    SET_SHARDS {
        id: "stock.set-shards",
        purpose: "Set a stock that has several shards",
        request: TransactWriteItems,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK, for each shard",
        requires: "the stock is sellable and has the number of shards that was read",
        callers: "staff",
    }
    GROW {
        id: "stock.grow",
        purpose: "Give a stock more shards, with pieces of the first one",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = SHARDEDSTOCKS, SK = STOCK#<id>#<location>; PK = \
            STOCK#<id>#<location>#<shard>, SK = STOCK, for the first shard and each new one",
        requires: "the product is in the catalogue; the stock has the number of shards that was read; the \
            first shard has the pieces that it gives; the list shows no later change, unless staff ask",
        callers: "staff",
    }
    MOVE_PIECES {
        id: "stock.level",
        purpose: "Move pieces between two shards of a stock",
        request: TransactWriteItems,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK, for both shards",
        requires: "the first shard has the pieces; the second one exists",
        callers: "staff",
    }
    MERGE {
        id: "stock.merge",
        purpose: "Merge shards of a stock",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = SHARDEDSTOCKS, SK = STOCK#<id>#<location>; PK = \
            STOCK#<id>#<location>#<shard>, SK = STOCK, for each shard that gives or gets pieces",
        requires: "the product is in the catalogue; the stock has the number of shards that was read; a \
            shard that ends has the number of pieces that was read; the list shows no later change, unless \
            staff ask",
        callers: "staff",
    }
    UNLIST {
        id: "stock.unlist",
        purpose: "Take a stock out of the list of stocks with several shards",
        request: DeleteItem,
        key: "PK = SHARDEDSTOCKS, SK = STOCK#<id>#<location>",
        requires: "the entry is unchanged",
        callers: "system",
    }
    LIST_SHARDED {
        id: "stock.sharded",
        purpose: "List the stocks that have, or had within an hour, several shards",
        request: Query,
        key: "PK = SHARDEDSTOCKS, SK under STOCK#",
        returns: "the number of shards of each stock, by product",
        consistency: Consistency::Eventual,
        callers: "system",
    }
    READ_SHARDS {
        id: "stock.shards",
        purpose: "Read the further shards of a stock",
        request: BatchGetItem,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK, for each shard but the first",
        returns: "the shards",
        consistency: Consistency::Strong("an order is refused only if all shards together have too few \
            pieces"),
        callers: "any",
    }
    ADJUST_STOCK {
        id: "stock.adjust",
        purpose: "Adjust a stock, only once for each idempotency key",
        request: TransactWriteItems,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK, for the first shard and each that gives \
            pieces; PK = IDEMPOTENCY#<caller>#<key>",
        requires: "the stock is sellable and has the number of shards that was read; a single shard is \
            unchanged, several shards have the removed pieces; the key is new",
        callers: "staff",
    }
    SET_STOCK_AT {
        id: "stock.set-at",
        purpose: "Set the stock of a product at a further location",
        request: TransactWriteItems,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK; PK = PRODUCT#<id>, SK = PRODUCT (check)",
        requires: "the product is in the catalogue, and is no parent unless the stock is set to 0",
        callers: "staff",
    }
    ADJUST_STOCK_AT {
        id: "stock.adjust-at",
        purpose: "Adjust a stock at a further location, only once for each idempotency key",
        request: TransactWriteItems,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK; PK = PRODUCT#<id>, SK = PRODUCT (check); PK = \
            IDEMPOTENCY#<caller>#<key>",
        requires: "the product is in the catalogue, and is no parent unless pieces are removed; the stock is \
            unchanged; the key is new",
        callers: "staff",
    }
    READ_STOCK_AT {
        id: "stock.get-at",
        purpose: "Read the stock of a product at a location, with the product and the location",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT; PK = LOCATIONS, SK = LOCATION#<location>; PK = \
            STOCK#<id>#<location>#<shard>, SK = STOCK",
        returns: "the product, the location and the stock",
        consistency: Consistency::Strong("a write follows, and an adjustment is conditional on it"),
        callers: "staff",
    }
    SHOW_STOCK {
        id: "stock.show",
        purpose: "Read the stock that a product page shows",
        request: GetItem,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK",
        returns: "the stock",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    READ_STOCK {
        id: "stock.get",
        purpose: "Read a stock before adjusting it",
        request: GetItem,
        key: "PK = STOCK#<id>#<location>#<shard>, SK = STOCK",
        returns: "the stock",
        consistency: Consistency::Strong("the adjustment is computed from it and conditional on it"),
        callers: "staff",
    }
    GET_CONTENT {
        id: "content.get",
        purpose: "Read a product's long description",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and CONTENT",
        returns: "the product, which may be retired, and the content",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    PUT_CONTENT {
        id: "content.put",
        purpose: "Write a product's long description",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = CONTENT; SK = PRODUCT (check); SK = OBJECT#<id> of the \
            previous and the new object",
        requires: "the content does not exist, or version = the If-Match; the product is in the \
            catalogue; the `UnsettledObject` of a new object exists",
        callers: "staff",
    }
    IN_CATEGORY {
        id: "categories.products",
        purpose: "List the products of a category",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = CATEGORYLIST#<top>#<shard>, GSI2SK under <path>#",
        returns: "products of a category and of all categories below it, by category and id",
        consistency: Consistency::Eventual,
        callers: "any",
    }
}
