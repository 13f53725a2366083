mod category;
mod location;

pub use self::category::{CategoryView, MoveView, NodeView, category_version};
pub use self::location::{
    category_location, content_location, membership_location, picture_location, product_location, review_location,
    thumbnail, upload_location,
};

use std::collections::BTreeMap;

use key_schema::id::{CustomerId, MediaId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::media::MediaObject;
use key_schema::money::Money;
use key_schema::picture::Picture;
use key_schema::product::{
    self, Availability, CategoryPath, Copied, Product, ProductContent, ProductSales, ReviewStats,
};
use key_schema::review::recent::RecentReview;
use key_schema::review::{self, Review};
use key_schema::variant::{Options, Variant};
use serde::Serialize;
use storage::media::Upload;

/// A product, with data of the product's other items.
#[derive(Debug, Serialize)]
pub struct ProductView<'a> {
    id: &'a ProductId,
    name: &'a str,
    brand: &'a str,
    package_size: Option<&'a str>,
    category_path: &'a CategoryPath,
    categories: Vec<&'a CategoryPath>,
    price: Money,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a ProductId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<&'a Options>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variants: Option<Vec<VariantView<'a>>>,
    summary: Option<&'a str>,
    thumbnail: Option<String>,
    weight_grams: Option<u64>,
    shippable: bool,
    tax_category: &'a str,
    in_stock: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    availability: Option<Availability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stock: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sold: Option<Sold>,
    average_rating: Option<f64>,
    review_count: u64,
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> ProductView<'a> {
    /// Builds the view of a product for everybody. The list of categories begins with the product's
    /// own category. A stock of fewer than `stock_low` pieces is low.
    pub fn new(product: &'a Stored<Product>, details: &'a ProductDetails, stock_low: u64) -> Self {
        let own = &product.category_path;
        let further = details.categories.iter().filter(|further| *further != own);
        let variants: Option<Vec<_>> =
            product.variants.map(|_| details.variants.iter().map(VariantView::from).collect());
        let in_stock = match &variants {
            Some(variants) => variants.iter().any(|variant| variant.in_stock),
            None => details.stock > 0,
        };
        // A parent has no stock of its own.
        let availability = variants.is_none().then(|| Availability::of(details.stock, stock_low));
        Self {
            id: &product.id,
            name: &product.name,
            brand: &product.brand,
            package_size: product.package_size.as_deref(),
            category_path: own,
            categories: std::iter::once(own).chain(further).collect(),
            price: product.price,
            parent: product.parent.as_ref(),
            options: product.options.as_ref(),
            variants,
            summary: product.summary.as_deref(),
            thumbnail: thumbnail(&product.id, product.thumbnail.as_ref()),
            weight_grams: product.weight_grams,
            shippable: product.is_shippable(),
            tax_category: product.tax_category(),
            in_stock,
            availability,
            stock: None,
            sold: None,
            average_rating: details.statistics.average(),
            review_count: details.statistics.count,
            version: product.meta.version,
            created_at: product.meta.created_at,
            updated_at: product.meta.updated_at,
        }
    }

    /// Adds the exact stock and sales, which only staff see.
    pub fn with_numbers(self, details: &ProductDetails) -> Self {
        let stock = self.variants.is_none().then_some(details.stock);
        Self { stock, sold: Some(details.sold), ..self }
    }
}

/// The numbers of a product that only staff see.
#[derive(Debug, Serialize)]
pub struct NumbersView<'a> {
    product_id: &'a ProductId,
    /// Absent for a product with variants, which has no stock of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    stock: Option<u64>,
    sold: Sold,
    version: u64,
}

impl<'a> NumbersView<'a> {
    pub fn new(product: &'a Stored<Product>, details: &ProductDetails) -> Self {
        Self {
            product_id: &product.id,
            stock: product.variants.is_none().then_some(details.stock),
            sold: details.sold,
            version: product.meta.version,
        }
    }
}

/// The data on a product's page that comes from items other than the product itself.
#[derive(Debug, Default)]
pub struct ProductDetails {
    pub stock: u64,
    pub sold: Sold,
    pub statistics: Statistics,
    pub categories: Vec<CategoryPath>,
    pub variants: Vec<Variant>,
    /// The number of items that cannot be decoded.
    pub left_out: usize,
}

impl ProductDetails {
    pub fn new(stock: u64) -> Self {
        Self { stock, ..Self::default() }
    }
}

/// The total sales of a product, without cancelled and returned orders.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Sold {
    quantity: u64,
    orders: u64,
}

impl From<&ProductSales> for Sold {
    fn from(sales: &ProductSales) -> Self {
        Self { quantity: sales.quantity, orders: sales.orders }
    }
}

