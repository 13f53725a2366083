use local::System;
use serde_json::json;

use super::access::Person;
use crate::support::client::Call;
use crate::support::openapi::Operation;
use crate::support::shop::{customer, path};
use crate::support::world::{Good, World};

/// The customer who owns most of the test data.
pub const ANN: &str = "bad-ann";
/// A customer without any of the test data.
pub const STRANGER: &str = "auth-stranger";
const UNREGISTERED: &str = "auth-unregistered";
/// An admin of Bob's organization who does not own its documents.
const ADMIN: &str = "auth-admin";
const MEMBER: &str = "bad-cat";
const BOB: &str = "bad-bob";

/// The test data, with a customer record for each person except [`Person::Unregistered`].
pub struct TestData(World);

impl TestData {
    pub async fn create(system: &System) -> Self {
        let world = World::create(system).await;
        for id in [STRANGER, ADMIN] {
            customer(system, id).await;
        }
        let admin = Call::new("PUT", &path(&["organizations", "bad-org", "members", ADMIN])).staff();
        admin.json(&json!({ "role": "admin" })).send(system).await.expect(200);
        Self(world)
    }

    /// Returns a valid request for an operation by this person, with their token. If the request
    /// names a customer whose token the person can have, it has that token, and `me` for the id.
    /// [`Person::Owner`] is the customer whose data the request concerns. [`Person::Staff`] is the
    /// other customer if there are two.
    pub async fn request(&self, system: &System, operation: Operation<'_>, person: Person) -> Call {
        if person == Person::Staff {
            let mut good = self.0.good(system, operation).await;
            let other = [BOB, ANN].into_iter().find(|id| operation.is_secured() && good.say_me(id));
            return good.anonymous().staff_as(other.unwrap_or("staff"));
        }
        let mut good = self.of_customer(system, operation).await;
        let Some(id) = subject(operation, person) else { return good.anonymous() };
        // The id of a new customer is not `me`.
        if operation.own["operationId"] != "createCustomer" && operation.is_secured() {
            good.say_me(id);
        }
        good.anonymous().customer(id)
    }

    /// Returns a request for an operation in which `me` stands for a customer's id, without a token.
    /// Returns `None` if the operation takes no customer's id.
    pub async fn with_me(&self, system: &System, operation: Operation<'_>) -> Option<Good> {
        let mut good = self.of_customer(system, operation).await;
        good.say_me(ANN).then_some(good)
    }

    /// Returns a valid request for an operation, without the fields that only staff may set.
    pub async fn of_customer(&self, system: &System, operation: Operation<'_>) -> Good {
        let mut good = self.0.good(system, operation).await;
        match operation.own["operationId"].as_str().unwrap() {
            "changeCustomer" => leave_out(&mut good, "", &["tier"]),
            "placeOrder" => {
                leave_out(&mut good, "", &["placed_at", "store_id"]);
                leave_out(&mut good, "/lines/0", &["total"]);
            }
            "foundOrganization" => leave_out(&mut good, "", &["id"]),
            "createDocument" => leave_out(&mut good, "", &["id", "organization_id"]),
            // Only staff may ship an order. The owner may cancel a pending order.
            "moveOrder" => {
                let (id, tag) = pending_order(system).await;
                good.parameters[0].1 = id;
                good.headers = vec![("if-match".to_owned(), tag)];
                good.body = Some(json!({ "to": "cancelled" }));
            }
            _ => {}
        }
        good
    }
}

/// Returns the user id in the person's token, or `None` for staff and for anonymous callers.
fn subject(operation: Operation<'_>, person: Person) -> Option<&'static str> {
    let is_of_bob =
        ["/v1/organizations/{id}", "/v1/documents/{id}"].iter().any(|path| operation.path.starts_with(path));
    match person {
        Person::Anonymous | Person::Staff => None,
        Person::Unregistered => Some(UNREGISTERED),
        Person::Stranger => Some(STRANGER),
        Person::Reader => Some(MEMBER),
        Person::Editor => Some(ADMIN),
        Person::Owner if is_of_bob => Some(BOB),
        // The customer must not exist before they sign up.
        Person::Owner if operation.own["operationId"] == "createCustomer" => Some("bad-new"),
        Person::Owner => Some(ANN),
    }
}

fn leave_out(good: &mut Good, place: &str, names: &[&str]) {
    let fields = good.body.as_mut().and_then(|body| body.pointer_mut(place)).unwrap().as_object_mut().unwrap();
    for name in names {
        fields.remove(*name).unwrap_or_else(|| panic!("there is no {name} to leave out"));
    }
}

/// Returns the id and the `ETag` of a pending order of Ann.
async fn pending_order(system: &System) -> (String, String) {
    let orders = Call::new("GET", &path(&["customers", ANN, "orders"])).staff().send(system).await.expect(200).body;
    let pending = orders["items"].as_array().unwrap().iter().find(|order| order["status"] == "pending").unwrap();
    let id = pending["id"].as_str().unwrap();
    let order = Call::new("GET", &path(&["orders", id])).staff().send(system).await.expect(200);
    (id.to_owned(), order.headers["etag"].clone())
}
