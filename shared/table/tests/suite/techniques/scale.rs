//! The techniques of the chapter "Time, scale and cost".

use super::Technique;

pub(super) const TECHNIQUES: &[Technique] = &[
    Technique {
        id: "T1",
        what: "Time to live; expired items are hidden before DynamoDB removes them",
        entities: &["Session", "Cart"],
        patterns: &["sessions.active", "carts.get"],
        tests: &["an_expired_session_is_gone_before_its_removal", "an_expired_cart_is_empty_before_its_removal"],
    },
    Technique {
        id: "T2",
        what: "A sharded time series, read in order and kept for 30 days",
        entities: &["MetricPoint"],
        patterns: &["metrics.store", "metrics.of-name"],
        tests: &[
            "a_thousand_points_of_30_days_are_read_page_by_page_in_their_order",
            "an_expired_point_is_not_listed_before_its_removal",
        ],
    },
    Technique {
        id: "T3",
        what: "Shards by a computed suffix (points, status lists) and by a random one (counters); the number of \
               a list changes while the shop is open",
        entities: &["MetricPoint", "CounterShard", "Order", "Settings"],
        patterns: &["metrics.store", "metrics.get", "counters.add", "orders.by-status", "settings.arrange"],
        tests: &[
            "one_point_is_read_with_one_request_from_the_shard_of_its_id",
            "shards_are_where_they_have_always_been",
            "a_repeated_point_is_stored_once_with_the_last_value",
            "an_addition_with_a_key_counts_once_and_has_one_response",
            "a_reader_sees_each_item_once_while_items_move_between_the_shards",
            "a_list_that_grows_under_traffic_shows_each_order_once_to_every_function",
            "a_command_that_is_killed_at_any_request_continues",
            "cursors_stay_valid_and_pages_show_each_order_once_through_all_steps",
        ],
    },
    Technique {
        id: "T4",
        what: "A hot key is split when writers conflict or CloudWatch lists it as throttled; a read gathers the shards",
        entities: &["Counter", "CounterShard"],
        patterns: &["counters.head", "counters.split", "counters.read"],
        tests: &[
            "a_counter_is_right_before_during_and_after_the_split_that_its_throttles_cause",
            "each_minute_of_heat_splits_once_even_if_it_is_reported_repeatedly",
            "the_counters_of_a_documented_report_are_hot_in_their_last_hot_minute",
            "readers_see_every_confirmed_addition_of_fifty_clients_while_a_counter_is_split",
        ],
    },
    Technique {
        id: "T6",
        what: "Bill of a month from measured units, prices by Region and traffic, and both capacity modes",
        entities: &[],
        patterns: &[],
        tests: &[
            "a_thousand_orders_an_hour_cost_nine_dollars_of_writes_and_four_and_a_half_of_reads",
            "a_route_costs_its_measured_units_and_those_of_its_consequences",
            "provisioned_capacity_is_cheaper_above_the_break_even_and_dearer_below",
            "a_bill_is_the_sum_of_its_parts_and_linear_in_the_traffic",
        ],
    },
    Technique {
        id: "T7",
        what: "Archive of expiring items, and restore",
        entities: &["Order", "OrderLine"],
        patterns: &["orders.retire", "archive.restore"],
        tests: &[
            "a_closed_order_is_retired_expires_and_comes_back_whole_and_searchable",
            "case_32_an_expiry_that_is_delivered_again_is_one_object_and_one_entry",
        ],
    },
    Technique {
        id: "T8",
        what: "Removals by time to live distinguished from a caller's deletions",
        entities: &["Expiration"],
        patterns: &["audit.record", "audit.of-day"],
        tests: &[
            "case_33_a_removal_by_a_caller_leaves_no_trace",
            "dynamodb_is_known_in_either_spelling_of_the_identity",
        ],
    },
    Technique {
        id: "T10",
        what: "Migration of the data model: by a parallel scan that writes only old items, beside it by the \
               stream or by each write that touches an old item; readers accept both forms",
        entities: &["CustomerDocument", "RecentReview", "Sale", "Wallet"],
        patterns: &["sales.apply", "reviews.change", "wallet.convert"],
        tests: &[
            "old_items_get_their_present_form_and_a_second_run_writes_nothing",
            "a_run_that_is_stopped_anywhere_is_resumed",
            "money_that_moves_during_a_run_is_not_lost",
            "a_migration_is_silent_in_the_stream",
            "a_migration_by_the_stream_and_one_by_a_scan_give_the_same_rows",
            "a_review_of_a_former_release_enters_the_list_with_its_first_change_and_can_be_removed_before",
            "a_wallet_that_an_earlier_version_opened_in_another_currency_is_read_and_converted",
            "items_of_earlier_releases_can_be_read",
        ],
    },
    Technique {
        id: "T11",
        what: "Contributor Insights, alarms, dashboard",
        entities: &[],
        patterns: &[],
        tests: &[
            "no_metric_is_collected_without_a_reader",
            "every_alarm_has_a_line_of_instructions_and_notifies_the_operators",
            "the_dashboard_shows_api_table_stream_and_the_cost_of_each_route",
        ],
    },
];
