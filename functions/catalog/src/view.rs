mod category;
mod location;

pub use self::category::{CategoryView, DESCRIPTION, MoveView, NodeView, TITLE, category_version};
pub use self::location::{
    category_location, content_location, membership_location, picture_location, product_location, review_location,
    thumbnail, upload_location,
};

use std::collections::BTreeMap;

use http_api::contract::Schema;
use http_api::contract::rules::{
    Described, NO_CURSOR, Named, OneOf, PRICE, VERSION, any, described, list_of, map_of, named, one_of,
};
use http_api::contract::rules::{Integer, Text, integer, long_text, text, visible_text};
use key_schema::id::{CustomerId, MediaId, ProductId, TaxCategory};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::media::MediaObject;
use key_schema::membership::MAX_MEMBERSHIPS;
use key_schema::money::Money;
use key_schema::picture::{MAX_PICTURES, Picture, PictureCopy, PictureSize};
use key_schema::product::{
    self, Availability, CategoryPath, Copied, MAX_IDS, MAX_STOCK_SHARDS, Product, ProductContent, ProductSales,
    ReviewStats,
};
use key_schema::review::recent::RecentReview;
use key_schema::review::{self, Review};
use key_schema::variant::{MAX_VARIANTS, Options, Variant};
use serde::Serialize;
use storage::media::Upload;

use crate::body::{BRAND, COMPARE_AT, NAME, PACKAGE_SIZE, PIECES, SUMMARY, WEIGHT};
use crate::include::FIRST_REVIEWS;
use crate::uploads::{MAX_PICTURE, PICTURES};

pub const THUMBNAIL: Named<Described> = named(
    "Thumbnail",
    "The path of the product's first picture, which redirects to the picture. With `?size=small`, `medium` or \
        `large` it redirects to a smaller copy. Null without pictures.",
    described(r#"{"type": ["string", "null"], "format": "uri-reference"}"#),
);
const AVERAGE: Named<Described> = named(
    "Average",
    "The mean rating with two decimals, null without reviews.",
    described(r#"{"type": ["number", "null"], "minimum": 1, "maximum": 5}"#),
);

// A product, with data of the product's other items.
#[derive(Debug, Serialize, Schema)]
pub struct ProductView<'a> {
    id: &'a ProductId,
    #[field(rule = NAME, example = "Ice 22 LB")]
    name: &'a str,
    #[field(rule = BRAND, example = "Private")]
    brand: &'a str,
    #[field(rule = PACKAGE_SIZE, example = "22 LB")]
    package_size: Option<&'a str>,
    category_path: &'a CategoryPath,
    /// Every category that lists the product, with the product's own category first.
    #[field(
        rule = list_of(any::<CategoryPath>(), 1..=MAX_MEMBERSHIPS + 1),
        example = [["GROCERY", "FRZN ICE"], ["SUMMER"]],
    )]
    categories: Vec<&'a CategoryPath>,
    #[field(rule = PRICE)]
    price: Money,
    #[field(rule = COMPARE_AT, example = null)]
    compare_at: Option<Money>,
    /// The product of which this product is a variant. Other products lack the field.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a ProductId>,
    /// The options of a variant. Other products lack the field.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<&'a Options>,
    /// The variants in the catalogue, sorted by id. Only a parent has the field.
    #[field(rule = list_of(any::<VariantView<'_>>(), 0..=MAX_VARIANTS as usize), left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    variants: Option<Vec<VariantView<'a>>>,
    #[field(rule = SUMMARY, example = "Ice for coolers and drinks.")]
    summary: Option<&'a str>,
    #[field(rule = THUMBNAIL, not_null, example = "/v1/products/819063/pictures/019341d0-7c00-7000-8000-000000000001")]
    thumbnail: Option<String>,
    #[field(rule = WEIGHT, example = 9979)]
    weight_grams: Option<u64>,
    /// Whether the product is sent to the customer.
    shippable: bool,
    /// The category of goods for tax, `standard` by default.
    #[field(rule = any::<TaxCategory>(), example = "standard")]
    tax_category: &'a str,
    /// Whether at least one piece is in stock. For a parent: whether one of its variants is in
    /// stock.
    in_stock: bool,
    /// `none` without a piece in stock, `low` with fewer pieces than the deployment's threshold
    /// (`StockLowThreshold`, 10 by default), otherwise `plenty`. A parent lacks the field.
    #[field(rule = one_of(&["none", "low", "plenty"]), example = "plenty")]
    #[serde(skip_serializing_if = "Option::is_none")]
    availability: Option<Availability>,
    /// Pieces in stock. Only the responses to changes by staff have this field. A parent lacks it.
    #[field(rule = PIECES, example = 50)]
    #[serde(skip_serializing_if = "Option::is_none")]
    stock: Option<u64>,
    /// The total sales. Only the responses to changes by staff have this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    sold: Option<Sold>,
    #[field(rule = AVERAGE, not_null, example = 4)]
    average_rating: Option<f64>,
    #[field(example = 3)]
    review_count: u64,
    /// The content, if the request includes it.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentView<'a>>,
    /// The pictures, if the request includes them.
    #[field(rule = list_of(any::<PictureView<'_>>(), 0..=MAX_PICTURES), left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pictures: Option<Vec<PictureView<'a>>>,
    /// The newest reviews, if the request includes them.
    #[field(rule = list_of(any::<ReviewView<'_>>(), 0..=FIRST_REVIEWS), left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviews: Option<Vec<ReviewView<'a>>>,
    #[field(rule = VERSION)]
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
            compare_at: product.compare_at(),
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
            content: None,
            pictures: None,
            reviews: None,
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

