use std::collections::BTreeMap;

use serde_json::Value;
use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, RawTokenizer, StopWordFilter, TextAnalyzer, Token, TokenFilter, TokenStream,
    Tokenizer,
};
use unicode_segmentation::{UWordBoundIndices, UnicodeSegmentation};

use super::problem::Problem;
use super::strict::Strict;

/// Lucene's list `_english_`.
const ENGLISH_STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
];

#[derive(Default, Clone)]
pub(super) struct Analysis {
    analyzers: BTreeMap<String, TextAnalyzer>,
    normalizers: BTreeMap<String, TextAnalyzer>,
}

impl Analysis {
    /// Reads the object `analysis` of an index's settings. Supported filters: `lowercase`,
    /// `asciifolding`, `stop` with the list `_english_`, and `stemmer` with the language
    /// `minimal_english`. Supported tokenizer: `standard`.
    pub(super) fn parse(settings: &Value) -> Result<Self, Problem> {
        let mut object = Strict::new("analysis", settings)?;
        let filters = named(object.value("filter"), parse_filter)?;
        let analyzers = named(object.value("analyzer"), |definition| {
            let mut object = Strict::new("analyzer", definition)?;
            require_custom(&mut object)?;
            if object.required_text("tokenizer")? != "standard" {
                return Err(Problem::illegal("only the tokenizer [standard] is supported"));
            }
            let analyzer = with_filters(StandardTokenizer::default(), &mut object, &filters)?;
            object.finish()?;
            Ok(analyzer)
        })?;
        let normalizers = named(object.value("normalizer"), |definition| {
            let mut object = Strict::new("normalizer", definition)?;
            require_custom(&mut object)?;
            let normalizer = with_filters(RawTokenizer::default(), &mut object, &filters)?;
            object.finish()?;
            Ok(normalizer)
        })?;
        object.finish()?;
        Ok(Self { analyzers, normalizers })
    }

    pub(super) fn analyzer(&self, name: &str) -> Result<TextAnalyzer, Problem> {
        let found = self.analyzers.get(name).cloned();
        found.ok_or_else(|| Problem::mapping(format!("analyzer [{name}] has not been configured in mappings")))
    }

    pub(super) fn normalizer(&self, name: &str) -> Result<TextAnalyzer, Problem> {
        let found = self.normalizers.get(name).cloned();
        found.ok_or_else(|| Problem::mapping(format!("normalizer [{name}] not found")))
    }
}

pub(super) fn tokens(analyzer: &TextAnalyzer, text: &str) -> Vec<Token> {
    let mut analyzer = analyzer.clone();
    let mut stream = analyzer.token_stream(text);
    let mut tokens = Vec::new();
    while let Some(token) = stream.next() {
        tokens.push(token.clone());
    }
    tokens
}

/// Returns a keyword in the form in which it is indexed and searched.
pub(super) fn normalize(normalizer: Option<&TextAnalyzer>, keyword: &str) -> String {
    match normalizer {
        Some(normalizer) => tokens(normalizer, keyword).into_iter().map(|token| token.text).collect(),
        None => keyword.to_owned(),
    }
}

#[derive(Clone, Copy)]
enum Filter {
    Lowercase,
    AsciiFolding,
    EnglishStopWords,
    EnglishPlurals,
}

impl Filter {
    fn built_in(name: &str) -> Option<Self> {
        match name {
            "lowercase" => Some(Self::Lowercase),
            "asciifolding" => Some(Self::AsciiFolding),
            _ => None,
        }
    }
}

fn parse_filter(definition: &Value) -> Result<Filter, Problem> {
    let mut object = Strict::new("filter", definition)?;
    let filter = match object.required_text("type")? {
        "stop" if object.text("stopwords")? == Some("_english_") => Filter::EnglishStopWords,
        "stemmer" if object.text("language")? == Some("minimal_english") => Filter::EnglishPlurals,
        other => {
            return Err(Problem::illegal(format!("filter type [{other}] with these options is not supported")));
        }
    };
    object.finish()?;
    Ok(filter)
}

fn named<T>(
    definitions: Option<&Value>,
    parse: impl Fn(&Value) -> Result<T, Problem>,
) -> Result<BTreeMap<String, T>, Problem> {
    let definitions = definitions.and_then(Value::as_object).into_iter().flatten();
    definitions.map(|(name, definition)| Ok((name.clone(), parse(definition)?))).collect()
}

fn require_custom(object: &mut Strict<'_>) -> Result<(), Problem> {
    match object.text("type")? {
        None | Some("custom") => Ok(()),
        Some(other) => Err(Problem::illegal(format!("type [{other}] is not supported"))),
    }
}

fn with_filters(
    tokenizer: impl Tokenizer,
    object: &mut Strict<'_>,
    defined: &BTreeMap<String, Filter>,
) -> Result<TextAnalyzer, Problem> {
    let mut builder = TextAnalyzer::builder(tokenizer).dynamic();
    for name in object.list("filter")?.into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        let filter = defined.get(name).copied().or_else(|| Filter::built_in(name));
        builder = match filter.ok_or_else(|| Problem::illegal(format!("filter [{name}] is not supported")))? {
            Filter::Lowercase => builder.filter_dynamic(LowerCaser),
            Filter::AsciiFolding => builder.filter_dynamic(AsciiFoldingFilter),
            Filter::EnglishStopWords => {
                builder.filter_dynamic(StopWordFilter::remove(ENGLISH_STOP_WORDS.map(str::to_owned)))
            }
            Filter::EnglishPlurals => builder.filter_dynamic(EnglishPlurals),
        };
    }
    Ok(builder.build())
}

