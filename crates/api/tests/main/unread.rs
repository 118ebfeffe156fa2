//! Replies that clients ask for on one connection of HTTP/2 and do not read.

use crate::http::Server;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use yson::Value;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
/// Flags.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Settings.
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
/// Of all windows at the beginning.
const USUAL_WINDOW: u32 = 65_535;

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// Just enough of HTTP/2.
struct Http2(TcpStream);

impl Http2 {
    /// Each stream, and all of them together, may send `window` bytes.
    fn connect(server: &Server, window: u32) -> Http2 {
        let stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let mut this = Http2(stream);
        this.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("the server reads");
        let mut settings = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        settings.extend(window.to_be_bytes());
        this.send(SETTINGS, 0, 0, &settings);
        if window > USUAL_WINDOW {
            this.send(WINDOW_UPDATE, 0, 0, &(window - USUAL_WINDOW).to_be_bytes());
        }
        this
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).expect("the server reads");
    }

    fn get(&mut self, stream: u32, path: &str) {
        let mut block = Vec::new();
        for (name, value) in
            [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "example.org")]
        {
            // A literal that is not kept.
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).ok().filter(|n| *n < 127).expect("short"));
                block.extend(text.as_bytes());
            }
        }
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &block);
    }

    fn read(&mut self) -> Frame {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).expect("a frame");
        let number = |bytes: &[u8]| bytes.iter().fold(0u32, |number, byte| (number << 8) | u32::from(*byte));
        let mut payload = vec![0; number(&head[..3]) as usize];
        self.0.read_exact(&mut payload).expect("the rest of it");
        Frame { kind: head[3], flags: head[4], stream: number(&head[5..]), payload }
    }

    /// A setting of the server.
    fn setting(&mut self, wanted: u16) -> Option<u32> {
        let frame = self.read();
        assert_eq!((frame.kind, frame.flags), (SETTINGS, 0), "settings come first");
        frame.payload.chunks_exact(6).find_map(|setting| {
            let (name, value) = setting.split_at(2);
            let value: [u8; 4] = value.try_into().expect("four");
            (name == wanted.to_be_bytes()).then(|| u32::from_be_bytes(value))
        })
    }
}

/// The status of a reply, by its number in the table that both sides know.
fn status(frame: &Frame) -> u16 {
    match frame.payload.first() {
        Some(0x88) => 200,
        Some(0x8c) => 400,
        other => panic!("{other:x?}"),
    }
}

fn set(server: &Server, path: &str, value: &str) {
    let head = format!("PUT /api/v4/set?path={path} HTTP/1.1\nContent-Type: application/x-yt-yson-text");
    let reply = server.ask(&head, format!("\"{value}\"").as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
}

const STREAMS: u32 = 100;

/// S14. Each of these replies was too small to be counted, and one connection could have two hundred of them.
#[test]
fn replies_on_the_streams_of_one_connection_are_bounded() {
    let size = 900_000;
    for (path, question) in
        [("//x", "/api/v4/get?path=//x"), ("//events", "/api/millpond/events"), ("//metrics", "/metrics")]
    {
        let server = Server::start();
        set(&server, path, &"x".repeat(size));
        let mut client = Http2::connect(&server, USUAL_WINDOW);
        assert_eq!(client.setting(MAX_CONCURRENT_STREAMS), Some(STREAMS));
        for i in 0..STREAMS {
            client.get(2 * i + 1, question);
        }
        let mut statuses = BTreeMap::new();
        while statuses.len() < STREAMS as usize {
            let frame = client.read();
            assert_ne!(frame.kind, RESET, "{question}: stream {}", frame.stream);
            if frame.kind == HEADERS {
                statuses.insert(frame.stream, status(&frame));
            }
        }
        let given = statuses.values().filter(|status| **status == 200).count();
        assert_eq!(given, (64 << 20) / size, "{question}");
        // Small ones go on, and when the client has gone all others do.
        assert_eq!(server.ask("GET /api/v4/get?path=//small HTTP/1.1", b"").status, 200);
        assert_eq!(server.ask(&format!("GET {question} HTTP/1.1"), b"").code(), (400, 904), "{question}");
        drop(client);
        let patience = Instant::now() + Duration::from_secs(60);
        while server.ask(&format!("GET {question} HTTP/1.1"), b"").status != 200 {
            assert!(Instant::now() < patience, "{question}: no room after the client has gone");
            std::thread::yield_now();
        }
    }
}

/// S14. What bounds the pieces under way does not stop a reader.
#[test]
fn bodies_that_come_piece_by_piece_come_to_their_end() {
    let server = Server::start();
    let content: Vec<u8> = (0..3_000_000u32).map(|i| ((i * 31) >> 5) as u8).collect();
    server.fake.lock().files.insert("//f".to_owned(), content.clone());
    let mut client = Http2::connect(&server, 1 << 30);
    let streams = [1, 3, 5];
    for stream in streams {
        client.get(stream, "/api/v4/read_file?path=//f");
    }
    let mut bodies: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut ended = 0;
    while ended < streams.len() {
        let frame = client.read();
        match frame.kind {
            HEADERS => assert_eq!(status(&frame), 200),
            DATA => bodies.entry(frame.stream).or_default().extend(frame.payload),
            RESET => panic!("stream {} was reset", frame.stream),
            _ => {}
        }
        if matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0 {
            ended += 1;
        }
    }
    assert!(bodies.len() == 3 && bodies.values().all(|body| *body == content));
}

/// S14. An error is told whatever was not read before, and what everybody is told is there once.
#[test]
fn errors_come_through_while_nothing_else_does() {
    let server = Server::start();
    set(&server, "//x", &"x".repeat(900_000));
    let mut client = Http2::connect(&server, 0);
    client.setting(MAX_CONCURRENT_STREAMS);
    for i in 0..STREAMS {
        client.get(2 * i + 1, if i % 2 == 0 { "/api/v4/get?path=//x" } else { "/api/openapi.json" });
    }
    for _ in 0..STREAMS {
        while client.read().kind != HEADERS {}
    }
    let mut other = Http2::connect(&server, 0);
    for i in 0..STREAMS {
        other.get(2 * i + 1, "/api/v4/get?path=//x");
    }
    let mut refused = 0;
    for _ in 0..STREAMS {
        let frame = loop {
            let frame = other.read();
            if frame.kind == HEADERS {
                break frame;
            }
        };
        refused += usize::from(status(&frame) == 400);
    }
    assert_eq!(refused, 150 - (64 << 20) / 900_000);
    let reply = server.ask("GET /api/v4/get?path=//long_error HTTP/1.1", b"");
    assert_eq!((reply.status, reply.error().get("code").and_then(Value::as_i64)), (400, Some(1)));
}
