//! Options of all controllers of a cluster (jobs-and-nodes.md 10): the document
//! `//sys/controller_agents/config`.

use crate::backoff::BackoffOptions;
use reserve::memory_digest::ClusterOptions;
use vocab::{Cpu, Failure, Span};
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// Cluster-wide settings; see the field docs for names and defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct ControllerOptions {
    /// Memory of a job proxy that is not scaled by any factor, bytes. Default 128 MiB.
    pub footprint_memory: i64,
    /// How memory reserves are learned; its names stand at the root of the document.
    pub memory_digest: ClusterOptions,
    /// Failed and user-aborted jobs of one operation whose stderr is kept. Default 200.
    pub max_job_nodes_per_operation: u64,
    /// `job_abort_backoff`: pauses after aborts that nodes cause: `min`, `max` (milliseconds), `multiplier`. Default
    /// 1 s, 60 s, 2.
    pub job_abort_backoff: BackoffOptions,
    /// `max_title_length`: bytes of an operation's title. Default 4096.
    pub max_title_length: usize,
    /// `max_annotations_size`: bytes of an operation's annotations as text YSON. Default 10 KiB.
    pub max_annotations_size: usize,
    /// `max_user_file_count`: files and layers of one task. Default 1000.
    pub max_user_file_count: usize,
    /// `max_total_user_file_count`: files and layers of all tasks of an operation. Default 3000.
    pub max_total_user_file_count: usize,
    /// `vanilla_operation_options/max_task_count`: most tasks of an operation. Default 100.
    pub max_task_count: usize,
    /// `vanilla_operation_options/max_total_job_count`: most jobs of an operation. Default 100,000.
    pub max_total_job_count: u32,
    /// `vanilla_operation_options/custom_statistics_count_limit`: different custom statistics of one
    /// operation. Default 1024.
    pub custom_statistics_count_limit: usize,
    /// `vanilla_operation_options/set_container_cpu_limit`: all jobs have a CPU cap, by the next two.
    /// Default false.
    pub set_container_cpu_limit: bool,
    /// `vanilla_operation_options/cpu_limit_overcommit_multiplier`: the cap is the job's `cpu_limit`
    /// times this. Default 1.
    pub cpu_limit_overcommit_multiplier: f64,
    /// `vanilla_operation_options/initial_cpu_limit_overcommit`: and so many cores more. Default 2.
    pub initial_cpu_limit_overcommit: f64,
    /// `vanilla_operation_options/gang_manager/enabled`: a gang may begin a new incarnation; otherwise
    /// its first failure ends the operation. Default true.
    pub gang_manager_enabled: bool,
}

impl Default for ControllerOptions {
    fn default() -> ControllerOptions {
        ControllerOptions {
            footprint_memory: 128 << 20,
            memory_digest: ClusterOptions::default(),
            max_job_nodes_per_operation: 200,
            job_abort_backoff: BackoffOptions::default(),
            max_title_length: 4096,
            max_annotations_size: 10 << 10,
            max_user_file_count: 1000,
            max_total_user_file_count: 3000,
            max_task_count: 100,
            max_total_job_count: 100_000,
            custom_statistics_count_limit: 1024,
            set_container_cpu_limit: false,
            cpu_limit_overcommit_multiplier: 1.0,
            initial_cpu_limit_overcommit: 2.0,
            gang_manager_enabled: true,
        }
    }
}

/// Section of the options of one type of operations.
const VANILLA: &str = "vanilla_operation_options";
/// Section of the pauses after aborts.
const BACKOFF: &str = "job_abort_backoff";

impl ControllerOptions {
    /// Reads the document. Unknown options are refused, so that a typing error does not go unseen.
    pub fn parse(document: &Map) -> Result<ControllerOptions, Failure> {
        let mut fields = Fields::new(document, "");
        let options = read(&mut fields).and_then(|options| fields.finish().map(|()| options));
        options.map_err(|e| Failure::new(e.to_string()).with("option", e.path.as_str()))
    }

    /// The same for an operation that was accepted already: limits on the size of operations are for new ones.
    pub fn for_any_size(&self) -> ControllerOptions {
        ControllerOptions {
            max_title_length: usize::MAX,
            max_annotations_size: usize::MAX,
            max_user_file_count: usize::MAX,
            max_total_user_file_count: usize::MAX,
            max_task_count: usize::MAX,
            max_total_job_count: u32::MAX,
            ..self.clone()
        }
    }

    /// The same, for those who read a specification before it is known which limits are in force: of the number of tasks,
    /// for which there is a largest one ([`ControllerOptions::LARGEST_TASK_COUNT`]), it is the caller's business.
    pub fn before_limits() -> ControllerOptions {
        ControllerOptions::default().for_any_size()
    }

    /// The largest value that the document may have for `max_task_count`.
    pub const LARGEST_TASK_COUNT: usize = 10_000;

