//! Options of a pool (scheduling.md 18.3, fair-share.md 13.1).

use super::options::{ANY_SPAN, OptionInfo, Options};
use crate::amounts::Amounts;
use crate::formula::TagFilter;
use fairshare::{FifoSortParameter, GuaranteeType, Mode};
use vocab::{Failure, Span};
use yson::Map;

/// Smallest weight of a pool or an operation: 2^-26 (fair-share.md 5.3).
pub const MIN_WEIGHT: f64 = 1.0 / 67_108_864.0;
/// Largest weight of a pool or an operation: 2^26.
pub const MAX_WEIGHT: f64 = 67_108_864.0;

/// Modes by their public names.
const MODES: [(&str, Mode); 2] = [("fair_share", Mode::FairShare), ("fifo", Mode::Fifo)];

/// The public name of a mode.
pub fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::FairShare => "fair_share",
        Mode::Fifo => "fifo",
    }
}

/// The public name of a FIFO parameter. (Input also takes `pending_allocation_count`.)
pub fn fifo_parameter_name(parameter: FifoSortParameter) -> &'static str {
    match parameter {
        FifoSortParameter::Weight => "weight",
        FifoSortParameter::StartTime => "start_time",
        FifoSortParameter::PendingAllocationCount => "pending_job_count",
    }
}

fn parse_fifo_parameter(name: &str) -> Option<FifoSortParameter> {
    match name {
        "weight" => Some(FifoSortParameter::Weight),
        "start_time" => Some(FifoSortParameter::StartTime),
        "pending_job_count" | "pending_allocation_count" => Some(FifoSortParameter::PendingAllocationCount),
        _ => None,
    }
}

/// The public name of a kind of integral guarantee.
pub fn guarantee_type_name(kind: GuaranteeType) -> &'static str {
    match kind {
        GuaranteeType::None => "none",
        GuaranteeType::Burst => "burst",
        GuaranteeType::Relaxed => "relaxed",
    }
}

/// `integral_guarantees` of a pool.
#[derive(Clone, PartialEq, Debug)]
pub struct IntegralGuarantees {
    /// Kind; `none` makes the rest inert.
    pub guarantee_type: GuaranteeType,
    /// Accumulated per second.
    pub resource_flow: Amounts,
    /// How much may be used at once.
    pub burst_guarantee_resources: Amounts,
    /// Relaxed pools: at most this many times the flow; null = tree's.
    pub relaxed_share_multiplier_limit: Option<f64>,
    /// Takes volume that overflows elsewhere.
    pub can_accept_free_volume: bool,
    /// Gives overflowing volume to its children; null = tree's.
    pub should_distribute_free_volume_among_children: Option<bool>,
}

impl Default for IntegralGuarantees {
    fn default() -> Self {
        IntegralGuarantees {
            guarantee_type: GuaranteeType::None,
            resource_flow: Amounts::NONE,
            burst_guarantee_resources: Amounts::NONE,
            relaxed_share_multiplier_limit: None,
            can_accept_free_volume: true,
            should_distribute_free_volume_among_children: None,
        }
    }
}

/// `ephemeral_subpool_config`: what ephemeral children are given (scheduling.md 2.3).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EphemeralSubpoolConfig {
    /// Mode of the subpool.
    pub mode: Mode,
    /// Its limit of operations.
    pub max_operation_count: Option<i64>,
    /// Its limit of running operations.
    pub max_running_operation_count: Option<i64>,
    /// Its resource limits.
    pub resource_limits: Amounts,
}

