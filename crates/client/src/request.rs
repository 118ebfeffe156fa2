//! The client itself: how one command becomes HTTP requests.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use ureq::http::{Request, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig};
use ureq::{Agent, Body, SendBody};
use vocab::code;
use yson::{Map, Value};

use crate::commands::{Command, Kind, Method};
use crate::headers::{BODY_FORMAT, HEADER_FORMAT, parameter_headers, parameters_text};
use crate::{ClientError, address, mutation, reply};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Light commands answer within 20 seconds (http-api.md 2.8); a loaded machine may need longer.
const LIGHT_TIMEOUT: Duration = Duration::from_secs(60);
/// Heavy commands may be slow to begin; how long they go on is not limited.
const HEAVY_TIMEOUT: Duration = Duration::from_secs(300);

/// How often a request that got lost is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retries {
    /// How many times in all; at least one.
    pub attempts: u32,
    /// Pause before the second attempt; each further one is twice as long.
    pub pause: Duration,
}

impl Default for Retries {
    /// About three seconds in all: enough for a restart of the server, not for a coffee.
    fn default() -> Retries {
        Retries { attempts: 5, pause: Duration::from_millis(200) }
    }
}

impl Retries {
    /// One attempt.
    pub const NONE: Retries = Retries { attempts: 1, pause: Duration::ZERO };
}

/// A client of one server. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    base: String,
    token: Option<String>,
    user: Option<String>,
    retries: Retries,
}

/// What goes into the body of a PUT.
enum Input<'a> {
    None,
    /// Can be sent again.
    Bytes(&'a [u8]),
    /// Cannot.
    Stream(&'a mut dyn Read),
}

fn agent(roots: RootCerts) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        // Servers are near: a proxy meant for the world only stands in the way.
        .proxy(None)
        .user_agent(concat!("millpond/", env!("CARGO_PKG_VERSION")))
        // Errors travel in a header, too.
        .max_response_header_size(256 << 10)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .build()
        .new_agent()
}

impl Client {
    /// A client of the server at `HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`. Nothing is sent
    /// yet. By TLS it trusts whom browsers trust; see [`Client::trusting`].
    pub fn new(address: &str, token: Option<&str>) -> Result<Client, ClientError> {
        let token = token.map(str::trim).filter(|token| !token.is_empty());
        if token.is_some_and(|token| !token.bytes().all(|b| b.is_ascii_graphic())) {
            return Err(ClientError::Usage("the token has characters that no token has".to_owned()));
        }
        Ok(Client {
            agent: agent(RootCerts::WebPki),
            base: address::normalise(address)?,
            token: token.map(str::to_owned),
            user: None,
            retries: Retries::default(),
        })
    }

    /// The same client, trusting those authorities alone whose certificates are in this PEM text.
    pub fn trusting(self, authorities: &[u8]) -> Result<Client, ClientError> {
        let bad = |why: String| ClientError::Usage(format!("cannot read the certificates to trust: {why}"));
        let mut certificates = Vec::new();
        for item in ureq::tls::parse_pem(authorities) {
            if let PemItem::Certificate(certificate) = item.map_err(|e| bad(e.to_string()))? {
                certificates.push(certificate);
            }
        }
        if certificates.is_empty() {
            return Err(bad("there is none in PEM form".to_owned()));
        }
        Ok(Client { agent: agent(RootCerts::Specific(Arc::new(certificates))), ..self })
    }

    /// The same client with another idea of patience.
    #[must_use]
    pub fn with_retries(self, retries: Retries) -> Client {
        Client { retries, ..self }
    }

