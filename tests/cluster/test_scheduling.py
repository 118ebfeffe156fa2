"""Scheduling with real processes: guarantees, order, limits, pending operations, nodes that come and
go. How shares are computed is tested in the crates; here is whether processes follow them.
"""

import contextlib
import pathlib
import time

import pytest
from harness import Process, ServerError, cluster as make_cluster, wait_for

# Every slot is taken by a job of one core, so counting running jobs is counting cores.
CORES = 8
RESOURCES = f"cpu={CORES},memory=8GiB,user_slots={CORES}"
FOREVER = "sleep 1000"
# Rounds of the scheduler are short, so that a test can wait for some of them.
QUICK = 'heartbeat_period = "200ms"\n'


@pytest.fixture(scope="module")
def cluster():
    with make_cluster(resources=RESOURCES, server_config=QUICK) as c:
        yield c


@pytest.fixture(autouse=True)
def empty(cluster):
    """Every test begins and ends with an idle cluster."""
    yield
    for operation in cluster.command("list_operations", limit=1000)["operations"]:
        if operation["state"] not in ("completed", "failed", "aborted"):
            with contextlib.suppress(ServerError):
                cluster.command("abort_operation", operation_id=operation["id"])
    wait_for(lambda: cluster.pool_orchid("<Root>")["resource_usage"]["user_slots"] == 0, what="an idle cluster")
    # Guarantees of pools without demand count, too: together they may exceed the cluster.
    for pool in cluster.command("list", path="//sys/pools")["value"]:
        cluster.remove(f"//sys/pools/{pool}", recursive=True, force=True)


def running(cluster, operation):
    return cluster.counters(operation)["running"]


def steady(cluster, operations, wanted, timeout=180):
    """Waits until the operations run `wanted` jobs, and checks that the next rounds of the scheduler change nothing."""
    def now():
        return [running(cluster, o) for o in operations]
    wait_for(lambda: now() == wanted, timeout=timeout, what=f"{wanted} jobs to run ({now()})", period=0.05)
    cluster.rounds()
    assert now() == wanted


def fill(cluster, pool, job_count=2 * CORES, command=FOREVER, **options):
    return cluster.start_vanilla(command, job_count=job_count, pool=pool, cpu_limit=1.0, **options)


def churn(cluster, pool, **options):
    """Jobs that come to an end all the time, so that the shares can take effect."""
    return fill(cluster, pool, job_count=10_000, command="sleep 0.15", **options)


def usage_shares(cluster, pools, samples=60):
    """What part of all used slots each pool has, averaged over so many samples, however long they take: slots that are
    empty for a moment between two short jobs, on a busy machine many, say nothing about the division."""
    used, total = [0] * len(pools), 0
    for _ in range(samples):
        total += cluster.pool_orchid("<Root>")["resource_usage"]["user_slots"]
        for i, pool in enumerate(pools):
            used[i] += cluster.pool_orchid(pool)["resource_usage"]["user_slots"]
        time.sleep(0.05)
    return [u / total for u in used]


# --- shares

def test_strong_guarantee(cluster):
    """The guaranteed pool gets its cores although the other one asked first and for more."""
    cluster.create_pool("guaranteed", strong_guarantee_resources={"cpu": 6})
    cluster.create_pool("greedy", weight=10)
    churn(cluster, "greedy")
    wait_for(lambda: cluster.pool_orchid("greedy")["resource_usage"]["user_slots"] == CORES, what="a full cluster")
    churn(cluster, "guaranteed")
    wait_for(lambda: cluster.pool_orchid("guaranteed")["resource_usage"]["user_slots"] >= 5, what="the guarantee")
    guaranteed, greedy = usage_shares(cluster, ["guaranteed", "greedy"])
    # 6 of 8; the rest is divided by weight, of which the guaranteed pool has little.
    assert 0.65 <= guaranteed <= 0.9 and 0.1 <= greedy <= 0.35, (guaranteed, greedy)
    share = cluster.pool_orchid("guaranteed")["detailed_fair_share"]["strong_guarantee"]["cpu"]
    assert abs(share - 6 / CORES) < 1e-6


