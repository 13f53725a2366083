//! Signatures of HTTP messages (RFC 9421) with ECDSA over P-256, and digests of their bodies (RFC 9530).
//!
//! The shop signs with keys that follow from the keys of webhooks, so the deployment needs no further
//! secret ([`SigningKeys`]). Its profile shows the public keys ([`Jwk`]). A message of somebody else has a
//! [`Signature`], which is checked with the signer's public key.
//!
//! The algorithm follows from the key, and never from the message. A signature has a fixed length: r and
//! s, each with 32 bytes.

mod keys;
mod message;

pub use keys::{Jwk, SigningKeys};
pub use message::{Refusal, Signature, Signed, content_digest, has_digest};
