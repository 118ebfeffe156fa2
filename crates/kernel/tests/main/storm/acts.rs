//! What may happen: one step of a script.

use super::*;

impl Storm {
    pub(super) fn step(&mut self) {
        if !self.world.is_up() && self.random.chance(40) {
            self.say("restart".into());
            self.world.restart();
        }
        match self.random.below(100) {
            0..=9 => self.wish(),
            10..=13 => self.ask_again(),
            14..=19 => self.ambush(),
            20..=37 => self.end_a_job(),
            38..=45 => self.act_on_an_operation(),
            46..=48 => self.act_on_a_job(),
            49..=53 => self.look_at_an_operation(),
            54..=60 => self.lose_a_connection(),
            61..=70 => self.connect_a_node(),
            71..=72 => self.reboot_a_node(),
            73..=74 => self.slow_down_a_node(),
            75..=78 => self.reap(),
            79..=81 => self.die(),
            82..=85 => {
                let count = self.random.below(3);
                self.say(format!("commit {count}"));
                self.world.commit(count);
            }
            86..=89 => {
                self.world.hold = !self.world.hold;
                self.say(format!("hold commits: {}", self.world.hold));
            }
            90..=91 => {
                let name = NODES[self.random.below(NODES.len())];
                let heartbeat = self.world.nodes[name].heartbeat();
                self.say(format!("{name} heartbeats"));
                self.world.say(name, NodeMessage::Heartbeat(heartbeat));
            }
            _ => {
                let spans = [1, 5, 100, 1_000, 1_000, 5_000, 20_000, 35_000, 70_000];
                let span = Span::from_millis(spans[self.random.below(spans.len())]);
                self.say(format!("{span} pass"));
                self.world.pass(span);
            }
        }
        // Several things may come together in one turn.
        if self.random.chance(75) {
            if self.world.is_up() && self.random.chance(12) {
                let fuse = self.random.below(14);
                self.say(format!("the server dies after {fuse} effects"));
                self.world.fuse = Some(fuse);
            }
            if self.random.chance(50) {
                self.world.turn()
            } else {
                self.world.settle()
            }
            if self.world.fuse.is_none() && !self.world.is_up() {
                self.seen.crashes += 1;
                self.say("the server is dead".into());
            }
            self.world.fuse = None;
        }
        self.listen();
    }

    fn wish(&mut self) {
        let gang = self.random.chance(10);
        let jobs = 1 + self.random.below(4);
        let mut task = yson::map! { "command" => "true", "job_count" => jobs, "cpu_limit" => 1.0 };
        if gang {
            task.insert("gang_options", Map::new());
        }
        // Its jobs follow each other in their places; gangs do not heed it.
        let stays = self.random.chance(3);
        let spec = yson::map! {
            "allocation" => yson::map! { "enable_multiple_jobs" => stays },
            "pool" => POOLS[self.random.below(POOLS.len())],
            "max_failed_job_count" => 1 + self.random.below(4),
            "gang" => gang,
            "tasks" => yson::map! { "t" => task },
        };
        let number = self.wishes.len() as u32;
        self.say(format!("wish {number}: {jobs} jobs, gang: {gang}, stays: {stays}"));
        let mutation_id = Guid([number + 1, 0, 0, 0]);
        self.wishes.push(Wish { mutation_id, spec, request: None, id: None, ended: false });
        self.request(number as usize);
    }

    fn request(&mut self, number: usize) {
        let wish = &mut self.wishes[number];
        let command =
            Command::StartOperation { operation_type: OperationType::Vanilla, spec: wish.spec.clone() };
        wish.request = Some(self.world.send("ann", Some(wish.mutation_id), command));
    }

    /// A client without an answer repeats its request.
    pub(super) fn ask_again(&mut self) {
        if !self.world.is_up() {
            return;
        }
        for number in 0..self.wishes.len() {
            if self.wishes[number].id.is_none() {
                self.say(format!("wish {number} is sent again"));
                self.request(number);
            }
        }
    }

