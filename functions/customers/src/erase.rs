//! Erases a customer.

use http_api::{Problem, Request, Response, Services};
use key_schema::customer;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::{cart, question, session};
use table::Budget;

use crate::profile::{changed_meanwhile, no_customer, refused};
use crate::{documents, edges, memberships, owner};

/// The sessions per page.
const PAGE: usize = 100;
/// The questions per page.
const QUESTIONS: usize = 25;

/// DELETE /v1/customers/{id}: erases a customer.
///
/// The request first marks the profile. From then on the table refuses transactions that need the
/// customer. So the customer gets no further items, such as editorships.
///
/// The profile is deleted after the belongings, so that an interrupted request can be repeated.
/// Every step can run again. One transaction deletes the profile with both claims, and other
/// customers can then use both names.
///
/// The sessions end after the profile is deleted, because the caller may need the same token to
/// repeat the request. Then the functions refuse the tokens. The janitor ends the sessions of
/// interrupted requests.
///
/// After it has deleted the profile, the request erases the belongings once more, because an index
/// may not have shown all of them. By then only carts, which expire, and followers can have been
/// added. A client can still repeat a request that was interrupted here. Its response is then 404.
///
/// The janitor then removes the customer's archive, even if no client repeats the request
/// ([`key_schema::erasure`]). Orders stay because accounting needs them. Reviews stay, too.
pub async fn erase(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let version = request.if_match()?;
    let budget = &Budget::begin(&services.table);
    let Some(customer) = services.table.get(&customer::read_for_update(owner.customer())?).await? else {
        erase_remaining(services, owner.customer(), budget).await?;
        return Err(no_customer());
    };
    if customer.meta.version != version {
        return Err(Problem::version_mismatch());
    }
    if customer.erasing_since.is_none() {
        let begun = services.table.update(&customer::begin_erasure(&customer, Instant::now())?).await?;
        begun.map_err(|refusal| changed_meanwhile(&refusal))?;
        telemetry::crash_point("customers.erasure.begun");
    }
    erase_owned_items(services, owner.customer(), budget).await?;
    telemetry::crash_point("customers.belongings.erased");
    let deleted = services.table.transact(&customer::delete(&customer, Instant::now())?).await?;
    deleted.map_err(|refusals| refused(&refusals))?;
    telemetry::crash_point("customers.profile.erased");
    erase_remaining(services, owner.customer(), budget).await?;
    Ok(Response::no_content())
}

/// Erases belongings that an index did not show earlier, and ends the sessions. Does nothing if the
/// customer has a new profile. Then the janitor ends the older sessions.
async fn erase_remaining(services: &Services, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), Problem> {
    if services.table.get(&customer::read_for_update(customer)?).await?.is_some() {
        return Ok(());
    }
    erase_owned_items(services, customer, budget).await?;
    end_sessions(services, customer, budget).await
}

/// Erases the items that the customer or others may add while the profile exists.
async fn erase_owned_items(services: &Services, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), Problem> {
    let refused = |_| Problem::internal("an unconditional write was refused");
    services.table.write(&cart::discard(customer)?).await?.map_err(refused)?;
    erase_questions(services, customer, budget).await?;
    edges::erase(services, customer, budget).await?;
    memberships::erase_invitations(services, customer, budget).await?;
    memberships::erase(services, customer, budget).await?;
    documents::erase(services, customer, budget).await
}

/// Ends all sessions, including expired ones that DynamoDB has not removed yet. Otherwise they
/// would be archived at their removal.
async fn end_sessions(services: &Services, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), Problem> {
    let mut after = None;
    loop {
        // The loop reads each page once, because the index may still show ended sessions.
        let page = services.table.query(&session::of_customer(customer)?.limit(PAGE).after(after)).await?;
        let ids = || page.items.iter().map(|session| &session.id);
        let sessions = services.table.batch_get(&session::read_all(ids())?).await?;
        budget.write(&session::revoke_all(sessions.iter().flatten(), Instant::now())?).await?;
        budget.write(&session::end_all(ids())?).await?;
        services.sign_ins.ended(sessions.iter().flatten().flat_map(|session| session::sign_ins(session)));
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Erases the questions with their answers. The customer's copy of a question is removed last,
/// because an interrupted erasure finds the other items by it (see [`question`]).
async fn erase_questions(services: &Services, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), Problem> {
    loop {
        // The loop always reads the first page, because erased questions are not read again.
        let page = services.table.query(&question::erasable(customer)?.limit(QUESTIONS)).await?;
        let copies = || page.items.iter().map(|copy| &copy.data);
        budget.write(&question::erase(copies().map(|copy| &copy.id))?).await?;
        // The copy's count of answers may be too small, because another answer may have been added
        // before the question was erased. So this reads the answers.
        for copy in copies() {
            let answers = services.table.query(&question::answers(&copy.id)?).await?;
            budget.write(&question::erase_answers(answers.items.iter().map(|answer| &answer.data))?).await?;
        }
        budget.write(&question::erase_copies(copies())?).await?;
        if page.next.is_none() {
            return Ok(());
        }
    }
}
