//! Reserves by somebody who knows the peaks before (`models.memory_policy`: `oracle`): the best that any
//! digest could come to, for comparison.
//!
//! Production reserves the same for all jobs of a task that have not failed. So a task is cut into tasks of
//! jobs with nearly the same peak, each with its largest peak as its limit, all of it reserved. Random numbers
//! stay those of the whole task: its jobs last and use what they do without an oracle.

use super::{Operation, Part, Task};
use crate::random::{Draw, Kind, name_hash};
use std::collections::BTreeMap;

/// Peaks of a part differ by so much at most.
const NEARLY: f64 = 0.02;
/// Peaks below this part of the limit are one: hardly anything is reserved for them anyway.
const LEAST: f64 = 1e-4;

/// The operation with the tasks that an oracle wants.
pub(crate) fn known_before(mut operation: Operation, seed: u64) -> Operation {
    let whole: Vec<Task> = std::mem::take(&mut operation.tasks);
    // Jobs that run already, and gangs, have their places in whole tasks.
    let stays = |task: &Task| task.gang || !operation.running.is_empty();
    let mut numbers: Vec<Vec<usize>> = Vec::with_capacity(whole.len());
    let mut tasks = Vec::new();
    for task in &whole {
        let hash = name_hash(&format!("{}/{}", operation.id, task.name));
        let parts = parts(task, seed, hash, stays(task));
        numbers.push((tasks.len()..tasks.len() + parts.len()).collect());
        tasks.extend(parts);
    }
    // Who waits for a task waits for all its parts.
    for task in &mut tasks {
        task.after = task.after.iter().flat_map(|number| numbers[*number].iter().copied()).collect();
    }
    operation.tasks = tasks;
    operation
}

fn parts(task: &Task, seed: u64, hash: u64, whole: bool) -> Vec<Task> {
    let peak = |job: u32| match task.explicit.get(job as usize) {
        Some(explicit) => explicit.peak,
        None => {
            let index = u64::from(job);
            task.memory_usage.draw(&mut Draw::new(seed, Kind::Memory, hash, index), index)
        }
    };
    // Above the limit a job fails, however much is reserved for it.
    let peak = |job: u32| peak(job).clamp(LEAST, 1.0);
    let mut classes: BTreeMap<i64, (f64, Vec<u32>)> = BTreeMap::new();
    for job in 0..task.job_count as u32 {
        let of_job = peak(job);
        let class = if whole { 0 } else { (of_job.ln() / NEARLY.ln_1p()).ceil() as i64 };
        let (most, jobs) = classes.entry(class).or_default();
        *most = most.max(of_job);
        jobs.push(job);
    }
    let only = classes.len() == 1;
    let make = |(number, (most, jobs)): (usize, (f64, Vec<u32>))| {
        let mut part = task.clone();
        if !only {
            part.name = format!("{}~{}", task.name, number + 1);
        }
        part.job_count = jobs.len() as u64;
        part.explicit = jobs.iter().filter_map(|job| task.explicit.get(*job as usize).copied()).collect();
        let reserve = ((most * task.memory as f64).ceil() as i64).max(task.tmpfs_size).max(1);
        part.part = Some(Part { of: task.name.clone(), jobs, reserve });
        part
    };
    classes.into_values().enumerate().map(make).collect()
}
