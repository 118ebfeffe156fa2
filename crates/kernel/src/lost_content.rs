//! Files and tables whose content is missing on the server although the tree refers to it (S20): the store was damaged, or
//! somebody has removed a blob. The first job that reads such a content finds out.

use crate::{Kernel, Topic};
use cypress::Body;
use std::collections::BTreeMap;
use vocab::{Failure, JobOutcome, ObjectId, OperationId, Time};

/// The oldest ones are dropped when there are more.
const KEPT: usize = 100;

/// What is known to be missing, by blob. Not durable: after a restart the next job that needs it finds out again.
#[derive(Default)]
pub(crate) struct LostContents(BTreeMap<u64, LostContent>);

struct LostContent {
    owner: Owner,
    path: String,
    since: Time,
    why: String,
}

/// The object that had the content.
#[derive(Clone, Copy)]
enum Owner {
    File(ObjectId),
    /// A table. Copies of it have the same chunks.
    Table,
}

impl Kernel {
    /// Names path and blob in the error of a job whose file or input table has no content, and remembers them for the alert.
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
        let Some((owner, blob, path)) = self.owner_of_lost(operation, &error) else {
            return JobOutcome::Aborted { reason, error };
        };
        let text = said_of(owner, &path, blob);
        let lost = LostContent { owner, path: path.clone(), since: now, why: error.to_string() };
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

    /// The file or table of an operation's jobs that an error of a node is about, with blob and path.
    fn owner_of_lost(&self, operation: OperationId, error: &Failure) -> Option<(Owner, u64, String)> {
        let blob = error.find_attribute("missing_blob")?;
        if let Some(file) = error.find_attribute("file_id") {
            let file = file.as_str()?.parse::<ObjectId>().ok()?;
            let revision = error.find_attribute("revision")?.as_u64()?;
            let (blob, path) = self.pinned_file(operation, file, revision)?;
            return Some((Owner::File(file), blob, path));
        }
        let (blob, path) = self.input_table(operation, blob.as_u64()?)?;
        Some((Owner::Table, blob, path))
    }

    /// Blob and path of a table that an operation's jobs read.
    fn input_table(&self, operation: OperationId, blob: u64) -> Option<(u64, String)> {
        let operation = self.operations.get(&operation)?;
        let piece = operation.tables.as_ref()?.pieces.iter().find(|piece| piece.blob == blob)?;
        let path = operation.spec.spec.map.as_ref()?.inputs.get(piece.table as usize)?;
        Some((blob, path.text()))
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

    /// `file_content_lost` and `table_content_lost`, for each file and table that still has such a content.
    pub(crate) fn alerts_of_lost_contents(&self) -> impl Iterator<Item = Failure> {
        let still_there = |blob: u64, lost: &LostContent| {
            let Owner::File(file) = lost.owner else { return self.tree.holds_blob(blob) };
            let node = self.tree.expect_node(file).ok();
            node.is_some_and(|node| matches!(&node.body, Body::File(Some(c)) if c.blob == blob))
        };
        let lost = self.lost_contents.0.iter().filter(move |(blob, lost)| still_there(**blob, lost));
        lost.map(|(blob, lost)| {
            let (alert_type, advice) = match lost.owner {
                Owner::File(_) => ("file_content_lost", "Upload the file again"),
                Owner::Table => ("table_content_lost", "Write the table and its copies again"),
            };
            Failure::new(format!("{}. {advice}", said_of(lost.owner, &lost.path, *blob)))
                .with("alert_type", alert_type)
                .with("path", lost.path.as_str())
                .with("blob", *blob)
                .with("since", lost.since)
                .because(Failure::new(lost.why.as_str()))
        })
    }
}

fn said_of(owner: Owner, path: &str, blob: u64) -> String {
    match owner {
        Owner::File(_) => format!("The content of file {path} is missing on the server: blob {blob}"),
        Owner::Table => format!("Rows of table {path} are missing or damaged on the server: blob {blob}"),
    }
}
