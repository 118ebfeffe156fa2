//! The kernel's thread: takes inputs in batches at its own pace, stamps them with the clock, and
//! hands effects to the outbox and the commit thread.

use crate::metrics::Measures;
use crate::outbox::Outbox;
use kernel::{Command, Effect, Input, Kernel, Phase, Request, Versions};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::{GroupBounds, GroupCommit, Store, StoreError};
use tokio::sync::watch;
use vocab::{Failure, Span, SteadyClock, Time, code};

/// Inputs taken before the kernel is asked to act on them: bounds the latency of the first one.
const BATCH_MAX: usize = 512;
/// Extra fair-share updates may take at most one part in this many of all time.
const EXTRA_UPDATE_PART: u32 = 10;

/// When it is tried first, and how often at least, to write a store again that has failed.
const RESUME_FIRST: Duration = Duration::from_secs(1);
const RESUME_LAST: Duration = Duration::from_secs(10);
/// When clients that were refused should try again.
const RETRY_AFTER: Span = Span::from_secs(5);
/// Inputs that wait for the next kernel.
const KEPT_MAX: usize = 1_000;

/// The mailbox of the kernel: where inputs go.
#[derive(Clone)]
pub struct Mailbox(Sender<Message>);

/// Its other end, for [`CoreThread::start`].
pub struct Inbox(Receiver<Message>);

/// A mailbox that may be used before the kernel runs.
pub fn mailbox() -> (Mailbox, Inbox) {
    let (sender, receiver) = channel();
    (Mailbox(sender), Inbox(receiver))
}

enum Message {
    Input(Box<Input>),
    /// A commit of this life failed.
    StoreFailed(u64, StoreError),
    Stop,
}

impl Mailbox {
    /// Hands an input over; never blocks. After the kernel has stopped it goes nowhere.
    pub fn send(&self, input: Input) {
        let _ = self.0.send(Message::Input(Box::new(input)));
    }
}

/// A kernel with what it wants done first.
pub type Restored = (Kernel, Vec<Effect>);

/// The way back from the store, when it cannot be written any more and when it can be written again.
pub trait Recovery: Send + 'static {
    /// The store cannot be written: from now on changes are refused and nodes are sent away. Called before anything is
    /// answered because of it.
    fn failed(&self, failure: &Failure);

    /// A kernel over what is durable, for questions only: none of its effects but replies is carried out.
    fn durable_state(&self) -> Result<Kernel, Failure>;

    /// Tries to write the store again, and starts anew from what it holds.
    fn resume(&self) -> Result<Restored, Failure>;

    /// The store can be written again.
    fn resumed(&self);
}

/// Hands effects over whose time has come.
type Deliver = Arc<dyn Fn(Effect) + Send + Sync>;

/// The running kernel; [`CoreThread::stop`] ends it with everything written.
pub struct CoreThread {
    mailbox: Mailbox,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl CoreThread {
    /// Starts the thread, which reads `inbox`. `deliver` gets every effect but commits, when its time has come;
    /// `begin` is the kernel of the start, or why the store cannot be written; `changes` hears of topics that changed,
    /// `measures` how long things take.
    ///
    /// When a commit fails, the kernel is ahead of the store and is dropped. Until the store can be written again
    /// ([`Recovery::resume`]) questions are answered by a kernel over the durable state, and changes are refused. Then a
    /// new kernel begins, as after a restart of the process.
    pub fn start(
        (mailbox, inbox): (Mailbox, Inbox),
        begin: Result<Restored, Failure>,
        store: Arc<dyn Store>,
        deliver: impl Fn(Effect) + Send + Sync + 'static,
        (changes, measures): (watch::Sender<Versions>, Arc<Measures>),
        recovery: impl Recovery,
    ) -> CoreThread {
        let core = Core {
            mailbox: mailbox.clone(),
            store,
            deliver: Arc::new(deliver),
            changes,
            measures,
            recovery,
            clock: Clock::default(),
            life: 0,
            events_written: 0,
        };
        let thread = std::thread::Builder::new()
            .name("kernel".into())
            .spawn(move || core.run(begin, &inbox.0))
            .expect("the system has room for one more thread");
        CoreThread { mailbox, thread: Some(thread) }
    }

    /// Lets the kernel write down what it holds back, and waits until all of it is durable.
    pub fn stop(mut self) {
        let _ = self.mailbox.0.send(Message::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the kernel thread ended with a panic");
        }
    }
}

struct Core<R> {
    mailbox: Mailbox,
    store: Arc<dyn Store>,
    deliver: Deliver,
    changes: watch::Sender<Versions>,
    measures: Arc<Measures>,
    recovery: R,
    clock: Clock,
    /// Number of the kernel that runs: a commit thread of an earlier one may still report.
    life: u64,
    /// What the event log has said last: it does not repeat it for the next kernel.
    events_written: u64,
}

impl<R: Recovery> Core<R> {
    fn run(mut self, begin: Result<Restored, Failure>, receiver: &Receiver<Message>) {
        let mut next = begin;
        loop {
            let failure = match next {
                Ok(restored) => match self.work(restored, receiver) {
                    Some(failure) => failure,
                    None => return,
                },
                Err(failure) => failure,
            };
            match self.read_only(failure, receiver) {
                Some(restored) => next = Ok(restored),
                None => return,
            }
        }
    }