def test_guarantee_without_demand_is_used_by_others(cluster):
    cluster.create_pool("absent", strong_guarantee_resources={"cpu": 6})
    cluster.create_pool("present")
    operation = fill(cluster, "present")
    steady(cluster, [operation], [CORES])


def test_weights(cluster):
    cluster.create_pool("heavy", weight=3)
    cluster.create_pool("light", weight=1)
    churn(cluster, "heavy")
    churn(cluster, "light")

    def slots():
        return [cluster.pool_orchid(pool)["resource_usage"]["user_slots"] for pool in ("heavy", "light")]
    # Before the light pool has a job, the heavy one has all slots.
    wait_for(lambda: (now := slots())[0] >= 5 and now[1] >= 1, what="both pools to have slots", seen=slots)
    heavy, light = usage_shares(cluster, ["heavy", "light"])
    assert 0.65 <= heavy <= 0.85 and 0.15 <= light <= 0.35, (heavy, light)


def test_weights_of_operations_inside_a_pool(cluster):
    cluster.create_pool("inside")
    first = churn(cluster, "inside", spec={"weight": 3.0})
    second = churn(cluster, "inside")
    # Before the light operation has a job, the heavy one has all slots.
    wait_for(lambda: running(cluster, first) >= 5 and running(cluster, second) >= 1, what="both operations to have slots",
             seen=lambda: (running(cluster, first), running(cluster, second)))
    samples = []
    for _ in range(60):
        samples.append((running(cluster, first), running(cluster, second)))
        time.sleep(0.04)
    heavy, light = (sum(s) for s in zip(*samples, strict=True))
    assert 0.62 <= heavy / (heavy + light) <= 0.88, (heavy, light)


def test_hierarchy(cluster):
    """A guarantee of the parent holds for the children together."""
    cluster.create_pool("division", strong_guarantee_resources={"cpu": 4})
    cluster.create_pool("team-a", parent_name="division", strong_guarantee_resources={"cpu": 3})
    cluster.create_pool("team-b", parent_name="division")
    cluster.create_pool("outside", weight=20)
    churn(cluster, "outside")
    churn(cluster, "team-a")
    wait_for(lambda: cluster.pool_orchid("team-a")["resource_usage"]["user_slots"] >= 3, what="the child's share")
    division, team_a = usage_shares(cluster, ["division", "team-a"])
    assert 0.42 <= division <= 0.65 and abs(division - team_a) < 0.1, (division, team_a)
    fair = cluster.pool_orchid("team-a")["fair_share_ratio"]
    assert 0.5 <= fair <= 0.56, "its own three cores, the fourth of its parent, and a little by weight"


def test_resource_limits(cluster):
    cluster.create_pool("limited", resource_limits={"cpu": 3})
    operation = fill(cluster, "limited")
    steady(cluster, [operation], [3])
    cluster.set("//sys/pools/limited/@resource_limits/cpu", 5)
    steady(cluster, [operation], [5])
    cluster.remove("//sys/pools/limited/@resource_limits")
    steady(cluster, [operation], [CORES])


def test_resource_limits_of_an_operation(cluster):
    cluster.create_pool("limits-of-operations")
    operation = fill(cluster, "limits-of-operations", spec={"resource_limits": {"user_slots": 2}})
    steady(cluster, [operation], [2])


def test_memory_is_a_resource(cluster):
    """Three jobs of 2.5 GiB fit into 8 GiB."""
    cluster.create_pool("memory")
    operation = cluster.start_vanilla(FOREVER, job_count=10, pool="memory", cpu_limit=0.1, memory_limit=5 << 29,
                                      memory_reserve_factor=1.0)
    steady(cluster, [operation], [3])


def test_fifo(cluster):
    """In a FIFO pool the older operation has what it wants before the younger one has anything."""
    cluster.create_pool("queue", mode="fifo")
    first = fill(cluster, "queue", job_count=6)
    steady(cluster, [first], [6])
    second = fill(cluster, "queue", job_count=6)
    third = fill(cluster, "queue", job_count=6)
    steady(cluster, [first, second, third], [6, 2, 0])
    cluster.command("abort_operation", operation_id=first)
    steady(cluster, [second, third], [6, 2])


