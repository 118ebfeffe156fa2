//! Pool trees and expectations as short text.
//!
//! ```text
//! total slots:100,cpu:100,memory:1000M        (this is the default)
//! options strict gang improved gap reorder distribute infer=10 main=gpu
//! pool A strong=cpu:30 weight=2 limits=cpu:50
//!   op a1 demand=all usage=10%
//!   gang a2 demand=slots:5,cpu:5 start=7
//! fifo B burst flow=cpu:10 burst=cpu:50 volume=60
//! ```
//!
//! Two spaces a level. `all` and percents are of the total. `volume` is in cluster-seconds.

// Each user of the fixture uses a part of it.
#![allow(dead_code)]

use fairshare::{
    Configured, Cycle, Element, ElementOutput, GuaranteeType, Input, IntegralState, Kind, Mode, Operation,
    Output, Pool, TreeOptions,
};
use vocab::{Cpu, RESOURCES, Resource, Resources, Share, Span, Time, Volume};

/// A tree with names.
#[derive(Clone)]
pub struct Fixture {
    pub input: Input,
    pub state: Vec<IntegralState>,
    pub ids: Vec<String>,
}

impl Fixture {
    pub fn parse(text: &str) -> Fixture {
        let mut fixture = Fixture {
            input: Input {
                total: amounts("slots:100,cpu:100,memory:1000M", &Resources::ZERO),
                options: TreeOptions::default(),
                elements: vec![element(0, Kind::Pool(Box::default()))],
            },
            state: vec![IntegralState::default()],
            ids: vec!["root".to_owned()],
        };
        // Last element seen on each level; the root is above all of them.
        let mut path = vec![0];
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let indent = line.len() - line.trim_start().len();
            let mut words = line.split_whitespace();
            match words.next().expect("a word") {
                "total" => fixture.input.total = amounts(words.next().expect("total"), &Resources::ZERO),
                "options" => words.for_each(|word| fixture.option(word)),
                kind => {
                    path.truncate(indent / 2 + 1);
                    let parent = *path.last().expect("a parent");
                    path.push(fixture.ids.len());
                    fixture.add(parent, kind, words);
                }
            }
        }
        fixture
    }

    fn option(&mut self, word: &str) {
        let options = &mut self.input.options;
        match word.split_once('=').unwrap_or((word, "")) {
            ("strict", _) => options.compat_strict = true,
            ("gang", _) => options.enable_step_function_for_gang_operations = true,
            ("improved", _) => options.enable_improved_fair_share_by_fit_factor_computation = true,
            ("gap", _) => {
                options.enable_improved_fair_share_by_fit_factor_computation_distribution_gap = true;
            }
            ("reorder", _) => options.enable_fifo_children_reordering_for_guarantee_utilization = true,
            ("distribute", _) => options.should_distribute_free_volume_among_children = true,
            ("infer", k) => options.infer_weight_from_guarantees_share_multiplier = Some(number(k)),
            ("main", r) => options.main_resource = Resource::parse(r.as_bytes()).expect("resource"),
            other => panic!("option {other:?}"),
        }
    }

    fn add<'a>(&mut self, parent: usize, kind: &str, mut words: impl Iterator<Item = &'a str>) {
        self.ids.push(words.next().expect("a name").to_owned());
        self.state.push(IntegralState::default());
        self.input.elements.push(element(
            parent,
            match kind {
                "pool" => Kind::Pool(Box::default()),
                "fifo" => Kind::Pool(Box::new(Pool { mode: Mode::Fifo, ..Pool::default() })),
                "op" => Kind::Operation(Operation::default()),
                "gang" => Kind::Operation(Operation { gang: true, ..Operation::default() }),
                other => panic!("kind {other}"),
            },
        ));
        let index = self.ids.len() - 1;
        words.for_each(|word| self.attribute(index, word));
    }

    fn attribute(&mut self, index: usize, word: &str) {
        let total = self.input.total;
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "weight" => self.input.elements[index].weight = Some(number(value)),
            "historic" => self.input.elements[index].historic_usage = Some(number(value)),
            "limits" => {
                let configured = configured(value, &total);
                self.input.elements[index].resource_limits =
                    Resources::from_raw(|r| configured.raw(r).unwrap_or(Resources::INFINITE.raw(r)));
            }
            "volume" => {
                for r in RESOURCES {
                    self.state[index].accumulated_volume.set(r, total.get(r) * number(value));
                }
            }
            "last" => self.state[index].last_share = number(value),
            _ => match &mut self.input.elements[index].kind {
                Kind::Pool(pool) => pool_attribute(pool, name, value, &total),
                Kind::Operation(operation) => operation_attribute(operation, name, value, &total),
            },
        }
    }

    pub fn index(&self, id: &str) -> usize {
        self.ids.iter().position(|x| x == id).unwrap_or_else(|| panic!("no element {id}"))
    }

    /// Replaces attributes of an element, as in the text.
    pub fn change(&mut self, id: &str, attributes: &str) {
        let index = self.index(id);
        attributes.split_whitespace().for_each(|word| self.attribute(index, word));
    }

    /// A periodic update after a time; none: the first one.
    pub fn update(&mut self, since_previous: Option<Span>) -> Output {
        let cycle = Cycle::Periodic { since_previous };
        fairshare::update(&self.input, &mut self.state, cycle).expect("a valid tree")
    }

    /// Fails unless the output is as the text says.
    pub fn expect(&self, output: &Output, expected: &str) {
        for line in expected.lines().filter(|line| !line.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let id = words.next().expect("a name");
            for word in words {
                self.expect_one(id, &output.elements[self.index(id)], word);
            }
        }
    }

    /// `fair=0.5`: the same in every resource that there is; `fair=0.5/0.4/0.3`: slots, cpu, memory;
    /// `fair==...`: exactly.
    fn expect_one(&self, id: &str, got: &ElementOutput, word: &str) {
        let (field, value) = word.split_once('=').expect("field=value");
        let (value, tolerance) = value.strip_prefix('=').map_or((value, 1e-8), |exact| (exact, 0.0));
        if let Some(got) = scalar_field(got, field) {
            assert!((got - number(value)).abs() <= tolerance, "{id} {field}: {got}, expected {value}");
            return;
        }
        let got = share_field(got, field);
        let parts: Vec<f64> = value.split('/').map(number).collect();
        let want = match parts[..] {
            [x] => Share::from_fn(|r| if self.input.total.raw(r) > 0 { x } else { 0.0 }),
            [slots, cpu, memory] => Share([slots, cpu, 0.0, memory, 0.0]),
            [slots, cpu, gpu, memory, network] => Share([slots, cpu, gpu, memory, network]),
            _ => panic!("{word}: one, three or five numbers"),
        };
        let close = RESOURCES.into_iter().all(|r| (got[r] - want[r]).abs() <= tolerance);
        assert!(close, "{id} {field}: {:?}, expected {:?}", got.0, want.0);
    }
}

