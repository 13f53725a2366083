//! The techniques of the chapter "Further lists and pages".

use super::Technique;

pub(super) const TECHNIQUES: &[Technique] = &[
    Technique {
        id: "X1",
        what: "Everything of a kind for staff: the shards of all tiers are one list of customers",
        entities: &["Customer"],
        patterns: &["customers.all", "customers.hydrate"],
        tests: &[
            "a_thousand_customers_of_all_tiers_are_read_oldest_first_at_the_same_cost_a_page",
            "a_customer_between_two_tiers_is_listed_once",
            "all_customers_are_read_page_by_page",
        ],
    },
    Technique {
        id: "X2",
        what: "The root and a whole subtree of a hierarchy, one Query a page",
        entities: &["CategoryNode"],
        patterns: &["categories.children", "categories.subtree"],
        tests: &["a_subtree_of_a_thousand_categories_is_read_with_one_request_a_page"],
    },
    Technique {
        id: "X3",
        what: "Customer, orders and questions in one request: a Query from the profile in each direction",
        entities: &["Customer", "CustomerOrder", "CustomerQuestion"],
        patterns: &["customers.overview", "questions.of-customer"],
        tests: &["customer_orders_and_questions_are_one_request_and_two_queries"],
    },
    Technique {
        id: "X4",
        what: "The log of a day, sharded by order and merged in order",
        entities: &["OrderLog"],
        patterns: &["orders.log-of-day", "orders.log-lines"],
        tests: &[
            "the_log_of_a_day_is_merged_in_order_from_all_shards_at_the_same_cost_a_page",
            "the_log_of_a_day_is_read_page_by_page",
        ],
    },
];
