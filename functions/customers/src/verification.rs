//! Verifies the email address of a profile.
//!
//! The stream's consumer publishes a request for a code as an event, and the notifier mails the
//! code. No item stores the code ([`key_schema::code`]). The function counts each try before it
//! compares the code, so concurrent requests share the limit of tries.

use http_api::contract::rules::text;
use http_api::contract::{Body, Schema, route};
use http_api::view::CustomerView;
use http_api::{Code, Owner, Problem, Request, Response, Services, SignedIn};
use key_schema::code::Subject;
use key_schema::customer::{self, Customer};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::{Stored, take};
use key_schema::text::Email;
use key_schema::verification::{self, EmailVerification, MAX_TRIES, VerificationAction};
use serde::Serialize;
use table::Refusal;

use crate::owner;
use crate::profile::{no_customer, respond};

/// The maximum number of attempts. An attempt fails if another request has changed the items that
/// it read.
const ATTEMPTS: usize = 4;

#[derive(Serialize, Schema)]
#[schema(name = "EmailCodeRequest")]
struct RequestView {
    /// Whether the address is verified already. If it is, no mail is sent.
    #[field(example = false)]
    email_verified: bool,
    /// When the code expires.
    #[field(example = "2026-11-20T12:10:00.000Z")]
    expires_at: Option<Instant>,
}

#[derive(Body)]
struct EmailCode {
    /// The code of the mail: 6 digits.
    #[field(rule = text(1..=32), example = "042917")]
    code: String,
}

/// Returns whether an address counts as verified when this caller enters it. The caller must be
/// staff, or have a token that contains the address as verified.
pub fn is_vouched_for(caller: &SignedIn, email: &Email) -> bool {
    caller.is_staff() || caller.proves(email)
}

/// Request a mail with a code
///
/// Mails a code of 6 digits to the customer's email address. The code is valid for 10 minutes and
/// for 5 tries. A newer code replaces it. A customer gets at most 3 such mails within 24 hours. After
/// an erasure, these hours begin anew, but the customer still gets at most 3 such mails on a day in
/// UTC. If the address is verified already, or the customer's token proves it, no mail is sent and
/// `email_verified` is true. The response is 429 after these 3 mails, and after 10 requests for an
/// address on a day in UTC. An address gets no mail after a bounce or a complaint, or after 50 mails
/// on a day in UTC. In these cases the response is the same as if a mail was sent.
#[route(POST "/v1/customers/{id}/email/verification", id = "requestEmailCode", who = owner, task = "profile",
    path(id: CustomerId), answers(202 = RequestView "The address is verified, or the shop sends a mail with a code"),
    refuses(
        email_taken = "the token proves the address, but another customer has verified it",
        conflict = "concurrent requests",
        invalid_body = "the profile's address is not a single ASCII address",
        too_many_mails = "retry after the time in Retry-After",
    ))]
pub async fn request(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    for _ in 0..ATTEMPTS {
        let (profile, previous) = read(services, owner.customer()).await?;
        if profile.email_verified {
            return Ok(Response::accepted(&RequestView { email_verified: true, expires_at: None }));
        }
        let now = Instant::now();
        if is_proven(&owner, &profile) {
            match services.table.transact(&verification::verify(&profile, None, now)?).await? {
                Ok(()) => return Ok(Response::accepted(&RequestView { email_verified: true, expires_at: None })),
                Err(refusals) if refusals.names(VerificationAction::Profile) => continue,
                Err(_) => return Err(email_taken()),
            }
        }
        if !profile.email.is_mailable() {
            return Err(no_mail());
        }
        let (born, key) = (services.born(now)?, services.codes().await?.newest());
        let next = EmailVerification::next(previous.as_ref(), &profile, (nonce(services)?, key), born, now);
        let next = next.map_err(|refused| too_many_mails(refused.0, now))?;
        match services.table.transact(&verification::request(&next, previous.as_ref())?).await? {
            Ok(()) => {
                let expires_at = Some(next.code_expires_at);
                return Ok(Response::accepted(&RequestView { email_verified: false, expires_at }));
            }
            Err(refusals) if refusals.names(VerificationAction::Count) => {
                return Err(too_many_mails(now.plus_seconds(now.seconds_left_of_day()), now));
            }
            // The profile or the latest request has changed. The next attempt reads both again.
            Err(_) => {}
        }
    }
    Err(Problem::new(Code::Conflict, "Other requests changed the email address or its verification. Try again."))
}

