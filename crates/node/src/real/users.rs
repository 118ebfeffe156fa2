//! Users of this host that jobs run as (S9).
//!
//! The server names the uid of each job, which belongs to the job's user in the cluster. A node gives a job this uid only if
//! the node has claimed it on the host for its cluster, and if no account of the host has it. So two clusters on one host never
//! use the same uid, whatever their configurations say.
//!
//! Claims wait for other nodes of the host, and questions for accounts wait for servers of the network: both are the work of a
//! thread, the clerk, and no business of the agent's loop.

mod accounts;
mod claim;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use vocab::uids::PROBE_UID;
use vocab::{Failure, UidRange};
use wire::JobUids;

use super::room::Owner;
use crate::NodeError;
use accounts::{Accounts, Answer, FILES, GETENT, Sources};
use claim::{Claim, Part, Refusal};

/// The user of the self-check at the start. No range has it.
pub(crate) const PROBE: Owner = (PROBE_UID, PROBE_UID);

/// After this time the host is asked again whether an account has got a uid, while jobs go on with what was known.
const ASK_PERIOD: Duration = Duration::from_secs(600);
/// Uids whose answers are kept.
const KNOWN: usize = 10_000;
/// For the last word of the clerk.
const RELEASE_PATIENCE: Duration = Duration::from_secs(2);

/// May a job have a uid?
#[derive(Debug)]
pub(crate) enum Verdict {
    Granted(Owner),
    /// The clerk has to be asked: [`Users::look`].
    Ask,
    Refused(Failure),
}

/// A result of the clerk, for [`Users::claimed`] and [`Users::looked`].
#[derive(Debug)]
pub(crate) struct Claimed {
    uids: JobUids,
    /// Uids outside of `uids.claim` that jobs of this node have.
    kept: Vec<u32>,
    result: Result<(), Failure>,
}

#[derive(Debug)]
pub(crate) struct Looked {
    uid: u32,
    /// The part that is claimed now.
    claim: Option<JobUids>,
    answer: Answer,
}

impl Looked {
    /// Which uid was asked for.
    pub fn uid(&self) -> u32 {
        self.uid
    }
}

/// The uids of jobs, as the agent's loop knows them.
#[derive(Debug)]
pub(crate) struct Users {
    /// As the server said, with the part that is claimed.
    claimed: Option<JobUids>,
    /// Claimed as well: uids outside of it that jobs have.
    kept: Vec<u32>,
    /// Uids that no account has, and when that was last asked.
    known: FxHashMap<u32, Instant>,
    /// Files of the host: looked at for each job.
    accounts: Accounts,
    /// Users of slots, of release 0.1, that sandboxes belong to.
    of_slots: Vec<u32>,
    tasks: Sender<Task>,
    clerk: Option<JoinHandle<()>>,
    /// For the log, which tells each refusal once.
    last_refusal: Option<String>,
}

impl Users {
    /// Of a node with this data directory; nothing is claimed yet.
    pub fn new(data_directory: &Path, boot_id: &str, of_slots: Vec<u32>) -> Result<Users, NodeError> {
        let places = datadir::runtime_directories()?;
        let host = Host { places, files: FILES.map(PathBuf::from).into(), getent: GETENT.into() };
        Users::of_host(data_directory, boot_id, of_slots, host)
    }

