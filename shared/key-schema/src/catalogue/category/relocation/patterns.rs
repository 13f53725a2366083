use item_model::prelude::*;

use crate::index::GSI2;
use crate::pattern::Consistency;

patterns! {
    GET {
        id: "category-moves.get",
        purpose: "Read the progress of a category move",
        request: GetItem,
        key: "PK = CATEGORYMOVE, SK = CATEGORYMOVE",
        returns: "the move that is under way, or the last move",
        consistency: Consistency::Strong("the next step depends on it"),
        callers: "staff",
    }
    BEGIN {
        id: "category-moves.begin",
        purpose: "Begin a category move",
        request: TransactWriteItems,
        key: "PK = CATEGORYMOVE; PK = CATEGORY#<parent>, SK = CHILD#<name>, new, and old (check)",
        requires: "no move is under way; the new node does not exist; the old node exists",
        callers: "staff",
    }
    BELOW {
        id: "category-moves.below",
        purpose: "List the children of a category that moves",
        request: Query,
        key: "PK = CATEGORY#<path>, SK under CHILD#",
        returns: "the children by name",
        consistency: Consistency::Strong("a missed category would stay without its ancestors"),
        callers: "staff",
    }
    ABOUT {
        id: "category-moves.about",
        purpose: "Read the description of a category that moves",
        request: GetItem,
        key: "PK = CATEGORY#<path>, SK = ABOUT",
        returns: "the description",
        consistency: Consistency::Strong("the move is conditional on the description that was read"),
        callers: "staff",
    }
    COPY {
        id: "category-moves.copy",
        purpose: "Create the successor of a category",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>, new and old; PK = CATEGORY#<path>, SK = \
            ABOUT, new and old; PK = CATEGORYMOVE",
        requires: "the move and its phase are unchanged; the old node exists and is not marked; the \
            description is unchanged",
        callers: "staff",
    }
    LISTED {
        id: "category-moves.products",
        purpose: "Find the products and memberships in a category that moves",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = CATEGORYLIST#<top>#<shard>, GSI2SK under <path>#",
        returns: "products and memberships in the category and its subtree",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    READ {
        id: "category-moves.read",
        purpose: "Read the products that may have to move",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#CATEGORIES, for each id",
        returns: "products and their further categories",
        consistency: Consistency::Strong("the index may lag, and the change is conditional on the \
            stored items"),
        callers: "staff",
    }
    ADD {
        id: "category-moves.add",
        purpose: "Add categories that are missing",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>, for up to 50; PK = CATEGORYMOVE",
        requires: "the move and its phase are unchanged",
        callers: "staff",
    }
    MOVE_PRODUCTS {
        id: "category-moves.place",
        purpose: "Move products",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT, for up to 25; PK = CATEGORYMOVE",
        requires: "the move and its phase are unchanged; the products are in the catalogue, at the \
            versions that were read",
        callers: "staff",
    }
    TRANSFER {
        id: "category-moves.transfer",
        purpose: "Move a product's memberships, and the product if its own category moves",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = IN#<path>, new and old, PRODUCT#CATEGORIES and PRODUCT; PK = \
            CATEGORYMOVE",
        requires: "the move and its phase are unchanged; the product's version and its list of \
            further categories are unchanged",
        callers: "staff",
    }
    CLEAR {
        id: "category-moves.clear",
        purpose: "Remove a category that has moved",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>; PK = CATEGORY#<path>, SK = ABOUT (check); \
            PK = CATEGORYMOVE",
        requires: "the move and its phase are unchanged; the node is marked and has no description",
        callers: "staff",
    }
    KEEP {
        id: "category-moves.keep",
        purpose: "Keep a category that is still in use",
        request: TransactWriteItems,
        key: "PK = CATEGORY#<parent>, SK = CHILD#<name>; PK = CATEGORYMOVE",
        requires: "the move and its phase are unchanged; the node exists",
        callers: "staff",
    }
    ADVANCE {
        id: "category-moves.advance",
        purpose: "Begin the next phase of a move, or record its progress",
        request: UpdateItem,
        key: "PK = CATEGORYMOVE, SK = CATEGORYMOVE",
        requires: "the move and its phase are unchanged",
        callers: "staff",
    }
}
