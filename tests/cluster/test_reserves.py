"""Learned CPU guarantees and memory reserves on real control groups (jobs-and-nodes.md 1, 2, 3.4-3.6)."""

import contextlib
import json
import os
import pathlib
import subprocess

import pytest
from yt.wrapper import VanillaSpecBuilder
from harness import ServerError, cluster as make_cluster, error_text, find_error, wait_for
from test_cgroups import KIND, group, hierarchy, pids, read_int, tracking

pytestmark = pytest.mark.skipif(" " in KIND, reason=KIND)

# Decides after two checks alike, ten times a second, and does not care whether a busy loop gets the whole
# core that it wants: other tests may run on this machine too.
QUICK = {
    "enable_cpu_reclaim": True, "check_period": 100, "smoothing_factor": 0.9,
    "vote_window_size": 2, "vote_decision_threshold": 1,
    "relative_lower_bound": 0.1, "relative_upper_bound": 0.2, "decrease_coefficient": 0.7,
}
MIB = 1 << 20
# Busy with one core, idle, and busy again, as files with this beginning of their names appear.
BUSY_IDLE_BUSY = "while [ ! -e {0}.idle ]; do :; done; while [ ! -e {0}.busy ]; do sleep 1; done; while :; do :; done"


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


def put_into_sandbox(cluster, job, name):
    """A file for this job alone: in an empty sandbox of another slot the next job would find it."""
    def put():
        for pid in pids(group(cluster, tracking(), job)):
            # Any may end in this moment, and the first of them is not there.
            with contextlib.suppress(OSError):
                directory = pathlib.Path(f"/proc/{pid}/cwd")
                if os.readlink(directory).endswith("/sandbox"):
                    (directory / name).touch()
                    return True
        return False
    wait_for(put, what="a process in the sandbox")


def test_reclaimed_cores_go_to_others_and_come_back(cluster, pool):
    """Down while the job idles, another operation runs on what is free; up when it is busy."""
    cluster.create_pool(f"{pool}-other")
    # However little a busy machine gives the job while it is busy.
    monitor = {**QUICK, "relative_lower_bound": 0.01, "relative_upper_bound": 0.02}
    signs = cluster.shared / pool
    idle = cluster.start_vanilla(BUSY_IDLE_BUSY.format(signs), pool=pool, cpu_limit=3, spec={"job_cpu_monitor": monitor})
    [job] = cluster.wait_jobs(idle)
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 3, what="the whole guarantee")
    assert weight(cluster, job) == pytest.approx(3, abs=0.01)
    other = cluster.start_vanilla("sleep 1000", pool=f"{pool}-other", cpu_limit=1, job_count=2)

    signs.with_suffix(".idle").touch()
    # The floor is one core. What is freed is somebody else's: how soon is shown on virtual time (`freed_cores_are_used_within_a_second`
    # of the simulator) and measured by `bench.run reclaim`.
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

    # And in words, of the job and of the pool.
    _, words, _ = cluster.millpond("job", "explain", job)
    assert "is 1.00 of 3 cores" in words and "Saved so far" in words, words
    explained = json.loads(cluster.millpond("job", "explain", job, "--json")[1])
    assert explained["accounted"]["cpu"] == 1 and explained["cpu"]["monitor"]["limit"] == 1
    assert explained["cpu"]["monitor"]["last_change"]["applied"]
    assert explained["memory"]["user_job"]["origin"] == "default"

    def pool_savings():
        return cluster.get("//sys/scheduler/orchid/scheduler/pool_trees/physical/pool_savings")

    def saves():
        of_pool = (now := pool_savings()).get(pool)
        return of_pool and of_pool["reclaimed_core_seconds"] > 0 and of_pool["unreserved_byte_seconds"] > 0 and now
    savings = wait_for(saves, what="what the pool has saved", seen=pool_savings)
    assert savings["<Root>"]["reclaimed_core_seconds"] >= savings[pool]["reclaimed_core_seconds"]

    # Raising waits for nobody, though the node has no free core.
    signs.with_suffix(".busy").touch()
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] > 2, what="a raised guarantee")
    assert weight(cluster, job) > 2
    cluster.command("abort_operation", operation_id=other)


