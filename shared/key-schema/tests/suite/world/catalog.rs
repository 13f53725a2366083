//! Examples of products, their copies, categories and reviews.

use key_schema::category::relocation::{CategoryMove, Phase};
use key_schema::category::{CategoryAbout, CategoryNode};
use key_schema::follow::Follow;
use key_schema::id::{CustomerId, ProductId};
use key_schema::item::Stored;
use key_schema::leaderboard::{Board, Period, Rank, Tally};
use key_schema::like::{Like, LikeCount};
use key_schema::media::{MediaKind, MediaObject, UnsettledObject};
use key_schema::membership::{Membership, ProductCategories};
use key_schema::picture::{Picture, ProductPictures};
use key_schema::product::{Adjustment, Copied, Product, ProductContent, ProductSales, ReviewStats, Stock};
use key_schema::review::Review;
use key_schema::review::recent::{Month, RecentReview, ReviewMonth};
use key_schema::variant::{Options, Variant};

use super::{UNFINISHED, World};
use crate::support::at;

impl World {
    pub fn product(&self) -> Stored<Product> {
        self.stored(Product {
            copied: Copied { in_stock: true, stock_rev: 5, rating_count: 12, rating_sum: 49, rating_rev: 13 },
            package_size: Some("22 LB".into()),
            summary: Some("A bag of ice.".into()),
            ..Product::new(
                self.product.clone(),
                "ICE - CRUSHED/CUBED 22 LB".into(),
                "Private".into(),
                self.money(129),
                self.category.clone(),
            )
        })
    }

    pub fn retired_product(&self) -> Stored<Product> {
        let mut product = self.product();
        product.data.retired = true;
        product
    }

    /// Makes a variant of the product with the id `1082100`.
    pub fn variant_product(&self) -> Stored<Product> {
        let options = [("weight", "22 LB"), ("form", "Crushed")];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut product = self.product();
        product.data.parent = Some(ProductId::new("1082100").unwrap());
        product.data.options = Some(Options::new(options.into()).unwrap());
        product
    }

    pub fn pictured_product(&self) -> Stored<Product> {
        let mut product = self.product();
        product.data.thumbnail = Some(self.media.clone());
        product
    }

    pub fn parent_product(&self) -> Stored<Product> {
        let mut product = self.product();
        product.data.copied.in_stock = false;
        product.data.variants = Some(3);
        product
    }

    pub fn variant(&self) -> Stored<Variant> {
        let mut variant = Variant::of(&self.variant_product()).unwrap();
        variant.data.source_rev = 21;
        variant
    }

    pub fn adjustment(&self) -> Adjustment {
        let staff = CustomerId::new("staff-1").unwrap();
        Adjustment { by: -5, reason: "melted".into(), staff, at: at("2017-02-02T10:30:00.250Z") }
    }

    pub fn stock(&self) -> Stored<Stock> {
        self.stored(Stock {
            product_id: self.product.clone(),
            available: 1_000_000,
            sellable: true,
            product_born: None,
            last_adjustment: Some(self.adjustment()),
        })
    }

    pub fn revived_stock(&self) -> Stored<Stock> {
        let mut stock = self.stock();
        stock.data.product_born = Some(self.product().meta.born);
        stock
    }

    pub fn review_stats(&self) -> Stored<ReviewStats> {
        self.stored(ReviewStats { product_id: self.product.clone(), rating_count: 12, rating_sum: 49 })
    }

    pub fn product_sales(&self) -> Stored<ProductSales> {
        self.stored(ProductSales { product_id: self.product.clone(), quantity: 54, orders: 9 })
    }

    pub fn product_categories(&self) -> Stored<ProductCategories> {
        self.stored(ProductCategories { product_id: self.product.clone(), paths: vec![self.further_category.clone()] })
    }

    pub fn membership(&self, retired: bool) -> Stored<Membership> {
        self.stored(Membership {
            id: self.product.clone(),
            path: self.further_category.clone(),
            retired,
            source_rev: 21,
            thumbnail: None,
            category_path: self.category.clone(),
            name: "ICE - CRUSHED/CUBED 22 LB".into(),
            brand: "Private".into(),
            package_size: Some("22 LB".into()),
            price: self.money(129),
        })
    }