    /// Runs a kernel until it is stopped, or until the store fails: then gives why.
    fn work(&mut self, (mut kernel, mut effects): Restored, receiver: &Receiver<Message>) -> Option<Failure> {
        self.life += 1;
        let outbox = {
            let deliver = Arc::clone(&self.deliver);
            Arc::new(Outbox::new(move |effect| deliver(effect)))
        };
        let commit = {
            let (outbox, measures) = (Arc::clone(&outbox), Arc::clone(&self.measures));
            let (mailbox, life) = (self.mailbox.clone(), self.life);
            GroupCommit::start(Arc::clone(&self.store), GroupBounds::default(), move |result| match result {
                Ok(seq) => {
                    measures.committed(seq);
                    outbox.committed(seq);
                }
                Err(error) => {
                    let _ = mailbox.0.send(Message::StoreFailed(life, error));
                }
            })
        };
        if self.events_written > 0 {
            kernel.handle(self.clock.now(), Input::EventsWritten(self.events_written), &mut effects);
        }
        let mut wake = self.clock.now();
        let mut extra_update_from = Instant::now();
        loop {
            let mut stop = false;
            let mut waited = self.wait(receiver, wake);
            let time = self.clock.now();
            let mut taken = 0;
            let mut lap = Instant::now();
            let measures = Arc::clone(&self.measures);
            let mut over = |phase| {
                let now = Instant::now();
                measures.spent(phase, now - lap);
                lap = now;
            };
            while let Some(message) = waited.take() {
                match message {
                    Message::Input(input) => {
                        self.note(&input);
                        kernel.handle(time, *input, &mut effects);
                    }
                    Message::StoreFailed(life, error) if life == self.life => {
                        let failure = not_writable(&error);
                        self.recovery.failed(&failure);
                        self.give_up(effects, &outbox, &failure);
                        return Some(failure);
                    }
                    Message::StoreFailed(..) => {}
                    Message::Stop => stop = true,
                }
                taken += 1;
                if taken < BATCH_MAX && !stop {
                    waited = receiver.try_recv().ok();
                }
            }
            if time >= wake {
                kernel.handle(time, Input::Tick, &mut effects);
            }
            over(Phase::Inputs);
            let started = Instant::now();
            let flushed = kernel.flush_in_phases(time, started >= extra_update_from, &mut effects, &mut over);
            wake = flushed.wake;
            self.changes.send_if_modified(|known| {
                let news = *known != flushed.versions;
                *known = flushed.versions;
                news
            });
            if flushed.updated {
                extra_update_from = started + started.elapsed() * EXTRA_UPDATE_PART;
            } else if flushed.wants_update {
                let wait = extra_update_from.saturating_duration_since(Instant::now());
                wake = wake.min(time + span(wait));
            }
            if stop {
                kernel.stop(time, &mut effects);
            }
            for effect in effects.drain(..) {
                self.carry_out(effect, &outbox, &commit);
            }
            if stop {
                return None; // dropping the commit thread's handle waits for its last write
            }
        }
    }

    /// Answers everybody who waits for what will not become durable. Orders to nodes are dropped: nodes come back
    /// and hear what the next kernel wants.
    fn give_up<D: Fn(Effect)>(&self, effects: Vec<Effect>, outbox: &Outbox<D>, failure: &Failure) {
        self.measures.forget_submitted();
        for effect in effects {
            if let Effect::Reply { after, .. } = effect {
                outbox.offer(after, effect);
            }
        }
        for effect in outbox.take_held() {
            if let Effect::Reply { request, .. } = effect {
                self.refuse(request, failure);
            }
        }
    }

    fn refuse(&self, request: u64, failure: &Failure) {
        (self.deliver)(Effect::Reply { request, after: 0, body: Err(failure.clone()) });
    }