// The numbers of a product that only staff see.
#[derive(Debug, Serialize, Schema)]
#[schema(name = "ProductNumbers")]
pub struct NumbersView<'a> {
    product_id: &'a ProductId,
    /// The pieces in stock. Absent for a parent.
    #[field(rule = PIECES, example = 40)]
    #[serde(skip_serializing_if = "Option::is_none")]
    stock: Option<u64>,
    sold: Sold,
    #[field(rule = VERSION)]
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

/// The product's total sales. Cancelled and returned orders are not counted. The totals include
/// orders with a short delay.
#[derive(Debug, Clone, Copy, Default, Serialize, Schema)]
pub struct Sold {
    /// Pieces.
    #[field(example = 54)]
    quantity: u64,
    #[field(example = 9)]
    orders: u64,
}

impl From<&ProductSales> for Sold {
    fn from(sales: &ProductSales) -> Self {
        let counted = |number: i64| u64::try_from(number).unwrap_or(0);
        Self { quantity: counted(sales.quantity), orders: counted(sales.orders) }
    }
}

#[derive(Debug, Serialize, Schema)]
#[schema(name = "ProductCategory")]
pub struct MembershipView<'a> {
    pub product_id: &'a ProductId,
    #[field(example = ["SUMMER"])]
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

/// The members of a page of a product's reviews that are not reviews.
#[derive(Debug, Serialize, Schema)]
#[schema(name = "ProductReviewPage")]
pub struct StatisticsView {
    #[field(rule = AVERAGE, not_null, example = 4)]
    average: Option<f64>,
    /// The number of all reviews of the product.
    count: u64,
}

impl From<Statistics> for StatisticsView {
    fn from(statistics: Statistics) -> Self {
        Self { average: statistics.average(), count: statistics.count }
    }
}

#[derive(Debug, Serialize, Schema)]
pub struct ProductSummaryView<'a> {
    id: &'a ProductId,
    #[field(rule = NAME, example = "Ice 22 LB")]
    name: &'a str,
    #[field(rule = BRAND, example = "Private")]
    brand: &'a str,
    #[field(rule = PACKAGE_SIZE, example = "22 LB")]
    package_size: Option<&'a str>,
    category_path: &'a CategoryPath,
    #[field(rule = PRICE)]
    price: Money,
    #[field(rule = THUMBNAIL, not_null, example = null)]
    thumbnail: Option<String>,
    #[field(rule = VERSION)]
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

