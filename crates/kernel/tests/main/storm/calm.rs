//! The calm after: users and crashes rest, everything ends, and the sums are right.

use super::*;

impl Storm {
    /// KERNEL-3: everybody comes back, nothing more goes wrong.
    pub(super) fn rest(&mut self) {
        self.say("--- calm".into());
        self.world.hold = false;
        if !self.world.is_up() {
            self.world.restart();
        }
        self.world.settle();
        for name in NODES {
            if let Some(node) = self.world.nodes.get_mut(name) {
                node.slow = false;
            }
            self.world.connect(name);
        }
        self.reap();
        self.world.settle();
        for round in 0.. {
            self.listen();
            self.ask_again();
            let ids: Vec<OperationId> = self.wishes.iter().filter_map(|w| w.id).collect();
            for id in &ids {
                self.world.send("ann", None, Command::ResumeOperation { operation: OperationRef::Id(*id) });
            }
            for (node, job) in self.running() {
                self.done.insert(job);
                let outcome = JobOutcome::Completed { interrupted: None, restart_needed: false };
                self.world.end_job(&node, job, outcome);
            }
            self.world.pass(Span::from_secs(1));
            self.check();
            let archived = |id: &OperationId| {
                self.world.durable.contains_key(&(Table::OperationArchive, id.0.to_bytes().to_vec()))
            };
            if ids.len() == self.wishes.len() && ids.iter().all(archived) {
                break;
            }
            if round == 200 {
                let open: Vec<&OperationId> = ids.iter().filter(|id| !archived(id)).collect();
                let line = format!(
                    "KERNEL-3: never end: {open:?}, {} never answered",
                    self.wishes.len() - ids.len()
                );
                return self.world.violations.push(line);
            }
            if !self.world.violations.is_empty() {
                return;
            }
        }
        self.world.pass(Span::from_secs(10));
        self.check();
        self.check_calm();
        self.check_mutations();
        self.check_stderrs();
        for wish in 0..self.wishes.len() {
            self.check_counts(wish);
        }
        self.world.stop();
        self.world.restart();
        self.check();
        self.world.check_log();
    }

    fn check_calm(&mut self) {
        for node in self.world.nodes.values() {
            if !node.running.is_empty() || !node.finished.is_empty() {
                let line = format!(
                    "KERNEL-3: {} holds {:?} {:?}",
                    node.name,
                    node.running.keys(),
                    node.finished.keys()
                );
                self.world.violations.push(line);
            }
        }
        for (path, what) in [
            ("//sys/scheduler/orchid/scheduler/cell/resource_usage", "is in use"),
            ("//sys/cluster_nodes/n1/orchid/exec_node/job_controller/active_jobs", "is remembered on n1"),
            ("//sys/cluster_nodes/n2/orchid/exec_node/job_controller/active_jobs", "is remembered on n2"),
            ("//sys/cluster_nodes/n3/orchid/exec_node/job_controller/active_jobs", "is remembered on n3"),
            ("//sys/scheduler/orchid/scheduler/operations", "is unfinished"),
        ] {
            let path = YPath::parse(path.as_bytes()).expect("a path");
            let command = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
            let value = match self.world.ask("root", command) {
                Some(Ok(Body::Value(value))) => value,
                other => panic!("the kernel does not answer: {other:?}"),
            };
            let empty = value.as_map().is_some_and(|m| m.iter().all(|(_, v)| v.as_f64() == Some(0.0)));
            if !empty {
                self.world.violations.push(format!("KERNEL-3: {value:?} {what}"));
            }
        }
    }

    /// Records of an operation's finished jobs.
    pub(super) fn ends_of(&self, id: OperationId) -> Vec<Map> {
        let prefix = id.0.to_bytes().to_vec();
        let records = self.world.durable.range((Table::JobArchive, prefix.clone())..);
        let of_operation =
            records.take_while(|((table, key), _)| *table == Table::JobArchive && key.starts_with(&prefix));
        of_operation.map(|(_, record)| kernel::archived_job(record).unwrap_or_default()).collect()
    }

    fn check_stderrs(&mut self) {
        for ((table, key), record) in &self.world.durable {
            let told = match table {
                Table::OwedEnds => Some("an end is owed still".to_owned()),
                Table::JobArchive => {
                    let job = kernel::archived_job(record).unwrap_or_default();
                    let told = job.get("stderr_size").and_then(Value::as_u64).unwrap_or(0) as usize;
                    let stderr = self.world.durable.get(&(Table::Stderr, key.clone()));
                    let kept = stderr.map_or(0, |stderr| stderr.len() - 1);
                    (told != kept).then(|| format!("{told} bytes of stderr are told of, {kept} are kept"))
                }
                _ => None,
            };
            self.world.violations.extend(told.map(|told| format!("KERNEL-8: job {key:02x?}: {told}")));
        }
    }

    /// A repeated request is answered and not executed, after a crash too.
    fn check_mutations(&mut self) {
        let operations =
            self.world.durable.keys().filter(|(table, _)| *table == Table::OperationIndex).count();
        let answers_are_kept = self.world.now.since(self.began) < Span::from_secs(600);
        if operations != self.wishes.len() && answers_are_kept {
            let line = format!("KERNEL-2: {} wishes have made {operations} operations", self.wishes.len());
            self.world.violations.push(line);
        }
    }

    /// Each unit of a completed operation was done once, and the operation says so.
    fn check_counts(&mut self, number: usize) {
        let wish = &self.wishes[number];
        let Some(id) = wish.id else { return };
        let prefix = id.0.to_bytes().to_vec();
        let record = &self.world.durable[&(Table::OperationArchive, prefix)];
        let operation = yson::parse(record).expect("records are YSON");
        let state = operation.get("state").and_then(Value::as_str).unwrap_or_default();
        let jobs = operation.get("brief_progress").and_then(|p| p.get("jobs")).cloned().unwrap_or_default();
        let count = |key: &str| jobs.get(key).and_then(Value::as_i64).unwrap_or(-1);
        if state == "completed" {
            self.seen.completed += 1
        } else {
            self.seen.failed += 1
        }
        let mut failed = 0;
        for job in self.ends_of(id) {
            failed += i64::from(job.get("state").and_then(Value::as_str) == Some("failed"));
        }
        if count("failed") != failed {
            let line = format!("KERNEL-2: operation {id} shows {jobs:?}, {failed} jobs have failed");
            self.world.violations.push(line);
        }
        // The units of a gang are done again when one of its jobs is lost.
        let wish = &self.wishes[number];
        if wish.spec.get("gang").and_then(Value::as_bool) == Some(true) {
            return;
        }
        let mut units: BTreeMap<i64, i64> = BTreeMap::new();
        for job in self.ends_of(id) {
            if job.get("state").and_then(Value::as_str) == Some("completed") {
                let cookie = job.get("job_cookie").and_then(Value::as_i64).unwrap_or(-1);
                *units.entry(cookie).or_default() += 1;
            }
        }
        let twice = units.values().any(|n| *n != 1);
        if twice || count("completed") != units.len() as i64 {
            let line =
                format!("KERNEL-2: operation {id} shows {jobs:?}, its units were completed {units:?} times");
            self.world.violations.push(line);
        }
        let by_user =
            operation.get("alerts").and_then(|a| a.get("operation_completed_by_user_request")).is_some();
        if state == "completed" && !by_user && count("completed") != count("total") {
            self.world.violations.push(format!("KERNEL-2: operation {id} completed with {jobs:?}"));
        }
    }
}
