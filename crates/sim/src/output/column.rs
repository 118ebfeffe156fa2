//! Columns of tables: CSV and JSON lines need their names, Parquet what is in them too.

/// What is in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Whole numbers.
    Int,
    /// Numbers with three digits.
    Number,
    /// Words.
    Text,
}

/// See the module page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name, the same in every form.
    pub name: &'static str,
    /// What is in it.
    pub kind: Kind,
}

/// A column of whole numbers.
pub const fn int(name: &'static str) -> Column {
    Column { name, kind: Kind::Int }
}

/// A column of numbers with three digits.
pub const fn num(name: &'static str) -> Column {
    Column { name, kind: Kind::Number }
}

/// A column of words.
pub const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}