    pub fn content(&self) -> Stored<ProductContent> {
        self.stored(ProductContent { product_id: self.product.clone(), text: "# Ice\n\nCold.".into(), file: None })
    }

    pub fn large_content(&self) -> Stored<ProductContent> {
        let file = self.media_object("text/markdown", 4_500_000);
        self.stored(ProductContent { product_id: self.product.clone(), text: String::new(), file: Some(file) })
    }

    fn media_object(&self, content_type: &str, bytes: u64) -> MediaObject {
        MediaObject { id: self.media.clone(), content_type: content_type.into(), bytes }
    }

    pub fn picture(&self) -> Picture {
        Picture {
            object: self.media_object("image/webp", 482_113),
            alt: Some("A bag of ice, in front of a bath".into()),
            added_at: at("2017-02-03T14:05:00.000Z"),
        }
    }

    pub fn pictures(&self) -> Stored<ProductPictures> {
        self.stored(ProductPictures { product_id: self.product.clone(), pictures: vec![self.picture()] })
    }

    pub fn unsettled(&self, doomed: bool) -> Stored<UnsettledObject> {
        let (product, id, since) = (self.product.clone(), self.media.clone(), at("2017-02-03T14:04:59.500Z"));
        self.stored(UnsettledObject { doomed, ..UnsettledObject::new(MediaKind::Picture, product, id, since) })
    }

    pub fn category_node(&self) -> Stored<CategoryNode> {
        self.stored(CategoryNode::new(self.category.clone()))
    }

    /// Makes a node whose move has already created its successor.
    pub fn moving_category_node(&self) -> Stored<CategoryNode> {
        self.stored(CategoryNode { path: self.category.clone(), moving: true })
    }

    pub fn category_move(&self) -> Stored<CategoryMove> {
        self.stored(CategoryMove {
            phase: Phase::Settling,
            reached: Some(self.category.clone()),
            categories: 3,
            products: 41,
            memberships: 2,
            ..CategoryMove::new(self.category.clone(), self.further_category.clone(), at(UNFINISHED))
        })
    }

    pub fn category_about(&self) -> Stored<CategoryAbout> {
        self.stored(CategoryAbout {
            path: self.category.clone(),
            title: Some("Ice".into()),
            description: Some("By the bag.".into()),
        })
    }

    pub fn review(&self) -> Stored<Review> {
        self.stored(Review {
            product_id: self.product.clone(),
            customer_id: self.customer.clone(),
            rating: 5,
            display_name: None,
            title: "Cold".into(),
            text: "As ice should be.".into(),
        })
    }

    pub fn follow(&self) -> Stored<Follow> {
        self.stored(Follow { customer_id: self.customer.clone(), followed_id: self.other.clone() })
    }

    pub fn like(&self) -> Stored<Like> {
        self.stored(Like { customer_id: self.customer.clone(), product_id: self.product.clone() })
    }

    pub fn like_count(&self) -> Stored<LikeCount> {
        self.stored(LikeCount { product_id: self.product.clone(), shard: 6, likes: 17 })
    }

    pub fn tally(&self, period: Period) -> Stored<Tally> {
        let board = if period == Period::All { Board::Views } else { Board::Likes };
        self.stored(Tally { board, product_id: self.product.clone(), period, part: 6, count: 17 })
    }

    pub fn rank(&self, count: i64) -> Stored<Rank> {
        let period = Period::week(at("2017-02-01T09:00:00.000Z"));
        self.stored(Rank { board: Board::Sales, product_id: self.product.clone(), period, count })
    }

    pub fn recent_review(&self) -> Stored<RecentReview> {
        RecentReview::of(&self.review())
    }

    pub fn review_month(&self) -> Stored<ReviewMonth> {
        self.stored(ReviewMonth { month: Month::of(at("2017-02-01T09:00:00.000Z")) })
    }
}
