//! Generates the bills in `docs/cost-report.md`.

use std::fmt::Write as _;
use std::path::Path;

use ops::cost::bill::Bill;
use ops::cost::measured::Measured;
use ops::cost::report::Report;

use super::{bill_of, report_of};

/// The requests of each route for one order: views of the catalogue, searches, the cart, the order
/// and its way to the customer.
const FOR_AN_ORDER: [(&str, u64); 14] = [
    ("GET /v1/products/{id}", 60),
    ("GET /v1/categories/{path}/products", 20),
    ("GET /v1/search/products", 10),
    ("GET /v1/products/{id}/reviews", 10),
    ("GET /v1/products/{id}/pictures", 20),
    ("PUT /v1/customers/{id}/cart/items/{product}", 6),
    ("GET /v1/customers/{id}/cart", 4),
    ("POST /v1/customers/{id}/sessions", 1),
    ("GET /v1/customers/{id}", 2),
    ("POST /v1/customers/{id}/cart/checkout", 1),
    ("POST /v1/orders/{id}/status", 4),
    ("GET /v1/orders/{id}", 2),
    ("GET /v1/customers/{id}/orders", 1),
    ("PUT /v1/products/{id}/stock", 1),
];

/// Sizes of shops: orders a day, stored data in MB, and parameters of the search engine.
const SHOPS: [(u64, u64, &str); 2] = [
    (1_000, 5_000, ""),
    (1_000_000, 2_000_000, "SearchInstanceType = 'm6g.large.search'\nSearchInstances = '3'\nSearchStorageGb = '100'\n"),
];

fn profile(orders: u64, megabytes: u64, parameters: &str) -> String {
    let routes = FOR_AN_ORDER
        .iter()
        .map(|(route, requests)| format!("{route:?} = {{ per_day = {} }}\n", requests * orders))
        .collect::<String>();
    format!(
        "[storage]\ntable_mb = {megabytes}\nmedia_mb = {megabytes}\narchive_mb = {}\n[media]\nreads = {}\n\
         uploads = {}\n[parameters]\n{parameters}[routes]\n{routes}",
        megabytes / 10,
        orders * 20 * 30,
        orders,
    )
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

#[test]
fn the_sample_bills_in_the_docs_are_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cost-report.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let [begin, end] = ["<!-- bills -->\n", "<!-- end of bills -->\n"];
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let fresh = format!("{before}{begin}{}{end}{after}", bills());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
        return;
    }
    assert!(page == fresh, "docs/cost-report.md is stale: UPDATE_DOCS=1 cargo test -p bodega-ops writes it");
}

