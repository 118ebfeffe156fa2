//! One operation: what it asks for, and what will happen to its jobs.

use super::Curve;
use crate::dist::Dist;
use crate::scenario::{MemoryPolicy, Scenario};
use controller::spec::MemoryOptions;
use reserve::cpu_monitor::SECTION;
use std::sync::Arc;
use vocab::{Cpu, Span};
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// See the module page.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Unique name.
    pub id: String,
    /// Submission.
    pub at: Span,
    /// Whose.
    pub user: String,
    /// Pool of the default tree.
    pub pool: Option<String>,
    /// Pools by tree.
    pub pools: Vec<(String, String)>,
    /// Further production options.
    pub spec: Map,
    /// Whatever its maker wants to find again beside the results.
    pub meta: Map,
    /// The owner aborts it then.
    pub until: Option<Span>,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Jobs that run at the start already: those of a task have its first units, in this order.
    pub running: Vec<RunningJob>,
}

/// A job that runs when the simulation begins.
#[derive(Clone, PartialEq, Debug)]
pub struct RunningJob {
    /// Number of its task.
    pub task: usize,
    /// Its node.
    pub node: String,
    /// Its tree; none: the default one.
    pub tree: Option<String>,
    /// How long it has run.
    pub ran: Span,
    /// What it was granted; none: what its task asks for.
    pub cpu: Option<Cpu>,
    /// Bytes that it was granted; none: its limit.
    pub memory: Option<i64>,
}

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Units of work.
    pub job_count: u64,
    /// Cores of a job.
    pub cpu: Cpu,
    /// `memory_limit` of a job.
    pub memory: i64,
    /// Devices of a job.
    pub gpu: i64,
    /// Bytes of disk of a job.
    pub disk: Option<i64>,
    /// Lower bound of the reserve.
    pub tmpfs_size: i64,
    /// Keep `job_count` jobs running for ever.
    pub restart_completed_jobs: bool,
    /// Milliseconds at full speed.
    pub duration: Dist,
    /// Peak as a part of `memory`.
    pub memory_usage: Dist,
    /// How it gets there.
    pub memory_curve: MemoryCurve,
    /// Bytes that the job proxy uses; none: what is estimated of it.
    pub proxy: Option<Dist>,
    /// Bytes that are reserved for the job proxy; none: what is reserved for all of them.
    pub proxy_estimate: Option<i64>,
    /// Cores.
    pub cpu_usage: Option<CpuUsage>,
    /// It can be asked to stop.
    pub interruptible: bool,
    /// From the order to the end, ms.
    pub interrupt_time: Dist,
    /// Of each attempt.
    pub fail_probability: f64,
    /// Part of the duration; none: uniform.
    pub fail_after: Option<Dist>,
    /// All jobs or none.
    pub gang: bool,
    /// Jobs that are told one by one.
    pub explicit: Vec<Explicit>,
    /// Numbers of the tasks that must be complete before its jobs come.
    pub after: Vec<usize>,
    /// It is a part of a task of the workload.
    pub part: Option<Part>,
}

/// Jobs of a task that are a task of their own, because more is reserved for them than for others.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Name of the whole task.
    pub of: String,
    /// Numbers of the jobs in it.
    pub jobs: Vec<u32>,
    /// Bytes to reserve for each.
    pub reserve: i64,
}

/// Use of CPU.
#[derive(Clone, Debug)]
pub enum CpuUsage {
    /// The same from beginning to end.
    Even(Dist),
    /// A curve over the work of the job.
    Curve(Arc<Curve>),
    /// A measured one, in a file that has not been read yet.
    Named {
        /// Beside the workload.
        file: String,
        /// Name of a job, or `cycle`.
        key: String,
    },
    /// Measured ones, job by job, over and over.
    Curves(Vec<Arc<Curve>>),
}

/// How a job gets to its peak of memory.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum MemoryCurve {
    /// One step at a random time of the first half.
    #[default]
    Peak,
    /// Eight steps, the last of them at seven eighths.
    Ramp,
    /// Part of the duration and part of the peak.
    Points(Vec<(f64, f64)>),
}

impl MemoryCurve {
    /// Part of the duration and part of the peak of each step; `peak_at`: of a single one.
    pub fn steps(&self, peak_at: f64) -> Vec<(f64, f64)> {
        match self {
            MemoryCurve::Peak => vec![(peak_at, 1.0)],
            MemoryCurve::Ramp => (0..8).map(|i| (f64::from(i) / 8.0, f64::from(i + 1) / 8.0)).collect(),
            MemoryCurve::Points(points) => points.clone(),
        }
    }
}

