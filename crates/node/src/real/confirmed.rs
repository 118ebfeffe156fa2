//! Where leases of jobs begin, as the server has confirmed (S19), for the next agent on this boot of the host.
//!
//! The clock of leases starts with the host, so the file means nothing after a restart of the host. It is written with every
//! confirmation while exclusive jobs run, and need not reach the disk: what the kernel holds survives the death of the agent.

use std::io;
use std::path::Path;

use vocab::Span;
use vocab::lease::MAX_LEASE;

/// Writes the file.
pub(crate) fn write(path: &Path, boot_id: &str, from: Span) -> io::Result<()> {
    datadir::write_closed(path, format!("{boot_id} {}\n", from.0))
}

/// What the agent before this one has written on the same boot of the host; `None` if it has not, or if nobody can have
/// confirmed that.
pub(crate) fn read(path: &Path, boot_id: &str, since_boot: Span) -> Option<Span> {
    let text = std::fs::read_to_string(path).ok()?;
    let (boot, from) = text.trim().split_once(' ')?;
    let from = Span(from.parse().ok()?);
    // No extension is longer than the longest lease.
    (!boot_id.is_empty() && boot == boot_id && from <= since_boot + MAX_LEASE).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S19.
    #[test]
    fn what_was_confirmed_counts_until_the_host_restarts() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("confirmed");
        let now = Span::from_secs(1000);
        assert_eq!(read(&path, "b1", now), None);
        write(&path, "b1", Span::from_secs(900)).expect("written");
        write(&path, "b1", Span::from_secs(8200)).expect("written again");
        assert_eq!(read(&path, "b1", now), Some(Span::from_secs(8200)), "leases are extended");
        assert_eq!(read(&path, "b2", now), None);
        assert_eq!(read(&path, "", now), None);
        write(&path, "b1", now + MAX_LEASE + Span(1)).expect("written");
        assert_eq!(read(&path, "b1", now), None);
        std::fs::write(&path, "b1 soon").expect("written");
        assert_eq!(read(&path, "b1", now), None);
    }
}
