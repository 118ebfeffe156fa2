//! Scripts of the worked examples (scheduling.md 23) with their transcripts, and what must hold of any
//! script.
//!
//! `tests/scheduling/*.jsonl` are the scripts, `*.expected.jsonl` what comes out of them;
//! `UPDATE_GOLDEN=1` writes them anew. What the section says in numbers is checked besides.

use calc::scheduling::{Form, Script};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scheduling");

/// The answers to a script; a line that is refused has its complaint in the place of an answer.
pub fn play(script: &str, form: Form) -> String {
    let mut world = Script::new(form);
    let answers =
        script.lines().filter(|l| !l.trim().is_empty()).map(|line| match world.answer(line.as_bytes()) {
            Ok(answer) => String::from_utf8(answer).expect("UTF-8"),
            Err(refusal) => format!("! {refusal}\n"),
        });
    answers.collect()
}

fn file(name: &str) -> PathBuf {
    let mut files =
        std::fs::read_dir(FOLDER).expect("the folder is there").map(|f| f.expect("a file").path());
    let matches = |p: &PathBuf| {
        let file = p.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        file.starts_with(&format!("{name}-")) && !file.ends_with(".expected.jsonl")
    };
    files.find(matches).unwrap_or_else(|| panic!("no script {name}"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The answers to the script of an example as values.
fn example(name: &str) -> Vec<Value> {
    let answers = play(&read(&file(name)), Form::Json);
    answers.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect()
}

/// The answer whose note contains the text.
#[track_caller]
fn noted<'a>(answers: &'a [Value], note: &str) -> &'a Value {
    let found = answers.iter().find(|a| a["note"].as_str().is_some_and(|n| n.contains(note)));
    found.unwrap_or_else(|| panic!("nothing is noted with {note:?}"))
}

/// What a field was after each answer, as far as it was told.
fn history(answers: &[Value], kind: &str, name: &str, field: &str) -> Vec<Value> {
    answers.iter().filter_map(|a| a[kind][name].get(field)).cloned().collect()
}

fn preempted(answer: &Value) -> Vec<&str> {
    let all = answer["preemptions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|p| p["allocation"].as_str().expect("a name")).collect()
}

fn started(answer: &Value) -> Vec<&str> {
    let all = answer["starts"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|p| p["allocation"].as_str().expect("a name")).collect()
}

fn kinds(answer: &Value) -> Vec<&str> {
    let all = answer["preemptions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|p| p["kind"].as_str().expect("a kind")).collect()
}

#[test]
fn transcripts() {
    let files = std::fs::read_dir(FOLDER).expect("the folder is there").map(|f| f.expect("a file").path());
    let mut scripts: Vec<PathBuf> = files
        .filter(|p| {
            p.extension().is_some_and(|e| e == "jsonl") && !p.to_string_lossy().ends_with(".expected.jsonl")
        })
        .collect();
    scripts.sort();
    assert!(scripts.len() >= 13, "all worked examples have a script");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut different = Vec::new();
    for script in scripts {
        let expected = script.with_extension("expected.jsonl");
        let text = read(&script);
        let answers = play(&text, Form::Json);
        assert_eq!(answers, play(&text, Form::Json), "{}: not the same twice", script.display());
        // The same script as a transcript has a paragraph for each line.
        let transcript = play(&text, Form::Text);
        let paragraphs = transcript.lines().filter(|l| l.starts_with('[') || l.starts_with('!')).count();
        assert_eq!(paragraphs, text.lines().count(), "{}", script.display());
        if update {
            std::fs::write(&expected, &answers).expect("the folder can be written");
        } else if std::fs::read_to_string(&expected).ok().as_deref() != Some(&answers) {
            different.push(format!(
                "{}:\n{}",
                expected.display(),
                first_difference(&read(&expected), &answers)
            ));
        }
    }
    assert!(different.is_empty(), "UPDATE_GOLDEN=1 accepts this:\n{}", different.join("\n"));
}

fn first_difference(want: &str, got: &str) -> String {
    let lines = want.lines().chain(std::iter::repeat("(nothing)"));
    let at = lines.zip(got.lines()).find(|(want, got)| want != got);
    at.map_or("lines are missing".to_owned(), |(want, got)| format!("  want {want}\n  got  {got}"))
}

// --- what section 23 says, in the order of its examples

#[test]
fn groups_23_1() {
    let answers = example("23.1");
    let rows = history(&answers, "operations", "A", "groups");
    // Rows with the same groups as the row before tell nothing.
    let table = [[0, 0, 10], [4, 5, 1], [5, 4, 1], [7, 2, 1], [10, 0, 0], [4, 5, 1]];
    assert_eq!(rows, table.map(|r| json!(r)));
    assert_eq!(noted(&answers, "4/5/1: no change")["operations"], Value::Null);
}

#[test]
fn crossing_allocation_23_2() {
    let answers = example("23.2");
    let groups = |note: &str| noted(&answers, note)["operations"]["A"]["groups"].clone();
    assert_eq!(groups("thresholds 0.2 / 1.0"), json!([1, 4, 3]));
    assert_eq!(groups("0.5 / 1.0"), json!([3, 2, 3]));
    let third = noted(&answers, "fair share 0.45");
    assert_eq!(third["operations"]["A"], json!({"fair_share": 0.45}), "3/2/3 as before");
    assert_eq!(groups("fair share 0: 0/0/8"), json!([0, 0, 8]));
    // Told when the guarantee came, the rest of the demand went after it.
    let all = history(&answers, "operations", "A", "groups");
    assert_eq!(all[all.len() - 2], json!([2, 6, 0]));
    let covered = noted(&answers, "8 wanted");
    assert_eq!(covered["operations"]["A"]["demand_share"], json!(0.8));
}

#[test]
fn normal_preemption_23_3() {
    let answers = example("23.3");
    let before = noted(&answers, "A 2/2/2");
    assert_eq!(before["operations"]["A"]["groups"], json!([2, 2, 2]));
    let pass = noted(&answers, "usage 8 + 2");
    assert_eq!((started(pass), preempted(pass)), (vec!["C.1"], vec!["A.6", "B.1"]));
    assert_eq!(kinds(pass), ["preemption"; 2]);
    assert_eq!(pass["nodes"]["n"]["usage"]["cpu"], json!(10));
    assert_eq!(pass["nodes"]["n"]["discount"]["cpu"], json!(4));
    assert_eq!(pass["preemptions"][0]["for"], json!("C.1"));
    assert_eq!(pass["preemptions"][0]["timeout"], json!(10));
    let reason = pass["preemptions"][0]["reason"].as_str().expect("a text");
    assert!(reason.starts_with("Preempted to start allocation C.1 of operation C"), "{reason}");
    for note in ["C.1 waits", "9 of 8", "has not said so yet"] {
        assert_eq!(noted(&answers, note)["skipped"]["n"], json!("waiting_allocations"));
    }
    assert_eq!(started(noted(&answers, "the free CPU goes")), ["A.7"]);
}

#[test]
fn aggressive_preemption_23_4() {
    let answers = example("23.4");
    let pass = noted(&answers, "discount 6");
    assert_eq!((started(pass), preempted(pass)), (vec!["C.1"], vec!["A.6", "B.1", "A.5", "A.4", "A.3"]));
    assert_eq!(kinds(pass), ["aggressive_preemption"; 5]);
    let levels: Vec<&Value> = (0..5).map(|i| &pass["preemptions"][i]["level"]).collect();
    assert_eq!(levels, [2, 2, 2, 1, 1]);
    assert_eq!(pass["nodes"]["n"]["usage"]["cpu"], json!(14));
    let pass = noted(&answers, "discount 4");
    assert_eq!((started(pass).len(), preempted(pass).len()), (0, 0));
    assert_eq!(pass["nodes"]["n"]["discount"]["cpu"], json!(4));
    assert_eq!(pass["passes"]["preemptive"], json!(1));
}

#[test]
fn why_aggressive_preemption_is_needed_23_5() {
    let answers = example("23.5");
    let first = &noted(&answers, "fair shares 3/8")["operations"];
    let shares = ["A", "B", "C"].map(|o| first[o]["fair_share"].clone());
    assert_eq!(shares, [json!(0.375), json!(0.375), json!(0.25)]);
    assert_eq!((&first["A"]["groups"], &first["B"]["groups"]), (&json!([1, 2, 1]), &json!([1, 2, 1])));
    let until = answers.iter().position(|a| a["did"] == "set_pool c").expect("it becomes aggressive");
    assert!(answers[..until].iter().all(|a| started(a).is_empty() && preempted(a).is_empty()));
    assert_eq!(preempted(noted(&answers, "the oldest")), Vec::<&str>::new());
    let pass = noted(&answers, "A.4 and A.3");
    assert_eq!((started(pass), preempted(pass)), (vec!["C.1"], vec!["A.4", "A.3"]));
    assert_eq!(preempted(noted(&answers, "all that C wanted")), Vec::<&str>::new());
}

#[test]
fn tolerance_23_6() {
    let answers = example("23.6");
    let status = |kind: &str, name: &str| {
        let mut status = Value::Null;
        let updates = answers.iter().filter(|a| a["updates"]["periodic"] == 1).map(|a| {
            if let Some(told) = a[kind][name].get("scheduling_status") {
                status = told.clone();
            }
            status.clone()
        });
        updates.collect::<Vec<_>>()
    };
    let (below, normal) = (json!("below_fair_share"), Value::Null);
    assert_eq!(status("operations", "A"), [&below, &normal, &below, &below, &normal].map(Value::clone));
    assert_eq!(status("pools", "p"), [&below, &normal, &normal, &below, &normal].map(Value::clone));
}

#[test]
fn time_line_23_7() {
    let answers = example("23.7");
    let changes: Vec<(f64, Value)> = answers
        .iter()
        .filter_map(|a| Some((a["t"].as_f64()?, a["operations"]["A"].get("starvation_status")?.clone())))
        .collect();
    let expected = [
        (30.2, json!("starving")),
        (120.2, json!("aggressively_starving")),
        (125.0, Value::Null),
        (156.2, json!("starving")),
    ];
    assert_eq!(changes, expected);
}

#[test]
fn scope_23_8() {
    let answers = example("23.8");
    let alone = noted(&answers, "G has no priority");
    assert_eq!(alone["operations"]["X"]["starvation_status"], json!("starving"));
    assert_eq!(alone["operations"]["G"], Value::Null);
    assert_eq!(alone["pools"]["s"]["starvation_status"], json!("starving"));
    assert_eq!((started(alone).len(), preempted(alone).len()), (0, 0));
    assert_eq!(started(noted(&answers, "still nothing")).len(), 0);
    let pass = noted(&answers, "G preempts");
    assert_eq!((started(pass), preempted(pass)), (vec!["G.3"], vec!["F.5"]));
    let reason = pass["preemptions"][0]["reason"].as_str().expect("a text");
    assert!(
        reason.contains("own priority of the preemptor: none, priority of the stage: normal"),
        "{reason}"
    );
    assert_eq!(pass["pools"]["s"]["usage"]["cpu"], json!(6));
    assert_eq!(history(&answers, "operations", "F", "groups")[1], json!([1, 3, 1]));
}

#[test]
fn limits_23_9() {
    let answers = example("23.9");
    let pass = noted(&answers, "the two youngest");
    assert_eq!(noted(&answers, "1 protected")["operations"]["A"]["groups"], json!([1, 0, 2]));
    assert_eq!((preempted(pass), kinds(pass)), (vec!["A.3", "A.2"], vec!["resource_limits_violated"; 2]));
    assert_eq!(noted(&answers, "all three are")["operations"]["A"]["groups"], json!([0, 0, 3]));
    let pass = noted(&answers, "all three go");
    assert_eq!(
        (preempted(pass), kinds(pass)),
        (vec!["A.1", "A.3", "A.2"], vec!["resource_limits_violated"; 3])
    );
    assert_eq!(preempted(noted(&answers, "none goes")).len(), 0);
    let after = answers.iter().filter(|a| a["note"] == "exactly these");
    assert_eq!(after.map(|a| preempted(a).len() + started(a).len()).collect::<Vec<_>>(), [0, 0, 0]);
}

#[test]
fn hard_overcommit_23_10() {
    let answers = example("23.10");
    let soft = noted(&answers, "soft");
    assert_eq!((preempted(soft), kinds(soft)), (vec!["A.6", "B.1", "A.5"], vec!["preemption"; 3]));
    assert_eq!(noted(&answers, "usage 4")["nodes"]["n"]["usage"]["cpu"], json!(4));
    assert_eq!(preempted(noted(&answers, "not longer than 15 s")).len(), 0);
    let hard = noted(&answers, "A.4 does not");
    assert_eq!((preempted(hard), kinds(hard)), (vec!["A.4"], vec!["resource_overcommit"]));
}

#[test]
fn pending_queue_23_11() {
    let answers = example("23.11");
    let registered: Vec<Value> = (1..=6)
        .map(|n| {
            let did = format!("operation o{n}");
            let answer = answers.iter().find(|a| a["did"] == *did).expect("it is registered");
            answer["operations"][format!("o{n}")]["pending_by"]["pool"].clone()
        })
        .collect();
    assert_eq!(registered, [Value::Null, Value::Null, json!("P1"), Value::Null, json!("P"), json!("P1")]);
    let turns = ["complete o1", "complete o2", "complete o4"].map(|did| {
        let answer = answers.iter().find(|a| a["did"] == did).expect("it is completed");
        let changed = answer["operations"].as_object().expect("operations");
        let ran = changed.iter().filter(|(_, o)| o["state"] == "running").map(|(name, _)| name.clone());
        ran.collect::<Vec<_>>()
    });
    assert_eq!(turns, [["o3"], ["o6"], ["o5"]]);
}

#[test]
fn lightweight_23_12() {
    let answers = example("23.12");
    let counts = |note: &str, pool: &str| {
        let pool = &noted(&answers, note)["pools"][pool];
        let fields =
            ["total_operation_count", "running_operation_count", "lightweight_running_operation_count"];
        fields.map(|f| pool[f].as_i64().unwrap_or(0))
    };
    assert_eq!(counts("N 1/1/0", "N"), [1, 1, 0]);
    assert_eq!(counts("N 1/1/0", "L"), [4, 0, 4]);
    assert_eq!(counts("N 1/1/0", "R"), [5, 1, 4]);
    let fifth = noted(&answers, "error 202");
    assert_eq!(fifth["refused"][1]["code"], json!(202));
    assert!(fifth["refused"][1]["message"].as_str().is_some_and(|m| m.contains("\"R\"")));
    assert_eq!(noted(&answers, "counts as running")["pools"]["R"]["running_operation_count"], json!(2));
    assert_eq!(noted(&answers, "waits in R")["operations"]["m2"]["pending_by"]["pool"], json!("R"));
}

#[test]
fn throughput_23_13() {
    let times = |answers: &[Value]| -> Vec<f64> {
        let starts = answers.iter().flat_map(|a| {
            let own = a["t"].clone();
            let starts = a["starts"].as_array().cloned().unwrap_or_default();
            starts.into_iter().map(move |s| s.get("t").cloned().unwrap_or(own.clone()))
        });
        starts.map(|t| t.as_f64().expect("a time")).collect()
    };
    let rounds = times(&example("23.13"));
    assert_eq!(rounds.len(), 30);
    assert!(rounds.iter().enumerate().all(|(i, t)| *t == [5.1, 10.2, 15.3][i / 10]), "{rounds:?}");
    // And in the size of the section: 100 nodes, 300 needed.
    let large = read(&file("23.13")).replace("\"count\":10", "\"count\":100").replace(":30}", ":300}");
    let answers = play(&large.replace("\"cpu\":30}", "\"cpu\":300}"), Form::Json);
    let answers: Vec<Value> = answers.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let large = times(&answers);
    assert_eq!(large.len(), 300);
    for from in &large {
        let within = large.iter().filter(|t| (*from..from + 5.0).contains(*t)).count();
        assert!(within <= 100, "{within} in 5 s: more than 20 per second");
    }
    assert!(large.iter().all(|t| *t <= 15.3) && large.iter().any(|t| *t >= 15.0));
}
