//! Requests for subscribers, organizations, documents and bookkeeping.

use key_schema::document::{Edit, Right, Tie};
use key_schema::erasure::Pending;
use key_schema::id::{Born, CustomerId, OrganizationId, SectionName, TeamId};
use key_schema::idempotency::StoredResponse;
use key_schema::lists::Lists;
use key_schema::mail::MailState;
use key_schema::organization::invitation::{self, OpenInvitation, State};
use key_schema::organization::{Authority, Role};
use key_schema::question::QuestionStatus;
use key_schema::recipient::{self, RecipientHash, StopReason};
use key_schema::settings::Known;
use key_schema::{
    archive, counter, document, erasure, expiration, heartbeat, idempotency, mail, mark, metric, organization, picking,
    question, settings,
};

use super::NOW;
use crate::rendering::{Request as _, Shown};
use crate::support::at;
use crate::world::World;

pub(super) fn questions(world: &World) -> Vec<Shown> {
    let (now, id, customer) = (at(NOW), &world.question, &world.customer);
    let (open, answer, copy) = (world.question(QuestionStatus::Open), world.answer(), world.customer_question());
    let body = StoredResponse::Body { status: 201, body: "{}".into() };
    let claim = || Some(idempotency::claim(&world.idempotency_record(body.clone()), now).unwrap());
    let (values, private) = (r#"{"banner":"Ice"}"#.to_owned(), "{}".to_owned());
    let (known, lists) = (Known { version: 3, ..Known::default() }, world.growing_lists());
    vec![
        question::ask(&open, None).unwrap().show("question::ask"),
        question::ask(&open, claim()).unwrap().show("question::ask"),
        question::read_for_update(id).unwrap().show("question::read_for_update"),
        question::answer(&open, &answer, None).unwrap().show("question::answer"),
        question::answer(&open, &answer, claim()).unwrap().show("question::answer"),
        question::get(id).unwrap().show("question::get"),
        question::of_customer(customer).unwrap().show("question::of_customer"),
        question::support(customer).unwrap().show("question::support"),
        question::open().unwrap().show("question::open"),
        question::erasable(customer).unwrap().show("question::erasable"),
        question::answers(id).unwrap().show("question::answers"),
        question::erase([id]).unwrap().show("question::erase"),
        question::erase_answers([&answer.data]).unwrap().show("question::erase_answers"),
        question::erase_copies([&copy.data]).unwrap().show("question::erase_copies"),
        settings::read(13).unwrap().show("settings::read"),
        settings::create(&values, &private, &open.meta.born, now).unwrap().show("settings::create"),
        settings::change(&values, &private, 3, now).unwrap().show("settings::change"),
        settings::arrange(&Known::default(), &lists, &open.meta.born, now).unwrap().show("settings::arrange"),
        settings::arrange(&known, &lists, &open.meta.born, now).unwrap().show("settings::arrange"),
        settings::arrange(&known, &Lists::default(), &open.meta.born, now).unwrap().show("settings::arrange"),
    ]
}

pub(super) fn metrics(world: &World) -> Vec<Shown> {
    let (now, point) = (at(NOW), world.metric_point());
    let range = |from: &str, to: &str| metric::of_name(&world.metric, at(from), at(to), now).unwrap();
    let shown = range("2017-02-03T22:00:00.000Z", "2017-02-04T18:00:00.000Z").into_iter();
    let days = shown.map(|day| day.show("metric::of_name"));
    let get = metric::get(&point.name, point.at, &point.id).unwrap().show("metric::get");
    [metric::store([&point]).unwrap().show("metric::store"), get].into_iter().chain(days).collect()
}

pub(super) fn counters(world: &World) -> Vec<Shown> {
    use counter::Reason;

    let (now, name, head) = (at(NOW), &world.counter, world.counter_head());
    let answer = StoredResponse::Body { status: 200, body: "{}".into() };
    let claim = idempotency::claim(&world.idempotency_record(answer), now).unwrap();
    let split = |seen, reason| counter::split(name, seen, reason, now).unwrap().unwrap().show("counter::split");
    vec![
        counter::head(name).unwrap().show("counter::head"),
        counter::add(name, 27, 5, None, now).unwrap().show("counter::add"),
        counter::add(name, 27, 5, Some(claim), now).unwrap().show("counter::add"),
        split(None, Reason::Hot),
        split(Some(&head), Reason::Asked),
        split(Some(&head), Reason::Hot),
        split(Some(&head), Reason::Throttled(now)),
        counter::read(name).unwrap().show("counter::read"),
        counter::rest(&head).unwrap().unwrap().show("counter::rest"),
    ]
}

pub(super) fn others(world: &World) -> Vec<Shown> {
    let archived = world.retired_order().to_item().unwrap();
    let pending = Pending { customer_id: world.customer.clone(), created_at: at(NOW) };
    let restored = archive::restored(archived, at(NOW), at("2017-02-06T12:00:00.000Z")).unwrap();
    vec![
        idempotency::get(&world.scope).unwrap().show("idempotency::get"),
        expiration::record(&world.expiration(true)).unwrap().show("expiration::record"),
        expiration::of_day("2017-03-06").unwrap().show("expiration::of_day"),
        archive::owner(&world.customer).unwrap().show("archive::owner"),
        archive::restore(&restored).unwrap().show("archive::restore"),
        erasure::pending(at(NOW)).unwrap().show("erasure::pending"),
        erasure::done(&pending).unwrap().show("erasure::done"),
        heartbeat::beat(at(NOW)).unwrap().show("heartbeat::beat"),
        mark::known("bus", [world.event_id.as_str()]).unwrap().show("mark::known"),
        mark::keep(&[world.mark()]).unwrap().show("mark::keep"),
    ]
}

pub(super) fn subscribers(world: &World) -> Vec<Shown> {
    let (now, id, mail) = (at(NOW), &world.order, world.mail());
    let (born, to) = (Born::new(id.as_str()).unwrap(), RecipientHash::of(&world.email));
    vec![
        mail::prepare(&world.customer, Some(id)).unwrap().show("mail::prepare"),
        mail::prepare(&world.customer, None).unwrap().show("mail::prepare"),
        mail::claim(&mail, &to, false, now).unwrap().show("mail::claim"),
        mail::claim(&mail, &to, true, now).unwrap().show("mail::claim"),
        mail::reclaim(&mail, &to, now).unwrap().show("mail::reclaim"),
        recipient::stop(&to, StopReason::Bounce, now).unwrap().show("recipient::stop"),
        recipient::lift(&to).unwrap().show("recipient::lift"),
        mail::settle(&world.event_id, MailState::Sent, now).unwrap().show("mail::settle"),
        mail::release(&mail, now).unwrap().show("mail::release"),
        picking::stations().unwrap().show("picking::stations"),
        picking::waiting().unwrap().show("picking::waiting"),
        picking::wait(&world.waiting_job()).unwrap().show("picking::wait"),
        picking::admit(id, 10, &born, now).unwrap().show("picking::admit"),
        picking::leave(id, &born, now).unwrap().show("picking::leave"),
    ]
}

pub(super) fn organizations(world: &World) -> Vec<Shown> {
    let (now, id, customer, team) = (at(NOW), &world.organization, &world.customer, &world.team);
    let admin = CustomerId::new("household-1").unwrap();
    let (by_admin, by_staff) = (Authority::Customer(&admin), Authority::Staff);
    let (old, mut new) = (world.member(Role::Admin), world.member(Role::Member));
    new.meta.updated_at = now;
    new.data.team = Some(TeamId::new("team #2").unwrap());
    let name = "Knights".to_owned();
    let create =
        |authority| organization::create(&world.organization(), &old, authority).unwrap().show("organization::create");
    let put = |old, authority| organization::put_member(old, &new, authority).unwrap().show("organization::put_member");
    let remove = |authority| organization::remove_member(&old, authority).unwrap().show("organization::remove_member");
    vec![
        create(by_staff),
        create(Authority::Customer(customer)),
        organization::get(id).unwrap().show("organization::get"),
        organization::renamed(id).unwrap().show("organization::renamed"),
        organization::rename(id, &name, 3, by_admin, now).unwrap().show("organization::rename"),
        organization::create_team(&world.team(), by_admin).unwrap().show("organization::create_team"),
        organization::change_team(id, team, &name, 3, by_staff, now).unwrap().show("organization::change_team"),
        organization::delete_team(id, team, 3, by_admin).unwrap().show("organization::delete_team"),
        organization::member(id, customer).unwrap().show("organization::member"),
        organization::prepare(id, customer, &admin).unwrap().show("organization::prepare"),
        put(None, by_admin),
        put(None, by_staff),
        put(Some(&old), by_admin),
        put(Some(&old), Authority::Customer(customer)),
        put(None, Authority::Customer(customer)),
        remove(by_admin),
        remove(Authority::Customer(customer)),
        organization::remove_ghost(&old).unwrap().show("organization::remove_ghost"),
        organization::erasable(id, customer).unwrap().show("organization::erasable"),
        organization::erase_member(&old).unwrap().show("organization::erase_member"),
        organization::erase_member(&world.member(Role::Member)).unwrap().show("organization::erase_member"),
        organization::head(id).unwrap().show("organization::head"),
        organization::members(id).unwrap().show("organization::members"),
        organization::of_customer(customer).unwrap().show("organization::of_customer"),
    ]
}

pub(super) fn invitations(world: &World) -> Vec<Shown> {
    let (now, id, customer) = (at(NOW), &world.organization, &world.customer);
    let admin = CustomerId::new("household-1").unwrap();
    let (open, roster) = (world.invitation(), world.invitations());
    let mut others = roster.clone();
    let other = OpenInvitation::new(at("2026-12-05T12:00:00.000Z"), &admin);
    others.data.open.insert(OrganizationId::new("go").unwrap(), other);
    let state = |invitation, roster| State { invitation, roster };
    let none = State::default();
    let one = state(Some(open.clone()), Some(roster.clone()));
    let two = state(Some(open.clone()), Some(others));
    let mut unasked = world.organization();
    unasked.data.invited = 0;
    let mut teamless = open.clone();
    teamless.data.team = None;
    let invite = |head, state, new| invitation::invite(head, state, new, &admin).unwrap().show("organization::invite");
    let accept = |open, state: &State, role| {
        let member = world.member(role);
        invitation::accept(open, state, &member).unwrap().show("organization::accept")
    };
    let end = |state: &State| {
        let put = organization::put_member(None, &world.member(Role::Member), Authority::Staff).unwrap();
        state.end(put, id, customer, now).unwrap().show("organization::put_member")
    };
    let withdraw =
        |state, admin| invitation::withdraw(&open, state, admin, now).unwrap().show("organization::withdraw");
    vec![
        invitation::prepare(id, customer, &admin).unwrap().show("organization::prepare"),
        invitation::open(id).unwrap().show("organization::open"),
        invite(&unasked, &none, &open),
        invite(&world.organization(), &two, &teamless),
        invitation::inviters(std::slice::from_ref(&open)).unwrap().show("organization::inviters"),
        accept(&open, &one, Role::Admin),
        accept(&open, &two, Role::Member),
        end(&none),
        end(&one),
        end(&two),
        withdraw(&one, Some(&admin)),
        withdraw(&two, None),
        invitation::of_organization(id).unwrap().show("organization::of_organization"),
        invitation::of_customer(customer, now).unwrap().show("organization::of_customer"),
        invitation::roster(customer).unwrap().show("organization::roster"),
        invitation::erase(&roster).unwrap().show("organization::erase"),
        invitation::forget(&roster).unwrap().show("organization::forget"),
    ]
}

pub(super) fn documents(world: &World) -> Vec<Shown> {
    let (now, id, editor) = (at(NOW), &world.document, CustomerId::new("household-13").unwrap());
    let (plain, drafted, version) = (world.document(false), world.document(true), world.document_version(false));
    let (section, note) = ([world.document_section()], Some("as agreed".to_owned()));
    let (own, admin) = (Right::Own(&editor), Right::Admin(&world.organization, &editor));
    let (member, manager) =
        (Right::Member(&world.organization, &editor), Right::Admin(&world.organization, &world.customer));
    let born = Born::new("0190163d-8694-739b-aea5-966c26f8ad91").unwrap();
    let edit = |old, right| Edit { old, right, by: &editor, at: now, born: &born };
    let draft = drafted.draft.as_ref().unwrap();
    let put = |old, right| {
        let (put, _) = document::put_section(edit(old, right), &world.section, "To win.".to_owned()).unwrap();
        put.show("document::put_section")
    };
    let mut private = world.document(false);
    private.data.organization_id = None;
    let create = |head, is_staff| document::create(head, &section, &editor, is_staff).unwrap().show("document::create");
    let mut crowded = world.deleted_document();
    crowded.data.editors = (100..200).map(|n| CustomerId::new(format!("household-{n}")).unwrap()).collect();
    let mut many = world.discarding_document();
    many.data.discarded = (0..12).map(|n| SectionName::new(format!("section-{n}")).unwrap()).collect();
    let release = |tie| document::release(&plain, &editor, tie).unwrap().show("document::release");
    let add =
        |head, right| document::add_editor(head, &editor, right, &born, now).unwrap().show("document::add_editor");
    let remove = |head, right| document::remove_editor(head, &editor, right).unwrap().show("document::remove_editor");
    let retire = |right| document::retire_shared(&plain, right, now).unwrap().show("document::retire_shared");
    let deletions = [world.deleted_document(), crowded].map(|head| document::delete(&head).unwrap());
    let deletions = deletions.into_iter().flatten().map(|delete| delete.show("document::delete"));
    let sweeps = [
        ("document::sweep_texts", document::sweep_texts(&drafted, std::slice::from_ref(&version)).unwrap()),
        ("document::sweep_versions", document::sweep_versions(&drafted, std::slice::from_ref(&version)).unwrap()),
    ];
    let sweeps = sweeps.into_iter().flat_map(|(name, sweeps)| sweeps.into_iter().map(move |sweep| sweep.show(name)));
    let mut shown = vec![
        create(&private, true),
        create(&private, false),
        create(&plain, true),
        create(&plain, false),
        document::get(id).unwrap().show("document::get"),
        document::texts(id, &world.manifest(), Some((&world.organization, &editor))).unwrap().show("document::texts"),
        document::version(id, 41).unwrap().show("document::version"),
        document::versions(id).unwrap().show("document::versions"),
        document::read_for_update(id).unwrap().show("document::read_for_update"),
        document::standing(&world.organization, &editor).unwrap().show("document::standing"),
        put(&private, own),
        put(&plain, member),
        put(&drafted, admin),
        put(&plain, Right::Staff),
        document::begin_draft(edit(&private, own)).unwrap().0.show("document::begin_draft"),
        document::discard_draft(edit(&drafted, member), draft).unwrap().0.show("document::discard_draft"),
        document::discard_texts(&world.discarding_document()).unwrap().show("document::discard_texts"),
        document::discard_texts(&many).unwrap().show("document::discard_texts"),
        document::removals(now).unwrap().show("document::removals"),
        document::publish(edit(&drafted, member), draft, note.clone()).unwrap().0.show("document::publish"),
        document::restore(edit(&plain, admin), &version, note).unwrap().0.show("document::restore"),
        add(&private, Right::Own(&world.customer)),
        add(&private, Right::Staff),
        add(&plain, Right::Staff),
        add(&plain, manager),
        // Here the caller becomes an editor, so the checks of the caller's right already cover the
        // editor's membership.
        add(&plain, member),
        add(&plain, admin),
        remove(&private, Right::Own(&world.customer)),
        remove(&private, own),
        remove(&plain, Right::Staff),
        remove(&plain, Right::Member(&world.organization, &world.customer)),
        remove(&plain, member),
        remove(&plain, manager),
        retire(member),
        retire(manager),
        document::retire(id, 3, Some(&world.customer), now).unwrap().show("document::retire"),
        document::history(id).unwrap().show("document::history"),
        document::of_customer(&editor).unwrap().show("document::of_customer"),
        release(Tie::Owner),
        release(Tie::Editor),
        document::forget(&world.customer_document()).unwrap().show("document::forget"),
    ];
    shown.extend(sweeps.chain(deletions));
    shown
}
