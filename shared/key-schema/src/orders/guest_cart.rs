//! Guest carts: carts of visitors without an account.
//!
//! The token of a guest cart gives access to it. The table holds only a hash of the token, and each
//! write has the condition that the stored hash is the hash of the token. So a wrong token changes
//! nothing.
//!
//! A customer who signs in claims the guest cart. One transaction adds the guest cart's lines to
//! the customer's cart and empties the guest cart. The guest cart keeps a hash of the customer and
//! the token. So a repeated claim is recognised, and the item contains no personal data.

use std::collections::BTreeMap;

use item_model::prelude::*;
use ring::digest::{Context, SHA256};

use crate::cart::{self, Cart, CartLine};
use crate::change::Change;
use crate::customer;
use crate::expression::{Condition, first_alive, number, value};
use crate::id::{CustomerId, GuestCartId, ProductId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Single, Transaction};

/// The maximum number of lines in a guest cart. Everybody can write guest carts, and the cost of a
/// write depends on the size of the whole item. 30 lines with the longest product ids cost 6 write
/// units.
pub const MAX_LINES: usize = 30;
/// How long a guest cart lives after a line was last set.
pub const LIFETIME_SECONDS: i64 = 14 * 24 * 60 * 60;

/// Declares a secret that gives access to one item. The table holds only its hash.
macro_rules! secret {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }

        impl $name {
            /// Makes a secret from a client's text. Every text makes a secret, but only one is right
            /// for an item.
            #[must_use]
            pub fn given(text: &str) -> Self {
                Self(text.to_owned())
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}
pub(crate) use secret;

secret! {
    /// The secret that gives access to a guest cart.
    CartToken
}

impl CartToken {
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(hexadecimal(&random))
    }

    /// Returns the hash that the table holds.
    #[must_use]
    pub fn hash(&self) -> String {
        hash(&["bodega guest cart", &self.0])
    }

    /// Returns the hash that records a customer's claim of the cart with this token.
    #[must_use]
    pub fn claim_of(&self, customer: &CustomerId) -> String {
        hash(&["bodega claim of a guest cart", &self.0, customer.as_str()])
    }
}

pub(crate) fn hash(texts: &[&str]) -> String {
    let mut hash = Context::new(&SHA256);
    for text in texts {
        // The lengths distinguish ("ab", "c") from ("a", "bc").
        hash.update(&(text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hexadecimal(hash.finish().as_ref())
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

entity! {
    GuestCart = "GuestCart" {
        fixed {
            id: GuestCartId,
            token_hash: String,
            /// When the cart expires. It is also the time to live. Each [`put_line`] sets it anew.
            expires_at: Instant,
        }
        mutable by GuestCartChanges {
            lines: BTreeMap<ProductId, CartLine>,
            /// The hash of the claim ([`CartToken::claim_of`]), once a customer has claimed the
            /// cart.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            claim: Option<String>,
        }
    }
}

impl GuestCart {
    /// Returns whether the token opens the cart, and the cart has neither expired nor been claimed.
    #[must_use]
    pub fn is_open(&self, token: &CartToken, now: Instant) -> bool {
        self.token_hash == token.hash() && !self.is_expired(now) && self.claim.is_none()
    }
}

impl Entity for GuestCart {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

fn key(id: &GuestCartId) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("GUESTCART", &[id])?, sk: SortKey::new("GUESTCART")? })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimAction {
    /// The guest cart has this token, is unchanged since it was read, has not expired and is not
    /// claimed.
    GuestCart,
    /// The customer's cart is unchanged since it was read.
    Cart,
    /// The customer exists and is not being erased.
    Customer,
}

patterns! {
    GET {
        id: "guest-carts.get",
        purpose: "Read a guest cart",
        request: GetItem,
        key: "PK = GUESTCART#<id>, SK = GUESTCART",
        returns: "the guest cart with its lines",
        consistency: Consistency::Strong("a visitor reads the cart right after changing it"),
        callers: "any",
    }
    CREATE {
        id: "guest-carts.create",
        purpose: "Create an empty guest cart",
        request: PutItem,
        key: "PK = GUESTCART#<id>, SK = GUESTCART",
        requires: "the guest cart does not exist",
        callers: "any",
    }
    PUT_LINE {
        id: "guest-carts.put-line",
        purpose: "Set one line of a guest cart",
        request: UpdateItem,
        key: "PK = GUESTCART#<id>, SK = GUESTCART",
        requires: "the guest cart has this token, has not expired and is not claimed, and has this \
            line or room for another line; SET lines.<product>",
        callers: "any",
    }
    REMOVE_LINE {
        id: "guest-carts.remove-line",
        purpose: "Remove one line of a guest cart",
        request: UpdateItem,
        key: "PK = GUESTCART#<id>, SK = GUESTCART",
        requires: "the guest cart has this token, has not expired and has this line; REMOVE \
            lines.<product>",
        callers: "any",
    }
    DISCARD {
        id: "guest-carts.discard",
        purpose: "Remove a guest cart",
        request: DeleteItem,
        key: "PK = GUESTCART#<id>, SK = GUESTCART",
        requires: "the guest cart has this token and is not claimed",
        callers: "any",
    }
    CLAIM {
        id: "guest-carts.claim",
        purpose: "Add the lines of a guest cart to a customer's cart",
        request: TransactWriteItems,
        key: "PK = GUESTCART#<id>, SK = GUESTCART; PK = CART#<customer>, SK = CART; PK = \
            CUSTOMER#<customer>, SK = PROFILE",
        requires: "the guest cart has this token, has not expired, is not claimed and is unchanged, \
            the customer's cart is unchanged, and the customer exists",
        callers: "owner",
    }
}

/// Reads a guest cart. The caller compares the token, and treats an expired cart as missing.
pub fn get(id: &GuestCartId) -> Result<Get<Stored<GuestCart>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

pub fn create(cart: &Stored<GuestCart>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&CREATE, Guarded::put(cart, Condition::NotExists)?))
}

fn has(token: &CartToken) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("token_hash", value(token.hash())?))
}

