//! What `/proc` says about processes.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// A process for ever: pids are used again, pairs of pid and start time are not (within one boot).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessId {
    /// Process id.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`, clock ticks since boot.
    pub start_time: u64,
}

impl ProcessId {
    /// The calling process.
    pub fn own() -> io::Result<ProcessId> {
        let stat =
            Stat::read("self").ok_or_else(|| io::Error::other("/proc/self/stat is missing or malformed"))?;
        Ok(ProcessId { pid: stat.pid, start_time: stat.start_time })
    }
    /// The process that has this pid now.
    pub fn of(pid: u32) -> Option<ProcessId> {
        Stat::of(pid).map(|s| ProcessId { pid, start_time: s.start_time })
    }
    /// Does it run? A zombie does not.
    pub fn is_alive(self) -> bool {
        Stat::of(self.pid).is_some_and(|s| s.start_time == self.start_time && !s.is_dead())
    }
}

/// Identity of the host's boot.
pub fn boot_id() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|s| s.trim().to_owned())
}

/// Reads a small file of the kernel's at once: such files are made anew by each read from the
/// start, and the growing buffer of the standard library would ask six times for one.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let mut text = Vec::new();
    let mut buffer = [0; SMALL];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => text.extend_from_slice(&buffer[..n]),
        }
    }
    Ok(text)
}
const SMALL: usize = 4096;

/// The fields of `/proc/PID/stat` that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub pid: u32,
    pub state: u8,
    pub parent: u32,
    pub session: u32,
    pub major_faults: u64,
    /// Ticks of the process and its reaped children.
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub start_time: u64,
}

impl Stat {
    pub fn of(pid: u32) -> Option<Stat> {
        Stat::read(&pid.to_string())
    }

    fn read(name: &str) -> Option<Stat> {
        Stat::parse(&read_small(Path::new(&format!("/proc/{name}/stat"))).ok()?)
    }

    /// The name in the second field may hold anything, also `) R 1`: fields are counted from the
    /// last parenthesis.
    fn parse(text: &[u8]) -> Option<Stat> {
        let close = text.iter().rposition(|b| *b == b')')?;
        let pid = std::str::from_utf8(text.split(|b| *b == b' ').next()?).ok()?.parse().ok()?;
        let rest = std::str::from_utf8(text.get(close + 2..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first of `fields` is field 3 of the manual.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Stat {
            pid,
            state: *fields.first()?.as_bytes().first()?,
            parent: number(4)? as u32,
            session: number(6)? as u32,
            major_faults: number(12)? + number(13)?,
            user_ticks: number(14)? + number(16)?,
            system_ticks: number(15)? + number(17)?,
            start_time: number(22)?,
        })
    }

    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Every process of the host that can be seen.
    pub fn all() -> Vec<Stat> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).filter_map(Stat::of).collect()
    }
}

/// Living descendants of a process by the kernel's own lists of children; none if it keeps no such
/// lists. A process that forks meanwhile may be missed: whoever must have all asks again.
pub(crate) fn descendants(root: u32) -> Option<Vec<Stat>> {
    let mut found = Vec::new();
    let mut next = vec![root];
    let mut lists = false;
    while let Some(pid) = next.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let Ok(children) = fs::read_to_string(task.path().join("children")) else { continue };
            lists = true;
            for child in children.split_ascii_whitespace().filter_map(|c| c.parse().ok()) {
                next.push(child);
                found.extend(Stat::of(child).filter(|s| !s.is_dead()));
            }
        }
    }
    lists.then_some(found)
}

/// One process in the list that explains who used the memory (jobs-and-nodes.md 4.8).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u32,
    /// Short name.
    pub name: String,
    /// Command line, of the largest processes of a list.
    pub cmdline: Vec<String>,
    /// Resident memory, bytes.
    pub rss: i64,
    /// Part of it that is shared with others or backed by files, bytes.
    pub shared: i64,
}

/// Longest command line that is kept; a user can make it megabytes.
const CMDLINE_MAX: u64 = 4096;
/// Longest list; a fork bomb has thousands of processes.
const LISTED: usize = 100;
/// So many of the largest are shown with their command lines. Reading one waits for the process's memory
/// map, which a process short of memory may hold for long.
const WITH_CMDLINE: usize = 10;

impl ProcessInfo {
    /// The largest of them that are there, largest first.
    pub(crate) fn list(pids: impl Iterator<Item = u32>) -> Vec<ProcessInfo> {
        let mut list: Vec<ProcessInfo> = pids.filter_map(ProcessInfo::without_cmdline).collect();
        list.sort_by_key(|p| std::cmp::Reverse(p.rss));
        list.truncate(LISTED);
        for process in list.iter_mut().take(WITH_CMDLINE) {
            process.read_cmdline();
        }
        list
    }
    /// The process with this pid, if it is there.
    pub fn of(pid: u32) -> Option<ProcessInfo> {
        let mut process = ProcessInfo::without_cmdline(pid)?;
        process.read_cmdline();
        Some(process)
    }
    fn without_cmdline(pid: u32) -> Option<ProcessInfo> {
        let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
        let (rss, shared) = memory_of(pid).unwrap_or_default();
        let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
        Some(ProcessInfo { pid, name, cmdline: Vec::new(), rss, shared })
    }
    fn read_cmdline(&mut self) {
        let mut cmdline = Vec::new();
        let Ok(file) = fs::File::open(format!("/proc/{}/cmdline", self.pid)) else { return };
        if file.take(CMDLINE_MAX).read_to_end(&mut cmdline).is_err() {
            return;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.cmdline = cmdline.split(|b| *b == 0).filter(|p| !p.is_empty()).map(text).collect();
    }
}

/// Resident and shared bytes of a process.
pub fn memory_of(pid: u32) -> Option<(i64, i64)> {
    let statm = read_small(Path::new(&format!("/proc/{pid}/statm"))).ok()?;
    let mut fields =
        std::str::from_utf8(&statm).ok()?.split_ascii_whitespace().skip(1).map(|f| f.parse::<i64>().ok());
    let page = rustix::param::page_size() as i64;
    Some((fields.next()?? * page, fields.next()?? * page))
}

/// Does the process carry `NAME=value` in its environment, as it was at exec? False if unreadable.
pub(crate) fn environ_contains(pid: u32, entry: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|e| e.split(|b| *b == 0).any(|x| x == entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_shift_fields() {
        let line = b"17 (a) Z 1 (b) S 3 17 16 0 -1 4194304 1 2 3 4 50 60 7 8 20 0 1 0 990 1 1";
        let stat = Stat::parse(line).expect("a good line");
        assert_eq!((stat.pid, stat.state, stat.parent, stat.session), (17, b'S', 3, 16));
        assert_eq!((stat.user_ticks, stat.system_ticks, stat.start_time), (57, 68, 990));
        assert_eq!(stat.major_faults, 7);
        for bad in [&b""[..], b"17", b"17 (a)", b"17 (a) S 1 2", b"x (a) S 3 17 16"] {
            assert_eq!(Stat::parse(bad), None);
        }
    }

    #[test]
    fn our_own_process_is_alive_and_known() {
        let own = ProcessId::own().expect("we run");
        assert!(own.is_alive());
        assert!(!ProcessId { start_time: own.start_time + 1, ..own }.is_alive());
        // More than the kernel may leave uncounted for a while.
        let held = std::hint::black_box(vec![1_u8; 16 << 20]);
        let info = ProcessInfo::of(own.pid).expect("we run");
        assert!(info.rss - info.shared > 12 << 20 && info.shared >= 0, "{info:?}");
        drop(held);
        assert!(!info.cmdline.is_empty());
    }
}
