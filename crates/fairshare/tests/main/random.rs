//! Random pool trees for properties: with jumps, plateaus, equal round numbers, resources that the tree
//! does not have, limits below guarantees, and overcommitment.

// Each user of the generator uses a part of it.
#![allow(dead_code)]

use fairshare::{
    Configured, Element, GuaranteeType, Input, IntegralState, Kind, Mode, Operation, Pool, TreeOptions,
};
use vocab::{Cpu, RESOURCES, Resource, Resources, Share, Span, Time};

/// How many trees a property looks at; properties that take longer look at a part of them.
///
/// `make nightly` asks for a million.
#[allow(clippy::disallowed_methods)] // A long run is asked for from outside.
pub fn tree_count() -> u64 {
    std::env::var("MILLPOND_TREES").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

/// SplitMix64: enough randomness for tests, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// Less than `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    /// A fraction, often a round one.
    fn fraction(&mut self) -> f64 {
        if self.chance(0.5) {
            [0.0, 0.05, 0.1, 0.2, 0.25, 0.5, 0.75, 1.0][self.below(8) as usize]
        } else {
            self.unit()
        }
    }
}

/// What the trees of a property are like.
#[derive(Clone, Copy, Default)]
pub struct Kinds {
    pub integral: bool,
    pub improved: bool,
    pub gangs: bool,
}

/// One tree by its seed. Kinds that are not excluded appear now and then.
pub fn tree(seed: u64, kinds: Kinds) -> (Input, Vec<IntegralState>) {
    let mut random = Random(seed.wrapping_mul(0x5851_F42D_4C95_7F2D));
    let mut growth = Growth {
        total: total(&mut random),
        input: Vec::new(),
        kinds,
        integral: kinds.integral && random.chance(0.7),
        round: random.chance(0.3),
    };
    let options = TreeOptions {
        main_resource: if random.chance(0.8) { Resource::Cpu } else { RESOURCES[random.below(5) as usize] },
        should_distribute_free_volume_among_children: random.chance(0.5),
        infer_weight_from_guarantees_share_multiplier: random.chance(0.1).then_some(10.0),
        enable_step_function_for_gang_operations: kinds.gangs && random.chance(0.8),
        enable_improved_fair_share_by_fit_factor_computation: kinds.improved && random.chance(0.5),
        enable_improved_fair_share_by_fit_factor_computation_distribution_gap: random.chance(0.5),
        enable_fifo_children_reordering_for_guarantee_utilization: random.chance(0.3),
        compat_strict: random.chance(0.5),
        ..TreeOptions::default()
    };
    growth.input.push(element(0, Kind::Pool(Box::default())));
    let pools = 1 + random.below(4);
    for _ in 0..pools {
        growth.pool(&mut random, 0, 1, false);
    }
    if random.chance(0.3) {
        growth.operation(&mut random, 0);
    }
    let state = growth.input.iter().map(|e| state(&mut random, e, &growth.total)).collect();
    (Input { total: growth.total, options, elements: growth.input }, state)
}

fn total(random: &mut Random) -> Resources {
    let mut total = Resources { user_slots: 1000, cpu: Cpu(100_000), gpu: 64, memory: 1 << 40, network: 200 };
    if random.chance(0.5) {
        total = Resources::from_raw(|r| (total.raw(r) as f64 * (0.3 + 3.0 * random.unit())) as i64);
    }
    for r in [Resource::Gpu, Resource::Network] {
        if random.chance(0.5) {
            total.set_raw(r, 0);
        }
    }
    total
}

fn element(parent: usize, kind: Kind) -> Element {
    Element { parent, weight: None, historic_usage: None, resource_limits: Resources::INFINITE, kind }
}

fn state(random: &mut Random, element: &Element, total: &Resources) -> IntegralState {
    let mut state = IntegralState::default();
    if let Kind::Pool(pool) = &element.kind
        && pool.integral_guarantees.guarantee_type != GuaranteeType::None
    {
        let seconds = if random.chance(0.3) { 0.0 } else { 200.0 * random.unit() };
        for r in RESOURCES {
            state.accumulated_volume.set(r, total.get(r) * seconds);
        }
        state.last_share = random.fraction() * 0.5;
    }
    state
}

struct Growth {
    total: Resources,
    input: Vec<Element>,
    kinds: Kinds,
    integral: bool,
    /// The same demand in proportion for everybody, which makes many ties.
    round: bool,
}

