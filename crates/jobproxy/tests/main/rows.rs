//! Rows of tables through a real command, into chunks.

use crate::harness::FakeNode;
use crate::jobs::drivers;
use jobproxy::protocol::{JobStart, ProxyResult};
use jobproxy::rows;
use tables::{Columns, Index, Printer, TRAILER};
use vocab::job::FAIL_CONTEXT_MAX;
use vocab::{JobOutcome, OutputTable, Span, TableIo};
use yson::{Format, Style, Value};

/// `{n=0}` and so on, in the inner form.
fn input(count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for n in 0..count {
        yson::write::write_row(&yson::map! {"n" => n as i64}.into(), Style::Binary, &mut out);
    }
    out
}

fn job(
    node: &mut FakeNode,
    command: &str,
    rows_in: Option<u64>,
    change: impl FnOnce(&mut TableIo),
) -> JobStart {
    let mut job = node.job(command);
    // The node makes the directory for the rows that it brings.
    if let Some(count) = rows_in {
        rows::make_directory(&job.job_directory).expect("a directory for rows");
        std::fs::write(rows::input(&job.job_directory), input(count)).expect("written");
    }
    let text = Value::from("yson").with_attributes(yson::map! {"format" => "text"});
    let mut tables = TableIo {
        input_rows: rows_in,
        input_format: text.clone(),
        output_format: text,
        outputs: vec![OutputTable::default(); 2],
        first_output: 1,
        check_input_fully_consumed: false,
    };
    change(&mut tables);
    job.tables = Some(Box::new(tables));
    job
}

/// Rows of an output table, as text.
fn output(job: &JobStart, table: usize) -> String {
    let outputs = rows::outputs(&job.job_directory, job.job_id).expect("a list of chunks");
    let Some(found) = outputs.iter().find(|output| output.table == table) else { return String::new() };
    let bytes = std::fs::read(rows::output(&job.job_directory, table)).expect("a chunk");
    let trailer = &bytes[bytes.len() - TRAILER..];
    let place = Index::place(trailer, bytes.len() as u64).expect("a trailer");
    let index = Index::parse(&bytes[place.start as usize..place.end as usize], trailer, place.start)
        .expect("an index");
    let mut printer = Printer::new(Format::Yson(Style::Text), Columns::default());
    let mut text = Vec::new();
    let all = 0..found.summary.rows;
    for block in index.blocks_with(&all) {
        let bytes = &bytes[block.offset as usize..][..block.size];
        printer.print(block.rows(bytes, &all).expect("rows"), &mut text).expect("printed");
    }
    String::from_utf8(text).expect("text")
}

fn numbers(range: std::ops::Range<u64>) -> String {
    range.map(|n| format!("{{\"n\"={n};}};\n")).collect()
}

fn flow(result: &ProxyResult) -> (i64, bool, Vec<i64>) {
    let tables = result.statistics.tables.as_ref().expect("statistics of tables");
    let outputs = tables.outputs.iter().map(|o| o.row_count).collect();
    (tables.input.row_count, tables.not_fully_consumed, outputs)
}

fn completed(result: &ProxyResult) -> bool {
    matches!(result.outcome, JobOutcome::Completed { interrupted: None, restart_needed: false })
}

/// More than pipes hold, in and out.
#[test]
fn rows_go_in_and_come_out() {
    for driver in drivers() {
        let mut node = FakeNode::new(driver);
        let start = job(&mut node, "tee /dev/fd/4", Some(50_000), |_| {});
        let result = node.run(start.clone());
        assert!(completed(&result), "{:?}", result.outcome);
        assert_eq!(flow(&result), (50_000, false, vec![50_000, 50_000]));
        let tables = result.statistics.tables.as_ref().expect("statistics of tables");
        let bytes = numbers(0..50_000).len() as i64;
        let pipes = [&[tables.input_pipe], tables.output_pipes.as_slice()].concat();
        assert_eq!(pipes.iter().map(|pipe| pipe.bytes).collect::<Vec<_>>(), [bytes; 3]);
        for pipe in pipes {
            // Printing and checking so many rows takes time, and so does what the job does.
            assert!(pipe.idle_time > Span::ZERO && pipe.busy_time > Span::ZERO, "{pipe:?}");
        }
        for table in 0..2 {
            assert_eq!(output(&start, table), numbers(0..50_000));
        }
    }
}

