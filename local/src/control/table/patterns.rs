//! Finds the access pattern of a request.
//!
//! A request does not name its pattern. So its operation, index, consistency and keys are compared
//! with the texts of the registry. Several patterns may have the same keys, such as the changes of
//! a customer's profile. The patterns of the request's route then decide, and the patterns that the
//! function has logged for the invocation.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use key_schema::pattern::{Consistency, Operation, Pattern};
use key_schema::registry;
use serde_json::Value as Json;

use super::request::{Change, Place, Request, SortKeys};

/// Stands for a part of a key that differs between items.
const PART: char = '\u{1}';
/// Stands for any number of parts.
const REST: char = '\u{2}';
/// A penalty from which on a pattern does not fit.
const NO_FIT: u32 = 1000;
/// The penalty of a place that the text of the pattern does not have. Some texts are incomplete.
const UNKNOWN: u32 = 40;
/// The highest penalty for places that the request does not use. A text lists all items that any
/// request of the pattern may use.
const MAX_UNUSED: u32 = 5;
/// Patterns with nearly the same penalty all fit, because the texts are written for people.
const SLACK: u32 = 6;
/// The patterns that every route may use outside its handler.
const SHARED: [&str; 3] = ["reach.nothing", "revocations.get", "settings.read"];

/// The keys of a pattern, read from its text in the registry.
struct Rule {
    pattern: &'static Pattern,
    places: Vec<PlaceRule>,
    is_backward: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlaceRule {
    partitions: Vec<String>,
    sort: SortRule,
    /// Whether the pattern only checks the item.
    is_check: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SortRule {
    Any,
    Is(String),
    /// The bounds of a range. A missing bound may have any value.
    Range(Option<String>, Option<String>),
}

/// The access patterns of the registry, and the patterns of each route and function.
pub(super) struct Matcher {
    rules: Vec<Rule>,
    of_routes: BTreeMap<String, HashSet<String>>,
    of_functions: BTreeMap<String, HashSet<String>>,
}

impl Matcher {
    /// `routes` is the content of `docs/routes.json`.
    pub(super) fn new(routes: &Json) -> Self {
        let rule = |pattern: &'static Pattern| Rule {
            pattern,
            places: places(pattern.key),
            is_backward: pattern.key.contains("backward"),
        };
        let (mut of_routes, mut of_functions) = (BTreeMap::new(), BTreeMap::<String, HashSet<String>>::new());
        for route in routes.as_array().into_iter().flatten() {
            let text = |name: &str| route.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
            let patterns = route.get("patterns").and_then(Json::as_array).into_iter().flatten();
            let mut patterns: HashSet<String> = patterns.filter_map(Json::as_str).map(str::to_owned).collect();
            patterns.extend(SHARED.map(str::to_owned));
            of_functions.entry(text("function")).or_default().extend(patterns.iter().cloned());
            of_routes.insert(text("route"), patterns);
            let later = route.get("later").and_then(Json::as_object).into_iter().flatten();
            for (function, uses) in later {
                let uses = uses.as_object().into_iter().flat_map(|uses| uses.keys().cloned());
                of_functions.entry(function.clone()).or_default().extend(uses);
            }
        }
        Self { rules: registry::all().map(rule).collect(), of_routes, of_functions }
    }

    /// Returns the ids of the patterns that fit best, the best first.
    ///
    /// `logged` has the patterns that the function has logged for the invocation.
    pub(super) fn find(
        &self,
        request: &Request,
        route: Option<&str>,
        function: Option<&str>,
        logged: Option<&BTreeSet<String>>,
    ) -> Vec<&'static str> {
        let fits = self.rules.iter().map(|rule| (rule.pattern.id, rule.penalty(request)));
        let fits: Vec<(&'static str, u32)> = fits.filter(|(_, penalty)| *penalty < NO_FIT).collect();
        let of_route = route.and_then(|route| self.of_routes.get(route));
        let of_function = function.and_then(|function| self.of_functions.get(function));
        let contains = |id: &str, set: Option<&HashSet<String>>| set.is_some_and(|set| set.contains(id));
        let narrowed = |wanted: &dyn Fn(&str) -> bool| {
            let known: Vec<_> = fits.iter().copied().filter(|(id, _)| wanted(id)).collect();
            best(&known)
        };
        let is_logged = |id: &str| logged.is_some_and(|logged| logged.contains(id));
        [
            narrowed(&is_logged),
            narrowed(&|id| contains(id, of_route)),
            narrowed(&|id| contains(id, of_function)),
            best(&fits),
        ]
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default()
    }

    /// Returns the routes that use a pattern.
    pub(super) fn routes<'m>(&'m self, pattern: &'m str) -> impl Iterator<Item = &'m str> {
        let uses = move |(_, patterns): &(&String, &HashSet<String>)| patterns.contains(pattern);
        let is_shared = SHARED.contains(&pattern);
        self.of_routes.iter().filter(uses).filter(move |_| !is_shared).map(|(route, _)| route.as_str())
    }
}

fn best(fits: &[(&'static str, u32)]) -> Vec<&'static str> {
    let least = fits.iter().map(|(_, penalty)| *penalty).min().unwrap_or_default();
    let mut best: Vec<_> = fits.iter().filter(|(_, penalty)| *penalty <= least + SLACK).collect();
    best.sort_by_key(|(_, penalty)| *penalty);
    best.into_iter().map(|(id, _)| *id).collect()
}

impl Rule {
    /// Returns how badly a request fits, from 0 for a perfect fit.
    fn penalty(&self, request: &Request) -> u32 {
        let is_same = request.operation == name(self.pattern.operation)
            && request.index.as_deref() == self.pattern.index.map(|index| index.name())
            && match self.pattern.consistency {
                Consistency::Strong(_) => request.is_strong,
                Consistency::Eventual => !request.is_strong,
                Consistency::Write => true,
            };
        if !is_same || request.places.is_empty() {
            return NO_FIT;
        }
        let (mut penalty, mut used) = (0, HashSet::new());
        for place in &request.places {
            let fits = self.places.iter().enumerate();
            let fits = fits.filter_map(|(at, rule)| Some((rule.penalty(place)?, at)));
            match fits.min() {
                Some((worse, at)) => {
                    penalty += worse;
                    used.insert(at);
                }
                None => penalty += UNKNOWN,
            }
        }
        if used.is_empty() {
            return NO_FIT;
        }
        let unused = u32::try_from(self.places.len() - used.len()).unwrap_or(NO_FIT);
        let is_turned = request.operation == "Query" && request.is_backward != self.is_backward;
        penalty.saturating_add(unused.min(MAX_UNUSED)).saturating_add(if is_turned { 10 } else { 0 }).min(NO_FIT - 1)
    }
}

impl PlaceRule {
    /// Returns `None` if the place does not fit at all.
    fn penalty(&self, place: &Place) -> Option<u32> {
        let partition = self.partitions.iter().filter_map(|rule| fit(rule, &place.partition)).min()?;
        let sort = match (&self.sort, &place.sort) {
            (SortRule::Any, SortKeys::All) => 0,
            (SortRule::Any, SortKeys::One(_)) => 1,
            (SortRule::Any, _) => 20,
            (SortRule::Is(rule), SortKeys::One(sort)) => fit(rule, sort)?,
            // The text shows how the items are sorted. A page after the first has a bound.
            (SortRule::Is(_), SortKeys::All) => 0,
            (SortRule::Is(_), _) => 5,
            (SortRule::Range(..), SortKeys::All | SortKeys::Other) => 15,
            (SortRule::Range(low, high), SortKeys::One(sort)) => bounds(low, high, sort, sort)?,
            (SortRule::Range(low, high), SortKeys::Between(from, to)) => bounds(low, high, from, to)?,
        };
        let is_check = place.change == Change::Checked;
        Some(partition + sort + if self.is_check == is_check { 0 } else { 3 })
    }
}

fn bounds(low: &Option<String>, high: &Option<String>, from: &str, to: &str) -> Option<u32> {
    let low = low.as_ref().map_or(Some(0), |rule| bound(rule, from, from >= literal(rule)))?;
    let high = high.as_ref().map_or(Some(0), |rule| {
        let beginning = literal(rule);
        // The end of all keys that begin with `p#` is `p$`.
        let end = format!("{}$", beginning.trim_end_matches('#'));
        bound(rule, to, *to <= *end || to.starts_with(beginning))
    })?;
    Some(low + high)
}

/// A later page of a list begins or ends inside of the range.
fn bound(rule: &str, value: &str, is_inside: bool) -> Option<u32> {
    fit(rule, value).or_else(|| is_inside.then_some(5))
}

/// Returns the beginning of a rule that is equal for all keys.
fn literal(rule: &str) -> &str {
    rule.split([PART, REST]).next().unwrap_or_default()
}

/// Returns 0 if the key has the parts of the rule, 2 if a part of the rule stands for several parts,
/// and `None` if the key differs.
fn fit(rule: &str, key: &str) -> Option<u32> {
    if glob(rule, key, false) {
        return Some(0);
    }
    // The top of a tree has no path: `CATEGORY` instead of `CATEGORY#<path>`.
    let is_top = rule.strip_suffix(PART).and_then(|rule| rule.strip_suffix('#')) == Some(key);
    (is_top || glob(rule, key, true)).then_some(2)
}

fn glob(rule: &str, key: &str, may_span: bool) -> bool {
    let Some((at, wildcard)) = rule.char_indices().find(|(_, c)| matches!(*c, PART | REST)) else { return rule == key };
    let (before, after) = rule.split_at(at);
    let Some(rest) = key.strip_prefix(before) else { return false };
    let after = after.strip_prefix(wildcard).unwrap_or_default();
    let most = if may_span || wildcard == REST { rest.len() } else { rest.find('#').unwrap_or(rest.len()) };
    // The text between two wildcards is short, so trying all ends is quick.
    (0..=most).rev().any(|end| rest.get(end..).is_some_and(|rest| glob(after, rest, may_span)))
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::GetItem => "GetItem",
        Operation::BatchGetItem => "BatchGetItem",
        Operation::Query | Operation::ShardedQuery => "Query",
        Operation::PutItem => "PutItem",
        Operation::UpdateItem => "UpdateItem",
        Operation::DeleteItem => "DeleteItem",
        Operation::TransactWriteItems => "TransactWriteItems",
        Operation::BatchWriteItem => "BatchWriteItem",
    }
}

/// Reads the key text of a pattern, such as `PK = ORG#<id>, SK = ORG; SK = MEMBER#<caller> (check)`.
/// The words between the keys are for people, and are skipped.
fn places(text: &str) -> Vec<PlaceRule> {
    let mut reader = Reader::default();
    for word in with_wildcards(text).split_whitespace() {
        reader.word(word);
    }
    reader.end_segment();
    reader.places
}

#[derive(Default)]
struct Reader {
    places: Vec<PlaceRule>,
    partitions: Vec<String>,
    /// The first partitions of the text.
    first: Vec<String>,
    mode: Mode,
    /// The bounds of a range that has not ended.
    range: Option<(RangeKind, Vec<String>)>,
    /// The number of places at the start of the segment.
    started: usize,
    /// Whether the partitions have a place.
    is_placed: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Mode {
    #[default]
    Neither,
    Partition,
    Sort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RangeKind {
    Under,
    Between,
    UpTo,
}

impl Reader {
    fn word(&mut self, raw: &str) {
        let word = raw.trim_matches(|c: char| matches!(c, ',' | ';' | '(' | ')'));
        match word {
            "check" => self.places.last_mut().into_iter().for_each(|place| place.is_check = true),
            "checks" => self.places.iter_mut().skip(self.started).for_each(|place| place.is_check = true),
            "PK" | "GSI1PK" | "GSI2PK" | "GSI3PK" => {
                self.end_partition();
                self.partitions.clear();
                (self.mode, self.is_placed) = (Mode::Partition, false);
            }
            "SK" | "GSI1SK" | "GSI2SK" | "GSI3SK" => {
                self.end_range();
                // A segment without a partition continues the previous or the first one.
                if self.mode == Mode::Neither {
                    let first = self.first.iter().filter(|first| !self.partitions.contains(first));
                    self.partitions.extend(first.cloned().collect::<Vec<_>>());
                }
                if self.first.is_empty() {
                    self.first.clone_from(&self.partitions);
                }
                self.mode = Mode::Sort;
            }
            "under" if self.mode == Mode::Sort => self.range = Some((RangeKind::Under, Vec::new())),
            "between" | "from" if self.mode == Mode::Sort => self.range = Some((RangeKind::Between, Vec::new())),
            "up" | "below" if self.mode == Mode::Sort => self.range = Some((RangeKind::UpTo, Vec::new())),
            _ if is_key(word) => self.key(word),
            _ => {}
        }
        if raw.ends_with(';') {
            self.end_segment();
        }
    }

    fn key(&mut self, key: &str) {
        match (self.mode, &mut self.range) {
            (Mode::Partition, _) => self.partitions.push(key.to_owned()),
            (Mode::Sort, Some((_, bounds))) => bounds.push(key.to_owned()),
            (Mode::Sort, None) => self.place(SortRule::Is(key.to_owned())),
            (Mode::Neither, _) => {
                self.place(SortRule::Is(key.to_owned()));
                let partitions = vec![key.to_owned()];
                self.places.push(PlaceRule { partitions, sort: SortRule::Any, is_check: false });
            }
        }
    }

    fn place(&mut self, sort: SortRule) {
        self.is_placed = true;
        self.places.push(PlaceRule { partitions: self.partitions.clone(), sort, is_check: false });
    }

    fn end_range(&mut self) {
        let Some((kind, bounds)) = self.range.take() else { return };
        let mut bounds = bounds.into_iter();
        let (first, second) = (bounds.next(), bounds.next());
        let sort = match kind {
            RangeKind::Under => {
                let end = first.as_ref().map(|low| format!("{}$", low.trim_end_matches('#')));
                SortRule::Range(first, end)
            }
            RangeKind::Between => SortRule::Range(first, second),
            RangeKind::UpTo => SortRule::Range(None, first),
        };
        self.place(sort);
    }

    fn end_partition(&mut self) {
        self.end_range();
        if !self.is_placed && !self.partitions.is_empty() {
            self.place(SortRule::Any);
        }
    }

    fn end_segment(&mut self) {
        self.end_partition();
        (self.mode, self.started) = (Mode::Neither, self.places.len());
    }
}

/// Replaces each `<name>` by [`PART`] and each `…` by [`REST`].
fn with_wildcards(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_name = false;
    for c in text.chars() {
        match c {
            '<' => {
                out.push(PART);
                is_name = true;
            }
            '>' => is_name = false,
            '…' => out.push(REST),
            _ if is_name => {}
            _ => out.push(c),
        }
    }
    out
}

fn is_key(word: &str) -> bool {
    let is_name = word.len() > 1 && word.trim_end_matches('$').bytes().all(|byte| byte.is_ascii_uppercase());
    is_name || word.contains(['#', PART, REST])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::built_in;

    /// The requests that the constructors of `key-schema` make, each with its pattern.
    const RECORDED: &str = include_str!("../../../../shared/key-schema/tests/suite/golden/requests.snap");

    fn recorded() -> Vec<(String, Vec<Request>)> {
        let body = RECORDED.splitn(3, "---\n").nth(2).unwrap();
        body.split("\n\n").filter(|block| !block.trim().is_empty()).map(recorded_request).collect()
    }

    fn recorded_request(block: &str) -> (String, Vec<Request>) {
        let mut lines = block.lines();
        let id = lines.next().unwrap().split_whitespace().next().unwrap().to_owned();
        let operation = lines.next().unwrap().trim().to_owned();
        let is_query = operation.ends_with("Query");
        let operation = if is_query { "Query".to_owned() } else { operation };
        let lines: Vec<&str> = lines.filter(|line| !line.starts_with("      ")).map(str::trim).collect();
        let is_strong = lines.contains(&"strongly consistent");
        let request = |index: Option<String>, places| Request {
            operation: operation.clone(),
            index,
            is_strong,
            is_backward: lines.iter().any(|line| line.starts_with("backward")),
            places,
        };
        if is_query {
            let sort = lines.iter().find_map(|line| {
                let (low, high) = line.strip_prefix("from ")?.split_once(" to ")?;
                Some(SortKeys::Between(low.to_owned(), high.to_owned()))
            });
            let sort = sort.unwrap_or(SortKeys::All);
            let partitions = lines.iter().filter_map(|line| {
                let (index, partition) = line.split_once(": ")?;
                let place =
                    Place { partition: partition.to_owned(), sort: sort.clone(), change: Change::Read, entity: None };
                Some(request(index.strip_prefix("GSI").map(|_| index.to_owned()), vec![place]))
            });
            return (id, partitions.collect());
        }
        let places = lines.iter().filter_map(|line| {
            let (what, sort) = line.split_once(" | ")?;
            let words: Vec<&str> = what.split_whitespace().collect();
            let has = |word: &str| words.contains(&word);
            let change = match () {
                () if has("delete") => Change::Deleted,
                () if has("check") => Change::Checked,
                () if has("put") || has("update") => Change::Written,
                () => Change::Read,
            };
            let partition = words.last()?.to_owned().to_owned();
            Some(Place { partition, sort: SortKeys::One(sort.to_owned()), change, entity: None })
        });
        let places: Vec<Place> = places.collect();
        (id, vec![request(None, places)])
    }

    fn matcher() -> Matcher {
        Matcher::new(&serde_json::from_str(built_in::ROUTES).unwrap())
    }

    #[test]
    fn each_patterns_own_requests_find_it_alone_or_among_few() {
        let matcher = matcher();
        let (mut alone, mut all, mut many) = (0, 0, 0);
        let mut missed = Vec::new();
        for (id, requests) in recorded() {
            assert!(!requests.is_empty(), "{id}");
            for request in requests {
                let found = matcher.find(&request, None, None, None);
                if !found.contains(&id.as_str()) {
                    missed.push(format!("{id} is not in {found:?}: {request:?}"));
                }
                all += 1;
                alone += usize::from(found.len() == 1);
                many += usize::from(found.len() > 8);
            }
        }
        assert!(missed.is_empty(), "{} of {all}: {missed:#?}", missed.len());
        assert!(alone * 100 > all * 55 && many * 100 < all * 5, "{alone} alone and {many} among many, of {all}");
    }

    #[test]
    fn a_key_text_is_read_as_places() {
        let place = |partition: &str, sort, is_check| PlaceRule {
            partitions: partition.split(' ').map(str::to_owned).collect(),
            sort,
            is_check,
        };
        let is = |sort: &str| SortRule::Is(sort.to_owned());
        let between = |low: &str, high: &str| SortRule::Range(Some(low.to_owned()), Some(high.to_owned()));
        for (text, expected) in [
            (
                "PK = WALLET#<from> and WALLET#<to>, SK = WALLET; PK = NUMBER#<number>",
                vec![
                    place("WALLET#\u{1} WALLET#\u{1}", is("WALLET"), false),
                    place("NUMBER#\u{1}", SortRule::Any, false),
                ],
            ),
            (
                "PK = ORG#<id>, SK = ORG; SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)",
                vec![
                    place("ORG#\u{1}", is("ORG"), false),
                    place("ORG#\u{1}", is("MEMBER#\u{1}"), true),
                    place("CUSTOMER#\u{1}", is("PROFILE"), true),
                ],
            ),
            (
                "PK = QUESTION#<id>, SK from ANSWER# to QUESTION",
                vec![place("QUESTION#\u{1}", between("ANSWER#", "QUESTION"), false)],
            ),
            (
                "GSI2PK = LIST#<top>#<shard>, GSI2SK under <path>#",
                vec![place("LIST#\u{1}#\u{1}", between("\u{1}#", "\u{1}$"), false)],
            ),
        ] {
            assert_eq!(places(text), expected, "{text}");
        }
    }

    #[test]
    fn the_route_and_the_functions_log_decide_between_patterns_with_the_same_keys() {
        let matcher = matcher();
        let key = Place {
            partition: "CUSTOMER#ann".to_owned(),
            sort: SortKeys::One("PROFILE".to_owned()),
            change: Change::Written,
            entity: None,
        };
        let request = Request {
            operation: "UpdateItem".to_owned(),
            index: None,
            is_strong: false,
            is_backward: false,
            places: vec![key],
        };
        let find = |route, logged| matcher.find(&request, route, Some("Customers"), logged);
        assert!(find(None, None).len() > 1);
        let route = "DELETE /v1/customers/{id}/addresses/{name}";
        assert_eq!(find(Some(route), None), ["customers.remove-address"]);
        let logged = BTreeSet::from(["customers.put-address".to_owned(), "customers.get".to_owned()]);
        assert_eq!(find(None, Some(&logged)), ["customers.put-address"]);
    }
}
