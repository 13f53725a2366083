//! The techniques of the chapter "Further lists and texts".

use super::Technique;

pub(super) const TECHNIQUES: &[Technique] = &[
    Technique {
        id: "X1",
        what: "A list of all customers for staff, merged from the shards of all tiers",
        entities: &["Customer"],
        patterns: &["customers.all", "customers.hydrate"],
        tests: &[
            "a_thousand_customers_of_all_tiers_are_read_oldest_first_at_the_same_cost_per_page",
            "a_customer_between_two_tiers_is_listed_once",
            "all_customers_are_read_page_by_page",
        ],
    },
    Technique {
        id: "X2",
        what: "The root and a whole subtree of a hierarchy, one Query for each page",
        entities: &["CategoryNode"],
        patterns: &["categories.children", "categories.subtree"],
        tests: &["a_subtree_of_a_thousand_categories_is_read_with_one_request_per_page"],
    },
    Technique {
        id: "X3",
        what: "Customer, orders and questions in one request. A Query has one direction, so the request makes two \
            Queries: from the profile backward to the newest orders, and forward to the newest questions",
        entities: &["Customer", "CustomerOrder", "CustomerQuestion"],
        patterns: &["customers.overview", "questions.of-customer"],
        tests: &["an_overview_with_orders_and_questions_costs_two_queries"],
    },
    Technique {
        id: "X4",
        what: "The log of a day: the order's id selects the shard, and a read merges the shards by time",
        entities: &["OrderLog"],
        patterns: &["orders.log-of-day", "orders.log-lines"],
        tests: &[
            "the_log_of_a_day_is_merged_in_order_from_all_shards_at_the_same_cost_per_page",
            "the_log_of_a_day_is_read_page_by_page",
        ],
    },
    Technique {
        id: "X5",
        what: "Leaderboards by sales, views and likes of a day, a week and all time: exact sums from the stream, and \
            views with a stated standard error",
        entities: &["Tally", "Rank"],
        patterns: &["leaderboards.top", "leaderboards.days", "leaderboards.place", "leaderboards.view"],
        tests: &[
            "case_37_leaderboards_of_sales_are_exact_when_records_are_repeated_and_reordered",
            "likes_in_several_parts_and_days_are_summed_once_by_concurrent_consumers",
            "a_board_lists_the_largest_counts_first_with_the_products",
            "about_one_of_64_requests_counts_as_64_views",
            "leaderboards_follow_orders_likes_and_views",
        ],
    },
    Technique {
        id: "X6",
        what: "Tables for queries: an export as files by day, tables of Glue, and queries of Athena \
            ([analytics.md](analytics.md))",
        entities: &[],
        patterns: &[],
        tests: &["the_tables_of_analytics_have_the_declared_columns_and_every_order"],
    },
    Technique {
        id: "X8",
        what: "Item collections and references as pictures: a diagram of each area, generated from the stored samples \
            ([entities.md](entities.md))",
        entities: &[],
        patterns: &[],
        tests: &[
            "the_diagrams_of_the_entities_are_fresh",
            "a_diagram_shows_collections_and_references",
            "every_entity_is_in_an_area_and_every_named_reference_exists",
        ],
    },
    Technique {
        id: "X9",
        what: "Large items are split or stored in a bucket: the sections of a document are separate items, and a \
            product's text over 100 KB is an object",
        entities: &["DocumentSection", "ProductContent"],
        patterns: &["documents.texts", "content.get", "content.put"],
        tests: &[
            "drafts_versions_and_current_documents_of_the_maximum_size_are_read_in_pages",
            "content_has_up_to_100_kilobytes",
            "a_text_that_is_too_large_for_an_item_is_uploaded_and_read_by_a_url",
        ],
    },
    Technique {
        id: "X10",
        what: "Techniques that Bodega does not use, with the reasons, and with cases in which they are better \
            ([decisions.md](design/decisions.md))",
        entities: &[],
        patterns: &[],
        tests: &["the_template_has_nothing_that_was_decided_against"],
    },
    Technique {
        id: "X11",
        what: "The same migration by the stream and by a scan: both write the same rows",
        entities: &[],
        patterns: &[],
        tests: &[
            "a_migration_by_the_stream_and_one_by_a_scan_give_the_same_rows",
            "a_migration_is_silent_in_the_stream",
        ],
    },
];
