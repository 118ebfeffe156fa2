//! The loop: one queue of news in, the core, effects out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nodecore::{NodeCore, NodeEffect, NodeInput};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::Instant;
use vocab::{Span, SteadyClock, Time};
use wire::{NodeMessage, ServerMessage};

use crate::hands::{Hands, Outcome};

/// So many pieces of news are taken together at most, so that a flood does not delay what they cause.
const BATCH: usize = 512;

/// Everything that wakes the agent.
#[derive(Debug)]
pub enum News<N> {
    /// From the hands' work beside the loop.
    Hands(N),
    /// A stream is open.
    LinkUp(LinkEnds),
    /// The server said something.
    Server(ServerMessage),
    /// The stream is gone.
    LinkDown,
    /// End: now, or when all jobs are dead.
    Stop {
        /// Abort them first.
        stop_jobs: bool,
    },
}

/// The agent's ends of a stream.
#[derive(Debug)]
pub struct LinkEnds {
    /// What is sent here goes out in order.
    pub messages: UnboundedSender<NodeMessage>,
    /// Closes the connection and opens another one.
    pub reconnect: oneshot::Sender<()>,
}

/// The agent: owner of the core.
pub struct Agent<H: Hands> {
    core: NodeCore,
    hands: H,
    news: UnboundedReceiver<News<H::News>>,
    link: Option<LinkEnds>,
    wake_at: Option<Instant>,
    clock: Clock,
    inputs: Vec<NodeInput>,
    effects: Vec<NodeEffect>,
    outcomes: Vec<Outcome>,
    /// Set by a stop: leave then at the latest.
    leave_at: Option<Instant>,
}

impl<H: Hands> Agent<H> {
    /// Nothing happens before [`Agent::run`], but what `first` (the jobs found at start) leads to.
    pub fn new(
        core: NodeCore,
        hands: H,
        news: UnboundedReceiver<News<H::News>>,
        first: NodeInput,
    ) -> Agent<H> {
        let mut agent = Agent {
            core,
            hands,
            news,
            link: None,
            wake_at: None,
            clock: Clock::default(),
            inputs: vec![first],
            effects: Vec::new(),
            outcomes: Vec::new(),
            leave_at: None,
        };
        agent.think();
        agent
    }

    /// Until told to stop, or until every sender of news is gone.
    pub async fn run(&mut self) {
        loop {
            let wake = self.wake_at.into_iter().chain(self.leave_at).min();
            tokio::select! {
                biased;
                news = self.news.recv() => {
                    let Some(news) = news else { return };
                    self.hear(news);
                    self.hear_more();
                }
                () = sleep_until(wake) => {
                    if self.wake_at.is_some_and(|t| t <= Instant::now()) {
                        self.wake_at = None;
                        self.inputs.push(NodeInput::Wake);
                    }
                }
            }
            self.think();
            if let Some(leave_at) = self.leave_at {
                let reported = self.core.living_jobs() == 0 && self.core.job_ids().next().is_none();
                if reported || leave_at <= Instant::now() {
                    return;
                }
                if self.core.living_jobs() == 0 {
                    // All is said; a server that is there releases them in a moment.
                    self.leave_at = Some(leave_at.min(Instant::now() + Duration::from_secs(1)));
                }
            }
        }
    }

    /// Jobs of which something lives, at the end.
    pub fn living_jobs(&self) -> usize {
        self.core.living_jobs()
    }

    /// What is left when the agent has ended.
    pub fn into_hands(self) -> H {
        self.hands
    }

    fn hear_more(&mut self) {
        for _ in 1..BATCH {
            let Ok(news) = self.news.try_recv() else { return };
            self.hear(news);
        }
    }

    fn hear(&mut self, news: News<H::News>) {
        match news {
            News::Hands(news) => {
                self.hands.hear(news, &mut self.outcomes);
                self.sort_outcomes();
            }
            News::LinkUp(link) => {
                self.link = Some(link);
                self.inputs.push(NodeInput::Connected);
            }
            News::Server(message) => self.inputs.push(NodeInput::Server(message)),
            News::LinkDown => {
                self.link = None;
                self.inputs.push(NodeInput::Disconnected);
            }
            News::Stop { stop_jobs } => {
                let patience = if stop_jobs { self.core.settings().kill_timeout.0 * 2 } else { 0 };
                self.leave_at = Some(Instant::now() + Duration::from_micros(patience));
                if stop_jobs {
                    self.inputs.push(NodeInput::StopJobs);
                }
            }
        }
    }

    /// Feeds the core until nothing more follows at once, then lets the gathered messages go.
    fn think(&mut self) {
        let now = self.clock.now();
        // Read before anything is sent: the stamps of messages must not be younger than they are.
        self.core.set_since_boot(since_start_of_host());
        while !self.inputs.is_empty() {
            for input in std::mem::take(&mut self.inputs) {
                self.core.handle(now, input, &mut self.effects);
                self.act();
            }
        }
        self.core.flush(now, &mut self.effects);
        self.act();
    }

    fn act(&mut self) {
        for effect in self.effects.drain(..) {
            match effect {
                NodeEffect::Send(message) => send(&self.link, message),
                NodeEffect::WakeAt(time) => {
                    let now = self.clock.now();
                    self.wake_at = Some(Instant::now() + Duration::from_micros(time.since(now).0));
                }
                NodeEffect::LeaseIsHalfOver { jobs, left } => {
                    tracing::warn!(
                        "the server has not confirmed for half of the lease that it hears this node: {jobs} exclusive jobs stop in \
                         {left} unless it does"
                    );
                    // A dead connection is noticed after half a minute, which may be longer than the lease.
                    if let Some(link) = self.link.take() {
                        let _ = link.reconnect.send(());
                    }
                }
                other => self.hands.act(other, &mut self.outcomes),
            }
        }
        self.sort_outcomes();
    }

    fn sort_outcomes(&mut self) {
        for outcome in self.outcomes.drain(..) {
            match outcome {
                Outcome::Input(input) => self.inputs.push(input),
                Outcome::Send(message) => send(&self.link, message),
            }
        }
    }
}

/// A link that has just died loses the message; the next Hello makes up for it.
fn send(link: &Option<LinkEnds>, message: NodeMessage) {
    if let Some(link) = link {
        let _ = link.messages.send(message);
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Time of day that does not jump when somebody sets the host's clock.
#[derive(Debug, Default)]
struct Clock(SteadyClock);

impl Clock {
    fn now(&mut self) -> Time {
        self.0.show(wall_clock(), since_start_of_host())
    }
}

/// Goes on while the host sleeps.
pub(crate) fn since_start_of_host() -> Span {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Span(time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000)
}

/// Microseconds since the epoch.
pub(crate) fn wall_clock() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
