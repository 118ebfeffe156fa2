//! Signing in from a browser: `/login`, `/logout`, `/auth/whoami` (http-api.md 1, 2.9).
//!
//! A page cannot keep a token safe, so it is given a cookie that its scripts cannot read. With the cookie
//! alone every change needs the header `X-Csrf-Token` as well, which only a page of ours can know.

use super::body;
use super::command::{authenticate, bearer};
use super::failure::HttpFailure;
use super::headers;
use super::origin::refuse_foreign_page;
use super::routes::{Shared, json, wrong_method};
use super::serve::peer;
use crate::Proof;
use crate::api::Api;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, header};
use kernel::Command;
use vocab::{Failure, code};
use yson::{Format, JsonFormat, Value};

/// Name of the cookie.
const COOKIE: &str = "millpond_session";
/// A user and a password fit in.
const MAX_BODY: usize = 64 << 10;

/// The session that a request brings along.
pub(super) fn cookie(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(name, _)| *name == COOKIE).map(|(_, value)| value.to_owned())
}

pub(super) async fn whoami(State(api): Shared, request: Request) -> Response<Body> {
    let (method, headers) = (request.method(), request.headers());
    if method != Method::GET && method != Method::POST {
        return wrong_method(method, "GET, POST").into_response(&api);
    }
    // It changes nothing, and it is where the csrf token comes from.
    let user = match authenticate(&api, false, headers, peer(request.extensions())).await {
        Ok(user) => user,
        Err(failure) => return failure.into_response(&api),
    };
    identity(&api, user, csrf(&api, headers)).await.unwrap_or_else(|failure| failure.into_response(&api))
}

pub(super) async fn login(State(api): Shared, request: Request) -> Response<Body> {
    let (parts, content) = request.into_parts();
    let (content, rest) = body::lend(&parts.headers, content);
    let result = sign_in(&api, parts, content).await;
    if let Some(rest) = rest.filter(|_| result.is_err()) {
        rest.drain().await;
    }
    result.unwrap_or_else(|failure| failure.into_response(&api))
}

async fn sign_in(api: &Api, parts: Parts, content: Body) -> Result<Response<Body>, HttpFailure> {
    // Or a page of somebody else could sign this browser in as whom it likes.
    refuse_foreign_page(api, true, &parts.headers)?;
    let bytes = body::whole(&parts.headers, content, MAX_BODY, "The body of a sign-in").await?;
    let proof = match from_header(&parts.headers) {
        Some(proof) => proof,
        None => from_body(&bytes).map_err(HttpFailure::of_authentication)?,
    };
    let session = api
        .authenticator
        .sign_in(proof, peer(&parts.extensions))
        .await
        .map_err(HttpFailure::of_authentication)?;
    let mut response = identity(api, session.user, session.csrf).await?;
    set_cookie(api, &mut response, &session.id, session.seconds);
    Ok(response)
}

pub(super) async fn logout(State(api): Shared, request: Request) -> Response<Body> {
    let headers = request.headers();
    if let Err(failure) = authenticate(&api, true, headers, peer(request.extensions())).await {
        return failure.into_response(&api);
    }
    if let Some(session) = cookie(headers) {
        api.authenticator.sign_out(&session);
    }
    let mut response = json(&yson::Map::new().into());
    set_cookie(&api, &mut response, "", 0);
    response
}

fn csrf(api: &Api, headers: &HeaderMap) -> String {
    cookie(headers).and_then(|session| api.authenticator.csrf_token(&session)).unwrap_or_default()
}

async fn identity(api: &Api, user: String, csrf: String) -> Result<Response<Body>, HttpFailure> {
    let auth = api.authenticator.is_on();
    // The page shows nothing before it knows who is there. Where nobody is asked who they are, everybody may do
    // everything: that takes no question to a kernel that may be busy.
    let superuser = if auth {
        let about = Command::DescribeUser { user: user.clone() };
        let about = api.backend.execute(user.clone(), None, about).await?;
        about.get("superuser").and_then(Value::as_bool).unwrap_or(false)
    } else {
        true
    };
    Ok(json(
        &yson::map! {
            "login" => user,
            "realm" => "millpond",
            "csrf_token" => csrf,
            "auth" => auth,
            "superuser" => superuser,
        }
        .into(),
    ))
}

fn set_cookie(api: &Api, response: &mut Response<Body>, id: &str, seconds: u64) {
    let secure = if api.settings.tls { "; Secure" } else { "" };
    let text = format!("{COOKIE}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

/// `Authorization: OAuth <token>` or `Basic <base64 of user:password>`.
fn from_header(all: &HeaderMap) -> Option<Proof> {
    if let Some(token) = bearer(all) {
        return Some(Proof::Token(token));
    }
    let (scheme, encoded) = headers::text(all, header::AUTHORIZATION.as_str())?.trim().split_once(' ')?;
    let basic =
        scheme.eq_ignore_ascii_case("basic").then(|| headers::decode_base64(encoded.as_bytes()))??;
    let text = String::from_utf8(basic).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Proof::Password { user: user.to_owned(), password: password.to_owned() })
}

/// `{"user", "password"}` or `{"token"}`.
fn from_body(bytes: &[u8]) -> Result<Proof, Failure> {
    let value = Format::Json(JsonFormat::utf8()).deserialize(bytes);
    let text = |name: &str| value.as_ref().ok()?.get(name).and_then(Value::as_str).map(str::to_owned);
    match (text("token"), text("user"), text("password")) {
        (Some(token), None, None) => Ok(Proof::Token(token)),
        (None, Some(user), Some(password)) => Ok(Proof::Password { user, password }),
        _ => Err(Failure::coded(
            code::INVALID_CREDENTIALS,
            "Give {\"user\", \"password\"} or {\"token\"} as JSON, or the header Authorization",
        )),
    }
}
