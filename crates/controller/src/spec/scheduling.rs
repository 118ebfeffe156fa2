//! Options of the spec that are the scheduler's business (scheduling.md 18.4). They are parsed here,
//! with everything else of the spec, and handed on as data; the controller never looks at them.

use super::reader::{Reader, expected, refuse_at};
use vocab::{Cpu, Failure, RESOURCES, Resource, Resources, Span};
use yson::{Map, Value};

/// How an operation wants to be scheduled; `None` is "not said".
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SchedulingOptions {
    /// Pool in every tree that `per_tree` does not name a pool for.
    pub pool: Option<String>,
    /// Trees to run in; the default tree otherwise.
    pub pool_trees: Option<Vec<String>>,
    /// Options by tree (`scheduling_options_per_pool_tree`), in the order given.
    pub per_tree: Vec<(String, TreeOptions)>,
    /// Options for all trees.
    pub common: TreeOptions,
    /// Filter of nodes.
    pub scheduling_tag_filter: Option<String>,
    /// `normal` or `graceful`.
    pub preemption_mode: PreemptionMode,
    /// How long a job may wait on a node, 10 s to 10 min.
    pub waiting_job_timeout: Option<Span>,
    /// How long an interrupted job of this operation may go on; the tree's otherwise (15.1).
    pub allocation_preemption_timeout: Option<Span>,
    /// The same for graceful preemption.
    pub allocation_graceful_preemption_timeout: Option<Span>,
    /// Choose one of the trees at start.
    pub schedule_in_single_tree: bool,
    /// Look at guarantees when choosing that tree.
    pub consider_guarantees_for_single_tree: bool,
    /// Trees that may turn out to be unsuitable.
    pub tentative_pool_trees: Vec<String>,
    /// Add the default tentative trees.
    pub use_default_tentative_pool_trees: bool,
    /// Drop trees whose pool is full instead of failing.
    pub erase_trees_with_pool_limit_violations: bool,
    /// Demand beyond `resource_limits` does not count.
    pub apply_specified_resource_limits_to_demand: bool,
    /// Take part in the check of limiting ancestors.
    pub enable_limiting_ancestor_check: bool,
    /// All or nothing.
    pub is_gang: bool,
    /// Refuse to start in a pool that does not exist.
    pub require_specified_pools_existence: Option<bool>,
    /// Suspended right after it starts running.
    pub suspend_operation_after_materialization: bool,
    /// Overrides the limit of concurrent schedule calls.
    pub max_concurrent_schedule_allocation_calls: Option<i64>,
}

/// Options that can be said per tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TreeOptions {
    /// Pool in this tree.
    pub pool: Option<String>,
    /// Weight among siblings; positive.
    pub weight: Option<f64>,
    /// Limits of the operation in the tree.
    pub resource_limits: Option<ResourceLimits>,
    /// Starvation time-out; only towards the conservative side.
    pub fair_share_starvation_timeout: Option<Span>,
    /// Starvation tolerance; only towards the conservative side.
    pub fair_share_starvation_tolerance: Option<f64>,
    /// Usage that is never preempted.
    pub non_preemptible_resource_usage_threshold: Option<ResourceLimits>,
}

/// Amounts of some resources; the others are not limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResourceLimits([Option<i64>; 5]);

impl ResourceLimits {
    /// One component in its integer unit, if it was said.
    pub fn raw(&self, r: Resource) -> Option<i64> {
        self.0[r as usize]
    }
    /// As a vector, infinite where nothing was said.
    pub fn resources(&self) -> Resources {
        Resources::from_raw(|r| self.raw(r).unwrap_or(Resources::INFINITE.raw(r)))
    }
    /// The map that users wrote, canonical names.
    pub fn to_map(&self) -> Map {
        let said = RESOURCES.into_iter().filter_map(|r| self.raw(r).map(|raw| (r, raw)));
        said.map(|(r, raw)| {
            let shown: Value = if r == Resource::Cpu { Cpu(raw).as_f64().into() } else { raw.into() };
            (r.as_str(), shown)
        })
        .collect()
    }
    fn read(v: &Value) -> Result<ResourceLimits, String> {
        let map = v.as_map().ok_or_else(|| expected("map from resource to amount", v))?;
        let mut out = ResourceLimits::default();
        for (key, value) in map.iter().filter(|(_, v)| !v.is_entity()) {
            let resource = Resource::parse(key).ok_or_else(|| {
                format!(
                    "unknown resource {:?}, expected one of user_slots, cpu, gpu, memory, network",
                    String::from_utf8_lossy(key)
                )
            })?;
            let raw = match resource {
                Resource::Cpu => {
                    value.as_f64().filter(|x| (0.0..=1e12).contains(x)).map(|x| Cpu::from_f64(x).0)
                }
                _ => value.as_i64().filter(|x| *x >= 0),
            };
            let what = if resource == Resource::Cpu { "number in 0..=1e12" } else { "int64 of at least 0" };
            out.0[resource as usize] =
                Some(raw.ok_or_else(|| format!("{resource}: {}", expected(what, value)))?);
        }
        Ok(out)
    }
}
impl super::reader::Shown for ResourceLimits {
    fn shown(&self) -> Value {
        self.to_map().into()
    }
}

