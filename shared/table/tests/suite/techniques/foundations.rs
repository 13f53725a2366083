//! The techniques of the chapter "Foundations".

use super::Technique;

pub(super) const TECHNIQUES: &[Technique] = &[
    Technique {
        id: "F1",
        what: "Access patterns first, in one registry that is the only way to make a request",
        entities: &[],
        patterns: &[],
        tests: &[
            "every_pattern_is_produced_by_a_constructor",
            "a_function_may_do_exactly_the_actions_of_its_access_patterns",
            "the_pages_of_access_patterns_are_fresh",
        ],
    },
    Technique {
        id: "F2",
        what: "One table with generic key names, type-prefixed keys and a type attribute",
        entities: &[],
        patterns: &[],
        tests: &["each_entity_is_stored_as_its_golden_item", "no_two_entities_share_a_key"],
    },
    Technique {
        id: "F3",
        what: "Keys separate from attributes: no function reads a value from a key. The schema does so only where an \
            index projects only keys",
        entities: &[],
        patterns: &[],
        tests: &[
            "a_golden_item_decodes_to_its_entity",
            "no_field_of_an_entity_shadows_an_attribute_of_the_schema",
            "only_the_listed_lines_of_code_split_a_key",
        ],
    },
    Technique {
        id: "F4",
        what: "No Scan for an application query",
        entities: &[],
        patterns: &[],
        tests: &["no_function_is_granted_a_scan_or_a_wildcard_action"],
    },
    Technique {
        id: "F5",
        what: "A few overloaded indexes, which project only the attributes that readers need",
        entities: &[],
        patterns: &[],
        tests: &["an_index_carries_only_attributes_that_a_list_shows", "projections_are_within_the_limits_of_dynamodb"],
    },
    Technique {
        id: "F6",
        what: "Eventually consistent reads by default; each strong read gives its reason",
        entities: &[],
        patterns: &[],
        tests: &["every_read_has_a_consistency_and_every_strong_read_has_a_reason"],
    },
    Technique {
        id: "F7",
        what: "Small items: a bucket stores pictures and texts over 100 KB, by presigned URL; the table records the \
            objects in use",
        entities: &["ProductContent", "ProductPictures", "UnsettledObject"],
        patterns: &[
            "pictures.list",
            "media.note",
            "pictures.add",
            "pictures.remove",
            "content.put",
            "media.unsettled",
            "media.doom",
            "media.forget",
        ],
        tests: &[
            "a_text_that_is_too_large_for_an_item_is_uploaded_and_read_by_a_url",
            "an_upload_with_the_wrong_length_or_type_or_content_is_refused_and_leaves_no_object",
            "a_url_is_valid_only_for_its_object_and_its_method",
            "an_interrupted_addition_leaves_no_object_without_a_note_and_a_repetition_completes_it",
            "an_unreferenced_object_is_deleted_after_the_grace",
            "janitors_that_run_too_early_delete_no_referenced_object",
            "an_item_of_400_kilobytes_is_stored_and_a_byte_more_is_refused",
        ],
    },
    Technique {
        id: "F8",
        what: "Sortable unique ids: a time range is a key range",
        entities: &["CustomerOrder"],
        patterns: &["orders.of-customer"],
        tests: &[
            "orders_of_a_customer_are_found_by_the_instant_in_their_id",
            "time_ordered_ids_sort_by_their_millisecond_and_are_valid_ids",
        ],
    },
    Technique {
        id: "F9",
        what: "Numbers, instants and names that sort correctly as text",
        entities: &[],
        patterns: &[],
        tests: &[
            "byte_strings_sort_as_their_key_texts_and_different_strings_have_different_texts",
            "signed_numbers_sort_as_their_key_text",
            "instants_sort_as_their_key_text",
            "a_folded_text_does_not_change_when_it_is_folded_again",
        ],
    },
    Technique {
        id: "F10",
        what: "No hot partition: lists over all items of a kind are sharded",
        entities: &["Customer", "Order", "Product", "Follow", "MetricPoint", "CounterShard"],
        patterns: &[
            "customers.by-tier",
            "orders.by-status",
            "categories.products",
            "orders.unfinished",
            "follows.followers",
            "metrics.store",
            "counters.add",
        ],
        tests: &[
            "no_index_partition_is_named_by_a_low_cardinality_value_alone",
            "a_sharded_list_comes_in_order_page_by_page_without_a_gap_or_a_repetition",
            "readers_see_every_confirmed_addition_of_fifty_clients_while_a_counter_is_split",
        ],
    },
    Technique {
        id: "F11",
        what: "DynamoDB Local for development: the suite runs on it too (`.ci/run real`)",
        entities: &[],
        patterns: &[],
        tests: &[
            "the_tests_run_on_dynamodb_local_before_a_change_lands",
            "the_table_of_a_test_is_in_the_dynamodb_that_the_environment_names",
        ],
    },
];
