//! What a stopped cluster must not leave behind: processes, mounts, control groups.
//!
//! The same look is taken while jobs run: a check that never finds anything proves nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// How things of the demo are recognised.
#[derive(Clone, Debug)]
pub struct Marks {
    /// `NAME=value` in the environment of its processes.
    pub environment: String,
    /// Where all its files are.
    pub directory: PathBuf,
    /// Control groups of its nodes, relative to the hierarchies.
    pub groups: Vec<String>,
}

/// What was found, one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Living processes.
    pub processes: Vec<String>,
    /// Mounts.
    pub mounts: Vec<String>,
    /// Control groups.
    pub groups: Vec<String>,
}

impl Found {
    /// Looks at this machine.
    pub fn look(marks: &Marks) -> Found {
        Found::look_at(marks, Path::new("/proc"))
    }

    /// Looks at the machine that `/proc` describes.
    pub fn look_at(marks: &Marks, proc: &Path) -> Found {
        let table = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
        Found {
            processes: processes(marks, proc),
            mounts: mounts(marks, &table),
            groups: groups(marks, &table),
        }
    }

    /// Nothing at all?
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.mounts.is_empty() && self.groups.is_empty()
    }

    /// How many of each.
    pub fn counts(&self) -> String {
        format!(
            "{} processes, {} mounts, {} control groups",
            self.processes.len(),
            self.mounts.len(),
            self.groups.len()
        )
    }

    /// Each by name.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let named = |what: &'static str, list: &[String]| -> Vec<String> {
            list.iter().map(|one| format!("  {what} {one}")).collect()
        };
        [
            named("process", &self.processes),
            named("mount", &self.mounts),
            named("control group", &self.groups),
        ]
        .into_iter()
        .flatten()
    }
}

/// A process is ours if it has our mark, is in one of our groups, or works in our directory.
fn processes(marks: &Marks, proc: &Path) -> Vec<String> {
    let own = std::process::id();
    let mut pids: Vec<u32> = fs::read_dir(proc)
        .map(|entries| entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
        .unwrap_or_default();
    pids.sort_unstable();
    pids.retain(|pid| *pid != own);
    let is_ours = |at: &Path| {
        let environment = fs::read(at.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == marks.environment.as_bytes())
            || fs::read_link(at.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&marks.directory))
            || fs::read_to_string(at.join("cgroup")).is_ok_and(|groups| is_in_groups(marks, &groups))
    };
    pids.into_iter()
        .filter_map(|pid| {
            let at = proc.join(pid.to_string());
            // The dead whose parent has not looked yet are no processes any more.
            let status = fs::read_to_string(at.join("stat")).ok()?;
            let (_, state) = status.rsplit_once(')')?;
            if state.trim_start().starts_with(['Z', 'X']) || !is_ours(&at) {
                return None;
            }
            let command = fs::read(at.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            Some(format!("{pid} {}", command.trim_end().chars().take(120).collect::<String>()))
        })
        .collect()
}

/// Lines of `/proc/PID/cgroup` are `4:memory:/path`.
fn is_in_groups(marks: &Marks, text: &str) -> bool {
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut inside = paths.map(|path| path.trim_start_matches('/'));
    inside.any(|path| marks.groups.iter().any(|group| Path::new(path).starts_with(group)))
}

fn mounts(marks: &Marks, table: &str) -> Vec<String> {
    let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
    points
        .filter(|point| point.starts_with(&marks.directory))
        .map(|point| point.display().to_string())
        .collect()
}

fn groups(marks: &Marks, table: &str) -> Vec<String> {
    let hierarchies = table.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        matches!(right.split(' ').next(), Some("cgroup" | "cgroup2"))
            .then(|| left.split(' ').nth(4).map(unescape))?
    });
    let mut found = Vec::new();
    for hierarchy in hierarchies {
        for group in &marks.groups {
            collect_directories(&hierarchy.join(group), &mut found);
        }
    }
    found
}

fn collect_directories(at: &Path, found: &mut Vec<String>) {
    if !at.is_dir() {
        return;
    }
    found.push(at.display().to_string());
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_directories(&entry.path(), found);
        }
    }
}

/// Blanks and the like are written as `\040`.
fn unescape(field: &str) -> PathBuf {
    let mut text = String::new();
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        match after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                text.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                text.push('\\');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `/proc` and a cgroup hierarchy in a temporary directory.
    fn fake(name: &str) -> (PathBuf, Marks) {
        let base = std::env::temp_dir().join(format!("millpond-demo-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let write = |path: &str, text: &str| {
            let path = base.join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("directory");
            fs::write(path, text).expect("file");
        };
        for (pid, state, environ, groups) in [
            (11, 'S', "A=1\0MILLPOND_DEMO=/d\0", "0::/\n"),
            (12, 'R', "A=1\0", "4:memory:/millpond/n1/jobs/x\n0::/\n"),
            (13, 'Z', "", "4:memory:/millpond/n1/jobs/x\n"),
            (14, 'S', "B=MILLPOND_DEMO=/d\0", "4:memory:/millpond/n10\n"),
        ] {
            write(&format!("proc/{pid}/stat"), &format!("{pid} (a ) b) {state} 1 1"));
            write(&format!("proc/{pid}/environ"), environ);
            write(&format!("proc/{pid}/cgroup"), groups);
            write(&format!("proc/{pid}/cmdline"), "sleep\x001000\0");
        }
        let hierarchy = base.join("cg");
        fs::create_dir_all(hierarchy.join("millpond/n1/jobs/x")).expect("groups");
        fs::create_dir_all(hierarchy.join("millpond/n10")).expect("groups");
        write(
            "proc/self/mountinfo",
            &format!(
                "30 1 0:1 / {} rw - cgroup cgroup rw,memory\n31 1 0:2 / /d/slots/a\\040b rw - tmpfs tmpfs rw\n\
                 32 1 0:2 / /dd rw shared:1 - tmpfs tmpfs rw\n",
                hierarchy.display()
            ),
        );
        let marks = Marks {
            environment: "MILLPOND_DEMO=/d".to_owned(),
            directory: PathBuf::from("/d"),
            groups: vec!["millpond/n1".to_owned()],
        };
        (base, marks)
    }

    #[test]
    fn what_is_ours_is_found_and_nothing_else() {
        let (base, marks) = fake("found");
        let found = Found::look_at(&marks, &base.join("proc"));
        assert_eq!(found.processes, ["11 sleep 1000", "12 sleep 1000"]);
        assert_eq!(found.mounts, ["/d/slots/a b"]);
        assert_eq!(found.groups.len(), 3, "{:?}", found.groups);
        assert_eq!(found.counts(), "2 processes, 1 mounts, 3 control groups");
        assert!(!found.is_empty());
        assert_eq!(found.lines().count(), 6);
        fs::remove_dir_all(base).expect("clean up");
    }

    #[test]
    fn a_clean_machine() {
        let marks = Marks {
            environment: "MILLPOND_DEMO=/no/such/demo".to_owned(),
            directory: PathBuf::from("/no/such/demo"),
            groups: vec!["millpond/no-such-node".to_owned()],
        };
        let found = Found::look(&marks);
        assert!(found.is_empty(), "{found:?}");
    }
}
