//! Requests of the real client (`yt` and the SDK, 0.13.55), byte for byte but for ids and names of
//! machines, with what they become and what they are answered.
//!
//! `UPDATE_EXPECT=1 cargo test -p millpond-api recorded` writes the file anew.

use crate::http::Server;
use std::fmt::Write as _;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/main/recorded.txt");

#[test]
fn requests_of_the_real_client() {
    let text = std::fs::read_to_string(FILE).expect("the recording");
    let mut expected = String::new();
    let mut found = String::new();
    for section in text.split("=== ").skip(1) {
        let request = section.split("--- reply\n").next().expect("there is always one piece");
        let (head, body) = request.split_once("\n\n").expect("a request has an empty line");
        let server = Server::start();
        let reply = server.ask(head, body.trim_end().as_bytes());
        let calls = server.fake.take_calls();
        write!(expected, "=== {section}").expect("memory");
        write!(
            found,
            "=== {request}--- reply\n{} {}\n",
            reply.status,
            reply.header("content-type").unwrap_or("-")
        )
        .expect("memory");
        writeln!(found, "{}", shown(&reply.body)).expect("memory");
        for call in calls {
            writeln!(found, "--- call\n{call}").expect("memory");
        }
        server.stop();
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(FILE, found).expect("the recording is writable");
    } else {
        assert_eq!(found, expected);
    }
}

/// Text as it is, binary YSON escaped; time and process of an error are cut out.
fn shown(body: &[u8]) -> String {
    let text = match std::str::from_utf8(body) {
        Ok(text) if !text.contains(|c: char| c.is_control() && c != '\n') => text.to_owned(),
        _ => body.escape_ascii().to_string(),
    };
    let mut text = text.replace(&format!("\"pid\":{}", std::process::id()), "\"pid\":PID");
    if let Some(at) = text.find("\"datetime\":\"") {
        let from = at + "\"datetime\":\"".len();
        text.replace_range(from..from + "2026-01-02T03:04:05.678901Z".len(), "TIME");
    }
    text
}
