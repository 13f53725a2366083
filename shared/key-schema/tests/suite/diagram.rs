//! The generator of `docs/entities.md`: one entity relationship diagram for each area of the
//! schema.
//!
//! The golden items give the keys, and the attributes give the references. So a diagram cannot show
//! a relation that the stored items do not have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use key_schema::entity::AnyEntity;
use key_schema::item::{Item, entity_name};
use serde_dynamo::AttributeValue;

use crate::docs::keep_fresh;
use crate::goldens::{Golden, goldens};
use crate::templates::template;
use crate::world::World;

const AREAS: [(&str, &str); 9] = [
    ("customers", "Customers"),
    ("catalogue", "The catalogue"),
    ("content", "Pictures and documents"),
    ("orders", "Orders, sales and picking"),
    ("payments", "Money"),
    ("community", "Community and organizations"),
    ("agents", "Agents"),
    ("webhooks", "Webhooks"),
    ("operations", "Operations"),
];

/// References whose attribute does not name the entity. An attribute such as `order_id` names its
/// entity, so it needs no row here.
const REFERENCES: [(&str, &str, &str); 20] = [
    ("CategoryMove", "from", "CategoryAbout"),
    ("CategoryNode", "path", "CategoryAbout"),
    ("CheckoutSession", "agent", "Agent"),
    ("CustomerOrder", "id", "Order"),
    ("CustomerQuestion", "id", "Question"),
    ("CustomerUses", "customer", "Customer"),
    ("Document", "owner_id", "Customer"),
    ("Document", "editors", "Customer"),
    ("Follow", "followed_id", "Customer"),
    ("Invitation", "inviter", "Customer"),
    ("Invitation", "team", "Team"),
    ("Member", "team", "Team"),
    ("Membership", "path", "CategoryAbout"),
    ("Order", "origin", "CheckoutSession"),
    ("Product", "category_path", "CategoryAbout"),
    ("Product", "parent", "Product"),
    ("QuotaDay", "customer", "Customer"),
    ("Stock", "location", "StockLocation"),
    ("WalletEntry", "counterparty", "Customer"),
    ("WebhookDelivery", "endpoint_id", "WebhookEndpoint"),
];

/// A relation of an entity to another entity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Relation {
    from: String,
    to: String,
    /// The attribute that has the id, or nothing if both entities are in one item collection.
    attribute: Option<String>,
    /// Whether several `from` belong to one `to`.
    many: bool,
}

/// An entity as its golden items show it.
struct Shown {
    partition: String,
    sort: String,
    attributes: BTreeSet<String>,
}

