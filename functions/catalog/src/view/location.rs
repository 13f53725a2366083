//! The URL paths of resources, for the header `Location`.

use http_api::url;
use key_schema::id::{CustomerId, MediaId, ProductId};
use key_schema::product::CategoryPath;

pub fn product_location(id: &ProductId) -> String {
    url::location(&["products", id.as_str()])
}

pub fn content_location(id: &ProductId) -> String {
    url::location(&["products", id.as_str(), "content"])
}

/// Returns the URL path of a picture. It is valid after the client has uploaded and added the
/// picture.
pub fn picture_location(product: &ProductId, picture: &MediaId) -> String {
    url::picture(product.as_str(), picture.as_str())
}

/// Returns the URL path of a product's first picture, if it has one.
pub fn thumbnail(product: &ProductId, first: Option<&MediaId>) -> Option<String> {
    first.map(|picture| picture_location(product, picture))
}

/// Returns the URL path of an upload. A PUT to it makes the uploaded text the product's content.
pub fn upload_location(product: &ProductId, upload: &MediaId) -> String {
    url::location(&["products", product.as_str(), "content", "uploads", upload.as_str()])
}

pub fn membership_location(product: &ProductId, category: &CategoryPath) -> String {
    url::location(&["products", product.as_str(), "categories", &category.to_segment()])
}

pub fn category_location(path: &CategoryPath) -> String {
    url::location(&["categories", &path.to_segment()])
}

pub fn review_location(product: &ProductId, customer: &CustomerId) -> String {
    url::location(&["products", product.as_str(), "reviews", customer.as_str()])
}
