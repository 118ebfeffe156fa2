//! Cases of the corpus with something changed in them: whatever it is, there is an answer or a
//! refusal, and an answer holds what every answer must hold (fair-share.md 19).

use crate::corpus::{no_clock, read};
use calc::fair_share::{Settings, answer};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Small cases: a few hundred of them are computed.
static CASES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let files = ["strong_and_weight", "integral_single", "integral_sequence", "improved", "fifo_reordering"];
    let lines = files.iter().flat_map(|file| {
        let text = read(&format!("{file}.jsonl"));
        text.lines().map(without_expectation).collect::<Vec<_>>()
    });
    lines.filter(|line| line.len() < 6_000).collect()
});

fn without_expectation(line: &str) -> String {
    let mut case: Value = serde_json::from_str(line).expect("JSON");
    for step in case["steps"].as_array_mut().expect("steps") {
        step.as_object_mut().expect("a step").remove("expect");
    }
    case.to_string()
}

/// One change of a tree of values.
#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    /// A copy of the value after it, or under another name.
    Double,
    /// In place of another value of the same kind somewhere else in the case.
    Swap(usize),
}

fn odd_value() -> impl Strategy<Value = Value> {
    const EDGES: [f64; 11] = [0.0, -1.0, 0.5, 1.0, 1e-9, 1e9, 1e15, 2.3e16, 1e18, 1e300, 5e-324];
    prop_oneof![
        proptest::sample::select(&EDGES[..]).prop_map(Value::from),
        proptest::sample::select(vec![0i64, 1, -1, 7, 1 << 40, i64::MAX / 4, i64::MAX, i64::MIN])
            .prop_map(Value::from),
        (0.0..200.0f64).prop_map(Value::from),
        (0u32..200).prop_map(Value::from),
        proptest::sample::select(vec![
            json!(null),
            json!(true),
            json!(false),
            json!(""),
            json!("<root>"),
            json!("fifo"),
            json!("burst"),
            json!("relaxed"),
            json!("operation"),
            json!("pool"),
            json!([]),
            json!({}),
            json!([1, 1, 1, 1, 1]),
            json!({"cpu": 0}),
            json!({"cpu": 10, "memory": 10, "gpu": 10, "user_slots": 10, "network": 10}),
        ]),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => odd_value().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        1 => Just(Change::Double),
        3 => any::<usize>().prop_map(Change::Swap),
    ]
}

/// JSON pointers of everything in a value, the value itself left out.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    let mut inside = |key: &str, value: &Value| {
        let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        out.push(at.clone());
        pointers(value, &at, out);
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| inside(&i.to_string(), v)),
        Value::Object(map) => map.iter().for_each(|(k, v)| inside(k, v)),
        _ => {}
    }
}

