"""Accounts through the real client: what they use is shown, and what is too much is refused."""

import contextlib

import itertools

import pytest
import yt.wrapper as yt
from harness import cluster as make_cluster, error_codes, wait_for

LIMIT_EXCEEDED = 902
_numbers = itertools.count()


def fresh(kind):
    return f"{kind}-{next(_numbers)}"


@contextlib.contextmanager
def over_limit(*words):
    with pytest.raises(yt.YtError) as refused:
        yield
    assert refused.value.contains_code(LIMIT_EXCEEDED), refused.value
    for word in words:
        assert word in str(refused.value), f"{word!r} in {refused.value}"


@pytest.fixture
def place(client):
    """A map whose nodes have an account of their own."""
    account = fresh("account")
    client.create("account", attributes={"name": account, "resource_limits": {"node_count": 5, "disk_space_per_medium": {"default": 10_000}}})
    path = f"//tmp/{account}"
    client.create("map_node", path, attributes={"account": account})
    return path, f"//sys/accounts/{account}"


def test_s15_nodes_are_counted_and_refused(client, place):
    """S15."""
    path, account = place
    assert client.get(f"{account}/@resource_usage/node_count") == 1
    client.set(f"{path}/a", {"b": 1, "c": 2})
    assert client.get(f"{account}/@resource_usage/node_count") == 4
    client.create("table", f"{path}/t")
    with over_limit("node count", "limit is 5", account):
        client.create("file", f"{path}/f")
    with over_limit("node count"):
        client.copy(f"{path}/a", f"{path}/b")
    with over_limit("node count"):
        client.set(f"{path}/d", 1)
    with over_limit("node count"):
        client.create("map_node", f"//tmp/{fresh('map')}", attributes={"account": account.rsplit("/", 1)[1]})
    assert sorted(client.list(path)) == ["a", "t"], "what is refused changes nothing"
    assert not client.get(f"{account}/@violated_resource_limits/node_count")
    client.set(f"{account}/@resource_limits/node_count", 3)
    assert client.get(f"{account}/@violated_resource_limits/node_count")
    client.remove(f"{path}/a", recursive=True)
    assert client.get(f"{account}/@resource_usage/node_count") == 2
    client.create("file", f"{path}/f")


def test_s15_contents_are_counted_and_refused(client, place):
    """S15."""
    path, account = place
    client.set(f"{account}/@resource_limits/node_count", 20)
    client.write_file(f"{path}/f", b"x" * 6_000)
    assert client.get(f"{account}/@resource_usage/disk_space") == 6_000
    assert client.get(f"{account}/@resource_usage/disk_space_per_medium/default") == 6_000
    with over_limit("disk space"):
        client.copy(f"{path}/f", f"{path}/g")
    client.create("file", f"{path}/g")
    with over_limit("disk space"):
        client.write_file(f"{path}/g", b"x" * 6_000)
    assert client.read_file(f"{path}/g").read() == b""
    # Until the client's transaction is over the file has both.
    client.write_file(f"{path}/f", b"y" * 3_000)
    client.create("table", f"{path}/t")
    with over_limit("disk space"):
        client.write_table(f"{path}/t", [{"text": "x" * 1_000} for _ in range(10)])
    client.remove(f"{path}/f")
    client.write_table(f"{path}/t", [{"text": "x" * 100} for _ in range(10)])
    assert client.get(f"{path}/t/@row_count") == 10


def test_s15_contents_are_joined_if_there_is_room(client, place):
    """S15: what would be too large is refused before it is copied."""
    path, account = place
    client.set(f"{account}/@resource_limits/node_count", 20)
    client.write_file(f"{path}/f", b"x" * 2_000)
    client.create("file", f"{path}/all")
    with over_limit("disk space", "there is room for 8000 bytes", "has 20000 so far"):
        client.concatenate([f"{path}/f"] * 10, f"{path}/all")
    assert client.read_file(f"{path}/all").read() == b""
    client.concatenate([f"{path}/f"] * 4, f"{path}/all")
    assert client.get(f"{account}/@resource_usage/disk_space") == 10_000
    with over_limit("disk space"):
        client.write_file(yt.FilePath(f"{path}/f", append=True), b"y")


