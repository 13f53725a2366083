use std::fmt;

/// Runs the function with this logical id until its Runtime API closes.
pub async fn run(logical_id: &str) -> Result<(), FunctionExit> {
    key_schema::instant::Instant::step_clock(telemetry::crash::clock_step);
    let ended = match logical_id {
        "Customers" => customers::run().await,
        "Catalog" => catalog::run().await,
        "Orders" => orders::run().await,
        "Wallet" => wallet::run().await,
        "Community" => community::run().await,
        "Organizations" => organizations::run().await,
        "Documents" => documents::run().await,
        "Insights" => insights::run().await,
        "Support" => support::run().await,
        "Settings" => settings::run().await,
        "Agents" => agents::run().await,
        "Search" => search::run().await,
        "Notifier" => notifier::run().await,
        "Fulfilment" => fulfilment::run().await,
        "Cashier" => cashier::run().await,
        "Courier" => courier::run().await,
        "Janitor" => janitor::run().await,
        "Splitter" => splitter::run().await,
        "StreamSearch" | "StreamEvents" => stream::run().await,
        _ => return Err(FunctionExit::Unknown(logical_id.to_owned())),
    };
    ended.map_err(FunctionExit::Failed)
}

#[derive(Debug)]
pub enum FunctionExit {
    Unknown(String),
    /// The function could not start, or lost its Runtime API.
    Failed(lambda_runtime::Error),
}

impl std::error::Error for FunctionExit {}

impl fmt::Display for FunctionExit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(out, "there is no function {name}"),
            Self::Failed(error) => write!(out, "the function ended: {error}"),
        }
    }
}
