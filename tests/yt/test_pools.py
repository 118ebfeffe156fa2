"""Pools with the real `yt` command, as the public documentation writes it (http-api.md 8.8, fair-share.md 11 to 13)."""

import pytest
import yt.wrapper as wrapper
import yt.yson as yson
from harness import lies_beside, wait_for

TREE = "//sys/pool_trees/physical"
ORCHID = "//sys/scheduler/orchid/scheduler/scheduling_info_per_pool_tree/physical/fair_share_info/pools"


@pytest.fixture(scope="module")
def yt(cluster):
    """Runs a command that must succeed; gives its output as a value if it is YSON."""
    def run(*arguments):
        return cluster.yt(*arguments)[1].strip()
    return run


def value(text):
    return yson.loads(text.encode())


@pytest.fixture(scope="module")
def pools(cluster, yt):
    """A burst pool made in one step and a relaxed one made step by step, both as documented."""
    yt("create", "scheduler_pool", "--attributes", """{
        name=bursty; pool_tree=physical;
        integral_guarantees={guarantee_type=burst; resource_flow={cpu=1}; burst_guarantee_resources={cpu=2}}}""")
    yt("create", "scheduler_pool", "--attributes", "{name=calm; pool_tree=physical}")
    yt("set", f"{TREE}/calm/@integral-guarantees/guarantee-type", "relaxed")
    yt("set", f"{TREE}/calm/@integral-guarantees/resource-flow", "{cpu=0.5}")
    wait_for(lambda: cluster.exists(f"{ORCHID}/calm/integral_pool_capacity"), what="the pools in the Orchid")


def test_large_maps_of_the_orchid_come_in_part(pools, cluster):
    """As many children as asked for, and a word that there are more (8.3, 11.2)."""
    client = cluster.client()
    for path in (ORCHID, "//sys/scheduler/orchid/scheduler/pool_trees/physical/child_pools_by_pool/<Root>"):
        names = client.list(path)
        assert {"bursty", "calm"} <= set(names), path
        part = client.get(path, max_size=1)
        assert len(part) == 1 and part.attributes["incomplete"]
        some = client.list(path, max_size=1)
        assert len(some) == 1 and some[0] in names and some.attributes["incomplete"]
        assert "incomplete" not in client.get(path).attributes


def test_hyphens_are_a_spelling(pools, yt):
    canonical = value(yt("get", f"{TREE}/calm/@integral_guarantees"))
    assert canonical == {"guarantee_type": "relaxed", "resource_flow": {"cpu": 0.5}}
    assert value(yt("get", f"{TREE}/calm/@integral-guarantees")) == canonical
    assert yt("get", f"{TREE}/calm/@integral-guarantees/resource-flow/cpu") == "0.5"
    assert yt("exists", f"{TREE}/calm/@integral-guarantees/burst-guarantee-resources") == "false"
    # In whole maps, too.
    yt("set", f"{TREE}/calm/@integral-guarantees", "{guarantee-type=relaxed; resource-flow={cpu=0.25}}")
    assert value(yt("get", f"{TREE}/calm/@integral_guarantees"))["resource_flow"] == {"cpu": 0.25}
    yt("set", f"{TREE}/calm/@integral_guarantees/resource_flow/cpu", "0.5")
    yt("remove", f"{TREE}/calm/@integral-guarantees/resource-flow/cpu")
    assert value(yt("get", f"{TREE}/calm/@integral_guarantees"))["resource_flow"] == {}
    yt("set", f"{TREE}/calm/@integral-guarantees/resource-flow", "{cpu=0.5}")


def test_orchid_of_integral_pools(pools, yt, cluster):
    day = 86_400
    assert value(yt("get", f"{ORCHID}/bursty/integral_pool_capacity"))["cpu"] == pytest.approx(day)
    assert value(yt("get", f"{ORCHID}/calm/integral_pool_capacity"))["cpu"] == pytest.approx(day / 2)
    wait_for(lambda: cluster.get(f"{ORCHID}/bursty/accumulated_resource_ratio_volume") > 0, what="some volume")
    pool = value(yt("get", f"{ORCHID}/bursty"))
    assert pool["integral_guarantee_type"] == "burst"
    assert pool["integral_pool_ratio_capacity"] == pytest.approx(day / 4)
    assert pool["specified_burst_ratio"] == pytest.approx(0.5)
    assert pool["specified_resource_flow_ratio"] == pytest.approx(0.25)
    assert pool["specified_burst_guarantee_resources"]["cpu"] == pytest.approx(2)
    assert pool["specified_resource_flow"]["cpu"] == pytest.approx(1)
    volume = pool["accumulated_resource_volume"]
    assert volume["cpu"] == pytest.approx(4 * pool["accumulated_resource_ratio_volume"], rel=0.01)
    assert volume["user_memory"] == volume["memory"] > 0
    assert pool["estimated_burst_usage_duration_seconds"] == pytest.approx(
        pool["accumulated_resource_ratio_volume"] / 0.25)
    calm = value(yt("get", f"{ORCHID}/calm"))
    assert calm["integral_guarantee_type"] == "relaxed"
    assert "estimated_burst_usage_duration_seconds" not in calm
    root = value(yt("get", f"{ORCHID}/<Root>"))
    assert root["total_resource_flow_ratio"] == pytest.approx(0.375)
    assert root["total_burst_ratio"] == pytest.approx(0.5)
    assert "integral_pool_capacity" not in root


