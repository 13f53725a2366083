//! An index entry must name every part of its key.

use key_schema::change::Change;
use key_schema::customer::{Customer, Tier, TierIndexKey};
use key_schema::instant::Instant;

fn main() {
    let _ = Change::<Customer>::visible(Instant::EPOCH).enter(&TierIndexKey { tier: Tier::Gold });
}
