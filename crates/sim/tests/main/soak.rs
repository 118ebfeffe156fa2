//! Everything goes wrong, many times over.

/// Stories of this many seeds; a release build has time for more (`make soak` has all of it).
const SEEDS: u64 = if cfg!(debug_assertions) { 20 } else { 2_000 };

#[test]
fn nothing_is_lost_and_nothing_is_done_twice() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut jobs, mut preempted, mut lost) = (0, 0, 0);
    for seed in 0..SEEDS {
        let story = sim::soak::play(seed, folder.path()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let violations = &story.violations;
        assert!(
            violations.is_empty(),
            "{}\n{}\nagain: millpond sim faults --seed {seed}",
            story.log,
            violations.iter().take(10).map(String::as_str).collect::<Vec<_>>().join("\n"),
        );
        let figure = |path| crate::desk::figure(&story, path) as u64;
        jobs += figure("cluster/counts/jobs_completed");
        preempted += figure("cluster/counts/jobs_preempted");
        lost += figure("cluster/waste/jobs_lost_with_nodes");
    }
    // A storm in which nothing happens proves nothing.
    assert!(jobs > 20 * SEEDS && preempted > 0 && lost > SEEDS, "{jobs} {preempted} {lost}");
}

#[test]
fn a_story_is_the_same_each_time() {
    let folders = [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
    let logs = folders.map(|folder| sim::soak::play(7, folder.path()).unwrap_or_else(|e| panic!("{e}")).log);
    assert!(logs[0].lines().count() > 50);
    assert!(logs[0] == logs[1]);
}
