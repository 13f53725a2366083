//! The addresses of the shop that agents and their buyers get.

use http_api::{Code, Problem, Request};
use key_schema::checkout_session::CheckoutSession;
use key_schema::id::OrderId;
use key_schema::order::guest::OrderToken;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::App;

/// The shop's pages for people, from the public setting `agents`.
#[derive(Debug)]
pub struct Pages {
    /// The address of the shop, without a slash at its end. The default is this API's own.
    pub shop: String,
    pub terms: Option<String>,
    pub privacy: Option<String>,
    /// The address of this API, as agents reach it.
    pub api: String,
}

impl Pages {
    pub async fn read(app: &App, request: &Request<'_>) -> Result<Self, Problem> {
        let no_host = || Problem::new(Code::MalformedRequest, "The request has no Host.");
        Self::of(app, request.origin()).await?.ok_or_else(no_host)
    }

    /// Returns the pages of a shop whose API has this address, unless the setting names another one.
    pub async fn of(app: &App, origin: Option<String>) -> Result<Option<Self>, Problem> {
        #[derive(Default, Deserialize)]
        struct Values {
            agents: Option<Urls>,
        }
        #[derive(Default, Deserialize)]
        struct Urls {
            shop_url: Option<String>,
            api_url: Option<String>,
            terms_url: Option<String>,
            privacy_url: Option<String>,
        }
        let services = &app.shop.services;
        let (known, _) = services.settings.current(&services.table).await?;
        let Values { agents } = serde_json::from_str(&known.values).unwrap_or_default();
        let Urls { shop_url, api_url, terms_url, privacy_url } = agents.unwrap_or_default();
        let whole = |url: String| url.trim_end_matches('/').to_owned();
        let Some(api) = api_url.map(whole).or(origin) else { return Ok(None) };
        let shop = shop_url.map_or_else(|| api.clone(), whole);
        Ok(Some(Self { shop, terms: terms_url, privacy: privacy_url, api }))
    }

    /// Returns the address of the page on which the buyer sees, pays and cancels the order. The token is in
    /// the fragment, which no server gets. It is known while the session lives.
    pub fn order(&self, session: Option<&CheckoutSession>, order: &OrderId) -> String {
        let page = format!("{}/orders/{order}", self.shop);
        match session {
            Some(session) => format!("{page}#token={}", OrderToken::of(&session.cart_token(), order).as_str()),
            None => page,
        }
    }

    pub fn links(&self) -> Vec<Value> {
        let link = |kind: &str, url: &Option<String>| url.as_ref().map(|url| json!({ "type": kind, "url": url }));
        [link("terms_of_service", &self.terms), link("privacy_policy", &self.privacy)].into_iter().flatten().collect()
    }

    pub fn picture(&self, product: &str, picture: &str) -> String {
        format!("{}{}", self.api, http_api::url::picture(product, picture))
    }
}
