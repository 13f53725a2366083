//! Tests of erasing a customer.

use http_api::sample::{Answered, Call};
use key_schema::change::Change;
use key_schema::customer::{Customer, CustomerChanges as _, Names};
use key_schema::id::{AnswerId, Born, CustomerId, ProductId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{self, Answer, Question, QuestionStatus};
use key_schema::review::recent::Month;
use key_schema::verification::VerificationAction;
use key_schema::{customer, erasure, follow, graph, like, order, review, session, verification};
use serde_json::{Value, json};
use table::Budget;
use workflows::erasure::erase_belongings;

use crate::shop::{Shop, if_match, sign_up_unproven};

async fn erase(shop: &Shop, version: u64) -> Answered {
    let call = Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann");
    shop.send(if_match(call, version)).await
}

async fn sessions(shop: &Shop) -> usize {
    let call = Call::new("GET /v1/customers/{id}/sessions").path("id", "ann").query("limit", "100").customer("ann");
    shop.send(call).await.body["items"].as_array().unwrap().len()
}

async fn cart(shop: &Shop) -> Value {
    shop.send(Call::new("GET /v1/customers/{id}/cart").path("id", "ann").customer("ann")).await.body
}

#[tokio::test]
async fn an_erasure_deletes_profile_and_sessions_and_cart_and_keeps_the_orders() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.product("p0").await;
    shop.order("ann", "p0", 0).await;
    shop.cart("ann", 1, 60).await;
    // There is more than one page of sessions.
    for n in 0..130 {
        shop.session("ann", &format!("s{n}"), 60 + n).await;
    }
    // These sessions have expired, but DynamoDB has not removed them yet. The erasure must also end
    // these sessions.
    for n in 0..3 {
        shop.session("ann", &format!("over-{n}"), -60).await;
    }
    shop.session("bob", "bobs", 60).await;

    let answer = erase(&shop, 1).await;
    assert_eq!((answer.status, &answer.body), (204, &Value::Null));
    assert_eq!(shop.read("ann").await.status, 404);
    assert_eq!(sessions(&shop).await, 0);
    assert_eq!(cart(&shop).await, json!({ "items": [], "subtotal": null, "expires_at": null }));
    let ann = CustomerId::new("ann").unwrap();
    let sessions = shop.own().query(&session::of_customer(&ann).unwrap().limit(1000)).await.unwrap();
    assert_eq!(sessions.items, []);
    let orders = shop.own().query(&order::of_customer(&ann, None, None).unwrap()).await.unwrap();
    assert_eq!(orders.items.len(), 1);
    let bobs = Call::new("DELETE /v1/sessions/{id}").path("id", "bobs").customer("bob");
    assert_eq!(shop.send(bobs).await.status, 204);
    let list = shop.send(Call::new("GET /v1/customers").query("tier", "bronze").staff("s")).await;
    assert_eq!(list.body["items"], json!([]));

    assert_eq!(erase(&shop, 1).await.status, 404);
}

#[tokio::test]
async fn an_erasure_that_deletes_a_profile_adds_a_note_for_the_archive() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let noted = async || shop.own().query(&erasure::pending(Instant::MAX).unwrap()).await.unwrap().items;
    assert_eq!(erase(&shop, 2).await.status, 412);
    assert_eq!(noted().await, []);
    assert_eq!(erase(&shop, 1).await.status, 204);
    let first = noted().await;
    assert_eq!(first.iter().map(|noted| noted.customer_id.as_str()).collect::<Vec<_>>(), ["ann"]);
    // A repeated request keeps the `Erasure` item. If the customer signs up again, the next erasure
    // replaces the item.
    assert_eq!(erase(&shop, 1).await.status, 404);
    assert_eq!(noted().await, first);
    shop.customer("ann").await;
    assert_eq!(erase(&shop, 1).await.status, 204);
    let second = noted().await;
    assert!(second.len() == 1 && second[0].created_at >= first[0].created_at && second != first, "{second:?}");
}

/// Writes a question with a number of answers directly into the table.
async fn ask(shop: &Shop, customer: &str, second: i64, answers: u8) -> Stored<Question> {
    let at = Instant::EPOCH.plus_seconds(1_700_000_000 + second);
    let question = ask_of(customer, at);
    shop.own().transact(&question::ask(&question, None).unwrap()).await.unwrap().unwrap();
    for n in 0..answers {
        let (id, text) = (AnswerId::generate(at, [n; 10]), "Above 0 °C.".to_owned());
        let (question_id, by) = (question.id.clone(), CustomerId::new("s").unwrap());
        let answer = Stored::new(Answer { id, question_id, by, text }, Born::generate(at, [n; 10]), at);
        shop.own().transact(&question::answer(&question, &answer, None).unwrap()).await.unwrap().unwrap();
    }
    question
}

