//! Tables of tasks with a header line (columns in `traces/README.md`); columns are found by their names.

use super::{Row, Skipped};
use crate::error::SimError;
use crate::workload::{mean_of, open};
use std::path::Path;

const MIB: f64 = 1_048_576.0;

pub(super) fn read(path: &Path, rows: &mut Vec<Row>, skipped: &mut Skipped) -> Result<(), SimError> {
    let mut table = csv::ReaderBuilder::new().flexible(true).from_reader(open(path)?);
    let told = |e: csv::Error| SimError::file(path, format!("cannot be read: {e}"));
    let header: Vec<String> = table.headers().map_err(told)?.iter().map(|h| h.trim().to_owned()).collect();
    for needed in ["job_id", "submit_s"] {
        if !header.iter().any(|name| name == needed) {
            let what = format!("expected a header line with a column {needed:?}, found {header:?}");
            return Err(SimError::file(path, what));
        }
    }
    let mut record = csv::StringRecord::new();
    loop {
        let line = table.position().line();
        match table.read_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) if record.len() != header.len() => skipped.add(path, line, "another number of columns"),
            Ok(true) => {
                let column = |name: &str| {
                    let place = header.iter().position(|h| h == name)?;
                    record.get(place).map(str::trim).filter(|text| !text.is_empty())
                };
                match row(path, &column) {
                    Ok(row) => rows.push(row),
                    Err(reason) => skipped.add(path, line, reason),
                }
            }
            Err(e) if e.is_io_error() => return Err(told(e)),
            Err(_) => skipped.add(path, line, "not UTF-8"),
        }
    }
}

fn row<'a>(path: &Path, column: &dyn Fn(&str) -> Option<&'a str>) -> Result<Row, &'static str> {
    let number = |name: &str| match column(name) {
        None => Ok(None),
        Some(text) => match text.parse::<f64>() {
            Ok(x) if x.is_finite() && x >= 0.0 => Ok(Some(x)),
            _ => Err("a number that is none or below 0"),
        },
    };
    let name = |name: &str| column(name).map(str::to_owned);
    let id = name("job_id").ok_or("no job_id")?;
    let jobs = number("task_count")?.unwrap_or(1.0);
    if jobs < 1.0 || jobs.fract() != 0.0 {
        return Err("task_count is no whole number of at least 1");
    }
    // A table of measured curves: as many samples as it ran for periods.
    let run_s = match (number("run_s")?, number("samples")?, number("period_s")?) {
        (Some(run), ..) => Some(run),
        (None, Some(samples), Some(period)) => Some(samples * period),
        _ => None,
    };
    let measured = column("curve").and_then(|text| mean_of(text, number("period_s").ok()??, run_s?));
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let curve = measured.map(|_| (file.display().to_string(), id.clone()));
    Ok(Row {
        operation: name("op_id").unwrap_or_else(|| id.clone()),
        task: name("task").unwrap_or_else(|| "t".to_owned()),
        user: name("user"),
        group: name("group"),
        queue: name("queue"),
        partition: name("node_class"),
        status: name("status"),
        pool: None,
        submit_s: number("submit_s")?.ok_or("no submit_s")?,
        wait_s: number("wait_s")?,
        run_s,
        time_limit_s: number("time_limit_s")?,
        jobs: jobs as u64,
        cpu: number("cpu_req")?,
        cpu_used: number("cpu_used")?.or(measured),
        memory: number("mem_req_mib")?.map(|mib| mib * MIB),
        memory_used: number("mem_used_mib")?.map(|mib| mib * MIB),
        gpu: number("gpu_req")?.unwrap_or(0.0),
        curve,
    })
}