/// Whether preemption asks jobs to stop first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PreemptionMode {
    /// Aborts what cannot be interrupted.
    #[default]
    Normal,
    /// Lets running jobs end.
    Graceful,
}

/// A job that was asked to go may take no longer, whatever its operation says: others wait for its place.
const LONGEST: Span = Span::from_secs(86_400);
const EVER: Span = Span(u64::MAX);

impl TreeOptions {
    /// `pool` belongs to the per-tree form only: at the root it is read as the common pool.
    fn read(r: &mut Reader<'_>) -> Result<TreeOptions, Failure> {
        let unpreemptible =
            ["non_preemptible_resource_usage_threshold", "non_preemptable_resource_usage_threshold"];
        let mut out = TreeOptions {
            pool: r.string("pool").optional()?,
            weight: r.positive("weight", f64::MAX).optional()?,
            resource_limits: r.with("resource_limits", ResourceLimits::read).optional()?,
            fair_share_starvation_timeout: r
                .span("fair_share_starvation_timeout", Span::ZERO..=EVER)
                .optional()?,
            fair_share_starvation_tolerance: r
                .number("fair_share_starvation_tolerance", 0.0..=1.0)
                .optional()?,
            non_preemptible_resource_usage_threshold: r
                .with(unpreemptible, ResourceLimits::read)
                .optional()?,
        };
        let names = [
            "max_unpreemptible_allocation_count",
            "max_unpreemptible_job_count",
            "max_unpreemptable_job_count",
        ];
        // An older spelling of the threshold's user_slots; the smaller of the two holds.
        if let Some(slots) = r.int(names, 0..=i64::MAX).optional()? {
            let limits = out.non_preemptible_resource_usage_threshold.get_or_insert_default();
            let place = &mut limits.0[Resource::UserSlots as usize];
            *place = Some(place.map_or(slots, |old| old.min(slots)));
        }
        Ok(out)
    }
}

