//! How answers look. Inputs are replies as they came from a server, cut to what matters.

use cli::output::{Look, Output, json_text};
use cli::views::*;
use expect_test::{Expect, expect};
use vocab::Time;
use yson::{Map, Value};

fn map(text: &str) -> Map {
    match yson::parse(text.as_bytes()).expect("good YSON") {
        Value::Map(map) => map,
        other => panic!("not a map: {other:?}"),
    }
}

fn look() -> Look {
    Look { colour: false, now: Time::parse("2026-01-02T03:10:00Z").expect("a time") }
}

fn check(answer: &dyn Output, human: Expect, quiet: &str) {
    human.assert_eq(&format!("{}\n", answer.human(&look())));
    assert_eq!(answer.quiet(), quiet);
    json_text(&answer.json());
}

const OPERATIONS: &str = r#"{
    operations=[
        {id="9f19-38-103e8-5ec8"; type=vanilla; state=running; authenticated_user=root; suspended=%false;
         start_time="2026-01-02T03:04:05.000000Z"; brief_spec={title="train\nmodel"};
         runtime_parameters={scheduling_options_per_pool_tree={physical={pool=research}}};
         brief_progress={jobs={total=12000; running=40; completed=3000; pending=8960; failed=2; aborted=0; lost=0}}};
        {id="1-2-103e8-4"; type=vanilla; state=running; authenticated_user=ann; suspended=%true;
         start_time="2026-01-02T03:09:59.500000Z"; brief_spec={title=x; alias="*nightly"};
         runtime_parameters={scheduling_options_per_pool_tree={physical={pool=prod}; gpu={pool=prod}}}};
        {id="1-1-103e8-4"; type=vanilla; state=failed; authenticated_user=ann;
         start_time="2026-01-01T03:09:59Z"; finish_time="2026-01-01T05:09:59Z";
         brief_spec={title="a title that is much too long for a column of a table"};
         brief_progress={jobs={total=1; running=0; completed=0; pending=1; failed=1; aborted=0; lost=0}}};
    ];
    incomplete=%true;
}"#;

