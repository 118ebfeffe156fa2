//! The live picture, drawn on a terminal of memory.

use cli::views::{PoolForest, TopView, draw};
use expect_test::expect;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use vocab::{Cpu, Resources, Span};
use yson::Value;

/// A forest as a server shows it.
pub fn forest() -> PoolForest {
    let pools = r#"{
        "<Root>"={operation_count=9; running_operation_count=7; max_running_operation_count=1000; usage_ratio=0.8; demand_ratio=1.4;
            fair_share_ratio=1.; min_share_ratio=1.; resource_usage={cpu=12.8; memory=21474836480; user_slots=20}};
        research={parent="<Root>"; mode=fair_share; weight=2.; usage_ratio=0.25; demand_ratio=0.9; fair_share_ratio=0.45;
            resource_usage={cpu=4.; memory=4294967296; user_slots=8}; operation_count=4; running_operation_count=3;
            starvation_status=starving; max_running_operation_count=8; max_operation_count=50; integral_guarantee_type=none};
        prod={parent="<Root>"; mode=fair_share; weight=1.; usage_ratio=0.5; demand_ratio=0.5; fair_share_ratio=0.5; min_share_ratio=0.5;
            strong_guarantee_resources={cpu=8.; memory=17179869184}; resource_usage={cpu=8.; memory=17179869184; user_slots=11};
            operation_count=3; running_operation_count=3; max_running_operation_count=8; max_operation_count=50};
        web={parent=prod; mode=fair_share; weight=1.; usage_ratio=0.5; demand_ratio=0.5; fair_share_ratio=0.5; operation_count=3; running_operation_count=3;
            resource_usage={cpu=8.; memory=17179869184; user_slots=11}};
        worker={parent=prod; mode=fifo; weight=0.5; fair_share_ratio=0.};
        nightly={parent=web; mode=fifo; weight=1.};
        batch={parent="<Root>"; mode=fair_share; weight=1.; usage_ratio=0.05; demand_ratio=0.05; fair_share_ratio=0.05;
            integral_guarantee_type=relaxed; specified_resource_flow_ratio=0.1; resource_usage={cpu=0.8; user_slots=1};
            operation_count=2; running_operation_count=1};
        user={parent="<Root>"; mode=fair_share; is_ephemeral=%true; weight=1.};
    }"#;
    match yson::parse(pools.as_bytes()).expect("good YSON") {
        Value::Map(pools) => PoolForest::new("physical", pools),
        other => panic!("not a map: {other:?}"),
    }
}

fn picture(view: &TopView, width: u16, height: u16, scroll: usize) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal of memory");
    terminal.draw(|frame| draw(frame, view, scroll, false)).expect("drawn");
    let buffer = terminal.backend().buffer().clone();
    let lines = buffer.content().chunks(usize::from(width)).map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn view() -> TopView {
    TopView {
        address: "http://127.0.0.1:8000".into(),
        forest: forest(),
        limits: Resources { cpu: Cpu(1600), memory: 32 << 30, user_slots: 64, ..Resources::ZERO },
        nodes: 2,
        stale: None,
    }
}

#[test]
fn a_picture() {
    expect![[r#"
        http://127.0.0.1:8000  tree physical  2 nodes, 7 operations running, 2 waiting
        cpu 12.8/16 (80%)  memory 20 GiB/32 GiB (62.5%)  user_slots 20/64 (31.2%)
        POOL                 WEIGHT DEMAND USAGE FAIR PROMISED                                         CPU MEMORY JOBS RUN WAIT
        batch                     1     5%    5%   5% 10% flow █▓····································· 0.8    0 B    1   1    1
        prod                      1    50%   50%  50%      50% ███████████████████▓···················   8 16 GiB   11   3    0
        ├─ web                    1    50%   50%  50%        - ███████████████████▓···················   8 16 GiB   11   3    0
        │  └─ nightly [fifo]      1     0%    0%   0%        - ·······································   0    0 B    0   0    0
        └─ worker [fifo]        0.5     0%    0%   0%        - ·······································   0    0 B    0   0    0
        research                  2    90%   25%  45%        - ██████████·······│·····················   4  4 GiB    8   3    1
        user [ephemeral]          1     0%    0%   0%        - ·······································   0    0 B    0   0    0



        q quit  arrows scroll  space pause
    "#]].assert_eq(&picture(&view(), 120, 14, 0));
}

#[test]
fn scrolled_and_stale() {
    let view = TopView { stale: Some(Span::from_secs(7)), ..view() };
    expect![[r#"
        http://127.0.0.1:8000  tree physical  2 nodes, 7 operations running, 2 waiting  no answer for 7s
        cpu 12.8/16 (80%)  memory 20 GiB/32 GiB (62.5%)  user_slots 20/64 (31.2%)
        POOL                 WEIGHT DEMAND USAGE FAIR PROMISED                                         CPU MEMORY JOBS RUN WAIT
        │  └─ nightly [fifo]      1     0%    0%   0%        - ·······································   0    0 B    0   0    0
        └─ worker [fifo]        0.5     0%    0%   0%        - ·······································   0    0 B    0   0    0
        research                  2    90%   25%  45%        - ██████████·······│·····················   4  4 GiB    8   3    1
        q quit  arrows scroll  space pause
    "#]].assert_eq(&picture(&view, 120, 7, 3));
}

#[test]
fn any_size_is_fine() {
    for (width, height) in [(1, 1), (10, 3), (40, 5), (300, 50)] {
        picture(&view(), width, height, 100);
    }
}
