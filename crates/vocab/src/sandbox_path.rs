//! Names of files and directories in the sandbox of a job (jobs-and-nodes.md 3.7, 4.9).
//!
//! Every place in a sandbox has exactly one name that passes these checks, so names can be compared as texts.

use std::collections::BTreeSet;

/// Longest component of a name, in bytes: `NAME_MAX` of Linux.
pub const COMPONENT_MAX: usize = 255;
/// Longest name, in bytes: `PATH_MAX` of Linux less room for the directories above a sandbox.
pub const NAME_MAX: usize = 3072;

/// Checks the name of a file: components between single slashes, none of them `.` or `..`.
pub fn check_file_name(name: &str) -> Result<(), String> {
    check_path(name)?;
    if name.split('/').any(|part| part.is_empty() || part == ".") {
        return Err(format!(
            "{} is not in its plain form: expected components between single slashes, without \".\"",
            shown(name)
        ));
    }
    Ok(())
}

/// Gives the plain form of a directory's name; `.` is the sandbox itself.
pub fn plain_directory(path: &str) -> Result<String, String> {
    check_path(path)?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

/// Checks that files can lie in one sandbox together: no name is there twice, and none is a directory that another name
/// or a memory file system needs. All names are in their plain form.
pub fn check_together<'a>(
    files: impl IntoIterator<Item = &'a str>,
    volumes: impl IntoIterator<Item = &'a str>,
) -> Result<(), (&'a str, String)> {
    let mut names = BTreeSet::new();
    for file in files {
        if !names.insert(file) {
            return Err((file, format!("the name {} is there twice", shown(file))));
        }
    }
    let is_file = |name: &str| names.contains(name);
    for (inner, kind) in
        names.iter().map(|name| (*name, "file")).chain(volumes.into_iter().map(|v| (v, "memory file system")))
    {
        if kind != "file" && is_file(inner) {
            return Err((inner, format!("{} is a file and a memory file system", shown(inner))));
        }
        let above = inner.match_indices('/').map(|(at, _)| &inner[..at]).find(|above| is_file(above));
        if let Some(above) = above {
            let text =
                format!("the file {} cannot be the directory of the {kind} {}", shown(above), shown(inner));
            return Err((above, text));
        }
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("the path is empty".to_owned());
    }
    if path.len() > NAME_MAX {
        return Err(format!("{} has {} bytes: at most {NAME_MAX} are allowed", shown(path), path.len()));
    }
    if path.contains('\0') {
        return Err(format!("path {path:?} must not contain NUL"));
    }
    if path.starts_with('/') {
        return Err(format!("path {path:?} is not relative to the sandbox"));
    }
    for part in path.split('/') {
        if part == ".." {
            return Err(format!("path {path:?} must not contain \"..\""));
        }
        if part.len() > COMPONENT_MAX {
            let length = part.len();
            return Err(format!(
                "{} has a component of {length} bytes: at most {COMPONENT_MAX} are allowed",
                shown(path)
            ));
        }
    }
    Ok(())
}

/// The name in quotes; of a long one its beginning.
fn shown(path: &str) -> String {
    const SHOWN_MAX: usize = 64;
    match path.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("path {:?}...", &path[..end]),
        None => format!("path {path:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1, S4: what the node cannot carry out, or would carry out somewhere else, is refused.
    #[test]
    fn file_names_have_one_form() {
        let component = "x".repeat(COMPONENT_MAX);
        for good in ["a", "dir/a", "a..b", ".hidden", "...", &component, "ж/☃"] {
            assert_eq!(check_file_name(good), Ok(()), "{good}");
        }
        let (long, deep) = (format!("{component}x"), "d/".repeat(NAME_MAX / 2) + "f");
        for bad in [
            "",
            "/etc/passwd",
            "../a",
            "a/../../b",
            "a\0b",
            ".",
            "./a",
            "a/",
            "d//f",
            "d/./f",
            "a/.",
            &long,
            &deep,
        ] {
            assert!(check_file_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn directories_come_to_their_plain_form() {
        for (path, plain) in [("a", "a"), ("./a//b/.", "a/b"), (".", "."), ("./", "."), ("a/", "a")] {
            assert_eq!(plain_directory(path).as_deref(), Ok(plain), "{path}");
        }
        for bad in ["", "/a", "a/../b", "a\0", &"x".repeat(COMPONENT_MAX + 1)] {
            assert!(plain_directory(bad).is_err(), "{bad}");
        }
    }

    /// S4: `f` together with `f/g` was accepted and then tried again without end.
    #[test]
    fn names_that_exclude_each_other() {
        let culprit = |files: &[&'static str], volumes: &[&'static str]| {
            check_together(files.iter().copied(), volumes.iter().copied()).err().map(|(name, _)| name)
        };
        assert_eq!(culprit(&["f", "g", "d/f", "d/g", "f.g"], &[".", "d", "e"]), None);
        assert_eq!(culprit(&["f", "f"], &[]), Some("f"));
        assert_eq!(culprit(&["f/g", "f"], &[]), Some("f"));
        assert_eq!(culprit(&["d/e", "d/e/f/g"], &[]), Some("d/e"));
        assert_eq!(culprit(&["v"], &["v"]), Some("v"));
        assert_eq!(culprit(&["v"], &["v/inside"]), Some("v"));
    }
}
