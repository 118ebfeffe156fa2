//! Commands of shells beside jobs (http-api.md 8.7).

use super::params::{Params, Result, required};
use crate::JobShellRequest;
use vocab::shell::Terminal;
use vocab::{Failure, Guid, ShellAnswer, ShellRequest};
use yson::{Map, Value};

/// Longest piece of input in one request: people type, programs paste.
const KEYS_MAX: usize = 1 << 20;

/// Parameters of `poll_job_shell`.
pub fn poll_job_shell(params: &Params) -> Result<JobShellRequest> {
    let own = required("parameters", params.inside("parameters"))?;
    let shell_id = || required("shell_id", own.parsed("shell_id"));
    let request = match required("operation", own.string("operation"))?.as_str() {
        "spawn" => ShellRequest::Spawn {
            shell_id: Guid::default(),
            command: own.string("command")?,
            terminal: Some(Terminal {
                name: own.string("term")?.unwrap_or_else(|| "xterm".to_owned()),
                size: size(&own)?,
            }),
            environment: environment(&own)?,
            secrets: true,
            inactivity_timeout: own.milliseconds("inactivity_timeout")?,
        },
        "update" => ShellRequest::Update {
            shell_id: shell_id()?,
            input_offset: own.unsigned("input_offset")?.unwrap_or(0),
            keys: keys(&own)?,
            size: size(&own)?,
        },
        "poll" => ShellRequest::Poll { shell_id: shell_id()? },
        "terminate" => ShellRequest::Terminate { shell_id: shell_id()? },
        other => {
            return Err(Failure::new(format!(
                "Parameter \"operation\" must be \"spawn\", \"update\", \"poll\" or \"terminate\", found {other:?}"
            )));
        }
    };
    of_job(params, request)
}

/// Parameters of `run_job_shell_command`.
pub fn run_job_shell_command(params: &Params) -> Result<JobShellRequest> {
    let request = ShellRequest::Spawn {
        shell_id: Guid::default(),
        command: Some(required("command", params.string("command"))?),
        terminal: None,
        environment: environment(params)?,
        secrets: true,
        inactivity_timeout: None,
    };
    of_job(params, request)
}

fn of_job(params: &Params, request: ShellRequest) -> Result<JobShellRequest> {
    Ok(JobShellRequest {
        job_id: required("job_id", params.parsed("job_id"))?,
        shell_name: params.string("shell_name")?,
        request,
    })
}

fn size(own: &Params) -> Result<(u32, u32)> {
    let number = |name| Ok::<_, Failure>(u32::try_from(own.unsigned(name)?.unwrap_or(0)).unwrap_or(u32::MAX));
    Ok((number("height")?, number("width")?))
}

fn environment(own: &Params) -> Result<Vec<String>> {
    let list = own.strings("environment")?.unwrap_or_default();
    match list.iter().find(|entry| !entry.contains('=') || entry.starts_with('=')) {
        // Values may be secret: only the name is shown, and there is none.
        Some(_) => Err(Failure::new("Parameter \"environment\" must be a list of \"NAME=value\"")),
        None => Ok(list),
    }
}

/// Bytes as hexadecimal digits, two each.
fn keys(own: &Params) -> Result<Vec<u8>> {
    let text = own.string("keys")?.unwrap_or_default();
    let bad = |what: &str| Err(Failure::new(format!("Parameter \"keys\" must be {what}")));
    if text.len() > 2 * KEYS_MAX {
        return bad(&format!("at most {KEYS_MAX} bytes long"));
    }
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[a, b]| Some(digit(*a)? << 4 | digit(*b)?)).collect();
    match bytes {
        Some(bytes) if rest.is_empty() => Ok(bytes),
        _ => bad("hexadecimal digits, two for each byte"),
    }
}

/// The natural result of `poll_job_shell`.
pub fn shell_answer(answer: ShellAnswer) -> Value {
    let result: Map = yson::map! {
        "shell_id" => answer.shell_id.to_string(),
        "shell_index" => i64::from(answer.shell_index),
        "output" => Value::String(answer.output),
        "consumed_offset" => answer.consumed_offset.map_or(Value::Entity, |n| Value::Int(n as i64)),
    };
    yson::map! {"result" => result}.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ShellRequest> {
        let text = format!("{{job_id=\"1-2-3-4\"; parameters={{{text}}}}}");
        let value = yson::parse(text.as_bytes()).expect("good YSON");
        poll_job_shell(&Params::new(value.as_map().expect("a map").clone())).map(|r| r.request)
    }

    #[test]
    fn requests_are_read_as_the_client_sends_them() {
        let spawn = parse(
            "operation=spawn; term=vt100; height=24; width=80; environment=[\"A=b=c\"]; inactivity_timeout=500",
        );
        assert_eq!(
            spawn,
            Ok(ShellRequest::Spawn {
                shell_id: Guid::default(),
                command: None,
                terminal: Some(Terminal { name: "vt100".to_owned(), size: (24, 80) }),
                environment: vec!["A=b=c".to_owned()],
                secrets: true,
                inactivity_timeout: Some(vocab::Span::from_millis(500)),
            })
        );
        let shell_id = vocab::Guid([9, 8, 7, 6]);
        let update =
            "operation=update; shell_id=\"9-8-7-6\"; input_offset=3; height=0; width=0; keys=\"6c730A\"";
        assert_eq!(
            parse(update),
            Ok(ShellRequest::Update { shell_id, input_offset: 3, keys: b"ls\n".to_vec(), size: (0, 0) })
        );
        assert_eq!(parse("operation=poll; shell_id=\"9-8-7-6\""), Ok(ShellRequest::Poll { shell_id }));
        assert_eq!(
            parse("operation=terminate; shell_id=\"9-8-7-6\""),
            Ok(ShellRequest::Terminate { shell_id })
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |text: &str, expected: &str| {
            let message = parse(text).expect_err("refused").message;
            assert!(message.contains(expected), "{text}: {message}");
        };
        check("", "\"operation\"");
        check("operation=dance", "found \"dance\"");
        check("operation=poll", "\"shell_id\"");
        check("operation=update; shell_id=\"1-1-1-1\"; keys=\"6c7\"", "hexadecimal digits");
        check("operation=update; shell_id=\"1-1-1-1\"; keys=\"zz\"", "hexadecimal digits");
        check("operation=spawn; environment=[SECRET]", "NAME=value");
        check("operation=spawn; height=\"tall\"", "\"height\"");
    }
}
