//! Tests of bills: worked examples and properties.

use ops::cost::bill::{Line, Service, bill};
use ops::cost::capacity::{break_even, provision};
use ops::cost::measured::Measured;
use ops::cost::money::Nano;
use ops::cost::prices::Prices;
use ops::cost::profile::{MAX_REQUESTS, Profile};
use ops::cost::stack::Stack;
use proptest::prelude::*;

use super::{bill_of, prices, report_of};

/// The on-demand prices of us-east-1 until November 2024.
const OLDER: &str = r#"
date = "2024-10-31"
[prices."dynamodb.reads"]
per = 1_000_000
unit = "read request units"
source = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
date = "2024-10-31"
dollars = { us-east-1 = "0.25" }
[prices."dynamodb.writes"]
per = 1_000_000
unit = "write request units"
source = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
date = "2024-10-31"
dollars = { us-east-1 = "1.25" }
"#;

/// A thousand orders an hour, each with five items of 500 bytes in one transaction. For each
/// written item there are five strongly consistent reads of one unit.
const WORKED: &str = r#"
stack = false
hours_per_month = 720
[[operations]]
name = "orders"
per_hour = 1_000
write_bytes = [500, 500, 500, 500, 500]
transactional = true
[[operations]]
name = "reads"
per_hour = 25_000
read_bytes = [4_000]
strong = true
"#;

#[test]
fn past_months_of_metrics_cost_less_in_tables_of_their_own() {
    let of = |parameters: &str| {
        let profile = format!("region = 'us-east-1'\n[storage]\nmetrics_mb = 102_400\n{parameters}");
        let bill = bill_of(&profile);
        ["GB of storage", "GB of recovery", "GB in infrequent access"]
            .map(|item| bill.sum(|line| line.item == item).to_string())
    };
    assert_eq!(of(""), ["25.00", "20.00", "0.00"]);
    assert_eq!(of("[parameters]\nMetricsTables = 'monthly'\n"), ["0.00", "0.00", "10.00"]);
}

#[test]
fn a_thousand_orders_an_hour_cost_nine_dollars_of_writes_and_four_and_a_half_of_reads() {
    let profile = Profile::parse(WORKED).unwrap();
    let prices = Prices::parse(OLDER, "us-east-1").unwrap();
    let stack = Stack::read("us-east-1", &profile.parameters).unwrap();
    let bill = bill(&profile, &stack, &prices).unwrap();
    let of = |route: &str| bill.sum(|line| line.route == route);
    assert_eq!((of("orders"), of("reads")), (Nano(9_000_000_000), Nano(4_500_000_000)));
    assert_eq!(bill.total().to_string(), "13.50");
    // At the prices since November 2024, the bill is half of that.
    assert_eq!(bill_of(WORKED).total().to_string(), "6.75");
}

#[test]
fn a_route_costs_its_measured_units_and_the_units_of_its_consequences() {
    let bill = bill_of("[routes]\n\"POST /v1/orders\" = 1_000_000\n");
    let route = Measured::get().unwrap().route("POST /v1/orders").unwrap();
    let (mut halves, mut writes) = (0, 0);
    for (pattern, uses) in route.all_uses() {
        let cost = Measured::get().unwrap().costs(pattern).next().unwrap();
        halves += uses * cost.half_read_units;
        writes += uses * cost.write_units.values().sum::<u64>();
    }
    let of = |item: &str| bill.sum(|line| line.route == "POST /v1/orders" && line.item == item).0;
    // A million write units cost 0.625 dollars, and a million halves of a read unit 0.0625.
    assert_eq!(of("write units"), i128::from(writes) * 625_000_000);
    assert_eq!(of("read units"), i128::from(halves) * 62_500_000);
    assert!(writes > 40 && route.later.contains_key("StreamEvents"), "{route:?}");
    assert_eq!(of("requests"), 1_000_000_000);
}

#[test]
fn a_report_of_a_view_costs_a_64th_of_the_writes_of_a_view_and_its_ranks() {
    let bill = bill_of("[routes]\n\"POST /v1/products/{id}/views\" = 64_000_000\n");
    let written =
        |pattern| -> u64 { Measured::get().unwrap().costs(pattern).next().unwrap().write_units.values().sum() };
    let view = written("leaderboards.view") + 3 * written("leaderboards.place");
    let writes = bill.sum(|line| line.route == "POST /v1/products/{id}/views" && line.item == "write units").0;
    assert_eq!((view, writes), (13, 13 * 625_000_000));
}

