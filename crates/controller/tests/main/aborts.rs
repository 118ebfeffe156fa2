//! Jobs that nodes abort before they start (S4, S12): tasks pause, and in the end their operation fails.

use crate::script::{Bench, aborted, at, done, event, failed, second};
use controller::{ControllerOptions, FinishedJob, JobVerdict, OperationController, StatePart};
use vocab::*;

const SPEC: &str =
    "{max_aborts_before_start=4; tasks={a={command=x; job_count=3}; b={command=x; job_count=1}}}";

/// The end of a job without a process.
fn prevent(b: &mut Bench, job: u32, outcome: JobOutcome) -> JobVerdict {
    let report = FinishedJob {
        job_id: Bench::job_id(job),
        outcome,
        exec_start_time: None,
        finish_time: b.now,
        statistics: None,
        stderr_size: 0,
        fail_context_size: 0,
    };
    b.controller.job_finished(b.now, report).expect("the job is known")
}

fn no_disk(reason: AbortReason) -> JobOutcome {
    JobOutcome::Aborted { reason, error: Failure::new("no such disk").with("abort_reason", reason) }
}

/// Tasks that want something, by number.
fn wanted(b: &Bench) -> Vec<u32> {
    b.controller.demand().iter().map(|d| d.task).collect()
}

/// Whether the demand of a task is back this many milliseconds later.
fn resumes_after(b: &mut Bench, milliseconds: u64) -> bool {
    b.controller.resume_tasks(b.now + Span::from_millis(milliseconds - 1));
    let early = wanted(b).contains(&0);
    b.now += Span::from_millis(milliseconds);
    b.controller.resume_tasks(b.now);
    !early && wanted(b).contains(&0)
}

/// S12: every run was aborted, more than 100 times a second and without end.
#[test]
fn s12_a_task_whose_jobs_never_start_pauses_longer_and_longer_and_then_fails_the_operation() {
    let mut b = Bench::new(SPEC);
    for (round, pause) in [1000, 2000, 4000].into_iter().enumerate() {
        let first = b.settled;
        // Two at once are one round.
        b.settle(0).expect("a job");
        b.settle(0).expect("a job");
        let verdict = prevent(&mut b, first, no_disk(AbortReason::Other));
        assert_eq!(event(&verdict.operation_event), "-", "round {round}");
        assert_eq!(verdict.pause_on_node, Some(b.now + Span::from_millis(pause)));
        assert_eq!(wanted(&b), [1], "the other task goes on");
        assert!(b.settle(0).is_err(), "a grant that was on its way is refused");
        prevent(&mut b, first + 1, no_disk(AbortReason::Other));
        assert!(resumes_after(&mut b, pause), "round {round}: {:?}", b.controller.setbacks(b.now));
    }
    let setbacks = b.controller.setbacks(b.now);
    let facts = (setbacks[0].task, setbacks[0].aborts, setbacks[0].limit);
    assert_eq!(facts, (Some("a"), 3, Some(4)));
    b.settle(0).expect("a job");
    let job = b.settled - 1;
    let verdict = prevent(&mut b, job, no_disk(AbortReason::Other));
    let told = event(&verdict.operation_event);
    assert!(told.contains("failed") && told.contains("No job of the task could be started"), "{told}");
    let Some(controller::OperationEvent::Failed(error)) = verdict.operation_event else { panic!("{told}") };
    assert_eq!(error.inner_errors[0].message, "no such disk", "the last abort");
    assert!(
        error.inner_errors[0].attributes.contains("host")
            && error.inner_errors[0].attributes.contains("job_id")
    );
    let named = yson::Value::from(error.attributes);
    assert_eq!(at(&named, "task_name").as_str(), Some("a"));
    assert_eq!(at(&named, "max_aborts_before_start").as_i64(), Some(4));
    assert!(b.controller.is_over());
}

/// S12: every reason that nodes cause pauses and counts, and no other does.
#[test]
fn s12_each_reason_does_what_the_table_says() {
    for reason in AbortReason::ALL {
        let expected = reason.consequences();
        let mut b = Bench::new("{max_aborts_before_start=1; tasks={a={command=x; job_count=2}}}");
        b.settle(0).expect("a job");
        let verdict = prevent(&mut b, 0, no_disk(*reason));
        assert_eq!(verdict.pause_on_node.is_some(), expected.backs_off, "{reason}");
        let failed = event(&verdict.operation_event).starts_with("failed");
        assert_eq!(failed, expected.counts_for_operation, "{reason}");
    }
}

