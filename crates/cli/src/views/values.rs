//! Values of the tree, and acknowledgements.

use crate::output::{Look, Output};
use crate::units::{age, bytes};
use crate::views::read::{integer, text, time};
use crate::views::table::{Grid, or_dash};
use yson::{Value, map};

/// `get`: YSON for people too, since that is what `set` takes.
pub struct Tree(pub Value);

impl Output for Tree {
    fn human(&self, _: &Look) -> String {
        String::from_utf8_lossy(&yson::to_pretty(&self.0)).into_owned()
    }
    fn json(&self) -> Value {
        self.0.clone()
    }
    fn quiet(&self) -> String {
        scalar(&self.0)
    }
}

/// Strings without quotes, the rest on one line.
fn scalar(value: &Value) -> String {
    match value.bare() {
        Value::String(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => String::from_utf8_lossy(&yson::to_text(other)).into_owned(),
    }
}

/// One short answer: an id, `true`.
pub struct Scalar(pub Value);

impl Output for Scalar {
    fn human(&self, _: &Look) -> String {
        match self.0.as_bool() {
            Some(b) => b.to_string(),
            None => scalar(&self.0),
        }
    }
    fn json(&self) -> Value {
        self.0.clone()
    }
    fn quiet(&self) -> String {
        self.human(&Look { colour: false, now: vocab::Time::ZERO })
    }
}

/// `list`.
pub struct Names {
    /// Children, perhaps with attributes.
    pub names: Vec<Value>,
    /// Which attributes to show; none of them: the names alone.
    pub columns: Vec<String>,
    /// The usual columns.
    pub long: bool,
}

impl Output for Names {
    fn human(&self, look: &Look) -> String {
        if self.long {
            return self.long_table(look);
        }
        if self.columns.is_empty() {
            return self.quiet();
        }
        let lines = self.names.iter().map(|name| {
            let attribute = |column: &String| match name.attribute(column) {
                Some(value) => format!("{column}={}", scalar(value)),
                None => format!("{column}=-"),
            };
            let attributes: Vec<String> = self.columns.iter().map(attribute).collect();
            format!("{}  {}", scalar(name), attributes.join("  "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
    fn json(&self) -> Value {
        self.names.clone().into()
    }
    fn quiet(&self) -> String {
        self.names.iter().map(scalar).collect::<Vec<_>>().join("\n")
    }
}

impl Names {
    /// Attributes that the long form needs.
    pub const LONG: [&'static str; 4] =
        ["type", "uncompressed_data_size", "modification_time", "target_path"];

    fn long_table(&self, look: &Look) -> String {
        let mut grid = Grid::new(look, &["TYPE", ">SIZE", "CHANGED", "NAME"]);
        for name in &self.names {
            let attributes = name.attributes().unwrap_or(yson::Map::EMPTY);
            let size = match attributes.contains("uncompressed_data_size") {
                true => bytes(integer(attributes, "uncompressed_data_size")),
                false => "-".to_owned(),
            };
            let shown = match text(attributes, "target_path") {
                "" => scalar(name),
                target => format!("{} -> {target}", scalar(name)),
            };
            grid.row([
                or_dash(text(attributes, "type")).into(),
                size.into(),
                time(attributes, "modification_time").map_or("-".to_owned(), |t| age(t, look.now)).into(),
                shown.into(),
            ]);
        }
        grid.finish()
    }
}

/// Something was done to something: said to people, and to programs what it was done to.
pub struct Done {
    /// What, as a verb in the past: `aborted`.
    pub verb: &'static str,
    /// To what.
    pub names: Vec<String>,
}

impl Output for Done {
    fn human(&self, _: &Look) -> String {
        self.names.iter().map(|name| format!("{name} {}", self.verb)).collect::<Vec<_>>().join("\n")
    }
    fn json(&self) -> Value {
        map! { self.verb => self.names.clone() }.into()
    }
    /// Whoever wants silence knows what he has done.
    fn quiet(&self) -> String {
        String::new()
    }
}
