"""Pools with the real `yt` command, as the public documentation writes it (http-api.md 8.8, fair-share.md 11 to 13)."""

import contextlib
import itertools

import pytest
import yt.wrapper as wrapper
import yt.yson as yson
from harness import cluster as make_cluster, lies_beside, wait_for

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

    def column():
        return cluster.get(f"{base}/bursty/-10s/now/1s/columns/accumulated_resource_ratio_volume")

    def grows():
        """A quarter of the cluster flows in. The first and the last second are known in part only, and nothing is known of a
        second in which the server stood still."""
        known = [(second, x) for second, x in enumerate(column()) if x is not None][1:-1]
        return len(known) > 3 and lies_beside([x for _, x in known], [0.25 * second for second, _ in known], 0.06)
    wait_for(grows, what="ten seconds in which the volume grows by a quarter a second", period=0.5, seen=column)
    chart = value(yt("get", f"{base}/bursty/-10s"))
    assert chart["step"] == 1000 and chart["count"] == len(chart["columns"]["usage"])
    assert "bursty" in yt("list", base)


def test_what_is_promised_moves_between_pools(cluster):
    """All of it at once, up to the nearest pool that both are in (http-api.md 8.8)."""
    client = cluster.client()
    cluster.create_pool("giver", strong_guarantee_resources={"cpu": 2}, max_operation_count=10)
    cluster.create_pool("given", parent_name="giver", strong_guarantee_resources={"cpu": 1}, max_operation_count=4)
    cluster.create_pool("taker")

    def transfer(**delta):
        client.transfer_pool_resources("given", "taker", "physical", delta)

    transfer(strong_guarantee_resources={"cpu": 0.5}, max_operation_count=0, max_running_operation_count=0)
    found = [client.get(f"{TREE}/{pool}/@strong_guarantee_resources/cpu") for pool in ("giver", "giver/given", "taker")]
    assert found == [1.5, 0.5, 0.5]
    assert client.get(f"{TREE}/giver/@max_operation_count") == 10
    assert not client.exists(f"{TREE}/taker/@user_attributes/max_operation_count")
    operation = cluster.start_vanilla("true", pool="taker")
    cluster.wait_state(operation, "completed")

    transfer(max_operation_count=3)
    assert [client.get(f"{TREE}/{pool}/@max_operation_count") for pool in ("giver", "giver/given", "taker")] == [7, 1, 3]
    for delta, part in (({"strong_guarantee_resources": {"cpu": 1}}, "were to be taken"),
                        ({"max_operation_count": -1}, "at least 0"),
                        ({"colour": 1}, "expected one of")):
        with pytest.raises(wrapper.YtResponseError) as info:
            transfer(**delta)
        assert part in str(info.value), delta
    assert client.get(f"{TREE}/giver/given/@strong_guarantee_resources/cpu") == 0.5, "nothing half applied"


# --- every rule, through the real client

_numbers = itertools.count()


@contextlib.contextmanager
def refused(code, match=None):
    with pytest.raises(wrapper.YtResponseError, match=match) as error:
        yield error
    assert error.value.contains_code(code), error.value


def new_pool(client, parent=None, name=None, **options):
    """A pool with a name of its own; gives it."""
    name = name or f"new-{next(_numbers)}"
    attributes = {"name": name, "pool_tree": "physical", **({"parent_name": parent} if parent else {}), **options}
    client.create("scheduler_pool", attributes=attributes)
    return name


