//! The tier is part of the tier list's key, so [`Change`] has no method that sets it alone.

use key_schema::change::Change;
use key_schema::customer::{Customer, Tier, CustomerChanges as _};
use key_schema::instant::Instant;

fn main() {
    let _ = Change::<Customer>::visible(Instant::EPOCH).tier(&Tier::Gold);
}