def test_without_reclaim_nothing_is_taken(cluster, pool):
    monitor = {**QUICK, "enable_cpu_reclaim": False}
    operation = cluster.start_vanilla("sleep 1000", pool=pool, cpu_limit=2, spec={"job_cpu_monitor": monitor})
    [job] = cluster.wait_jobs(operation)
    wait_for(
        lambda: leaf(job_statistics(cluster, operation, job), "job_proxy/preemptible_cpu_x100") == 100,
        what="what could be taken")
    assert leaf(job_statistics(cluster, operation, job), "job_proxy/aggregated_preempted_cpu_x100") == 0
    assert weight(cluster, job) == pytest.approx(2, abs=0.01)
    assert cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 2


def quota(cluster, job):
    """The hard limit of the job's use in cores, as the kernel has it; None without one."""
    place = group(cluster, hierarchy("cpu"), job)
    if KIND == "v2":
        most, period = (place / "cpu.max").read_text().split()
        return None if most == "max" else int(most) / int(period)
    most = read_int(place / "cpu.cfs_quota_us")
    return None if most == -1 else most / read_int(place / "cpu.cfs_period_us")


def test_a_node_that_sets_a_hard_quota_too():
    """With `cpu_monitor_sets_cap` a job that the monitor may take from cannot use idle cores either; others can."""
    # However little a busy machine gives the job while it is busy.
    monitor = {**QUICK, "relative_lower_bound": 0.01, "relative_upper_bound": 0.02}
    config = 'cpu_monitor_sets_cap = true\njob_proxy_heartbeat_period = "200ms"\n'
    with make_cluster(resources="cpu=3,memory=2GiB,user_slots=4", node_config=config) as cluster:
        cluster.create_pool("prod")
        signs = cluster.shared / "signs"
        command = f"while [ ! -e {signs}.busy ]; do sleep 1; done; while :; do :; done & while :; do :; done"
        operation = cluster.start_vanilla(command, pool="prod", cpu_limit=2, spec={"job_cpu_monitor": monitor})
        [job] = cluster.wait_jobs(operation)
        wait_for(lambda: weight(cluster, job) == pytest.approx(1, abs=0.01), what="the floor")
        wait_for(lambda: quota(cluster, job) == pytest.approx(1, abs=0.01), what="a quota as large")
        spared = cluster.start_vanilla(
            "sleep 1000", pool="prod", cpu_limit=1, spec={"job_cpu_monitor": {**QUICK, "enable_cpu_reclaim": False}})
        assert quota(cluster, cluster.wait_jobs(spared)[0]) is None

        signs.with_suffix(".busy").touch()
        wait_for(lambda: quota(cluster, job) == pytest.approx(2, abs=0.01), what="the whole of it again")
        assert weight(cluster, job) == pytest.approx(2, abs=0.01)


def test_the_guarantee_survives_restarts(cluster, pool):
    """Of the node agent, and of the server: both hear from the proxy what the job holds now."""
    operation = cluster.start_vanilla("sleep 1000", pool=pool, cpu_limit=2, spec={"job_cpu_monitor": QUICK})
    [job] = cluster.wait_jobs(operation)
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 1, what="the floor")
    for process in [cluster.nodes[0], cluster.server]:
        process.kill()
        cluster.restart()
        wait_for(lambda: cluster.jobs(operation, state="running"), what="the job to be back")
        # The first number that the scheduler has is the right one; before the node is back it has none.
        used = wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"], what="a usage")
        assert used == 1, process.name
        assert weight(cluster, job) == pytest.approx(1, abs=0.01)
    assert [j["id"] for j in cluster.jobs(operation)] == [job]


# Busy with one core until somebody puts the file into its sandbox, then idle.
BUSY_THEN_IDLE = "while [ ! -e idle ]; do :; done; sleep 1000"


@contextlib.contextmanager
def covered(file, by):
    """What the kernel shows as `file` is `by`, which nobody can write to."""
    subprocess.run(["mount", "--bind", str(by), str(file)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(file)], check=True)
        yield
    finally:
        subprocess.run(["umount", str(file)], check=True)


def explained(cluster, job):
    """The state of its monitor; nothing before that has measured."""
    return json.loads(cluster.millpond("job", "explain", job, "--json")[1])["cpu"].get("monitor") or {}


