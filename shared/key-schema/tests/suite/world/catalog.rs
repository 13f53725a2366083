//! Examples of products, their copies, categories, reviews and documents, and the requests for them.

use key_schema::address::PostalAddress;
use key_schema::category::relocation::{self, CategoryMove, Phase};
use key_schema::category::{self, CategoryAbout, CategoryNode};
use key_schema::change::Change;
use key_schema::entity::AnyEntity as Any;
use key_schema::follow::Follow;
use key_schema::id::{CustomerId, LocationId, ProductId};
use key_schema::idempotency::{self, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::leaderboard::{Board, Period, Rank, Tally};
use key_schema::like::{Like, LikeCount};
use key_schema::location::{self, StockLocation, StockLocations};
use key_schema::media::{self, MediaKind, MediaObject, UnsettledObject};
use key_schema::membership::{self, Membership, ProductCategories};
use key_schema::picture::{self, Picture, PictureCopy, PictureSize, ProductPictures, Shape};
use key_schema::product::{
    self, Adjustment, CategoryIndexKey, CategoryPath, Copied, Product, ProductChanges as _, ProductContent,
    ProductSales, ReshardReason, ReviewStats, ShardedStock, Stock,
};
use key_schema::request::Guarded;
use key_schema::review::recent::{Month, RecentReview, ReviewMonth};
use key_schema::review::{self, Review};
use key_schema::variant::{self, Options, Variant};

use super::{UNFINISHED, World};
use crate::categories::path;
use crate::exercises::NOW;
use crate::goldens::{Golden, with};
use crate::rendering::{Request as _, Shown};
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
        let last_adjustment = Some(self.adjustment());
        self.stored(Stock { last_adjustment, ..Stock::new(self.product.clone(), 1_000_000) })
    }

    /// Returns a stock in two shards.
    pub fn stock_shards(&self) -> [Stored<Stock>; 2] {
        [(0, 9, Some(2)), (1, 6, None)].map(|(shard, available, shards)| {
            self.stored(Stock { shard, shards, ..Stock::new(self.product.clone(), available) })
        })
    }

    pub fn sharded_stock(&self) -> Stored<ShardedStock> {
        let location = LocationId::main();
        self.stored(ShardedStock { product_id: self.product.clone(), location, shards: 2, least: None })
    }

    pub fn stock_location(&self) -> Stored<StockLocation> {
        let address = Some(PostalAddress { name: "Ice Ltd".to_owned(), ..self.postal_address() });
        self.stored(StockLocation { id: self.location.clone(), name: "Warehouse Ulm".to_owned(), address })
    }

    pub fn stock_locations(&self) -> Stored<StockLocations> {
        self.stored(StockLocations { locations: 3 })
    }

    pub fn stock_elsewhere(&self) -> Stored<Stock> {
        self.stored(Stock { location: self.location.clone(), ..Stock::new(self.product.clone(), 7) })
    }

    pub fn revived_stock(&self) -> Stored<Stock> {
        let mut stock = self.stock();
        stock.data.product_born = Some(self.product().meta.born);
        stock
    }

    pub fn review_stats(&self) -> Stored<ReviewStats> {
        self.stored(ReviewStats { product_id: self.product.clone(), rating_count: 12, rating_sum: 49 })
    }

    pub fn further_sales(&self) -> Stored<ProductSales> {
        self.stored(ProductSales { quantity: 5, orders: 2, ..ProductSales::none(self.product.clone(), 3) })
    }

    pub fn product_sales(&self) -> Stored<ProductSales> {
        self.stored(ProductSales { quantity: 54, orders: 9, ..ProductSales::none(self.product.clone(), 0) })
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
            shape: Some(Shape {
                width: 1_600,
                height: 1_200,
                copies: vec![
                    PictureCopy { size: PictureSize::Small, width: 320, height: 240 },
                    PictureCopy { size: PictureSize::Medium, width: 800, height: 600 },
                ],
            }),
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

pub fn catalogue_goldens(world: &World) -> Vec<Golden> {
    vec![
        Golden::of("Product", world.product(), Any::Product),
        Golden::of("Product-retired", world.retired_product(), Any::Product),
        Golden::of("Product-unshipped", world.unshipped_product(), Any::Product),
        Golden::of("Product-variant", world.variant_product(), Any::Product),
        Golden::of("Product-parent", world.parent_product(), Any::Product),
        Golden::of("Product-pictured", world.pictured_product(), Any::Product),
        Golden::of("Variant", world.variant(), Any::Variant),
        Golden::of(
            "Variant-pictured",
            with(world.variant(), |variant| variant.thumbnail = Some(world.media.clone())),
            Any::Variant,
        ),
        Golden::of("ShardedStock", world.sharded_stock(), Any::ShardedStock),
        Golden::of("Stock", world.stock(), Any::Stock),
        Golden::of("Stock-revived", world.revived_stock(), Any::Stock),
        Golden::of("Stock-elsewhere", world.stock_elsewhere(), Any::Stock),
        Golden::of("StockLocation", world.stock_location(), Any::StockLocation),
        Golden::of("StockLocations", world.stock_locations(), Any::StockLocations),
        Golden::of("ReviewStats", world.review_stats(), Any::ReviewStats),
        Golden::of("ProductSales", world.product_sales(), Any::ProductSales),
        Golden::of("ProductSales-further", world.further_sales(), Any::ProductSales),
        Golden::of("ProductCategories", world.product_categories(), Any::ProductCategories),
        Golden::of("Membership", world.membership(false), Any::Membership),
        Golden::of("Membership-retired", world.membership(true), Any::Membership),
        Golden::of(
            "Membership-pictured",
            with(world.membership(false), |member| member.thumbnail = Some(world.media.clone())),
            Any::Membership,
        ),
        Golden::of("Review", world.review(), Any::Review),
        Golden::of(
            "Review-named",
            with(world.review(), |review| review.display_name = Some("Ann from Ulm".to_owned())),
            Any::Review,
        ),
        Golden::of("Tally", world.tally(Period::day(at("2017-02-01T09:00:00.000Z"))), Any::Tally),
        Golden::of("Tally-all", world.tally(Period::All), Any::Tally),
        Golden::of("Rank", world.rank(17), Any::Rank),
        Golden::of("Rank-zero", world.rank(0), Any::Rank),
        Golden::of("RecentReview", world.recent_review(), Any::RecentReview),
        Golden::of(
            "RecentReview-named",
            with(world.recent_review(), |entry| entry.display_name = Some("Ann from Ulm".to_owned())),
            Any::RecentReview,
        ),
        Golden::of("ReviewMonth", world.review_month(), Any::ReviewMonth),
        Golden::of("CategoryNode", world.category_node(), Any::CategoryNode),
        Golden::of("CategoryNode-moving", world.moving_category_node(), Any::CategoryNode),
        Golden::of("CategoryMove", world.category_move(), Any::CategoryMove),
        Golden::of("CategoryAbout", world.category_about(), Any::CategoryAbout),
    ]
}

pub fn content_goldens(world: &World) -> Vec<Golden> {
    vec![
        Golden::of("ProductContent", world.content(), Any::ProductContent),
        Golden::of("ProductContent-large", world.large_content(), Any::ProductContent),
        Golden::of("ProductPictures", world.pictures(), Any::ProductPictures),
        Golden::of("UnsettledObject", world.unsettled(false), Any::UnsettledObject),
        Golden::of("UnsettledObject-doomed", world.unsettled(true), Any::UnsettledObject),
        Golden::of("Document", world.document(false), Any::Document),
        Golden::of("Document-draft", world.document(true), Any::Document),
        Golden::of("Document-discarding", world.discarding_document(), Any::Document),
        Golden::of("Document-removing", world.removed_document(), Any::Document),
        Golden::of("Document-orphaned", world.orphaned_document(), Any::Document),
        Golden::of("CustomerDocument", world.customer_document(), Any::CustomerDocument),
        Golden::of("DocumentSection", world.document_section(), Any::DocumentSection),
        Golden::of("DocumentVersion", world.document_version(false), Any::DocumentVersion),
        Golden::of("DocumentVersion-restored", world.document_version(true), Any::DocumentVersion),
    ]
}

fn claim_of(world: &World, now: Instant) -> Guarded {
    let answer = StoredResponse::Body { status: 200, body: "{}".into() };
    idempotency::claim(&world.idempotency_record(answer), now).unwrap()
}

pub fn products(world: &World) -> Vec<Shown> {
    let (now, stored, id, noted) = (at(NOW), world.product(), &world.product, world.unsettled(false));
    let mut second = world.product();
    second.data.id = ProductId::new("a+b #1").unwrap();
    let index_key = CategoryIndexKey { category_path: &path(&["GROCERY", "ICE"]), id };
    let moved = Change::<Product>::visible(now)
        .price(&world.money(99))
        .unwrap()
        .summary(&None)
        .unwrap()
        .enter(&index_key)
        .unwrap();
    let claim = claim_of(world, now);
    vec![
        product::create(&stored, 100, &[world.category_node()]).unwrap().show("product::create"),
        product::create_many([(&stored, 100), (&second, 0)]).unwrap().show("product::create_many"),
        product::revive(&world.retired_product(), &stored, 100, &[]).unwrap().show("product::revive"),
        product::page(id).unwrap().show("product::page"),
        product::read_for_update(id).unwrap().show("product::read_for_update"),
        product::many([id, &second.data.id]).unwrap().show("product::many"),
        product::by_ids([id, &second.data.id]).unwrap().show("product::by_ids"),
        product::update(id, moved, 3).unwrap().show("product::update"),
        product::retire(id, 3, now).unwrap().show("product::retire"),
        product::set_stock(id, 50, now).unwrap().show("product::set_stock"),
        product::set_shards(&world.stock_shards()[0], 50, now).unwrap().show("product::set_shards"),
        product::grow(&world.stock(), 3, ReshardReason::Asked, now).unwrap().show("product::grow"),
        product::grow(&world.stock_shards()[0], 3, ReshardReason::Hot, now).unwrap().show("product::grow"),
        product::level(&world.stock_shards(), now).unwrap().remove(0).show("product::level"),
        product::drain(&world.stock_shards(), 1, now).unwrap().remove(0).show("product::drain"),
        product::merge(&world.stock_shards(), 1, ReshardReason::Asked, now).unwrap().show("product::merge"),
        product::sharded().unwrap().show("product::sharded"),
        product::unlist(&world.sharded_stock()).unwrap().show("product::unlist"),
        product::further_shards(&world.stock_shards()[0]).unwrap().unwrap().show("product::further_shards"),
        product::adjust_stock(&[world.stock()], &world.adjustment(), claim.clone())
            .unwrap()
            .show("product::adjust_stock"),
        product::adjust_stock(&world.stock_shards(), &world.adjustment(), claim).unwrap().show("product::adjust_stock"),
        product::stock(id).unwrap().show("product::stock"),
        product::shown_stock(id).unwrap().show("product::shown_stock"),
        product::stock_at(id, &world.location).unwrap().show("product::stock_at"),
        product::set_stock_at(id, &world.location, 7, &stored.meta.born, now).unwrap().show("product::set_stock_at"),
        product::adjust_stock_at(
            (id, &world.location),
            None,
            7,
            &world.adjustment(),
            &stored.meta.born,
            claim_of(world, now),
        )
        .unwrap()
        .show("product::adjust_stock_at"),
        product::adjust_stock_at(
            (id, &world.location),
            Some(&world.stock_elsewhere()),
            2,
            &world.adjustment(),
            &stored.meta.born,
            claim_of(world, now),
        )
        .unwrap()
        .show("product::adjust_stock_at"),
        location::get(&world.location).unwrap().show("location::get"),
        location::list().unwrap().show("location::list"),
        location::create(&world.stock_location()).unwrap().show("location::create"),
        location::change(&world.stock_location(), 3, now).unwrap().show("location::change"),
        product::old_stock(id).unwrap().show("product::old_stock"),
        product::move_stock(&world.stock()).unwrap().show("product::move_stock"),
        product::content(id).unwrap().show("product::content"),
        product::create_content(&world.content(), None).unwrap().show("product::create_content"),
        product::create_content(&world.large_content(), Some(&noted)).unwrap().show("product::create_content"),
        product::replace_content(&world.content(), None, None, 3, now).unwrap().show("product::replace_content"),
        product::replace_content(&world.content(), None, Some(&noted), 3, now)
            .unwrap()
            .show("product::replace_content"),
        product::replace_content(&world.large_content(), Some(&noted), None, 3, now)
            .unwrap()
            .show("product::replace_content"),
        product::replace_content(&world.large_content(), Some(&noted), Some(&noted), 3, now)
            .unwrap()
            .show("product::replace_content"),
        product::in_category(&world.category).unwrap().show("product::in_category"),
        product::copy_stock(&world.stock()).unwrap().show("product::copy_stock"),
        product::copy_shards(&world.product(), &world.stock_shards()[0]).unwrap().show("product::copy_shards"),
        product::copy_rating(&world.review_stats()).unwrap().show("product::copy_rating"),
    ]
}

pub fn variants(world: &World) -> Vec<Shown> {
    let (now, one, mut parent) = (at(NOW), world.variant_product(), world.parent_product());
    parent.data.id = one.parent.clone().unwrap();
    let mut childless = parent.clone();
    childless.data.variants = None;
    let mut retired = world.variant_product();
    retired.data.retired = true;
    vec![
        variant::create(&one, 100, &parent, &[]).unwrap().show("variant::create"),
        variant::create(&one, 0, &childless, &[world.category_node()]).unwrap().show("variant::create"),
        variant::revive(&retired, &one, 100, &parent, &[]).unwrap().show("variant::revive"),
        variant::revive(&retired, &one, 0, &childless, &[]).unwrap().show("variant::revive"),
        variant::retire(&one, 3, now).unwrap().unwrap().show("variant::retire"),
        variant::refresh(&one).unwrap().unwrap().show("variant::refresh"),
    ]
}

pub fn pictures(world: &World) -> Vec<Shown> {
    let (now, id, known, picture) = (at(NOW), &world.product, world.pictures(), world.picture());
    let add = |known| picture::add(&picture, &world.unsettled(false), known, now).unwrap();
    let describe = |alt| picture::describe(&known, &world.media, alt, now).unwrap().show("picture::describe");
    vec![
        picture::list(id).unwrap().show("picture::list"),
        picture::prepare(id).unwrap().show("picture::prepare"),
        add(None).show("picture::add"),
        add(Some(&known)).show("picture::add"),
        describe(Some("Ice")),
        describe(None),
        picture::remove(&known, &world.unsettled(false), now).unwrap().show("picture::remove"),
    ]
}

pub fn media(world: &World) -> Vec<Shown> {
    let (now, noted) = (at(NOW), world.unsettled(false));
    let listed = media::Unsettled { product_id: world.product.clone(), id: world.media.clone() };
    vec![
        media::note(&noted).unwrap().show("media::note"),
        media::unsettled_since(now).unwrap().show("media::unsettled_since"),
        media::doom(&listed, now, now).unwrap().show("media::doom"),
        media::references(&noted).unwrap().show("media::references"),
        media::forget(&world.unsettled(true)).unwrap().show("media::forget"),
    ]
}

pub fn memberships(world: &World) -> Vec<Shown> {
    let (now, stored, id, further) = (at(NOW), world.product(), &world.product, &world.further_category);
    let (known, added) = (world.product_categories(), path(&["SUMMER", "ICE"]));
    let add = |known| membership::add(&stored, &added, known, &stored.meta.born, now).unwrap();
    vec![
        membership::prepare(id).unwrap().show("membership::prepare"),
        add(None).show("membership::add"),
        add(Some(&known)).show("membership::add"),
        membership::remove(&known, further, now).unwrap().show("membership::remove"),
        membership::lists([id]).unwrap().show("membership::lists"),
        membership::of_product(id).unwrap().show("membership::of_product"),
        membership::refresh(&stored, further).unwrap().show("membership::refresh"),
        membership::refresh(&world.retired_product(), further).unwrap().show("membership::refresh"),
    ]
}

pub fn categories(world: &World) -> Vec<Shown> {
    let (category, top) = (&world.category, &world.unescaped_category);
    vec![
        category::get(category).unwrap().show("category::get"),
        category::get(top).unwrap().show("category::get"),
        category::known([top, category]).unwrap().show("category::known"),
        category::add([&world.category_node()]).unwrap().show("category::add"),
        category::create(&world.category_node(), Some(&world.category_about())).unwrap().show("category::create"),
        category::create(&world.category_node(), None).unwrap().show("category::create"),
        category::describe(&world.category_about()).unwrap().show("category::describe"),
        category::redescribe(category, &Some("Ice".into()), &None, 3, at(NOW)).unwrap().show("category::redescribe"),
        category::children(Some(category)).unwrap().show("category::children"),
        category::children(None).unwrap().show("category::children"),
        category::subtree(category).unwrap().show("category::subtree"),
        category::ancestors(category).unwrap().show("category::ancestors"),
    ]
}

pub fn category_moves(world: &World) -> Vec<Shown> {
    let (now, moving, product) = (at(NOW), world.category_move(), world.product());
    let (category, successor) = (&world.category, moving.destination(&world.category).unwrap());
    let below = CategoryPath::new([category.names(), &["BAGS".to_owned()]].concat()).unwrap();
    let mut known = world.product_categories();
    known.data.paths.push(below);
    let mut elsewhere = product.clone();
    elsewhere.data.category_path = world.further_category.clone();
    let wanted = || CategoryMove::new(category.clone(), successor.clone(), now);
    let (born, about) = (&product.meta.born, world.category_about());
    vec![
        relocation::get().unwrap().show("category::get"),
        relocation::begin(wanted(), None, born.clone(), now).unwrap().show("category::begin"),
        relocation::begin(wanted(), Some(&moving), born.clone(), now).unwrap().show("category::begin"),
        relocation::below(category, None).unwrap().show("category::below"),
        relocation::below(&category.parent().unwrap(), Some(category)).unwrap().show("category::below"),
        relocation::about(category).unwrap().show("category::about"),
        relocation::copy(&moving, category, &successor, Some(&about), now).unwrap().show("category::copy"),
        relocation::copy(&moving, category, &successor, None, now).unwrap().show("category::copy"),
        relocation::listed(category).unwrap().show("category::listed"),
        relocation::read([&world.product]).unwrap().show("category::read"),
        relocation::add(&moving, [&successor], now).unwrap().show("category::add"),
        relocation::move_products(&moving, &[(&product, successor.clone())], now)
            .unwrap()
            .show("category::move_products"),
        relocation::transfer(&moving, &product, &known, now).unwrap().unwrap().show("category::transfer"),
        relocation::transfer(&moving, &elsewhere, &known, now).unwrap().unwrap().show("category::transfer"),
        relocation::clear(&moving, category, now).unwrap().show("category::clear"),
        relocation::keep(&moving, category, now).unwrap().show("category::keep"),
        relocation::next_phase(&moving, now).unwrap().show("category::next_phase"),
        relocation::reach(&moving, category, now).unwrap().show("category::reach"),
    ]
}

pub fn reviews(world: &World) -> Vec<Shown> {
    let (now, stored, product, customer) = (at(NOW), world.review(), &world.product, &world.customer);
    let named = Review { rating: 2, display_name: Some("Ann from Ulm".to_owned()), ..stored.data.clone() };
    vec![
        review::create(&stored).unwrap().show("review::create"),
        review::change(&stored, &named, now).unwrap().show("review::change"),
        review::erase_name(&stored, now).unwrap().show("review::erase_name"),
        review::delete(&stored, now).unwrap().show("review::delete"),
        review::get(product, customer).unwrap().show("review::get"),
        review::read_for_update(product, customer).unwrap().show("review::read_for_update"),
        review::stats(product).unwrap().show("review::stats"),
        review::newest(product).unwrap().show("review::newest"),
        review::best(product).unwrap().show("review::best"),
        review::by_customer(customer).unwrap().show("review::by_customer"),
        review::recent::of_month(&Month::of(now)).unwrap().show("review::of_month"),
        review::recent::months_before(&Month::of(now)).unwrap().show("review::months_before"),
        review::recent::month(&Month::of(now)).unwrap().show("review::month"),
        review::recent::add_month(&world.review_month()).unwrap().show("review::add_month"),
    ]
}
