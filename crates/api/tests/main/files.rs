//! Bodies that are streams: `write_file`, `read_file` (http-api.md 2.7, 8.3).

use crate::http::{Server, check_error};
use std::io::Write as _;
use yson::{Format, JsonFormat};

const READ: &str = "GET /api/v4/read_file?path=//f";

#[test]
fn written_files_are_read_back() {
    let server = Server::start();
    let content: Vec<u8> = (0..3_000_000u32).map(|i| ((i * 31) >> 5) as u8).collect();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&content).expect("memory");
    let zlib = zlib.finish().expect("memory");

    // As the client sends it: chunked, zlib under the name of gzip.
    let mut connection = server.connect();
    connection.send(
        b"PUT /api/v4/write_file HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\
          X-YT-Header-Format: <format=text>yson\r\n\
          X-YT-Parameters: {path=<append=%true>\"//f\";compute_md5=%true}\r\n\r\n",
    );
    for chunk in zlib.chunks(100_001) {
        connection.send(format!("{:x}\r\n", chunk.len()).as_bytes());
        connection.send(chunk);
        connection.send(b"\r\n");
    }
    connection.send(b"0\r\n\r\n");
    let reply = connection.read(false);
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
    assert!(server.fake.lock().files["//f"] == content);
    let calls = server.fake.take_calls();
    assert!(calls[0].contains("append: true, compute_md5: true"), "{calls:?}");

    let reply = connection.ask(&format!("{READ} HTTP/1.1"), b"");
    assert!(reply.status == 200 && reply.complete && reply.body == content);
    assert_eq!(reply.header("x-yt-response-parameters"), Some("{\"id\":\"1-2-10190-3\",\"revision\":17}"));
    assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
    let reply = connection.ask(&format!("{READ}&offset=10&length=5 HTTP/1.1"), b"");
    assert!(reply.complete && reply.body == content[10..15]);
    let reply = connection.ask(&format!("{READ}&offset=99999999 HTTP/1.1"), b"");
    assert!(reply.status == 200 && reply.complete && reply.body.is_empty());
}

#[test]
fn a_late_failure_cuts_the_connection() {
    let server = Server::start();
    server.fake.lock().files.insert("//breaks".to_owned(), vec![7; 100_000]);
    let reply = server.ask("GET /api/v4/read_file?path=//breaks HTTP/1.1", b"");
    assert_eq!(reply.status, 200);
    assert!(!reply.complete && reply.body.len() < 100_000);
    // An early one is an ordinary error.
    assert_eq!(server.ask("GET /api/v4/read_file?path=//nope HTTP/1.1", b"").code(), (400, 500));
}

#[test]
fn whoever_reads_trailers_is_told_of_a_late_failure() {
    let server = Server::start();
    server.fake.lock().files.insert("//breaks".to_owned(), vec![7; 100_000]);
    server.fake.lock().files.insert("//fine".to_owned(), vec![7; 100_000]);
    let mut connection = server.connect();
    for command in ["read_file", "read_table"] {
        let mut ask = |path: &str| {
            connection.ask(&format!("GET /api/v4/{command}?path={path} HTTP/1.1\nTE: gzip, trailers"), b"")
        };
        let reply = ask("//breaks");
        assert!(reply.status == 200 && reply.complete && reply.body.len() < 100_000, "{command}");
        let trailer = |name: &str| {
            let found = reply.trailers.iter().find(|(n, _)| n == name);
            found
                .map(|(_, value)| value.as_str())
                .unwrap_or_else(|| panic!("{command}: {:?}", reply.trailers))
        };
        let json = Format::Json(JsonFormat::utf8()).deserialize(trailer("x-yt-error").as_bytes());
        check_error(json.as_ref().expect("good JSON"));
        assert_eq!(
            (trailer("x-yt-response-code"), trailer("x-yt-response-message")),
            ("1", "the disk is gone")
        );
        let promised = reply.header("trailer").expect("they are announced").to_ascii_lowercase();
        assert!(reply.trailers.iter().all(|(name, _)| promised.contains(name.as_str())));
        // The connection goes on, and what is whole has none.
        let reply = ask("//fine");
        assert!(reply.complete && reply.body.len() == 100_000 && reply.trailers.is_empty(), "{command}");
    }
}

#[test]
fn an_upload_that_breaks_off_changes_nothing() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(
        b"PUT /api/v4/write_file?path=//f HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    );
    drop(connection);
    // Bodies that end before their encoding does are refused as well.
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&[1; 100_000]).expect("memory");
    let zlib = zlib.finish().expect("memory");
    let head = "PUT /api/v4/write_file?path=//g HTTP/1.1\nContent-Encoding: gzip";
    assert_eq!(server.ask(head, &zlib[..zlib.len() / 2]).code(), (400, 1));
    assert!(server.fake.lock().files.is_empty());
}

#[test]
fn a_refused_upload_is_still_answered() {
    let server = Server::start();
    let mut connection = server.connect();
    let head = "PUT /api/v4/write_file?path=//missing HTTP/1.1";
    assert_eq!(connection.ask(head, &vec![0; 20 << 20]).code(), (400, 500));
    assert_eq!(connection.ask("GET /ping HTTP/1.1", b"").status, 200);
}