def test_a_group_that_cannot_be_written(cluster, pool, tmp_path):
    """The kernel refuses the new guarantee: it stays, for the pool as well, and is tried again (1.4, 1.5)."""
    # However little a busy machine gives the job while it is busy.
    monitor = {**QUICK, "relative_lower_bound": 0.01, "relative_upper_bound": 0.02}
    operation = cluster.start_vanilla(BUSY_THEN_IDLE, pool=pool, cpu_limit=2, spec={"job_cpu_monitor": monitor})
    [job] = cluster.wait_jobs(operation)
    name = "cpu.weight" if KIND == "v2" else "cpu.shares"
    file = group(cluster, hierarchy("cpu"), job) / name
    stand_in = tmp_path / name
    stand_in.write_text(file.read_text())
    with covered(file, stand_in):
        put_into_sandbox(cluster, job, "idle")
        change = wait_for(lambda: explained(cluster, job).get("last_change"), what="a decision")
        assert not change["applied"] and change["to"] < change["from"] == 2, change
        assert cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 2
        assert explained(cluster, job)["limit"] == 2
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 1, what="the floor")
    assert weight(cluster, job) == pytest.approx(1, abs=0.01)
    assert explained(cluster, job)["last_change"]["applied"]


@pytest.mark.skipif(KIND == "v1", reason="the counters of cgroup_v1 are in two files")
def test_a_counter_goes_backwards(cluster, pool, tmp_path):
    """It starts from zero, stands still, and jumps ahead again: no limit leaves its bounds, and the job runs on (1.4)."""
    monitor = {**QUICK, "relative_lower_bound": 0.01, "relative_upper_bound": 0.02}
    operation = cluster.start_vanilla(BUSY_THEN_IDLE, pool=pool, cpu_limit=2, spec={"job_cpu_monitor": monitor})
    [job] = cluster.wait_jobs(operation)
    file = group(cluster, tracking(), job) / "cpu.stat"
    wait_for(lambda: int(file.read_text().split()[1]) > 500_000, what="half a second of CPU")
    stand_in = tmp_path / "cpu.stat"
    stand_in.write_text("usage_usec 0\nuser_usec 0\nsystem_usec 0\n")
    with covered(file, stand_in):
        wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 1, what="the floor of a job that seems idle")
    # All of its seconds at once.
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["cpu"] == 2, what="the whole guarantee")
    assert weight(cluster, job) == pytest.approx(2, abs=0.01)
    figures = wait_for(lambda: job_statistics(cluster, operation, job), what="statistics")
    assert 0 <= leaf(figures, "job_proxy/aggregated_preemptible_cpu_x100") <= \
        leaf(figures, "job_proxy/aggregated_max_cpu_usage_x100")
    assert [j["id"] for j in cluster.jobs(operation)] == [job]


# --- memory

# 130 MB in one process, until somebody ends that; when it is run again, it is done at once.
HUNGRY = "head -c 130000000 /dev/zero | tail -n 1 | ([ $YT_JOB_INDEX != 0 ] || sleep 1000; cat > /dev/null)"


@pytest.fixture(scope="module")
def small():
    """A node with little memory, and job proxies that are counted with little."""
    with make_cluster(
        resources="cpu=4,memory=260MiB,user_slots=16",
        server_config='heartbeat_period = "300ms"\n',
        node_config='memory_watchdog_period = "50ms"\nrunning_job_statistics_sending_backoff = "100ms"\n',
    ) as c:
        c.set("//sys/controller_agents/config", {"footprint_memory": 16 * MIB})
        c.set("//sys/scheduler/config/min_spare_allocation_resources_on_node", {"cpu": 0, "memory": 0, "user_slots": 1})
        yield c


def the_job(cluster, operation, state="running"):
    [job] = cluster.wait_jobs(operation, state=state)
    return job


