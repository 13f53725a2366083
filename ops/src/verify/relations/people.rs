use key_schema::customer::{self, Customer, EmailClaim, UsernameClaim};
use key_schema::document::{self, CustomerDocument, Document, Tie};
use key_schema::entity::AnyEntity;
use key_schema::id::CustomerId;
use key_schema::item::{Entity as _, Stored};
use key_schema::key::Key;
use key_schema::question::{self, CustomerQuestion, Question};

use super::{Problem, Seen, Skip};
use crate::error::OpsError;
use crate::verify::report::Kind;

pub(super) fn needs(entity: &AnyEntity, keys: &mut Vec<Key>) -> Result<(), OpsError> {
    match entity {
        AnyEntity::Customer(item) => {
            keys.extend([email_of(item).key()?, username_of(item).key()?]);
        }
        AnyEntity::EmailClaim(item) => keys.push(customer::get(&item.customer_id)?.key().clone()),
        AnyEntity::UsernameClaim(item) => keys.push(customer::get(&item.customer_id)?.key().clone()),
        AnyEntity::Document(item) => {
            for (customer, tie) in holders(item) {
                keys.extend([role(item, &customer, tie).key()?, customer::get(&customer)?.key().clone()]);
            }
        }
        AnyEntity::CustomerDocument(item) => keys.push(document::get(&item.document_id)?.key().clone()),
        AnyEntity::Question(item) => keys.push(CustomerQuestion::of(item).key()?),
        AnyEntity::CustomerQuestion(item) => keys.push(question::read_for_update(&item.id)?.key().clone()),
        _ => {}
    }
    Ok(())
}

pub(super) fn check(entity: &AnyEntity, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    match entity {
        AnyEntity::Customer(item) => claims(item, seen),
        AnyEntity::EmailClaim(item) => {
            let is_owner = |owner: &Customer| owner.email_verified && owner.email.folded() == item.email;
            claimed(seen, &item.customer_id, is_owner)
        }
        AnyEntity::UsernameClaim(item) => {
            claimed(seen, &item.customer_id, |owner| owner.username.folded() == item.username)
        }
        AnyEntity::Document(item) if !item.deleting => roles(item, seen),
        AnyEntity::CustomerDocument(item) => {
            let key = document::get(&item.document_id)?.key().clone();
            let head = seen.find::<Document>(&key)?;
            let is_named = |head: &Document| holders(head).contains(&(item.customer_id.clone(), item.tie));
            if head.is_some_and(|head| is_named(&head)) {
                return Ok(Vec::new());
            }
            let problem = Problem::new(Kind::Link, "the document does not name this customer in this role");
            Ok(vec![problem.repaired_by(seen.delete(&key))])
        }
        AnyEntity::Question(item) => {
            let right = CustomerQuestion::of(item);
            Ok(match seen.find::<CustomerQuestion>(&right.key()?)? {
                None => vec![
                    Problem::of(&right, Kind::Copy, "the customer's copy is missing").repaired_by(seen.put(&right)?),
                ],
                Some(copy) if copy.data != right.data => {
                    let names = ["status", "answer_count", "title", "text", "version", "rev", "updated_at"];
                    let problem = Problem::of(&copy, Kind::Copy, "the copy differs from the question");
                    vec![problem.repaired_by(seen.correct(&right, names, false)?)]
                }
                Some(_) => Vec::new(),
            })
        }
        AnyEntity::CustomerQuestion(item) => {
            let key = question::read_for_update(&item.id)?.key().clone();
            Ok(match seen.find::<Question>(&key)? {
                None => vec![Problem::new(Kind::Orphan, "the question is missing")],
                Some(_) => Vec::new(),
            })
        }
        _ => Ok(Vec::new()),
    }
}

fn email_of(customer: &Customer) -> EmailClaim {
    EmailClaim { email: customer.email.folded(), customer_id: customer.id.clone() }
}

fn username_of(customer: &Customer) -> UsernameClaim {
    UsernameClaim { username: customer.username.folded(), customer_id: customer.id.clone() }
}

/// Checks that a profile has the claims of its email address and its user name.
fn claims(item: &Stored<Customer>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let mut problems = Vec::new();
    if item.email_verified {
        problems.extend(seen.claimed(&item.meta, email_of(item), "customer", "email address")?);
    }
    problems.extend(seen.claimed(&item.meta, username_of(item), "customer", "user name")?);
    Ok(problems)
}

/// Checks that the customer of a claim has the claimed name. The repair deletes the claim if the
/// customer has another name. If the profile is missing, it may have been deleted by mistake. Then the
/// claim stays, so that nobody takes the name before the profile is restored.
fn claimed(seen: &Seen<'_>, id: &CustomerId, is_owner: impl Fn(&Customer) -> bool) -> Result<Vec<Problem>, Skip> {
    let key = customer::get(id)?.key().clone();
    let Some(owner) = seen.find::<Customer>(&key)? else {
        let what = format!("the profile of the claim's customer {id} is missing: restore it, or delete the claim");
        return Ok(vec![Problem::new(Kind::Claim, what)]);
    };
    if is_owner(&owner) {
        return Ok(Vec::new());
    }
    let problem = Problem::new(Kind::Claim, "the claim leads to no customer with this name");
    Ok(vec![problem.repaired_by(seen.delete(&key))])
}

fn holders(head: &Document) -> Vec<(CustomerId, Tie)> {
    let owner = head.owner_id.iter().map(|owner| (owner.clone(), Tie::Owner));
    owner.chain(head.editors.iter().map(|editor| (editor.clone(), Tie::Editor))).collect()
}

fn role(head: &Document, customer: &CustomerId, tie: Tie) -> CustomerDocument {
    CustomerDocument { customer_id: customer.clone(), document_id: head.id.clone(), tie }
}

/// Checks that the owner and the editors of a document have their role items. A customer without a
/// profile needs no role item, because only the erasure of a profile uses role items.
fn roles(head: &Stored<Document>, seen: &Seen<'_>) -> Result<Vec<Problem>, Skip> {
    let mut problems = Vec::new();
    for (customer, tie) in holders(head) {
        let data = role(head, &customer, tie);
        let profile = seen.find::<Customer>(customer::get(&customer)?.key())?;
        if profile.is_some() && seen.find::<CustomerDocument>(&data.key()?)?.is_none() {
            let right = Stored::new(data, head.meta.born.clone(), head.meta.updated_at);
            let problem = Problem::of(&right, Kind::Link, "the role item is missing");
            problems.push(problem.repaired_by(seen.put(&right)?));
        }
    }
    Ok(problems)
}