/// Once a job has started, the task is known to be able to, and only the node pauses.
#[test]
fn a_task_of_which_a_job_has_started_is_not_bounded() {
    let mut b = Bench::new(SPEC);
    b.settle(0).expect("a job");
    prevent(&mut b, 0, no_disk(AbortReason::Other));
    assert!(resumes_after(&mut b, 1000));
    b.settle_at(0, "good").expect("a job");
    b.controller.job_started(Bench::job_id(1), b.now);
    assert!(b.controller.setbacks(b.now).is_empty());
    assert!(
        b.controller.has_started_elsewhere("a", "bad") && !b.controller.has_started_elsewhere("a", "good")
    );
    assert!(!b.controller.has_started_elsewhere("b", "bad"), "another task");
    let mut pauses = Vec::new();
    for _ in 0..8 {
        b.settle_at(0, "bad").expect("a job");
        let job = b.settled - 1;
        let verdict = prevent(&mut b, job, no_disk(AbortReason::Other));
        assert_eq!(event(&verdict.operation_event), "-");
        let until = verdict.pause_on_node.expect("the node pauses");
        pauses.push(until.since(b.now).as_millis());
        assert_eq!(wanted(&b), [0, 1], "on other nodes the task goes on");
        b.now = until;
    }
    assert_eq!(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    // A job that ends by itself shows that the node is well.
    b.settle_at(0, "bad").expect("a job");
    let job = b.settled - 1;
    b.finish(job, failed(1));
    b.settle_at(0, "bad").expect("a job");
    let verdict = prevent(&mut b, job + 1, no_disk(AbortReason::Other));
    assert_eq!(verdict.pause_on_node.map(|until| until.since(b.now)), Some(Span::from_secs(1)));
}

/// Preemption before the start is caused by neither the operation nor the node: it pauses nothing, counts for nothing and ends no series.
#[test]
fn aborts_that_others_cause_do_not_count() {
    let mut b = Bench::new("{max_aborts_before_start=2; tasks={a={command=x; job_count=1}}}");
    b.settle(0).expect("a job");
    prevent(&mut b, 0, no_disk(AbortReason::JobProxyFailed));
    assert!(resumes_after(&mut b, 1000));
    for job in 1..50 {
        b.settle(0).expect("a job");
        let verdict = prevent(&mut b, job, aborted(AbortReason::Preemption));
        assert_eq!((verdict.pause_on_node, event(&verdict.operation_event)), (None, "-".to_owned()));
    }
    b.settle(0).expect("a job");
    let verdict = prevent(&mut b, 50, no_disk(AbortReason::WaitingTimeout));
    assert!(event(&verdict.operation_event).starts_with("failed"));
}

/// The count and the pause survive a restart of the server.
#[test]
fn s12_restarts_of_the_server_do_not_begin_the_count_anew() {
    let mut b = Bench::new(SPEC);
    let mut store: Vec<StatePart> = Vec::new();
    for pause in [1000, 2000, 4000] {
        b.settle(0).expect("a job");
        let job = b.settled - 1;
        prevent(&mut b, job, no_disk(AbortReason::Other));
        store.retain(|_| false);
        store.extend(b.controller.export());
        let options = ControllerOptions::default();
        let restored =
            OperationController::restore(b.controller.id(), &b.parsed.spec, &options, second(0), &store);
        b.controller = restored.expect("good state");
        let _ = b.controller.end_revival(b.now);
        assert_eq!(wanted(&b), [1], "it still pauses");
        assert!(resumes_after(&mut b, pause));
    }
    assert_eq!(b.controller.setbacks(b.now)[0].aborts, 3);
    assert_eq!(b.controller.setbacks(b.now)[0].last.map(|e| e.message.as_str()), Some("no such disk"));
    b.settle(0).expect("a job");
    let job = b.settled - 1;
    assert!(event(&prevent(&mut b, job, no_disk(AbortReason::Other)).operation_event).starts_with("failed"));
    // State of older programs does not know of any of it.
    let mut good = Bench::new(SPEC);
    good.settle(0).expect("a job");
    good.finish(0, done());
    let text = String::from_utf8_lossy(&yson::to_text(
        &yson::parse_record(&good.controller.export()[1].bytes).expect("a record"),
    ))
    .into_owned();
    assert!(text.contains("started_on"), "{text}");
}

/// S20: a file without content is not waited for.
#[test]
fn s20_lost_content_fails_the_operation_at_once() {
    let mut b = Bench::new(SPEC);
    b.settle(0).expect("a job");
    let reason = AbortReason::FailedChunks;
    let error = Failure::new("The content of file //tmp/f is missing").with("missing_blob", 7);
    let verdict = prevent(&mut b, 0, JobOutcome::Aborted { reason, error });
    let Some(controller::OperationEvent::Failed(error)) = verdict.operation_event else { panic!("goes on") };
    assert!(error.to_string().contains("lost"), "{error}");
    assert!(error.inner_errors[0].message.contains("//tmp/f"), "{error:?}");
}

/// A gang that never starts does not begin anew in the allocations that it has, at once and without end.
#[test]
fn s12_a_gang_that_never_starts_pauses_as_well() {
    let mut b = Bench::new("{tasks={a={command=x; job_count=2; gang_options={size=2}}}}");
    b.settle(0).expect("a job");
    b.settle(0).expect("a job");
    let verdict = prevent(&mut b, 0, no_disk(AbortReason::Other));
    assert_eq!(verdict.aborted_with_it.len(), 1);
    assert!(verdict.reuse.is_empty(), "{:?}", verdict.reuse);
    assert_eq!(wanted(&b), [0; 0]);
    assert!(resumes_after(&mut b, 1000));
}
