use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Error;
use super::aliases::{Aliases, Patterns};
use super::index::{Index, OpenError};
use super::mapping::Mapping;
use super::problem::Problem;
use super::strict::{Strict, only_entry};

/// The file in the data folder with all state except the documents.
const STATE_FILE: &str = "indices.json";

pub(super) struct Cluster {
    folder: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    definitions: Definitions,
    open: BTreeMap<String, Arc<Mutex<Index>>>,
}

#[derive(Default, Clone, Serialize, Deserialize)]
struct Definitions {
    templates: BTreeMap<String, Template>,
    indices: BTreeMap<String, Value>,
    aliases: Aliases,
}

#[derive(Clone, Serialize, Deserialize)]
struct Template {
    patterns: Vec<String>,
    definition: Value,
}

/// An index that a request names directly or by an alias.
pub(super) struct Target {
    pub name: String,
    pub index: Arc<Mutex<Index>>,
    pub by_alias: bool,
}

impl Target {
    pub(super) fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// Opens the data in the folder. Without a folder all data is in memory.
    pub(super) fn open(folder: Option<&Path>) -> Result<Self, Error> {
        let mut state = State::default();
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.to_owned(), source })?;
            state.definitions = read_definitions(&folder.join(STATE_FILE))?;
            for (name, definition) in &state.definitions.indices {
                let file = documents_file(folder, name);
                let index = Index::open(definition, Some(&file)).map_err(|error| match error {
                    OpenError::File(error) => error,
                    OpenError::Definition(problem) => {
                        Error::Damaged { path: folder.join(STATE_FILE), reason: problem.reason }
                    }
                })?;
                state.open.insert(name.clone(), Arc::new(Mutex::new(index)));
            }
        }
        Ok(Self { folder: folder.map(Path::to_owned), state: Mutex::new(state) })
    }

    /// Returns the index with this name or alias. An alias must have only one index.
    pub(super) fn target(&self, name: &str) -> Result<Target, Problem> {
        let state = self.lock();
        let by_alias = state.definitions.aliases.contains(name);
        let mut indices = state.definitions.aliases.indices(name);
        let index = match (indices.next(), indices.next()) {
            (None, _) => name,
            (Some(index), None) => index,
            (Some(_), Some(_)) => return Err(Problem::many_indices(name)),
        };
        state.target(index, by_alias)
    }

    /// Returns the indices that match names and patterns, directly or by alias. A name must exist.
    /// A pattern may match nothing.
    pub(super) fn targets(&self, expression: &str) -> Result<Vec<Target>, Problem> {
        let patterns = Patterns::parse(expression)?;
        let state = self.lock();
        let aliases = &state.definitions.aliases;
        if let Some(missing) =
            patterns.literals().find(|name| !state.open.contains_key(*name) && !aliases.contains(name))
        {
            return Err(Problem::no_such_index(missing));
        }
        let named = aliases.names().filter(|alias| patterns.match_name(alias)).flat_map(|alias| aliases.indices(alias));
        let mut indices: Vec<_> = state.open.keys().filter(|name| patterns.match_name(name)).chain(named).collect();
        indices.sort_unstable();
        indices.dedup();
        indices.into_iter().map(|index| state.target(index, false)).collect()
    }

    /// `GET /<index>`: returns the definitions of indices.
    pub(super) fn describe(&self, expression: &str) -> Result<Value, Problem> {
        let targets = self.targets(expression)?;
        let state = self.lock();
        let described = targets.into_iter().filter_map(|target| {
            let definition = state.definitions.indices.get(&target.name)?;
            let part = |key| definition.get(key).cloned().unwrap_or_else(|| json!({}));
            let aliases = state.definitions.aliases.of_index(&target.name, |_| true);
            let about = json!({"aliases": aliases, "mappings": part("mappings"), "settings": part("settings")});
            Some((target.name, about))
        });
        Ok(Value::Object(described.collect()))
    }

    /// `GET /_alias/<alias>`: returns the matching aliases by index, and the requested names that
    /// are not aliases.
    pub(super) fn aliases(&self, expression: &str) -> Result<(Value, Vec<String>), Problem> {
        let patterns = Patterns::parse(expression)?;
        let state = self.lock();
        let aliases = &state.definitions.aliases;
        let missing = patterns.literals().filter(|name| !aliases.contains(name)).map(str::to_owned).collect();
        let named = state.open.keys().filter_map(|index| {
            let aliases = aliases.of_index(index, |alias| patterns.match_name(alias));
            let any = aliases.as_object().is_some_and(|aliases| !aliases.is_empty());
            any.then(|| (index.clone(), json!({"aliases": aliases})))
        });
        Ok((Value::Object(named.collect()), missing))
    }

    pub(super) fn has_template(&self, name: &str) -> bool {
        self.lock().definitions.templates.contains_key(name)
    }

    /// `PUT /_index_template/<name>`: stores a template. Its patterns may end in `*`.
    pub(super) fn put_template(&self, name: &str, body: &Value) -> Result<(), Problem> {
        let mut object = Strict::new("index_template", body)?;
        let patterns = object.list("index_patterns")?.into_iter().flatten().filter_map(Value::as_str);
        let patterns: Vec<_> = patterns.map(str::to_owned).collect();
        let definition = object.value("template").cloned().unwrap_or_else(|| json!({}));
        object.finish()?;
        if patterns.is_empty() {
            return Err(Problem::illegal("[index_patterns] must name at least one pattern"));
        }
        Mapping::parse(&definition)?;
        self.change(|state| {
            state.definitions.templates.insert(name.to_owned(), Template { patterns, definition });
            Ok(())
        })
    }

    /// `PUT /<index>`: creates an index with the aliases in the body. If the body has no
    /// definition, the matching template defines the index.
    pub(super) fn create_index(&self, name: &str, body: &Value) -> Result<(), Problem> {
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        if !name.chars().all(valid) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || name.len() > 255 {
            return Err(Problem::index_name(name));
        }
        let mut own = body.clone();
        let aliases = own.as_object_mut().and_then(|own| own.remove("aliases")).unwrap_or_else(|| json!({}));
        let file = self.folder.as_ref().map(|folder| documents_file(folder, name));
        self.change(|state| {
            if state.open.contains_key(name) || state.definitions.aliases.contains(name) {
                return Err(Problem::index_exists(name));
            }
            let definition = state.definitions.for_new_index(name, &own)?;
            let mut next = state.definitions.aliases.clone();
            for (alias, options) in aliases.as_object().into_iter().flatten() {
                Strict::new("alias", options)?.finish()?;
                next.add(name, alias);
            }
            state.check_names(&next, Some(name))?;
            let index = Index::open(&definition, file.as_deref()).map_err(|error| match error {
                OpenError::Definition(problem) => problem,
                OpenError::File(error) => Problem::internal(error),
            })?;
            state.definitions.indices.insert(name.to_owned(), definition);
            state.definitions.aliases = next;
            state.open.insert(name.to_owned(), Arc::new(Mutex::new(index)));
            Ok(())
        })
    }

    /// `DELETE /<index>`: deletes an index, its documents and its entries in aliases.
    pub(super) fn delete_index(&self, name: &str) -> Result<(), Problem> {
        self.change(|state| {
            if state.definitions.aliases.contains(name) {
                return Err(Problem::illegal(format!(
                    "The provided expression [{name}] matches an alias, specify the corresponding concrete indices \
                    instead."
                )));
            }
            state.open.remove(name).ok_or_else(|| Problem::no_such_index(name))?;
            state.definitions.indices.remove(name);
            state.definitions.aliases.remove_index(name);
            Ok(())
        })?;
        match self.folder.as_ref().map(|folder| fs::remove_file(documents_file(folder, name))) {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => Err(Problem::internal(error)),
            _ => Ok(()),
        }
    }

    /// `PUT /<index>/_mapping`: adds fields. Existing fields must not change, although OpenSearch
    /// would allow changes of some options.
    pub(super) fn add_fields(&self, name: &str, body: &Value) -> Result<(), Problem> {
        let target = self.target(name)?;
        self.change(|state| {
            let definition = state.definitions.indices.get_mut(&target.name);
            let definition = definition.ok_or_else(|| Problem::no_such_index(&target.name))?;
            if let Some(extended) = with_fields(definition, body)? {
                target.lock().redefine(&extended)?;
                *definition = extended;
            }
            Ok(())
        })
    }

    /// `POST /_aliases`: adds and removes aliases. It makes all of the changes, or none.
    pub(super) fn change_aliases(&self, body: &Value) -> Result<(), Problem> {
        let mut object = Strict::new("aliases", body)?;
        let actions = object.list("actions")?.ok_or_else(|| Problem::illegal("No action specified"))?;
        object.finish()?;
        self.change(|state| {
            let mut aliases = state.definitions.aliases.clone();
            for action in actions {
                let (kind, action) = only_entry("action", action)?;
                let mut object = Strict::new(kind, action)?;
                let (index, alias) = (object.required_text("index")?, object.required_text("alias")?);
                object.finish()?;
                if !state.open.contains_key(index) {
                    return Err(Problem::no_such_index(index));
                }
                match kind {
                    "add" => aliases.add(index, alias),
                    "remove" => aliases.remove(index, alias)?,
                    other => return Err(Problem::parsing(format!("[aliases] unknown field [{other}]"))),
                }
            }
            state.check_names(&aliases, None)?;
            state.definitions.aliases = aliases;
            Ok(())
        })
    }

    /// Makes a change and, if there is a folder, stores it.
    fn change(&self, change: impl FnOnce(&mut State) -> Result<(), Problem>) -> Result<(), Problem> {
        let mut state = self.lock();
        change(&mut state)?;
        if let Some(folder) = &self.folder {
            write_definitions(&folder.join(STATE_FILE), &state.definitions).map_err(Problem::internal)?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn target(&self, index: &str, by_alias: bool) -> Result<Target, Problem> {
        let open = self.open.get(index).cloned().ok_or_else(|| Problem::no_such_index(index))?;
        Ok(Target { name: index.to_owned(), index: open, by_alias })
    }

    /// Checks that no alias has the name of an index. `new_index` is an index that does not exist
    /// yet.
    fn check_names(&self, aliases: &Aliases, new_index: Option<&str>) -> Result<(), Problem> {
        let is_index = |alias: &str| self.open.contains_key(alias) || new_index == Some(alias);
        match aliases.names().find(|alias| is_index(alias)) {
            Some(alias) => Err(Problem::illegal(format!("an index exists with the same name as the alias [{alias}]"))),
            None => Ok(()),
        }
    }
}

impl Definitions {
    fn for_new_index(&self, name: &str, body: &Value) -> Result<Value, Problem> {
        if body.as_object().is_some_and(|body| !body.is_empty()) {
            return Ok(body.clone());
        }
        let mut fitting = self.templates.values().filter(|template| template.fits(name));
        match (fitting.next(), fitting.next()) {
            (Some(_), Some(_)) => Err(Problem::illegal(format!("more than one template fits [{name}]"))),
            (template, _) => Ok(template.map_or_else(|| json!({}), |template| template.definition.clone())),
        }
    }
}

impl Template {
    fn fits(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        })
    }
}