#[test]
fn operations() {
    check(
        &OperationTable { reply: map(OPERATIONS) },
        expect![[r#"
            ID                  TITLE                             USER  POOL      STATE      PROGRESS           DONE  RUNNING  FAILED  STARTED       TIME
            9f19-38-103e8-5ec8  train model                       root  research  running    ███·······  3000/12 000       40       2  5m 55s ago  5m 55s
            1-2-103e8-4         *nightly                          ann   prod      suspended  ··········          0/0        0       0  now          500ms
            1-1-103e8-4         a title that is much too long f…  ann   -         failed     ··········          0/1        0       1  1d 00h ago  2h 00m
            (more with --limit)
        "#]],
        "9f19-38-103e8-5ec8\n1-2-103e8-4\n1-1-103e8-4",
    );
    check(
        &OperationTable { reply: Map::new() },
        expect![[r#"
        No operations.
    "#]],
        "",
    );
}

#[test]
fn an_operation_that_failed() {
    let operation = r#"{
        id="9f19-38-103e8-5ec8"; type=vanilla; state=failed; authenticated_user=root; suspended=%false;
        start_time="2026-01-02T03:04:05.000000Z"; finish_time="2026-01-02T03:05:05.000000Z";
        brief_spec={title=train};
        runtime_parameters={scheduling_options_per_pool_tree={physical={pool=research; weight=2.}}};
        progress={tasks=[{task_name=t; job_counter={total=3; running=0; pending=1; failed=2;
            completed={total=2; interrupted={total=0}}; aborted={total=1}}}]};
        events=[{time="2026-01-02T03:04:05.000000Z"; state=starting; attributes={}};
                {time="2026-01-02T03:05:05.000000Z"; state=failed; attributes={}}];
        alerts={low_cpu_usage={code=1; message="Average CPU usage is 2%"; attributes={}; inner_errors=[]}};
        result={error={code=215; message="Failed jobs limit exceeded"; attributes={max_failed_job_count=1};
            inner_errors=[{code=1205; message="User job failed"; attributes={stderr="line 1\nTraceback: no\n"};
                inner_errors=[{code=10000; message="Process exited with code 3"; attributes={exit_code=3}; inner_errors=[]}]}]}};
    }"#;
    check(
        &OperationCard { operation: map(operation) },
        expect![[r#"
        Operation  9f19-38-103e8-5ec8
        Title      train
        Type       vanilla
        State      failed
        User       root
        Pool       research (tree physical, weight 2)
        Started    2026-01-02T03:04:05.000000Z (5m 55s ago)
        Finished   2026-01-02T03:05:05.000000Z (4m 55s ago)
        Time       1m 00s

        TASK  JOBS  COMPLETED  RUNNING  PENDING  FAILED  ABORTED
        t        3          2        0        1       2        1

        Alert low_cpu_usage:
          Average CPU usage is 2% (code 1)

        Events:
          2026-01-02T03:04:05.000000Z  starting
          2026-01-02T03:05:05.000000Z  failed

        Result:
          Failed jobs limit exceeded (code 215)
            User job failed (code 1205)
              Process exited with code 3 (code 10000)
        Last output of the failed job:
          line 1
          Traceback: no
    "#]],
        "failed",
    );
}

#[test]
fn an_operation_that_waits() {
    let operation = r#"{
        id="1-2-103e8-4"; type=vanilla; state=pending; authenticated_user=root; suspended=%true;
        start_time="2026-01-02T03:04:05.000000Z";
        brief_spec={title=train; alias="*nightly"};
        runtime_parameters={scheduling_options_per_pool_tree={physical={pool=research}}};
        progress={scheduling_info_per_pool_tree={physical={usage_ratio=0.; fair_share_ratio=0.25; demand_ratio=0.5;
            pending_by={pool=research; limit=max_running_operation_count}; deactivation_reasons={min_needed_resources_unsatisfied=12}}}};
        result=#;
    }"#;
    check(
        &OperationCard { operation: map(operation) },
        expect![[r#"
        Operation  1-2-103e8-4
        Title      train
        Alias      *nightly
        Type       vanilla
        State      pending, suspended
        User       root
        Pool       research (tree physical)
        Started    2026-01-02T03:04:05.000000Z (5m 55s ago)
        Time       5m 55s

        Share in physical: usage 0%, fair share 25%, demand 50%
          waits for max_running_operation_count of pool research
          refused by nodes: min needed resources unsatisfied (12)
    "#]],
        "pending",
    );
}

#[test]
fn jobs() {
    let reply = r#"{jobs=[
        {id="4b5e-49-10384-a8a8"; state=running; address="node-1:9012"; task_name=t; job_cookie=0u;
         start_time="2026-01-02T03:09:50Z"; stderr_size=2048u};
        {id="4b5e-4a-10384-a8a8"; state=failed; address="node-1:9012"; task_name=t; job_cookie=11u;
         start_time="2026-01-02T03:04:05Z"; finish_time="2026-01-02T03:04:06Z"; stderr_size=4u;
         error={code=1205; message="User job failed"; attributes={}; inner_errors=[
            {code=10000; message="Process exited with code 3"; attributes={}; inner_errors=[]}]}};
        {id="4b5e-4b-10384-a8a8"; state=aborted; task_name=t; job_cookie=1u; abort_reason=preemption;
         error={code=1; message="Job aborted"; attributes={abort_reason=preemption}; inner_errors=[]}};
    ]; state_counts={running=40; failed=2; aborted=1}}"#;
    check(
        &JobTable { reply: map(reply) },
        expect![[r#"
            ID                  TASK  COOKIE  STATE    NODE         STARTED     TIME  OUTPUT  REASON
            4b5e-49-10384-a8a8  t          0  running  node-1:9012  10s ago      10s   2 KiB
            4b5e-4a-10384-a8a8  t         11  failed   node-1:9012  5m 55s ago    1s     4 B  Process exited with code 3
            4b5e-4b-10384-a8a8  t          1  aborted  -            -              -       -  preemption
            (shown 3 of 43: 40 running, 2 failed, 1 aborted)
        "#]],
        "4b5e-49-10384-a8a8\n4b5e-4a-10384-a8a8\n4b5e-4b-10384-a8a8",
    );
}

#[test]
fn one_job() {
    let job = r#"{job_id="4b5e-4a-10384-a8a8"; id="4b5e-4a-10384-a8a8"; operation_id="1-2-103e8-4"; state=failed;
        address="node-1:9012"; task_name=t; job_cookie=11u; pool=research;
        start_time="2026-01-02T03:04:05Z"; finish_time="2026-01-02T03:04:36Z"; stderr_size=4u;
        statistics={user_job={cpu={user={sum=61500;count=1;min=61500;max=61500}}; max_memory={sum=1;count=1;min=1;max=1610612736}}};
        events=[{time="2026-01-02T03:04:05Z"; state=waiting; phase=created}; {time="2026-01-02T03:04:36Z"; state=failed}];
        error={code=1205; message="User job failed"; attributes={}; inner_errors=[]}}"#;
    check(
        &JobCard { job: map(job) },
        expect![[r#"
        Job        4b5e-4a-10384-a8a8
        Operation  1-2-103e8-4
        Task       t, cookie 11
        State      failed
        Node       node-1:9012
        Pool       research
        Started    2026-01-02T03:04:05.000000Z (5m 55s ago)
        Finished   2026-01-02T03:04:36.000000Z (5m 24s ago)
        Time       31s
        CPU time   1m 01s
        Memory     1.5 GiB
        Output     4 B

        Events:
          2026-01-02T03:04:05Z  waiting created
          2026-01-02T03:04:36Z  failed

        Error:
          User job failed (code 1205)
    "#]],
        "failed",
    );
}

#[test]
fn nodes() {
    let nodes = r#"{
        "vm-8000-1"={state=online; scheduler_state=online; running_job_count=3; tags=[ssd; rack-4]; job_environment=hybrid;
            last_seen_time="2026-01-02T03:09:58Z"; tree=physical;
            resource_usage={cpu=3.5; memory=1610612736; user_slots=3; gpu=0; network=0; user_memory=1610612736};
            resource_limits={cpu=8.; memory=17179869184; user_slots=32; gpu=0; network=0}};
        "vm-8000-2"={state=offline; resource_limits={cpu=8.}; alerts=[
            {code=1; message="Clock is late"};
            {code=1; message="This node cannot isolate jobs"; attributes={alert_type=job_environment_disabled}};
        ]};
    }"#;
    check(
        &NodeTable { nodes: map(nodes), pending: Vec::new() },
        expect![[r#"
        NODE       STATE    JOBS    CPU          MEMORY  SLOTS  GPU  JOBS HELD BY  TAGS        SEEN
        vm-8000-1  online      3  3.5/8  1.5 GiB/16 GiB   3/32    -  hybrid        ssd,rack-4  2s ago
        vm-8000-2  offline     0    0/8               -      -    -  -             -           -
        vm-8000-2: This node cannot isolate jobs
    "#]],
        "vm-8000-1\nvm-8000-2",
    );
    check(
        &NodeTable { nodes: Map::new(), pending: Vec::new() },
        expect![[r#"
        No nodes. Make a join token with `millpond node token create`, and start one with `millpond node --server HOST:PORT --join-token-file FILE`.
    "#]],
        "",
    );
}

/// S7.
#[test]
fn identities_of_nodes() {
    let digest = |digit: &str| digit.repeat(64);
    let pending = format!(
        r#"{{name=w-2; key_sha256="{}"; address="10.0.0.2"; creation_time="2026-01-02T03:00:00Z"}}"#,
        digest("b")
    );
    let all = format!(
        r#"{{
        identities=[{{name=w-1; key_sha256="{}"; state=valid; creation_time="2026-01-02T03:00:00Z"; valid_until="2026-04-02T03:00:00Z"}}];
        pending=[{pending}];
        tokens=[
            {{token_sha256="{}"; used=%true; used_by=w-1; replace=%false; creation_time="2026-01-02T03:00:00Z"; valid_until="2026-01-03T03:00:00Z"}};
            {{name=w-3; token_sha256="{}"; used=%false; replace=%true; creation_time="2026-01-02T03:00:00Z"; valid_until="2026-01-03T03:00:00Z"}};
        ]}}"#,
        digest("a"),
        digest("c"),
        digest("d")
    );
    let table = |only_tokens| IdentityTable { identities: map(&all), only_tokens };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let human = words(&table(false).human(&look()));
    for row in [
        format!("identity w-1 valid {} 10m 00s ago 2026-04-02T03:00:00", digest("a")),
        format!("pending w-2 waits {} 10m 00s ago - 10.0.0.2", digest("b")),
        format!("token - used by w-1 {} 10m 00s ago 2026-01-03T03:00:00", digest("c")),
        format!("token w-3 unused, replaces {}", digest("d")),
    ] {
        assert!(human.contains(&row), "no {row:?} in {human}");
    }
    assert!(!table(true).human(&look()).contains("identity"));
    assert_eq!(table(false).quiet(), "w-1");
    assert_eq!(table(true).quiet(), format!("{}\n{}", digest("c"), digest("d")));
    let waiting = NodeTable { nodes: Map::new(), pending: vec![Value::Map(map(&pending))] };
    let human = waiting.human(&look());
    let expected = format!("w-2 waits for an approval: key {}, from 10.0.0.2", digest("b"));
    assert!(human.contains(&expected) && human.contains("millpond node approve w-2"), "{human}");
}

#[test]
fn pools() {
    let forest = super::top::forest();
    check(
        &forest,
        expect![[r#"
            POOL                  WEIGHT  DEMAND  USAGE              FAIR SHARE  PROMISED  RUNNING  WAITING  IN USE
            batch                      1      5%     5%  █·········          5%  10% flow        1        1  cpu 0.8, slots 1
            prod                       1     50%    50%  █████·····         50%       50%        3        0  cpu 8, memory 16 GiB, slots 11
            ├─ web                     1     50%    50%  █████·····         50%         -        3        0  cpu 8, memory 16 GiB, slots 11
            │  └─ nightly [fifo]       1      0%     0%  ··········          0%         -        0        0  -
            └─ worker [fifo]         0.5      0%     0%  ··········          0%         -        0        0  -
            research                   2     90%    25%  ███·······         45%         -        3        1  cpu 4, memory 4 GiB, slots 8
            user [ephemeral]           1      0%     0%  ··········          0%         -        0        0  -
            all of physical            -    140%    80%  ████████··        100%         -        7        2  cpu 12.8, memory 20 GiB, slots 20
        "#]],
        "batch\nprod\nweb\nnightly\nworker\nresearch\nuser",
    );
    check(
        &PoolTable(forest),
        expect![[r#"
        POOL      PARENT  MODE                   WEIGHT  GUARANTEE             INTEGRAL  MAX RUNNING  MAX OPERATIONS
        batch     -       fair_share                  1  -                     relaxed             0               0
        prod      -       fair_share                  1  cpu 8, memory 16 GiB  -                   8              50
        web       prod    fair_share                  1  -                     -                   0               0
        nightly   web     fifo                        1  -                     -                   0               0
        worker    prod    fifo                      0.5  -                     -                   0               0
        research  -       fair_share                  2  -                     -                   8              50
        user      -       fair_share, ephemeral       1  -                     -                   0               0
    "#]],
        "batch\nprod\nweb\nnightly\nworker\nresearch\nuser",
    );
    check(
        &PoolTable(PoolForest::new("physical", Map::new())),
        expect![[r#"
        No pools in tree physical. Create one with `millpond pool create NAME`.
    "#]],
        "",
    );
}

#[test]
fn a_pool_whose_parent_is_gone_is_still_shown() {
    let forest = PoolForest::new("physical", map("{a={parent=gone}; \"<Root>\"={}}"));
    assert_eq!(forest.rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn values_of_the_tree() {
    let value = yson::parse(b"{a=1; b=[x; <k=1>y]}").expect("good");
    check(
        &Tree(value),
        expect![[r#"
        {
            "a" = 1;
            "b" = [
                "x";
                <
                    "k" = 1;
                > "y";
            ];
        }
    "#]],
        r#"{"a"=1;"b"=["x";<"k"=1;>"y";];}"#,
    );
    check(
        &Tree("text".into()),
        expect![[r#"
        "text"
    "#]],
        "text",
    );
    check(
        &Scalar(true.into()),
        expect![[r#"
        true
    "#]],
        "true",
    );
    let names = || -> Vec<Value> {
        let list = yson::parse(
            b"[<type=map_node;modification_time=\"2026-01-02T03:04:05Z\">a; <type=file;uncompressed_data_size=2048>b;
               <type=link;target_path=\"//x\">c; d]",
        );
        list.expect("good").as_list().expect("a list").to_vec()
    };
    check(
        &Names { names: names(), columns: Vec::new(), long: false },
        expect![[r#"
        a
        b
        c
        d
    "#]],
        "a\nb\nc\nd",
    );
    check(
        &Names { names: names(), columns: Vec::new(), long: true },
        expect![[r#"
        TYPE       SIZE  CHANGED     NAME
        map_node      -  5m 55s ago  a
        file      2 KiB  -           b
        link          -  -           c -> //x
        -             -  -           d
    "#]],
        "a\nb\nc\nd",
    );
    check(
        &Names { names: names(), columns: vec!["type".into()], long: false },
        expect![[r#"
        a  type=map_node
        b  type=file
        c  type=link
        d  type=-
    "#]],
        "a\nb\nc\nd",
    );
    check(
        &Done { verb: "removed", names: vec!["a".into(), "b".into()] },
        expect![[r#"
        a removed
        b removed
    "#]],
        "",
    );
}

#[test]
fn json_is_what_the_server_said() {
    let table = OperationTable { reply: map(OPERATIONS) };
    let text = json_text(&table.json());
    assert!(text.contains(r#""title": "train\nmodel""#), "{text}");
    assert_eq!(table.json().as_list().map(<[Value]>::len), Some(3));
}

#[test]
fn logs_for_programs() {
    let logs = Logs(vec![LogsOfJob {
        job: map("{id=\"1-2-384-4\"; task_name=t; job_cookie=1; state=failed}"),
        stderr: b"no\n".to_vec(),
    }]);
    expect![[r#"
        [
            {
                "job_id": "1-2-384-4",
                "task_name": "t",
                "job_cookie": 1,
                "state": "failed",
                "stderr": "no\n"
            }
        ]"#]]
    .assert_eq(&json_text(&logs.json()));
}

/// One line for each event, whatever stands in its messages.
#[test]
fn events() {
    let line = |text: &str| cli::views::event_line(&map(text));
    expect![["      12  2026-11-21T22:50:04  job_aborted            1-2-10384-4 of 1-2-103e8-4 task work pool p on n1 reason preemption for operation 5-6-103e8-8: Preempted  by  somebody"]]
        .assert_eq(&line(
            "{number=12u;event=job_aborted;time=\"2026-11-21T22:50:04.123456Z\";job_id=\"1-2-10384-4\";\
             operation_id=\"1-2-103e8-4\";task_name=work;pool=p;node_address=n1;reason=preemption;\
             preempted_for={operation_id=\"5-6-103e8-8\"};error={message=\"Preempted\\n\\x1bby\\x07\\x08somebody\"}}",
        ));
    expect![["       1  2026-11-21T22:50:04  operation_materialized 1-2-103e8-4"]].assert_eq(&line(
        "{number=1u;event=operation_materialized;time=\"2026-11-21T22:50:04.123456Z\";operation_id=\"1-2-103e8-4\"}",
    ));
}

#[test]
fn changes_on_a_line() {
    let line = |text: &str| {
        cli::views::audit_line(&map(&format!(
            "{{number=7u;event=audit;time=\"2026-11-21T22:50:04.1Z\";user=ann;{text}}}"
        )))
    };
    let found = [
        line("action=set;path=\"//sys/pool_trees/physical/p/@weight\";before=2.0;after=3.0"),
        line("action=set;path=\"//tmp/@x\";after={a=\"b\\n\"}"),
        line("action=add_member;group=team;member=bob"),
        line("action=create;type=user;attributes={name=bob}"),
        line(&format!("action=set;path=\"//tmp/@x\";before=1;after=\"{}\"", "x".repeat(500))),
    ];
    expect![[r#"
        7  2026-11-21T22:50:04  ann          set //sys/pool_trees/physical/p/@weight: 2. -> 3.
        7  2026-11-21T22:50:04  ann          set //tmp/@x: nothing -> {"a"="b\n";}
        7  2026-11-21T22:50:04  ann          add_member group=team member=bob
        7  2026-11-21T22:50:04  ann          create type=user attributes={"name"="bob";}
        7  2026-11-21T22:50:04  ann          set //tmp/@x: 1 -> "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."#]].assert_eq(&found.map(|line| line.trim_start().to_owned()).join("\n"));
}

#[test]
fn variants_beside_their_base() {
    use sim::effects::{OperationEffect, OperationFate, PoolEffect, PoolFate};
    use sim::what_if::{Row, SideBySide};
    let fate = |state: &str, wait_ms, lasts_ms, preempted| {
        let (state, ends_ms) = (state.to_owned(), lasts_ms);
        Some(OperationFate { state, wait_ms, lasts_ms, ends_ms, preempted, starving_ms: 0 })
    };
    let cores = |usage_cpu, starving| Some(PoolFate { usage_cpu, starving });
    let found = SideBySide {
        names: vec!["base".to_owned(), "more".to_owned()],
        rows: vec![Row {
            metric: "cluster.cores".to_owned(),
            values: vec![Some(8.0), Some(32.0)],
            intervals: vec![None, None],
        }],
        pools: vec![PoolEffect {
            tree: "physical".to_owned(),
            pool: "prod".to_owned(),
            runs: vec![cores(1.5, 0.25), cores(4.0, 0.0)],
        }],
        operations: vec![
            OperationEffect {
                id: "1-2-103e8-4".to_owned(),
                runs: vec![
                    fate("running", Some(90_000), None, 3),
                    fate("completed", Some(0), Some(7_500), 0),
                ],
            },
            OperationEffect {
                id: "new".to_owned(),
                runs: vec![None, fate("completed", Some(0), Some(1), 0)],
            },
        ],
        interrupted: false,
    };
    check(
        &VariantTable(found.clone()),
        expect![[r#"
        POOL  RUN   CORES  BASE  STARVING  BASE
        prod  more   4.00  1.50        0%   25%

        OPERATION    RUN   STATE      STARTS    BASE  ENDS  BASE  PREEMPTED  BASE
        1-2-103e8-4  more  completed     0ms  1m 30s    7s     -          0     3
        new          more  completed     0ms       -   1ms     -          0     -

        METRIC         RUN    VALUE   BASE
        cluster.cores  more  32.000  8.000
    "#]],
        "cluster.cores\n",
    );
    // Nothing beside it: what is expected is shown as it is.
    let alone = SideBySide {
        names: found.names[..1].to_vec(),
        rows: Vec::new(),
        pools: Vec::new(),
        operations: vec![OperationEffect {
            id: "x".to_owned(),
            runs: vec![fate("completed", Some(0), Some(1), 0)],
        }],
        interrupted: false,
    };
    check(
        &VariantTable(alone),
        expect![[r#"
        OPERATION  RUN   STATE      STARTS  BASE  ENDS  BASE  PREEMPTED  BASE
        x          base  completed     0ms   0ms   1ms   1ms          0     0
    "#]],
        "",
    );
    let same = SideBySide { rows: Vec::new(), pools: Vec::new(), operations: Vec::new(), ..found };
    check(
        &VariantTable(same),
        expect![[r#"
        Nothing changes.
    "#]],
        "",
    );
}
