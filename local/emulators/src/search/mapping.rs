use serde_json::{Map, Value};
use tantivy::TantivyDocument;
use tantivy::schema::{
    FAST, Field as Handle, INDEXED, IndexRecordOption, NumericOptions, STRING, Schema, SchemaBuilder,
    TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::analysis::{Analysis, normalize};
use super::problem::Problem;
use super::strict::{Strict, one_or_many};

pub(super) struct Mapping {
    fields: Vec<Field>,
    pub schema: Schema,
    /// The document's id. A new version replaces the document with the same id.
    pub id: Handle,
    /// The document's slot in the table of documents.
    pub slot: Handle,
    pub tokenizers: TokenizerManager,
}

pub(super) struct Field {
    /// Full name of the field, such as `brand.words`.
    pub name: String,
    /// The property of the document that contains the values.
    pub property: String,
    pub kind: Kind,
    /// The tantivy field that indexes the values. `None` if the mapping has `index: false`.
    pub handle: Option<Handle>,
}

pub(super) enum Kind {
    /// Text that is searched as a whole.
    Keyword {
        normalizer: Option<TextAnalyzer>,
    },
    /// Text that is searched by words.
    Text {
        analyzer: TextAnalyzer,
    },
    Long,
    /// An instant in milliseconds since 1970.
    Date,
    Boolean,
}

/// The sort values of a document, for sorting and for counting, in the order of the mapping's
/// fields.
pub(super) type Row = Box<[Values]>;

/// The values of one field of one document, ascending.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    /// The document has no value, or the field does not support sorting.
    None,
    Keywords(Box<[Box<str>]>),
    Longs(Box<[i64]>),
}

impl Mapping {
    /// Reads `settings` and `mappings` of an index. The mapping must be strict and flat. A field
    /// may have subfields (`fields`).
    pub(super) fn parse(definition: &Value) -> Result<Self, Problem> {
        let mut object = Strict::new("index", definition)?;
        let analysis = parse_settings(object.value("settings"))?;
        let mut builder = Builder::new();
        if let Some(mappings) = object.value("mappings") {
            let mut mappings = Strict::new("mappings", mappings)?;
            if mappings.text("dynamic")? != Some("strict") {
                return Err(Problem::mapping("only mappings with [dynamic] [strict] are supported"));
            }
            for (name, definition) in mappings.value("properties").and_then(Value::as_object).into_iter().flatten() {
                builder.add(name, name, definition, &analysis)?;
            }
            mappings.finish()?;
        }
        object.finish()?;
        Ok(builder.build())
    }

    pub(super) fn field(&self, name: &str) -> Option<(usize, &Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.name == name)
    }

    pub(super) fn field_at(&self, position: usize) -> Option<&Field> {
        self.fields.get(position)
    }

    /// Returns the sort values of a document, and the document in tantivy's form.
    pub(super) fn document(&self, source: &Map<String, Value>) -> Result<(Row, TantivyDocument), Problem> {
        let known = |name: &String| self.fields.iter().any(|field| field.property == *name);
        if let Some(name) = source.keys().find(|name| !known(name)) {
            return Err(Problem::unknown_field(name));
        }
        let mut document = TantivyDocument::new();
        let mut row = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let values = source.get(&field.property).map(one_or_many).unwrap_or_default();
            let values: Vec<_> = values.iter().filter(|value| !value.is_null()).collect();
            row.push(field.index(&values, &mut document)?);
        }
        Ok((row.into_boxed_slice(), document))
    }
}

