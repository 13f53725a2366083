//! What a route answers whom. Nothing here is a list of routes: `template.yaml` says which have an authorizer, `openapi.yaml` by `x-who` who may call one, and by the
//! statuses that it documents how others are refused.

use std::collections::BTreeSet;

use crate::support::openapi::{Operation, api};
use crate::support::template;

/// What somebody is to the thing that a request is about. From a reader on, each may what the one before may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Person {
    /// Comes without a token.
    Nobody,
    /// Has a token, and has not signed up here.
    Unregistered,
    /// A customer without a share in it.
    Stranger,
    /// A member of the organization that it is, or belongs to.
    Reader,
    /// An admin of that organization.
    Editor,
    /// Whose it is; of an organization another admin.
    Owner,
    /// A member of staff.
    Staff,
}

impl Person {
    pub const ALL: [Self; 7] =
        [Self::Nobody, Self::Unregistered, Self::Stranger, Self::Reader, Self::Editor, Self::Owner, Self::Staff];

    /// As the page of the matrix calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Unregistered => "not signed up",
            Self::Stranger => "stranger",
            Self::Reader => "member",
            Self::Editor => "admin",
            Self::Owner => "owner",
            Self::Staff => "staff",
        }
    }
}

/// Whom a route with an authorizer takes the bearer of a token for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer {
    /// The gateway does not let it pass.
    Refused,
    /// The gateway lets it pass, and the function finds nobody in it.
    Nameless,
    /// The gateway lets it pass, and its `sub` cannot be an id.
    NoId,
    /// It is this person's.
    Person(Person),
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// 401 of API Gateway's own.
    Gateway,
    /// A problem with this status and code.
    Refused(u16, &'static str),
}

/// What the two files say of all routes.
pub struct Access {
    /// Keys of the routes without an authorizer.
    public: BTreeSet<String>,
    /// First segments of the paths to things that are shown to some who may not change them.
    shared: BTreeSet<&'static str>,
}

impl Access {
    pub fn read() -> Self {
        let routes = template().routes;
        let public = routes.iter().filter(|route| route.authorizer.is_none()).map(|route| route.key()).collect();
        let shared = api().operations().filter(|operation| operation.who() == "reader").map(thing).collect();
        Self { public, shared }
    }

    /// Whether the gateway asks for no token.
    pub fn is_public(&self, operation: Operation<'_>) -> bool {
        self.public.contains(&operation.key())
    }

    /// What comes of a good request of this person's.
    pub fn of(&self, operation: Operation<'static>, person: Person) -> Outcome {
        if self.is_public(operation) {
            return Outcome::Done;
        }
        let (forbidden, unknown) = (Outcome::Refused(403, "forbidden"), Outcome::Refused(404, "not_found"));
        let least = match (operation.who(), person) {
            (_, Person::Nobody) => return Outcome::Gateway,
            ("customer", Person::Unregistered) => return unknown,
            ("signed in" | "customer", _) | (_, Person::Staff) => return Outcome::Done,
            ("staff", _) => return forbidden,
            ("reader", _) => Person::Reader,
            ("editor", _) => Person::Editor,
            ("owner", _) => Person::Owner,
            (who, _) => panic!("{}: who is {who}?", operation.key()),
        };
        let may_see_it = person >= Person::Reader && self.shared.contains(thing(operation));
        let has_no_thing = operation.responses().all(|(status, _)| status != "404");
        if person >= least {
            Outcome::Done
        } else if may_see_it || has_no_thing {
            forbidden
        } else {
            unknown
        }
    }

    /// What comes of a good request with such a token.
    pub fn of_bearer(&self, operation: Operation<'static>, bearer: Bearer) -> Outcome {
        match bearer {
            _ if self.is_public(operation) => Outcome::Done,
            Bearer::Refused => Outcome::Gateway,
            Bearer::Nameless => Outcome::Refused(401, "unauthenticated"),
            Bearer::NoId => Outcome::Refused(403, "forbidden"),
            Bearer::Person(person) => self.of(operation, person),
        }
    }
}

/// The first segment behind `/v1`.
fn thing(operation: Operation<'static>) -> &'static str {
    operation.path.split('/').nth(2).unwrap()
}
