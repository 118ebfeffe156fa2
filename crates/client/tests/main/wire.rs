//! What goes over the wire, and what comes of it.

use std::io::{self, Read};
use std::time::Duration;

use client::commands::{COMMANDS, Command, Method};
use client::{Client, ClientError, CreateFlags, Retries, WriteFileOptions};
use vocab::{Failure, OperationType, Span};
use yson::{Map, Value, map};

use crate::server::{Say, Seen, Server};

fn client(server: &Server) -> Client {
    let quick = Retries { attempts: 3, pause: Duration::from_millis(1) };
    Client::new(&server.address, None).expect("a good address").with_retries(quick)
}

/// Runs `ask` against a server with these replies; gives its result and what the server saw.
fn exchange<T>(script: Vec<Say>, ask: impl FnOnce(&Client) -> T) -> (T, Vec<Seen>) {
    let server = Server::start(script);
    let result = ask(&client(&server));
    (result, server.seen())
}

fn error_reply(code: i64, message: &str) -> Say {
    let json = format!(r#"{{"code":{code},"message":"{message}","attributes":{{"a":1}},"inner_errors":[]}}"#);
    Say::Raw(
        400,
        vec![("X-YT-Response-Code", code.to_string()), ("X-YT-Error", json.clone())],
        json.into_bytes(),
    )
}

#[test]
fn get_carries_parameters_in_a_header() {
    let (result, seen) = exchange(vec![Say::Value(5.into())], |client| client.get("//tmp/ключ", &["type"]));
    assert_eq!(result.expect("a value"), Value::Int(5));
    let seen = &seen[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("GET", "/api/v4/get"));
    assert_eq!(seen.header("X-YT-Header-Format"), Some("<format=text>yson"));
    assert_eq!(seen.header("X-YT-Output-Format"), Some("<format=binary>yson"));
    assert_eq!(seen.header("Authorization"), None);
    let expected = map! {"path" => "//tmp/ключ", "attributes" => vec!["type"], "return_only_value" => true};
    assert_eq!(seen.parameters(), expected);
}

#[test]
fn long_parameters_go_into_several_headers_or_into_the_body() {
    for (length, method) in [(10, "GET"), (9_000, "GET"), (100_000, "GET"), (400_000, "POST")] {
        let path = format!("//{}", "x".repeat(length));
        let (result, seen) = exchange(vec![Say::Value(map! {"value" => true}.into())], |c| c.exists(&path));
        assert!(result.expect("a Boolean"));
        assert_eq!(seen[0].method, method, "{length}");
        assert_eq!(seen[0].parameters(), map! {"path" => path.as_str()}, "{length}");
        assert!(seen[0].headers.iter().all(|(_, value)| value.len() <= 8 << 10), "{length}");
    }
}

#[test]
fn volatile_commands_carry_a_mutation_id() {
    let id = "5c1-9-1012f-7d20";
    let (result, seen) = exchange(vec![Say::Value(map! {"node_id" => id}.into())], |client| {
        client.create(
            "map_node",
            "//tmp/a",
            map! {"k" => 1},
            CreateFlags { recursive: true, ..Default::default() },
        )
    });
    assert_eq!(result.expect("an id").to_string(), id);
    assert_eq!((seen[0].method.as_str(), seen[0].target.as_str()), ("POST", "/api/v4/create"));
    assert_eq!(seen[0].header("Content-Type"), Some("application/x-yt-yson-binary"));
    let mut parameters = seen[0].parameters();
    let mutation = parameters.remove("mutation_id").expect("an id");
    assert!(mutation.as_str().is_some_and(|id| id.parse::<vocab::Guid>().is_ok()), "{mutation:?}");
    let expected = map! {
        "type" => "map_node", "path" => "//tmp/a", "attributes" => map! {"k" => 1}, "recursive" => true,
        "ignore_existing" => false, "force" => false, "retry" => false,
    };
    assert_eq!(parameters, expected);
}

#[test]
fn set_puts_the_value_into_the_body() {
    let value = yson::parse(b"<a=1>{x=[1;2.5;%true;#]}").expect("a value");
    let (result, seen) =
        exchange(vec![Say::Value(Map::new().into())], |client| client.set("//tmp/a", &value, true, false));
    result.expect("no error");
    assert_eq!((seen[0].method.as_str(), seen[0].target.as_str()), ("PUT", "/api/v4/set"));
    assert_eq!(seen[0].header("X-YT-Input-Format"), Some("<format=binary>yson"));
    assert_eq!(yson::parse(&seen[0].body).expect("YSON"), value);
    assert_eq!(seen[0].parameters().get("recursive"), Some(&Value::Bool(true)));
}

#[test]
fn questions_are_asked_by_url() {
    let body = br#"{"events": [{"number": 7}], "next": 8, "oldest": 1, "newest": 9,
        "lost": [{"from": 3, "to": 6, "count": 4}]}"#;
    let reply = || Say::Raw(200, Vec::new(), body.to_vec());
    let any = client::EventFilter::default();
    let from = client::EventsFrom::Number(7);
    let (answer, seen) = exchange(vec![reply()], |client| client.events(from, 100, &any));
    let page = answer.expect("a good answer");
    assert_eq!((page.events.len(), page.next, page.newest, page.lost), (1, 8, 9, vec![(3, 6)]));
    assert_eq!(
        (seen[0].method.as_str(), seen[0].target.as_str()),
        ("GET", "/api/millpond/events?from=7&limit=100")
    );
    // Whatever a value has in it, it is one value.
    let filter = client::EventFilter {
        user: Some("ann & bob=\u{e9}".to_owned()),
        path: Some("//tmp/a b/@x?#%".to_owned()),
        to_time: Some(vocab::Time::from_secs(1)),
        ..any
    };
    let (answer, seen) = exchange(vec![reply()], |client| client.events(from, 1, &filter));
    answer.expect("a good answer");
    assert_eq!(
        seen[0].target,
        "/api/millpond/events?from=7&limit=1&user=ann%20%26%20bob%3D%C3%A9&path=//tmp/a%20b/%40x%3F%23%25\
         &to_time=1970-01-01T00:00:01.000000Z"
    );
}

