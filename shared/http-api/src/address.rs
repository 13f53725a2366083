//! The readers and schemas of postal addresses, and of the places in which customers live. Every
//! route that takes an address uses this reader, so an order accepts each address that a customer
//! has saved.

use key_schema::address::{Country, PostalAddress};
use key_schema::customer::Location;
use key_schema::order::addresses::Destination;

use crate::body::Invalid;
use crate::contract::Body;
use crate::contract::rules::{Named, Text, named, visible_text};

pub const PLACE_NAME: Named<Text> = named("PlaceName", "1 to 128 bytes.", visible_text(1..=128));

#[derive(Body)]
#[body(of = Location)]
#[allow(dead_code, reason = "it declares the fields of another type")]
struct Place {
    #[field(rule = PLACE_NAME, example = "DE")]
    country: String,
    #[field(rule = PLACE_NAME, example = "Ulm")]
    city: String,
}

/// The country and city to which an order is sent.
#[derive(Body)]
#[body(name = "Destination", of = Destination)]
#[allow(dead_code, reason = "it declares the fields of another type")]
struct SentTo {
    country: Country,
    #[field(rule = visible_text(1..=128), example = "Ulm")]
    city: String,
}

/// An address with the name of its recipient, saved by the customer or on an order. The lengths are
/// in bytes.
#[derive(Body)]
#[body(name = "PostalAddress", of = PostalAddress, check(country, postal_code) = fits)]
#[allow(dead_code, reason = "it declares the fields of another type")]
struct Address {
    /// The recipient, 1 to 200 bytes.
    #[field(rule = visible_text(1..=200), example = "Ann")]
    name: String,
    /// Street and number, 1 to 200 bytes.
    #[field(rule = visible_text(1..=200), example = "Münsterplatz 1")]
    line1: String,
    /// Further details such as the floor, 1 to 200 bytes.
    #[field(rule = visible_text(1..=200), example = "3rd floor")]
    line2: Option<String>,
    /// 1 to 128 bytes.
    #[field(rule = visible_text(1..=128), example = "Ulm")]
    city: String,
    /// State, province or canton, 1 to 128 bytes.
    #[field(rule = visible_text(1..=128))]
    region: Option<String>,
    /// 1 to 32 bytes in the format of the country, in any case, with or without spaces and hyphens.
    /// Countries such as DE, GB and US require it. It is optional where not every address has one,
    /// such as IE, and where the country has no postal codes, such as AE, AO, HK, JM, QA, UG and ZW.
    /// The formats are those of Google's Address Data Service.
    #[field(rule = visible_text(1..=32), example = "89073")]
    postal_code: Option<String>,
    country: Country,
    /// The telephone number for the carrier, 1 to 32 bytes.
    #[field(rule = visible_text(1..=32), example = "+49 731 0000")]
    phone: Option<String>,
}

fn fits(country: &Country, postal_code: &Option<String>) -> Result<(), Invalid> {
    let checked = country.check_postal_code(postal_code.as_deref());
    checked.map_err(|error| Invalid::new(error.to_string()).under("postal_code"))
}
