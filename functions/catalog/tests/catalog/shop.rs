//! A catalogue of its own for each test.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};
use emulators::table::{EmbeddedTable, Fault, FaultKind, FaultProxy};
use http_api::sample::{Answered, Call};
use http_api::{Routes, Store};
use key_schema::cursor::Cursors;
use key_schema::key::Index;
use serde_json::{Value, json};
use table::Table;

const CURSOR_KEYS: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

pub struct Shop {
    pub store: Store,
    pub routes: Routes<Store>,
    proxy: FaultProxy,
    _table: Option<EmbeddedTable>,
}

impl Shop {
    /// An empty catalogue.
    pub async fn open() -> Self {
        let (embedded, url) = match std::env::var("AWS_ENDPOINT_URL_DYNAMODB") {
            Ok(url) => (None, url.trim_end_matches('/').to_owned()),
            Err(_) => {
                let embedded = EmbeddedTable::start(None).unwrap();
                let url = embedded.url().to_owned();
                (Some(embedded), url)
            }
        };
        let proxy = FaultProxy::start(&url).await.unwrap();
        let name = format!("catalog-{:016x}", fastrand::u64(..));
        let client = client(proxy.url());
        create_table(&client, &name).await;
        let store = Store { table: Table::new(client, name), cursors: Cursors::new(CURSOR_KEYS).unwrap() };
        Self { store, routes: catalog::routes(), proxy, _table: embedded }
    }

    /// Sends a request.
    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.store).await
    }

    /// Sends a request as staff.
    pub async fn staff(&self, call: Call) -> Answered {
        self.send(call.staff("s1")).await
    }

    /// Creates a product and expects that to succeed.
    pub async fn stock_up(&self, id: &str, stock: u64) -> Answered {
        let answer = self.staff(Call::new("POST /v1/products").json(&product(id, stock))).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer
    }

    /// What anybody sees of a product.
    pub async fn product(&self, id: &str) -> Answered {
        self.send(Call::new("GET /v1/products/{id}").path("id", id)).await
    }

    /// Lets things go wrong from now on.
    pub fn break_with(&self, kind: FaultKind, rate: f64, count: Option<u32>, seed: u64) {
        self.proxy.faults().add(Fault { kind, rate, count, seed }).unwrap();
    }

    /// How often things went wrong; from now on they do not.
    pub fn mend(&self) -> u64 {
        let fired = self.proxy.faults().counts().iter().map(|count| count.fired).sum();
        self.proxy.faults().clear();
        fired
    }
}

/// A product's body.
pub fn product(id: &str, stock: u64) -> Value {
    json!({
        "id": id, "name": format!("Product {id}"), "brand": "National", "package_size": "22 LB",
        "category_path": ["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"],
        "price": {"amount": 129, "currency": "USD"}, "summary": "Cold.", "stock": stock,
    })
}

/// The same with one member changed.
pub fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

/// The values of one member of a list's items.
pub fn each<'a>(answer: &'a Answered, member: &str) -> Vec<&'a str> {
    answer.body["items"].as_array().unwrap().iter().map(|item| item[member].as_str().unwrap()).collect()
}

fn client(url: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(url)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}

async fn create_table(client: &Client, name: &str) {
    let key = |attribute: &str, kind: KeyType| {
        KeySchemaElement::builder().attribute_name(attribute).key_type(kind).build().unwrap()
    };
    let text = |attribute: &str| {
        let attribute = AttributeDefinition::builder().attribute_name(attribute);
        attribute.attribute_type(ScalarAttributeType::S).build().unwrap()
    };
    let mut request = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(text("PK"))
        .attribute_definitions(text("SK"))
        .key_schema(key("PK", KeyType::Hash))
        .key_schema(key("SK", KeyType::Range));
    for index in Index::ALL {
        let (partition, sort) = (index.partition_attribute(), index.sort_attribute());
        let projection = Projection::builder()
            .projection_type(ProjectionType::Include)
            .set_non_key_attributes(Some(index.projected().iter().map(ToString::to_string).collect()));
        let index = GlobalSecondaryIndex::builder()
            .index_name(index.name())
            .key_schema(key(partition, KeyType::Hash))
            .key_schema(key(sort, KeyType::Range))
            .projection(projection.build())
            .build()
            .unwrap();
        request = request.attribute_definitions(text(partition)).attribute_definitions(text(sort));
        request = request.global_secondary_indexes(index);
    }
    request.send().await.unwrap();
}
