//! The API as a whole: what all requests share, and how one command runs.

use crate::commands::{
    Data, Descriptor, Local, Params, Run, Version, get_job_data, poll_job_shell, prerequisites,
    refuse_prerequisites, set_user_password, shape, shell_answer, write_table,
};
use crate::job_commands::{dump_job_context, get_job_spec};
use crate::limits::RequestLimits;
use crate::transport::{Counted, InFlight, InFlightLimits, away_if};
use crate::{Answer, Authenticator, Backend, BoxFuture, ByteStream, JobData, WriteTable, batch, secrets};
use kernel::{Command, SharedValue};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, watch};
use vocab::{Failure, Guid, JoinToken, Time};
use yson::{Format, Style, Value};

/// What the server tells the API about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Shown by `/version`, `/service` and `get_version`.
    pub version: String,
    /// `host:port` under which clients reach this server; when absent, the request's `Host` header.
    pub public_address: Option<String>,
    /// Name of this host in replies and errors.
    pub host_name: String,
    /// Nobody is asked for a token, since only this machine reaches the server: it answers to no other name.
    pub only_near: bool,
    /// Clients come by TLS: browsers are told to send cookies no other way.
    pub tls: bool,
    /// Bytes of replies that wait for their readers.
    pub in_flight: InFlightLimits,
    /// How large requests may be.
    pub limits: RequestLimits,
    /// SHA-256 of the certificate of the authority that nodes' certificates are from; `None`: nodes cannot join.
    pub node_authority: Option<String>,
}

/// The API of one server. [`Api::router`] makes routes of it.
pub struct Api {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) settings: Settings,
    pub(crate) in_flight: InFlight,
    pub(crate) started: Time,
    requests: AtomicU64,
    /// True when streams that never end by themselves must.
    stop: watch::Sender<bool>,
    /// Passwords cost a core a while: not all of them at once.
    hashing: Semaphore,
    /// Of this process alone: see [`Api::secret`].
    secret: OnceLock<String>,
}

impl Api {
    /// An API over a backend.
    pub fn new(
        backend: Arc<dyn Backend>,
        authenticator: Arc<dyn Authenticator>,
        settings: Settings,
    ) -> Arc<Api> {
        let (requests, stop) = (AtomicU64::new(0), watch::Sender::new(false));
        let hashing = Semaphore::new(1);
        let secret = OnceLock::new();
        let in_flight = InFlight::new(settings.in_flight);
        Arc::new(Api {
            backend,
            authenticator,
            settings,
            in_flight,
            started: now(),
            requests,
            stop,
            hashing,
            secret,
        })
    }

    /// What nobody outside of this process knows, to make things of that nobody else can make.
    fn secret(&self) -> Result<&str, Failure> {
        if let Some(secret) = self.secret.get() {
            return Ok(secret);
        }
        let new = secrets::random_token()?;
        Ok(self.secret.get_or_init(|| new))
    }

    /// Ends the event streams: they would hold up the server's end.
    pub fn end_streams(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// A name for one request, for logs: the start of this server and a number.
    pub(crate) fn request_id(&self) -> Guid {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let started = self.started.as_micros();
        Guid([(started >> 32) as u32, started as u32, (number >> 32) as u32, number as u32])
    }
}

/// `set_user_password`: whether it may be set is asked before the hash is made, which takes its time on a
/// thread where nobody else waits.
async fn set_password(
    caller: Arc<Caller>,
    (user, password): (String, String),
    mutation_id: Option<Guid>,
) -> Result<Value, Failure> {
    let backend = &caller.api.backend;
    let set = |hash: String| Command::SetUserPassword { user: user.clone(), hash };
    let may = Command::Authorize(Box::new(set(String::new())));
    backend.execute(caller.user.clone(), None, may).await?;
    let _turn = caller.api.hashing.acquire().await;
    let hash = tokio::task::spawn_blocking(move || secrets::hash_password(&password)).await;
    let hash = hash.map_err(|e| Failure::new(format!("Hashing the password failed: {e}")))??;
    backend.execute(caller.user.clone(), mutation_id, set(hash)).await
}

pub(crate) fn now() -> Time {
    Time(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64))
}

/// A request whose sender is known.
pub(crate) struct Caller {
    pub api: Arc<Api>,
    pub user: String,
    /// `host:port` under which this client reaches the server.
    pub address: String,
    pub version: Version,
    /// Bytes of the reply that were counted before it was made.
    pub counted: Counted,
}

