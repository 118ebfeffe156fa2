//! Jobs from start to end with a node that stays alive.

use std::time::Duration;

use vocab::*;
use wire::ServerMessage;

use crate::harness::*;

fn for_all_drivers(slots: u32, test: impl Fn(&mut Bench)) {
    for driver in drivers() {
        let mut bench = Bench::new(driver, slots);
        test(&mut bench);
        assert!(bench.stop_agent(), "the agent ends well");
        bench.assert_clean();
    }
}

fn error(outcome: &JobOutcome) -> &Failure {
    match outcome {
        JobOutcome::Failed { error } | JobOutcome::Aborted { error, .. } => error,
        JobOutcome::Completed { .. } => panic!("the job completed"),
    }
}

#[test]
fn results_and_environment() {
    for_all_drivers(2, |b| {
        let good = b.start(JobDescription {
            environment: [("WHERE".to_owned(), "$(SandboxPath)/x".to_owned())].into_iter().collect(),
            ..description("echo $WHERE $PWD $HOME $YT_JOB_ID $YT_NODE_HOST; ls -A; exit 0")
        });
        let end = b.finished(good);
        assert_eq!(end.outcome, JobOutcome::Completed { interrupted: None, restart_needed: false });
        let sandbox = b.data().canonicalize().expect("it is there").join("slots/0/sandbox");
        let sandbox = sandbox.display();
        let expected = format!("{sandbox}/x {sandbox} {sandbox} {good} test-node\n");
        assert_eq!(String::from_utf8(end.stderr.expect("stderr")).expect("text"), expected);
        assert!(end.start_time.expect("it ran") <= end.finish_time);
        assert!(end.statistics.prepare.0 > 0 && end.statistics.exec.0 > 0);

        let bad = b.run("echo oh >&2; exit 17");
        let end = b.finished(bad);
        assert!(error(&end.outcome).contains_code(code::USER_JOB_FAILED), "{:?}", end.outcome);
        assert_eq!(error(&end.outcome).find_attribute("exit_code").and_then(|v| v.as_i64()), Some(17));
        assert_eq!(end.stderr.as_deref(), Some(b"oh\n".as_slice()));

        b.release(&[good, bad]);
        let after = b.run("ls -A");
        let end = b.finished(after);
        assert_eq!(end.stderr, None, "a used slot is empty again");
        b.release(&[after]);
        b.abort(after);
        assert_eq!(b.ends_within(Duration::from_millis(300)), [], "the dead are not asked twice");
        let unknown = JobId(new_id(object_type::JOB));
        b.abort(unknown);
        let end = b.finished(unknown);
        assert!(matches!(end.outcome, JobOutcome::Aborted { reason: AbortReason::DisappearedFromNode, .. }));
    });
}

#[test]
fn many_jobs_wait_for_few_slots() {
    for_all_drivers(2, |b| {
        let all: Vec<_> = (0..40).map(|_| start_job(description("true"))).collect();
        let ids: Vec<JobId> = all.iter().map(|s| s.identity.job_id).collect();
        b.world.order(&ServerMessage::Start(all));
        for id in &ids {
            let end = b.finished(*id);
            assert!(matches!(end.outcome, JobOutcome::Completed { .. }), "{:?}", end.outcome);
        }
        b.release(&ids);
        assert_eq!(b.ends_within(Duration::from_millis(300)), [], "each end is told once");
    });
}

#[test]
fn stderr_inline_uploaded_and_on_demand() {
    for_all_drivers(2, |b| {
        let long = b.start(JobDescription {
            max_stderr_size: 4 << 20,
            ..description("for i in $(seq 1 30000); do echo line $i; done; sleep 1000")
        });
        b.started(long);
        let text: String = (1..=30000).map(|i| format!("line {i}\n")).collect();
        let tail = &text.as_bytes()[text.len() - 100..];
        let offset = text.len() as u64 - 100;
        b.wait_stderr(long, offset, tail);
        assert_eq!(b.stderr(long, 0, 7).expect("readable"), b"line 1\n");
        b.abort(long);
        let end = b.finished(long);
        assert!(matches!(end.outcome, JobOutcome::Aborted { reason: AbortReason::UserRequest, .. }));
        assert_eq!(error(&end.outcome).message, "Aborted by the test");
        assert_eq!((end.stderr, end.stderr_size), (None, text.len() as u64));
        let uploaded = b.world.uploads.lock().expect("not poisoned").remove(&long).expect("uploaded first");
        assert!(uploaded == text.as_bytes(), "{} bytes instead of {}", uploaded.len(), text.len());
        assert_eq!(b.stderr(long, offset, 1000).expect("kept until released"), tail);
        b.release(&[long]);
        let until = std::time::Instant::now() + PATIENCE;
        while b.stderr(long, 0, 10).is_ok() {
            assert!(std::time::Instant::now() < until, "a released job is still known");
        }
    });
}

