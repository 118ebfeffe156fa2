//! `millpond calc ...`: lines in, lines out; the crate `calc` computes.
//!
//! Ctrl-C is left alone: it ends the process between two writes, and there is nothing to tidy up.

use crate::args::{CalcCommand, FairShareArgs, LinesArgs, SchedulingArgs};
use crate::error::CliError;
use crate::output::Screen;
use calc::Refusal;
use calc::fair_share::{Settings, answer};
use calc::scheduling::{Form, Script};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::time::Instant;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

pub(super) fn run(screen: Screen, command: CalcCommand) -> Result<(), CliError> {
    match command {
        CalcCommand::FairShare(args) => {
            let (input, name) = open(args.file.as_deref())?;
            let print = |answer: &[u8]| screen.print(answer);
            fair_share(input, &name, &args, print, |error| screen.complain(error))
        }
        CalcCommand::CpuMonitor(args) => lines(screen, &args, calc::cpu_monitor::answer),
        CalcCommand::MemoryDigest(args) => lines(screen, &args, calc::memory_digest::answer),
        CalcCommand::Scheduling(SchedulingArgs { file, text, strict }) => {
            let mut script = Script::new(if text { Form::Text } else { Form::Json });
            lines(screen, &LinesArgs { file, strict }, |line| script.answer(line))
        }
    }
}

/// The input and how it is called in errors.
fn open(file: Option<&Path>) -> Result<(Box<dyn BufRead>, String), CliError> {
    let path = file.filter(|p| *p != Path::new("-"));
    let name = path.map_or("standard input".to_owned(), |p| p.display().to_string());
    let input: io::Result<Box<dyn Read>> = match path {
        Some(path) => File::open(path).map(|file| Box::new(file) as Box<dyn Read>),
        None => Ok(Box::new(io::stdin())),
    };
    let input = input.and_then(unpacked).map_err(|e| unreadable(&name, &e))?;
    Ok((input, name))
}

/// A calculator without options of its own.
fn lines(
    screen: Screen,
    args: &LinesArgs,
    answer: impl FnMut(&[u8]) -> Result<Vec<u8>, Refusal>,
) -> Result<(), CliError> {
    let (input, name) = open(args.file.as_deref())?;
    let print = |answer: &[u8]| screen.print(answer);
    answer_lines(input, &name, args.strict, answer, print, |error| screen.complain(error))
}

fn fair_share(
    input: impl BufRead,
    name: &str,
    args: &FairShareArgs,
    print: impl FnMut(&[u8]) -> Result<(), CliError>,
    complain: impl FnMut(&CliError),
) -> Result<(), CliError> {
    let settings = Settings { repeat: args.repeat, sparse: args.sparse };
    let start = Instant::now();
    let mut clock = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let answer = |line: &[u8]| answer(line, &settings, &mut clock);
    answer_lines(input, name, args.strict, answer, print, complain)
}

/// Answers line after line: the answers go to `print`, what is refused to `complain`.
fn answer_lines(
    mut input: impl BufRead,
    name: &str,
    strict: bool,
    mut answer: impl FnMut(&[u8]) -> Result<Vec<u8>, Refusal>,
    mut print: impl FnMut(&[u8]) -> Result<(), CliError>,
    mut complain: impl FnMut(&CliError),
) -> Result<(), CliError> {
    let (mut number, mut cases, mut refused) = (0u64, 0u64, 0u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(|e| unreadable(name, &e))? == 0 {
            break;
        }
        number += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        cases += 1;
        match answer(&line) {
            Ok(answer) => print(&answer)?,
            Err(refusal) => {
                refused += 1;
                let error = CliError::failed(format!("{name}, line {number}: {refusal}"));
                if strict {
                    return Err(error);
                }
                complain(&error);
            }
        }
    }
    match refused {
        0 => Ok(()),
        _ => Err(CliError::failed(format!("{refused} of {cases} cases were refused"))),
    }
}

fn unreadable(name: &str, error: &io::Error) -> CliError {
    CliError::failed(format!("cannot read {name}: {error}"))
}

