use lambda_http::http::StatusCode;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        /// An error code. Clients branch on its name, so a name never changes its meaning.
        /// `openapi.yaml` lists all codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name that clients see.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self {
                    $(Self::$variant => StatusCode::$status,)*
                }
            }

            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$variant => $title,)*
                }
            }
        }
    };
}

codes! {
    /// The invocation's event is not a valid HTTP API request in payload format 2.0.
    MalformedRequest = "malformed_request", BAD_REQUEST, "Malformed request";
    /// The body is not JSON, or not UTF-8.
    MalformedJson = "malformed_json", BAD_REQUEST, "Malformed JSON";
    /// A query parameter is unknown, given twice, malformed or out of range.
    InvalidParameter = "invalid_parameter", BAD_REQUEST, "Invalid query parameter";
    /// A request header is malformed, or excludes another header of the request.
    InvalidHeader = "invalid_header", BAD_REQUEST, "Invalid header";
    /// The cursor was altered, has expired, or belongs to another list or another caller.
    CursorInvalid = "cursor_invalid", BAD_REQUEST, "Invalid cursor";
    IdempotencyKeyMissing = "idempotency_key_missing", BAD_REQUEST, "Idempotency-Key missing";
    /// The request has no valid token.
    Unauthenticated = "unauthenticated", UNAUTHORIZED, "Not signed in";
    /// The caller is known but has no permission.
    Forbidden = "forbidden", FORBIDDEN, "Not allowed";
    /// The shop takes orders only from customers with an account.
    GuestOrdersDisabled = "guest_orders_disabled", FORBIDDEN, "Guest orders disabled";
    /// The customer has not verified the email address.
    EmailUnverified = "email_unverified", FORBIDDEN, "Email address not verified";
    /// The record does not exist, or the caller has no permission to know that it exists.
    NotFound = "not_found", NOT_FOUND, "Not found";
    /// An account of a deposit or a transfer does not exist.
    AccountNotFound = "account_not_found", NOT_FOUND, "Account not found";
    /// A record with this id or reference exists.
    AlreadyExists = "already_exists", CONFLICT, "Already exists";
    EmailTaken = "email_taken", CONFLICT, "Email address taken";
    UsernameTaken = "username_taken", CONFLICT, "User name taken";
    /// The stock is smaller than the requested quantity.
    InsufficientStock = "insufficient_stock", CONFLICT, "Too little in stock";
    /// The product has variants, and the request is possible only for a product without them.
    HasVariants = "has_variants", CONFLICT, "Has variants";
    /// Another variant of the parent has the same options.
    OptionsTaken = "options_taken", CONFLICT, "Options taken";
    /// The product still has stock, so it cannot become the parent of a variant.
    ParentHasStock = "parent_has_stock", CONFLICT, "Parent has stock";
    /// The payment provider or the card's issuer refuses the payment, or an operation of it.
    PaymentDeclined = "payment_declined", CONFLICT, "Payment declined";
    /// The customer has to do something before the payment can continue, such as 3-D Secure.
    PaymentActionRequired = "payment_action_required", CONFLICT, "Payment needs the customer";
    /// The amount is more than the authorised amount that is not captured.
    AmountExceedsAuthorised = "amount_exceeds_authorised", CONFLICT, "More than authorised";
    /// The amount is more than the captured amount that is not refunded.
    AmountExceedsCaptured = "amount_exceeds_captured", CONFLICT, "More than captured";
    /// Not enough money is in the account.
    InsufficientFunds = "insufficient_funds", CONFLICT, "Too little money";
    /// The customer already has the maximum number of unpaid orders.
    TooManyPendingOrders = "too_many_pending_orders", CONFLICT, "Too many unpaid orders";
    /// The customer's unpaid orders would exceed the maximum quantity of a product.
    QuantityLimit = "quantity_limit", CONFLICT, "Too many pieces of a product";
    /// The order's total differs from the total that the client expects.
    PriceChanged = "price_changed", CONFLICT, "Price changed";
    /// The shop has pricing rules, but the customer's order names no quote.
    QuoteRequired = "quote_required", CONFLICT, "Quote required";
    /// The quote has expired, or it is not a quote of this customer.
    QuoteExpired = "quote_expired", CONFLICT, "Quote expired";
    /// The price is not the quoted price any more.
    QuoteChanged = "quote_changed", CONFLICT, "Quote changed";
    PromotionUnknown = "promotion_unknown", CONFLICT, "Unknown promotion";
    PromotionExpired = "promotion_expired", CONFLICT, "Promotion expired";
    /// The promotion has reached its limit, for all customers or for this one.
    PromotionUsedUp = "promotion_used_up", CONFLICT, "Promotion used up";
    /// The code does not reduce the price of this customer's cart.
    PromotionNotApplicable = "promotion_not_applicable", CONFLICT, "Promotion not applicable";
    /// No shipping method sends the goods to the address.
    ShippingUnavailable = "shipping_unavailable", CONFLICT, "Shipping unavailable";
    /// The order cannot change from its status to the requested status.
    IllegalTransition = "illegal_transition", CONFLICT, "Illegal status change";
    /// The first request with this Idempotency-Key is still running.
    IdempotencyInProgress = "idempotency_in_progress", CONFLICT, "Still in progress";
    LastAdmin = "last_admin", CONFLICT, "Last admin";
    /// Another shipping zone or tax rule applies to the same place.
    RuleOverlaps = "rule_overlaps", CONFLICT, "Overlapping rule";
    /// The shop already has the maximum number of shipping zones, tax rules or promotions without a
    /// code.
    TooManyRules = "too_many_rules", CONFLICT, "Too many rules";
    /// The shop has the largest number of stock locations.
    TooManyLocations = "too_many_locations", CONFLICT, "Too many locations";
    /// The shop has the largest number of agents.
    TooManyAgents = "too_many_agents", CONFLICT, "Too many agents";
    /// The shop has the largest number of endpoints for webhooks.
    TooManyEndpoints = "too_many_endpoints", CONFLICT, "Too many endpoints";
    /// The organization or the customer already has the maximum number of open invitations.
    TooManyInvitations = "too_many_invitations", CONFLICT, "Too many invitations";
    /// The team has members and cannot be removed.
    TeamInUse = "team_in_use", CONFLICT, "Team in use";
    /// The document already has a draft, which must be published or deleted first.
    DraftOpen = "draft_open", CONFLICT, "Draft open";
    DraftMissing = "draft_missing", CONFLICT, "No draft";
    /// The category is being moved, so a client cannot change it now. Or a client wants to begin a
    /// move while another move is in progress. Only one move may run at a time.
    CategoryMoving = "category_moving", CONFLICT, "Category moving";
    /// The item has no upload that matches the request. The upload may not have arrived yet, it may
    /// have been deleted, or it may belong to another item.
    NotUploaded = "not_uploaded", CONFLICT, "Not uploaded";
    /// Another request changed data that this request builds on. Nothing was written.
    Conflict = "conflict", CONFLICT, "Conflict";
    /// The version in If-Match is not the current version.
    VersionMismatch = "version_mismatch", PRECONDITION_FAILED, "Changed in the meantime";
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "Body too large";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type";
    /// The body is compressed. API Gateway does not decompress bodies.
    UnsupportedContentEncoding = "unsupported_content_encoding", UNSUPPORTED_MEDIA_TYPE, "Unsupported content encoding";
    /// The body is JSON, but fields are missing, unknown, of the wrong type or out of range.
    InvalidBody = "invalid_body", UNPROCESSABLE_ENTITY, "Invalid body";
    /// An id breaks the rule for ids or is reserved. For example, it is empty, too long or has a
    /// control character.
    InvalidId = "invalid_id", UNPROCESSABLE_ENTITY, "Invalid id";
    /// The Idempotency-Key was used for another request.
    IdempotencyKeyReused = "idempotency_key_reused", UNPROCESSABLE_ENTITY, "Idempotency-Key used before";
    /// The verification code is wrong or expired, or belongs to another email address.
    CodeInvalid = "code_invalid", UNPROCESSABLE_ENTITY, "Invalid code";
    /// Too many wrong codes were sent. The customer needs a new verification code.
    TooManyTries = "too_many_tries", TOO_MANY_REQUESTS, "Too many tries";
    /// The customer has received the maximum number of mails with codes for this day. The client
    /// may retry after Retry-After.
    TooManyMails = "too_many_mails", TOO_MANY_REQUESTS, "Too many mails";
    /// The customer has made the maximum number of requests of this kind for this day. The client
    /// may retry after Retry-After.
    QuotaExceeded = "quota_exceeded", TOO_MANY_REQUESTS, "Quota exceeded";
    /// The order, cart or import would have more lines than allowed.
    TooManyLines = "too_many_lines", UNPROCESSABLE_ENTITY, "Too many lines";
    TooManyCategories = "too_many_categories", UNPROCESSABLE_ENTITY, "Too many categories";
    TooManyPictures = "too_many_pictures", UNPROCESSABLE_ENTITY, "Too many pictures";
    TooManyVariants = "too_many_variants", UNPROCESSABLE_ENTITY, "Too many variants";
    TooManyAnswers = "too_many_answers", UNPROCESSABLE_ENTITY, "Too many answers";
    UnknownProduct = "unknown_product", UNPROCESSABLE_ENTITY, "Unknown product";
    FollowsSelf = "follows_self", UNPROCESSABLE_ENTITY, "Following oneself";
    CartEmpty = "cart_empty", UNPROCESSABLE_ENTITY, "Empty cart";
    /// The change needs If-Match. A change that may create the record can have If-None-Match
    /// instead.
    IfMatchMissing = "if_match_missing", PRECONDITION_REQUIRED, "If-Match missing";
    /// The function failed. The log has the cause under the request id.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
    /// The table is at its capacity limit, or other requests keep changing the same items, or the
    /// work needs several requests. The client may retry after Retry-After.
    Throttled = "throttled", SERVICE_UNAVAILABLE, "Throttled";
    /// The product exists, but its stock is missing or cannot be decoded. A retry does not help: an
    /// operator must repair the stock.
    StockUnavailable = "stock_unavailable", SERVICE_UNAVAILABLE, "Stock unavailable";
    /// This deployment has no search engine. A retry does not help.
    SearchDisabled = "search_disabled", SERVICE_UNAVAILABLE, "Search disabled";
    /// This deployment has no account at a payment provider. A retry does not help.
    CardPaymentsDisabled = "card_payments_disabled", SERVICE_UNAVAILABLE, "Card payments disabled";
    /// This deployment has no keys for the secrets of webhooks, and sends none. A retry does not help.
    WebhooksDisabled = "webhooks_disabled", SERVICE_UNAVAILABLE, "Webhooks disabled";
    /// The shop is in maintenance and can only be read. The client may retry after Retry-After.
    Maintenance = "maintenance", SERVICE_UNAVAILABLE, "Maintenance";
    /// A service that the response needs is unavailable. The client may retry after Retry-After.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "Unavailable";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_a_unique_name_in_snake_case_and_an_error_status() {
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.name().chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{code:?}");
            assert!(code.status().is_client_error() || code.status().is_server_error(), "{code:?}");
            assert!(!code.title().is_empty());
        }
    }

    #[test]
    fn the_codes_that_the_contract_requires_exist() {
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        for fixed in "not_found already_exists email_taken username_taken insufficient_stock illegal_transition \
                      insufficient_funds account_not_found version_mismatch cursor_invalid body_too_large \
                      too_many_lines unknown_product forbidden unauthenticated throttled idempotency_key_missing \
                      idempotency_key_reused idempotency_in_progress too_many_pending_orders quantity_limit"
            .split_whitespace()
        {
            assert!(names.contains(fixed), "{fixed}");
        }
    }
}
