//! Jobs with a lease stop by themselves (S19). The node is a test that says nothing, or is gone.

use crate::harness::{Event, FakeNode};
use crate::jobs::for_each;
use jobproxy::protocol::{FromProxy, JobStart, ToProxy};
use jobproxy::record::read_result;
use std::time::{Duration, Instant};
use vocab::lease::grace;
use vocab::{AbortReason, InterruptionReason, JobOutcome, Lease, Span};

/// Of the host's start; the clock of leases.
fn since_boot() -> Span {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Span(time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000)
}

fn leased(node: &mut FakeNode, command: &str, length: Span) -> JobStart {
    let lease = Some(Lease { length, from: since_boot() });
    JobStart { lease, ..node.job(command) }
}

fn is_over(outcome: &JobOutcome) -> bool {
    matches!(outcome, JobOutcome::Aborted { reason: AbortReason::NodeOffline, error }
        if error.find_attribute("lease_period").is_some())
}

/// S19: an agent that is stopped keeps its connections and says nothing.
#[test]
fn a_job_whose_agent_is_silent_stops_at_the_end_of_its_lease() {
    for_each(|node| {
        let length = Span::from_millis(1500);
        let job = leased(node, "trap '' TERM INT; sleep 1000", length);
        let begun = Instant::now();
        let id = node.start(job);
        let result = node.finished(id);
        assert!(is_over(&result.outcome), "{:?}", result.outcome);
        assert!(begun.elapsed() >= Duration::from_millis(1490), "{:?}", begun.elapsed());
    });
}

/// S19: a dead agent; the result waits for the next one.
#[test]
fn a_job_without_an_agent_stops_at_the_end_of_its_lease() {
    for_each(|node| {
        let job = leased(node, "sleep 1000", Span::from_secs(2));
        let directory = job.job_directory.clone();
        let id = node.start(job);
        node.started(id);
        node.vanish();
        let give_up = Instant::now() + crate::harness::PATIENCE;
        let result = loop {
            if let Ok(Some(result)) = read_result(&directory)
                && result.job_id == id
            {
                break result;
            }
            assert!(Instant::now() < give_up, "no result");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(is_over(&result.outcome), "{:?}", result.outcome);
    });
}

/// S19.
#[test]
fn a_job_goes_on_as_long_as_the_server_is_heard() {
    for_each(|node| {
        let length = Span::from_millis(1500);
        let job = leased(node, "sleep 1000", length);
        let id = node.start(job);
        node.started(id);
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            node.send(id, ToProxy::Heard { from: since_boot() });
            node.pump(Duration::from_millis(200));
            let ended = |e: &Event| matches!(e, Event::Proxy(_, FromProxy::Finished { .. }));
            assert!(!node.events.iter().any(ended), "it has stopped: {:?}", node.events);
        }
        // In the future: the leases are extended, and an older word does not shorten them.
        let extended = since_boot() + Span::from_secs(600);
        node.send(id, ToProxy::Heard { from: extended });
        node.send(id, ToProxy::Heard { from: since_boot() });
        let until = Instant::now() + Duration::from_millis(2500);
        while Instant::now() < until {
            node.pump(Duration::from_millis(200));
            let ended = |e: &Event| matches!(e, Event::Proxy(_, FromProxy::Finished { .. }));
            assert!(!node.events.iter().any(ended), "it has stopped: {:?}", node.events);
        }
        node.send(id, ToProxy::Abort { reason: AbortReason::UserRequest, text: "enough".to_owned() });
        node.finished(id);
    });
}

/// S19: with its grace period.
#[test]
fn a_job_that_can_be_asked_to_stop_is_asked_first() {
    for_each(|node| {
        let length = Span::from_secs(1);
        let mut job = leased(node, "trap 'exit 0' USR1; while :; do sleep 0.02; done", length);
        job.interruption_signal = Some("SIGUSR1".to_owned());
        let id = node.start(job);
        let interrupted = Some(InterruptionReason::Unknown);
        assert_eq!(node.finished(id).outcome, JobOutcome::Completed { interrupted, restart_needed: false });

        for ends_badly in ["trap 'exit 1' USR1; while :; do sleep 0.02; done", "while :; do sleep 0.02; done"]
        {
            let mut job = leased(node, ends_badly, length);
            job.interruption_signal = Some("SIGUSR1".to_owned());
            let id = node.start(job);
            let outcome = node.finished(id).outcome;
            assert!(is_over(&outcome), "an outage of the server is no failure of the job: {outcome:?}");
        }

        let mut deaf = leased(node, "trap '' USR1; while :; do sleep 0.02; done", length);
        deaf.interruption_signal = Some("SIGUSR1".to_owned());
        let begun = Instant::now();
        let id = node.start(deaf);
        let result = node.finished(id);
        assert!(is_over(&result.outcome), "{:?}", result.outcome);
        let least = Duration::from_micros((length + grace(length)).as_micros()) - Duration::from_millis(20);
        assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
    });
}

/// S19: nothing keeps the lease of a job whose proxy is dead while no agent lives.
#[test]
fn the_process_of_a_job_dies_with_its_proxy() {
    for_each(|node| {
        let job = leased(node, "exec sleep 1000", Span::from_secs(600));
        let id = node.start(job);
        let user = node.started(id);
        let process = cage::ProcessId::of(user).expect("it lives");
        node.vanish();
        cage::sys::kill(node.proxies[&id], 9).expect("it lives");
        let give_up = Instant::now() + crate::harness::PATIENCE;
        while process.is_alive() {
            assert!(Instant::now() < give_up, "the job lives on without its proxy");
            std::thread::sleep(Duration::from_millis(20));
        }
        // As the next life of the agent does.
        jobproxy::recovery::kill_job(node.environment.as_ref(), id, crate::harness::PATIENCE)
            .expect("nothing is left");
    });
}

/// S19: the agent was stopped between the order and the start.
#[test]
fn a_job_whose_lease_is_over_never_starts() {
    for_each(|node| {
        let mut job = leased(node, "touch started; sleep 1000", Span::from_secs(5));
        job.lease =
            Some(Lease { length: Span::from_secs(5), from: Span(since_boot().0.saturating_sub(6_000_000)) });
        let sandbox = job.sandbox.clone();
        let result = node.run(job);
        assert!(is_over(&result.outcome) && result.start_time.is_none(), "{result:?}");
        assert!(!sandbox.join("started").exists());
    });
}
