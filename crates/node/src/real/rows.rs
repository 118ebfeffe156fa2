//! Rows of tables: those that a job is to read come before it starts, those that it has written go to the
//! server before it hears of the end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jobproxy::rows::{self, Output};
use nodecore::{NodeInput, Source, Supply};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use vocab::{Failure, JobId, code};
use wire::proto::{CHUNK_SIZE, blob_lost, id_bytes, pb};
use yson::Value;

use super::download::LOST_ATTEMPTS;
use super::{RealHands, RealNews, stderr};
use crate::link::CurrentClient;

/// Pieces on their way to the server.
const PIECES_AHEAD: usize = 4;

/// What of a job goes to the server.
pub(super) struct Remainder {
    pub stderr: bool,
    pub rows: bool,
    pub fail_context: bool,
}

impl RealHands {
    pub(super) fn fetch_rows(&mut self, job_id: JobId, slot: u32) {
        let job = self.layout.job(slot);
        let patience = Duration::from_micros(self.config.artifact_timeout.0);
        let current = self.current.clone();
        // The file is made here and once: a fetch that goes on when the job is long gone never comes near the
        // rows of the next job of the slot.
        let made = rows::make_directory(&job).and_then(|()| std::fs::File::create(rows::input(&job)));
        self.beside(async move {
            let fetched = match made {
                Ok(file) => fetch(current, job_id, (File::from_std(file), &job), patience).await,
                Err(e) => Err(local(&job, &e)),
            };
            let result = fetched.map(|size| Supply { source: Source::Rows, size });
            RealNews::Input(NodeInput::ArtifactFetched { job_id, result })
        });
    }

