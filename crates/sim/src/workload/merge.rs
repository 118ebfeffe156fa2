//! All files of a workload as one stream, by time.

use super::{Operation, Reader};
use crate::error::SimError;
use crate::random::name_hash;
use std::collections::BTreeSet;
use std::path::PathBuf;
use vocab::Span;

/// See the module page. Operations of one time come in the order of the files.
pub struct Workload {
    sources: Vec<Source>,
    /// Of the names so far: hashes of 64 bits are enough to tell a million of them apart.
    names: BTreeSet<u64>,
    /// What is reserved for job proxies.
    footprint: i64,
}

struct Source {
    reader: Reader,
    next: Option<Operation>,
    last: Span,
}

impl Source {
    fn advance(&mut self, names: &mut BTreeSet<u64>, footprint: i64) -> Result<Option<Operation>, SimError> {
        let new = self.reader.take_next()?;
        if let Some(new) = &new {
            if !names.insert(name_hash(&new.id)) {
                let what = format!("expected an id of its own, found {:?} again", new.id);
                return Err(self.reader.error("/id", what));
            }
            new.check_estimates(footprint)
                .map_err(|e| SimError::field(self.reader.path(), Some(self.reader.line()), e))?;
            if new.at < self.last {
                let (found, last) = (new.at.as_millis(), self.last.as_millis());
                let what = format!("operations must be sorted: expected at least {last}, found {found}");
                return Err(self.reader.error("/at", what));
            }
            self.last = new.at;
        }
        Ok(std::mem::replace(&mut self.next, new))
    }
}

impl Workload {
    /// Opens the files and looks at the first operation of each. `inline`: lines that stand in no file;
    /// `footprint`: what is reserved for job proxies.
    pub fn open(files: &[PathBuf], inline: &[u8], footprint: i64) -> Result<Workload, SimError> {
        let (mut sources, mut names) = (Vec::new(), BTreeSet::new());
        if !inline.is_empty() {
            let reader = Reader::of(inline.to_vec());
            let mut source = Source { reader, next: None, last: Span::ZERO };
            source.advance(&mut names, footprint)?;
            sources.push(source);
        }
        for file in files {
            let mut source = Source { reader: Reader::open(file)?, next: None, last: Span::ZERO };
            source.advance(&mut names, footprint)?;
            sources.push(source);
        }
        Ok(Workload { sources, names, footprint })
    }

    fn first(&self) -> Option<(Span, usize)> {
        let times = self.sources.iter().enumerate().filter_map(|(i, s)| Some((s.next.as_ref()?.at, i)));
        times.min()
    }

    /// Does the first operation of a file have jobs that run at the start already?
    pub fn begins_with_running_jobs(&self) -> bool {
        self.sources.iter().any(|s| s.next.as_ref().is_some_and(|operation| !operation.running.is_empty()))
    }

    /// When the next operation comes.
    pub fn next_time(&self) -> Option<Span> {
        self.first().map(|(at, _)| at)
    }

    /// The next operation.
    pub fn take_next(&mut self) -> Result<Option<Operation>, SimError> {
        match self.first() {
            Some((_, source)) => self.sources[source].advance(&mut self.names, self.footprint),
            None => Ok(None),
        }
    }
}
