//! A whole request: method, target and headers (parameters whole or in parts, formats, encodings) as lines, then an
//! empty line and the body. Nothing may panic, and no answer may be one that clients repeat for minutes.
#![no_main]

#[path = "../../crates/api/tests/main/fake.rs"]
#[allow(dead_code)]
mod fake;

use api::{Api, OpenAccess, Settings};
use axum::body::Body;
use axum::http::Request;
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use tower::ServiceExt as _;

fn request(input: &[u8]) -> Option<Request<Body>> {
    let split = input.windows(2).position(|pair| pair == b"\n\n")?;
    let (head, body) = (&input[..split], input[split + 2..].to_vec());
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    // Streams of events have no end, and two rules of the fake backend mean a panic or a wait.
    if target.contains("/stream") || input.windows(6).any(|w| w == b"/panic" || w == b"//slow") {
        return None;
    }
    let mut request = Request::builder().method(method).uri(target).header("Host", "localhost");
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..]);
        request = request.header(&line[..colon], value);
    }
    request.body(Body::from(body)).ok()
}

// Everything anew for each input: what was kept of earlier ones (replies to mutations, values) must not decide.
fuzz_target!(|input: &[u8]| {
    let Some(request) = request(input) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let status = runtime.block_on(async {
        let settings = Settings {
            version: "1".to_owned(),
            public_address: None,
            only_near: false,
            host_name: "fuzz".to_owned(),
            tls: false,
            in_flight: api::InFlightLimits::default(),
            limits: api::RequestLimits::default(),
            node_authority: None,
        };
        let router = Api::new(Arc::new(fake::Fake::default()), Arc::new(OpenAccess), settings).router();
        let Ok(response) = router.oneshot(request).await;
        let status = response.status().as_u16();
        let _ = axum::body::to_bytes(response.into_body(), 64 << 20).await;
        status
    });
    assert!(status < 500, "answered with {status}");
});
