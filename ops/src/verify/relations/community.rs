//! Compares each invitation with the invited customer's list of invitations, in both directions.
//! Compares each shard of a counter with the number of shards in the counter's head.

use key_schema::counter::{self, Counter};
use key_schema::entity::AnyEntity;
use key_schema::item::Stored;
use key_schema::key::Key;
use key_schema::organization::invitation::{self, Invitation, Invitations};

use super::{Problem, Seen, Skip};
use crate::error::OpsError;
use crate::verify::report::Kind;

pub(super) fn needs(entity: &AnyEntity, keys: &mut Vec<Key>) -> Result<(), OpsError> {
    match entity {
        AnyEntity::Invitation(item) => keys.push(invitation::roster(&item.customer_id)?.key().clone()),
        AnyEntity::Invitations(item) => {
            for organization in item.open.keys() {
                keys.push(invitation_key(item, organization)?);
            }
        }
        AnyEntity::CounterShard(item) if item.shard > 0 => keys.push(counter::head(&item.name)?.key().clone()),
        _ => {}
    }
    Ok(())
}

pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let link = |what: &str| Ok(vec![Problem::new(Kind::Link, what)]);
    match entity {
        AnyEntity::Invitation(item) if item.expires_at > seen.now => {
            let list = seen.find::<Invitations>(invitation::roster(&item.customer_id)?.key())?;
            match list.as_ref().and_then(|list| list.open.get(&item.id)) {
                Some(open) if open.expires_at == item.expires_at => Ok(Vec::new()),
                _ => link("the list of the invited customer does not name this invitation"),
            }
        }
        AnyEntity::Invitations(item) => missing(item, seen),
        AnyEntity::CounterShard(item) if item.shard > 0 => {
            let head = seen.find::<Counter>(counter::head(&item.name)?.key())?;
            if item.shard < counter::shards(head.as_deref()) {
                return Ok(Vec::new());
            }
            link("the shard is beyond the number of shards in the head of its counter")
        }
        _ => Ok(Vec::new()),
    }
}

fn invitation_key(
    list: &Invitations,
    organization: &key_schema::id::OrganizationId,
) -> Result<Key, key_schema::key::KeyError> {
    use key_schema::item::Entity as _;
    let invitation = Invitation {
        id: organization.clone(),
        customer_id: list.customer_id.clone(),
        title: String::new(),
        role: key_schema::organization::Role::Member,
        team: None,
        inviter: list.customer_id.clone(),
        inviter_born: key_schema::id::Born::counter(),
        expires_at: key_schema::instant::Instant::MAX,
    };
    invitation.key()
}

/// Checks that each open invitation of a list exists.
fn missing(list: &Stored<Invitations>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let mut problems = Vec::new();
    for (organization, open) in list.open.iter().filter(|(_, open)| open.expires_at > seen.now) {
        let invitation = seen.find::<Invitation>(&invitation_key(list, organization)?)?;
        if invitation.is_none_or(|invitation| invitation.expires_at != open.expires_at) {
            problems.push(Problem::new(Kind::Link, "the list names an invitation that does not exist"));
        }
    }
    Ok(problems)
}
