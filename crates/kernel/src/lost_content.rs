//! Files whose content is missing on the server although the tree refers to it (S20): the store was damaged, or somebody
//! has removed a blob. The first job that needs such a file finds out.

use crate::{Kernel, Topic};
use cypress::Body;
use std::collections::BTreeMap;
use vocab::{Failure, JobOutcome, ObjectId, OperationId, Time};
use yson::Value;

/// The oldest ones are dropped when there are more.
const KEPT: usize = 100;

/// What is known to be missing, by blob. Not durable: after a restart the next job that needs it finds out again.
#[derive(Default)]
pub(crate) struct LostContents(BTreeMap<u64, LostContent>);

struct LostContent {
    file: ObjectId,
    path: String,
    since: Time,
    why: String,
}

impl Kernel {
    /// Names path and blob in the error of a job whose file has no content, and remembers them for the alert.
    pub(crate) fn name_lost_content(
        &mut self,
        now: Time,
        operation: OperationId,
        outcome: JobOutcome,
    ) -> JobOutcome {
        let (reason, error) = match outcome {
            JobOutcome::Aborted { reason, error } => (reason, error),
            other => return other,
        };
        let attribute = |name: &str| error.find_attribute("missing_blob").and(error.find_attribute(name));
        let file = attribute("file_id").and_then(|id| id.as_str()?.parse::<ObjectId>().ok());
        let revision = attribute("revision").and_then(Value::as_u64);
        let (Some(file), Some(revision)) = (file, revision) else {
            return JobOutcome::Aborted { reason, error };
        };
        let Some((blob, path)) = self.pinned_file(operation, file, revision) else {
            return JobOutcome::Aborted { reason, error };
        };
        let text = format!("The content of file {path} is missing on the server: blob {blob}");
        let lost = LostContent { file, path: path.clone(), since: now, why: error.to_string() };
        let contents = &mut self.lost_contents.0;
        contents.entry(blob).or_insert(lost);
        if contents.len() > KEPT
            && let Some(oldest) = contents.iter().min_by_key(|(_, lost)| lost.since).map(|(blob, _)| *blob)
        {
            contents.remove(&oldest);
        }
        self.changes.touch(Topic::Operations);
        let named = Failure::new(text)
            .with("path", path)
            .with("missing_blob", blob)
            .with("abort_reason", reason)
            .because(error);
        JobOutcome::Aborted { reason, error: named }
    }

    /// Blob and path of a file of an operation's jobs.
    fn pinned_file(&self, operation: OperationId, file: ObjectId, revision: u64) -> Option<(u64, String)> {
        let operation = self.operations.get(&operation)?;
        let is_meant = |artifact: &vocab::Artifact| artifact.file_id == file && artifact.revision == revision;
        // Both lists have the files of each task in the order of the spec.
        let requests = operation.controller.file_requests().flat_map(|(_, files)| files);
        let mut files = operation.pinned.iter().zip(requests);
        let (pinned, request) = files.find(|(pinned, _)| is_meant(&pinned.artifact))?;
        Some((pinned.blob, request.path.text()))
    }

    /// `file_content_lost`, for each file that still has such a content.
    pub(crate) fn alerts_of_lost_contents(&self) -> impl Iterator<Item = Failure> {
        let still_there = |blob: u64, lost: &LostContent| {
            let node = self.tree.expect_node(lost.file).ok();
            node.is_some_and(|node| matches!(&node.body, Body::File(Some(c)) if c.blob == blob))
        };
        let lost = self.lost_contents.0.iter().filter(move |(blob, lost)| still_there(**blob, lost));
        lost.map(|(blob, lost)| {
            let text = format!(
                "The content of file {} is missing on the server: blob {blob}. Upload the file again",
                lost.path
            );
            Failure::new(text)
                .with("alert_type", "file_content_lost")
                .with("path", lost.path.as_str())
                .with("blob", *blob)
                .with("since", lost.since)
                .because(Failure::new(lost.why.as_str()))
        })
    }
}
