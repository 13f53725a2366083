//! Measures an organization of ten teams and twenty members.

use key_schema::id::{CustomerId, OrganizationId, TeamId};
use key_schema::item::Stored;
use key_schema::organization::invitation::{self, Invitation, Invitations, OpenInvitation, State};
use key_schema::organization::{self, Authority, Member, Organization, Role, Team};

use super::Bench;
use crate::data::{at, born, customer_id};

pub fn id() -> OrganizationId {
    OrganizationId::generate(at(600), [1; 10])
}

fn member(customer: CustomerId, role: Role, team: Option<&TeamId>) -> Stored<Member> {
    Stored::new(Member { id: id(), customer_id: customer, role, team: team.cloned() }, born(1), at(600))
}

pub async fn measure(bench: &mut Bench) {
    let (id, admin, name) = (id(), customer_id(1), "Chess club".to_owned());
    let by = Authority::Customer(&admin);
    let head = Stored::new(
        Organization { id: id.clone(), teams: 0, admins: 1, invited: 0, name: name.clone() },
        born(1),
        at(600),
    );
    let create = organization::create(&head, &member(admin.clone(), Role::Admin, None), by).unwrap();
    bench.transact("one organization", create).await;
    let teams: Vec<TeamId> = (0..10).map(|n| TeamId::new(format!("team-{n}")).unwrap()).collect();
    for team in &teams {
        let team = Team { organization_id: id.clone(), id: team.clone(), members: 0, name: "Bishops".to_owned() };
        let create = organization::create_team(&Stored::new(team.clone(), born(1), at(600)), by).unwrap();
        if team.id.as_str() == "team-0" {
            bench.transact("one team", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    let (first, second) = (&teams[0], &teams[1]);
    for number in 2..=20 {
        let new = member(customer_id(number), Role::Member, Some(first));
        let put = organization::put_member(None, &new, by).unwrap();
        if number == 2 {
            bench.transact("a new member of a team", put).await;
        } else {
            bench.table.transact(&put).await.unwrap().unwrap();
        }
    }
    let _ = bench.table.meter().take();
    bench.query("with ten teams", 11, organization::get(&id).unwrap()).await;
    bench.get("the organization", organization::head(&id).unwrap()).await;
    bench.transact("the name", organization::rename(&id, &name, 1, by, at(601)).unwrap()).await;
    bench.query("with ten teams", 11, organization::renamed(&id).unwrap()).await;
    bench.transact("the name", organization::change_team(&id, second, &name, 1, by, at(601)).unwrap()).await;
    let old = bench.get("one membership", organization::member(&id, &customer_id(2)).unwrap()).await;
    bench.batch_get("one head, two memberships", organization::prepare(&id, &customer_id(2), &admin).unwrap()).await;
    let mut new = member(customer_id(2), Role::Admin, Some(second));
    new.meta.updated_at = at(602);
    let promote = organization::put_member(Some(&old), &new, by).unwrap();
    bench.transact("an admin, and into another team", promote).await;
    bench.query("a page of 20", 20, organization::members(&id).unwrap().limit(20)).await;
    bench.query("one membership", 1, organization::of_customer(&admin).unwrap().limit(20)).await;
    let old = bench.table.get(&organization::member(&id, &customer_id(2)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.transact("an admin in a team", organization::remove_member(&old, by).unwrap()).await;
    bench.transact("a team", organization::delete_team(&id, second, 2, by).unwrap()).await;
    let old = bench.get("one membership", organization::erasable(&id, &customer_id(20)).unwrap()).await;
    bench.transact("a member of a team", organization::erase_member(&old).unwrap()).await;
    invitations(bench).await;
    let ghost = member(CustomerId::new("nobody").unwrap(), Role::Admin, None);
    bench.seed(&ghost).await;
    bench.transact("an admin", organization::remove_ghost(&ghost).unwrap()).await;
}

/// Measures the invitation of a customer into a team. The customer has no other invitation.
async fn invitations(bench: &mut Bench) {
    let (id, admin, customer, team) = (id(), customer_id(1), customer_id(21), TeamId::new("team-0").unwrap());
    let data = Invitation {
        id: id.clone(),
        customer_id: customer.clone(),
        title: "Chess club".to_owned(),
        role: Role::Member,
        team: Some(team.clone()),
        inviter: admin.clone(),
        inviter_born: born(1),
        expires_at: at(100_000),
    };
    let open = Stored::new(data, born(3), at(603));
    let entry = OpenInvitation::new(at(100_000), &customer);
    let roster = Invitations { customer_id: customer.clone(), open: [(id.clone(), entry)].into() };
    let roster = Stored::new(roster, born(3), at(603));
    for accepts in [true, false] {
        let head = bench.table.get(&organization::head(&id).unwrap()).await.unwrap().unwrap();
        let _ = bench.table.meter().take();
        let invite = invitation::invite(&head, &State::default(), &open, &admin).unwrap();
        let state = State { invitation: Some(open.clone()), roster: Some(roster.clone()) };
        if accepts {
            bench.transact("into a team", invite).await;
            bench.batch_get("all four items", invitation::prepare(&id, &customer, &admin).unwrap()).await;
            bench.query("one invitation", 1, invitation::open(&id).unwrap().limit(100)).await;
            bench.batch_get("one inviter", invitation::inviters(std::slice::from_ref(&open)).unwrap()).await;
            bench.query("one invitation", 1, invitation::of_organization(&id).unwrap().limit(20)).await;
            bench.query("one invitation", 1, invitation::of_customer(&customer, at(603)).unwrap().limit(20)).await;
            let new = member(customer.clone(), Role::Member, Some(&team));
            bench.transact("into a team", invitation::accept(&open, &state, &new).unwrap()).await;
            bench.table.transact(&organization::erase_member(&new).unwrap()).await.unwrap().unwrap();
        } else {
            bench.table.transact(&invite).await.unwrap().unwrap();
            let _ = bench.table.meter().take();
            bench.transact("by an admin", invitation::withdraw(&open, &state, Some(&admin), at(603)).unwrap()).await;
        }
    }
    bench.seed(&open).await;
    bench.seed(&roster).await;
    bench.get("one invitation", invitation::roster(&customer).unwrap()).await;
    bench.batch_write("one invitation", invitation::erase(&roster).unwrap()).await;
    bench.write("one invitation", invitation::forget(&roster).unwrap()).await;
}
