//! Shells beside running jobs (http-api.md 8.7): the kernel says whether and where, everything else goes
//! straight between the API and the node.
//!
//! A shell is its opener's alone, under the name that he opened it by. The client is given a number drawn
//! by lot; the job proxy knows the shell by an id made of this number, the user and the shell's name
//! ([`Opener::inner`]). Somebody else who has come by the number asks for another id, which no shell has.
//! Nothing of it is kept here, so shells outlive a restart of the server.

use crate::backend::{ServerBackend, not_answered};
use api::secrets::{guid_of, random_guid};
use api::{ByteStream, JobShellRequest};
use bytes::Bytes;
use kernel::{Command, NodeKey};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use vocab::{Failure, Guid, JobId, ShellAnswer, ShellRequest, code};
use yson::Value;

/// How long a node may take. A question for output waits at the job's proxy for twelve seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// A client that polls a job whose node is away is held up so long, that it does not spin.
const NODE_AWAY: Duration = Duration::from_secs(1);
/// Pieces of output of a command that wait for the client to read them.
const PIECES: usize = 4;

/// Whose a shell is.
struct Opener {
    user: String,
    shell_name: Option<String>,
}

impl Opener {
    /// Puts the proxy's id of the shell into a request; gives the client's, which of a new one is drawn.
    fn own(&self, request: &mut ShellRequest) -> Result<Guid, Failure> {
        let (id, outer) = match request {
            ShellRequest::Spawn { shell_id, .. } => (shell_id, random_guid()?),
            ShellRequest::Update { shell_id, .. }
            | ShellRequest::Poll { shell_id }
            | ShellRequest::Terminate { shell_id } => {
                let outer = *shell_id;
                (shell_id, outer)
            }
        };
        *id = self.inner(outer);
        Ok(outer)
    }

    /// By which the job proxy knows a shell.
    fn inner(&self, outer: Guid) -> Guid {
        let outer = outer.to_bytes();
        let mut parts = vec![&outer[..], self.user.as_bytes()];
        parts.extend(self.shell_name.as_deref().map(str::as_bytes));
        guid_of(&parts)
    }
}

impl ServerBackend {
    /// One call. A node that is away for a moment is not the end of a shell, which lives on there: who
    /// polls gets no output, who types is not told that it was taken.
    pub(crate) async fn ask_shell(
        self,
        user: String,
        wanted: JobShellRequest,
    ) -> Result<ShellAnswer, Failure> {
        let JobShellRequest { job_id, shell_name, mut request } = wanted;
        let opener = Opener { user: user.clone(), shell_name: shell_name.clone() };
        let is_new = matches!(request, ShellRequest::Spawn { .. });
        let shell_id = opener.own(&mut request)?;
        let command = match &request {
            ShellRequest::Spawn { command, .. } => {
                Command::OpenJobShell { job_id, shell_name, command: command.clone() }
            }
            _ => Command::LocateJobShell { user: user.clone(), job_id, shell_name },
        };
        let result = match self.value(user, command).await {
            Ok(located) => {
                let node = located.get("node").and_then(Value::as_u64).unwrap_or_default();
                if let ShellRequest::Spawn { secrets, .. } = &mut request {
                    *secrets &= located.get("secrets").and_then(Value::as_bool).unwrap_or(false);
                }
                self.ask_node(NodeKey(node), job_id, request).await
            }
            Err(failure) => Err(failure),
        };
        match result {
            Ok(answer) => Ok(ShellAnswer { shell_id, ..answer }),
            Err(failure) if failure.code == code::TIMEOUT && !is_new => {
                tokio::time::sleep(NODE_AWAY).await;
                Ok(ShellAnswer { shell_id, ..ShellAnswer::default() })
            }
            Err(failure) if is_new => Err(failure),
            Err(failure) => Err(failure.with("shell_id", shell_id.to_string())),
        }
    }

    async fn ask_node(
        &self,
        node: NodeKey,
        job_id: JobId,
        request: ShellRequest,
    ) -> Result<ShellAnswer, Failure> {
        let question = self.hub.ask_shell(node, job_id, request);
        match tokio::time::timeout(ANSWER_TIMEOUT, question).await {
            Ok(Some(result)) => result,
            _ => Err(not_answered(job_id)),
        }
    }

    /// A shell that runs one command, without a terminal: what it prints, until it ends or nobody reads.
    pub(crate) async fn shell_command(
        self,
        user: String,
        wanted: JobShellRequest,
    ) -> Result<ByteStream, Failure> {
        let (job_id, shell_name) = (wanted.job_id, wanted.shell_name.clone());
        let shell_id = self.clone().ask_shell(user.clone(), wanted).await?.shell_id;
        let of_shell = move |request| JobShellRequest { job_id, shell_name: shell_name.clone(), request };
        let (pieces, stream) = mpsc::channel(PIECES);
        tokio::spawn(async move {
            // Whoever leaves is noticed by either: at the next piece, or while there is none.
            let is_over = tokio::select! {
                is_over = self.clone().read_to_end(&user, &of_shell, shell_id, &pieces) => is_over,
                () = pieces.closed() => false,
            };
            if !is_over {
                let request = of_shell(ShellRequest::Terminate { shell_id });
                // If it has ended meanwhile, all is well.
                let _ = self.ask_shell(user, request).await;
            }
        });
        Ok(Box::pin(ReceiverStream::new(stream)))
    }

    /// Whether the shell is over: it has ended, or nothing more is to be had of it. Else the reader has left.
    async fn read_to_end(
        self,
        user: &str,
        of_shell: &impl Fn(ShellRequest) -> JobShellRequest,
        shell_id: Guid,
        pieces: &mpsc::Sender<Result<Bytes, Failure>>,
    ) -> bool {
        loop {
            let poll = of_shell(ShellRequest::Poll { shell_id });
            let piece = match self.clone().ask_shell(user.to_owned(), poll).await {
                Ok(answer) if answer.output.is_empty() => continue,
                Ok(answer) => Ok(answer.output.into()),
                Err(failure) if failure.code == code::SHELL_EXITED => return true,
                Err(failure) => Err(failure),
            };
            let is_last = piece.is_err();
            if pieces.send(piece).await.is_err() || is_last {
                return is_last;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everybody else gets to a shell that there is not.
    #[test]
    fn a_shell_is_its_openers() {
        let opener = |user: &str, name: Option<&str>| Opener {
            user: user.into(),
            shell_name: name.map(str::to_owned),
        };
        let mut spawn = ShellRequest::Spawn {
            shell_id: Guid::default(),
            command: None,
            terminal: None,
            environment: Vec::new(),
            secrets: false,
            inactivity_timeout: None,
        };
        let outer = opener("ann", None).own(&mut spawn).expect("random numbers");
        let ShellRequest::Spawn { shell_id: inner, .. } = spawn else { panic!("{spawn:?}") };
        assert_ne!(inner, outer);
        let asks = |user: &str, name: Option<&str>, shell_id: Guid| {
            let mut request = ShellRequest::Poll { shell_id };
            let shown = opener(user, name).own(&mut request).expect("an id");
            assert_eq!(shown, shell_id, "the client's own number comes back");
            let ShellRequest::Poll { shell_id } = request else { panic!("{request:?}") };
            shell_id
        };
        assert_eq!(asks("ann", None, outer), inner);
        for (user, name, id) in
            [("bob", None, outer), ("ann", Some(""), outer), ("ann", Some("x"), outer), ("ann", None, inner)]
        {
            assert_ne!(asks(user, name, id), inner, "{user} {name:?} {id}");
        }
    }
}
