//! Project quotas: a bound on what directories take on disk that the kernel keeps (jobs-and-nodes.md 4.9).
//!
//! A directory is given to a *project*, a number; all that is made in it from then on is the project's too, and
//! what a project may take, and takes, is asked by its number. ext4 and xfs can do that, if they were
//! made and mounted for it. Limits and numbers are on the disk: they outlive whoever set them, so whoever
//! sets them takes them back.
//!
//! `quotactl_fd` (Linux 5.14) and not `quotactl`: it wants any file there, not the device, which a container has not.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// What a project takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskUse {
    /// Bytes, as allocated.
    pub space: u64,
    /// Files and directories, with those that were given to it.
    pub inodes: u64,
}

/// What a project may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskLimits {
    /// Bytes, in steps of 1024, rounded up; none: no limit.
    pub space: Option<u64>,
    /// Files and directories; none: no limit.
    pub inodes: Option<u64>,
}

/// What [`limit`] counts space in.
const BLOCK: u64 = 1024;
/// How long files that were removed may still count.
const SETTLES: Duration = Duration::from_secs(1);
/// Bytes that a [`try_out`] allows: xfs makes no file unless there is room for all that this could ever need.
const TRIED: usize = 1 << 20;

/// Gives directories, with nothing else in them, to a project that nobody else has.
///
/// Fails with `AlreadyExists` if something else is counted for the project: then its use would not be theirs alone.
/// After a failure the directories are of the projects that they were of.
pub fn claim(directories: &[&Path], project: u32) -> io::Result<()> {
    let opened: Vec<OwnedFd> = directories.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
    let Some(on) = opened.first() else { return Ok(()) };
    let before: Vec<FileAttributes> = opened.iter().map(attributes).collect::<Result<_, _>>()?;
    // Before they count for somebody else's limits.
    alone(on, project, before.iter().filter(|attributes| attributes.project == project).count())?;
    let assigned = opened.iter().zip(&before).try_for_each(|(directory, attributes)| {
        set_attributes(
            directory,
            FileAttributes { project, flags: attributes.flags | INHERITED, ..*attributes },
        )
    });
    // Another node may have looked at the same moment.
    let claimed = assigned.and_then(|()| alone(on, project, opened.len()));
    if claimed.is_err() {
        for (directory, attributes) in opened.iter().zip(before) {
            set_attributes(directory, attributes)?;
        }
    }
    claimed
}

