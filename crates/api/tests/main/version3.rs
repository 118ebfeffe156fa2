//! Old names and bare replies (http-api.md 8.10).

use crate::http::Server;

#[test]
fn replies_are_bare() {
    let server = Server::start();
    let ask = |request: &str, body: &str| {
        let reply = server.ask(&format!("{request} HTTP/1.1"), body.as_bytes());
        (reply.status, reply.text())
    };
    assert_eq!(ask("GET /api/v3/get?path=//a", ""), (200, "\"//a\"".to_owned()));
    assert_eq!(ask("GET /api/v3/exists?path=//a", ""), (200, "true".to_owned()));
    assert_eq!(ask("PUT /api/v3/set?path=//a", "1"), (200, String::new()));
    let created = ask("POST /api/v3/create?path=//a&type=map_node", "");
    assert_eq!(created, (200, "\"1-1-1012f-1\"".to_owned()));
    assert_eq!(ask("POST /api/v3/abort_op?operation_id=1-2-3-4", ""), (200, String::new()));
    assert_eq!(ask("GET /api/v3/get_version", ""), (200, "\"1.2.3\"".to_owned()));
    assert_eq!(ask("GET /api/v3/abort_operation?operation_id=1-2-3-4", "").0, 404);
}

#[test]
fn types_are_commands() {
    let server = Server::start();
    let reply = server.ask("POST /api/v3/vanilla HTTP/1.1", b"{\"spec\":{\"tasks\":{}}}");
    assert_eq!(reply.text(), "\"9f-38-103e8-5e\"");
    let reply = server.ask("POST /api/v3/start_op?operation_type=map HTTP/1.1", b"{\"spec\":{}}");
    assert_eq!(reply.status, 200);
    let calls = server.fake.take_calls();
    assert!(calls[0].contains("StartOperation { operation_type: Vanilla"), "{calls:?}");
    assert!(calls[1].contains("StartOperation { operation_type: Map"), "{calls:?}");
}
