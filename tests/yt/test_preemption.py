"""Promises are kept: starvation, preemption, limits of operations, with real processes and through
the unmodified `yt` command and Python client (scheduling.md 4, 6, 7, 12 to 15).

Every job takes one core and one slot of a node of eight, so counting jobs is counting cores.
"""

import contextlib
import json

import pytest
import yt.wrapper
from harness import cluster as make_cluster, find_error, wait_for
from yt.wrapper import VanillaSpecBuilder

CORES = 8
FOREVER = "sleep 1000"
# Milliseconds: longer than a late step of a test, shorter than a wait.
LONG = 120_000
# Code of the error of a job that has waited on its node in vain.
WAITING_JOB_TIMEOUT = 1103
# The defaults are half a minute and more; the rules are the same.
FAST = {
    "fair_share_starvation_timeout": 500,
    "fair_share_aggressive_starvation_timeout": 1000,
    "preemptive_scheduling_backoff": 100,
    "allocation_preemption_timeout": 6000,
    # So that who was starving for a moment can be known later.
    "enable_detailed_starvation_logs": True,
}
TREE = "//sys/scheduler/orchid/scheduler/pool_trees/physical"


@contextlib.contextmanager
def quick_cluster(**options):
    """A cluster with heartbeats four times a second instead of once in five seconds."""
    with make_cluster(server_config='heartbeat_period = "250ms"\n', **options) as c:
        for name, value in FAST.items():
            c.set(f"//sys/pool_trees/physical/@config/{name}", value)
        yield c


def quick_client(cluster):
    """The real client, with a method that waits for all that starvation could do."""
    client = cluster.client()
    # More than the timeout of aggressive starvation, and a heartbeat.
    longest = FAST["fair_share_aggressive_starvation_timeout"] / 1000 + 0.25
    client.rounds = lambda seconds=longest: cluster.rounds(seconds=seconds)
    return client


@pytest.fixture(scope="module")
def cluster():
    with quick_cluster(resources=f"cpu={CORES},memory=8GiB,user_slots={CORES}") as c:
        yield c


@pytest.fixture
def client(cluster):
    client = quick_client(cluster)
    # The client would try again for hours when there are too many operations.
    client.config["start_operation_retries"]["enable"] = False
    yield client
    for operation in client.list_operations(limit=1000)["operations"]:
        if operation["state"] not in ("completed", "failed", "aborted"):
            client.abort_operation(operation["id"])
    wait_for(lambda: usage(client, "<Root>") == 0, what="an idle cluster")
    for pool in client.list("//sys/pools"):
        client.remove(f"//sys/pools/{pool}", recursive=True, force=True)


def start(client, pool, job_count, command=FOREVER, cpu=1, spec=None, **task):
    builder = VanillaSpecBuilder().spec({"pool": pool, **(spec or {})})
    work = builder.begin_task("work").command(command).job_count(job_count).cpu_limit(cpu).memory_limit(64 << 20)
    work = work.spec(task) if task else work
    return client.run_operation(work.end_task(), sync=False)


def usage(client, pool):
    return client.get(f"//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/{pool}/resource_usage/user_slots")


def orchid(client, operation):
    return client.get(f"//sys/scheduler/orchid/scheduler/pool_trees/physical/operations/{operation.id}")


def running(client, operation):
    return [j["id"] for j in client.list_jobs(operation.id, job_state="running", limit=1000)["jobs"]]


def steady(client, operations, wanted, timeout=180):
    """Waits until the operations run `wanted` jobs, and checks that starvation and preemption change nothing."""
    def now():
        return [len(running(client, o)) for o in operations]
    wait_for(lambda: now() == wanted, timeout=timeout, what=f"{wanted} running jobs ({now()})", period=0.05)
    client.rounds()
    assert now() == wanted


def wait_for_traps(cluster, operation):
    """Waits until every running job has said that it handles the signal: a shell that has not come so far dies of it."""
    def said():
        jobs = cluster.jobs(operation.id, state="running", limit=1000)
        return {job["id"]: cluster.stderr(operation.id, job["id"]) for job in jobs}
    wait_for(lambda: all(text.startswith(b"ready\n") for text in said().values()), what="the traps of all jobs", seen=said)


