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
mod tests;
