//! What a node has for itself on its host: its data directory, its name and its control groups.
//!
//! Two agents with one name would remove each other's control groups and kill each other's jobs. So an agent claims all three
//! before it touches any, and its groups carry an identifier that is drawn once for each data directory: agents of two
//! clusters never meet in one group, whatever their names are.

use std::hash::BuildHasher;
use std::path::{Component, Path};

use super::layout::Layout;
use super::lock::{Attempt, Lock};
use super::records;
use crate::{NodeConfig, NodeError};

/// Given back when dropped, also by death.
#[derive(Debug)]
pub(crate) struct Claims {
    _locks: Vec<Lock>,
}

/// Claims a data directory. Fails if another process has it.
pub(crate) fn data_directory(root: &Path) -> Result<Lock, NodeError> {
    match Lock::take(&root.join("lock"), &std::process::id().to_string())? {
        Attempt::Taken(lock) => Ok(lock),
        Attempt::HeldBy(pid) => Err(NodeError::Locked { directory: root.to_owned(), pid }),
    }
}

impl Claims {
    /// Claims the node's name and its control group on this host; `config` must name the group.
    pub fn take(config: &NodeConfig, layout: &Layout) -> Result<Claims, NodeError> {
        let holder =
            format!("process {} with data directory {}", std::process::id(), layout.root().display());
        let mut locks = Vec::new();
        for directory in datadir::runtime_directories()? {
            for (kind, name) in [("node", &config.address), ("group", &config.root_group())] {
                let path = directory.join(format!("{kind}-{}.lock", escaped(name)));
                match Lock::take(&path, &holder)? {
                    Attempt::Taken(lock) => locks.push(lock.removed_at_end(&path)),
                    Attempt::HeldBy(holder) => {
                        return Err(NodeError::Claimed { kind, name: name.clone(), holder });
                    }
                }
            }
        }
        Ok(Claims { _locks: locks })
    }
}

/// As the name of a file: what is not a letter, a digit or one of `.-_` as its code; a long one as its hash.
fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let escaped: String = name
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") })
        .collect();
    match escaped.len() {
        ..=200 => escaped,
        _ => format!("{:016x}", rustc_hash::FxBuildHasher.hash_one(name)),
    }
}

/// Name of the node's control group, the same in each of its lives: from the file `group` of the data directory, drawn at the
/// first start. Groups of the release 0.1 had no identifier: a data directory with jobs of such a node keeps its group.
pub(crate) fn group_name(config: &NodeConfig, layout: &Layout) -> Result<String, NodeError> {
    if config.root_group.is_some() {
        return Ok(config.root_group());
    }
    let path = layout.group();
    match std::fs::read_to_string(&path) {
        Ok(text) => return checked(text.trim(), &path),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(NodeError::io("read", &path)(e)),
    }
    let name = match has_jobs(layout)? {
        true => config.root_group(),
        // Eight hexadecimal digits are enough to be read, and one host has few nodes.
        false => format!("{}-{}", config.root_group(), draw()?.chars().take(8).collect::<String>()),
    };
    write(&path, &name)?;
    Ok(name)
}

