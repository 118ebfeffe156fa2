//! The spawner process and its stream.

use std::path::Path;
use std::process::Child;
use std::sync::Arc;

use jobproxy::protocol::{FrameReader, FromSpawner, JobStart, SpawnerConfig, ToSpawner, encode_frame};
use jobproxy::spawner::Spawner;
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedSender;

use super::RealNews;
use super::outlet::Outlet;
use crate::NodeError;
use crate::agent::News;

/// Our end of a running spawner. When it is dropped the spawner leaves; proxies stay.
#[derive(Debug)]
pub(crate) struct SpawnerLink {
    outlet: Outlet,
    child: Child,
    frame: Vec<u8>,
}

impl SpawnerLink {
    pub fn start(
        program: &Path,
        config: &SpawnerConfig,
        news: UnboundedSender<News<RealNews>>,
    ) -> Result<SpawnerLink, NodeError> {
        let failed = || NodeError::io("start the spawner", program);
        let spawner = Spawner::start(program, config).map_err(failed())?;
        spawner.stream.set_nonblocking(true).map_err(failed())?;
        let stream = Arc::new(UnixStream::from_std(spawner.stream).map_err(failed())?);
        tokio::spawn(listen(Arc::clone(&stream), news));
        Ok(SpawnerLink { outlet: Outlet::new(stream), child: spawner.child, frame: Vec::new() })
    }

    pub fn start_job(&mut self, job: JobStart) {
        self.frame.clear();
        encode_frame(&ToSpawner::Start { job: Box::new(job) }, &mut self.frame);
        self.outlet.send(self.frame.clone());
    }

    /// After its stream has ended: takes its exit status off the system's hands.
    pub fn reap(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn listen(stream: Arc<UnixStream>, news: UnboundedSender<News<RealNews>>) {
    let mut frames = FrameReader::default();
    let mut buffer = [0; 4096];
    'reading: loop {
        if stream.readable().await.is_err() {
            break;
        }
        match stream.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => frames.push(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => break,
        }
        loop {
            match frames.next_message::<FromSpawner>() {
                Ok(Some(message)) => {
                    if news.send(News::Hands(RealNews::Spawner(message))).is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(e) => {
                    tracing::error!("the spawner does not speak our language: {e}");
                    break 'reading;
                }
            }
        }
    }
    let _ = news.send(News::Hands(RealNews::SpawnerGone));
}