#[test]
fn the_diagrams_of_the_entities_are_fresh() {
    let relations = relations();
    let areas = areas();
    let mut page = String::from(
        "# Entities

The diagrams show the entities of the table and their relations, one diagram for each area of
[key-schema](../shared/key-schema). `UPDATE_DOCS=1 cargo test -p bodega-key-schema` generates them
from the stored examples. [access-patterns](access-patterns/README.md#entities) has the keys and the
attributes.

- A solid line leads from the root of an item collection to another item of the same partition. One
  Query reads them together.
- A dotted line leads from an item to another item, which has the first item's id in the named
  attribute. The two items are in different partitions.
",
    );
    for (folder, title) in AREAS {
        let own: BTreeSet<&str> =
            areas.iter().filter(|(_, area)| *area == folder).map(|(name, _)| name.as_str()).collect();
        assert!(!own.is_empty(), "{folder} has no entity");
        write!(page, "\n## {title}\n\n```mermaid\nerDiagram\n").unwrap();
        let drawn: Vec<&Relation> = relations.iter().filter(|relation| own.contains(relation.from.as_str())).collect();
        let related = |name: &str| drawn.iter().any(|relation| relation.from == name || relation.to == name);
        for relation in &drawn {
            let (line, label) = relation.attribute.as_ref().map_or(("--", "collection"), |name| ("..", name.as_str()));
            let end = if relation.many { "o{" } else { "o|" };
            writeln!(page, "  {} ||{line}{end} {} : \"{label}\"", relation.to, relation.from).unwrap();
        }
        for name in own.iter().filter(|name| !related(name)) {
            writeln!(page, "  {name}").unwrap();
        }
        page.push_str("```\n");
    }
    keep_fresh("entities.md", &page);
}

#[test]
fn a_diagram_shows_collections_and_references() {
    let relations = relations();
    let shows = |from: &str, to: &str, attribute: Option<&str>, many: bool| {
        let relation = Relation { from: from.into(), to: to.into(), attribute: attribute.map(str::to_owned), many };
        assert!(relations.contains(&relation), "{relation:?} is not among {relations:#?}");
    };
    shows("OrderLine", "Order", None, true);
    shows("OrderLine", "Product", Some("product_id"), true);
    shows("ReviewStats", "Product", None, false);
    shows("Stock", "Product", Some("product_id"), true);
    shows("LikeCount", "Product", None, true);
    shows("CustomerOrder", "Customer", None, true);
    shows("CustomerOrder", "Order", Some("id"), true);
    shows("Wallet", "Customer", Some("customer_id"), false);
    assert!(!relations.iter().any(|relation| relation.from == relation.to));
}

#[test]
fn every_entity_is_in_an_area_and_every_named_reference_exists() {
    let areas = areas();
    let names: BTreeSet<&str> = areas.keys().map(String::as_str).collect();
    let all: BTreeSet<&str> = AnyEntity::NAMES.iter().copied().collect();
    assert_eq!(names, all);
    let shown = shown();
    for (entity, attribute, target) in REFERENCES {
        assert!(shown[entity].attributes.contains(attribute) && all.contains(target), "{entity}.{attribute}");
    }
}

fn shown() -> BTreeMap<String, Shown> {
    let mut shown: BTreeMap<String, Shown> = BTreeMap::new();
    for Golden { item, .. } in goldens(&World::plain()) {
        let name = entity_name(&item).unwrap().to_owned();
        let attributes = item.keys().cloned().collect();
        let first = shown.entry(name).or_insert_with(|| Shown {
            partition: part(&item, "PK"),
            sort: part(&item, "SK"),
            attributes: BTreeSet::new(),
        });
        first.attributes = first.attributes.union(&attributes).cloned().collect();
    }
    shown
}

fn part(item: &Item, attribute: &str) -> String {
    let AttributeValue::S(key) = &item[attribute] else { panic!("{attribute} is not a string") };
    template(item, key)
}

/// Returns the kind of a partition: its prefix and the number of further parts. `ORDER#<id>` and
/// `ORDER#<order_id>` are both of the kind `ORDER#1`.
fn kind(partition: &str) -> String {
    let mut parts = partition.split('#');
    format!("{}#{}", parts.next().unwrap_or_default(), parts.count())
}

/// Returns whether an item is the root of its item collection.
fn is_root(shown: &Shown) -> bool {
    let prefix = shown.partition.split('#').next().unwrap_or_default();
    shown.partition.contains('<') && (shown.sort == prefix || ["PROFILE", "ABOUT"].contains(&shown.sort.as_str()))
}

fn relations() -> BTreeSet<Relation> {
    let shown = shown();
    let roots: BTreeMap<String, &String> =
        shown.iter().filter(|(_, shown)| is_root(shown)).map(|(name, shown)| (kind(&shown.partition), name)).collect();
    let mut relations = BTreeSet::new();
    for (name, item) in &shown {
        let root = roots.get(&kind(&item.partition)).filter(|root| **root != name);
        if let Some(root) = root {
            let many = item.sort.contains('<');
            relations.insert(Relation { from: name.clone(), to: (*root).clone(), attribute: None, many });
        }
        for attribute in &item.attributes {
            let Some(target) = target(name, attribute, &shown) else { continue };
            // A diagram shows no line from an entity to itself. It shows no reference to the root
            // of the item's collection either, because the solid line already leads to the root.
            if *name == target
                || root.is_some_and(|root| **root == target && item.partition.ends_with(&format!("<{attribute}>")))
            {
                continue;
            }
            let many = !(is_root(item) && item.partition.ends_with(&format!("#<{attribute}>")));
            relations.insert(Relation { from: name.clone(), to: target, attribute: Some(attribute.clone()), many });
        }
    }
    relations
}

/// Returns the entity whose id an attribute has.
fn target(entity: &str, attribute: &str, shown: &BTreeMap<String, Shown>) -> Option<String> {
    let named = REFERENCES.iter().find(|(from, name, _)| *from == entity && *name == attribute);
    if let Some((_, _, target)) = named {
        return Some((*target).to_owned());
    }
    let stem = attribute.strip_suffix("_id")?;
    shown.keys().find(|name| name.eq_ignore_ascii_case(stem)).cloned()
}

/// Returns the area of each entity: the folder of key-schema that declares it.
fn areas() -> BTreeMap<String, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut areas = BTreeMap::new();
    for (folder, _) in AREAS {
        let mut open: Vec<PathBuf> = vec![source.join(folder)];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for rest in text.split("Entity for ").skip(1) {
                let name = rest.split([' ', '{']).next().unwrap_or_default();
                // These entities are stored under other names.
                let name = match name {
                    "StoreLocation" => "Store",
                    "SaleRegion" => "SalePlace",
                    "RegionSales" => "PlaceSales",
                    name => name,
                };
                areas.insert(name.to_owned(), folder.to_owned());
            }
        }
    }
    areas
}