def test_fifo_order_of_starts(cluster):
    cluster.create_pool("line", mode="fifo")
    order = [fill(cluster, "line", job_count=CORES, command="sleep 0.3") for _ in range(3)]
    for o in order:
        cluster.wait_state(o, "completed")
    # How long a job takes is the machine's business; who may begin is the pool's.
    starts = [[job["start_time"] for job in cluster.jobs(o)] for o in order]
    for before, after in zip(starts, starts[1:]):
        assert max(before) <= min(after), starts


# --- counts of operations

def counts(cluster, pool):
    orchid = cluster.pool_orchid(pool)
    return orchid["running_operation_count"], orchid["operation_count"]


def test_pending_by_running_limit(cluster):
    cluster.create_pool("one-at-a-time", max_running_operation_count=1, max_operation_count=3)
    first, second, third = (fill(cluster, "one-at-a-time", job_count=1) for _ in range(3))
    cluster.wait_state(first, "running")
    cluster.wait_state(second, "pending")
    alert = cluster.operation(second, "alerts")["alerts"]["operation_pending"]
    text = str(alert)
    assert alert["attributes"]["pool"] == "one-at-a-time" and alert["attributes"]["limit"] == 1, alert
    assert "physical" in text
    # What the Orchid shows is the newest fair-share update, a moment behind.
    wait_for(lambda: counts(cluster, "one-at-a-time") == (1, 3), what="the counters")

    with pytest.raises(ServerError) as info:
        fill(cluster, "one-at-a-time", job_count=1)
    assert 202 in info.value.codes() and "one-at-a-time" in info.value.text()

    cluster.command("abort_operation", operation_id=first)
    cluster.wait_state(second, "running")
    assert "operation_pending" not in cluster.operation(second, "alerts")["alerts"]
    assert cluster.state(third) == "pending", "first in, first out"
    # A raised limit acts without anything else happening.
    cluster.set("//sys/pools/one-at-a-time/@max_running_operation_count", 2)
    cluster.wait_state(third, "running")


def test_pending_by_an_ancestor(cluster):
    cluster.create_pool("parent", max_running_operation_count=1)
    cluster.create_pool("child-1", parent_name="parent")
    cluster.create_pool("child-2", parent_name="parent")
    first = fill(cluster, "child-1", job_count=1)
    cluster.wait_state(first, "running")
    second = fill(cluster, "child-2", job_count=1)
    cluster.wait_state(second, "pending")
    assert cluster.operation(second, "alerts")["alerts"]["operation_pending"]["attributes"]["pool"] == "parent"
    cluster.command("complete_operation", operation_id=first)
    cluster.wait_state(second, "running")


def test_aborted_while_pending(cluster):
    cluster.create_pool("waiting", max_running_operation_count=0)
    operation = fill(cluster, "waiting")
    cluster.wait_state(operation, "pending")
    cluster.command("abort_operation", operation_id=operation)
    cluster.wait_state(operation, "aborted")
    wait_for(lambda: counts(cluster, "waiting") == (0, 0), what="the counters")


def test_move_between_pools(cluster):
    cluster.create_pool("from")
    cluster.create_pool("to", resource_limits={"cpu": 2})
    operation = fill(cluster, "from", job_count=2)
    steady(cluster, [operation], [2])
    cluster.command("update_operation_parameters", operation_id=operation, parameters={"pool": "to"})
    steady(cluster, [operation], [2])
    wait_for(lambda: [cluster.pool_orchid(p)["resource_usage"]["cpu"] for p in ("to", "from")] == [2, 0],
             what="the usage to move")


