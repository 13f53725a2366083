//! Checks whether an organization has room for one more open invitation.
//!
//! Void invitations do not count. Their inviter is no admin any more, so no customer can accept
//! them. They would fill the list that [`has_room`] counts, so [`has_room`] withdraws them.

use std::collections::HashMap;

use http_api::identity::SignedIn;
use http_api::{Problem, Services};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::organization::Member;
use key_schema::organization::invitation::{self, Invitation, MAX_OF_ORGANIZATION};

use crate::invitations::{Read, read};

/// The page size of the Query that counts invitations.
const PAGE: usize = 100;
/// The maximum number of pages that are counted. More than two pages can exist only because of void
/// invitations, or of expired invitations that DynamoDB has not removed yet.
const MAX_PAGES: usize = 10;
/// The maximum number of void invitations that one request withdraws. Each withdrawal costs
/// about 10 write units. The next requests withdraw the others.
const MAX_WITHDRAWN: usize = 50;

/// Returns whether the organization has room for one more open invitation. The inviters are read
/// only if the count depends on them.
pub async fn has_room(services: &Services, caller: &SignedIn, wanted: &Member, at: Instant) -> Result<bool, Problem> {
    let (mut valid, mut withdrawn, mut after) = (0, 0, None);
    for _ in 0..MAX_PAGES {
        let page = services.table.query(&invitation::open(&wanted.id)?.limit(PAGE).after(after)).await?;
        let counts = |item: &Stored<Invitation>| !item.is_expired(at) && item.customer_id != wanted.customer_id;
        let open: Vec<_> = page.items.into_iter().filter(counts).collect();
        after = page.next;
        if after.is_none() && valid + open.len() < MAX_OF_ORGANIZATION {
            return Ok(true);
        }
        let (void, rest) = part(services, open).await?;
        for invitation in void.iter().take(MAX_WITHDRAWN - withdrawn) {
            withdraw(services, caller, invitation, at).await?;
            withdrawn += 1;
        }
        valid += rest;
        if valid >= MAX_OF_ORGANIZATION || after.is_none() {
            return Ok(valid < MAX_OF_ORGANIZATION);
        }
    }
    Ok(false)
}

/// Returns the void invitations, and the number of valid invitations.
async fn part(services: &Services, open: Vec<Stored<Invitation>>) -> Result<(Vec<Stored<Invitation>>, usize), Problem> {
    let inviters = services.table.batch_get(&invitation::inviters(&open)?).await?;
    let inviters: HashMap<&CustomerId, &Stored<Member>> =
        inviters.iter().flatten().map(|member| (&member.customer_id, member)).collect();
    let is_void = |open: &Stored<Invitation>| open.is_void(inviters.get(&open.inviter).copied());
    let (void, valid): (Vec<_>, Vec<_>) = open.into_iter().partition(is_void);
    Ok((void, valid.len()))
}

/// Withdraws a void invitation. A refusal means that another request has changed the customer's
/// invitations. Then the invitation stays, and a later count finds it.
async fn withdraw(
    services: &Services,
    caller: &SignedIn,
    void: &Stored<Invitation>,
    at: Instant,
) -> Result<(), Problem> {
    let Read { state, .. } = read(services, &void.id, &void.customer_id, caller).await?;
    let _ = services.table.transact(&invitation::withdraw(void, &state, None, at)?).await?;
    Ok(())
}