impl Field {
    /// Adds the values to the document for tantivy, and returns the sort values.
    fn index(&self, values: &[&Value], document: &mut TantivyDocument) -> Result<Values, Problem> {
        match &self.kind {
            Kind::Text { .. } => {
                for value in values {
                    let text = self.text(value)?;
                    self.handle.into_iter().for_each(|handle| document.add_text(handle, text));
                }
                Ok(Values::None)
            }
            Kind::Keyword { normalizer } => {
                let mut keywords = Vec::with_capacity(values.len());
                for value in values {
                    let keyword = normalize(normalizer.as_ref(), self.text(value)?);
                    self.handle.into_iter().for_each(|handle| document.add_text(handle, &keyword));
                    keywords.push(keyword.into_boxed_str());
                }
                keywords.sort_unstable();
                Ok(if keywords.is_empty() { Values::None } else { Values::Keywords(keywords.into()) })
            }
            Kind::Long | Kind::Date | Kind::Boolean => {
                let mut longs = Vec::with_capacity(values.len());
                for value in values {
                    let long = self.long(value).ok_or_else(|| self.unreadable())?;
                    self.handle.into_iter().for_each(|handle| document.add_i64(handle, long));
                    longs.push(long);
                }
                longs.sort_unstable();
                Ok(if longs.is_empty() { Values::None } else { Values::Longs(longs.into()) })
            }
        }
    }

    fn text<'v>(&self, value: &'v Value) -> Result<&'v str, Problem> {
        value.as_str().ok_or_else(|| self.unreadable())
    }

    /// Dates become milliseconds, and booleans 0 and 1.
    pub(super) fn long(&self, value: &Value) -> Option<i64> {
        match self.kind {
            Kind::Long => value.as_i64(),
            Kind::Date => value.as_i64().or_else(|| {
                let instant = OffsetDateTime::parse(value.as_str()?, &Rfc3339).ok()?;
                i64::try_from(instant.unix_timestamp_nanos() / 1_000_000).ok()
            }),
            Kind::Boolean => value.as_bool().map(i64::from),
            Kind::Keyword { .. } | Kind::Text { .. } => None,
        }
    }

    fn unreadable(&self) -> Problem {
        let kind = match self.kind {
            Kind::Keyword { .. } => "keyword",
            Kind::Text { .. } => "text",
            Kind::Long => "long",
            Kind::Date => "date",
            Kind::Boolean => "boolean",
        };
        Problem::mapping(format!("failed to parse field [{}] of type [{kind}]", self.name))
    }
}

/// Reads the settings. This emulator uses only `analysis`.
fn parse_settings(settings: Option<&Value>) -> Result<Analysis, Problem> {
    let Some(settings) = settings else {
        return Ok(Analysis::default());
    };
    let mut object = Strict::new("settings", settings)?;
    for inert in ["number_of_shards", "number_of_replicas", "refresh_interval"] {
        object.value(inert);
    }
    let analysis = object.value("analysis").map(Analysis::parse).transpose()?.unwrap_or_default();
    object.finish()?;
    Ok(analysis)
}

struct Builder {
    schema: SchemaBuilder,
    tokenizers: TokenizerManager,
    fields: Vec<Field>,
    id: Handle,
    slot: Handle,
}

impl Builder {
    fn new() -> Self {
        let mut schema = Schema::builder();
        Self {
            id: schema.add_text_field("_id", STRING),
            slot: schema.add_u64_field("_slot", FAST),
            schema,
            tokenizers: TokenizerManager::default(),
            fields: Vec::new(),
        }
    }

    fn add(&mut self, name: &str, property: &str, definition: &Value, analysis: &Analysis) -> Result<(), Problem> {
        let mut object = Strict::new("property", definition)?;
        let indexed = object.flag("index")?.unwrap_or(true);
        let kind = match object.required_text("type")? {
            "keyword" => Kind::Keyword {
                normalizer: object.text("normalizer")?.map(|name| analysis.normalizer(name)).transpose()?,
            },
            "text" => Kind::Text { analyzer: analysis.analyzer(object.required_text("analyzer")?)? },
            "long" => Kind::Long,
            "date" => match object.text("format")? {
                None | Some("strict_date_time") => Kind::Date,
                Some(other) => {
                    return Err(Problem::mapping(format!("date format [{other}] is not supported")));
                }
            },
            "boolean" => Kind::Boolean,
            other => {
                return Err(Problem::mapping(format!("No handler for type [{other}] declared on field [{name}]")));
            }
        };
        let more = object.value("fields").and_then(Value::as_object);
        object.finish()?;
        let handle = indexed.then(|| self.declare(name, &kind));
        self.fields.push(Field { name: name.to_owned(), property: property.to_owned(), kind, handle });
        for (suffix, definition) in more.into_iter().flatten() {
            self.add(&format!("{name}.{suffix}"), property, definition, analysis)?;
        }
        Ok(())
    }

