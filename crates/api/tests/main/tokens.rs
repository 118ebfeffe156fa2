//! Who is let in by an authenticator of two tokens and one session.

use api::{Authenticator, BoxFuture, Credentials};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vocab::{Failure, code};

/// `tok-root` and `tok-ann`, and the session `ses` of `ann`, with `csrf`. `root` may act as anybody.
#[derive(Clone, Default)]
pub struct Tokens {
    locked_out: Arc<AtomicBool>,
}

impl Tokens {
    /// Nobody gets in any more.
    pub fn lock_out(&self) {
        self.locked_out.store(true, Ordering::SeqCst);
    }

    fn user(&self, credentials: Credentials) -> Result<String, Failure> {
        let refused = |number: i64| Err(Failure::coded(number, "Not with that"));
        let session = credentials.session.as_deref() == Some("ses");
        let user = match credentials.token.as_deref() {
            _ if self.locked_out.load(Ordering::SeqCst) => return refused(code::INVALID_CREDENTIALS),
            Some("tok-root") => "root",
            Some("tok-ann") => "ann",
            None if session && !credentials.changes_something => "ann",
            None if session && credentials.csrf_token.as_deref() == Some("csrf") => "ann",
            None if session => return refused(110),
            _ => return refused(code::INVALID_CREDENTIALS),
        };
        match credentials.act_as {
            Some(other) if user == "root" => Ok(other),
            Some(_) => refused(code::AUTHENTICATION),
            None => Ok(user.to_owned()),
        }
    }
}

impl Authenticator for Tokens {
    fn authenticate(&self, credentials: Credentials) -> BoxFuture<Result<String, Failure>> {
        Box::pin(std::future::ready(self.user(credentials)))
    }
}
