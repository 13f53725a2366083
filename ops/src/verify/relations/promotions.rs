use key_schema::entity::AnyEntity;
use key_schema::item::{Entity as _, Stored};
use key_schema::key::Key;
use key_schema::promotion::{Promotion, PromotionCode, PromotionUses};

use super::{Problem, Seen, Skip};
use crate::error::OpsError;
use crate::verify::report::Kind;

pub(super) fn needs(entity: &AnyEntity, keys: &mut Vec<Key>) -> Result<(), OpsError> {
    match entity {
        AnyEntity::Promotion(item) => {
            keys.push(PromotionUses::of(item).key()?);
            keys.extend(PromotionCode::of(item).map(|claim| claim.key()).transpose()?);
        }
        AnyEntity::PromotionCode(item) => keys.push(item.promotion_key()?),
        _ => {}
    }
    Ok(())
}

pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    match entity {
        AnyEntity::Promotion(item) => {
            let mut problems = counts(item, seen)?;
            problems.extend(claim(item, seen)?);
            Ok(problems)
        }
        AnyEntity::PromotionCode(item) => {
            let key = item.promotion_key()?;
            let Some(promotion) = seen.find::<Promotion>(&key)? else {
                // The promotion may have been deleted by mistake, so the code stays taken.
                let what = "the promotion of the code is missing: restore it, or delete the claim";
                return Ok(vec![Problem::new(Kind::Claim, what)]);
            };
            let claim = PromotionCode::of(&promotion);
            if claim.is_some_and(|claim| claim.code == item.code) {
                return Ok(Vec::new());
            }
            let problem = Problem::new(Kind::Claim, "no promotion has the code");
            Ok(vec![problem.repaired_by(seen.delete(&key))])
        }
        _ => Ok(Vec::new()),
    }
}

/// Checks that the uses exist and have the promotion's limit.
fn counts(item: &Stored<Promotion>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let right = PromotionUses::of(item);
    Ok(match seen.find::<PromotionUses>(&right.key()?)? {
        None => {
            // Shards may have uses left. The next order that needs one finds out.
            let mut right = right;
            right.data.leased = right.limit.is_some();
            vec![
                Problem::of(&right, Kind::Copy, "the uses of the promotion are missing").repaired_by(seen.put(&right)?),
            ]
        }
        Some(uses) if (uses.limit, uses.limit_since) != (right.limit, right.limit_since) => {
            let problem = Problem::of(&uses, Kind::Copy, "the uses have another limit than the promotion");
            vec![problem.repaired_by(seen.correct(&right, ["limit", "limit_since"], true)?)]
        }
        Some(_) => Vec::new(),
    })
}

fn claim(item: &Stored<Promotion>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let Some(right) = PromotionCode::of(item) else { return Ok(Vec::new()) };
    Ok(match seen.find::<PromotionCode>(&right.key()?)? {
        None => {
            vec![Problem::of(&right, Kind::Claim, "the claim on the code is missing").repaired_by(seen.put(&right)?)]
        }
        Some(claim) if claim.promotion_id != item.id => {
            vec![Problem::new(Kind::Claim, "another promotion has the code")]
        }
        Some(_) => Vec::new(),
    })
}
