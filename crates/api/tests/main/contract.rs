//! Requests by hand: methods, formats, parameters, errors (http-api.md 1-3, 14, 16).

use crate::http::{Reply, Server};
use yson::{Format, JsonFormat, Value};

fn json(reply: &Reply) -> Value {
    Format::Json(JsonFormat::utf8()).deserialize(&reply.body).expect("good JSON")
}

#[test]
fn descriptors_have_exactly_five_keys() {
    let server = Server::start();
    for (version, some) in [("v4", "start_operation"), ("v3", "start_op")] {
        let reply = server.ask(&format!("GET /api/{version} HTTP/1.1"), b"");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
        let list = json(&reply);
        let mut names = std::collections::BTreeSet::new();
        for descriptor in list.as_list().expect("a list") {
            let keys: Vec<String> = descriptor.as_map().expect("a map").key_strings().collect();
            assert_eq!(keys, ["name", "input_type", "output_type", "is_volatile", "is_heavy"]);
            let name = descriptor.get("name").and_then(Value::as_str).expect("a name");
            assert!(name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()), "{name}");
            assert!(names.insert(name.to_owned()), "{name} twice");
        }
        assert!(names.contains(some));
    }
    assert_eq!(server.ask("GET /api HTTP/1.1", b"").text(), "[\"v3\",\"v4\"]");
    assert_eq!(server.ask("GET /api/ HTTP/1.1", b"").text(), "[\"v3\",\"v4\"]");
}

#[test]
fn small_end_points() {
    let server = Server::start();
    for (path, expected) in [
        ("/ping", ""),
        ("/version", "1.2.3"),
        ("/hosts", "[\"example.org:80\"]"),
        ("/hosts?role=control&address_type=http", "[\"example.org:80\"]"),
        ("/health", "{\"status\":\"ok\"}"),
        (
            "/auth/whoami",
            "{\"login\":\"root\",\"realm\":\"millpond\",\"csrf_token\":\"\",\"auth\":false,\"superuser\":true}",
        ),
    ] {
        let reply = server.ask(&format!("GET {path} HTTP/1.1"), b"");
        assert_eq!((reply.status, reply.text().as_str()), (200, expected), "{path}");
    }
    assert_eq!(server.fake.take_calls(), [""; 0], "none of them waits for the kernel");
    let service = json(&server.ask("GET /service HTTP/1.1", b""));
    assert_eq!(service.get("version").and_then(Value::as_str), Some("1.2.3"));
    assert!(service.get("start_time").and_then(Value::as_str).is_some_and(|t| t.ends_with('Z')));
    assert_eq!(server.ask("HEAD /ping HTTP/1.1", b"").status, 200);
}

#[test]
fn unknown_things_are_404_with_an_error() {
    let server = Server::start();
    assert_eq!(server.ask("GET /api/v4/no_such_command HTTP/1.1", b"").code(), (404, 103));
    assert_eq!(server.ask("GET /api/v4/start_op HTTP/1.1", b"").code(), (404, 103));
    for path in ["/api/v5", "/api/v5/get", "/nothing", "/", "/api/v4/get/more", "/api/v4/%ff"] {
        assert_eq!(server.ask(&format!("GET {path} HTTP/1.1"), b"").status, 404, "{path}");
    }
}

#[test]
fn methods() {
    let server = Server::start();
    for (method, command, status, allow) in [
        ("GET", "get", 200, None),
        ("POST", "get", 200, None),
        ("PUT", "get", 405, Some("GET, POST")),
        ("DELETE", "get", 405, Some("GET, POST")),
        ("HEAD", "get", 405, Some("GET, POST")),
        ("GET", "create", 405, Some("POST, PUT")),
        ("POST", "create", 200, None),
        ("PUT", "create", 200, None),
        ("PUT", "set", 200, None),
        ("POST", "set", 200, None),
        ("GET", "set", 405, Some("POST, PUT")),
    ] {
        let body: &[u8] = match (method, command) {
            ("PUT" | "POST", "set") => b"1",
            _ => b"",
        };
        let head = format!("{method} /api/v4/{command}?path=//tmp&type=map_node HTTP/1.1");
        let reply = server.ask(&head, body);
        assert_eq!((reply.status, reply.header("allow")), (status, allow), "{method} {command}");
    }
    assert_eq!(server.ask("POST /hosts HTTP/1.1", b"").code(), (405, 1));
}