// It is read from the product's own item alone. The availability and the ratings are the copies on
// this item.
#[derive(Debug, Serialize, Schema)]
#[schema(page = "ProductPage")]
pub struct ProductByIdView<'a> {
    #[serde(flatten)]
    product: ProductSummaryView<'a>,
    /// The parent of a variant. Other products lack the field.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a ProductId>,
    /// The options of a variant. Other products lack the field.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<&'a Options>,
    #[field(rule = COMPARE_AT, example = null)]
    compare_at: Option<Money>,
    #[field(rule = SUMMARY, example = "Ice for coolers and drinks.")]
    summary: Option<&'a str>,
    /// Whether at least one piece is in stock, with a short delay. A product that is sold only as
    /// variants lacks the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_stock: Option<bool>,
    /// The mean rating with two decimals, null without reviews. It follows a review with a short
    /// delay.
    #[field(rule = AVERAGE, not_null, example = 4)]
    average_rating: Option<f64>,
    /// The number of reviews, with a short delay.
    #[field(example = 3)]
    review_count: u64,
}

#[derive(Debug, Serialize, Schema)]
#[schema(example = {
    "items": [{
        "id": "shirt-m", "name": "Linen shirt M", "brand": "Private", "package_size": null,
        "category_path": ["CLOTHING"], "price": {"amount": 2500, "currency": "USD"}, "thumbnail": null, "version": 1,
        "parent": "shirt", "options": {"size": "M", "colour": "red"}, "compare_at": null, "summary": null,
        "in_stock": true,
        "average_rating": null, "review_count": 0
    }],
    "next_cursor": null
})]
pub struct ProductsById<'a> {
    #[field(rule = list_of(any::<ProductByIdView<'_>>(), 0..=MAX_IDS))]
    pub items: Vec<ProductByIdView<'a>>,
    #[field(rule = NO_CURSOR, example = null)]
    pub next_cursor: (),
}

impl<'a> From<&'a Stored<Product>> for ProductByIdView<'a> {
    fn from(product: &'a Stored<Product>) -> Self {
        let Copied { in_stock, rating_count, rating_sum, .. } = product.copied;
        Self {
            product: ProductSummaryView::from(product),
            parent: product.parent.as_ref(),
            options: product.options.as_ref(),
            compare_at: product.compare_at(),
            summary: product.summary.as_deref(),
            in_stock: product.variants.is_none().then_some(in_stock),
            average_rating: Statistics { count: rating_count, sum: rating_sum }.average(),
            review_count: rating_count,
        }
    }
}

#[derive(Debug, Serialize, Schema)]
pub struct StockView {
    #[field(rule = PIECES, example = 50)]
    pub stock: u64,
}

#[derive(Debug, Serialize, Schema)]
pub struct StockShardsView {
    #[field(rule = integer(1..=MAX_STOCK_SHARDS), example = 16)]
    pub shards: u32,
    #[field(rule = PIECES, example = 50)]
    pub stock: u64,
}

pub const CONTENT_TEXT: Named<Text> = named(
    "ContentText",
    "Markdown, up to 100 KB. Line feeds and tabs are the only allowed control characters.",
    // A quarter of an item's 400 KB.
    long_text(0..=100 * 1024),
);

/// A text, or a file for a large text. With a file, `text` is `null`. A product without content has
/// neither, and `version` is `null`.
#[derive(Debug, Serialize, Schema)]
#[schema(
    example = {"product_id": "shirt", "text": null, "version": null, "updated_at": null},
    example = {
        "product_id": "819063",
        "text": null,
        "file": {
            "id": "019f0000-0000-7000-8000-000000000000", "content_type": "text/markdown", "bytes": 4500000,
            "url": "https://bodega-media.s3.eu-central-1.amazonaws.com/kept/content/819063~019f?X-Amz-Signature=0f3a",
            "url_expires_at": "2026-11-20T13:00:00.000Z"
        },
        "version": 2,
        "updated_at": "2026-11-20T12:00:00.000Z"
    }
)]
pub struct ContentView<'a> {
    product_id: &'a ProductId,
    #[field(rule = CONTENT_TEXT, example = "# Ice")]
    text: Option<&'a str>,
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<FileView<'a>>,
    #[field(rule = VERSION)]
    version: Option<u64>,
    updated_at: Option<Instant>,
}

