//! Reader of the conformance corpus: one pool tree a line, with settings and a sequence of updates.

use std::collections::BTreeMap;

use fairshare::{
    Configured, Element, GuaranteeType, Input, IntegralGuarantees, IntegralState, Kind, Mode, Operation,
    Pool, TreeOptions,
};
use serde_json::Value;
use vocab::{Cpu, RESOURCES, Resource, Resources, Share, Span, Time, Volume};

/// One line.
pub struct Case {
    pub name: String,
    pub quirks: Vec<String>,
    pub input: Input,
    pub state: Vec<IntegralState>,
    /// By element; `<root>` is the first.
    pub ids: Vec<String>,
    index: BTreeMap<String, usize>,
    pub steps: Vec<Value>,
}

impl Case {
    pub fn parse(line: &str) -> Case {
        let case: Value = serde_json::from_str(line).expect("a line is a JSON object");
        let mut input = Input {
            total: resources(&case["total_resource_limits"]),
            options: options(&case["options"]),
            elements: vec![Element {
                parent: 0,
                weight: None,
                historic_usage: None,
                resource_limits: Resources::INFINITE,
                kind: Kind::Pool(Box::new(pool(&case["root"]))),
            }],
        };
        let mut state = vec![IntegralState::default()];
        let mut ids = vec!["<root>".to_owned()];
        let mut index = BTreeMap::from([("<root>".to_owned(), 0)]);
        for e in list(&case["elements"]) {
            let id = e["id"].as_str().expect("id").to_owned();
            index.insert(id.clone(), input.elements.len());
            input.elements.push(Element {
                parent: index[e["parent"].as_str().expect("parent")],
                weight: Some(e["weight"].as_f64().unwrap_or(1.0)),
                historic_usage: None,
                resource_limits: limits(&e["resource_limits"]),
                kind: match e["type"].as_str() {
                    Some("pool") => Kind::Pool(Box::new(pool(e))),
                    Some("operation") => Kind::Operation(operation(e)),
                    other => panic!("type {other:?}"),
                },
            });
            state.push(IntegralState {
                accumulated_volume: volume(&e["accumulated_resource_volume"]),
                last_share: e["last_integral_share_ratio"].as_f64().unwrap_or(0.0),
            });
            ids.push(id);
        }
        Case {
            name: case["name"].as_str().unwrap_or_default().to_owned(),
            quirks: list(&case["quirks"]).iter().filter_map(|q| q.as_str()).map(str::to_owned).collect(),
            input,
            state,
            ids,
            index,
            steps: list(&case["steps"]).to_vec(),
        }
    }

