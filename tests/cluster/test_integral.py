"""Burst and relaxed pools on a real cluster: volumes against the law of motion (fair-share.md 7).

The periods of the tree are short, so that a volume fills and drains in seconds. What is compared comes
from the history of the pool: means over seconds of what it was granted, and of its volume.
"""

import json
import math
import time
import urllib.request

import pytest

from harness import ServerError, cluster as make_cluster, lies_beside, wait_for

CORES = 4
SMOOTH = 2.0
SATURATION = 12.0
FOREVER = "sleep 1000"
# An update charges for the time since the one before, every 200 ms; means are over seconds.
CLOSE = 0.12
POOLS = "//sys/scheduler/orchid/scheduler/pool_trees/physical/pools"


@pytest.fixture(scope="module")
def cluster():
    with make_cluster(resources=f"cpu={CORES},memory=8GiB,user_slots=200") as c:
        c.set("//sys/pool_trees/physical/@config/integral_guarantees", {
            "smooth_period": int(SMOOTH * 1000),
            "pool_capacity_saturation_period": int(SATURATION * 1000),
        })
        yield c


@pytest.fixture(autouse=True)
def empty(cluster):
    """Every test begins with an idle cluster and its own pools."""
    yield
    for operation in cluster.command("list_operations", limit=100)["operations"]:
        if operation["state"] not in ("completed", "failed", "aborted"):
            cluster.command("abort_operation", operation_id=operation["id"])
    for pool in cluster.command("list", path="//sys/pools")["value"]:
        cluster.remove(f"//sys/pools/{pool}", recursive=True)


def want_everything(cluster, pool):
    """An operation that could use the whole cluster."""
    return cluster.start_vanilla(FOREVER, job_count=10 * CORES, pool=pool, cpu_limit=0.1, memory_limit=16 << 20)


def integral(cluster, pool, kind, flow, burst=None, **more):
    guarantees = {"guarantee_type": kind, "resource_flow": {"cpu": flow * CORES}}
    if burst is not None:
        guarantees["burst_guarantee_resources"] = {"cpu": burst * CORES}
    cluster.create_pool(pool, integral_guarantees={**guarantees, **more})
    # The Orchid shows what the last update saw.
    wait_for(lambda: cluster.exists(f"{POOLS}/{pool}"), what=f"an update that knows {pool}")


def granted(cluster, pool):
    return cluster.pool_orchid(pool)["detailed_dominant_fair_share"]["integral_guarantee"]


def volume(cluster, pool):
    return cluster.pool_orchid(pool)["accumulated_resource_ratio_volume"]


def history(cluster, pool, seconds, step="1s"):
    address = f"http://{cluster.address}/api/millpond/pool_history?pool={pool}&start=-{seconds}s&step={step}"
    with urllib.request.urlopen(address, timeout=180) as reply:
        return json.load(reply)


def check_law_of_motion(cluster, pool, flow, capacity, begin):
    """volume(t) = volume(0) + flow x t - integral of the granted share, below the capacity, since `begin`."""
    chart = history(cluster, pool, math.ceil(time.monotonic() - begin) + 1)
    columns = chart["columns"]
    # Nothing is known of a second in which the server stood still.
    points = [(second, v, g) for second, (v, g)
              in enumerate(zip(columns["accumulated_resource_ratio_volume"], columns["integral_guarantee"])) if v is not None]
    assert len(points) >= 8, chart
    # The first and the last second may be known in part only.
    points = points[1:-1]
    expected = [points[0][1]]
    for (second, _, before), (later, _, g) in zip(points, points[1:]):
        expected.append(min(expected[-1] + (later - second) * (flow - (before + g) / 2), capacity))
    known = [(v, g) for _, v, g in points]
    assert lies_beside([v for v, _ in known], expected, CLOSE), (points, expected)
    return known


