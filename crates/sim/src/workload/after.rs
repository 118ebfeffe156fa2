//! Tasks that wait for others (simulator.md 4, `after`).
//!
//! Tasks of a vanilla operation know nothing of each other. What production has is work that comes little by
//! little: a task with fewer jobs than it expects is not over, and its owner raises the number. So a task
//! that waits begins with no jobs, and its owner gives it all of them when the others are complete.

use super::Task;
use yson::fields::FieldError;

/// Fills in [`Task::after`] from the names of each task.
pub(super) fn resolve(names: &[Vec<String>], tasks: &mut [Task]) -> Result<(), FieldError> {
    let all: Vec<String> = tasks.iter().map(|task| task.name.clone()).collect();
    let mut waits: Vec<Vec<usize>> = Vec::with_capacity(tasks.len());
    for (i, of_task) in names.iter().enumerate() {
        let mut numbers = Vec::with_capacity(of_task.len());
        for (k, name) in of_task.iter().enumerate() {
            let wrong = |what: &str| Err(FieldError::new(format!("tasks/{i}/after/{k}"), what));
            let Some(number) = all.iter().position(|other| other == name) else {
                return wrong(&format!("no such task {name:?}, known are {all:?}"));
            };
            if tasks[number].restart_completed_jobs {
                return wrong(&format!("task {name:?} has \"restart_completed_jobs\": it is never complete"));
            }
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        if !numbers.is_empty() && tasks[i].restart_completed_jobs {
            let what = "a task with \"restart_completed_jobs\" cannot wait for others";
            return Err(FieldError::new(format!("tasks/{i}/after"), what));
        }
        waits.push(numbers);
    }
    if let Some(i) = waits.iter().position(|numbers| !numbers.is_empty())
        && let Some(gang) = tasks.iter().find(|task| task.gang)
    {
        let what = format!("tasks of an operation with gangs cannot wait: task {:?} is one", gang.name);
        return Err(FieldError::new(format!("tasks/{i}/after"), &what));
    }
    if let Some(circle) = circle(&waits) {
        let names: Vec<&str> = circle.iter().map(|number| all[*number].as_str()).collect();
        let what = format!("tasks wait for each other in a circle: {}", names.join(" after "));
        return Err(FieldError::new(format!("tasks/{}/after", circle[0]), &what));
    }
    tasks.iter_mut().zip(waits).for_each(|(task, after)| task.after = after);
    Ok(())
}

/// Tasks that wait for each other, the first one again at the end.
fn circle(waits: &[Vec<usize>]) -> Option<Vec<usize>> {
    /// 0: not seen, 1: on the way, 2: leads to no circle.
    fn visit(at: usize, waits: &[Vec<usize>], seen: &mut [u8], way: &mut Vec<usize>) -> Option<Vec<usize>> {
        if seen[at] == 1 {
            let from = way.iter().position(|number| *number == at).unwrap_or(0);
            return Some(way[from..].iter().copied().chain([at]).collect());
        }
        if seen[at] == 2 {
            return None;
        }
        seen[at] = 1;
        way.push(at);
        let found = waits[at].iter().find_map(|next| visit(*next, waits, seen, way));
        way.pop();
        seen[at] = 2;
        found
    }
    let mut seen = vec![0; waits.len()];
    (0..waits.len()).find_map(|start| visit(start, waits, &mut seen, &mut Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::circle;

    #[test]
    fn circles() {
        assert_eq!(circle(&[vec![], vec![0], vec![0, 1], vec![2, 1]]), None);
        assert_eq!(circle(&[vec![0]]), Some(vec![0, 0]));
        assert_eq!(circle(&[vec![], vec![0, 3], vec![1], vec![2]]), Some(vec![1, 3, 2, 1]));
    }
}