/// Counts the stored items of a question: the question, its answers and its copy.
async fn left(shop: &Shop, question: &Stored<Question>) -> usize {
    let whole = shop.own().query(&question::get(&question.id).unwrap()).await.unwrap().items.len();
    let copies = shop.own().query(&question::of_customer(&question.customer_id).unwrap()).await.unwrap().items;
    whole + copies.iter().filter(|copy| copy.id == question.id).count()
}

#[tokio::test]
async fn an_erasure_deletes_the_customers_questions_with_their_answers_and_no_other_questions() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.customer("anna").await;
    let mut asked = Vec::new();
    // There is more than one page of questions. One question has more answers than a batch.
    for second in 0..60 {
        asked.push(ask(&shop, "ann", second, if second == 7 { 30 } else { u8::try_from(second % 2).unwrap() }).await);
    }
    let hers = ask(&shop, "anna", 0, 2).await;
    assert_eq!((left(&shop, &asked[7]).await, left(&shop, &hers).await), (32, 4));
    assert_eq!(erase(&shop, 1).await.status, 204);
    for question in &asked {
        assert_eq!(left(&shop, question).await, 0);
    }
    assert_eq!(left(&shop, &hers).await, 4);
    // The list of open questions is empty, too.
    let open = shop.own().query(&question::open().unwrap()).await.unwrap().items;
    assert_eq!(open.len(), 0);
    // A customer who signs up again under the same id has no questions.
    shop.customer("ann").await;
    let support = shop.own().query(&question::support(&asked[0].customer_id).unwrap()).await.unwrap();
    assert_eq!(support.items.len(), 1);
}

/// Covers each point at which an attempt can stop: after some questions, after some answers, or
/// after all answers and before the copies.
#[tokio::test]
async fn the_next_erasure_finishes_an_interrupted_erasure() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let asked = [ask(&shop, "ann", 0, 3).await, ask(&shop, "ann", 1, 3).await, ask(&shop, "ann", 2, 3).await];
    let table = shop.own();
    table.batch_write(&question::erase(asked.iter().map(|question| &question.id)).unwrap()).await.unwrap();
    for (question, gone) in asked.iter().zip([0, 1, 3]) {
        let answers = table.query(&question::answers(&question.id).unwrap()).await.unwrap().items;
        let some = answers.iter().take(gone).map(|answer| &answer.data);
        if gone > 0 {
            table.batch_write(&question::erase_answers(some).unwrap()).await.unwrap();
        }
    }
    assert_eq!(erase(&shop, 1).await.status, 204);
    for question in &asked {
        assert_eq!(left(&shop, question).await, 0);
    }
}

/// A concurrent answer is either erased or refused. It never remains without its question.
#[tokio::test]
async fn an_erasure_leaves_no_item_of_a_question_that_gets_answers_at_the_same_time() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let question = ask(&shop, "ann", 0, 0).await;
    let answers = (0..20).map(|n: u8| {
        let (at, shop, question) = (Instant::now(), &shop, &question);
        let (id, by) = (AnswerId::generate(at, [n; 10]), CustomerId::new("s").unwrap());
        let data = Answer { id, question_id: question.id.clone(), by, text: "A".to_owned() };
        let answer = Stored::new(data, Born::generate(at, [n; 10]), at);
        async move { drop(shop.own().transact(&question::answer(question, &answer, None).unwrap()).await) }
    });
    let (erased, _) = futures::future::join(erase(&shop, 1), futures::future::join_all(answers)).await;
    assert_eq!(erased.status, 204, "{}", erased.body);
    assert_eq!(left(&shop, &question).await, 0);
}

/// The erasure first marks the profile, and then reads the questions with strong consistency. After
/// the mark, the table refuses further questions of the customer.
#[tokio::test]
async fn a_question_asked_during_the_erasure_is_deleted_or_refused() {
    let shop = Shop::open().await;
    for round in 0..10 {
        shop.customer("ann").await;
        let ask = async {
            let at = Instant::EPOCH.plus_seconds(round);
            let question = ask_of("ann", at);
            for _ in 0..3 {
                let _ = shop.own().transact(&question::ask(&question, None).unwrap()).await;
            }
            question
        };
        let (question, erased) = futures::future::join(ask, erase(&shop, 1)).await;
        assert_eq!(erased.status, 204, "{}", erased.body);
        assert_eq!(left(&shop, &question).await, 0);
    }
}

fn ask_of(customer: &str, at: Instant) -> Stored<Question> {
    let question = Question {
        id: QuestionId::generate(at, [u8::try_from(customer.len()).unwrap(); 10]),
        customer_id: CustomerId::new(customer).unwrap(),
        status: QuestionStatus::Open,
        answer_count: 0,
        title: "Ice".to_owned(),
        text: "Does it melt?".to_owned(),
    };
    Stored::new(question, Born::generate(at, [1; 10]), at)
}