def test_burst_pool_spends_and_refills(cluster):
    flow, burst = 0.25, 0.75
    capacity = flow * SATURATION
    # Before the pool is made: on a late machine it is nearly full when the next line runs.
    begin = time.monotonic()
    integral(cluster, "b", "burst", flow, burst)
    cluster.create_pool("other", strong_guarantee_resources={"cpu": 0.25 * CORES})
    orchid = cluster.pool_orchid("b")
    assert orchid["integral_pool_ratio_capacity"] == pytest.approx(capacity)
    assert orchid["integral_pool_capacity"]["cpu"] == pytest.approx(capacity * CORES)
    assert orchid["specified_burst_ratio"] == pytest.approx(burst)
    assert orchid["specified_resource_flow_ratio"] == pytest.approx(flow)

    # It fills up in the saturation period, and no further.
    wait_for(lambda: volume(cluster, "b") >= capacity * 0.999, what="a full volume", period=0.1)
    check_law_of_motion(cluster, "b", flow, capacity, begin)
    # Nearly full is not full: the explanation says so after another update or two.
    wait_for(lambda: "it is full" in cluster.millpond("pool", "explain", "b")[1], what="an explanation that says full")
    # Every update charges.
    cluster.rounds(5, heartbeats=False)
    assert volume(cluster, "b") == pytest.approx(capacity, rel=1e-3)
    assert cluster.pool_orchid("b")["estimated_burst_usage_duration_seconds"] == pytest.approx(
        capacity / (burst - flow), rel=0.01)

    # The burst, while the volume lasts; then what flows in. It is over after three seconds, so it is looked at in the history.
    begin = time.monotonic()
    want_everything(cluster, "other")
    operation = want_everything(cluster, "b")
    wait_for(lambda: granted(cluster, "b") == pytest.approx(flow, abs=0.01), what="the flow", period=0.1)
    known = check_law_of_motion(cluster, "b", flow, capacity, begin)
    assert max(g for _, g in known) == pytest.approx(burst, abs=1e-3)
    # In equilibrium the volume is the flow over the smooth period (7.2).
    wait_for(lambda: volume(cluster, "b") == pytest.approx(flow * SMOOTH, abs=0.02), what="the equilibrium")

    # Without demand it refills at once.
    cluster.command("abort_operation", operation_id=operation)
    wait_for(lambda: granted(cluster, "b") == 0, what="no share without demand")
    start = volume(cluster, "b")
    wait_for(lambda: volume(cluster, "b") >= start + 1.0, what="the refill", period=0.05)
    # From before the burst on: all changes of the demand are in it.
    check_law_of_motion(cluster, "b", flow, capacity, begin)

    # The explanation of a small burst, which lasts for most of a minute.
    small_burst = 0.27
    cluster.set("//sys/pools/b/@integral_guarantees/burst_guarantee_resources/cpu", small_burst * CORES)
    wait_for(lambda: cluster.pool_orchid("b")["specified_burst_ratio"] == pytest.approx(small_burst), what="the small burst guarantee")
    want_everything(cluster, "b")

    def explain():
        return cluster.millpond("pool", "explain", "b")[1]

    def explained():
        explanation = explain()
        return "its burst guarantee" in explanation and "can be held for" in explanation
    wait_for(explained, what="the burst to be explained", seen=explain)


def test_relaxed_pool_is_given_a_multiple_of_its_flow(cluster):
    # The volume of a small multiple lasts for most of a minute: the test may be late.
    flow, multiple = 0.1, 1.2
    integral(cluster, "r", "relaxed", flow, relaxed_share_multiplier_limit=multiple)
    cluster.create_pool("other", weight=1000)
    # All that it can hold.
    wait_for(lambda: volume(cluster, "r") >= 0.99 * flow * SATURATION, what="a full volume", period=0.1)
    begin = time.monotonic()
    want_everything(cluster, "other")
    want_everything(cluster, "r")

    def seen():
        return granted(cluster, "r"), cluster.millpond("pool", "explain", "r")[1]

    def is_given_the_multiple():
        share, explanation = seen()
        return share == pytest.approx(multiple * flow, abs=1e-6) and "1.2 times its flow" in explanation
    wait_for(is_given_the_multiple, what="1.2 times the flow", seen=seen)
    # Live: a higher multiplier acts at once, while the volume lasts. That is a few seconds, so it is looked at in the history.
    cluster.set("//sys/pools/r/@integral_guarantees/relaxed_share_multiplier_limit", 3)
    wait_for(lambda: granted(cluster, "r") == pytest.approx(flow, abs=0.01), what="the flow", period=0.1, seen=seen)
    known = check_law_of_motion(cluster, "r", flow, flow * SATURATION, begin)
    assert max(g for _, g in known) > 2 * flow, known


