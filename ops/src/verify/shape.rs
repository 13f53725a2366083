//! Checks of one item alone: whether it can be decoded, whether its keys match its attributes, and
//! whether it is within its bounds.

use key_schema::agent::MAX_AGENTS;
use key_schema::counter::MAX_SHARDS;
use key_schema::customer::MAX_ADDRESSES;
use key_schema::document::{MAX_EDITORS, MAX_SECTIONS, MAX_TEXT};
use key_schema::entity::AnyEntity;
use key_schema::index::INDEXES;
use key_schema::item::{FromItem as _, Item, MAX_ITEM_BYTES, key_of, size};
use key_schema::leaderboard::{Board, VIEW_SAMPLE};
use key_schema::location::MAX_LOCATIONS;
use key_schema::membership::MAX_MEMBERSHIPS;
use key_schema::order::open;
use key_schema::organization::MAX_TEAMS;
use key_schema::picking::MAX_STATIONS;
use key_schema::picture::MAX_PICTURES;
use key_schema::product::{MAX_STOCK, is_old_stock};
use key_schema::question::MAX_ANSWERS;
use key_schema::variant::MAX_VARIANTS;
use key_schema::wallet::MAX_BALANCE;
use key_schema::webhook_endpoint::MAX_ENDPOINTS;
use key_schema::{cart, checkout_session, order};

use super::relations::leaderboards;
use super::report::Kind;
use super::{Problem, Skip};
use crate::items::{Repair, sets};

/// The size from which an item counts as near DynamoDB's limit: nine tenths of the limit.
const NEAR: usize = MAX_ITEM_BYTES / 10 * 9;

/// Returns the decoded item, if it can be decoded, and its problems.
pub(super) fn check(item: &Item) -> (Option<AnyEntity>, Vec<Problem>) {
    let mut problems = Vec::new();
    let entity = match AnyEntity::from_item(item.clone()) {
        Ok(entity) => entity,
        Err(error) => return (None, vec![Problem::new(Kind::Unreadable, error)]),
    };
    if let Err(error) = keys(item, &entity, &mut problems) {
        problems.push(Problem::new(Kind::Unreadable, error));
        return (None, problems);
    }
    let bytes = size(item);
    if bytes >= NEAR {
        problems.push(Problem::new(Kind::Bounds, format!("{bytes} bytes are near the limit of {MAX_ITEM_BYTES}")));
    }
    problems.extend(beyond(&entity).into_iter().map(|what| Problem::new(Kind::Bounds, what)));
    (Some(entity), problems)
}

fn keys(item: &Item, entity: &AnyEntity, problems: &mut Vec<Problem>) -> Result<(), String> {
    let right = entity.to_item().map_err(|error| error.to_string())?;
    // A stock that is not moved yet is no damage: `ops migrate` moves it.
    if key_of(item) != key_of(&right) && !is_old(item, entity) {
        return Err("the key does not match the attributes".to_owned());
    }
    let mut wrong = differing(item, &right);
    // While an order is being retired, its head has an expiry. But its index key and its time to
    // live are still those of a head without an expiry.
    if let (false, AnyEntity::Order(head)) = (wrong.is_empty(), entity)
        && head.expires_at.is_some()
    {
        let mut head = head.clone();
        head.data.expires_at = None;
        if head.to_item().is_ok_and(|listed| differing(item, &listed).is_empty()) {
            wrong.clear();
        }
    }
    if !wrong.is_empty() {
        let what: Vec<String> = wrong.iter().map(|name| difference(name, item, &right)).collect();
        let what = what.join(", ");
        let change = sets(item, &right, wrong, false);
        problems.push(Problem::new(Kind::Index, what).repaired_by(Repair { checks: Vec::new(), change }));
    }
    Ok(())
}

/// Returns whether an item is the stock of an earlier release ([`key_schema::product::old_stock`]).
pub(super) fn is_old(item: &Item, entity: &AnyEntity) -> bool {
    matches!(entity, AnyEntity::Stock(stock) if key_of(item).is_some_and(|key| is_old_stock(stock, &key)))
}

fn difference(name: &str, item: &Item, right: &Item) -> String {
    match (item.get(name), right.get(name)) {
        (None, _) => format!("{name} is missing"),
        (_, None) => format!("{name} must be absent"),
        _ => format!("{name} differs from the attributes"),
    }
}

