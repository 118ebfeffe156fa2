//! Accounts and groups of the host: none of them may be the user of a job.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Accounts and groups of the host, and what users of the host may give to their own containers.
pub(super) const FILES: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"];
/// The files above are looked at again after this time.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// The program that asks for accounts of all sources, LDAP for example.
pub(super) const GETENT: &str = "getent";
/// For one question: a source can be a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a question without an answer no other one is asked for this time.
const SILENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// Numbers that the host has given away.
#[derive(Debug)]
pub(super) struct Accounts {
    files: Vec<PathBuf>,
    /// Size, inode and time of change of each file when it was read.
    looks: Vec<Option<(u64, u64, i64, i64)>>,
    looked: Option<Instant>,
    /// First number, last number, what they belong to.
    taken: Vec<(u32, u32, String)>,
}

impl Accounts {
    /// Of these files.
    pub fn new(files: Vec<PathBuf>) -> Accounts {
        Accounts { files, looks: Vec::new(), looked: None, taken: Vec::new() }
    }

    /// What has one of the numbers from `first` to `last`. Files that are there and cannot be read are an error.
    pub fn holder_within(&mut self, first: u32, last: u32) -> Result<Option<&str>, String> {
        self.refresh().map_err(|(path, e)| format!("cannot read {}: {e}", path.display()))?;
        let found = self.taken.iter().find(|(begin, end, _)| *begin <= last && first <= *end);
        Ok(found.map(|(.., holder)| holder.as_str()))
    }

    /// The files are looked at again, whenever that was last done.
    #[cfg(test)]
    pub fn forget(&mut self) {
        self.looked = None;
    }

    fn refresh(&mut self) -> Result<(), (PathBuf, io::Error)> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK_PERIOD) {
            return Ok(());
        }
        let look = |path: &PathBuf| {
            let found = fs::metadata(path).ok()?;
            Some((found.size(), found.ino(), found.mtime(), found.mtime_nsec()))
        };
        let looks: Vec<_> = self.files.iter().map(look).collect();
        if looks != self.looks {
            let mut taken = Vec::new();
            for path in &self.files {
                let text = match fs::read(path) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    other => other.map_err(|e| (path.clone(), e))?,
                };
                taken
                    .extend(String::from_utf8_lossy(&text).lines().filter_map(|line| numbers_of(line, path)));
            }
            (self.taken, self.looks) = (taken, looks);
        }
        self.looked = Some(Instant::now());
        Ok(())
    }
}

/// Numbers in a line of `passwd`, `group` (name, password, number), `subuid` or `subgid` (name, first number, count).
fn numbers_of(line: &str, path: &Path) -> Option<(u32, u32, String)> {
    let fields: Vec<&str> = line.split(':').collect();
    let is_range =
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("sub"));
    let at = |index: usize| fields.get(index)?.trim().parse::<u32>().ok();
    let (first, last) = match is_range {
        true => (at(1)?, at(1)?.saturating_add(at(2)?.checked_sub(1)?)),
        false => (at(2)?, at(2)?),
    };
    Some((first, last, format!("{first} is {:?} in {}", fields[0], path.display())))
}

/// All sources of accounts that the host has. Its questions block.
#[derive(Debug)]
pub(super) struct Sources {
    program: PathBuf,
    silent_until: Option<Instant>,
}

/// What is known of a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Free,
    /// What has it.
    Taken(String),
    /// Why nothing is known.
    Unknown(String),
}

impl Sources {
    pub fn new(program: &Path) -> Sources {
        Sources { program: program.to_owned(), silent_until: None }
    }

    /// Asks for a user and a group with this number. A host without the program has no other sources than its files.
    pub fn ask(&mut self, number: u32) -> Answer {
        let silent =
            "sources of accounts did not answer a moment ago, and are asked again in half a minute at most";
        if self.silent_until.is_some_and(|until| Instant::now() < until) {
            return Answer::Unknown(silent.to_owned());
        }
        for database in ["passwd", "group"] {
            match self.run(database, number) {
                Answer::Free => {}
                Answer::Unknown(why) => {
                    self.silent_until = Some(Instant::now() + SILENCE);
                    return Answer::Unknown(why);
                }
                taken => return taken,
            }
        }
        Answer::Free
    }

    fn run(&self, database: &str, number: u32) -> Answer {
        let number = number.to_string();
        let question = format!("{} {database} {number}", self.program.display());
        let mut command = Command::new(&self.program);
        command.args([database, &number]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = match command.spawn() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Answer::Free,
            Err(e) => return Answer::Unknown(format!("cannot run {question}: {e}")),
            Ok(child) => child,
        };
        let give_up = Instant::now() + PATIENCE;
        loop {
            match child.try_wait() {
                Ok(None) if Instant::now() < give_up => std::thread::sleep(PAUSE),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Answer::Unknown(format!("{question} has not answered within {PATIENCE:?}"));
                }
                Ok(Some(status)) => {
                    return match status.code() {
                        Some(0) => Answer::Taken(format!("an account or a group of the host ({question})")),
                        // There is none.
                        Some(2) => Answer::Free,
                        _ => Answer::Unknown(format!("{question} has failed: {status}")),
                    };
                }
                Err(e) => return Answer::Unknown(format!("cannot wait for {question}: {e}")),
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program in the place of `getent`.
    pub fn program(directory: &Path, script: &str) -> PathBuf {
        let path = directory.join("getent");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        path
    }

    /// S9: accounts of LDAP were not seen.
    #[test]
    fn all_sources_of_accounts_are_asked() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = "case $1:$2 in passwd:7000|group:7001) exit 0;; *:7002) exit 3;; *) exit 2;; esac";
        let mut sources = Sources::new(&program(directory.path(), script));
        assert_eq!(sources.ask(6999), Answer::Free);
        for (number, database) in [(7000, "passwd"), (7001, "group")] {
            let Answer::Taken(holder) = sources.ask(number) else { panic!("{number} is not free") };
            assert!(holder.contains(&format!("{database} {number}")), "{holder}");
        }
        let Answer::Unknown(why) = sources.ask(7002) else { panic!("no answer is no permission") };
        assert!(why.contains("has failed"), "{why}");
        assert!(matches!(sources.ask(6999), Answer::Unknown(_)), "what does not answer is left in peace");
        assert_eq!(Sources::new(Path::new("/nowhere/getent")).ask(7000), Answer::Free);
    }
}
