//! Tests of reviews and their statistics.

use std::collections::BTreeSet;

use futures::future::{join, join_all};
use http_api::sample::{Answered, Call};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::quota::Quota;
use key_schema::review::{self, Review};
use serde_json::{Value, json};

use crate::shop::{Shop, each};

fn put(customer: &str, rating: u64) -> Call {
    let body = json!({
        "rating": rating, "display_name": format!(" {customer}"), "title": format!("By {customer}"),
        "text": "Cold.\nVery.",
    });
    one("PUT /v1/products/{id}/reviews/{customer}", customer).json(&body).customer(customer)
}

fn one(route: &'static str, customer: &str) -> Call {
    Call::new(route).path("id", "p1").path("customer", customer)
}

fn list(sort: &str) -> Call {
    Call::new("GET /v1/products/{id}/reviews").path("id", "p1").query("sort", sort)
}

/// Returns a review as everybody sees it.
pub fn public(answer: &Answered) -> Value {
    let mut review = answer.body.clone();
    review.as_object_mut().unwrap().remove("customer_id");
    review
}

async fn write(shop: &Shop, customer: &str, rating: u64) -> Answered {
    shop.join(customer).await;
    let answer = shop.send(put(customer, rating).header("if-none-match", "*")).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer
}

/// Returns average and count, and checks that the list and the product show the same statistics.
async fn statistics(shop: &Shop) -> (Value, Value) {
    let list = shop.send(list("newest")).await.body;
    let product = shop.product("p1").await.body;
    assert_eq!((&list["average"], &list["count"]), (&product["average_rating"], &product["review_count"]));
    (list["average"].clone(), list["count"].clone())
}

#[tokio::test]
async fn a_review_is_written_changed_and_removed_by_its_author_and_counted_each_time() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    assert_eq!(statistics(&shop).await, (Value::Null, json!(0)));
    let created = write(&shop, "c#1", 5).await;
    assert_eq!((created.header("location"), created.version()), (Some("/v1/products/p1/reviews/c%231"), Some(1)));
    write(&shop, "c2", 4).await;
    write(&shop, "c3", 4).await;
    assert_eq!(statistics(&shop).await, (json!(4.33), json!(3)));
    let read = shop.send(one("GET /v1/products/{id}/reviews/{customer}", "c#1")).await;
    assert_eq!((read.status, read.body), (200, public(&created)));

    let changed = shop.send(put("c#1", 1).header("if-match", "\"1\"")).await;
    assert_eq!((changed.status, changed.version(), &changed.body["rating"]), (200, Some(2), &json!(1)));
    assert_eq!(changed.body["created_at"], created.body["created_at"]);
    assert_eq!(shop.send(one("GET /v1/products/{id}/reviews/{customer}", "c#1")).await.body, public(&changed));
    assert_eq!(statistics(&shop).await, (json!(3.0), json!(3)));

    let remove = |version| one("DELETE /v1/products/{id}/reviews/{customer}", "c#1").header("if-match", version);
    assert_eq!(shop.send(remove("\"1\"").customer("c#1")).await.status, 412);
    assert_eq!(shop.send(remove("\"2\"").customer("c2")).await.status, 404, "the review is not c2's");
    assert_eq!(shop.staff(remove("\"2\"")).await.status, 204, "staff may moderate");
    assert_eq!(shop.staff(remove("\"2\"")).await.status, 404);
    assert_eq!(statistics(&shop).await, (json!(4.0), json!(2)));
    assert_eq!(shop.product("p1").await.version(), Some(1), "reviews do not change the product's version");
}

const CHANGES_IN_A_ROUND: u64 = 8;

