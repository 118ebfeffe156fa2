//! Rows of tables beside a job: what it is to read is on the disk before it starts, what it writes is a chunk
//! there when it has ended. So a job with tables needs neither node nor server while it runs, and rows that
//! wait for a slow program take no memory.
//!
//! ```text
//! <job directory>/rows/input        rows of the unit of work, and marks between them: binary YSON
//! <job directory>/rows/output.<k>   the chunk of output table k; no file: no rows
//! <job directory>/rows/outputs      of a completed job: which chunks there are
//! <job directory>/rows/fail_context of a failed job: the rows that it was given last, as it was given them
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tables::Summary;
use vocab::JobId;
use yson::Value;

/// The directory beneath that of the job.
pub fn directory(job_directory: &Path) -> PathBuf {
    job_directory.join("rows")
}

/// Rows that the job is to read.
pub fn input(job_directory: &Path) -> PathBuf {
    directory(job_directory).join("input")
}

/// The chunk of an output table.
pub fn output(job_directory: &Path, table: usize) -> PathBuf {
    directory(job_directory).join(format!("output.{table}"))
}

/// What a failed job was reading.
pub fn fail_context(job_directory: &Path) -> PathBuf {
    directory(job_directory).join("fail_context")
}

fn list(job_directory: &Path) -> PathBuf {
    directory(job_directory).join("outputs")
}

/// A chunk that a job has written.
#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    /// Number of the table.
    pub table: usize,
    /// What is in it.
    pub summary: Summary,
}

/// Makes the directory, without whatever an earlier job of the slot has left there.
pub fn make_directory(job_directory: &Path) -> io::Result<()> {
    remove(job_directory)?;
    fs::create_dir(directory(job_directory))
}

/// Removes all rows of a job.
pub fn remove(job_directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory(job_directory)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Notes which chunks a completed job has written.
pub(crate) fn write_list(job_directory: &Path, job_id: JobId, outputs: &[Output]) -> io::Result<()> {
    let entry = |o: &Output| Value::List(vec![(o.table as u64).into(), o.summary.to_value()]);
    let list_of = yson::map! {
        "job_id" => job_id,
        "outputs" => outputs.iter().map(entry).collect::<Vec<_>>(),
    };
    fs::write(list(job_directory), yson::to_binary(&list_of.into()))
}

/// The chunks that a job has written, all of them. What is there of another job is not its own.
pub fn outputs(job_directory: &Path, job_id: JobId) -> io::Result<Vec<Output>> {
    let bytes = fs::read(list(job_directory))?;
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "the list of chunks is malformed");
    let value = yson::parse_record(&bytes).map_err(|_| bad())?;
    if value.get("job_id").and_then(Value::as_str) != Some(job_id.to_string().as_str()) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the list of chunks is that of another job"));
    }
    let entries = value.get("outputs").and_then(Value::as_list).ok_or_else(bad)?;
    let outputs = entries.iter().map(|entry| {
        let [table, summary] = entry.as_list()? else { return None };
        Some(Output { table: usize::try_from(table.as_u64()?).ok()?, summary: Summary::from_value(summary)? })
    });
    outputs.collect::<Option<_>>().ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Guid;

    #[test]
    fn the_list_of_chunks_comes_back_and_is_that_of_its_job() {
        let directory = tempfile::tempdir().expect("a directory");
        make_directory(directory.path()).expect("made");
        let (own, other) = (JobId(Guid([1, 2, 3, 4])), JobId(Guid([5, 6, 7, 8])));
        let key = |n: i64| vec![Value::from(n), "k".into()];
        let sorted = Summary { rows: 3, weight: 30, size: 33, bounds: Some((key(1), key(9))) };
        let plain = Summary { rows: 1, weight: 2, size: 3, bounds: None };
        let written = [Output { table: 0, summary: sorted }, Output { table: 7, summary: plain }];
        write_list(directory.path(), own, &written).expect("written");
        assert_eq!(outputs(directory.path(), own).expect("read"), written);
        assert!(outputs(directory.path(), other).is_err());
        make_directory(directory.path()).expect("made anew");
        assert!(outputs(directory.path(), own).is_err());
        remove(directory.path()).expect("removed");
        remove(directory.path()).expect("nothing to remove");
    }
}
