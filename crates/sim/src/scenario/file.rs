//! The document as it is in files, and JSON pointers into it (RFC 6901).

use crate::error::SimError;
use std::path::{Path, PathBuf};
use yson::fields::FieldError;
use yson::{JsonFormat, Map, Value};

/// A scenario file with the parts that it keeps in other files.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file.
    pub path: PathBuf,
    /// Everything, whole.
    pub value: Value,
    /// Top-level keys whose values come from other files.
    pub included: Vec<(&'static str, PathBuf)>,
}

impl Document {
    /// An error with the file that the option stands in.
    pub(super) fn locate(&self, mut error: FieldError) -> SimError {
        for (key, file) in &self.included {
            if let Some(rest) = error.path.strip_prefix(key) {
                let old = error.path.clone();
                let path = rest.trim_start_matches('/').to_owned();
                error.message =
                    error.message.replacen(&format!("option \"{old}\""), &format!("option \"{path}\""), 1);
                error.path = path;
                return SimError::field(file, None, error);
            }
        }
        SimError::field(&self.path, None, error)
    }
}

/// Reads a JSON or (by its ending) YSON file.
pub fn read_value(path: &Path) -> Result<Value, SimError> {
    let bytes = std::fs::read(path).map_err(|e| SimError::file(path, format!("cannot be read: {e}")))?;
    let value = if path.extension().is_some_and(|e| e == "yson") {
        yson::parse(&bytes).map_err(|e| e.to_string())
    } else {
        yson::json::from_json(&bytes, &JsonFormat::utf8()).map_err(|e| e.to_string())
    };
    value.map_err(|e| SimError::file(path, e))
}

/// Reads a scenario file and what it includes.
pub fn read_document(path: &Path) -> Result<Document, SimError> {
    let mut document = Document { path: path.to_owned(), value: read_value(path)?, included: Vec::new() };
    document.include()?;
    Ok(document)
}

impl Document {
    /// Puts parts that stand in other files where their names are, and pool trees into one form.
    pub(super) fn include(&mut self) -> Result<(), SimError> {
        let folder = self.path.parent().unwrap_or(Path::new("")).to_owned();
        for key in ["cluster", "pool_trees"] {
            let Some(name) = self.value.get(key).and_then(Value::as_str) else { continue };
            let file = folder.join(name);
            let value = read_value(&file)?;
            if let Some(map) = self.value.as_map_mut() {
                map.insert(key, value);
            }
            self.included.retain(|(other, _)| *other != key);
            self.included.push((key, file));
        }
        let trees = self.value.get("pool_trees").map(super::exported::as_scenario);
        let trees = trees.transpose().map_err(|e| self.locate(e))?;
        if let (Some(Some(trees)), Some(map)) = (trees, self.value.as_map_mut()) {
            map.insert("pool_trees", trees);
        }
        Ok(())
    }
}

fn tokens(pointer: &str) -> Result<Vec<String>, String> {
    let rest = pointer.strip_prefix('/').ok_or("expected a JSON pointer, which begins with \"/\"")?;
    Ok(rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect())
}

/// What a pointer leads to.
pub fn at_pointer<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    tokens(pointer).ok()?.iter().try_fold(root, |value, token| match value.bare() {
        Value::List(list) => list.get(token.parse::<usize>().ok()?),
        value => value.get(token),
    })
}

/// Sets what a pointer leads to; maps on the way are made. `null` removes a key of a map.
pub fn set_pointer(root: &mut Value, pointer: &str, new: Value) -> Result<(), String> {
    let tokens = tokens(pointer)?;
    let (last, path) = tokens.split_last().ok_or("expected a JSON pointer to a part of the scenario")?;
    let mut value = root;
    for token in path {
        value = match value.bare_mut() {
            Value::List(list) => {
                let length = list.len();
                let index = token.parse::<usize>().ok().filter(|i| *i < length);
                let index = index.ok_or_else(|| no_item(token, length))?;
                &mut list[index]
            }
            Value::Map(map) => map.entry_or_insert(token.as_bytes(), || Value::Map(Map::new())),
            other => return Err(format!("{token:?} is looked for in a {}", other.type_name())),
        };
    }
    match value.bare_mut() {
        Value::List(list) => {
            let length = list.len();
            match last.parse::<usize>().ok().filter(|i| *i < length) {
                Some(index) => list[index] = new,
                None if last == "-" => list.push(new),
                None => return Err(no_item(last, length)),
            }
        }
        Value::Map(map) if new.is_entity() => drop(map.remove(last)),
        Value::Map(map) => drop(map.insert(last, new)),
        other => return Err(format!("{last:?} is looked for in a {}", other.type_name())),
    }
    Ok(())
}

fn no_item(token: &str, length: usize) -> String {
    format!("{token:?} is no item of a list of {length}")
}
