//! Tests that each route uses the access patterns that it declares.

use fixture::{Recorder, seed};
use http_api::sample::Call;
use key_schema::code::Subject;
use key_schema::document::{self, CustomerDocument, Document, DocumentSection, Tie};
use key_schema::id::{AnswerId, Born, CustomerId, DocumentId, OrganizationId, QuestionId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::organization::invitation::{Invitations, OpenInvitation};
use key_schema::organization::{self, Authority, Member, Organization, Role};
use key_schema::product;
use key_schema::question::{self, Answer, Question, QuestionStatus};
use key_schema::verification;
use key_schema::verification::VerificationItem;
use serde_json::{Value, json};

use crate::shop::{Shop, if_match, sign_up, sign_up_unproven};

fn of(route: &'static str, id: &str) -> Call {
    Call::new(route).path("id", id)
}

fn id(customer: &str) -> CustomerId {
    CustomerId::new(customer).unwrap()
}

fn club() -> OrganizationId {
    OrganizationId::new("club").unwrap()
}

fn stored<T: Entity>(data: T) -> Stored<T> {
    Stored::new(data, Born::new("born").unwrap(), Instant::now())
}

/// Signs up, reads, finds and changes a customer.
async fn keep_a_profile(recorder: &mut Recorder<'_, Shop>) {
    recorder.expect(201, sign_up("eve", "eve@example.com", "eve")).await;
    let change = |body: Value, version| if_match(of("PATCH /v1/customers/{id}", "eve").staff("s").json(&body), version);
    let at_home = |route: &'static str| of(route, "eve").path("name", "home").customer("eve");
    let address = json!({ "name": "N", "line1": "S", "city": "C", "country": "QA" });
    for call in [
        Call::new("GET /v1/customers").query("email", "eve@example.com").staff("s"),
        Call::new("GET /v1/customers").query("tier", "bronze").staff("s"),
        Call::new("GET /v1/customers").staff("s"),
        of("GET /v1/customers/{id}", "eve").customer("eve"),
        of("GET /v1/customers/{id}/overview", "eve").query("questions", "5").customer("eve"),
        change(json!({ "name": "Eva" }), 1),
        change(json!({ "email": "eva@example.com" }), 2),
        at_home("PUT /v1/customers/{id}/addresses/{name}").json(&address),
    ] {
        recorder.expect(200, call).await;
    }
    recorder.expect(204, at_home("DELETE /v1/customers/{id}/addresses/{name}")).await;
}

/// Uses a session and a cart.
async fn sign_in_and_shop(recorder: &mut Recorder<'_, Shop>) {
    let begin = of("POST /v1/customers/{id}/sessions", "eve").customer("eve").json(&json!({ "device": "phone" }));
    let session = recorder.expect(201, begin).await;
    let session = session["id"].as_str().unwrap();
    recorder.expect(200, of("GET /v1/customers/{id}/sessions", "eve").customer("eve")).await;
    recorder.expect(200, of("PUT /v1/sessions/{id}", session).customer("eve").json(&json!({}))).await;
    recorder.expect(204, of("DELETE /v1/sessions/{id}", session).customer("eve")).await;

    recorder.shop.product("p0").await;
    let line = |route: &'static str| of(route, "eve").path("product", "p0").customer("eve");
    // The first line creates the cart.
    for quantity in [1, 2] {
        let put = line("PUT /v1/customers/{id}/cart/items/{product}").json(&json!({ "quantity": quantity }));
        recorder.expect(200, put).await;
    }
    // A stock of the form of an earlier table, and a stock whose first shard is empty.
    for product in ["p8", "p9"] {
        recorder.shop.product(product).await;
        match product {
            "p8" => recorder.shop.age_stock(product).await,
            _ => split(recorder.shop, product).await,
        }
        let put = of("PUT /v1/customers/{id}/cart/items/{product}", "eve").path("product", product).customer("eve");
        recorder.expect(200, put.json(&json!({ "quantity": 1 }))).await;
    }
    recorder.expect(200, of("GET /v1/customers/{id}/cart", "eve").customer("eve")).await;
    recorder.expect(200, line("GET /v1/customers/{id}/cart/items/{product}")).await;
    recorder.expect(204, line("DELETE /v1/customers/{id}/cart/items/{product}")).await;
}

/// Gives the stock of a product two shards, of which the first is empty.
async fn split(shop: &Shop, product: &str) {
    let id = product.parse().unwrap();
    workflows::stock::reshard::<()>(shop.own(), &id, 2).await.unwrap().unwrap();
    let mut first = shop.own().get(&product::stock(&id).unwrap()).await.unwrap().unwrap();
    first.data.available = 0;
    shop.put(&first).await;
}

/// Uses a guest cart and claims it.
async fn visit(recorder: &mut Recorder<'_, Shop>) {
    for ending in ["claim", "removal"] {
        let cart = recorder.expect(201, Call::new("POST /v1/carts")).await;
        let (cart, token) = (cart["id"].as_str().unwrap(), cart["token"].as_str().unwrap());
        let with = |route: &'static str| of(route, cart).path("product", "p0").header("cart-token", token);
        let put = with("PUT /v1/carts/{id}/items/{product}").json(&json!({ "quantity": 1 }));
        recorder.expect(200, put).await;
        recorder.expect(200, with("GET /v1/carts/{id}")).await;
        if ending == "claim" {
            let claim = json!({ "cart_id": cart, "cart_token": token });
            let claim = of("POST /v1/customers/{id}/cart/claim", "eve").customer("eve").json(&claim);
            recorder.expect(200, claim).await;
        } else {
            recorder.expect(204, with("DELETE /v1/carts/{id}/items/{product}")).await;
            recorder.expect(204, with("DELETE /v1/carts/{id}")).await;
        }
    }
    recorder.expect(204, of("DELETE /v1/customers/{id}/cart", "eve").customer("eve")).await;
}

/// Verifies two addresses: one with a code, and one with a token that contains the address.
async fn verify_addresses(recorder: &mut Recorder<'_, Shop>) {
    let shop = recorder.shop;
    for id in ["kim", "may"] {
        let signed_up = shop.send(sign_up_unproven(id, &format!("{id}@example.com"), id)).await;
        assert_eq!(signed_up.status, 201, "{}", signed_up.body);
    }
    let request = |id: &str| of("POST /v1/customers/{id}/email/verification", id);
    recorder.expect(202, request("kim").customer_with_email("kim", "kim@example.com")).await;
    recorder.expect(202, request("may").customer("may")).await;
    let body = json!({ "code": code(shop, "may").await });
    let enter = of("PUT /v1/customers/{id}/email/verification", "may").customer("may").json(&body);
    recorder.expect(200, enter).await;
}

/// Returns the code of a customer's latest request.
async fn code(shop: &Shop, customer: &str) -> String {
    let customer = id(customer);
    let found = shop.own().batch_get(&verification::read(&customer).unwrap()).await.unwrap();
    let Some(Some(VerificationItem::EmailVerification(pending))) = found.into_iter().nth(1) else {
        panic!("{customer} has not requested a code");
    };
    let nonce = pending.nonce.clone().unwrap();
    let subject = Subject { customer: &customer, email: &pending.email, nonce: &nonce };
    shop.app.codes().await.unwrap().code(&pending.key, &subject).unwrap()
}

/// Erases ann, who has an item of every kind that an erasure removes.
async fn erase(recorder: &mut Recorder<'_, Shop>) {
    let shop = recorder.shop;
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
    }
    shop.session("ann", "s", 60).await;
    shop.put(&stored(seed::order_addresses("o1", "ann"))).await;
    shop.cart("ann", 1, 60).await;
    shop.like("ann", "p0").await;
    shop.review("ann", "p0").await;
    shop.follow("ann", "bob").await;
    shop.follow("bob", "ann").await;
    ask(shop).await;
    join_the_club(shop).await;
    let until = Instant::now().plus_seconds(3_600);
    let open = [(OrganizationId::new("choir").unwrap(), OpenInvitation::new(until, &id("bob")))].into();
    shop.put(&stored(Invitations { customer_id: id("ann"), open })).await;
    for (document, organization) in [("own", None), ("of-the-club", Some(club()))] {
        write(shop, document, organization).await;
    }
    let lost = DocumentId::new("lost").unwrap();
    shop.put(&stored(CustomerDocument { customer_id: id("ann"), document_id: lost, tie: Tie::Owner })).await;

    copy(recorder).await;
    recorder.expect(204, if_match(of("DELETE /v1/customers/{id}", "ann").customer("ann"), 1)).await;
    let left: Vec<_> = shop.keys("").await.into_iter().filter(|(pk, _)| pk == "CUSTOMER#ann").collect();
    assert_eq!(left, []);
}

