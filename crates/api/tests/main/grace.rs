//! What becomes of connections when the server stops.

use crate::http::Server;
use api::Grace;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longer than the test.
const LONG: Duration = Duration::from_secs(600);

/// A server that was told to stop, and a connection of before that it has taken and on which nothing was said.
fn stopping(grace: Grace) -> (Server, crate::http::Connection) {
    let mut server = Server::with_grace(grace);
    let silent = server.connect();
    // Connections are taken in order, so the first one has been.
    assert_eq!(server.ask("GET /ping HTTP/1.1", b"").status, 200);
    server.tell_to_stop();
    // The listener is closed when the server has heard it.
    let limit = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(server.address).is_ok() {
        assert!(Instant::now() < limit, "the server listens although it was told to stop");
        std::thread::sleep(Duration::from_millis(5));
    }
    (server, silent)
}

/// S6: a client whom a server has let in just before it stops is answered.
#[test]
fn a_fresh_connection_may_ask_after_the_order_to_stop() {
    let (server, mut silent) = stopping(Grace { running: LONG, fresh: LONG });
    let reply = silent.ask("GET /ping HTTP/1.1", b"");
    assert_eq!(reply.status, 200, "{reply:?}");
    // With that the last connection has ended: nothing is waited for.
    assert!(silent.paragraph().is_empty());
    server.stop();
}

/// A connection on which nothing was said for longer does not delay the end of the server.
#[test]
fn an_idle_connection_is_closed_by_the_order_to_stop() {
    let (server, mut silent) = stopping(Grace { running: LONG, fresh: Duration::ZERO });
    assert!(silent.paragraph().is_empty(), "it is closed without an answer");
    server.stop();
}

/// A request that takes longer than the grace is cut off: the server must end.
#[test]
fn a_request_that_runs_for_too_long_is_cut_off() {
    let mut server = Server::with_grace(Grace { running: Duration::ZERO, fresh: LONG });
    let mut slow = server.connect();
    slow.send(b"GET /api/v4/get?path=//held HTTP/1.1\r\nHost: example.org:80\r\n\r\n");
    let limit = Instant::now() + Duration::from_secs(60);
    while server.fake.lock().calls.is_empty() {
        assert!(Instant::now() < limit, "the request does not come to the backend");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.tell_to_stop();
    assert!(slow.paragraph().is_empty(), "there is no answer");
    server.stop();
}
