//! Changes a profile.
//!
//! The function first reads the profile strongly, because three changes depend on the stored
//! profile. A new user name or verified email address moves the customer's claim in the same
//! transaction. A new tier changes the index key, which also contains the stored time of creation.
//! A new country or city is merged with the other member of `place`.
//!
//! The write is conditional on the version that was read, so two concurrent changes cannot mix. A
//! request that changes nothing writes nothing.
//!
//! A new email address is unverified, unless staff enter it or the caller's token contains it as
//! verified. When staff enter an address, even the stored one, an earlier bounce or complaint no
//! longer stops mail to it.

use http_api::address::PLACE_NAME;
use http_api::contract::rules::{named, one_of};
use http_api::contract::{Body, route};
use http_api::view::{CUSTOMER_NAME, CustomerView};
use http_api::{Code, FieldPatch, Problem, Request, Response, Services, SignedIn, change_version};
use key_schema::change::Change as Update;
use key_schema::customer::{self, Customer, CustomerChanges as _, Location, Names, Tier, TierIndexKey};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::recipient::{self, RecipientHash};
use key_schema::residence;
use key_schema::text::{Email, Username};

use crate::owner;
use crate::profile::{changed_meanwhile, no_customer, refused, respond};
use crate::verification::is_vouched_for;

/// Change a customer
///
/// Changes the profile with a JSON Merge Patch (RFC 7396). Only staff may change the tier. A patch
/// without a change does not increase the version. A new email address is unverified unless the
/// token proves it or staff sets it. If staff sets `email`, even to the current address, the address
/// is verified. If a bounce or a complaint had stopped mail to the address, Bodega sends mail to it
/// again.
#[route(PATCH "/v1/customers/{id}", id = "changeCustomer", who = owner, task = "profile", path(id: CustomerId),
    parameters(IfMatchOrAny), body = CustomerPatch, answers(200 = CustomerView<'_> "The customer" [ETag]),
    refuses(
        forbidden = "only staff may change the tier",
        email_taken = "another customer has verified the address",
        username_taken,
    ))]
pub async fn change(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let version = request.if_match_or_any()?;
    let patch: CustomerPatch = request.body()?;
    if patch.tier.is_some() && !owner.is_staff() {
        return Err(Problem::forbidden());
    }
    let changed = change_version(version, async || {
        let before = services.table.get(&customer::read_for_update(owner.customer())?).await?;
        let before = before.filter(|customer| customer.erasing_since.is_none()).ok_or_else(no_customer)?;
        if version.is_some_and(|version| before.meta.version != version) {
            return Err(Problem::version_mismatch());
        }
        let after = patch.apply(&before, owner.caller())?;
        let unproven = Customer { email_verified: before.email_verified, ..after.clone() };
        let changed = write(services, before.clone(), after).await;
        // Another customer may have verified the same address. The request does not name the
        // address, so its change succeeds, and the address stays unverified.
        if patch.email.is_none() && changed.as_ref().is_err_and(|problem| problem.code() == Code::EmailTaken) {
            return write(services, before, unproven).await;
        }
        changed
    })
    .await?;
    if patch.email.is_some() && owner.is_staff() {
        let lift = recipient::lift(&RecipientHash::of(&changed.email))?;
        let refused = |_| Problem::internal("an unconditional write was refused");
        services.table.write(&lift).await?.map_err(refused)?;
    }
    Ok(respond(&changed))
}

async fn write(services: &Services, before: Stored<Customer>, after: Customer) -> Result<Stored<Customer>, Problem> {
    if after == before.data {
        return Ok(before);
    }
    let now = Instant::now();
    let update = differences(&before, &after, now)?;
    let names = |customer: &Customer| (customer.email.clone(), customer.email_verified, customer.username.clone());
    if names(&after) == names(&before) {
        let changed = services.table.update(&customer::update(&before, update)?).await?;
        return changed.map_err(|refusal| changed_meanwhile(&refusal));
    }
    let names = Names { email: &after.email, email_verified: after.email_verified, username: &after.username };
    let rename = customer::rename(&before, names, update, now)?;
    services.table.transact(&rename).await?.map_err(|refusals| refused(&refusals))?;
    // A transaction returns no item, so the response is built from the profile that was read. The
    // condition on the version ensures that no other field that clients see has changed.
    let mut meta = before.meta;
    meta.version += 1;
    meta.rev += 1;
    meta.updated_at = now;
    Ok(Stored { meta, data: after })
}

