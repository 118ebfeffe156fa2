//! The running job: its process, its pipes, its clock, and why it has to end.

use super::disk::DiskWatch;
use super::launch::launch;
use super::lease::{Claim, LeaseWatch, since_boot};
use super::link::Link;
use super::monitor::{self, CpuWatch};
use super::oom_score::OomScore;
use super::rows::Rows;
use super::samples::Samples;
use super::shell::Shells;
use super::{Known, now};
use crate::codec::Blob;
use crate::custom::CustomStatistics;
use crate::outcome;
use crate::protocol::{FromProxy, Holds, INLINE_STDERR_MAX, JobStart, Progress, ProxyResult, ToProxy};
use crate::record::log;
use crate::spawner::Shared;
use crate::stderr::StderrFile;
use cage::sys::{self, Exit};
use cage::{Container, JobLimits, ProcessInfo, Spawned};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use vocab::{AbortReason, Failure, InterruptionReason, JobOutcome, Span, Time};

/// One read of a pipe: its default capacity.
const CHUNK: usize = 64 << 10;
/// Largest piece of stderr in one answer.
const STDERR_ANSWER_MAX: u64 = 4 << 20;

pub(super) struct Job<'a> {
    start: JobStart,
    shared: &'a Shared,
    container: Box<dyn Container>,
    process: Spawned,
    start_time: Time,
    started_at: Instant,
    /// Read ends; none when they have ended.
    stderr_pipe: Option<File>,
    statistics_pipe: Option<File>,
    rows: Rows,
    stderr: StderrFile,
    custom: CustomStatistics,
    disk: DiskWatch,
    samples: Samples,
    oom_score: OomScore,
    cpu: CpuWatch,
    lease: LeaseWatch,
    shells: Shells,
    interrupt: Option<Interrupt>,
    /// It was asked to stop because its lease is over.
    stopped_by_lease: bool,
    /// Set once: the first reason to kill counts.
    verdict: Option<JobOutcome>,
    /// The verdict is that it took too much memory, so much at that moment: at its end more is known.
    over_memory: Option<i64>,
    supervisor_lost: bool,
    buffer: Vec<u8>,
}

/// What is left to do: to tell it.
pub(super) struct Ended {
    pub result: ProxyResult,
    /// The node was lost for too long.
    pub supervisor_lost: bool,
    /// To be dropped when the result was told: the kernel needs a while to take the job's mounts apart.
    pub container: Option<Box<dyn Container>>,
}

struct Interrupt {
    reason: InterruptionReason,
    timeout: Span,
    text: String,
    deadline: Instant,
}

