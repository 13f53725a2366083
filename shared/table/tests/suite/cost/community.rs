//! Measures follows, likes, and the lists of followers and likers.

use key_schema::change::Change;
use key_schema::customer::{self, Customer};
use key_schema::follow::{self, Follow};
use key_schema::leaderboard::{self, Board, Period, Rank};
use key_schema::like::{self, Like};
use key_schema::{graph, residence, sales};

use super::Bench;
use crate::data::{self, at, customer_id, product_id};

fn follows(follower: u8, followed: u8) -> Follow {
    Follow { customer_id: customer_id(follower), followed_id: customer_id(followed) }
}

fn likes(customer: u8, product: u8) -> Like {
    Like { customer_id: customer_id(customer), product_id: product_id(product) }
}

pub async fn measure(bench: &mut Bench) {
    let id = customer_id(1);
    bench.get("one customer", follow::prepare(&customer_id(2)).unwrap()).await;
    for number in 2..=24 {
        for edge in [follows(1, number), follows(number, 1)] {
            let measured = number == 2 && edge.customer_id == id;
            let put = follow::put(&data::stored(edge, number)).unwrap();
            if measured {
                bench.transact("one edge", put).await;
            } else {
                bench.table.transact(&put).await.unwrap().unwrap();
            }
        }
        let _ = bench.table.meter().take();
    }
    bench.get("one edge", follow::get(&id, &customer_id(2)).unwrap()).await;
    bench.query("a page of 20", 20, follow::following(&id).unwrap().limit(20)).await;
    bench.query("a page of 20", 20, follow::followers(&id).unwrap().limit(20)).await;
    bench.write("one edge", follow::remove(&id, &customer_id(2)).unwrap()).await;

    bench.get("one product", like::prepare(&product_id(1)).unwrap()).await;
    for number in 2..=24 {
        for like in [likes(1, number), likes(number, 1)] {
            let measured = number == 24 && like.customer_id == id;
            let put = like::put(&data::stored(like, number)).unwrap();
            if measured {
                bench.transact("one like", put).await;
            } else {
                bench.table.transact(&put).await.unwrap().unwrap();
            }
        }
        let _ = bench.table.meter().take();
    }
    bench.get("one like", like::get(&id, &product_id(2)).unwrap()).await;
    bench.query("a page of 20", 20, like::of_customer(&id).unwrap().limit(20)).await;
    let ids: Vec<_> = (1..=20).map(product_id).collect();
    bench.batch_get("20 products", like::products(&ids).unwrap()).await;
    let parts = like::COUNTERS
        .all()
        .filter(|part| (2..=24).any(|number| like::COUNTERS.of(customer_id(number).as_str()) == *part));
    let parts = parts.count();
    bench.get("one product", like::liked(&product_id(1)).unwrap()).await;
    bench.query("one product", parts, like::of_product(&product_id(1)).unwrap()).await;
    bench.query("one product", parts, like::sum(&product_id(1)).unwrap()).await;
    bench.query("a page of 20", 20, like::likers(&product_id(1)).unwrap().limit(20)).await;
    bench.transact("one like", like::remove(&id, &product_id(2), at(500)).unwrap()).await;

    leaderboards(bench, parts).await;
    bench.get("one customer", graph::lives_in(&id).unwrap()).await;
    bench.query("22 follows, 22 likes", 44, graph::own(&id).unwrap()).await;
    bench.query("a page of 20", 20, sales::bought(&id).unwrap().limit(20)).await;
    bench.query("a page of 20", 20, residence::of_location(&"US".parse().unwrap()).unwrap().limit(20)).await;
    let profile = bench.table.get(&customer::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let mut place = profile.place.clone().unwrap();
    place.city = "Shelbyville".to_owned();
    let moved = residence::settle(Change::<Customer>::visible(at(501)), &id, Some(&place)).unwrap();
    bench.update("the location: the index entry moves", customer::update(&profile, moved).unwrap()).await;
    let products: Vec<_> = (3..=12).map(product_id).collect();
    bench.transact("10 likes", like::erase(&id, &products, at(502)).unwrap()).await;
    let others: Vec<_> = (3..=12).map(customer_id).collect();
    bench.batch_write("10 edges", follow::erase(others.iter().map(|other| (&id, other))).unwrap()).await;
}

/// Measures the likes of a product on one day, and a board of 20 products.
async fn leaderboards(bench: &mut Bench, parts: usize) {
    bench.transact("one view", leaderboard::view(&product_id(1), "view-34", at(600)).unwrap().unwrap()).await;
    bench.query("a day of likes", parts, leaderboard::days(Board::Likes, &product_id(1), at(0)).unwrap()).await;
    let rank = |number, count| {
        let rank = Rank { board: Board::Views, product_id: product_id(number), period: Period::day(at(0)), count };
        let mut rank = data::stored(rank, number);
        rank.meta.rev = count.unsigned_abs();
        leaderboard::store_rank(&rank).unwrap()
    };
    for number in 1..=20 {
        bench.table.write(&rank(number, 160)).await.unwrap().unwrap();
    }
    let _ = bench.table.meter().take();
    bench.write("another count: the index entry moves", rank(1, 176)).await;
    let board = leaderboard::top(Board::Views, Period::day(at(0))).unwrap();
    bench.query("a page of 20", 20, board.limit(20)).await;
    let ids: Vec<_> = (1..=20).map(product_id).collect();
    bench.batch_get("20 products", leaderboard::products(&ids).unwrap()).await;
}
