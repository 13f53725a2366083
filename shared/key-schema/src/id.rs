//! The typed ids of Bodega: an [`OrderId`] does not compile where a [`CustomerId`] is expected.

pub use item_model::id::{
    Born, Id, IdError, MAX_ID_BYTES, ME, check, check_id, time_of, time_ordered, time_ordered_floor,
};
use item_model::ids;

use crate::key::hash;
use crate::text::Email;

/// Declares ids, and the macro [`each_id`]. An id without an example is always generated.
macro_rules! ids_of_bodies {
    (($dollar:tt) $($rule:ident: { $($(#[$doc:meta])* $name:ident $(= $example:literal)?)* })*) => {
        $(ids! { $rule: $($(#[$doc])* $name)* })*

        /// Calls a macro with the path of each id that bodies contain, and with its example.
        #[macro_export]
        macro_rules! each_id {
            ($dollar call:ident) => { $dollar call! { $($(($crate::id::$name $(= $example)?))*)* } };
        }
    };
}

ids_of_bodies! { ($)
    check_caller_id: {
        /// The id of a customer: the `sub` of the caller's token, or an id that staff gave.
        CustomerId = "ann"
    }
    check_id: {
        ProductId = "819063"
        /// The id of an order. It is always time-ordered, so that a range of ids is a range of
        /// instants.
        OrderId
        /// The id of a shop ([`crate::region::StoreLocation`]).
        StoreId = "ulm"
        /// The id of a place that keeps stock, such as a warehouse.
        LocationId = "main"
        /// The id of a customer's session on one device.
        SessionId
        GuestCartId
        /// The id of a program that buys for people.
        AgentId = "acme"
        /// The id of a cart or checkout of an agent.
        CheckoutId
        /// The id of an address to which the shop sends events.
        EndpointId
        /// The id of an event's delivery to an endpoint. It follows from the event.
        DeliveryId
        /// The id of a line in an order's staff log.
        LogId
        /// The id of a movement of money: a wallet's entry, or a transfer with both its entries.
        EntryId
        /// The id of a payment for an order.
        PaymentId
        /// The id of an operation on a payment. The provider gets it as the key of its call.
        OperationId
        QuestionId
        AnswerId
        /// The name of a customer's address, such as "home".
        AddressName = "home"
        OrganizationId = "acme"
        TeamId = "sales"
        DocumentId = "handbook"
        SectionName = "intro"
        MetricName = "temperature"
        /// The id of a metric's point, given by the client or generated. A client that sends an id
        /// again means the same point.
        PointId = "0190163d-8694-739b-aea5-966c26f8ad91"
        /// The name of a counter, such as `product:1082185`.
        CounterName = "product:819063"
        /// The id of an upload, and of the picture or text made from it.
        MediaId = "0190163d-8694-739b-aea5-966c26f8ad91"
        ZoneId = "de"
        MethodId = "standard"
        TaxRuleId = "de"
        PromotionId = "summer"
        /// The name of a category of goods with a tax rate of its own, such as "reduced".
        TaxCategory = "reduced"
    }
}

ids! { check:
    /// A client's own number for an order ([`crate::order::ReferenceClaim`]). No URL path contains
    /// it, so the weaker rule of [`check`] is enough.
    OrderReference
}

/// The beginning of the ids of guests. Nobody can sign in with such an id.
const GUEST: &str = "guest:";

impl LocationId {
    /// Returns the location of all stock of a shop that has only one.
    #[must_use]
    pub fn main() -> Self {
        Self("main".to_owned())
    }
}

impl CustomerId {
    /// Returns the id of the guests who order with this address. Only the case of ASCII letters may
    /// differ, because addresses with the same folded form can belong to different people, such as
    /// `straße.example` and `strasse.example`. A guest has orders, but no profile.
    #[must_use]
    pub fn guest(email: &Email) -> Self {
        Self(format!("{GUEST}{}", hash("guest", &email.as_str().to_ascii_lowercase())))
    }

    /// Returns the id under which the requests of all guests are counted together.
    #[must_use]
    pub fn guests() -> Self {
        Self(GUEST.to_owned())
    }

    /// Returns the id under which the unknown codes of an agent's buyers are counted together.
    #[must_use]
    pub fn guests_of(agent: &AgentId) -> Self {
        Self(format!("{GUEST}agent:{agent}"))
    }

    #[must_use]
    pub fn is_guest(&self) -> bool {
        is_guest(&self.0)
    }
}

/// Returns whether the id of an order's customer, or of the author of a change, is that of a guest.
#[must_use]
pub fn is_guest(id: &str) -> bool {
    id.starts_with(GUEST)
}

impl StoreId {
    /// Returns `online`, the id of the shop for all orders without a physical shop. Staff may
    /// create this shop like any other shop, to set the country and city of its sales.
    #[must_use]
    pub fn online() -> Self {
        Self("online".to_owned())
    }
}

impl PointId {
    /// Returns the `born` of the point. A client that sends the point again writes the same `born`.
    #[must_use]
    pub fn born(&self) -> Born {
        Born::of(self)
    }
}

impl PaymentId {
    /// Returns the `born` of the payment.
    #[must_use]
    pub fn born(&self) -> Born {
        Born::of(self)
    }

    /// Returns the id of the wallet's entry of this payment.
    #[must_use]
    pub fn entry(&self) -> EntryId {
        EntryId(self.0.clone())
    }
}

impl OperationId {
    /// Returns the `born` of the operation.
    #[must_use]
    pub fn born(&self) -> Born {
        Born::of(self)
    }
}

impl EntryId {
    /// Returns the `born` of the items that this movement creates.
    #[must_use]
    pub fn born(&self) -> Born {
        Born::of(self)
    }
}