impl<'a> Job<'a> {
    /// Container and process; else the result of a job that never ran.
    pub fn start(start: JobStart, shared: &'a Shared) -> Result<Job<'a>, Box<ProxyResult>> {
        let lease = LeaseWatch::new(start.lease);
        // The agent may have been stopped since it was told to start the job.
        if lease.claim(since_boot()) != Claim::Holds {
            return Err(never_ran(&start, outcome::aborted(AbortReason::NodeOffline, lease.error())));
        }
        let checked = shared.config.check_user_job_memory_limit;
        let options = match monitor::options(&start.cpu_monitor) {
            Ok(options) => options,
            // The server has checked them; it must be of another version.
            Err(e) => return Err(never_ran(&start, outcome::environment_fault(Failure::new(e.to_string())))),
        };
        let sets_cap = monitor::caps(shared.config.cpu_monitor_sets_cap, &options);
        let limits = JobLimits {
            cpu_guarantee: start.cpu_guarantee,
            cpu_cap: if sets_cap { Some(start.cpu_guarantee) } else { start.cpu_cap },
            memory: checked.then_some(start.memory_limit),
            pids: Some(start.pids_limit),
        };
        let mut container = match shared.environment.create(start.job_id, &limits) {
            Ok(container) => container,
            Err(e) => {
                return Err(never_ran(&start, outcome::environment_fault(Failure::new(e.to_string()))));
            }
        };
        if let (true, Some(limit)) = (shared.config.use_memory_high, limits.memory)
            && let Err(e) = container.set_memory_high(limit / 50 * 49)
        {
            let _ = container.destroy();
            return Err(never_ran(&start, outcome::environment_fault(Failure::new(e.to_string()))));
        }
        // What they look at is opened before the job can move it.
        let disk = DiskWatch::new(&start, Instant::now());
        let samples = Samples::new(&shared.config, &start);
        let launched = Rows::open(&start).and_then(|(rows, ends)| {
            launch(&start, container.as_mut(), &ends).map(|launched| (rows, launched))
        });
        match launched {
            Ok((rows, (process, stderr_pipe, statistics_pipe))) => {
                let stderr = StderrFile::new(&start.job_directory, start.max_stderr_size);
                let custom = CustomStatistics::new(start.custom_statistics_count_limit);
                let started_at = Instant::now();
                let sets_cap = shared.config.cpu_monitor_sets_cap;
                Ok(Job {
                    shared,
                    container,
                    process,
                    start_time: now(),
                    started_at,
                    stderr_pipe: Some(stderr_pipe),
                    statistics_pipe: Some(statistics_pipe),
                    rows,
                    stderr,
                    custom,
                    disk,
                    samples,
                    oom_score: OomScore::new(shared.config.oom_score_adj_on_exceeded_memory_reserve),
                    cpu: CpuWatch::new(options, start.cpu_guarantee, sets_cap, started_at),
                    lease,
                    shells: Shells::new(start.job_id),
                    interrupt: None,
                    stopped_by_lease: false,
                    verdict: None,
                    over_memory: None,
                    supervisor_lost: false,
                    buffer: vec![0; CHUNK],
                    start,
                })
            }
            Err(outcome) => {
                let _ = container.kill_all(Duration::from_secs(1)).and_then(|()| container.destroy());
                Err(never_ran(&start, outcome))
            }
        }
    }

    pub fn start_time(&self) -> Time {
        self.start_time
    }
    pub fn user_pid(&self) -> u32 {
        self.process.pid
    }
    /// To the end.
    pub fn run(mut self, link: &mut Link, known: &mut Known) -> Ended {
        let config = &self.shared.config;
        let mut sampling = Beat::new(self.started_at, config.memory_watchdog_period);
        let mut reporting = Beat::new(self.started_at, config.job_proxy_heartbeat_period);
        let mut root_ended = false;
        // The proxy may have been stopped while it started the process.
        self.check_lease();
        // Ends when the process *and* its pipes have ended, or when there is a verdict (5.2).
        while self.verdict.is_none() && !(root_ended && self.pipes_have_ended()) {
            let look_after = self.container.look_after(Instant::now()).unwrap_or(sampling.next);
            let ready = self.wait(link, sampling.next.min(look_after), root_ended);
            if ready.node {
                for message in link.receive() {
                    self.handle(message, link);
                }
                link.flush();
            }
            self.read_pipes(ready.stderr, ready.statistics);
            if let Err(outcome) = self.rows.work(&mut self.buffer) {
                self.judge(outcome);
            }
            root_ended |= ready.process;
            let now = Instant::now();
            if ready.shells || self.shells.next_deadline().is_some_and(|at| at <= now) {
                self.tell_of_shells(link, |shells, answers| shells.work(now, answers));
            }
            self.check_lease();
            self.check_clock(now);
            let (sample, check) = (sampling.is_due(now), self.cpu.next_check().is_some_and(|t| t <= now));
            if sample || check {
                self.measure(now, sample, check);
            }
            if sample {
                self.after_sample(link);
            }
            self.tell(link, known, sample && reporting.is_due(now));
        }
        self.finish(link)
    }

    fn tell_of_shells(&mut self, link: &mut Link, work: impl FnOnce(&mut Shells, &mut Vec<FromProxy>)) {
        let mut answers = Vec::new();
        work(&mut self.shells, &mut answers);
        answers.iter().for_each(|answer| link.send(answer));
    }

    /// Both take the CPU time, which is read once.
    fn measure(&mut self, now: Instant, sample: bool, check: bool) {
        let used = self.container.cpu().ok();
        if check {
            let checked = self.cpu.check(now, super::now(), used, self.container.as_mut());
            self.log_error(checked);
        }
        if sample {
            self.samples.take(used, self.container.as_mut(), &self.start);
        }
    }

    /// Says and writes down at once what the node has to count the job with, if that is new
    /// (1.5, 3.4), and everything from time to time.
    fn tell(&self, link: &mut Link, known: &mut Known, report: bool) {
        let mut holds = self.holds();
        // Below the request it does not matter how much exactly it is.
        if holds.total_peak <= self.start.memory_request {
            holds.total_peak = known.state.holds.total_peak;
        }
        let is_new = holds != known.state.holds;
        if is_new {
            known.state.holds = holds;
            known.keep();
            link.set_hello(known.hello());
        }
        if (is_new || report) && link.has_room() {
            link.send(&FromProxy::Progress { progress: self.progress() });
        }
    }

    fn holds(&self) -> Holds {
        Holds { cpu: self.cpu.guarantee(), total_peak: self.samples.progress().holds.total_peak }
    }

    fn wait(&self, link: &Link, until: Instant, root_ended: bool) -> Ready {
        let interrupted_until = self.interrupt.as_ref().map(|i| i.deadline);
        let shells = self.shells.next_deadline();
        let lease = self.lease.next(Instant::now(), since_boot());
        let deadlines = [self.time_limit_at(), interrupted_until, self.cpu.next_check(), shells, lease];
        let wake = deadlines.into_iter().flatten().fold(until, Instant::min);
        let left = wake.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };

        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(4);
        let process = add(&mut fds, (!root_ended).then(|| self.process.pidfd.as_fd()), PollFlags::IN);
        let stderr = add(&mut fds, self.stderr_pipe.as_ref().map(AsFd::as_fd), PollFlags::IN);
        let statistics = add(&mut fds, self.statistics_pipe.as_ref().map(AsFd::as_fd), PollFlags::IN);
        let to_node = link.fd();
        let wanted = if to_node.is_some_and(|(_, more)| more) {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let node = add(&mut fds, to_node.map(|(fd, _)| fd), wanted);
        let first_of_shells = fds.len();
        self.shells.watch(&mut fds);
        let behind_shells = fds.len();
        self.rows.watch(&mut fds);
        // An interrupted wait is an early wake-up: everything is checked again.
        let _ = poll(&mut fds, Some(&timeout));
        let fired = |i: Option<usize>| i.is_some_and(|i| !fds[i].revents().is_empty());
        Ready {
            process: fired(process),
            stderr: fired(stderr),
            statistics: fired(statistics),
            node: fired(node),
            shells: fds[first_of_shells..behind_shells].iter().any(|fd| !fd.revents().is_empty()),
        }
    }

    fn handle(&mut self, message: ToProxy, link: &mut Link) {
        match message {
            ToProxy::Abort { reason, text } => self.judge(outcome::aborted(reason, Failure::new(text))),
            ToProxy::Fail { error } => self.judge(outcome::failed_by_request(error)),
            ToProxy::Interrupt { reason, timeout, text } => self.on_interrupt(reason, timeout, text),
            ToProxy::SetCpuGuarantee { cores } => {
                let set = self.container.set_cpu_guarantee(cores);
                self.log_error(set);
            }
            ToProxy::SetCpuCap { cores } => {
                let set = self.container.set_cpu_cap(cores);
                self.log_error(set);
            }
            ToProxy::ReadStderr { request_id, offset, limit } => {
                let limit = if limit == 0 { STDERR_ANSWER_MAX } else { limit.min(STDERR_ANSWER_MAX) };
                let data = self.stderr.read(offset, limit).unwrap_or_default();
                link.send(&FromProxy::Stderr { request_id, total: self.stderr.total(), data: Blob(data) });
            }
            ToProxy::Shell { request_id, request } => {
                let Job { shells, start, container, .. } = self;
                let mut answers = Vec::new();
                let request = (request_id, request);
                shells.handle(request, Instant::now(), start, container.as_mut(), &mut answers);
                answers.iter().for_each(|answer| link.send(answer));
            }
            ToProxy::Heard { from } => self.lease.extend(from, since_boot()),
            ToProxy::Poll {} => {
                let fresh = Duration::from_micros(self.shared.config.memory_tracker_cache_period.as_micros());
                if self.samples.age() > fresh {
                    let used = self.container.cpu().ok();
                    self.samples.take(used, self.container.as_mut(), &self.start);
                }
                link.send(&FromProxy::Progress { progress: self.progress() });
            }
        }
    }

    /// Once per job (5.6). A job without a signal cannot be asked: preemption then aborts it at once,
    /// a user's wish was refused before it came here (3.9).
    fn on_interrupt(&mut self, reason: InterruptionReason, timeout: Span, text: String) {
        if self.interrupt.is_some() {
            return;
        }
        let Some(signal) = self.start.interruption_signal.as_deref().and_then(sys::signal_by_name) else {
            match reason {
                InterruptionReason::Preemption => self.judge(outcome::preempted(&text)),
                InterruptionReason::UserRequest => {}
                _ => self.judge(outcome::interruption_timeout(reason, Span::ZERO, &text)),
            }
            return;
        };
        if self.start.signal_root_process_only {
            // Not reaped before the end of the loop, so the pid is still its own.
            let sent = sys::kill(self.process.pid, signal);
            self.log_error(sent);
        } else {
            let sent = self.container.signal(signal);
            self.log_error(sent);
        }
        self.rows.stop_feeding();
        let deadline = Instant::now() + Duration::from_micros(timeout.as_micros());
        self.interrupt = Some(Interrupt { reason, timeout, text, deadline });
    }

    fn time_limit_at(&self) -> Option<Instant> {
        self.start.job_time_limit.map(|l| self.started_at + Duration::from_micros(l.as_micros()))
    }

    fn check_clock(&mut self, now: Instant) {
        if let (Some(at), Some(limit)) = (self.time_limit_at(), self.start.job_time_limit)
            && now >= at
        {
            self.judge(outcome::time_limit_exceeded(limit));
        }
        if let Some(i) = &self.interrupt
            && now >= i.deadline
        {
            let verdict = outcome::interruption_timeout(i.reason, i.timeout, &i.text);
            self.judge(verdict);
        }
    }

    /// The clock of leases goes on while the host is suspended; the wait of the loop does not, but it ends at the next sample.
    fn check_lease(&mut self) {
        match self.lease.claim(since_boot()) {
            Claim::Holds => {}
            Claim::Stop(left) if self.start.interruption_signal.is_some() => {
                let text = self.lease.error().message;
                self.stopped_by_lease |= self.interrupt.is_none();
                // Its end is the end of the lease, not that of an interruption.
                self.on_interrupt(InterruptionReason::Unknown, left + Span::from_secs(1), text);
            }
            Claim::Stop(_) | Claim::Kill => {
                self.judge(outcome::aborted(AbortReason::NodeOffline, self.lease.error()));
            }
        }
    }

    fn after_sample(&mut self, link: &mut Link) {
        self.oom_score.look(self.samples.progress(), &self.start, self.container.as_mut());
        self.check_memory();
        self.check_disk(false);
        self.reap_orphans(false);
        link.connect();
        let patience = Duration::from_micros(self.shared.config.supervisor_lost_timeout.as_micros());
        let is_lost = link.lost_since().is_some_and(|since| since.elapsed() >= patience);
        if is_lost && !self.lease.is_extended(since_boot()) {
            self.supervisor_lost = true;
            self.judge(outcome::supervisor_lost(self.shared.config.supervisor_lost_timeout));
        }
    }

    /// The watchdog (4.8).
    fn check_memory(&mut self) {
        if self.samples.is_thrashing() {
            self.judge(outcome::thrashing());
        }
        let Progress { user_memory, proxy_memory, .. } = *self.samples.progress();
        let reserve = self.start.job_proxy_memory_reserve;
        if let Some(more) = self.start.job_proxy_memory_overcommit_limit
            && proxy_memory > reserve.saturating_add(more)
        {
            self.judge(outcome::proxy_overdrafted(proxy_memory, reserve, more));
        }
        if !self.shared.config.check_user_job_memory_limit {
            return;
        }
        // Strictly above the limit, or the kernel has killed already.
        let oom_killed = self.samples.oom_kills() > 0;
        if oom_killed || user_memory > self.start.memory_limit {
            let usage = self.samples.excess(self.start.memory_limit);
            if self.verdict.is_none() {
                self.over_memory = Some(usage);
            }
            let verdict = self.memory_limit_exceeded(usage, oom_killed, self.samples.processes());
            self.judge(verdict);
        }
    }

    fn check_disk(&mut self, at_end: bool) {
        let Job { disk, container, .. } = self;
        let processes = || container.pids().unwrap_or_default();
        if let Some(taken) = disk.excess(Instant::now(), at_end, processes) {
            let space = (taken.space, self.start.disk_space);
            self.judge(outcome::disk_overdrafted(space, (taken.inodes, self.start.inode_count)));
        }
    }

    fn memory_limit_exceeded(&self, usage: i64, oom_killed: bool, processes: &[ProcessInfo]) -> JobOutcome {
        let tmpfs = self.samples.progress().statistics.user_job_tmpfs.size;
        outcome::memory_limit_exceeded(usage, self.start.memory_limit, tmpfs, oom_killed, processes)
    }

    /// Daemons of the job became our children; their ends must not pile up as zombies. Stops at the
    /// root process, whose end the loop takes.
    fn reap_orphans(&self, root_reaped: bool) {
        while let Some(pid) = sys::ended_child() {
            if (pid == self.process.pid && !root_reaped) || self.shells.owns(pid) || sys::reap(pid).is_err() {
                break;
            }
        }
    }

    fn judge(&mut self, outcome: JobOutcome) {
        self.verdict.get_or_insert(outcome);
    }

    fn progress(&self) -> Progress {
        let mut progress = self.samples.progress().clone();
        progress.holds = self.holds();
        progress.statistics.cpu_monitor = self.cpu.report();
        progress.statistics.user_job_disk = self.disk.usage().map(Box::new);
        progress.statistics.exec = Span(self.started_at.elapsed().as_micros() as u64);
        progress.statistics.custom = self.custom.summaries();
        progress.statistics.tables = self.rows.statistics();
        progress.stderr_size = self.stderr.total();
        progress
    }

    fn pipes_have_ended(&self) -> bool {
        self.stderr_pipe.is_none() && self.statistics_pipe.is_none() && self.rows.has_ended()
    }

    fn read_pipes(&mut self, stderr: bool, statistics: bool) {
        let Job { buffer, stderr_pipe, statistics_pipe, stderr: kept, custom, start, .. } = self;
        if stderr {
            drain(stderr_pipe, buffer, |bytes| {
                if let Err(e) = kept.append(bytes) {
                    log(&start.job_directory, &format!("stderr is not kept: {e}"));
                }
            });
        }
        if statistics {
            drain(statistics_pipe, buffer, |bytes| custom.push(bytes));
        }
    }

    /// Nothing of the job lives after this.
    fn finish(mut self, link: &mut Link) -> Ended {
        let kill_timeout = Duration::from_micros(self.shared.config.kill_timeout.as_micros());
        let exec = Span(self.started_at.elapsed().as_micros() as u64);
        // Reaped first if it has ended by itself: then often nothing at all is left to look for.
        let pid = self.process.pid;
        let reap_root = || sys::reap(pid).ok();
        let mut ended = sys::ended_child_is(pid).then(reap_root).flatten();
        let killed = self.container.kill_all(kill_timeout);
        let all_dead = killed.is_ok();
        self.log_error(killed);
        // What it wrote before it died is in the pipes; a writer that still lives is cut off.
        self.read_pipes(true, true);
        // Dead means that a wait ends; only a process that cannot be killed must not be waited for.
        if ended.is_none() && (all_dead || sys::ended_child_is(pid)) {
            ended = reap_root();
        }
        self.tell_of_shells(link, |shells, answers| shells.finish(all_dead, answers));
        self.reap_orphans(ended.is_some());
        self.custom.finish();
        let used = self.container.cpu().ok();
        self.samples.take(used, self.container.as_mut(), &self.start);
        if let Some((_, usage)) = ended {
            self.samples.add_end_of_root(&usage, self.start.memory_limit);
        }
        self.check_disk(true);
        let outcome = self.outcome(ended.map(|(exit, _)| exit), ended.map_or(0, |(_, usage)| usage.max_rss));
        if all_dead {
            let destroyed = self.container.destroy();
            self.log_error(destroyed);
        }
        let mut progress = self.progress();
        progress.statistics.exec = exec;
        let fail_context_size = self.rows.save_fail_context(&self.start, &outcome);
        if let Err(e) = &fail_context_size {
            log(&self.start.job_directory, &e.to_string());
        }
        let inline = self.stderr.kept() <= INLINE_STDERR_MAX as u64;
        let result = ProxyResult {
            job_id: self.start.job_id,
            outcome,
            start_time: Some(self.start_time),
            finish_time: now(),
            statistics: progress.statistics,
            stderr_size: self.stderr.total(),
            stderr: inline.then(|| Blob(self.stderr.read(0, u64::MAX).unwrap_or_default())),
            survivors: !all_dead,
            fail_context_size: fail_context_size.unwrap_or(0),
        };
        Ended { result, supervisor_lost: self.supervisor_lost, container: Some(self.container) }
    }

    /// A job that was asked to stop at the end of its lease has not failed, however it ends: an outage of the server must not
    /// use up the failures that its operation may have.
    fn outcome(&mut self, exit: Option<Exit>, root_max_rss: i64) -> JobOutcome {
        match self.own_outcome(exit, root_max_rss) {
            JobOutcome::Failed { error } if self.stopped_by_lease => {
                outcome::aborted(AbortReason::NodeOffline, self.lease.error().because(error))
            }
            outcome => outcome,
        }
    }

    fn own_outcome(&mut self, exit: Option<Exit>, root_max_rss: i64) -> JobOutcome {
        // A kill by the kernel counts even if the root process survived it and ended well (4.8),
        // and also if we were about to kill it for using too much.
        let oom_killed = self.shared.config.check_user_job_memory_limit && self.samples.oom_kills() > 0;
        if self.over_memory.is_some() || (self.verdict.is_none() && oom_killed) {
            return self.too_much_memory(oom_killed, root_max_rss);
        }
        if let Some(verdict) = self.verdict.take() {
            return verdict;
        }
        if let Some(e) = self.custom.error() {
            return outcome::user_job_failed(Failure::new(e.to_string()));
        }
        match exit {
            Some(exit) => {
                let interrupted = self.interrupt.as_ref().map(|i| i.reason);
                let ended = outcome::of_exit(exit, self.start.restart_exit_code, interrupted);
                let concluded = self.rows.conclude(&self.start, ended, interrupted);
                let Some(taken) = self.disk.filled() else { return concluded };
                let space = (taken.space, self.start.disk_space);
                outcome::disk_filled(space, (taken.inodes, self.start.inode_count), concluded)
            }
            None => outcome::environment_fault(Failure::new("The job's process cannot be waited for")),
        }
    }

    /// Samples come too early or too late, and the dying have given memory back already: what the kernel
    /// has counted by the end, kills and the peak of the root process, is put beside them.
    fn too_much_memory(&self, oom_killed: bool, root_max_rss: i64) -> JobOutcome {
        let peak = root_max_rss.min(self.start.memory_limit);
        let usage =
            self.over_memory.unwrap_or_else(|| self.samples.excess(self.start.memory_limit)).max(peak);
        let mut processes = self.samples.processes().to_vec();
        if processes.is_empty() {
            processes.push(self.root_process(root_max_rss));
        }
        if let Some(root) = processes.iter_mut().find(|process| process.pid == self.process.pid) {
            root.rss = root.rss.max(root_max_rss);
        }
        processes.sort_by_key(|process| std::cmp::Reverse(process.rss));
        self.memory_limit_exceeded(usage, oom_killed, &processes)
    }

    /// For a list that would be empty: everything died before the first sample.
    fn root_process(&self, max_rss: i64) -> ProcessInfo {
        ProcessInfo {
            pid: self.process.pid,
            name: "bash".to_owned(),
            cmdline: vec!["bash".to_owned(), "-c".to_owned(), self.start.command.clone()],
            rss: max_rss,
            shared: 0,
        }
    }

    fn log_error<T, E: std::fmt::Display>(&self, result: Result<T, E>) {
        if let Err(e) = result {
            log(&self.start.job_directory, &e.to_string());
        }
    }
}

/// The result of a job whose process never was.
fn never_ran(start: &JobStart, outcome: JobOutcome) -> Box<ProxyResult> {
    Box::new(ProxyResult {
        job_id: start.job_id,
        outcome,
        start_time: None,
        finish_time: now(),
        statistics: Default::default(),
        stderr_size: 0,
        stderr: None,
        survivors: false,
        fail_context_size: 0,
    })
}

/// Something periodic. A late one does not shift those after it, and missed ones are not made up for.
struct Beat {
    next: Instant,
    period: Duration,
}

impl Beat {
    fn new(since: Instant, period: Span) -> Beat {
        let period = Duration::from_micros(period.as_micros().max(1000));
        Beat { next: since + period, period }
    }

    /// True once for each time that has come.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next;
        while self.next <= now {
            self.next += self.period;
        }
        due
    }
}

/// Adds a descriptor to the list; gives its place.
fn add<'f>(fds: &mut Vec<PollFd<'f>>, fd: Option<BorrowedFd<'f>>, wanted: PollFlags) -> Option<usize> {
    fd.map(|fd| {
        fds.push(PollFd::from_borrowed_fd(fd, wanted));
        fds.len() - 1
    })
}

struct Ready {
    process: bool,
    stderr: bool,
    statistics: bool,
    node: bool,
    shells: bool,
}

/// Reads what is there, at most some chunks at a time so that a chatty job cannot keep us from the
/// node and the clock; forgets the pipe at its end.
fn drain(pipe: &mut Option<File>, buffer: &mut [u8], mut take: impl FnMut(&[u8])) {
    for _ in 0..64 {
        let Some(file) = pipe else { return };
        match file.read(buffer) {
            Ok(0) => *pipe = None,
            Ok(n) => take(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => *pipe = None,
        }
    }
}
