//! `GET /api/millpond/stream`: server-sent events that say what has changed, so that a page asks again
//! only then, with its own questions and its own permissions.
//!
//! ```text
//! id: 5f1c2-17.4.90.0.2        a number for each topic, in this life of the server
//! event: hello                 first: all topics, or after a resumption those that changed meanwhile
//! data: {"version":113,"topics":["pools","operations"],"start_time":"..."}
//!
//! event: changed               later: at most one each second, none if nothing changed
//! data: {"version":114,"topics":["nodes"]}
//! ```
//!
//! There is nothing to queue up: a client that reads slowly is told of more topics at once, later. One
//! that does not read at all is dropped, and greeted with what it missed when it comes back.

use super::command::authenticate;
use super::failure::HttpFailure;
use super::headers;
use super::routes::{Shared, wrong_method};
use super::serve::peer;
use crate::api::Api;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, header};
use bytes::Bytes;
use kernel::{Topic, Versions};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use yson::{Format, JsonFormat, Map};

/// Changes that come faster are told together.
const PERIOD: Duration = Duration::from_secs(1);
/// A comment when there is nothing to say, so that both sides know that the other is there.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// A client that takes nothing for so long is dropped.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the browser waits before it comes back, in milliseconds.
const RETRY_MS: u64 = 2_000;

pub(super) async fn answer(State(api): Shared, request: Request) -> Response<Body> {
    let method = request.method();
    if method != Method::GET {
        return wrong_method(method, "GET").into_response(&api);
    }
    match open(&api, request.headers(), peer(request.extensions())).await {
        Ok(response) => response,
        Err(failure) => failure.into_response(&api),
    }
}

async fn open(
    api: &Arc<Api>,
    headers: &HeaderMap,
    from: Option<IpAddr>,
) -> Result<Response<Body>, HttpFailure> {
    authenticate(api, false, headers, from).await?;
    let seen = headers::text(headers, "last-event-id").and_then(|id| parse_id(api, id));
    let (lines, body) = mpsc::channel(1);
    let client = Client { api: Arc::clone(api), headers: headers.clone(), from, lines };
    tokio::spawn(client.tell(api.backend.changes(), seen));
    let body = ReceiverStream::new(body).map(Ok::<_, std::convert::Infallible>);
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies on the way would otherwise wait for more.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// One open stream.
struct Client {
    api: Arc<Api>,
    headers: HeaderMap,
    from: Option<IpAddr>,
    lines: mpsc::Sender<Bytes>,
}

impl Client {
    /// Until the client goes, does not read, may not any more, or the server ends.
    async fn tell(self, mut changes: watch::Receiver<Versions>, seen: Option<Versions>) {
        let mut stop = self.api.stopping();
        let mut told = *changes.borrow_and_update();
        let topics = seen.map_or(Topic::ALL.to_vec(), |seen| told.changed_since(&seen));
        let hello = self.message("hello", &told, &topics);
        if !self.send(format!("retry: {RETRY_MS}\n{hello}")).await {
            return;
        }
        loop {
            let heartbeat = Instant::now() + HEARTBEAT;
            let news = tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => true,
                    Err(_) => return,
                },
                () = sleep_until(heartbeat) => false,
                _ = stop.wait_for(|stop| *stop) => return,
                () = self.lines.closed() => return,
            };
            // Who was let in may have been locked out since.
            if authenticate(&self.api, false, &self.headers, self.from).await.is_err() {
                return;
            }
            if !news {
                if !self.send(": alive\n\n".to_owned()).await {
                    return;
                }
                continue;
            }
            let now = *changes.borrow_and_update();
            let message = self.message("changed", &now, &now.changed_since(&told));
            told = now;
            if !self.send(message).await {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// False if the client has gone or does not read.
    async fn send(&self, text: String) -> bool {
        matches!(timeout(PATIENCE, self.lines.send(text.into())).await, Ok(Ok(())))
    }

    fn message(&self, event: &str, versions: &Versions, topics: &[Topic]) -> String {
        let names: Vec<&str> = topics.iter().map(|topic| topic.name()).collect();
        let version: u64 = versions.0.iter().sum();
        let mut data: Map = yson::map! {"version" => version, "topics" => names};
        if event == "hello" {
            data.insert("start_time", self.api.started);
        }
        let data = Format::Json(JsonFormat::utf8()).serialize(&data.into());
        let id = id_of(&self.api, versions);
        format!("id: {id}\nevent: {event}\ndata: {}\n\n", String::from_utf8_lossy(&data))
    }
}

/// The life of the server and a number for each topic.
fn id_of(api: &Api, versions: &Versions) -> String {
    let numbers: Vec<String> = versions.0.iter().map(u64::to_string).collect();
    format!("{:x}-{}", api.started.as_micros(), numbers.join("."))
}

/// None for an id of another life, or for one that is none: then everything may have changed.
fn parse_id(api: &Api, id: &str) -> Option<Versions> {
    let (life, numbers) = id.trim().split_once('-')?;
    if life != format!("{:x}", api.started.as_micros()) {
        return None;
    }
    let numbers: Vec<u64> = numbers.split('.').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    Some(Versions(numbers.try_into().ok()?))
}