#[derive(Debug, Serialize)]
pub struct MembershipView<'a> {
    pub product_id: &'a ProductId,
    pub category_path: &'a CategoryPath,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    pub count: u64,
    pub sum: u64,
}

impl Statistics {
    /// Returns the average rating with two decimals, halves rounded up, or `None` without reviews.
    ///
    /// The calculation uses integers of hundredths, and returns `None` if they overflow. Only the
    /// result becomes a float. JSON shows it with at most two decimals.
    pub fn average(self) -> Option<f64> {
        let hundredths = self.sum.checked_mul(200)?.checked_add(self.count)?.checked_div(self.count.checked_mul(2)?)?;
        Some(f64::from(u32::try_from(hundredths).ok()?) / 100.0)
    }
}

impl From<&ReviewStats> for Statistics {
    fn from(stats: &ReviewStats) -> Self {
        Self { count: stats.rating_count, sum: stats.rating_sum }
    }
}

#[derive(Debug, Serialize)]
pub struct StatisticsView {
    average: Option<f64>,
    count: u64,
}

impl From<Statistics> for StatisticsView {
    fn from(statistics: Statistics) -> Self {
        Self { average: statistics.average(), count: statistics.count }
    }
}

#[derive(Debug, Serialize)]
pub struct ProductSummaryView<'a> {
    id: &'a ProductId,
    name: &'a str,
    brand: &'a str,
    package_size: Option<&'a str>,
    category_path: &'a CategoryPath,
    price: Money,
    thumbnail: Option<String>,
    version: u64,
}

impl<'a> From<&'a product::ProductSummary> for ProductSummaryView<'a> {
    fn from(listed: &'a product::ProductSummary) -> Self {
        Self {
            id: &listed.id,
            name: &listed.name,
            brand: &listed.brand,
            package_size: listed.package_size.as_deref(),
            category_path: &listed.category_path,
            price: listed.price,
            thumbnail: thumbnail(&listed.id, listed.thumbnail.as_ref()),
            version: listed.version,
        }
    }
}

impl<'a> From<&'a Stored<Product>> for ProductSummaryView<'a> {
    fn from(product: &'a Stored<Product>) -> Self {
        Self {
            id: &product.id,
            name: &product.name,
            brand: &product.brand,
            package_size: product.package_size.as_deref(),
            category_path: &product.category_path,
            price: product.price,
            thumbnail: thumbnail(&product.id, product.thumbnail.as_ref()),
            version: product.meta.version,
        }
    }
}

/// A product that was read by its id, from its own item alone. The availability and the ratings are
/// the copies on this item.
#[derive(Debug, Serialize)]
pub struct ProductByIdView<'a> {
    #[serde(flatten)]
    product: ProductSummaryView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a ProductId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<&'a Options>,
    summary: Option<&'a str>,
    /// `None` for a parent, which has no stock of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_stock: Option<bool>,
    average_rating: Option<f64>,
    review_count: u64,
}

impl<'a> From<&'a Stored<Product>> for ProductByIdView<'a> {
    fn from(product: &'a Stored<Product>) -> Self {
        let Copied { in_stock, rating_count, rating_sum, .. } = product.copied;
        Self {
            product: ProductSummaryView::from(product),
            parent: product.parent.as_ref(),
            options: product.options.as_ref(),
            summary: product.summary.as_deref(),
            in_stock: product.variants.is_none().then_some(in_stock),
            average_rating: Statistics { count: rating_count, sum: rating_sum }.average(),
            review_count: rating_count,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct StockView {
    pub stock: u64,
}

/// A product's long description: a text, or a file that contains it. A product without a
/// description has neither, and no version.
#[derive(Debug, Serialize)]
pub struct ContentView<'a> {
    product_id: &'a ProductId,
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<ObjectView<'a>>,
    version: Option<u64>,
    updated_at: Option<Instant>,
}

impl<'a> ContentView<'a> {
    pub const fn none(product_id: &'a ProductId) -> Self {
        Self { product_id, text: None, file: None, version: None, updated_at: None }
    }

    /// Builds the view of a content at a version. `by` is the file's URL and the URL's expiry.
    pub fn new(content: &'a ProductContent, by: Option<(String, Instant)>, version: u64, updated_at: Instant) -> Self {
        let file = content.file.as_ref().zip(by).map(|(file, by)| ObjectView::new(file, by));
        let text = file.is_none().then_some(content.text.as_str());
        Self { product_id: &content.product_id, text, file, version: Some(version), updated_at: Some(updated_at) }
    }
}

#[derive(Debug, Serialize)]
pub struct ObjectView<'a> {
    id: &'a MediaId,
    content_type: &'a str,
    bytes: u64,
    url: String,
    url_expires_at: Instant,
}

