//! S7: a node can do nothing to jobs of other nodes.

use crate::console::Console;
use crate::world::proof_of;
use kernel::{Body, Command, FailContext, Input, JobTicketKey, NodeProof, Upload};
use vocab::batch::Table;
use vocab::{Failure, JobId, JobOutcome, JobTicket, Resources, Span, Time};
use wire::{FinishedJob, JobEvent, JobReport, NodeMessage};
use yson::Value;

/// A cluster whose nodes have identities. On `owner` runs the job of `o`; `other` has no room for one.
fn cluster() -> Console {
    let mut c = Console::with(|config| {
        config.node_identities = true;
        config.job_ticket_keys = vec![JobTicketKey([1; 32])];
    });
    c.run("node owner cpu=1\nnode other cpu=0\npool create p\nfile //tmp/f 77\nop start p file=//tmp/f as o");
    assert_eq!(c.world.nodes["owner"].running.len(), 1, "{}", c.transcript());
    c
}

fn job(c: &Console) -> JobId {
    *c.world.nodes["owner"].running.keys().next().expect("the job runs")
}

/// The job as `owner` reports it.
fn report(c: &Console) -> JobReport {
    c.world.nodes["owner"].hello().running.pop().expect("the job runs")
}

/// The end of a job.
fn end(report: &JobReport, now: Time) -> FinishedJob {
    FinishedJob {
        identity: report.identity.clone(),
        granted: report.granted,
        outcome: JobOutcome::Completed { interrupted: None, restart_needed: false },
        start_time: Some(now),
        finish_time: now,
        statistics: Default::default(),
        stderr_size: 0,
        stderr: Some(b"forged".to_vec()),
        fail_context_size: 0,
        slot_index: None,
    }
}

/// What a script does.
fn said(c: &mut Console, script: &str) -> String {
    c.forget_transcript();
    c.run(script);
    assert!(!c.transcript().contains("VIOLATED"), "{}", c.transcript());
    c.transcript().to_owned()
}

fn says(c: &mut Console, node: &str, message: NodeMessage) -> String {
    c.world.say(node, message);
    c.world.settle();
    said(c, "show ops")
}

/// `other` registers with these jobs.
fn registers(c: &mut Console, running: Vec<JobReport>, finished: Vec<FinishedJob>) -> String {
    c.world.disconnect("other");
    c.world.connect("other");
    for input in &mut c.world.inputs {
        if let Input::Node { message: NodeMessage::Hello(hello), .. } = input
            && hello.address == "other"
        {
            (hello.running, hello.finished) = (running.clone(), finished.clone());
        }
    }
    c.world.settle();
    said(c, "show ops")
}