/// The idle bill of docs/operations/cost.md counts the same resources as the bill of `ops cost`.
#[test]
fn the_idle_bill_agrees_with_the_page_of_costs() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operations/cost.md")).unwrap();
    let (with, without) = (bill_of(""), bill_of("[parameters]\nSearchService = \"none\"\n"));
    for (row, item) in [
        ("metrics in alarms,", "metrics in alarms"),
        ("rules of Contributor Insights,", "rules of Contributor Insights"),
        ("the dashboard |", "dashboards"),
        ("OpenSearch node ", "hours of nodes"),
        ("its disk,", "GB of disk"),
    ] {
        let line = page.lines().find(|line| line.starts_with(&format!("| {row}"))).expect(row);
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let of = |bill: &ops::cost::bill::Bill| bill.sum(|line| line.item == item).to_string();
        assert_eq!([of(&with), of(&without)], [cells[3].to_owned(), cells[5].to_owned()], "{row}");
    }
    assert!(with.lines.iter().all(|line| line.idle), "a bill without traffic has only idle lines");
}

#[test]
fn a_stack_without_a_part_costs_less_by_the_lines_of_that_part() {
    let report = report_of("[storage]\ntable_mb = 10_240\n[routes]\n\"POST /v1/orders\" = 30_000\n");
    let of =
        |choice: &str| report.choices.iter().find(|one| one.choice == choice).map(|one| one.difference.to_string());
    let lines = |wanted: &dyn Fn(&Line) -> bool| -> Nano {
        report.lines.iter().filter(|line| wanted(line)).map(|line| line.amount).sum()
    };
    let search = of("SearchService=none").unwrap();
    let engine = lines(&|line: &Line| line.service == Service::OpenSearch);
    assert!(search.starts_with('-') && engine.to_string() == "27.50", "{search} {engine}");
    assert_eq!(of("without Contributor Insights").as_deref(), Some("-4.00"));
    assert_eq!(of("without point-in-time recovery").as_deref(), Some("-2.00"));
    assert_eq!(of("SearchStorageGb=20").as_deref(), Some("1.22"));
    assert_eq!(of("SearchService=es"), None, "the default makes no difference");
    assert!(of("Architecture=x86_64").is_some() && of("LogRetentionDays=365").is_some());
}

#[test]
fn provisioned_capacity_is_cheaper_above_the_break_even_and_dearer_below() {
    for region in ["us-east-1", "eu-central-1", "ap-southeast-2"] {
        let prices = Prices::built_in(region).unwrap();
        let break_even = break_even(&prices).unwrap();
        for (hundredths, unit, hour) in [
            (break_even.reads, "dynamodb.reads", "dynamodb.read-capacity"),
            (break_even.writes, "dynamodb.writes", "dynamodb.write-capacity"),
        ] {
            // `served` returns the units of requests that a million provisioned units serve in an
            // hour at this utilization.
            let capacity = 1_000_000_u128;
            let provisioned = prices.amount(hour, capacity, 1).unwrap();
            let served = |hundredths: u64| capacity * 3_600 * u128::from(hundredths) / 10_000;
            let on_demand = |hundredths: u64| prices.amount(unit, served(hundredths), 1).unwrap();
            assert!(on_demand(hundredths + 1) > provisioned, "{region} {unit}");
            assert!(on_demand(hundredths - 1) < provisioned, "{region} {unit}");
        }
    }
    let us = break_even(&prices()).unwrap();
    assert_eq!((us.reads, us.writes), (2_889, 2_889), "0.00013 / (3,600 × 0.000000125)");
}

#[test]
fn the_provisioned_capacity_serves_the_units_of_a_month_at_the_target_utilization() {
    assert_eq!([0, 1].map(|units| provision(units, 730, 70)), [1, 1]);
    // 100 units a second in each second of 730 hours.
    assert_eq!(provision(262_800_000, 730, 100), 100);
    assert_eq!(provision(262_800_001, 730, 100), 101);
    assert_eq!(provision(262_800_000, 730, 50), 200);
}

