use fastrand::Rng;
use reqwest::{RequestBuilder, StatusCode};
use serde::Serialize;
use serde_json::json;

use super::shop::{Shop, WORDS};

pub(crate) const LINES: usize = 5;
pub(crate) const PAGE: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Route {
    /// A product with the other items of its partition: one Query.
    Product,
    /// A customer and the newest orders: one Query.
    Overview,
    /// An order of five lines: a BatchGetItem and a transaction.
    Place,
    /// A page of a customer's orders: one Query.
    Orders,
    /// A page of products that contain a word: one request to the search engine.
    Search,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Server {
    /// The functions of the template.
    Bodega,
    /// bench/peers/node.
    Node,
    /// bench/peers/python.
    Python,
}

impl Server {
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Bodega => "/v1",
            Self::Node => "/peers/node",
            Self::Python => "/peers/python",
        }
    }
}

impl Route {
    pub const ALL: [Self; 5] = [Self::Product, Self::Overview, Self::Place, Self::Orders, Self::Search];

    /// Returns the route's method and path, as in the template.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Product => "GET /v1/products/{id}",
            Self::Overview => "GET /v1/customers/{id}/overview",
            Self::Place => "POST /v1/orders",
            Self::Orders => "GET /v1/customers/{id}/orders",
            Self::Search => "GET /v1/search/products",
        }
    }

    #[must_use]
    pub const fn has_peers(self) -> bool {
        matches!(self, Self::Product | Self::Place | Self::Orders)
    }

    pub(crate) const fn function(self, server: Server) -> &'static str {
        match (server, self) {
            (Server::Node, _) => "NodePeer",
            (Server::Python, _) => "PythonPeer",
            (Server::Bodega, Self::Product) => "Catalog",
            (Server::Bodega, Self::Overview) => "Customers",
            (Server::Bodega, Self::Place | Self::Orders) => "Orders",
            (Server::Bodega, Self::Search) => "Search",
        }
    }

    pub(crate) const fn expected(self) -> StatusCode {
        match self {
            Self::Place => StatusCode::CREATED,
            _ => StatusCode::OK,
        }
    }

    /// Returns a client's next request. `number` must be different for each request.
    pub(crate) fn request(
        self,
        shop: &Shop,
        server: Server,
        client: usize,
        number: u64,
        rng: &mut Rng,
    ) -> RequestBuilder {
        let customer = shop.customer(client);
        let id = &customer.id;
        match self {
            Self::Product => shop.get(server, &format!("/products/{}", shop.product(rng.usize(..)))),
            Self::Overview => shop.get(server, &format!("/customers/{id}/overview")).bearer_auth(&customer.token),
            Self::Place => {
                let lines: Vec<_> = rng
                    .choose_multiple(0..shop.products(), LINES)
                    .into_iter()
                    .map(|n| json!({"product_id": shop.product(n), "quantity": 1}))
                    .collect();
                let body = json!({"customer_id": id, "lines": lines});
                // Bodega limits a customer's unpaid orders, so staff places the orders. The peers
                // have no limit.
                let token = if server == Server::Bodega { shop.staff() } else { customer.token.as_str() };
                shop.post(server, "/orders", &body).bearer_auth(token).header("idempotency-key", number.to_string())
            }
            Self::Orders => {
                shop.get(server, &format!("/customers/{id}/orders?limit={PAGE}")).bearer_auth(&customer.token)
            }
            Self::Search => {
                let word = rng.choice(WORDS).unwrap_or_default();
                shop.get(server, &format!("/search/products?q={word}"))
            }
        }
    }
}
