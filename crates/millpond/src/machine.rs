//! What this host has and where things go on it.

use cli::CliError;
use std::path::PathBuf;
use vocab::{Cpu, Resources};

/// Name of the host.
pub fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// What one of `nodes` equal nodes of this host offers: its part of the cores and of the memory, and
/// slots enough for many small jobs. `dedicated` cores are not offered (jobs-and-nodes.md 3.2).
pub fn resources(nodes: u16, dedicated: Option<Cpu>) -> Resources {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    divided(cores, dedicated.unwrap_or(Cpu(0)), total_memory(), nodes)
}

fn divided(cores: usize, dedicated: Cpu, memory: i64, nodes: u16) -> Resources {
    let nodes = i64::from(nodes.max(1));
    let cores = i64::try_from(cores).unwrap_or(1);
    let cpu = Cpu(((cores * 100 - dedicated.0) / nodes).max(1));
    Resources { cpu, memory: memory / nodes, user_slots: (4 * cores / nodes).max(32), ..Resources::ZERO }
}

/// Bytes; 1 GiB where the system does not tell.
fn total_memory() -> i64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    parse_total(&text).unwrap_or(1 << 30)
}

fn parse_total(meminfo: &str) -> Option<i64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Where a cluster on this host keeps its data: `MILLPOND_DATA`, else the place for data of a user.
/// It does not depend on the directory that the command was typed in, so that `millpond up` finds the
/// same cluster every time.
pub fn data_directory(env: impl Fn(&str) -> Option<String>) -> Result<PathBuf, CliError> {
    let given = |name| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    given("MILLPOND_DATA")
        .or_else(|| Some(given("XDG_DATA_HOME")?.join("millpond")))
        .or_else(|| Some(given("HOME")?.join(".local/share/millpond")))
        .ok_or_else(|| {
            CliError::usage("there is no HOME to keep data in").with_hint("name a directory with --data")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_the_machine() {
        let one = divided(8, Cpu(0), 16 << 30, 1);
        assert_eq!((one.cpu, one.memory, one.user_slots), (Cpu(800), 16 << 30, 32));
        let three = divided(64, Cpu(0), 96 << 30, 3);
        assert_eq!((three.cpu, three.memory, three.user_slots), (Cpu(2133), 32 << 30, 85));
        assert_eq!(divided(1, Cpu(0), 1 << 30, 100).cpu, Cpu(1), "never nothing");
        assert_eq!(divided(8, Cpu(150), 1 << 30, 2).cpu, Cpu(325), "what is dedicated is not shared out");
        assert_eq!(divided(1, Cpu(500), 1 << 30, 1).cpu, Cpu(1));
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(parse_total("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert_eq!(parse_total("nonsense"), None);
    }

    #[test]
    fn the_data_directory_does_not_depend_on_where_one_stands() {
        let check = |env: &[(&str, &str)], expected: Option<&str>| {
            let get = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            assert_eq!(data_directory(get).ok(), expected.map(PathBuf::from), "{env:?}");
        };
        check(&[("MILLPOND_DATA", "/d"), ("HOME", "/h")], Some("/d"));
        check(&[("XDG_DATA_HOME", "/x"), ("HOME", "/h")], Some("/x/millpond"));
        check(&[("MILLPOND_DATA", ""), ("HOME", "/h")], Some("/h/.local/share/millpond"));
        check(&[], None);
    }
}