#[test]
fn the_token_is_sent() {
    let server = Server::start(vec![Say::Value(map! {"user" => "alice"}.into())]);
    let client = Client::new(&server.address, Some(" secret\n")).expect("a good token");
    assert_eq!(client.current_user().expect("a name"), "alice");
    assert_eq!(server.seen()[0].header("Authorization"), Some("OAuth secret"));
    assert!(matches!(Client::new("a:1", Some("two words")), Err(ClientError::Usage(_))));
}

#[test]
fn another_user_is_named() {
    let server = Server::start(vec![Say::Value(map! {"user" => "bob"}.into())]);
    let client = Client::new(&server.address, None).expect("a client");
    let bob = client.acting_as("bob").expect("a good name");
    assert_eq!(bob.current_user().expect("a name"), "bob");
    assert_eq!(server.seen()[0].header("X-YT-User-Name"), Some("bob"));
    assert!(matches!(client.acting_as("two words"), Err(ClientError::Usage(_))));
    assert!(matches!(client.acting_as(""), Err(ClientError::Usage(_))));
}

#[test]
fn lost_requests_are_repeated_with_the_same_mutation_id() {
    let id = "9f1975f7-38-103e8-5ec868db";
    let script =
        vec![Say::HangUp, Say::Broken(b"{".to_vec()), Say::Value(map! {"operation_id" => id}.into())];
    let (result, seen) = exchange(script, |client| {
        client.start_operation(OperationType::Vanilla, map! {"tasks" => Map::new()})
    });
    assert_eq!(result.expect("an id").to_string(), id);
    let parameters: Vec<Map> = seen.iter().map(Seen::parameters).collect();
    let retry: Vec<_> = parameters.iter().map(|p| p.get("retry").cloned()).collect();
    assert_eq!(retry, [Some(Value::Bool(false)), Some(Value::Bool(true)), Some(Value::Bool(true))]);
    assert!(parameters.iter().all(|p| p.get("mutation_id") == parameters[0].get("mutation_id")));
}

#[test]
fn patience_ends() {
    let (result, seen) =
        exchange(vec![Say::HangUp, Say::HangUp, Say::HangUp], |client| client.get("//tmp", &[]));
    assert!(matches!(result, Err(ClientError::Connection { .. })), "{result:?}");
    assert_eq!(seen.len(), 3);
}

#[test]
fn nobody_there() {
    // The port was free a moment ago, and nobody listens on it.
    let server = Server::start(Vec::new());
    let address = server.address.clone();
    server.seen();
    let client = Client::new(&address, None).expect("an address").with_retries(Retries::NONE);
    let error = client.get("//tmp", &[]).expect_err("nobody there");
    assert_eq!(
        error.to_string(),
        format!("cannot talk to the server at http://{address}: connection refused")
    );
    assert!(error.hint().is_some_and(|hint| hint.contains("millpond up")));
}

#[test]
fn errors_of_the_server_are_errors_and_not_repeated() {
    let (result, seen) = exchange(vec![error_reply(500, "no such node")], |client| client.get("//x", &[]));
    let error = result.expect_err("an error");
    let expected = Failure::resolve("no such node").with("a", 1);
    assert_eq!(error.failure(), Some(&expected));
    assert!(error.contains_code(500));
    assert_eq!(seen.len(), 1);
}