/// The input as it is, or what is in it if it is gzip, whatever it is called.
fn unpacked(mut input: Box<dyn Read>) -> io::Result<Box<dyn BufRead>> {
    let mut head = Vec::new();
    input.by_ref().take(GZIP.len() as u64).read_to_end(&mut head)?;
    let packed = head == GZIP;
    let whole = BufReader::new(Cursor::new(head).chain(input));
    Ok(if packed { Box::new(BufReader::new(MultiGzDecoder::new(whole))) } else { Box::new(whole) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::exit;
    use std::io::Write;

    const GOOD: &str = r#"{"name":"good","total_resource_limits":{"cpu":1},"elements":[],"steps":[]}"#;
    const BAD: &str = r#"{"name":"bad","total_resource_limits":{"cpu":-1},"elements":[],"steps":[]}"#;
    const ANSWER: &str = "{\"name\":\"good\",\"steps\":[]}\n";

    /// Output, complaints, and the error at the end.
    fn run(input: &[u8], args: &FairShareArgs) -> (String, Vec<String>, Option<String>) {
        let input = unpacked(Box::new(Cursor::new(input.to_vec()))).expect("a vector can be read");
        let (mut out, mut complaints) = (Vec::new(), Vec::new());
        let print = |answer: &[u8]| {
            out.extend_from_slice(answer);
            Ok(())
        };
        let text = |error: &CliError| error.render(false).expect("a text");
        let result = fair_share(input, "cases", args, print, |error| complaints.push(text(error)));
        (String::from_utf8(out).expect("UTF-8"), complaints, result.err().map(|e| text(&e)))
    }

    fn args() -> FairShareArgs {
        FairShareArgs { file: None, repeat: None, sparse: false, strict: false }
    }

    #[test]
    fn refused_cases_do_not_stop_the_others() {
        // Blank lines, carriage returns and a last line without its end are fine.
        let input = format!("{GOOD}\r\n\n{BAD}\n  \n{GOOD}");
        let why = "error: cases, line 3: /total_resource_limits/cpu: expected a number of cores from 0 \
                   to 2.3e16, found -1\n";
        let (out, complaints, error) = run(input.as_bytes(), &args());
        assert_eq!(out, [ANSWER, ANSWER].concat());
        assert_eq!(complaints, [why]);
        assert_eq!(error.as_deref(), Some("error: 1 of 3 cases were refused\n"));

        let (out, complaints, error) = run(input.as_bytes(), &FairShareArgs { strict: true, ..args() });
        assert_eq!(out, ANSWER);
        assert!(complaints.is_empty());
        assert_eq!(error.as_deref(), Some(why));
    }

    /// The same loop for every calculator: each says its own fields.
    #[test]
    fn calculators_of_what_is_learned() {
        type Answer = fn(&[u8]) -> Result<Vec<u8>, Refusal>;
        let cases: [(Answer, &str, &str, &str); 2] = [
            (
                calc::cpu_monitor::answer,
                "{\"name\":\"x\",\"cpu_limit\":2,\"samples\":[]}\n{\"name\":\"x\",\"cpu_limit\":2,\"samples\":[[1]]}",
                "{\"name\":\"x\",\"checks\":[],\"statistics\":{}}\n",
                "cases, line 2: /samples/0: expected a pair [seconds, cumulative CPU seconds or null], found a list",
            ),
            (
                calc::memory_digest::answer,
                "{\"name\":\"x\",\"memory_limit\":9,\"jobs\":[]}\n{\"name\":\"x\",\"memory_limit\":9,\"jobs\":{}}",
                "{\"name\":\"x\",\"reserves\":[4],\"factors\":[0.5],\"retry_reserves\":[]}\n",
                "cases, line 2: /jobs: expected a list, found an object",
            ),
        ];
        for (answer, input, expected, why) in cases {
            let (mut out, mut complaints) = (Vec::new(), Vec::new());
            let print = |answer: &[u8]| {
                out.extend_from_slice(answer);
                Ok(())
            };
            let complain = |error: &CliError| complaints.extend(error.render(false));
            let result = answer_lines(input.as_bytes(), "cases", false, answer, print, complain);
            assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
            assert_eq!(complaints, [format!("error: {why}\n")]);
            assert_eq!(result.expect_err("refused").exit_code(), exit::FAILED);
        }
    }

    /// Lines of a script belong together; one that is refused does not stop those after it.
    #[test]
    fn a_script() {
        let input = "{\"node\":\"n\",\"limits\":{\"cpu\":2}}\n{\"lost\":\"m\"}\n{\"lost\":\"n\"}\n";
        let mut script = Script::new(Form::Text);
        let (mut out, mut complaints) = (Vec::new(), Vec::new());
        let result = answer_lines(
            input.as_bytes(),
            "script",
            false,
            |line| script.answer(line),
            |answer| {
                out.extend_from_slice(answer);
                Ok(())
            },
            |error| complaints.extend(error.render(false)),
        );
        let out = String::from_utf8(out).expect("UTF-8");
        let headings: Vec<&str> = out.lines().filter(|l| l.starts_with('[')).collect();
        assert_eq!(headings, ["[1] 0 s  node n", "[2] 0 s  lost n"]);
        assert_eq!(complaints, ["error: script, line 2: /lost: no such node \"m\", known are n\n"]);
        assert_eq!(result.expect_err("refused lines").exit_code(), exit::FAILED);
    }

    #[test]
    fn nothing_in_nothing_out() {
        assert_eq!(run(b"", &args()), (String::new(), Vec::new(), None));
        assert_eq!(run(b"\n", &args()), (String::new(), Vec::new(), None));
    }

    #[test]
    fn packed_input() {
        let packed = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text.as_bytes()).expect("a vector takes everything");
            encoder.finish().expect("a vector takes everything")
        };
        // Two members, as `cat a.gz b.gz` makes them.
        let mut input = packed(&format!("{GOOD}\n"));
        input.extend(packed(&format!("{GOOD}\n")));
        assert_eq!(run(&input, &args()), ([ANSWER, ANSWER].concat(), Vec::new(), None));
        // One that was cut off: what could be read is answered.
        let (out, _, error) = run(&input[..input.len() - 10], &args());
        assert_eq!(out, ANSWER);
        assert!(error.expect("an error").starts_with("error: cannot read cases: "));
    }

    #[test]
    fn times_are_printed_on_demand() {
        let (out, _, _) = run(GOOD.as_bytes(), &FairShareArgs { repeat: 2.try_into().ok(), ..args() });
        assert_eq!(out, ANSWER.replace("]}", "],\"update_ns\":{\"min\":0,\"median\":0,\"max\":0}}"));
    }

    /// Nobody reads any more: the end, and not a failure.
    #[test]
    fn a_closed_pipe_ends_it() {
        let closed = |_: &[u8]| Err(CliError::output(&io::ErrorKind::BrokenPipe.into()));
        let input = format!("{GOOD}\n{BAD}\n");
        let error = fair_share(input.as_bytes(), "cases", &args(), closed, |_| panic!("went on"));
        let error = error.expect_err("an end");
        assert_eq!((error.exit_code(), error.render(false)), (exit::DONE, None));
    }
}
