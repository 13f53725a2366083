//! Tests of `ops doctor`.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, StreamSpecification,
    StreamViewType,
};
use fixture::TestTable;
use ops::doctor::Diagnosis;
use table::Table;

/// Creates a second table, with this stream view or without a stream.
async fn table_with(test: &TestTable, view: Option<StreamViewType>) -> Table {
    let name = format!("{}-other", test.name());
    let stream = StreamSpecification::builder().stream_enabled(view.is_some()).set_stream_view_type(view);
    let create = test.client().create_table().table_name(&name).billing_mode(BillingMode::PayPerRequest);
    let create = ["PK", "SK"].into_iter().zip([KeyType::Hash, KeyType::Range]).fold(create, |create, (name, kind)| {
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S);
        let key = KeySchemaElement::builder().attribute_name(name).key_type(kind);
        create.attribute_definitions(attribute.build().unwrap()).key_schema(key.build().unwrap())
    });
    create.stream_specification(stream.build().unwrap()).send().await.unwrap();
    Table::new(test.client().clone(), name)
}

#[tokio::test]
async fn a_stream_without_old_images_is_reported() {
    let test = TestTable::create().await;
    let good = Diagnosis::of(&test.table()).await.unwrap();
    assert!(good.is_clean(), "{good}");
    assert_eq!(good.to_string(), "StreamViewType: NEW_AND_OLD_IMAGES\n");
    for (view, shown) in [
        (Some(StreamViewType::NewImage), "NEW_IMAGE"),
        (Some(StreamViewType::KeysOnly), "KEYS_ONLY"),
        (None, "no stream"),
    ] {
        let test = TestTable::create().await;
        let found = Diagnosis::of(&table_with(&test, view).await).await.unwrap();
        assert!(!found.is_clean() && found.to_string().contains(&format!("{shown}, must be NEW_AND_OLD")), "{found}");
    }
}