/// A job of `jobs`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Explicit {
    /// At full speed.
    pub duration_ms: f64,
    /// Part of `memory`.
    pub peak: f64,
    /// Cores.
    pub cpu: f64,
    /// After the submission of its operation.
    pub arrives: Span,
}

impl Operation {
    pub(super) fn read(map: &Map, line: u64) -> Result<Operation, FieldError> {
        let mut f = Fields::new(map, "");
        let operation = read(&mut f, line)?;
        f.finish()?;
        Ok(operation)
    }

    /// Production reserves the same for the proxies of all vanilla jobs, `footprint_memory`: an estimate must be
    /// that.
    pub fn check_estimates(&self, footprint: i64) -> Result<(), FieldError> {
        for (number, task) in self.tasks.iter().enumerate() {
            if let Some(found) = task.proxy_estimate.filter(|estimate| *estimate != footprint) {
                let what = format!(
                    "expected {footprint}, which is reserved for all job proxies (footprint_memory of \
                     controller_config), found {found} in operation {:?}",
                    self.id
                );
                return Err(FieldError::new(format!("tasks/{number}/job_proxy_memory/estimate"), &what));
            }
        }
        Ok(())
    }

    /// The production specification. Options of the memory reserve stand in the user script there.
    pub fn spec(&self, scenario: &Scenario) -> Map {
        let mut spec = self.spec.clone();
        let mut script: Map =
            MemoryOptions::NAMES.iter().filter_map(|name| Some((*name, spec.remove(name)?))).collect();
        if scenario.models.memory_policy != MemoryPolicy::Digest {
            script.insert("memory_reserve_factor", 1.0);
        }
        if !scenario.node_options.cpu_monitor.is_empty() && !SECTION.iter().any(|name| spec.contains(name)) {
            spec.insert(SECTION[0], scenario.node_options.cpu_monitor.clone());
        }
        if let Some(pool) = &self.pool {
            spec.insert("pool", pool.as_str());
        }
        if !self.pools.is_empty() {
            spec.insert("pool_trees", self.pools.iter().map(|(t, _)| t.as_str()).collect::<Vec<_>>());
            let by_tree = self.pools.iter().map(|(t, p)| (t.as_str(), yson::map! {"pool" => p.as_str()}));
            spec.insert("scheduling_options_per_pool_tree", by_tree.collect::<Map>());
        }
        let tasks: Map = self.tasks.iter().map(|t| (t.name.as_str(), t.spec(&script))).collect();
        spec.insert("tasks", tasks);
        spec
    }
}

impl Task {
    /// The task that random numbers belong to, and the number of a job in it.
    pub fn origin(&self, cookie: u32) -> (&str, u64) {
        match &self.part {
            Some(part) => (&part.of, u64::from(part.jobs.get(cookie as usize).copied().unwrap_or(cookie))),
            None => (&self.name, u64::from(cookie)),
        }
    }

    /// Jobs that are there when the operation is submitted.
    pub fn at_once(&self) -> u64 {
        if self.after.is_empty() { self.arrived(Span::ZERO) } else { 0 }
    }

    /// Jobs that have arrived so long after the submission, if the task waits for no others.
    pub fn arrived(&self, after: Span) -> u64 {
        match self.explicit.last() {
            Some(last) if last.arrives > after => {
                self.explicit.partition_point(|job| job.arrives <= after) as u64
            }
            _ => self.job_count,
        }
    }

    /// When the next job arrives after that.
    pub fn next_arrival(&self, after: Span) -> Option<Span> {
        let first = self.explicit.partition_point(|job| job.arrives <= after);
        self.explicit.get(first).map(|job| job.arrives)
    }

    fn spec(&self, script: &Map) -> Map {
        let mut map = script.clone();
        map.insert("command", "simulated");
        let at_once = self.at_once();
        map.insert("job_count", at_once);
        if at_once < self.job_count {
            map.insert("expected_job_count", self.job_count);
        }
        map.insert("cpu_limit", self.cpu.as_f64());
        // A limit that is reserved as a whole: digests would reserve a hundredth more than they are taught.
        map.insert("memory_limit", self.part.as_ref().map_or(self.memory, |part| part.reserve));
        if self.gpu > 0 {
            map.insert("gpu_limit", self.gpu);
        }
        if let Some(bytes) = self.disk {
            map.insert("disk_request", yson::map! {"disk_space" => bytes});
        }
        if self.tmpfs_size > 0 {
            let volume = yson::map! {"path" => "tmpfs", "size" => self.tmpfs_size};
            map.insert("tmpfs_volumes", vec![Value::Map(volume)]);
        }
        if self.restart_completed_jobs {
            map.insert("restart_completed_jobs", true);
        }
        if self.interruptible {
            map.insert("interruption_signal", "SIGTERM");
            map.insert("restart_exit_code", 85i64);
        }
        if self.gang {
            map.insert("gang_options", Map::new());
        }
        map
    }
}

