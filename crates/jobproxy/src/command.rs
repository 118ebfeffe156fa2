//! From the command text to a program and its arguments.
//!
//! The contract is `bash -c <command>` (jobs-and-nodes.md 5.2). As make does, a command of plain words
//! is executed directly: starting a shell costs several times what a small program costs. "Plain" is
//! narrow on purpose: whatever could mean anything to bash goes to bash, and whatever fails directly is
//! done again by bash, so that messages and exit codes are always its own. Even the variables that
//! bash would export (`PWD`, `SHLVL`, `_`) are there.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The usual six directories (jobs-and-nodes.md 5.3).
pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What to execute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Path of the program.
    pub program: CString,
    /// Arguments with the program's name first.
    pub arguments: Vec<CString>,
    /// Whole environment.
    pub environment: Vec<CString>,
}

/// A NUL byte in the command or in a variable: the system cannot pass it on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} contains a NUL byte, which cannot be passed to a process")]
pub struct NulByte(pub String);

/// The environment as it is given to the process: later entries win, `PATH` is there.
pub fn environment(given: &[(String, String)], job_id: &str) -> Vec<(String, String)> {
    let mut place: HashMap<&str, usize> = HashMap::with_capacity(given.len());
    let mut out: Vec<(String, String)> = Vec::with_capacity(given.len() + 2);
    for (name, value) in given {
        match place.get(name.as_str()) {
            Some(&i) => out[i].1.clone_from(value),
            None => {
                place.insert(name, out.len());
                out.push((name.clone(), value.clone()));
            }
        }
    }
    for (name, value) in [("PATH", DEFAULT_PATH), ("YT_JOB_ID", job_id)] {
        if !place.contains_key(name) {
            out.push((name.to_owned(), value.to_owned()));
        }
    }
    out
}

/// Where a root file system that we cannot see has its shell.
const BASH_ANYWHERE: &str = "/bin/bash";

/// Through bash, that of this host or that of another root file system; without a command an
/// interactive one.
pub fn shell(
    own_root: bool,
    command: Option<&str>,
    environment: &[(String, String)],
) -> Result<Plan, NulByte> {
    let of_host = || find("bash", DEFAULT_PATH);
    let bash = (!own_root).then(of_host).flatten().unwrap_or_else(|| BASH_ANYWHERE.to_owned());
    let mut arguments = vec![c"bash".to_owned()];
    arguments.extend(match command {
        Some(command) => vec![c"-c".to_owned(), c_string(command, || "Command".to_owned())?],
        None if own_root => Vec::new(),
        // The host's start file is for its own users, and would set the prompt.
        None => vec![c"--norc".to_owned()],
    });
    let program = c_string(&bash, || "Path of bash".to_owned())?;
    Ok(Plan { program, arguments, environment: c_environment(environment)? })
}

/// Directly, if that cannot be told from bash; `directory` is the physical path of the sandbox.
pub fn directly(command: &str, environment: &[(String, String)], directory: &Path) -> Option<Plan> {
    let words = plain_words(command)?;
    let first = *words.first()?;
    if is_shell_word(first) || first.contains('=') || first.starts_with('%') {
        return None;
    }
    let get = |name: &str| environment.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    if environment.iter().any(|(n, _)| changes_bash(n)) {
        return None;
    }
    let program = if first.contains('/') {
        is_program(&directory.join(first)).then(|| first.to_owned())?
    } else {
        find(first, get("PATH")?)?
    };
    let mut variables = c_environment(environment).ok()?;
    for (name, value) in [("PWD", directory.to_str()?), ("SHLVL", "0"), ("_", program.as_str())] {
        variables.push(CString::new(format!("{name}={value}")).ok()?);
    }
    Some(Plan {
        program: CString::new(program).ok()?,
        arguments: words.into_iter().map(CString::new).collect::<Result<_, _>>().ok()?,
        environment: variables,
    })
}

/// Splits at blanks if no character means anything to bash.
fn plain_words(command: &str) -> Option<Vec<&str>> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:,+@%=- \t".contains(&b);
    if !command.bytes().all(plain) {
        return None;
    }
    Some(command.split([' ', '\t']).filter(|w| !w.is_empty()).collect())
}

/// Variables that change what bash does, or that it computes from what it was given.
fn changes_bash(name: &str) -> bool {
    name.starts_with("BASH")
        || ["SHELLOPTS", "POSIXLY_CORRECT", "PWD", "OLDPWD", "SHLVL", "_"].contains(&name)
}

/// Absolute path of a program; none also when an entry of PATH is relative, which only the shell
/// may interpret.
fn find(name: &str, path: &str) -> Option<String> {
    for directory in path.split(':') {
        if !directory.starts_with('/') {
            return None;
        }
        let candidate = format!("{}/{name}", directory.trim_end_matches('/'));
        if is_program(Path::new(&candidate)) {
            return Some(candidate);
        }
    }
    None
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Builtins and reserved words of bash; `true`, `echo`, `test`, `kill`, `pwd`, `printf` and `[` exist as programs
/// too, but the builtins differ from them in details. `true` and `false` do not.
fn is_shell_word(word: &str) -> bool {
    const WORDS: &[&str] = &[
        ".",
        ":",
        "[",
        "alias",
        "bg",
        "bind",
        "break",
        "builtin",
        "caller",
        "case",
        "cd",
        "command",
        "compgen",
        "complete",
        "compopt",
        "continue",
        "coproc",
        "declare",
        "dirs",
        "disown",
        "do",
        "done",
        "echo",
        "elif",
        "else",
        "enable",
        "esac",
        "eval",
        "exec",
        "exit",
        "export",
        "fc",
        "fg",
        "fi",
        "for",
        "function",
        "getopts",
        "hash",
        "help",
        "history",
        "if",
        "in",
        "jobs",
        "kill",
        "let",
        "local",
        "logout",
        "mapfile",
        "popd",
        "printf",
        "pushd",
        "pwd",
        "read",
        "readarray",
        "readonly",
        "return",
        "select",
        "set",
        "shift",
        "shopt",
        "source",
        "suspend",
        "test",
        "then",
        "time",
        "times",
        "trap",
        "type",
        "typeset",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "until",
        "wait",
        "while",
    ];
    debug_assert!(WORDS.is_sorted());
    WORDS.binary_search(&word).is_ok()
}

fn c_environment(environment: &[(String, String)]) -> Result<Vec<CString>, NulByte> {
    environment.iter().map(|(n, v)| c_string(&format!("{n}={v}"), || format!("Variable {n:?}"))).collect()
}

fn c_string(text: &str, what: impl Fn() -> String) -> Result<CString, NulByte> {
    CString::new(text).map_err(|_| NulByte(what()))
}

#[cfg(test)]
mod tests;