/// The worked examples with curl (http-api.md 16): JSON all the way, no format named anywhere.
#[test]
fn curl() {
    let server = Server::start();
    let form = "Content-Type: application/x-www-form-urlencoded";
    let reply = server.ask("GET /api/v4/get?path=//sys/pool_trees/@default_tree HTTP/1.1", b"");
    assert_eq!(reply.text(), "{\"value\":\"//sys/pool_trees/@default_tree\"}");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-yt-proxy"), Some("test-host"));
    assert!(reply.header("x-yt-request-id").is_some());
    let head = format!("POST /api/v4/create HTTP/1.1\n{form}");
    let reply = server.ask(&head, b"{\"type\":\"map_node\",\"path\":\"//tmp/b\"}");
    assert_eq!(reply.text(), "{\"node_id\":\"1-1-1012f-1\"}");
    let reply = server.ask(&head, b"{\"type\":\"scheduler_pool\",\"attributes\":{\"name\":\"p\"}}");
    assert_eq!(reply.text(), "{\"object_id\":\"2-1-1012f-1\"}");
    let head = format!("PUT /api/v4/set HTTP/1.1\n{form}\nX-YT-Parameters: {{\"path\":\"//tmp/b/@n\"}}");
    assert_eq!(server.ask(&head, b"17").text(), "{}");
    let reply = server.ask("GET /api/v4/get?path=//tmp/b/@n&return_only_value=true HTTP/1.1", b"");
    assert_eq!(reply.text(), "17");
}

#[test]
fn formats_of_replies() {
    let server = Server::start();
    server.ask("PUT /api/v4/set?path=//v HTTP/1.1", "{\"a\":[1,true,null,\"\u{d1}\u{8b}\"]}".as_bytes());
    let text = br#"{"a"=[1;%true;#;"\xD1\x8B";];}"#.escape_ascii().to_string();
    let yson = |style: &str| {
        format!("X-YT-Header-Format: <format=text>yson\nX-YT-Output-Format: <format={style}>yson")
    };
    for (headers, mime) in [
        (yson("text"), "application/x-yt-yson-text"),
        (yson("binary"), "application/x-yt-yson-binary"),
        (yson("pretty"), "application/x-yt-yson-pretty"),
        ("Accept: application/x-yt-yson-text".to_owned(), "application/x-yt-yson-text"),
        ("X-YT-Output-Format: <format=text>yson".to_owned(), "application/x-yt-yson-text"),
        ("X-YT-Output-Format: \"json\"\nAccept: application/x-yt-yson-text".to_owned(), "application/json"),
        (
            "X-YT-Output-Format: {\"$value\":\"yson\",\"$attributes\":{\"format\":\"text\"}}".to_owned(),
            "application/x-yt-yson-text",
        ),
        ("Accept: */*".to_owned(), "application/json"),
        ("Accept: text/html, image/png".to_owned(), "application/json"),
    ] {
        let head = format!("GET /api/v4/get?path=//v&return_only_value=true HTTP/1.1\n{headers}");
        let reply = server.ask(&head, b"");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(mime)), "{headers}");
        if mime == "application/x-yt-yson-text" {
            let shown = yson::parse(&reply.body).map(|v| yson::to_text(&v).escape_ascii().to_string());
            assert_eq!(shown.ok().as_deref(), Some(text.as_str()), "{headers}");
        }
    }
    // A parameter wins over headers; in a query string it may be YSON text.
    let head = "GET /api/v4/get?path=//v&output_format=%3Cformat%3Dtext%3Eyson HTTP/1.1\nX-YT-Output-Format: \"json\"";
    assert_eq!(server.ask(head, b"").header("content-type"), Some("application/x-yt-yson-text"));
    let head = "GET /api/v4/get?path=//v HTTP/1.1\nX-YT-Output-Format: \"no_such\"";
    assert_eq!(server.ask(head, b"").code(), (400, 1));
    // An error is JSON whatever was asked for.
    let head = format!("GET /api/v4/get?path=//missing HTTP/1.1\n{}", yson("binary"));
    assert_eq!(server.ask(&head, b"").code(), (400, 500));
}