# Every pool has these (fair-share.md 12.1).
EVERY = """weight dominant_resource resource_usage usage_share dominant_usage_share usage_ratio resource_demand
    demand_share dominant_demand_share demand_ratio resource_limits limits_share
    scheduling_tag_filter_resource_limits specified_resource_limits specified_resource_limits_overcommit_tolerance
    limited_demand_share dominant_limited_demand_share limited_resource_demand strong_guarantee_share min_share
    min_share_ratio strong_guarantee_share_by_tier strong_guarantee_resources min_share_resources
    inferred_strong_guarantee_resources effective_strong_guarantee_resources effective_min_share_resources
    fair_share_ratio dominant_fair_share detailed_fair_share detailed_dominant_fair_share fair_resources
    detailed_promised_guarantee_fair_share detailed_dominant_promised_guarantee_fair_share promised_fair_share
    estimated_guarantee_share dominant_estimated_guarantee_share estimated_guarantee_resources
    proposed_integral_share best_allocation_share fair_share_functions_statistics satisfaction_ratio
    local_satisfaction_ratio mode integral_guarantee_type total_resource_flow_ratio total_burst_ratio
    priority_strong_guarantee_adjustment_enabled priority_strong_guarantee_adjustment_donorship_enabled
    gang_operations_allowed"""


def test_every_attribute_is_there(pools, yt):
    pool = value(yt("get", f"{ORCHID}/bursty"))
    missing = [name for name in EVERY.split() if name not in pool]
    assert not missing
    for name in ("detailed_fair_share", "detailed_dominant_fair_share"):
        assert set(pool[name]) == {"strong_guarantee", "integral_guarantee", "weight_proportional", "total"}
    assert set(pool["fair_resources"]) >= {"user_slots", "cpu", "gpu", "user_memory", "memory", "network"}
    assert set(pool["usage_share"]) == {"user_slots", "cpu", "gpu", "memory", "network"}


# What is refused, and words that say what and why (fair-share.md 11.1).
REFUSED = [
    ("strong_guarantee_resources", "{cpu=-1}", ["strong_guarantee_resources/cpu", "-1", "0.."]),
    ("strong_guarantee_resources", "{cpu=%nan}", ["strong_guarantee_resources/cpu", "NaN"]),
    ("strong_guarantee_resources", "{cpu=%inf}", ["strong_guarantee_resources/cpu", "inf"]),
    ("strong_guarantee_resources", "{cpu=1e300}", ["strong_guarantee_resources/cpu", "1e300"]),
    ("strong_guarantee_resources", "{cpu=1;memory=9223372036854775807}", ["strong_guarantee_resources/memory"]),
    ("strong_guarantee_resources", "{memory=5}", ["Main resource", "cpu", "outer"]),
    ("strong_guarantee_resources", "{cpu=1;bananas=2}", ["bananas"]),
    ("strong_guarantee_resources", "{cpu=1}", ["outer", "cpu", "1", "2"]),
    ("strong_guarantee_resources", "{}", ["inner", "outer", "cpu"]),
    ("integral_guarantees", "{guarantee_type=burst; resource_flow={cpu=%nan}}", ["resource_flow/cpu", "NaN"]),
    ("integral_guarantees", "{guarantee_type=burst; flow={cpu=1}}", ["integral_guarantees/flow"]),
    ("integral_guarantees", "{guarantee_type=relaxed; burst_guarantee_resources={cpu=1}}", ["relaxed", "Burst"]),
    ("integral_guarantees", "{guarantee_type=sometimes}", ["sometimes", "burst", "relaxed"]),
    ("integral_guarantees", "{relaxed_share_multiplier_limit=11}", ["relaxed_share_multiplier_limit", "11", "10"]),
    ("integral_guarantees", "{resource_flow={cpu=1}; resource-flow={cpu=2}}", ["resource_flow", "twice"]),
    ("weight", "0", ["weight", "0"]),
    ("weight", "%nan", ["weight", "NaN"]),
    ("weight", "1e9", ["weight", "67108864"]),
    ("resource_limits", "{cpu=-0.5}", ["resource_limits/cpu", "-0.5"]),
    ("resource_limits", "{discs=1}", ["discs"]),
    ("max_share_ratio", "1.5", ["max_share_ratio", "1.5"]),
    ("mode", "fifo", ["outer", "FIFO"]),
    ("mode", "lottery", ["lottery", "fifo"]),
    ("fifo_sort_parameters", "[]", ["fifo_sort_parameters", "non-empty"]),
    ("fifo_sort_parameters", "[colour]", ["fifo_sort_parameters", "colour"]),
]


