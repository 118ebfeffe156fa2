//! All end points (http-api.md 1).

use super::failure::HttpFailure;
use super::serve::peer;
use super::{command, own, reply, session, stream};
use crate::api::{Api, Caller};
use crate::commands::{Version, descriptors};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::routing::{any, post};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use vocab::Failure;
use yson::{Format, JsonFormat, Value};

impl Api {
    /// The routes of the API. The server adds its own to them (the page);
    /// what is left is answered with 404 and an error body.
    pub fn router(self: &Arc<Api>) -> Router {
        Router::new()
            .route("/api", any(versions))
            .route("/api/", any(versions))
            .route("/api/{version}", any(list))
            .route("/api/{version}/", any(list))
            .route("/api/{version}/{command}", any(run))
            .route("/api/openapi.json", any(openapi))
            .route("/api/millpond/stream", any(stream::answer))
            .route("/api/millpond/{question}", any(own_question))
            .route("/hosts", any(hosts))
            .route("/hosts/all", any(hosts))
            .route("/ping", any(ping))
            .route("/version", any(version))
            .route("/service", any(service))
            .route("/health", any(health))
            .route("/metrics", any(metrics))
            .route("/auth/whoami", any(session::whoami))
            .route("/login", post(session::login))
            .route("/logout", post(session::logout))
            .fallback(unknown_path)
            .with_state(self.clone())
    }
}

pub(super) type Shared = State<Arc<Api>>;
/// Parts of the path; percent-encoded bytes in it may be no text.
type Named<T> = Result<Path<T>, PathRejection>;

async fn versions(State(api): Shared, method: Method) -> Response<Body> {
    simple(&api, &method, || Ok(json(&vec!["v3", "v4"].into())))
}

/// Descriptors. Every call of the `yt` command begins with this request, so nothing is asked, not
/// even who is there (http-api.md 1, 14.17).
async fn list(State(api): Shared, name: Named<String>, method: Method) -> Response<Body> {
    let Ok(Path(name)) = name else { return unreadable().into_response(&api) };
    match protocol(&name) {
        Some(version) => simple(&api, &method, || Ok(of_json(all_descriptors(version)))),
        None => no_version(&name).into_response(&api),
    }
}

/// One copy for all clients.
fn all_descriptors(version: Version) -> Bytes {
    static V3: OnceLock<Bytes> = OnceLock::new();
    static V4: OnceLock<Bytes> = OnceLock::new();
    let known = match version {
        Version::V3 => &V3,
        Version::V4 => &V4,
    };
    known.get_or_init(|| Format::Json(JsonFormat::utf8()).serialize(&descriptors(version)).into()).clone()
}

async fn run(State(api): Shared, names: Named<(String, String)>, request: Request) -> Response<Body> {
    let Ok(Path((version, name))) = names else { return unreadable().into_response(&api) };
    match protocol(&version) {
        Some(version) => command::answer(api, version, name, request).await,
        None => no_version(&version).into_response(&api),
    }
}

/// Millpond's own questions: `/api/millpond/pool_history?pool=...`.
async fn own_question(State(api): Shared, name: Named<String>, request: Request) -> Response<Body> {
    match name {
        Ok(Path(name)) => own::answer(api, name, request).await,
        Err(_) => unreadable().into_response(&api),
    }
}

fn protocol(name: &str) -> Option<Version> {
    match name {
        "v3" => Some(Version::V3),
        "v4" => Some(Version::V4),
        _ => None,
    }
}

/// This one server is all there is; role and address type are the same for everybody.
async fn hosts(State(api): Shared, method: Method, headers: HeaderMap) -> Response<Body> {
    simple(&api, &method, || Ok(json(&vec![command::address(&api, &headers)].into())))
}

async fn ping(State(api): Shared, method: Method) -> Response<Body> {
    simple(&api, &method, || Ok(Response::new(Body::empty())))
}

