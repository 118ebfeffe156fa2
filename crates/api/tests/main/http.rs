//! A server on a free port, and a client that shows every byte.

use crate::fake::Fake;
use api::{Api, Authenticator, Grace, OpenAccess, Settings};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use yson::{Format, JsonFormat, Value};

pub struct Server {
    pub address: SocketAddr,
    pub fake: Fake,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    pub fn start() -> Server {
        Server::with(Arc::new(OpenAccess))
    }

    pub fn with(authenticator: Arc<dyn Authenticator>) -> Server {
        Server::over(authenticator, false, Grace::of_requests(Duration::from_secs(5)))
    }

    /// As on a loopback address without users.
    pub fn only_near() -> Server {
        Server::over(Arc::new(OpenAccess), true, Grace::of_requests(Duration::from_secs(5)))
    }

    /// What it waits for when it stops.
    pub fn with_grace(grace: Grace) -> Server {
        Server::over(Arc::new(OpenAccess), false, grace)
    }

    fn over(authenticator: Arc<dyn Authenticator>, only_near: bool, grace: Grace) -> Server {
        let fake = Fake::default();
        let settings = Settings {
            version: "1.2.3".to_owned(),
            public_address: None,
            only_near,
            host_name: "test-host".to_owned(),
            tls: false,
            in_flight: api::InFlightLimits::default(),
            limits: api::RequestLimits::default(),
            node_authority: None,
        };
        let api = Api::new(Arc::new(fake.clone()), authenticator, settings);
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
                tell.send(listener.local_addr().expect("bound")).expect("the test waits");
                let shutdown = async move {
                    let _ = stopped.await;
                };
                api::serve(listener, api::Doors::plain(api.router()), 1000, shutdown, grace).await;
            });
        });
        let address = told.recv().expect("the server has started");
        Server { address, fake, stop: Some(stop), thread: Some(thread) }
    }

    pub fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Connection { reader: BufReader::new(stream) }
    }

    /// One request on a new connection; `head` is everything up to the body, lines ended by `\n`.
    pub fn ask(&self, head: &str, body: &[u8]) -> Reply {
        self.connect().ask(head, body)
    }

    /// Tells the server to stop, and does not wait for its end.
    pub fn tell_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Ends the server and waits for it.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends well");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}

pub struct Connection {
    reader: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// What came behind a body of chunks.
    pub trailers: Vec<(String, String)>,
    /// The body ended as its headers promised.
    pub complete: bool,
}

impl Connection {
    /// Reads lines up to one that is empty; nothing when the connection has ended.
    pub fn paragraph(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match self.reader.read_line(&mut line) {
                Ok(0) | Err(_) => return lines,
                Ok(_) if line.trim_end().is_empty() && !lines.is_empty() => return lines,
                Ok(_) => lines.push(line.trim_end().to_owned()),
            }
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).expect("the server reads");
    }

    /// Sends a request with `Host` and `Content-Length` added, and reads the reply.
    pub fn ask(&mut self, head: &str, body: &[u8]) -> Reply {
        let mut bytes = Vec::new();
        for line in head.trim().lines() {
            bytes.extend_from_slice(line.trim().as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        let length = body.len();
        bytes.extend_from_slice(
            format!("Host: example.org:80\r\nContent-Length: {length}\r\n\r\n").as_bytes(),
        );
        bytes.extend_from_slice(body);
        self.send(&bytes);
        self.read(head.starts_with("HEAD"))
    }

    /// Reads one reply; a closed connection gives status 0.
    pub fn read(&mut self, without_body: bool) -> Reply {
        let mut reply =
            Reply { status: 0, headers: Vec::new(), body: Vec::new(), trailers: Vec::new(), complete: false };
        let mut line = String::new();
        if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
            return reply;
        }
        reply.status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status line");
        loop {
            line.clear();
            self.reader.read_line(&mut line).expect("a header");
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            reply.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        reply.complete = true;
        if without_body {
            return reply;
        }
        if let Some(length) = reply.header("content-length") {
            let length: usize = length.parse().expect("a number");
            let mut limited = (&mut self.reader).take(length as u64);
            reply.complete = limited.read_to_end(&mut reply.body).is_ok() && reply.body.len() == length;
        } else if reply.header("transfer-encoding") == Some("chunked") {
            reply.complete = self.read_chunks(&mut reply).is_some();
        }
        reply
    }

    fn read_chunks(&mut self, reply: &mut Reply) -> Option<()> {
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).ok()?;
            let length = usize::from_str_radix(line.trim(), 16).ok()?;
            if length == 0 {
                break;
            }
            let mut chunk = vec![0; length + 2];
            self.reader.read_exact(&mut chunk).ok()?;
            reply.body.extend_from_slice(&chunk[..length]);
        }
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { return Some(()) };
            reply.trailers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The error in a reply, checked against the contract of http-api.md 3.1.
    pub fn error(&self) -> Value {
        assert!(self.complete, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert_eq!(self.header("x-yt-error-content-type"), Some("application/json"));
        let header = self.header("x-yt-error").expect("the error as a header");
        assert_eq!(header, self.text());
        let error = Format::Json(JsonFormat::utf8()).deserialize(&self.body).expect("good JSON");
        let code = error.get("code").and_then(Value::as_i64).expect("a code");
        assert_eq!(self.header("x-yt-response-code"), Some(code.to_string().as_str()));
        assert!(code != 0 && self.header("x-yt-response-message").is_some());
        check_error(&error);
        error
    }

    /// Status and code of an error.
    pub fn code(&self) -> (u16, i64) {
        (self.status, self.error().get("code").and_then(Value::as_i64).expect("a code"))
    }
}

/// Exactly the four keys, everywhere in the tree: clients crash on others.
pub fn check_error(error: &Value) {
    let keys: Vec<String> = error.as_map().expect("a map").key_strings().collect();
    assert_eq!(keys, ["code", "message", "attributes", "inner_errors"]);
    assert!(error.get("attributes").and_then(Value::as_map).is_some());
    for inner in error.get("inner_errors").and_then(Value::as_list).expect("a list") {
        check_error(inner);
    }
}
