pub mod code;
pub mod customer;
pub mod erasure;
pub mod quota;
pub mod residence;
pub mod revocation;
pub mod session;
pub mod verification;