#[test]
fn parameters_are_merged_in_order() {
    let server = Server::start();
    let head = "POST /api/v4/remove?path=//query&force=true&recursive=false HTTP/1.1\n\
                X-YT-Parameters: {\"path\":\"//header\",\"recursive\":true}";
    assert_eq!(server.ask(head, b"{\"path\":\"//body\"}").status, 200);
    let calls = server.fake.take_calls();
    assert!(calls[0].contains("steps: [Child(body)] }, recursive: true, force: true"), "{calls:?}");
    // Extras that every call of the client carries, and unknown ones.
    let extras = "suppress_transaction_coordinator_sync=%false;transaction_id=\"0-0-0-0\";foo={bar=1}";
    let head = format!(
        "GET /api/v4/exists HTTP/1.1\nX-YT-Header-Format: yson\nX-YT-Parameters: {{path=\"//a\";{extras}}}"
    );
    assert_eq!(server.ask(&head, b"").text(), "{\"value\":true}");
}

#[test]
fn bad_parameters_are_errors_with_names() {
    let server = Server::start();
    let yson = "HTTP/1.1\nX-YT-Header-Format: <format=text>yson\nX-YT-Parameters:";
    for (head, words) in [
        (format!("GET /api/v4/get {yson} {{}}"), "Missing required parameter \\\"path\\\""),
        (format!("GET /api/v4/get {yson} {{path=5}}"), "path"),
        (format!("GET /api/v4/get {yson} {{path=\"//a//b\"}}"), "offset"),
        (format!("GET /api/v4/get {yson} {{path=\"tmp\"}}"), "tmp"),
        (format!("GET /api/v4/get {yson} {{path=\"//a\";max_size=-1}}"), "max_size"),
        (format!("GET /api/v4/get {yson} {{path=\"//a\";return_only_value=\"true\"}}"), "must be boolean"),
        (format!("GET /api/v4/get {yson} [1]"), "map of parameters"),
        (format!("GET /api/v4/get {yson} {{path"), "X-YT-Parameters"),
        ("GET /api/v4/get HTTP/1.1\nX-YT-Parameters: {path=\"//tmp\"}".to_owned(), "X-YT-Parameters"),
        ("GET /api/v4/get?path=%zz HTTP/1.1".to_owned(), "hexadecimal"),
        ("GET /api/v4/get HTTP/1.1\nX-YT-Header-Format: nonsense".to_owned(), "X-YT-Header-Format"),
        ("POST /api/v4/start_operation?operation_type=vanila HTTP/1.1".to_owned(), "vanilla"),
        ("GET /api/v4/get_operation HTTP/1.1".to_owned(), "operation_id"),
        ("GET /api/v4/get_job?job_id=zz HTTP/1.1".to_owned(), "Malformed id"),
        ("GET /api/v4/list_operations?from_time=yesterday HTTP/1.1".to_owned(), "from_time"),
        ("POST /api/v4/remove?path=//a&mutation_id=x HTTP/1.1".to_owned(), "mutation_id"),
    ] {
        let reply = server.ask(&head, b"");
        assert_eq!(reply.code(), (400, 1), "{head}");
        assert!(reply.text().contains(words), "{head}: {}", reply.text());
    }
    assert!(server.fake.take_calls().is_empty(), "nothing of this reached the backend");
}

