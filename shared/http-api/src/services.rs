use std::sync::Arc;

use aws::{Reach, Secret, Target};
use key_schema::code::CodeKeys;
use key_schema::cursor::{CursorKeyError, Cursors};
use key_schema::id::Born;
use key_schema::instant::Instant;
use key_schema::pattern::{Consistency, Pattern};
use key_schema::shard::Layout;
use key_schema::webhook_secret::WebhookKeys;
use key_schema::{reach, revocation, settings};
use table::{Periods, SetupError, Table};

use crate::observe::{Measured, PatternCost};
use crate::page::Keys;
use crate::problem::{Code, Problem};
use crate::routes::Checks;
use crate::settings::SettingsCache;
use crate::sign_ins::SignIns;

/// The access patterns that a function with routes uses outside its handlers. Each pattern is
/// listed with its occasion: the function's start, a token that names a sign-in, or any write. A
/// read of a list whose number of shards can change also reads the settings, unless they are
/// cached.
pub const SHARED_PATTERNS: &[(&str, &Pattern)] =
    &[("start", &reach::NOTHING), ("token", &revocation::GET), ("write", &settings::READ)];

/// A function's state, which it builds once when its environment starts.
#[derive(Debug)]
pub struct Services {
    pub table: Table,
    pub cursors: Keys<Cursors>,
    pub sign_ins: SignIns,
    pub settings: SettingsCache,
    /// The tables that store metrics, one for each month.
    pub metrics: Periods,
    /// Fills bytes with random values, from the system's generator. A simulation sets a seeded
    /// generator.
    pub random: fn(&mut [u8]) -> Result<(), Problem>,
    /// Derives the codes that customers enter to verify their email addresses. Only the function
    /// that checks these codes has the keys.
    pub codes: Option<Keys<CodeKeys>>,
    /// What the function that registers endpoints of webhooks needs, if the deployment sends them.
    pub webhooks: Option<Webhooks>,
}

/// The keys from which the secrets of endpoints follow, and the addresses that endpoints may have.
#[derive(Debug)]
pub struct Webhooks {
    pub keys: Keys<WebhookKeys>,
    pub reach: Reach,
}

impl Webhooks {
    /// Finds the keys: the secret that `WEBHOOK_KEYS_SECRET` names. Without it, the deployment sends no
    /// webhooks.
    #[must_use]
    pub fn from_env() -> Option<Self> {
        let keys = Keys::from_env("WEBHOOK_KEYS_SECRET", WebhookKeys::new).ok()?;
        Some(Self { keys, reach: Reach::of_webhooks() })
    }

    /// Checks the URL of an endpoint.
    ///
    /// # Errors
    /// 422 `invalid_body` for the member `url`.
    pub fn check(&self, url: &str) -> Result<(), Problem> {
        match Target::new(url, self.reach) {
            Ok(_) => Ok(()),
            Err(bad) => Err(Problem::new(Code::InvalidBody, "The URL is not usable.").error("/url", bad.to_string())),
        }
    }
}

impl Keys<Cursors> {
    /// Finds the keys of cursors: the secret that `CURSOR_KEYS_SECRET` names.
    pub fn of_cursors() -> Result<Self, SetupError> {
        Self::from_env("CURSOR_KEYS_SECRET", Cursors::new)
    }
}

impl Keys<CodeKeys> {
    /// Finds the keys of email codes: the secret that `EMAIL_CODE_KEYS_SECRET` names.
    pub fn of_codes() -> Result<Self, SetupError> {
        Self::from_env("EMAIL_CODE_KEYS_SECRET", CodeKeys::new)
    }
}

impl<K: 'static> Keys<K> {
    /// Finds the keys in the secret that a variable names.
    pub fn from_env(variable: &'static str, parse: fn(&str) -> Result<K, CursorKeyError>) -> Result<Self, SetupError> {
        let secret = Arc::new(Secret::from_env(variable)?);
        Ok(Self::new(move || {
            let secret = Arc::clone(&secret);
            async move { Ok(parse(&secret.read().await?)?) }
        }))
    }
}

