//! The files of an import: each row is imported or counted as refused, and amounts are exact to the
//! cent.

use super::Scratch;

// The target includes only this file, because the whole local system takes minutes to build.
#[allow(dead_code)]
#[path = "../../local/src/import/source.rs"]
mod source;

use source::{Basket, HouseholdRow, ProductRow, SourceError};

thread_local! {
    static FILE: Scratch = Scratch::new("import");
}

pub fn check(input: &[u8]) {
    FILE.with(|file| {
        let path = file.holding(input);
        if let Ok(rows) = source::rows::<ProductRow>(path) {
            assert!(!rows.is_empty());
            rows.iter().for_each(product);
        }
        let _ = source::rows::<HouseholdRow>(path);
        let Ok(baskets) = source::baskets(path, None) else { return };
        let baskets: Result<Vec<Result<Basket, u64>>, SourceError> = baskets.collect();
        let survey = source::survey(path, None);
        // The reader and the survey refuse a file that cannot be read to its end. The survey also
        // refuses a file without a basket.
        let has_basket = baskets.as_ref().is_ok_and(|baskets| baskets.iter().any(Result::is_ok));
        assert_eq!(has_basket, survey.is_ok());
        let (Ok(baskets), Ok(survey)) = (baskets, survey) else { return };
        assert_eq!(survey.baskets, u64::try_from(baskets.len()).expect("a count"));
        assert!(
            baskets.iter().filter_map(|basket| basket.as_ref().err()).is_sorted_by(|a, b| a < b),
            "a line is reported twice"
        );
        for basket in baskets.iter().flatten() {
            assert!(survey.households.contains(&basket.household_id));
            for line in &basket.lines {
                let Some(cents) = line.cents() else { continue };
                assert_eq!(Some(decimal(cents).as_str()), plain(line.sales_value.get()).as_deref());
                assert!(line.quantity < 1 || survey.prices.contains_key(&line.product_id.to_string()));
            }
        }
        assert!(survey.prices.values().all(|price| *price >= 0));
        let first = source::survey(path, Some(1)).expect("a prefix of the input can be read");
        assert!(first.baskets <= 1 && first.households.is_subset(&survey.households));
    });
}

fn product(row: &ProductRow) {
    let path = row.category_path();
    assert!(
        (1..=3).contains(&path.len()) && path.iter().all(|name| !name.is_empty() && name.trim() == name),
        "{path:?}"
    );
    assert!(!row.name().is_empty());
}

fn decimal(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.unsigned_abs() / 100, cents.unsigned_abs() % 100)
}

/// Returns a written number with exactly two decimals, and zero without a sign. Returns `None` if
/// the number has more decimals.
fn plain(text: &str) -> Option<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = format!("{:0<2}", fraction.trim_end_matches('0'));
    let is_nothing = whole.bytes().chain(fraction.bytes()).all(|byte| byte == b'0');
    (fraction.len() == 2).then(|| format!("{}{whole}.{fraction}", if is_nothing { "" } else { sign }))
}
