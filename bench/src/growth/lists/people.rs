//! The lists of customers, wallet, community, organizations, documents and support.

use http_api::sample::Call;
use key_schema::customer::{Customer, Tier};
use key_schema::document::{DocumentVersion, Manifest};
use key_schema::follow::Follow;
use key_schema::id::{Born, CustomerId, DocumentId, EntryId, OrganizationId, SessionId};
use key_schema::instant::Instant;
use key_schema::like::Like;
use key_schema::money::Currency;
use key_schema::organization::invitation::Invitation;
use key_schema::organization::{Member, Role};
use key_schema::question::CustomerQuestion;
use key_schema::review::Review;
use key_schema::session::Session;
use key_schema::wallet::{EntryKind, WalletEntry};

use super::{List, Made};
use crate::examples::{
    OWNER, STAFF, at, bytes, customer, customer_id, item, numbered, owned_product, owner, product_id, question, stored,
};
use crate::{BenchError, examples};

pub(super) fn lists() -> Result<Vec<List>, BenchError> {
    let mut lists = customers();
    lists.extend(community());
    lists.extend(organizations()?);
    lists.extend(support());
    Ok(lists)
}

fn customers() -> Vec<List> {
    let tomorrow = Instant::now().plus_seconds(24 * 60 * 60);
    vec![
        List::new(Call::new("GET /v1/customers").query("tier", "silver").staff(STAFF), super::customers, |n| {
            item(customer(customer_id(n)?, n)?, n)
        }),
        List::new(Call::new("GET /v1/customers").staff(STAFF), super::customers, |n| {
            let tier = Tier::ALL.into_iter().cycle().nth(usize::try_from(n % 3)?).unwrap_or_default();
            item(Customer { tier, ..customer(customer_id(n)?, n)? }, n)
        }),
        List::of_owner("GET /v1/customers/{id}/sessions", super::customers, move |n| {
            let expires_at = tomorrow.plus_millis(i64::try_from(n).unwrap_or(i64::MAX));
            let id = SessionId::generate(at(n), bytes(n));
            item(Session { sign_in: None, id, customer_id: owner()?, expires_at, device: "Laptop".to_owned() }, n)
        }),
        List::of_owner("GET /v1/customers/{id}/wallet/entries", super::wallet, |n| {
            let entry = WalletEntry {
                customer_id: owner()?,
                id: EntryId::generate(at(n), bytes(n)),
                amount: 100,
                currency: Currency::USD,
                kind: EntryKind::Deposit,
                at: at(n),
                counterparty: None,
                order_id: None,
                note: None,
            };
            item(entry, n)
        }),
    ]
}

fn community() -> Vec<List> {
    let edges = |kind: &'static str, item: fn(u64) -> Made| {
        List::new(
            Call::new("GET /v1/graph/{node}/edges").path("node", OWNER).query("kind", kind).staff(STAFF),
            super::community,
            item,
        )
    };
    let follows = |n| item(Follow { customer_id: owner()?, followed_id: customer_id(n)? }, n);
    let likes = |n| item(Like { customer_id: owner()?, product_id: product_id(n)? }, n);
    let reviewed = |n| {
        let (display_name, title, text) = (None, "Cold".to_owned(), "As ice should be.".to_owned());
        item(Review { product_id: product_id(n)?, customer_id: owner()?, rating: 5, display_name, title, text }, n)
    };
    vec![
        List::of_owner("GET /v1/customers/{id}/following", super::community, follows),
        List::of_owner("GET /v1/customers/{id}/followers", super::community, |n| {
            item(Follow { customer_id: customer_id(n)?, followed_id: owner()? }, n)
        }),
        List::of_owner("GET /v1/customers/{id}/likes", super::community, likes),
        List::of_owner("GET /v1/products/{id}/likers", super::community, |n| {
            item(Like { customer_id: customer_id(n)?, product_id: owned_product()? }, n)
        }),
        edges("follows", follows),
        edges("likes", likes),
        edges("reviewed", reviewed),
        List::new(
            Call::new("GET /v1/places/{path}/customers").path("path", "DE").staff(STAFF),
            super::community,
            |n| item(customer(customer_id(n)?, n)?, n),
        ),
    ]
}

fn organizations() -> Result<Vec<List>, BenchError> {
    let organization = OrganizationId::new("chess-club")?;
    let invited = organization.clone();
    let document = DocumentId::new("statutes")?;
    Ok(vec![
        List::new(
            Call::new("GET /v1/organizations/{id}/members").path("id", "chess-club").staff(STAFF),
            super::organizations,
            move |n| {
                let (id, customer_id) = (organization.clone(), customer_id(n)?);
                item(Member { id, customer_id, role: Role::Member, team: None }, n)
            },
        ),
        List::of_owner("GET /v1/customers/{id}/organizations", super::organizations, |n| {
            let id = OrganizationId::new(numbered("club", n))?;
            item(Member { id, customer_id: owner()?, role: Role::Member, team: None }, n)
        }),
        List::new(
            Call::new("GET /v1/organizations/{id}/invitations").path("id", "chess-club").staff(STAFF),
            super::organizations,
            move |n| item(invitation(invited.clone(), customer_id(n)?), n),
        ),
        List::of_owner("GET /v1/customers/{id}/invitations", super::organizations, |n| {
            let id = OrganizationId::new(numbered("club", n))?;
            item(invitation(id, owner()?), n)
        }),
        List {
            call: Call::new("GET /v1/documents/{id}/versions").path("id", "statutes").staff(STAFF),
            function: super::documents,
            around: vec![item(examples::document(document.clone())?, 0)?],
            item: Box::new(move |n| {
                let version = DocumentVersion {
                    id: document.clone(),
                    number: n + 1,
                    sections: Manifest::new(),
                    by: owner()?,
                    at: at(n),
                    note: None,
                    restored_from: None,
                };
                item(version, n)
            }),
        },
    ])
}

fn support() -> Vec<List> {
    vec![
        List::of_owner("GET /v1/customers/{id}/questions", super::support, |n| {
            let copy = CustomerQuestion::of(&stored(question(n)?, n));
            copy.to_item().map_err(BenchError::from)
        }),
        List::new(Call::new("GET /v1/questions").query("status", "open").staff(STAFF), super::support, |n| {
            item(question(n)?, n)
        }),
    ]
}

fn invitation(id: OrganizationId, customer_id: CustomerId) -> Invitation {
    let (title, inviter) = ("Chess club".to_owned(), customer_id.clone());
    Invitation {
        id,
        customer_id,
        title,
        role: Role::Member,
        team: None,
        inviter,
        inviter_born: Born::counter(),
        expires_at: Instant::now().plus_seconds(86_400),
    }
}
