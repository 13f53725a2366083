//! An HTTP service that gives prepared responses and records the requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The operation, in the JSON protocol.
    pub target: Option<String>,
    pub body: String,
}

pub struct Service {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Service {
    /// Serves these responses, one after the other. Afterwards it closes each new connection.
    pub async fn start(answers: impl IntoIterator<Item = (u16, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let mut answers = answers.into_iter().collect::<VecDeque<_>>();
        let recorded = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                if let Some(answer) = answers.pop_front() {
                    let request = serve(connection, answer).await;
                    recorded.lock().unwrap().push(request);
                }
            }
        });
        Self { url, asked }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(connection: TcpStream, (status, body): (u16, String)) -> Asked {
    let mut stream = BufReader::new(connection);
    let (mut length, mut target) = (0, None);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "x-amz-target" => target = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut request = vec![0; length];
    stream.read_exact(&mut request).await.unwrap();
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    Asked { target, body: String::from_utf8(request).unwrap() }
}
