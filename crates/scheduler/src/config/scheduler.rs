//! Options of the scheduler as a whole (scheduling.md 17.3, 18.2).

use super::options::{ANY_SPAN, FOREVER, OptionInfo, Options};
use vocab::lease::{DEFAULT_LEASE, MAX_LEASE, MIN_LEASE};
use vocab::{Cpu, Failure, Resources, Span};
use yson::Map;

/// All options of the scheduler; the names are those of the option table.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // the option table of scheduling.md 18.2 says what they do
pub struct SchedulerConfig {
    /// The options that were given, canonical.
    pub specified: Map,
    pub fair_share_update_period: Span,
    pub watchers_update_period: Span,
    pub max_operation_count: i64,
    pub pending_by_pool_operation_scan_period: Span,
    pub min_spare_allocation_resources_on_node: Resources,
    pub max_started_allocations_per_heartbeat: Option<i64>,
    pub allowed_node_resources_overcommit_duration: Span,
    pub enable_allocation_abort_on_zero_user_slots: bool,
    pub consider_disk_quota_in_preemptive_scheduling_discount: bool,
    pub send_preemption_reason_in_node_heartbeat: bool,
    pub schedule_allocation_time_limit: Span,
    pub schedule_allocations_timeout: Span,
    pub schedule_allocation_start_backoff_time: Span,
    pub schedule_allocation_backoff_multiplier: f64,
    pub schedule_allocation_max_backoff_time: Span,
    pub schedule_allocation_fail_backoff_time: Span,
    pub max_concurrent_controller_schedule_allocation_calls: i64,
    pub concurrent_controller_schedule_allocation_calls_regularization: f64,
    pub min_needed_resources_update_period: Span,
    pub soft_concurrent_heartbeat_limit: i64,
    pub hard_concurrent_heartbeat_limit: i64,
    pub node_shard_count: i64,
    pub node_heartbeat_timeout: Span,
    pub node_registration_timeout: Span,
    pub max_node_unseen_period_to_abort_allocations: Span,
    pub pool_change_is_allowed: bool,
    pub operation_hangup_check_period: Span,
    pub operation_hangup_safe_timeout: Span,
    pub operation_hangup_min_schedule_allocation_attempts: i64,
    pub operation_hangup_deactivation_reasons: Vec<String>,
    pub operation_hangup_due_to_limiting_ancestor_safe_timeout: Span,
    pub ephemeral_pool_name_regex: NamePattern,
    pub enable_schedule_in_single_tree: bool,
    pub require_specified_operation_pools_existence: bool,
    pub missing_allocations_check_period: Span,
    pub node_shard_submit_allocations_to_strategy_period: Span,
    pub fair_share_log_period: Span,
    pub fair_share_profiling_period: Span,
    pub accumulated_usage_log_period: Span,
    pub fair_share_update_thread_count: i64,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig::parse(&Map::new()).expect("no options are good options").0
    }
}

impl SchedulerConfig {
    /// Reads the options; gives back the unknown ones.
    pub fn parse(map: &Map) -> Result<(SchedulerConfig, Map), Failure> {
        let mut o = Options::new("scheduler option", map)?;
        let mut config = read(&mut o)?;
        let (specified, rest) = o.finish_with_rest();
        config.specified = specified;
        let (soft, hard) = (config.soft_concurrent_heartbeat_limit, config.hard_concurrent_heartbeat_limit);
        if soft > hard {
            return Err(Failure::new(format!(
                "\"soft_concurrent_heartbeat_limit\" must be less than or equal to \
                 \"hard_concurrent_heartbeat_limit\", but {soft} > {hard}"
            )));
        }
        Ok((config, rest))
    }

    /// Lease of exclusive work, from `max_node_unseen_period_to_abort_allocations`. What an earlier version has taken
    /// without acting on it counts as the nearest allowed value.
    pub fn lease(&self) -> Span {
        self.max_node_unseen_period_to_abort_allocations.clamp(MIN_LEASE, MAX_LEASE)
    }

    /// All options, in no particular order.
    pub fn options() -> Vec<OptionInfo> {
        let mut o = Options::recorder("scheduler option");
        // Nothing is given, so nothing can be refused.
        let _ = read(&mut o);
        o.recorded()
    }
}

