pub mod category;
pub mod leaderboard;
pub mod membership;
pub mod product;
pub mod review;
pub mod variant;