    fn declare(&mut self, name: &str, kind: &Kind) -> Handle {
        match kind {
            // [`Field::index`] normalizes keywords, because they are also sorted in that form. So
            // tantivy need not analyze them.
            Kind::Keyword { .. } => self.schema.add_text_field(name, STRING),
            Kind::Text { analyzer } => {
                self.tokenizers.register(name, analyzer.clone());
                let indexing =
                    TextFieldIndexing::default().set_tokenizer(name).set_index_option(IndexRecordOption::WithFreqs);
                self.schema.add_text_field(name, TextOptions::default().set_indexing_options(indexing))
            }
            Kind::Long | Kind::Date | Kind::Boolean => {
                self.schema.add_i64_field(name, NumericOptions::from(INDEXED) | FAST)
            }
        }
    }

    fn build(self) -> Mapping {
        Mapping {
            fields: self.fields,
            schema: self.schema.build(),
            id: self.id,
            slot: self.slot,
            tokenizers: self.tokenizers,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn mapping() -> Mapping {
        Mapping::parse(&json!({
            "settings": {"analysis": {"normalizer": {"folded": {"filter": ["lowercase"]}}}},
            "mappings": {"dynamic": "strict", "properties": {
                "name": {"type": "keyword", "fields": {"folded": {"type": "keyword", "normalizer": "folded"}}},
                "amount": {"type": "long"},
                "at": {"type": "date", "format": "strict_date_time"},
            }},
        }))
        .unwrap()
    }

    fn row(source: &Value) -> Result<Row, Problem> {
        mapping().document(source.as_object().unwrap()).map(|(row, _)| row)
    }

    #[test]
    fn a_document_has_ascending_values_in_each_of_its_fields() {
        let row = row(&json!({"name": ["B", "a"], "amount": 7, "at": "1970-01-01T00:00:01.500Z"})).unwrap();
        let field = |name| row.get(mapping().field(name).unwrap().0).unwrap().clone();
        assert_eq!(field("name"), Values::Keywords(["B".into(), "a".into()].into()));
        assert_eq!(field("name.folded"), Values::Keywords(["a".into(), "b".into()].into()));
        assert_eq!(field("amount"), Values::Longs([7].into()));
        assert_eq!(field("at"), Values::Longs([1_500].into()));
    }

    #[test]
    fn a_null_counts_as_a_missing_value() {
        assert!(row(&json!({"name": null})).unwrap().iter().all(|values| *values == Values::None));
    }

    #[test]
    fn an_unknown_field_and_a_value_of_another_type_are_refused() {
        assert_eq!(row(&json!({"other": 1})).unwrap_err().kind, "strict_dynamic_mapping_exception");
        for source in [json!({"amount": "x"}), json!({"amount": 1.5}), json!({"name": {"a": 1}}), json!({"at": "now"})]
        {
            assert_eq!(row(&source).unwrap_err().kind, "mapper_parsing_exception");
        }
    }

    #[test]
    fn a_mapping_with_an_unknown_type_or_option_is_refused() {
        for property in [json!({"type": "geo_point"}), json!({"type": "long", "null_value": 1}), json!({"index": true})]
        {
            let definition = json!({"mappings": {"dynamic": "strict", "properties": {"a": property}}});
            assert!(Mapping::parse(&definition).is_err());
        }
        assert!(Mapping::parse(&json!({"mappings": {"dynamic": true}})).is_err());
    }
}
