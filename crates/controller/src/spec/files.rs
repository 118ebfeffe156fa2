//! Paths in a user script: files to fetch, tmpfs volumes, names of environment variables.

use std::path::Path;

use super::reader::{Reader, expected, refuse_at};
use vocab::sandbox_path::{check_file_name, check_together, plain_directory};
use vocab::{Failure, TmpfsVolume};
use yson::ypath::YPath;
use yson::{Map, Value};

/// A file that the spec wants in the sandbox. Its path is resolved by the owner of the metadata
/// tree, who then calls `OperationController::set_artifacts`.
#[derive(Clone, PartialEq, Debug)]
pub struct FileRequest {
    /// The path with its attributes, wherever they were written.
    pub path: YPath,
    /// Name in the sandbox; otherwise the node's own `file_name`, otherwise its key.
    pub file_name: Option<String>,
    /// Overrides the node's `executable`.
    pub executable: Option<bool>,
    /// Do not keep it in the node's cache.
    pub bypass_artifact_cache: bool,
}

/// A list of file paths.
pub(crate) fn read_files(r: &mut Reader<'_>, name: &'static str) -> Result<Vec<FileRequest>, Failure> {
    let path = r.path_of(name);
    let list = r.list(name).or(Vec::new())?;
    list.into_iter()
        .enumerate()
        .map(|(i, v)| read_file(&v).map_err(|why| refuse_at(&format!("{path}/{i}"), why)))
        .collect()
}

/// Refuses names that exclude each other. Those that come from the metadata tree are compared when they are known.
pub(crate) fn check_places(
    r: &Reader<'_>,
    files: &[FileRequest],
    volumes: &[TmpfsVolume],
) -> Result<(), Failure> {
    let names = files.iter().filter_map(|file| file.file_name.as_deref());
    check_together(names, volumes.iter().map(|volume| volume.path.as_str()))
        .map_err(|(_, why)| r.refuse("file_paths", why))
}

fn read_file(value: &Value) -> Result<FileRequest, String> {
    let path = YPath::from_value(value).map_err(|e| e.to_string())?;
    let attribute = |name: &str| path.attributes.get(name).filter(|v| !v.is_entity());
    let flag = |name: &str| {
        let wrong = |v| format!("attribute {name}: {}", expected("boolean", v));
        attribute(name).map(|v| v.as_bool().ok_or_else(|| wrong(v))).transpose()
    };
    let file_name = match attribute("file_name") {
        None => None,
        Some(v) => {
            let text = v.as_str().ok_or_else(|| format!("attribute file_name: {}", expected("string", v)))?;
            check_file_name(text).map_err(|why| format!("attribute file_name: {why}"))?;
            Some(text.to_owned())
        }
    };
    let (executable, bypass) = (flag("executable")?, flag("bypass_artifact_cache")?);
    Ok(FileRequest { file_name, executable, bypass_artifact_cache: bypass.unwrap_or(false), path })
}

/// `tmpfs_path` with `tmpfs_size`, or `tmpfs_volumes` (jobs-and-nodes.md 2.7, 4.9).
pub(crate) fn read_tmpfs(r: &mut Reader<'_>, memory_limit: i64) -> Result<Vec<TmpfsVolume>, Failure> {
    let path = r.string("tmpfs_path").optional()?;
    let size = r.int("tmpfs_size", 1..=i64::MAX).optional()?;
    let list_path = r.path_of("tmpfs_volumes");
    let listed = r.list("tmpfs_volumes").or(Vec::new())?;
    r.check_count("tmpfs_volumes", listed.len())?;
    let mut volumes = Vec::new();
    match (path, size) {
        (Some(_), _) | (None, Some(_)) if !listed.is_empty() => {
            return Err(r.refuse("tmpfs_volumes", "it excludes \"tmpfs_path\" and \"tmpfs_size\""));
        }
        (None, Some(_)) => return Err(r.refuse("tmpfs_size", "it needs \"tmpfs_path\"")),
        // Without a size the volume may take all of the job's memory.
        (Some(path), size) => {
            volumes.push((r.path_of("tmpfs_path"), TmpfsVolume { path, size: size.unwrap_or(memory_limit) }))
        }
        (None, None) => {}
    }
    for (i, v) in listed.iter().enumerate() {
        let at = format!("{list_path}/{i}");
        let map = v.as_map().ok_or_else(|| refuse_at(&at, expected("map {size; path}", v)))?;
        let mut inner = Reader::new(map, at.clone());
        let volume = TmpfsVolume {
            path: inner.string("path").required()?,
            size: inner.int("size", 1..=i64::MAX).required()?,
        };
        volumes.push((at, volume));
    }
    for (at, volume) in &mut volumes {
        volume.path = plain_directory(&volume.path).map_err(|why| refuse_at(at, why))?;
    }
    check_volumes(r, &volumes, memory_limit)?;
    Ok(volumes.into_iter().map(|(_, v)| v).collect())
}

fn check_volumes(
    r: &Reader<'_>,
    volumes: &[(String, TmpfsVolume)],
    memory_limit: i64,
) -> Result<(), Failure> {
    for (i, (at, volume)) in volumes.iter().enumerate() {
        let inside = |a: &str, b: &str| a == "." || Path::new(b).starts_with(a);
        if let Some((_, other)) =
            volumes[..i].iter().find(|(_, o)| inside(&o.path, &volume.path) || inside(&volume.path, &o.path))
        {
            return Err(refuse_at(
                at,
                format_args!(
                    "path {:?} and path {:?} of another volume are one inside the other",
                    volume.path, other.path
                ),
            ));
        }
    }
    let total = volumes.iter().fold(0i64, |sum, (_, v)| sum.saturating_add(v.size));
    if total > memory_limit {
        let name = if volumes.len() == 1 && volumes[0].0.ends_with("tmpfs_path") {
            "tmpfs_size"
        } else {
            "tmpfs_volumes"
        };
        return Err(
            r.refuse(name, format_args!("total size {total} is greater than memory_limit {memory_limit}"))
        );
    }
    Ok(())
}

/// `environment`: names `[A-Za-z_][A-Za-z0-9_]*` (jobs-and-nodes.md 5.3), values strings.
pub(crate) fn read_environment(r: &mut Reader<'_>) -> Result<Vec<(String, String)>, Failure> {
    let path = r.path_of("environment");
    let map: Map = r.map("environment").or(Map::new())?;
    map.iter()
        .map(|(name, value)| {
            let at = super::reader::child_path(&path, name);
            let text = std::str::from_utf8(name)
                .ok()
                .filter(|n| is_variable_name(n))
                .ok_or_else(|| refuse_at(&at, "a variable's name must match [A-Za-z_][A-Za-z0-9_]*"))?;
            let value = value.as_str().ok_or_else(|| refuse_at(&at, expected("UTF-8 string", value)))?;
            if value.contains('\0') {
                return Err(refuse_at(&at, "a variable's value must not contain NUL"));
            }
            Ok((text.to_owned(), value.to_owned()))
        })
        .collect()
}

/// `[A-Za-z_][A-Za-z0-9_]*`
pub fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