#[tokio::test]
async fn exactly_one_of_a_concurrent_erasure_and_change_takes_effect() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let change = Call::new("PATCH /v1/customers/{id}")
        .path("id", "ann")
        .customer_with_email("ann", "x@example.com")
        .json(&json!({ "email": "x@example.com" }));
    let (erased, changed) = futures::future::join(erase(&shop, 1), shop.send(if_match(change, 1))).await;
    if erased.status == 204 {
        assert!([404, 412].contains(&changed.status), "{}", changed.body);
        assert_eq!(shop.read("ann").await.status, 404);
        assert!(shop.find("x@example.com").await.is_empty());
    } else {
        assert_eq!((erased.status, changed.status), (412, 200));
        assert_eq!(shop.find("x@example.com").await, [changed.body]);
    }
    assert!(shop.find("ann@example.com").await.is_empty());
}

/// If the profile could change, its version would change, and the repeated request would be
/// refused. Then the customer would keep a profile without belongings.
#[tokio::test]
async fn a_profile_whose_erasure_has_begun_does_not_change_and_a_repeated_request_erases_it() {
    let shop = Shop::open().await;
    assert_eq!(shop.send(sign_up_unproven("ann", "ann@example.com", "ann")).await.status, 201);
    let ann = CustomerId::new("ann").unwrap();
    let customer = shop.own().get(&customer::read_for_update(&ann).unwrap()).await.unwrap().unwrap();
    shop.own().update(&customer::begin_erasure(&customer, Instant::now()).unwrap()).await.unwrap().unwrap();

    let change =
        |body: Value| if_match(Call::new("PATCH /v1/customers/{id}").path("id", "ann").customer("ann").json(&body), 1);
    let home = |call: Call| call.path("id", "ann").path("name", "home").customer("ann");
    let verify = |call: Call| call.path("id", "ann").customer("ann");
    let address = json!({ "name": "N", "line1": "S", "city": "C", "country": "QA" });
    for call in [
        change(json!({ "name": "Anna" })),
        change(json!({ "username": "anna" })),
        home(Call::new("PUT /v1/customers/{id}/addresses/{name}")).json(&address),
        home(Call::new("DELETE /v1/customers/{id}/addresses/{name}")),
        verify(Call::new("POST /v1/customers/{id}/email/verification")),
        verify(Call::new("PUT /v1/customers/{id}/email/verification")).json(&json!({ "code": "123456" })),
    ] {
        let answer = shop.send(call).await;
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")), "{}", answer.body);
    }
    // The table refuses the writes of requests that read the profile before the erasure began.
    let update = Change::<Customer>::visible(Instant::now()).name(&"Anna".to_owned()).unwrap();
    assert!(shop.own().update(&customer::update(&customer, update.clone()).unwrap()).await.unwrap().is_err());
    let names = Names { email: &customer.email, email_verified: false, username: &customer.username };
    let rename = customer::rename(&customer, names, update, Instant::now()).unwrap();
    assert!(shop.own().transact(&rename).await.unwrap().is_err());
    let verify = verification::verify(&customer, None, Instant::now()).unwrap();
    let refusals = shop.own().transact(&verify).await.unwrap().unwrap_err();
    assert_eq!(refusals[0].action, VerificationAction::Profile);

    assert_eq!(erase(&shop, 1).await.status, 204);
    assert_eq!(shop.read("ann").await.status, 404);
}

#[tokio::test]
async fn an_erased_customer_may_sign_up_again() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    assert_eq!(erase(&shop, 1).await.status, 204);
    shop.customer("ann").await;
    assert_eq!(shop.read("ann").await.version(), Some(1));
}

/// Returns the display name and the version of a customer's review.
async fn display_name(shop: &Shop, customer: &str, product: &str) -> (Option<String>, u64) {
    let get = review::get(&product.parse().unwrap(), &CustomerId::new(customer).unwrap()).unwrap();
    let review = shop.own().get(&get).await.unwrap().unwrap();
    (review.data.display_name, review.meta.version)
}

#[tokio::test]
async fn an_erasure_keeps_the_reviews_without_their_display_names() {
    let shop = Shop::open().await;
    for customer in ["ann", "bob"] {
        shop.customer(customer).await;
        shop.review(customer, "p0").await;
    }
    // There is more than one page of reviews.
    for n in 1..=102 {
        shop.review("ann", &format!("p{n}")).await;
    }
    assert_eq!(erase(&shop, 1).await.status, 204);
    for n in 0..=102 {
        assert_eq!(display_name(&shop, "ann", &format!("p{n}")).await, (None, 2));
    }
    let month = Month::of(Instant::now());
    let entries = shop.own().query(&review::recent::of_month(&month).unwrap().limit(200)).await.unwrap().items;
    assert!(
        entries.len() == 103 && entries.iter().all(|entry| entry.display_name.is_none() && entry.meta.version == 2)
    );
    assert_eq!(display_name(&shop, "bob", "p0").await, (Some("bob from Ulm".to_owned()), 1));

    // The janitor repeats the removal after the customer has signed up again.
    let until = Instant::now();
    shop.customer("ann").await;
    shop.review("ann", "p1").await;
    let (table, ann) = (shop.own(), CustomerId::new("ann").unwrap());
    erase_belongings(table, &ann, until, &Budget::begin(table)).await.unwrap();
    assert_eq!(display_name(&shop, "ann", "p1").await.0.as_deref(), Some("ann from Ulm"));
}