def test_guarantees_change_live(cluster):
    cluster.create_pool("p")
    cluster.create_pool("q")
    want_everything(cluster, "p")
    want_everything(cluster, "q")

    def share(pool, part="total"):
        return cluster.pool_orchid(pool)["detailed_dominant_fair_share"][part]

    def settles(pool, part, expected):
        wait_for(lambda: share(pool, part) == pytest.approx(expected, abs=1e-6), period=0.02,
                 what=f"{part} of {pool} to be {expected}")

    settles("p", "total", 0.5)
    cluster.set("//sys/pools/p/@weight", 3)
    settles("p", "total", 0.75)
    cluster.set("//sys/pools/p/@resource_limits", {"cpu": 1})
    settles("p", "total", 0.25)
    settles("q", "total", 0.75)
    cluster.remove("//sys/pools/p/@resource_limits")
    cluster.set("//sys/pools/p/@max_share_ratio", 0.125)
    settles("p", "total", 0.125)
    cluster.remove("//sys/pools/p/@max_share_ratio")
    cluster.set("//sys/pools/p/@weight", 1)
    cluster.set("//sys/pools/q/@strong_guarantee_resources", {"cpu": 3})
    settles("q", "strong_guarantee", 0.75)
    settles("q", "total", 0.875)
    # 6 of 4 cores: both are scaled, and the administrator is told.
    cluster.set("//sys/pools/p/@strong_guarantee_resources", {"cpu": 3})
    settles("q", "total", 0.5)
    alerts = json.dumps(cluster.get("//sys/scheduler/@alerts"))
    assert "update_fair_share" in alerts and "pool_tree_guarantees_overcommit" in alerts, alerts
    assert "exceed the cluster" in alerts
    explanation = cluster.millpond("pool", "explain", "q")[1]
    assert "scaled by 0.667" in explanation, explanation


def test_history_of_a_renamed_pool(cluster):
    cluster.create_pool("before", strong_guarantee_resources={"cpu": 2})
    want_everything(cluster, "before")
    wait_for(lambda: cluster.pool_orchid("before")["fair_share_ratio"] == 1, what="a share")
    base = "//sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history"

    def column(pool, name):
        return [x for x in cluster.get(f"{base}/{pool}/-300s/now/1s/columns/{name}") if x is not None]
    # The last one is not over: what the pool is without during the change of its name would count in it.
    wait_for(lambda: 1.0 in column("before", "fair_share")[:-1], what="a second with all shares")
    cluster.set("//sys/pools/before/@name", "after")
    wait_for(lambda: cluster.exists(f"{POOLS}/after"), what="an update that knows the new name")
    shares = column("after", "fair_share")
    assert 1.0 in shares, shares
    parts = column("after", "strong_guarantee")
    assert any(x == pytest.approx(0.5) for x in parts), parts


@pytest.mark.parametrize(("query", "words"), [
    ("pool=nobody", "nobody"),
    ("pool=p&pool_tree=nowhere", "nowhere"),
    ("pool=p&start=-1s&end=-2s", "after its start"),
    ("pool=p&start=-100d&step=1s", "at most 20000"),
    ("pool=p&start=tomorrow", "tomorrow"),
])
def test_bad_questions_about_the_past(cluster, query, words):
    cluster.create_pool("p")
    wait_for(lambda: cluster.exists(f"{POOLS}/p"), what="an update that knows the pool")
    with pytest.raises(urllib.error.HTTPError) as info:
        urllib.request.urlopen(f"http://{cluster.address}/api/millpond/pool_history?{query}", timeout=180)
    assert info.value.code == 400
    assert words in info.value.read().decode()


def test_explanations_are_the_same_everywhere(cluster):
    cluster.create_pool("p", resource_limits={"cpu": 1})
    want_everything(cluster, "p")
    wait_for(lambda: cluster.pool_orchid("p")["fair_share_ratio"] == 0.25, what="a share")
    base = "//sys/scheduler/orchid/scheduler/pool_trees/physical/pool_explanations"
    by_orchid = cluster.get(f"{base}/p")
    with urllib.request.urlopen(f"http://{cluster.address}/api/millpond/pool_explanation?pool=p") as reply:
        by_question = json.load(reply)
    by_command = json.loads(cluster.millpond("pool", "explain", "p", "--json")[1])
    for explanation in (by_orchid, by_question, by_command):
        assert explanation["outcome"]["reason"] == "own_limit"
        assert explanation["outcome"]["limit"]["source"] == "resource_limits"
        assert explanation["outcome"]["limit"]["amount"] == 1
    assert cluster.millpond("pool", "explain", "p", "-q")[1].strip() == "own_limit"
    with pytest.raises(ServerError):
        cluster.get(f"{base}/nobody")
    code, _, err = cluster.millpond("pool", "explain", "pp", check=False)
    assert code != 0 and "did you mean p?" in err, err
