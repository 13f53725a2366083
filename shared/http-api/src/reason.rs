use serde::Serialize;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident;)*) => {
        /// The reason of a [`FieldError`](crate::FieldError), for clients that show their own text.
        /// `openapi.yaml` lists all reasons.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Reason {
            $($(#[$doc])* $variant,)*
        }

        impl Reason {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
        }
    };
}

reasons! {
    /// The cart has a line that the quote does not have.
    LineAdded;
    LineRemoved;
    QuantityChanged;
    PriceChanged;
    /// The product was retired and created again under its id.
    ProductReplaced;
    /// A line was removed and added again.
    SequenceChanged;
    /// No promotion has the code.
    Unknown;
    Expired;
    UsedUp;
    NotYetValid;
    TierTooLow;
    NotFirstOrder;
    /// The promotion depends on who orders, so guests cannot use it.
    AccountRequired;
    /// The promotion has an amount in another currency than the cart.
    OtherCurrency;
    /// The cart has none of the promotion's goods.
    NoGoods;
    MinimumNotReached;
    NothingToReduce;
    /// An exclusive promotion applies.
    NotCombinable;
    TooManyPromotions;
    /// The catalogue does not have the product of a line.
    UnknownProduct;
    /// The product of a line is sold only as variants.
    HasVariants;
    OutOfStock;
    InsufficientStock;
    /// The stock of a line's product must be repaired.
    StockUnavailable;
    /// The customer's unpaid orders would have too many pieces of a line's product.
    QuantityLimit;
}