fn ask(c: &mut Console, command: Command) -> Result<Value, Failure> {
    match c.world.ask("root", command).expect("an answer")? {
        Body::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

fn alert(c: &mut Console) -> Option<String> {
    alert_of(c, "foreign_job_reported")
}

fn alert_of(c: &mut Console, name: &str) -> Option<String> {
    let path = yson::ypath::YPath::parse(b"//sys/scheduler/@alerts").expect("a path");
    let alerts = ask(c, Command::Get { path, attributes: Vec::new(), max_size: None, fields: None });
    let text = String::from_utf8_lossy(&yson::to_text(&alerts.expect("a list"))).into_owned();
    text.contains(name).then_some(text)
}

/// The job runs on as before, and its own node may end it.
fn is_untouched(c: &mut Console) {
    let ops = said(c, "show ops");
    assert!(ops.contains("running=1") && ops.contains("completed=0"), "{ops}");
    assert_eq!(c.world.nodes["owner"].running.len(), 1, "its node was told to end it");
    let ops = said(c, "finish o/0\nshow ops");
    assert!(ops.contains("completed"), "{ops}");
}

/// S7: by guessed or copied ids a node could end jobs of others, with a result of its choice.
#[test]
fn reports_about_jobs_of_other_nodes_change_nothing() {
    let mut c = cluster();
    let report = report(&c);
    let (job_id, now) = (report.identity.job_id, c.world.now);
    assert_eq!(alert(&mut c), None);
    let huge = Resources { user_slots: 9, memory: 1 << 50, ..Resources::ZERO };
    let finished = end(&report, now);
    let told = says(
        &mut c,
        "other",
        NodeMessage::Jobs(vec![
            JobEvent::Started { job_id, start_time: now, slot_index: Some(9) },
            JobEvent::ResourceUsage { job_id, resource_usage: huge },
            JobEvent::Finished(Box::new(finished.clone())),
        ]),
    );
    assert!(told.contains("other <- release o/0#0"), "it may forget its own story: {told}");
    let mut heartbeat = c.world.nodes["other"].heartbeat();
    heartbeat.jobs = vec![JobReport { resource_usage: huge, ..report.clone() }];
    let told = says(&mut c, "other", NodeMessage::Heartbeat(heartbeat));
    assert!(told.contains("other <- abort o/0#0"), "{told}");
    registers(&mut c, vec![report.clone()], Vec::new());
    registers(&mut c, Vec::new(), vec![finished]);
    let told = alert(&mut c).expect("an alert");
    assert!(told.contains("nodes\"=[\"other\";]") && told.contains(&job_id.to_string()), "{told}");
    is_untouched(&mut c);
    c.world.pass(Span::from_secs(90_000));
    assert_eq!(alert(&mut c), None, "it goes after a day");
}

/// S7: after a restart of the server a node could take over any job, by saying first that it runs it.
#[test]
fn a_job_of_an_earlier_life_is_adopted_from_its_own_node_only() {
    for end_it in [false, true] {
        let mut c = cluster();
        c.world.disconnect("owner");
        let copied = report(&c);
        let now = c.world.now;
        said(&mut c, "crash\nrestart");
        let told = match end_it {
            false => registers(&mut c, vec![copied.clone()], Vec::new()),
            true => registers(&mut c, Vec::new(), vec![end(&copied, now)]),
        };
        assert!(told.contains("running=0") && told.contains("completed=0"), "{told}");
        let told = said(&mut c, "connect owner");
        assert!(!told.contains("abort"), "{told}");
        is_untouched(&mut c);
    }
}

/// S7.
#[test]
fn a_ticket_is_good_for_its_job_alone() {
    let forged: [fn(&mut JobReport); 5] = [
        |report| report.identity.ticket = None,
        |report| report.identity.ticket = Some(JobTicket([0; 16])),
        |report| report.identity.cookie = 7,
        |report| report.identity.job_index += 1,
        |report| report.identity.task = "u".into(),
    ];
    for (number, forge) in forged.into_iter().enumerate() {
        let mut c = cluster();
        said(&mut c, "crash\nrestart");
        let mut report = report(&c);
        forge(&mut report);
        let start = &mut c.world.nodes.get_mut("owner").expect("there").running;
        start.values_mut().next().expect("the job runs").start.identity = report.identity;
        let told = said(&mut c, "connect owner");
        assert!(told.contains("owner <- abort"), "{number}: {told}");
    }
    // A key that was replaced still verifies, one that is gone does not.
    for (keys, adopted) in [(vec![[2; 32], [1; 32]], true), (vec![[2; 32]], false), (vec![], false)] {
        let mut c = cluster();
        c.world.config.job_ticket_keys = keys.into_iter().map(JobTicketKey).collect();
        let told = said(&mut c, "crash\nrestart\nconnect owner");
        assert_eq!(!told.contains("owner <- abort"), adopted, "{told}");
    }
}

/// S7: an exclusive unit waits for a run of it that may live on a node that is no longer heard; a node that never had the unit
/// could hold it up for ever.
#[test]
fn a_node_cannot_fence_units_that_it_was_not_given() {
    let mut c = cluster();
    let mut forged = report(&c);
    said(&mut c, "op start p as waits");
    forged.identity.operation_id = c.operation_id("waits");
    forged.identity.job_id = JobId(vocab::Guid([5, 0, 0, 5]));
    let mut heartbeat = c.world.nodes["other"].heartbeat();
    heartbeat.jobs = vec![forged];
    says(&mut c, "other", NodeMessage::Heartbeat(heartbeat));
    let told = said(&mut c, "finish o/0");
    assert!(told.contains("owner <- start waits/0#0"), "{told}");
}

/// S7: what was uploaded by another node became rows, stderr and context of the job.
#[test]
fn only_its_own_node_hands_something_in_for_a_job() {
    let mut c = cluster();
    let own = job(&c);
    let chunk = |blob| kernel::Chunk { blob, size: 9, rows: 1, row_bytes: 9, weight: 9, bounds: None };
    let mut blob = 100;
    let mut upload = |c: &mut Console, from: NodeProof, job_id: JobId| -> Vec<bool> {
        let mut taken = Vec::new();
        for kind in 0..3 {
            blob += 1;
            c.world.inputs.push_back(match kind {
                0 => Input::StderrUploaded { from: from.clone(), job_id, blob, size: 9 },
                1 => {
                    let context = FailContext { blob, size: 9 };
                    Input::FailContextUploaded { from: from.clone(), job_id, context }
                }
                _ => {
                    Input::RowsUploaded { from: from.clone(), job_id, table: 0, chunk: Box::new(chunk(blob)) }
                }
            });
            // A change that makes the deletion durable.
            let told = said(c, &format!("set //tmp/@changed {blob}"));
            taken.push(!told.contains(&format!("blob {blob} deleted")));
        }
        taken
    };
    let unknown = JobId(vocab::Guid([5, 0, 0, 5]));
    assert_eq!(upload(&mut c, proof_of("other"), own), [false; 3]);
    assert_eq!(upload(&mut c, NodeProof::Insecure, own), [false; 3]);
    assert_eq!(upload(&mut c, proof_of("stranger"), own), [false; 3]);
    assert_eq!(upload(&mut c, proof_of("owner"), unknown), [false; 3]);
    assert_eq!(upload(&mut c, proof_of("owner"), own), [true; 3]);
    // The identity is looked at when the upload is handled, not only when it begins.
    ask(&mut c, Command::RevokeNode { name: "owner".into() }).expect("revoked");
    assert_eq!(upload(&mut c, proof_of("owner"), own), [false; 3]);
}

/// S7: an upload had no limit. It is asked about before its first byte, and only the job's own node gets a limit.
#[test]
fn an_upload_has_the_limit_of_its_job() {
    let mut c = cluster();
    let (own, unknown) = (job(&c), JobId(vocab::Guid([5, 0, 0, 5])));
    let uploads = [Upload::Stderr, Upload::FailContext, Upload::Rows { table: 0 }];
    let locate = |from: NodeProof, job_id, upload| Command::LocateUpload { from, job_id, upload };
    let limit = |told: &Value| {
        let is_expected = told.get("is_expected").and_then(Value::as_bool).expect("it is told");
        (is_expected, told.get("limit").and_then(Value::as_u64).expect("a limit"))
    };
    for upload in uploads {
        for from in [proof_of("other"), NodeProof::Insecure] {
            let refused = ask(&mut c, locate(from, own, upload)).expect_err("not its own");
            assert_eq!(refused.code, vocab::code::ACCESS_DENIED, "{refused}");
        }
        let refused = ask(&mut c, locate(proof_of("stranger"), own, upload)).expect_err("unknown");
        assert_eq!(refused.code, vocab::code::INVALID_CREDENTIALS, "{refused}");
        for from in [proof_of("owner"), NodeProof::Insecure] {
            let told = ask(&mut c, locate(from, unknown, upload)).expect("nobody waits for it");
            assert_eq!(limit(&told), (false, 0));
        }
    }
    let told = |c: &mut Console, job_id, upload| ask(c, locate(proof_of("owner"), job_id, upload));
    // The default, and the mark in the place of what was dropped.
    let (is_expected, stderr) = limit(&told(&mut c, own, Upload::Stderr).expect("its own"));
    assert!(is_expected && (5 << 20..6 << 20).contains(&stderr), "{stderr}");
    let context = limit(&told(&mut c, own, Upload::FailContext).expect("its own"));
    assert_eq!(context, (true, vocab::job::FAIL_CONTEXT_MAX));
    let refused = told(&mut c, own, Upload::Rows { table: 0 }).expect_err("it writes to no table");
    assert!(refused.message.contains("no output table 0"), "{refused}");
    // The stderr of a job that was given up is still wanted, with the limit of its task; its rows are not.
    said(&mut c, "finish o/0\nop start p stderr=1000 as short");
    let short = job(&c);
    let of_task = limit(&told(&mut c, short, Upload::Stderr).expect("its own"));
    assert!(of_task.0 && (1000..2000).contains(&of_task.1), "{of_task:?}");
    c.world.nodes.get_mut("owner").expect("there").slow = true;
    said(&mut c, "op suspend short abort");
    assert_eq!(limit(&told(&mut c, short, Upload::Stderr).expect("its own")), of_task);
    assert_eq!(limit(&told(&mut c, short, Upload::Rows { table: 0 }).expect("its own")), (false, 0));
}

/// S7.
#[test]
fn a_node_that_uploads_too_much_is_named_by_an_alert_for_a_day() {
    let mut c = cluster();
    let job_id = job(&c);
    for from in [proof_of("owner"), proof_of("stranger")] {
        c.world.inputs.push_back(Input::UploadTooLarge { from, job_id, upload: Upload::Stderr });
    }
    c.world.settle();
    let told = alert_of(&mut c, "oversized_upload").expect("an alert");
    assert!(told.contains("nodes\"=[\"owner\";]") && told.contains("owner stderr of job"), "{told}");
    c.world.pass(Span::from_secs(90_000));
    assert_eq!(alert_of(&mut c, "oversized_upload"), None, "it goes after a day");
}

/// S7: a hostile node could keep an exclusive unit of a lost node waiting for ever, by reporting the job as its own. The agent of
/// the lost node under another name has the ticket of the job, and is believed.
#[test]
fn a_report_without_the_ticket_does_not_keep_the_unit_of_a_lost_node_waiting() {
    type Theft = fn(&mut vocab::JobIdentity);
    let stolen: [(&str, Theft); 4] = [
        ("none", |identity| identity.ticket = None),
        ("forged", |identity| identity.ticket = Some(JobTicket([7; 16]))),
        ("of another job", |identity| identity.job_index += 1),
        ("right", |_| {}),
    ];
    for (which, forge) in stolen {
        let mut c = cluster();
        said(&mut c, "node spare cpu=1\ndisconnect owner\ntick 65s");
        let mut running = std::mem::take(&mut c.world.nodes.get_mut("owner").expect("there").running);
        running.values_mut().for_each(|job| forge(&mut job.start.identity));
        let other = c.world.nodes.get_mut("other").expect("there");
        // It does not end the job, whatever it is told.
        (other.running, other.slow) = (running, true);
        let told = said(&mut c, "disconnect other\nconnect other\ntick 1s");
        assert!(told.contains("other <- abort"), "{which}: {told}");
        assert!(alert(&mut c).is_some(), "{which}");
        // It goes on to report the job with each heartbeat. A lease of five minutes and its margin.
        said(&mut c, "tick 120s\ntick 120s\ntick 120s");
        let ops = said(&mut c, "show ops");
        let (running, aborted) = match which {
            "right" => ("running=1", "aborted=0"),
            _ => ("running=1", "aborted=1"),
        };
        assert!(ops.contains(running) && ops.contains(aborted), "{which}: {ops}");
        let is_given_away = c.world.nodes["spare"].running.len() == 1;
        assert_eq!(is_given_away, which != "right", "{which}");
        let remove = Command::RemoveNode { address: "owner".to_owned(), lost: true };
        if which == "right" {
            let refused = ask(&mut c, remove).expect_err("the job lives");
            assert!(refused.message.contains("node \"other\" reports its job"), "{refused}");
        }
    }
}

/// S7: nor does it keep an administrator from saying that the node is lost.
#[test]
fn a_report_without_the_ticket_does_not_keep_a_lost_node_from_being_removed() {
    let mut c = cluster();
    said(&mut c, "node spare cpu=1\ndisconnect owner\ntick 65s");
    let mut forged = report(&c);
    forged.identity.ticket = Some(JobTicket([7; 16]));
    let mut heartbeat = c.world.nodes["other"].heartbeat();
    heartbeat.jobs = vec![forged];
    says(&mut c, "other", NodeMessage::Heartbeat(heartbeat));
    ask(&mut c, Command::RemoveNode { address: "owner".to_owned(), lost: true }).expect("removed");
    c.world.settle();
    let ops = said(&mut c, "show ops");
    assert!(ops.contains("aborted=1"), "{ops}");
}

/// S7: each node could fetch each file that any operation needs, and the rows of any job.
#[test]
fn a_node_gets_files_and_rows_of_its_own_jobs_only() {
    let mut c = cluster();
    let (job_id, start) = {
        let job = c.world.nodes["owner"].running.values().next().expect("the job runs");
        (job.start.identity.job_id, job.start.clone())
    };
    let [file] = &start.description.files[..] else { panic!("one file") };
    let (file_id, revision) = (file.file_id, file.revision);
    let locate = |from: NodeProof| Command::LocateArtifact { from, file_id, revision };
    let found = ask(&mut c, locate(proof_of("owner"))).expect("its own");
    assert_eq!(found.get("blob").and_then(Value::as_u64), Some(77));
    for from in [proof_of("other"), proof_of("stranger"), NodeProof::Insecure] {
        let refused = ask(&mut c, locate(from.clone())).expect_err("not its own");
        // It tries again: after a restart of the server a job may be reported in a moment.
        assert_eq!(refused.code, vocab::code::UNAVAILABLE, "{refused}");
        let refused = ask(&mut c, Command::LocateJobInput { from, job_id }).expect_err("not its own");
        assert_eq!(refused.code, vocab::code::ACCESS_DENIED, "{refused}");
    }
    let none =
        ask(&mut c, Command::LocateJobInput { from: proof_of("owner"), job_id }).expect_err("no tables");
    assert_ne!(none.code, vocab::code::ACCESS_DENIED, "{none}");
}

/// S7: jobs that run while a cluster of release 0.1 is updated have no tickets.
#[test]
fn jobs_of_an_operation_of_release_0_1_are_adopted_without_tickets() {
    let mut c = cluster();
    let id = c.operation_id("o");
    said(&mut c, "crash");
    let key = [id.0.to_bytes().as_slice(), b"s"].concat();
    let record = c.world.durable.get_mut(&(Table::Operations, key)).expect("the operation");
    let mut map = yson::parse_record(record).expect("a record").as_map().cloned().expect("a map");
    assert!(map.remove("job_tickets").is_some());
    *record = yson::to_binary(&map.into());
    let running = &mut c.world.nodes.get_mut("owner").expect("there").running;
    running.values_mut().for_each(|job| job.start.identity.ticket = None);
    let told = said(&mut c, "restart\nconnect owner");
    assert!(!told.contains("abort"), "{told}");
    is_untouched(&mut c);
}