def aborted(client, operation):
    return client.list_jobs(operation.id, job_state="aborted", limit=1000)["jobs"]


def in_two_waves(cluster, client, pool, first, second):
    """An operation whose jobs of the second wave are surely the later ones."""
    cluster.yt("set", f"//sys/pools/{pool}/@resource_limits", f"{{user_slots={first}}}")
    operation = start(client, pool, first + second)
    steady(client, [operation], [first])
    early = set(running(client, operation))
    cluster.yt("remove", f"//sys/pools/{pool}/@resource_limits")
    steady(client, [operation], [first + second])
    return operation, early, set(running(client, operation)) - early


def test_a_starving_operation_preempts_the_latest_and_no_more(cluster, client):
    cluster.create_pool("owner", strong_guarantee_resources={"cpu": 4})
    cluster.create_pool("guest")
    guest, early, late = in_two_waves(cluster, client, "guest", 4, 4)
    owner = start(client, "owner", 4)
    steady(client, [owner, guest], [4, 4])
    starved = [r["event"] for r in client.get(f"{TREE}/starvation_log") if r["operation_id"] == owner.id]
    assert starved == ["operation_starvation_started", "operation_starvation_finished"]
    assert set(running(client, guest)) == early, "the earlier ones go on"
    victims = aborted(client, guest)
    assert {v["id"] for v in victims} == late, "exactly the latest four"
    for victim in victims:
        error = victim["error"]
        assert victim["abort_reason"] == "preemption", victim
        text = error["attributes"]["preemption_reason"]
        assert text.startswith("Preempted to start allocation"), text
        assert f"of operation {owner.id}" in text, text
    # They are not failures, and they wait for a place again.
    progress = guest.get_progress()
    assert (progress["failed"], progress["aborted"], progress["pending"]) == (0, 4, 4), progress
    wait_for(lambda: orchid(client, owner)["starvation_status"] == "non_starving", what="the end of starvation")


def test_nobody_is_preempted_for_an_operation_above_its_share(cluster, client):
    cluster.create_pool("left", strong_guarantee_resources={"cpu": 6})
    cluster.create_pool("right", strong_guarantee_resources={"cpu": 2})
    left = start(client, "left", 6)
    steady(client, [left], [6])
    right = start(client, "right", 8)
    steady(client, [left, right], [6, 2])
    client.rounds()
    assert aborted(client, left) == [] and aborted(client, right) == []


def test_an_interrupted_job_has_its_signal_and_its_grace(cluster, client):
    cluster.create_pool("owner", strong_guarantee_resources={"cpu": 4})
    cluster.create_pool("guest")
    # However long they need for it.
    polite = start(client, "guest", 8, interruption_signal="SIGINT", spec={"allocation_preemption_timeout": 120_000},
                   command="trap 'echo interrupted >&2; sleep 0.5; exit 0' INT; echo ready >&2; while :; do sleep 0.05; done")
    steady(client, [polite], [8])
    wait_for_traps(cluster, polite)
    owner = start(client, "owner", 4)
    steady(client, [owner, polite], [4, 4])
    done = client.list_jobs(polite.id, job_state="completed", limit=100)["jobs"]
    assert len(done) == 4 and aborted(client, polite) == []
    for job in done:
        assert job["interruption_info"]["interruption_reason"] == "preemption", job
        assert client.get_job_stderr(polite.id, job["id"]).read() == b"ready\ninterrupted\n"
    progress = polite.get_progress()
    assert progress["pending"] == 4, "the place of an interrupted job is to be filled again"


