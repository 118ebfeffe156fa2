//! Who asks: the seam between a request's credentials and a user name (http-api.md 2.9).

use crate::BoxFuture;
use std::net::IpAddr;
use vocab::Failure;

/// What a request says about its sender.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Credentials {
    /// `Authorization: OAuth <token>`.
    pub token: Option<String>,
    /// Id of a session, from a cookie.
    pub session: Option<String>,
    /// `X-Csrf-Token`.
    pub csrf_token: Option<String>,
    /// The request changes something: a session alone is not enough.
    pub changes_something: bool,
    /// `X-YT-User-Name` or `X-YT-Testing-User-Name`: act as this user.
    pub act_as: Option<String>,
    /// Address of the connection.
    pub from: Option<IpAddr>,
}

/// Turns credentials into the name of a user.
///
/// Failures with the codes 109..111 are answered with 401, 903 (banned) with 403, 904 (too many tries) with 429. The
/// attribute `retry_after` of a failure, whole seconds, becomes the header `Retry-After`.
pub trait Authenticator: Send + Sync + 'static {
    /// The user that the request runs as.
    fn authenticate(&self, credentials: Credentials) -> BoxFuture<Result<String, Failure>>;

    /// Opens a session for a browser that asks from this address.
    fn sign_in(&self, _proof: Proof, _from: Option<IpAddr>) -> BoxFuture<Result<Session, Failure>> {
        let failure = Failure::new("Nobody signs in here: this server does not ask who its users are");
        Box::pin(std::future::ready(Err(failure)))
    }

    /// Ends a session.
    fn sign_out(&self, _session: &str) {}

    /// What goes with the cookie of a session.
    fn csrf_token(&self, _session: &str) -> Option<String> {
        None
    }

    /// Does anybody have to prove who they are?
    fn is_on(&self) -> bool {
        false
    }
}

/// What somebody shows to sign in.
#[derive(Clone, PartialEq, Eq)]
pub enum Proof {
    /// A token.
    Token(String),
    /// A name and a password.
    Password {
        /// Who.
        user: String,
        /// As it was typed.
        password: String,
    },
}

/// A session of a browser.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// What the cookie holds.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// What must go with the cookie in requests that change something.
    pub csrf: String,
    /// How long it lasts without a request.
    pub seconds: u64,
}

/// Authentication switched off: everybody is `root`, or whomever they name.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAccess;

impl Authenticator for OpenAccess {
    fn authenticate(&self, credentials: Credentials) -> BoxFuture<Result<String, Failure>> {
        let user = credentials.act_as.unwrap_or_else(|| "root".to_owned());
        Box::pin(std::future::ready(Ok(user)))
    }
}