#[test]
fn malformed_bodies() {
    let server = Server::start();
    let yson = "Content-Type: application/x-yt-yson-text";
    for (head, body) in [
        (format!("PUT /api/v4/set?path=//a HTTP/1.1\n{yson}"), "{a=".as_bytes()),
        (format!("PUT /api/v4/set?path=//a HTTP/1.1\n{yson}"), b""),
        (format!("PUT /api/v4/set?path=//a HTTP/1.1\n{yson}"), b"\x01\xff\xff\xff\xff\x0fabc"),
        ("PUT /api/v4/set?path=//a HTTP/1.1".to_owned(), b"{\"a\":"),
        ("PUT /api/v4/set?path=//a HTTP/1.1\nX-YT-Input-Format: \"no_such\"".to_owned(), b"1"),
        ("PUT /api/v4/multiset_attributes?path=//a HTTP/1.1".to_owned(), b"[1]"),
        ("POST /api/v4/create HTTP/1.1".to_owned(), b"[1, 2]"),
        ("POST /api/v4/create HTTP/1.1".to_owned(), b"{{{"),
        ("POST /api/v4/create HTTP/1.1\nContent-Encoding: gzip".to_owned(), b"no gzip"),
    ] {
        assert_eq!(server.ask(&head, body).code(), (400, 1), "{head} {body:?}");
    }
    let reply = server.ask("PUT /api/v4/set?path=//a HTTP/1.1\nContent-Encoding: z-lz4", b"1");
    assert_eq!(reply.code(), (415, 1));
    let deep = "[".repeat(100_000);
    let reply = server.ask(&format!("PUT /api/v4/set?path=//a HTTP/1.1\n{yson}"), deep.as_bytes());
    assert_eq!(reply.code(), (400, 1));
    assert!(server.fake.take_calls().is_empty());
}

#[test]
fn ids_and_names_may_carry_attributes() {
    let server = Server::start();
    let head = "GET /api/v4/get_job_stderr HTTP/1.1\nX-YT-Header-Format: <format=text>yson\n\
                X-YT-Parameters: {job_id=<address=\"n:1\";error={code=1}>\"1-2-384-3\";operation_id=\"1-2-3-4\"}";
    let reply = server.ask(head, b"");
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"stderr \xff of a job\n".as_slice()));
    assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
    assert!(server.fake.take_calls()[0].contains("job_id: 1-2-384-3"));
    // There is no such stderr here: empty, not `{}`.
    let head = "GET /api/v4/get_job_stderr?job_id=1-2-384-3&type=gpu_check_stderr HTTP/1.1";
    let reply = server.ask(head, b"");
    assert_eq!((reply.status, reply.body.len()), (200, 0));
}

#[test]
fn what_a_failed_job_was_reading_is_bytes() {
    let server = Server::start();
    let reply =
        server.ask("GET /api/v4/get_job_fail_context?job_id=1-2-384-3&operation_id=1-2-3-4 HTTP/1.1", b"");
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"rows \xff of a job\n".as_slice()));
    assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
    let calls = server.fake.take_calls();
    assert!(calls[0].contains("job_id: 1-2-384-3") && calls[0].contains("FailContext"), "{calls:?}");
    assert_eq!(server.ask("GET /api/v4/get_job_fail_context HTTP/1.1", b"").code(), (400, 1));
}

