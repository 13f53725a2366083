//! The secondary indexes of the table, and the attributes that each index projects.

use item_model::key::Index;

/// The index for reverse lookups, such as a customer's sessions and reviews, or an order's log.
pub const GSI1: Index = Index::new(
    "GSI1",
    ["GSI1PK", "GSI1SK"],
    &[
        "entity",
        "id",
        "reference",
        "customer_id",
        "product_id",
        "order_id",
        "device",
        "expires_at",
        "created_at",
        "updated_at",
        "at",
        "by",
        "text",
        "title",
        "rating",
        "role",
        "team",
        "version",
    ],
    "Lists show sessions, reviews, log lines and memberships of organizations completely.",
);

/// The index for sharded lists of all items of a kind, such as orders by status, customers by tier,
/// or products by category.
pub const GSI2: Index = Index::new(
    "GSI2",
    ["GSI2PK", "GSI2SK"],
    &[
        "entity",
        "id",
        "reference",
        "customer_id",
        "status",
        "total",
        "placed_at",
        "line_count",
        "name",
        "brand",
        "package_size",
        "category_path",
        "price",
        "rating",
        "product_id",
        "title",
        "text",
        "created_at",
        "updated_at",
        "version",
    ],
    "It has order summaries, the product attributes of a category page, and complete reviews. Customers by tier are \
     read by key: that list is rarely read, and with projected attributes every change of a profile would cost more.",
);

/// The index for sparse and time-ranged lists, such as shipments, sales, or a product's reviews.
pub const GSI3: Index = Index::new(
    "GSI3",
    ["GSI3PK", "GSI3SK"],
    &[
        "entity",
        "id",
        "reference",
        "customer_id",
        "status",
        "total",
        "placed_at",
        "line_count",
        "shipped_at",
        "carrier",
        "tracking",
        "order_id",
        "quantity",
        "product_id",
        "rating",
        "title",
        "text",
        "created_at",
        "updated_at",
        "version",
    ],
    "It has complete reviews, and the attributes that appear in lists of shipments and sales.",
);

pub const INDEXES: [Index; 3] = [GSI1, GSI2, GSI3];