#[tokio::test]
async fn staff_remove_a_review_in_any_version_while_its_author_changes_it() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let remove = || one("DELETE /v1/products/{id}/reviews/{customer}", "c1").header("if-match", "*");
    for steps in 0..20 {
        write(&shop, "c1", 5).await;
        let own = shop.send(remove().customer("c1")).await;
        assert_eq!((own.status, own.code()), (400, Some("invalid_header")));
        let busy = async {
            let mut version = 1;
            // All rounds together stay below the number of reviews that a customer may write in a day.
            while version < CHANGES_IN_A_ROUND
                && shop.send(put("c1", 1 + version % 5).header("if-match", &format!("\"{version}\""))).await.status
                    == 200
            {
                version += 1;
            }
        };
        let removal = async {
            // In each round, the author's requests are at another step.
            for _ in 0..steps {
                tokio::task::yield_now().await;
            }
            shop.staff(remove()).await
        };
        let (removed, ()) = join(removal, busy).await;
        assert_eq!(removed.status, 204);
        assert_eq!(statistics(&shop).await, (Value::Null, json!(0)));
    }
}

#[tokio::test]
async fn a_review_exists_once_and_needs_a_product_and_a_current_version() {
    let shop = Shop::open().await;
    shop.join("c1").await;
    assert_eq!(shop.send(put("c1", 5).header("if-none-match", "*")).await.status, 404, "no such product");
    shop.stock_up("p1", 1).await;
    assert_eq!(shop.send(put("c1", 5).header("if-match", "\"1\"")).await.status, 404);
    write(&shop, "c1", 5).await;
    let again = shop.send(put("c1", 1).header("if-none-match", "*")).await;
    assert_eq!((again.status, again.code()), (409, Some("already_exists")));
    assert_eq!(again.header("location"), Some("/v1/products/p1/reviews/c1"));
    assert_eq!(shop.send(put("c1", 1).header("if-match", "\"2\"")).await.status, 412);
    assert_eq!(statistics(&shop).await, (json!(5.0), json!(1)));
}

/// The transaction that writes the review checks the profile, so a concurrent erasure is noticed.
#[tokio::test]
async fn without_a_profile_neither_the_customer_nor_staff_writes_or_changes_a_review() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    write(&shop, "c1", 5).await;
    shop.delete_at("CUSTOMER#c1", "PROFILE").await;
    for (customer, header) in [("c1", ("if-match", "\"1\"")), ("stranger", ("if-none-match", "*"))] {
        for call in [put(customer, 1), put(customer, 1).staff("s1")] {
            let answer = shop.send(call.header(header.0, header.1)).await;
            assert_eq!((answer.status, answer.code()), (404, Some("not_found")), "{customer}");
            assert!(answer.body["detail"].as_str().unwrap().contains("customer"), "{}", answer.body);
        }
    }
    assert_eq!(statistics(&shop).await, (json!(5.0), json!(1)));
    // The author may still remove the review.
    let remove = one("DELETE /v1/products/{id}/reviews/{customer}", "c1").header("if-match", "\"1\"");
    assert_eq!(shop.send(remove.customer("c1")).await.status, 204);
}

#[tokio::test]
async fn twenty_concurrent_reviews_are_all_counted() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let names: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
    let ratings = (0..20_u64).map(|n| n % 5 + 1);
    join_all(names.iter().zip(ratings).map(|(name, rating)| write(&shop, name, rating))).await;
    assert_eq!(statistics(&shop).await, (json!(3.0), json!(20)));
    // Half of the customers change their review and half remove it. Each customer sends the request
    // twice at once. One of the two requests must fail.
    join_all(names.iter().enumerate().map(|(n, name)| {
        let shop = &shop;
        async move {
            let call = || match n % 2 {
                0 => put(name, 5).header("if-match", "\"1\""),
                _ => {
                    one("DELETE /v1/products/{id}/reviews/{customer}", name).customer(name).header("if-match", "\"1\"")
                }
            };
            let (a, b) = join(shop.send(call()), shop.send(call())).await;
            let mut statuses = [a.status, b.status];
            statuses.sort_unstable();
            assert!(matches!(statuses, [200, 412] | [204, 404] | [204, 412]), "{statuses:?}");
        }
    }))
    .await;
    assert_eq!(statistics(&shop).await, (json!(5.0), json!(10)));
}