fn read(f: &mut Fields<'_>, line: u64) -> Result<Operation, FieldError> {
    let id = f.take_str("id").check("a name of 1 to 200 characters", |s| (1..=200).contains(&s.len()));
    let id = id.optional()?.map_or_else(|| line.to_string(), str::to_owned);
    const AT: std::ops::RangeInclusive<u64> = 0..=1_000_000_000_000_000;
    let at = Span::from_millis(f.take_u64("at").within(AT).required()?);
    let until = f.take_u64("until").within(AT).optional()?.map(Span::from_millis);
    if until.is_some_and(|until| until < at) {
        return Err(f.error("until", &format!("expected at least \"at\" ({})", at.as_millis())));
    }
    f.take_parsed("type", "\"vanilla\"", |s| (s == "vanilla").then_some(())).optional()?;
    let meta = f.take_map("meta").or(&Map::new())?.clone();
    let pool = f.take_str("pool").optional()?.map(str::to_owned);
    let mut pools = Vec::new();
    if let Some(map) = f.take_map("pools").optional()? {
        if pool.is_some() {
            return Err(f.error("pools", "it excludes \"pool\""));
        }
        for (tree, name) in map.iter() {
            let tree = String::from_utf8_lossy(tree).into_owned();
            let wrong = || FieldError::expected(format!("pools/{tree}"), "string", name);
            let name = name.as_str().ok_or_else(wrong)?;
            pools.push((tree, name.to_owned()));
        }
    }
    let spec = f.take_map("spec").or(&Map::new())?.clone();
    if spec.contains("tasks") {
        return Err(f.error("spec/tasks", "tasks are told beside \"spec\", not in it"));
    }
    let list = f.take_list("tasks").required()?;
    if list.is_empty() {
        return Err(f.error("tasks", "expected at least one task"));
    }
    let (mut tasks, mut after): (Vec<Task>, Vec<Vec<String>>) = Default::default();
    for (i, value) in list.iter().enumerate() {
        let path = f.path_of(&format!("tasks/{i}"));
        let map = value.as_map().ok_or_else(|| FieldError::expected(path.as_str(), "map", value))?;
        let mut fields = Fields::new(map, path);
        let names = fields.take_str_list("after").or(Vec::new())?;
        after.push(names.into_iter().map(str::to_owned).collect());
        let task = read_task(&mut fields)?;
        if tasks.iter().any(|t| t.name == task.name) {
            return Err(fields.error("name", &format!("{:?} is the name of another task", task.name)));
        }
        fields.finish()?;
        tasks.push(task);
    }
    super::after::resolve(&after, &mut tasks)?;
    for (i, row) in f.take_list("jobs").or(&[])?.iter().enumerate() {
        read_explicit(&format!("jobs/{i}"), row, &mut tasks)?;
    }
    for (i, task) in tasks.iter().enumerate().filter(|(_, task)| task.arrived(Span::ZERO) < task.job_count) {
        let wrong = |what: &str| Err(FieldError::new(format!("tasks/{i}"), what));
        if task.explicit.len() as u64 != task.job_count {
            return wrong("its jobs arrive one by one: all of them must stand in \"jobs\"");
        }
        if task.gang || task.restart_completed_jobs {
            return wrong("jobs of gangs and services do not arrive one by one");
        }
    }
    let running = read_running(f, at, &tasks)?;
    let user = f.take_str("user").required()?.to_owned();
    Ok(Operation { id, at, user, pool, pools, spec, meta, until, tasks, running })
}

