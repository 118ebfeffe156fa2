"""`transfer_account_resources` through the real client."""

import pytest
import yt.wrapper
from calls import fresh, raw, refused


def test_transfer_account_resources(client):
    a, b = (fresh("account") for _ in range(2))
    client.create("account", attributes={"name": a, "resource_limits": {"node_count": 10, "disk_space_per_medium": {"default": 100}}})
    client.create("account", attributes={"name": b, "resource_limits": {"node_count": 0, "disk_space_per_medium": {"default": 0}}})

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


@pytest.mark.parametrize("missing", ["source_account", "destination_account", "resource_delta"])
def test_parameters_of_a_transfer_of_an_account(client, missing):
    whole = {"source_account": "tmp", "destination_account": "intermediate", "resource_delta": {}}
    for wrong in (None, 5):
        with refused(1, missing):
            raw(client, "transfer_account_resources", **{**whole, missing: wrong})


def test_accounts_that_are_not_there_or_the_same(client):
    account = fresh("account")
    client.create("account", attributes={"name": account, "resource_limits": {"node_count": 10}})
    for source, destination in (("nobody", account), (account, "nobody"), ("nobody", "nobody")):
        with refused(500, "nobody"):
            client.transfer_account_resources(source, destination, {"node_count": 1})
    client.transfer_account_resources(account, account, {"node_count": 10})
    with refused(1, "has 10"):
        client.transfer_account_resources(account, account, {"node_count": 11})
    assert client.get(f"//sys/accounts/{account}/@resource_limits/node_count") == 10


@pytest.mark.parametrize("delta, words", [
    ({"node_count": 1.5}, "node_count.*integer.*1.5"),
    ({"node_count": "x"}, "node_count.*integer"),
    ({"node_count": {"default": 1}}, "node_count"),
    ({"node_count": (1 << 63) - 1}, "node_count"),
])
def test_what_is_no_amount(client, delta, words):
    a, b = (fresh("account") for _ in range(2))
    for account in (a, b):
        client.create("account", attributes={"name": account, "resource_limits": {"node_count": 10}})
    with refused(1, words):
        client.transfer_account_resources(a, b, delta)
    assert [client.get(f"//sys/accounts/{account}/@resource_limits") for account in (a, b)] == [{"node_count": 10}] * 2
