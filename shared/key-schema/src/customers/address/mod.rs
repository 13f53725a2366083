//! Postal addresses: those that a customer has saved, and those of an order.

mod postal_code;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use postal_code::PostalCodeError;

/// The codes of ISO 3166-1 alpha-2 as of 2026.
const COUNTRIES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR \
    BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ \
    EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW \
    GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY \
    KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV \
    MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY \
    QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG \
    TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM \
    ZW";

/// A country's code of ISO 3166-1 alpha-2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Country(String);

impl Country {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an ISO 3166-1 alpha-2 code in upper case, such as DE")]
pub struct UnknownCountry;

impl FromStr for Country {
    type Err = UnknownCountry;

    fn from_str(text: &str) -> Result<Self, UnknownCountry> {
        let listed = COUNTRIES.split_ascii_whitespace().any(|code| code == text);
        if listed { Ok(Self(text.to_owned())) } else { Err(UnknownCountry) }
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An address to which a parcel or an invoice is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostalAddress {
    /// The recipient.
    pub name: String,
    /// Street and number, or the local equivalent.
    pub line1: String,
    /// Further details, such as the floor.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line2: Option<String>,
    pub city: String,
    /// State, province or canton.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub region: Option<String>,
    /// The postal code, by the rule of the country ([`Country::check_postal_code`]).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub postal_code: Option<String>,
    pub country: Country,
    /// The telephone number for the carrier.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub phone: Option<String>,
}
