//! The techniques of the chapter "Change data capture".

use super::Technique;

pub(super) const TECHNIQUES: &[Technique] = &[
    Technique {
        id: "S1",
        what: "A search index that always converges to the table",
        entities: &["Product", "Order"],
        patterns: &[],
        tests: &[
            "case_40_everything_equals_the_table_after_long_random_schedules_with_faults",
            "case_11_a_batch_that_is_delivered_twice_leaves_the_same_index",
        ],
    },
    Technique {
        id: "S2",
        what: "Status changes are detected by comparing the old and new image, and are sent to every subscriber",
        entities: &["Order"],
        patterns: &["marks.known", "marks.keep"],
        tests: &[
            "a_status_change_is_an_event_with_both_statuses_and_an_unchanged_status_is_no_event",
            "an_order_reaches_the_bus_and_its_subscribers_before_a_drain_ends",
        ],
    },
    Technique {
        id: "S3",
        what: "One confirmation for each new order",
        entities: &["Order", "Mail"],
        patterns: &["mail.claim", "mail.settle"],
        tests: &["a_new_order_a_payment_and_a_shipment_each_cause_one_mail"],
    },
    Technique {
        id: "S4",
        what: "An audit with one entry for each expired item",
        entities: &["Expiration"],
        patterns: &["audit.record"],
        tests: &["an_expired_session_is_archived_and_audited_once_and_an_ended_session_is_not"],
    },
    Technique {
        id: "S5",
        what: "Exact sums from the stream, even if records are repeated or reordered",
        entities: &["Sale", "PlaceSales", "ProductSales"],
        patterns: &["sales.apply", "sales.derived"],
        tests: &[
            "case_37_counters_are_exact_when_records_are_repeated_and_reordered",
            "each_line_of_an_order_of_161_lines_is_counted_once_despite_a_crash",
        ],
    },
    Technique {
        id: "S6",
        what: "Copies that follow their source",
        entities: &["Membership", "Product"],
        patterns: &["memberships.refresh", "products.copy-stock", "products.copy-rating"],
        tests: &["case_11_and_13_copies_end_at_the_newest_state_after_repetitions_and_reordering"],
    },
    Technique {
        id: "S7",
        what: "At-least-once delivery: partial batch responses, poison records in quarantine, replay",
        entities: &[],
        patterns: &[],
        tests: &["case_09_a_malformed_record_is_quarantined_alone", "case_36_a_repeated_redrive_keeps_a_newer_update"],
    },
    Technique {
        id: "S8",
        what: "Hand-off for analytics: every event on a bus with an archive",
        entities: &[],
        patterns: &[],
        tests: &["an_event_reaches_only_the_targets_of_matching_rules", "the_bus_has_an_archive_of_every_event"],
    },
    Technique {
        id: "S9",
        what: "A cache of the settings that shows a change within a stated time",
        entities: &["Settings"],
        patterns: &["settings.read"],
        tests: &["a_function_sees_its_own_change_at_once_and_other_functions_see_it_within_the_stated_time"],
    },
];