#[tokio::test]
async fn reviews_are_listed_newest_or_best_first_and_by_customer() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    for (customer, rating) in [("c1", 3), ("c2", 5), ("c3", 1), ("c4", 5)] {
        write(&shop, customer, rating).await;
    }
    let newest = shop.send(list("newest")).await;
    let times = each(&newest, "created_at");
    assert!(times.is_sorted_by(|a, b| a >= b));
    assert_eq!(shop.send(Call::new("GET /v1/products/{id}/reviews").path("id", "p1")).await.body, newest.body);
    let best = shop.send(list("best")).await;
    let ratings: Vec<_> =
        best.body["items"].as_array().unwrap().iter().map(|item| item["rating"].as_u64().unwrap()).collect();
    assert_eq!(ratings, [5, 5, 3, 1]);
    let page = shop.send(list("best").query("limit", "3")).await;
    let next = page.body["next_cursor"].as_str().unwrap();
    let rest = shop.send(list("best").query("cursor", next)).await;
    assert_eq!(each(&rest, "display_name"), ["c3"]);
    // The better rating moves the review up in the list.
    shop.send(put("c3", 4).header("if-match", "\"1\"")).await;
    assert_eq!(each(&shop.send(list("best")).await, "display_name")[2], "c3");

    let mine = |caller: &str| Call::new("GET /v1/customers/{id}/reviews").path("id", "c1").customer(caller);
    assert_eq!(each(&shop.send(mine("c1")).await, "product_id"), ["p1"]);
    assert_eq!(shop.send(mine("c2")).await.status, 404);
}

/// The id of the author is not in a response that everybody gets, and not in a cursor or a header.
#[tokio::test]
async fn everybody_sees_the_display_name_and_only_staff_and_the_author_see_the_authors_id() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    let (author, other) = ("0190163d-8694-739b-aea5-966c26f8ad91", "other-customer");
    write(&shop, other, 4).await;
    let written = write(&shop, author, 4).await;
    assert_eq!((&written.body["customer_id"], &written.body["display_name"]), (&json!(author), &json!(author)));
    let change = put(author, 4).json(&json!({ "rating": 4, "title": "T", "text": "T" }));
    let nameless = shop.send(change.header("if-match", "\"1\"")).await;
    assert_eq!((nameless.status, &nameless.body["display_name"]), (200, &Value::Null));
    let change = put(author, 4).json(&json!({ "rating": 4, "display_name": "Ann  A.", "title": "T", "text": "T" }));
    assert_eq!(shop.send(change.header("if-match", "\"2\"")).await.body["display_name"], "Ann A.");

    let lists = [list("newest"), list("best"), Call::new("GET /v1/reviews/recent")];
    let single = one("GET /v1/products/{id}/reviews/{customer}", author);
    for call in lists.into_iter().map(|call| call.query("limit", "1")).chain([single]) {
        let answer = shop.send(call).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let link = answer.header("link").unwrap_or_default();
        assert!(!answer.body.to_string().contains(author) && !link.contains(author), "{} {link}", answer.body);
    }
    let all = Call::new("GET /v1/reviews");
    for call in
        [all.clone(), all.clone().query("product", "p1"), all.clone().query("product", "p1").query("sort", "best")]
    {
        let authors: BTreeSet<_> =
            each(&shop.ok(call.clone().staff("s1")).await, "customer_id").into_iter().map(str::to_owned).collect();
        assert_eq!(authors, [author, other].map(str::to_owned).into());
        assert_eq!(shop.refusal(call.customer(author)).await, (403, "forbidden".to_owned()));
    }
    let mine = Call::new("GET /v1/customers/{id}/reviews").path("id", "me").customer(author);
    assert_eq!(each(&shop.send(mine).await, "customer_id"), [author]);
}

