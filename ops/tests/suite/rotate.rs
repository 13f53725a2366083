//! Tests of `ops rotate`.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    BillingMode, StreamSpecification, StreamViewType, TableClass, TableDescription, Tag, TimeToLiveStatus,
};
use fixture::{TestTable, crash_after};
use key_schema::instant::Instant;
use key_schema::month::Month;
use ops::rotate::{MonthReport, MonthTables, RotateOptions, Rotated, State, Step, rotate};

const NOW: &str = "2017-11-25T12:00:00Z";

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

fn options(now: &str) -> RotateOptions {
    RotateOptions { is_monthly: true, dry_run: false, now: at(now) }
}

fn tables(test: &TestTable) -> MonthTables {
    MonthTables::new(test.client(), test.name().to_owned())
}

async fn run(test: &TestTable, options: RotateOptions) -> Rotated {
    rotate(&tables(test), options).await.unwrap()
}

/// Returns the months of a report with their states and steps.
fn said(rotated: &Rotated) -> Vec<(&str, State, &[Step])> {
    let months = rotated.months.iter();
    months.map(|MonthReport { month, state, steps, .. }| (month.as_str(), *state, steps.as_slice())).collect()
}

async fn describe(client: &Client, name: &str) -> Option<TableDescription> {
    Some(client.describe_table().table_name(name).send().await.ok()?.table.unwrap())
}

fn is_infrequent(table: &TableDescription) -> bool {
    let class = table.table_class_summary().and_then(|summary| summary.table_class());
    class == Some(&TableClass::StandardInfrequentAccess)
}

async fn expires_items(client: &Client, name: &str) -> bool {
    let found = client.describe_time_to_live().table_name(name).send().await.unwrap();
    let found = found.time_to_live_description.unwrap();
    found.time_to_live_status == Some(TimeToLiveStatus::Enabled) && found.attribute_name() == Some("ttl")
}

/// Returns each existing table of a month, whether it has infrequent access, and whether it
/// expires items.
async fn present(test: &TestTable) -> Vec<(String, bool, bool)> {
    let (client, now, mut found) = (test.client(), Month::of(at(NOW)), Vec::new());
    for month in (-3..6).map(|offset| now.plus(offset)) {
        let name = month.table(test.name());
        if let Some(table) = describe(&client, &name).await {
            found.push((month.to_string(), is_infrequent(&table), expires_items(&client, &name).await));
        }
    }
    found
}

fn named(months: &[(&str, bool)]) -> Vec<(String, bool, bool)> {
    months.iter().map(|(month, is_infrequent)| ((*month).to_owned(), *is_infrequent, true)).collect()
}

#[tokio::test]
async fn coming_months_get_tables_like_the_main_table_and_a_second_run_changes_nothing() {
    let test = TestTable::create().await;
    let client = test.client();
    let arn = describe(&client, test.name()).await.unwrap().table_arn.unwrap();
    // CloudFormation sets tags that CreateTable refuses.
    let [tag, of_aws] =
        ["team", "aws:cloudformation:stack-name"].map(|key| Tag::builder().key(key).value("shop").build().unwrap());
    client.tag_resource().resource_arn(arn).tags(tag.clone()).tags(of_aws).send().await.unwrap();
    let first = run(&test, options(NOW)).await;
    let created = [Step::Create];
    assert_eq!(said(&first), [("2017-12", State::Present, &created[..]), ("2018-01", State::Present, &created)]);
    assert!(first.is_clean());
    assert_eq!(present(&test).await, named(&[("2017-12", false), ("2018-01", false)]));
    let table = describe(&client, &format!("{}-metrics-2017-12", test.name())).await.unwrap();
    let keys: Vec<&str> = table.key_schema().iter().map(|key| key.attribute_name()).collect();
    assert_eq!(keys, ["PK", "SK"]);
    assert!(table.global_secondary_indexes().is_empty() && table.stream_specification().is_none());
    assert_eq!(table.billing_mode_summary().and_then(|mode| mode.billing_mode()), Some(&BillingMode::PayPerRequest));
    assert_eq!(table.deletion_protection_enabled(), Some(true));
    let tags = client.list_tags_of_resource().resource_arn(table.table_arn().unwrap()).send().await.unwrap();
    assert_eq!(tags.tags(), [tag]);

    let second = run(&test, options(NOW)).await;
    assert_eq!(said(&second), [("2017-12", State::Present, &[][..]), ("2018-01", State::Present, &[])]);
    assert!(second.is_clean() && second.to_string().contains("-metrics-2017-12  unchanged"), "{second}");
}

