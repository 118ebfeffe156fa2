//! Who may ask (http-api.md 2.9).

use crate::http::{Reply, Server};
use crate::tokens::Tokens;
use std::sync::Arc;

fn with_tokens() -> Server {
    Server::with(Arc::new(Tokens::default()))
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

/// A page whose name was pointed to this machine after it was loaded is no page of this machine, with
/// whatever token: any would do.
#[test]
fn names_that_others_can_point_here_are_refused() {
    let server = Server::only_near();
    let ask = |host: &str| {
        let mut connection = server.connect();
        connection.send(
            format!("GET /api/v4/get?path=//a HTTP/1.1\r\nHost: {host}\r\nAuthorization: OAuth t\r\n\r\n")
                .as_bytes(),
        );
        code(&connection.read(false))
    };
    for host in [
        "localhost",
        "localhost:80",
        "LOCALHOST",
        "a.localhost:1",
        "127.0.0.1:8000",
        "10.1.2.3",
        "localhost.",
        "ip6-localhost",
        "[::1]:8000",
    ] {
        assert_eq!(ask(host), 0, "{host}");
    }
    for host in ["example.org", "evil.example:8000", "localhost.example", "1.2.3.example", ""] {
        assert_eq!(ask(host), 110, "{host:?}");
    }
    let other = Server::start();
    assert_eq!(other.ask("GET /api/v4/get?path=//a HTTP/1.1", b"").status, 200);
}

/// The code of an error; 0 if it is none.
fn code(reply: &Reply) -> i64 {
    if reply.status == 200 { 0 } else { reply.code().1 }
}

/// A cookie alone changes nothing, whatever the method: two actions are asked for by GET.
#[test]
fn a_session_changes_nothing_without_its_token() {
    let server = with_tokens();
    for command in ["abort_job?job_id=1-2-384-4", "abandon_job?job_id=1-2-384-4"] {
        let ask = |method: &str, more: &str| {
            let head = format!("{method} /api/v4/{command} HTTP/1.1\nCookie: millpond_session=ses{more}");
            code(&server.ask(&head, b""))
        };
        for method in ["GET", "POST"] {
            assert_eq!(ask(method, ""), 110, "{method} {command}");
            assert_eq!(ask(method, "\nX-Csrf-Token: csrf"), 0, "{method} {command}");
        }
    }
    // A question is a question, by POST too.
    for method in ["GET", "POST"] {
        let head = format!("{method} /api/v4/get?path=//a HTTP/1.1\nCookie: millpond_session=ses");
        assert_eq!(code(&server.ask(&head, b"")), 0);
    }
    assert_eq!(server.fake.take_calls().len(), 6);
}

/// An image of a foreign page has no `Origin`, and is no way to change anything.
#[test]
fn nothing_is_changed_from_elsewhere() {
    let server = Server::start();
    let ask =
        |line: &str, site: &str| code(&server.ask(&format!("{line} HTTP/1.1\nSec-Fetch-Site: {site}"), b""));
    assert_eq!(ask("GET /api/v4/abort_job?job_id=1-2-384-4", "cross-site"), 110);
    assert_eq!(ask("GET /api/v4/abort_job?job_id=1-2-384-4", "same-origin"), 0);
    assert_eq!(ask("GET /api/v4/get?path=//a", "cross-site"), 0);
    let sign_in = |origin: &str| {
        code(&server.ask(&format!("POST /login HTTP/1.1\nOrigin: {origin}"), b"{\"token\": \"t\"}"))
    };
    assert_eq!(sign_in("http://evil.example"), 110);
    assert_eq!(sign_in("http://example.org"), 1, "nobody signs in at this server");
}

/// The hash of a password is made when it is known that it may be set, and not for those who may not.
#[test]
fn passwords_are_hashed_for_those_who_may_set_them() {
    let server = with_tokens();
    let ask = |user: &str| {
        let body = format!("{{\"user\": \"{user}\", \"new_password_sha256\": \"{}\"}}", "a1".repeat(32));
        let head = "POST /api/v4/set_user_password HTTP/1.1\nAuthorization: OAuth tok-ann";
        code(&server.ask(head, body.as_bytes()))
    };
    assert_eq!(ask("forbidden"), 901);
    let calls = server.fake.take_calls();
    assert!(calls.len() == 1 && calls[0].starts_with("ann Authorize(SetUserPassword"), "{calls:?}");
    assert_eq!(ask("ann"), 0);
    let calls = server.fake.take_calls();
    assert!(calls.len() == 2 && calls[1].contains("$argon2id$"), "{calls:?}");
}
