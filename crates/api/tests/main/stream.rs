//! The event stream: `/api/millpond/stream`.

use crate::http::{Connection, Server};
use crate::tokens::Tokens;
use kernel::{Topic, Versions};
use std::sync::Arc;

/// An open stream, past the headers of the reply.
fn open(server: &Server, header: &str) -> Connection {
    let mut connection = server.connect();
    let extra = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    let head = format!("GET /api/millpond/stream HTTP/1.1\r\nHost: example.org\r\n{extra}\r\n");
    connection.send(head.as_bytes());
    let headers = connection.paragraph();
    assert!(headers[0].contains(" 200 "), "{headers:?}");
    assert!(headers.iter().any(|h| h == "content-type: text/event-stream"), "{headers:?}");
    assert!(headers.iter().any(|h| h == "cache-control: no-store"), "{headers:?}");
    connection
}

/// The next event: id, name and data; the sizes of chunks are skipped.
fn event(connection: &mut Connection) -> (String, String, String) {
    let (mut id, mut name) = (String::new(), String::new());
    loop {
        for line in connection.paragraph() {
            match line.split_once(": ") {
                Some(("id", text)) => id = text.to_owned(),
                Some(("event", text)) => name = text.to_owned(),
                Some(("data", text)) => return (id, name, text.to_owned()),
                _ => {}
            }
        }
    }
}

fn touch(server: &Server, topic: Topic) {
    server.fake.lock().changes.send_modify(|Versions(numbers)| numbers[topic as usize] += 1);
}

#[test]
fn says_what_changed_and_goes_on_where_it_was() {
    let server = Server::start();
    touch(&server, Topic::Pools);
    let mut stream = open(&server, "");
    let (_, name, data) = event(&mut stream);
    assert_eq!(name, "hello");
    let all = r#""topics":["pools","operations","nodes","preemptions","alerts"]"#;
    assert!(data.starts_with(&format!(r#"{{"version":1,{all},"start_time":""#)), "{data}");

    touch(&server, Topic::Nodes);
    let (id, name, data) = event(&mut stream);
    assert_eq!((name.as_str(), data.as_str()), ("changed", r#"{"version":2,"topics":["nodes"]}"#));

    // Within a second: told together. On a busy machine the second may be over between two changes.
    let mut version = 2;
    let mut told = Vec::new();
    let is_told_together = (0..20).any(|_| {
        touch(&server, Topic::Pools);
        touch(&server, Topic::Alerts);
        touch(&server, Topic::Alerts);
        version += 3;
        let newest = format!(r#"{{"version":{version},"topics":"#);
        let data = loop {
            let (_, _, data) = event(&mut stream);
            told.push(data.clone());
            if data.starts_with(&newest) {
                break data;
            }
        };
        data == format!(r#"{newest}["pools","alerts"]}}"#)
    });
    assert!(is_told_together, "{told:?}");
    drop(stream);

    let mut again = open(&server, &format!("Last-Event-ID: {id}"));
    let (_, name, data) = event(&mut again);
    assert_eq!(name, "hello");
    let expected = format!(r#"{{"version":{version},"topics":["pools","alerts"],"start_time""#);
    assert!(data.starts_with(&expected), "{data}");
    for unknown in ["nonsense", "0-1.1.1.1.1", &id[..id.len() - 2]] {
        let mut other = open(&server, &format!("Last-Event-ID: {unknown}"));
        assert!(event(&mut other).2.contains(all), "{unknown}");
    }
}

#[test]
fn only_for_those_who_may_ask() {
    let tokens = Tokens::default();
    let server = Server::with(Arc::new(tokens.clone()));
    let ask = |head: &str| server.ask(head, b"").code();
    assert_eq!(ask("GET /api/millpond/stream HTTP/1.1"), (401, 111));
    assert_eq!(ask("GET /api/millpond/stream HTTP/1.1\nAuthorization: OAuth x"), (401, 111));
    assert_eq!(server.ask("POST /api/millpond/stream HTTP/1.1", b"").status, 405);
    let mut stream = open(&server, "Authorization: OAuth tok-ann");
    assert_eq!(event(&mut stream).1, "hello");
    // However much there is to tell: who may not ask any more is told nothing.
    tokens.lock_out();
    touch(&server, Topic::Nodes);
    let rest = stream.paragraph();
    assert!(!rest.iter().any(|line| line.contains("changed")), "{rest:?}");
}
