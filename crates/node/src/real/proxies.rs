//! The socket that proxies call, and one listener per call.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use jobproxy::protocol::{FrameReader, FromProxy, Holds, PROXY_PROTOCOL_VERSION};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::UnboundedSender;
use vocab::{JobId, Time};

use super::outlet::Outlet;
use super::{RealNews, processes};
use crate::NodeError;
use crate::agent::News;

/// Tells connections of one proxy apart.
pub(crate) type CallId = u64;

/// A proxy's first words.
#[derive(Debug)]
pub(crate) struct Call {
    pub id: CallId,
    pub job_id: JobId,
    pub pid: u32,
    pub pid_start_time: u64,
    pub start_time: Option<Time>,
    pub holds: Holds,
    pub outlet: Outlet,
}

/// Takes the place of whatever an earlier life has left there.
pub(crate) fn bind(path: &Path) -> Result<UnixListener, NodeError> {
    let length = path.as_os_str().len();
    if length > crate::config::MAX_SOCKET_PATH {
        let max = crate::config::MAX_SOCKET_PATH;
        return Err(NodeError::SocketPath { path: path.to_owned(), length, max });
    }
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(NodeError::io("remove", path)(e)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(NodeError::io("listen on", path))?;
    // Proxies run as the user of the node; nobody else has anything to say here.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .map_err(NodeError::io("restrict", path))?;
    Ok(listener)
}

/// Accepts for ever.
pub(crate) async fn accept(listener: UnixListener, news: UnboundedSender<News<RealNews>>) {
    let mut next: CallId = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                next += 1;
                tokio::spawn(listen(next, Arc::new(stream), news.clone()));
            }
            Err(e) => {
                // Out of descriptors, most likely: proxies try again every second.
                tracing::warn!("cannot accept a job proxy: {e}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

/// Turns what one proxy says into news, until it stops.
async fn listen(id: CallId, stream: Arc<UnixStream>, news: UnboundedSender<News<RealNews>>) {
    let mut frames = FrameReader::default();
    let mut buffer = [0; 8192];
    let mut job: Option<JobId> = None;
    'reading: loop {
        // First try, then wait: the words of a short job are often there already.
        match stream.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => frames.push(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                if stream.readable().await.is_err() {
                    break;
                }
                continue;
            }
            Err(_) => break,
        }
        loop {
            let message = match frames.next_message::<FromProxy>() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(e) => {
                    tracing::warn!("job proxy {job:?} does not speak our language: {e}");
                    break 'reading;
                }
            };
            let item = match (job, message) {
                (None, FromProxy::Hello { version, job_id, pid, pid_start_time, start_time, holds }) => {
                    if version != PROXY_PROTOCOL_VERSION {
                        tracing::warn!("job proxy {pid} of job {job_id} speaks version {version}: killed");
                        processes::kill(pid, pid_start_time);
                    }
                    job = Some(job_id);
                    let outlet = Outlet::new(Arc::clone(&stream));
                    RealNews::Called(Call { id, job_id, pid, pid_start_time, start_time, holds, outlet })
                }
                (Some(job_id), message) => RealNews::Said(job_id, message),
                (None, _) => break 'reading,
            };
            if news.send(News::Hands(item)).is_err() {
                return;
            }
        }
    }
    if let Some(job_id) = job {
        let _ = news.send(News::Hands(RealNews::HungUp(job_id, id)));
    }
}