fn bills() -> String {
    let mut text = format!("Prices of {} in us-east-1.\n\n", report_of("").prices_of);
    text += "## Sample bills\n\nRequests for each order:\n\n| route | requests |\n| --- | ---: |\n";
    for (route, requests) in FOR_AN_ORDER {
        writeln!(text, "| `{route}` | {requests} |").unwrap();
    }
    let reports: Vec<Report> = std::iter::once(String::new())
        .chain(SHOPS.map(|(orders, mb, more)| profile(orders, mb, more)))
        .map(|profile| report_of(&profile))
        .collect();
    text += "\nDollars a month:\n\n| service | idle | 1,000 orders a day | 1,000,000 orders a day |\n\
             | --- | ---: | ---: | ---: |\n";
    let mut names: Vec<&str> =
        reports.iter().flat_map(|report| &report.services).map(|sum| sum.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let amount = |report: &Report, name: &str| {
        report.services.iter().find(|sum| sum.name == name).map(|sum| sum.amount).unwrap_or_default()
    };
    for name in names {
        let cells: Vec<String> = reports.iter().map(|report| amount(report, name).to_string()).collect();
        writeln!(text, "| {name} | {} |", cells.join(" | ")).unwrap();
    }
    let totals: Vec<String> = reports.iter().map(|report| format!("**{}**", report.total)).collect();
    writeln!(text, "| **total** | {} |", totals.join(" | ")).unwrap();
    let [_, small, large] = &reports[..] else { panic!("three bills") };
    for (name, report) in [("1,000", small), ("1,000,000", large)] {
        writeln!(text, "\n### {name} orders a day\n\n| most expensive | dollars |\n| --- | ---: |").unwrap();
        for sum in report.routes.iter().take(8) {
            writeln!(text, "| `{}` | {} |", sum.name, sum.amount).unwrap();
        }
        text += "\n| table or index | read units | write units | on demand | provisioned, 70 % used |\n\
                 | --- | ---: | ---: | ---: | ---: |\n";
        for modes in &report.capacity {
            let (reads, writes) = (grouped(modes.reads), grouped(modes.writes));
            writeln!(text, "| {} | {reads} | {writes} | {} | {} |", modes.place, modes.on_demand, modes.provisioned)
                .unwrap();
        }
        text += "\n| choice | difference |\n| --- | ---: |\n";
        for choice in &report.choices {
            writeln!(text, "| {} | {} |", choice.choice, choice.difference).unwrap();
        }
    }
    text + &routes()
}

/// Returns the cost of a million requests to each route.
fn routes() -> String {
    let mut text =
        "\n## The cost of each route\n\nDollars for a million requests, with the default durations and sizes. \
                    \"Afterwards\" counts the\nwrite units of the functions that a request causes to run.\n\n\
                    | route | read units | write units | afterwards | DynamoDB | in all |\n\
                    | --- | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    let measured = Measured::get().unwrap();
    for route in measured.routes().iter().filter(|route| !route.is_scheduled()) {
        let written = |uses: Vec<(&str, u64)>| -> u64 {
            let of = |pattern| measured.costs(pattern).next().unwrap().write_units.values().sum::<u64>();
            uses.into_iter().map(|(pattern, uses)| uses * of(pattern)).sum()
        };
        let halves: u64 = route
            .all_uses()
            .iter()
            .map(|(pattern, uses)| uses * measured.costs(pattern).next().unwrap().half_read_units)
            .sum();
        let writes = written(route.uses());
        let later = written(route.all_uses()) - writes;
        let bill: Bill = bill_of(&format!("[routes]\n{:?} = 1_000_000\n", route.route));
        let of = |item: Option<&str>| {
            bill.sum(|line| {
                line.route == route.route
                    && item.is_none_or(|item| line.service.name() == item)
                    && line.item != "metrics"
            })
        };
        let half = if halves % 2 == 1 { ".5" } else { "" };
        writeln!(
            text,
            "| `{}` | {}{half} | {writes} | {later} | {} | {} |",
            route.route,
            halves / 2,
            of(Some("DynamoDB")),
            of(None)
        )
        .unwrap();
    }
    text
}

/// Returns the number of tags of a page. Panics if the page is not well-formed.
fn check_elements(page: &str) -> usize {
    let (mut open, mut elements) = (Vec::<&str>::new(), 0);
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap();
    // The text of a style sheet has no markup.
    let (head, rest) = body.split_once("<style>").unwrap();
    let (_, tail) = rest.split_once("</style>").unwrap();
    for part in [head, tail] {
        for piece in part.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').expect(piece);
            assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{piece}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
            elements += 1;
        }
    }
    assert_eq!(open, [""; 0]);
    elements
}

#[test]
fn the_page_is_well_formed_and_loads_nothing() {
    let profile = "[routes]\n\"POST /v1/orders\" = 30_000\n\"GET /v1/products/{id}\" = 3_000_000\n\
        [[operations]]\nname = \"<b>\\\"&'\"\nper_day = 9_000\nwrite_bytes = [900]\n";
    for profile in ["", profile] {
        let folder = tempfile::tempdir().unwrap();
        let (path, input) = (folder.path().join("bill.html"), folder.path().join("profile.toml"));
        std::fs::write(&input, profile).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ops"))
            .args(["cost", "--profile", input.to_str().unwrap(), "--html", path.to_str().unwrap()])
            .output()
            .unwrap();
        assert!(output.status.success());
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(check_elements(&page) > 100);
        for loading in ["<script", "src=", "@import", "url(", "<link", "<b>"] {
            assert!(!page.contains(loading), "{loading}");
        }
        assert!(page.contains("prefers-color-scheme:dark"));
        let report = report_of(profile);
        let bars = report.services.len() + report.routes.len() + report.places.len() + report.choices.len();
        assert_eq!(page.matches("<rect ").count(), bars, "a bar for each sum");
    }
}