#[test]
fn what_a_job_was_given_is_bytes_and_paths() {
    let server = Server::start();
    let reply =
        server.ask("GET /api/v4/get_job_input?job_id=1-2-384-3&job_spec_source=archive HTTP/1.1", b"");
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"rows \xff of a job\n".as_slice()));
    let reply = server.ask("GET /api/v4/get_job_input_paths?job_id=1-2-384-3 HTTP/1.1", b"");
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"[\"//tmp/t\"]".as_slice()));
    let calls = server.fake.take_calls();
    assert!(calls.len() == 2 && calls.iter().all(|call| call.contains("data: Input")), "{calls:?}");
    let refused = server.ask("GET /api/v4/get_job_input?job_id=1-2-384-3&job_spec_source=x HTTP/1.1", b"");
    assert_eq!(refused.code(), (400, 1));
}

#[test]
fn commands_go_through_their_transactions() {
    let server = Server::start();
    for (head, seen) in [
        ("GET /api/v4/get?path=//a&transaction_id=1-2-3-4 HTTP/1.1", "In { transaction: Some(1-2-3-4)"),
        ("PUT /api/v4/set?path=//a&transaction_id=1-2-3-4 HTTP/1.1", "In { transaction: Some(1-2-3-4)"),
        ("GET /api/v4/get?path=//a&transaction_id=0-0-0-0 HTTP/1.1", "root Get"),
        ("GET /api/v4/read_file?path=//a&transaction_id=1-2-3-4 HTTP/1.1", "Some(1-2-3-4)"),
        ("POST /api/v4/start_transaction?transaction_id=1-2-3-4 HTTP/1.1", "parent: Some(1-2-3-4)"),
        (
            "POST /api/v4/ping_transaction?transaction_id=1-2-3-4 HTTP/1.1",
            "PingTransaction { transaction: 1-2-3-4",
        ),
        (
            "POST /api/v4/lock?path=//a&mode=shared&child_key=k&transaction_id=1-2-3-4 HTTP/1.1",
            "Shared(Child(",
        ),
    ] {
        server.ask(head, b"{}");
        let calls = server.fake.take_calls();
        assert!(calls.last().is_some_and(|call| call.contains(seen)), "{head}: {calls:?}");
    }
    for (head, part) in [
        ("POST /api/v4/commit_transaction HTTP/1.1", "transaction_id"),
        ("POST /api/v4/lock?path=//a&mode=harsh HTTP/1.1", "exclusive"),
        ("POST /api/v4/lock?path=//a&mode=snapshot&child_key=k HTTP/1.1", "child_key"),
        ("GET /api/v4/get_file_from_cache?md5=xyz&cache_path=//c HTTP/1.1", "md5"),
    ] {
        let reply = server.ask(head, b"");
        assert!(reply.text().contains(part) && reply.code().1 == 1, "{head}: {}", reply.text());
    }
}

#[test]
fn local_commands() {
    let server = Server::start();
    let ask = |path: &str| server.ask(&format!("GET /api/v4/{path} HTTP/1.1"), b"").text();
    assert_eq!(ask("get_current_user"), "{\"user\":\"root\"}");
    assert_eq!(ask("get_version"), "{\"version\":\"1.2.3\"}");
    assert_eq!(ask("discover_proxies?type=rpc"), "{\"proxies\":[\"example.org:80\"]}");
    let path = ask("parse_ypath?path=%3Cappend%3D%25true%3E//a%7Bb%2Cc%7D");
    let path = Format::Json(JsonFormat::utf8()).deserialize(path.as_bytes()).expect("good JSON");
    let path = path.get("path").expect("a path");
    assert_eq!(path.as_str(), Some("//a"));
    assert_eq!(path.attribute("append").and_then(Value::as_bool), Some(true));
    assert_eq!(path.attribute("columns"), Some(&vec!["b", "c"].into()));
    let features = ask("get_supported_features");
    assert!(features.contains("\"require_password_in_authentication_commands\":false"), "{features}");
    let timestamp = json(&server.ask("GET /api/v4/generate_timestamp HTTP/1.1", b""));
    let seconds = timestamp.get("timestamp").and_then(Value::as_u64).expect("a number") >> 30;
    assert!((1_700_000_000..10_000_000_000).contains(&seconds), "{seconds}");
    assert!(server.fake.take_calls().is_empty());
}