    /// What the job has left goes to the server.
    pub(super) fn upload(&mut self, job_id: JobId, slot: u32, what: Remainder) {
        let stderr = self.stderr_source(job_id).filter(|_| what.stderr);
        let current = self.current.clone();
        let job = self.layout.job(slot);
        self.beside(async move {
            let mut result = Ok(());
            if let Some(source) = stderr {
                result = stderr::upload(current.clone(), job_id, source).await;
            }
            if what.rows && result.is_ok() {
                result = upload_all(current.clone(), job_id, &job).await;
            }
            if what.fail_context && result.is_ok() {
                result = upload_fail_context(current, job_id, rows::fail_context(&job)).await;
            }
            if let Err(e) = &result {
                tracing::warn!("what job {job_id} has left was not uploaded: {e}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            RealNews::Input(NodeInput::Uploaded { job_id, result })
        });
    }
}

/// Fetches the rows, over lost connections, for as long as more of them come at least every `patience`; each
/// attempt begins at the first row. Gives the bytes.
async fn fetch(
    current: CurrentClient,
    job_id: JobId,
    (mut file, job): (File, &Path),
    patience: Duration,
) -> Result<u64, Failure> {
    let disk = |e: &std::io::Error| local(job, e);
    let mut since = Instant::now();
    let (mut lost, mut most) = (0, 0);
    loop {
        file.set_len(0).await.map_err(|e| disk(&e))?;
        file.rewind().await.map_err(|e| disk(&e))?;
        let mut received = 0;
        let why = match attempt(&current, job_id, &mut file, &mut received).await {
            Ok(()) => {
                file.flush().await.map_err(|e| disk(&e))?;
                return Ok(received);
            }
            Err(Stopped::Disk(e)) => return Err(disk(&e)),
            Err(Stopped::ForGood(why)) => return Err(cannot(&why)),
            Err(Stopped::Lost(why, blob)) => {
                lost += 1;
                if lost == LOST_ATTEMPTS {
                    let blob = blob.map_or(Value::from(true), Value::from);
                    return Err(cannot(&why).with("missing_blob", blob));
                }
                why
            }
            Err(Stopped::ForNow(why)) => why,
        };
        // Each attempt begins at the first row: one that stops where another one did is no progress.
        if received > most {
            (since, most) = (Instant::now(), received);
        }
        if since.elapsed() > patience {
            return Err(cannot(&why));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn cannot(why: &str) -> Failure {
    Failure::coded(code::ARTIFACT_DOWNLOAD_FAILED, format!("Cannot fetch the rows of the job: {why}"))
}

enum Stopped {
    ForNow(String),
    ForGood(String),
    /// A chunk of the table is missing or damaged, and its blob if the server names it.
    Lost(String, Option<u64>),
    Disk(std::io::Error),
}

async fn attempt(
    current: &CurrentClient,
    job_id: JobId,
    file: &mut File,
    received: &mut u64,
) -> Result<(), Stopped> {
    let mut client =
        current.get().ok_or_else(|| Stopped::ForNow("no connection to the server".to_owned()))?;
    let refused = |status: tonic::Status| match status.code() {
        // A job that is not known gets none.
        Code::NotFound | Code::InvalidArgument => Stopped::ForGood(status.message().to_owned()),
        Code::DataLoss => Stopped::Lost(status.message().to_owned(), blob_lost(&status)),
        _ => Stopped::ForNow(status.message().to_owned()),
    };
    let request = pb::RowsRequest { job_id: id_bytes(job_id.0) };
    let mut pieces = client.fetch_rows(request).await.map_err(refused)?.into_inner();
    while let Some(piece) = pieces.message().await.map_err(refused)? {
        file.write_all(&piece.data).await.map_err(Stopped::Disk)?;
        *received += piece.data.len() as u64;
    }
    Ok(())
}

async fn upload_all(current: CurrentClient, job_id: JobId, job: &Path) -> Result<(), Failure> {
    let outputs = rows::outputs(job, job_id)
        .map_err(|e| Failure::new(format!("Cannot find the rows that the job has written: {e}")))?;
    for output in outputs {
        let mut client = current.get().ok_or_else(|| Failure::new("No connection to the server"))?;
        let (sender, receiver) = channel(PIECES_AHEAD);
        let reader = tokio::spawn(send(job_id, rows::output(job, output.table), output, sender));
        let sent = client.upload_rows(ReceiverStream::new(receiver)).await;
        reader.await.map_err(|e| Failure::new(e.to_string()))??;
        sent.map_err(|status| Failure::new(status.message().to_owned()))?;
    }
    Ok(())
}

/// The first piece says what comes.
async fn send(
    job_id: JobId,
    path: PathBuf,
    output: Output,
    sender: Sender<pb::RowsChunk>,
) -> Result<(), Failure> {
    let mut file = File::open(&path).await.map_err(|e| local(&path, &e))?;
    let mut piece = pb::RowsChunk {
        job_id: id_bytes(job_id.0),
        table: output.table as u32,
        summary: yson::to_binary(&output.summary.to_value()),
        data: Default::default(),
    };
    loop {
        let mut data = Vec::with_capacity(CHUNK_SIZE);
        let read = (&mut file).take(CHUNK_SIZE as u64).read_to_end(&mut data).await;
        let read = read.map_err(|e| local(&path, &e))?;
        piece.data = data.into();
        let next = pb::RowsChunk { table: piece.table, ..Default::default() };
        if read == 0 || sender.send(std::mem::replace(&mut piece, next)).await.is_err() {
            return Ok(()); // all of it, or the server has stopped listening: its status says why
        }
    }
}

async fn upload_fail_context(current: CurrentClient, job_id: JobId, path: PathBuf) -> Result<(), Failure> {
    let mut client = current.get().ok_or_else(|| Failure::new("No connection to the server"))?;
    let (sender, receiver) = channel(PIECES_AHEAD);
    let reader = tokio::spawn(async move {
        let mut file = File::open(&path).await.map_err(|e| local(&path, &e))?;
        let mut id = id_bytes(job_id.0);
        loop {
            let mut data = Vec::with_capacity(CHUNK_SIZE);
            let read = (&mut file).take(CHUNK_SIZE as u64).read_to_end(&mut data).await;
            let read = read.map_err(|e| local(&path, &e))?;
            let piece = pb::TextChunk { job_id: std::mem::take(&mut id), data: data.into() };
            if read == 0 || sender.send(piece).await.is_err() {
                return Ok(()); // all of it, or the server has stopped listening: its status says why
            }
        }
    });
    let sent = client.upload_fail_context(ReceiverStream::new(receiver)).await;
    reader.await.map_err(|e| Failure::new(e.to_string()))??;
    stderr::settled(sent)
}

fn local(path: &Path, error: &std::io::Error) -> Failure {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => code::NOT_ENOUGH_DISK_SPACE,
        _ => code::ARTIFACT_DOWNLOAD_FAILED,
    };
    Failure::coded(code, format!("Rows of the job in {}: {error}", path.display()))
}
