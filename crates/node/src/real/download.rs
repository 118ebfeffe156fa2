//! Fetching one file from the server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use vocab::{Artifact, Failure, code};
use wire::proto::{id_bytes, pb};

use super::cache::has_room;
use super::seal::{self, Digest, Look};
use crate::link::CurrentClient;

/// A complete file.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub size: u64,
    pub digest: Digest,
    /// It was in the cache already.
    pub was_known: bool,
}

/// Takes the file `known`, which an earlier life of the agent has left, if it is as it was; else downloads into `path`.
pub(crate) async fn supply(
    current: CurrentClient,
    artifact: Artifact,
    known: PathBuf,
    path: PathBuf,
    patience: Duration,
) -> Result<Fetched, Failure> {
    let size = artifact.size;
    let unchanged = tokio::task::spawn_blocking(move || {
        let has_size = Look::of(&known).is_some_and(|look| look.size == size);
        let digest = has_size.then(|| seal::holds(&known).ok().flatten()).flatten();
        if digest.is_none() {
            // It takes room that the download may need. Jobs that have it open keep it.
            let _ = std::fs::remove_file(seal::path_of(&known)).and_then(|()| std::fs::remove_file(&known));
        }
        digest
    });
    if let Ok(Some(digest)) = unchanged.await {
        return Ok(Fetched { size, digest, was_known: true });
    }
    download(current, artifact, path, patience).await
}

/// Downloads into `path`, over lost connections, for as long as there is progress at least every `patience`.
async fn download(
    current: CurrentClient,
    artifact: Artifact,
    path: PathBuf,
    patience: Duration,
) -> Result<Fetched, Failure> {
    if let Some(directory) = path.parent()
        && !has_room(directory, artifact.size)
    {
        return Err(Failure::coded(
            code::NOT_ENOUGH_DISK_SPACE,
            format!("Not enough disk space for a file of {} bytes", artifact.size),
        ));
    }
    // What an earlier attempt has left, whatever it is, is not written to.
    let _ = tokio::fs::remove_file(&path).await;
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(&path).await.map_err(|e| local(&path, &e))?;
    let (mut received, mut hasher) = (0, Sha256::new());
    let mut progress = Instant::now();
    let mut lost = 0;
    loop {
        let before = received;
        let why = match attempt(&current, &artifact, (&mut file, &mut hasher), &mut received, &path).await {
            Ok(()) if received == artifact.size => {
                file.flush().await.map_err(|e| local(&path, &e))?;
                return Ok(Fetched { size: received, digest: hasher.finalize().into(), was_known: false });
            }
            Ok(()) => format!("the file ends after {received} of {} bytes", artifact.size),
            Err(Stopped::ForGood(error)) => return Err(error),
            Err(Stopped::Lost(why)) => {
                lost += 1;
                if lost == LOST_ATTEMPTS {
                    return Err(cannot_download(&artifact, &why).with("missing_blob", true));
                }
                why
            }
            Err(Stopped::ForNow(why)) => why,
        };
        if received > before {
            progress = Instant::now();
        }
        if progress.elapsed() > patience || received > artifact.size {
            return Err(cannot_download(&artifact, &why));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The server says so many times that it has lost the content before that is believed: it may be restoring it.
pub(super) const LOST_ATTEMPTS: u32 = 3;

fn cannot_download(artifact: &Artifact, why: &str) -> Failure {
    let text = format!("Cannot download file {:?}: {why}", artifact.file_name);
    let failure = Failure::coded(code::ARTIFACT_DOWNLOAD_FAILED, text);
    failure.with("file_id", artifact.file_id).with("revision", artifact.revision)
}

enum Stopped {
    ForNow(String),
    /// The server does not have the content any more.
    Lost(String),
    ForGood(Failure),
}

async fn attempt(
    current: &CurrentClient,
    artifact: &Artifact,
    (file, hasher): (&mut File, &mut Sha256),
    received: &mut u64,
    path: &std::path::Path,
) -> Result<(), Stopped> {
    let mut client =
        current.get().ok_or_else(|| Stopped::ForNow("no connection to the server".to_owned()))?;
    let request = pb::FileRequest {
        file_id: id_bytes(artifact.file_id.0),
        revision: artifact.revision,
        offset: *received,
    };
    let refused = |status: tonic::Status| match status.code() {
        tonic::Code::NotFound | tonic::Code::InvalidArgument | tonic::Code::FailedPrecondition => {
            Stopped::ForGood(cannot_download(artifact, status.message()))
        }
        tonic::Code::DataLoss => Stopped::Lost(status.message().to_owned()),
        _ => Stopped::ForNow(status.message().to_owned()),
    };
    let disk = |e: std::io::Error| Stopped::ForGood(local(path, &e));
    file.seek(std::io::SeekFrom::Start(*received)).await.map_err(disk)?;
    let mut chunks = client.fetch_file(request).await.map_err(refused)?.into_inner();
    while let Some(chunk) = chunks.message().await.map_err(refused)? {
        file.write_all(&chunk.data).await.map_err(disk)?;
        hasher.update(&chunk.data);
        *received += chunk.data.len() as u64;
    }
    Ok(())
}

fn local(path: &std::path::Path, error: &std::io::Error) -> Failure {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => code::NOT_ENOUGH_DISK_SPACE,
        _ => code::ARTIFACT_DOWNLOAD_FAILED,
    };
    Failure::coded(code, format!("Cannot write {}: {error}", path.display()))
}
