//! Which columns of a table somebody reads, and under which names (http-api.md 5.4: `columns`, `rename_columns`).

use crate::row;
use crate::select::about;
use vocab::Failure;
use yson::ypath::YPath;
use yson::{Map, Style, Value};

/// See the module page. The default is all columns as they are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Columns {
    /// Only these, by the names that the reader knows; none for all.
    pub only: Option<Vec<Vec<u8>>>,
    /// The name in the table, and the one that the reader knows.
    pub renamed: Vec<(Vec<u8>, Vec<u8>)>,
    /// Columns of the table that are left out whatever is asked for: whoever reads may not see them.
    pub closed: Vec<Vec<u8>>,
}

impl Columns {
    /// What the attributes of a path say.
    pub fn of(path: &YPath) -> Result<Columns, Failure> {
        Columns::read(path).map_err(|failure| about(path, failure))
    }

    fn read(path: &YPath) -> Result<Columns, Failure> {
        let given = |name: &str| path.attributes.get(name).filter(|v| !v.is_entity());
        let only = match given("columns") {
            None => None,
            Some(value) => Some(names(value).ok_or_else(|| wrong("columns", "a list of strings", value))?),
        };
        let renamed = match given("rename_columns") {
            None => Vec::new(),
            Some(value) => {
                let expected = "a map from names of columns to their new names";
                pairs(value).ok_or_else(|| wrong("rename_columns", expected, value))?
            }
        };
        for (number, (old, new)) in renamed.iter().enumerate() {
            let twice = renamed[..number].iter().find(|(_, other)| other == new);
            if new.is_empty() || twice.is_some() {
                let (old, new) = (old.escape_ascii(), new.escape_ascii());
                let why = match twice {
                    Some((other, _)) => format!("as \"{}\" is, too", other.escape_ascii()),
                    None => "which is no name of a column".to_owned(),
                };
                return Err(Failure::new(format!(
                    "Attribute \"rename_columns\" of the path: column \"{old}\" is to be called \"{new}\", {why}"
                )));
            }
        }
        Ok(Columns { only, renamed, closed: Vec::new() })
    }

    /// Are rows read as they are?
    pub fn is_all(&self) -> bool {
        self.only.is_none() && self.renamed.is_empty() && self.closed.is_empty()
    }

    /// Is this column of the table wanted?
    pub fn reads(&self, name: &[u8]) -> bool {
        self.shown(name).is_some()
    }

    /// What the reader knows a column of the table by; none if it does not want it. Whoever is given the name of
    /// another column takes its place.
    pub(crate) fn shown<'n>(&'n self, name: &'n [u8]) -> Option<&'n [u8]> {
        if self.closed.iter().any(|closed| closed == name) {
            return None;
        }
        let shown = match self.renamed.iter().find(|(old, _)| old == name) {
            Some((_, new)) => new,
            None if self.renamed.iter().any(|(_, new)| new == name) => return None,
            None => name,
        };
        let wanted = self.only.as_ref().is_none_or(|only| only.iter().any(|c| c == shown));
        wanted.then_some(shown)
    }

    /// A row as the reader wants it, in its inner form.
    pub(crate) fn cut(&self, row: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.push(b'{');
        for (name, value) in row::columns(row) {
            if let Some(shown) = self.shown(name) {
                yson::write::write(&Value::String(shown.to_vec()), Style::Binary, out);
                out.push(b'=');
                out.extend_from_slice(value);
                out.push(b';');
            }
        }
        out.extend_from_slice(b"};");
    }

    /// For records and other processes, which are never given what is closed: `#` or a list of names, with the attribute `renamed` if there are such.
    pub fn to_value(&self) -> Value {
        let string = |name: &Vec<u8>| Value::String(name.clone());
        let only = match &self.only {
            None => Value::Entity,
            Some(names) => Value::List(names.iter().map(string).collect()),
        };
        if self.renamed.is_empty() {
            return only;
        }
        let renamed: Map = self.renamed.iter().map(|(old, new)| (old.as_slice(), string(new))).collect();
        only.with_attributes(yson::map! {"renamed" => renamed})
    }

    /// The inverse.
    pub fn from_value(value: &Value) -> Option<Columns> {
        let only = if value.is_entity() { None } else { Some(names(value)?) };
        let renamed = value.attribute("renamed").map_or(Some(Vec::new()), pairs)?;
        Some(Columns { only, renamed, closed: Vec::new() })
    }
}

fn names(value: &Value) -> Option<Vec<Vec<u8>>> {
    value.as_list()?.iter().map(|name| name.as_bytes().map(<[u8]>::to_vec)).collect()
}

fn pairs(value: &Value) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    value.as_map()?.iter().map(|(old, new)| Some((old.to_vec(), new.as_bytes()?.to_vec()))).collect()
}

fn wrong(name: &str, expected: &str, found: &Value) -> Failure {
    let found = found.type_name();
    Failure::new(format!("Attribute \"{name}\" of the path must be {expected}, found {found}"))
}