    pub(super) fn running(&self) -> Vec<(String, JobId)> {
        let of_node = |n: &Node| n.running.keys().map(|id| (n.name.clone(), *id)).collect::<Vec<_>>();
        self.world.nodes.values().flat_map(of_node).collect()
    }

    fn end_a_job(&mut self) {
        let running = self.running();
        let Some((node, job)) = self.random.pick(&running).cloned() else { return };
        let outcome = match self.random.below(6) {
            0 => JobOutcome::Failed { error: Failure::coded(1205, "User job failed") },
            _ => JobOutcome::Completed { interrupted: None, restart_needed: false },
        };
        if matches!(outcome, JobOutcome::Completed { .. }) {
            self.done.insert(job);
        }
        self.say(format!("job {job} on {node} ends: {outcome:?}"));
        self.world.end_job(&node, job, outcome);
        if self.random.chance(20) {
            self.seen.repeats += 1;
            let ends = self.world.nodes[&node]
                .finished
                .values()
                .map(|k| JobEvent::Finished(Box::new(k.report.clone())))
                .collect();
            self.world.say(&node, NodeMessage::Jobs(ends));
        }
    }

    fn an_operation(&mut self) -> Option<OperationId> {
        let ids: Vec<OperationId> = self.wishes.iter().filter_map(|w| w.id).collect();
        self.random.pick(&ids).copied()
    }

    fn act_on_an_operation(&mut self) {
        let Some(id) = self.an_operation() else { return };
        let operation = OperationRef::Id(id);
        let command = match self.random.below(12) {
            0 => Command::AbortOperation { operation, message: None },
            1 => Command::CompleteOperation { operation },
            2..=4 => {
                let abort_running_jobs = self.random.chance(50);
                if abort_running_jobs {
                    self.loose.insert(id);
                }
                Command::SuspendOperation { operation, abort_running_jobs, reason: None }
            }
            5..=8 => Command::ResumeOperation { operation },
            9..=10 => {
                let parameters = yson::map! {
                    "pool" => POOLS[self.random.below(POOLS.len())],
                    "weight" => 1.0 + self.random.below(3) as f64,
                };
                Command::UpdateOperationParameters { operation, parameters }
            }
            _ => {
                let count = 1 + self.random.below(5);
                let tasks = yson::map! { "t" => yson::map! { "job_count" => count } };
                Command::UpdateOperationParameters { operation, parameters: yson::map! { "tasks" => tasks } }
            }
        };
        self.say(format!("{command:?}"));
        self.world.send("ann", None, command);
    }

    fn act_on_a_job(&mut self) {
        let running = self.running();
        let Some((_, job_id)) = self.random.pick(&running).cloned() else { return };
        let command = match self.random.below(3) {
            0 => {
                self.done.insert(job_id);
                Command::AbandonJob { operation: None, job_id }
            }
            _ => Command::AbortJob { operation: None, job_id, interrupt_timeout: None },
        };
        self.say(format!("{command:?}"));
        self.world.send("ann", None, command);
    }

    fn look_at_an_operation(&mut self) {
        let Some(id) = self.an_operation() else { return };
        let command = Command::GetOperation { operation: OperationRef::Id(id), attributes: None };
        let request = self.world.send("ann", None, command);
        self.reads.insert(request, id);
    }

    fn lose_a_connection(&mut self) {
        let name = NODES[self.random.below(NODES.len())];
        self.say(format!("{name} is away"));
        self.world.disconnect(name);
    }

    fn connect_a_node(&mut self) {
        let name = NODES[self.random.below(NODES.len())];
        if self.world.nodes[name].key.is_none() || self.random.chance(10) {
            self.say(format!("{name} connects"));
            self.world.connect(name);
        }
    }

    fn reboot_a_node(&mut self) {
        let name = NODES[self.random.below(NODES.len())];
        self.say(format!("{name} reboots"));
        self.world.disconnect(name);
        if let Some(node) = self.world.nodes.get_mut(name) {
            node.running.clear();
            node.finished.clear();
            node.dying.clear();
            node.incarnation += 1;
        }
    }