impl SchedulingOptions {
    /// How many pool trees the options name, by option.
    pub(crate) fn name_counts(&self) -> [(&'static str, usize); 3] {
        [
            ("pool_trees", self.pool_trees.as_ref().map_or(0, Vec::len)),
            ("scheduling_options_per_pool_tree", self.per_tree.len()),
            ("tentative_pool_trees", self.tentative_pool_trees.len()),
        ]
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<SchedulingOptions, Failure> {
        let mut common = TreeOptions::read(r)?;
        let out = SchedulingOptions {
            pool: common.pool.take(),
            pool_trees: r.strings("pool_trees").optional()?,
            per_tree: read_trees(r)?,
            common,
            scheduling_tag_filter: r.string(["scheduling_tag_filter", "scheduling_tag"]).optional()?,
            preemption_mode: match r
                .with("preemption_mode", |v| match v.as_str() {
                    Some(s @ ("normal" | "graceful")) => Ok(s.to_owned()),
                    _ => Err(expected("\"normal\" or \"graceful\"", v)),
                })
                .or("normal".to_owned())?
                .as_str()
            {
                "graceful" => PreemptionMode::Graceful,
                _ => PreemptionMode::Normal,
            },
            waiting_job_timeout: r
                .span("waiting_job_timeout", Span::from_secs(10)..=Span::from_secs(600))
                .optional()?,
            allocation_preemption_timeout: r
                .span(["allocation_preemption_timeout", "job_interrupt_timeout"], Span::ZERO..=LONGEST)
                .optional()?,
            allocation_graceful_preemption_timeout: r
                .span(
                    ["allocation_graceful_preemption_timeout", "job_graceful_interrupt_timeout"],
                    Span::ZERO..=LONGEST,
                )
                .optional()?,
            schedule_in_single_tree: r.bool("schedule_in_single_tree").or(false)?,
            consider_guarantees_for_single_tree: r.bool("consider_guarantees_for_single_tree").or(false)?,
            tentative_pool_trees: r.strings("tentative_pool_trees").or(Vec::new())?,
            use_default_tentative_pool_trees: r.bool("use_default_tentative_pool_trees").or(false)?,
            erase_trees_with_pool_limit_violations: r
                .bool("erase_trees_with_pool_limit_violations")
                .or(false)?,
            apply_specified_resource_limits_to_demand: r
                .bool("apply_specified_resource_limits_to_demand")
                .or(false)?,
            enable_limiting_ancestor_check: r.bool("enable_limiting_ancestor_check").or(true)?,
            is_gang: r.bool("is_gang").or(false)?,
            require_specified_pools_existence: r.bool("require_specified_pools_existence").optional()?,
            suspend_operation_after_materialization: r
                .bool("suspend_operation_after_materialization")
                .or(false)?,
            max_concurrent_schedule_allocation_calls: r
                .int("max_concurrent_schedule_allocation_calls", 1..=i64::MAX)
                .optional()?,
        };
        accept_eligibility(r)?;
        out.validate(r)?;
        out.show_effective(r);
        Ok(out)
    }

    /// Options that are the same as not said with these values. What is not said in a tree is as here, so nothing is
    /// filled in there.
    fn show_effective(&self, r: &mut Reader<'_>) {
        let common = &self.common;
        let threshold = common.non_preemptible_resource_usage_threshold.unwrap_or_default();
        r.show_effective("weight", common.weight.unwrap_or(1.0));
        r.show_effective("resource_limits", common.resource_limits.unwrap_or_default().to_map());
        r.show_effective("non_preemptible_resource_usage_threshold", threshold.to_map());
        r.show_effective("scheduling_tag_filter", self.scheduling_tag_filter.as_deref().unwrap_or_default());
    }

    fn validate(&self, r: &Reader<'_>) -> Result<(), Failure> {
        if self.pool_trees.as_ref().is_some_and(Vec::is_empty) {
            return Err(r.refuse("pool_trees", "expected at least one pool tree"));
        }
        if self.consider_guarantees_for_single_tree && !self.schedule_in_single_tree {
            return Err(
                r.refuse("consider_guarantees_for_single_tree", "it needs \"schedule_in_single_tree\"")
            );
        }
        let tentative = !self.tentative_pool_trees.is_empty() || self.use_default_tentative_pool_trees;
        if self.schedule_in_single_tree && tentative {
            return Err(r.refuse("schedule_in_single_tree", "it excludes tentative pool trees"));
        }
        Ok(())
    }
}

/// When a tentative tree would count as unsuitable: checked and shown, no tree is given up for it here.
fn accept_eligibility(r: &mut Reader<'_>) -> Result<(), Failure> {
    r.section("tentative_tree_eligibility", |r| {
        r.int("sample_job_count", 1..=i64::MAX).or(10)?;
        r.positive("max_tentative_job_duration_ratio", f64::MAX).or(10.0)?;
        r.span("min_job_duration", Span::ZERO..=EVER).or(Span::from_secs(30))?;
        r.bool("ignore_missing_pool_trees").or(false)?;
        Ok(())
    })
}

fn read_trees(r: &mut Reader<'_>) -> Result<Vec<(String, TreeOptions)>, Failure> {
    let names = ["scheduling_options_per_pool_tree", "fair_share_options_per_pool_tree"];
    r.section(names, |trees| {
        let mut out = Vec::new();
        for (tree, options) in trees.entries() {
            let path = trees.path_of(&tree);
            let map = options.as_map().ok_or_else(|| refuse_at(&path, expected("map", options)))?;
            let mut inner = Reader::new(map, path);
            let read = TreeOptions::read(&mut inner)?;
            inner.bool("enable_detailed_logs").optional()?;
            trees.keep(&tree, inner);
            out.push((tree, read));
        }
        Ok(out)
    })
}
