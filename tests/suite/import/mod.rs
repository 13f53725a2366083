//! Runs the import program on files. Checks its exit code and output, and then the imported data.

mod data;
mod shop;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;

use local::System;
use local::token::SigningKey;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::support::client::{Call, http};
use crate::support::shop::order_call;
use crate::support::{drain, table, with_own_system, with_system};
use data::Folder;

#[derive(Debug)]
pub struct Run {
    code: Option<i32>,
    pub out: String,
    err: String,
}

/// Returns a command that runs `bodega` with these arguments.
fn command<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bodega-under-test"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs `bodega` with these arguments until it exits.
pub async fn bodega<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Run {
    let run = command(args).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: run.status.code(), out: text(run.stdout), err: text(run.stderr) }
}

fn import_args(system: &System, files: &[(&str, &Path)], more: &[&str]) -> Vec<OsString> {
    let url = system.url();
    let port = url.rsplit(':').next().unwrap();
    let mut args: Vec<OsString> = ["import", "--port", port].map(OsString::from).to_vec();
    args.extend(files.iter().flat_map(|(option, file)| [OsString::from(option), file.into()]));
    args.extend(more.iter().map(OsString::from));
    args
}

async fn import(system: &System, files: &[(&str, &Path)], more: &[&str]) -> Run {
    bodega(import_args(system, files, more)).await
}

/// Parses the final summary. For each phase, returns the number of processed records and the text
/// of each line, by the reason at the line's start. Sorts the names inside a text.
fn summary(run: &Run) -> BTreeMap<&str, (u64, BTreeMap<&str, String>)> {
    let mut phases = BTreeMap::new();
    let mut phase = "";
    for line in run.out.lines() {
        if let Some((reason, what)) = line.strip_prefix("  ").and_then(|line| line.rsplit_once(": ")) {
            let what = match what.split_once(" (") {
                Some((count, names)) => {
                    let mut names: Vec<&str> = names.trim_end_matches(')').split(", ").collect();
                    names.sort_unstable();
                    format!("{count} ({})", names.join(", "))
                }
                None => what.to_owned(),
            };
            let (_, lines): &mut (u64, BTreeMap<&str, String>) = phases.get_mut(phase).unwrap();
            assert_eq!(lines.insert(reason, what), None, "{line}");
        } else if let Some((name, rest)) = line.split_once(": ").filter(|(_, rest)| rest.contains(" a second)")) {
            phase = name;
            phases.insert(name, (rest.split(' ').next().unwrap().parse().unwrap(), BTreeMap::new()));
        }
    }
    phases
}

