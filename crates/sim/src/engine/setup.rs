//! The beginning: trees, pools, options, volumes and nodes, by the product's own commands.

use super::node::Counts;
use super::*;
use crate::random::{Draw, Kind, name_hash};
use crate::scenario::EventKind;
use kernel::Config;
use nodecore::Settings;
use vocab::{RESOURCES, Volume};
use yson::ypath::YPath;
use yson::{Map, Value};

/// Big workloads have bigger operations than production allows by default.
const MAX_TOTAL_JOB_COUNT: i64 = 10_000_000;

impl<'a> Engine<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        sink: Sink,
        beside: Beside,
        options: Options,
    ) -> Result<Engine<'a>, SimError> {
        let workload = Workload::open(&scenario.workload, &scenario.inline, scenario.proxy_estimate())?;
        let now = scenario.start;
        let mut config = Config::new("simulator:0", 0);
        config.node_identities = false;
        config.default_tree.clone_from(&scenario.default_tree);
        config.heartbeat_period = scenario.heartbeat_period;
        let is_restart = |e: &crate::scenario::Event| {
            matches!(e.kind, EventKind::SchedulerRestart { .. } | EventKind::ControllerRestart { .. })
        };
        let resumes = workload.begins_with_running_jobs();
        let restarts = resumes || options.faults.is_some() || scenario.events.iter().any(is_restart);
        let mut server = Server::start(config, now, restarts)?;
        server.measure(options.meter);
        let mut controller_config = scenario.controller_config.clone();
        let proxy = scenario.proxy_estimate();
        controller_config.entry_or_insert("footprint_memory", || proxy.into());
        let vanilla =
            controller_config.entry_or_insert("vanilla_operation_options", || Value::Map(Map::new()));
        if let Some(vanilla) = vanilla.as_map_mut() {
            vanilla.entry_or_insert("max_total_job_count", || MAX_TOTAL_JOB_COUNT.into());
            if scenario.models.memory_policy == MemoryPolicy::Oracle {
                // A task for each peak: as many as production can be told to take.
                vanilla.entry_or_insert("max_task_count", || 10_000i64.into());
            }
        }
        let end = options.until.map_or(scenario.duration, |until| until.min(scenario.duration));
        let mut engine = Engine {
            scenario,
            options,
            now,
            end: now + end,
            server,
            queue: Queue::default(),
            nodes: Vec::new(),
            keys: vec![None],
            physics: Physics::new(scenario, proxy),
            workload,
            by_name: BTreeMap::new(),
            owners: Vec::new(),
            inputs: Vec::new(),
            asked: BTreeMap::new(),
            ledger: Ledger::new(now),
            sink,
            pools: Pools::new(now, Span::ZERO),
            counts: Counts::default(),
            stages: BTreeMap::new(),
            fragments: fragments::Fragments::default(),
            updates: 0,
            refused: 0,
            refusals: Vec::new(),
            failures: BTreeMap::new(),
            violations: Vec::new(),
            log: String::new(),
            lost: Vec::new(),
            faults: options.faults.map(|seed| faults::Faults::new(seed, now)),
            snapshots: BTreeMap::new(),
            beside,
            answers: answers::Answers::default(),
        };
        engine.set_document(
            "//sys/scheduler/config",
            "/scheduler_config",
            scenario.scheduler_config.clone(),
        )?;
        engine.set_document("//sys/controller_agents/config", "/controller_config", controller_config)?;
        engine.create_pools()?;
        engine.set_volumes()?;
        engine.create_nodes();
        if resumes {
            engine.resume()?;
        }
        engine.pools = Pools::new(now, engine.patience());
        engine.plan_submission();
        for (number, event) in scenario.events.iter().enumerate() {
            let delay = if event.is_watched() { scenario.models.delays.watcher } else { Span::ZERO };
            engine.queue.push(now + event.at + delay, Due::Scenario(number));
        }
        engine.queue.push(now + scenario.output.pool_series_shift, Due::Sample);
        if options.faults.is_some() {
            engine.queue.push(now, Due::Fault);
        }
        Ok(engine)
    }

    /// A command that must be accepted, about a part of the scenario.
    fn must(&mut self, pointer: &str, command: Command) -> Result<(), SimError> {
        let (number, input) = self.server.request("root", None, command);
        self.asked.insert(number, Asked::Setup);
        self.inputs.push(input);
        let mut outcomes = Vec::new();
        self.server.turn(self.now, &mut self.inputs, &mut outcomes);
        for outcome in outcomes {
            match outcome {
                Outcome::Reply(request, Err(failure)) if request == number => {
                    let file = self.scenario.document.path.display().to_string();
                    let message = in_full(&failure);
                    return Err(SimError { file, line: None, pointer: pointer.to_owned(), message });
                }
                other => self.hear(other)?,
            }
        }
        self.asked.remove(&number);
        Ok(())
    }

    fn set_document(&mut self, path: &str, pointer: &str, document: Map) -> Result<(), SimError> {
        if document.is_empty() {
            return Ok(());
        }
        self.must(pointer, set(path, document.into()))
    }

    fn create_pools(&mut self) -> Result<(), SimError> {
        for tree in &self.scenario.trees {
            let pointer = format!("/pool_trees/trees/{}", tree.name);
            let at = format!("//sys/pool_trees/{}", yson::ypath::escape_literal(&tree.name));
            let config = format!("{pointer}/config");
            if tree.name == self.scenario.default_tree {
                self.must(&config, set(&format!("{at}/@config"), tree.config.clone().into()))?;
            } else {
                let attributes = yson::map! {"name" => tree.name.as_str(), "config" => tree.config.clone()};
                self.must(&config, create("scheduler_pool_tree", attributes))?;
            }
            for pool in &tree.pools {
                let attributes = pool.attributes.clone();
                let attributes = attributes.with("name", pool.name.as_str());
                let attributes = attributes.with("pool_tree", tree.name.as_str());
                let attributes = attributes.with_some("parent_name", pool.parent.as_deref());
                let place = format!("{pointer}/pools/{}", pool.name);
                self.must(&place, create("scheduler_pool", attributes))?;
            }
        }
        Ok(())
    }

    pub(super) fn set_volumes(&mut self) -> Result<(), SimError> {
        let total = self.scenario.total();
        for tree in &self.scenario.trees {
            for pool in &tree.pools {
                let Some(ratio) = pool.ratio_volume else { continue };
                let mut volume = Volume::default();
                for r in RESOURCES {
                    volume.set(r, total.get(r) * ratio);
                }
                let Some(kernel) = self.server.kernel_mut() else { continue };
                kernel.set_volume(&tree.name, &pool.name, volume).map_err(|failure| {
                    let file = self.scenario.document.path.display().to_string();
                    let pointer = format!("/initial_state/{}/pools/{}", tree.name, pool.name);
                    SimError { file, line: None, pointer, message: failure.message }
                })?;
            }
        }
        Ok(())
    }

    fn create_nodes(&mut self) {
        for (index, group) in self.scenario.groups.iter().enumerate() {
            for number in 0..group.count {
                let name = group.node_name(number);
                let period = group.heartbeat_period.unwrap_or(self.scenario.heartbeat_period);
                let phase = group.heartbeat_phases.get(number as usize).copied().unwrap_or_else(|| {
                    let mut draw = Draw::new(self.scenario.seed, Kind::NodePhase, name_hash(&name), 0);
                    Span::from_micros(draw.below(period.as_micros().max(1)))
                });
                let mut settings = Settings::new(name, group.limits);
                settings.incarnation = 1;
                settings.job_environment = "simulated".to_owned();
                settings.tags.clone_from(&group.tags);
                settings.tags.extend(group.rack_size.map(|size| format!("rack-{}", number / size)));
                settings.disk_capacity = group.disk;
                settings.first_heartbeat = Some(phase);
                settings.physical_memory = group.physical_memory;
                self.scenario.node_options.tell(&mut settings);
                let (at, capped) = (self.nodes.len() as u32, self.scenario.node_options.cpu_monitor_sets_cap);
                self.nodes.push(Node::new(
                    at,
                    index,
                    settings,
                    group.heartbeat_period,
                    self.scenario.models,
                    capped,
                ));
                self.nodes[at as usize].keeps_records = self.faults.is_some();
                self.connect(at);
                self.plan_failure(at);
            }
        }
    }

    /// What passes before somebody gets what is owed (simulator.md 9).
    fn patience(&self) -> Span {
        let Some(kernel) = self.server.kernel() else { return Span::ZERO };
        let config = kernel.scheduler().tree_config(&self.scenario.default_tree);
        let timeouts = config.map_or(Span::ZERO, |config| {
            config.fair_share_starvation_timeout + config.allocation_preemption_timeout
        });
        let usual = self.scenario.heartbeat_period;
        let periods = self.scenario.groups.iter().map(|group| group.heartbeat_period.unwrap_or(usual));
        let longest = periods.max().unwrap_or(usual);
        timeouts + longest + longest
    }
}

pub(super) fn set(path: &str, value: Value) -> Command {
    let path = YPath::parse(path.as_bytes()).expect("a path of our own");
    Command::Set { path, value, recursive: false, force: false }
}

pub(super) fn create(object_type: &str, attributes: Map) -> Command {
    Command::Create {
        object_type: object_type.to_owned(),
        path: None,
        attributes,
        recursive: false,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    }
}
