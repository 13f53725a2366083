//! Examples of the other entities: organizations, documents, mail and bookkeeping, and the requests
//! for them.

use key_schema::archive;
use key_schema::counter::{self, Counter, CounterShard};
use key_schema::document::{
    self, CustomerDocument, Document, DocumentSection, DocumentVersion, Draft, Edit, Manifest, Right, Tie,
};
use key_schema::entity::AnyEntity as Any;
use key_schema::erasure::{self, Erasure, Pending};
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::heartbeat::{self, Heartbeat};
use key_schema::id::{Born, CustomerId, OrganizationId, SectionName, TeamId};
use key_schema::idempotency::{self, IdempotencyRecord, StoredResponse};
use key_schema::item::Stored;
use key_schema::lists::Lists;
use key_schema::mail::{self, Mail, MailState};
use key_schema::mark::{self, Mark};
use key_schema::metric::{self, MetricPoint};
use key_schema::organization::invitation::{self, Invitation, Invitations, OpenInvitation, State};
use key_schema::organization::{self, Authority, Member, Organization, Role, Team};
use key_schema::picking::{self, PickingStations, WaitingJob};
use key_schema::question::{self, CustomerQuestion, Question, QuestionStatus};
use key_schema::quota::{CustomerHash, QuotaDay};
use key_schema::recipient::{self, MailDay, MailStop, RecipientHash, StopReason};
use key_schema::settings::{self, Known, Settings};
use key_schema::shard::{Layout, Shards};

use super::{MEASURED, World};
use crate::exercises::NOW;
use crate::goldens::Golden;
use crate::rendering::{Request as _, Shown};
use crate::support::at;

impl World {
    pub fn question(&self, status: QuestionStatus) -> Stored<Question> {
        self.stored(Question {
            id: self.question.clone(),
            customer_id: self.customer.clone(),
            status,
            answer_count: if status == QuestionStatus::Open { 0 } else { 2 },
            title: "Ice".into(),
            text: "Does it melt?".into(),
        })
    }

    pub fn customer_question(&self) -> Stored<CustomerQuestion> {
        CustomerQuestion::of(&self.question(QuestionStatus::Answered))
    }

    pub fn answer(&self) -> Stored<question::Answer> {
        self.stored(question::Answer {
            id: self.answer.clone(),
            question_id: self.question.clone(),
            by: CustomerId::new("staff-1").unwrap(),
            text: "Above 0 °C.".into(),
        })
    }

    /// Returns the layouts while the list of orders by status grows from four shards to eight.
    pub fn growing_lists(&self) -> Lists {
        let layout = Layout { from: Shards(4), to: Shards(8), write: Shards(4) };
        Lists::default().with(&key_schema::order::BY_STATUS, layout)
    }

    pub fn settings_of_growing_lists(&self) -> Stored<Settings> {
        let mut settings = self.settings();
        settings.data.lists = self.growing_lists();
        settings
    }

