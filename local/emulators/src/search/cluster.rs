//! All indices, with the templates they are made from and the aliases they are known by.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Error;
use super::index::{Index, OpenError};
use super::mapping::Mapping;
use super::problem::Problem;
use super::strict::{Strict, only_entry};

/// The file in the data folder that holds everything but the documents.
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
    /// By index, its settings and mappings.
    indices: BTreeMap<String, Value>,
    /// By alias, its index.
    aliases: BTreeMap<String, String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Template {
    patterns: Vec<String>,
    definition: Value,
}

/// An index that a request names, directly or by alias.
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
    /// Opens what the folder holds; without one, everything is in memory and gone at the end.
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

    pub(super) fn target(&self, name: &str) -> Result<Target, Problem> {
        let state = self.lock();
        let alias = state.definitions.aliases.get(name);
        let name = alias.map_or(name, String::as_str);
        let index = state.open.get(name).cloned().ok_or_else(|| Problem::no_such_index(name))?;
        Ok(Target { name: name.to_owned(), index, by_alias: alias.is_some() })
    }

    pub(super) fn has_alias(&self, name: &str) -> bool {
        self.lock().definitions.aliases.contains_key(name)
    }

    pub(super) fn has_template(&self, name: &str) -> bool {
        self.lock().definitions.templates.contains_key(name)
    }

    /// `PUT /_index_template/<name>`; patterns may end in `*`.
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

    /// `PUT /<index>`, defined by the body or, where that is silent, by the template whose pattern fits.
    pub(super) fn create_index(&self, name: &str, body: &Value) -> Result<(), Problem> {
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        if !name.chars().all(valid) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || name.len() > 255 {
            return Err(Problem::index_name(name));
        }
        let file = self.folder.as_ref().map(|folder| documents_file(folder, name));
        self.change(|state| {
            if state.open.contains_key(name) || state.definitions.aliases.contains_key(name) {
                return Err(Problem::index_exists(name));
            }
            let definition = state.definitions.for_new_index(name, body)?;
            let index = Index::open(&definition, file.as_deref()).map_err(|error| match error {
                OpenError::Definition(problem) => problem,
                OpenError::File(error) => Problem::internal(error),
            })?;
            state.definitions.indices.insert(name.to_owned(), definition);
            state.open.insert(name.to_owned(), Arc::new(Mutex::new(index)));
            Ok(())
        })
    }

    /// `POST /_aliases`: adds and removes aliases, all or none.
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
                apply_alias(&mut aliases, kind, index, alias)?;
            }
            if let Some(alias) = aliases.keys().find(|alias| state.open.contains_key(*alias)) {
                return Err(Problem::illegal(format!("an index exists with the same name as the alias [{alias}]")));
            }
            state.definitions.aliases = aliases;
            Ok(())
        })
    }

    /// Makes a change and, if there is a folder, keeps it.
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

fn apply_alias(aliases: &mut BTreeMap<String, String>, kind: &str, index: &str, alias: &str) -> Result<(), Problem> {
    match (kind, aliases.get(alias).map(String::as_str)) {
        ("add", None) => {
            aliases.insert(alias.to_owned(), index.to_owned());
            Ok(())
        }
        ("add", Some(current)) if current == index => Ok(()),
        ("add", Some(_)) => Err(Problem::illegal(format!("alias [{alias}] may point to one index only"))),
        ("remove", Some(current)) if current == index => {
            aliases.remove(alias);
            Ok(())
        }
        ("remove", _) => Err(Problem::illegal(format!("index [{index}] has no alias [{alias}]"))),
        (other, _) => Err(Problem::parsing(format!("[aliases] unknown field [{other}]"))),
    }
}

/// Index names hold nothing that means something in a path.
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
