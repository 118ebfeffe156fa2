//! Everything that goes out comes in again, and what is wrong is named.

use proptest::collection::vec;
use proptest::prelude::*;
use vocab::shell::Terminal;
use vocab::*;
use yson::{Map, Value};

use super::{Malformed, pb};
use crate::*;

fn id() -> impl Strategy<Value = Guid> {
    any::<[u32; 4]>().prop_map(Guid)
}
fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äß\\n]{0,12}"
}
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Entity),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Uint),
        (-1e9..1e9f64).prop_map(Value::Double),
        vec(any::<u8>(), 0..8).prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::List),
            map_of(inner.clone()).prop_map(Value::Map),
            (map_of(inner.clone()), inner).prop_map(|(a, v)| v.with_attributes(a)),
        ]
    })
}
fn map_of(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map> {
    vec((vec(any::<u8>(), 0..4), value), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}
fn failure() -> impl Strategy<Value = Failure> {
    let flat = (any::<i64>(), text(), map_of(value()));
    let leaf = flat.prop_map(|(code, message, attributes)| Failure {
        code,
        message,
        attributes,
        inner_errors: Vec::new(),
    });
    leaf.prop_recursive(2, 4, 2, |inner| {
        (any::<i64>(), text(), vec(inner, 0..3)).prop_map(|(code, message, inner_errors)| Failure {
            code,
            message,
            attributes: Map::new(),
            inner_errors,
        })
    })
}
fn resources() -> impl Strategy<Value = Resources> {
    any::<[i64; 5]>().prop_map(|n| {
        let mut i = 0;
        Resources::from_raw(|_| {
            i += 1;
            n[i - 1]
        })
    })
}
fn identity() -> impl Strategy<Value = JobIdentity> {
    (id(), id(), id(), text(), text(), any::<(u32, u64, u64, Option<[u8; 16]>)>()).prop_map(
        |(j, a, o, tree, task, n)| JobIdentity {
            job_id: JobId(j),
            allocation_id: AllocationId(a),
            operation_id: OperationId(o),
            tree: tree.into(),
            task: task.into(),
            cookie: n.0,
            job_index: n.1,
            task_job_index: n.2,
            ticket: n.3.map(vocab::JobTicket),
        },
    )
}
fn artifact() -> impl Strategy<Value = Artifact> {
    (id(), any::<(u64, u64, [bool; 2])>(), text()).prop_map(|(f, n, file_name)| Artifact {
        file_id: ObjectId(f),
        revision: n.0,
        size: n.1,
        file_name,
        executable: n.2[0],
        bypass_cache: n.2[1],
    })
}
fn file_system() -> impl Strategy<Value = FileSystemRequest> {
    let volume = (text(), any::<i64>()).prop_map(|(path, size)| TmpfsVolume { path, size });
    (vec(volume, 0..3), vec(artifact(), 0..3), any::<([bool; 2], [Option<i64>; 2])>()).prop_map(
        |(tmpfs_volumes, layers, (flags, bounds))| FileSystemRequest {
            tmpfs_volumes,
            copy_files: flags[0],
            disk_space: bounds[0],
            inode_count: bounds[1],
            layers,
            writable_root: flags[1],
        },
    )
}
fn table_io(n: i64) -> TableIo {
    let format = yson::Value::from("yson").with_attributes(yson::map! {"format" => "binary"});
    let output = OutputTable { schema: format.clone(), sorted_by: vec![n.to_string()] };
    TableIo {
        input_rows: u64::try_from(n).ok(),
        input_format: format,
        output_format: "json".into(),
        outputs: vec![output; n.rem_euclid(3) as usize],
        first_output: n.rem_euclid(5) as u32,
        check_input_fully_consumed: n % 2 == 0,
    }
}
fn description() -> impl Strategy<Value = JobDescription> {
    (
        text(),
        vec((text(), text()), 0..3),
        vec(artifact(), 0..3),
        any::<([i64; 5], Option<u64>, Option<i32>, u32, [bool; 3])>(),
        proptest::option::of(text()),
        (failure(), any::<Option<i64>>(), file_system()),
    )
        .prop_map(|(command, environment, files, n, interruption_signal, more)| JobDescription {
            command,
            environment: environment.into_iter().collect(),
            files,
            cpu_limit: Cpu(n.0[0]),
            cpu_cap: n.4[0].then_some(Cpu(n.0[0] / 2)),
            memory_limit: n.0[1],
            user_job_memory_reserve: n.0[2],
            job_proxy_memory_reserve: n.0[3],
            job_time_limit: n.1.map(Span),
            max_stderr_size: n.0[4],
            interruption_signal,
            signal_root_process_only: n.4[1],
            restart_exit_code: n.2,
            custom_statistics_count_limit: n.3,
            cpu_monitor: more.0.attributes,
            include_memory_mapped_files: n.4[2],
            job_proxy_memory_overcommit_limit: more.1,
            prepare_time_limit: more.1.map(|n| Span(n.unsigned_abs())),
            port_count: n.3 / 2,
            file_system: more.2,
            tables: more.1.map(|n| Box::new(table_io(n))),
        })
}
fn tmpfs([size, max_size]: [i64; 2]) -> TmpfsUsage {
    TmpfsUsage { size, max_size }
}
fn cpu_monitor() -> impl Strategy<Value = CpuMonitorReport> {
    (any::<([i64; 8], bool, Option<(u64, i64, i64, bool)>)>(), text()).prop_map(
        |((n, reclaims, change), votes)| CpuMonitorReport {
            statistics: CpuMonitorStatistics {
                smoothed_cpu_usage_x100: n[0],
                preemptible_cpu_x100: n[1],
                aggregated_smoothed_cpu_usage_x100: n[2],
                aggregated_max_cpu_usage_x100: n[3],
                aggregated_preemptible_cpu_x100: n[4],
                aggregated_preempted_cpu_x100: n[5],
            },
            limit: n[6],
            smoothed: n[7],
            reclaims,
            votes,
            last_change: change.map(|(time, from, to, applied)| CpuMonitorChange {
                time: Time(time),
                from,
                to,
                applied,
            }),
        },
    )
}
fn statistics() -> impl Strategy<Value = JobStatistics> {
    let custom = vec((text(), any::<[i64; 5]>()), 0..3);
    let monitor = proptest::option::of(cpu_monitor());
    let volumes = vec(any::<[i64; 2]>(), 0..3);
    let disk = proptest::option::of(any::<(i64, i64, Option<i64>)>());
    (any::<([u64; 12], [i64; 18])>(), custom, monitor, volumes, disk).prop_map(
        |((s, i), custom, cpu_monitor, volumes, disk)| JobStatistics {
            wait_for_resources: Span(s[0]),
            prepare: Span(s[1]),
            artifacts_download: Span(s[2]),
            exec: Span(s[3]),
            user_job_cpu_user: Span(s[4]),
            user_job_cpu_system: Span(s[5]),
            user_job_cpu_throttled: Span(s[6]),
            user_job_cpu_wait: Span(s[7]),
            job_proxy_cpu_user: Span(s[8]),
            job_proxy_cpu_system: Span(s[9]),
            user_job_context_switches: i[0],
            user_job_bytes_read: i[1],
            user_job_bytes_written: i[2],
            job_proxy_context_switches: i[3],
            job_proxy_bytes_read: i[4],
            job_proxy_bytes_written: i[5],
            user_job_max_memory: i[6],
            user_job_peak_memory: i[7],
            user_job_current_rss: i[8],
            user_job_current_mapped_file: i[9],
            user_job_major_page_faults: i[10],
            user_job_cumulative_memory_mb_sec: i[11],
            job_proxy_max_memory: i[12],
            user_job_tmpfs: tmpfs([i[13], i[14]]),
            user_job_tmpfs_volumes: volumes.into_iter().map(tmpfs).collect(),
            user_job_disk: disk
                .map(|(usage, max_usage, limit)| Box::new(DiskUsage { usage, max_usage, limit })),
            cpu_monitor,
            job_proxy_cpu_wait: Span(s[10]),
            preparation: (i[15] % 2 == 0).then(|| {
                Box::new(PreparationMeasures {
                    prepare_root_fs: Span(s[11]),
                    cache_hit_artifacts_size: i[15],
                    cache_miss_artifacts_size: i[16],
                    cache_bypassed_artifacts_size: i[17],
                })
            }),
            custom: custom
                .into_iter()
                .map(|(name, [sum, count, min, max, last])| (name, Summary { sum, count, min, max, last }))
                .collect(),
            user_job_requests: (i[13] % 2 == 0).then(|| StorageRequests { reads: i[12], writes: i[13] }),
            tables: (i[14] % 2 == 0).then(|| {
                let flow = |k: usize| RowFlow {
                    row_count: i[k],
                    data_weight: i[k + 1],
                    uncompressed_data_size: i[k + 2],
                };
                let outputs = (0..i[0].rem_euclid(3) as usize).map(flow).collect();
                let pipe =
                    |k: usize| PipeUse { bytes: i[k], idle_time: Span(s[k]), busy_time: Span(s[k + 1]) };
                Box::new(TableStatistics {
                    input: flow(1),
                    not_fully_consumed: i[1] % 2 == 0,
                    outputs,
                    input_pipe: pipe(2),
                    output_pipes: (0..i[3].rem_euclid(3) as usize).map(pipe).collect(),
                })
            }),
        },
    )
}
fn reason<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(all)
}
fn outcome() -> impl Strategy<Value = JobOutcome> {
    prop_oneof![
        (proptest::option::of(reason(InterruptionReason::ALL)), any::<bool>())
            .prop_map(|(interrupted, restart_needed)| JobOutcome::Completed { interrupted, restart_needed }),
        failure().prop_map(|error| JobOutcome::Failed { error }),
        (reason(AbortReason::ALL), failure())
            .prop_map(|(reason, error)| JobOutcome::Aborted { reason, error }),
    ]
}
fn finished() -> impl Strategy<Value = FinishedJob> {
    let stderr = proptest::option::of(vec(any::<u8>(), 0..9));
    (
        identity(),
        resources(),
        outcome(),
        any::<(Option<u64>, u64, u64, u64, Option<u32>)>(),
        statistics(),
        stderr,
    )
        .prop_map(|(identity, granted, outcome, n, statistics, stderr)| FinishedJob {
            identity,
            granted,
            outcome,
            start_time: n.0.map(Time),
            finish_time: Time(n.1),
            statistics,
            stderr_size: n.2,
            stderr,
            fail_context_size: n.3,
            slot_index: n.4,
        })
}
fn report() -> impl Strategy<Value = JobReport> {
    let statistics = proptest::option::of(statistics());
    let vectors = (resources(), resources());
    (identity(), vectors, reason(JobPhase::ALL), any::<(u64, Option<u64>, u64, Option<u32>)>(), statistics)
        .prop_map(|(identity, (granted, resource_usage), phase, n, statistics)| JobReport {
            identity,
            granted,
            resource_usage,
            phase,
            accepted_time: Time(n.0),
            start_time: n.1.map(Time),
            statistics,
            stderr_size: n.2,
            slot_index: n.3,
        })
}
fn event() -> impl Strategy<Value = JobEvent> {
    prop_oneof![
        (id(), any::<(u64, Option<u32>)>()).prop_map(|(job, (t, slot_index))| {
            JobEvent::Started { job_id: JobId(job), start_time: Time(t), slot_index }
        }),
        (id(), resources())
            .prop_map(|(job, resource_usage)| JobEvent::ResourceUsage { job_id: JobId(job), resource_usage }),
        finished().prop_map(|end| JobEvent::Finished(Box::new(end))),
    ]
}
fn node_message() -> impl Strategy<Value = NodeMessage> {
    let hello = (
        any::<(u32, u64)>(),
        (text(), text()),
        resources(),
        vec(text(), 0..3),
        vec(failure(), 0..2),
        vec(report(), 0..3),
        vec(finished(), 0..3),
    )
        .prop_map(|(n, t, resource_limits, tags, alerts, running, finished)| Hello {
            protocol_version: n.0,
            address: t.0,
            incarnation: n.1,
            resource_limits,
            tags,
            job_environment: t.1,
            disk_capacity: (n.0 % 2 == 0).then_some(i64::MAX),
            stamp: Span(n.1),
            data_id: format!("data-{}", n.1),
            knows_job_uids: n.0 % 3 == 0,
            authentication: [None, Some(false), Some(true)][n.0 as usize % 3],
            alerts,
            running,
            finished,
        });
    let heartbeat = (resources(), resources(), vec(failure(), 0..2), vec(report(), 0..3), vec(id(), 0..3))
        .prop_map(|(resource_limits, resource_usage, alerts, jobs, unreleased)| Heartbeat {
            resource_limits,
            resource_usage,
            alerts,
            jobs,
            stamp: Span(unreleased.len() as u64),
            leases_extended_until: Time(unreleased.len() as u64),
            unreleased: unreleased.into_iter().map(JobId).collect(),
        });
    let answer = prop_oneof![
        vec(any::<u8>(), 0..9).prop_map(Ok::<Vec<u8>, Failure>),
        failure().prop_map(Err::<Vec<u8>, Failure>)
    ];
    prop_oneof![
        hello.prop_map(NodeMessage::Hello),
        heartbeat.prop_map(NodeMessage::Heartbeat),
        vec(event(), 0..4).prop_map(NodeMessage::Jobs),
        Just(NodeMessage::Leaving),
        (any::<u64>(), answer).prop_map(|(request_id, result)| NodeMessage::Stderr { request_id, result }),
        (any::<u64>(), shell_result())
            .prop_map(|(request_id, result)| NodeMessage::Shell { request_id, result }),
    ]
}
fn shell_result() -> impl Strategy<Value = Result<ShellAnswer, Failure>> {
    let answer = (id(), any::<u32>(), vec(any::<u8>(), 0..9), proptest::option::of(any::<u64>())).prop_map(
        |(shell_id, shell_index, output, consumed_offset)| {
            Ok(ShellAnswer { shell_id, shell_index, output, consumed_offset })
        },
    );
    prop_oneof![answer, failure().prop_map(Err::<ShellAnswer, Failure>)]
}
fn shell_request() -> impl Strategy<Value = ShellRequest> {
    use proptest::option::of;
    let terminal = (text(), any::<(u32, u32)>()).prop_map(|(name, size)| Terminal { name, size });
    prop_oneof![
        (id(), of(text()), of(terminal), vec(text(), 0..3), any::<bool>(), of(any::<u64>())).prop_map(
            |(shell_id, command, terminal, environment, secrets, timeout)| ShellRequest::Spawn {
                shell_id,
                command,
                terminal,
                environment,
                secrets,
                inactivity_timeout: timeout.map(Span),
            }
        ),
        (id(), any::<u64>(), vec(any::<u8>(), 0..9), any::<(u32, u32)>()).prop_map(
            |(shell_id, input_offset, keys, size)| ShellRequest::Update {
                shell_id,
                input_offset,
                keys,
                size
            }
        ),
        id().prop_map(|shell_id| ShellRequest::Poll { shell_id }),
        id().prop_map(|shell_id| ShellRequest::Terminate { shell_id }),
    ]
}
fn job_uids() -> impl Strategy<Value = crate::JobUids> {
    (100_000..200_000_u32, 0..5000_u32, 0..5000_u32).prop_map(|(first, size, claim)| {
        let range = vocab::UidRange::new(first, first + size).expect("a range");
        let claim = vocab::UidRange::new(first, first + claim.min(size)).expect("a range");
        crate::JobUids { cluster_id: vocab::Guid([first, size, 3, 1]), range, claim }
    })
}
fn server_message() -> impl Strategy<Value = ServerMessage> {
    let uid = proptest::option::of(any::<u32>());
    let start = (identity(), resources(), description(), proptest::option::of(any::<u64>()), uid).prop_map(
        |(identity, resources, description, timeout, uid)| StartJob {
            uid,
            identity,
            resources,
            description,
            waiting_timeout: timeout.map(Span),
            has_started_elsewhere: timeout.is_none(),
            lease: timeout.map(Span),
        },
    );
    let abort = (id(), reason(AbortReason::ALL), text()).prop_map(|(job, reason, text)| AbortJob {
        job_id: JobId(job),
        reason,
        text,
    });
    prop_oneof![
        (any::<u64>(), proptest::option::of(job_uids()))
            .prop_map(|(p, job_uids)| ServerMessage::Welcome { heartbeat_period: Span(p), job_uids }),
        failure().prop_map(ServerMessage::Refuse),
        any::<(u64, u64)>()
            .prop_map(|(from, until)| ServerMessage::Heard { from: Span(from), extended_until: Time(until) }),
        vec(start, 0..3).prop_map(ServerMessage::Start),
        vec(abort, 0..3).prop_map(ServerMessage::Abort),
        (id(), any::<u64>(), reason(InterruptionReason::ALL), text()).prop_map(|(job, t, reason, text)| {
            ServerMessage::Interrupt { job_id: JobId(job), timeout: Span(t), reason, text }
        }),
        (id(), failure()).prop_map(|(job, error)| ServerMessage::Fail { job_id: JobId(job), error }),
        vec(id(), 0..4).prop_map(|ids| ServerMessage::Release(ids.into_iter().map(JobId).collect())),
        (any::<(u64, u64, u64)>(), id()).prop_map(|(n, job)| ServerMessage::ReadStderr {
            request_id: n.0,
            job_id: JobId(job),
            offset: n.1,
            limit: n.2,
        }),
        (any::<u64>(), id(), shell_request()).prop_map(|(request_id, job, request)| ServerMessage::Shell {
            request_id,
            job_id: JobId(job),
            request,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn node_messages_survive_the_wire(m in node_message()) {
        use prost::Message;
        let bytes = pb::NodeMessage::from(&m).encode_to_vec();
        let back = pb::NodeMessage::decode(bytes.as_slice()).expect("our own bytes");
        prop_assert_eq!(NodeMessage::try_from(back).expect("our own message"), m);
    }

    #[test]
    fn server_messages_survive_the_wire(m in server_message()) {
        use prost::Message;
        let bytes = pb::ServerMessage::from(&m).encode_to_vec();
        let back = pb::ServerMessage::decode(bytes.as_slice()).expect("our own bytes");
        prop_assert_eq!(ServerMessage::try_from(back).expect("our own message"), m);
    }

    #[test]
    fn foreign_bytes_are_an_error_or_a_message_but_no_panic(bytes in vec(any::<u8>(), 0..200)) {
        use prost::Message;
        if let Ok(m) = pb::NodeMessage::decode(bytes.as_slice()) {
            let _ = NodeMessage::try_from(m);
        }
    }
}

/// Seeds of the fuzz target `wire`: one large message of each kind, from the generators above.
///
/// `MILLPOND_WRITE_SEEDS=1 cargo test -p millpond-wire seeds` writes them anew, after a change of the protocol.
#[test]
#[expect(clippy::disallowed_methods, reason = "seeds are files")]
fn seeds_of_the_fuzz_target_are_messages_of_all_kinds() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    use prost::Message as _;
    use std::collections::BTreeMap;

    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/wire");
    let mut runner = TestRunner::deterministic();
    // The first byte says which side sends; the next one is the number of the kind in the protocol.
    let mut kinds: BTreeMap<(u8, u8), Vec<u8>> = BTreeMap::new();
    for _ in 0..2_000 {
        let node = node_message().new_tree(&mut runner).expect("a message").current();
        let server = server_message().new_tree(&mut runner).expect("a message").current();
        let node = pb::NodeMessage::from(&node).encode_to_vec();
        let server = pb::ServerMessage::from(&server).encode_to_vec();
        for (side, bytes) in [(0, node), (1, server)] {
            let kept = kinds.entry((side, bytes[0])).or_default();
            if bytes.len() < 4_000 && bytes.len() > kept.len() {
                *kept = bytes;
            }
        }
    }
    if std::env::var_os("MILLPOND_WRITE_SEEDS").is_some() {
        for entry in std::fs::read_dir(&folder).expect("seeds") {
            std::fs::remove_file(entry.expect("a seed").path()).expect("removed");
        }
        for ((side, kind), bytes) in &kinds {
            let name = format!("{}-{}", ["node", "server"][usize::from(*side)], kind >> 3);
            std::fs::write(folder.join(name), [&[*side], bytes.as_slice()].concat()).expect("written");
        }
    }
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).expect("seeds") {
        let path = entry.expect("a seed").path();
        let seed = std::fs::read(&path).expect("a seed");
        let (side, bytes) = seed.split_first().expect("a side");
        match side {
            0 => drop(
                pb::NodeMessage::decode(bytes)
                    .map(|m| NodeMessage::try_from(m).expect("a whole message"))
                    .expect("a message"),
            ),
            _ => drop(
                pb::ServerMessage::decode(bytes)
                    .map(|m| ServerMessage::try_from(m).expect("a whole message"))
                    .expect("a message"),
            ),
        }
        found.insert((*side, bytes[0]), bytes.len());
    }
    assert!(kinds.keys().eq(found.keys()), "seeds of other kinds: {found:?}");
    // The large messages are large ones: they have reports, statistics and descriptions of jobs.
    for large in [(0, 1_u8), (0, 2), (0, 3), (1, 3)] {
        let size = found.get(&(large.0, (large.1 << 3) | 2)).copied();
        assert!(size.is_some_and(|size| size > 500), "{large:?}: {size:?}");
    }
}

#[test]
fn errors_name_the_field() {
    let missing = NodeMessage::try_from(pb::NodeMessage { message: None });
    assert_eq!(missing, Err(Malformed::Missing("node message")));
    let abort = pb::AbortJob { job_id: vec![0; 16], reason: "boredom".to_owned(), text: String::new() };
    let error = AbortJob::try_from(abort).expect_err("no such reason").to_string();
    assert!(
        error.contains("abort reason") && error.contains("boredom") && error.contains("user_request"),
        "{error}"
    );
    let short = pb::AbortJob { job_id: vec![0; 3], reason: "other".to_owned(), text: String::new() };
    let error = AbortJob::try_from(short).expect_err("a short id").to_string();
    assert_eq!(error, "Id \"job_id\" of the node protocol has 3 bytes: expected 16");
}

#[test]
fn what_is_too_deep_is_cut_when_sent_and_refused_when_received() {
    let mut value = Value::Int(1);
    for _ in 0..50 {
        value = Value::List(vec![value]);
    }
    let sent = Failure::new("deep").with("value", value);
    let received = Failure::try_from(pb::Failure::from(&sent)).expect("what was sent is accepted");
    assert!(received.attributes.get("value").is_some());
    let mut error = Failure::new("innermost");
    for _ in 0..50 {
        error = Failure::new("outer").because(error);
    }
    let received = Failure::try_from(pb::Failure::from(&error)).expect("what was sent is accepted");
    assert!(received.to_string().starts_with("outer: outer"));
    let mut foreign = pb::Failure::default();
    for _ in 0..50 {
        foreign = pb::Failure { inner_errors: vec![foreign], ..pb::Failure::default() };
    }
    assert_eq!(Failure::try_from(foreign), Err(Malformed::TooDeep(super::failure::MAX_DEPTH)));
}
