use item_model::prelude::*;

use crate::index::{GSI1, GSI2};
use crate::pattern::Consistency;

patterns! {
    CREATE {
        id: "customers.create",
        purpose: "Create a customer and claim the verified email and the user name",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<id>, SK = PROFILE; PK = EMAIL#<folded>; PK = USERNAME#<folded>",
        requires: "the profile does not exist; no other customer has the names; only a verified \
            address has an item EMAIL#…",
        callers: "owner",
    }
    GET {
        id: "customers.get",
        purpose: "Read a customer",
        request: GetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE",
        returns: "the profile",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    EDIT {
        id: "customers.edit",
        purpose: "Read a customer before a change of unique names or an erasure, and after a \
            verification",
        request: GetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE",
        returns: "the profile",
        consistency: Consistency::Strong("the next change compares the new names with the stored \
            names"),
        callers: "owner",
    }
    UPDATE {
        id: "customers.update",
        purpose: "Change a customer",
        request: UpdateItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE",
        requires: "version = the If-Match; no erasure has begun",
        callers: "owner",
    }
    RENAME {
        id: "customers.rename",
        purpose: "Change the email address or the user name, together with its claim",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<id>, SK = PROFILE; old and new EMAIL#…, USERNAME#…",
        requires: "version = the If-Match; born is unchanged; no erasure has begun; the new names \
            are free; the old claims are this customer's; only a verified address has an item \
            EMAIL#…",
        callers: "owner",
    }
    BEGIN_ERASURE {
        id: "customers.begin-erasure",
        purpose: "Begin an erasure, so that the customer gets no further items",
        request: UpdateItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE",
        requires: "version = the If-Match; born is unchanged; SET erasing_since",
        callers: "owner",
    }
    DELETE {
        id: "customers.delete",
        purpose: "Erase a customer, free the names, and write an `Erasure`",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<id>, SK = PROFILE, VERIFICATION; EMAIL#… of a verified address; \
            USERNAME#…; ERASURE#<id>",
        requires: "version = the If-Match; born is unchanged; the claims are this customer's",
        callers: "owner",
    }
    PUT_ADDRESS {
        id: "customers.put-address",
        purpose: "Set one address without touching the others",
        request: UpdateItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE",
        requires: "the customer exists and no erasure has begun; the profile has this address or \
            room for another address; SET addresses.<name>",
        callers: "owner",
    }
    REMOVE_ADDRESS {
        id: "customers.remove-address",
        purpose: "Remove one address",
        request: UpdateItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE",
        requires: "the profile has this address; no erasure has begun; REMOVE addresses.<name>",
        callers: "owner",
    }
    BY_EMAIL {
        id: "customers.by-email",
        purpose: "Find the customer who has verified an email address",
        request: GetItem,
        key: "PK = EMAIL#<folded>, SK = EMAIL",
        returns: "the claim, which names the customer",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    BY_TIER {
        id: "customers.by-tier",
        purpose: "List the customers of a tier",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = TIER#<tier>#<shard>, GSI2SK = <created_at>#<id>",
        returns: "ids, oldest customer first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    ALL {
        id: "customers.all",
        purpose: "List all customers",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = TIER#<tier>#<shard> for every tier, GSI2SK = <created_at>#<id>",
        returns: "ids, oldest customer first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    ERASING {
        id: "customers.erasing",
        purpose: "Find the customers whose erasure is not finished",
        request: ShardedQuery on GSI1,
        key: "GSI1PK = ERASING#<shard>, GSI1SK up to <erasing_since>",
        returns: "ids, the oldest erasure first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
    HYDRATE {
        id: "customers.hydrate",
        purpose: "Read the profiles of the customers on a page",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE, for each id",
        returns: "the profiles",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    DATA_PARTS {
        id: "customers.data-parts",
        purpose: "Read the single items of a copy of a customer's data, and the items of its lists",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE, OPEN, CUSTOMER#INVITATIONS; PK = CART#<id>, SK = CART; \
            PK = WALLET#<id>, SK = WALLET; PK = PRODUCT#<product>, SK = REVIEW#<id>; PK = \
            CUSTOMER#<follower>, SK = FOLLOWS#<id>; PK = ORG#<organization>, SK = MEMBER#<id>; PK = \
            DOC#<document>, SK = DOC; PK = INVOICE#<number>, SK = INVOICE",
        returns: "the items",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    COUNT_DATA_PAGE {
        id: "customers.count-data-page",
        purpose: "Count a page of a copy of a customer's data",
        request: UpdateItem,
        key: "PK = QUOTA#<customer hash>, SK = DAY#<day>",
        requires: "the customer has read fewer pages on the day than the quota; ADD 1",
        callers: "owner",
    }
    OVERVIEW {
        id: "customers.overview",
        purpose: "Read the profile and the newest orders in one request",
        request: Query,
        key: "PK = CUSTOMER#<id>, SK between ORDER# and PROFILE, backward",
        returns: "the profile, then the newest 20 orders",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
}
