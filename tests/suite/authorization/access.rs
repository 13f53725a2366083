//! The expected response of every route for every caller.
//!
//! This module lists no routes. `template.yaml` says which routes have an authorizer. In
//! `openapi.yaml`, `x-who` names the permitted callers of a route, and the documented statuses show
//! how the route refuses other callers.

use std::collections::BTreeSet;

use crate::support::openapi::{Operation, api};
use crate::support::template;

/// The caller's relation to the record of a request. From [`Person::Editor`] on, each person has
/// all rights of the previous person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Person {
    Anonymous,
    /// A caller with a valid token and without a customer record.
    Unregistered,
    /// A customer without rights to the record.
    Stranger,
    /// A member of an organization. The record is that organization or belongs to it.
    Reader,
    /// An admin of that organization.
    Editor,
    /// The record's owner. An organization has no owner, so for its records `Owner` is a second
    /// admin.
    Owner,
    Staff,
}

impl Person {
    pub const ALL: [Self; 7] =
        [Self::Anonymous, Self::Unregistered, Self::Stranger, Self::Reader, Self::Editor, Self::Owner, Self::Staff];

    /// Returns the name on the matrix page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "no token",
            Self::Unregistered => "not signed up",
            Self::Stranger => "stranger",
            Self::Reader => "member",
            Self::Editor => "admin",
            Self::Owner => "owner",
            Self::Staff => "staff",
        }
    }
}

/// How a route with an authorizer treats a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer {
    /// The gateway refuses the token.
    Refused,
    /// The gateway accepts the token, and the function finds no user id in it.
    Nameless,
    /// The gateway accepts the token, and its `sub` is not a valid id.
    NoId,
    Person(Person),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// API Gateway itself responds with 401.
    Gateway,
    /// A problem with this status and code.
    Refused(u16, &'static str),
}

/// The access rules of all routes, from `template.yaml` and `openapi.yaml`.
pub struct Access {
    /// Route keys of the routes without an authorizer.
    public: BTreeSet<String>,
    /// First path segments of the records that some callers may read but not change.
    shared: BTreeSet<&'static str>,
}

impl Access {
    pub fn read() -> Self {
        let routes = template().routes;
        let public = routes.iter().filter(|route| route.authorizer.is_none()).map(|route| route.key()).collect();
        let shared = api().operations().filter(|operation| operation.who() == "reader").map(thing).collect();
        Self { public, shared }
    }

    /// Returns whether the gateway accepts requests without a token.
    pub fn is_public(&self, operation: Operation<'_>) -> bool {
        self.public.contains(&operation.key())
    }

    pub fn of(&self, operation: Operation<'static>, person: Person) -> Outcome {
        if self.is_public(operation) {
            return Outcome::Done;
        }
        let (forbidden, unknown) = (Outcome::Refused(403, "forbidden"), Outcome::Refused(404, "not_found"));
        let least = match (operation.who(), person) {
            (_, Person::Anonymous) => return Outcome::Gateway,
            ("customer", Person::Unregistered) => return unknown,
            ("signed in" | "customer", _) | (_, Person::Staff) => return Outcome::Done,
            ("staff", _) => return forbidden,
            ("reader", _) => Person::Reader,
            ("editor", _) => Person::Editor,
            ("owner", _) => Person::Owner,
            (who, _) => panic!("{}: the test does not know x-who {who}", operation.key()),
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

    /// Returns the expected outcome of a valid request with a token of this kind.
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

/// Returns the first path segment after `/v1`.
fn thing(operation: Operation<'static>) -> &'static str {
    operation.path.split('/').nth(2).unwrap()
}