@pytest.fixture(scope="module")
def outer(yt):
    """A pool with a guarantee, and one inside that has a part of it."""
    yt("create", "scheduler_pool", "--attributes",
       "{name=outer; pool_tree=physical; strong_guarantee_resources={cpu=3}}")
    yt("create", "scheduler_pool", "--attributes",
       "{name=inner; pool_tree=physical; parent_name=outer; strong_guarantee_resources={cpu=2}}")
    return f"{TREE}/outer"


@pytest.mark.parametrize(("option", "text", "words"), REFUSED, ids=[f"{o} {t}" for o, t, _ in REFUSED])
def test_refused(outer, cluster, option, text, words):
    before = cluster.get(f"{outer}/@")
    code, _, err = cluster.yt("set", f"{outer}/@{option}", text, check=False)
    assert code != 0
    message = err.split("***** Details")[0]
    for word in words:
        assert word in message, err
    assert '"pool_name"' in err or "pool_name" in err, err
    assert cluster.get(f"{outer}/@") == before, "a refusal changed something"


def test_sums_of_children_name_everything(outer, cluster):
    code, _, err = cluster.yt(
        "create", "scheduler_pool", "--attributes",
        "{name=second; pool_tree=physical; parent_name=outer; strong_guarantee_resources={cpu=1.5}}", check=False)
    assert code != 0
    message = err.split("***** Details")[0]
    # Pool, resource, bound, sum.
    for word in ("outer", "cpu", "3.0", "3.5"):
        assert word in message, err
    assert not cluster.exists(f"{outer}/second")


def test_accepted_and_inert(cluster, yt):
    """Legal, and without effect: `pool explain` says so (fair-share.md 11.1 [D])."""
    yt("create", "scheduler_pool", "--attributes", """{
        name=half; pool_tree=physical;
        integral_guarantees={guarantee_type=burst; burst_guarantee_resources={cpu=1}};
        strong_guarantee_resources={cpu=0; gpu=2}}""")
    wait_for(lambda: cluster.exists(f"{ORCHID}/half"), what="the pool in the Orchid")
    explanation = cluster.millpond("pool", "explain", "half")[1]
    assert "integral_guarantees/resource_flow is not set" in explanation
    assert "gpu, which the cluster does not have" in explanation
    pool = value(yt("get", f"{ORCHID}/half"))
    assert float(pool["strong_guarantee_share"]["gpu"]) == 0
    assert float(pool["accumulated_resource_ratio_volume"]) == 0


def test_history_through_the_client(pools, yt, cluster):
    base = "//sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history"
    volumes = wait_for(
        lambda: (v := [x for x in cluster.get(
            f"{base}/bursty/-10s/now/1s/columns/accumulated_resource_ratio_volume") if x is not None])
        and len(v) > 5 and v, what="some seconds of history")
    # A quarter of the cluster flows in; the last second is known in part only.
    whole = volumes[1:-1]
    assert lies_beside(whole, [0.25 * second for second in range(len(whole))], 0.06), volumes
    chart = value(yt("get", f"{base}/bursty/-10s"))
    assert chart["step"] == 1000 and chart["count"] == len(chart["columns"]["usage"])
    assert "bursty" in yt("list", base)


def test_what_is_promised_moves_between_pools(cluster, yt):
    """All of it at once, up to the nearest pool that both are in (http-api.md 8.8)."""
    client = cluster.client()
    cluster.create_pool("giver", strong_guarantee_resources={"cpu": 2}, max_operation_count=10)
    cluster.create_pool("given", parent_name="giver", strong_guarantee_resources={"cpu": 1}, max_operation_count=4)
    cluster.create_pool("taker")

    def transfer(**delta):
        client.transfer_pool_resources("given", "taker", "physical", delta)

    transfer(strong_guarantee_resources={"cpu": 0.5}, max_operation_count=0, max_running_operation_count=0)
    found = [float(yt("get", f"{TREE}/{pool}/@strong_guarantee_resources/cpu")) for pool in ("giver", "giver/given", "taker")]
    assert found == [1.5, 0.5, 0.5]
    assert yt("get", f"{TREE}/giver/@max_operation_count") == "10"
    assert yt("exists", f"{TREE}/taker/@user_attributes/max_operation_count") == "false"
    operation = cluster.start_vanilla("true", pool="taker")
    cluster.wait_state(operation, "completed")

    transfer(max_operation_count=3)
    assert [yt("get", f"{TREE}/{pool}/@max_operation_count") for pool in ("giver", "giver/given", "taker")] == ["7", "1", "3"]
    for delta, part in (({"strong_guarantee_resources": {"cpu": 1}}, "were to be taken"),
                        ({"max_operation_count": -1}, "at least 0"),
                        ({"colour": 1}, "expected one of")):
        with pytest.raises(wrapper.YtResponseError) as info:
            transfer(**delta)
        assert part in str(info.value), delta
    assert float(yt("get", f"{TREE}/giver/given/@strong_guarantee_resources/cpu")) == 0.5, "nothing half applied"
