//! Tests of items that cannot be decoded.

use key_schema::entity::AnyEntity;
use key_schema::item::{DecodeError, FromItem as _, Item, Stored};
use key_schema::product::Product;
use serde_dynamo::AttributeValue;

use crate::goldens::golden;

#[test]
fn an_item_of_another_kind_or_without_an_attribute_is_not_decoded() {
    let decode = |item: &Item| Stored::<Product>::from_item(item.clone()).unwrap_err();
    let expected = |error: DecodeError| {
        matches!(
            error, DecodeError::OtherEntity { expected: "Product", found } if found == "Stock",
        )
    };
    assert!(expected(decode(&golden("Stock").item)));
    let product = golden("Product").item;
    let mut nameless = product.clone();
    nameless.inner_mut().remove("entity");
    assert!(matches!(decode(&nameless), DecodeError::NoEntity));
    assert!(matches!(AnyEntity::from_item(nameless), Err(DecodeError::NoEntity)));
    let mut unknown = product.clone();
    unknown.inner_mut().insert("entity".into(), AttributeValue::S("Unicorn".into()));
    assert!(matches!(AnyEntity::from_item(unknown), Err(DecodeError::UnknownEntity(name)) if name == "Unicorn"));
    for needed in ["id", "name", "price", "version", "rev", "born", "created_at", "updated_at"] {
        let mut cut = product.clone();
        cut.inner_mut().remove(needed);
        assert!(
            matches!(decode(&cut), DecodeError::Malformed { entity, .. } if entity == "Product"),
            "without {needed}"
        );
        let mut wrong = product.clone();
        wrong.inner_mut().insert(needed.into(), AttributeValue::Bool(true));
        assert!(matches!(decode(&wrong), DecodeError::Malformed { .. }), "with a wrong {needed}");
    }
}

/// Errors are written to logs, and an item may contain personal data.
#[test]
fn an_error_does_not_quote_an_unreadable_item() {
    for (name, attribute, value, says) in [
        ("Product", "price", "hunter2", "malformed Product: "),
        ("Order", "status", "hunter2, expected x", "malformed Order: unknown variant, expected one of"),
        ("Customer", "email", "hunter2", "malformed Customer: "),
        ("Customer", "tier", "hunter2`, expected `bronze", "malformed Customer: unknown variant, expected one of"),
        ("Customer", "addresses", "hunter2", "malformed Customer: "),
        ("Session", "expires_at", "hunter2", "malformed Session: "),
        ("Session", "rev", "hunter2", "malformed Session: "),
    ] {
        let mut item = golden(name).item;
        item.inner_mut().insert(attribute.into(), AttributeValue::S(value.into()));
        let error = AnyEntity::from_item(item).unwrap_err().to_string();
        assert!(error.starts_with(says) && !error.contains("hunter2"), "{error}");
    }
    let mut item = golden("WalletEntry").item;
    item.inner_mut().insert("amount".into(), AttributeValue::N("1234567.89".into()));
    let error = AnyEntity::from_item(item).unwrap_err().to_string();
    assert!(error.starts_with("malformed WalletEntry: ") && !error.contains("1234567"), "{error}");
}
