//! Who asks: tokens and sessions of the API, the token of the nodes (http-api.md 2.9).
//!
//! The kernel knows users and digests of tokens; here are the secrets on their way in, the sessions of
//! browsers (in memory: after a restart people sign in again), and a short memory of who was let in.

use crate::backend::ServerBackend;
use crate::configured_tokens::ConfiguredTokens;
use crate::core_thread::now;
use crate::password_checks::PasswordChecks;
use crate::refusals::{Refusals, Shown};
use api::secrets::{hash_password, is_password, random_token, same_secret, sha256};
use api::{Authenticator, BoxFuture, Credentials, Proof, Session};
use datadir::write_secret;
use kernel::{Command, command};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use vocab::{Failure, Span, Time, code};
use yson::Value;

/// Sessions end after so long without a request.
const SESSION_IDLE: Duration = Duration::from_secs(12 * 3600);
/// More of one user are not kept: the one that was idle longest goes.
const SESSIONS_OF_USER: usize = 50;
/// More of all are not opened.
const SESSIONS: usize = 100_000;
/// A user that was let in is let in again for so long without asking the kernel, unless something about
/// users may have changed.
const REMEMBERED: Duration = Duration::from_secs(5);
const REMEMBERED_MAX: usize = 10_000;

/// See the module page.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    backend: ServerBackend,
    tokens: ConfiguredTokens,
    state: Mutex<State>,
    password_checks: PasswordChecks,
    refusals: Arc<Refusals>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<String, Entry>,
    /// By what was shown, and by whom they act as.
    remembered: BTreeMap<(command::Proof, Option<String>), (Instant, String)>,
    /// `ServerBackend::subjects_changed` as of `remembered`.
    generation: u64,
}

struct Entry {
    /// By which it began. It is asked for again and again: a session ends with its token or password.
    proof: command::Proof,
    csrf: String,
    last: Instant,
    user: String,
}

fn refused(text: &str) -> Failure {
    Failure::coded(code::INVALID_CREDENTIALS, text)
}

fn too_many(text: &str) -> Failure {
    Failure::coded(code::REQUEST_QUEUE_SIZE_LIMIT_EXCEEDED, text)
}

impl State {
    /// For one more session of a user. Nobody's sessions end because another opens many.
    fn make_room(&mut self, user: &str) -> Result<(), Failure> {
        let of_user = || self.sessions.iter().filter(|(_, session)| session.user == user);
        if of_user().count() >= SESSIONS_OF_USER {
            let idlest = of_user().min_by_key(|(_, session)| session.last).map(|(id, _)| id.clone());
            idlest.map(|id| self.sessions.remove(&id));
        }
        if self.sessions.len() >= SESSIONS {
            self.sessions.retain(|_, session| session.last.elapsed() < SESSION_IDLE);
        }
        match self.sessions.len() < SESSIONS {
            true => Ok(()),
            false => Err(too_many("Too many sessions are open")),
        }
    }
}

/// Code of a request with a cookie and without the token that goes with it.
const CSRF: i64 = 110;
/// Code of a request of a user who may not come in.
const BANNED: i64 = 903;