async fn version(State(api): Shared, method: Method) -> Response<Body> {
    simple(&api, &method, || {
        let mut response = Response::new(Body::from(api.settings.version.clone()));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Ok(response)
    })
}

async fn service(State(api): Shared, method: Method) -> Response<Body> {
    simple(&api, &method, || {
        let version = api.settings.version.as_str();
        Ok(json(&yson::map! {"start_time" => api.started, "version" => version}.into()))
    })
}

async fn health(State(api): Shared, method: Method) -> Response<Body> {
    simple(&api, &method, || match api.backend.health() {
        Ok(()) => Ok(json(&yson::map! {"status" => "ok"}.into())),
        // Where users are asked who they are, reasons are not for everybody: paths, errors of the system.
        Err(_) if api.authenticator.is_on() => {
            let failure = Failure::new("The server is not healthy: see its log");
            Err(HttpFailure { is_for_anybody: true, ..HttpFailure::new(StatusCode::BAD_REQUEST, failure) })
        }
        Err(failure) => Err(failure.into()),
    })
}

/// For Prometheus, which shows its token as everybody does.
async fn metrics(State(api): Shared, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return wrong_method(&parts.method, "GET, HEAD").into_response(&api);
    }
    let told = async {
        let user = command::authenticate(&api, false, &parts.headers, peer(&parts.extensions)).await?;
        let text = api.backend.metrics(user.clone()).await?;
        let form = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
        let caller = Caller::new(Arc::clone(&api), user, String::new(), Version::V4);
        Ok::<_, HttpFailure>(reply::text(&caller, &parts.headers, form, text.into_bytes()).await?)
    };
    told.await.unwrap_or_else(|failure| failure.into_response(&api))
}

/// What is served, for programs. Nothing that must be asked for: it says no more than the descriptors do.
async fn openapi(State(api): Shared, method: Method) -> Response<Body> {
    // One copy for all clients.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let written = || {
        // Its `$ref` is not one of our words.
        let format = JsonFormat { plain_keys: true, ..JsonFormat::utf8() };
        Format::Json(format).serialize(&crate::openapi::document(&api.settings.version).into()).into()
    };
    simple(&api, &method, || Ok(of_json(DOCUMENT.get_or_init(written).clone())))
}

async fn unknown_path(State(api): Shared, request: Request) -> Response<Body> {
    let path: String = request.uri().path().chars().take(200).collect();
    not_found(format!("Nothing is served at {path:?}")).into_response(&api)
}

fn no_version(name: &str) -> HttpFailure {
    let name: String = name.chars().take(100).collect();
    not_found(format!("Unknown API version {name:?}: expected v3 or v4"))
}

fn unreadable() -> HttpFailure {
    not_found("The path is not UTF-8".to_owned())
}

pub(super) fn not_found(message: String) -> HttpFailure {
    HttpFailure::new(StatusCode::NOT_FOUND, Failure::new(message))
}

pub(super) fn wrong_method(method: &Method, allowed: &'static str) -> HttpFailure {
    let failure = Failure::new(format!("This address cannot be called by {method}: expected {allowed}"));
    HttpFailure { allow: Some(allowed), ..HttpFailure::new(StatusCode::METHOD_NOT_ALLOWED, failure) }
}

fn simple(
    api: &Api,
    method: &Method,
    answer: impl FnOnce() -> Result<Response<Body>, HttpFailure>,
) -> Response<Body> {
    // hyper leaves out the body of an answer to HEAD.
    if method != Method::GET && method != Method::HEAD {
        return wrong_method(method, "GET, HEAD").into_response(api);
    }
    answer().unwrap_or_else(|failure| failure.into_response(api))
}

/// Of a few bytes: it does not count among the replies that wait for their readers.
pub(super) fn json(value: &Value) -> Response<Body> {
    of_json(Format::Json(JsonFormat::utf8()).serialize(value).into())
}

fn of_json(text: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