/// Identifier of the data directory, drawn at its first start. The server believes an agent that it knows the jobs of the
/// agent before it if both say the same one, so no two data directories have one: the name of the group is not enough, since
/// it can be configured.
pub(crate) fn data_id(layout: &Layout) -> Result<String, NodeError> {
    let path = layout.id();
    match std::fs::read_to_string(&path) {
        Ok(text) if is_uuid(text.trim()) => Ok(text.trim().to_owned()),
        Ok(text) => {
            let text = format!("expected a UUID, found {:?}: remove the file if no jobs run", text.trim());
            Err(NodeError::io("read", &path)(std::io::Error::new(std::io::ErrorKind::InvalidData, text)))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let id = draw()?;
            write(&path, &id)?;
            Ok(id)
        }
        Err(e) => Err(NodeError::io("read", &path)(e)),
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// All of the text, or nothing.
fn write(path: &Path, text: &str) -> Result<(), NodeError> {
    datadir::write_secret(path, format!("{text}\n")).map_err(NodeError::io("write", path))
}

fn checked(name: &str, path: &Path) -> Result<String, NodeError> {
    let is_plain =
        !name.is_empty() && Path::new(name).components().all(|c| matches!(c, Component::Normal(_)));
    match is_plain {
        true => Ok(name.to_owned()),
        false => Err(NodeError::GroupFile { path: path.to_owned(), found: name.to_owned() }),
    }
}

fn has_jobs(layout: &Layout) -> Result<bool, NodeError> {
    let slots = layout.slots();
    for entry in std::fs::read_dir(&slots).map_err(NodeError::io("read", &slots))? {
        let entry = entry.map_err(NodeError::io("read", &slots))?;
        let slot = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if slot.is_some_and(|slot| !matches!(records::read(&layout.job(slot)), Ok(None))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A random UUID.
fn draw() -> Result<String, NodeError> {
    let source = Path::new("/proc/sys/kernel/random/uuid");
    let uuid = std::fs::read_to_string(source).map_err(NodeError::io("read", source))?;
    Ok(uuid.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Resources;

    fn node(directory: &Path, name: &str) -> (NodeConfig, Layout) {
        let layout = Layout::create(directory).expect("a directory");
        (NodeConfig::new("s:1", name, directory, Resources::ZERO), layout)
    }

    /// S10.
    #[test]
    fn a_group_is_the_same_in_each_life_and_differs_between_data_directories() {
        let (one, other) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let name = |directory: &Path, name| {
            let (config, layout) = node(directory, name);
            group_name(&config, &layout).expect("a name")
        };
        let first = name(one.path(), "host");
        assert!(first.starts_with("millpond/host-"), "{first}");
        assert_eq!(name(one.path(), "host"), first);
        assert_eq!(name(one.path(), "renamed"), first, "jobs of before are found after a change of the name");
        assert_ne!(name(other.path(), "host"), first);
    }

    /// S19: a directory that has the group of another one, by configuration or from release 0.1, is another directory.
    #[test]
    fn each_data_directory_has_an_identifier_of_its_own() {
        let (one, other) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let id = |directory: &Path| {
            let (mut config, layout) = node(directory, "host");
            config.root_group = Some("millpond/host".to_owned());
            assert_eq!(group_name(&config, &layout).expect("a name"), "millpond/host");
            data_id(&layout)
        };
        let first = id(one.path()).expect("drawn");
        assert_eq!(id(one.path()).expect("read"), first);
        assert_ne!(id(other.path()).expect("drawn"), first);
        std::fs::write(one.path().join("id"), "").expect("written");
        let refused = id(one.path()).expect_err("it is empty").to_string();
        assert!(refused.contains("expected a UUID, found \"\""), "{refused}");
    }

    /// Jobs of the release 0.1 are in a group without an identifier, and must be found there.
    #[test]
    fn a_node_with_jobs_of_an_earlier_release_keeps_its_group() {
        let directory = tempfile::tempdir().expect("a directory");
        let (config, layout) = node(directory.path(), "host");
        std::fs::create_dir_all(layout.job(3)).expect("made");
        std::fs::write(layout.job(3).join(records::NAME), "a record").expect("written");
        for _ in 0..2 {
            assert_eq!(group_name(&config, &layout).expect("a name"), "millpond/host");
            // Also when the jobs have ended.
            let _ = records::remove(&layout.job(3));
        }
    }

    #[test]
    fn names_of_locks_are_different() {
        let long = "x".repeat(300);
        assert_eq!([escaped("a-b.c_1"), escaped("a/b"), escaped("a_b")], ["a-b.c_1", "a%2fb", "a_b"]);
        assert!(escaped(&long).len() < 200 && escaped(&long) != escaped(&format!("{long}x")));
    }

    #[test]
    fn a_file_that_leads_elsewhere_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let (config, layout) = node(directory.path(), "host");
        for text in ["", "/x", "a/../b"] {
            std::fs::write(layout.group(), text).expect("written");
            assert!(matches!(group_name(&config, &layout), Err(NodeError::GroupFile { .. })), "{text:?}");
        }
    }

    /// S10.
    #[test]
    fn one_agent_of_a_host_has_a_name_at_a_time() {
        let (one, other) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let name = format!("claims-test-{}", std::process::id());
        let claim = |directory: &Path| {
            let (mut config, layout) = node(directory, &name);
            config.root_group = Some(group_name(&config, &layout).expect("a name"));
            Claims::take(&config, &layout)
        };
        let first = claim(one.path()).expect("nobody has it");
        let refused = claim(other.path()).expect_err("it is taken").to_string();
        assert!(refused.contains(&name) && refused.contains(&one.path().display().to_string()), "{refused}");
        drop(first);
        claim(other.path()).expect("it is free again");
    }
}
