//! Rows of tables, as data: nothing here reads a file, opens a socket or knows what a table is called.
//!
//! Inside of Millpond a row has one form: a map in binary YSON with `;` behind it. Rows in a row are a
//! list fragment; that is also what lies in a block of a chunk, so that a reader who wants binary YSON is
//! served with the bytes as they lie on the disk.
//!
//! ```text
//! bytes of a client or of a job --Intake--> rows --Checker--> rows --ChunkBuilder--> bytes of a chunk
//! bytes of a chunk --Index--> blocks --rows()--> rows --Printer--> bytes in the format of the reader
//! ```
//!
//! 1. [`row`]: what can be seen of a row without making values of it.
//! 2. [`Intake`]: rows out of any format, piece by piece.
//! 3. [`Schema`], [`Checker`]: what rows may look like, and in which order they may come.
//! 4. [`ChunkBuilder`], [`Index`]: how rows lie on the disk. [`Writer`] is intake, check and chunk in one.
//! 5. [`Printer`], [`Selection`]: rows in a format, and which of them are wanted.
#![forbid(unsafe_code)]

mod alike;
mod check;
mod chunk;
mod column_types;
mod columns;
mod inherit;
mod intake;
mod key;
mod print;
pub mod row;
mod schema;
mod select;
mod text;
mod writer;

pub use check::Checker;
pub use chunk::{Block, ChunkBuilder, Index, TRAILER};
pub use column_types::shown as shown_schema;
pub use columns::Columns;
pub use inherit::{inherit, inherit_the_same};
pub use intake::{Intake, MAX_ROW};
pub use key::compare as compare_keys;
pub use print::{Control, Printer};
pub use schema::{Column, Schema};
pub use select::{Range, Selection, about};
pub use writer::{RowWriter, Summary, Writer};
