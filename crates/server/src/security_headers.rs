//! Headers that keep browsers from using answers for what they are not: all answers have them, those of the API too.
//!
//! Users choose the bytes of files and tables, so an answer of the API must never be run as a page of this server.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, header};
use axum::middleware::map_response;

/// Policy of everything but the page, which brings its own: nothing is loaded or run, and no other page shows it.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Adds the headers to every answer of a router.
pub(crate) fn with_security_headers(router: Router) -> Router {
    router.layer(map_response(async |response: Response<Body>| with_headers(response)))
}

fn with_headers(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    let all: [(HeaderName, &'static str); 4] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in all {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_keeps_its_own_policy() {
        let mut page = Response::new(Body::empty());
        let own = HeaderValue::from_static("default-src 'self'");
        page.headers_mut().insert(header::CONTENT_SECURITY_POLICY, own.clone());
        let page = with_headers(page);
        assert_eq!(
            page.headers().get_all(header::CONTENT_SECURITY_POLICY).iter().collect::<Vec<_>>(),
            [&own]
        );
        let other = with_headers(Response::new(Body::empty()));
        assert_eq!(other.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
        for response in [page, other] {
            assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(response.headers()[header::X_FRAME_OPTIONS], "DENY");
            assert_eq!(response.headers()[header::REFERRER_POLICY], "no-referrer");
        }
    }
}
