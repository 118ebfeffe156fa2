//! Stderr of jobs: reading a part of it for the server, bringing all of it there.

use std::path::PathBuf;

use jobproxy::protocol::ToProxy;
use nodecore::{KeptStderr, Remains};
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Response, Status};
use vocab::{Failure, JobId};
use wire::NodeMessage;
use wire::proto::{CHUNK_SIZE, id_bytes, pb};

use super::{RealHands, RealNews, say};
use crate::link::CurrentClient;

/// Longest piece in one answer; who wants more asks again.
pub(crate) const LONGEST_ANSWER: u64 = 8 << 20;

/// The kept stderr of one job on disk.
#[derive(Clone, Debug)]
pub(crate) struct StderrSource {
    pub job_directory: PathBuf,
    pub max_size: u64,
    /// All bytes written by the job.
    pub total: u64,
}

impl StderrSource {
    /// A part of the kept text.
    pub fn read(&self, offset: u64, limit: u64) -> Result<Vec<u8>, Failure> {
        match jobproxy::stderr::read(&self.job_directory, self.max_size, self.total, offset, limit) {
            Ok(bytes) => Ok(bytes),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(Failure::new(format!("Cannot read the job's stderr: {e}"))),
        }
    }

    /// What there is of a job whose proxy did not say how much it wrote. A file that is not full is
    /// the whole text; of a full one at least the proxy's last count is known.
    pub fn of_the_dead(mut self) -> Remains {
        let path = self.job_directory.join(jobproxy::stderr::STDERR_FILE);
        let length = std::fs::metadata(path).map_or(0, |m| m.len());
        self.total = if length < self.max_size { length } else { self.total.max(length) };
        let stderr = match self.total {
            0 => KeptStderr::None,
            _ => match self.read(0, wire::INLINE_STDERR_MAX as u64 + 1) {
                Ok(bytes) if bytes.len() <= wire::INLINE_STDERR_MAX => KeptStderr::Inline(bytes),
                Ok(_) => KeptStderr::OnDisk,
                Err(_) => KeptStderr::None,
            },
        };
        Remains { stderr_size: self.total, stderr }
    }
}

/// Brings the kept stderr to the server.
pub(crate) async fn upload(
    current: CurrentClient,
    job_id: JobId,
    source: StderrSource,
) -> Result<(), Failure> {
    let mut client = current.get().ok_or_else(|| Failure::new("No connection to the server"))?;
    let (sender, receiver) = channel(4);
    let reader = tokio::task::spawn_blocking(move || read_all(&source, job_id, &sender));
    let sent = client.upload_stderr(ReceiverStream::new(receiver)).await;
    reader.await.map_err(|e| Failure::new(e.to_string()))??;
    settled(sent)
}

/// What the answer of the server means for the upload of a text. One that is larger than the server allows is given up: it would be
/// as large the next time, and the end of the job must be told.
pub(super) fn settled(sent: Result<Response<pb::Empty>, Status>) -> Result<(), Failure> {
    match sent {
        Ok(_) => Ok(()),
        Err(status) if status.code() == Code::OutOfRange => {
            tracing::warn!("the server does not keep what a job has left: {}", status.message());
            Ok(())
        }
        Err(status) => Err(Failure::new(status.message().to_owned())),
    }
}

fn read_all(source: &StderrSource, job_id: JobId, sender: &Sender<pb::TextChunk>) -> Result<(), Failure> {
    let mut offset = 0;
    loop {
        let data = source.read(offset, CHUNK_SIZE as u64)?;
        let job_id = if offset == 0 { id_bytes(job_id.0) } else { Vec::new() };
        if data.is_empty() && offset > 0 {
            return Ok(());
        }
        let last = data.is_empty();
        offset += data.len() as u64;
        if sender.blocking_send(pb::TextChunk { job_id, data: data.into() }).is_err() || last {
            return Ok(()); // the server has stopped listening: its status says why
        }
    }
}

impl RealHands {
    pub(super) fn stderr_source(&self, job_id: JobId) -> Option<StderrSource> {
        let held = self.held.get(&job_id)?;
        Some(StderrSource {
            job_directory: self.layout.job(held.slot),
            max_size: held.max_stderr_size,
            total: held.stderr_total,
        })
    }

    /// A living proxy knows best; after it the file does.
    pub(super) fn read_stderr(&mut self, request_id: u64, job_id: JobId, offset: u64, limit: u64) {
        let limit = limit.min(LONGEST_ANSWER);
        if let Some(held) = self.held.get_mut(&job_id)
            && let Some((_, outlet)) = held.call.as_mut().filter(|_| !held.ended && limit > 0)
        {
            held.questions.push((request_id, offset, limit));
            return say(outlet, &ToProxy::ReadStderr { request_id, offset, limit });
        }
        let source = self.stderr_source(job_id);
        self.blocking(move || {
            let result = source.map_or(Ok(Vec::new()), |source| source.read(offset, limit));
            RealNews::Send(NodeMessage::Stderr { request_id, result })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7: a text that is larger than the server allows would be uploaded again and again, and the job would never end.
    #[test]
    fn an_upload_that_is_too_large_is_given_up_and_others_are_tried_again() {
        assert!(settled(Ok(Response::new(pb::Empty {}))).is_ok());
        assert!(settled(Err(Status::out_of_range("at most 5 bytes"))).is_ok());
        for status in [Status::unavailable("later"), Status::aborted("displaced"), Status::unknown("lost")] {
            assert!(settled(Err(status)).is_err());
        }
    }
}
