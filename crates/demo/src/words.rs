//! What the demo tells the user before and after the replay.

use crate::cluster::ClusterConfig;
use crate::leftovers::Found;
use crate::plan::Plan;

/// What is going to happen, at what scale.
pub(crate) fn introduce(plan: &Plan, seconds: u64, config: &ClusterConfig) {
    let shape = &config.shape;
    eprintln!(
        "Six hours of the Czech national grid (MetaCentrum, Parallel Workloads Archive) in about {seconds} seconds:\n\
         {} operations with {} jobs, each a real process, on {} nodes of {} cores.\n\
         Arrivals are {:.0} times faster than in the log, run times {:.0} times shorter, memory {:.1} times less;\n\
         a core of the cluster is {:.0} % of a core of this machine. Data: {}",
        plan.operations.len(),
        plan.job_count(),
        shape.nodes,
        shape.cores_per_node,
        plan.arrival_scale,
        plan.run_scale,
        plan.memory_scale,
        plan.cpu * 100.0,
        config.directory.display()
    );
}

/// What is left, and what there was while jobs ran.
pub(crate) fn report_leftovers(left: &Found, during: Option<&Found>) {
    match during {
        Some(during) if !during.is_empty() => {
            println!("Left behind: {} (while it ran: {}).", left.counts(), during.counts());
        }
        _ => println!("Left behind: {}.", left.counts()),
    }
    left.lines().for_each(|line| println!("{line}"));
}

/// How to go on by hand.
pub(crate) fn farewell(config: &ClusterConfig) {
    let arguments: Vec<String> =
        config.arguments("127.0.0.1:8000").iter().map(|argument| quoted(argument)).collect();
    println!(
        "\nThe same cluster again, by hand, with everything that happened in it:\n  {} {}\n\
         and in another terminal:\n  \
         millpond top\n  \
         millpond pool tree\n  \
         millpond op list\n  \
         YT_PROXY=127.0.0.1:8000 yt list-operations --limit 5\n\
         Its data is in {}; remove it with:\n  rm -r {}",
        quoted(&config.program.display().to_string()),
        arguments.join(" "),
        config.directory.display(),
        quoted(&config.directory.display().to_string()),
    );
}

/// As a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        for (word, expected) in [
            ("cpu=8,memory=1GiB", "cpu=8,memory=1GiB"),
            ("/a b/c", "'/a b/c'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