fn read_running(f: &mut Fields<'_>, at: Span, tasks: &[Task]) -> Result<Vec<RunningJob>, FieldError> {
    let mut running: Vec<RunningJob> = Vec::new();
    for (i, row) in f.take_list("running").or(&[])?.iter().enumerate() {
        if at > Span::ZERO {
            return Err(f.error("running", &format!("only with \"at\" 0, found {}", at.as_millis())));
        }
        let path = f.path_of(&format!("running/{i}"));
        let map = row.as_map().ok_or_else(|| FieldError::expected(path.as_str(), "map", row))?;
        let mut job = Fields::new(map, path);
        let name = job.take_str("task").required()?.to_owned();
        let task = tasks.iter().position(|t| t.name == name);
        let task = task.ok_or_else(|| job.error("task", &format!("no such task {name:?}")))?;
        if !tasks[task].after.is_empty() {
            return Err(
                job.error("task", &format!("task {name:?} waits for others: its jobs cannot run yet"))
            );
        }
        let of_task = running.iter().filter(|r| r.task == task).count() as u64;
        if of_task == tasks[task].job_count {
            return Err(job.error("task", &format!("task {name:?} has only {of_task} jobs")));
        }
        running.push(RunningJob {
            task,
            node: job.take_str("node").required()?.to_owned(),
            tree: job.take_str("tree").optional()?.map(str::to_owned),
            ran: Span::from_millis(job.take_u64("ran_ms").within(0..=1_000_000_000_000).or(0)?),
            cpu: job.take_f64("cpu").within(0.0..=100_000.0).optional()?.map(Cpu::from_f64),
            memory: job.take_i64("memory").within(1..=16 << 40).optional()?,
        });
        job.finish()?;
    }
    Ok(running)
}

fn read_explicit(at: &str, row: &Value, tasks: &mut [Task]) -> Result<(), FieldError> {
    let expected = "[task, duration_ms, peak_memory_fraction, cpu] or [task, duration_ms, peak_memory_fraction, cpu, arrives_ms]";
    let wrong = || FieldError::expected(at, expected, row);
    let (name, numbers) = row.as_list().and_then(|list| list.split_first()).ok_or_else(wrong)?;
    let name = name.as_str().ok_or_else(wrong)?;
    let number = |value: &Value| value.as_f64().filter(|x| x.is_finite() && *x >= 0.0).ok_or_else(wrong);
    let (duration, peak, cpu, arrives) = match numbers {
        [duration, peak, cpu] => (duration, peak, cpu, 0.0),
        [duration, peak, cpu, arrives] => (duration, peak, cpu, number(arrives)?),
        _ => return Err(wrong()),
    };
    let job = Explicit {
        duration_ms: number(duration)?,
        peak: number(peak)?,
        cpu: number(cpu)?,
        arrives: Span::from_micros((arrives.min(1e15) * 1000.0) as u64),
    };
    let task = tasks.iter_mut().find(|t| t.name == name);
    let task = task.ok_or_else(|| FieldError::new(format!("{at}/0"), &format!("no such task {name:?}")))?;
    if task.explicit.len() as u64 == task.job_count {
        let what = format!("task {name:?} has only {} jobs", task.job_count);
        return Err(FieldError::new(at, &what));
    }
    if task.explicit.last().is_some_and(|before| before.arrives > job.arrives) {
        let what = format!("jobs of a task stand by arrival, the one before in {name:?} arrives later");
        return Err(FieldError::new(format!("{at}/4"), &what));
    }
    task.explicit.push(job);
    Ok(())
}

fn read_task(f: &mut Fields<'_>) -> Result<Task, FieldError> {
    let dist = |f: &mut Fields<'_>, name: &str| match f.take_value(name).optional()? {
        Some(value) => Dist::read(&f.path_of(name), value).map(Some),
        None => Ok(None),
    };
    // Production gives each job one slot and no network.
    f.take_u64("user_slots").within(1..=1).optional()?;
    f.take_u64("network").within(0..=0).optional()?;
    let memory_curve = read_memory_curve(f)?;
    let (proxy, proxy_estimate) = read_proxy(f)?;
    let disk = match f.take_value("disk").optional()? {
        None => None,
        Some(value) => match value.as_i64().filter(|bytes| *bytes >= 0) {
            Some(bytes) => Some(bytes),
            None => return Err(f.expected("disk", "a number of bytes", value)),
        },
    };
    let name = f.take_str("name").check("a name that is not empty", |s| !s.is_empty()).required()?.to_owned();
    let duration = dist(f, "duration")?.ok_or_else(|| {
        f.error("duration", "required, expected a number or a distribution of milliseconds")
    })?;
    Ok(Task {
        name,
        job_count: f.take_u64("job_count").within(1..=10_000_000).required()?,
        cpu: Cpu::from_f64(f.take_f64("cpu").within(0.0..=100_000.0).or(1.0)?),
        memory: f.take_i64("memory").within(1..=16 << 40).or(1 << 30)?,
        gpu: f.take_i64("gpu").within(0..=1024).or(0)?,
        disk,
        tmpfs_size: f.take_i64("tmpfs_size").within(0..=16 << 40).or(0)?,
        restart_completed_jobs: f.take_bool("restart_completed_jobs").or(false)?,
        duration,
        memory_usage: dist(f, "memory_usage")?.unwrap_or(Dist::Const(1.0)),
        memory_curve,
        proxy,
        proxy_estimate,
        cpu_usage: read_cpu_usage(f)?,
        interruptible: f.take_bool("interruptible").or(false)?,
        interrupt_time: dist(f, "interrupt_time")?.unwrap_or(Dist::Const(0.0)),
        fail_probability: f.take_f64("fail_probability").within(0.0..=1.0).or(0.0)?,
        fail_after: dist(f, "fail_after")?,
        gang: f.take_bool("gang").or(false)?,
        explicit: Vec::new(),
        after: Vec::new(),
        part: None,
    })
}