    /// Answers questions from the durable state until the store can be written again; `None` if the server stops.
    fn read_only(&mut self, failure: Failure, receiver: &Receiver<Message>) -> Option<Restored> {
        self.recovery.failed(&failure);
        let mut reader = self.recovery.durable_state();
        if let Ok(kernel) = &mut reader {
            let now = self.clock.now();
            kernel.handle(now, Input::StoreFailing(failure.clone()), &mut Vec::new());
            kernel.show_shares(now);
        }
        // Pages look again, and show the alert.
        self.changes.send_modify(|versions| versions.0.iter_mut().for_each(|number| *number += 1));
        // What the event log says comes once, and the next kernel must know it.
        let mut kept = VecDeque::new();
        let mut pause = RESUME_FIRST;
        let mut next_try = Instant::now() + pause;
        loop {
            let message = receiver.recv_timeout(next_try.saturating_duration_since(Instant::now()));
            match message {
                Ok(Message::Input(input)) => match *input {
                    Input::Request(request) => self.answer(&mut reader, request, &failure),
                    other => {
                        self.note(&other);
                        if is_of_the_edge(&other) && kept.len() < KEPT_MAX {
                            kept.push_back(other);
                        }
                    }
                },
                Ok(Message::StoreFailed(..)) => {}
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() < next_try {
                continue;
            }
            match self.recovery.resume() {
                Ok((mut kernel, mut effects)) => {
                    let now = self.clock.now();
                    kept.into_iter().for_each(|input| kernel.handle(now, input, &mut effects));
                    self.recovery.resumed();
                    return Some((kernel, effects));
                }
                Err(why) => {
                    tracing::debug!(%why, "the store cannot be written yet");
                    pause = (pause * 2).min(RESUME_LAST);
                    next_try = Instant::now() + pause;
                }
            }
        }
    }

    /// Answers a question from the durable state, and refuses a change.
    fn answer(&mut self, reader: &mut Result<Kernel, Failure>, request: Request, failure: &Failure) {
        let kernel = match reader {
            Ok(kernel) if !request.command.changes_something() => kernel,
            Ok(_) => return self.refuse(request.id, &refusal_of(&request.command, failure)),
            Err(unreadable) => return self.refuse(request.id, unreadable),
        };
        let mut effects = Vec::new();
        kernel.handle(self.clock.now(), Input::Request(request), &mut effects);
        for effect in effects {
            // Everything that this kernel knows is durable.
            if matches!(effect, Effect::Reply { .. }) {
                (self.deliver)(effect);
            }
        }
    }

    fn note(&mut self, input: &Input) {
        if let Input::EventsWritten(number) = input {
            self.events_written = self.events_written.max(*number);
        }
    }

    /// The next message, or none when it is time to wake.
    fn wait(&mut self, receiver: &Receiver<Message>, wake: Time) -> Option<Message> {
        loop {
            let timeout = Duration::from_micros(wake.since(self.clock.now()).as_micros());
            match receiver.recv_timeout(timeout) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return Some(Message::Stop),
                Err(RecvTimeoutError::Timeout) if self.clock.now() >= wake => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn carry_out<D: Fn(Effect)>(&self, effect: Effect, outbox: &Outbox<D>, commit: &GroupCommit) {
        match effect {
            Effect::Commit { seq, batch } => {
                self.measures.submitted(seq);
                commit.submit(seq, batch);
            }
            Effect::Reply { after, .. }
            | Effect::Events { after, .. }
            | Effect::ToNode { after, .. }
            | Effect::DeleteBlob { after, .. }
            | Effect::CollectGarbage { after }
            | Effect::ForgetOperation { after, .. } => outbox.offer(after, effect),
            Effect::Disconnect(_) => outbox.offer(0, effect),
        }
    }
}

/// Why changes are refused. Clients repeat a request that fails with this code.
pub fn not_writable(error: &StoreError) -> Failure {
    let message = "The server cannot write its store: changes are refused, and of those that were under way it is not known \
                   whether they were made. Try again in some seconds: work goes on by itself when the store can be written";
    Failure::coded(code::UNAVAILABLE, message)
        .with("retry_after", RETRY_AFTER.as_millis())
        .because(Failure::new(error.to_string()))
}

/// Why this change is refused. A transaction cannot be started, since it would have to survive; but clients that only read
/// can do without.
pub fn refusal_of(command: &Command, failure: &Failure) -> Failure {
    let mut failure = failure.clone();
    if matches!(command.inner(), Command::StartTransaction(_)) {
        failure.message.push_str(READ_WITHOUT);
    }
    failure
}

const READ_WITHOUT: &str = ". Files and tables can be read meanwhile without a transaction: set \
                            \"read_retries/create_transaction_and_take_snapshot_lock\" of the yt client to false";

/// Told by the edge, once, and about things that outlive a kernel.
fn is_of_the_edge(input: &Input) -> bool {
    matches!(input, Input::EventsFailing(_) | Input::EventsLost { .. } | Input::GarbageCollected)
}

/// The clock of the core: the time of day, without the jumps of a clock that is set.
#[derive(Default)]
struct Clock(SteadyClock);

impl Clock {
    fn now(&mut self) -> Time {
        self.0.show(now(), since_start_of_host())
    }
}

/// Goes on while the host sleeps.
fn since_start_of_host() -> vocab::Span {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    vocab::Span::from_micros(time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000)
}

/// The host's time of day.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

fn span(d: Duration) -> vocab::Span {
    vocab::Span::from_micros(u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
