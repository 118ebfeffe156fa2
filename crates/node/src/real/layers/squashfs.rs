//! Squashfs layers, unpacked by the tool of the file system's makers, which is a package of every
//! distribution.
//!
//! The tool is a large parser of what a user wrote. It runs as nobody, in a process group of its own, with
//! bounds on memory and time, and writes into a directory that only then becomes the node's: every entry is
//! given to the node's user and loses its set-user-id bits.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::process::{Pid, Resource, Rlimit, Signal};

use super::Fault;
use super::limits::Limits;

const TOOL: &str = "unsquashfs";
/// User and group of the tool, where the node is root.
const NOBODY: u32 = 65_534;
/// Address space of the tool: its caches are bounded by options, threads reserve much that they never use.
const MEMORY: u64 = 4 << 30;
/// Characters of its errors that are passed on.
const WORDS: u64 = 2000;
/// In the super block, 32 bits: number of inodes.
const INODES_AT: u64 = 4;
/// Deeper trees have no honest purpose, and paths that long cannot be named.
const DEPTH_MAX: usize = 200;

/// Into an existing empty directory.
pub(super) fn unpack(archive: File, target: &Path, limits: &mut Limits) -> Result<(), Fault> {
    let mut inodes = [0; 4];
    archive.read_exact_at(&mut inodes, INODES_AT).map_err(|e| broken(&e))?;
    (0..u32::from_le_bytes(inodes)).try_for_each(|_| limits.entry())?;
    list(&archive, target, limits)?;
    let root = rustix::process::geteuid().is_root();
    if root {
        chown(target, Some(NOBODY), Some(NOBODY)).map_err(Fault::Node)?;
    }
    let unpack = ["-no-progress", "-no-xattrs", "-force", "-data-queue", "16", "-frag-queue", "16"];
    let child = start(&archive, target, &unpack, Stdio::null(), limits)?;
    finish(child, limits.until())?;
    let directory: OwnedFd = File::open(target).map_err(Fault::Node)?.into();
    settle(&directory, root, 0)
}

/// What it would become: the sizes are in a table that the tool prints without reading the files.
fn list(archive: &File, target: &Path, limits: &mut Limits) -> Result<(), Fault> {
    let mut child = start(archive, target, &["-lln"], Stdio::piped(), limits)?;
    let mut counted = Ok(());
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while counted.is_ok() {
            line.clear();
            // `-rw-r--r-- 0/0   1234 2020-01-01 00:00 squashfs-root/name`; names may have anything in them.
            match output.by_ref().take(1 << 16).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => counted = size_in(&line).map_or(Ok(()), |size| limits.bytes(size)),
            }
        }
    }
    if counted.is_err() {
        kill(&child);
        let _ = child.wait();
        return counted;
    }
    finish(child, limits.until())
}

/// Of a regular file.
fn size_in(line: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(&line[..line.len().min(100)]);
    let mut fields = text.split_ascii_whitespace();
    fields.next().filter(|mode| mode.starts_with('-') && mode.len() == 10)?;
    fields.nth(1)?.parse().ok()
}