def test_suspend_and_resume(cluster):
    cluster.create_pool("pause")
    # All jobs but the first ones wait for the file, so that the operation cannot be over before it is suspended.
    go = cluster.shared / "suspended"
    operation = fill(cluster, "pause", job_count=40, command=f"[ $YT_JOB_INDEX -lt 6 ] || while [ ! -e {go} ]; do sleep 0.1; done")
    wait_for(lambda: cluster.counters(operation)["completed"] > 4, what="some jobs to be done", seen=lambda: cluster.counters(operation))
    cluster.command("suspend_operation", operation_id=operation)
    go.touch()
    wait_for(lambda: running(cluster, operation) == 0, what="running jobs to end", seen=lambda: cluster.counters(operation))
    done = cluster.counters(operation)["completed"]
    cluster.rounds()
    assert cluster.counters(operation)["completed"] == done < 40
    cluster.command("resume_operation", operation_id=operation)
    cluster.wait_state(operation, "completed")


def test_suspend_with_abort_of_jobs(cluster):
    cluster.create_pool("hard-pause")
    operation = fill(cluster, "hard-pause", job_count=2)
    steady(cluster, [operation], [2])
    cluster.command("suspend_operation", operation_id=operation, abort_running_jobs=True)
    steady(cluster, [operation], [0])
    assert cluster.counters(operation)["pending"] == 2
    cluster.command("resume_operation", operation_id=operation)
    steady(cluster, [operation], [2])


# --- nodes

def test_node_joins_and_leaves(cluster):
    cluster.create_pool("growing")
    operation = fill(cluster, "growing", job_count=CORES + 3)
    steady(cluster, [operation], [CORES])
    name = f"{cluster.name}-extra"
    extra = Process(name, [*cluster.nodes[0].arguments], cluster.directory / "extra.log", cluster.mark)
    for option, value in [("--name", name), ("--data", cluster.directory / "extra"),
                          ("--resources", "cpu=2,memory=1GiB,user_slots=2")]:
        extra.arguments[extra.arguments.index(option) + 1] = value
    cluster.nodes.append(extra)
    extra.start()
    cluster.wait_nodes()
    steady(cluster, [operation], [CORES + 2])
    address = [a for a in cluster.command("list", path="//sys/cluster_nodes")["value"] if "extra" in a][0]
    assert cluster.get(f"//sys/cluster_nodes/{address}/@state") == "online"

    def there():
        return [job for job in cluster.jobs(operation) if job["address"] == address and job["state"] == "running"]
    wait_for(lambda: len(there()) == 2, what="the list to have two running jobs of the node", seen=lambda: cluster.jobs(operation))

    # A clean stop: the server hears of it at once and the two jobs wait for a place again.
    assert extra.terminate() == 0
    steady(cluster, [operation], [CORES])
    cluster.nodes.remove(extra)
    # It said goodbye: gone, or known as offline.
    assert address not in cluster.online()
    counters = cluster.counters(operation)
    wanted = {"pending": 3, "failed": 0, "aborted": 2}
    assert {k: counters[k] for k in wanted} == wanted, counters


def test_nothing_runs_without_nodes():
    with make_cluster(nodes=1) as c:
        c.nodes[0].terminate()
        c.create_pool("p")
        operation = c.start_vanilla("true")
        c.wait_state(operation, "running")
        c.rounds(3)
        assert c.counters(operation)["pending"] == 1
        c.nodes[0].start()
        c.wait_state(operation, "completed")


def test_survives_a_clean_restart():
    """SIGTERM and start of everything: pools, operations and results are there."""
    with make_cluster() as c:
        c.create_pool("p", weight=4)
        done = c.run_vanilla("echo kept >&2")
        job = c.jobs(done)[0]["id"]
        waiting = c.start_vanilla("true", spec={"alias": "*later", "resource_limits": {"user_slots": 0}})
        c.wait_state(waiting, "running")
        for process in [*c.nodes, c.server]:
            assert process.terminate() == 0
        c.restart()
        assert c.get("//sys/pools/p/@weight") == 4
        assert c.state(done) == "completed" and c.stderr(done, job) == b"kept\n"
        assert c.command("get_operation", operation_alias="*later", attributes=["id"])["id"] == waiting
        c.command("abort_operation", operation_id=waiting)


def test_logs_are_quiet(cluster):
    """Ordinary work logs no errors."""
    for process in [cluster.server, *cluster.nodes]:
        text = pathlib.Path(process.log).read_text(errors="replace")
        assert "panicked" not in text, text
        assert " ERROR " not in text, text