    /// Effective values, in the form of the document.
    pub fn to_map(&self) -> Map {
        let vanilla = yson::map! {
            "max_task_count" => self.max_task_count,
            "max_total_job_count" => i64::from(self.max_total_job_count),
            "custom_statistics_count_limit" => self.custom_statistics_count_limit,
            "set_container_cpu_limit" => self.set_container_cpu_limit,
            "cpu_limit_overcommit_multiplier" => self.cpu_limit_overcommit_multiplier,
            "initial_cpu_limit_overcommit" => self.initial_cpu_limit_overcommit,
            "gang_manager" => yson::map! {"enabled" => self.gang_manager_enabled},
        };
        let own = yson::map! {
            "footprint_memory" => self.footprint_memory,
            "max_job_nodes_per_operation" => self.max_job_nodes_per_operation,
            "max_title_length" => self.max_title_length,
            "max_annotations_size" => self.max_annotations_size,
            "max_user_file_count" => self.max_user_file_count,
            "max_total_user_file_count" => self.max_total_user_file_count,
            BACKOFF => yson::map! {
                "min" => self.job_abort_backoff.min.as_millis() as i64,
                "max" => self.job_abort_backoff.max.as_millis() as i64,
                "multiplier" => self.job_abort_backoff.multiplier,
            },
        };
        own.into_iter().chain(self.memory_digest.to_map()).chain(yson::map! {VANILLA => vanilla}).collect()
    }

    /// The CPU cap of a job (jobs-and-nodes.md 4.5). A script that asks for one has exactly its
    /// `cpu_limit`, whatever the administrator says.
    pub(crate) fn cpu_cap(&self, asked_for: bool, cpu_limit: Cpu) -> Option<Cpu> {
        match (asked_for, self.set_container_cpu_limit) {
            (true, _) => Some(cpu_limit),
            (false, true) => Some(Cpu::from_f64(
                cpu_limit.as_f64() * self.cpu_limit_overcommit_multiplier + self.initial_cpu_limit_overcommit,
            )),
            (false, false) => None,
        }
    }
}

fn read(f: &mut Fields<'_>) -> Result<ControllerOptions, FieldError> {
    let mut out = ControllerOptions {
        footprint_memory: int(f, "footprint_memory", 0..=1 << 40)?.unwrap_or(128 << 20),
        memory_digest: ClusterOptions::read(f)?,
        ..ControllerOptions::default()
    };
    let nodes = int(f, "max_job_nodes_per_operation", 0..=1_000_000)?;
    out.max_job_nodes_per_operation = nodes.map_or(out.max_job_nodes_per_operation, i64::unsigned_abs);
    let size = |n: Option<i64>, usual: usize| n.map_or(usual, |n| n.unsigned_abs() as usize);
    out.max_title_length = size(int(f, "max_title_length", 1..=1 << 20)?, out.max_title_length);
    out.max_annotations_size = size(int(f, "max_annotations_size", 0..=1 << 20)?, out.max_annotations_size);
    out.max_user_file_count = size(int(f, "max_user_file_count", 0..=100_000)?, out.max_user_file_count);
    out.max_total_user_file_count =
        size(int(f, "max_total_user_file_count", 0..=100_000)?, out.max_total_user_file_count);
    f.nested(BACKOFF, |f| read_backoff(f, &mut out.job_abort_backoff))?;
    f.nested(VANILLA, |f| read_vanilla(f, &mut out))?;
    Ok(out)
}

fn read_backoff(f: &mut Fields<'_>, out: &mut BackoffOptions) -> Result<(), FieldError> {
    const DAY: i64 = 24 * 3600 * 1000;
    if let Some(min) = int(f, "min", 1..=DAY)? {
        out.min = Span::from_millis(min.unsigned_abs());
    }
    if let Some(max) = int(f, "max", 1..=DAY)? {
        out.max = Span::from_millis(max.unsigned_abs());
    }
    if out.max < out.min {
        let most = out.max.as_millis();
        return Err(f.error("min", &format!("expected at most \"max\", which is {most}")));
    }
    let good = |v: &&Value| v.as_f64().is_some_and(|x| (1.0..=1000.0).contains(&x));
    let multiplier = f.take_value("multiplier").check("a number from 1 to 1000", good).optional()?;
    out.multiplier = multiplier.and_then(Value::as_f64).unwrap_or(out.multiplier);
    refuse_unknown(f)
}

fn read_vanilla(f: &mut Fields<'_>, out: &mut ControllerOptions) -> Result<(), FieldError> {
    if let Some(n) = int(f, "max_task_count", 1..=ControllerOptions::LARGEST_TASK_COUNT as i64)? {
        out.max_task_count = n as usize;
    }
    if let Some(n) = int(f, "max_total_job_count", 1..=10_000_000)? {
        out.max_total_job_count = n as u32;
    }
    if let Some(n) = int(f, "custom_statistics_count_limit", 0..=1_000_000)? {
        out.custom_statistics_count_limit = n as usize;
    }
    out.set_container_cpu_limit = f.take_bool("set_container_cpu_limit").or(out.set_container_cpu_limit)?;
    out.cpu_limit_overcommit_multiplier =
        cores(f, "cpu_limit_overcommit_multiplier")?.unwrap_or(out.cpu_limit_overcommit_multiplier);
    out.initial_cpu_limit_overcommit =
        cores(f, "initial_cpu_limit_overcommit")?.unwrap_or(out.initial_cpu_limit_overcommit);
    f.nested("gang_manager", |f| {
        out.gang_manager_enabled = f.take_bool("enabled").or(out.gang_manager_enabled)?;
        refuse_unknown(f)
    })?;
    refuse_unknown(f)
}

