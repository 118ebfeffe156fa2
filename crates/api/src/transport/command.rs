//! The life of a request to `/api/v3|v4/<command>`.

use super::failure::{HttpFailure, panic_failure};
use super::formats::{self, HeaderFormat};
use super::reply::{self, LARGE, away_if};
use super::serve::peer;
use super::{body, headers, origin, query, session};
use crate::api::{Api, Caller};
use crate::commands::{
    self, Data, Descriptor, Params, Run, Version, get_job_data, get_job_stderr, read_file, read_table,
    run_job_shell_command, write_file, write_table,
};
use crate::job_commands::job_traces;
use crate::{Backend, BoxFuture, ByteStream, Credentials, JobDataRequest, RequestLimits};
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use std::net::IpAddr;
use std::sync::Arc;
use vocab::{Failure, code};
use yson::{Format, FormatError, Map, Value};

/// Parameters in a body: specs may be large.
const MAX_PARAMETERS: usize = 128 << 20;
/// Of a request with a specification: what else it says.
const BESIDE_SPEC: usize = 64 << 10;
/// A batch may have as many values as this many requests.
const VALUES_OF_BATCH: usize = 10;
/// The value of `set` and its like.
const MAX_INPUT: usize = 64 << 20;

/// Answers one request, whatever happens.
pub(super) async fn answer(
    api: Arc<Api>,
    version: Version,
    name: String,
    request: Request<Body>,
) -> Response<Body> {
    let id = api.request_id();
    let style_of_errors = formats::errors(request.headers());
    // A task of its own: a panic becomes a reply, and a change goes on when the client hangs up.
    let task = tokio::spawn({
        let api = api.clone();
        async move {
            let (parts, body) = request.into_parts();
            let (body, rest) = body::lend(&parts.headers, body);
            let result = handle(api, version, &name, parts, body).await;
            // The body of a refused request is read to its end, so that the client gets to read why.
            if let Some(rest) = rest.filter(|_| result.is_err()) {
                rest.drain().await;
            }
            result
        }
    });
    let result = task.await.unwrap_or_else(|error| Err(panic_failure(error).into()));
    let mut response = result.unwrap_or_else(|failure| {
        tracing::debug!(%id, status = failure.status.as_u16(), failure = %failure.failure, "refused");
        failure.into_response_in(&api, style_of_errors)
    });
    let headers = response.headers_mut();
    for (name, value) in [("x-yt-request-id", id.to_string()), ("x-yt-proxy", api.settings.host_name.clone())]
    {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}

async fn handle(
    api: Arc<Api>,
    version: Version,
    name: &str,
    parts: Parts,
    body: Body,
) -> Result<Response<Body>, HttpFailure> {
    let (descriptor, implied) = commands::find(version, name).ok_or_else(|| unknown(name))?;
    check_method(descriptor, &parts.method)?;
    let user = authenticate(&api, descriptor.changes, &parts.headers, peer(&parts.extensions)).await?;
    let header_format = HeaderFormat::of(&parts.headers)?;
    let limits = &api.settings.limits;
    let (params, body) = parameters((descriptor, limits), implied, &parts, &header_format, body).await?;
    tracing::debug!(user, command = name, "request");

    let address = address(&api, &parts.headers);
    let caller = Arc::new(Caller::new(api, user, address, version));
    let exchange = Exchange { parts: &parts, header_format: &header_format, caller: &caller };
    match descriptor.run {
        Run::Stderr => exchange.stderr(params).await,
        Run::JobTrace => {
            job_traces(&params)?;
            Ok(reply::binary(&caller, &parts.headers, Vec::new()).await?)
        }
        Run::JobData(data) => exchange.job_data(get_job_data(&params, data)?).await,
        Run::ShellCommand => exchange.shell_command(params).await,
        Run::ReadFile => exchange.read_file(params).await,
        Run::WriteFile => {
            let request = write_file(&params)?;
            exchange.upload(descriptor, params, body, |b, user, body| b.write_file(user, request, body)).await
        }
        Run::ReadTable => exchange.read_table(params).await,
        Run::WriteTable => {
            let default = Format::tabular_default;
            let format = formats::input(&parts.headers, &header_format, &params, default)?;
            let request = write_table(&params, format)?;
            exchange
                .upload(descriptor, params, body, |b, user, body| b.write_table(user, request, body))
                .await
        }
        Run::Kernel(_)
        | Run::KernelWithInput(_)
        | Run::Local(_)
        | Run::NewToken(_)
        | Run::NewJoinToken(_)
        | Run::SetPassword
        | Run::Batch
        | Run::JobInputPaths
        | Run::JobSpec
        | Run::DumpJobContext
        | Run::Shell => exchange.structured(descriptor, params, body).await,
    }
}

fn unknown(name: &str) -> HttpFailure {
    let name: String = name.chars().take(100).collect();
    let failure = Failure::coded(code::NO_SUCH_METHOD, format!("Unknown command {name:?}"));
    HttpFailure::new(StatusCode::NOT_FOUND, failure)
}

/// GET and POST for questions, POST and PUT for changes (http-api.md 2.1 [X]).
fn check_method(descriptor: &Descriptor, method: &Method) -> Result<(), HttpFailure> {
    let allowed = descriptor.methods();
    if allowed.split(", ").any(|m| m == method.as_str()) {
        return Ok(());
    }
    let name = descriptor.name;
    let message = format!("Command {name:?} cannot be called by {method}: expected one of {allowed}");
    let failure = Failure::new(message);
    Err(HttpFailure { allow: Some(allowed), ..HttpFailure::new(StatusCode::METHOD_NOT_ALLOWED, failure) })
}

/// `Authorization: OAuth <token>`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<String> {
    let authorization = headers::text(headers, header::AUTHORIZATION.as_str())?;
    let (scheme, token) = authorization.trim().split_once(' ')?;
    let known = scheme.eq_ignore_ascii_case("oauth") || scheme.eq_ignore_ascii_case("bearer");
    known.then(|| token.trim().to_owned())
}