fn read_memory_curve(f: &mut Fields<'_>) -> Result<MemoryCurve, FieldError> {
    let Some(value) = f.take_value("memory_curve").optional()? else { return Ok(MemoryCurve::Peak) };
    let expected = "\"peak\", \"ramp\", or pairs [part of the duration, part of the peak] from 0 to 1, ascending in time";
    let wrong = || f.expected("memory_curve", expected, value);
    match value.as_str() {
        Some("peak") => return Ok(MemoryCurve::Peak),
        Some("ramp") => return Ok(MemoryCurve::Ramp),
        Some(_) => return Err(wrong()),
        None => {}
    }
    let pair = |v: &Value| match v.as_list()? {
        [at, part] => Some((at.as_f64()?, part.as_f64()?)),
        _ => None,
    };
    let points: Option<Vec<_>> = value.as_list().ok_or_else(wrong)?.iter().map(pair).collect();
    let points = points.ok_or_else(wrong)?;
    let within = |p: &(f64, f64)| (0.0..=1.0).contains(&p.0) && (0.0..=1.0).contains(&p.1);
    if points.is_empty() || !points.iter().all(within) || !points.windows(2).all(|w| w[0].0 < w[1].0) {
        return Err(wrong());
    }
    Ok(MemoryCurve::Points(points))
}

/// `DIST`, or `{"estimate": bytes, "usage": DIST}`.
fn read_proxy(f: &mut Fields<'_>) -> Result<(Option<Dist>, Option<i64>), FieldError> {
    let Some(value) = f.take_value("job_proxy_memory").optional()? else { return Ok((None, None)) };
    let at = f.path_of("job_proxy_memory");
    let map = match value.as_map().filter(|map| map.contains("usage") || map.contains("estimate")) {
        Some(map) => map,
        None => return Dist::read(&at, value).map(|dist| (Some(dist), None)),
    };
    let mut inner = Fields::new(map, at.as_str());
    let estimate = inner.take_i64("estimate").within(0..=16 << 40).optional()?;
    let usage = inner.take_value("usage").optional()?;
    inner.finish()?;
    let usage = usage.map(|usage| Dist::read(&format!("{at}/usage"), usage)).transpose()?;
    Ok((usage, estimate))
}

fn read_cpu_usage(f: &mut Fields<'_>) -> Result<Option<CpuUsage>, FieldError> {
    let Some(value) = f.take_value("cpu_usage").optional()? else { return Ok(None) };
    let at = f.path_of("cpu_usage");
    if let Some(curve) = value.get("curve") {
        let mut inner = Fields::new(value.as_map().unwrap_or(Map::EMPTY), at.as_str());
        inner.ignore("curve");
        inner.finish()?;
        return Ok(Some(CpuUsage::Curve(Arc::new(Curve::read(&format!("{at}/curve"), curve)?))));
    }
    if value.get("curves").is_some() {
        let mut inner = Fields::new(value.as_map().unwrap_or(Map::EMPTY), at);
        let file = inner.take_str("curves").required()?.to_owned();
        let key = inner.take_str("key").or("cycle")?.to_owned();
        inner.finish()?;
        return Ok(Some(CpuUsage::Named { file, key }));
    }
    Dist::read(&at, value).map(|dist| Some(CpuUsage::Even(dist)))
}
