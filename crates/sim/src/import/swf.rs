//! Standard Workload Format: 18 numbers a line, `;` begins a comment, -1 is unknown (simulator.md 6).

use super::{Row, Skipped, each_line};
use crate::error::SimError;
use std::path::Path;

const KIB: f64 = 1024.0;

/// `used`: processors are those that were used (column 5), where the log knows them, and not those that were
/// asked for (column 8).
pub(super) fn read(
    path: &Path,
    used: bool,
    rows: &mut Vec<Row>,
    skipped: &mut Skipped,
) -> Result<(), SimError> {
    each_line(path, skipped, |line, number, skipped| {
        if line.starts_with(';') {
            return;
        }
        match row(line, used) {
            Ok(row) => rows.push(row),
            Err(reason) => skipped.add(path, number, reason),
        }
    })
}

fn row(line: &str, used: bool) -> Result<Row, &'static str> {
    let mut fields = [-1.0; 18];
    let mut count = 0;
    for word in line.split_ascii_whitespace() {
        let number = word.parse::<f64>().ok().filter(|x| x.is_finite());
        let number = number.ok_or("a word that is no number")?;
        *fields.get_mut(count).ok_or("more than 18 numbers")? = number;
        count += 1;
    }
    if count < 18 {
        return Err("fewer than 18 numbers");
    }
    // Numbered from 1, as in the definition of the format.
    let field = |number: usize| Some(fields[number - 1]).filter(|x| *x >= 0.0);
    let name = |number: usize| field(number).map(|x| x.to_string());
    let submit_s = field(2).ok_or("no time of submission")?;
    let run_s = field(4).ok_or("no run time: it never ran")?;
    // What runs for less than a second is written down as 0.
    let run_s = if run_s == 0.0 { 1.0 } else { run_s };
    let (first, second) = if used { (5, 8) } else { (8, 5) };
    let processors = field(first).filter(|p| *p > 0.0).or(field(second)).filter(|p| *p > 0.0);
    let processors = processors.ok_or("no number of processors")?;
    let busy = field(6).map(|cpu_s| (cpu_s / run_s).min(1.0) * processors);
    Ok(Row {
        operation: name(1).ok_or("no number of the job")?,
        task: "t".to_owned(),
        user: name(12),
        group: name(13),
        queue: name(15),
        partition: name(16),
        status: name(11),
        pool: None,
        submit_s,
        wait_s: field(3),
        run_s: Some(run_s),
        time_limit_s: field(9),
        jobs: 1,
        cpu: Some(processors),
        cpu_used: busy,
        memory: field(10).filter(|m| *m > 0.0).map(|kib| kib * KIB * processors),
        memory_used: field(7).filter(|m| *m > 0.0).map(|kib| kib * KIB * processors),
        gpu: 0.0,
        curve: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line() {
        let row = row("7 100 5 60 16 30.5 2048 32 3600 4096 1 12 3 -1 2 1 -1 -1", false).expect("a row");
        assert_eq!((row.submit_s, row.run_s, row.cpu), (100.0, Some(60.0), Some(32.0)));
        assert_eq!(row.cpu_used, Some(30.5 / 60.0 * 32.0));
        assert_eq!((row.memory, row.memory_used), (Some(4194304.0 * 32.0), Some(2097152.0 * 32.0)));
        assert_eq!((row.column("user"), row.column("queue")), (Some("12"), Some("2")));
        let used =
            super::row("7 100 5 60 16 30.5 2048 32 3600 4096 1 12 3 -1 2 1 -1 -1", true).expect("a row");
        assert_eq!(used.cpu, Some(16.0));
        let unknown =
            super::row("7 100 5 60 -1 30.5 2048 32 3600 4096 1 12 3 -1 2 1 -1 -1", true).expect("a row");
        assert_eq!(unknown.cpu, Some(32.0));
    }

    #[test]
    fn what_is_unknown() {
        let row = row("7 100 -1 0 16 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1", false).expect("a row");
        assert_eq!((row.run_s, row.cpu, row.cpu_used, row.memory), (Some(1.0), Some(16.0), None, None));
        assert_eq!(row.column("user"), None);
        for (line, why) in [
            ("7 100 -1 -1 16 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1", "no run time: it never ran"),
            ("7 100 -1 5 -1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1", "no number of processors"),
            ("7 100 5", "fewer than 18 numbers"),
            ("7 100 x 0 16 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1", "a word that is no number"),
            ("7 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", "more than 18 numbers"),
        ] {
            assert_eq!(super::row(line, false).err(), Some(why), "{line}");
        }
    }
}
