//! Tests of items that cannot be decoded.

use key_schema::entity::AnyEntity;
use key_schema::item::{DecodeError, FromItem as _, Item, Stored, key_of};
use key_schema::key::shown;
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

/// Customers choose the names of their addresses. A name in a map of the schema is no data.
#[test]
fn a_log_names_the_fields_of_an_unreadable_item_and_not_the_entries_that_are_data() {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let map = |name: &str, value| AttributeValue::M([(name.to_owned(), value)].into());
    for (entity, attribute, name, value, field) in [
        ("Customer", "addresses", "hunter2", map("city", AttributeValue::Bool(true)), ".city is a boolean: "),
        ("Customer", "addresses", "hunter2", text("x"), " is a string: "),
        ("Customer", "addresses", " hunter2", map("city", text("x")), " is a map: "),
        ("Cart", "lines", "hunter2", map("quantity", text("x")), ".quantity is a string: "),
        ("OpenOrders", "entries", "hunter2", text("x"), " is a string: "),
    ] {
        let mut item = golden(entity).item;
        item.inner_mut().insert(attribute.into(), map(name, value));
        let error = AnyEntity::from_item(item).unwrap_err();
        assert!(error.to_string().contains(&format!(": {attribute}.{name}{field}")), "{error}");
        let logged = error.for_log();
        assert!(logged.contains(&format!(": {attribute}.*{field}")) && !logged.contains("hunter2"), "{logged}");
    }
}

/// Errors are written to logs, and an item may contain personal data.
#[test]
fn an_error_does_not_quote_an_unreadable_item() {
    for (name, attribute, value, says) in [
        ("Product", "price", "hunter2", "price is a string: "),
        ("Order", "status", "hunter2, expected x", "status is a string: unknown variant, expected one of"),
        ("Customer", "email", "hunter2", "email is a string: "),
        ("Customer", "tier", "hunter2`, expected `bronze", "tier is a string: unknown variant, expected one of"),
        ("Customer", "addresses", "hunter2", "addresses is a string: "),
        ("Session", "expires_at", "hunter2", "expires_at is a string: "),
        ("Session", "rev", "hunter2", "rev is a string: "),
    ] {
        let mut item = golden(name).item;
        let key = shown(&key_of(&item).unwrap());
        item.inner_mut().insert(attribute.into(), AttributeValue::S(value.into()));
        let error = AnyEntity::from_item(item).unwrap_err().to_string();
        let says = format!("malformed {name} {key}: {says}");
        assert!(error.starts_with(&says) && !error.contains("hunter2"), "{error} for {says}");
    }
    let mut item = golden("WalletEntry").item;
    item.inner_mut().insert("amount".into(), AttributeValue::N("1234567.89".into()));
    let error = AnyEntity::from_item(item).unwrap_err().to_string();
    assert!(error.contains(": amount is a number: ") && !error.contains("1234567"), "{error}");
}

#[test]
fn an_error_names_the_key_and_the_path_of_the_attribute_and_hides_a_text_that_a_customer_wrote() {
    let mut item = golden("Product").item;
    let key = shown(&key_of(&item).unwrap());
    let price = [("amount", AttributeValue::S("abc".into())), ("currency", AttributeValue::S("USD".into()))];
    let price = price.map(|(name, value)| (name.to_owned(), value)).into();
    item.inner_mut().insert("price".into(), AttributeValue::M(price));
    let error = Stored::<Product>::from_item(item.clone()).unwrap_err().to_string();
    assert_eq!(error, format!("malformed Product {key}: price.amount is a string: Expected num"));
    let logged = Stored::<Product>::from_item(item.clone()).unwrap_err().for_log();
    assert!(logged.ends_with(" PRODUCT: price.amount is a string: Expected num"), "{logged}");
    item.inner_mut().remove("price");
    let error = Stored::<Product>::from_item(item).unwrap_err().to_string();
    assert_eq!(error, format!("malformed Product {key}: price is missing"));
    let mut pictures = golden("ProductPictures").item;
    pictures.inner_mut().insert("pictures".into(), AttributeValue::L(vec![AttributeValue::Bool(true)]));
    let error = AnyEntity::from_item(pictures).unwrap_err().to_string();
    assert!(error.ends_with(": pictures[0] is a boolean: Expected map"), "{error}");
    let mut claim = golden("EmailClaim").item;
    let Some(AttributeValue::S(pk)) = claim.get("PK").cloned() else { panic!("{claim:?}") };
    claim.inner_mut().remove("customer_id");
    let error = AnyEntity::from_item(claim).unwrap_err().to_string();
    assert!(error.starts_with("malformed EmailClaim EMAIL#<") && !error.contains(pk.trim_start_matches("EMAIL#")));
}