/// The route with the most lines, and routes with reads, searches and sharded lists.
const ROUTES: [&str; 5] = [
    "POST /v1/orders",
    "GET /v1/products/{id}",
    "GET /v1/search/products",
    "GET /v1/categories/{path}/products",
    "PUT /v1/customers/{id}/cart/items/{product}",
];

fn traffic(requests: &[u64], times: u64) -> String {
    let routes = ROUTES.iter().zip(requests).map(|(route, requests)| format!("{route:?} = {}\n", requests * times));
    format!("unmatched = {}\n[routes]\n{}", times * 7, routes.collect::<String>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bill_is_the_sum_of_its_parts_and_linear_in_the_traffic(
        requests in prop::collection::vec(1_u64..1_000_000, ROUTES.len()),
        times in 2_u64..1_000,
    ) {
        let (once, many) = (bill_of(&traffic(&requests, 1)), bill_of(&traffic(&requests, times)));
        let total = once.total();
        for sums in [
            once.sums_by(|line| Some(line.service.name().to_owned())),
            once.sums_by(|line| Some(line.route.clone())),
            once.sums_by(|line| Some(line.item.to_owned())),
            once.sums_by(|line| Some(format!("{:?}", line.place))),
        ] {
            prop_assert_eq!(sums.iter().map(|(_, amount)| *amount).sum::<Nano>(), total);
        }
        prop_assert_eq!(once.sum(|line| line.idle) + once.sum(|line| !line.idle), total);
        prop_assert_eq!(once.sum(|line| line.idle), bill_of("").total());
        // Metrics cost the same however often a route is called.
        let scales = |line: &Line| !line.idle && !line.item.contains("metrics");
        let (first, scaled) = (once.sum(scales), many.sum(scales));
        let lines = i128::try_from(once.lines.len()).unwrap();
        let rounding = i128::from(times) * lines;
        prop_assert!((first.0 * i128::from(times) - scaled.0).abs() <= rounding, "{first:?} {scaled:?}");
        let fixed = |line: &Line| !line.idle && line.item.contains("metrics");
        prop_assert_eq!(once.sum(fixed), many.sum(fixed));
    }

    #[test]
    fn no_profile_within_the_bounds_overflows(
        // All routes, and the requests without a route, share the limit.
        requests in 0..=MAX_REQUESTS / 400,
        duration in 1_u64..=900_000,
        megabytes in 0_u64..=1 << 30,
    ) {
        let routes = Measured::get().unwrap().routes().iter().filter(|route| !route.is_scheduled());
        let routes: String = routes
            .map(|route| format!("{:?} = {{ per_month = {requests}, response_bytes = 6_291_456 }}\n", route.route))
            .collect();
        let profile = format!(
            "unmatched = {requests}\nduration_ms = {duration}\n[storage]\ntable_mb = {megabytes}\n[routes]\n{routes}"
        );
        let report = report_of(&profile);
        let json = serde_json::to_value(&report).unwrap();
        prop_assert!(json["total_nano_dollars"].is_i64());
        prop_assert_eq!(report.lines.iter().map(|line| line.amount).sum::<Nano>(), report.total);
    }
}

/// The report's comparison of modes has the same amounts as the bill of a shop with provisioned
/// capacity.
#[test]
fn the_comparison_of_modes_has_the_amounts_of_a_bill_with_provisioned_capacity() {
    let routes = "[routes]\n\"GET /v1/products/{id}\" = { per_hour = 400_000 }\n";
    let (on_demand, provisioned) =
        (report_of(routes), report_of(&format!("[parameters]\nCapacityMode = \"provisioned\"\n{routes}")));
    let sums = |modes: fn(&ops::cost::capacity::Modes) -> Nano| on_demand.capacity.iter().map(modes).sum::<Nano>();
    let (units, hours) = (sums(|modes| modes.on_demand), sums(|modes| modes.provisioned));
    assert!(units > hours && hours > Nano::default(), "{units} {hours}");
    assert_eq!(on_demand.total - provisioned.total, units - hours);
    let places: Nano = provisioned.places.iter().map(|place| place.amount).sum();
    assert_eq!(places, hours);
    let chosen = on_demand.choices.iter().find(|choice| choice.choice == "CapacityMode=provisioned").unwrap();
    assert_eq!(chosen.difference, hours - units);
}
