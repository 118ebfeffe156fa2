//! Who may ask (http-api.md 2.9).

use crate::http::Server;
use api::StaticTokens;
use std::sync::Arc;

fn with_tokens() -> Server {
    let tokens = [("tok-root", "root"), ("tok-ann", "ann")].map(|(t, u)| (t.to_owned(), u.to_owned()));
    Server::with(Arc::new(StaticTokens::new(tokens)))
}

#[test]
fn tokens() {
    let server = with_tokens();
    let ask = |headers: &str| server.ask(&format!("GET /api/v4/get_current_user HTTP/1.1\n{headers}"), b"");
    assert_eq!(ask("Authorization: OAuth tok-ann").text(), "{\"user\":\"ann\"}");
    assert_eq!(ask("authorization: oauth tok-root").text(), "{\"user\":\"root\"}");
    assert_eq!(ask("Authorization: OAuth tok-root\nX-YT-User-Name: bob").text(), "{\"user\":\"bob\"}");
    assert_eq!(ask("Authorization: OAuth tok-ann\nX-YT-User-Name: bob").code(), (400, 900));
    assert_eq!(ask("Authorization: OAuth nonsense").code(), (401, 111));
    assert_eq!(ask("Authorization: Basic dG9r").code(), (401, 111));
    assert_eq!(ask("").code(), (401, 111));
    assert_eq!(server.ask("GET /auth/whoami HTTP/1.1", b"").code(), (401, 111));
    // Neither descriptors nor hosts need a token: the client sends none (http-api.md 14.17).
    for path in ["/api", "/api/v4", "/api/v3", "/hosts", "/ping", "/version", "/health"] {
        assert_eq!(server.ask(&format!("GET {path} HTTP/1.1"), b"").status, 200, "{path}");
    }
    // An unknown command is unknown to everybody.
    assert_eq!(server.ask("GET /api/v4/nothing HTTP/1.1", b"").code(), (404, 103));
}

#[test]
fn open_access_takes_names_at_their_word() {
    let server = Server::start();
    let ask =
        |headers: &str| server.ask(&format!("GET /api/v4/get?path=//a HTTP/1.1\n{headers}"), b"").status;
    assert_eq!(ask("Authorization: OAuth anything"), 200);
    assert_eq!(ask("X-YT-Testing-User-Name: ann"), 200);
    assert_eq!(ask("X-Yt-User-Name: bob"), 200);
    let users: Vec<_> =
        server.fake.take_calls().iter().map(|c| c.split(' ').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(users, ["root", "ann", "bob"]);
}

/// A page from elsewhere must not use the browser of somebody who is near the server.
#[test]
fn foreign_pages_are_refused() {
    let server = Server::start();
    let ask =
        |origin: &str| server.ask(&format!("POST /api/v4/remove?path=//a HTTP/1.1\nOrigin: {origin}"), b"");
    assert_eq!(ask("http://evil.example").code(), (401, 110));
    assert_eq!(ask("null").code(), (401, 110));
    assert_eq!(ask("http://example.org").status, 200);
    assert_eq!(ask("https://example.org:5173").status, 200);
    assert_eq!(ask("http://localhost:5173").status, 200);
    let with_token =
        "POST /api/v4/remove?path=//a HTTP/1.1\nOrigin: http://ui.example\nAuthorization: OAuth t";
    assert_eq!(server.ask(with_token, b"").status, 200);
}