/// All options of a pool. Null in the tables is `None` here.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // the names are those of the option tables, which say what they do
pub struct PoolConfig {
    /// The options that were given, canonical.
    pub specified: Map,
    pub mode: Mode,
    pub weight: Option<f64>,
    pub resource_limits: Amounts,
    pub resource_limits_overcommit_tolerance: Amounts,
    pub max_share_ratio: Option<f64>,
    pub strong_guarantee_resources: Amounts,
    pub integral_guarantees: IntegralGuarantees,
    pub scheduling_tag_filter: TagFilter,
    pub max_operation_count: Option<i64>,
    pub max_running_operation_count: Option<i64>,
    pub forbid_immediate_operations: bool,
    pub create_ephemeral_subpools: bool,
    pub ephemeral_subpool_config: Option<EphemeralSubpoolConfig>,
    pub fifo_sort_parameters: Vec<FifoSortParameter>,
    pub enable_lightweight_operations: bool,
    pub fair_share_starvation_timeout: Option<Span>,
    pub fair_share_starvation_tolerance: Option<f64>,
    pub enable_aggressive_starvation: Option<bool>,
    pub allow_aggressive_preemption: Option<bool>,
    pub allow_normal_preemption: bool,
    pub non_preemptible_resource_usage_threshold: Option<Amounts>,
    pub waiting_for_resources_on_node_timeout: Option<Span>,
    /// One preset (`config_preset`) or several (`config_presets`), in order.
    pub config_presets: Vec<String>,
    pub infer_children_weights_from_historic_usage: bool,
    pub historic_usage_aggregation_period: Option<Span>,
    pub compute_promised_guarantee_fair_share: bool,
    pub enable_priority_strong_guarantee_adjustment: bool,
    pub enable_priority_strong_guarantee_adjustment_donorship: bool,
    pub enable_step_function_for_gang_operations: bool,
    pub enable_fair_share_truncation_in_fifo_pool: Option<bool>,
    pub enable_fifo_children_reordering_for_guarantee_utilization: bool,
    pub enable_detailed_logs: bool,
    pub abc: Option<yson::Value>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        PoolConfig::parse(&Map::new()).expect("no options are good options").0
    }
}

/// Older names of options.
const ALIASES: [(&str, &str); 7] = [
    ("aggressive_starvation_enabled", "enable_aggressive_starvation"),
    ("allow_aggressive_starvation_preemption", "allow_aggressive_preemption"),
    ("fair_share_preemption_timeout", "fair_share_starvation_timeout"),
    ("min_share_resources", "strong_guarantee_resources"),
    ("scheduling_tag", "scheduling_tag_filter"),
    ("truncate_fifo_pool_unsatisfied_child_fair_share", "enable_fair_share_truncation_in_fifo_pool"),
    ("waiting_job_timeout", "waiting_for_resources_on_node_timeout"),
];

/// Options whose meaning lies outside scheduling; known, kept, shown.
const OPAQUE: [&str; 2] = ["enable_by_user_profiling", "metering_tags"];

impl PoolConfig {
    /// Reads the options; gives back the unknown ones (custom attributes of the pool).
    ///
    /// Rules that concern one pool alone are checked here (fair-share.md 11.1); those about parents,
    /// children and the tree are checked when the pool is put in its place.
    pub fn parse(map: &Map) -> Result<(PoolConfig, Map), Failure> {
        let mut o = Options::new("pool option", map)?;
        let mut config = read(&mut o)?;
        let (specified, custom) = o.finish_with_rest();
        config.specified = specified;
        config.check()?;
        Ok((config, custom))
    }

    /// All options, in no particular order.
    pub fn options() -> Vec<OptionInfo> {
        let mut o = Options::recorder("pool option");
        // Nothing is given, so nothing can be refused.
        let _ = read(&mut o);
        o.recorded()
    }

    /// The same, for a map inside another option (presets), where unknown names are refused.
    pub(super) fn parse_nested(o: &mut Options<'_>) -> Result<PoolConfig, Failure> {
        read(o)
    }

    /// The canonical name of an option, from any of its names, in either spelling of `_`; none if there
    /// is no such option.
    pub fn canonical_option(name: &str) -> Option<String> {
        let name = name.replace('-', "_");
        if let Some((_, canonical)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
            return Some((*canonical).to_owned());
        }
        // "Not set" is a value of every option; what is left over was not recognised.
        let nothing = Map::from_iter([(&name, yson::Value::Entity)]);
        PoolConfig::parse(&nothing).is_ok_and(|(_, rest)| rest.is_empty()).then_some(name)
    }

    fn check(&self) -> Result<(), Failure> {
        if let (Some(all), Some(running)) = (self.max_operation_count, self.max_running_operation_count)
            && all < running
        {
            return Err(Failure::new(format!(
                "\"max_operation_count\" must be greater than or equal to \"max_running_operation_count\", \
                 but {all} < {running}"
            ))
            .with("max_operation_count", all)
            .with("max_running_operation_count", running)
            .with("option", "max_operation_count"));
        }
        let integral = &self.integral_guarantees;
        if integral.guarantee_type == GuaranteeType::Relaxed && !integral.burst_guarantee_resources.is_empty()
        {
            return Err(Failure::new(
                "Burst guarantees cannot be specified for integral guarantee type \"relaxed\"",
            )
            .with("burst_guarantee_resources", integral.burst_guarantee_resources.to_map())
            .with("option", "integral_guarantees/burst_guarantee_resources"));
        }
        if self.mode == Mode::Fifo && self.create_ephemeral_subpools {
            return Err(Failure::new("Fifo pool cannot create ephemeral subpools")
                .with("option", "create_ephemeral_subpools"));
        }
        if self.specified.contains("metering_tags") && self.abc.is_none() {
            return Err(Failure::new("\"metering_tags\" can be specified only together with \"abc\"")
                .with("option", "metering_tags"));
        }
        Ok(())
    }

