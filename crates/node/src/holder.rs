//! The identity of a running node: for each connection, renewed before it ends, made anew if the server does not know it any
//! more and there is a join token that was not tried yet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tonic::Code;
use tonic::transport::Endpoint;
use wire::proto::pb;

use crate::agent::{News, wall_clock};
use crate::identity::{Identity, Place};
use crate::join::{Attempt, attempt, token, unusable, waiting};
use crate::link::{Client, CurrentClient, secure_endpoint};
use crate::{NodeConfig, NodeError};

/// See the module page.
pub(crate) struct Holder {
    config: NodeConfig,
    place: Place,
    state: Mutex<State>,
    /// The node must be started again to act on what the server says.
    restart: AtomicBool,
}

struct State {
    identity: Identity,
    /// The server has refused it.
    is_refused: bool,
    /// Secret of the last token that the server has decided about since the start.
    tried: Option<String>,
}

/// A failed renewal is tried again after so long, or sooner if the end is near.
const RETRY: Duration = Duration::from_secs(60);
const SHORTEST_RETRY: Duration = Duration::from_secs(1);
/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

impl Holder {
    /// For a node that has joined.
    pub fn new(config: &NodeConfig, place: Place, identity: Identity) -> Arc<Holder> {
        let state = State { identity, is_refused: false, tried: None };
        Arc::new(Holder {
            config: config.clone(),
            place,
            state: Mutex::new(state),
            restart: AtomicBool::new(false),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn identity(&self) -> Identity {
        self.state().identity.clone()
    }

    /// The server does not want this identity.
    pub fn refused(&self) {
        self.state().is_refused = true;
    }

    /// Must the node be started again?
    pub fn wants_restart(&self) -> bool {
        self.restart.load(Ordering::Acquire)
    }

    /// For the next connection. Joins anew first if that is needed and may help.
    pub async fn endpoint(&self) -> Result<Endpoint, String> {
        self.join_again().await?;
        secure_endpoint(&self.config.server, self.identity().tls()).map_err(|e| e.to_string())
    }

    async fn join_again(&self) -> Result<(), String> {
        let token = token(&self.config);
        let why = {
            let state = self.state();
            // The token may be left over from the joining, and the identity is good without it.
            let token = token.as_ref().ok().and_then(Option::as_ref);
            let unusable = unusable(&state.identity, &self.config, token);
            // A refused identity is shown again: who has refused it may have been a server with an old copy of the store. A token
            // that was not tried is better.
            let is_new = token.is_some_and(|token| state.tried.as_ref() != Some(&token.secret));
            match unusable {
                Some(why) => why,
                None if state.is_refused && is_new => "the server refuses it".to_owned(),
                None => return Ok(()),
            }
        };
        tracing::warn!("this node joins anew: {why}");
        let token = token.map_err(|e| format!("{why}, and this node cannot join: {e}"))?;
        let outcome = attempt(&self.config, &self.place, token.as_ref()).await.map_err(|e| e.to_string())?;
        if matches!(outcome, Attempt::Joined(_) | Attempt::Refused(_)) {
            self.state().tried = token.map(|token| token.secret);
        }
        match outcome {
            Attempt::Joined(identity) => {
                self.take(*identity);
                Ok(())
            }
            Attempt::Pending { key_sha256, .. } => Err(waiting(&self.config, &key_sha256)),
            Attempt::Refused(refused) => Err(format!("{why}, and the server refuses this node: {refused}")),
            Attempt::NoAnswer(missing) => Err(format!("{why}, and this node cannot join: {missing}")),
        }
    }

    fn take(&self, identity: Identity) {
        let mut state = self.state();
        // A node that trusted its users has not looked whether it can keep them apart.
        if identity.authentication && !state.identity.authentication {
            self.restart.store(true, Ordering::Release);
        }
        state.identity = identity;
        state.is_refused = false;
    }

    /// Renews the certificate over a connection on which the node has said nothing yet: the server tells with it whether users of
    /// the cluster trust each other, which may have changed. A node that has not looked whether it can keep them apart says
    /// nothing then.
    pub async fn prepare(&self, client: &mut Client) -> Result<(), Unprepared> {
        if let Err(why) = self.renew(client).await {
            if let Some(refused) = why.refusal() {
                return Err(Unprepared::Refused(refused.to_owned()));
            }
            // The identity is still good. The server refuses it if it was made for other users.
            match why.is_for_now() {
                true => tracing::debug!("the certificate of this node was not renewed: {}", why.text()),
                false => self.tell_unrenewed(&why),
            }
        }
        match self.wants_restart() {
            true => Err(Unprepared::Lost("this node must be started again".to_owned())),
            false => Ok(()),
        }
    }

    fn tell_unrenewed(&self, why: &Unrenewed) {
        let valid_until = self.identity().valid_until;
        tracing::warn!(%valid_until, "the certificate of this node was not renewed: {}", why.text());
    }

    /// Renews the certificate when half of its life is over; for ever. New connections renew it, too.
    pub async fn keep_renewed<N: Send + 'static>(
        self: Arc<Holder>,
        current: CurrentClient,
        news: UnboundedSender<News<N>>,
    ) {
        let mut due = self.identity().renew_at();
        loop {
            let wait = Duration::from_micros(due.since(wall_clock()).as_micros());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = current.connected() => {}
            }
            due = self.identity().renew_at();
            if due <= wall_clock() {
                // Without a connection, the next one renews it.
                let failed = match current.get() {
                    Some(mut client) => self.renew(&mut client).await.err(),
                    None => None,
                };
                if let Some(why) = failed {
                    self.tell_unrenewed(&why);
                }
                due = self.identity().renew_at();
            }
            if due <= wall_clock() {
                let left = Duration::from_micros(self.identity().valid_until.since(wall_clock()).as_micros());
                let pause = pause(left);
                due = wall_clock()
                    + vocab::Span::from_micros(u64::try_from(pause.as_micros()).unwrap_or(u64::MAX));
            }
            if news.is_closed() || self.wants_restart() {
                return;
            }
        }
    }

    async fn renew(&self, client: &mut Client) -> Result<(), Unrenewed> {
        let identity = self.identity();
        let failed = |why: String| Unrenewed::Failed(why);
        let request = pb::RenewRequest { request: identity.request().map_err(failed)? };
        let asked = tokio::time::timeout(PATIENCE, client.renew(request)).await;
        let reply = asked
            .map_err(|_| Unrenewed::Failed("the server does not answer".to_owned()))?
            .map_err(|status| Unrenewed::Answered(Box::new(status)))?;
        let answer = match reply.into_inner().outcome {
            Some(pb::join_reply::Outcome::Certificate(answer)) => answer,
            _ => return Err(Unrenewed::Failed("the server's answer has no certificate".to_owned())),
        };
        let renewed = identity.renewed(wall_clock(), answer).map_err(failed)?;
        self.place.store(&renewed).map_err(|e: NodeError| Unrenewed::Failed(e.to_string()))?;
        tracing::debug!(valid_until = %renewed.valid_until, "the certificate of this node was renewed");
        self.take(renewed);
        Ok(())
    }
}

/// Why a certificate was not renewed.
enum Unrenewed {
    /// The server does not give one.
    Answered(Box<tonic::Status>),
    Failed(String),
}

impl Unrenewed {
    fn text(&self) -> &str {
        match self {
            Unrenewed::Answered(status) => status.message(),
            Unrenewed::Failed(why) => why,
        }
    }