/// The user that a request from this address runs as (http-api.md 2.9).
pub(super) async fn authenticate(
    api: &Api,
    changes_something: bool,
    headers: &HeaderMap,
    from: Option<IpAddr>,
) -> Result<String, HttpFailure> {
    let token = bearer(headers);
    origin::refuse_foreign_name(api, headers)?;
    if token.is_none() {
        origin::refuse_foreign_page(api, changes_something, headers)?;
    }
    let act_as = match headers.get("x-yt-user-name").or_else(|| headers.get("x-yt-testing-user-name")) {
        None => None,
        // Passed over, it would let the request run as somebody else than it says.
        Some(name) => Some(user_name(name.as_bytes()).map_err(HttpFailure::of_authentication)?),
    };
    let credentials = Credentials {
        token,
        session: session::cookie(headers),
        csrf_token: headers::text(headers, "x-csrf-token").map(str::to_owned),
        changes_something,
        act_as,
        from,
    };
    api.authenticator.authenticate(credentials).await.map_err(HttpFailure::of_authentication)
}

/// What header `X-YT-User-Name` says.
fn user_name(header: &[u8]) -> Result<String, Failure> {
    let wrong = |found: &str| {
        let text = format!("Header X-YT-User-Name must be the name of a user, found {found}");
        Failure::coded(code::AUTHENTICATION, text)
    };
    match std::str::from_utf8(header) {
        Ok("") => Err(wrong("nothing")),
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(wrong("bytes that are not UTF-8")),
    }
}

/// `host:port` under which this client reaches the server.
pub(super) fn address(api: &Api, headers: &HeaderMap) -> String {
    let of_request = || headers::text(headers, header::HOST.as_str()).map(str::to_owned);
    api.settings.public_address.clone().or_else(of_request).unwrap_or_else(|| api.settings.host_name.clone())
}

/// Query string, then header, then the body of a command without input (http-api.md 2.4). A body
/// that is data is given back.
async fn parameters(
    (descriptor, limits): (&Descriptor, &RequestLimits),
    implied: Map,
    parts: &Parts,
    header_format: &HeaderFormat,
    body: Body,
) -> Result<(Params, Body), HttpFailure> {
    let mut params = Params::from_query(query::parse(parts.uri.query().unwrap_or_default())?);
    if let Some(value) = header_format.read(&parts.headers, "X-YT-Parameters")? {
        params.merge(as_parameters(value, "Header X-YT-Parameters")?);
    }
    if descriptor.input != Data::Null || parts.method == Method::GET {
        params.merge(implied);
        return Ok((params, body));
    }
    let (most, what) = match descriptor.has_spec() {
        true => (limits.spec_size + BESIDE_SPEC, "The specification of the operation (max_spec_size)"),
        false => (MAX_PARAMETERS, "The body with parameters"),
    };
    let bytes = body::whole(&parts.headers, body, most, what).await?;
    if !bytes.is_empty() {
        let format = formats::body(&parts.headers, header_format, Format::structured_default)?;
        // The requests of a batch are counted one by one, too.
        let requests = if matches!(descriptor.run, Run::Batch) { VALUES_OF_BATCH } else { 1 };
        let value = parse(format, bytes, limits.values.saturating_mul(requests))
            .await
            .map_err(|e| Failure::new(format!("Cannot parse parameters in the body: {e}")))?;
        params.merge(as_parameters(value, "The body of the request")?);
    }
    params.merge(implied);
    Ok((params, Body::empty()))
}

async fn parse(format: Format, bytes: Vec<u8>, max_values: usize) -> Result<Value, FormatError> {
    away_if(bytes.len() > LARGE, move || format.deserialize_bounded(&bytes, max_values)).await
}