def test_a_pool_is_made(client):
    attributes = {"name": "made", "pool_tree": "physical", "weight": 2}
    id = client.create("scheduler_pool", attributes=attributes)
    inner = client.create("scheduler_pool", attributes={**attributes, "name": "made-inside", "parent_name": "made"})
    for path, expected in ((f"{TREE}/made", {"id": id, "name": "made", "parent_name": "<Root>"}),
                           (f"{TREE}/made/made-inside", {"id": inner, "name": "made-inside", "parent_name": "made"})):
        shown = client.get(f"{path}/@")
        assert {name: shown[name] for name in expected} == expected
        assert (shown["type"], shown["pool_tree"], shown["path"], shown["key"]) == ("scheduler_pool", "physical", path, expected["name"])
        assert shown["weight"] == 2.0 and client.get(f"{path}/@effective_acl") and client.get(f"#{expected['id']}/@path") == path
        assert client.get(f"{path}/@weight") == client.get(path.replace("//sys/pool_trees/physical", "//sys/pools") + "/@weight")
    assert client.list(f"{TREE}/made") == ["made-inside"]
    assert client.create("scheduler_pool", attributes=attributes, ignore_existing=True) == id
    for again in (attributes, {**attributes, "parent_name": "made-inside"}, {**attributes, "name": "made-inside"}):
        with refused(501, again["name"]):
            client.create("scheduler_pool", attributes=again)
    for elsewhere in ({**attributes, "parent_name": "made-inside"}, {**attributes, "name": "made-inside"}):
        with refused(501, elsewhere["name"]):
            client.create("scheduler_pool", attributes=elsewhere, ignore_existing=True)


@pytest.mark.parametrize("change, code, words", [
    ({"name": None}, 1, "name.*required"),
    ({"pool_tree": None}, 1, "pool_tree.*required"),
    ({"pool_tree": "nowhere"}, 500, "nowhere"),
    ({"parent_name": "nobody"}, 500, "nobody"),
    ({"parent_name": ""}, 500, None),
    ({"name": ""}, 1, "name"),
    ({"name": "<Root>"}, 1, "<Root>"),
    ({"name": "x" * 101}, 1, "100"),
    ({"name": "a b"}, 1, "a b"),
    ({"name": "a.b"}, 1, "a.b"),
    ({"name": "pööl"}, 1, None),
    ({"name": 5}, 1, "name"),
    ({"parent_name": 5}, 1, "parent_name"),
    ({"pool_tree": ["physical"]}, 1, "pool_tree"),
    ({"acl": "all"}, 1, "acl|list"),
    ({"acl": [{"action": "allow", "subjects": ["nobody-there"], "permissions": ["use"]}]}, 1, "nobody-there"),
    ({"acl": [{"action": "allow", "subjects": ["root"], "permissions": ["fly"]}]}, 1, "fly"),
])
def test_pools_that_are_not_made(client, change, code, words):
    attributes = {"name": "not-made", "pool_tree": "physical", **change}
    before = client.list(TREE)
    with refused(code, words):
        client.create("scheduler_pool", attributes={key: value for key, value in attributes.items() if value is not None})
    assert client.list(TREE) == before


def test_inherit_acl_is_a_boolean(client):
    with refused(1, "inherit_acl"):
        new_pool(client, inherit_acl="false")


def test_names_that_are_fine(client):
    for name in ("-_:azAZ09" + "x" * 91, "0", ":", "-"):
        new_pool(client, name=name)
        client.remove(f"{TREE}/{name}")


def test_thirty_in_each_other(client):
    parent, chain = None, []
    for _ in range(30):
        parent = new_pool(client, parent)
        chain.append(parent)
    with refused(1, "30"):
        new_pool(client, parent)
    top = new_pool(client)
    with refused(1, "30"):
        client.set(f"{TREE}/{chain[0]}/@parent_name", top)
    assert client.get(f"{TREE}/{chain[0]}/@parent_name") == "<Root>" and client.list(f"{TREE}/{top}") == []
    client.remove(f"{TREE}/{chain[0]}", recursive=True)
    assert not set(chain) & set(client.list(TREE))


def test_options_are_there_when_they_are_set(client):
    path = f"{TREE}/{new_pool(client)}"
    for name, value, inner in (("weight", 3.0, None), ("max_operation_count", 7, None), ("mode", "fifo", None), ("abc", {"id": 5}, None),
                               ("fifo_sort_parameters", ["start_time"], None), ("forbid_immediate_operations", True, None),
                               ("strong_guarantee_resources", {"cpu": 0.5}, "cpu"), ("resource_limits", {"memory": 5}, "memory"),
                               ("my_own", {"a": [1]}, "a")):
        with refused(500, name):
            client.get(f"{path}/@{name}")
        with refused(500, name):
            client.remove(f"{path}/@{name}")
        client.set(f"{path}/@{name}", value)
        assert client.exists(f"{path}/@{name}") and client.get(f"{path}/@{name}") == value == client.get(f"{path}/@")[name]
        if inner:
            assert client.get(f"{path}/@{name}/{inner}") == value[inner]
            client.remove(f"{path}/@{name}/{inner}")
            assert client.get(f"{path}/@{name}") == {}
        client.remove(f"{path}/@{name}")
        assert not client.exists(f"{path}/@{name}")