/// Splits a text into words by Unicode Standard Annex 29, like Lucene's `standard` tokenizer.
/// `3.5`, `don't` and `foo_bar` are one word each. `/` and `-` separate words.
#[derive(Clone, Default)]
struct StandardTokenizer {
    token: Token,
}

struct StandardTokenStream<'a> {
    words: UWordBoundIndices<'a>,
    token: &'a mut Token,
}

impl Tokenizer for StandardTokenizer {
    type TokenStream<'a> = StandardTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> StandardTokenStream<'a> {
        self.token.reset();
        StandardTokenStream { words: text.split_word_bound_indices(), token: &mut self.token }
    }
}

impl TokenStream for StandardTokenStream<'_> {
    fn advance(&mut self) -> bool {
        // The iterator also returns the spaces and the punctuation between words, which are
        // skipped.
        let Some((start, word)) = self.words.by_ref().find(|(_, word)| word.contains(char::is_alphanumeric)) else {
            return false;
        };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.offset_from = start;
        self.token.offset_to = start + word.len();
        self.token.text.clear();
        self.token.text.push_str(word);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Converts plurals to singulars: Harman's "S-stemmer", like Lucene's `minimal_english`.
#[derive(Clone)]
struct EnglishPlurals;

#[derive(Clone)]
struct Singular<T>(T);

struct SingularStream<T>(T);

impl TokenFilter for EnglishPlurals {
    type Tokenizer<T: Tokenizer> = Singular<T>;

    fn transform<T: Tokenizer>(self, tokenizer: T) -> Singular<T> {
        Singular(tokenizer)
    }
}

impl<T: Tokenizer> Tokenizer for Singular<T> {
    type TokenStream<'a> = SingularStream<T::TokenStream<'a>>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        SingularStream(self.0.token_stream(text))
    }
}

impl<T: TokenStream> TokenStream for SingularStream<T> {
    fn advance(&mut self) -> bool {
        let advanced = self.0.advance();
        if advanced {
            to_singular(&mut self.0.token_mut().text);
        }
        advanced
    }

    fn token(&self) -> &Token {
        self.0.token()
    }

    fn token_mut(&mut self) -> &mut Token {
        self.0.token_mut()
    }
}

/// Converts `ponies` to `pony`, `bars` to `bar` and `boxes` to `boxe`. It does not change `glass`,
/// `cactus`, `shoes` and `as`.
fn to_singular(word: &mut String) {
    let Some(stem) = word.strip_suffix('s').filter(|stem| stem.chars().nth(1).is_some()) else { return };
    if let Some(shorter) = stem.strip_suffix("ie")
        && shorter.chars().next_back().is_some_and(|last| !matches!(last, 'a' | 'e'))
    {
        word.truncate(shorter.len());
        word.push('y');
    } else if !["u", "s", "ie", "ae", "oe", "ee"].iter().any(|ending| stem.ends_with(ending)) {
        word.truncate(stem.len());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn analysis() -> Analysis {
        Analysis::parse(&json!({
            "filter": {
                "stop": {"type": "stop", "stopwords": "_english_"},
                "plurals": {"type": "stemmer", "language": "minimal_english"},
            },
            "analyzer": {
                "words": {
                    "type": "custom", "tokenizer": "standard",
                    "filter": ["lowercase", "asciifolding", "stop", "plurals"],
                },
            },
            "normalizer": {"folded": {"type": "custom", "filter": ["lowercase", "asciifolding"]}},
        }))
        .unwrap()
    }

    #[test]
    fn text_becomes_the_tokens_that_opensearch_makes_of_it() {
        // The expected tokens are the response of `_analyze` in OpenSearch 2.19 for the same
        // definition.
        let text = "The Crushed/Cubed Café foo_bar 3.5 don't 日本語";
        let tokens = tokens(&analysis().analyzer("words").unwrap(), text);
        let words: Vec<_> = tokens.iter().map(|token| token.text.as_str()).collect();
        assert_eq!(words, ["crushed", "cubed", "cafe", "foo_bar", "3.5", "don't", "日", "本", "語"]);
    }

    #[test]
    fn plurals_become_the_singulars_that_opensearch_makes_of_them() {
        for (plural, singular) in [
            ("ponies", "pony"),
            ("bars", "bar"),
            ("boxes", "boxe"),
            ("ies", "ies"),
            ("ties", "ty"),
            ("glass", "glass"),
            ("cactus", "cactus"),
            ("shoes", "shoes"),
            ("trees", "trees"),
            ("es", "es"),
            ("yes", "ye"),
            ("gas", "ga"),
            ("as", "as"),
            ("äs", "äs"),
            ("s", "s"),
            ("milk", "milk"),
        ] {
            let mut word = plural.to_owned();
            to_singular(&mut word);
            assert_eq!(word, singular, "{plural}");
        }
    }

    #[test]
    fn a_normalizer_keeps_the_keyword_whole() {
        assert_eq!(normalize(Some(&analysis().normalizer("folded").unwrap()), "Éclair 5 OZ"), "eclair 5 oz");
        assert_eq!(normalize(None, "Éclair"), "Éclair");
    }

    #[test]
    fn a_filter_or_tokenizer_that_is_not_known_is_refused() {
        for settings in [
            json!({"analyzer": {"a": {"tokenizer": "whitespace"}}}),
            json!({"analyzer": {"a": {"tokenizer": "standard", "filter": ["synonym"]}}}),
            json!({"filter": {"f": {"type": "stemmer", "language": "german"}}}),
            json!({"char_filter": {}}),
        ] {
            assert!(Analysis::parse(&settings).is_err());
        }
    }
}