    /// Brings the input to a step and says how much time has passed.
    pub fn enter(&mut self, step: usize) -> Option<Span> {
        let step = &self.steps[step];
        if step["total_resource_limits"].is_object() {
            self.input.total = resources(&step["total_resource_limits"]);
        }
        for (id, change) in step["changes"].as_object().into_iter().flatten() {
            match &mut self.input.elements[self.index[id]].kind {
                Kind::Operation(operation) => {
                    operation.demand = resources(&change["resource_demand"]);
                    operation.usage = resources(&change["resource_usage"]);
                }
                Kind::Pool(_) => panic!("{id} is not an operation"),
            }
        }
        step["time_since_previous_update"].as_f64().map(|s| Span::from_micros((s * 1e6).round() as u64))
    }
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn flag(value: &Value, name: &str, default: bool) -> bool {
    value[name].as_bool().unwrap_or(default)
}

fn seconds(value: &Value, default: u64) -> Span {
    value.as_f64().map_or(Span::from_secs(default), |s| Span::from_micros((s * 1e6).round() as u64))
}

fn raw(value: &Value, r: Resource) -> Option<i64> {
    let value = value.get(r.as_str())?;
    Some(match r {
        Resource::Cpu => Cpu::from_f64(value.as_f64().expect("cpu")).0,
        _ => value.as_i64().unwrap_or_else(|| value.as_f64().expect("amount") as i64),
    })
}

fn resources(value: &Value) -> Resources {
    Resources::from_raw(|r| raw(value, r).unwrap_or(0))
}

fn limits(value: &Value) -> Resources {
    Resources::from_raw(|r| raw(value, r).unwrap_or(Resources::INFINITE.raw(r)))
}

fn volume(value: &Value) -> Volume {
    let mut volume = Volume::default();
    for r in RESOURCES {
        volume.set(r, value.get(r.as_str()).and_then(Value::as_f64).unwrap_or(0.0));
    }
    volume
}

pub fn share(value: &Value) -> Share {
    let components = list(value);
    Share::from_fn(|r| components.get(r as usize).and_then(Value::as_f64).unwrap_or(0.0))
}

fn options(o: &Value) -> TreeOptions {
    let main = o["main_resource"].as_str().unwrap_or("cpu");
    TreeOptions {
        main_resource: Resource::parse(main.as_bytes()).expect("main resource"),
        smooth_period: seconds(&o["smooth_period"], 60),
        pool_capacity_saturation_period: seconds(&o["pool_capacity_saturation_period"], 86_400),
        enable_step_function_for_gang_operations: flag(o, "enable_step_function_for_gang_operations", false),
        enable_improved_fair_share_by_fit_factor_computation: flag(
            o,
            "enable_improved_fair_share_by_fit_factor_computation",
            false,
        ),
        enable_improved_fair_share_by_fit_factor_computation_distribution_gap: flag(
            o,
            "enable_improved_fair_share_by_fit_factor_computation_distribution_gap",
            false,
        ),
        enable_fifo_children_reordering_for_guarantee_utilization: flag(
            o,
            "enable_fifo_children_reordering_for_guarantee_utilization",
            false,
        ),
        compat_strict: true,
        ..TreeOptions::default()
    }
}

fn pool(p: &Value) -> Pool {
    let integral = &p["integral_guarantees"];
    Pool {
        mode: match p["mode"].as_str() {
            None | Some("fair_share") => Mode::FairShare,
            Some("fifo") => Mode::Fifo,
            Some(other) => panic!("mode {other}"),
        },
        strong_guarantee_resources: Configured(RESOURCES.map(|r| raw(&p["strong_guarantee_resources"], r))),
        integral_guarantees: IntegralGuarantees {
            guarantee_type: match integral["guarantee_type"].as_str() {
                None | Some("none") => GuaranteeType::None,
                Some("burst") => GuaranteeType::Burst,
                Some("relaxed") => GuaranteeType::Relaxed,
                Some(other) => panic!("guarantee type {other}"),
            },
            resource_flow: resources(&integral["resource_flow"]),
            burst_guarantee_resources: resources(&integral["burst_guarantee_resources"]),
            relaxed_share_multiplier_limit: integral["relaxed_share_multiplier_limit"].as_f64(),
            can_accept_free_volume: flag(integral, "can_accept_free_volume", true),
            should_distribute_free_volume_among_children:
                integral["should_distribute_free_volume_among_children"].as_bool(),
        },
        compute_promised_guarantee_fair_share: flag(p, "compute_promised_guarantee_fair_share", false),
        enable_priority_strong_guarantee_adjustment: flag(
            p,
            "enable_priority_strong_guarantee_adjustment",
            false,
        ),
        enable_priority_strong_guarantee_adjustment_donorship: flag(
            p,
            "enable_priority_strong_guarantee_adjustment_donorship",
            false,
        ),
        enable_step_function_for_gang_operations: flag(p, "enable_step_function_for_gang_operations", true),
        enable_fifo_children_reordering_for_guarantee_utilization: flag(
            p,
            "enable_fifo_children_reordering_for_guarantee_utilization",
            false,
        ),
        ..Pool::default()
    }
}

fn operation(o: &Value) -> Operation {
    Operation {
        usage: resources(&o["resource_usage"]),
        demand: resources(&o["resource_demand"]),
        start_time: Time::from_micros(o["start_time"].as_u64().expect("start time")),
        gang: flag(o, "gang", false),
        best_allocation_share: if o["best_allocation_share"].is_array() {
            share(&o["best_allocation_share"])
        } else {
            Share::ONES
        },
        ..Operation::default()
    }
}
