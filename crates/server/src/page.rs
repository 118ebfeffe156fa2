//! The web page: its files are in the binary and served at `/` (http-api.md 1).
//!
//! The page is one document with an address for each view, so every address of a view is answered with
//! that document. It asks the same API as everybody else; nothing here knows what it shows.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::routing::get;

/// A file of the page.
struct File {
    path: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// First parts of the addresses of the page's views (`web/src/app.tsx`). All others stay errors in JSON.
const VIEWS: [&str; 9] =
    ["login", "scheduling", "operations", "nodes", "preemptions", "people", "tree", "system", "submit"];

/// What the document may load: its own files, and nothing from anywhere else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const MISSING: &str = "This server was built without the web page.\n\
     To have it: npm ci && npm run build in the folder web of the sources, then build the server again.\n\
     The API is at /api/v4.\n";

/// Adds the routes of the page.
pub(crate) fn with_page(router: Router) -> Router {
    let mut router = router
        .route("/", get(document))
        .route("/favicon.svg", get(async |headers: HeaderMap| file("favicon.svg", &headers)))
        .route("/assets/{name}", get(asset));
    for view in VIEWS {
        router = router
            .route(&format!("/{view}"), get(document))
            .route(&format!("/{view}/{{*rest}}"), get(document));
    }
    router
}

async fn document(headers: HeaderMap) -> Response<Body> {
    file("index.html", &headers)
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response<Body> {
    file(&format!("assets/{name}"), &headers)
}

fn file(path: &str, request: &HeaderMap) -> Response<Body> {
    let Some(file) = FILES.iter().find(|file| file.path == path) else { return missing(path) };
    let packed = file.gzip.filter(|_| accepts_gzip(request));
    let mut response = Response::new(Body::from(Bytes::from_static(packed.unwrap_or(file.plain))));
    let headers = response.headers_mut();
    let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
    put(header::CONTENT_TYPE, content_type(path));
    put(header::CONTENT_SECURITY_POLICY, POLICY);
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(header::REFERRER_POLICY, "no-referrer");
    put(header::VARY, "Accept-Encoding");
    // Names in `assets` change with the contents; the document that names them does not.
    let named_by_content = path.starts_with("assets/");
    put(
        header::CACHE_CONTROL,
        if named_by_content { "public, max-age=31536000, immutable" } else { "no-cache" },
    );
    if packed.is_some() {
        put(header::CONTENT_ENCODING, "gzip");
    }
    response
}

fn missing(path: &str) -> Response<Body> {
    let text = if FILES.is_empty() { MISSING.to_owned() } else { format!("The page has no file {path}\n") };
    let mut response = Response::new(Body::from(text));
    // A link to the page of a server without one should say what is wrong, not look broken.
    if !(FILES.is_empty() && path == "index.html") {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().split(',').any(|encoding| {
        let mut parts = encoding.split(';').map(str::trim);
        parts.next() == Some("gzip") && parts.next() != Some("q=0")
    })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        let check = |accepted: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(accepted).unwrap());
            assert_eq!(accepts_gzip(&headers), expected, "{accepted}");
        };
        check("gzip, deflate, br", true);
        check("br;q=1.0, gzip;q=0.8", true);
        check("gzip;q=0", false);
        check("identity", false);
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn types_of_files() {
        assert_eq!(content_type("assets/a-1.b.js"), "text/javascript; charset=utf-8");
        assert_eq!(content_type("LICENSE"), "application/octet-stream");
    }

    /// An address can be opened anew, not only be come to by a link.
    #[test]
    fn each_view_of_the_page_is_one_here() {
        let page = include_str!("../../../web/src/app.tsx");
        let mut views: Vec<&str> = page
            .split("<Route path=\"/")
            .skip(1)
            .filter_map(|route| route.split(['/', '"']).next())
            .filter(|view| !view.is_empty())
            .collect();
        views.dedup();
        assert!(views.len() > 5, "{views:?}");
        for view in &views {
            assert!(VIEWS.contains(view), "{view} is not among {VIEWS:?}");
        }
        for view in VIEWS {
            assert!(views.contains(&view), "the page has no {view}");
        }
    }

    /// With and without the page: an answer in words, or the document under its policy.
    #[test]
    fn the_document() {
        let response = file("index.html", &HeaderMap::new());
        assert_eq!(response.status(), StatusCode::OK);
        let has = |name| response.headers().contains_key(name);
        assert_eq!(has(header::CONTENT_SECURITY_POLICY), !FILES.is_empty());
        // The page runs its own scripts and nobody else's, no text in the document is one, and no page shows it.
        let policy: Vec<&str> = POLICY.split("; ").collect();
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(&part), "{part}");
        }
        assert!(!POLICY.contains("unsafe") && !POLICY.contains('*'));
        assert_eq!(file("assets/no-such-file.js", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }
}
