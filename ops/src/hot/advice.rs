//! Advice against a hot key, by the kind of its partition.
//!
//! A partition of the table or of an index allows 1,000 write units and 3,000 read units a second.
//! The capacity of the table does not change these limits. So if DynamoDB throttles only one key or
//! a few related keys, the table's capacity is not the cause.

use super::kind;

/// The kinds of partitions that many requests share, with their advice. `docs/design/hot-items.md`
/// has the maximum rates of their items.
pub const ADVICE: [(&str, &str); 17] = [
    (
        "COUNTER",
        "The splitter doubles the shards of a throttled counter within some minutes. If the counter has the \
        maximum number of shards, clients should add several units in one request.",
    ),
    (
        "PRODUCT",
        "One item counts the sales of a product, unless its stock has several shards, and one its reviews. The \
        consumer of the stream retries, so nothing is lost.",
    ),
    (
        "STOCK",
        "Busy orders and the splitter give a stock more shards within some minutes, up to 64. Before a sale, \
        `ops shards --stock PRODUCT --to 64` sets their number. A stock at a further location has one shard: adjust \
        it less often.",
    ),
    ("PICKING", "One item stores all stations. Refused messages return to the queue for a retry, so nothing is lost."),
    ("WALLET", "One wallet receives many payments. Give the payee several wallets."),
    ("ORG", "Many members join at the same time. Their clients repeat the request after the time in Retry-After."),
    ("DOC", "Many editors write one document. Split it into several documents."),
    ("METRIC", "Points are spread over shards by their ids. Send points with distinct ids, or use several metrics."),
    (
        "PLACESALES",
        "The sales of a country and month have 64 shards. The consumer of the stream retries, so nothing is \
        lost.",
    ),
    ("AUDIT", "The entries of a day are already spread over shards. Retire fewer orders at once."),
    (
        "SETTINGS",
        "Each environment of a function reads the settings only every 30 seconds. Look for a client that calls \
        GET /v1/settings in a loop.",
    ),
    (
        "CUSTOMER",
        "One customer sends these requests. Look for a client that repeats requests in a loop, and for the shop's \
        own service account.",
    ),
    (
        "STATUS",
        "Many orders change to one status at the same time. Imports should run at a lower rate. \
        `ops shards --index orders.by-status` raises the number of shards.",
    ),
    ("LOGDAY", "Staff write many notes at the same time. `ops shards --index orders.log-of-day` adds shards."),
    ("CATEGORYLIST", "The products of one category change at the same time. Imports should run at a lower rate."),
    (
        "TIER",
        "Many customers change their tier at the same time. Change them at a lower rate. \
        `ops shards --index customers.by-tier` raises the number of shards.",
    ),
    (
        "RECENTREVIEWS",
        "Many reviews arrive at the same time. Their authors repeat the request after the time in Retry-After.",
    ),
];
const OTHER: &str = "If many unrelated keys are throttled, raise MaxReadUnits and MaxWriteUnits, or the bounds of \
    `ops capacity`. Otherwise look for one client that repeats requests in a loop.";
const INVOICES: &str = "Consecutive numbers of invoices come from one item. Issue invoices at a lower rate.";

#[must_use]
pub fn advice(partition: &str) -> &'static str {
    if partition == "COUNTER#invoices" {
        return INVOICES;
    }
    let kind = kind(partition);
    ADVICE.iter().find(|(prefix, _)| *prefix == kind).map_or(OTHER, |(_, help)| help)
}
