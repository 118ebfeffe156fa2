//! Files for sandboxes: kept in the tree by digest, so that the same file goes over the wire once.

use super::Session;
use crate::args::FileArg;
use crate::error::CliError;
use client::{Client, CreateFlags, WriteFileOptions};
use md5::{Digest, Md5};
use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use vocab::code;
use yson::{Map, Value, map};

/// Where uploaded files are.
const FILES: &str = "//tmp/millpond/files";

/// A file on this machine.
struct Local {
    file: File,
    digest: String,
    is_executable: bool,
}

/// Uploads what is not there yet; gives `file_paths` for a task.
pub fn upload(session: &Session, files: &[FileArg]) -> Result<Vec<Value>, CliError> {
    let mut paths = Vec::new();
    for arg in files {
        let mut local = open(arg)?;
        send(session, arg, &mut local)?;
        paths.push(rich_path(arg, &local));
    }
    Ok(paths)
}

/// The same without uploading.
pub fn paths(files: &[FileArg]) -> Result<Vec<Value>, CliError> {
    files.iter().map(|arg| Ok(rich_path(arg, &open(arg)?))).collect()
}

fn rich_path(arg: &FileArg, local: &Local) -> Value {
    Value::from(format!("{FILES}/{}", local.digest))
        .with_attributes(map! {"file_name" => arg.name.as_str(), "executable" => local.is_executable})
}

fn open(arg: &FileArg) -> Result<Local, CliError> {
    let problem = |e: std::io::Error| CliError::failed(format!("cannot read {}: {e}", arg.path.display()));
    let mut file = File::open(&arg.path).map_err(problem)?;
    let metadata = file.metadata().map_err(problem)?;
    if !metadata.is_file() {
        return Err(CliError::usage(format!("{} is not a file", arg.path.display()))
            .with_hint("pack a directory first: tar -cf files.tar DIR, then --file files.tar"));
    }
    let mut hasher = Md5::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer).map_err(problem)? {
            0 => break,
            n => hasher.update(&buffer[..n]),
        }
    }
    let mut digest = String::new();
    for byte in hasher.finalize() {
        let _ = write!(digest, "{byte:02x}");
    }
    Ok(Local { file, digest, is_executable: metadata.permissions().mode() & 0o111 != 0 })
}

fn send(session: &Session, arg: &FileArg, local: &mut Local) -> Result<(), CliError> {
    let path = format!("{FILES}/{}", local.digest);
    if is_there(&session.client, &path, &local.digest)? {
        return Ok(());
    }
    session.screen.tell(&format!("uploading {}", arg.path.display()));
    let flags = CreateFlags { recursive: true, ignore_existing: true, force: false };
    session.client.create("file", &path, Map::new(), flags)?;
    local
        .file
        .rewind()
        .map_err(|e| CliError::failed(format!("cannot read {} again: {e}", arg.path.display())))?;
    // With the digest among its attributes the file is known to be whole.
    let options = WriteFileOptions { append: false, compute_md5: true };
    session.client.write_file(&path, &mut local.file, options)?;
    match is_there(&session.client, &path, &local.digest)? {
        true => Ok(()),
        false => Err(CliError::failed(format!("{} has changed while it was uploaded", arg.path.display()))),
    }
}

/// Somebody else may be writing the same file at this moment: only a digest says that it is done.
fn is_there(client: &Client, path: &str, digest: &str) -> Result<bool, CliError> {
    match client.get(&format!("{path}/@md5"), &[]) {
        Ok(md5) => Ok(md5.as_str() == Some(digest)),
        Err(error) if error.contains_code(code::RESOLVE_ERROR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
