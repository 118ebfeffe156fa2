//! The wire itself: keep-alive, sizes, slow and broken senders (http-api.md 2.2, 2.10, 14.19).

use crate::http::Server;
use std::time::{Duration, Instant};

#[test]
fn connections_are_kept() {
    let server = Server::start();
    let mut connection = server.connect();
    for i in 0..50 {
        let request = match i % 5 {
            0 => "GET /api/v4 HTTP/1.1",
            1 => "GET /api/v4/get?path=//a HTTP/1.1",
            2 => "GET /api/v4/get?path=//missing HTTP/1.1",
            3 => "GET /api/v4/no_such HTTP/1.1",
            _ => "POST /api/v4/create?type=map_node&path=//a HTTP/1.1",
        };
        let reply = connection.ask(request, b"");
        assert!(reply.complete && reply.header("connection").is_none(), "{reply:?}");
    }
    // Idle for a while, then used again.
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(connection.ask("GET /ping HTTP/1.1", b"").status, 200);
    // Several requests at once are answered in order.
    connection.send(b"GET /version HTTP/1.1\r\nHost: h\r\n\r\nGET /ping HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(connection.read(false).text(), "1.2.3");
    assert_eq!(connection.read(false).text(), "");
    // HTTP/1.0 clients and those who ask for it get the end.
    let reply = connection.ask("GET /ping HTTP/1.1\nConnection: close", b"");
    assert_eq!(reply.status, 200);
    assert_eq!(connection.read(false).status, 0);
}

#[test]
fn huge_headers() {
    let server = Server::start();
    let names: Vec<String> = (0..20_000).map(|i| format!("\"attribute-{i}\"")).collect();
    let parameters = format!("{{\"path\"=\"//a\";\"attributes\"=[{}]}}", names.join(";"));
    assert!(parameters.len() > 256 << 10);
    let mut connection = server.connect();
    let head = format!(
        "GET /api/v4/get HTTP/1.1\nX-YT-Header-Format: <format=text>yson\nX-YT-Parameters: {parameters}"
    );
    assert_eq!(connection.ask(&head, b"").status, 200);
    assert!(server.fake.take_calls()[0].contains("attribute-19999"));
    // The same in parts, base64.
    let parts: Vec<String> = base64(parameters.as_bytes())
        .as_bytes()
        .chunks(16_000)
        .enumerate()
        .map(|(i, part)| format!("X-YT-Parameters-{i}: {}", String::from_utf8_lossy(part)))
        .collect();
    let head =
        format!("GET /api/v4/get HTTP/1.1\nX-YT-Header-Format: <format=text>yson\n{}", parts.join("\n"));
    assert_eq!(connection.ask(&head, b"").status, 200);
    assert!(server.fake.take_calls()[0].contains("attribute-19999"));
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= group.len() { digit as char } else { '=' });
        }
    }
    out
}

#[test]
fn slow_senders_are_waited_for() {
    let server = Server::start();
    let mut connection = server.connect();
    let request = b"PUT /api/v4/set?path=//slowly HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n1234";
    for piece in request.chunks(7) {
        connection.send(piece);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(connection.read(false).text(), "{}");
    assert!(server.fake.take_calls()[0].contains("value: 1234"));
}

#[test]
fn large_inputs_are_refused_with_words() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut body = vec![b' '; (64 << 20) + 1];
    let reply = connection.ask("PUT /api/v4/set?path=//a HTTP/1.1", &body);
    assert_eq!(reply.code(), (400, 1));
    assert!(reply.text().contains("at most 67108864 bytes"), "{}", reply.text());
    // The body was read to its end: the connection can be used again. One byte less is fine.
    body.pop();
    body[0] = b'7';
    assert_eq!(connection.ask("PUT /api/v4/set?path=//a HTTP/1.1", &body).text(), "{}");
}

#[test]
fn garbage_is_no_reason_to_die() {
    let server = Server::start();
    for garbage in [
        b"\x00\x01\x02\x03\r\n\r\n".as_slice(),
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api/v4/get HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"PUT /api/v4/set?path=//a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ] {
        let mut connection = server.connect();
        connection.send(garbage);
        drop(connection);
    }
    assert_eq!(server.ask("GET /ping HTTP/1.1", b"").status, 200);
}

#[test]
fn a_change_goes_on_when_the_client_hangs_up() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"GET /api/v4/get?path=//held HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_until(|| !server.fake.lock().calls.is_empty());
    assert_eq!(server.fake.lock().finished, 0);
    drop(connection);
    // The server has time to notice.
    std::thread::sleep(Duration::from_millis(500));
    server.fake.lock().is_let_go = true;
    wait_until(|| server.fake.lock().finished == 1);
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(120), "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stop_lets_running_requests_end() {
    let server = Server::start();
    let mut busy = server.connect();
    let mut idle = server.connect();
    assert_eq!(idle.ask("GET /ping HTTP/1.1", b"").status, 200);
    busy.send(b"GET /api/v4/get?path=//slow HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_until(|| !server.fake.lock().calls.is_empty());
    let address = server.address;
    // An idle connection does not hold the server.
    server.stop();
    assert_eq!(busy.read(false).status, 200);
    assert_eq!(idle.read(false).status, 0);
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// S6: where the listening socket outlives the server, no client is refused, not even one whose connection was accepted a moment
/// before the server is told to stop.
#[test]
fn a_stop_lets_new_connections_ask_their_first_question() {
    let server = Server::start();
    let mut fresh = server.connect();
    // Connections are taken in order.
    let mut later = server.connect();
    assert_eq!(later.ask("GET /ping HTTP/1.1", b"").status, 200);
    let address = server.address;
    let stopping = std::thread::spawn(move || server.stop());
    wait_until(|| std::net::TcpStream::connect(address).is_err());
    assert_eq!(fresh.ask("GET /ping HTTP/1.1", b"").status, 200);
    stopping.join().expect("the server ends well");
}