#[tokio::test]
async fn a_past_month_gets_infrequent_access_and_is_deleted_when_its_points_have_expired() {
    let test = TestTable::create().await;
    run(&test, options(NOW)).await;
    run(&test, options("2017-12-31T23:59:59.999Z")).await;
    assert_eq!(present(&test).await, named(&[("2017-12", false), ("2018-01", false), ("2018-02", false)]));
    let turned = run(&test, options("2018-01-01T00:00:00Z")).await;
    assert_eq!(said(&turned)[0], ("2017-12", State::Present, &[Step::InfrequentAccess][..]));
    let months = [("2017-12", true), ("2018-01", false), ("2018-02", false), ("2018-03", false)];
    assert_eq!(present(&test).await, named(&months));
    // The last point of December expires at the end of January 30. The margin is two days.
    run(&test, options("2018-02-01T23:59:59.998Z")).await;
    assert_eq!(present(&test).await[0].0, "2017-12");
    let expired = run(&test, options("2018-02-01T23:59:59.999Z")).await;
    assert_eq!(said(&expired)[0], ("2017-12", State::Absent, &[Step::Delete][..]));
    assert!(expired.is_clean());
    let months = [("2018-01", true), ("2018-02", false), ("2018-03", false), ("2018-04", false)];
    assert_eq!(present(&test).await, named(&months));
}

#[tokio::test]
async fn a_table_is_created_an_hour_before_its_month_or_never() {
    let test = TestTable::create().await;
    let late = run(&test, options("2017-11-30T23:00:00.001Z")).await;
    assert_eq!(said(&late), [("2017-12", State::Missing, &[][..]), ("2018-01", State::Present, &[Step::Create])]);
    assert!(!late.is_clean() && late.to_string().contains("-metrics-2017-12  MISSING"), "{late}");
    // Points of the month may be in the main table from now on.
    run(&test, options("2017-12-01T00:00:00Z")).await;
    assert_eq!(present(&test).await[0].0, "2018-01");
    // A table vanishes. Its month is reported as long as the points would be visible.
    let client = test.client();
    let january = format!("{}-metrics-2018-01", test.name());
    client.update_table().table_name(&january).deletion_protection_enabled(false).send().await.unwrap();
    test.add_table(&format!("{}-metrics-2017-12", test.name())).await;
    client.delete_table().table_name(&january).send().await.unwrap();
    let lost = run(&test, options("2018-01-15T00:00:00Z")).await;
    let states: Vec<_> = said(&lost).into_iter().map(|(month, state, _)| (month, state)).collect();
    assert_eq!(states[..2], [("2017-12", State::Present), ("2018-01", State::Missing)]);
    assert!(!lost.is_clean());
}

