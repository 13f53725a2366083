//! Measures questions with their answers, the settings, and the newest reviews of all products.

use key_schema::id::{AnswerId, QuestionId};
use key_schema::idempotency::{self, StoredResponse};
use key_schema::item::Stored;
use key_schema::lists::{self, Lists};
use key_schema::question::{self, Answer, CustomerQuestion, Question, QuestionStatus};
use key_schema::review::recent::{self, Month, ReviewMonth};
use key_schema::settings::{self, Known};
use key_schema::shard::{Layout, Shards};

use super::Bench;
use crate::data::{self, at, customer_id};

fn question_id(number: u8) -> QuestionId {
    QuestionId::generate(at(500 + i64::from(number)), [number; 10])
}

fn asked(number: u8) -> Stored<Question> {
    let question = Question {
        id: question_id(number),
        customer_id: customer_id(1),
        status: QuestionStatus::Open,
        answer_count: 0,
        title: "Where is my order?".to_owned(),
        text: "x".repeat(400),
    };
    Stored::new(question, data::born(number), at(500 + i64::from(number)))
}

fn given(number: u8, to: &Stored<Question>) -> Stored<Answer> {
    let answer = Answer {
        id: AnswerId::generate(at(600 + i64::from(number)), [number; 10]),
        question_id: to.id.clone(),
        by: customer_id(7),
        text: "x".repeat(400),
    };
    Stored::new(answer, data::born(number), at(600 + i64::from(number)))
}

pub async fn measure(bench: &mut Bench) {
    questions(bench).await;
    settled(bench).await;
    recent_reviews(bench).await;
}

async fn questions(bench: &mut Bench) {
    let (customer, first) = (customer_id(1), asked(1));
    for number in 1..=25 {
        let ask = question::ask(&asked(number), None).unwrap();
        if number == 1 {
            bench.transact("400 bytes of text", ask).await;
        } else {
            bench.table.transact(&ask).await.unwrap().unwrap();
        }
    }
    let mut record = data::record(26);
    record.data.scope.key = "question".to_owned();
    record.data.answer = StoredResponse::Body { status: 201, body: "x".repeat(900) };
    let claim = idempotency::claim(&record, at(0)).unwrap();
    let _ = bench.table.meter().take();
    bench.transact("400 bytes of text, with a key", question::ask(&asked(26), Some(claim)).unwrap()).await;
    bench.get("one question", question::read_for_update(&first.id).unwrap()).await;
    for number in 1..=5 {
        let answer = question::answer(&first, &given(number, &first), None).unwrap();
        match number {
            1 => bench.transact("the first answer: the question leaves the list of open questions", answer).await,
            2 => bench.transact("the second answer", answer).await,
            _ => bench.table.transact(&answer).await.unwrap().unwrap(),
        }
    }
    let _ = bench.table.meter().take();
    bench.query("5 answers", 6, question::get(&first.id).unwrap()).await;
    bench.query("a page of 20", 20, question::of_customer(&customer).unwrap().limit(20)).await;
    bench.query("profile and 10 questions", 11, question::support(&customer).unwrap()).await;
    bench.query("a page of 20", 20, question::open().unwrap().limit(20)).await;
    bench.query("a page of 25", 25, question::erasable(&customer).unwrap().limit(25)).await;
    bench.query("5 answers", 5, question::answers(&first.id).unwrap()).await;
    bench.batch_write("one question", question::erase([&first.id]).unwrap()).await;
    let answers: Vec<Answer> = (1..=5).map(|number| given(number, &first).data).collect();
    bench.batch_write("the 5 answers of a question", question::erase_answers(&answers).unwrap()).await;
    bench.batch_write("one copy", question::erase_copies([&CustomerQuestion::of(&first).data]).unwrap()).await;
}

async fn settled(bench: &mut Bench) {
    let (values, private) = (format!("{{\"banner\":\"{}\"}}", "x".repeat(1000)), "{}".to_owned());
    bench.transact("1 KB of values", settings::create(&values, &private, &data::born(1), at(0)).unwrap()).await;
    bench.get("1 KB of values", settings::read(3).unwrap()).await;
    bench.transact("1 KB of values", settings::change(&values, &private, 1, at(1)).unwrap()).await;
    let known = bench.table.get(&settings::read(3).unwrap()).await.unwrap().map(Known::from).unwrap();
    let _ = bench.table.meter().take();
    let layout = Layout { to: Shards(8), ..lists::unchanged() };
    let growing = Lists::default().with(&key_schema::order::BY_STATUS, layout);
    let arrange = settings::arrange(&known, &growing, &data::born(1), at(2)).unwrap();
    bench.transact("1 KB of values", arrange).await;
}

async fn recent_reviews(bench: &mut Bench) {
    let month = Month::of(at(0));
    let noted = data::stored(ReviewMonth { month: month.clone() }, 1);
    bench.write("one month", recent::add_month(&noted).unwrap()).await;
    bench.get("one month", recent::month(&month).unwrap()).await;
    bench.query("one month", 1, recent::months_before(&Month::of(at(40 * 86_400))).unwrap().limit(11)).await;
    bench.query("a page of 20", 20, recent::of_month(&month).unwrap().limit(20)).await;
}