impl Caller {
    pub(crate) fn new(api: Arc<Api>, user: String, address: String, version: Version) -> Caller {
        Caller { api, user, address, version, counted: Counted::default() }
    }

    /// Runs a command with a structured result: alone or as an item of a batch. The result has the
    /// shape of the reply; none means an empty body.
    ///
    /// The backend has the command when this returns; the future only waits.
    pub fn run(
        self: &Arc<Self>,
        descriptor: &'static Descriptor,
        params: Params,
        input: Option<Value>,
        mutation_id: Option<Guid>,
    ) -> BoxFuture<Result<Option<Value>, Failure>> {
        match self.begin(descriptor, params, input, mutation_id) {
            Ok(future) => future,
            Err(failure) => Box::pin(std::future::ready(Err(failure))),
        }
    }

    /// The text of a join token with this secret.
    fn join_token(&self, secret: String) -> Result<String, Failure> {
        let authority_sha256 = self.api.settings.node_authority.clone();
        let authority_sha256 = authority_sha256
            .ok_or_else(|| Failure::new("This server has no authority for the certificates of nodes"))?;
        Ok(JoinToken { authority_sha256, secret }.to_string())
    }

    fn begin(
        self: &Arc<Self>,
        descriptor: &'static Descriptor,
        params: Params,
        input: Option<Value>,
        mutation_id: Option<Guid>,
    ) -> Result<BoxFuture<Result<Option<Value>, Failure>>, Failure> {
        let limits = &self.api.settings.limits;
        // Of a batch each request is looked at by itself, and rows are no values of the kernel's.
        if !matches!(descriptor.run, Run::Batch | Run::WriteTable) {
            limits.check_values(&params, input.as_ref())?;
        }
        if descriptor.has_spec() {
            limits.check_spec(&params)?;
        }
        let transaction = params.transaction()?;
        let only_value = params.flag("return_only_value")?;
        let (reply, version) = (descriptor.reply, self.version);
        if descriptor.volatile && !matches!(descriptor.run, Run::Kernel(_) | Run::KernelWithInput(_)) {
            refuse_prerequisites(&params, descriptor.name)?;
        }
        let command = match descriptor.run {
            Run::Kernel(parse) => parse(&params)?,
            Run::KernelWithInput(parse) => {
                let input = input.ok_or_else(|| {
                    Failure::new(format!("Command {:?} needs an input value", descriptor.name))
                })?;
                parse(&params, input)?
            }
            Run::Local(answer) => {
                let local =
                    Local { user: &self.user, version: &self.api.settings.version, address: &self.address };
                let natural = answer(&local, &params)?;
                return Ok(Box::pin(std::future::ready(Ok(shape(reply, version, only_value, natural)))));
            }
            Run::NewToken(parse) | Run::NewJoinToken(parse) => {
                // Nobody keeps a token, but for who repeats himself the same one is made again: as long as this
                // process lives, and also if it was revoked in the meantime.
                let purpose = match descriptor.run {
                    Run::NewJoinToken(_) => secrets::Purpose::JoinToken,
                    _ => secrets::Purpose::UserToken,
                };
                let token = match mutation_id {
                    Some(id) => {
                        let secret = self.api.secret()?;
                        secrets::token_of(purpose, &[secret.as_bytes(), self.user.as_bytes(), &id.to_bytes()])
                    }
                    None => secrets::random_token()?,
                };
                let (command, token) = parse(&params, token)?;
                let token = match descriptor.run {
                    Run::NewJoinToken(_) => self.join_token(token)?,
                    _ => token,
                };
                let issued = self.api.backend.execute(self.user.clone(), None, command);
                return Ok(Box::pin(async move {
                    issued.await?;
                    Ok(shape(reply, version, only_value, token.into()))
                }));
            }
            Run::SetPassword => {
                let set = set_password(self.clone(), set_user_password(&params)?, mutation_id);
                return Ok(Box::pin(async move { Ok(shape(reply, version, only_value, set.await?)) }));
            }
            Run::Batch => {
                let caller = self.clone();
                return Ok(Box::pin(async move {
                    let results = batch::execute(&caller, &params, mutation_id).await?;
                    Ok(shape(reply, version, only_value, results))
                }));
            }
            Run::Shell => {
                let request = poll_job_shell(&params)?;
                let answer = self.api.backend.shell(self.user.clone(), request);
                return Ok(Box::pin(async move {
                    Ok(shape(reply, version, only_value, shell_answer(answer.await?)))
                }));
            }
            Run::JobInputPaths => {
                let request = get_job_data(&params, JobData::Input)?;
                let found = self.api.backend.job_input_paths(self.user.clone(), request);
                return Ok(Box::pin(async move { Ok(shape(reply, version, only_value, found.await?)) }));
            }
            Run::JobSpec => {
                let request = get_job_spec(&params)?;
                let caller = self.clone();
                return Ok(Box::pin(async move {
                    Ok(shape(reply, version, only_value, caller.job_spec(request).await?))
                }));
            }
            Run::DumpJobContext => {
                let request = dump_job_context(&params)?;
                let caller = self.clone();
                return Ok(Box::pin(async move {
                    Ok(shape(reply, version, only_value, caller.dump_context(request, mutation_id).await?))
                }));
            }
            // Of a batch: the rows are a value.
            Run::WriteTable => {
                let rows = rows_of(input.as_ref())?;
                let request = write_table(&params, Format::Yson(Style::Binary))?;
                let request = WriteTable { mutation_id, ..request };
                let written = self.api.backend.write_table(self.user.clone(), request, rows);
                return Ok(Box::pin(async move {
                    written.await?;
                    Ok(shape(reply, version, only_value, Value::Entity))
                }));
            }
            Run::Stderr
            | Run::JobTrace
            | Run::JobData(_)
            | Run::ShellCommand
            | Run::ReadFile
            | Run::WriteFile
            | Run::ReadTable => {
                return Err(Failure::new(format!("Command {:?} has no structured result", descriptor.name)));
            }
        };
        let transaction = transaction.filter(|_| !command.names_its_transaction());
        // To start a transaction has its own list of them.
        let is_guarded = descriptor.volatile && !matches!(command, Command::StartTransaction(_));
        let prerequisites = if is_guarded { prerequisites(&params)? } else { Vec::new() };
        let command = command.under(transaction, prerequisites);
        let in_words = command.options_parameter().filter(|name| params.is_from_query(name));
        if let Some(name) = in_words {
            limits.check_words(name, params.value(name))?;
        }
        let in_words = in_words.is_some();
        let command = if in_words { command.in_words() } else { command };
        let mutation_id = mutation_id.filter(|_| descriptor.volatile);
        let result = self.api.backend.answer(self.user.clone(), mutation_id, command);
        let caller = self.clone();
        Ok(Box::pin(async move {
            let value = match result.await? {
                Answer::Value(value) => value,
                Answer::Shared(shared) => caller.copy(shared).await?,
            };
            Ok(shape(reply, version, only_value, value))
        }))
    }
}