def test_a_deaf_job_is_killed_after_its_grace(cluster, client):
    cluster.create_pool("owner", strong_guarantee_resources={"cpu": 4})
    cluster.create_pool("guest")
    deaf = start(client, "guest", 8, interruption_signal="SIGINT",
                 command="trap 'echo told >&2' INT; echo ready >&2; while :; do sleep 0.05; done")
    steady(client, [deaf], [8])
    wait_for_traps(cluster, deaf)
    owner = start(client, "owner", 4)
    steady(client, [owner, deaf], [4, 4])
    victims = aborted(client, deaf)
    assert len(victims) == 4
    told = {r["job_id"]: time_of(r["time"]) for r in client.get(f"{TREE}/preemption_log") if r["operation_id"] == deaf.id}
    for victim in victims:
        assert victim["abort_reason"] == "preemption"
        assert client.get_job_stderr(deaf.id, victim["id"]).read().startswith(b"ready\ntold\n"), "it had its signal"
        grace = time_of(victim["finish_time"]) - told[victim["id"]]
        assert grace >= FAST["allocation_preemption_timeout"] / 1000, "it had its time"


@pytest.mark.parametrize("option", ["pool", "spec"])
def test_a_newcomer_waits_no_longer_than_it_may(cluster, client, option):
    """Whoever takes longer to leave than the newcomer may wait on the node: it is aborted with
    `waiting_timeout` and counted as never started (scheduling.md 15.4)."""
    patience = 6000 if option == "pool" else 10_000
    attributes = {"waiting_for_resources_on_node_timeout": 6000} if option == "pool" else {}
    cluster.create_pool("owner", strong_guarantee_resources={"cpu": 4}, **attributes)
    cluster.create_pool("guest")
    # The operation says how long its jobs need, and they need it.
    slow = start(client, "guest", 8, interruption_signal="SIGINT", spec={"allocation_preemption_timeout": LONG},
                 command="trap '' INT; echo ready >&2; while :; do sleep 0.05; done")
    steady(client, [slow], [8])
    wait_for_traps(cluster, slow)
    owner = start(client, "owner", 1, spec={"waiting_job_timeout": 10_000} if option == "spec" else {})
    wait_for(lambda: aborted(client, owner), what="a newcomer that has waited in vain")
    job = aborted(client, owner)[0]
    assert job["abort_reason"] == "waiting_timeout", job
    waited = time_of(job["finish_time"]) - time_of(job["start_time"])
    # Nodes alone would let it wait for half a minute.
    assert find_error(job["error"], WAITING_JOB_TIMEOUT)["attributes"]["timeout"] == patience, job
    assert waited >= patience / 1000 - 0.5, waited
    progress = owner.get_progress()
    assert (progress["failed"], progress["completed"]) == (0, 0), progress
    assert aborted(client, slow) == [], "its jobs have their time"
    log = client.get(f"{TREE}/preemption_log")
    assert {r["timeout"] for r in log if r["operation_id"] == slow.id} == {LONG}
    if option == "pool":
        alerts = [a["attributes"]["alert_type"] for a in client.get("//sys/scheduler/@alerts")]
        # As the tree's timeout of preemption: not below it.
        assert "waiting_timeout_below_preemption_timeout" not in alerts
        cluster.yt("set", "//sys/pools/owner/@waiting_for_resources_on_node_timeout", "1000")
        alerts = [a["attributes"]["alert_type"] for a in client.get("//sys/scheduler/@alerts")]
        assert "waiting_timeout_below_preemption_timeout" in alerts


