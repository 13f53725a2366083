//! Orders and the work around them: carts, invoices, picking, and sales by product and place.

pub mod cart;
pub mod guest_cart;
pub mod invoice;
pub mod order;
pub mod picking;
pub mod place;
pub mod pricing;
pub mod promotion;
pub mod sales;
