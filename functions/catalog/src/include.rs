//! The parameter `include` of a product: what a page of the product shows beside it, in one response.

use std::str::FromStr;

use futures::future::{OptionFuture, try_join3};
use http_api::{Code, Problem, Request};
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::{Stored, take};
use key_schema::media::MediaKind;
use key_schema::picture::{self, Picture, PicturesItem};
use key_schema::product::{self, ProductContent};
use key_schema::review::{self, ReviewSummary};

use crate::App;
use crate::uploads;
use crate::view::{ContentView, PictureView, ProductView, ReviewView};

/// The number of reviews in the response.
pub const FIRST_REVIEWS: usize = 5;

const MAX_VALUES: usize = 10;
const CONTENT: &str = "content";
const PICTURES: &str = "pictures";
const REVIEWS: &str = "reviews";

/// The parts that a request includes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Include {
    content: bool,
    pictures: bool,
    reviews: bool,
}

impl Include {
    /// Reads the parameter, which may be repeated.
    pub fn of(request: &Request<'_>) -> Result<Self, Problem> {
        let refuse = |detail| Problem::new(Code::InvalidParameter, format!("The query parameter `include` {detail}."));
        let mut all = Self::default();
        for (number, text) in request.query_all("include")?.enumerate() {
            if number >= MAX_VALUES {
                return Err(refuse("is given too often"));
            }
            let Self { content, pictures, reviews } = text.parse().map_err(refuse)?;
            all = Self {
                content: all.content || content,
                pictures: all.pictures || pictures,
                reviews: all.reviews || reviews,
            };
        }
        Ok(all)
    }

    /// Returns whether the response has URLs that expire.
    pub const fn has_urls(self) -> bool {
        self.content || self.pictures
    }
}

impl FromStr for Include {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut include = Self::default();
        for name in text.split(',') {
            match name {
                CONTENT => include.content = true,
                PICTURES => include.pictures = true,
                REVIEWS => include.reviews = true,
                _ => return Err("must be one or more of content, pictures and reviews, separated by commas"),
            }
        }
        Ok(include)
    }
}

/// A signed URL and its expiry.
type Link = (String, Instant);

/// The parts of a product. A part that the request does not include is [`None`].
#[derive(Debug, Default)]
pub struct Included {
    id: Option<ProductId>,
    content: Option<Option<(Stored<ProductContent>, Option<Link>)>>,
    pictures: Option<Vec<(Picture, Link)>>,
    reviews: Option<Vec<ReviewSummary>>,
}

/// Reads the parts of a product.
pub async fn read(app: &App, id: &ProductId, include: Include) -> Result<Included, Problem> {
    let content = OptionFuture::from(include.content.then(|| content(app, id)));
    let pictures = OptionFuture::from(include.pictures.then(|| pictures(app, id)));
    let reviews = OptionFuture::from(include.reviews.then(|| reviews(app, id)));
    let (content, pictures, reviews) =
        try_join3(async { content.await.transpose() }, async { pictures.await.transpose() }, async {
            reviews.await.transpose()
        })
        .await?;
    Ok(Included { id: Some(id.clone()), content, pictures, reviews })
}

async fn content(app: &App, id: &ProductId) -> Result<Option<(Stored<ProductContent>, Option<Link>)>, Problem> {
    let mut found = app.services.table.batch_get(&product::content(id)?).await?;
    let Some(content) = take::<ProductContent, _>(&mut found) else { return Ok(None) };
    let link = match &content.file {
        Some(file) => Some(uploads::reading(app, MediaKind::Content, id, &file.id).await?),
        None => None,
    };
    Ok(Some((content, link)))
}

async fn pictures(app: &App, id: &ProductId) -> Result<Vec<(Picture, Link)>, Problem> {
    let found = app.services.table.batch_get(&picture::list(id)?).await?;
    let mut pictures = Vec::new();
    for item in found.into_iter().flatten() {
        let PicturesItem::ProductPictures(known) = item else { continue };
        for picture in known.data.pictures {
            let link = uploads::reading(app, MediaKind::Picture, id, &picture.object.id).await?;
            pictures.push((picture, link));
        }
    }
    Ok(pictures)
}

async fn reviews(app: &App, id: &ProductId) -> Result<Vec<ReviewSummary>, Problem> {
    Ok(app.services.table.query_readable(&review::newest(id)?.limit(FIRST_REVIEWS)).await?.items)
}

impl Included {
    /// Adds the parts to the view of their product.
    pub fn add_to<'a>(&'a self, mut view: ProductView<'a>) -> ProductView<'a> {
        if let (Some(content), Some(id)) = (&self.content, &self.id) {
            view.content = Some(match content {
                Some((content, link)) => {
                    ContentView::new(content, link.clone(), content.meta.version, content.meta.updated_at)
                }
                None => ContentView::none(id),
            });
        }
        if let (Some(pictures), Some(id)) = (&self.pictures, &self.id) {
            let picture = |(picture, link): &'a (Picture, Link)| PictureView::new(id, picture, link.clone());
            view.pictures = Some(pictures.iter().map(picture).collect());
        }
        let review = |review: &'a ReviewSummary| ReviewView::from(review).of_anybody();
        view.reviews = self.reviews.as_ref().map(|reviews| reviews.iter().map(review).collect());
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_names_known_parts_and_may_repeat_them() {
        for text in ["content", "pictures,reviews", "reviews,reviews"] {
            assert!(text.parse::<Include>().is_ok(), "{text}");
        }
        for text in ["", "Content", "content,", "content, reviews", "likes"] {
            assert!(text.parse::<Include>().is_err(), "{text}");
        }
    }
}
