use local::System;
use serde_json::json;

use crate::support::client::Call;
use crate::support::shop::{customer, path};
use crate::support::with_system;

/// Creates customers and an organization, whose first admin is the first customer.
async fn club(system: &System, customers: &[&str]) -> String {
    for id in customers {
        customer(system, id).await;
    }
    another(system, customers[0]).await
}

/// Creates another organization, with this customer as its admin.
async fn another(system: &System, admin: &str) -> String {
    let found = Call::new("POST", "/v1/organizations").customer(admin).json(&json!({ "name": "Chess" }));
    found.send(system).await.expect(201).body["id"].as_str().unwrap().to_owned()
}

fn member(club: &str, customer: &str) -> String {
    path(&["organizations", club, "members", customer])
}

async fn document(system: &System, club: &str, owner: &str) -> String {
    let body = json!({ "title": "Statutes", "organization_id": club, "sections": { "a": "A" } });
    let created = Call::new("POST", "/v1/documents").customer(owner).json(&body).send(system).await.expect(201).body;
    path(&["documents", created["id"].as_str().unwrap()])
}

#[test]
fn a_removed_member_loses_the_documents_at_once_and_the_admins_keep_them() {
    with_system(async |system| {
        let (admin, owner) = ("removed-admin", "removed-owner");
        let club = club(system, &[admin, owner]).await;
        let add = Call::new("PUT", &member(&club, owner)).staff().json(&json!({ "role": "member" }));
        add.send(system).await.expect(200);
        let url = document(system, &club, owner).await;
        let put = |tag: &str| {
            let call = Call::new("PUT", &format!("{url}/sections/a")).header("if-match", tag);
            call.json(&json!({ "text": "B" }))
        };
        put("\"1\"").customer(owner).send(system).await.expect(200);
        Call::new("DELETE", &member(&club, owner)).customer(admin).send(system).await.expect(204);
        for call in [
            put("\"2\""),
            Call::new("GET", &url),
            Call::new("GET", &format!("{url}/versions")),
            Call::new("DELETE", &url).header("if-match", "\"2\""),
            Call::new("PUT", &format!("{url}/editors/{owner}")),
        ] {
            call.customer(owner).send(system).await.expect(404);
        }
        put("\"2\"").customer(admin).send(system).await.expect(200);
        Call::new("DELETE", &url).header("if-match", "\"3\"").customer(admin).send(system).await.expect(204);
    });
}

#[test]
fn a_customer_joins_by_accepting_an_invitation_and_an_erasure_removes_the_other_invitations() {
    with_system(async |system| {
        let (admin, guest) = ("invites-admin", "invites-guest");
        let (first, second) = (club(system, &[admin, guest]).await, another(system, admin).await);
        for club in [&first, &second] {
            let invite = Call::new("PUT", &member(club, guest)).customer(admin).json(&json!({ "role": "member" }));
            let invitation = invite.send(system).await.expect(202).body;
            assert_eq!(invitation["organization_name"], "Chess");
            Call::new("GET", &path(&["organizations", club])).customer(guest).send(system).await.expect(404);
        }
        let own = path(&["customers", guest, "invitations"]);
        let listed = async || Call::new("GET", &own).customer(guest).send(system).await.expect(200).body;
        assert_eq!(listed().await["items"].as_array().unwrap().len(), 2);
        let accept = || Call::new("PUT", &member(&first, guest)).customer(guest).json(&json!({}));
        accept().send(system).await.expect(201);
        accept().send(system).await.expect(200);
        Call::new("GET", &path(&["organizations", &first])).customer(guest).send(system).await.expect(200);
        assert_eq!(listed().await["items"][0]["organization_id"], second.as_str());

        let profile = path(&["customers", guest]);
        Call::new("DELETE", &profile).customer(guest).header("if-match", "\"1\"").settled(system).await.expect(204);
        let open = path(&["organizations", &second, "invitations"]);
        let open = Call::new("GET", &open).customer(admin).send(system).await.expect(200).body;
        assert_eq!(open["items"], json!([]));
        let late = Call::new("PUT", &member(&second, guest)).customer(guest).json(&json!({}));
        late.send(system).await.expect(404);
    });
}