/// Verify the email address with a code
///
/// Verifies the customer's email address with the code of the latest mail. If the address is
/// verified already, any code succeeds.
#[route(PUT "/v1/customers/{id}/email/verification", id = "verifyEmail", who = owner, task = "profile",
    path(id: CustomerId), body = EmailCode, answers(200 = CustomerView<'_> "The customer" [ETag]),
    refuses(
        email_taken = "another customer has verified the address",
        code_invalid = "the code is wrong or expired, or the email address has changed since the request",
        too_many_tries = "request a new code",
    ))]
pub async fn verify(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let EmailCode { code } = request.body()?;
    let (profile, pending) = read(services, owner.customer()).await?;
    if profile.email_verified {
        return Ok(respond(&profile));
    }
    let now = Instant::now();
    let Some((pending, nonce)) = pending.as_ref().and_then(|item| Some((item, item.open_nonce(&profile.email, now)?)))
    else {
        return unless_verified(services, &profile.id, code_invalid()).await;
    };
    // Before the count, so that no try is used up while the keys cannot be read.
    let keys = services.codes().await?;
    match services.table.update(&verification::count_try(&profile.id, nonce, now)?).await? {
        Ok(_) => {}
        Err(_) if pending.tries >= MAX_TRIES => return Err(too_many_tries()),
        Err(refusal) => return unless_verified(services, &profile.id, refused_try(&refusal, nonce)).await,
    }
    let subject = Subject { customer: &profile.id, email: &profile.email, nonce };
    if !keys.is_code(&pending.key, &subject, &code) {
        return Err(code_invalid());
    }
    // A refused claim means that another customer has the address. Any other refusal means that a
    // concurrent request has used the code or changed the address.
    if let Err(refusals) = services.table.transact(&verification::verify(&profile, Some(nonce), now)?).await?
        && refusals.names(VerificationAction::Claim)
    {
        return Err(email_taken());
    }
    unless_verified(services, &profile.id, code_invalid()).await
}

/// Returns the profile if its address is verified, perhaps by a concurrent request with the same
/// code. Otherwise returns the problem.
async fn unless_verified(services: &Services, customer: &CustomerId, problem: Problem) -> Result<Response, Problem> {
    let profile = services.table.get(&customer::read_for_update(customer)?).await?.ok_or_else(no_customer)?;
    if profile.email_verified { Ok(respond(&profile)) } else { Err(problem) }
}

/// Reads the profile and the latest request.
///
/// # Errors
/// 404 without a profile, or if its erasure has begun.
async fn read(
    services: &Services,
    customer: &CustomerId,
) -> Result<(Stored<Customer>, Option<Stored<EmailVerification>>), Problem> {
    let mut found = services.table.batch_get(&verification::read(customer)?).await?;
    let profile = take::<Customer, _>(&mut found).filter(|profile| profile.erasing_since.is_none());
    Ok((profile.ok_or_else(no_customer)?, take(&mut found)))
}

/// Returns whether the caller is the customer, with a token that contains the profile's address as
/// verified.
fn is_proven(owner: &Owner, profile: &Customer) -> bool {
    owner.caller().id() == owner.customer() && owner.caller().proves(&profile.email)
}

/// Explains a refused try. The stored request shows whether the tries were used up meanwhile.
fn refused_try(refusal: &Refusal, nonce: &str) -> Problem {
    match refusal.stored::<Stored<EmailVerification>>() {
        Ok(Some(stored)) if stored.nonce.as_deref() == Some(nonce) && stored.tries >= MAX_TRIES => too_many_tries(),
        _ => code_invalid(),
    }
}

/// Returns 128 random bits as text.
fn nonce(services: &Services) -> Result<String, Problem> {
    Ok(services.random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn code_invalid() -> Problem {
    Problem::new(Code::CodeInvalid, "The code is wrong or has expired. Enter the latest code, or request a new one.")
        .error("/code", "is not valid")
}

fn too_many_tries() -> Problem {
    Problem::new(Code::TooManyTries, "The code was tried too often. Request a new one.")
}

/// Returns the problem of an address to which SES sends no mail. A request for such an address must
/// not use up the codes of another address with the same folded form.
fn no_mail() -> Problem {
    let detail = "No mail can be sent to the profile's email address. Change the address first.";
    Problem::new(Code::InvalidBody, detail).error("/email", "must be one plain address of ASCII")
}

fn too_many_mails(next: Instant, now: Instant) -> Problem {
    let seconds = (next.as_seconds() - now.as_seconds()).max(1);
    Problem::new(Code::TooManyMails, "The daily limit of mails with codes is reached. Try again later.")
        .retry_after(seconds)
}

/// Returns the 409 of an address that another customer has verified.
pub fn email_taken() -> Problem {
    Problem::new(Code::EmailTaken, "Another customer has this email address.").error("/email", "is taken")
}