/// Reads all data of ann, and of dan, who has an order with an invoice and a review.
async fn copy(recorder: &mut Recorder<'_, Shop>) {
    recorder.shop.customer("dan").await;
    recorder.shop.invoiced_order("dan", "p0").await;
    recorder.shop.review("dan", "p0").await;
    for customer in ["ann", "dan"] {
        let read = || of("GET /v1/customers/{id}/data", customer).customer(customer);
        let mut page = recorder.expect(200, read()).await;
        while let Some(cursor) = page["next_cursor"].as_str() {
            page = recorder.expect(200, read().query("cursor", cursor)).await;
        }
    }
}

/// Writes a question that ann asks, and an answer to it.
async fn ask(shop: &Shop) {
    let at = Instant::now();
    let question = stored(Question {
        id: QuestionId::generate(at, [1; 10]),
        customer_id: id("ann"),
        status: QuestionStatus::Open,
        answer_count: 0,
        title: "Ice".to_owned(),
        text: "Does it melt?".to_owned(),
    });
    shop.own().transact(&question::ask(&question, None).unwrap()).await.unwrap().unwrap();
    let answer = stored(Answer {
        id: AnswerId::generate(at, [2; 10]),
        question_id: question.id.clone(),
        by: id("s"),
        text: "Above 0 °C.".to_owned(),
    });
    shop.own().transact(&question::answer(&question, &answer, None).unwrap()).await.unwrap().unwrap();
}

