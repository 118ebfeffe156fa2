"""`transfer_pool_resources` through the real client."""

import pytest
import yt.yson
from calls import fresh, raw, refused

TREE = "//sys/pool_trees/physical"


@pytest.fixture
def pools(cluster, client):
    """Makes pools in one another, as `{name: (parent, options)}`; gives their names, and how to ask for an option."""
    mark = fresh("t")

    def name(pool):
        return f"{mark}-{pool}"

    def chain(pool):
        return name(pool) if parents[pool] is None else f"{chain(parents[pool])}/{name(pool)}"

    def option(pool, option):
        return client.get(f"{TREE}/{chain(pool)}/@{option}")
    parents = {}

    def make(**wanted):
        for pool, (parent, options) in wanted.items():
            parents[pool] = parent
            cluster.create_pool(name(pool), **({"parent_name": name(parent)} if parent else {}), **options)
        return name, option
    return make


def test_transfer_pool_resources(cluster, client):
    a, b = (fresh("transfer") for _ in range(2))
    cluster.create_pool(a, strong_guarantee_resources={"cpu": 1.0})
    cluster.create_pool(b)
    client.transfer_pool_resources(a, b, "physical", {"strong_guarantee_resources": {"cpu": 1.0}})
    assert client.get(f"//sys/pool_trees/physical/{b}/@strong_guarantee_resources/cpu") == yt.yson.YsonDouble(1.0)


def test_up_to_where_they_meet(client, pools):
    """What both are in does not change."""
    def cpu(n):
        return {"strong_guarantee_resources": {"cpu": float(n), "memory": n << 30}, "max_operation_count": 2 * n,
                "max_running_operation_count": n}
    name, option = pools(top=(None, cpu(10)), left=("top", cpu(6)), leaf=("left", cpu(4)), right=("top", cpu(2)), other=("right", cpu(1)))
    client.transfer_pool_resources(name("leaf"), name("other"), "physical", cpu(1))
    found = {pool: (option(pool, "strong_guarantee_resources/cpu"), option(pool, "strong_guarantee_resources/memory") >> 30,
                    option(pool, "max_operation_count"), option(pool, "max_running_operation_count"))
             for pool in ("top", "left", "leaf", "right", "other")}
    assert found == {"top": (10.0, 10, 20, 10), "left": (5.0, 5, 10, 5), "leaf": (3.0, 3, 6, 3), "right": (3.0, 3, 6, 3), "other": (2.0, 2, 4, 2)}
    # Between a pool and one in it: only the inner one changes.
    client.transfer_pool_resources(name("leaf"), name("left"), "physical", {"strong_guarantee_resources": {"cpu": 1.0}})
    assert (option("leaf", "strong_guarantee_resources/cpu"), option("left", "strong_guarantee_resources/cpu")) == (2.0, 5.0)


def test_what_integral_pools_have(client, pools):
    guarantees = {"guarantee_type": "burst", "burst_guarantee_resources": {"cpu": 4.0}, "resource_flow": {"cpu": 2.0}}
    name, option = pools(a=(None, {"integral_guarantees": guarantees}), b=(None, {"integral_guarantees": {"guarantee_type": "burst"}}))
    client.transfer_pool_resources(name("a"), name("b"), "physical", {"burst_guarantee_resources": {"cpu": 1.0}, "resource_flow": {"cpu": 0.5}})
    for pool, burst, flow in (("a", 3.0, 1.5), ("b", 1.0, 0.5)):
        assert option(pool, "integral_guarantees/burst_guarantee_resources/cpu") == burst
        assert option(pool, "integral_guarantees/resource_flow/cpu") == flow


def test_all_of_it_in_parts(client, pools):
    """Three times a third is everything, whatever the binary fractions say."""
    name, option = pools(a=(None, {"strong_guarantee_resources": {"cpu": 0.3}}), b=(None, {}))
    for _ in range(3):
        client.transfer_pool_resources(name("a"), name("b"), "physical", {"strong_guarantee_resources": {"cpu": 0.1}})
    assert (option("a", "strong_guarantee_resources/cpu"), option("b", "strong_guarantee_resources/cpu")) == (0.0, 0.3)


@pytest.mark.parametrize("delta, words", [
    ({"strong_guarantee_resources": {"cpu": 3.0}}, "cpu.*has 2.*3.*taken"),
    ({"strong_guarantee_resources": {"cpu": -1.0}}, "cpu.*at least 0"),
    ({"strong_guarantee_resources": {"cpu": float("nan")}}, "cpu"),
    ({"strong_guarantee_resources": {"bananas": 0}}, "bananas"),
    ({"strong_guarantee_resources": 5}, "strong_guarantee_resources.*map"),
    ({"max_operation_count": -1}, "max_operation_count.*at least 0"),
    ({"max_operation_count": 1.5}, "max_operation_count.*int64"),
    ({"max_running_operation_count": 6}, "max_running_operation_count.*has 5.*6"),
    ({"max_operation_count": 8}, "max_running_operation_count|max_operation_count"),
    ({"weight": 1.0}, "weight.*expected one of.*resource_flow"),
    ({"burst_guarantee_resources": {"cpu": -1.0}}, "cpu.*at least 0"),
    ({"resource_flow": {"cpu": 1.0}}, "cpu.*has 0"),
])
def test_all_or_nothing(client, pools, delta, words):
    name, option = pools(a=(None, {"strong_guarantee_resources": {"cpu": 2.0}, "max_operation_count": 10, "max_running_operation_count": 5}),
                         b=(None, {"max_operation_count": 10, "max_running_operation_count": 1}))
    before = [client.get(f"{TREE}/{name(pool)}/@") for pool in "ab"]
    with refused(1, words):
        client.transfer_pool_resources(name("a"), name("b"), "physical", {"max_operation_count": 1, **delta})
    assert [client.get(f"{TREE}/{name(pool)}/@") for pool in "ab"] == before


@pytest.mark.parametrize("delta", [{"strong_guarantee_resources": {"cpu": 3.0}}, {"max_operation_count": -1}, {"colour": 1}])
def test_to_oneself(client, pools, delta):
    """Nothing changes, but it must be there."""
    name, _ = pools(a=(None, {"strong_guarantee_resources": {"cpu": 2.0}}))
    with refused(1):
        client.transfer_pool_resources(name("a"), name("a"), "physical", delta)


def test_pools_that_are_not_there(client, pools):
    name, _ = pools(a=(None, {}))
    for source, destination, tree in (("nobody", name("a"), "physical"), (name("a"), "nobody", "physical"), (name("a"), name("a"), "nowhere")):
        with refused(500, "nobody|nowhere"):
            client.transfer_pool_resources(source, destination, tree, {"max_operation_count": 0})


@pytest.mark.parametrize("missing", ["source_pool", "destination_pool", "pool_tree", "resource_delta"])
def test_parameters_of_a_transfer_of_a_pool(client, missing):
    whole = {"source_pool": "a", "destination_pool": "b", "pool_tree": "physical", "resource_delta": {}}
    for wrong in (None, 5):
        with refused(1, missing):
            raw(client, "transfer_pool_resources", **{**whole, missing: wrong})
