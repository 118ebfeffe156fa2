//! One fair-share update of a tree of 2,000 operations in 200 pools of three levels, with strong, burst and relaxed
//! guarantees: a full update, and updates after one per cent of the operations have changed.

use crate::meter::Meter;
use crate::random::Random;
use fairshare::{
    Configured, Cycle, Element, GuaranteeType, Input, IntegralGuarantees, IntegralState, Kind, Operation,
    Pool, TreeOptions, Updater,
};
use vocab::{Cpu, Resource, Resources, Span, Time};

const CYCLE: Cycle = Cycle::Periodic { since_previous: Some(Span::from_millis(200)) };
const TOP: u64 = 10;
const POOLS: u64 = 200;
const OPERATIONS: u64 = 2_000;

fn element(parent: usize, random: &mut Random, kind: Kind) -> Element {
    let weight = Some([0.5, 1.0, 1.0, 2.0, 3.0][random.below(5) as usize]);
    Element { parent, weight, historic_usage: None, resource_limits: Resources::INFINITE, kind }
}

fn pool(random: &mut Random, n: u64) -> Pool {
    let cores = |cores: u64| Resources { cpu: Cpu(100 * cores as i64), ..Resources::ZERO };
    // Integral guarantees must not be nested.
    let guarantee_type = match n {
        0..3 => GuaranteeType::Burst,
        3..6 => GuaranteeType::Relaxed,
        _ => GuaranteeType::None,
    };
    let integral_guarantees = match guarantee_type {
        GuaranteeType::None => IntegralGuarantees::default(),
        _ => IntegralGuarantees {
            guarantee_type,
            resource_flow: cores(2 + random.below(8)),
            burst_guarantee_resources: cores(20 + random.below(40)),
            ..IntegralGuarantees::default()
        },
    };
    let strong = random.below(200) as i64 * 100;
    Pool {
        strong_guarantee_resources: match n < TOP {
            true => Configured::NONE.with_raw(Resource::Cpu, strong),
            _ => Configured::NONE,
        },
        integral_guarantees,
        ..Pool::default()
    }
}

fn operation(random: &mut Random, n: u64) -> Operation {
    let job = Resources {
        user_slots: 1,
        cpu: Cpu(100 * (1 + random.below(4) as i64)),
        memory: (1 + random.below(8) as i64) << 30,
        ..Resources::ZERO
    };
    let running = random.below(10) as i64;
    Operation {
        usage: job.times(running),
        demand: job.times(running + random.below(30) as i64),
        start_time: Time::from_secs(n),
        tie: u128::from(n),
        ..Operation::default()
    }
}

struct Tree {
    updater: Updater,
    state: Vec<IntegralState>,
    operations: Vec<usize>,
    random: Random,
}

impl Tree {
    fn new() -> Tree {
        let mut random = Random(7);
        let total = Resources {
            user_slots: 20_000,
            cpu: Cpu(1_000_000),
            memory: 40_000 << 30,
            network: 1_000,
            ..Resources::ZERO
        };
        let mut elements = vec![element(0, &mut random, Kind::Pool(Box::default()))];
        for n in 0..POOLS {
            let parent = if n < TOP { 0 } else { 1 + random.below(n.min(TOP * 5)) as usize };
            let pool = pool(&mut random, n);
            elements.push(element(parent, &mut random, Kind::Pool(Box::new(pool))));
        }
        let mut operations = Vec::new();
        for n in 0..OPERATIONS {
            let parent = 1 + random.below(POOLS) as usize;
            let operation = operation(&mut random, n);
            operations.push(elements.len());
            elements.push(element(parent, &mut random, Kind::Operation(operation)));
        }
        let state = vec![IntegralState::default(); elements.len()];
        let updater =
            Updater::new(Input { total, options: TreeOptions::default(), elements }).expect("a valid tree");
        let mut tree = Tree { updater, state, operations, random };
        tree.update();
        tree
    }

    fn update(&mut self) {
        self.updater.update(&mut self.state, CYCLE).expect("a valid tree");
    }

    /// One job more or less for one operation in a hundred.
    fn change(&mut self) {
        for _ in 0..self.operations.len() / 100 {
            let e = self.operations[self.random.below(self.operations.len() as u64) as usize];
            let more = self.random.below(2) == 0;
            let operation = self.updater.operation_mut(e).expect("an operation");
            let jobs = operation.demand.user_slots.max(1);
            let job = Resources::from_raw(|r| operation.demand.raw(r) / jobs);
            let can_shrink = operation.demand.dominates(&(operation.usage + job));
            operation.demand =
                if more || !can_shrink { operation.demand + job } else { operation.demand - job };
        }
    }
}

pub fn full(meter: &mut Meter) {
    let mut tree = Tree::new();
    for _ in 0..3 {
        tree.updater.forget();
        meter.measure(|| tree.update());
    }
}

pub fn incremental(meter: &mut Meter) {
    let mut tree = Tree::new();
    for _ in 0..20 {
        tree.change();
        meter.measure(|| tree.update());
    }
}