impl Caller {
    /// The same for an item of a batch, whose bytes are counted by themselves.
    pub(crate) fn for_item(&self) -> Caller {
        Caller::new(Arc::clone(&self.api), self.user.clone(), self.address.clone(), self.version)
    }

    /// A copy of a large value, which is counted before it is made: of those that are refused there is none.
    async fn copy(&self, shared: SharedValue) -> Result<Value, Failure> {
        let bytes = shared.value().weight() as u64;
        self.counted.add(self.api.in_flight.reserve(&self.user, bytes)?);
        Ok(away_if(true, move || shared.value().clone()).await)
    }
}

/// The rows of an item of a batch, as a stream.
fn rows_of(input: Option<&Value>) -> Result<ByteStream, Failure> {
    let rows = input.and_then(Value::as_list).ok_or_else(|| {
        let found = input.map_or("nothing", Value::type_name);
        Failure::new(format!("\"input\" of command \"write_table\" must be a list of rows, found {found}"))
    })?;
    let mut bytes = Vec::new();
    rows.iter().for_each(|row| yson::write::write_row(row, Style::Binary, &mut bytes));
    Ok(Box::pin(tokio_stream::once(Ok(bytes.into()))))
}

/// Can this command be an item of a batch? (http-api.md 8.9)
pub(crate) fn fits_batch(descriptor: &Descriptor) -> bool {
    descriptor.input != Data::Binary
        && matches!(descriptor.output, Data::Null | Data::Structured)
        && !matches!(descriptor.run, Run::Batch)
}
