"""`transfer_pool_resources` through the real client."""

import yt.yson
from calls import fresh


def test_transfer_pool_resources(cluster, client):
    a, b = (fresh("transfer") for _ in range(2))
    cluster.create_pool(a, strong_guarantee_resources={"cpu": 1.0})
    cluster.create_pool(b)
    client.transfer_pool_resources(a, b, "physical", {"strong_guarantee_resources": {"cpu": 1.0}})
    assert client.get(f"//sys/pool_trees/physical/{b}/@strong_guarantee_resources/cpu") == yt.yson.YsonDouble(1.0)
