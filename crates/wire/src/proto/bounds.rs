//! Bounds of what one message says (S7): the machine of a node may be in the wrong hands, and the server keeps some of this in
//! memory and in its store.
//!
//! A node that keeps to the protocol never exceeds the bounds that [`Malformed`] reports. Texts and statistics that a *job* can
//! make long are cut instead: a job must not be able to separate its node from the server.

use prost::Message;
use vocab::job::INLINE_STDERR_MAX;

use super::{Malformed, pb};

/// Longest name in a Hello: an address, the job environment, the identifier of the data directory. DNS names have 253 bytes.
pub const LONGEST_NAME: usize = 1024;
/// All tags of a node together.
pub const TAGS_MAX: usize = 1 << 20;
/// All alerts of a node together. Each is a sentence or two.
pub const ALERTS_MAX: usize = 1 << 20;
/// Longest error with its inner errors, encoded. Errors of jobs have lists of processes and the ends of outputs: a few kilobytes.
pub const FAILURE_MAX: usize = 1 << 20;
/// Longest statistics of a job, encoded: `custom_statistics_count_limit` is at most 1024, and a name has at most 512 characters.
pub const STATISTICS_MAX: usize = 4 << 20;
/// Characters that are kept of the message of an error that is too long.
const KEPT_OF_MESSAGE: usize = 2000;

fn demand(field: &'static str, limit: usize, found: usize) -> Result<(), Malformed> {
    match found <= limit {
        true => Ok(()),
        false => Err(Malformed::TooLong { field, limit, found }),
    }
}

/// Refuses a Hello with names, tags or alerts that no node has.
pub(super) fn check_hello(hello: &pb::Hello) -> Result<(), Malformed> {
    demand("address", LONGEST_NAME, hello.address.len())?;
    demand("job_environment", LONGEST_NAME, hello.job_environment.len())?;
    demand("data_id", LONGEST_NAME, hello.data_id.len())?;
    // An empty tag takes memory, too.
    demand("tags", TAGS_MAX, hello.tags.iter().map(|tag| tag.len() + size_of::<String>()).sum())?;
    check_alerts(&hello.alerts)
}

/// Refuses alerts that are too long together.
pub(super) fn check_alerts(alerts: &[pb::Failure]) -> Result<(), Malformed> {
    let sizes = alerts.iter().map(|alert| alert.encoded_len() + size_of::<pb::Failure>());
    demand("alerts", ALERTS_MAX, sizes.sum())
}

/// Refuses a stderr that should have been uploaded.
pub(super) fn check_inline_stderr(stderr: Option<&Vec<u8>>) -> Result<(), Malformed> {
    demand("stderr", INLINE_STDERR_MAX, stderr.map_or(0, Vec::len))
}

/// Cuts an error that is too long: its code and the beginning of its message stay.
pub(super) fn cut_failure(failure: pb::Failure) -> pb::Failure {
    let found = failure.encoded_len();
    if found <= FAILURE_MAX {
        return failure;
    }
    let kept: String = failure.message.chars().take(KEPT_OF_MESSAGE).collect();
    let message = format!("{kept} (cut: the error had {found} bytes, and at most {FAILURE_MAX} are kept)");
    pb::Failure { code: failure.code, message, ..pb::Failure::default() }
}

/// Drops the custom statistics of a job if its statistics are too long; refuses those that are still too long.
pub(super) fn cut_statistics(mut statistics: pb::JobStatistics) -> Result<pb::JobStatistics, Malformed> {
    if statistics.encoded_len() > STATISTICS_MAX {
        statistics.custom = Vec::new();
        demand("statistics", STATISTICS_MAX, statistics.encoded_len())?;
    }
    Ok(statistics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FinishedJob, NodeMessage};
    use vocab::Failure;

    fn hello() -> pb::Hello {
        pb::Hello { resource_limits: Some(pb::Resources::default()), ..pb::Hello::default() }
    }

    fn refusal(hello: pb::Hello) -> String {
        let message = pb::NodeMessage { message: Some(pb::node_message::Message::Hello(hello)) };
        NodeMessage::try_from(message).expect_err("more than any node has").to_string()
    }

    /// S7: a node whose machine is taken over could fill the memory of the server with tags and alerts.
    #[test]
    fn a_hello_with_more_than_any_node_has_is_refused() {
        let long = "x".repeat(LONGEST_NAME + 1);
        let alert = pb::Failure { message: "x".repeat(ALERTS_MAX), ..pb::Failure::default() };
        for (field, bad) in [
            ("address", pb::Hello { address: long.clone(), ..hello() }),
            ("job_environment", pb::Hello { job_environment: long.clone(), ..hello() }),
            ("data_id", pb::Hello { data_id: long.clone(), ..hello() }),
            ("tags", pb::Hello { tags: vec![String::new(); TAGS_MAX / size_of::<String>() + 1], ..hello() }),
            ("alerts", pb::Hello { alerts: vec![alert.clone()], ..hello() }),
        ] {
            let refused = refusal(bad);
            assert!(refused.contains(field) && refused.contains("expected at most"), "{refused}");
        }
        assert!(check_alerts(&[alert]).is_err());
        check_hello(&hello()).expect("nothing is too long");
    }

    /// S7: errors and statistics are written to the store with the end of each job, and had no bound.
    #[test]
    fn long_errors_and_custom_statistics_are_cut() {
        let long = pb::Failure { code: 7, message: "x".repeat(FAILURE_MAX + 1), ..pb::Failure::default() };
        let cut = Failure::try_from(long).expect("cut, not refused");
        assert!(cut.code == 7 && cut.message.starts_with("xxx") && cut.message.len() < 3000, "{cut}");
        assert!(cut.message.contains("at most 1048576 are kept"), "{cut}");
        let short = pb::Failure { message: "x".repeat(FAILURE_MAX / 2), ..pb::Failure::default() };
        assert_eq!(cut_failure(short.clone()), short);
        let custom = pb::CustomStatistic { name: "x".repeat(STATISTICS_MAX), ..Default::default() };
        let long = pb::JobStatistics { exec: 5, custom: vec![custom], ..Default::default() };
        let cut = cut_statistics(long).expect("without the custom ones they are short");
        assert!(cut.exec == 5 && cut.custom.is_empty());
        let volumes = vec![pb::TmpfsUsage::default(); STATISTICS_MAX];
        cut_statistics(pb::JobStatistics { user_job_tmpfs_volumes: volumes, ..Default::default() })
            .expect_err("no job has so many volumes");
    }

    /// S7: a stderr in the report of an end went around the bound of uploaded ones.
    #[test]
    fn a_long_stderr_is_not_taken_inside_of_a_report() {
        let end = |length| pb::FinishedJob { stderr: Some(vec![b'x'; length]), ..Default::default() };
        let refused = FinishedJob::try_from(end(INLINE_STDERR_MAX + 1)).expect_err("too long");
        assert!(matches!(refused, Malformed::TooLong { field: "stderr", .. }), "{refused}");
        let other = FinishedJob::try_from(end(INLINE_STDERR_MAX)).expect_err("it has no identity");
        assert_eq!(other, Malformed::Missing("identity"));
    }
}
