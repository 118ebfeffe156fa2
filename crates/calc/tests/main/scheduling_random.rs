//! Random scripts: whatever a line says, there is an answer or a refusal, nothing panics (the checks of
//! the scheduler's own invariants are on in tests), and the same script gives the same bytes.

use crate::scheduling::play;
use calc::scheduling::Form;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// Names of operations, pools and nodes come from small sets, so that most lines find something.
fn operation() -> impl Strategy<Value = String> {
    select(vec!["A", "B", "C", "D", "E"]).prop_map(str::to_owned)
}

fn pool() -> impl Strategy<Value = String> {
    select(vec!["p", "q", "p1", "fifo", "none"]).prop_map(str::to_owned)
}

fn node() -> impl Strategy<Value = String> {
    select(vec!["n1", "n2", "m1", "m2", "m3"]).prop_map(str::to_owned)
}

fn cpu() -> impl Strategy<Value = String> {
    select(vec!["0", "0.5", "1", "2", "3", "8", "1e9"]).prop_map(str::to_owned)
}

fn seconds() -> impl Strategy<Value = String> {
    select(vec!["0", "0.05", "0.2", "1", "5", "11", "31", "125"]).prop_map(str::to_owned)
}

fn pool_option() -> impl Strategy<Value = String> {
    prop_oneof![
        cpu().prop_map(|c| format!(r#""strong_guarantee_resources":{{"cpu":{c}}}"#)),
        cpu().prop_map(|c| format!(r#""resource_limits":{{"cpu":{c}}}"#)),
        (0..4).prop_map(|n| format!(r#""max_running_operation_count":{n}"#)),
        (0..4).prop_map(|n| format!(r#""max_operation_count":{n},"max_running_operation_count":null"#)),
        Just(r#""mode":"fifo""#.to_owned()),
        Just(r#""mode":"fifo","enable_lightweight_operations":true"#.to_owned()),
        any::<bool>().prop_map(|b| format!(r#""enable_aggressive_starvation":{b}"#)),
        any::<bool>().prop_map(|b| format!(r#""allow_aggressive_preemption":{b}"#)),
        Just(r#""create_ephemeral_subpools":true"#.to_owned()),
        Just(r#""scheduling_tag_filter":"gpu""#.to_owned()),
        (1..5).prop_map(|w| format!(r#""weight":{w}"#)),
        Just(r#""nonsense":1"#.to_owned()),
    ]
}

fn tree_option() -> impl Strategy<Value = String> {
    prop_oneof![
        seconds().prop_map(|s| format!(r#""fair_share_starvation_timeout":"{s}s""#)),
        Just(r#""fair_share_starvation_timeout":0"#.to_owned()),
        Just(
            r#""fair_share_aggressive_starvation_timeout":"30s","enable_aggressive_starvation":true"#
                .to_owned()
        ),
        Just(r#""preemptive_scheduling_backoff":0"#.to_owned()),
        Just(r#""max_operation_count_per_pool":2,"max_running_operation_count_per_pool":1"#.to_owned()),
        Just(r#""nodes_filter":"gpu""#.to_owned()),
        Just(r#""nodes_filter":null"#.to_owned()),
        Just(r#""allow_preemption_from_starving_operations":true"#.to_owned()),
        Just(r#""preemption_satisfaction_threshold":0.5"#.to_owned()),
    ]
}

fn description() -> impl Strategy<Value = String> {
    let tags = select(vec!["", r#","tags":["gpu"]"#]);
    prop_oneof![
        (node(), cpu(), tags)
            .prop_map(|(n, c, tags)| format!(r#"{{"node":"{n}","limits":{{"cpu":{c}}}{tags}}}"#)),
        cpu().prop_map(|c| format!(r#"{{"node":"m","limits":{{"cpu":{c}}},"count":3}}"#)),
        (pool(), pool_option()).prop_map(|(p, o)| format!(r#"{{"pool":"{p}",{o}}}"#)),
        (pool(), pool(), pool_option())
            .prop_map(|(p, q, o)| format!(r#"{{"pool":"{p}","parent":"{q}",{o}}}"#)),
        (
            operation(),
            pool(),
            cpu(),
            0..6,
            select(vec![
                "",
                r#","preemption_mode":"graceful""#,
                r#","gives_way":0"#,
                r#","suspended":true"#,
                r#","type":"map""#,
                r#","is_gang":true"#,
                r#","weight":3"#,
                r#","resource_limits":{"user_slots":2}"#
            ])
        )
            .prop_map(|(o, p, c, n, more)| {
                format!(r#"{{"operation":"{o}","pool":"{p}","job":{{"cpu":{c}}},"count":{n}{more}}}"#)
            }),
        (operation(), node(), 1..4)
            .prop_map(|(o, n, k)| format!(r#"{{"place":"{o}","node":"{n}","count":{k}}}"#)),
        tree_option().prop_map(|o| format!(r#"{{"tree":{{{o}}}}}"#)),
    ]
}

fn happening() -> impl Strategy<Value = String> {
    let allocation = || (operation(), 1..9).prop_map(|(o, n)| format!("{o}.{n}"));
    let about_operation = select(vec!["suspend", "resume", "complete", "abort", "explain"]);
    let about_allocation = select(vec!["finish", "gone"]);
    prop_oneof![
        4 => seconds().prop_map(|s| format!(r#"{{"advance":{s}}}"#)),
        2 => (1..4).prop_map(|n| format!(r#"{{"update":{n}}}"#)),
        2 => Just(r#"{"heartbeat":"*"}"#.to_owned()),
        2 => (about_operation, operation()).prop_map(|(verb, o)| format!(r#"{{"{verb}":"{o}"}}"#)),
        2 => (about_allocation, allocation()).prop_map(|(verb, a)| format!(r#"{{"{verb}":"{a}"}}"#)),
        1 => allocation().prop_map(|a| format!(r#"{{"finish":"{a}","outcome":"failed"}}"#)),
        1 => (allocation(), cpu()).prop_map(|(a, c)| format!(r#"{{"usage":"{a}","resources":{{"cpu":{c}}}}}"#)),
        1 => (operation(), cpu(), 0..5).prop_map(|(o, c, n)| {
            format!(r#"{{"demand":"{o}","job":{{"cpu":{c}}},"count":{n}}}"#)
        }),
        1 => (operation(), pool()).prop_map(|(o, p)| format!(r#"{{"set_operation":"{o}","pool":"{p}","weight":2}}"#)),
        1 => (pool(), pool_option()).prop_map(|(p, o)| format!(r#"{{"set_pool":"{p}",{o}}}"#)),
        1 => (pool(), pool()).prop_map(|(p, q)| format!(r#"{{"move_pool":"{p}","parent":"{q}"}}"#)),
        1 => (pool(), pool()).prop_map(|(p, q)| format!(r#"{{"rename_pool":"{p}","to":"{q}"}}"#)),
        1 => pool().prop_map(|p| format!(r#"{{"remove_pool":"{p}"}}"#)),
        1 => pool().prop_map(|p| format!(r#"{{"explain_pool":"{p}"}}"#)),
        1 => node().prop_map(|n| format!(r#"{{"lost":"{n}"}}"#)),
        1 => (node(), cpu(), 0..5).prop_map(|(n, c, s)| {
            format!(r#"{{"set_node":"{n}","limits":{{"cpu":{c},"user_slots":{s}}}}}"#)
        }),
        1 => Just(r#"{"show":"all"}"#.to_owned()),
        1 => Just(r#"{"show":"all","attributes":["starvation_status","dominant_fair_share"]}"#.to_owned()),
        1 => tree_option().prop_map(|o| format!(r#"{{"tree":{{{o}}}}}"#)),
        1 => Just(r#"{"scheduler":{"max_started_allocations_per_heartbeat":1}}"#.to_owned()),
        1 => "\\PC{0,40}".prop_map(|garbage| garbage.replace(['\n', '\r'], " ") + "!"),
    ]
}

/// A cluster in which something happens: operations that hold more than their share, others that starve.
const CLUSTER: &str = r#"{"node":"m","limits":{"cpu":8,"user_slots":20},"tags":["gpu"],"count":3}
{"pool":"p","strong_guarantee_resources":{"cpu":16},"enable_aggressive_starvation":true}
{"pool":"p1","parent":"p"}
{"pool":"q"}
{"operation":"A","pool":"q","job":{"cpu":1},"count":5,"gives_way":0}
{"operation":"B","pool":"q","job":{"cpu":2},"count":2,"preemption_mode":"graceful"}
{"operation":"C","pool":"p1","job":{"cpu":2},"count":9}
{"place":"A","nodes":"*","count":5}
{"place":"B","nodes":"*","count":1}"#;

fn script() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![1 => description(), 5 => happening()];
    let timeouts = select(vec!["0", "1", "30000"]).prop_map(|t| {
        format!(
            r#"{{"tree":{{"fair_share_starvation_timeout":{t},"fair_share_aggressive_starvation_timeout":"30s"}}}}"#
        )
    });
    let cluster = prop_oneof![
        4 => timeouts.prop_map(|t| [&t, CLUSTER].join("\n").lines().map(str::to_owned).collect::<Vec<_>>()),
        1 => Just(Vec::new()),
    ];
    (cluster, prop::collection::vec(description(), 0..8), prop::collection::vec(line, 1..30))
        .prop_map(|(cluster, first, then)| cluster.into_iter().chain(first).chain(then).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_line_is_answered_or_refused(lines in script()) {
        let script = lines.join("\n");
        let answers = play(&script, Form::Json);
        let lines = script.lines().filter(|l| !l.trim().is_empty()).count();
        prop_assert_eq!(answers.lines().count(), lines);
        for answer in answers.lines().filter(|a| !a.starts_with('!')) {
            let answer: Value = serde_json::from_str(answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
            prop_assert!(answer["t"].is_number() && answer["did"].is_string());
        }
        prop_assert_eq!(&answers, &play(&script, Form::Json));
        let transcript = play(&script, Form::Text);
        prop_assert_eq!(transcript.lines().filter(|l| l.starts_with(['[', '!'])).count(), lines);
    }
}
