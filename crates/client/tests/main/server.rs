//! A tiny HTTP server: one scripted reply for each connection, and it remembers what was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;

use yson::{Map, Value};

/// What came in.
#[derive(Debug, Default)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// Parameters from the headers or from the body of a POST.
    pub fn parameters(&self) -> Map {
        let text = match (self.method.as_str(), self.header("X-YT-Parameters")) {
            ("POST", _) => self.body.clone(),
            (_, Some(text)) => text.as_bytes().to_vec(),
            (_, None) => {
                let parts = (0..).map_while(|i| self.header(&format!("X-YT-Parameters{i}")));
                base64(&parts.collect::<String>())
            }
        };
        yson::parse(&text).expect("parameters are YSON").as_map().cloned().expect("parameters are a map")
    }
}

/// What goes out.
pub enum Say {
    /// A binary YSON value.
    Value(Value),
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// Status, headers, body.
    Raw(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// The same, without reading the body of the request.
    RawAtOnce(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Promises more bytes than it sends.
    Broken(Vec<u8>),
    /// Closes the connection without a word.
    HangUp,
}

pub struct Server {
    pub address: String,
    thread: JoinHandle<Vec<Seen>>,
}

impl Server {
    /// Answers as many connections as there are replies.
    pub fn start(script: Vec<Say>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let thread = std::thread::spawn(move || {
            script.into_iter().map(|say| serve(listener.accept().expect("a connection").0, say)).collect()
        });
        Server { address, thread }
    }

    /// Everything that was asked.
    pub fn seen(self) -> Vec<Seen> {
        self.thread.join().expect("the server did not panic")
    }
}

fn serve(stream: TcpStream, say: Say) -> Seen {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut out = stream;
    let mut seen = read_head(&mut reader);
    if !matches!(say, Say::RawAtOnce(..)) {
        if seen.header("Expect").is_some() {
            out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").expect("a listening client");
        }
        seen.body = read_body(&mut reader, &seen);
    }
    let reply = match say {
        Say::Value(value) => response(200, &[], &yson::to_binary(&value)),
        Say::Bytes(bytes) => response(200, &[], &bytes),
        Say::Raw(status, headers, body) | Say::RawAtOnce(status, headers, body) => {
            response(status, &headers, &body)
        }
        Say::Broken(bytes) => {
            let mut reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_vec();
            reply.extend(bytes);
            reply
        }
        Say::HangUp => Vec::new(),
    };
    out.write_all(&reply).expect("a listening client");
    let _ = out.shutdown(Shutdown::Both);
    seen
}

fn response(status: u16, headers: &[(&str, String)], body: &[u8]) -> Vec<u8> {
    let mut reply = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        reply.push_str(&format!("{name}: {value}\r\n"));
    }
    reply.push_str("\r\n");
    let mut reply = reply.into_bytes();
    reply.extend(body);
    reply
}

fn read_line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    line.trim_end().to_owned()
}

fn read_head(reader: &mut impl BufRead) -> Seen {
    let first = read_line(reader);
    let mut words = first.split(' ').map(str::to_owned);
    let mut seen = Seen {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        ..Seen::default()
    };
    loop {
        let line = read_line(reader);
        let Some((name, value)) = line.split_once(": ") else { return seen };
        seen.headers.push((name.to_owned(), value.to_owned()));
    }
}

fn read_body(reader: &mut impl BufRead, seen: &Seen) -> Vec<u8> {
    let mut body = Vec::new();
    if let Some(length) = seen.header("Content-Length") {
        let length = length.parse().expect("a number");
        reader.take(length).read_to_end(&mut body).expect("a body");
    } else if seen.header("Transfer-Encoding") == Some("chunked") {
        loop {
            let size = read_line(reader);
            if size.is_empty() {
                break; // the client gave up
            }
            let size = u64::from_str_radix(&size, 16).expect("a size of a chunk");
            reader.take(size).read_to_end(&mut body).expect("a chunk");
            read_line(reader);
            if size == 0 {
                break;
            }
        }
    }
    body
}

/// Slow and plain: an own decoder, so that the encoder is not checked by itself.
fn base64(text: &str) -> Vec<u8> {
    let digit = |c: char| match c {
        'A'..='Z' => c as u32 - 'A' as u32,
        'a'..='z' => c as u32 - 'a' as u32 + 26,
        '0'..='9' => c as u32 - '0' as u32 + 52,
        '+' => 62,
        '/' => 63,
        other => panic!("not base64: {other}"),
    };
    let (mut out, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for c in text.chars().filter(|c| *c != '=') {
        bits = bits << 6 | digit(c);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    out
}
