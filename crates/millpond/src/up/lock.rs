//! One supervisor for a data directory.

use cli::CliError;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

/// Held until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// The last supervisor was killed: its children may be just about to end.
    pub was_killed: bool,
}

impl Drop for Lock {
    /// An empty file says that the supervisor has ended in good order.
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
    }
}

/// Takes the directory, or says who has it.
pub fn take(data: &Path) -> Result<Lock, CliError> {
    let path = data.join("up.lock");
    let problem = |e: std::io::Error| CliError::failed(format!("cannot lock {}: {e}", path.display()));
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(problem)?;
    let taken = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let mut pid = String::new();
    let _ = file.read_to_string(&mut pid);
    let pid = pid.trim();
    if !taken {
        let who = if pid.is_empty() { String::new() } else { format!(" (pid {pid})") };
        return Err(CliError::failed(format!(
            "the data directory {} is in use by another `millpond up`{who}",
            data.display()
        ))
        .with_hint("stop it, or give this one a directory of its own with --data"));
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(problem)?;
    Ok(Lock { file, was_killed: !pid.is_empty() })
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn the_second_is_told_about_the_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = take(directory.path()).expect("nobody has it");
        assert!(!first.was_killed);
        let error = take(directory.path()).expect_err("the first has it").render(false).unwrap_or_default();
        assert!(
            error.contains(&format!("in use by another `millpond up` (pid {})", std::process::id())),
            "{error}"
        );
        drop(first);
        assert!(!take(directory.path()).expect("it is free again").was_killed);
    }

    #[test]
    fn who_was_killed_has_left_a_number() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("up.lock"), "12345\n").expect("written");
        assert!(take(directory.path()).expect("nobody has it").was_killed);
    }
}
