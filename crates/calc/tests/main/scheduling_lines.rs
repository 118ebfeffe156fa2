//! Lines that are refused, by field; questions; the transcript for people.

use crate::scheduling::play;
use calc::scheduling::{Form, Script};
use expect_test::{expect, expect_file};

/// A small world; every refused line is read in it.
const WORLD: &str = r#"{"tree":{"max_running_operation_count":5}}
{"node":"n","limits":{"cpu":4}}
{"pool":"p"}
{"pool":"fifo","mode":"fifo"}
{"operation":"A","pool":"p","job":{"cpu":1},"count":2}
{"place":"A","node":"n"}
{"operation":"Z","pool":"p"}
{"complete":"Z"}"#;

const REFUSED: &str = r#"
[]
{}
{"node":"m"
{"nod":"m"}
{"advance":1,"update":1}
{"pool":"q","operation":"B","advance":1}
{"advance":1,"heartbeats":false}
{"advance":-1}
{"advance":86401}
{"advance":"10s"}
{"until":-1}
{"update":0}
{"update":1.5}
{"note":1}
{"script":7}
{"script":"x","heartbeat_period":0}
{"scheduler":{"fair_share_update_period":"1h"}}
{"scheduler":{"nonsense":1}}
{"tree":7}
{"tree":{"fair_share_starvation_tolerance":2}}
{"tree":{"fair_share_starvation_timeout":"10m"}}
{"tree":{"nonsense":1}}
{"pool":"p"}
{"pool":"q","parent":"nowhere"}
{"pool":"q","mode":"lifo"}
{"pool":"q","resource_limits":{"cpus":1}}
{"pool":"q","resource_limits":{"cpu":-1}}
{"set_pool":"nowhere","weight":2}
{"set_pool":"p","parent":"fifo"}
{"set_pool":"p","nonsense":1}
{"move_pool":"p"}
{"rename_pool":"p","to":7}
{"remove_pool":"nowhere"}
{"node":"n","limits":{}}
{"node":"m"}
{"node":"*","limits":{}}
{"node":"m","limits":{"cpu":1e15}}
{"node":"m","limits":{"cpu":4},"count":0}
{"set_node":"m","limits":{}}
{"lost":"m"}
{"operation":"A","pool":"p"}
{"operation":"Z","pool":"p"}
{"operation":"A.1","pool":"p"}
{"operation":"B","pool":"p","job":{"cores":1}}
{"operation":"B","pool":"p","count":-1}
{"operation":"B","pool":"p","tasks":[]}
{"operation":"B","pool":"p","tasks":[{"count":1}],"count":1}
{"operation":"B","pool":"p","tasks":[{"jobs":1}]}
{"operation":"B","pool":"p","type":"shuffle"}
{"operation":"B","pool":"p","weight":0}
{"operation":"B","pool":"p","preemption_mode":"rude"}
{"operation":"B","pool":"p","scheduling_tag_filter":"a &"}
{"operation":"B","pool":"p","fair_share_starvation_timeout":"soon"}
{"operation":"B","pool":"p","fair_share_starvation_tolerance":1.1}
{"set_operation":"B","weight":2}
{"set_operation":"Z","weight":2}
{"place":"B","node":"n"}
{"place":"A"}
{"place":"A","node":"m"}
{"place":"A","node":"n","task":1}
{"demand":"A","tasks":[]}
{"suspend":"B"}
{"finish":"A.9"}
{"finish":[]}
{"finish":["A.1","A.x"]}
{"finish":"A.1","outcome":"lost"}
{"gone":"A.1"}
{"usage":"A.1"}
{"usage":"A.1","resources":{"cpu":-1}}
{"heartbeat":"m"}
{"explain":"B"}
{"explain_pool":"nowhere"}
{"show":"p"}
{"show":{"pool":"p"}}
{"show":{"pools":["p","nowhere"]}}
"#;

#[test]
fn refusals() {
    let mut text = String::new();
    for line in REFUSED.trim().lines() {
        let mut script = Script::new(Form::Json);
        for line in WORLD.lines() {
            script.answer(line.as_bytes()).unwrap_or_else(|e| panic!("{line}: {e}"));
        }
        match script.answer(line.as_bytes()) {
            Ok(answer) => panic!("not refused: {line}: {}", String::from_utf8_lossy(&answer)),
            Err(refusal) => text.push_str(&format!("{line}\n    {refusal}\n")),
        }
        // It has changed nothing.
        let next = script.answer(br#"{"note":"next"}"#).expect("an answer");
        assert_eq!(
            String::from_utf8_lossy(&next),
            "{\"event\":9,\"t\":0,\"did\":\"note next\",\"note\":\"next\"}\n"
        );
    }
    expect_file!["scheduling_refusals.txt"].assert_eq(&text);
}

/// What the scheduler refuses is an answer: it would refuse a user's command too.
#[test]
fn the_scheduler_says_no() {
    let script = r#"{"pool":"fifo","mode":"fifo"}
{"pool":"child","parent":"fifo"}
{"pool":"p","max_running_operation_count":1}
{"operation":"A","pool":"p"}
{"operation":"B","pool":"p"}
{"resume":"A"}
{"complete":"B"}
{"set_operation":"B","pool":"$"}"#;
    let answers = play(script, Form::Json);
    let refused: Vec<String> = answers
        .lines()
        .filter_map(|l| {
            let answer: serde_json::Value = serde_json::from_str(l).expect("JSON");
            Some(format!("{}: {}", answer["did"].as_str()?, answer["refused"].as_array()?.last()?["message"]))
        })
        .collect();
    expect![[r#"
        pool child: "Pool cannot have subpools since it is in FIFO mode: pool \"fifo\""
        resume A: "Operation A cannot do that: it is not suspended"
        complete B: "Operation B cannot do that: its state is \"pending\", expected \"running\""
        set_operation B: "Bad name of an ephemeral pool \"$\": expected at most 100 characters that match \"[-_a-z0-9:A-Z]+\"""#]].assert_eq(&refused.join("\n"));
}

/// An operation that can never start anything fails, as it would in a cluster (scheduling.md 20).
#[test]
fn a_stuck_operation() {
    let script = r#"{"node":"n","limits":{"cpu":8}}
{"pool":"small","resource_limits":{"cpu":2}}
{"operation":"A","pool":"small","job":{"cpu":4},"count":1}
{"until":300}
{"until":450}"#;
    let answers = play(script, Form::Json);
    let answers: Vec<serde_json::Value> =
        answers.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert!(answers[3].get("failures").is_none());
    let failure = &answers[4]["failures"][0];
    assert_eq!(failure["operation"], "A");
    let reason = failure["reason"].as_str().expect("a text");
    assert!(reason.contains("Scheduling of operation A is stuck: Limits of pool \"small\""), "{reason}");
    assert_eq!(answers[4]["operations"]["A"]["state"], "failed");
}

/// The example of the guide.
const GUIDE: &str = r#"{"node":"n","limits":{"cpu":4}}
{"pool":"prod","strong_guarantee_resources":{"cpu":3}}
{"pool":"batch"}
{"operation":"B","pool":"batch","job":{"cpu":1},"count":6,"gives_way":2}
{"advance":60,"note":"batch has the cluster for itself"}
{"operation":"P","pool":"prod","job":{"cpu":1},"count":2}
{"advance":45}
{"explain":"B"}
{"show":{"operations":"P"},"attributes":["satisfaction_ratio","effective_fair_share_starvation_timeout"]}"#;

#[test]
fn the_guide_as_a_transcript() {
    expect![[r#"
        [1] 0 s  node n
            node n  limits (user_slots 1000, cpu 4, memory 1099511627776)
        [2] 0 s  pool prod
        [3] 0 s  pool batch
        [4] 0 s  operation B
            operation B  state running, wanted 6
        [5] 60 s  advance 60
            # batch has the cluster for itself
            updates: periodic 301, extra 0
            passes: regular 0, preemptive 12
            + 0 s  B.1  n  user_slots 1, cpu 1  regular_medium_priority
            + 0 s  B.2  n  user_slots 1, cpu 1  regular_medium_priority
            + 0 s  B.3  n  user_slots 1, cpu 1  regular_medium_priority
            + 0 s  B.4  n  user_slots 1, cpu 1  regular_medium_priority
            operation B  running 4, wanted 2, groups 1/3/0, pool batch, fair_share 1, usage_share 1, demand_share 1.5
            pool <Root>  total_operation_count 1, running_operation_count 1, fair_share 1, usage_share 1, demand_share 1.5, usage (user_slots 4, cpu 4)
            pool batch  total_operation_count 1, running_operation_count 1, fair_share 1, usage_share 1, demand_share 1.5, usage (user_slots 4, cpu 4)
            pool prod
            node n  usage (user_slots 4, cpu 4)
        [6] 60 s  operation P
            updates: periodic 0, extra 1
            operation B  groups 1/1/2, fair_share 0.5
            operation P  state running, wanted 2, pool prod, fair_share 0.5, demand_share 0.5, scheduling_status below_fair_share
            pool <Root>  total_operation_count 2, running_operation_count 2, demand_share 2
            pool batch  fair_share 0.5
            pool prod  total_operation_count 1, running_operation_count 1, fair_share 0.5, demand_share 0.5, scheduling_status below_fair_share
        [7] 105 s  advance 45
            updates: periodic 225, extra 2
            passes: regular 2, preemptive 9
            ! 90.2 s  operation P  starving
            ! 90.2 s  pool prod  starving
            ! 100.2 s  operation P  non_starving
            ! 100.2 s  pool prod  non_starving
            + 95.019 s  P.1  n  user_slots 1, cpu 1  preemptive_normal
            + 100.02 s  P.2  n  user_slots 1, cpu 1  preemptive_normal
            - 95.019 s  B.4  n  preemption  within 10 s  Preempted to start allocation P.1 of operation P; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal
            - 100.02 s  B.3  n  preemption  within 10 s  Preempted to start allocation P.2 of operation P; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal
            . 97.019 s  B.4  preempted
            . 102.02 s  B.3  preempted
            operation B  running 2, wanted 4, groups 1/1/0, usage_share 0.5
            operation P  running 2, wanted 0, groups 1/1/0, usage_share 0.5, unschedulable_reason no_pending_allocations, no scheduling_status
            pool batch  usage_share 0.5, usage (user_slots 2, cpu 2)
            pool prod  usage_share 0.5, usage (user_slots 2, cpu 2), no scheduling_status
            node n  discount (user_slots 1, cpu 1)
        [8] 105 s  explain B
            Operation B
            In pool "/batch" of tree "physical": the nodes are taken, and it has its fair share.
              It has 2 allocations, wants 4 more; usage 50 % of the cluster, fair share 50 %, demand 150 %. Of its allocations 1 are protected, 1 give way only to aggressively starving ones, 0 to any starving one.
              Of 1 node: 1 with too little free (cpu on 1).
              2 allocations were taken away from it lately; the newest:
                10 s ago on node "n", 1 slot, 1 core: Preempted to start allocation P.1 of operation P; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal
                5 s ago on node "n", 1 slot, 1 core: Preempted to start allocation P.2 of operation P; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal
              To change that: others finish, or its pool is given a guarantee or a larger weight.
        [9] 105 s  show
            = operation P  satisfaction_ratio 1, effective_fair_share_starvation_timeout 30000
    "#]].assert_eq(&play(GUIDE, Form::Text));
}

#[test]
fn the_guide_as_json() {
    let answers = play(GUIDE, Form::Json);
    let advance = answers.lines().nth(6).expect("the seventh answer");
    expect![[r#"{"event":7,"t":105,"did":"advance 45","updates":{"periodic":225,"extra":2},"passes":{"regular":2,"preemptive":9},"starvation":[{"t":90.2,"operation":"P","status":"starving"},{"t":90.2,"pool":"prod","status":"starving"},{"t":100.2,"operation":"P","status":"non_starving"},{"t":100.2,"pool":"prod","status":"non_starving"}],"starts":[{"t":95.019,"allocation":"P.1","node":"n","resources":{"user_slots":1,"cpu":1},"stage":"preemptive_normal"},{"t":100.02,"allocation":"P.2","node":"n","resources":{"user_slots":1,"cpu":1},"stage":"preemptive_normal"}],"preemptions":[{"t":95.019,"allocation":"B.4","node":"n","kind":"preemption","stage":"preemptive_normal","group":"preemptible","level":2,"for":"P.1","timeout":10,"reason":"Preempted to start allocation P.1 of operation P; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal"},{"t":100.02,"allocation":"B.3","node":"n","kind":"preemption","stage":"preemptive_normal","group":"preemptible","level":2,"for":"P.2","timeout":10,"reason":"Preempted to start allocation P.2 of operation P; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal"}],"ends":[{"t":97.019,"allocation":"B.4","outcome":"preempted"},{"t":102.02,"allocation":"B.3","outcome":"preempted"}],"operations":{"B":{"running":2,"wanted":4,"groups":[1,1,0],"usage_share":0.5},"P":{"running":2,"wanted":0,"groups":[1,1,0],"usage_share":0.5,"unschedulable_reason":"no_pending_allocations","scheduling_status":null}},"pools":{"batch":{"usage_share":0.5,"usage":{"user_slots":2,"cpu":2}},"prod":{"usage_share":0.5,"usage":{"user_slots":2,"cpu":2},"scheduling_status":null}},"nodes":{"n":{"discount":{"user_slots":1,"cpu":1}}}}"#]].assert_eq(advance);
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/calculators.md");
    let guide = std::fs::read_to_string(guide).expect("the guide is there");
    assert!(guide.contains(GUIDE), "the script of the guide");
    assert!(guide.contains(advance), "the answer in the guide");
    let transcript = play(GUIDE, Form::Text);
    for line in transcript.lines() {
        assert!(guide.contains(line), "the transcript of the guide lacks {line}");
    }
}