/// Inside a section, so that the error names the option and not the section.
fn refuse_unknown(f: &Fields<'_>) -> Result<(), FieldError> {
    match f.unrecognized().key_strings().next() {
        Some(name) => Err(f.error(&name, "unknown option")),
        None => Ok(()),
    }
}

fn int(
    f: &mut Fields<'_>,
    name: &'static str,
    range: std::ops::RangeInclusive<i64>,
) -> Result<Option<i64>, FieldError> {
    let allowed = format!("an integer from {} to {}", range.start(), range.end());
    let good = |v: &&Value| v.as_i64().is_some_and(|n| range.contains(&n));
    Ok(f.take_value(name).check(&allowed, good).optional()?.and_then(Value::as_i64))
}

fn cores(f: &mut Fields<'_>, name: &'static str) -> Result<Option<f64>, FieldError> {
    let good = |v: &&Value| v.as_f64().is_some_and(|x| (0.0..=1e6).contains(&x));
    Ok(f.take_value(name).check("a number from 0 to 1000000", good).optional()?.and_then(Value::as_f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ControllerOptions, Failure> {
        let document = yson::parse(text.as_bytes()).expect("YSON");
        ControllerOptions::parse(document.as_map().expect("a map"))
    }

    #[test]
    fn the_defaults_are_those_of_the_specification_and_read_themselves_back() {
        let defaults = parse("{}").expect("empty");
        assert_eq!(defaults, ControllerOptions::default());
        assert_eq!(ControllerOptions::parse(&defaults.to_map()), Ok(defaults));
        let changed = parse(
            "{footprint_memory=44040192; user_job_memory_reserve_quantile=0.8; max_job_nodes_per_operation=3;
              job_abort_backoff={min=10; max=20; multiplier=1};
              user_job_resource_overdraft_memory_multiplier=1.5;
              max_title_length=10; max_annotations_size=0;
              vanilla_operation_options={max_task_count=7; gang_manager={enabled=%false};
                set_container_cpu_limit=%true; cpu_limit_overcommit_multiplier=2; initial_cpu_limit_overcommit=0.05}}",
        )
        .expect("good");
        assert_eq!(changed.footprint_memory, 42 << 20);
        assert_eq!(changed.memory_digest.user_job_resource_overdraft_memory_multiplier, Some(1.5));
        let backoff = changed.job_abort_backoff;
        assert_eq!((backoff.min, backoff.max), (Span::from_millis(10), Span::from_millis(20)));
        assert_eq!((changed.max_title_length, changed.max_annotations_size), (10, 0));
        assert_eq!((changed.max_task_count, changed.gang_manager_enabled), (7, false));
        assert_eq!(ControllerOptions::parse(&changed.to_map()), Ok(changed));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, parts) in [
            ("{footprint_memory=-1}", ["footprint_memory", "-1", "from 0 to"].as_slice()),
            (
                "{user_job_memory_reserve_quantile=1.5}",
                &["user_job_memory_reserve_quantile", "1.5", "0 to 1"],
            ),
            ("{footprnt=1}", &["footprnt", "unknown"]),
            ("{vanilla_operation_options={max_task_count=0}}", &["vanilla_operation_options/max_task_count"]),
            ("{vanilla_operation_options={gang_manager={on=1}}}", &["gang_manager/on", "unknown"]),
            ("{max_title_length=0}", &["max_title_length", "from 1 to"]),
            ("{job_abort_backoff={min=2000; max=1000}}", &["job_abort_backoff/min", "at most", "1000"]),
            ("{job_abort_backoff={multiplier=0}}", &["job_abort_backoff/multiplier", "from 1 to 1000"]),
            ("{vanilla_operation_options=7}", &["vanilla_operation_options", "map"]),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }

    #[test]
    fn caps() {
        let with = ControllerOptions {
            set_container_cpu_limit: true,
            cpu_limit_overcommit_multiplier: 2.0,
            initial_cpu_limit_overcommit: 0.05,
            ..ControllerOptions::default()
        };
        let without = ControllerOptions::default();
        let cpu = Cpu(10);
        assert_eq!(with.cpu_cap(false, cpu), Some(Cpu(25)));
        assert_eq!(with.cpu_cap(true, cpu), Some(cpu));
        assert_eq!(without.cpu_cap(true, cpu), Some(cpu));
        assert_eq!(without.cpu_cap(false, cpu), None);
    }
}