fn scalar_field(got: &ElementOutput, field: &str) -> Option<f64> {
    let integral = got.integral.unwrap_or_default();
    Some(match field {
        "w" => got.weight,
        "burst_ratio" => got.burst_ratio,
        "ratio_volume" => integral.accumulated_ratio_volume,
        "cpu_volume" => integral.accumulated_volume.cpu.as_f64(),
        "ratio_capacity" => integral.ratio_capacity,
        "last_share" => integral.last_share,
        "fifo" => got.fifo_index.map_or(-1.0, |i| i as f64),
        "effective" => got.effective_fifo_index.map_or(-1.0, |i| i as f64),
        _ => return None,
    })
}

fn share_field(got: &ElementOutput, field: &str) -> Share {
    match field {
        "fair" => got.fair_share.total,
        "strong" => got.fair_share.strong_guarantee,
        "integral" => got.fair_share.integral_guarantee,
        "by_weight" => got.fair_share.weight_proportional,
        "promised" => got.promised_guarantee_fair_share.total,
        "guarantee" => got.strong_guarantee_share,
        "proposed" => got.proposed_integral_share,
        "limits" => got.limits_share,
        "limited" => got.limited_demand_share,
        "promised_share" => got.promised_fair_share,
        "estimated" => got.estimated_guarantee_share,
        "estimated_with_flow" => got.estimated_guarantee_share_with_flow,
        other => panic!("field {other}"),
    }
}