#[test]
fn input_may_be_left_and_output_may_be_missing() {
    let driver = drivers()[0];
    let mut node = FakeNode::new(driver);
    for command in ["true", "exec <&-; sleep 0.2", "head -c 10 > /dev/null"] {
        let start = job(&mut node, command, Some(100_000), |_| {});
        let result = node.run(start.clone());
        assert!(completed(&result), "{command}: {:?}", result.outcome);
        let (_, left, outputs) = flow(&result);
        assert!(left && outputs == [0, 0], "{command}");
        assert_eq!(rows::outputs(&start.job_directory, start.job_id).expect("a list"), []);
        let start = job(&mut node, command, Some(100_000), |io| io.check_input_fully_consumed = true);
        let result = node.run(start);
        assert!(
            matches!(&result.outcome, JobOutcome::Failed { error } if error.to_string().contains("not fully consumed"))
        );
    }
}

#[test]
fn what_is_not_rows_fails_the_job_for_good() {
    let driver = drivers()[0];
    let mut node = FakeNode::new(driver);
    let sorted = |io: &mut TableIo| io.outputs[1].sorted_by = vec!["n".to_owned()];
    for (command, table, error) in [
        ("echo '{a=1};{a='", 0, "Cannot parse row 1"),
        ("echo 5 >&4", 1, "must be a map"),
        ("echo '{n=2};{n=1};' >&4; sleep 1000", 1, "sorted"),
        ("echo '<table_index=1>#;{n=2};<table_index=0>#;{n=1};<table_index=1>#;{n=1}'", 1, "sorted"),
        ("echo '<table_index=2>#;{n=2}'", 0, "an integer from 0 to 1, found 2"),
        ("echo '<row_index=0>#;{n=2}'", 0, "must be a map, found entity"),
    ] {
        let start = job(&mut node, command, Some(3), sorted);
        let result = node.run(start);
        let JobOutcome::Failed { error: found } = &result.outcome else {
            panic!("{command}: {:?}", result.outcome)
        };
        assert_eq!(found.find_attribute("fatal"), Some(&Value::from(true)), "{command}");
        assert_eq!(found.find_attribute("table_index").and_then(Value::as_u64), Some(table), "{command}");
        assert!(found.to_string().contains(error), "{command}: {found}");
    }
}

/// Rows of any table may come through any descriptor: one by one, so that they are all in both.
#[test]
fn a_job_chooses_the_tables_of_its_rows() {
    let driver = drivers()[0];
    let mut node = FakeNode::new(driver);
    let command = "sed -E 's/.*/<table_index=1>#;&<table_index=0>#;&/'";
    let start = job(&mut node, command, Some(30_000), |_| {});
    let result = node.run(start.clone());
    assert!(completed(&result), "{:?}", result.outcome);
    assert_eq!(flow(&result), (30_000, false, vec![30_000, 30_000]));
    assert_eq!([output(&start, 0), output(&start, 1)], [numbers(0..30_000), numbers(0..30_000)]);
    let pipes = result.statistics.tables.expect("statistics of tables").output_pipes;
    assert!(pipes[0].bytes > 0 && pipes[1].bytes == 0, "{pipes:?}");

    let command = "echo '{n=1};<table_index=1>#;{n=2};'; sleep 0.3; echo '{n=3};<table_index=0>#;{n=4}' >&4";
    let start = job(&mut node, command, None, |_| {});
    assert!(completed(&node.run(start.clone())));
    assert_eq!(output(&start, 0), "{\"n\"=1;};\n{\"n\"=4;};\n");
    assert_eq!(output(&start, 1), "{\"n\"=2;};\n{\"n\"=3;};\n");
}

/// Nobody has brought rows, but rows of an earlier job of the slot may lie there.
#[test]
fn jobs_that_only_write() {
    for driver in drivers() {
        let mut node = FakeNode::new(driver);
        let command = "cat; for n in 0 1 2; do echo \"{n=$n};\" >&4; done";
        let start = job(&mut node, command, None, |_| {});
        rows::make_directory(&start.job_directory).expect("a directory for rows");
        std::fs::write(rows::output(&start.job_directory, 0), "of another job").expect("written");
        let result = node.run(start.clone());
        assert!(completed(&result), "{:?}", result.outcome);
        assert_eq!(flow(&result), (0, false, vec![0, 3]));
        assert_eq!((output(&start, 0), output(&start, 1)), (String::new(), numbers(0..3)));
    }
}

