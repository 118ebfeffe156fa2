"""`transfer_account_resources` through the real client."""

import pytest
import yt.wrapper
from calls import fresh


def test_transfer_account_resources(client):
    a, b = (fresh("account") for _ in range(2))
    client.create("account", attributes={"name": a, "resource_limits": {"node_count": 10, "disk_space_per_medium": {"default": 100}}})
    client.create("account", attributes={"name": b})

    def limits(account):
        return client.get(f"//sys/accounts/{account}/@resource_limits")
    client.transfer_account_resources(a, b, {"node_count": 4, "disk_space_per_medium": {"default": 30}})
    assert limits(a) == {"node_count": 6, "disk_space_per_medium": {"default": 70}}
    assert limits(b) == {"node_count": 4, "disk_space_per_medium": {"default": 30}}
    for delta, error in (({"node_count": 7}, "has 6"), ({"node_count": -1}, "at least 0"), ({"chunk_count": 1}, "has 0"),
                         ({"node_count": 1, "disk_space_per_medium": {"default": 71}}, "disk_space_per_medium/default")):
        with pytest.raises(yt.wrapper.YtResponseError, match=error):
            client.transfer_account_resources(a, b, delta)
    with pytest.raises(yt.wrapper.YtResponseError) as missing:
        client.transfer_account_resources(a, "nobody", {})
    assert missing.value.contains_code(500)
    assert limits(a)["node_count"] == 6 and limits(b)["node_count"] == 4, "all or nothing"
