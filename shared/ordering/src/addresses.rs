use http_api::contract::{Body, Context, FromBody, Node, Schema, Schemas};
use http_api::fields::parsed;
use http_api::json::Value;
use http_api::{Code, Invalid, Problem, Services};
use key_schema::address::PostalAddress;
use key_schema::customer::{self, Customer};
use key_schema::id::{AddressName, CustomerId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::Order;
use key_schema::order::addresses::{Destination, Guest, OrderAddresses};

/// An address in a body: the name of one of the customer's addresses, or the address itself.
#[derive(Debug)]
enum Given {
    Named(AddressName),
    Whole(Box<PostalAddress>),
}

impl FromBody for Given {
    fn read(value: Value<'_>, context: &Context<'_>) -> Result<Self, Invalid> {
        match value {
            Value::Text(_) => parsed(value).map(Self::Named),
            value => FromBody::read(value, context).map(Self::Whole),
        }
    }
}

impl Schema for Given {
    fn schema(schemas: &mut Schemas) -> Node {
        schemas.named("NewOrderAddress", |schemas| {
            Node::choice(vec![PostalAddress::schema(schemas), AddressName::schema(schemas)])
                .about("The address itself, or the name of one of the customer's addresses.")
        })
    }

    fn example() -> Option<Node> {
        AddressName::example()
    }
}

#[derive(Debug, Default, Body)]
pub struct GivenAddresses {
    shipping_address: Option<Given>,
    /// The address on the invoice. It is allowed only with a `shipping_address`.
    #[field(example = null)]
    billing_address: Option<Given>,
}

impl GivenAddresses {
    /// Creates a [`GivenAddresses`] from complete addresses. They need no read of the profile.
    pub fn whole(shipping: Option<PostalAddress>, billing: Option<PostalAddress>) -> Self {
        let whole = |address: Option<PostalAddress>| address.map(|address| Given::Whole(Box::new(address)));
        Self { shipping_address: whole(shipping), billing_address: whole(billing) }
    }

    pub const fn is_empty(&self) -> bool {
        self.shipping_address.is_none() && self.billing_address.is_none()
    }

    /// Returns both addresses. Reads the customer's profile only if an address is given by name.
    ///
    /// # Errors
    /// 404 for a customer without a profile, 422 for a billing address without a shipping address,
    /// and the errors of [`Self::resolve`].
    pub async fn of_profile(
        &self,
        services: &Services,
        id: &CustomerId,
    ) -> Result<(Option<PostalAddress>, Option<PostalAddress>), Problem> {
        if self.shipping_address.is_none() && self.billing_address.is_some() {
            return Err(refused(SHIPPING, "is required"));
        }
        let given = [(SHIPPING, &self.shipping_address), (BILLING, &self.billing_address)];
        let is_named = given.iter().any(|(_, given)| matches!(given, Some(Given::Named(_))));
        // A guest has no profile with named addresses.
        let is_read = is_named && !id.is_guest();
        let customer = if is_read { services.table.get(&customer::get(id)?).await? } else { None };
        if is_read && customer.is_none() {
            return Err(Problem::not_found("customer"));
        }
        let [shipping, billing] = given.map(|(pointer, given)| {
            given.as_ref().map(|given| given.resolve(pointer, customer.as_deref())).transpose()
        });
        Ok((shipping?, billing?))
    }

    /// Returns the item of the order's addresses, if the caller gave any or is a `guest`, and sets the
    /// order's destination. `required` is whether the order must have an address.
    ///
    /// # Errors
    /// 422 `invalid_body` if a required address is missing, or if no address of the profile has the
    /// given name.
    pub fn resolve(
        &self,
        order: &mut Stored<Order>,
        customer: Option<&Customer>,
        guest: Option<&Guest>,
        required: bool,
        now: Instant,
    ) -> Result<Option<Stored<OrderAddresses>>, Problem> {
        if self.shipping_address.is_none() && (required || self.billing_address.is_some()) {
            return Err(refused(SHIPPING, "is required"));
        }
        let shipping = self.shipping_address.as_ref().map(|shipping| shipping.resolve(SHIPPING, customer));
        let shipping_address = shipping.transpose()?;
        if shipping_address.is_none() && guest.is_none() {
            return Ok(None);
        }
        let billing = self.billing_address.as_ref().map(|billing| billing.resolve(BILLING, customer));
        order.data.destination = shipping_address.as_ref().map(Destination::from);
        let addresses = OrderAddresses {
            order_id: order.id.clone(),
            customer_id: order.customer_id.clone(),
            shipping_address,
            billing_address: billing.transpose()?,
            guest: guest.cloned(),
            expires_at: None,
        };
        Ok(Some(Stored::new(addresses, order.meta.born.clone(), now)))
    }
}

/// The JSON Pointer to the address to which the order is sent.
const SHIPPING: &str = "/shipping_address";
/// The JSON Pointer to the address on the invoice.
const BILLING: &str = "/billing_address";

fn refused(pointer: &'static str, detail: &'static str) -> Problem {
    Problem::new(Code::InvalidBody, "The order has no usable address.").error(pointer, detail)
}

impl Given {
    fn resolve(&self, pointer: &'static str, customer: Option<&Customer>) -> Result<PostalAddress, Problem> {
        match self {
            Self::Whole(address) => Ok((**address).clone()),
            Self::Named(name) => {
                let address = customer.and_then(|customer| customer.addresses.get(name).cloned());
                address.ok_or_else(|| refused(pointer, "is not the name of one of the customer's addresses"))
            }
        }
    }
}