/// Builds the update of name, place and tier. [`customer::rename`] adds the email address, whether
/// it is verified, and the user name.
fn differences(before: &Stored<Customer>, after: &Customer, now: Instant) -> Result<Update<Customer>, Problem> {
    let mut update = Update::<Customer>::visible(now);
    if after.name != before.name {
        update = update.name(&after.name)?;
    }
    if after.place != before.place {
        update = residence::settle(update, &before.id, after.place.as_ref())?;
    }
    if after.tier != before.tier {
        let Customer { id, list_shards: shards, .. } = &before.data;
        let created_at = before.meta.created_at;
        update = update.enter(&TierIndexKey { tier: after.tier, created_at, id, shards: *shards })?;
    }
    Ok(update)
}

#[derive(Body)]
struct CustomerPatch {
    #[field(not_null, left_out)]
    email: Option<Email>,
    #[field(not_null, left_out)]
    username: Option<Username>,
    #[field(rule = CUSTOMER_NAME, not_null, example = "Ann Ampère")]
    name: Option<String>,
    /// Merged with the current place. Null removes the place.
    place: FieldPatch<PlacePatch>,
    #[field(rule = named("Tier", "", one_of(&["bronze", "silver", "gold"])), not_null, left_out)]
    tier: Option<Tier>,
}

#[derive(Body)]
struct PlacePatch {
    #[field(rule = PLACE_NAME, not_null, example = "FR")]
    country: Option<String>,
    #[field(rule = PLACE_NAME, not_null, example = "Lyon")]
    city: Option<String>,
}

impl CustomerPatch {
    fn apply(&self, before: &Customer, caller: &SignedIn) -> Result<Customer, Problem> {
        let email_verified = match &self.email {
            Some(email) if is_vouched_for(caller, email) => true,
            // If the new address differs only in case, it is the same mailbox and stays verified.
            // Any other spelling may be another mailbox.
            Some(email) => before.email_verified && email.as_str().eq_ignore_ascii_case(before.email.as_str()),
            // Only the customer's own token can verify the address. A staff token says nothing
            // about it.
            None => before.email_verified || (caller.id() == &before.id && caller.proves(&before.email)),
        };
        let place = match &self.place {
            FieldPatch::Keep => before.place.clone(),
            FieldPatch::Clear => None,
            FieldPatch::Set(patch) => Some(patch.apply(before.place.as_ref())?),
        };
        Ok(Customer {
            id: before.id.clone(),
            list_shards: before.list_shards,
            email: self.email.as_ref().unwrap_or(&before.email).clone(),
            email_verified,
            username: self.username.as_ref().unwrap_or(&before.username).clone(),
            tier: self.tier.unwrap_or(before.tier),
            name: self.name.as_ref().unwrap_or(&before.name).clone(),
            place,
            erasing_since: None,
            addresses: before.addresses.clone(),
        })
    }
}

impl PlacePatch {
    /// Merges the patch member by member (RFC 7396). The resulting place must have both members.
    fn apply(&self, before: Option<&Location>) -> Result<Location, Problem> {
        let country = self.country.as_ref().or(before.map(|place| &place.country));
        let city = self.city.as_ref().or(before.map(|place| &place.city));
        if let (Some(country), Some(city)) = (country, city) {
            return Ok(Location { country: country.clone(), city: city.clone() });
        }
        let missing = [("/place/country", country.is_none()), ("/place/city", city.is_none())];
        let problem = Problem::new(Code::InvalidBody, "Give a country and a city.");
        Err(missing
            .into_iter()
            .filter(|(_, missing)| *missing)
            .fold(problem, |problem, (pointer, _)| problem.error(pointer, "is missing")))
    }
}