    /// Lightweight operations are really treated so: the option and FIFO mode (scheduling.md 4.6).
    pub fn effective_lightweight_operations_enabled(&self) -> bool {
        self.enable_lightweight_operations && self.mode == Mode::Fifo
    }

    /// Has any component of an integral guarantee, whatever its type.
    pub fn has_integral_resources(&self) -> bool {
        !self.integral_guarantees.resource_flow.is_empty()
            || !self.integral_guarantees.burst_guarantee_resources.is_empty()
    }
}

pub(super) const FIFO_SORT_NAMES: &str =
    "a non-empty list of \"weight\", \"start_time\", \"pending_job_count\"";

fn read(o: &mut Options<'_>) -> Result<PoolConfig, Failure> {
    let count = 0..=i64::from(i32::MAX);
    let fifo_sort_parameters =
        o.list(&["fifo_sort_parameters"], FIFO_SORT_NAMES, parse_fifo_parameter, |p| {
            fifo_parameter_name(*p).to_owned()
        })?;
    if fifo_sort_parameters.as_ref().is_some_and(Vec::is_empty) {
        return Err(o.refuse("fifo_sort_parameters", &yson::Value::List(Vec::new()), FIFO_SORT_NAMES));
    }
    let config_presets = match o.text(&["config_preset"])? {
        Some(one) if o.contains("config_presets") => {
            return Err(Failure::new(format!(
                "\"config_preset\" (\"{one}\") and \"config_presets\" cannot be specified together"
            ))
            .with("option", "config_preset"));
        }
        Some(one) => vec![one],
        None => o
            .list(&["config_presets"], "a list of preset names", |s| Some(s.to_owned()), String::clone)?
            .unwrap_or_default(),
    };
    let profiling =
        o.list(&["allowed_profiling_tags"], "a list of strings", |s| Some(s.to_owned()), String::clone)?;
    if let Some(tags) = profiling.filter(|t| t.len() > 200) {
        let value = (tags.len()).into();
        return Err(o.refuse("allowed_profiling_tags", &value, "at most 200 tags"));
    }
    for name in OPAQUE {
        o.opaque(name)?;
    }
    Ok(PoolConfig {
        specified: Map::new(),
        mode: o.choice(&["mode"], &MODES)?.unwrap_or_default(),
        weight: o.double(&["weight"], MIN_WEIGHT..=MAX_WEIGHT)?,
        resource_limits: o.amounts(&["resource_limits"])?.unwrap_or_default(),
        resource_limits_overcommit_tolerance: o
            .amounts(&["resource_limits_overcommit_tolerance"])?
            .unwrap_or_default(),
        max_share_ratio: o.double(&["max_share_ratio"], 0.0..=1.0)?,
        strong_guarantee_resources: o
            .amounts(&["strong_guarantee_resources", "min_share_resources"])?
            .unwrap_or_default(),
        integral_guarantees: o.map(&["integral_guarantees"], integral_guarantees)?.unwrap_or_default(),
        scheduling_tag_filter: o.formula(&["scheduling_tag_filter", "scheduling_tag"])?.unwrap_or_default(),
        max_operation_count: o.int(&["max_operation_count"], count.clone())?,
        max_running_operation_count: o.int(&["max_running_operation_count"], count.clone())?,
        forbid_immediate_operations: o.boolean(&["forbid_immediate_operations"])?.unwrap_or(false),
        create_ephemeral_subpools: o.boolean(&["create_ephemeral_subpools"])?.unwrap_or(false),
        ephemeral_subpool_config: o.map(&["ephemeral_subpool_config"], |o| {
            Ok(EphemeralSubpoolConfig {
                mode: o.choice(&["mode"], &MODES)?.unwrap_or_default(),
                max_operation_count: o.int(&["max_operation_count"], count.clone())?,
                max_running_operation_count: o.int(&["max_running_operation_count"], count.clone())?,
                resource_limits: o.amounts(&["resource_limits"])?.unwrap_or_default(),
            })
        })?,
        fifo_sort_parameters: fifo_sort_parameters
            .unwrap_or_else(|| vec![FifoSortParameter::Weight, FifoSortParameter::StartTime]),
        enable_lightweight_operations: o.boolean(&["enable_lightweight_operations"])?.unwrap_or(false),
        fair_share_starvation_timeout: o
            .span(&["fair_share_starvation_timeout", "fair_share_preemption_timeout"], ANY_SPAN)?,
        fair_share_starvation_tolerance: o.double(&["fair_share_starvation_tolerance"], 0.0..=1.0)?,
        enable_aggressive_starvation: o
            .boolean(&["enable_aggressive_starvation", "aggressive_starvation_enabled"])?,
        allow_aggressive_preemption: o
            .boolean(&["allow_aggressive_preemption", "allow_aggressive_starvation_preemption"])?,
        allow_normal_preemption: o.boolean(&["allow_normal_preemption"])?.unwrap_or(true),
        non_preemptible_resource_usage_threshold: o.amounts(&["non_preemptible_resource_usage_threshold"])?,
        waiting_for_resources_on_node_timeout: o
            .span(&["waiting_for_resources_on_node_timeout", "waiting_job_timeout"], ANY_SPAN)?,
        config_presets,
        infer_children_weights_from_historic_usage: o
            .boolean(&["infer_children_weights_from_historic_usage"])?
            .unwrap_or(false),
        historic_usage_aggregation_period: o.span(&["historic_usage_aggregation_period"], ANY_SPAN)?,
        compute_promised_guarantee_fair_share: o
            .boolean(&["compute_promised_guarantee_fair_share"])?
            .unwrap_or(false),
        enable_priority_strong_guarantee_adjustment: o
            .boolean(&["enable_priority_strong_guarantee_adjustment"])?
            .unwrap_or(false),
        enable_priority_strong_guarantee_adjustment_donorship: o
            .boolean(&["enable_priority_strong_guarantee_adjustment_donorship"])?
            .unwrap_or(false),
        enable_step_function_for_gang_operations: o
            .boolean(&["enable_step_function_for_gang_operations"])?
            .unwrap_or(true),
        enable_fair_share_truncation_in_fifo_pool: o.boolean(&[
            "enable_fair_share_truncation_in_fifo_pool",
            "truncate_fifo_pool_unsatisfied_child_fair_share",
        ])?,
        enable_fifo_children_reordering_for_guarantee_utilization: o
            .boolean(&["enable_fifo_children_reordering_for_guarantee_utilization"])?
            .unwrap_or(false),
        enable_detailed_logs: o.boolean(&["enable_detailed_logs"])?.unwrap_or(false),
        abc: o.opaque("abc")?.cloned(),
    })
}

