//! The identity of a running node: for each connection, renewed before it ends, made anew if the server does not know it any
//! more and there is a join token that was not tried yet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tonic::transport::Endpoint;
use wire::proto::pb;

use crate::agent::{News, wall_clock};
use crate::identity::{Identity, Place};
use crate::join::{Attempt, attempt, token, unusable, waiting};
use crate::link::{CurrentClient, secure_endpoint};
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
    /// Secret of the last token that was tried since the start.
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
        let token = token(&self.config).map_err(|e| e.to_string())?;
        let why = {
            let state = self.state();
            let unusable = unusable(&state.identity, &self.config, token.as_ref());
            // A refused identity is shown again: who has refused it may have been a server with an old copy of the store. A token
            // that was not tried is better.
            let is_new = token.as_ref().is_some_and(|token| state.tried.as_ref() != Some(&token.secret));
            match unusable {
                Some(why) => why,
                None if state.is_refused && is_new => "the server refuses it".to_owned(),
                None => return Ok(()),
            }
        };
        tracing::warn!("this node joins anew: {why}");
        self.state().tried = token.as_ref().map(|token| token.secret.clone());
        match attempt(&self.config, &self.place, token.as_ref()).await.map_err(|e| e.to_string())? {
            Attempt::Joined(identity) => {
                self.take(*identity);
                Ok(())
            }
            Attempt::Pending { key_sha256, .. } => Err(waiting(&self.config, &key_sha256)),
            Attempt::Refused(refused) => Err(format!("{why}, and the server refuses this node: {refused}")),
            Attempt::NoServer(missing) => Err(format!("{why}, and this node cannot join: {missing}")),
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

    /// Renews the certificate at each connection, and when half of its life is over; for ever.
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
            due = match self.renew(&current).await {
                Ok(()) => self.identity().renew_at(),
                Err(why) => {
                    let left =
                        Duration::from_micros(self.identity().valid_until.since(wall_clock()).as_micros());
                    let pause = (left / 8).clamp(SHORTEST_RETRY, RETRY);
                    match why {
                        // The next connection renews it.
                        Unrenewed::NoConnection => {}
                        Unrenewed::Failed(why) => {
                            tracing::warn!(valid_until = %self.identity().valid_until, "the certificate of this node was not renewed: {why}");
                        }
                    }
                    wall_clock()
                        + vocab::Span::from_micros(u64::try_from(pause.as_micros()).unwrap_or(u64::MAX))
                }
            };
            if self.wants_restart() {
                tracing::warn!(
                    "users of this cluster need not trust each other any more: the node ends, to look at its next start whether it can \
                     keep them apart"
                );
                let _ = news.send(News::Stop { stop_jobs: false });
                return;
            }
            if news.is_closed() {
                return;
            }
        }
    }

    async fn renew(&self, current: &CurrentClient) -> Result<(), Unrenewed> {
        let mut client = current.get().ok_or(Unrenewed::NoConnection)?;
        let identity = self.identity();
        let failed = |why: String| Unrenewed::Failed(why);
        let request = pb::RenewRequest { request: identity.request().map_err(failed)? };
        let asked = tokio::time::timeout(PATIENCE, client.renew(request)).await;
        let reply = asked
            .map_err(|_| Unrenewed::Failed("the server does not answer".to_owned()))?
            .map_err(|status| Unrenewed::Failed(status.message().to_owned()))?;
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
    NoConnection,
    Failed(String),
}