    pub fn settings(&self) -> Stored<Settings> {
        let (values, private) = (r#"{"banner":"Ice is on sale","rate":1.10}"#.into(), r#"{"partner":"x"}"#.into());
        self.stored(Settings { copy: 1234, lists: Lists::default(), values, private })
    }

    pub fn idempotency_record(&self, answer: StoredResponse) -> Stored<IdempotencyRecord> {
        self.stored(IdempotencyRecord {
            scope: self.scope.clone(),
            request_hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
            answer,
            expires_at: at("2017-02-02T09:00:00.000Z"),
        })
    }

    pub fn metric_point(&self) -> Stored<MetricPoint> {
        let (name, id) = (self.metric.clone(), self.point.clone());
        MetricPoint { name, at: at(MEASURED), id, value: "-12.50".parse().unwrap() }.stored()
    }

    pub fn counter_head(&self) -> Stored<Counter> {
        self.stored(Counter { name: self.counter.clone(), shards: 32 })
    }

    pub fn counter_shard(&self) -> Stored<CounterShard> {
        self.stored(CounterShard { name: self.counter.clone(), shard: 27, counted: 4812 })
    }

    pub fn heartbeat(&self) -> Stored<Heartbeat> {
        self.stored(Heartbeat { round: at("2017-02-02T10:30:00.250Z") })
    }

    pub fn erasure(&self) -> Stored<Erasure> {
        self.stored(Erasure { customer_id: self.customer.clone() })
    }

    pub fn expiration(&self, is_archived: bool) -> Stored<Expiration> {
        let entry = Expiration {
            kind: "Session".into(),
            item: "3f0d6c2b9a1e48d7b5c4f3e2d1a09876".into(),
            removed_at: at("2017-03-06T09:30:00.000Z"),
            sequence_number: "100000000000000000001".into(),
            removed_by: RemovedBy::Ttl,
            archive: is_archived.then(|| "expired/3f0d/3f0d-100000000000000000001.json".into()),
        };
        entry.stored().unwrap()
    }

    pub fn mail(&self) -> Stored<Mail> {
        self.stored(Mail {
            event_id: self.event_id.clone(),
            expires_at: at("2017-03-08T09:00:00.000Z"),
            state: MailState::Sending,
            lease_until: at("2017-02-01T09:00:15.000Z"),
        })
    }

    pub fn mail_day(&self) -> Stored<MailDay> {
        self.stored(MailDay {
            recipient: RecipientHash::of(&self.email),
            day: "2017-02-01".into(),
            expires_at: at("2017-02-03T09:00:00.000Z"),
            mails: 7,
            codes: 2,
        })
    }

    pub fn quota_day(&self) -> Stored<QuotaDay> {
        self.stored(QuotaDay {
            customer: CustomerHash::of(&self.customer),
            day: "2017-02-01".into(),
            expires_at: at("2017-02-03T09:00:00.000Z"),
            checkouts: 0,
            codes: 2,
            data_pages: 0,
            documents: 5,
            guest_codes: 0,
            organizations: 1,
            promotion_codes: 0,
            questions: 0,
            reviews: 0,
            sessions: 4,
            transfers: 0,
        })
    }

    pub fn mail_stop(&self) -> Stored<MailStop> {
        self.stored(MailStop { recipient: RecipientHash::of(&self.email), reason: StopReason::Complaint })
    }

    pub fn stations(&self, busy: bool) -> Stored<PickingStations> {
        self.stored(PickingStations { jobs: busy.then(|| self.order.clone()).into_iter().collect() })
    }

    pub fn waiting_job(&self) -> Stored<WaitingJob> {
        self.stored(WaitingJob { order_id: self.order.clone() })
    }

    pub fn mark(&self) -> Stored<Mark> {
        Mark::new("bus", &self.event_id, at("2017-02-01T09:00:00.500Z")).unwrap()
    }

    pub fn organization(&self) -> Stored<Organization> {
        let id = self.organization.clone();
        self.stored(Organization { id, teams: 12, admins: 2, invited: 3, name: "Chess club".into() })
    }

    pub fn team(&self) -> Stored<Team> {
        let (organization_id, id) = (self.organization.clone(), self.team.clone());
        self.stored(Team { organization_id, id, members: 4, name: "Bishops".into() })
    }

    pub fn member(&self, role: Role) -> Stored<Member> {
        let team = Some(self.team.clone());
        self.stored(Member { id: self.organization.clone(), customer_id: self.customer.clone(), role, team })
    }

    pub fn invitation(&self) -> Stored<Invitation> {
        self.stored(Invitation {
            id: self.organization.clone(),
            customer_id: self.customer.clone(),
            title: "Chess club".into(),
            role: Role::Member,
            team: Some(self.team.clone()),
            inviter: CustomerId::new("household-1").unwrap(),
            inviter_born: self.member(Role::Admin).meta.born,
            expires_at: at("2026-12-04T12:00:00.000Z"),
        })
    }

    pub fn invitations(&self) -> Stored<Invitations> {
        let inviter = CustomerId::new("household-1").unwrap();
        let open = OpenInvitation::new(at("2026-12-04T12:00:00.000Z"), &inviter);
        let open = [(self.organization.clone(), open)].into();
        self.stored(Invitations { customer_id: self.customer.clone(), open })
    }

    pub fn manifest(&self) -> Manifest {
        Manifest::from([(self.section.clone(), 41)])
    }

    pub fn document(&self, drafted: bool) -> Stored<Document> {
        let draft = Draft {
            sections: Manifest::from([(self.section.clone(), 42)]),
            by: self.customer.clone(),
            at: at("2017-02-02T10:15:00.000Z"),
        };
        self.stored(Document {
            id: self.document.clone(),
            owner_id: Some(self.customer.clone()),
            organization_id: Some(self.organization.clone()),
            editors: [CustomerId::new("household-13").unwrap()].into(),
            deleting: false,
            discarded: [].into(),
            removing_since: None,
            title: "Statutes".into(),
            current: 41,
            sections: self.manifest(),
            draft: drafted.then_some(draft),
        })
    }

    /// Makes a document that is being deleted, without an organization and without editors.
    pub fn deleted_document(&self) -> Stored<Document> {
        let mut document = self.document(false);
        document.data.organization_id = None;
        document.data.editors.clear();
        document.data.deleting = true;
        document
    }

    /// Makes a document that is being deleted, and is in the janitor's list.
    pub fn removed_document(&self) -> Stored<Document> {
        let mut document = self.deleted_document();
        document.data.removing_since = Some(at("2017-02-02T10:30:00.250Z"));
        document
    }

    /// Makes a document whose discarded draft has texts that are not removed yet.
    pub fn discarding_document(&self) -> Stored<Document> {
        let mut document = self.document(false);
        document.data.discarded = [self.section.clone()].into();
        document.data.removing_since = Some(at("2017-02-02T10:30:00.250Z"));
        document
    }

    /// Makes a document of an organization after its owner was erased.
    pub fn orphaned_document(&self) -> Stored<Document> {
        let mut document = self.document(false);
        document.data.owner_id = None;
        document
    }

    pub fn customer_document(&self) -> Stored<CustomerDocument> {
        let (customer_id, document_id) = (self.customer.clone(), self.document.clone());
        self.stored(CustomerDocument { customer_id, document_id, tie: Tie::Owner })
    }

    pub fn document_section(&self) -> Stored<DocumentSection> {
        self.stored(DocumentSection {
            id: self.document.clone(),
            name: self.section.clone(),
            number: 41,
            text: "To play chess.".into(),
            by: self.customer.clone(),
            at: at("2017-02-02T10:30:00.250Z"),
        })
    }

    pub fn document_version(&self, restored: bool) -> Stored<DocumentVersion> {
        self.stored(DocumentVersion {
            id: self.document.clone(),
            number: 41,
            sections: self.manifest(),
            by: self.customer.clone(),
            at: at("2017-02-02T10:30:00.250Z"),
            note: restored.then(|| "as it was".into()),
            restored_from: restored.then_some(7),
        })
    }
}

pub fn community_goldens(world: &World) -> Vec<Golden> {
    vec![
        Golden::of("Follow", world.follow(), Any::Follow),
        Golden::of("Like", world.like(), Any::Like),
        Golden::of("LikeCount", world.like_count(), Any::LikeCount),
        Golden::of("Organization", world.organization(), Any::Organization),
        Golden::of("Team", world.team(), Any::Team),
        Golden::of("Member", world.member(Role::Admin), Any::Member),
        Golden::of("Invitation", world.invitation(), Any::Invitation),
        Golden::of("Invitations", world.invitations(), Any::Invitations),
        Golden::of("Question", world.question(QuestionStatus::Open), Any::Question),
        Golden::of("Question-answered", world.question(QuestionStatus::Answered), Any::Question),
        Golden::of("CustomerQuestion", world.customer_question(), Any::CustomerQuestion),
        Golden::of("Answer", world.answer(), Any::Answer),
    ]
}

pub fn operations_goldens(world: &World) -> Vec<Golden> {
    vec![
        Golden::of("Heartbeat", world.heartbeat(), Any::Heartbeat),
        Golden::of(
            "IdempotencyRecord",
            world.idempotency_record(StoredResponse::Order(world.order.clone())),
            Any::IdempotencyRecord,
        ),
        Golden::of(
            "IdempotencyRecord-body",
            world.idempotency_record(StoredResponse::Body { status: 200, body: r#"{"stock":5}"#.into() }),
            Any::IdempotencyRecord,
        ),
        Golden::of(
            "IdempotencyRecord-checkout",
            world.idempotency_record(StoredResponse::Checkout(world.checkout())),
            Any::IdempotencyRecord,
        ),
        Golden::of(
            "IdempotencyRecord-endpoint",
            world.idempotency_record(StoredResponse::Endpoint(world.endpoint.clone())),
            Any::IdempotencyRecord,
        ),
        Golden::of("Mark", world.mark(), Any::Mark),
        Golden::of("Mail", world.mail(), Any::Mail),
        Golden::of("MailDay", world.mail_day(), Any::MailDay),
        Golden::of("MailStop", world.mail_stop(), Any::MailStop),
        Golden::of("Expiration", world.expiration(true), Any::Expiration),
        Golden::of("Expiration-ownerless", world.expiration(false), Any::Expiration),
        Golden::of("MetricPoint", world.metric_point(), Any::MetricPoint),
        Golden::of("Counter", world.counter_head(), Any::Counter),
        Golden::of("CounterShard", world.counter_shard(), Any::CounterShard),
        Golden::of("Settings", world.settings(), Any::Settings),
        Golden::of("Settings-lists", world.settings_of_growing_lists(), Any::Settings),
    ]
}

pub fn questions(world: &World) -> Vec<Shown> {
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

pub fn metrics(world: &World) -> Vec<Shown> {
    let (now, point) = (at(NOW), world.metric_point());
    let range = |from: &str, to: &str| metric::of_name(&world.metric, at(from), at(to), now).unwrap();
    let shown = range("2017-02-03T22:00:00.000Z", "2017-02-04T18:00:00.000Z").into_iter();
    let days = shown.map(|day| day.show("metric::of_name"));
    let get = metric::get(&point.name, point.at, &point.id).unwrap().show("metric::get");
    [metric::store([&point]).unwrap().show("metric::store"), get].into_iter().chain(days).collect()
}

pub fn counters(world: &World) -> Vec<Shown> {
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

pub fn others(world: &World) -> Vec<Shown> {
    let archived = world.retired_order().to_item().unwrap();
    let pending = Pending { customer_id: world.customer.clone(), created_at: at(NOW) };
    let answer = StoredResponse::Body { status: 200, body: "{}".to_owned() };
    let restored = archive::restored(archived, at(NOW), at("2017-02-06T12:00:00.000Z")).unwrap();
    vec![
        idempotency::get(&world.scope).unwrap().show("idempotency::get"),
        idempotency::keep(&world.idempotency_record(answer), at(NOW)).unwrap().show("idempotency::keep"),
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

pub fn subscribers(world: &World) -> Vec<Shown> {
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

pub fn organizations(world: &World) -> Vec<Shown> {
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

pub fn invitations(world: &World) -> Vec<Shown> {
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

pub fn documents(world: &World) -> Vec<Shown> {
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
