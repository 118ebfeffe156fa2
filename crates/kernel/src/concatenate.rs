//! `concatenate` (http-api.md 8.1). Tables get the chunks of others; contents of files are joined by the edge, which
//! alone reads them: it is told which, and asks again with what it has made of them.

use crate::{Command, Effect, Kernel, TableRows};
use cypress::{Body, Content};
use tables::{Schema, Selection};
use vocab::{Failure, ObjectId, Time, code};
use yson::Value;
use yson::ypath::YPath;

/// As many as a table may have chunks.
const MAX_SOURCES: usize = 10_000;

/// What is to be joined to be the content of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct FileParts {
    /// The file.
    pub destination: ObjectId,
    /// Blobs with their sizes, in order; 0 stands for the content of a file that was never written.
    pub contents: Vec<(u64, u64)>,
    /// Bytes that the file may get, by limit.
    pub room: yson::Map,
    /// Bytes of the content that is replaced.
    pub replaced: u64,
}

/// What the edge has made of parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// The parts, as they were: if they are others by now they are to be joined anew.
    pub of: Vec<(u64, u64)>,
    /// Key of the blob in the store.
    pub blob: u64,
    /// Bytes.
    pub size: u64,
}

impl Kernel {
    /// What the edge has to join before this command can be carried out. What will be refused needs nothing.
    pub(crate) fn to_join(&self, command: &Command) -> Option<FileParts> {
        let Command::Concatenate { sources, destination, append, joined } = command else { return None };
        let parts = self.file_parts((sources, destination), *append).ok()??;
        let is_done = joined.as_ref().is_some_and(|joined| joined.of == parts.contents);
        let changes_nothing = *append && sources.is_empty();
        (!is_done && !changes_nothing).then_some(parts)
    }

    /// Parts of what the destination will be; none of a table.
    fn file_parts(
        &self,
        (sources, destination): (&[YPath], &YPath),
        append: bool,
    ) -> Result<Option<FileParts>, Failure> {
        let expected = "a file or a table";
        let (id, node) = self.tree_node(destination, expected)?;
        let present = match &node.body {
            Body::File(content) => content.as_ref(),
            Body::Table(_) => return Ok(None),
            _ => return Err(self.unexpected(id, expected)),
        };
        if sources.len() > MAX_SOURCES {
            let message =
                format!("\"source_paths\" has {} paths, at most {MAX_SOURCES} are allowed", sources.len());
            return Err(Failure::coded(code::ACCOUNT_LIMIT, message));
        }
        let of = |content: Option<&Content>| content.map_or((0, 0), |content| (content.blob, content.size));
        let mut contents: Vec<(u64, u64)> = append.then(|| of(present)).into_iter().collect();
        for path in sources {
            demand_whole(path, u64::MAX, "files")?;
            contents.push(of(self.file(path)?.1));
        }
        let (room, replaced) = (self.disk_room(id), of(present).1);
        Ok(Some(FileParts { destination: id, contents, room, replaced }))
    }

    /// `concatenate`; of files, when their contents are joined: then the answer is the blob that was taken, since what
    /// is asked twice is joined twice.
    pub(crate) fn concatenate(
        &mut self,
        now: Time,
        user: &str,
        (sources, destination): (&[YPath], &YPath),
        (append, joined): (bool, Option<Joined>),
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        Selection::refuse_ranges(destination)?;
        let Some(FileParts { destination: id, .. }) = self.file_parts((sources, destination), append)? else {
            return self.join_tables(now, user, (sources, destination), append, out).map(|()| Value::Entity);
        };
        let Some(Joined { blob, size, .. }) = joined else { return Ok(Value::Entity) };
        let content = Content { blob, size, md5: None };
        self.edit(now, user, out, |edit| edit.set_file_content(id, Some(content)))?;
        Ok(blob.into())
    }

    /// Rows of tables one after another, without copying them.
    fn join_tables(
        &mut self,
        now: Time,
        user: &str,
        (sources, destination): (&[YPath], &YPath),
        append: bool,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (_, target) = self.table(destination)?;
        let schema = target.schema.clone();
        let chunks = self.chunks_of(sources, &schema)?;
        let sorted_by = Schema::parse(&schema)?.map(|s| s.key_columns()).unwrap_or_default();
        let rows = TableRows { chunks, append, sorted_by, schema, replace_schema: false };
        self.table_written(now, user, destination, rows, out)
    }
}

/// Refuses a path to a part of what it leads to.
pub(crate) fn demand_whole(path: &YPath, size: u64, what: &str) -> Result<(), Failure> {
    let selection = Selection::of(path, size)?;
    if selection.is_whole(size) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{path}: only whole {what} are joined, a selection of rows or columns is not supported"
    )))
}
