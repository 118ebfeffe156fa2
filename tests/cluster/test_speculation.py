"""Slow jobs get a copy, and the first of the two to complete counts (jobs-and-nodes.md 6.7)."""

from harness import cluster as make_cluster, wait_for

# Each run of the unit waits for a file with its own number.
JOB = "while [ ! -e {}/go-$YT_JOB_INDEX ]; do sleep 0.2; done; echo run $YT_JOB_INDEX >&2"


def start(cluster, pool, shared):
    return cluster.start_vanilla(JOB.format(shared), pool=pool, enable_speculative_jobs=True,
                                 spec={"job_speculation_timeout": 1000})


def race(cluster, operation):
    """Ids of the slow job and its copy, once both run."""
    jobs = wait_for(lambda: runs if len(runs := cluster.jobs(operation, state="running")) == 2 else None,
                    what="a slow job and its copy")
    original, copy = [job["id"] for job in sorted(jobs, key=lambda job: job["start_time"])]
    assert {job["job_competition_id"] for job in jobs} == {original}
    assert all(job["has_competitors"] for job in jobs)
    assert len({job["job_cookie"] for job in jobs}) == 1
    return original, copy


def ends(cluster, operation):
    return {job["id"]: (job["state"], job.get("abort_reason")) for job in cluster.jobs(operation, with_competitors=True)}


def copies(cluster, operation):
    [task] = cluster.operation(operation, "progress")["progress"]["tasks"]
    counter = task["speculative_job_counter"]
    return counter["running"], counter["completed"]["total"], counter["aborted"]["total"]


def test_the_copy_wins(cluster, pool, shared):
    operation = start(cluster, pool, shared)
    original, copy = race(cluster, operation)
    assert copies(cluster, operation) == (1, 0, 0)
    (shared / "go-1").touch()
    cluster.wait_state(operation, "completed")
    assert ends(cluster, operation) == {original: ("aborted", "speculative_run_won"), copy: ("completed", None)}
    assert copies(cluster, operation) == (0, 1, 0)
    assert cluster.stderr(operation, copy) == b"run 1\n"
    counters = cluster.counters(operation)
    assert (counters["total"], counters["completed"], counters["aborted"]) == (1, 1, 1)
    by_competition = cluster.jobs(operation, job_competition_id=original)
    assert {job["id"] for job in by_competition} == {original, copy}
    wait_for(lambda: not cluster.job_processes(), what="the slow job to be gone")


def test_a_race_outlives_the_server():
    with make_cluster(nodes=2) as cluster:
        cluster.create_pool("p")
        operation = start(cluster, "p", cluster.shared)
        original, copy = race(cluster, operation)
        cluster.server.kill()
        cluster.restart()
        assert race(cluster, operation) == (original, copy)
        assert copies(cluster, operation) == (1, 0, 0)
        (cluster.shared / "go-0").touch()
        cluster.wait_state(operation, "completed")
        assert ends(cluster, operation) == {original: ("completed", None), copy: ("aborted", "speculative_run_lost")}
        assert copies(cluster, operation) == (0, 0, 1)
        counters = cluster.counters(operation)
        assert (counters["total"], counters["completed"], counters["aborted"]) == (1, 1, 1)


def test_nobody_is_copied_unasked(cluster, pool, shared):
    """A vanilla task that does not ask has no copies, whatever its limit of time says."""
    (shared / "go-1").touch()
    operation = cluster.start_vanilla(JOB.format(shared), pool=pool, spec={"job_speculation_timeout": 1})
    [job] = cluster.wait_jobs(operation, 1)
    # Whoever may be copied is found twice a second: a second operation has been looked at much later.
    other = start(cluster, pool, shared)
    wait_for(lambda: cluster.operation(other, "state")["state"] == "completed", what="the copy of another job",
             timeout=120)
    assert [j["id"] for j in cluster.jobs(operation)] == [job]
    assert not cluster.jobs(operation)[0]["has_competitors"]
    (shared / "go-0").touch()
    cluster.wait_state(operation, "completed")