impl Growth {
    fn pool(&mut self, random: &mut Random, parent: usize, depth: u64, inside_integral: bool) {
        let index = self.input.len();
        let fifo = random.chance(0.25);
        let integral = self.integral && !inside_integral && random.chance(0.4);
        let mut pool = Pool {
            mode: if fifo { Mode::Fifo } else { Mode::FairShare },
            compute_promised_guarantee_fair_share: random.chance(0.2),
            enable_priority_strong_guarantee_adjustment: random.chance(0.15),
            enable_priority_strong_guarantee_adjustment_donorship: random.chance(0.15),
            enable_step_function_for_gang_operations: random.chance(0.9),
            enable_fifo_children_reordering_for_guarantee_utilization: random.chance(0.4),
            ..Pool::default()
        };
        if random.chance(0.5) {
            pool.strong_guarantee_resources = self.guarantee(random, depth);
        }
        if integral {
            let guarantees = &mut pool.integral_guarantees;
            guarantees.resource_flow = self.total * (0.3 * random.fraction());
            if random.chance(0.5) {
                guarantees.guarantee_type = GuaranteeType::Burst;
                guarantees.burst_guarantee_resources = self.total * (0.6 * random.fraction());
            } else {
                guarantees.guarantee_type = GuaranteeType::Relaxed;
                guarantees.relaxed_share_multiplier_limit = random.chance(0.3).then_some(5.0);
            }
            guarantees.can_accept_free_volume = random.chance(0.8);
        }
        self.input.push(element(parent, Kind::Pool(Box::new(pool))));
        self.dress(random, index, 0.3);
        if !fifo && depth < 4 && random.chance(0.4) {
            for _ in 0..1 + random.below(3) {
                self.pool(random, index, depth + 1, inside_integral || integral);
            }
        } else if random.chance(0.95) {
            for _ in 0..random.below(6) {
                self.operation(random, index);
            }
        }
    }

    fn guarantee(&self, random: &mut Random, depth: u64) -> Configured {
        let part = random.fraction() * 0.8 / depth as f64;
        let mut configured =
            Configured::NONE.with_raw(Resource::Cpu, (self.total.raw(Resource::Cpu) as f64 * part) as i64);
        for r in RESOURCES {
            if random.chance(0.2) {
                configured = configured
                    .with_raw(r, (self.total.raw(r) as f64 * random.fraction() / depth as f64) as i64);
            }
        }
        configured
    }

    fn operation(&mut self, random: &mut Random, parent: usize) {
        let index = self.input.len();
        let size = if self.round {
            0.25 * (1 + random.below(4)) as f64
        } else {
            3.0 * random.unit() * random.unit()
        };
        let skew =
            |random: &mut Random, round| if round || random.chance(0.3) { 1.0 } else { random.fraction() };
        let (total, round) = (self.total, self.round);
        let demand = Resources::from_raw(|r| (total.raw(r) as f64 * size * skew(random, round)) as i64);
        let usage = match random.below(4) {
            0 => demand,
            1 => Resources::from_raw(|r| (demand.raw(r) as f64 * random.fraction()) as i64),
            _ => Resources::ZERO,
        };
        let operation = Operation {
            usage: usage.min(demand),
            demand: if random.chance(0.1) { usage } else { demand },
            start_time: Time::from_secs(random.below(5)),
            pending_allocation_count: random.below(3) as i64,
            gang: self.kinds.gangs && random.chance(0.3),
            best_allocation_share: if random.chance(0.1) {
                Share::from_fn(|_| random.fraction())
            } else {
                Share::ONES
            },
            tie: u128::from(random.next()),
        };
        self.input.push(element(parent, Kind::Operation(operation)));
        self.dress(random, index, 0.1);
    }

    /// Weight and limits.
    fn dress(&mut self, random: &mut Random, index: usize, limited: f64) {
        if random.chance(0.5) {
            self.input[index].weight = Some(match random.below(3) {
                0 => 1.0 + random.below(4) as f64,
                1 => 0.1 + 10.0 * random.unit(),
                _ => (random.unit() * 10.0 - 5.0).exp2(),
            });
        }
        if random.chance(limited) {
            let total = self.total;
            self.input[index].resource_limits = Resources::from_raw(|r| {
                if random.chance(0.4) {
                    (total.raw(r) as f64 * random.fraction()) as i64
                } else {
                    Resources::INFINITE.raw(r)
                }
            });
        }
    }
}

/// Time of a step.
pub fn some_time(random: &mut Random) -> Span {
    Span::from_millis([200, 1_000, 60_000, 3_600_000][random.below(4) as usize])
}
