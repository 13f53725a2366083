use std::borrow::Cow;

use http_api::contract::Schema;
use http_api::contract::rules::{any, component, integer};
use http_api::url;
use key_schema::customer::Location;
use key_schema::follow::{Follow, Follower};
use key_schema::graph::EdgeKind;
use key_schema::id::{CustomerId, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::like::{Like, Liker};
use key_schema::money::Money;
use key_schema::product::Product;
use key_schema::residence::Resident;
use key_schema::review;
use key_schema::sales::Bought;
use serde::Serialize;

#[derive(Serialize, Schema)]
pub struct FollowView<'a> {
    /// The customer who follows.
    customer_id: &'a CustomerId,
    /// The followed customer.
    #[field(example = "bob")]
    followed_id: &'a CustomerId,
    since: Instant,
}

impl<'a> From<&'a Stored<Follow>> for FollowView<'a> {
    fn from(edge: &'a Stored<Follow>) -> Self {
        let Follow { customer_id, followed_id } = &edge.data;
        Self { customer_id, followed_id, since: edge.meta.created_at }
    }
}

impl<'a> FollowView<'a> {
    pub fn of_follower(follower: &'a Follower, followed_id: &'a CustomerId) -> Self {
        Self { customer_id: &follower.customer_id, followed_id, since: follower.created_at }
    }
}

#[derive(Serialize, Schema)]
pub struct LikeView<'a> {
    customer_id: &'a CustomerId,
    product_id: &'a ProductId,
    since: Instant,
}

impl<'a> From<&'a Stored<Like>> for LikeView<'a> {
    fn from(like: &'a Stored<Like>) -> Self {
        let Like { customer_id, product_id } = &like.data;
        Self { customer_id, product_id, since: like.meta.created_at }
    }
}

impl<'a> LikeView<'a> {
    pub fn of_liker(liker: &'a Liker, product_id: &'a ProductId) -> Self {
        Self { customer_id: &liker.customer_id, product_id, since: liker.created_at }
    }
}

/// A like with data of its product, which is null if the product is no longer in the catalogue.
#[derive(Serialize, Schema)]
pub struct LikedProductView<'a> {
    #[serde(flatten)]
    like: LikeView<'a>,
    /// The product's name.
    #[field(example = "Ice 22 LB")]
    name: Option<&'a str>,
    /// The product's current price.
    price: Option<Money>,
    #[field(rule = component("Thumbnail", "null"), not_null)]
    thumbnail: Option<String>,
}

impl<'a> LikedProductView<'a> {
    pub fn new(like: &'a Stored<Like>, product: Option<&'a Product>) -> Self {
        let thumbnail = product.and_then(|product| product.thumbnail.as_ref());
        Self {
            like: LikeView::from(like),
            name: product.map(|product| product.name.as_str()),
            price: product.map(|product| product.price),
            thumbnail: thumbnail.map(|picture| url::picture(like.product_id.as_str(), picture.as_str())),
        }
    }
}

#[derive(Serialize, Schema)]
pub struct LikesView {
    /// The number of customers who like the product.
    #[field(example = 17)]
    pub count: u64,
}

/// An edge from a customer. A field that its kind does not have is left out.
#[derive(Serialize, Schema)]
#[schema(example = {"kind": "lives-in", "target": "DE~Ulm", "at": null, "place": {"country": "DE", "city": "Ulm"}})]
pub struct EdgeView<'a> {
    #[field(rule = any::<EdgeKind>(), example = "bought")]
    kind: &'static str,
    /// The id of the target customer or product. For a place, the form in a path, such as `DE~Ulm`.
    #[field(example = "819063")]
    target: Cow<'a, str>,
    /// The instant of the follow, like, review or order. Null for `lives-in`.
    at: Option<Instant>,
    /// The order of a `bought` edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<&'a OrderId>,
    /// The rating of a `reviewed` edge.
    #[field(rule = integer(1..=5))]
    #[serde(skip_serializing_if = "Option::is_none")]
    rating: Option<u64>,
    /// The place of a `lives-in` edge.
    #[field(rule = component("Place", ""))]
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a Location>,
}

impl<'a> EdgeView<'a> {
    fn new(kind: EdgeKind, target: impl Into<Cow<'a, str>>, at: impl Into<Option<Instant>>) -> Self {
        let (kind, target, at) = (kind.as_str(), target.into(), at.into());
        Self { kind, target, at, order_id: None, rating: None, place: None }
    }

    pub fn follows(edge: &'a Stored<Follow>) -> Self {
        Self::new(EdgeKind::Follows, edge.followed_id.as_str(), edge.meta.created_at)
    }

    pub fn likes(like: &'a Stored<Like>) -> Self {
        Self::new(EdgeKind::Likes, like.product_id.as_str(), like.meta.created_at)
    }

    pub fn reviewed(review: &'a review::ReviewSummary) -> Self {
        let edge = Self::new(EdgeKind::Reviewed, review.product_id.as_str(), review.created_at);
        Self { rating: Some(review.rating), ..edge }
    }

    pub fn bought(bought: &'a Bought) -> Self {
        let edge = Self::new(EdgeKind::Bought, bought.product_id.as_str(), bought.placed_at);
        Self { order_id: Some(&bought.order_id), ..edge }
    }

    pub fn lives_in(place: &'a Location) -> Self {
        Self { place: Some(place), ..Self::new(EdgeKind::LivesIn, place.to_segment(), None) }
    }
}

#[derive(Serialize, Schema)]
pub struct ResidentView<'a> {
    id: &'a CustomerId,
    #[field(rule = component("Place", r#"{"country": "DE", "city": "Ulm"}"#))]
    place: &'a Location,
}

impl<'a> From<&'a Resident> for ResidentView<'a> {
    fn from(resident: &'a Resident) -> Self {
        Self { id: &resident.id, place: &resident.place }
    }
}