fn integral_guarantees(o: &mut Options<'_>) -> Result<IntegralGuarantees, Failure> {
    let types = [GuaranteeType::None, GuaranteeType::Burst, GuaranteeType::Relaxed]
        .map(|t| (guarantee_type_name(t), t));
    Ok(IntegralGuarantees {
        guarantee_type: o.choice(&["guarantee_type"], &types)?.unwrap_or_default(),
        resource_flow: o.amounts(&["resource_flow"])?.unwrap_or_default(),
        burst_guarantee_resources: o.amounts(&["burst_guarantee_resources"])?.unwrap_or_default(),
        relaxed_share_multiplier_limit: o.double(&["relaxed_share_multiplier_limit"], 1.0..=10.0)?,
        can_accept_free_volume: o.boolean(&["can_accept_free_volume"])?.unwrap_or(true),
        should_distribute_free_volume_among_children: o
            .boolean(&["should_distribute_free_volume_among_children"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each alias is accepted by the reader, and shown under the name that the table says.
    #[test]
    fn aliases_are_those_of_the_reader() {
        for (alias, canonical) in ALIASES {
            let value: yson::Value = match canonical {
                "strong_guarantee_resources" => Map::new().into(),
                "scheduling_tag_filter" => "a".into(),
                name if name.ends_with("timeout") => 1_000i64.into(),
                _ => true.into(),
            };
            let (config, rest) = PoolConfig::parse(&Map::from_iter([(alias, value)])).expect(alias);
            assert!(rest.is_empty(), "{alias} is no option");
            assert!(config.specified.contains(canonical), "{alias} is shown as {:?}", config.specified);
            assert_eq!(PoolConfig::canonical_option(alias).as_deref(), Some(canonical));
        }
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(PoolConfig::canonical_option(name).as_deref(), expected, "{name}");
        };
        check("min-share-resources", Some("strong_guarantee_resources"));
        check("integral-guarantees", Some("integral_guarantees"));
        check("weight", Some("weight"));
        check("my-colour", None);
        check("name", None);
    }
}