def test_the_node_runs_out_of_memory(small):
    """Who is above its reserve goes, and succeeds with more; who is inside it is left alone."""
    for pool in ["quiet", "hungry"]:
        small.create_pool(pool)
    quiet = small.start_vanilla("while [ ! -e go ]; do sleep 0.1; done", pool="quiet", memory_limit=120 * MIB,
                                memory_reserve_factor=1.0)
    quiet_job = the_job(small, quiet)
    hungry = small.start_vanilla(
        HUNGRY, pool="hungry", memory_limit=200 * MIB, user_job_memory_digest_default_value=0.25)

    # 130 MB and the 136 MiB of the other are more than the node has.
    aborted = the_job(small, hungry, state="aborted")
    job = small.command("get_job", operation_id=hungry, job_id=aborted)
    assert job["abort_reason"] == "resource_overdraft"
    assert "overdrafted" in error_text(job["error"])
    assert leaf(job["statistics"], "user_job/memory_reserve") == 50 * MIB
    assert leaf(job["statistics"], "user_job/max_memory") > 50 * MIB

    # Its unit is run again with all that it may have, once that is free.
    assert [j["state"] for j in small.jobs(quiet)] == ["running"]
    put_into_sandbox(small, quiet_job, "go")
    small.wait_state(hungry, "completed")
    retry = the_job(small, hungry, state="completed")
    job = small.command("get_job", operation_id=hungry, job_id=retry)
    assert job["predecessor_type"] == "resource_overdraft" and job["predecessor_job_id"] == aborted
    assert leaf(job["statistics"], "user_job/memory_reserve") == 200 * MIB
    assert leaf(job["statistics"], "user_job/memory_reserve_factor_x10000") == 10_000

    small.wait_state(quiet, "completed")
    assert [j["id"] for j in small.jobs(quiet)] == [quiet_job], "one run, undisturbed"


def test_above_the_limit_the_job_fails(small, pool_of_small):
    """For good: it is not the node that has too little."""
    operation = small.start_vanilla(
        "head -c 200000000 /dev/zero | tail -n 1 > /dev/null", pool=pool_of_small, memory_limit=64 * MIB,
        spec={"max_failed_job_count": 1})
    small.wait_state(operation, "failed")
    error = find_error(small.result(operation), 1200)
    assert error["message"] == "Memory limit exceeded"
    attributes = error["attributes"]
    assert attributes["limit"] == 64 * MIB and attributes["tmpfs_usage"] == 0
    assert attributes["usage"] > 16 * MIB
    [largest, *_] = attributes["processes"]
    assert set(largest) >= {"pid", "name", "cmdline", "rss", "shared"}
    assert [j["state"] for j in small.jobs(operation)] == ["failed"]


def test_later_jobs_reserve_what_earlier_ones_needed(small, pool_of_small):
    """Through the real client: the factor falls when the first job has ended, and so does the demand."""
    client = small.client()
    spec = VanillaSpecBuilder().spec({"pool": pool_of_small, "resource_limits": {"user_slots": 1}})
    task = spec.begin_task("t").command("sleep 0.5").job_count(3).memory_limit(400 * MIB)
    operation = client.run_operation(task.cpu_limit(0.1).end_task(), sync=False).id
    small.wait_state(operation, "completed")
    jobs = sorted(client.list_jobs(operation)["jobs"], key=lambda j: j["start_time"])
    reserves = [
        leaf(client.get_job(operation, j["id"])["statistics"], "user_job/memory_reserve") for j in jobs]
    first, *later = [int(r) for r in reserves]
    assert first == 200 * MIB
    # Half of the lower bound of 5 % was used, so that holds, to the next edge of the digest.
    assert all(20 * MIB <= r <= 20.4 * MIB for r in later), later
    [task] = client.get_operation(operation, attributes=["progress"])["progress"]["tasks"]
    assert 0.05 < task["user_job_memory_reserve_factor"] < 0.051
    assert task["min_needed_resources"]["memory"] < (16 + 22) * MIB


def test_options_of_the_controllers(small, pool_of_small):
    """A document in the tree: it is checked, and acts on operations that run."""
    with pytest.raises(ServerError) as refused:
        small.set("//sys/controller_agents/config/user_job_memory_reserve_quantile", 2)
    assert "from 0 to 1" in refused.value.text()
    operation = small.start_vanilla("sleep 1000", pool=pool_of_small, memory_limit=100 * MIB, job_count=100)
    needed = lambda: small.operation(operation, "progress")["progress"]["tasks"][0]["min_needed_resources"]["memory"]
    assert needed() == (16 + 50) * MIB
    small.set("//sys/controller_agents/config/footprint_memory", 20 * MIB)
    assert needed() == (20 + 50) * MIB
    small.set("//sys/controller_agents/config/footprint_memory", 16 * MIB)


@pytest.fixture
def pool_of_small(small, request):
    name = f"pool-{request.node.name}"
    small.create_pool(name)
    yield name
    for operation in small.command("list_operations", pool=name, limit=1000)["operations"]:
        if operation["state"] not in ("completed", "failed", "aborted"):
            small.command("abort_operation", operation_id=operation["id"])