    fn of_host(
        data_directory: &Path,
        boot_id: &str,
        of_slots: Vec<u32>,
        host: Host,
    ) -> Result<Users, NodeError> {
        let (tasks, inbox) = channel();
        let clerk = Clerk {
            claim: Claim::new(data_directory, boot_id, host.places),
            accounts: Accounts::new(host.files.clone()),
            sources: Sources::new(&host.getent),
            current: None,
            kept: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("uids".to_owned());
        let thread = thread.spawn(move || clerk.serve(&inbox));
        Ok(Users {
            claimed: None,
            kept: Vec::new(),
            known: FxHashMap::default(),
            accounts: Accounts::new(host.files),
            of_slots,
            tasks,
            clerk: Some(thread.map_err(NodeError::io("start a thread in", data_directory))?),
            last_refusal: None,
        })
    }

    /// Claims what the server says, and what jobs of this node have besides: after a change of the range they still run, and
    /// no other cluster may get their uids. `done` is called by the clerk; its result is for [`Users::claimed`].
    pub fn claim(
        &mut self,
        wanted: JobUids,
        living: impl Iterator<Item = u32>,
        done: impl FnOnce(Claimed) + Send + 'static,
    ) {
        // What was claimed for jobs stays claimed.
        let before = self.claimed.filter(|b| b.cluster_id == wanted.cluster_id && b.range == wanted.range);
        let claim = match before {
            Some(before) if before.claim.last() > wanted.claim.last() => before.claim,
            _ => wanted.claim,
        };
        let uids = JobUids { claim, ..wanted };
        let mut kept: Vec<u32> = living.filter(|uid| !claim.contains(*uid)).collect();
        kept.sort_unstable();
        kept.dedup();
        if let Some(uid) = self.of_slots.iter().find(|uid| wanted.range.contains(**uid)) {
            let text = format!(
                "uid {uid} of {} for jobs is the user of a slot on this node, of release 0.1, and files of jobs of others may have \
                 it: give option job_uids of the server another range",
                wanted.range
            );
            let result = Err(Failure::new(text).with("job_uids", wanted.range.to_string()));
            return done(Claimed { uids, kept, result });
        }
        self.send(Task::Claim(uids, kept, Box::new(done)));
    }

    /// What became of a claim. A refusal leaves nothing claimed that jobs could be started with.
    pub fn claimed(&mut self, claimed: Claimed) -> Result<(), Failure> {
        match &claimed.result {
            Ok(()) => {
                (self.claimed, self.kept) = (Some(claimed.uids), claimed.kept);
                self.last_refusal = None;
            }
            Err(why) => {
                (self.claimed, self.kept) = (None, Vec::new());
                let text = why.to_string();
                if self.last_refusal.as_ref() != Some(&text) {
                    tracing::warn!("jobs cannot start: {text}");
                }
                self.last_refusal = Some(text);
            }
        }
        claimed.result
    }

    /// Is the uid claimed at this moment?
    pub fn has(&self, uid: u32) -> bool {
        self.claimed.is_some_and(|claimed| claimed.claim.contains(uid)) || self.kept.contains(&uid)
    }

    /// User and group of a job that the server gives this uid.
    pub fn of(&mut self, uid: Option<u32>) -> Verdict {
        let Some(uid) = uid else {
            let text = "The server named no user of the host for the job: update the server to the version of the node";
            return Verdict::Refused(Failure::new(text));
        };
        let Some(claimed) = self.claimed else {
            return Verdict::Refused(refused(uid, "the node has claimed no uids on this host"));
        };
        if uid == 0 || !(claimed.range.contains(uid) || self.kept.contains(&uid)) {
            let why = format!("the uids of jobs of this cluster are {}", claimed.range);
            return Verdict::Refused(refused(uid, &why));
        }
        match self.accounts.holder_within(uid, uid) {
            Ok(None) => {}
            Ok(Some(holder)) => return Verdict::Refused(refused(uid, &format!("it belongs to {holder}"))),
            Err(why) => return Verdict::Refused(refused(uid, &why)),
        }
        match self.known.get(&uid) {
            Some(_) if self.has(uid) => Verdict::Granted((uid, uid)),
            _ => Verdict::Ask,
        }
    }

    /// Should it be asked again, beside the jobs that start meanwhile, whether an account has the uid?
    pub fn is_old(&mut self, uid: u32) -> bool {
        match self.known.get_mut(&uid) {
            Some(asked) if asked.elapsed() >= ASK_PERIOD => {
                *asked = Instant::now();
                true
            }
            _ => false,
        }
    }

    /// Asks the clerk for a uid: claims it, and looks whether an account has it. The result is for [`Users::looked`].
    pub fn look(&mut self, uid: u32, done: impl FnOnce(Looked) + Send + 'static) {
        let claim = self.claimed.filter(|_| !self.has(uid));
        let claim = claim.map(|claimed| JobUids { claim: claimed.range.up_to_block_of(uid), ..claimed });
        self.send(Task::Look(uid, claim, Box::new(done)));
    }

    /// What the clerk has found.
    pub fn looked(&mut self, looked: Looked) -> Result<(), Failure> {
        let uid = looked.uid;
        if let (Some(now), Some(claimed)) = (looked.claim, &mut self.claimed)
            && (now.cluster_id, now.range) == (claimed.cluster_id, claimed.range)
            && now.claim.last() > claimed.claim.last()
        {
            claimed.claim = now.claim;
        }
        match looked.answer {
            Answer::Free => {
                if self.known.len() >= KNOWN {
                    self.known.clear();
                }
                self.known.insert(uid, Instant::now());
                Ok(())
            }
            Answer::Taken(holder) => {
                self.known.remove(&uid);
                Err(refused(uid, &format!("it belongs to {holder}")))
            }
            // What was known counts, but not for a uid that could not be claimed.
            Answer::Unknown(_) if self.known.contains_key(&uid) && self.has(uid) => Ok(()),
            Answer::Unknown(why) => Err(refused(uid, &why)),
        }
    }

    /// The node ends and has no jobs.
    pub fn release(&mut self) {
        self.claimed = None;
        let (sender, receiver) = sync_channel(1);
        self.send(Task::Release(sender));
        if receiver.recv_timeout(RELEASE_PATIENCE).is_ok()
            && let Some(clerk) = self.clerk.take()
        {
            let _ = clerk.join();
        }
    }

    fn send(&self, task: Task) {
        // The clerk ends when this is dropped, or has released everything.
        let _ = self.tasks.send(task);
    }
}

fn refused(uid: u32, why: &str) -> Failure {
    Failure::new(format!("Jobs cannot run as uid {uid} here: {why}")).with("uid", uid)
}

/// What differs between a host and a test.
struct Host {
    /// Directories of the host's locks.
    places: Vec<PathBuf>,
    files: Vec<PathBuf>,
    getent: PathBuf,
}

enum Task {
    Claim(JobUids, Vec<u32>, Box<dyn FnOnce(Claimed) + Send>),
    Look(u32, Option<JobUids>, Box<dyn FnOnce(Looked) + Send>),
    Release(SyncSender<()>),
}

/// Works that may wait.
struct Clerk {
    claim: Claim,
    accounts: Accounts,
    sources: Sources,
    /// What is claimed.
    current: Option<JobUids>,
    kept: Vec<u32>,
}

impl Clerk {
    fn serve(mut self, inbox: &Receiver<Task>) {
        while let Ok(task) = inbox.recv() {
            match task {
                Task::Claim(uids, kept, done) => {
                    let result = self.take(uids, &kept);
                    if result.is_ok() {
                        self.kept.clone_from(&kept);
                    }
                    done(Claimed { uids, kept, result });
                }
                Task::Look(uid, claim, done) => {
                    let extended = claim.map_or(Ok(()), |uids| self.extend(uids));
                    let answer = match extended {
                        Ok(()) => self.sources.ask(uid),
                        Err(why) => Answer::Unknown(why.to_string()),
                    };
                    let claim = claim.filter(|_| !matches!(answer, Answer::Unknown(_)));
                    done(Looked { uid, claim, answer });
                }
                Task::Release(done) => {
                    self.claim.release();
                    let _ = done.send(());
                    return;
                }
            }
        }
    }

