//! A separate catalogue for each test.

use std::ops::Deref;
use std::time::Duration;

use aws::s3::Bucket;
use aws::{Credentials, SharedCredentialsProvider};
use catalog::App;
use emulators::objects::ObjectServer;
use fixture::{Harness, TestTable, seed};
use http_api::sample::{Answered, Call};
use key_schema::instant::Instant;
use key_schema::media;
use key_schema::product::{self as schema, STOCK_LOW};
use serde_json::{Value, json};
use storage::media::Media;

pub struct Shop {
    pub harness: Harness<App>,
    pub objects: ObjectServer,
}

impl Deref for Shop {
    type Target = Harness<App>;

    fn deref(&self) -> &Self::Target {
        &self.harness
    }
}

/// The bucket of pictures.
pub const BUCKET: &str = "bodega-media";

impl Shop {
    /// Creates an empty catalogue.
    pub async fn open() -> Self {
        let objects = ObjectServer::start(None, &[BUCKET.to_owned()]).await.unwrap();
        let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
        let media = Media::new(Bucket::new(BUCKET, "us-east-1", Some(objects.url()), credentials).unwrap());
        // The time is longer than in production, so that a slow machine loses no view.
        let view_time = Duration::from_secs(10);
        let app = |test: &TestTable| App { services: test.services(), media, stock_low: STOCK_LOW, view_time };
        Self { harness: Harness::start(catalog::routes(), app).await, objects }
    }

    /// Sends a request as staff.
    pub async fn staff(&self, call: Call) -> Answered {
        self.send(call.staff("s1")).await
    }

    /// Creates a product and expects success.
    pub async fn stock_up(&self, id: &str, stock: u64) -> Answered {
        let answer = self.staff(Call::new("POST /v1/products").json(&product(id, stock))).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer
    }

    /// Returns the pieces of each shard of a stock.
    pub async fn pieces(&self, id: &str) -> Vec<u64> {
        let first = self.own().get(&schema::stock(&id.parse().unwrap()).unwrap()).await.unwrap().unwrap();
        let shards = workflows::stock::shards::<()>(self.own(), first).await.unwrap();
        shards.iter().map(|shard| shard.available).collect()
    }

    /// Gives a stock so many shards.
    pub async fn spread(&self, id: &str, shards: u32) {
        let id = id.parse().unwrap();
        workflows::stock::reshard::<()>(self.own(), &id, shards).await.unwrap().unwrap();
        workflows::stock::level::<()>(self.own(), &id).await.unwrap();
    }

    /// Sets the pieces of each shard.
    pub async fn set_shards(&self, id: &str, pieces: &[u64]) {
        let first = self.own().get(&schema::stock(&id.parse().unwrap()).unwrap()).await.unwrap().unwrap();
        let shards = workflows::stock::shards::<()>(self.own(), first).await.unwrap();
        for (mut shard, pieces) in shards.into_iter().zip(pieces) {
            shard.data.available = *pieces;
            self.put(&shard).await;
        }
    }

    /// Signs up a customer. A repeated call changes nothing that these tests see.
    pub async fn join(&self, id: &str) {
        self.put(&seed::stored(seed::customer(id))).await;
    }

    /// Reads a product, and adds the numbers that only staff see.
    pub async fn product(&self, id: &str) -> Answered {
        let mut page = self.send(Call::new("GET /v1/products/{id}").path("id", id)).await;
        let numbers = self.staff(Call::new("GET /v1/products/{id}/numbers").path("id", id)).await;
        assert_eq!((numbers.status, numbers.version()), (page.status, page.version()));
        for name in ["stock", "sold"] {
            if let Some(number) = numbers.body.get(name) {
                page.body[name] = number.clone();
            }
        }
        page
    }
}

/// Builds the body of a product.
pub fn product(id: &str, stock: u64) -> Value {
    json!({
        "id": id, "name": format!("Product {id}"), "brand": "National", "package_size": "22 LB",
        "category_path": ["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"],
        "price": {"amount": 129, "currency": "USD"}, "summary": "Cold.", "stock": stock,
    })
}

/// Returns the body with one member changed.
pub fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

/// Returns the values of one member of a list's items.
pub fn each<'a>(answer: &'a Answered, member: &str) -> Vec<&'a str> {
    answer.body["items"].as_array().unwrap().iter().map(|item| item[member].as_str().unwrap()).collect()
}

/// The content of a picture. [`permit`] declares its length.
pub const ICE: &[u8] = b"a picture of ice";

/// Builds the request for a permission to upload [`ICE`] as a picture of a product.
pub fn permit(product: &str) -> Call {
    let body = json!({"content_type": "image/webp", "bytes": ICE.len()});
    Call::new("POST /v1/products/{id}/pictures").path("id", product).json(&body)
}

/// Builds the request that adds an upload to a product's pictures.
pub fn add(product: &str, picture: &str) -> Call {
    let call = Call::new("PUT /v1/products/{id}/pictures/{picture}").path("id", product).path("picture", picture);
    call.json(&json!({}))
}

/// Builds the request that lists a product's pictures, without a token.
pub fn pictures(product: &str) -> Call {
    Call::new("GET /v1/products/{id}/pictures").path("id", product)
}

/// Uploads a body with a permission and returns the response's status.
pub async fn upload(permit: &Answered, body: &[u8]) -> u16 {
    let upload = &permit.body["upload"];
    assert_eq!(upload["method"], "PUT");
    let mut request = reqwest::Client::new().put(upload["url"].as_str().unwrap()).body(body.to_vec());
    for (name, value) in upload["headers"].as_object().unwrap() {
        // The HTTP client sets the length itself.
        if name != "content-length" {
            request = request.header(name, value.as_str().unwrap());
        }
    }
    request.send().await.unwrap().status().as_u16()
}

impl Shop {
    /// Uploads [`ICE`] for a product and returns the upload's id.
    pub async fn uploaded(&self, product: &str) -> String {
        let permit = self.staff(permit(product)).await;
        assert_eq!(permit.status, 201, "{}", permit.body);
        assert_eq!(upload(&permit, ICE).await, 200);
        permit.body["id"].as_str().unwrap().to_owned()
    }

    /// Uploads a picture, adds it to a product, and returns the picture's id.
    pub async fn pictured(&self, product: &str) -> String {
        let id = self.uploaded(product).await;
        let added = self.staff(add(product, &id)).await;
        assert_eq!(added.status, 201, "{}", added.body);
        id
    }

    /// Returns the names of the bucket's objects that begin with a prefix.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let all = self.objects.list(BUCKET, None, 1000).unwrap().items.into_iter().map(|object| object.name);
        all.filter(|name| name.starts_with(prefix)).collect()
    }

    /// Returns the ids of the objects that have an `UnsettledObject`.
    pub async fn noted(&self) -> Vec<String> {
        let later = Instant::now().plus_seconds(60);
        let found = self.own().query(&media::unsettled_since(later).unwrap()).await.unwrap();
        found.items.into_iter().map(|object| object.id.to_string()).collect()
    }
}
