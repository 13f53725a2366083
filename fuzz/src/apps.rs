//! The functions that answer clients of the shop, over a table with one item of each kind.

use std::rc::Rc;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use http_api::{Routes, SettingsCache, Store};
use key_schema::cursor::Cursors;
use media::Media;
use tokio::runtime::{Builder, Runtime};

use crate::CURSOR_KEYS;
use crate::answer::Answer;
use crate::table::Sample;

/// The functions.
pub struct Shop {
    functions: Vec<Function>,
    tables: Vec<Sample>,
}

/// One of them.
struct Function {
    keys: Vec<&'static str>,
    answer: Box<dyn Fn(&str) -> String>,
}

impl Shop {
    /// All functions that reach the table and verify no tokens themselves.
    ///
    /// # Panics
    /// When the functions cannot be built.
    #[must_use]
    pub fn open() -> Self {
        let mut shop = Self { functions: Vec::new(), tables: Vec::new() };
        let runtime = Rc::new(runtime());
        let media = || {
            let credentials = SharedCredentialsProvider::new(Credentials::new("key", "secret", None, None, "fuzz"));
            // Nothing listens there: what a function would ask the bucket itself is not the table's to answer.
            Media::new("bodega", "eu-central-1".to_owned(), Some("http://127.0.0.1:9"), credentials)
        };
        let (catalog, settings) = (
            catalog::App { store: shop.store(), media: media() },
            settings::App { store: shop.store(), settings: SettingsCache::default() },
        );
        shop.add(&runtime, catalog::routes(), catalog);
        shop.add(&runtime, settings::routes(), settings);
        for routes in [
            customers::routes(),
            orders::routes(),
            wallet::routes(),
            organizations::routes(),
            documents::routes(),
            insights::routes(),
            support::routes(),
        ] {
            let store = shop.store();
            shop.add(&runtime, routes, store);
        }
        shop
    }

    /// Every route, in order.
    pub fn routes(&self) -> impl Iterator<Item = &'static str> {
        self.functions.iter().flat_map(|function| function.keys.iter().copied())
    }

    /// Says whether the conditions of the writes that follow hold.
    pub fn hold(&self, holds: bool) {
        self.tables.iter().for_each(|table| table.hold(holds));
    }

    /// Sends an event to the function that has the route, or without a function of that route to the one with the number.
    ///
    /// # Panics
    /// When the answer is none, or an outage: nothing here is away.
    #[must_use]
    pub fn answer(&self, route: Option<&str>, number: usize, event: &str) -> Answer {
        let named = route.and_then(|route| self.functions.iter().find(|function| function.keys.contains(&route)));
        let function = named.unwrap_or_else(|| &self.functions[number % self.functions.len()]);
        Answer::read(&(function.answer)(event))
    }

    fn store(&mut self) -> Store {
        let (table, sample) = Sample::table();
        self.tables.push(sample);
        Store { table, cursors: Cursors::new(CURSOR_KEYS).expect("keys") }
    }

    fn add<S: 'static>(&mut self, runtime: &Rc<Runtime>, routes: Routes<S>, app: S) {
        let (keys, runtime) = (routes.keys().collect(), Rc::clone(runtime));
        let answer =
            move |event: &str| runtime.block_on(routes.answer_text(&app, event)).expect("an answer has a JSON form");
        self.functions.push(Function { keys, answer: Box::new(answer) });
    }
}

/// A runtime whose clock jumps over every wait: who is told to come later comes at once.
///
/// # Panics
/// When the system gives none.
#[must_use]
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime")
}