def test_maps_are_made_on_the_way(client):
    path = f"{TREE}/{new_pool(client)}"
    client.set(f"{path}/@integral_guarantees/guarantee_type", "relaxed")
    client.set(f"{path}/@strong_guarantee_resources/cpu", 1)
    client.set(f"{path}/@resource_limits/user_slots", 5)
    assert client.get(f"{path}/@integral_guarantees") == {"guarantee_type": "relaxed"}
    assert client.get(f"{path}/@strong_guarantee_resources") == {"cpu": 1.0} == client.get(f"{path}/@min_share_resources")
    client.set(f"{path}/@min_share_resources", {"cpu": 0.5})
    shown = client.get(f"{path}/@")
    assert shown["strong_guarantee_resources"] == {"cpu": 0.5} and "min_share_resources" not in shown


@pytest.mark.parametrize("option, value, words", [
    ("max_operation_count", -1, "max_operation_count.*-1"),
    ("max_operation_count", 1.5, "max_operation_count"),
    ("max_running_operation_count", "x", "max_running_operation_count"),
    ("max_running_operation_count", 11, "max_running_operation_count.*11|11.*max_running_operation_count|10.*11"),
    ("max_operation_count", 4, "max_operation_count"),
    ("weight", -1.0, "weight.*-1"),
    ("weight", "heavy", "weight.*heavy|weight.*string"),
    ("mode", 5, "mode"),
    ("forbid_immediate_operations", "yes", "forbid_immediate_operations"),
    ("create_ephemeral_subpools", 1, "create_ephemeral_subpools"),
    ("ephemeral_subpool_config", {"colour": 1}, "ephemeral_subpool_config.*colour"),
    ("ephemeral_subpool_config", {"max_operation_count": -1}, "ephemeral_subpool_config/max_operation_count"),
    ("fair_share_starvation_tolerance", 2.0, "fair_share_starvation_tolerance.*2"),
    ("fair_share_starvation_timeout", -1, "fair_share_starvation_timeout.*-1"),
    ("resource_limits", 5, "resource_limits"),
    ("resource_limits/cpu", "x", "resource_limits/cpu"),
    ("strong_guarantee_resources/memory", -5, "strong_guarantee_resources/memory.*-5"),
    ("integral_guarantees/relaxed_share_multiplier_limit", 0.5, "relaxed_share_multiplier_limit.*0.5"),
    ("integral_guarantees/can_accept_free_volume", "x", "can_accept_free_volume"),
    ("scheduling_tag_filter", "a &", "scheduling_tag_filter"),
    ("config_preset", "nobody", "config_preset|nobody"),
    ("id", "1-2-3-4", "id"),
    ("type", "document", "type"),
    ("path", "//tmp", "path"),
    ("pool_tree", "other", "pool_tree"),
    ("name", 5, "name"),
    ("inherit_acl", "x", "inherit_acl.*boolean"),
])
def test_values_that_are_refused(client, option, value, words):
    name = new_pool(client, max_operation_count=10, max_running_operation_count=5)
    before = client.get(f"{TREE}/{name}/@")
    with refused(1, words):
        client.set(f"{TREE}/{name}/@{option}", value)
    assert client.get(f"{TREE}/{name}/@") == before
    with refused(1):
        client.set(f"{TREE}/{name}", {})
    client.remove(f"{TREE}/{name}")