/// Returns the attributes of index keys, and the time to live, in which two items differ.
fn differing(item: &Item, right: &Item) -> Vec<&'static str> {
    let names = INDEXES.iter().flat_map(|index| [index.partition_attribute(), index.sort_attribute()]);
    names.chain(["ttl"]).filter(|name| item.get(*name) != right.get(*name)).collect()
}

/// Returns the first value that is beyond its bounds.
fn beyond(entity: &AnyEntity) -> Option<String> {
    let most =
        |what: &str, count: usize, most: usize| (count > most).then(|| format!("{count} {what} are more than {most}"));
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    match entity {
        AnyEntity::Agents(head) => most("agents", count(head.agents), count(MAX_AGENTS.into())),
        AnyEntity::WebhookEndpoints(head) => most("endpoints", count(head.endpoints), count(MAX_ENDPOINTS.into())),
        AnyEntity::CheckoutSession(session) => most("lines", session.wish.lines.len(), checkout_session::MAX_LINES),
        AnyEntity::GuestCart(cart) => most("lines", cart.lines.len(), cart::MAX_LINES),
        AnyEntity::Cart(cart) => most("lines", cart.lines.len(), cart::MAX_LINES),
        AnyEntity::Counter(head) => (head.shards > MAX_SHARDS || !head.shards.is_power_of_two())
            .then(|| format!("{} shards are no power of two up to {MAX_SHARDS}", head.shards)),
        AnyEntity::Customer(customer) => most("addresses", customer.addresses.len(), MAX_ADDRESSES),
        AnyEntity::Document(head) => most("sections", head.sections.len(), MAX_SECTIONS)
            .or_else(|| most("editors", head.editors.len(), MAX_EDITORS)),
        AnyEntity::DocumentSection(section) => most("bytes of text", section.text.len(), MAX_TEXT),
        AnyEntity::OpenOrders(open) => most("open orders", open.entries.len(), count(open::MAX_ORDERS)),
        AnyEntity::Order(order) => most("lines", count(order.line_count), order::MAX_LINES),
        AnyEntity::Organization(head) => most("teams", count(head.teams), MAX_TEAMS),
        AnyEntity::Payment(payment) => {
            let captured = payment.captured.saturating_add(payment.captured_pending);
            let refunded = payment.refunded.saturating_add(payment.refunded_pending);
            let is_kept = captured <= payment.authorised && refunded <= payment.captured;
            (!is_kept).then(|| "more is captured than authorised, or refunded than captured".to_owned())
        }
        AnyEntity::PickingStations(stations) => most("stations", stations.jobs.len(), MAX_STATIONS),
        AnyEntity::Product(product) => {
            most("variants", count(product.variants.unwrap_or(0)), count(MAX_VARIANTS.into()))
        }
        AnyEntity::ProductCategories(list) => most("categories", list.paths.len(), MAX_MEMBERSHIPS),
        AnyEntity::ProductPictures(list) => most("pictures", list.pictures.len(), MAX_PICTURES),
        AnyEntity::Question(question) => most("answers", count(question.answer_count), MAX_ANSWERS),
        AnyEntity::Review(review) => {
            (!(1..=5).contains(&review.rating)).then(|| format!("{} is no rating from 1 to 5", review.rating))
        }
        AnyEntity::StockLocations(head) => most("locations", count(head.locations), count(MAX_LOCATIONS.into())),
        AnyEntity::Stock(stock) => most("pieces", count(stock.available), count(MAX_STOCK)),
        AnyEntity::Tally(tally) => {
            let (parts, is_estimate) = (leaderboards::parts(tally.board), tally.board == Board::Views);
            let is_sampled = u64::try_from(tally.count).is_ok_and(|views| views.is_multiple_of(VIEW_SAMPLE.0.into()));
            let part = (tally.part >= parts.0).then(|| format!("part {} is not below {parts}", tally.part));
            let odd = || format!("{} views are no multiple of the {VIEW_SAMPLE} views of a sample", tally.count);
            part.or_else(|| (is_estimate && !is_sampled).then(odd))
        }
        AnyEntity::Wallet(wallet) => wallet
            .balances()
            .iter()
            .find(|balance| !(0..=MAX_BALANCE).contains(&balance.amount))
            .map(|balance| format!("a balance in {} is not between 0 and {MAX_BALANCE}", balance.currency)),
        _ => None,
    }
}

impl From<Skip> for Vec<Problem> {
    /// A skipped relation has no problems, because the unreadable item is reported itself.
    fn from(_: Skip) -> Self {
        Self::new()
    }
}