impl<'a> ContentView<'a> {
    pub const fn none(product_id: &'a ProductId) -> Self {
        Self { product_id, text: None, file: None, version: None, updated_at: None }
    }

    /// Builds the view of a content at a version. `by` is the file's URL and the URL's expiry.
    pub fn new(content: &'a ProductContent, by: Option<(String, Instant)>, version: u64, updated_at: Instant) -> Self {
        let file = content.file.as_ref().zip(by).map(|(file, (url, url_expires_at))| {
            let MediaObject { id, content_type, bytes } = file;
            FileView { id, content_type, bytes: *bytes, link: LinkView { url, url_expires_at } }
        });
        let text = file.is_none().then_some(content.text.as_str());
        Self { product_id: &content.product_id, text, file, version: Some(version), updated_at: Some(updated_at) }
    }
}

#[derive(Debug, Serialize, Schema)]
#[schema(name = "MediaFile")]
pub struct FileView<'a> {
    id: &'a MediaId,
    #[field(example = "text/markdown")]
    content_type: &'a str,
    #[field(rule = BYTES, example = 4500000)]
    bytes: u64,
    #[serde(flatten)]
    link: LinkView,
}

/// The URL of a file.
#[derive(Debug, Serialize, Schema)]
struct LinkView {
    /// A GET of this URL reads the file, without a token.
    #[field(
        example = "https://bodega-media.s3.eu-central-1.amazonaws.com/kept/picture/819063~019f?X-Amz-Signature=0f3a"
    )]
    url: String,
    url_expires_at: Instant,
}

const BYTES: Integer<u64> = integer(1..=u64::MAX);
pub const PICTURE_TYPES: OneOf = one_of(PICTURES);
pub const PICTURE_BYTES: Integer<u64> = integer(1..=MAX_PICTURE);
pub const PICTURE_TEXT: Named<Text> =
    named("PictureText", "A text for people who cannot see the picture, 1 to 300 bytes.", text(1..=300));

#[derive(Debug, Serialize, Schema)]
pub struct PictureView<'a> {
    id: &'a MediaId,
    #[field(rule = PICTURE_TYPES, example = "image/webp")]
    content_type: &'a str,
    #[field(rule = PICTURE_BYTES, example = 482113)]
    bytes: u64,
    #[serde(flatten)]
    link: LinkView,
    #[field(rule = PICTURE_TEXT, example = "A bag of ice")]
    alt: Option<&'a str>,
    /// The width in pixels.
    #[field(rule = PIXELS, example = 1600)]
    width: Option<u32>,
    /// The height in pixels.
    #[field(rule = PIXELS, example = 1200)]
    height: Option<u32>,
    /// The smaller copies, the smallest first.
    #[field(rule = list_of(any::<PictureCopyView>(), 0..=PictureSize::ALL.len()))]
    sizes: Vec<PictureCopyView>,
    added_at: Instant,
}

const PIXELS: Integer<u32> = integer(1..=u32::MAX);

/// A smaller copy of a picture.
#[derive(Debug, Serialize, Schema)]
#[schema(name = "PictureCopy")]
struct PictureCopyView {
    #[field(rule = one_of(&["small", "medium", "large"]))]
    name: &'static str,
    #[field(rule = PIXELS, example = 320)]
    width: u32,
    #[field(rule = PIXELS, example = 240)]
    height: u32,
    /// The path that redirects to the copy.
    #[field(
        rule = described(r#"{"type": "string", "format": "uri-reference"}"#),
        example = "/v1/products/819063/pictures/019341d0-7c00-7000-8000-000000000001?size=small",
    )]
    path: String,
}

#[derive(Debug, Serialize, Schema)]
pub struct PictureList<'a> {
    #[field(rule = list_of(any::<PictureView<'_>>(), 0..=MAX_PICTURES))]
    pub items: Vec<PictureView<'a>>,
    #[field(rule = NO_CURSOR, example = null)]
    pub next_cursor: (),
}