impl Services {
    /// Creates the state from the environment: `TABLE_NAME`, `CURSOR_KEYS_SECRET`, and the SDK's
    /// own variables. With `METRICS_TABLES=monthly`, each month of metrics has its own table. Also
    /// opens the connection to the table, if possible.
    pub async fn from_env() -> Result<Self, SetupError> {
        let table = Table::from_env().await?;
        let cursors = Keys::of_cursors()?;
        if let Ok(nothing) = reach::nothing() {
            table.reach(&nothing).await;
        }
        let metrics = Periods::new(std::env::var("METRICS_TABLES").is_ok_and(|tables| tables == "monthly"));
        Ok(Self { metrics, ..Self::new(table, cursors) })
    }

    #[must_use]
    pub fn new(table: Table, cursors: Keys<Cursors>) -> Self {
        let (sign_ins, settings, metrics) = (SignIns::default(), SettingsCache::default(), Periods::default());
        Self { table, cursors, sign_ins, settings, metrics, random: fill, codes: None, webhooks: None }
    }

    /// Returns the keys of email codes.
    pub async fn codes(&self) -> Result<&CodeKeys, Problem> {
        match &self.codes {
            Some(keys) => keys.get().await,
            None => Err(Problem::internal("this function has no keys of email codes")),
        }
    }

    /// Returns what the registry of endpoints needs.
    ///
    /// # Errors
    /// 503 `webhooks_disabled` if the deployment sends no webhooks.
    pub fn webhooks(&self) -> Result<&Webhooks, Problem> {
        let problem = || Problem::new(Code::WebhooksDisabled, "This deployment sends no webhooks.");
        self.webhooks.as_ref().ok_or_else(problem)
    }

    /// Returns the keys that seal cursors.
    pub async fn cursors(&self) -> Result<&Cursors, Problem> {
        self.cursors.get().await
    }

    /// Returns the parts that [`crate::Routes::checking`] needs.
    #[must_use]
    pub const fn checks(&self) -> Checks<'_> {
        Checks { table: &self.table, sign_ins: &self.sign_ins, settings: &self.settings }
    }

    /// Refuses a write by a GET route while the shop is in maintenance. For other routes,
    /// [`crate::Routes::checking`] adds this check.
    ///
    /// # Errors
    /// 503 `maintenance`, and the errors of the table.
    pub async fn open_for_writes(&self) -> Result<(), Problem> {
        crate::maintenance::refuse(&self.settings.current(&self.table).await?.0)
    }

    /// Returns the present layout of a list whose number of shards can change.
    pub async fn layout(&self, list: &Pattern) -> Result<Layout, Problem> {
        Ok(self.settings.current(&self.table).await?.0.lists.of(list))
    }

    /// Returns random bytes, such as the ten bytes of a time-ordered id.
    pub fn random<const N: usize>(&self) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        (self.random)(&mut bytes)?;
        Ok(bytes)
    }

    /// Generates the `born` id for an item that is created at `at`.
    pub fn born(&self, at: Instant) -> Result<Born, Problem> {
        Ok(Born::generate(at, self.random()?))
    }
}

/// Returns random bytes from the system's generator.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

fn fill(bytes: &mut [u8]) -> Result<(), Problem> {
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), bytes)
        .map_err(|_| Problem::internal("the system's random generator failed"))
}

impl Measured for Services {
    fn take(&self) -> Vec<PatternCost> {
        self.table.take()
    }
}

impl From<table::Measured> for PatternCost {
    fn from(measured: table::Measured) -> Self {
        let units = measured.capacity_units;
        let writes = measured.pattern.consistency == Consistency::Write;
        let (read_units, write_units) = if writes { (0.0, units) } else { (units, 0.0) };
        Self { pattern: measured.pattern.id, requests: measured.requests, read_units, write_units }
    }
}

impl Measured for Table {
    fn take(&self) -> Vec<PatternCost> {
        self.meter().take().into_iter().map(PatternCost::from).collect()
    }
}