impl Access {
    /// Users are the kernel's, and so are the tokens that are not of the configuration.
    pub fn new(backend: ServerBackend, tokens: ConfiguredTokens, refusals: Arc<Refusals>) -> Access {
        let password_checks = PasswordChecks::default();
        Access(Arc::new(Inner { backend, tokens, state: Mutex::default(), password_checks, refusals }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_token(&self, token: &str) -> command::Proof {
        let digest = sha256(token);
        match self.0.tokens.user(&digest) {
            Some(user) => command::Proof::Configured(user.to_owned()),
            None => command::Proof::Token(digest),
        }
    }

    /// What a request brings, without asking the kernel.
    fn proof(&self, credentials: &Credentials) -> Result<command::Proof, Failure> {
        if let Some(token) = &credentials.token {
            return Ok(self.of_token(token));
        }
        let Some(id) = &credentials.session else {
            return Err(refused(
                "Client is missing credentials: send a token in the header Authorization: OAuth <token>",
            ));
        };
        let mut state = self.state();
        let now = Instant::now();
        let session = state.sessions.get_mut(id).filter(|s| now - s.last < SESSION_IDLE);
        let session = session.ok_or_else(|| refused("The session is over: sign in again"))?;
        let csrf = credentials.csrf_token.as_deref().unwrap_or_default();
        if credentials.changes_something && !same_secret(csrf, &session.csrf) {
            let text = "A request that changes something needs the header X-Csrf-Token beside the cookie: \
                        /auth/whoami tells it";
            return Err(Failure::coded(CSRF, text));
        }
        session.last = now;
        Ok(session.proof.clone())
    }

    async fn user(self, credentials: Credentials) -> Result<String, Failure> {
        let proof = self.proof(&credentials)?;
        let generation = self.0.backend.subjects_changed.load(Ordering::Acquire);
        let key = (proof.clone(), credentials.act_as.clone());
        {
            let mut state = self.state();
            if state.generation != generation || state.remembered.len() > REMEMBERED_MAX {
                state.remembered.clear();
                state.generation = generation;
            }
            if let Some((since, user)) = state.remembered.get(&key)
                && since.elapsed() < REMEMBERED
            {
                return Ok(user.clone());
            }
        }
        let shown = credentials.token.as_deref();
        let (user, end) = self.let_in(shown, proof, credentials.act_as, credentials.from).await?;
        // A token is not remembered beyond its end.
        let is_lasting = end.is_none_or(|end| end > now() + Span::from_secs(REMEMBERED.as_secs()));
        let mut state = self.state();
        if is_lasting && state.generation == generation {
            state.remembered.insert(key, (Instant::now(), user.clone()));
        }
        Ok(user)
    }

    async fn identify(
        &self,
        proof: command::Proof,
        act_as: Option<String>,
    ) -> Result<(String, Option<Time>), Failure> {
        let identity = self.0.backend.value("root".into(), Command::Identify { proof, act_as }).await?;
        let end = identity.get("valid_until").and_then(|end| Time::parse(end.as_str()?));
        let user = identity.get("user").and_then(Value::as_str);
        let user = user.map(str::to_owned).ok_or_else(|| refused("Nobody knows who this is"))?;
        Ok((user, end))
    }

    /// The user that a proof stands for, and the end of the token if it has one. A token that nobody knows counts towards the back-off of its address.
    ///
    /// A right token is let in during a back-off, too, unless it is short enough to be guessed: it is how a user comes in
    /// when others guess passwords at the same address.
    async fn let_in(
        &self,
        token: Option<&str>,
        proof: command::Proof,
        act_as: Option<String>,
        from: Option<IpAddr>,
    ) -> Result<(String, Option<Time>), Failure> {
        let refusals = &self.0.refusals;
        let is_short = token.is_some_and(|token| self.0.tokens.is_short(&sha256(token)));
        let allowed = if is_short { refusals.demand_token(from) } else { Ok(()) };
        let shown = match proof {
            command::Proof::Password { .. } => Shown::Password,
            command::Proof::Token(_) | command::Proof::Configured(_) => Shown::Token,
        };
        let identified = self.identify(proof, act_as).await;
        // Only now: a short token that is right must not be answered faster than a wrong one.
        allowed?;
        identified.map_err(|failure| match failure.code {
            code::INVALID_CREDENTIALS if token.is_some() => refusals.wrong_token(from, failure),
            BANNED | code::AUTHENTICATION => {
                refusals.not_admitted(shown, from, &failure);
                failure
            }
            _ => failure,
        })
    }

    async fn open_session(self, proof: Proof, from: Option<IpAddr>) -> Result<Session, Failure> {
        let token = match &proof {
            Proof::Token(token) => Some(token.clone()),
            Proof::Password { .. } => None,
        };
        let proof = match proof {
            Proof::Token(token) => self.of_token(&token),
            Proof::Password { user, password } => {
                let hash = self.check_password(&user, &password, from).await?;
                command::Proof::Password { user, hash }
            }
        };
        let (user, _) = self.let_in(token.as_deref(), proof.clone(), None, from).await?;
        let (id, csrf) = (random_token()?, random_token()?);
        let mut state = self.state();
        state.make_room(&user)?;
        let entry = Entry { proof, csrf: csrf.clone(), last: Instant::now(), user: user.clone() };
        state.sessions.insert(id.clone(), entry);
        Ok(Session { id, user, csrf, seconds: SESSION_IDLE.as_secs() })
    }

    /// The hash that the password has. The same refusal, after the same time, for a wrong password and
    /// for a user without one.
    async fn check_password(
        &self,
        user: &str,
        password: &str,
        from: Option<IpAddr>,
    ) -> Result<String, Failure> {
        static NOBODYS: OnceLock<String> = OnceLock::new();
        let (checks, refusals) = (&self.0.password_checks, &self.0.refusals);
        refusals.demand_password(user, from, checks.is_known(user, from))?;
        let asked = Command::PasswordHash { user: user.to_owned() };
        let hash = self.0.backend.value("root".into(), asked).await?;
        let hash = hash.as_str().map(str::to_owned);
        let password = sha256(password);
        let _turn = checks.turn(user, from).await?;
        // Those before it in the lane may have been wrong.
        refusals.demand_password(user, from, checks.is_known(user, from))?;
        let check = tokio::task::spawn_blocking(move || match hash {
            Some(hash) => is_password(&password, &hash).then_some(hash),
            None => {
                let nobodys = NOBODYS.get_or_init(|| hash_password("nobody's").unwrap_or_default());
                let _ = is_password(&password, nobodys);
                None
            }
        });
        match check.await {
            Ok(Some(hash)) => {
                checks.succeeded(user, from);
                refusals.right_password(user, from);
                Ok(hash)
            }
            _ => {
                let failure = refused("Invalid credentials: the user or the password is wrong");
                refusals.wrong_password(user, from, &failure);
                Err(failure)
            }
        }
    }
}

impl Authenticator for Access {
    fn authenticate(&self, credentials: Credentials) -> BoxFuture<Result<String, Failure>> {
        Box::pin(self.clone().user(credentials))
    }

    fn sign_in(&self, proof: Proof, from: Option<IpAddr>) -> BoxFuture<Result<Session, Failure>> {
        Box::pin(self.clone().open_session(proof, from))
    }

    fn sign_out(&self, session: &str) {
        self.state().sessions.remove(session);
    }

    fn csrf_token(&self, session: &str) -> Option<String> {
        self.state().sessions.get(session).map(|session| session.csrf.clone())
    }

    fn is_on(&self) -> bool {
        true
    }
}

/// Gives `root` a token if the file of it is not there: at the first start, or when it was removed
/// because the token was lost. The file comes last: a token that is in it is known.
pub async fn ensure_root_token(backend: &ServerBackend, file: &Path) -> anyhow::Result<()> {
    if file.symlink_metadata().is_ok() {
        return Ok(());
    }
    let token = random_token()?;
    let command = Command::IssueToken {
        user: "root".into(),
        token_sha256: sha256(&token),
        description: Some("made by the server at its start".into()),
        ttl: None,
    };
    backend.value("root".into(), command).await?;
    write_secret(file, format!("{token}\n"))?;
    tracing::info!(file = %file.display(), "the token of root is in this file");
    Ok(())
}

/// The token that nodes must show; made if its file is not there.
pub fn node_token(file: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => anyhow::bail!("{} is empty: remove it, and a new token will be made", file.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !file.is_symlink() => {
            let token = random_token()?;
            write_secret(file, format!("{token}\n"))?;
            Ok(token)
        }
        Err(error) => Err(anyhow::anyhow!("cannot read {}: {error}", file.display())),
    }
}
