//! Fetching one file from the server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use vocab::{Artifact, Failure, code};
use wire::proto::{id_bytes, pb};

use super::cache::has_room;
use crate::link::CurrentClient;

/// Downloads into `path`, over lost connections, for as long as there is progress at least every
/// `patience`. Gives the size.
pub(crate) async fn download(
    current: CurrentClient,
    artifact: Artifact,
    path: PathBuf,
    patience: Duration,
) -> Result<u64, Failure> {
    if let Some(directory) = path.parent()
        && !has_room(directory, artifact.size)
    {
        return Err(Failure::coded(
            code::NOT_ENOUGH_DISK_SPACE,
            format!("Not enough disk space for a file of {} bytes", artifact.size),
        ));
    }
    let mut file = File::create(&path).await.map_err(|e| local(&path, &e))?;
    let mut received = 0;
    let mut progress = Instant::now();
    loop {
        let before = received;
        let why = match attempt(&current, &artifact, &mut file, &mut received, &path).await {
            Ok(()) if received == artifact.size => {
                file.flush().await.map_err(|e| local(&path, &e))?;
                return Ok(received);
            }
            Ok(()) => format!("the file ends after {received} of {} bytes", artifact.size),
            Err(Stopped::ForGood(error)) => return Err(error),
            Err(Stopped::ForNow(why)) => why,
        };
        if received > before {
            progress = Instant::now();
        }
        if progress.elapsed() > patience || received > artifact.size {
            return Err(Failure::coded(
                code::ARTIFACT_DOWNLOAD_FAILED,
                format!("Cannot download file {:?}: {why}", artifact.file_name),
            )
            .with("file_id", artifact.file_id)
            .with("revision", artifact.revision));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

enum Stopped {
    ForNow(String),
    ForGood(Failure),
}

async fn attempt(
    current: &CurrentClient,
    artifact: &Artifact,
    file: &mut File,
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
            Stopped::ForGood(
                Failure::coded(
                    code::ARTIFACT_DOWNLOAD_FAILED,
                    format!("Cannot download file {:?}: {}", artifact.file_name, status.message()),
                )
                .with("file_id", artifact.file_id)
                .with("revision", artifact.revision),
            )
        }
        _ => Stopped::ForNow(status.message().to_owned()),
    };
    let disk = |e: std::io::Error| Stopped::ForGood(local(path, &e));
    file.seek(std::io::SeekFrom::Start(*received)).await.map_err(disk)?;
    let mut chunks = client.fetch_file(request).await.map_err(refused)?.into_inner();
    while let Some(chunk) = chunks.message().await.map_err(refused)? {
        file.write_all(&chunk.data).await.map_err(disk)?;
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