    /// The same client in the name of another user, as far as the server lets it (http-api.md 2.9).
    pub fn acting_as(&self, user: &str) -> Result<Client, ClientError> {
        if user.is_empty() || !user.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(ClientError::Usage(format!("{user:?} cannot be the name of a user")));
        }
        Ok(Client { user: Some(user.to_owned()), ..self.clone() })
    }

    /// Address of the server, with its scheme.
    pub fn address(&self) -> &str {
        &self.base
    }

    /// Runs a command that replies with a value: `input` for those that take one (`set`).
    pub fn command(&self, name: &str, parameters: Map, input: Option<&Value>) -> Result<Value, ClientError> {
        let command = self.find(name, Kind::Structured)?;
        let body = input.map(yson::to_binary);
        let input = match (&body, command.input) {
            (None, Kind::Null) => Input::None,
            (Some(body), Kind::Structured) => Input::Bytes(body),
            (None, _) => return Err(ClientError::Usage(format!("command \"{name}\" needs an input"))),
            (Some(_), _) => {
                return Err(ClientError::Usage(format!("command \"{name}\" takes no value as input")));
            }
        };
        self.run(command, parameters, input, |response| reply::value(response, &self.base))
    }

    /// Runs a command whose input is a stream (`write_file`, `write_table`). A stream cannot be
    /// sent twice, so there is one attempt.
    pub fn upload(&self, name: &str, parameters: Map, input: &mut dyn Read) -> Result<Value, ClientError> {
        let command = self.find(name, Kind::Structured)?;
        if !matches!(command.input, Kind::Binary | Kind::Tabular) {
            return Err(ClientError::Usage(format!("command \"{name}\" takes no stream as input")));
        }
        let mut watched = Watched { inner: input, failed: None };
        let result = self.run(command, parameters, Input::Stream(&mut watched), |response| {
            reply::value(response, &self.base)
        });
        // A failure to read is the user's file, not the network, whatever it looks like from there.
        match watched.failed {
            Some(error) => Err(ClientError::Input(error)),
            None => result,
        }
    }

    /// Runs a command that replies with bytes (`read_file`, `get_job_stderr`), and gives their
    /// number. Once bytes have come, nothing is repeated.
    pub fn download(&self, name: &str, parameters: Map, output: &mut dyn Write) -> Result<u64, ClientError> {
        let command = Command::find(name).ok_or_else(|| unknown(name))?;
        if !matches!(command.output, Kind::Binary | Kind::Tabular) {
            return Err(ClientError::Usage(format!("command \"{name}\" does not reply with bytes")));
        }
        let response = self.run(command, parameters, Input::None, Ok)?;
        self.copy(response, output)
    }

    /// GET of a path whose answer is JSON.
    pub(crate) fn ask(&self, path: &str) -> Result<Value, ClientError> {
        let mut request = Request::builder().method("GET").uri(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("OAuth {token}"));
        }
        if let Some(user) = &self.user {
            request = request.header("X-YT-User-Name", user);
        }
        let request = request.body(()).map_err(|e| ClientError::Usage(e.to_string()))?;
        let request =
            self.agent.configure_request(request).timeout_recv_response(Some(LIGHT_TIMEOUT)).build();
        let response = self.agent.run(request).map_err(|e| self.explain(e))?;
        reply::json(reply::check(response, &self.base)?, &self.base)
    }

    fn find(&self, name: &str, output: Kind) -> Result<&'static Command, ClientError> {
        let command = Command::find(name).ok_or_else(|| unknown(name))?;
        if command.output != output {
            return Err(ClientError::Usage(format!("command \"{name}\" does not reply with a value")));
        }
        Ok(command)
    }

    fn copy(&self, mut response: Response<Body>, output: &mut dyn Write) -> Result<u64, ClientError> {
        let mut reader = response.body_mut().as_reader();
        let mut buffer = vec![0; 64 << 10];
        let mut total = 0;
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(total),
                Ok(n) => {
                    output.write_all(&buffer[..n]).map_err(ClientError::Output)?;
                    total += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.lost(format!("the reply broke off after {total} bytes: {e}"))),
            }
        }
    }

    /// Sends a command until it is answered. The answer is read by `finish` within the attempt: a
    /// reply that breaks off is as lost as one that never came.
    fn run<T>(
        &self,
        command: &Command,
        parameters: Map,
        mut input: Input<'_>,
        finish: impl Fn(Response<Body>) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        // A value from here on: specs can be large, and are not copied any more.
        let mut parameters = Value::Map(parameters);
        let mutation_id = command.takes_mutation_id().then(|| mutation::mutation_id().to_string());
        // Who cannot be recognised when he knocks twice must not knock twice.
        let repeatable =
            (!command.is_volatile || mutation_id.is_some()) && !matches!(input, Input::Stream(_));
        let attempts = if repeatable { self.retries.attempts.max(1) } else { 1 };
        let mut pause = self.retries.pause;
        for attempt in 1.. {
            if let (Some(id), Some(map)) = (&mutation_id, parameters.as_map_mut()) {
                map.insert("mutation_id", id);
                map.insert("retry", attempt > 1);
            }
            let result = self
                .send(command, &parameters, &mut input)
                .and_then(|r| reply::check(r, &self.base))
                .and_then(&finish);
            match result {
                Err(error) if attempt < attempts && is_transient(&error) => {
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                other => return other,
            }
        }
        unreachable!("the last attempt returns")
    }

    fn send(
        &self,
        command: &Command,
        parameters: &Value,
        input: &mut Input<'_>,
    ) -> Result<Response<Body>, ClientError> {
        let (method, text) = match command.method() {
            Method::Post => (Method::Post, None),
            way => match (parameters_text(parameters), way) {
                (Some(text), way) => (way, Some(text)),
                // Commands without input take POST as well (http-api.md 2.1).
                (None, Method::Get) => (Method::Post, None),
                (None, _) => return Err(ClientError::Usage("the parameters are too long".to_owned())),
            },
        };
        let mut request = Request::builder()
            .method(match method {
                Method::Get => "GET",
                Method::Post => "POST",
                Method::Put => "PUT",
            })
            .uri(format!("{}/api/v4/{}", self.base, command.name))
            .header(HEADER_FORMAT.0, HEADER_FORMAT.1)
            .header("X-YT-Output-Format", BODY_FORMAT);
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("OAuth {token}"));
        }
        if let Some(user) = &self.user {
            request = request.header("X-YT-User-Name", user);
        }
        for (name, value) in text.iter().flat_map(|text| parameter_headers(text)) {
            request = request.header(name, value);
        }
        match method {
            Method::Post => request = request.header("Content-Type", "application/x-yt-yson-binary"),
            Method::Put if matches!(input, Input::Bytes(_)) => {
                request = request.header("X-YT-Input-Format", BODY_FORMAT);
            }
            // A refusal is then seen before the stream is spent, and not as a cut connection.
            Method::Put => request = request.header("Expect", "100-continue"),
            _ => {}
        }
        let request = request.body(()).map_err(|e| ClientError::Usage(e.to_string()))?;
        let patience = if command.is_heavy { HEAVY_TIMEOUT } else { LIGHT_TIMEOUT };
        let request = self.agent.configure_request(request).timeout_recv_response(Some(patience)).build();
        let response = match (method, input) {
            (Method::Post, _) => self.agent.run(request.map(|()| yson::to_binary(parameters))),
            (Method::Put, Input::Bytes(bytes)) => self.agent.run(request.map(|()| *bytes)),
            (Method::Put, Input::Stream(stream)) => {
                self.agent.run(request.map(|()| SendBody::from_reader(*stream)))
            }
            _ => self.agent.run(request),
        };
        response.map_err(|e| self.explain(e))
    }

    fn explain(&self, error: ureq::Error) -> ClientError {
        let cause = match &error {
            ureq::Error::Io(e) => match e.kind() {
                io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                _ => e.to_string(),
            },
            ureq::Error::HostNotFound => "there is no host of that name".to_owned(),
            ureq::Error::Timeout(_) => format!("it took too long ({error})"),
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => return ClientError::Usage(error.to_string()),
            ureq::Error::Protocol(_) => {
                return ClientError::Protocol { address: self.base.clone(), problem: error.to_string() };
            }
            other => other.to_string(),
        };
        self.lost(cause)
    }

    fn lost(&self, cause: String) -> ClientError {
        ClientError::Connection { address: self.base.clone(), cause }
    }
}

/// May the same request succeed a moment later? Apart from lost connections these are the codes
/// that the reference client repeats (http-api.md 2.8) and Millpond uses for overload.
fn is_transient(error: &ClientError) -> bool {
    const OVERLOAD: [i64; 4] = [100, 105, 108, 904];
    match error {
        ClientError::Connection { .. } => true,
        ClientError::Server(failure) => {
            failure.code == code::TIMEOUT || OVERLOAD.iter().any(|code| failure.contains_code(*code))
        }
        _ => false,
    }
}

fn unknown(name: &str) -> ClientError {
    ClientError::Usage(format!("there is no command \"{name}\""))
}

/// Remembers an error of the reader inside, which the HTTP library would hide among its own.
struct Watched<'a> {
    inner: &'a mut dyn Read,
    failed: Option<io::Error>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            let copy = io::Error::new(error.kind(), error.to_string());
            if error.kind() != io::ErrorKind::Interrupted {
                self.failed = Some(error);
            }
            copy
        })
    }
}