fn start(
    archive: &File,
    target: &Path,
    options: &[&str],
    output: Stdio,
    limits: &Limits,
) -> Result<Child, Fault> {
    let cannot = |e: io::Error| Fault::Node(io::Error::other(format!("{TOOL} cannot be run: {e}")));
    let mut input = archive.try_clone().map_err(Fault::Node)?;
    input.rewind().map_err(Fault::Node)?;
    // It cannot enter the directories on the way to the archive and to the target, and need not.
    let directory = File::open(target).map_err(Fault::Node)?;
    let mut tool = Command::new(TOOL);
    tool.args(options).args(["-dest", ".", "/proc/self/fd/0"]);
    tool.current_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    tool.stdin(input)
        .stdout(output)
        .stderr(Stdio::piped())
        .env_clear()
        .env("PATH", jobproxy::command::DEFAULT_PATH);
    tool.process_group(0);
    if rustix::process::geteuid().is_root() {
        tool.uid(NOBODY).gid(NOBODY);
    }
    let child = tool.spawn().map_err(cannot)?;
    // Before it has read much of what a user wrote.
    let bound = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
    let seconds = limits.until().saturating_duration_since(Instant::now()).as_secs().max(1);
    for (resource, value) in [
        (Resource::As, MEMORY),
        (Resource::Fsize, limits.bytes_max().max(1)),
        (Resource::Cpu, seconds),
        (Resource::Core, datadir::memory::NO_CORE_DUMP),
    ] {
        // One that has ended already needs no bounds.
        let _ = rustix::process::prlimit(pid(&child), resource, bound(value));
    }
    Ok(child)
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// With all that it may have started.
fn kill(child: &Child) {
    if let Some(pid) = pid(child) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

/// Waits for it, until then at most.
fn finish(mut child: Child, until: Instant) -> Result<(), Fault> {
    let words = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || {
            let (mut text, mut stderr) = (Vec::new(), stderr);
            let _ = stderr.by_ref().take(WORDS).read_to_end(&mut text);
            let _ = io::copy(&mut stderr, &mut io::sink());
            String::from_utf8_lossy(&text).trim().to_owned()
        })
    });
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait().map_err(Fault::Node)? {
            Some(status) => break status,
            None if Instant::now() > until => {
                kill(&child);
                let _ = child.wait();
                return Err(Fault::User("unpacking it takes too long".to_owned()));
            }
            None => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    let words = words.and_then(|thread| thread.join().ok()).unwrap_or_default();
    match status.code() {
        // 2: something was left out that only root can make, devices and owners.
        Some(0 | 2) => Ok(()),
        _ if words.contains("No space left on device") => Err(Fault::Node(io::ErrorKind::StorageFull.into())),
        _ => Err(Fault::User(format!("not a squashfs image that {TOOL} can unpack ({status}): {words}"))),
    }
}

fn broken(error: &io::Error) -> Fault {
    Fault::User(format!("not a squashfs image: {error}"))
}

/// Gives everything to the node's user and drops the bits that would give a job another one. The tool has
/// ended, so nobody changes anything meanwhile.
fn settle(directory: &OwnedFd, root: bool, depth: usize) -> Result<(), Fault> {
    if depth > DEPTH_MAX {
        return Err(Fault::User(format!("its directories are deeper than {DEPTH_MAX}")));
    }
    let node = |e: rustix::io::Errno| Fault::Node(e.into());
    let own = root.then_some((Uid::ROOT, Gid::ROOT));
    if let Some((uid, gid)) = own {
        rustix::fs::fchown(directory, Some(uid), Some(gid)).map_err(node)?;
    }
    let mode = |raw: u32| Mode::from_raw_mode(raw & 0o1777);
    let found = rustix::fs::fstat(directory).map_err(node)?;
    rustix::fs::fchmod(directory, mode(found.st_mode)).map_err(node)?;
    for entry in Dir::read_from(directory.as_fd()).map_err(node)? {
        let entry = entry.map_err(node)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(node)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let inner = rustix::fs::openat(directory, name, flags, Mode::empty()).map_err(node)?;
                settle(&inner, root, depth + 1)?;
                continue;
            }
            // A change of owner drops the bits as well, but not for everybody.
            FileType::RegularFile => {
                rustix::fs::chmodat(directory, name, mode(found.st_mode), AtFlags::empty()).map_err(node)?;
            }
            FileType::Symlink => {}
            // A job has its own `/dev`.
            _ => {
                rustix::fs::unlinkat(directory, name, AtFlags::empty()).map_err(node)?;
                continue;
            }
        }
        if let Some((uid, gid)) = own {
            rustix::fs::chownat(directory, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(node)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_files_are_in_the_list() {
        let check = |line: &str, want: Option<u64>| assert_eq!(size_in(line.as_bytes()), want, "{line}");
        check("-rw-r--r-- 0/0                 1234 2020-01-01 00:00 squashfs-root/a b", Some(1234));
        check("drwxr-xr-x 1000/1000             27 2020-01-01 00:00 squashfs-root", None);
        check("lrwxrwxrwx 0/0                    7 2020-01-01 00:00 squashfs-root/l -> usr/bin", None);
        check("crw-rw-rw- 0/0               1,  3 2020-01-01 00:00 squashfs-root/null", None);
        check("Parallel unsquashfs: Using 2 processors", None);
        check("", None);
    }
}
