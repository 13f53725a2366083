//! The techniques of the chapter "Time, scale and cost".

use super::Technique;

pub(super) const TECHNIQUES: &[Technique] = &[
    Technique {
        id: "T1",
        what: "Time to live; expired items are hidden before DynamoDB removes them",
        entities: &["Session", "Cart"],
        patterns: &["sessions.active", "carts.get"],
        tests: &[
            "an_expired_session_is_not_found_even_before_dynamodb_removes_it",
            "an_expired_cart_is_empty_even_before_dynamodb_removes_it",
        ],
    },
    Technique {
        id: "T2",
        what: "A sharded time series, read in order and kept for 30 days",
        entities: &["MetricPoint"],
        patterns: &["metrics.store", "metrics.of-name"],
        tests: &[
            "a_thousand_points_of_30_days_are_read_page_by_page_in_their_order",
            "an_expired_point_is_not_listed_even_before_dynamodb_removes_it",
        ],
    },
    Technique {
        id: "T3",
        what: "Shards by a computed suffix (points, status lists) and by a random suffix (counters); a list's \
               number of shards changes while the shop is open",
        entities: &["MetricPoint", "CounterShard", "Order", "Settings"],
        patterns: &["metrics.store", "metrics.get", "counters.add", "orders.by-status", "settings.arrange"],
        tests: &[
            "one_point_is_read_with_one_request_from_the_shard_of_its_id",
            "the_shard_of_an_item_never_changes",
            "a_repeated_point_is_stored_once_with_the_last_value",
            "an_addition_with_a_key_counts_once_and_has_one_response",
            "a_reader_sees_each_item_once_while_items_move_between_the_shards",
            "a_list_that_grows_under_traffic_shows_each_order_once_to_every_function",
            "a_command_that_is_killed_at_any_request_continues",
            "cursors_stay_valid_and_pages_show_each_order_once_while_the_shards_change",
        ],
    },
    Technique {
        id: "T4",
        what: "A hot key is split when writers conflict or CloudWatch lists it as throttled; a read gathers the shards",
        entities: &["Counter", "CounterShard"],
        patterns: &["counters.head", "counters.split", "counters.read"],
        tests: &[
            "throttles_split_a_counter_and_its_sum_is_always_right",
            "each_minute_with_throttles_causes_one_split_even_if_it_is_reported_repeatedly",
            "a_documented_report_gives_the_last_hot_minute_of_each_counter",
            "readers_see_every_confirmed_addition_of_fifty_clients_while_a_counter_is_split",
        ],
    },
    Technique {
        id: "T6",
        what: "A month's bill from measured units, for any Region, traffic and capacity mode",
        entities: &[],
        patterns: &[],
        tests: &[
            "a_thousand_orders_an_hour_cost_nine_dollars_of_writes_and_four_and_a_half_of_reads",
            "a_route_costs_its_measured_units_and_the_units_of_its_consequences",
            "provisioned_capacity_is_cheaper_above_the_break_even_and_dearer_below",
            "a_bill_is_the_sum_of_its_parts_and_linear_in_the_traffic",
        ],
    },
    Technique {
        id: "T5",
        what: "On-demand or provisioned capacity: the bills of both modes for the measured use are compared",
        entities: &[],
        patterns: &[],
        tests: &[
            "steady_traffic_is_cheaper_provisioned_and_bursts_are_cheaper_on_demand",
            "a_rise_is_throttled_until_the_capacity_has_grown",
            "both_pages_of_metrics_are_read_from_cloudwatch_and_the_stack_is_updated",
        ],
    },
    Technique {
        id: "T7",
        what: "Expired items are archived, and can be restored",
        entities: &["Order", "OrderLine"],
        patterns: &["orders.retire", "archive.restore"],
        tests: &[
            "a_retired_order_expires_and_its_restore_makes_it_complete_and_searchable_again",
            "case_32_an_expiry_that_is_delivered_again_creates_one_object_and_one_entry",
        ],
    },
    Technique {
        id: "T8",
        what: "Removals by time to live are distinguished from a caller's deletions",
        entities: &["Expiration"],
        patterns: &["audit.record", "audit.of-day"],
        tests: &[
            "case_33_a_removal_by_a_caller_leaves_no_trace",
            "dynamodb_is_recognised_in_either_spelling_of_its_identity",
        ],
    },
    Technique {
        id: "T10",
        what: "Migration of the data model: a parallel scan writes only old items. The stream, or a write that \
            touches an old item, also migrates it. Readers accept both forms",
        entities: &[],
        patterns: &[],
        tests: &[
            "old_items_get_their_present_form_and_a_second_run_writes_nothing",
            "a_run_that_is_stopped_anywhere_is_resumed",
            "money_that_moves_during_a_run_is_not_lost",
            "a_migration_is_silent_in_the_stream",
            "a_migration_by_the_stream_and_one_by_a_scan_give_the_same_rows",
            "a_write_that_touches_an_old_loan_migrates_it_and_wins_over_a_late_record",
        ],
    },
    Technique {
        id: "T11",
        what: "Contributor Insights, alarms, dashboard",
        entities: &[],
        patterns: &[],
        tests: &[
            "no_metric_is_collected_without_a_reader",
            "every_alarm_names_its_section_of_the_runbook_and_notifies_the_operators",
            "the_dashboard_shows_the_api_the_table_the_stream_and_the_cost_of_each_route",
        ],
    },
    Technique {
        id: "T9",
        what: "A table for each month of a time series: created before the month, in the class for infrequent access \
            after it, and deleted when the last point has expired. The default is one table",
        entities: &["MetricPoint"],
        patterns: &["metrics.store", "metrics.get", "metrics.of-name"],
        tests: &[
            "points_are_in_the_tables_of_their_months_and_a_list_reads_both_in_order",
            "points_from_before_the_switch_stay_visible_and_a_cursor_continues_over_it",
            "a_missing_table_is_replaced_by_the_main_table_and_remembered",
            "a_past_month_gets_infrequent_access_and_is_deleted_when_its_points_have_expired",
            "a_rotation_that_is_killed_anywhere_is_completed_by_the_next_run",
            "only_tables_with_the_exact_name_of_a_month_are_changed_or_deleted",
        ],
    },
];
