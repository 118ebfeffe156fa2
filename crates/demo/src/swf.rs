//! Lines of the Standard Workload Format (simulator.md 6), as far as the window has them: 18 columns,
//! `;` begins a comment, -1 is unknown.

use anyhow::{Context, bail, ensure};

/// Columns of the format.
const COLUMNS: usize = 18;

/// One job of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedJob {
    /// Column 1: number of the job in the log.
    pub number: u64,
    /// Column 2: seconds from the start of the log to the submission.
    pub submit: u64,
    /// Column 4: seconds that it ran.
    pub run: u64,
    /// Column 8, else 5: processors.
    pub processors: u64,
    /// Column 7: KiB used per processor.
    pub memory: u64,
    /// Column 12.
    pub user: u64,
    /// Column 15.
    pub queue: u64,
}

/// The jobs of a log, in its order, which is that of submission.
pub fn parse(text: &str) -> anyhow::Result<Vec<LoggedJob>> {
    let lines = text.lines().enumerate().filter(|(_, l)| !l.starts_with(';') && !l.trim().is_empty());
    let mut jobs = Vec::new();
    for (index, line) in lines {
        jobs.push(job(line).with_context(|| format!("line {} of the log", index + 1))?);
    }
    ensure!(
        jobs.is_sorted_by_key(|job| job.submit),
        "the jobs of the log are not in the order of submission"
    );
    Ok(jobs)
}

fn job(line: &str) -> anyhow::Result<LoggedJob> {
    let columns: Vec<i64> = line
        .split_ascii_whitespace()
        .map(|word| word.parse().with_context(|| format!("{word:?} is not a number")))
        .collect::<Result<_, _>>()?;
    ensure!(columns.len() == COLUMNS, "{} columns, expected {COLUMNS}", columns.len());
    // Columns are counted from 1, in the description of the format and here.
    let known = |column: usize| u64::try_from(columns[column - 1]).ok();
    let needed = |column: usize, what: &str| {
        known(column).with_context(|| format!("unknown {what} (column {column})"))
    };
    let processors = match known(8) {
        Some(requested) => requested,
        None => needed(5, "number of processors")?,
    };
    if processors == 0 {
        bail!("a job without processors");
    }
    Ok(LoggedJob {
        number: needed(1, "number")?,
        submit: needed(2, "time of submission")?,
        run: needed(4, "run time")?,
        processors,
        memory: needed(7, "memory")?,
        user: needed(12, "user")?,
        queue: needed(15, "queue")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_its_description_says() {
        let jobs = parse(crate::WINDOW).expect("it parses");
        assert_eq!(jobs.len(), 190);
        assert!(jobs.iter().all(|job| (9_741_600..9_763_200).contains(&job.submit)));
        let distinct = |column: fn(&LoggedJob) -> u64| {
            let mut all: Vec<u64> = jobs.iter().map(column).collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        };
        assert_eq!(distinct(|job| job.user), 25);
        assert_eq!(distinct(|job| job.queue), 6);
        assert_eq!(distinct(|job| job.number), 190);
    }

    #[test]
    fn lines() {
        let good = "47775 9742549 12 3465 8 -1 1573764 -1 -1 -1 0 33 -1 -1 6 4 -1 -1";
        let expected = LoggedJob {
            number: 47775,
            submit: 9_742_549,
            run: 3465,
            processors: 8,
            memory: 1_573_764,
            user: 33,
            queue: 6,
        };
        assert_eq!(parse(&format!("; comment\n\n{good}\n")).expect("good"), [expected]);
        for (bad, complaint) in [
            ("1 2 3", "3 columns"),
            ("x 9742549 12 3465 8 -1 1 -1 -1 -1 0 33 -1 -1 6 4 -1 -1", "\"x\" is not a number"),
            ("1 9742549 12 -1 8 -1 1 -1 -1 -1 0 33 -1 -1 6 4 -1 -1", "unknown run time (column 4)"),
            ("1 9742549 12 5 0 -1 1 -1 -1 -1 0 33 -1 -1 6 4 -1 -1", "without processors"),
        ] {
            let error = format!("{:#}", parse(bad).expect_err(bad));
            assert!(error.contains(complaint) && error.contains("line 1"), "{error}");
        }
        let earlier = good.replace("9742549", "1");
        assert!(parse(&format!("{good}\n{earlier}")).is_err(), "an order that is none");
    }
}
