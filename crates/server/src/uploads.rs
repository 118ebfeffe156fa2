//! Uploads of nodes that are under way (S7).
//!
//! Each upload has a limit, which the kernel tells before its first byte is taken. For one thing of one job there is one upload at
//! a time: a node that begins a second one has lost the connection of the first, which ends. So the bytes that a node can
//! have on the disk are bounded by the limits of the jobs that it was given.

use kernel::Upload;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tonic::Status;
use vocab::JobId;
use yson::Value;

type Key = (JobId, Upload);

/// See the module page.
#[derive(Default)]
pub(crate) struct Uploads(Mutex<UnderWay>);

#[derive(Default)]
struct UnderWay {
    /// Number of the next permit.
    next: u64,
    /// Dropping the sender ends the upload.
    by_key: BTreeMap<Key, (u64, oneshot::Sender<()>)>,
}

/// Allows one upload. It is over when this is dropped.
pub(crate) struct Permit {
    uploads: Arc<Uploads>,
    key: Key,
    number: u64,
    limit: u64,
    room: Option<Value>,
    displaced: oneshot::Receiver<()>,
}

impl Uploads {
    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an upload as the kernel has told (`Command::LocateUpload`); `None` if nobody waits for it. An earlier one for the
    /// same thing of the same job ends.
    pub fn begin(self: &Arc<Uploads>, told: &Value, job_id: JobId, upload: Upload) -> Option<Permit> {
        let is_expected = told.get("is_expected").and_then(Value::as_bool)?;
        // An answer without a limit allows nothing.
        let limit = told.get("limit").and_then(Value::as_u64).filter(|_| is_expected)?;
        let room = told.get("room").cloned();
        let (sender, displaced) = oneshot::channel();
        let key = (job_id, upload);
        let mut under_way = self.under_way();
        under_way.next += 1;
        let number = under_way.next;
        under_way.by_key.insert(key, (number, sender));
        drop(under_way);
        Some(Permit { uploads: Arc::clone(self), key, number, limit, room, displaced })
    }
}

impl Permit {
    /// The job that the upload is for.
    pub fn job_id(&self) -> JobId {
        self.key.0
    }

    /// What is uploaded.
    pub fn upload(&self) -> Upload {
        self.key.1
    }

    /// Bytes that are taken at most.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Room by account, for rows.
    pub fn room(&self) -> Option<&Value> {
        self.room.as_ref()
    }

    /// Whether these bytes may be added.
    pub fn allows(&self, before: u64, more: usize) -> bool {
        before.saturating_add(more as u64) <= self.limit
    }

    /// Waits for the next piece. An error if a later upload has taken the place of this one.
    pub async fn unless_displaced<T>(
        &mut self,
        next: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        tokio::select! {
            biased;
            _ = &mut self.displaced => Err(Status::aborted("A later upload of the same has begun")),
            next = next => next,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut under_way = self.uploads.under_way();
        if under_way.by_key.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            under_way.by_key.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Guid;

    const JOB: JobId = JobId(Guid([1, 2, 3, 4]));

    fn begin(uploads: &Arc<Uploads>, upload: Upload, limit: u64) -> Permit {
        let told = yson::map! {"is_expected" => true, "limit" => limit}.into();
        uploads.begin(&told, JOB, upload).expect("it is expected")
    }

    /// S7: a node could upload without end for one job, and fill the disk of the server.
    #[test]
    fn an_upload_ends_at_its_limit() {
        let uploads = Arc::new(Uploads::default());
        let permit = begin(&uploads, Upload::Stderr, 100);
        assert!(permit.allows(0, 100) && permit.allows(99, 1));
        assert!(!permit.allows(0, 101) && !permit.allows(100, 1) && !permit.allows(u64::MAX, 1));
        for told in [
            yson::map! {},
            yson::map! {"is_expected" => true},
            yson::map! {"is_expected" => false, "limit" => 100u64},
        ] {
            assert!(uploads.begin(&told.into(), JOB, Upload::Stderr).is_none());
        }
    }

    /// S7: a thousand uploads of one stderr at a time had a thousand times its limit on the disk.
    #[tokio::test]
    async fn a_second_upload_of_the_same_ends_the_first() {
        let uploads = Arc::new(Uploads::default());
        let pending = || std::future::pending::<Result<(), Status>>();
        let mut first = begin(&uploads, Upload::Stderr, 100);
        let mut context = begin(&uploads, Upload::FailContext, 100);
        let mut rows = begin(&uploads, Upload::Rows { table: 0 }, 100);
        let _other_rows = begin(&uploads, Upload::Rows { table: 1 }, 100);
        let mut second = begin(&uploads, Upload::Stderr, 100);
        let ended = first.unless_displaced(pending()).await.expect_err("it was displaced");
        assert_eq!(ended.code(), tonic::Code::Aborted);
        drop(first);
        for other in [&mut context, &mut rows, &mut second] {
            other.unless_displaced(async { Ok(()) }).await.expect("it goes on");
        }
        drop((context, rows, second, _other_rows));
        assert!(uploads.under_way().by_key.is_empty(), "what is over is forgotten");
    }
}