/// Creates the club, with ann as its admin.
async fn join_the_club(shop: &Shop) {
    let head = stored(Organization { id: club(), teams: 0, admins: 1, invited: 0, name: "Club".to_owned() });
    let admin = stored(Member { id: club(), customer_id: id("ann"), role: Role::Admin, team: None });
    let create = organization::create(&head, &admin, Authority::Staff).unwrap();
    shop.own().transact(&create).await.unwrap().unwrap();
}

/// Creates a document of ann.
async fn write(shop: &Shop, document: &str, organization_id: Option<OrganizationId>) {
    let (document_id, owner, name) = (DocumentId::new(document).unwrap(), id("ann"), SectionName::new("a").unwrap());
    let head = stored(Document {
        id: document_id.clone(),
        owner_id: Some(owner.clone()),
        organization_id,
        editors: [].into(),
        deleting: false,
        discarded: [].into(),
        removing_since: None,
        title: "Statutes".to_owned(),
        current: 1,
        sections: [(name.clone(), 1)].into(),
        draft: None,
    });
    let (by, at) = (owner.clone(), Instant::now());
    let section = stored(DocumentSection { id: document_id, name, number: 1, text: "A".to_owned(), by, at });
    let create = document::create(&head, &[section], &owner, false).unwrap();
    shop.own().transact(&create).await.unwrap().unwrap();
}

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let shop = Shop::open().await;
    let mut recorder = Recorder::new(&shop);
    keep_a_profile(&mut recorder).await;
    sign_in_and_shop(&mut recorder).await;
    visit(&mut recorder).await;
    verify_addresses(&mut recorder).await;
    erase(&mut recorder).await;
    recorder.assert_recorded();
}
