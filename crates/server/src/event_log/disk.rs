//! The calls by which the log grows, one place for all that may fail.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file system; tests let it fail.
#[derive(Default)]
pub struct Disk {
    #[cfg(test)]
    pub faults: super::tests::Faults,
}

impl Disk {
    /// A new, empty file, whatever was there under its name; its directory is made if it is missing.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        #[cfg(test)]
        self.faults.create()?;
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = OpenOptions::new().create_new(true).write(true).open(path)?;
        // Its name too.
        if let Some(directory) = path.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(file)
    }

    /// Appends; after an error any part of it may be there.
    pub fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        self.faults.write(file, bytes)?;
        file.write_all(bytes)
    }

    /// What was written survives everything after this, and can be found: a file that somebody has
    /// removed takes writes as before, and nobody will ever read them.
    pub fn sync(&self, file: &File, path: &Path) -> io::Result<()> {
        #[cfg(test)]
        self.faults.sync()?;
        file.sync_data()?;
        let (ours, there) = (file.metadata()?, std::fs::metadata(path)?);
        if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
            return Err(io::Error::other(format!("{} was replaced by another file", path.display())));
        }
        Ok(())
    }
}
