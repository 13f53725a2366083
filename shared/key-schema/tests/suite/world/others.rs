//! Examples of the other entities: organizations, documents, mail and bookkeeping.

use key_schema::counter::{Counter, CounterShard};
use key_schema::document::{CustomerDocument, Document, DocumentSection, DocumentVersion, Draft, Manifest, Tie};
use key_schema::erasure::Erasure;
use key_schema::expiration::{Expiration, RemovedBy};
use key_schema::heartbeat::Heartbeat;
use key_schema::id::CustomerId;
use key_schema::idempotency::{IdempotencyRecord, StoredResponse};
use key_schema::item::Stored;
use key_schema::lists::Lists;
use key_schema::mail::{Mail, MailState};
use key_schema::mark::Mark;
use key_schema::metric::MetricPoint;
use key_schema::organization::invitation::{Invitation, Invitations, OpenInvitation};
use key_schema::organization::{Member, Organization, Role, Team};
use key_schema::picking::{PickingStations, WaitingJob};
use key_schema::question::{self, CustomerQuestion, Question, QuestionStatus};
use key_schema::quota::{CustomerHash, QuotaDay};
use key_schema::recipient::{MailDay, MailStop, RecipientHash, StopReason};
use key_schema::settings::Settings;
use key_schema::shard::{Layout, Shards};

use super::{MEASURED, World};
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
            codes: 2,
            data_pages: 0,
            documents: 5,
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