fn apply(case: &mut Value, place: usize, change: &Change) {
    let mut all = Vec::new();
    pointers(case, "", &mut all);
    let Some(pointer) = (!all.is_empty()).then(|| &all[place % all.len()]) else { return };
    let (above, key) = pointer.rsplit_once('/').expect("pointers begin with a slash");
    let key = key.replace("~1", "/").replace("~0", "~");
    match change {
        Change::Replace(value) => *case.pointer_mut(pointer).expect("it is there") = value.clone(),
        Change::Swap(other) => {
            let value = case.pointer(pointer).expect("it is there").clone();
            let same = |p: &&String| case.pointer(p).is_some_and(|v| kind(v) == kind(&value));
            let peers: Vec<String> = all.iter().filter(same).cloned().collect();
            *case.pointer_mut(&peers[other % peers.len()]).expect("it is there") = value;
        }
        Change::Remove | Change::Double => {
            let copy = case.pointer(pointer).cloned();
            match (case.pointer_mut(above).expect("it is there"), change) {
                (Value::Object(map), Change::Remove) => drop(map.remove(&key)),
                (Value::Array(items), Change::Remove) => drop(items.remove(key.parse().expect("an index"))),
                (Value::Object(map), _) => drop(map.insert(format!("{key}2"), copy.unwrap_or_default())),
                (Value::Array(items), _) => items.push(copy.unwrap_or_default()),
                _ => {}
            }
        }
    }
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// What must hold of an answer; gives whether there was one.
fn check(line: &[u8]) -> bool {
    let full = answer(line, &Settings::default(), &mut no_clock);
    let sparse = answer(line, &Settings { repeat: None, sparse: true }, &mut no_clock);
    assert_eq!(full.is_ok(), sparse.is_ok());
    let full = match full {
        Ok(full) => full,
        Err(refusal) => {
            assert!(refusal.pointer.is_empty() || refusal.pointer.starts_with('/'), "{refusal}");
            assert!(!refusal.message.contains("the update refuses"), "not seen by the reader: {refusal}");
            return false;
        }
    };
    let full: Value = serde_json::from_slice(&full).expect("JSON");
    let sparse: Value = serde_json::from_slice(&sparse.expect("as the full one")).expect("JSON");
    for (step, thin) in list(&full["steps"]).iter().zip(list(&sparse["steps"])) {
        // Shares lie on lines from 0 to the demand; one step of a float there is that much of it.
        let demand = list(&step["elements"]["<root>"]["demand_share"]).iter().filter_map(Value::as_f64);
        let tolerance = 1e-8 + 1e-15 * demand.fold(0.0, f64::max);
        for (id, element) in step["elements"].as_object().expect("elements") {
            for (field, value) in element.as_object().expect("fields") {
                match &thin["elements"][id][field] {
                    Value::Null => assert!(is_zero(value), "{id}: {field} is {value} and was left out"),
                    same => assert_eq!(same, value),
                }
                let numbers = if value.is_array() { list(value).to_vec() } else { vec![value.clone()] };
                let finite = |v: &Value| v.as_f64().is_some_and(f64::is_finite);
                assert!(
                    field.contains("index") || value.is_string() || numbers.iter().all(finite),
                    "{id}: {field} is {value}"
                );
            }
            let share = |field: &str| -> Vec<f64> {
                list(&element[field]).iter().map(|x| x.as_f64().expect("a number")).collect()
            };
            let parts: Vec<Vec<f64>> = ["strong", "integral", "weight_proportional"]
                .map(|p| share(&format!("fair_share_{p}")))
                .into();
            for r in 0..5 {
                let (fair, limits) = (share("fair_share")[r], share("limits_share")[r]);
                assert!((-1e-9..=limits + tolerance).contains(&fair), "{id}: {fair} of {limits}");
                let sum: f64 = parts.iter().map(|p| p[r]).sum();
                assert!((sum - fair).abs() <= tolerance, "{id}: parts make {sum}, not {fair}");
            }
        }
    }
    true
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_zero),
        Value::Number(x) => x.as_f64() == Some(0.0),
        other => other.is_null(),
    }
}

/// A case with a few changes of its values; a failure shows the case itself.
fn changed_case() -> impl Strategy<Value = String> {
    let changes = proptest::collection::vec((any::<usize>(), change()), 1..4);
    (any::<prop::sample::Index>(), changes).prop_map(|(case, changes)| {
        let mut value: Value = serde_json::from_str(case.get(&CASES[..]).as_str()).expect("JSON");
        for (place, change) in &changes {
            apply(&mut value, *place, change);
        }
        value.to_string()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_values(line in changed_case()) {
        check(line.as_bytes());
    }

    #[test]
    fn changed_bytes(
        case in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<Option<prop::sample::Index>>(),
    ) {
        let mut line = case.get(&CASES[..]).as_bytes().to_vec();
        for (place, byte) in &changes {
            let place = place.index(line.len());
            line[place] = *byte;
        }
        if let Some(end) = end {
            line.truncate(end.index(line.len()));
        }
        check(&line);
    }
}

/// The properties above are checked on something only if enough of the corpus is small.
#[test]
fn there_are_small_cases() {
    assert!(CASES.len() > 60, "{}", CASES.len());
    assert!(CASES.iter().all(|line| check(line.as_bytes())));
}
