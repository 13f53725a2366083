//! Suggestions for unknown names.

const MAX_SUGGESTIONS: usize = 3;
/// The maximum size of a text that gets suggestions, so that the comparison stays short.
const MAX_BYTES: usize = 200;

/// Returns `; did you mean …` with the nearest known names, or nothing.
#[must_use]
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if name.len() > MAX_BYTES {
        return String::new();
    }
    let folded = name.to_lowercase();
    let mut near: Vec<(usize, &str)> =
        known.into_iter().map(|known| (distance(&folded, &known.to_lowercase()), known)).collect();
    near.sort_unstable();
    let near: Vec<String> = near
        .iter()
        .take(MAX_SUGGESTIONS)
        .filter(|(distance, known)| distance * 2 < known.len())
        .map(|(_, known)| format!("{known:?}"))
        .collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// Returns the number of characters to insert, delete or replace until the texts are equal.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (line, from) in a.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, to) in row.iter_mut().skip(1).zip(b.chars()) {
            let replaced = diagonal + usize::from(from != to);
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_single_changes() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("order", "orders", 1),
            ("a", "é", 1),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn a_hint_has_the_nearest_names_and_no_name_that_is_far_away() {
        let known = ["Product", "Promotion", "Order"];
        assert_eq!(hint("products", known), "; did you mean \"Product\"?");
        assert_eq!(hint("zzz", known), "");
        assert_eq!(hint(&"Product".repeat(100), known), "");
    }
}