#[test]
fn errors_come_in_several_forms() {
    let json = r#"{"code":901,"message":"no \u00e9ntry","attributes":{},"inner_errors":[{"code":5,"message":"m","attributes":{},"inner_errors":[]}]}"#;
    let body = || json.as_bytes().to_vec();
    for say in [
        // Header only, as a proxy on the way may leave it.
        Say::Raw(400, vec![("X-YT-Response-Code", "901".into()), ("X-YT-Error", json.into())], Vec::new()),
        // Body only.
        Say::Raw(400, Vec::new(), body()),
        Say::Raw(401, Vec::new(), body()),
        // The code wins over the status.
        Say::Raw(200, vec![("X-YT-Response-Code", "901".into()), ("X-YT-Error", json.into())], Vec::new()),
        // A header that cannot be read, and a body that can.
        Say::Raw(400, vec![("X-YT-Response-Code", "901".into()), ("X-YT-Error", "{\"code\"".into())], body()),
    ] {
        let (result, _) = exchange(vec![say], |client| client.get("//x", &[]));
        let error = result.expect_err("an error");
        let failure = error.failure().expect("an error of the server");
        assert_eq!((failure.code, failure.message.as_str()), (901, "no éntry"));
        assert!(error.contains_code(5));
    }
}

#[test]
fn strangers_are_recognised() {
    for say in [
        Say::Raw(404, Vec::new(), b"<html>Not found</html>".to_vec()),
        Say::Raw(302, vec![("Location", "http://elsewhere/".into())], Vec::new()),
        Say::Raw(200, Vec::new(), b"<html>Welcome</html>".to_vec()),
        Say::Raw(200, Vec::new(), Vec::new()),
        Say::Value(17.into()),
    ] {
        let (result, _) = exchange(vec![say], |client| client.exists("//x"));
        assert!(matches!(result, Err(ClientError::Protocol { .. })), "{result:?}");
    }
}

#[test]
fn overload_is_waited_for() {
    let script = vec![
        error_reply(108, "queue is full"),
        Say::Raw(503, Vec::new(), Vec::new()),
        Say::Value(vec!["a"].into()),
    ];
    let (result, seen) = exchange(script, |client| client.list("//x", &[]));
    assert_eq!(result.expect("names"), [Value::from("a")]);
    assert_eq!(seen.len(), 3);
    // "Too many operations" is no overload: it is told at once.
    let (result, seen) = exchange(vec![error_reply(202, "too many")], |client| {
        client.start_operation(OperationType::Vanilla, Map::new())
    });
    assert!(result.expect_err("an error").contains_code(202));
    assert_eq!(seen.len(), 1);
}

#[test]
fn files_are_streamed() {
    let content: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
    let options = WriteFileOptions { append: true, compute_md5: true };
    let (result, seen) = exchange(vec![Say::Value(Map::new().into())], |client| {
        client.write_file("//tmp/f", &mut content.as_slice(), options)
    });
    result.expect("no error");
    assert_eq!(seen[0].method, "PUT");
    assert_eq!(seen[0].header("Transfer-Encoding"), Some("chunked"));
    assert_eq!(seen[0].body, content);
    let path = Value::from("//tmp/f").with_attributes(map! {"append" => true});
    assert_eq!(seen[0].parameters(), map! {"path" => path, "compute_md5" => true});

    let mut out = Vec::new();
    let (result, seen) =
        exchange(vec![Say::Bytes(content.clone())], |client| client.read_file("//tmp/f", &mut out));
    assert_eq!(result.expect("bytes"), content.len() as u64);
    assert_eq!(out, content);
    assert_eq!(seen[0].target, "/api/v4/read_file");
}

#[test]
fn a_refused_upload_tells_why() {
    let endless = io::repeat(7);
    let json = r#"{"code":500,"message":"no such file","attributes":{},"inner_errors":[]}"#;
    let headers = vec![("X-YT-Response-Code", "500".to_owned()), ("X-YT-Error", json.to_owned())];
    let (result, seen) = exchange(vec![Say::RawAtOnce(400, headers, Vec::new())], |client| {
        client.write_file("//tmp/f", &mut { endless }, WriteFileOptions::default())
    });
    assert!(result.as_ref().is_err_and(|e| e.contains_code(500)), "{result:?}");
    assert_eq!(seen.len(), 1);
}

#[test]
fn an_upload_is_not_repeated() {
    let (result, seen) = exchange(vec![Say::HangUp], |client| {
        client.write_file("//tmp/f", &mut &b"abc"[..], WriteFileOptions::default())
    });
    assert!(matches!(result, Err(ClientError::Connection { .. })), "{result:?}");
    assert_eq!(seen.len(), 1);
}

