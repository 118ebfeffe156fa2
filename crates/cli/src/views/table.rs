//! Tables without rules, as `ls` and `ps` have them: they can be read and cut.

use crate::output::Look;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};

/// A table under construction.
pub(crate) struct Grid {
    table: Table,
    look: Look,
    columns: Vec<CellAlignment>,
}

/// Text that may have a colour.
pub(crate) struct Text {
    text: String,
    colour: Option<Color>,
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Text {
        let text: String = text.into();
        // A line feed in a title would tear the table.
        Text { text: text.replace(['\n', '\r', '\t'], " "), colour: None }
    }
}

impl Text {
    pub fn coloured(text: impl Into<String>, colour: Option<Color>) -> Text {
        Text { colour, ..Text::from(text) }
    }
}

impl Grid {
    /// Headers; those that begin with `>` are of columns with numbers.
    pub fn new(look: &Look, headers: &[&str]) -> Grid {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if look.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let columns: Vec<CellAlignment> = headers
            .iter()
            .map(|h| if h.starts_with('>') { CellAlignment::Right } else { CellAlignment::Left })
            .collect();
        table.set_header(headers.iter().zip(&columns).map(|(header, alignment)| {
            let cell = Cell::new(header.trim_start_matches('>')).set_alignment(*alignment);
            if look.colour { cell.add_attribute(Attribute::Bold) } else { cell }
        }));
        Grid { table, look: *look, columns }
    }

    pub fn row<const N: usize>(&mut self, cells: [Text; N]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for every column");
        let colours = self.look.colour;
        let cells = cells.into_iter().zip(&self.columns).map(|(text, alignment)| {
            let cell = Cell::new(text.text).set_alignment(*alignment);
            match text.colour.filter(|_| colours) {
                Some(colour) => cell.fg(colour),
                None => cell,
            }
        });
        self.table.add_row(cells);
    }

    pub fn finish(mut self) -> String {
        for column in self.table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        self.table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

/// Names and values below each other.
pub(crate) fn card(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines = pairs
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name:width$}  {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Colour of a state of an operation or a job.
pub(crate) fn state_colour(state: &str) -> Option<Color> {
    match state {
        "running" | "online" => Some(Color::Green),
        "failed" | "failing" | "lost" | "offline" | "banned" => Some(Color::Red),
        "aborted" | "aborting" | "suspended" => Some(Color::Yellow),
        "completed" => Some(Color::Blue),
        "pending" | "waiting" => Some(Color::Cyan),
        _ => None,
    }
}

/// The beginning of a long text.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let cut: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// `a dash` for what is empty.
pub(crate) fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}