impl<'a> PictureView<'a> {
    /// Builds the view of a picture. `by` is its URL and the URL's expiry.
    pub fn new(product: &ProductId, picture: &'a Picture, (url, url_expires_at): (String, Instant)) -> Self {
        let Picture { object: MediaObject { id, content_type, bytes }, alt, shape, added_at } = picture;
        let link = LinkView { url, url_expires_at };
        let copies = shape.iter().flat_map(|shape| &shape.copies);
        let copy = |copy: &PictureCopy| PictureCopyView {
            name: copy.size.name(),
            width: copy.width,
            height: copy.height,
            path: format!("{}?size={}", picture_location(product, id), copy.size.name()),
        };
        Self {
            id,
            content_type,
            bytes: *bytes,
            link,
            alt: alt.as_deref(),
            width: shape.as_ref().map(|shape| shape.width),
            height: shape.as_ref().map(|shape| shape.height),
            sizes: copies.map(copy).collect(),
            added_at: *added_at,
        }
    }
}

#[derive(Debug, Serialize, Schema)]
pub struct UploadView<'a> {
    id: &'a MediaId,
    #[field(example = "image/webp")]
    content_type: &'a str,
    #[field(rule = BYTES, example = 482113)]
    bytes: u64,
    upload: PermitView<'a>,
}

/// The request that uploads the file.
#[derive(Debug, Serialize, Schema)]
#[schema(name = "UploadRequest")]
struct PermitView<'a> {
    #[field(rule = one_of(&["PUT"]))]
    method: &'static str,
    #[field(
        example = "https://bodega-media.s3.eu-central-1.amazonaws.com/pending/picture/819063~019f?X-Amz-Signature=0f3a"
    )]
    url: &'a str,
    /// The headers that the upload must have. Browsers set `content-length` themselves.
    #[field(
        rule = map_of::<String, _>(any::<String>(), usize::MAX),
        example = {"content-length": "482113", "content-type": "image/webp"},
    )]
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

// A page of a hundred reviews stays below a Query's limit of 1 MB.
pub const DISPLAY_NAME: Named<Text> =
    named("DisplayName", "The name under which everybody sees a review, 1 to 64 bytes.", visible_text(1..=64));
pub const REVIEW_TITLE: Named<Text> = named("ReviewTitle", "1 to 200 bytes.", text(1..=200));
pub const REVIEW_TEXT: Named<Text> = named(
    "ReviewText",
    "1 to 8000 bytes. Line feeds and tabs are the only allowed control characters.",
    long_text(1..=8000),
);
pub const RATING: Named<Integer<u64>> = named("Rating", "", integer(1..=5));

#[derive(Debug, Serialize, Schema)]
pub struct ReviewView<'a> {
    product_id: &'a ProductId,
    /// The author's id. Only staff and the author see it.
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_id: Option<&'a CustomerId>,
    #[field(rule = RATING, example = 4)]
    rating: u64,
    /// The name that the author chose for this review, or null if the author chose none.
    #[field(rule = DISPLAY_NAME, example = "Ann from Ulm")]
    display_name: Option<&'a str>,
    #[field(rule = REVIEW_TITLE, example = "Cold")]
    title: &'a str,
    #[field(rule = REVIEW_TEXT, example = "As ice should be.")]
    text: &'a str,
    #[field(rule = VERSION)]
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

#[derive(Debug, Serialize, Schema)]
pub struct VariantView<'a> {
    #[field(example = "shirt-m")]
    id: &'a ProductId,
    #[field(rule = NAME, example = "Linen shirt M")]
    name: &'a str,
    options: &'a Options,
    #[field(rule = PRICE, example = {"amount": 2500, "currency": "USD"})]
    price: Money,
    #[field(rule = COMPARE_AT, example = null)]
    compare_at: Option<Money>,
    #[field(rule = THUMBNAIL, not_null, example = null)]
    thumbnail: Option<String>,
    /// Whether at least one piece is in stock.
    pub in_stock: bool,
}

impl<'a> From<&'a Variant> for VariantView<'a> {
    fn from(variant: &'a Variant) -> Self {
        let Variant { product_id, name, options, price, in_stock, .. } = variant;
        let thumbnail = thumbnail(product_id, variant.thumbnail.as_ref());
        let compare_at = product::above(variant.compare_at, variant.price);
        Self { id: product_id, name, options, price: *price, compare_at, thumbnail, in_stock: *in_stock }
    }
}