#[tokio::test]
async fn me_names_the_author_of_a_review() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    shop.join("c1").await;
    let body = json!({ "rating": 4, "title": "T", "text": "T" });
    let write = one("PUT /v1/products/{id}/reviews/{customer}", "me").customer("c1").json(&body);
    let written = shop.send(write.header("if-none-match", "*")).await;
    assert_eq!((written.status, written.header("location")), (201, Some("/v1/products/p1/reviews/c1")));
    let read = Call::new("GET /v1/customers/{id}/reviews/{product}").path("id", "me").path("product", "p1");
    let public = one("GET /v1/products/{id}/reviews/{customer}", "me").customer("c1");
    assert_eq!(shop.refusal(public).await, (422, "invalid_id".to_owned()));
    assert_eq!(shop.send(read.clone().customer("c1")).await.body, written.body);
    assert_eq!(shop.refusal(read.customer("c2")).await, (404, "not_found".to_owned()));
    let remove = one("DELETE /v1/products/{id}/reviews/{customer}", "me").customer("c1");
    assert_eq!(shop.send(remove.header("if-match", "\"1\"")).await.status, 204);
}

#[tokio::test]
async fn a_retired_product_has_no_list_of_reviews_but_authors_keep_their_reviews() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    write(&shop, "c1", 3).await;
    shop.staff(Call::new("DELETE /v1/products/{id}").path("id", "p1").header("if-match", "\"1\"")).await;
    assert_eq!(shop.send(list("newest")).await.status, 404);
    assert_eq!(shop.send(put("c2", 3).header("if-none-match", "*")).await.status, 404);
    assert_eq!(shop.send(put("c1", 2).header("if-match", "\"1\"")).await.status, 200);
    let again = shop.stock_up("p1", 1).await;
    assert_eq!((&again.body["average_rating"], &again.body["review_count"]), (&json!(2.0), &json!(1)));
}

/// A review that is written again starts at version 1 again, perhaps with another rating.
#[tokio::test]
async fn a_request_that_read_an_earlier_review_neither_changes_nor_removes_its_successor() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    write(&shop, "c2", 3).await;
    write(&shop, "c1", 1).await;
    let (product, customer) = ("p1".parse().unwrap(), "c1".parse().unwrap());
    let read = review::read_for_update(&product, &customer).unwrap();
    let earlier = shop.app.services.table.get(&read).await.unwrap().unwrap();
    let remove = one("DELETE /v1/products/{id}/reviews/{customer}", "c1").customer("c1");
    assert_eq!(shop.send(remove.header("if-match", "\"1\"")).await.status, 204);
    write(&shop, "c1", 5).await;

    let now = Instant::now();
    let remove = review::delete(&earlier, now).unwrap();
    let change = review::change(&earlier, &Review { rating: 1, ..earlier.data.clone() }, now).unwrap();
    for stale in [remove, change] {
        assert!(shop.app.services.table.transact(&stale).await.unwrap().is_err());
    }
    assert_eq!(statistics(&shop).await, (json!(4.0), json!(2)));
}

/// The quota exists because a change of a long review costs 76 write units, in a partition that the
/// product's readers use.
#[tokio::test]
async fn a_customer_writes_and_changes_no_more_reviews_a_day_than_the_quota() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 1).await;
    write(&shop, "c2", 3).await;
    shop.join("c1").await;
    shop.harness.test.use_up(&CustomerId::new("c1").unwrap(), Quota::Reviews, 2).await;
    write(&shop, "c1", 5).await;
    let change = |version| put("c1", 1).header("if-match", version);
    assert_eq!(shop.send(change("\"1\"")).await.status, 200);
    let before = statistics(&shop).await;
    let refused = shop.send(change("\"2\"")).await;
    assert_eq!((refused.status, refused.code()), (429, Some("quota_exceeded")), "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
    // Other refusals take precedence, and a removal has no quota.
    assert_eq!(shop.send(change("\"1\"")).await.status, 412);
    let again = || put("c1", 5).header("if-none-match", "*");
    assert_eq!(shop.send(again()).await.status, 409);
    assert_eq!(statistics(&shop).await, before);
    let remove = one("DELETE /v1/products/{id}/reviews/{customer}", "c1").header("if-match", "\"2\"");
    assert_eq!(shop.send(remove.customer("c1")).await.status, 204);
    assert_eq!(shop.send(again()).await.code(), Some("quota_exceeded"));
    assert_eq!(shop.send(put("c2", 1).header("if-match", "\"1\"")).await.status, 200);
}
