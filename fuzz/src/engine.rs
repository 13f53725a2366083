//! A search engine that finds the same two products and orders in whatever it is asked, and keeps the question.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// The engine's side of a connection.
#[derive(Debug, Clone, Default)]
pub struct Engine(Arc<Mutex<Option<Value>>>);

impl Engine {
    /// Begins to listen; the address that it is found at.
    ///
    /// # Panics
    /// When no port of this machine is free.
    #[must_use]
    pub fn start() -> (String, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let engine = Self::default();
        let serving = engine.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let engine = serving.clone();
                // A client that goes away ends its thread.
                std::thread::spawn(move || engine.serve(stream));
            }
        });
        (address, engine)
    }

    /// What was asked last, once.
    #[must_use]
    pub fn asked(&self) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        loop {
            let (mut path, mut length) = (None, 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                let line = line.trim_end();
                if line.is_empty() {
                    break;
                }
                if let Some((name, value)) = line.split_once(": ") {
                    if name.eq_ignore_ascii_case("content-length") {
                        length = value.parse().unwrap_or(0);
                    }
                } else {
                    path = line.split(' ').nth(1).map(str::to_owned);
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = serde_json::from_slice(&body).ok();
            let orders = path.is_some_and(|path| path.contains("orders"));
            let answer = found(orders).to_string();
            write!(
                writer,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            )?;
            writer.flush()?;
        }
    }
}

fn found(orders: bool) -> Value {
    let price = json!({"price_amount": 129, "price_currency": "USD", "total_amount": 774, "total_currency": "USD"});
    let hit = |id: &str| {
        let mut source = price.clone();
        source["id"] = id.into();
        let fields = if orders {
            json!({"customer_id": "c1", "status": "paid", "placed_at": "2017-01-01T11:53:26.000Z", "line_count": 1, "version": 1, "deleted": false})
        } else {
            json!({"name": "ICE", "brand": "Private", "category_path": ["GROCERY"], "category": ["GROCERY"], "summary": "ice", "in_stock": true,
                "rating_sum": 9, "rating_count": 2, "created_at": "2017-01-01T11:53:26.000Z", "version": 1, "deleted": false})
        };
        source.as_object_mut().zip(fields.as_object()).map(|(source, fields)| source.extend(fields.clone()));
        json!({"_id": id, "_score": 1.5, "_source": source, "sort": [1.5, id], "highlight": {"name": ["<em>ICE</em>"]}})
    };
    let facet = json!({"buckets": [{"key": "GROCERY", "doc_count": 2}]});
    json!({"hits": {"total": {"value": 2}, "hits": [hit("p1"), hit("p2")]}, "aggregations": {"category": facet, "brand": facet}})
}