/// Returns the number of a product's like edges, and the stored count of likes.
async fn likes(shop: &Shop, product: &str) -> (usize, u64) {
    let product = ProductId::new(product).unwrap();
    let likers = shop.own().query(&like::likers(&product).unwrap()).await.unwrap().items;
    let counted = shop.own().query(&like::of_product(&product).unwrap()).await.unwrap().items;
    (likers.len(), like::total(&counted))
}

async fn edges(shop: &Shop, id: &str) -> usize {
    let id = CustomerId::new(id).unwrap();
    let own = shop.own().query(&graph::own(&id).unwrap().limit(1000)).await.unwrap().items;
    let followers = shop.own().query(&follow::followers(&id).unwrap().limit(1000)).await.unwrap().items;
    own.len() + followers.len()
}

#[tokio::test]
async fn erasure_deletes_the_edges_from_and_to_the_customer_and_corrects_the_counts() {
    let shop = Shop::open().await;
    let products: Vec<String> = (0..23).map(|n| format!("p{n}")).collect();
    for product in &products {
        shop.product(product).await;
    }
    let everybody: Vec<String> =
        ["ann".to_owned(), "bob".to_owned()].into_iter().chain((0..118).map(|n| format!("c{n}"))).collect();
    for id in &everybody {
        shop.customer(id).await;
    }
    for product in &products {
        shop.like("ann", product).await;
    }
    shop.like("bob", "p0").await;
    shop.retire("p1").await;
    // There is more than one page of edges in each direction.
    for id in &everybody[1..] {
        shop.follow("ann", id).await;
        shop.follow(id, "ann").await;
    }
    shop.follow("bob", "c1").await;
    assert_eq!(likes(&shop, "p0").await, (2, 2));
    assert_eq!(edges(&shop, "ann").await, 23 + 2 * 119);

    assert_eq!(erase(&shop, 1).await.status, 204);
    assert_eq!(edges(&shop, "ann").await, 0);
    assert_eq!(edges(&shop, "bob").await, 2, "one like, one follow");
    assert_eq!(likes(&shop, "p0").await, (1, 1));
    for product in &products[2..] {
        assert_eq!(likes(&shop, product).await, (0, 0), "{product}");
    }
}

#[tokio::test]
async fn a_repetition_continues_an_interrupted_erasure() {
    let shop = Shop::open().await;
    shop.product("p0").await;
    for id in ["ann", "bob"] {
        shop.customer(id).await;
    }
    shop.like("ann", "p0").await;
    shop.follow("ann", "bob").await;
    shop.follow("bob", "ann").await;
    // The first attempt stopped after it deleted the profile.
    shop.delete_profile("ann").await;
    assert_eq!(erase(&shop, 1).await.status, 404);
    assert_eq!((edges(&shop, "ann").await, edges(&shop, "bob").await), (0, 0));
    assert_eq!(likes(&shop, "p0").await, (0, 0));
}

/// A new profile starts at version 1 again, so only its birth mark (`born`) differs.
#[tokio::test]
async fn a_request_that_read_an_earlier_profile_neither_erases_nor_renames_the_next_profile() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let read = customer::read_for_update(&"ann".parse().unwrap()).unwrap();
    let earlier = shop.own().get(&read).await.unwrap().unwrap();
    assert_eq!(erase(&shop, 1).await.status, 204);
    shop.customer("ann").await;
    let before = shop.keys("").await;

    let now = Instant::now();
    let change = Change::<Customer>::visible(now).name(&"Anna".to_owned()).unwrap();
    let update = customer::update(&earlier, change).unwrap();
    for stale in [customer::begin_erasure(&earlier, now).unwrap(), update] {
        assert!(shop.own().update(&stale).await.unwrap().is_err());
    }
    let other = "other".parse().unwrap();
    let names = Names { email: &earlier.email, email_verified: true, username: &other };
    let rename = customer::rename(&earlier, names, Change::<Customer>::visible(now), now).unwrap();
    for stale in [customer::delete(&earlier, now).unwrap(), rename] {
        assert!(shop.own().transact(&stale).await.unwrap().is_err());
    }
    assert_eq!(shop.keys("").await, before);
}
