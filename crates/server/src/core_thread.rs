//! The kernel's thread: takes inputs in batches at its own pace, stamps them with the clock, and
//! hands effects to the outbox and the commit thread.

use crate::metrics::Measures;
use crate::outbox::Outbox;
use kernel::{Effect, Input, Kernel, Phase, Versions};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::{GroupBounds, GroupCommit, Store, StoreError};
use tokio::sync::watch;
use vocab::{SteadyClock, Time};

/// Inputs taken before the kernel is asked to act on them: bounds the latency of the first one.
const BATCH_MAX: usize = 512;
/// Extra fair-share updates may take at most one part in this many of all time.
const EXTRA_UPDATE_PART: u32 = 10;

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
    Stop,
}

impl Mailbox {
    /// Hands an input over; never blocks. After the kernel has stopped it goes nowhere.
    pub fn send(&self, input: Input) {
        let _ = self.0.send(Message::Input(Box::new(input)));
    }
}

/// The running kernel; [`CoreThread::stop`] ends it with everything written.
pub struct CoreThread {
    mailbox: Mailbox,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl CoreThread {
    /// Starts the thread, which reads `inbox`. `deliver` gets every effect but commits, when its time has come;
    /// `first` are the effects of the recovery; `changes` hears of topics that changed, `measures` how long things take; `store_failed` is called once when the store cannot be written any more.
    pub fn start<D>(
        (mailbox, inbox): (Mailbox, Inbox),
        kernel: Kernel,
        first: Vec<Effect>,
        store: Arc<dyn Store>,
        deliver: D,
        (changes, measures): (watch::Sender<Versions>, Arc<Measures>),
        store_failed: impl Fn(StoreError, Vec<Effect>) + Send + 'static,
    ) -> CoreThread
    where
        D: Fn(Effect) + Send + Sync + 'static,
    {
        let outbox = Arc::new(Outbox::new(deliver));
        let commit = {
            let outbox = Arc::clone(&outbox);
            let measures = Arc::clone(&measures);
            GroupCommit::start(store, GroupBounds::default(), move |result| match result {
                Ok(seq) => {
                    measures.committed(seq);
                    outbox.committed(seq);
                }
                Err(error) => store_failed(error, outbox.take_held()),
            })
        };
        let thread = std::thread::Builder::new()
            .name("kernel".into())
            .spawn(move || Core { kernel, outbox, commit, changes, measures }.run(first, &inbox.0))
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

struct Core<D> {
    kernel: Kernel,
    outbox: Arc<Outbox<D>>,
    commit: GroupCommit,
    changes: watch::Sender<Versions>,
    measures: Arc<Measures>,
}

impl<D: Fn(Effect) + Send + Sync + 'static> Core<D> {
    fn run(mut self, mut effects: Vec<Effect>, receiver: &Receiver<Message>) {
        let mut clock = Clock::default();
        let mut wake = clock.now();
        let mut extra_update_from = Instant::now();
        loop {
            let mut stop = false;
            let mut waited = Self::wait(receiver, &mut clock, wake);
            let time = clock.now();
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
                    Message::Input(input) => self.kernel.handle(time, *input, &mut effects),
                    Message::Stop => stop = true,
                }
                taken += 1;
                if taken < BATCH_MAX && !stop {
                    waited = receiver.try_recv().ok();
                }
            }
            if time >= wake {
                self.kernel.handle(time, Input::Tick, &mut effects);
            }
            over(Phase::Inputs);
            let started = Instant::now();
            let flushed =
                self.kernel.flush_in_phases(time, started >= extra_update_from, &mut effects, &mut over);
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
                self.kernel.stop(time, &mut effects);
            }
            for effect in effects.drain(..) {
                self.carry_out(effect);
            }
            if stop {
                return; // dropping the commit thread's handle waits for its last write
            }
        }
    }

    /// The next message, or none when it is time to wake.
    fn wait(receiver: &Receiver<Message>, clock: &mut Clock, wake: Time) -> Option<Message> {
        loop {
            let timeout = Duration::from_micros(wake.since(clock.now()).as_micros());
            match receiver.recv_timeout(timeout) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return Some(Message::Stop),
                Err(RecvTimeoutError::Timeout) if clock.now() >= wake => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Commit { seq, batch } => {
                self.measures.submitted(seq);
                self.commit.submit(seq, batch);
            }
            Effect::Reply { after, .. }
            | Effect::Events { after, .. }
            | Effect::ToNode { after, .. }
            | Effect::DeleteBlob { after, .. }
            | Effect::CollectGarbage { after }
            | Effect::ForgetOperation { after, .. } => self.outbox.offer(after, effect),
            Effect::Disconnect(_) => self.outbox.offer(0, effect),
        }
    }
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