/// Waits until the project has nothing but `own` directories.
fn alone(on: &OwnedFd, project: u32, own: usize) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        let inodes = usage(on, project)?.inodes;
        if inodes == own as u64 {
            return Ok(());
        }
        // Some file systems count what was removed for a moment.
        if inodes < own as u64 || begun.elapsed() > SETTLES {
            let text = format!("project {project} has {inodes} files and directories where {own} are ours");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Gives a directory to a project, whatever else that has; whoever owns the directory may.
pub fn give(directory: &Path, project: u32) -> io::Result<()> {
    let directory = open(directory)?;
    assign(&directory, attributes(&directory)?, project)
}

/// The project that a directory was given to; 0: none.
pub fn project(directory: &Path) -> io::Result<u32> {
    attributes(&open(directory)?).map(|attributes| attributes.project)
}

/// Sets the limits of a project on the file system that `on` is part of; no limit replaces an earlier one.
pub fn limit(on: impl AsFd, project: u32, limits: DiskLimits) -> io::Result<()> {
    // SAFETY: plain numbers, zero is valid.
    let mut asked: libc::dqblk = unsafe { std::mem::zeroed() };
    // Zero is "no limit" to the kernel.
    asked.dqb_bhardlimit = limits.space.map_or(0, |bytes| bytes.div_ceil(BLOCK).max(1));
    asked.dqb_ihardlimit = limits.inodes.map_or(0, |inodes| inodes.max(1));
    asked.dqb_valid = libc::QIF_BLIMITS | libc::QIF_ILIMITS;
    control(on, libc::Q_SETQUOTA, project, &mut asked)
}

/// What a project takes on the file system that `on` is part of.
pub fn usage(on: impl AsFd, project: u32) -> io::Result<DiskUse> {
    look_up(on, project).map(|found| DiskUse { space: found.dqb_curspace, inodes: found.dqb_curinodes })
}

/// What a project may take there.
pub fn limits(on: impl AsFd, project: u32) -> io::Result<DiskLimits> {
    let found = look_up(on, project)?;
    let set = |limit: u64| (limit != 0).then_some(limit);
    Ok(DiskLimits {
        space: set(found.dqb_bhardlimit.saturating_mul(BLOCK)),
        inodes: set(found.dqb_ihardlimit),
    })
}

fn look_up(on: impl AsFd, project: u32) -> io::Result<libc::dqblk> {
    // SAFETY: as above.
    let mut found: libc::dqblk = unsafe { std::mem::zeroed() };
    match control(on, libc::Q_GETQUOTA, project, &mut found) {
        // xfs's word for a project that has nothing.
        Err(e) if Errno::from_io_error(&e) != Some(Errno::NOENT) => Err(e),
        _ => Ok(found),
    }
}

/// Finds out, by doing, whether the kernel keeps limits in an existing empty directory: whoever is not privileged is
/// refused one file too many, and bytes too many. The error says what cannot be done. Leaves the directory empty.
pub fn try_out(directory: &Path, project: u32) -> io::Result<()> {
    claim(&[directory], project)?;
    let top = open(directory)?;
    let own = usage(&top, project)?;
    let limits = DiskLimits { space: Some(own.space + TRIED as u64), inodes: Some(own.inodes + 1) };
    let tried = limit(&top, project, limits).and_then(|()| {
        // Capabilities are a thread's own, and so this one's end with it.
        let thread = std::thread::scope(|scope| scope.spawn(|| exceed(&top)).join());
        thread.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    for name in [FIRST, SECOND] {
        let _ = rustix::fs::unlinkat(&top, name, AtFlags::empty());
    }
    let removed = limit(&top, project, DiskLimits::default());
    tried.and(removed)
}

const FIRST: &str = "first";
const SECOND: &str = "second";

/// The part of [`try_out`] that must be refused twice.
fn exceed(top: &OwnedFd) -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective.remove(CapabilitySet::SYS_RESOURCE);
    set_capabilities(None, sets)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let make = |name| rustix::fs::openat(top, name, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(make(FIRST)?);
    let files = make(SECOND).map(drop).map_err(io::Error::from);
    let bytes = file.write_all(&vec![1; 4 * TRIED]).and_then(|()| file.sync_all());
    for tried in [files, bytes] {
        match tried {
            Ok(()) => return Err(io::Error::other("quotas are counted there, and not enforced")),
            Err(e) if is_refusal(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Is this what the kernel says to those who are at their limit?
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::QuotaExceeded | io::ErrorKind::StorageFull)
}

/// `struct fsxattr` of the kernel.
#[repr(C)]
#[derive(Clone, Copy)]
struct FileAttributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    copy_extent_size: u32,
    padding: [u8; 8],
}

/// What is made in the directory has its project.
const INHERITED: u32 = 0x200;
const GET_ATTRIBUTES: Opcode = opcode::read::<FileAttributes>(b'X', 31);
/// Changes the project of a file, which needs no privilege but to own it.
pub(crate) const SET_ATTRIBUTES: Opcode = opcode::write::<FileAttributes>(b'X', 32);
/// Changes whether projects are inherited, among others.
pub(crate) const SET_FLAGS: Opcode = opcode::write::<libc::c_long>(b'f', 2);

fn attributes(directory: &OwnedFd) -> io::Result<FileAttributes> {
    // SAFETY: the opcode reads exactly this structure, of plain numbers.
    Ok(unsafe { ioctl(directory, Getter::<GET_ATTRIBUTES, FileAttributes>::new()) }?)
}

fn assign(directory: &OwnedFd, found: FileAttributes, project: u32) -> io::Result<()> {
    set_attributes(directory, FileAttributes { project, flags: found.flags | INHERITED, ..found })
}

fn set_attributes(directory: &OwnedFd, attributes: FileAttributes) -> io::Result<()> {
    // SAFETY: the opcode takes exactly this structure.
    Ok(unsafe { ioctl(directory, Setter::<SET_ATTRIBUTES, FileAttributes>::new(attributes)) }?)
}

fn open(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, directory, flags, Mode::empty())?)
}

fn control(on: impl AsFd, command: libc::c_int, project: u32, data: &mut libc::dqblk) -> io::Result<()> {
    const PROJECT: u32 = 2;
    let command = ((command as u32) << 8) | PROJECT;
    // SAFETY: both commands that are used here take this structure and no more.
    let done = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            on.as_fd().as_raw_fd(),
            command,
            project,
            std::ptr::from_mut(data),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of `linux/fs.h`: the filter of isolated processes compares with them.
    #[test]
    fn opcodes_are_the_kernels() {
        assert_eq!((size_of::<FileAttributes>(), size_of::<libc::dqblk>()), (28, 72));
        assert_eq!(GET_ATTRIBUTES, 0x801c_581f);
        assert_eq!(SET_ATTRIBUTES, 0x401c_5820);
        assert_eq!(SET_FLAGS, 0x4008_6602);
    }

    /// Where there are none, that is an error and nothing else.
    #[test]
    fn a_file_system_without_quotas_says_so() {
        // In memory: no kernel that this is for has quotas of projects there.
        let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
            return println!("SKIPPED a file system without quotas: no /dev/shm");
        };
        assert!(try_out(directory.path(), 0x7fff_0001).is_err());
        let on = open(directory.path()).expect("it is there");
        assert!(usage(&on, 1).is_err() && limits(&on, 1).is_err());
        assert!(limit(&on, 1, DiskLimits::default()).is_err());
        assert_eq!(std::fs::read_dir(directory.path()).expect("it stays").count(), 0);
        claim(&[], 1).expect("nothing to do");
        let missing = claim(&[&directory.path().join("missing")], 1).expect_err("not there");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn both_words_of_the_kernel_are_refusals() {
        for (errno, want) in
            [(Errno::DQUOT, true), (Errno::NOSPC, true), (Errno::ACCESS, false), (Errno::IO, false)]
        {
            assert_eq!(is_refusal(&errno.into()), want, "{errno:?}");
        }
    }
}
