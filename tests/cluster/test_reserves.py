"""Learned CPU guarantees and memory reserves on real control groups (jobs-and-nodes.md 1, 2, 3.4-3.6)."""

import time

import pytest
from harness import cluster as make_cluster, error_text, find_error, wait_for
from test_cgroups import KIND, group, hierarchy, read_int

pytestmark = pytest.mark.skipif(" " in KIND, reason=KIND)

# Decides after two checks alike, ten times a second, and does not care whether a busy loop gets the whole
# core that it wants: other tests may run on this machine too.
QUICK = {
    "enable_cpu_reclaim": True, "check_period": 100, "smoothing_factor": 0.9,
    "vote_window_size": 2, "vote_decision_threshold": 1,
    "relative_lower_bound": 0.1, "relative_upper_bound": 0.2, "decrease_coefficient": 0.7,
}
MIB = 1 << 20
# Idle until somebody puts the file into its sandbox, then busy with one core.
IDLE_THEN_BUSY = "while [ ! -e busy ]; do sleep 0.05; done; while :; do :; done"


@pytest.fixture(scope="module")
def cluster():
    with make_cluster(
        resources="cpu=3,memory=4GiB,user_slots=16",
        # Heartbeats carry the statistics.
        server_config='heartbeat_period = "300ms"\n',
        node_config='memory_watchdog_period = "100ms"\nrunning_job_statistics_sending_backoff = "100ms"\n'
                    'job_proxy_heartbeat_period = "200ms"\n',
    ) as c:
        yield c


def weight(cluster, job):
    """The job's guarantee in cores, as the kernel has it."""
    place = group(cluster, hierarchy("cpu"), job)
    if KIND == "v2":
        return read_int(place / "cpu.weight") / 100
    return read_int(place / "cpu.shares") / 1024


def job_statistics(cluster, operation, job):
    return cluster.command("get_job", operation_id=operation, job_id=job).get("statistics", {})


def leaf(tree, path):
    for key in path.split("/"):
        tree = tree.get(key) if tree else None
    return tree["last"] if tree else None


def put_into_sandbox(cluster, name):
    """A file for the jobs of all slots."""
    for sandbox in cluster.directory.glob("node-*/slots/*/sandbox"):
        (sandbox / name).touch()


def test_reclaimed_cores_go_to_others_and_come_back(cluster, pool):
    """Down while the job idles, another operation runs on what is free; up when it is busy."""
    cluster.create_pool(f"{pool}-other")
    monitor = {**QUICK, "start_delay": 2000}
    idle = cluster.start_vanilla(IDLE_THEN_BUSY, pool=pool, cpu_limit=3, spec={"job_cpu_monitor": monitor})
    [job] = cluster.wait_jobs(idle)
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 3, what="the whole guarantee")
    assert weight(cluster, job) == pytest.approx(3, abs=0.01)
    other = cluster.start_vanilla("sleep 100", pool=f"{pool}-other", cpu_limit=1, job_count=2)

    # The floor is one core. What is freed is somebody else's within a second.
    freed = wait_for(
        lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] <= 2 and time.monotonic(), what="a freed core")
    cluster.wait_counters(other, running=1)
    assert time.monotonic() - freed < 1.0
    cluster.wait_counters(other, running=2)
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 1, what="the floor")
    assert weight(cluster, job) == pytest.approx(1, abs=0.01)

    # The figures of the monitor are with the job, and what was taken is told from what could be.
    figures = wait_for(
        lambda: (s := job_statistics(cluster, idle, job)) and (leaf(s, "job_proxy/preemptible_cpu_x100") == 200) and s,
        what="the monitor's statistics")
    names = [
        "smoothed_cpu_usage_x100", "preemptible_cpu_x100", "aggregated_smoothed_cpu_usage_x100",
        "aggregated_max_cpu_usage_x100", "aggregated_preemptible_cpu_x100", "aggregated_preempted_cpu_x100",
        "preemptable_cpu_x100", "aggregated_preemptable_cpu_x100",
    ]
    values = {name: leaf(figures, f"job_proxy/{name}") for name in names}
    assert None not in values.values(), values
    assert values["aggregated_preempted_cpu_x100"] == values["aggregated_preemptible_cpu_x100"] > 0
    assert values["aggregated_smoothed_cpu_usage_x100"] < values["aggregated_max_cpu_usage_x100"]

    # Raising waits for nobody, though the node has no free core.
    put_into_sandbox(cluster, "busy")
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] > 2, what="a raised guarantee")
    assert weight(cluster, job) > 2
    cluster.command("abort_operation", operation_id=other)


def test_without_reclaim_nothing_is_taken(cluster, pool):
    monitor = {**QUICK, "enable_cpu_reclaim": False}
    operation = cluster.start_vanilla("sleep 100", pool=pool, cpu_limit=2, spec={"job_cpu_monitor": monitor})
    [job] = cluster.wait_jobs(operation)
    wait_for(
        lambda: leaf(job_statistics(cluster, operation, job), "job_proxy/preemptible_cpu_x100") == 100,
        what="what could be taken")
    assert leaf(job_statistics(cluster, operation, job), "job_proxy/aggregated_preempted_cpu_x100") == 0
    assert weight(cluster, job) == pytest.approx(2, abs=0.01)
    assert cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 2


def test_the_guarantee_survives_restarts(cluster, pool):
    """Of the node agent, and of the server: both hear from the proxy what the job holds now."""
    operation = cluster.start_vanilla("sleep 100", pool=pool, cpu_limit=2, spec={"job_cpu_monitor": QUICK})
    [job] = cluster.wait_jobs(operation)
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 1, what="the floor")
    for process in [cluster.nodes[0], cluster.server]:
        process.kill()
        cluster.restart()
        wait_for(lambda: cluster.jobs(operation, state="running"), what="the job to be back")
        assert cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 1, process.name
        assert weight(cluster, job) == pytest.approx(1, abs=0.01)
    assert [j["id"] for j in cluster.jobs(operation)] == [job]