fn read(o: &mut Options<'_>) -> Result<SchedulerConfig, Failure> {
    let update_period = Span::from_millis(10)..=Span::from_secs(60);
    let period = Span::from_millis(1)..=FOREVER;
    let ms = Span::from_millis;
    let s = Span::from_secs;
    let counts = 1..=i64::MAX;
    let spare = Resources { user_slots: 1, cpu: Cpu(100), memory: 256 << 20, ..Resources::ZERO };
    let regex = match o.text(&["ephemeral_pool_name_regex"])? {
        None => NamePattern::default(),
        Some(text) => NamePattern::parse(&text)
            .map_err(|e| o.refuse("ephemeral_pool_name_regex", &text.as_str().into(), &e))?,
    };
    Ok(SchedulerConfig {
        specified: Map::new(),
        fair_share_update_period: o
            .span(&["fair_share_update_period"], update_period.clone())?
            .unwrap_or(ms(200)),
        watchers_update_period: o.span(&["watchers_update_period"], period.clone())?.unwrap_or(s(3)),
        max_operation_count: o.int(&["max_operation_count"], counts.clone())?.unwrap_or(5_000),
        pending_by_pool_operation_scan_period: o
            .span(&["pending_by_pool_operation_scan_period"], period.clone())?
            .unwrap_or(s(60)),
        min_spare_allocation_resources_on_node: o
            .amounts(&["min_spare_allocation_resources_on_node", "min_spare_job_resources_on_node"])?
            .map_or(spare, |a| a.or_zero()),
        max_started_allocations_per_heartbeat: o.int(
            &["max_started_allocations_per_heartbeat", "max_started_jobs_per_heartbeat"],
            0..=i64::MAX,
        )?,
        allowed_node_resources_overcommit_duration: o
            .span(&["allowed_node_resources_overcommit_duration"], ANY_SPAN)?
            .unwrap_or(s(15)),
        enable_allocation_abort_on_zero_user_slots: o
            .boolean(&["enable_allocation_abort_on_zero_user_slots", "enable_job_abort_on_zero_user_slots"])?
            .unwrap_or(true),
        consider_disk_quota_in_preemptive_scheduling_discount: o
            .boolean(&["consider_disk_quota_in_preemptive_scheduling_discount"])?
            .unwrap_or(false),
        send_preemption_reason_in_node_heartbeat: o
            .boolean(&["send_preemption_reason_in_node_heartbeat"])?
            .unwrap_or(true),
        schedule_allocation_time_limit: o
            // Zero would give up every order before its node can have heard of it.
            .span(&["schedule_allocation_time_limit"], ms(1)..=FOREVER)?
            .unwrap_or(s(30)),
        schedule_allocations_timeout: o.span(&["schedule_allocations_timeout"], ANY_SPAN)?.unwrap_or(s(40)),
        schedule_allocation_start_backoff_time: o
            .span(&["schedule_allocation_start_backoff_time"], ANY_SPAN)?
            .unwrap_or(ms(100)),
        schedule_allocation_backoff_multiplier: o
            .double(&["schedule_allocation_backoff_multiplier"], 1.0..=1000.0)?
            .unwrap_or(1.1),
        schedule_allocation_max_backoff_time: o
            .span(&["schedule_allocation_max_backoff_time"], ANY_SPAN)?
            .unwrap_or(s(10)),
        schedule_allocation_fail_backoff_time: o
            .span(&["schedule_allocation_fail_backoff_time"], ANY_SPAN)?
            .unwrap_or(ms(100)),
        max_concurrent_controller_schedule_allocation_calls: o
            .int(&["max_concurrent_controller_schedule_allocation_calls"], counts.clone())?
            .unwrap_or(100),
        concurrent_controller_schedule_allocation_calls_regularization: o
            .double(&["concurrent_controller_schedule_allocation_calls_regularization"], 1.0..=1e9)?
            .unwrap_or(2.0),
        min_needed_resources_update_period: o
            .span(&["min_needed_resources_update_period"], period.clone())?
            .unwrap_or(s(3)),
        soft_concurrent_heartbeat_limit: o
            .int(&["soft_concurrent_heartbeat_limit"], counts.clone())?
            .unwrap_or(50),
        hard_concurrent_heartbeat_limit: o
            .int(&["hard_concurrent_heartbeat_limit"], counts.clone())?
            .unwrap_or(100),
        node_shard_count: o.int(&["node_shard_count"], counts.clone())?.unwrap_or(4),
        node_heartbeat_timeout: o.span(&["node_heartbeat_timeout"], period.clone())?.unwrap_or(s(60)),
        node_registration_timeout: o.span(&["node_registration_timeout"], period.clone())?.unwrap_or(s(600)),
        max_node_unseen_period_to_abort_allocations: o
            .span(&["max_node_unseen_period_to_abort_allocations"], ANY_SPAN)?
            .unwrap_or(DEFAULT_LEASE),
        pool_change_is_allowed: o.boolean(&["pool_change_is_allowed"])?.unwrap_or(true),
        operation_hangup_check_period: o
            .span(&["operation_hangup_check_period"], period.clone())?
            .unwrap_or(s(60)),
        operation_hangup_safe_timeout: o
            .span(&["operation_hangup_safe_timeout"], ANY_SPAN)?
            .unwrap_or(s(3_600)),
        operation_hangup_min_schedule_allocation_attempts: o
            .int(&["operation_hangup_min_schedule_allocation_attempts"], 0..=i64::MAX)?
            .unwrap_or(1_000),
        operation_hangup_deactivation_reasons: o
            .list(
                &["operation_hangup_deactivation_reasons"],
                "a list of deactivation reasons",
                |name| crate::reasons::Deactivation::parse(name).map(|r| r.as_str().to_owned()),
                String::clone,
            )?
            .unwrap_or_else(|| {
                vec!["schedule_allocation_failed".to_owned(), "min_needed_resources_unsatisfied".to_owned()]
            }),
        operation_hangup_due_to_limiting_ancestor_safe_timeout: o
            .span(&["operation_hangup_due_to_limiting_ancestor_safe_timeout"], ANY_SPAN)?
            .unwrap_or(s(300)),
        ephemeral_pool_name_regex: regex,
        enable_schedule_in_single_tree: o.boolean(&["enable_schedule_in_single_tree"])?.unwrap_or(true),
        require_specified_operation_pools_existence: o
            .boolean(&["require_specified_operation_pools_existence"])?
            .unwrap_or(false),
        missing_allocations_check_period: o
            .span(&["missing_allocations_check_period", "missing_jobs_check_period"], ANY_SPAN)?
            .unwrap_or(s(10)),
        node_shard_submit_allocations_to_strategy_period: o
            .span(
                &[
                    "node_shard_submit_allocations_to_strategy_period",
                    "node_shard_submit_jobs_to_strategy_period",
                ],
                ANY_SPAN,
            )?
            .unwrap_or(ms(100)),
        fair_share_log_period: o.span(&["fair_share_log_period"], update_period.clone())?.unwrap_or(s(1)),
        fair_share_profiling_period: o.span(&["fair_share_profiling_period"], update_period)?.unwrap_or(s(5)),
        accumulated_usage_log_period: o.span(&["accumulated_usage_log_period"], period)?.unwrap_or(s(60)),
        fair_share_update_thread_count: o.int(&["fair_share_update_thread_count"], counts)?.unwrap_or(4),
    })
}