    fn slow_down_a_node(&mut self) {
        let name = NODES[self.random.below(NODES.len())];
        self.say(format!("{name} kills slowly"));
        if let Some(node) = self.world.nodes.get_mut(name) {
            node.slow = true;
        }
    }

    pub(super) fn reap(&mut self) {
        let now = self.world.now;
        for name in NODES {
            let Some(node) = self.world.nodes.get_mut(name) else { continue };
            let dead: Vec<JobEvent> =
                node.reap(now).into_iter().map(Box::new).map(JobEvent::Finished).collect();
            if !dead.is_empty() {
                self.say(format!("{name}: {} jobs have died", dead.len()));
                self.world.say(name, NodeMessage::Jobs(dead));
            }
        }
    }

    pub(super) fn die(&mut self) {
        if !self.world.is_up() {
            return;
        }
        if self.random.chance(20) {
            self.say("the server stops".into());
            self.world.stop();
            return;
        }
        let landed = self.random.below(self.world.commits.len() + 1);
        self.say(format!("the server dies, {landed} commits have landed"));
        self.world.crash(landed);
        self.seen.crashes += 1;
    }

    /// The server dies right after something has begun and before it is written down, and nodes come
    /// back in any order: chance alone would seldom find these.
    fn ambush(&mut self) {
        if !self.world.is_up() {
            return;
        }
        self.say("ambush".into());
        self.world.hold = true;
        for _ in 0..=self.random.below(2) {
            match self.random.below(5) {
                0 => self.wish(),
                1 => self.end_a_job(),
                2 => self.connect_a_node(),
                _ => {
                    let Some(id) = self.an_operation() else { continue };
                    let command = Command::ResumeOperation { operation: OperationRef::Id(id) };
                    self.say(format!("{command:?}"));
                    self.world.send("ann", None, command);
                }
            }
        }
        if self.random.chance(70) {
            self.world.turn()
        } else {
            self.world.settle()
        }
        self.listen();
        self.check();
        self.die();
        self.listen();
        if !self.world.is_up() {
            self.say("restart".into());
            self.world.restart();
        }
        self.world.hold = false;
        for _ in 0..self.random.below(5) {
            if self.random.chance(70) {
                self.connect_a_node()
            } else {
                self.end_a_job()
            }
            self.world.settle();
            self.listen();
            self.check();
        }
    }

    /// Clients read their replies.
    pub(super) fn listen(&mut self) {
        for event in std::mem::take(&mut self.world.events) {
            let Event::Replied(request) = event else {
                if self.tell {
                    self.history.push(format!("    {}", brief(&event)));
                }
                continue;
            };
            let Some(reply) = self.world.replies.remove(&request) else { continue };
            if let Some(id) = self.reads.remove(&request) {
                match reply {
                    Ok(Body::ArchivedOperation { .. }) => {
                        self.wishes.iter_mut().filter(|w| w.id == Some(id)).for_each(|w| w.ended = true);
                    }
                    Ok(_) => {}
                    Err(failure) => {
                        self.world
                            .violations
                            .push(format!("KERNEL-2: operation {id} was acknowledged: {failure}"));
                    }
                }
                continue;
            }
            let Some(wish) = self.wishes.iter_mut().find(|w| w.request == Some(request)) else { continue };
            match reply {
                Ok(Body::Value(value)) => {
                    let id = value.get("operation_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
                    if wish.id.is_some() && wish.id != id {
                        self.world.violations.push("KERNEL-2: one mutation has two operations".into());
                    }
                    wish.id = id;
                    if wish.spec.get("gang").and_then(Value::as_bool) == Some(true) {
                        self.loose.extend(id);
                        self.gangs.extend(id);
                    }
                }
                other => self.world.violations.push(format!("an operation cannot start: {other:?}")),
            }
        }
        // What was on its way when the server died will never come.
        if !self.world.is_up() {
            self.seen.lost_replies += self.wishes.iter().filter(|w| w.id.is_none()).count();
            self.reads.clear();
        }
    }
}
