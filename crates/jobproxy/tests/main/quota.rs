//! A bound of disk space that the kernel keeps (jobs-and-nodes.md 4.9), where the directory for temporary files is on a
//! file system that can.

use super::harness::FakeNode;
use super::jobs::{failure, for_each};
use cage::quota;
use jobproxy::protocol::{DiskQuota, JobStart, ProxyResult};
use std::fs::File;
use vocab::{Failure, JobOutcome};

const USER: u32 = 54_321;
const OVERDRAFT: &str = "Disk usage overdraft occurred";

/// Runs a job with these bounds in a sandbox of project `number`; none if there are no quotas.
fn bounded(
    node: &mut FakeNode,
    number: u32,
    bounds: (Option<i64>, Option<i64>),
    command: &str,
) -> Option<ProxyResult> {
    let project = 0x4000_0000 + (std::process::id() << 6) + number;
    let mut job: JobStart = node.job(command);
    let on = File::open(&job.job_directory).expect("made");
    if let Err(e) = quota::claim(&[&job.sandbox], project) {
        println!("SKIPPED bounds that the kernel keeps: {e}");
        return None;
    }
    std::os::unix::fs::chown(&job.sandbox, Some(USER), Some(USER)).expect("root may");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(node.directory.path(), open).expect("ours");
    (job.disk_space, job.inode_count) = bounds;
    job.user = Some((USER, USER));
    let own = quota::usage(&on, project).expect("counted");
    let more = |bound: Option<i64>, own: u64| bound.map(|most| most.unsigned_abs() + own);
    let limits = quota::DiskLimits { space: more(bounds.0, own.space), inodes: more(bounds.1, own.inodes) };
    quota::limit(&on, project, limits).expect("root may");
    job.disk_quota = Some(DiskQuota { project, own_space: own.space as i64, own_inodes: own.inodes as i64 });
    let result = node.run(job);
    quota::limit(&on, project, quota::DiskLimits::default()).expect("root may");
    Some(result)
}

fn errors(error: &Failure) -> Vec<&Failure> {
    std::iter::once(error).chain(error.inner_errors.iter().flat_map(errors)).collect()
}

#[test]
fn a_job_at_its_bound_fails_with_the_words_of_the_walk() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED bounds that the kernel keeps: they need root");
    }
    for_each(|node| {
        let write = "dd if=/dev/zero of=file bs=64k count=32";
        let mebibyte = Some(1 << 20);
        let Some(full) = bounded(node, 0, (mebibyte, None), write) else { return };
        let found = errors(failure(&full));
        let overdraft = found.iter().find(|e| e.message == OVERDRAFT);
        let overdraft = overdraft.unwrap_or_else(|| panic!("{full:?}"));
        assert_eq!(overdraft.attributes.get("limit").and_then(|v| v.as_i64()), mebibyte);
        let own = overdraft.inner_errors.iter().any(|e| e.message.contains("exited with code"));
        assert!(own, "its own end is the cause: {full:?}");
        let disk = full.statistics.user_job_disk.as_deref().expect("measured");
        assert!((900_000..1_100_000).contains(&disk.usage) && disk.limit == mebibyte, "{disk:?}");

        let files = "for i in 1 2 3 4 5 6; do : >$i || exit 7; done";
        let full = bounded(node, 1, (None, Some(4)), files).expect("as before");
        assert!(errors(failure(&full)).iter().any(|e| e.message == OVERDRAFT), "{full:?}");

        // What fails with room left failed for another reason; what has room does well.
        let other = bounded(node, 2, (mebibyte, Some(4)), "echo x >file; exit 3").expect("as before");
        assert!(errors(failure(&other)).iter().all(|e| e.message != OVERDRAFT), "{other:?}");
        let well = bounded(node, 3, (Some(4 << 20), Some(1)), write).expect("as before");
        assert!(matches!(well.outcome, JobOutcome::Completed { .. }), "{well:?}");
        assert!(well.statistics.user_job_disk.is_some_and(|disk| disk.usage >= 2 << 20));
    });
}
