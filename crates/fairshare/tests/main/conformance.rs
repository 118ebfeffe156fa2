//! Answers of the reference, within the tolerances of the corpus.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fairshare::{Cycle, ElementOutput, Kind, Problem};
use serde_json::Value;
use vocab::{RESOURCES, Resource, Share, Volume};

use crate::case::{Case, list, share};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/fair_share");

#[test]
fn strong_and_weight() {
    conforms("strong_and_weight.jsonl", 115, Rules::Strict);
}

#[test]
fn integral_single() {
    conforms("integral_single.jsonl", 55, Rules::Strict);
}

#[test]
fn integral_sequence() {
    conforms("integral_sequence.jsonl", 25, Rules::Strict);
}

#[test]
fn improved() {
    conforms("improved.jsonl", 105, Rules::Strict);
}

#[test]
fn fifo_reordering() {
    conforms("fifo_reordering.jsonl", 13, Rules::Strict);
}

/// Millpond's own decisions change nothing but the cases that say so. (The cases of FIFO reordering do not
/// say so and are left out.)
#[test]
fn own_decisions() {
    conforms("strong_and_weight.jsonl", 115, Rules::Own);
    conforms("integral_single.jsonl", 47, Rules::Own);
    conforms("integral_sequence.jsonl", 19, Rules::Own);
    conforms("improved.jsonl", 96, Rules::Own);
}