#[test]
fn long_errors_fit_into_a_header() {
    let server = Server::start();
    let reply = server.ask("GET /api/v4/get?path=//long_error HTTP/1.1", b"");
    assert_eq!(reply.code(), (400, 1));
    assert!(reply.header("x-yt-error").is_some_and(|e| e.len() < 60_000));
    assert!(reply.text().contains("1205"), "codes stay");
}

#[test]
fn large_replies_are_compressed_on_request() {
    use std::io::Read as _;
    let server = Server::start();
    let ask = |accept: &str| {
        let head =
            format!("GET /api/v4/get?path=//big&return_only_value=true HTTP/1.1\nAccept-Encoding: {accept}");
        let reply = server.ask(&head, b"");
        assert_eq!((reply.status, reply.header("vary")), (200, Some("Content-Encoding")));
        let encoding = reply.header("content-encoding").map(str::to_owned);
        (encoding, reply.body)
    };
    let (encoding, plain) = ask("identity");
    assert_eq!((encoding, plain.len()), (None, plain.len()));
    let (encoding, gzip) = ask("gzip, identity");
    assert_eq!(encoding.as_deref(), Some("gzip"));
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(gzip.as_slice()).read_to_end(&mut out).expect("good gzip");
    assert!(out == plain && gzip.len() < plain.len() / 2);
    let (encoding, br) = ask("br, gzip, identity");
    assert_eq!(encoding.as_deref(), Some("br"));
    let mut out = Vec::new();
    brotli::BrotliDecompress(&mut br.as_slice(), &mut out).expect("good brotli");
    assert!(out == plain);
}

#[test]
fn bodies_may_be_compressed_in_all_ways() {
    use std::io::Write as _;
    let server = Server::start();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(b"{\"k\"=1;}").expect("memory");
    let zlib = zlib.finish().expect("memory");
    // The client calls zlib gzip (http-api.md 2.6).
    let head =
        "PUT /api/v4/set?path=//z HTTP/1.1\nContent-Encoding: gzip\nContent-Type: application/x-yt-yson-text";
    assert_eq!(server.ask(head, &zlib).text(), "{}");
    assert!(server.fake.take_calls()[0].contains("value: {\"k\": 1}"));
    let reply = server.ask(head, &zlib[..zlib.len() - 3]);
    assert_eq!(reply.code(), (400, 1));
}

/// As the client of the reference sends it: POST, parameters in a header, an empty body.
#[test]
fn shells_beside_jobs() {
    let server = Server::start();
    let ask = |parameters: &str| {
        let head = format!(
            "POST /api/v4/poll_job_shell HTTP/1.1\nX-YT-Header-Format: <format=text>yson\n\
             X-YT-Output-Format: <format=text>yson\n\
             X-YT-Parameters: {{job_id=\"1-2-384-3\";parameters={{{parameters}}}}}"
        );
        server.ask(&head, b"")
    };
    let reply = ask("operation=spawn;term=xterm;height=0;width=0;environment=[\"A=b\"]");
    assert_eq!(
        reply.text(),
        "{\"result\"={\"shell_id\"=\"9-8-7-6\";\"shell_index\"=1;\"output\"=\"$ \\xFF\";\"consumed_offset\"=#;};}"
    );
    assert!(server.fake.take_calls()[0].contains("environment: [\"A=b\"]"));
    assert_eq!(ask("operation=update;shell_id=\"9-8-7-6\";keys=\"6c7\"").code(), (400, 1));
    assert!(server.fake.take_calls().is_empty());
    let head = "POST /api/v4/run_job_shell_command HTTP/1.1";
    let reply = server.ask(head, b"{\"job_id\":\"1-2-384-3\",\"command\":\"ls\"}");
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"out \xff put\n".as_slice()));
    assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
    assert!(server.fake.take_calls()[0].contains("terminal: None"));
}