def test_s15_an_account_over_its_limit_is_an_alert(client, place):
    """S15."""
    path, account = place
    client.create("map_node", f"{path}/a")

    def alerts():
        found = [alert["attributes"] for alert in client.get("//sys/scheduler/@alerts")]
        return [alert["account"] for alert in found if alert["alert_type"] == "account_over_limit"]

    name = account.rsplit("/", 1)[1]
    assert name not in alerts()
    client.set(f"{account}/@resource_limits/node_count", 1)
    assert name in alerts()
    client.set(f"{path}/a/@inherit_acl", False)
    client.remove(f"{path}/a")
    assert name not in alerts()
    with pytest.raises(yt.YtResponseError, match="cannot be removed: 1 nodes belong to it"):
        client.remove(account)


def test_s15_users_and_the_system_have_accounts_of_their_own(client):
    """S15."""
    for path, account in (("/", "default"), ("//home", "default"), ("//tmp", "tmp"), ("//sys", "sys"), ("//sys/tokens", "sys")):
        assert client.get(f"{path}/@account") == account, path


def test_s15_what_a_transaction_holds_counts(client, place):
    """S15."""
    path, account = place
    with client.Transaction():
        client.create("map_node", f"{path}/a")
        client.set(f"{path}/a/b", 1)
    assert client.get(f"{account}/@resource_usage/node_count") == 3
    with contextlib.suppress(RuntimeError), client.Transaction():
        client.set(f"{path}/c", {"d": 1})
        assert client.get(f"{account}/@resource_usage/node_count") == 5
        assert client.get(f"{account}/@committed_resource_usage/node_count") == 3
        with over_limit("node count"):
            client.create("map_node", f"{path}/e")
        raise RuntimeError
    assert client.get(f"{account}/@resource_usage/node_count") == 3


def test_s15_limits_are_amounts(client, place):
    """S15."""
    _, account = place
    for wrong, word in (({"node_count": -1}, "node_count"), ({"node_cuont": 1}, "node_cuont"), ({"disk_space_per_medium": {"default": "x"}}, "default")):
        with pytest.raises(yt.YtResponseError, match=word):
            client.set(f"{account}/@resource_limits", wrong)


def test_s15_output_of_jobs_is_refused():
    """S15: a job that writes more than the account of its output table may have fails, and the operation with it."""
    with make_cluster() as cluster:
        client = cluster.client()
        client.create("account", attributes={"name": "small", "resource_limits": {"disk_space_per_medium": {"default": 20_000}}})
        client.create("map_node", "//tmp/small", attributes={"account": "small"})
        client.create("table", "//tmp/small/out")
        client.create("table", "//tmp/in")
        client.write_table("//tmp/in", [{"n": n} for n in range(10)])
        before = client.get("//sys/accounts/small/@resource_usage/disk_space")
        operation = client.run_map("cat >/dev/null; for i in $(seq 1000); do echo \"{\\\"text\\\": \\\"$RANDOM-$(head -c 100 /dev/zero | tr '\\0' x)\\\"}\"; done",
                                   "//tmp/in", "//tmp/small/out", format=yt.JsonFormat(), sync=False)
        wait_for(lambda: operation.get_state().is_finished(), what="the operation to end", seen=operation.get_state)
        assert str(operation.get_state()) == "failed"
        error = cluster.command("get_operation", operation_id=operation.id, attributes=["result"])["result"]["error"]
        assert LIMIT_EXCEEDED in error_codes(error), error
        assert "disk space" in str(error) and "//tmp/small/out" in str(error)
        assert client.get("//tmp/small/out/@row_count") == 0
        wait_for(lambda: client.get("//sys/accounts/small/@resource_usage/disk_space") == before, what="the space to be free again")