fn lines(lines: &[(&'static str, &str)]) -> BTreeMap<&'static str, String> {
    lines.iter().map(|(reason, what)| (*reason, (*what).to_owned())).collect()
}

const NOTHING_CHANGED: &str = "nothing changed: everything was already there";

#[test]
fn the_retail_data_is_imported_by_its_rules_and_a_second_import_changes_nothing() {
    with_own_system(async |system| {
        let folder = Folder::new("import");
        let files = [
            ("--products", folder.write("products.csv", &data::products())),
            ("--households", folder.write("households.csv.gz", &data::households())),
            ("--baskets", folder.write("baskets.ndjson.gz", &data::baskets())),
        ];
        let files = files.each_ref().map(|(option, path)| (*option, path.as_path()));
        let stock = ["--stock", &data::STOCK.to_string()];
        let expected = data::expected();
        let (products, customers) = (expected.products.len(), expected.placed.len() + expected.bare.len());
        let counts = [products, customers, expected.orders.len()].map(|count| count.to_string());
        let refused_products = ("refused, invalid_body", "1 (1008)");
        let refused_orders = [
            ("lines left out, quantity 0", "3"),
            ("lines left out, unknown product", "3"),
            ("refused, no line left", "2 (5004, 5005)"),
            ("refused, not a basket", "2 (line 11, line 9)"),
            ("refused, the file has the basket twice", "1 (5001)"),
            ("refused, insufficient_stock", "1 (5011)"),
        ];
        let summed_up = |outcome| {
            let [products, customers, orders] = counts.each_ref().map(|count| (outcome, count.as_str()));
            BTreeMap::from([
                ("products", (products.1.parse().unwrap(), lines(&[products, refused_products]))),
                ("customers", (customers.1.parse().unwrap(), lines(&[customers]))),
                ("orders", (orders.1.parse().unwrap(), lines(&[&[orders], &refused_orders[..]].concat()))),
            ])
        };

        let run = import(system, &files, &stock).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(summary(&run), summed_up("created"), "{}", run.out);
        assert!(!run.out.contains(NOTHING_CHANGED), "{}", run.out);
        drain(system).await;
        shop::is_as_expected(system, &expected).await;

        let before = table::scan(system).await;
        let run = import(system, &files, &stock).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(summary(&run), summed_up("already there"), "{}", run.out);
        assert!(run.out.contains(NOTHING_CHANGED), "{}", run.out);
        drain(system).await;
        assert_eq!(table::scan(system).await, before, "no version and no revision changed");

        // Prices come from the baskets. Without the file of baskets, the import knows no prices.
        let run = import(system, &files[..1], &stock).await;
        assert_eq!(summary(&run)["products"].1["already there"], counts[0], "{}", run.out);
        drain(system).await;
        assert_eq!(table::scan(system).await, before, "an unknown price changes no product");

        let mut unread = command(import_args(system, &files[..1], &stock)).spawn().unwrap();
        drop(unread.stdout.take());
        assert_eq!(unread.wait().await.unwrap().code(), Some(0), "a closed pipe does not stop the import");
    });
}

#[test]
fn a_run_that_was_killed_is_finished_by_the_next() {
    with_own_system(async |system| {
        let folder = Folder::new("resume");
        let files = [
            ("--products", folder.write("products.csv.gz", &data::products())),
            ("--households", folder.write("households.csv", &data::households())),
            ("--baskets", folder.write("baskets.ndjson", &data::baskets())),
        ];
        let files = files.each_ref().map(|(option, path)| (*option, path.as_path()));
        let stock = data::STOCK.to_string();
        let mut killed = command(import_args(system, &files, &["--stock", &stock])).spawn().unwrap();
        let any_order = async || {
            let list = Call::new("GET", "/v1/orders?status=pending&limit=1").staff().send(system).await.expect(200);
            !list.body["items"].as_array().unwrap().is_empty()
        };
        // The import may also finish before this loop finds an order.
        while !any_order().await && killed.try_wait().unwrap().is_none() {}
        killed.kill().await.unwrap();

        let run = import(system, &files, &["--stock", &stock]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let expected = data::expected();
        let found = summary(&run);
        assert_eq!(found["orders"].0, u64::try_from(expected.orders.len()).unwrap(), "{}", run.out);
        assert!(found["orders"].1.contains_key("already there"), "{}", run.out);
        drain(system).await;
        shop::is_as_expected(system, &expected).await;
    });
}

#[test]
fn an_order_under_a_baskets_number_counts_as_imported_only_if_it_equals_the_basket() {
    with_own_system(async |system| {
        let folder = Folder::new("taken");
        let files = [
            ("--products", folder.write("products.csv", &data::products())),
            ("--households", folder.write("households.csv", &data::households())),
            ("--baskets", folder.write("baskets.ndjson", &data::baskets())),
        ];
        let files = files.each_ref().map(|(option, path)| (*option, path.as_path()));
        let stock = ["--stock", &data::STOCK.to_string()];
        assert_eq!(import(system, &files[..2], &stock).await.code, Some(0));
        let place = async |household: &str, basket: &str, lines: &[(u64, u64, i64)]| {
            let line = |(product, quantity, cents): &(u64, u64, i64)| {
                json!({
                    "product_id": product.to_string(), "quantity": quantity, "total": data::money(*cents),
                })
            };
            let lines: Vec<_> = lines.iter().map(line).collect();
            let body = json!({ "customer_id": household, "reference": basket, "lines": lines });
            order_call(&body, basket).staff().send(system).await.expect(201);
        };
        // Each of these orders has the number of a basket but differs from it: in a line, a
        // quantity, an amount or the household.
        place("1", "5001", &[(1001, 2, 258)]).await;
        place("1", "6000", &[(1005, 2, 350), (1001, 1, 129)]).await;
        place("1", "6001", &[(1005, 1, 351), (1001, 1, 129)]).await;
        place("9", "5002", &[(1003, 1, 0)]).await;
        place("2", "5003", &[(1001, 1, 150)]).await;
        // A customer's own order with a basket's number as its reference does not conflict with the
        // import.
        let lines = json!([{ "product_id": "1001", "quantity": 1 }]);
        let own = json!({ "customer_id": "1", "reference": "6002", "lines": lines });
        order_call(&own, "own").customer("1").send(system).await.expect(201);

        let run = import(system, &files, &stock).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let orders = &summary(&run)["orders"].1;
        assert_eq!(orders["refused, another order has this number"], "4 (5001, 5002, 6000, 6001)", "{}", run.out);
        assert_eq!(orders["already there"], "1", "{}", run.out);
        assert_eq!(orders["created"], (data::expected().orders.len() - 5).to_string(), "{}", run.out);
        assert!(!run.out.contains(NOTHING_CHANGED), "{}", run.out);
    });
}

#[test]
fn an_import_that_cannot_begin_says_why_and_changes_nothing() {
    with_own_system(async |system| {
        let folder = Folder::new("usage");
        let before = table::scan(system).await;
        let good = folder.write("products.csv", &data::products());
        let missing = folder.path().join("no-such-file.csv");
        let torn = folder.write("torn.csv.gz", &data::products());
        let whole = std::fs::read(&torn).unwrap();
        std::fs::write(&torn, &whole[..whole.len() / 2]).unwrap();
        let other = folder.write("other.csv", "id,title\n1,a\n");
        let empty = folder.write("empty.ndjson", "\n");
        for (files, named) in [
            (vec![("--products", &missing)], "no-such-file.csv"),
            (vec![("--products", &good), ("--baskets", &missing)], "no-such-file.csv"),
            (vec![("--products", &good), ("--households", &torn)], "torn.csv.gz"),
            (vec![("--products", &other)], "other.csv"),
            (vec![("--products", &good), ("--baskets", &other)], "other.csv"),
            (vec![("--products", &good), ("--baskets", &empty)], "empty.ndjson"),
            (vec![], "--products"),
        ] {
            let files: Vec<(&str, &Path)> = files.iter().map(|(option, path)| (*option, path.as_path())).collect();
            let run = import(system, &files, &[]).await;
            assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{files:?}: {run:?}");
            assert!(run.err.contains(named) && run.err.trim().lines().count() == 1, "{files:?}: {run:?}");
        }
        let run = import(system, &[("--products", &good)], &["--stock", "many"]).await;
        assert_eq!(run.code, Some(2), "{run:?}");

        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port().to_string();
        let run =
            bodega([OsStr::new("import"), "--port".as_ref(), port.as_ref(), "--products".as_ref(), good.as_ref()]);
        let run = run.await;
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.err.contains(&port), "{run:?}");

        // The API refuses a token that is signed with another key. The import stops at the first
        // refusal.
        SigningKey::open(Some(folder.path())).unwrap();
        let baskets = folder.write("baskets.ndjson", &data::baskets());
        for file in [("--products", good.as_path()), ("--baskets", &baskets)] {
            let run = import(system, &[file], &["--data", folder.path().to_str().unwrap()]).await;
            assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{run:?}");
            assert!(run.err.contains("start import with the same --data as the server"), "{run:?}");
            assert_eq!(run.err.trim().lines().count(), 1, "{run:?}");
        }
        assert_eq!(table::scan(system).await, before);
    });
}

#[test]
fn the_program_prints_tokens_that_the_running_system_takes() {
    with_system(async |system| {
        let id = "token #1 Ä";
        let customer = bodega(["token", "--sub", id]).await;
        let staff = bodega(["token", "--sub", "sam", "--group", "other", "--group", "staff"]).await;
        let bearer = |run: &Run| {
            assert_eq!((run.code, run.out.lines().count()), (Some(0), 1), "{run:?}");
            format!("Bearer {}", run.out.trim())
        };
        let (customer, staff) = (bearer(&customer), bearer(&staff));
        let call = |method, path: &str, token: &str| Call::new(method, path).header("authorization", token);

        let body = json!({ "email": "token@example.com", "username": "token", "name": "T" });
        let created = call("POST", "/v1/customers", &customer).json(&body).send(system).await.expect(201);
        assert_eq!(created.body["id"], id);
        call("GET", "/v1/customers/token%20%231%20%C3%84", &customer).send(system).await.expect(200);
        call("GET", "/v1/customers/somebody-else", &customer).send(system).await.expect(404);
        call("GET", "/v1/customers?tier=bronze", &customer).send(system).await.expect(403);
        call("GET", "/v1/customers?tier=bronze", &staff).send(system).await.expect(200);
        call("GET", "/v1/customers/token%20%231%20%C3%84", &staff).send(system).await.expect(200);
        let altered = format!("{}x", customer.trim_end_matches(|c: char| c.is_alphanumeric()));
        call("GET", "/v1/customers?tier=bronze", &altered).send(system).await.expect(401);

        for args in [&["token"][..], &["token", "--sub"], &["token", "--sub", id, "--for-ever"]] {
            let run = bodega(args).await;
            assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
        }
        let up = http().get(format!("{}/health", system.url())).send().await.unwrap();
        assert!(up.status().is_success());
    });
}