    /// What the server says if it does not want this identity any more.
    fn refusal(&self) -> Option<&str> {
        match self {
            Unrenewed::Answered(status) if status.code() == Code::Unauthenticated => Some(status.message()),
            _ => None,
        }
    }

    /// The server answers nothing at the moment, or this node had many certificates a short time ago.
    fn is_for_now(&self) -> bool {
        matches!(self, Unrenewed::Answered(status) if status.code() == Code::Unavailable)
    }
}

/// Time to wait after a failed renewal, when the certificate is good for `left`.
fn pause(left: Duration) -> Duration {
    (left / 8).clamp(SHORTEST_RETRY, RETRY)
}

/// Why a node must not speak on a new connection.
pub(crate) enum Unprepared {
    /// The server refuses its identity.
    Refused(String),
    /// The connection is of no use: the next one may be.
    Lost(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7: a server that gives no more certificates for the moment is not one that has revoked the identity, and is not asked
    /// without a pause.
    #[test]
    fn a_renewal_that_comes_too_often_is_tried_later_with_the_same_identity() {
        let answered = |status| Unrenewed::Answered(Box::new(status));
        let later = answered(tonic::Status::unavailable("try again in 60 s"));
        assert!(later.refusal().is_none() && later.is_for_now());
        let revoked = answered(tonic::Status::unauthenticated("it was revoked"));
        assert!(revoked.refusal() == Some("it was revoked") && !revoked.is_for_now());
        let failed = Unrenewed::Failed("it does not answer".to_owned());
        assert!(failed.refusal().is_none() && !failed.is_for_now() && failed.text() == "it does not answer");
        let pauses = [0, 4, 80, 10_000].map(|left| pause(Duration::from_secs(left)).as_secs());
        assert_eq!(pauses, [1, 1, 10, 60]);
    }
}
