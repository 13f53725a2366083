//! The catalogue: products, their categories and their reviews.

pub mod category;
pub mod leaderboard;
pub mod membership;
pub mod product;
pub mod review;
pub mod variant;
