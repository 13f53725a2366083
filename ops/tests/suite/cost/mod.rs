//! Tests of `ops cost`.

mod bills;
mod command;
mod page;

use ops::cost::bill::{Bill, bill};
use ops::cost::prices::Prices;
use ops::cost::profile::Profile;
use ops::cost::report::Report;
use ops::cost::stack::Stack;

/// Returns the prices of us-east-1.
fn prices() -> Prices {
    Prices::built_in("us-east-1").unwrap()
}

/// Returns the bill of a profile in us-east-1.
fn bill_of(profile: &str) -> Bill {
    let profile = Profile::parse(profile).unwrap();
    bill(&profile, &Stack::read("us-east-1", &profile.parameters).unwrap(), &prices()).unwrap()
}

/// Returns the report of a profile in us-east-1.
fn report_of(profile: &str) -> Report {
    ops::cost::report(&Profile::parse(profile).unwrap(), &prices()).unwrap()
}
