//! Programmer's errors never become 500 or 503, which clients repeat for minutes (http-api.md 2.8).

use crate::http::Server;

#[test]
fn a_panic_is_an_error_reply() {
    let server = Server::start();
    let mut connection = server.connect();
    for (path, words) in [("//panic", "the kernel has a bug"), ("//panic_later", "another bug")] {
        let reply = connection.ask(&format!("GET /api/v4/get?path={path} HTTP/1.1"), b"");
        assert_eq!(reply.code(), (400, 1));
        assert!(reply.text().contains(words), "{}", reply.text());
    }
    // The connection and the server live on.
    assert_eq!(connection.ask("GET /api/v4/get?path=//a HTTP/1.1", b"").status, 200);
}
