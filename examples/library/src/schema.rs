//! The table: its indexes, its definition, and all of its access patterns.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};
use item_model::key::Index;
use item_model::pattern::Pattern;

use crate::{book, loan, member};

/// The lists of all books by title, and of a member's loans by due date.
pub const GSI1: Index = Index::new(
    "GSI1",
    ["GSI1PK", "GSI1SK"],
    &["entity", "id", "title", "author", "member_id", "book_id", "due_at"],
    "The lists show every field except the numbers of copies. The number of free copies changes with each loan.",
);

/// The list of all loans that are out, by due date.
pub const GSI2: Index = Index::new(
    "GSI2",
    ["GSI2PK", "GSI2SK"],
    &["entity", "id", "member_id", "book_id", "due_at"],
    "A reminder names the member, the book and the due date.",
);

pub const INDEXES: [Index; 2] = [GSI1, GSI2];

#[must_use]
pub fn patterns() -> Vec<&'static Pattern> {
    [member::PATTERNS, book::PATTERNS, loan::PATTERNS].concat()
}

/// Creates the table with the indexes that [`INDEXES`] declares. `DynamoDB` returns before the
/// table is active.
pub async fn create_table(client: &Client, name: &str) -> Result<(), aws_sdk_dynamodb::Error> {
    let mut request = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key_schema(["PK", "SK"])?));
    for attribute in ["PK", "SK"].into_iter().chain(INDEXES.into_iter().flat_map(attributes)) {
        let text = AttributeDefinition::builder().attribute_name(attribute).attribute_type(ScalarAttributeType::S);
        request = request.attribute_definitions(text.build()?);
    }
    for index in INDEXES {
        let projected = index.projected().iter().map(|name| (*name).to_owned()).collect();
        let projection =
            Projection::builder().projection_type(ProjectionType::Include).set_non_key_attributes(Some(projected));
        let index = GlobalSecondaryIndex::builder()
            .index_name(index.name())
            .set_key_schema(Some(key_schema(attributes(index))?))
            .projection(projection.build());
        request = request.global_secondary_indexes(index.build()?);
    }
    request.send().await?;
    Ok(())
}

const fn attributes(index: Index) -> [&'static str; 2] {
    [index.partition_attribute(), index.sort_attribute()]
}

fn key_schema([partition, sort]: [&str; 2]) -> Result<Vec<KeySchemaElement>, BuildError> {
    [(partition, KeyType::Hash), (sort, KeyType::Range)]
        .into_iter()
        .map(|(name, kind)| KeySchemaElement::builder().attribute_name(name).key_type(kind).build())
        .collect()
}
