//! Shells beside jobs.

use vocab::shell::Terminal;
use vocab::{Failure, Guid, ShellAnswer, ShellRequest, Span};

use super::pb::shell::{self, Request};
use super::{Malformed, id_bytes, id_from, pb, required};

fn shell_id(bytes: &[u8]) -> Result<Guid, Malformed> {
    id_from("shell_id", bytes)
}

impl From<&ShellRequest> for Request {
    fn from(request: &ShellRequest) -> Request {
        match request {
            ShellRequest::Spawn { shell_id, command, terminal, environment, secrets, inactivity_timeout } => {
                Request::Spawn(shell::Spawn {
                    shell_id: id_bytes(*shell_id),
                    command: command.clone(),
                    terminal: terminal.as_ref().map(|t| shell::Terminal {
                        name: t.name.clone(),
                        rows: t.size.0,
                        columns: t.size.1,
                    }),
                    environment: environment.clone(),
                    secrets: *secrets,
                    inactivity_timeout: inactivity_timeout.map(|t| t.0),
                })
            }
            ShellRequest::Update { shell_id, input_offset, keys, size } => Request::Update(shell::Update {
                shell_id: id_bytes(*shell_id),
                input_offset: *input_offset,
                keys: keys.clone(),
                rows: size.0,
                columns: size.1,
            }),
            ShellRequest::Poll { shell_id } => Request::Poll(id_bytes(*shell_id)),
            ShellRequest::Terminate { shell_id } => Request::Terminate(id_bytes(*shell_id)),
        }
    }
}

impl TryFrom<Request> for ShellRequest {
    type Error = Malformed;
    fn try_from(request: Request) -> Result<ShellRequest, Malformed> {
        Ok(match request {
            Request::Spawn(s) => ShellRequest::Spawn {
                shell_id: shell_id(&s.shell_id)?,
                command: s.command,
                terminal: s.terminal.map(|t| Terminal { name: t.name, size: (t.rows, t.columns) }),
                environment: s.environment,
                secrets: s.secrets,
                inactivity_timeout: s.inactivity_timeout.map(Span),
            },
            Request::Update(u) => ShellRequest::Update {
                shell_id: shell_id(&u.shell_id)?,
                input_offset: u.input_offset,
                keys: u.keys,
                size: (u.rows, u.columns),
            },
            Request::Poll(id) => ShellRequest::Poll { shell_id: shell_id(&id)? },
            Request::Terminate(id) => ShellRequest::Terminate { shell_id: shell_id(&id)? },
        })
    }
}

/// An answer with the number of its question.
pub(super) fn reply(request_id: u64, result: &Result<ShellAnswer, Failure>) -> pb::ShellReply {
    let result = match result {
        Ok(answer) => pb::shell_reply::Result::Answer(pb::ShellAnswer {
            shell_id: id_bytes(answer.shell_id),
            shell_index: answer.shell_index,
            output: answer.output.clone(),
            consumed_offset: answer.consumed_offset,
        }),
        Err(error) => pb::shell_reply::Result::Error(error.into()),
    };
    pb::ShellReply { request_id, result: Some(result) }
}

/// The way back.
pub(super) fn result_of(reply: pb::ShellReply) -> Result<Result<ShellAnswer, Failure>, Malformed> {
    Ok(match required("shell result", reply.result)? {
        pb::shell_reply::Result::Answer(a) => Ok(ShellAnswer {
            shell_id: shell_id(&a.shell_id)?,
            shell_index: a.shell_index,
            output: a.output,
            consumed_offset: a.consumed_offset,
        }),
        pb::shell_reply::Result::Error(error) => Err(error.try_into()?),
    })
}