/// The allowed form of ephemeral pools' names: one class of characters, repeated.
///
/// The option is a regular expression in the reference. Every use known to us is one class with
/// `+`, so this reads exactly that form (`[-_a-z0-9:A-Z]+`, `[a-z]*`) and refuses others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamePattern {
    text: String,
    ranges: Vec<(char, char)>,
    may_be_empty: bool,
}

impl Default for NamePattern {
    fn default() -> Self {
        NamePattern::parse("[-_a-z0-9:A-Z]+").expect("the default is a good pattern")
    }
}

impl NamePattern {
    /// Reads the pattern.
    pub fn parse(text: &str) -> Result<NamePattern, String> {
        let expected = || "one class of characters, repeated, such as \"[-_a-z0-9:A-Z]+\"".to_owned();
        let inner = text.strip_prefix('^').unwrap_or(text);
        let inner = inner.strip_suffix('$').unwrap_or(inner);
        let (class, may_be_empty) = match inner.strip_suffix('+') {
            Some(class) => (class, false),
            None => (inner.strip_suffix('*').ok_or_else(expected)?, true),
        };
        let class = class.strip_prefix('[').and_then(|c| c.strip_suffix(']')).ok_or_else(expected)?;
        if class.is_empty() || class.starts_with('^') || class.contains(['[', ']', '\\']) {
            return Err(expected());
        }
        let chars: Vec<char> = class.chars().collect();
        let mut ranges = Vec::new();
        let mut i = 0;
        while i < chars.len() {
            let is_range = i + 2 < chars.len() && chars[i + 1] == '-';
            let end = if is_range { chars[i + 2] } else { chars[i] };
            if end < chars[i] {
                return Err(expected());
            }
            ranges.push((chars[i], end));
            i += if is_range { 3 } else { 1 };
        }
        Ok(NamePattern { text: text.to_owned(), ranges, may_be_empty })
    }

    /// Does the whole name match?
    pub fn matches(&self, name: &str) -> bool {
        (self.may_be_empty || !name.is_empty())
            && name.chars().all(|c| self.ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}
