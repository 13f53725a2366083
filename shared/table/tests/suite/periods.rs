//! Tests of a table for each period: each request uses the table of its period, or the main table
//! if that table is missing.

use fixture::TestTable;
use key_schema::id::{MetricName, PointId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::metric::{self, MAX_AHEAD_SECONDS, MetricPoint};
use key_schema::month::{CREATE_AHEAD_SECONDS, Month};
use table::{MISSING_FOR, Page, Periods, Table, TableError};

const TURN: &str = "2017-02-01T00:00:00.000Z";

fn at(hours: i64) -> Instant {
    TURN.parse::<Instant>().unwrap().plus_seconds(hours * 3600)
}

fn name() -> MetricName {
    MetricName::new("m").unwrap()
}

fn point(hours: i64) -> Stored<MetricPoint> {
    let id = PointId::new(format!("p{hours}").as_str()).unwrap();
    MetricPoint { name: name(), at: at(hours), id, value: "1".parse().unwrap() }.stored()
}

/// Returns the table of the month of an instant.
fn table(test: &TestTable, periods: &Periods, at: Instant) -> Table {
    periods.table(test.own(), Month::of(at).table(test.name()))
}

async fn write(test: &TestTable, periods: &Periods, hours: i64) {
    let batch = metric::store([&point(hours)]).unwrap();
    let left = periods.attempt(|| async { table(test, periods, at(hours)).batch_write(&batch).await }).await;
    assert_eq!(left.unwrap(), []);
}

async fn page(
    test: &TestTable,
    periods: &Periods,
    limit: usize,
    after: Option<String>,
) -> Result<Page<Stored<MetricPoint>>, TableError> {
    let read = || {
        let days = (-3..3).map(|day| at(day * 24)).map(|midnight| {
            let query = metric::of_name(&name(), midnight, midnight.plus_seconds(86_399), at(72)).unwrap().remove(0);
            (table(test, periods, midnight), query)
        });
        Table::query_in_turn(days.collect(), limit, after.clone())
    };
    periods.attempt(read).await
}

#[tokio::test]
async fn a_list_over_the_tables_of_two_months_has_every_item_once_in_order() {
    let (test, periods) = (TestTable::create().await, Periods::new(true));
    for month in [-1, 0] {
        test.add_table(&Month::of(at(month)).table(test.name())).await;
    }
    let hours: Vec<i64> = (-30..30).step_by(7).collect();
    for hours in &hours {
        write(&test, &periods, *hours).await;
    }
    assert!(test.sort_keys(test.name()).await.is_empty());
    for limit in [1, 2, 3, 100] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = page(&test, &periods, limit, after).await.unwrap();
            seen.extend(page.items.into_iter().map(|point| point.data.at));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, hours.iter().map(|hours| at(*hours)).collect::<Vec<_>>(), "pages of {limit}");
    }
}

#[tokio::test]
async fn a_missing_table_is_replaced_by_the_main_table_and_remembered() {
    let (test, periods) = (TestTable::create().await, Periods::new(true));
    let february = Month::of(at(0)).table(test.name());
    write(&test, &periods, -1).await;
    write(&test, &periods, 1).await;
    assert_eq!(page(&test, &periods, 100, None).await.unwrap().items.len(), 2);
    // These [`Periods`] do not look for the table again at once.
    test.add_table(&february).await;
    write(&test, &periods, 2).await;
    assert_eq!((test.sort_keys(test.name()).await.len(), test.sort_keys(&february).await.len()), (3, 0));
    // Other [`Periods`], as in another process, do not know that the table was missing.
    let other = Periods::new(true);
    write(&test, &other, 3).await;
    assert_eq!((test.sort_keys(test.name()).await.len(), test.sort_keys(&february).await.len()), (3, 1));
}

#[tokio::test]
async fn a_missing_main_table_is_an_error() {
    let (test, periods) = (TestTable::create().await, Periods::new(true));
    let gone = Table::new(test.client(), format!("{}-gone", test.name()));
    let get = metric::get(&name(), at(0), &point(0).data.id).unwrap();
    let read = periods.attempt(|| async { periods.table(&gone, Month::of(at(0)).table(gone.name())).get(&get).await });
    let error = read.await.unwrap_err();
    assert!(matches!(&error, TableError::Rejected(why) if why.contains("ResourceNotFoundException")), "{error}");
}

/// If the table were created later, a function could write points of a month to the main table.
/// Other functions would read the month from its own table.
#[test]
fn a_table_is_created_before_a_function_with_an_old_memory_can_use_its_month() {
    let memory = i64::try_from(MISSING_FOR.as_secs()).unwrap();
    assert!(2 * (memory + MAX_AHEAD_SECONDS) < CREATE_AHEAD_SECONDS);
}