#[test]
fn a_bad_input_is_not_blamed_on_the_network() {
    struct Bad;
    impl Read for Bad {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("bad disk"))
        }
    }
    let (result, _) = exchange(vec![Say::HangUp], |client| {
        client.write_file("//tmp/f", &mut Bad, WriteFileOptions::default())
    });
    let error = result.expect_err("an error");
    assert_eq!(error.to_string(), "cannot read the input: bad disk");
}

#[test]
fn a_download_that_breaks_off_is_an_error() {
    let mut out = Vec::new();
    let (result, _) =
        exchange(vec![Say::Broken(b"abc".to_vec())], |client| client.read_file("//tmp/f", &mut out));
    assert!(matches!(result, Err(ClientError::Connection { .. })), "{result:?}");
    assert_eq!(out, b"abc");
}

type Ask = dyn Fn(&Client) -> Result<(), ClientError>;

#[test]
fn operations_and_jobs() {
    let job = "4b5e-49-10384-a8a8".parse().expect("an id");
    let cases: Vec<(&str, Box<Ask>, Map)> = vec![
        (
            "abort_operation",
            Box::new(|c| c.abort_operation("1-2-3-4", Some("enough"))),
            map! {"operation_id" => "1-2-3-4", "abort_message" => "enough"},
        ),
        (
            "suspend_operation",
            Box::new(|c| c.suspend_operation("*a", true, None)),
            map! {"operation_alias" => "*a", "abort_running_jobs" => true},
        ),
        ("resume_operation", Box::new(|c| c.resume_operation("*a")), map! {"operation_alias" => "*a"}),
        ("complete_operation", Box::new(|c| c.complete_operation("*a")), map! {"operation_alias" => "*a"}),
        (
            "update_operation_parameters",
            Box::new(|c| c.update_operation_parameters("*a", map! {"weight" => 2.0})),
            map! {"operation_alias" => "*a", "parameters" => map! {"weight" => 2.0}},
        ),
        (
            "get_operation",
            Box::new(|c| c.get_operation("*a", Some(&["state"])).map(drop)),
            map! {"operation_alias" => "*a", "attributes" => vec!["state"]},
        ),
        (
            "list_operations",
            Box::new(|c| c.list_operations(map! {"state" => "running"}).map(drop)),
            map! {"state" => "running"},
        ),
        (
            "list_jobs",
            Box::new(|c| c.list_jobs("*a", map! {"limit" => 5}).map(drop)),
            map! {"operation_alias" => "*a", "limit" => 5},
        ),
        (
            "get_job",
            Box::new(move |c| c.get_job("*a", job).map(drop)),
            map! {"operation_alias" => "*a", "job_id" => job},
        ),
        (
            "abort_job",
            Box::new(move |c| c.abort_job(job, Some(Span::from_secs(2)))),
            map! {"job_id" => job, "interrupt_timeout" => 2000u64},
        ),
        (
            "get_job_stderr",
            Box::new(move |c| c.get_job_stderr("*a", job, 7).map(drop)),
            map! {"operation_alias" => "*a", "job_id" => job, "offset" => 7u64},
        ),
        (
            "remove",
            Box::new(|c| c.remove("//a", true, false)),
            map! {"path" => "//a", "recursive" => true, "force" => false},
        ),
    ];
    for (name, ask, expected) in cases {
        let (result, seen) = exchange(vec![Say::Value(Map::new().into())], |client| ask(client));
        result.expect(name);
        assert_eq!(seen[0].target, format!("/api/v4/{name}"));
        let mut parameters = seen[0].parameters();
        parameters.remove("mutation_id");
        parameters.remove("retry");
        assert_eq!(parameters, expected, "{name}");
    }
}

#[test]
fn nonsense_is_not_sent() {
    let client = Client::new("127.0.0.1:1", None).expect("an address");
    let five = Value::from(5);
    for result in [
        client.command("fly", Map::new(), None),
        client.command("set", Map::new(), None),
        client.command("get", Map::new(), Some(&five)),
        client.command("read_file", Map::new(), None),
        client.upload("set", Map::new(), &mut io::empty()),
        client.download("get", Map::new(), &mut io::sink()).map(|_| Value::Entity),
        client.set(&"x".repeat(1 << 20), &five, false, false).map(|()| Value::Entity),
    ] {
        assert!(matches!(result, Err(ClientError::Usage(_))), "{result:?}");
    }
}

#[test]
fn the_table_is_consistent() {
    let mut names: Vec<_> = COMMANDS.iter().map(|c| c.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), COMMANDS.len());
    for (name, method) in [
        ("get", Method::Get),
        ("abort_job", Method::Get),
        ("create", Method::Post),
        ("set", Method::Put),
        ("write_file", Method::Put),
        ("read_file", Method::Get),
    ] {
        assert_eq!(Command::find(name).map(Command::method), Some(method), "{name}");
    }
    assert!(Command::find("abort_job").is_some_and(|c| !c.takes_mutation_id()));
}