def test_a_server_that_dies_in_the_middle_of_a_preemption():
    """The next server knows who is on his way out and asks nobody else (scheduling.md 15.1, 21); the
    event log has everything once."""
    with quick_cluster(resources=f"cpu={CORES},memory=8GiB,user_slots={CORES}") as cluster:
        client = quick_client(cluster)
        cluster.create_pool("owner", strong_guarantee_resources={"cpu": 2})
        cluster.create_pool("guest")
        slow = start(client, "guest", 8, interruption_signal="SIGINT",
                     spec={"allocation_preemption_timeout": 8_000},
                     command="trap '' INT; echo ready >&2; while :; do sleep 0.05; done")
        steady(client, [slow], [8])
        wait_for_traps(cluster, slow)
        owner = start(client, "owner", 1)

        def log():
            return [r["allocation_id"] for r in client.get(f"{TREE}/preemption_log")]
        wait_for(lambda: len(log()) == 1, what="a preemption", period=0.02)
        before = log()
        cluster.server.kill()
        cluster.server.start()
        cluster.wait_server()
        cluster.wait_nodes()
        wait_for(lambda: len(running(client, owner)) == 1, what="the owner's job")
        steady(client, [owner, slow], [1, 7])
        assert log() == before, "the same victim, and no other"
        victims = aborted(client, slow)
        assert [v["abort_reason"] for v in victims] == ["preemption"], victims
        assert victims[0]["interruption_info"]["preempted_for"]["operation_id"] == owner.id

        def known():
            """The files of the event log are written behind everybody's back."""
            events = [json.loads(line) for line in cluster.millpond("events", "--from", "1", "--json")[1].splitlines()]
            kinds = [e["event"] for e in events]
            return events if "job_aborted" in kinds and kinds.count("job_started") >= 9 else None
        events = wait_for(known, what="the end of the victim and the start of the ninth job in the event log")
        numbers = [e["number"] for e in events]
        assert numbers == list(range(1, len(events) + 1)), "each once, and none is missing"
        ends = [e for e in events if e["event"] == "job_aborted"]
        assert [e["job_id"] for e in ends] == [victims[0]["id"]]
        assert ends[0]["reason"] == "preemption"
        assert ends[0]["preempted_for"]["operation_id"] == owner.id
        assert ends[0]["preempted_for"]["job_id"] == running(client, owner)[0]
        first = {}
        for event in events:
            if event["event"] == "job_started":
                first.setdefault(event["job_id"], event)
        starts = [e["job_id"] for e in events if e["event"] == "job_started"]
        assert len(first) == len(starts) == 9, "each once"
        adopted = {e["job_id"] for e in events if e["event"] == "job_adopted"}
        assert set(running(client, slow)) <= adopted <= set(first), "who ran on was taken over"


def time_of(text):
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_lowered_limits_are_enforced(cluster, client):
    """The youngest jobs above the new limit go, exactly as many as needed (scheduling.md 23.9)."""
    cluster.create_pool("shrinking")
    operation, early, late = in_two_waves(cluster, client, "shrinking", 3, 3)
    cluster.yt("set", "//sys/pools/shrinking/@resource_limits", "{user_slots=3}")
    steady(client, [operation], [3])
    assert set(running(client, operation)) == early
    assert {j["id"] for j in aborted(client, operation)} == late


def test_lowered_limits_of_an_operation(cluster, client):
    cluster.create_pool("p")
    operation = start(client, "p", 3)
    steady(client, [operation], [3])
    client.update_operation_parameters(operation.id, {
        "scheduling_options_per_pool_tree": {"physical": {"resource_limits": {"user_slots": 1}}}})
    steady(client, [operation], [1])
    assert len(aborted(client, operation)) == 2


def test_total_and_running_limits_in_child_and_ancestor(cluster, client):
    """Scheduling.md 23.11, and the refusal above it."""
    cluster.create_pool("parent", max_running_operation_count=3, max_operation_count=7)
    for child in ("c1", "c2"):
        cluster.create_pool(child, parent_name="parent", max_running_operation_count=2, max_operation_count=5)
    def begin(pool):
        operation = start(client, pool, 1, command="sleep 1000")
        return operation
    def states(*operations):
        return [o.get_state().name for o in operations]
    o1, o2, o3, o4 = begin("c1"), begin("c1"), begin("c1"), begin("c2")
    o5, o6 = begin("c2"), begin("c1")
    wait_for(lambda: states(o1, o2, o3, o4, o5, o6) == ["running", "running", "pending", "running", "pending", "pending"],
             what="the queue")
    alert = client.get_operation(o5.id, attributes=["alerts"])["alerts"]["operation_pending"]
    assert alert["attributes"]["pool"] == "parent", "its own pool has room"
    o1.abort()
    wait_for(lambda: states(o3) == ["running"], what="the oldest of the pool that has room again")
    assert states(o5, o6) == ["pending", "pending"]
    o2.abort()
    wait_for(lambda: states(o6) == ["running"], what="the lowest queue first")
    assert states(o5) == ["pending"]
    o4.abort()
    wait_for(lambda: states(o5) == ["running"], what="the queue of the parent")
    # Totals: three are left; the seventh of the parent is the last, the fifth of a child before it.
    more = [begin("c1") for _ in range(3)]
    with pytest.raises(yt.wrapper.YtResponseError) as info:
        begin("c1")
    assert info.value.contains_code(202) and '"c1"' in str(info.value), str(info.value)
    more.append(begin("c2"))
    with pytest.raises(yt.wrapper.YtResponseError) as info:
        begin("c2")
    assert info.value.contains_code(202) and '"parent"' in str(info.value), str(info.value)
    for operation in more:
        operation.abort()