/// Every case passes if nothing is compared; this one must not.
#[test]
#[should_panic(expected = "fair_share is")]
fn a_difference_is_noticed() {
    let text = read("strong_and_weight.jsonl");
    let mut case = Case::parse(text.lines().next().expect("a case"));
    let id = case.ids.last().expect("an element").clone();
    case.steps[0]["expect"]["elements"][&id]["fair_share"] = serde_json::json!([0.125, 0, 0, 0, 0]);
    let mut differences = Vec::new();
    run_step(&mut case, 0, Rules::Strict, &mut differences);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[derive(Clone, Copy, PartialEq)]
enum Rules {
    /// Those of the reference.
    Strict,
    /// Millpond's, fair-share.md 18.
    Own,
}

fn read(file: &str) -> String {
    let path = Path::new(FOLDER).join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn conforms(file: &str, at_least: usize, rules: Rules) {
    let text = read(file);
    let mut wrong: Vec<String> = Vec::new();
    let mut passed = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut case = Case::parse(line);
        if rules == Rules::Own && !case.quirks.is_empty() {
            continue;
        }
        case.input.options.compat_strict = rules == Rules::Strict;
        let mut differences = Vec::new();
        for step in 0..case.steps.len() {
            run_step(&mut case, step, rules, &mut differences);
        }
        if differences.is_empty() {
            passed += 1;
        } else {
            // The lowest differences come first and explain the rest.
            differences.truncate(8);
            wrong.push(format!("{}\n  {}", case.name, differences.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{passed} passed, {} did not:\n{}", wrong.len(), wrong.join("\n"));
    assert!(passed >= at_least, "{file}: {passed} cases, there should be {at_least}");
}

fn run_step(case: &mut Case, step: usize, rules: Rules, differences: &mut Vec<String>) {
    let since_previous = case.enter(step);
    let output = fairshare::update(&case.input, &mut case.state, Cycle::Periodic { since_previous })
        .unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let expect = &case.steps[step]["expect"];
    let got: BTreeSet<&str> = output.problems.iter().map(error_name).collect();
    let want: BTreeSet<&str> = list(&expect["errors"]).iter().filter_map(Value::as_str).collect();
    if got != want {
        differences.push(format!("step {step}: errors {got:?}, expected {want:?}"));
    }
    let none = Value::Null;
    for (e, id) in case.ids.iter().enumerate().rev() {
        let want = expect["elements"].get(id).unwrap_or(&none);
        let mut check = Comparison { at: format!("step {step}, {id}"), rules, want, differences };
        check.element(&output.elements[e]);
        if matches!(case.input.elements[e].kind, Kind::Pool(_)) {
            check.pool(&output.elements[e]);
        }
    }
}

fn error_name(problem: &Problem) -> &'static str {
    match problem {
        Problem::OvercommitStrongAndFlow { .. } => "overcommit_strong_and_flow",
        Problem::OvercommitStrongAndBurst { .. } => "overcommit_strong_and_burst",
        Problem::NestedPromisedGuaranteeFairSharePools { .. } => "nested_promised_guarantee_fair_share_pools",
        Problem::PriorityStrongGuaranteeAdjustmentPoolsWithoutDonor { .. } => "priority_pools_without_donors",
        Problem::Inconsistency { .. } => "inconsistency",
    }
}

/// One element of one step. A field that is absent in the expectation is zero.
struct Comparison<'a> {
    at: String,
    rules: Rules,
    want: &'a Value,
    differences: &'a mut Vec<String>,
}

impl Comparison<'_> {
    fn note(&mut self, field: &str, got: impl std::fmt::Debug, want: impl std::fmt::Debug) {
        self.differences.push(format!("{}: {field} is {got:?}, expected {want:?}", self.at));
    }

    fn share(&mut self, field: &str, got: Share) {
        let want = share(&self.want[field]);
        if RESOURCES.into_iter().any(|r| (got[r] - want[r]).abs() > 1e-8 || got[r].is_nan()) {
            self.note(field, got.0, want.0);
        }
    }

    fn ratio(&mut self, field: &str, got: f64) {
        let want = self.want[field].as_f64().unwrap_or(0.0);
        if (got - want).abs() > 1e-8 || got.is_nan() {
            self.note(field, got, want);
        }
    }

    fn volume(&mut self, field: &str, got: Volume) {
        let want = share(&self.want[field]);
        let close = |r: Resource| {
            let absolute = if r == Resource::Cpu { 0.02 } else { 1e-9 };
            (got.get(r) - want[r]).abs() <= 1e-8 * want[r].abs() + absolute
        };
        if !RESOURCES.into_iter().all(close) {
            self.note(field, RESOURCES.map(|r| got.get(r)), want.0);
        }
    }

    fn index(&mut self, field: &str, got: Option<usize>) {
        let want = self.want[field].as_u64().map(|i| i as usize);
        if got != want {
            self.note(field, got, want);
        }
    }

    fn element(&mut self, got: &ElementOutput) {
        self.share("demand_share", got.demand_share);
        self.share("limits_share", got.limits_share);
        self.share("strong_guarantee_share", got.strong_guarantee_share);
        self.share("proposed_integral_share", got.proposed_integral_share);
        self.share("limited_demand_share", got.limited_demand_share);
        self.share("fair_share", got.fair_share.total);
        self.share("fair_share_strong", got.fair_share.strong_guarantee);
        self.share("fair_share_integral", got.fair_share.integral_guarantee);
        self.share("fair_share_weight_proportional", got.fair_share.weight_proportional);
        self.share("promised_guarantee_fair_share", got.promised_guarantee_fair_share.total);
        self.share("promised_fair_share", got.promised_fair_share);
        // The corpus knows the newest rule under a longer name.
        self.share("estimated_guarantee_share", got.estimated_guarantee_share_with_flow);
        self.share("estimated_guarantee_share_without_flow", got.estimated_guarantee_share);
        let dominant = self.want["dominant_resource"].as_str().unwrap_or("cpu");
        if got.dominant_resource.as_str() != dominant {
            let want = dominant.to_owned();
            self.note("dominant_resource", got.dominant_resource, want);
        }
        self.index("fifo_index", got.fifo_index);
        self.index("effective_fifo_index", got.effective_fifo_index);
    }

    fn pool(&mut self, got: &ElementOutput) {
        // The root has no configuration; the corpus leaves its amount out.
        if !self.at.ends_with("<root>") {
            let inferred = share(&self.want["inferred_strong_guarantee_resources"]);
            let resources = got.inferred_strong_guarantee_resources;
            let unit = |r| if r == Resource::Cpu { 0.010_001 } else { 1.0 };
            // Twelve digits are printed.
            let close = |r: Resource| (resources.get(r) - inferred[r]).abs() <= unit(r) + 1e-11 * inferred[r];
            if !RESOURCES.into_iter().all(close) {
                self.note("inferred_strong_guarantee_resources", resources, inferred.0);
            }
        }
        self.ratio("resource_flow_ratio", got.resource_flow_ratio);
        self.ratio("burst_ratio", got.burst_ratio);
        self.ratio("total_resource_flow_ratio", got.total_resource_flow_ratio);
        self.ratio("total_burst_ratio", got.total_burst_ratio);
        let integral = got.integral.unwrap_or_default();
        self.volume("accumulated_volume", integral.accumulated_volume);
        if self.rules == Rules::Strict {
            // D2 changes it a little in almost every case.
            self.volume("integral_pool_capacity", integral.capacity);
        }
        self.ratio("share_ratio_by_volume", integral.share_ratio_by_volume);
        self.ratio("integral_share_limit", integral.share_limit);
        if self.rules == Rules::Own && integral.share_ratio_by_volume == 0.0 {
            // D1: the reference keeps the old value here.
            if integral.last_share > 1e-8 {
                self.note("last_integral_share_ratio", integral.last_share, 0.0);
            }
        } else {
            self.ratio("last_integral_share_ratio", integral.last_share);
        }
    }
}
