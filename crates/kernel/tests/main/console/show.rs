//! `show ...`: what is there, in lines.

use super::*;

impl Console {
    pub(super) fn show(&mut self, what: &str) {
        match what {
            "ops" => {
                for (name, id) in self.operations.clone() {
                    let line = match self
                        .attributes(id, &["state", "suspended", "brief_progress", "alerts", "result"])
                    {
                        Ok(map) => operation_line(&map),
                        Err(failure) => error_line(&failure),
                    };
                    self.say(format!("{name} {line}"));
                }
            }
            "events" => {
                for (name, id) in self.operations.clone() {
                    let events = self.attributes(id, &["events"]).unwrap_or_default();
                    let events = events.get("events").and_then(Value::as_list).unwrap_or_default().to_vec();
                    let states: Vec<&str> = events.iter().filter_map(|e| e.get("state")?.as_str()).collect();
                    self.say(format!("{name} {}", states.join(" ")));
                }
            }
            "log" => {
                for event in self.world.log.clone() {
                    // Ids that nobody gave a name say nothing.
                    let hidden = ["time", "start_time", "finish_time", "allocation_id", "statistics", "spec"];
                    let hidden = hidden.iter().chain(&["alerts", "job_competition_id", "authenticated_user"]);
                    let hidden: Vec<&str> = hidden.copied().collect();
                    let shown = event
                        .into_iter()
                        .filter(|(k, _)| !hidden.iter().any(|h| h.as_bytes() == k.as_ref() as &[u8]));
                    let fields = shown.map(|(k, v)| format!("{}={v:?}", String::from_utf8_lossy(k.as_ref())));
                    self.say(fields.collect::<Vec<_>>().join(" "));
                }
                self.world.check_log();
            }
            "blobs" => {
                let blobs: Vec<u64> = self.world.kernel().blobs().collect();
                self.say(format!("{blobs:?}"));
            }
            "pools" => {
                let path = ypath("//sys/scheduler/orchid/scheduler/pool_trees/physical/pools");
                let fields =
                    ["operation_count", "running_operation_count", "resource_usage", "fair_share_ratio"];
                let fields = Some(fields.iter().map(|f| (*f).to_owned()).collect());
                let command = Command::Get { path, attributes: Vec::new(), max_size: None, fields };
                let Some(Ok(Body::Value(pools))) = self.world.ask("root", command) else {
                    panic!("no pools")
                };
                for (name, pool) in pools.as_map().unwrap_or(Map::EMPTY).iter() {
                    let number = |key: &str| pool.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
                    let cpu = pool.get("resource_usage").and_then(|u| u.get("cpu")).and_then(Value::as_f64);
                    self.say(format!(
                        "{} operations={} running={} cpu={} share={:.2}",
                        String::from_utf8_lossy(name),
                        number("operation_count"),
                        number("running_operation_count"),
                        cpu.unwrap_or(f64::NAN),
                        number("fair_share_ratio"),
                    ));
                }
            }
            "jobs" => {
                let mut lines: Vec<String> = Vec::new();
                for ((_, key), record) in self.world.ahead.range(jobs_of_all()) {
                    let job = kernel::archived_job(record).expect("a record of a job");
                    assert_eq!(key.len(), 32, "operation and job");
                    let text =
                        |key: &str| job.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                    let id = self.named(&text("id"));
                    let reason = text("abort_reason");
                    lines.push(
                        format!("{id} {} {} {reason}", text("state"), text("address")).trim_end().to_owned(),
                    );
                }
                lines.sort();
                lines.into_iter().for_each(|line| self.say(line));
            }
            "nodes" => {
                let command = Command::Get {
                    path: ypath("//sys/cluster_nodes"),
                    attributes: vec!["state".into()],
                    max_size: None,
                    fields: None,
                };
                let all = match self.world.is_up().then(|| self.world.ask("root", command)) {
                    Some(Some(Ok(Body::Value(all)))) => all,
                    _ => Value::Entity,
                };
                for node in self.world.nodes.values() {
                    let state =
                        all.get(&node.name).and_then(|n| n.attribute("state")).and_then(Value::as_str);
                    let mut line = format!("{} {}", node.name, state.unwrap_or("unknown"));
                    for job in node.running.keys() {
                        let _ = write!(line, " {job}");
                    }
                    for job in node.finished.keys() {
                        let _ = write!(line, " ({job})");
                    }
                    let line = self.named(&line);
                    let mut words: Vec<&str> = line.split(' ').collect();
                    words[2..].sort_unstable();
                    let _ = writeln!(self.transcript, "  {}", words.join(" "));
                }
            }
            _ => panic!("show: unknown {what}"),
        }
        // What was asked for the table is not news.
        self.world.events.retain(|e| !matches!(e, Event::Replied(_)));
    }
}

/// All records of finished jobs.
fn jobs_of_all() -> std::ops::Range<(Table, Vec<u8>)> {
    (Table::JobArchive, Vec::new())..(Table::JobArchive, vec![0xff; 33])
}

fn operation_line(map: &Map) -> String {
    let mut line = map.get("state").and_then(Value::as_str).unwrap_or("?").to_owned();
    let jobs = map.get("brief_progress").and_then(|p| p.get("jobs"));
    for key in ["total", "running", "completed", "pending", "failed", "aborted", "lost"] {
        let count = jobs.and_then(|j| j.get(key)).and_then(Value::as_i64);
        match (key, count) {
            ("lost", Some(0)) => {}
            (_, Some(count)) => drop(write!(line, " {key}={count}")),
            (_, None) => {}
        }
    }
    if map.get("suspended").and_then(Value::as_bool) == Some(true) {
        line.push_str(" suspended");
    }
    for name in map.get("alerts").and_then(Value::as_map).unwrap_or(Map::EMPTY).key_strings() {
        let _ = write!(line, " alert:{name}");
    }
    if let Some(error) = map.get("result").and_then(|r| r.get("error")) {
        let failure = Failure::from_value(error);
        if failure.code != 0 {
            let _ = write!(line, " {}", error_line(&failure));
        }
    }
    line
}