    /// Claims more of a range. What was asked for before the last claim may be less, or of another range.
    fn extend(&mut self, uids: JobUids) -> Result<(), Failure> {
        match self.current {
            Some(current) if (current.cluster_id, current.range) == (uids.cluster_id, uids.range) => {
                let is_claimed = current.claim.last() >= uids.claim.last();
                if is_claimed { Ok(()) } else { self.take(uids, &self.kept.clone()) }
            }
            _ => Err(Failure::new("the uids of the cluster have changed")),
        }
    }

    /// Claims; after an error the claim is what it was.
    fn take(&mut self, uids: JobUids, kept: &[u32]) -> Result<(), Failure> {
        let (first, last) = (uids.claim.first(), uids.claim.last());
        let with_option = |text: String| Failure::new(text).with("job_uids", uids.range.to_string());
        if let Some(holder) = self.accounts.holder_within(first, last).map_err(Failure::new)? {
            return Err(with_option(format!(
                "uids {first}-{last} for jobs are not free on this host: {holder}; give option job_uids of the server another range"
            )));
        }
        let mut ranges = vec![uids.claim];
        ranges.extend(runs(kept));
        self.claim.take(&Part { cluster_id: uids.cluster_id, ranges }).map_err(|why| match why {
            Refusal::Overlap(text) => with_option(text),
            Refusal::Host(error) => Failure::new(error.to_string()),
        })?;
        self.current = Some(uids);
        Ok(())
    }
}

/// Ranges of these uids, which are in order.
fn runs(uids: &[u32]) -> Vec<UidRange> {
    let follows = |a: &u32, b: &u32| a.checked_add(1) == Some(*b);
    let runs = uids.chunk_by(follows).filter_map(|run| Some((*run.first()?, *run.last()?)));
    runs.filter_map(|(first, last)| UidRange::new(first, last).ok()).collect()
}

#[cfg(test)]
mod tests;