fn element(parent: usize, kind: Kind) -> Element {
    Element { parent, weight: None, historic_usage: None, resource_limits: Resources::INFINITE, kind }
}

fn pool_attribute(pool: &mut Pool, name: &str, value: &str, total: &Resources) {
    let integral = &mut pool.integral_guarantees;
    match (name, value) {
        ("relaxed", "") => integral.guarantee_type = GuaranteeType::Relaxed,
        ("burst", "") => integral.guarantee_type = GuaranteeType::Burst,
        ("burst", value) => integral.burst_guarantee_resources = amounts(value, total),
        ("flow", value) => integral.resource_flow = amounts(value, total),
        ("multiplier", value) => integral.relaxed_share_multiplier_limit = Some(number(value)),
        ("refuses", "") => integral.can_accept_free_volume = false,
        ("distribute", "") => integral.should_distribute_free_volume_among_children = Some(true),
        ("strong", value) => pool.strong_guarantee_resources = configured(value, total),
        ("promised", "") => pool.compute_promised_guarantee_fair_share = true,
        ("priority", "") => pool.enable_priority_strong_guarantee_adjustment = true,
        ("donor", "") => pool.enable_priority_strong_guarantee_adjustment_donorship = true,
        ("reorder", "") => pool.enable_fifo_children_reordering_for_guarantee_utilization = true,
        ("no_step", "") => pool.enable_step_function_for_gang_operations = false,
        other => panic!("pool attribute {other:?}"),
    }
}

fn operation_attribute(operation: &mut Operation, name: &str, value: &str, total: &Resources) {
    match name {
        "demand" => operation.demand = amounts(value, total),
        "usage" => operation.usage = amounts(value, total),
        "start" => operation.start_time = Time::from_secs(value.parse().expect("start")),
        "pending" => operation.pending_allocation_count = value.parse().expect("pending"),
        "tie" => operation.tie = value.parse().expect("tie"),
        other => panic!("operation attribute {other}"),
    }
}

fn amounts(text: &str, total: &Resources) -> Resources {
    configured(text, total).or_zero()
}

fn configured(text: &str, total: &Resources) -> Configured {
    let percent = text.strip_suffix('%').map(number).or((text == "all").then_some(100.0));
    if let Some(percent) = percent {
        let part = *total * (percent / 100.0);
        return Configured(RESOURCES.map(|r| Some(part.raw(r))));
    }
    text.split(',').filter(|part| !part.is_empty()).fold(Configured::NONE, |all, part| {
        let (name, value) = part.split_once(':').expect("resource:amount");
        let name = if name == "slots" { "user_slots" } else { name };
        let r = Resource::parse(name.as_bytes()).unwrap_or_else(|| panic!("resource {name}"));
        all.with_raw(r, raw(r, value))
    })
}

fn raw(r: Resource, value: &str) -> i64 {
    if r == Resource::Cpu {
        return Cpu::from_f64(number(value)).0;
    }
    let (digits, unit) = match value.strip_suffix('M') {
        Some(digits) => (digits, 1 << 20),
        None => value.strip_suffix('G').map_or((value, 1), |digits| (digits, 1 << 30)),
    };
    digits.parse::<i64>().expect("a whole number") * unit
}

fn number(text: &str) -> f64 {
    match text.split_once(':') {
        // A fraction.
        Some((a, b)) => number(a) / number(b),
        None => text.parse().unwrap_or_else(|_| panic!("number {text:?}")),
    }
}

/// A volume with the same number of cluster-seconds in every resource.
pub fn cluster_seconds(total: &Resources, seconds: f64) -> Volume {
    let mut volume = Volume::default();
    for r in RESOURCES {
        volume.set(r, total.get(r) * seconds);
    }
    volume
}