#[test]
fn files() {
    for_all_drivers(3, |b| {
        let id = new_id(object_type::FILE);
        let script = format!("#!/bin/sh\ncat data/input | wc -c\n#{}\n", "x".repeat(5000));
        let data = new_id(object_type::FILE);
        {
            let mut files = b.world.files.lock().expect("not poisoned");
            files.insert((id, 3), script.clone().into_bytes());
            files.insert((data, 4), vec![b'y'; 123_456]);
        }
        let artifact = |id: Guid, revision, size: usize, name: &str, executable| Artifact {
            file_id: ObjectId(id),
            revision,
            size: size as u64,
            file_name: name.to_owned(),
            executable,
            bypass_cache: false,
        };
        let with_files = |command: &str| JobDescription {
            files: vec![
                artifact(id, 3, script.len(), "script", true),
                artifact(data, 4, 123_456, "data/input", false),
            ],
            ..description(command)
        };
        let jobs: Vec<JobId> = (0..3).map(|_| b.start(with_files("./script"))).collect();
        for job in &jobs {
            let end = b.finished(*job);
            assert_eq!(end.stderr.as_deref(), Some(b"123456\n".as_slice()), "{:?}", end.outcome);
        }
        assert_eq!(b.world.fetches.lock().expect("not poisoned").len(), 2, "equal downloads are merged");
        let missing = b.start(JobDescription {
            files: vec![artifact(new_id(object_type::FILE), 1, 10, "nowhere", false)],
            ..description("true")
        });
        let end = b.finished(missing);
        assert!(matches!(end.outcome, JobOutcome::Aborted { reason: AbortReason::Other, .. }));
        assert!(error(&end.outcome).contains_code(code::ARTIFACT_DOWNLOAD_FAILED), "{:?}", end.outcome);
        let outside = b.start(JobDescription {
            files: vec![artifact(data, 4, 123_456, "../../escape", false)],
            ..description("true")
        });
        let end = b.finished(outside);
        assert!(error(&end.outcome).contains_code(code::ARTIFACT_COPYING_FAILED), "{:?}", end.outcome);
        b.release(&jobs);
        b.release(&[missing, outside]);
    });
}

/// S20: the node tried again, silently, for as long as it tries to reach a server that is away.
#[test]
fn s20_content_that_the_server_has_lost_is_tried_a_few_times() {
    for_all_drivers(1, |b| {
        let id = new_id(object_type::FILE);
        b.world.lost.lock().expect("not poisoned").push((id, 3));
        let artifact = Artifact {
            file_id: ObjectId(id),
            revision: 3,
            size: 10,
            file_name: "lost".to_owned(),
            executable: false,
            bypass_cache: false,
        };
        let job = b.start(JobDescription { files: vec![artifact], ..description("true") });
        let end = b.finished(job);
        let is_told = matches!(end.outcome, JobOutcome::Aborted { reason: AbortReason::FailedChunks, .. });
        assert!(is_told, "{:?}", end.outcome);
        let error = error(&end.outcome);
        assert!(error.find_attribute("missing_blob").is_some(), "{error:?}");
        assert_eq!(error.find_attribute("file_id").and_then(|v| v.as_str()), Some(&*id.to_string()));
        let fetches = b.world.fetches.lock().expect("not poisoned");
        assert_eq!(fetches.iter().filter(|key| **key == (id, 3)).count(), 3);
        drop(fetches);
        b.release(&[job]);
    });
}

#[test]
fn aborts_at_any_moment() {
    for_all_drivers(2, |b| {
        for i in 0..12u64 {
            let id = b.run("sleep 1000 & sleep 1000");
            std::thread::sleep(Duration::from_micros(i * i * 150));
            b.abort(id);
            let end = b.finished(id);
            let aborted = matches!(end.outcome, JobOutcome::Aborted { reason: AbortReason::UserRequest, .. });
            assert!(aborted, "{:?}", end.outcome);
            b.release(&[id]);
        }
    });
}

#[test]
fn interruptions() {
    for_all_drivers(2, |b| {
        let obedient = b.start(JobDescription {
            interruption_signal: Some("SIGUSR1".to_owned()),
            ..description("trap 'exit 0' USR1; echo ready; while true; do sleep 0.05; done")
        });
        let stubborn = b.start(JobDescription {
            interruption_signal: Some("SIGUSR1".to_owned()),
            ..description("trap '' USR1; echo ready; while true; do sleep 0.05; done")
        });
        b.started(obedient);
        b.started(stubborn);
        for (job_id, patience) in [(obedient, 600_000), (stubborn, 1500)] {
            b.wait_stderr(job_id, 0, b"ready\n");
            b.world.order(&ServerMessage::Interrupt {
                job_id,
                timeout: Span::from_millis(patience),
                reason: InterruptionReason::Preemption,
                text: "somebody starves".to_owned(),
            });
        }
        let end = b.finished(obedient);
        let reason = Some(InterruptionReason::Preemption);
        assert_eq!(end.outcome, JobOutcome::Completed { interrupted: reason, restart_needed: false });
        let end = b.finished(stubborn);
        assert!(matches!(end.outcome, JobOutcome::Aborted { reason: AbortReason::Preemption, .. }));
        b.release(&[obedient, stubborn]);
    });
}

#[test]
fn a_proxy_that_is_killed() {
    for_all_drivers(2, |b| {
        let id = b.run("echo before; sleep 1000 & sleep 1000");
        b.started(id);
        b.wait_stderr(id, 0, b"before\n");
        let job = b.data().join("slots/0/job");
        let state = jobproxy::record::read_state(&job).expect("readable").expect("written");
        cage::sys::kill(state.pid, 9).expect("killed");
        let end = b.finished(id);
        assert!(matches!(end.outcome, JobOutcome::Failed { .. }), "{:?}", end.outcome);
        assert!(error(&end.outcome).contains_code(code::JOB_PROXY_FAILED), "{:?}", end.outcome);
        assert_eq!(end.stderr.as_deref(), Some(b"before\n".as_slice()));
        b.release(&[id]);
        let next = b.run("true");
        assert!(matches!(b.finished(next).outcome, JobOutcome::Completed { .. }));
        b.release(&[next]);
    });
}

#[test]
fn a_sigterm_takes_the_jobs_along() {
    for driver in drivers() {
        let mut b = Bench::new(driver, 2);
        let id = b.run("sleep 1000");
        b.started(id);
        assert!(b.stop_agent());
        let end = b.finished(id);
        assert!(matches!(end.outcome, JobOutcome::Aborted { reason: AbortReason::NodeOffline, .. }));
        b.assert_clean();
    }
}
