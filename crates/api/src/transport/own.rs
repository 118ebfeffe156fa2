//! `/api/millpond/<question>`: see [`crate::commands::QUESTIONS`].

use super::command::authenticate;
use super::failure::{HttpFailure, panic_failure};
use super::query;
use super::reply;
use super::routes::{not_found, wrong_method};
use super::serve::peer;
use crate::api::{Api, Caller};
use crate::commands::{Params, QUESTIONS, Version};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, Response};
use std::sync::Arc;
use yson::{Format, JsonFormat};

pub(super) async fn answer(api: Arc<Api>, name: String, request: Request) -> Response<Body> {
    // A task of its own: a panic becomes a reply.
    let task = tokio::spawn({
        let api = api.clone();
        async move { handle(&api, &name, request).await }
    });
    let result = task.await.unwrap_or_else(|error| Err(panic_failure(error).into()));
    result.unwrap_or_else(|failure| failure.into_response(&api))
}

async fn handle(api: &Arc<Api>, name: &str, request: Request) -> Result<Response<Body>, HttpFailure> {
    let (_, parse) = QUESTIONS.iter().find(|(question, _)| *question == name).ok_or_else(|| {
        let names: Vec<&str> = QUESTIONS.iter().map(|(question, _)| *question).collect();
        let name: String = name.chars().take(100).collect();
        not_found(format!("Unknown question {name:?}: expected one of {}", names.join(", ")))
    })?;
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Err(wrong_method(request.method(), "GET, HEAD"));
    }
    let user = authenticate(api, false, request.headers(), peer(request.extensions())).await?;
    let params = Params::from_query(query::parse(request.uri().query().unwrap_or_default())?);
    let value = api.backend.execute(user.clone(), None, parse(&params)?).await?;
    // Such an answer does not say where the server is.
    let caller = Caller::new(Arc::clone(api), user, String::new(), Version::V4);
    Ok(reply::structured(&caller, request.headers(), Format::Json(JsonFormat::utf8()), value).await?)
}