#[test]
fn descriptors_begin_behind_stderr_if_that_is_wanted() {
    let driver = drivers()[0];
    let mut node = FakeNode::new(driver);
    let start =
        job(&mut node, "echo said; echo '{a=1}' >&4; echo '{b=1}' >&7", None, |io| io.first_output = 4);
    let result = node.run(start.clone());
    assert!(completed(&result), "{:?}", result.outcome);
    assert_eq!(result.stderr.map(|text| text.0), Some(b"said\n".to_vec()));
    assert_eq!([output(&start, 0), output(&start, 1)], ["{\"a\"=1;};\n", "{\"b\"=1;};\n"]);
}

fn saved(job: &JobStart, result: &ProxyResult) -> String {
    let kept = std::fs::read_to_string(rows::fail_context(&job.job_directory)).unwrap_or_default();
    assert_eq!(result.fail_context_size, kept.len() as u64);
    kept
}

#[test]
fn what_a_failed_job_was_reading_is_saved() {
    let driver = drivers()[0];
    let mut node = FakeNode::new(driver);
    // It has all been given, whatever of it was read. The first waits for the rows and reads none of them.
    let unread = "while ! read -t 0; do sleep 0.02; done; exit 1";
    for command in [unread, "head -n 2 > /dev/null; exit 1", "cat > /dev/null; kill -9 $$"] {
        let start = job(&mut node, command, Some(10), |_| {});
        let result = node.run(start.clone());
        assert!(matches!(result.outcome, JobOutcome::Failed { .. }), "{command}: {:?}", result.outcome);
        assert_eq!(saved(&start, &result), numbers(0..10), "{command}");
    }
    // Others have nothing to show.
    for (command, count) in [("cat > /dev/null", Some(10)), ("exit 1", Some(0)), ("exit 1", None)] {
        let start = job(&mut node, command, count, |_| {});
        let result = node.run(start.clone());
        assert_eq!(saved(&start, &result), "", "{command}");
        assert!(!rows::fail_context(&start.job_directory).exists(), "{command}");
    }
}

/// Whoever has read a part has been given that and a little more, and of much only the end is kept.
#[test]
fn of_much_input_the_last_rows_are_saved() {
    let driver = drivers()[0];
    let mut node = FakeNode::new(driver);
    let all = 3_000;
    let padding = "x".repeat(5_000);
    let row = |n: u64| Value::from(yson::map! {"n" => n as i64, "padding" => padding.as_str()});
    let text = |n: u64| format!("{{\"n\"={n};\"padding\"=\"{padding}\";}};\n");
    let mut input = Vec::new();
    (0..all).for_each(|n| yson::write::write_row(&row(n), Style::Binary, &mut input));
    for (command, read) in [("head -n 10 > /dev/null; exit 1", 10), ("cat > /dev/null; exit 1", all)] {
        let start = job(&mut node, command, Some(all), |_| {});
        std::fs::write(rows::input(&start.job_directory), &input).expect("written");
        let result = node.run(start.clone());
        assert!(matches!(result.outcome, JobOutcome::Failed { .. }), "{command}: {:?}", result.outcome);
        let kept = saved(&start, &result);
        let number = |line: &str| {
            line.trim_start_matches(|c: char| !c.is_ascii_digit()).split(';').next().map(str::parse::<u64>)
        };
        let first = kept.lines().next().and_then(number).expect("a row").expect("a number");
        let last = kept.lines().last().and_then(number).expect("a row").expect("a number");
        assert!(kept == (first..=last).map(text).collect::<String>(), "{command}: rows {first} to {last}");
        assert!(first <= read && read <= last + 1, "{command}: rows {first} to {last}");
        // All that was given, or nearly as much as is kept.
        let full = kept.len() as u64 > FAIL_CONTEXT_MAX - (1 << 20);
        assert!(kept.len() as u64 <= FAIL_CONTEXT_MAX && (full || first == 0), "{command}: {}", kept.len());
        assert_eq!(full, read == all, "{command}: {}", kept.len());
    }
}

/// The rows on the disk are not those that the job was promised.
#[test]
fn input_that_is_cut_is_nobodys_fault() {
    let driver = drivers()[0];
    let mut node = FakeNode::new(driver);
    let start = job(&mut node, "cat > /dev/null", Some(10), |io| io.input_rows = Some(11));
    let result = node.run(start);
    assert!(matches!(result.outcome, JobOutcome::Aborted { .. }), "{:?}", result.outcome);
}
