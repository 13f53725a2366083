//! The techniques of the chapter "Entities, relationships and indexes".

use super::Technique;

pub(super) const TECHNIQUES: &[Technique] = &[
    Technique {
        id: "R1",
        what: "Profile and newest orders in one Query",
        entities: &["Customer", "CustomerOrder"],
        patterns: &["customers.overview"],
        tests: &[
            "the_overview_has_the_profile_and_the_newest_20_orders_and_costs_one_query",
            "the_overview_reads_only_the_profile_and_orders_of_the_customer",
        ],
    },
    Technique {
        id: "R2",
        what: "Orders sort before the profile, and questions sort after it. A Query from the profile reads the \
            newest orders or the newest questions",
        entities: &["Customer", "CustomerOrder", "CustomerQuestion"],
        patterns: &["customers.overview", "questions.support", "questions.of-customer"],
        tests: &[
            "profile_and_the_newest_ten_questions_take_one_query",
            "no_other_item_sorts_between_the_orders_and_the_questions_of_a_customer",
        ],
    },
    Technique {
        id: "R3",
        what: "One-to-many in one partition: an order, its lines, its history, its payments",
        entities: &["Order", "OrderLine", "OrderStatusEvent", "Payment", "PaymentOperation"],
        patterns: &["orders.get", "orders.with-lines", "orders.with-history", "orders.lines", "orders.head"],
        tests: &[
            "each_status_change_up_to_delivered_updates_the_history_the_lists_and_the_customers_copy",
            "lines_alone_and_history_alone_take_one_query_each",
        ],
    },
    Technique {
        id: "R4",
        what: "A customer's orders by date, page by page",
        entities: &["CustomerOrder"],
        patterns: &["orders.of-customer"],
        tests: &["the_lists_of_orders_and_the_sales_of_a_product_are_read_page_by_page"],
    },
    Technique {
        id: "R5",
        what: "One-to-many through an index: an order's log, one Query for each page. The index has no entry of the \
            order's head, because each status change would then cost another write",
        entities: &["OrderLog"],
        patterns: &["orders.log", "orders.add-log"],
        tests: &["only_staff_read_an_orders_log_which_begins_with_the_oldest_line"],
    },
    Technique {
        id: "R6",
        what: "One index for several kinds of entity",
        entities: &["Order", "Customer", "Product"],
        patterns: &["orders.by-status", "customers.by-tier", "categories.products"],
        tests: &["three_kinds_of_entity_share_the_index_of_sharded_lists"],
    },
    Technique {
        id: "R7",
        what: "Lookup by email, in any spelling",
        entities: &["EmailClaim"],
        patterns: &["customers.by-email"],
        tests: &[
            "an_email_address_is_found_only_as_a_whole_but_in_any_spelling",
            "spellings_of_the_same_name_fold_to_the_same_text",
        ],
    },
    Technique {
        id: "R8",
        what: "Orders by status and date: a sharded list for each status. One write moves an order \
            from one list to another",
        entities: &["Order"],
        patterns: &["orders.by-status"],
        tests: &[
            "the_lists_of_orders_and_the_sales_of_a_product_are_read_page_by_page",
            "each_status_change_up_to_delivered_updates_the_history_the_lists_and_the_customers_copy",
        ],
    },
    Technique {
        id: "R9",
        what: "A product's sales by date, in time buckets",
        entities: &["Sale"],
        patterns: &["sales.of-product"],
        tests: &[
            "the_sales_of_several_years_are_one_list",
            "a_list_of_sales_between_two_instants_has_the_sales_at_both_instants",
        ],
    },
    Technique {
        id: "R10",
        what: "Sparse indexes: shipments, active sessions, unfinished orders",
        entities: &["CustomerOrder", "Session", "Order"],
        patterns: &["orders.shipments", "sessions.active", "orders.unfinished"],
        tests: &["an_item_outside_a_sparse_index_has_no_key_in_it"],
    },
    Technique {
        id: "R11",
        what: "An adjacency list: followers, followed customers, and whether A follows B",
        entities: &["Follow"],
        patterns: &["follows.get", "follows.following", "follows.followers", "follows.put"],
        tests: &[
            "a_follow_is_listed_for_both_customers_and_read_by_its_path",
            "a_repeated_follow_has_no_effect",
            "a_thousand_followers_are_read_newest_first_from_all_shards",
        ],
    },
    Technique {
        id: "R12",
        what: "Many-to-many with an inverted index: likes, and products in further categories. A product's copies \
            in these categories follow the product",
        entities: &["Like", "Membership"],
        patterns: &["likes.of-customer", "likes.likers", "memberships.add", "memberships.of-product"],
        tests: &[
            "a_like_is_listed_for_its_customer_and_its_product_and_counted",
            "case_38_a_product_renamed_during_a_replay_has_its_new_name_in_all_copies",
        ],
    },
    Technique {
        id: "R13",
        what: "A graph: edges with types (follows, likes, reviews, purchases), and customers by place of \
            residence",
        entities: &["Follow", "Like", "Review", "Sale", "Customer"],
        patterns: &[
            "follows.following",
            "likes.of-customer",
            "reviews.by-customer",
            "sales.bought",
            "graph.lives-in",
            "customers.of-place",
        ],
        tests: &[
            "each_kind_of_edge_leads_to_its_targets_and_costs_one_request",
            "a_thousand_customers_of_a_country_are_read_by_city_from_all_shards",
            "a_customer_who_moves_is_listed_only_in_the_new_place",
        ],
    },
    Technique {
        id: "R14",
        what: "A hierarchy in the sort key: country, city, shop, day",
        entities: &["PlaceSales", "Store"],
        patterns: &["sales.of-place"],
        tests: &["sales_are_listed_by_any_part_of_a_country_in_one_query"],
    },
    Technique {
        id: "R15",
        what: "A hierarchy by path: children, ancestors and subtree of a category; a subtree moves in resumable steps",
        entities: &["CategoryNode", "CategoryMove"],
        patterns: &[
            "categories.children",
            "categories.subtree",
            "categories.ancestors",
            "category-moves.copy",
            "category-moves.place",
        ],
        tests: &[
            "a_subtree_lists_each_category_before_its_own_subtree",
            "only_the_children_of_a_category_are_listed",
            "children_are_paged_by_name",
            "a_lineage_runs_from_the_top_to_the_category_itself",
            "a_category_moves_with_its_subtree_and_the_lists_follow",
            "a_move_that_is_interrupted_repeatedly_continues_where_it_stopped",
        ],
    },
    Technique {
        id: "R16",
        what: "Organization, team, member",
        entities: &["Organization", "Team", "Member"],
        patterns: &["organizations.get", "members.list", "members.of-customer"],
        tests: &[
            "an_organization_is_read_with_all_its_teams_in_one_query",
            "a_thousand_memberships_of_a_customer_are_listed_oldest_first_with_one_request_a_page",
        ],
    },
    Technique {
        id: "R17",
        what: "Posts: reviews by product, by customer, by id, and the newest of all products in month buckets with \
            shards",
        entities: &["Review", "RecentReview", "ReviewMonth"],
        patterns: &["reviews.newest", "reviews.by-customer", "reviews.get", "reviews.recent", "reviews.months"],
        tests: &["a_thousand_reviews_of_one_day_are_read_page_by_page", "a_page_skips_months_without_reviews"],
    },
    Technique {
        id: "R18",
        what: "A product's reviews, newest first or best first",
        entities: &["Review"],
        patterns: &["reviews.newest", "reviews.best"],
        tests: &["reviews_sorted_by_time_or_by_rating_are_read_page_by_page"],
    },
    Technique {
        id: "R19",
        what: "Several values in one attribute: a customer's addresses, each changed separately",
        entities: &["Customer"],
        patterns: &["customers.put-address", "customers.remove-address"],
        tests: &[
            "an_address_is_set_replaced_and_removed_without_touching_the_others",
            "two_addresses_set_at_once_are_both_stored",
        ],
    },
    Technique {
        id: "R20",
        what: "Two kinds of duplication: order lines stay as sold, category lists follow the product",
        entities: &["OrderLine", "Membership"],
        patterns: &["memberships.of-product", "memberships.refresh"],
        tests: &[
            "an_order_keeps_its_product_names_and_prices_after_a_product_changes",
            "case_38_a_product_renamed_during_a_replay_has_its_new_name_in_all_copies",
        ],
    },
    Technique {
        id: "R21",
        what: "Vertical partitioning: a product page does not read the product's content",
        entities: &["Product", "ProductContent"],
        patterns: &["products.page", "content.get"],
        tests: &["a_product_page_reads_neither_content_nor_reviews"],
    },
    Technique {
        id: "R22",
        what: "A replica through an index: browsing reads no product item",
        entities: &["Product"],
        patterns: &["categories.products"],
        tests: &[
            "every_list_over_an_index_reads_only_the_index",
            "a_list_of_a_thousand_products_takes_five_requests_per_page_and_repeats_no_product",
        ],
    },
    Technique {
        id: "R23",
        what: "Several copies of one item (the settings): a transaction changes all of them, and a reader \
            reads a random copy",
        entities: &["Settings"],
        patterns: &["settings.read", "settings.create", "settings.change"],
        tests: &["one_of_fifty_concurrent_changes_wins_in_every_copy", "readers_spread_over_the_copies"],
    },
];