/// Returns the definition with the fields of the mapping added, or `None` if it already has all of
/// them.
fn with_fields(definition: &Value, mapping: &Value) -> Result<Option<Value>, Problem> {
    let mut object = Strict::new("mappings", mapping)?;
    let dynamic = object.text("dynamic")?;
    let added = object.value("properties").and_then(Value::as_object);
    object.finish()?;
    if dynamic.is_some_and(|dynamic| dynamic != "strict") {
        return Err(Problem::mapping("only mappings with [dynamic] [strict] are supported"));
    }
    let mut extended = definition.clone();
    let Some(properties) = extended.pointer_mut("/mappings/properties").and_then(Value::as_object_mut) else {
        return Err(Problem::mapping("a mapping without fields accepts no new fields"));
    };
    let before = properties.len();
    for (name, property) in added.into_iter().flatten() {
        match properties.get(name) {
            None => {
                properties.insert(name.clone(), property.clone());
            }
            Some(current) if current == property => {}
            Some(_) => return Err(Problem::illegal(format!("mapper [{name}] cannot be changed"))),
        }
    }
    let is_extended = properties.len() > before;
    Ok(is_extended.then_some(extended))
}

/// Returns the file of an index. An index name is always a valid file name.
fn documents_file(folder: &Path, index: &str) -> PathBuf {
    folder.join(format!("{index}.ndjson"))
}

fn read_definitions(path: &Path) -> Result<Definitions, Error> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| Error::Damaged { path: path.to_owned(), reason: error.to_string() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Definitions::default()),
        Err(source) => Err(Error::File { path: path.to_owned(), source }),
    }
}

fn write_definitions(path: &Path, definitions: &Definitions) -> std::io::Result<()> {
    let next = path.with_extension("next");
    fs::write(&next, serde_json::to_vec(definitions)?)?;
    fs::rename(&next, path)
}
