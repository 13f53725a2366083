//! Reads the table's definition, and builds the requests that create an equal table.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::TemplateError;
use crate::section::Section;

/// An `AWS::DynamoDB::Table`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    pub logical_id: String,
    /// Type (`S`, `N` or `B`) of every key attribute, by name.
    pub attribute_types: BTreeMap<String, String>,
    pub key: KeyAttributes,
    /// The global secondary indexes, in the order of the template.
    pub indexes: Vec<Index>,
    /// Content of stream records, e.g. `NEW_AND_OLD_IMAGES`. `None` if there is no stream.
    pub stream_view: Option<String>,
    /// The attribute with the time at which an item expires, in seconds since 1970. `None` if items
    /// do not expire.
    pub ttl_attribute: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyAttributes {
    pub partition: String,
    pub sort: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Name of the index, e.g. `GSI1`.
    pub name: String,
    pub key: KeyAttributes,
    pub projection: Projection,
}

/// The attributes of an index in addition to its key and the table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Projection {
    /// No other attributes.
    KeysOnly,
    /// These attributes, if the item has them.
    Include(Vec<String>),
    /// The whole item.
    All,
}

impl TableDefinition {
    #[must_use]
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// The request omits deletion protection and backups, which only a table in production needs.
    #[must_use]
    pub fn create_table_request(&self, table_name: &str) -> Json {
        let attributes: Vec<Json> = self
            .attribute_types
            .iter()
            .map(|(name, kind)| json!({"AttributeName": name, "AttributeType": kind}))
            .collect();
        let indexes: Vec<Json> = self.indexes.iter().map(Index::request).collect();
        let mut request = json!({
            "TableName": table_name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": attributes,
            "KeySchema": self.key.request(),
        });
        if let Some(fields) = request.as_object_mut() {
            if !indexes.is_empty() {
                fields.insert("GlobalSecondaryIndexes".to_owned(), Json::Array(indexes));
            }
            if let Some(view) = &self.stream_view {
                fields.insert("StreamSpecification".to_owned(), json!({"StreamEnabled": true, "StreamViewType": view}));
            }
        }
        request
    }

    /// Returns `None` if items do not expire.
    #[must_use]
    pub fn time_to_live_request(&self, table_name: &str) -> Option<Json> {
        self.ttl_attribute.as_ref().map(|attribute| {
            json!({
                "TableName": table_name,
                "TimeToLiveSpecification": {"AttributeName": attribute, "Enabled": true},
            })
        })
    }
}

impl Index {
    fn request(&self) -> Json {
        let projection = match &self.projection {
            Projection::KeysOnly => json!({"ProjectionType": "KEYS_ONLY"}),
            Projection::All => json!({"ProjectionType": "ALL"}),
            Projection::Include(attributes) => {
                json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": attributes})
            }
        };
        json!({"IndexName": self.name, "KeySchema": self.key.request(), "Projection": projection})
    }
}

impl KeyAttributes {
    fn request(&self) -> Json {
        json!([
            {"AttributeName": self.partition, "KeyType": "HASH"},
            {"AttributeName": self.sort, "KeyType": "RANGE"},
        ])
    }
}

pub(crate) fn read(id: &str, properties: &Section) -> Result<TableDefinition, TemplateError> {
    let mut attribute_types = BTreeMap::new();
    for attribute in properties.require("AttributeDefinitions")?.items()? {
        let kind = attribute.require("AttributeType")?;
        let text = kind.text()?;
        if !["S", "N", "B"].contains(&text.as_str()) {
            return Err(kind.error(format!("must be S, N or B, not {text}")));
        }
        attribute_types.insert(attribute.require("AttributeName")?.text()?, text);
    }
    let key = read_key(&properties.require("KeySchema")?, &attribute_types)?;

    let mut indexes: Vec<Index> = Vec::new();
    if let Some(list) = properties.get("GlobalSecondaryIndexes")? {
        for section in list.items()? {
            let index = Index {
                name: section.require("IndexName")?.text()?,
                key: read_key(&section.require("KeySchema")?, &attribute_types)?,
                projection: read_projection(&section.require("Projection")?)?,
            };
            if indexes.iter().any(|other| other.name == index.name) {
                return Err(section.error(format!("two indexes have the name {}", index.name)));
            }
            indexes.push(index);
        }
    }

    let stream_view = match properties.get("StreamSpecification")? {
        Some(stream) => {
            let view = stream.require("StreamViewType")?;
            let text = view.text()?;
            let known = ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"];
            if !known.contains(&text.as_str()) {
                return Err(view.error(format!("{text} is not a view of a stream")));
            }
            Some(text)
        }
        None => None,
    };
    let ttl_attribute = match properties.get("TimeToLiveSpecification")? {
        Some(ttl) if ttl.require("Enabled")?.flag()? => Some(ttl.require("AttributeName")?.text()?),
        _ => None,
    };
    Ok(TableDefinition { logical_id: id.to_owned(), attribute_types, key, indexes, stream_view, ttl_attribute })
}

fn read_key(schema: &Section, types: &BTreeMap<String, String>) -> Result<KeyAttributes, TemplateError> {
    let mut partition = None;
    let mut sort = None;
    for part in schema.items()? {
        let name = part.require("AttributeName")?.text()?;
        if !types.contains_key(&name) {
            return Err(part.error(format!("{name} is not among AttributeDefinitions")));
        }
        let role = part.require("KeyType")?;
        match role.text()?.as_str() {
            "HASH" => partition = Some(name),
            "RANGE" => sort = Some(name),
            other => return Err(role.error(format!("must be HASH or RANGE, not {other}"))),
        }
    }
    match (partition, sort) {
        (Some(partition), Some(sort)) => Ok(KeyAttributes { partition, sort }),
        _ => Err(schema.error("a HASH and a RANGE attribute are needed")),
    }
}

fn read_projection(section: &Section) -> Result<Projection, TemplateError> {
    let kind = section.require("ProjectionType")?;
    match kind.text()?.as_str() {
        "KEYS_ONLY" => Ok(Projection::KeysOnly),
        "ALL" => Ok(Projection::All),
        "INCLUDE" => Ok(Projection::Include(section.require("NonKeyAttributes")?.texts()?)),
        other => Err(kind.error(format!("{other} is not a projection"))),
    }
}
