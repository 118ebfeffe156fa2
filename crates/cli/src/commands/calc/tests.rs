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