impl<'a> ObjectView<'a> {
    fn new(object: &'a MediaObject, (url, url_expires_at): (String, Instant)) -> Self {
        Self { id: &object.id, content_type: &object.content_type, bytes: object.bytes, url, url_expires_at }
    }
}

#[derive(Debug, Serialize)]
pub struct PictureView<'a> {
    #[serde(flatten)]
    object: ObjectView<'a>,
    alt: Option<&'a str>,
    added_at: Instant,
}

impl<'a> PictureView<'a> {
    /// Builds the view of a picture. `by` is its URL and the URL's expiry.
    pub fn new(picture: &'a Picture, by: (String, Instant)) -> Self {
        let object = ObjectView::new(&picture.object, by);
        Self { object, alt: picture.alt.as_deref(), added_at: picture.added_at }
    }
}

#[derive(Debug, Serialize)]
pub struct UploadView<'a> {
    id: &'a MediaId,
    content_type: &'a str,
    bytes: u64,
    upload: PermitView<'a>,
}

#[derive(Debug, Serialize)]
struct PermitView<'a> {
    method: &'static str,
    url: &'a str,
    headers: BTreeMap<&'static str, &'a str>,
    expires_at: Instant,
}

impl<'a> UploadView<'a> {
    pub fn new(object: &'a MediaObject, upload: &'a Upload, expires_at: Instant) -> Self {
        let headers = upload.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let upload = PermitView { method: "PUT", url: &upload.url, headers, expires_at };
        Self { id: &object.id, content_type: &object.content_type, bytes: object.bytes, upload }
    }
}

#[derive(Debug, Serialize)]
pub struct ReviewView<'a> {
    product_id: &'a ProductId,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_id: Option<&'a CustomerId>,
    rating: u64,
    display_name: Option<&'a str>,
    title: &'a str,
    text: &'a str,
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl ReviewView<'_> {
    /// Leaves out the author's id, which only the author and staff see.
    #[must_use]
    pub fn of_anybody(self) -> Self {
        Self { customer_id: None, ..self }
    }
}

impl<'a> From<&'a Stored<Review>> for ReviewView<'a> {
    fn from(review: &'a Stored<Review>) -> Self {
        Self {
            product_id: &review.product_id,
            customer_id: Some(&review.customer_id),
            rating: review.rating,
            display_name: review.display_name.as_deref(),
            title: &review.title,
            text: &review.text,
            version: review.meta.version,
            created_at: review.meta.created_at,
            updated_at: review.meta.updated_at,
        }
    }
}

impl<'a> From<&'a review::ReviewSummary> for ReviewView<'a> {
    fn from(listed: &'a review::ReviewSummary) -> Self {
        Self {
            product_id: &listed.product_id,
            customer_id: Some(&listed.customer_id),
            rating: listed.rating,
            display_name: listed.display_name.as_deref(),
            title: &listed.title,
            text: &listed.text,
            version: listed.version,
            created_at: listed.created_at,
            updated_at: listed.updated_at,
        }
    }
}

impl<'a> From<&'a Stored<RecentReview>> for ReviewView<'a> {
    fn from(recent: &'a Stored<RecentReview>) -> Self {
        Self {
            product_id: &recent.product_id,
            customer_id: Some(&recent.customer_id),
            rating: recent.rating,
            display_name: recent.display_name.as_deref(),
            title: &recent.title,
            text: &recent.text,
            version: recent.meta.version,
            created_at: recent.meta.created_at,
            updated_at: recent.meta.updated_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn average(count: u64, sum: u64) -> Option<f64> {
        Statistics { count, sum }.average()
    }

    #[test]
    fn an_average_has_two_decimals_and_is_absent_without_reviews() {
        assert_eq!(average(0, 0), None);
        assert_eq!(average(3, 13), Some(4.33));
        assert_eq!(average(3, 14), Some(4.67));
        assert_eq!(average(1, 5), Some(5.0));
        assert_eq!(average(8, 33), Some(4.13), "a half is rounded up");
        assert_eq!(average(u64::MAX, u64::MAX), None, "an average that overflows is not shown");
    }
}

#[derive(Debug, Serialize)]
pub struct VariantView<'a> {
    id: &'a ProductId,
    name: &'a str,
    options: &'a Options,
    price: Money,
    thumbnail: Option<String>,
    /// Whether customers can buy at least one piece.
    pub in_stock: bool,
}

impl<'a> From<&'a Variant> for VariantView<'a> {
    fn from(variant: &'a Variant) -> Self {
        let Variant { product_id, name, options, price, in_stock, .. } = variant;
        let thumbnail = thumbnail(product_id, variant.thumbnail.as_ref());
        Self { id: product_id, name, options, price: *price, thumbnail, in_stock: *in_stock }
    }
}