#[tokio::test]
async fn a_rotation_that_is_killed_anywhere_is_completed_by_the_next_run() {
    // Until its first step, a run only reads. A dry run does the same reads.
    let (test, mut reads) = (TestTable::create().await, 0);
    while crash_after(reads, rotate(&tables(&test), RotateOptions { dry_run: true, ..options(NOW) })).await.is_none() {
        reads += 1;
    }
    let mut killed = reads;
    loop {
        let test = TestTable::create().await;
        // A table expires, a month has passed, a table has no time to live, and two are missing.
        for month in ["2017-09", "2017-10", "2017-11"] {
            test.add_table(&format!("{}-metrics-{month}", test.name())).await;
        }
        let client = test.client();
        let expired = format!("{}-metrics-2017-09", test.name());
        client.update_table().table_name(expired).deletion_protection_enabled(true).send().await.unwrap();
        let done = crash_after(killed, rotate(&tables(&test), options(NOW))).await;
        let again = run(&test, options(NOW)).await;
        assert!(again.is_clean(), "after {killed} waits: {again}");
        let months = [("2017-10", true), ("2017-11", false), ("2017-12", false), ("2018-01", false)];
        assert_eq!(present(&test).await, named(&months), "after {killed} waits");
        if done.is_some() {
            break;
        }
        // A request takes at least two waits.
        killed += 2;
    }
    assert!(killed > reads + 20, "{killed} waits, {reads} of them before the first step");
}

#[tokio::test]
async fn only_tables_with_the_exact_name_of_a_month_are_changed_or_deleted() {
    let test = TestTable::create().await;
    let (client, main) = (test.client(), test.name());
    let expired = format!("{main}-metrics-2016-01");
    let others = [
        format!("{main}-metrics-2016-1"),
        format!("{main}-metrics-2016-01-copy"),
        format!("{main}-metrics-old"),
        format!("{main}metrics-2016-01"),
        format!("other-{expired}"),
        format!("{main}-metrics-2016-13"),
    ];
    for name in others.iter().chain([&expired]) {
        test.add_table(name).await;
    }
    // This table has the name of a month, but it has a stream.
    let foreign = format!("{main}-metrics-2016-02");
    test.add_table(&foreign).await;
    let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(StreamViewType::KeysOnly);
    client.update_table().table_name(&foreign).stream_specification(stream.build().unwrap()).send().await.unwrap();

    let rotated = run(&test, options(NOW)).await;
    let expected = [("2016-01", State::Absent, &[Step::Delete][..]), ("2016-02", State::Foreign, &[])];
    assert_eq!(said(&rotated)[..2], expected);
    assert!(!rotated.is_clean() && describe(&client, &expired).await.is_none());
    for name in others.iter().map(String::as_str).chain([foreign.as_str(), main]) {
        let table = describe(&client, name).await.unwrap_or_else(|| panic!("{name} is gone"));
        assert!(!is_infrequent(&table), "{name}");
    }
}

#[tokio::test]
async fn a_return_to_one_table_removes_the_tables_of_coming_months() {
    let test = TestTable::create().await;
    run(&test, options(NOW)).await;
    let one = RotateOptions { is_monthly: false, ..options("2017-12-15T00:00:00Z") };
    let delete = [Step::Delete];
    let rotated = run(&test, one).await;
    assert_eq!(said(&rotated), [("2017-12", State::Present, &[][..]), ("2018-01", State::Absent, &delete)]);
    assert_eq!(present(&test).await, named(&[("2017-12", false)]));
    assert!(run(&test, one).await.is_clean());
    let expired = run(&test, RotateOptions { now: at("2018-02-02T00:00:00Z"), ..one }).await;
    assert_eq!(said(&expired), [("2017-12", State::Absent, &delete[..])]);
    assert_eq!(run(&test, one).await.to_string(), "no month has a table\n");
}

#[tokio::test]
async fn a_dry_rotation_changes_nothing_and_fails_while_steps_are_left() {
    let test = TestTable::create().await;
    let dry = RotateOptions { dry_run: true, ..options(NOW) };
    let planned = run(&test, dry).await;
    assert!(!planned.is_clean() && planned.to_string().contains("-metrics-2017-12  would be created"), "{planned}");
    assert!(present(&test).await.is_empty());
    run(&test, options(NOW)).await;
    assert!(run(&test, dry).await.is_clean());
}
