use key_schema::address::{Country, PostalAddress};

use crate::body::{Invalid, Object};
use crate::contract::{Context, FromBody, Node, Schema, Schemas};
use crate::fields::{parsed, visible_text};
use crate::json::Value;

/// Reads a postal address. Every route that takes an address uses this reader, so an order accepts
/// each address that a customer has saved.
///
/// # Errors
/// [`Invalid`] with an entry for each invalid field, also for a postal code that does not fit the
/// country.
pub fn postal_address(mut body: Object<'_>) -> Result<PostalAddress, Invalid> {
    let name = body.required("name", visible_text(1..=200));
    let line1 = body.required("line1", visible_text(1..=200));
    let line2 = body.optional("line2", visible_text(1..=200));
    let city = body.required("city", visible_text(1..=128));
    let region = body.optional("region", visible_text(1..=128));
    let mut postal_code = body.optional("postal_code", visible_text(1..=32));
    let country = body.required("country", parsed::<Country>);
    let phone = body.optional("phone", visible_text(1..=32));
    if let (Some(country), Some(code)) = (&country, &postal_code)
        && let Err(error) = country.check_postal_code(code.as_deref())
    {
        postal_code = body.refuse("postal_code", error.to_string());
    }
    let fields = (name, line1, line2, city, region, postal_code, country, phone);
    let (name, line1, line2, city, region, postal_code, country, phone) = body.finish(fields)?;
    Ok(PostalAddress { name, line1, line2, city, region, postal_code, country, phone })
}

impl FromBody for PostalAddress {
    fn read(value: Value<'_>, _: &Context<'_>) -> Result<Self, Invalid> {
        postal_address(value.object()?)
    }
}

impl Schema for PostalAddress {
    fn schema(_: &mut Schemas) -> Node {
        Node::reference("schemas", "PostalAddress")
    }

    fn example() -> Option<Node> {
        Node::json(
            r#"{"name": "Ann", "line1": "Münsterplatz 1", "city": "Ulm", "postal_code": "89073", "country": "DE"}"#,
        )
    }
}