def test_lightweight_operations(cluster, client):
    """Vanilla operations of a FIFO pool run beyond the running limit, not beyond the total one (23.12)."""
    cluster.create_pool("r", max_running_operation_count=2, max_operation_count=5)
    cluster.create_pool("n", parent_name="r")
    cluster.create_pool("l", parent_name="r", mode="fifo", enable_lightweight_operations=True)
    heavy = start(client, "n", 1)
    light = [start(client, "l", 1) for _ in range(4)]
    wait_for(lambda: all(o.get_state().name == "running" for o in [heavy, *light]), what="all to run")
    counters = ["operation_count", "running_operation_count", "lightweight_running_operation_count"]
    def counts(pool):
        attributes = client.get(f"//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/{pool}")
        return [attributes[c] for c in counters]
    wait_for(lambda: (counts("r"), counts("l"), counts("n")) == ([5, 1, 4], [4, 0, 4], [1, 1, 0]), what="the counters")
    with pytest.raises(yt.wrapper.YtResponseError) as info:
        start(client, "l", 1)
    assert info.value.contains_code(202) and '"r"' in str(info.value), str(info.value)


def test_aggressive_starvation_finds_room_on_a_fragmented_cluster():
    """Scheduling.md 23.5: normal preemption never frees two cores on one node, aggressive does."""
    with quick_cluster(nodes=4, resources="cpu=2,memory=2GiB,user_slots=2") as cluster:
        client = quick_client(cluster)
        for pool in ("a", "b", "c"):
            cluster.create_pool(pool)
        # The example's shares: three eighths for each small one, two for the large one.
        cluster.yt("set", "//sys/pools/a/@strong_guarantee_resources", "{cpu=3}")
        cluster.yt("set", "//sys/pools/b/@strong_guarantee_resources", "{cpu=3}")
        cluster.yt("set", "//sys/pools/c/@strong_guarantee_resources", "{cpu=2}")
        a = start(client, "a", 4)
        steady(client, [a], [4])
        b = start(client, "b", 4)
        steady(client, [a, b], [4, 4])
        hosts = [{j["address"] for j in client.list_jobs(o.id, job_state="running")["jobs"]} for o in (a, b)]
        assert [len(h) for h in hosts] == [2, 2], "each has two nodes of its own"
        c = start(client, "c", 1, cpu=2)
        wait_for(lambda: orchid(client, c)["starvation_status"] == "starving", what="starvation")
        # Twice as long as the timeout of aggressive starvation.
        client.rounds(seconds=2)
        assert running(client, c) == [] and aborted(client, a) == [] and aborted(client, b) == [], "not enough on any node"
        cluster.yt("set", "//sys/pools/c/@enable_aggressive_starvation", "%true")
        wait_for(lambda: len(running(client, c)) == 1, what="the large job")
        victims = aborted(client, a) + aborted(client, b)
        assert len(victims) == 2 and len({v["address"] for v in victims}) == 1, victims
        assert {v["address"] for v in victims} == {client.list_jobs(c.id)["jobs"][0]["address"]}
        for operation in (a, b, c):
            operation.abort()