fn as_parameters(value: Value, place: &str) -> Result<Map, Failure> {
    match value.into_bare() {
        Value::Map(map) => Ok(map),
        other => {
            Err(Failure::new(format!("{place} must hold a map of parameters, found {}", other.type_name())))
        }
    }
}

/// The two sides of one request, its parameters read.
struct Exchange<'a> {
    parts: &'a Parts,
    header_format: &'a HeaderFormat,
    caller: &'a Arc<Caller>,
}

impl Exchange<'_> {
    async fn structured(
        self,
        descriptor: &'static Descriptor,
        params: Params,
        body: Body,
    ) -> Result<Response<Body>, HttpFailure> {
        let headers = &self.parts.headers;
        let output = self.output(&params)?;
        let mutation_id = params.mutation_id()?;
        let input = match descriptor.input {
            Data::Structured => {
                let what = format!("The input of {:?}", descriptor.name);
                let bytes = body::whole(headers, body, MAX_INPUT, &what).await?;
                let format =
                    formats::input(headers, self.header_format, &params, Format::structured_default)?;
                let values = self.caller.api.settings.limits.values;
                let value = parse(format, bytes, values).await.map_err(|e| {
                    Failure::new(format!("Cannot parse the input of {:?}: {e}", descriptor.name))
                })?;
                Some(value)
            }
            _ => None,
        };
        match self.caller.run(descriptor, params, input, mutation_id).await? {
            Some(value) => Ok(reply::structured(self.caller, headers, output, value).await?),
            None => Ok(reply::empty()),
        }
    }

    async fn stderr(self, params: Params) -> Result<Response<Body>, HttpFailure> {
        let bytes = match get_job_stderr(&params)? {
            Some(request) => self.caller.api.backend.read_stderr(self.caller.user.clone(), request).await?,
            None => bytes::Bytes::new(),
        };
        Ok(reply::binary(self.caller, &self.parts.headers, bytes.into()).await?)
    }

    async fn job_data(self, request: JobDataRequest) -> Result<Response<Body>, HttpFailure> {
        let bytes = self.caller.api.backend.read_job_data(self.caller.user.clone(), request).await?;
        Ok(reply::kept(self.reader(), bytes).await?)
    }

    async fn shell_command(self, params: Params) -> Result<Response<Body>, HttpFailure> {
        let request = run_job_shell_command(&params)?;
        let output = self.caller.api.backend.run_shell_command(self.caller.user.clone(), request).await?;
        Ok(reply::streamed(self.reader(), output)?)
    }

    async fn read_file(self, params: Params) -> Result<Response<Body>, HttpFailure> {
        let request = read_file(&params)?;
        let content = self.caller.api.backend.read_file(self.caller.user.clone(), request).await?;
        let parameters = yson::map! {"id" => content.id, "revision" => content.revision};
        Ok(reply::file(self.reader(), content, self.header_format.write(&parameters.into())).await?)
    }

    async fn read_table(self, params: Params) -> Result<Response<Body>, HttpFailure> {
        let headers = &self.parts.headers;
        let format = formats::output(headers, self.header_format, &params, Format::tabular_default)?;
        let mime = format.mime();
        let request = read_table(&params, format)?;
        let content = self.caller.api.backend.read_table(self.caller.user.clone(), request).await?;
        let parameters = yson::map! {
            "start_row_index" => content.start_row_index as i64,
            "approximate_row_count" => content.row_count as i64,
            "omitted_inaccessible_columns" => content.omitted_columns,
        };
        Ok(reply::table(self.reader(), content.body, mime, self.header_format.write(&parameters.into()))
            .await?)
    }

    /// `write_file` and `write_table`: the body goes to the backend as it comes.
    async fn upload(
        self,
        descriptor: &'static Descriptor,
        params: Params,
        body: Body,
        write: impl FnOnce(&dyn Backend, String, ByteStream) -> BoxFuture<Result<(), Failure>>,
    ) -> Result<Response<Body>, HttpFailure> {
        let headers = &self.parts.headers;
        let output = self.output(&params)?;
        let body = body::streamed(headers, body)?;
        write(&*self.caller.api.backend, self.caller.user.clone(), body).await?;
        let shaped = commands::shape(descriptor.reply, self.caller.version, false, Value::Entity);
        match shaped {
            Some(value) => Ok(reply::structured(self.caller, headers, output, value).await?),
            None => Ok(reply::empty()),
        }
    }

    /// For bodies that come bit by bit.
    fn reader(&self) -> reply::Reader<'_> {
        reply::Reader { caller: self.caller, version: self.parts.version, headers: &self.parts.headers }
    }

    /// The format of a structured reply.
    fn output(&self, params: &Params) -> Result<Format, Failure> {
        formats::output(&self.parts.headers, self.header_format, params, Format::structured_default)
    }
}