fn alive(now: Instant) -> Condition {
    Condition::AtLeast("expires_at", first_alive(now)).and(Condition::Lacks("claim"))
}

/// Sets one line of a guest cart, and returns the cart. DynamoDB refuses the write if a new line
/// would exceed [`MAX_LINES`].
pub fn put_line(
    id: &GuestCartId,
    token: &CartToken,
    product: &ProductId,
    line: &CartLine,
    now: Instant,
) -> Result<Single<Stored<GuestCart>>, EncodeError> {
    let expires = now.plus_seconds(LIFETIME_SECONDS);
    let change = Change::<GuestCart>::visible(now)
        .set_entry("lines", product.as_str(), line)?
        .set("expires_at", expires)?
        .expire_at(expires);
    let room = Condition::HasEntry("lines", product.to_string()).or(Condition::FewerEntries("lines", MAX_LINES));
    Ok(Single::new(&PUT_LINE, Guarded::update(key(id)?, change, has(token)?.and(alive(now)).and(room))))
}

pub fn remove_line(
    id: &GuestCartId,
    token: &CartToken,
    product: &ProductId,
    now: Instant,
) -> Result<Single<Stored<GuestCart>>, EncodeError> {
    let change = Change::<GuestCart>::visible(now).remove_entry("lines", product.as_str());
    let condition = has(token)?.and(alive(now)).and(Condition::HasEntry("lines", product.to_string()));
    Ok(Single::new(&REMOVE_LINE, Guarded::update(key(id)?, change, condition)))
}

/// Removes a guest cart. DynamoDB refuses the deletion of a claimed cart, whose `claim` must stay
/// so that a repeated claim is recognised.
pub fn discard(id: &GuestCartId, token: &CartToken) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&DISCARD, Guarded::delete(key(id)?, has(token)?.and(Condition::Lacks("claim")))))
}

/// Removes the guest cart that was read, as an action of the transaction that places an order from
/// the cart. DynamoDB refuses the write if the cart has changed since the read.
pub fn check_out(cart: &Stored<GuestCart>) -> Result<Guarded, EncodeError> {
    let unchanged = Condition::Is("born", value(&cart.meta.born)?).and(Condition::Is("rev", number(cart.meta.rev)));
    Ok(Guarded::delete(key(&cart.id)?, unchanged))
}

/// Adds the lines of a guest cart to a customer's cart, and empties the guest cart. `merged` is the
/// customer's cart with the lines of both carts. `previous` is the customer's cart as it was read,
/// if there was one.
pub fn claim(
    guest: &Stored<GuestCart>,
    token: &CartToken,
    merged: &Stored<Cart>,
    previous: Option<&Stored<Cart>>,
    now: Instant,
) -> Result<Transaction<ClaimAction>, EncodeError> {
    let unchanged = has(token)?.and(alive(now)).and(Condition::Is("rev", number(guest.meta.rev)));
    let claim = Some(token.claim_of(&merged.customer_id));
    let emptied = Change::<GuestCart>::visible(now).lines(&BTreeMap::new())?.claim(&claim)?;
    Ok(Transaction::new(&CLAIM)
        .action(ClaimAction::GuestCart, Guarded::update(key(&guest.id)?, emptied, unchanged))
        .action(ClaimAction::Cart, cart::merge(merged, previous, now)?)
        .action(ClaimAction::Customer, customer::check(&merged.customer_id)?))
}