KINDS = {
    "strong_guarantee_resources": lambda amounts: {"strong_guarantee_resources": amounts},
    "resource_flow": lambda amounts: {"integral_guarantees": {"resource_flow": amounts}},
    "burst_guarantee_resources": lambda amounts: {"integral_guarantees": {"burst_guarantee_resources": amounts}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_children_have_no_more_than_their_parent(client, kind):
    """The sum of all, for each resource; what the parent does not have is nothing."""
    of = KINDS[kind]
    top = new_pool(client, **of({"cpu": 3.0}))
    first = new_pool(client, top, **of({"cpu": 2.0}))
    for amounts, words in (({"cpu": 1.5}, f"{top}"), ({"cpu": 1.0, "memory": 5}, "memory")):
        with refused(1, words):
            new_pool(client, top, "too-much", **of(amounts))
    second = new_pool(client, top, **of({"cpu": 1.0}))
    option = next(iter(of({})))
    inner = "/cpu" if kind == option else f"/{kind}/cpu"
    for path, value in ((f"{TREE}/{top}/{second}", 1.5), (f"{TREE}/{top}", 2.5)):
        before = client.get(f"{path}/@{option}")
        with refused(1, top):
            client.set(f"{path}/@{option}{inner}", value)
        assert client.get(f"{path}/@{option}") == before
    with refused(1, top):
        client.remove(f"{TREE}/{top}/@{option}{inner}")
    outside = new_pool(client, **of({"cpu": 0.5}))
    for move in (lambda: client.set(f"{TREE}/{outside}/@parent_name", top), lambda: client.move(f"{TREE}/{outside}", f"{TREE}/{top}/{outside}")):
        with refused(1, top):
            move()
        assert client.get(f"{TREE}/{outside}/@parent_name") == "<Root>"
    # Nobody bounds pools of the first level.
    client.set(f"{TREE}/{outside}/@{option}{inner}", 1000.0)
    client.remove(f"{TREE}/{outside}")
    client.remove(f"{TREE}/{top}", recursive=True)
    assert not client.exists(f"{TREE}/{first}")


@pytest.mark.parametrize("type", ["burst", "relaxed"])
def test_nothing_integral_in_an_integral_pool(client, type):
    top = new_pool(client, integral_guarantees={"guarantee_type": type, "resource_flow": {"cpu": 2.0}})
    child = new_pool(client, top)
    for inner in ({"resource_flow": {"cpu": 1.0}}, {"burst_guarantee_resources": {"cpu": 1.0}}):
        with refused(1, f"{top}"):
            new_pool(client, top, "inside", integral_guarantees=inner)
        with refused(1, "integral|guarantee"):
            client.set(f"{TREE}/{top}/{child}/@integral_guarantees", inner)
    plain = new_pool(client, integral_guarantees={"resource_flow": {"cpu": 2.0}})
    new_pool(client, plain, integral_guarantees={"resource_flow": {"cpu": 1.0}})
    with refused(1, plain):
        client.set(f"{TREE}/{plain}/@integral_guarantees/guarantee_type", type)
    assert client.get(f"{TREE}/{plain}/@integral_guarantees") == {"resource_flow": {"cpu": 2.0}}
    for name in (top, plain):
        client.remove(f"{TREE}/{name}", recursive=True)


def test_nothing_in_a_fifo_pool(client):
    queue = new_pool(client, mode="fifo")
    with refused(1, f"{queue}.*FIFO|FIFO.*{queue}"):
        new_pool(client, queue)
    other = new_pool(client)
    with refused(1, "FIFO"):
        client.move(f"{TREE}/{other}", f"{TREE}/{queue}/{other}")
    with refused(1, "(?i)ephemeral"):
        client.set(f"{TREE}/{queue}/@create_ephemeral_subpools", True)
    with refused(1, "(?i)ephemeral"):
        new_pool(client, mode="fifo", create_ephemeral_subpools=True)
    assert client.list(f"{TREE}/{queue}") == [] and not client.exists(f"{TREE}/{queue}/@create_ephemeral_subpools")


def test_a_pool_gets_another_name(cluster, client):
    name, other = new_pool(client, weight=4.0), new_pool(client)
    child = new_pool(client, name)
    id = client.get(f"{TREE}/{name}/@id")
    operation = cluster.start_vanilla("sleep 1000", pool=child)
    cluster.wait_jobs(operation)
    client.set(f"{TREE}/{name}/@name", f"{name}-renamed")
    assert not client.exists(f"{TREE}/{name}")
    client.move(f"{TREE}/{name}-renamed", f"{TREE}/{name}-again")
    path = f"{TREE}/{name}-again"
    shown = client.get(f"{path}/@")
    assert (shown["id"], shown["name"], shown["weight"]) == (id, f"{name}-again", 4.0)
    assert client.list(path) == [child] and client.get(f"{path}/{child}/@parent_name") == f"{name}-again"
    client.set(f"{path}/{child}/@name", f"{child}-renamed")
    # Operations do not follow: they stay under the old name (scheduling.md 2.4).
    assert [(o["id"], o["state"]) for o in client.list_operations(pool=child)["operations"]] == [(operation, "running")]
    assert client.list_operations(pool=f"{child}-renamed")["operations"] == []
    for bad, code in ((other, 501), ("", 1), ("a b", 1), ("<Root>", 1), ("x" * 101, 1), (f"{child}-renamed", 501)):
        with refused(code):
            client.set(f"{path}/@name", bad)
    with refused(501, other):
        client.move(path, f"{TREE}/{other}")
    assert client.get(f"{path}/@id") == id
    client.abort_operation(operation)


def test_a_pool_goes_elsewhere(client):
    a, b = new_pool(client), new_pool(client)
    c = new_pool(client, a)
    id = client.get(f"{TREE}/{a}/{c}/@id")
    client.set(f"{TREE}/{a}/{c}/@parent_name", b)
    assert client.get(f"{TREE}/{b}/{c}/@id") == id and client.list(f"{TREE}/{a}") == []
    client.move(f"{TREE}/{b}/{c}", f"{TREE}/{a}/{c}-other")
    assert client.get(f"{TREE}/{a}/{c}-other/@id") == id
    client.set(f"{TREE}/{a}/{c}-other/@parent_name", "<Root>")
    assert client.get(f"{TREE}/{c}-other/@path") == f"{TREE}/{c}-other"
    client.set(f"{TREE}/{c}-other/@parent_name", a)
    before = client.get(f"{TREE}/{a}/@")
    for parent, code, words in (("nobody", 500, "nobody"), (f"{c}-other", 1, c), (a, 1, a), ("", 500, None)):
        with refused(code, words):
            client.set(f"{TREE}/{a}/@parent_name", parent)
    for to, code in ((f"{TREE}/{a}/{c}-other/{a}", 1), (f"{TREE}/nobody/{a}", 500), (f"{TREE}/{b}", 501), ("//tmp/a-pool", 1),
                     ("//sys/pool_trees/nowhere/a", 500)):
        with refused(code):
            client.move(f"{TREE}/{a}", to)
    for to in (f"{TREE}/{a}-copy", f"{TREE}/{b}/{a}", "//tmp/a-pool"):
        with refused(1):
            client.copy(f"{TREE}/{a}", to)
    assert client.get(f"{TREE}/{a}/@") == before and client.list(f"{TREE}/{b}") == [] and not client.exists("//tmp/a-pool")


def test_a_pool_is_removed(cluster, client):
    top = new_pool(client)
    child = new_pool(client, top)
    operation = cluster.start_vanilla("sleep 1000", pool=child)
    job, = cluster.wait_jobs(operation)
    with refused(1, f"{top}.*recursive"):
        client.remove(f"{TREE}/{top}")
    assert client.list(f"{TREE}/{top}") == [child]
    client.remove(f"{TREE}/{top}", recursive=True)
    assert not client.exists(f"{TREE}/{top}") and not client.exists(f"//sys/pools/{child}")
    assert [(j["id"], j["state"]) for j in client.list_jobs(operation)["jobs"]] == [(job, "running")], "it goes on"
    with refused(500, top):
        client.remove(f"{TREE}/{top}")
    client.remove(f"{TREE}/{top}", force=True)
    client.abort_operation(operation)


def test_trees(cluster, client):
    config = {"nodes_filter": "elsewhere", "max_operation_count": 11}
    id = client.create("scheduler_pool_tree", attributes={"name": "second", "config": config})
    path = "//sys/pool_trees/second"
    assert client.get(f"{path}/@id") == id and client.get(f"{path}/@config") == config
    assert client.create("scheduler_pool_tree", attributes={"name": "second"}, ignore_existing=True) == id
    for attributes, code, words in (({"name": "second"}, 501, "second"), ({}, 1, "name"), ({"name": 5}, 1, "name"),
                                    ({"name": "third", "config": []}, 1, "config.*map"), ({"name": "third", "weight": 1}, 1, "weight.*config"),
                                    ({"name": "third", "config": {"nodes_filter": "a &"}}, 1, "nodes_filter"),
                                    ({"name": "third", "config": {"max_operation_count": -1}}, 1, "max_operation_count")):
        with refused(code, words):
            client.create("scheduler_pool_tree", attributes=attributes)
    assert not client.exists("//sys/pool_trees/third")
    client.set(f"{path}/@config/max_operation_count", 12)
    client.set(f"{path}/@config/integral_guarantees/smooth_period", 5000)
    assert client.get(f"{path}/@config/integral_guarantees") == {"smooth_period": 5000}
    client.remove(f"{path}/@config/integral_guarantees")
    before = client.get(f"{path}/@")
    for option, value, words in (("weight", 1.0, "weight.*@config"), ("max_operation_count", 1, "@config"), ("config", 5, "config"),
                                 ("config/max_operation_count", "x", "max_operation_count"),):
        with refused(1, words):
            client.set(f"{path}/@{option}", value)
    assert client.get(f"{path}/@") == before
    with refused(1, "cannot be removed"):
        client.remove(path)

    # Names are those of one tree, and pools stay in theirs.
    name = new_pool(client)
    inner = client.create("scheduler_pool", attributes={"name": name, "pool_tree": "second"})
    assert client.get(f"{path}/{name}/@id") == inner != client.get(f"{TREE}/{name}/@id")
    with refused(1, "second"):
        client.move(f"{path}/{name}", f"{TREE}/{name}-moved")
    with refused(500):
        client.create("scheduler_pool", attributes={"name": "x", "pool_tree": "second", "parent_name": "outer-of-nobody"})
    client.remove(f"{path}/{name}")


NODES = "//sys/scheduler/orchid/scheduler/nodes"


def test_nodes_belong_to_one_tree(client):
    """A node that suits another tree, too, stays where it is, and that is told (scheduling.md 2.1)."""
    node, = client.list(NODES)
    client.create("scheduler_pool_tree", attributes={"name": "greedy"})
    try:
        wait_for(lambda: [a for a in client.get("//sys/scheduler/@alerts") if node in a["message"]], what="the alert")
        assert client.get(f"{NODES}/{node}/tree") == "physical"
    finally:
        client.set("//sys/pool_trees/greedy/@config/nodes_filter", "nowhere")
    wait_for(lambda: not [a for a in client.get("//sys/scheduler/@alerts") if node in a["message"]], what="the alert to go")


def test_nodes_stay_in_their_tree_over_a_restart():
    with make_cluster() as cluster:
        client = cluster.client()
        node, = client.list(NODES)
        client.create("scheduler_pool_tree", attributes={"name": "greedy"})
        assert client.get(f"{NODES}/{node}/tree") == "physical"
        cluster.server.kill()
        cluster.restart()
        wait_for(lambda: client.exists(f"{NODES}/{node}"), what="the node to be back")
        assert client.get(f"{NODES}/{node}/tree") == "physical"


@pytest.fixture
def another_default(client):
    """A tree that is the default one for a while."""
    client.create("scheduler_pool_tree", attributes={"name": "default-one", "config": {"nodes_filter": "elsewhere-too"}}, ignore_existing=True)
    client.set("//sys/pool_trees/@default_tree", "default-one")
    yield "default-one"
    client.set("//sys/pool_trees/@default_tree", "physical")


def test_the_default_tree(cluster, client, another_default):
    for wrong, code in (("nowhere", 500), (5, 1)):
        with refused(code):
            client.set("//sys/pool_trees/@default_tree", wrong)
    assert client.get("//sys/pool_trees/@default_tree") == another_default
    assert client.get("//sys/scheduler/orchid/scheduler/default_pool_tree") == another_default
    operation = cluster.start_vanilla("true", pool="in-the-default")
    shown = client.get_operation(operation, attributes=["runtime_parameters"])["runtime_parameters"]
    assert set(shown["scheduling_options_per_pool_tree"]) == {another_default}
    client.abort_operation(operation)


def test_pools_are_those_of_the_default_tree(client, another_default):
    name = f"new-{next(_numbers)}"
    client.create("scheduler_pool", attributes={"name": name, "pool_tree": another_default})
    assert client.get(f"//sys/pools/{name}/@pool_tree") == another_default
