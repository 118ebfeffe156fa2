//! Files with one secret each: tokens and keys that the server makes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Replaces a file by rename; only its owner can read it, from the first moment. It survives the loss of power when this
/// returns.
pub fn write_secret(file: &Path, contents: &str) -> io::Result<()> {
    let draft = file.with_extension("draft");
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    out.write_all(contents.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&draft, file)?;
    match file.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_secret_replaces_another_one_and_is_closed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("secret");
        for contents in ["one\n", "two\n"] {
            // What a killed process has left.
            std::fs::write(file.with_extension("draft"), "half").expect("written");
            write_secret(&file, contents).expect("written");
            assert_eq!(std::fs::read_to_string(&file).expect("there"), contents);
            let mode = file.metadata().expect("there").permissions().mode() & 0o7777;
            assert_eq!(mode, 0o600);
        }
        assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 1);
    }
}
