//! The line between a shell and us: a terminal of the job's, or a pipe.

use cage::Container;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchown, fcntl_setfl, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// Our end, which does not block, and the end for the shell.
pub(super) type Line = (File, OwnedFd);

/// A pseudo-terminal of the job's own `/dev/pts`, so that the shell finds it under its name there.
pub(super) fn terminal(
    container: &dyn Container,
    owner: Option<(u32, u32)>,
    size: (u32, u32),
) -> io::Result<Line> {
    let master =
        container.root().map_or_else(|| PathBuf::from("/dev/ptmx"), |root| root.join("dev/pts/ptmx"));
    // Whatever might lie there instead must neither hold us up nor become our terminal.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let ours = open(&master, flags, Mode::empty())?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    if let Some((user, group)) = owner {
        fchown(&theirs, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
    }
    resize(&ours, size)?;
    Ok((File::from(ours), theirs))
}

/// Rows and columns; zero means that they are not known and changes nothing.
pub(super) fn resize(terminal: impl AsFd, (rows, columns): (u32, u32)) -> io::Result<()> {
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let short = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    let size = Winsize { ws_row: short(rows), ws_col: short(columns), ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}

/// One direction only: what the shell writes.
pub(super) fn pipe() -> io::Result<Line> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&read, OFlags::NONBLOCK)?;
    Ok((File::from(read), write))
}
