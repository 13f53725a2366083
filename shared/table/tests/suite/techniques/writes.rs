//! The techniques of the chapter "Writes under rules".

use super::Technique;

pub(super) const TECHNIQUES: &[Technique] = &[
    Technique {
        id: "W1",
        what: "Order and stock in one transaction",
        entities: &["Order", "OrderLine", "Stock"],
        patterns: &["orders.place"],
        tests: &[
            "exactly_50_of_200_orders_for_a_product_with_50_in_stock_are_placed",
            "a_basket_of_500_lines_with_one_line_beyond_the_stock_is_refused_and_the_error_names_it",
        ],
    },
    Technique {
        id: "W2",
        what: "A transfer: one transaction changes both wallets and adds their entries",
        entities: &["Wallet", "WalletEntry"],
        patterns: &["wallet.transfer"],
        tests: &[
            "fifty_concurrent_transfers_between_four_wallets_neither_lose_nor_create_money",
            "a_missing_account_is_reported_before_a_low_balance",
        ],
    },
    Technique {
        id: "W3",
        what: "At most 100 actions in a transaction, checked before the call. A larger order takes several \
            transactions, and is invisible until the last one",
        entities: &["Order"],
        patterns: &["orders.begin", "orders.reserve", "orders.commit"],
        tests: &[
            "a_transaction_over_the_limit_is_refused_before_it_is_sent",
            "an_order_of_47_lines_fits_one_transaction_and_one_of_45_lines_with_everything_that_it_may_have",
            "an_order_of_500_lines_that_is_sent_twice_is_placed_once_and_can_be_cancelled",
        ],
    },
    Technique {
        id: "W4",
        what: "Unique values through claim items",
        entities: &["EmailClaim", "UsernameClaim", "ReferenceClaim", "NumberClaim"],
        patterns: &["customers.create", "customers.rename", "customers.delete"],
        tests: &["one_of_two_concurrent_claims_of_a_name_wins", "a_new_name_is_claimed_and_the_old_name_is_free"],
    },
    Technique {
        id: "W5",
        what: "Consecutive numbers without gaps",
        entities: &["Invoice", "InvoiceCounter"],
        patterns: &["invoices.counter", "invoices.issue"],
        tests: &["invoices_are_numbered_without_a_gap_also_when_many_are_issued_at_once"],
    },
    Technique {
        id: "W6",
        what: "Counters that change in the transaction that writes the counted item",
        entities: &["Review", "ReviewStats", "Like", "LikeCount"],
        patterns: &["reviews.create", "reviews.change", "reviews.delete", "likes.put", "likes.remove"],
        tests: &[
            "twenty_concurrent_reviews_are_all_counted",
            "fifty_customers_like_one_product_at_once_and_all_are_counted",
        ],
    },
    Technique {
        id: "W7",
        what: "A set of limited size: the warehouse's picking stations",
        entities: &["PickingStations"],
        patterns: &["picking.admit"],
        tests: &["at_most_three_of_many_paid_orders_are_picked_at_once_and_all_are_picked_in_the_end"],
    },
    Technique {
        id: "W8",
        what: "Idempotent additions to a set and removals from it",
        entities: &["PickingStations", "Document"],
        patterns: &["picking.admit", "picking.leave", "documents.add-editor", "documents.remove-editor"],
        tests: &[
            "an_order_whose_payment_event_repeats_has_one_station",
            "stations_may_all_become_free_and_be_used_again",
            "an_addition_or_removal_of_an_editor_can_be_repeated",
        ],
    },
    Technique {
        id: "W9",
        what: "A create fails if the item exists, and a change fails if it does not",
        entities: &["Review", "Store", "Document"],
        patterns: &["reviews.create", "reviews.change", "stores.create", "stores.change", "documents.create"],
        tests: &[
            "a_review_exists_once_and_needs_a_product_and_a_current_version",
            "one_of_many_concurrent_creations_or_changes_of_a_shop_wins",
            "a_document_is_created_once_and_is_version_1",
        ],
    },
    Technique {
        id: "W10",
        what: "Optimistic locking by version: ETag and If-Match",
        entities: &["Customer", "Product", "Order"],
        patterns: &["customers.update", "products.update", "orders.move"],
        tests: &[
            "one_of_two_concurrent_changes_wins_and_the_other_gets_412",
            "every_route_refuses_every_fault_and_writes_nothing",
        ],
    },
    Technique {
        id: "W11",
        what: "A condition on the item itself: only a document's editors change the document",
        entities: &["Document"],
        patterns: &["documents.put-section", "documents.add-editor"],
        tests: &["the_condition_on_the_document_itself_refuses_a_caller_who_is_no_editor"],
    },
    Technique {
        id: "W12",
        what: "A condition on another item: the admins of an organization edit its documents",
        entities: &["Document", "Member"],
        patterns: &["documents.put-section", "documents.publish"],
        tests: &["members_read_the_documents_of_their_organization_and_admins_write_them"],
    },
    Technique {
        id: "W13",
        what: "A version history with a pointer to the current version; moving the pointer publishes a draft",
        entities: &["Document", "DocumentVersion"],
        patterns: &[
            "documents.begin-draft",
            "documents.publish",
            "documents.restore",
            "documents.versions",
            "documents.version",
        ],
        tests: &[
            "a_draft_becomes_current_as_a_whole_when_it_is_published",
            "a_restore_publishes_an_old_version_as_a_new_version_and_keeps_the_history",
            "many_concurrent_callers_that_retry_until_success_leave_versions_without_gaps",
        ],
    },
    Technique {
        id: "W14",
        what: "Sections with separate versions",
        entities: &["DocumentSection"],
        patterns: &["documents.put-section", "documents.texts"],
        tests: &["a_change_of_a_section_writes_only_that_section_as_a_new_version"],
    },
    Technique {
        id: "W15",
        what: "Batch writes that retry unprocessed items",
        entities: &["Product"],
        patterns: &["categories.add", "products.create-many"],
        tests: &[
            "a_batch_of_writes_loses_nothing_when_the_table_leaves_parts_unprocessed",
            "a_line_that_the_table_keeps_refusing_is_reported_as_throttled_and_not_written",
        ],
    },
    Technique {
        id: "W16",
        what: "Batch reads of more than 100 keys, in order",
        entities: &["Customer"],
        patterns: &["customers.hydrate", "products.many"],
        tests: &["a_batch_of_reads_keeps_its_order_despite_several_requests_and_unprocessed_keys"],
    },
    Technique {
        id: "W17",
        what: "A state machine: one transaction changes the order, its copy, its lists and its history",
        entities: &["Order", "CustomerOrder", "OrderStatusEvent"],
        patterns: &["orders.move"],
        tests: &[
            "every_illegal_status_change_is_refused_from_every_status",
            "one_of_two_clients_that_move_an_order_at_once_wins_and_the_other_gets_412",
        ],
    },
    Technique {
        id: "W18",
        what: "Idempotent requests: the transaction that executes a request also writes the idempotency key's record",
        entities: &["IdempotencyRecord"],
        patterns: &["idempotency.get", "orders.place", "wallet.transfer", "wallet.deposit", "stock.adjust"],
        tests: &[
            "a_key_sent_20_times_at_once_creates_one_order_and_one_response",
            "a_transfer_sent_many_times_at_once_moves_money_once_and_has_one_response",
        ],
    },
];
