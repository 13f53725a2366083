//! The report as one page of HTML. The page loads nothing and runs no script.

use std::fmt::Write as _;

use super::money::Nano;
use super::report::{Report, Sum, percent};
use super::svg::{Bar, Curve, bars, escaped, utilization};

/// If there are more amounts, the last bar shows the sum of the remaining amounts.
const MAX_BARS: usize = 16;

const STYLE: &str = "\
:root{color-scheme:light dark;--back:#fff;--text:#1c2430;--quiet:#5b6675;--line:#d5dae1;--more:#2f6fb3;--less:#2b8a5b;\
--flat:#b3562f}\
@media (prefers-color-scheme:dark){:root{--back:#14181e;--text:#e6eaf0;--quiet:#9aa5b4;--line:#333b46;--more:#6ba6e8;\
--less:#5cc293;--flat:#e89a6b}}\
body{background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;\
padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}\
svg{width:100%;min-width:640px;height:auto;font:12px system-ui,sans-serif}\
svg text{dominant-baseline:central}\
.label{fill:var(--quiet)}.value{fill:var(--text)}.more{fill:var(--more)}.less{fill:var(--less)}\
.axis,.grid{stroke:var(--line)}.curve{fill:none;stroke:var(--more);stroke-width:2}\
.flat{stroke:var(--flat);stroke-width:2}\
.total{font-size:2rem;font-weight:600;margin:0}.quiet{color:var(--quiet);margin:0}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{text-align:left;padding:.25rem .5rem;border-bottom:1px solid var(--line)}.number{text-align:right}";

pub(crate) fn page(report: &Report) -> String {
    let Report { region, prices_of, total, idle, .. } = report;
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>Bill of a month</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Bill of a month in {region}</h1>\n<p class=\"total\">{total} dollars</p>\n\
         <p class=\"quiet\">{idle} of them accrue even without traffic. Prices of {prices_of}, without free tiers and \
         volume discounts.</p>\n",
        region = escaped(region),
        prices_of = escaped(prices_of),
    );
    plot(&mut page, "By service", &report.services);
    plot(&mut page, "By route", &report.routes);
    plot(&mut page, "Capacity units by table and index", &report.places);
    capacity(&mut page, report);
    if !report.choices.is_empty() {
        let all: Vec<Bar> = report
            .choices
            .iter()
            .map(|choice| Bar { label: choice.choice.clone(), amount: choice.difference })
            .collect();
        section(&mut page, "Difference that a choice makes", &bars("Difference that a choice makes", &all));
    }
    lines(&mut page, report);
    if !report.unconfirmed.is_empty() {
        let sources = report
            .unconfirmed
            .iter()
            .map(|one| format!("<a href=\"{}\">{}</a>", escaped(&one.source), escaped(&one.price)));
        let sources: Vec<String> = sources.collect();
        section(&mut page, "Prices that no second source confirmed", &format!("<p>{}</p>", sources.join(", ")));
    }
    page + "</body>\n</html>\n"
}

fn section(page: &mut String, title: &str, content: &str) {
    let _ = writeln!(page, "<h2>{}</h2>\n{content}", escaped(title));
}

fn plot(page: &mut String, title: &str, sums: &[Sum]) {
    if sums.is_empty() {
        return;
    }
    let whole = if sums.len() > MAX_BARS { MAX_BARS - 1 } else { sums.len() };
    let mut all: Vec<Bar> =
        sums.iter().take(whole).map(|sum| Bar { label: sum.name.clone(), amount: sum.amount }).collect();
    let rest = sums.get(whole..).unwrap_or_default();
    if !rest.is_empty() {
        let amount: Nano = rest.iter().map(|sum| sum.amount).sum();
        all.push(Bar { label: format!("{} others", rest.len()), amount });
    }
    section(page, title, &bars(title, &all));
}

fn capacity(page: &mut String, report: &Report) {
    let Some(break_even) = &report.break_even_hundredths_of_percent else { return };
    let on_demand: Nano = report.capacity.iter().map(|modes| modes.on_demand).sum();
    if on_demand == Nano::default() {
        return;
    }
    let curve = Curve { provisioned: report.provisioned_by_utilization.clone(), on_demand };
    let (reads, writes) = (percent(break_even.reads), percent(break_even.writes));
    let mut content = utilization("Amount for provisioned capacity at each utilization, and on demand", &curve);
    let _ = write!(
        content,
        "<p>Provisioned capacity is cheaper above a utilization of {reads} (reads) and {writes} (writes). \
         At {} % utilization:</p>\
         <div class=\"wide\"><table><tr><th>place</th><th class=\"number\">on demand</th>\
         <th class=\"number\">provisioned</th><th class=\"number\">read units a second</th>\
         <th class=\"number\">write units a second</th></tr>",
        report.target_percent
    );
    for modes in &report.capacity {
        let _ = write!(
            content,
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            modes.place, modes.on_demand, modes.provisioned, modes.read_capacity, modes.write_capacity
        );
    }
    content += "</table></div>";
    section(page, "On demand or provisioned", &content);
}

fn lines(page: &mut String, report: &Report) {
    let mut sums = std::collections::BTreeMap::<(&str, &str), Nano>::new();
    for line in &report.lines {
        *sums.entry((line.service.name(), line.item)).or_default() += line.amount;
    }
    let mut content = "<div class=\"wide\"><table><tr><th>service</th><th>item</th>\
                       <th class=\"number\">dollars</th></tr>"
        .to_owned();
    for ((service, item), amount) in sums {
        let _ = write!(
            content,
            "<tr><td>{}</td><td>{}</td><td class=\"number\">{amount}</td></tr>",
            escaped(service),
            escaped(item)
        );
    }
    section(page, "By item", &(content + "</table></div>"));
}
