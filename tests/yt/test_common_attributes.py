"""What every node has (http-api.md 6.3), whatever is behind it: tools ask it of all that they list."""

import re

import pytest
import yt.wrapper
from harness import wait_for

COMMON = """type key path parent_id creation_time modification_time access_time revision attribute_revision content_revision
owner account acl inherit_acl effective_acl opaque ref_counter lock_count lock_mode locks resource_usage
recursive_resource_usage user_attribute_keys user_attributes builtin""".split()
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@pytest.fixture(scope="module")
def things(cluster):
    """One of each kind, and the folder that lists it."""
    client = cluster.client()
    cluster.create_pool("team")
    cluster.create_pool("part", parent_name="team")

    def run(command):
        return client.run_operation(yt.wrapper.VanillaSpecBuilder().pool("part").begin_task("t").command(command).job_count(1)
                                    .memory_limit(64 << 20).end_task(), sync=False).id
    running, over = run("sleep 1000"), run("true")
    cluster.wait_state(over, "completed")
    cluster.wait_jobs(running)
    transaction = client.start_transaction(timeout=600_000)
    inside = yt.wrapper.YtClient(config=client.config)
    client.create("table", "//tmp/t")
    with inside.Transaction(transaction_id=transaction, ping=False):
        lock = inside.lock("//tmp/t", mode="snapshot")["lock_id"]
    node, = client.list("//sys/cluster_nodes")

    def operation(id):
        return f"//sys/operations/{int(id.split('-')[3], 16) & 0xff:02x}/{id}"
    yield {
        "tree": "//sys/pool_trees/physical", "pool": "//sys/pool_trees/physical/team",
        "subpool": "//sys/pool_trees/physical/team/part", "node": f"//sys/cluster_nodes/{node}",
        "exec node": f"//sys/exec_nodes/{node}", "operations": operation(running).rsplit("/", 1)[0],
        "running": operation(running), "over": operation(over), "transaction": f"//sys/transactions/{transaction}",
        "lock": f"//sys/locks/{lock}", "user": "//sys/users/root", "group": "//sys/groups/users",
        "account": "//sys/accounts/sys", "table": "//tmp/t",
    }
    client.abort_operation(running)
    client.abort_transaction(transaction)


KINDS = ["tree", "pool", "subpool", "node", "exec node", "operations", "running", "over", "transaction", "lock", "user", "group",
         "account", "table"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_have_them(client, things, kind):
    path = things[kind]
    everything = client.get(f"{path}/@")
    assert not set(COMMON) - set(everything)
    if kind != "running":
        # A heartbeat between the two looks changes what is told of a node.
        looks = lambda: [client.get(f"{path}{link}/@") for link in ("", "&")]  # noqa: E731
        wait_for(lambda: (two := looks())[0] == two[1], what=f"the same attributes of {path} and {path}&", seen=looks)
    for name in COMMON:
        one = client.get(f"{path}/@{name}")
        assert one is not None and client.exists(f"{path}/@{name}"), name
        assert everything[name] in (one, None) or kind == "running", f"{name}: what takes long is an entity among all"
    assert everything["path"] in (path, path.replace("exec_nodes", "cluster_nodes"))
    assert all(TIME.fullmatch(everything[f"{what}_time"]) for what in ("creation", "modification", "access"))
    with pytest.raises(yt.wrapper.YtResponseError) as missing:
        client.get(f"{path}/@no_such")
    assert missing.value.contains_code(500)


@pytest.mark.parametrize("kind", KINDS)
def test_the_list_tells_the_same(client, things, kind):
    path = things[kind]
    folder, key = path.rsplit("/", 1)
    asked = ["type", "account", "owner", "resource_usage", "modification_time", "parent_id", "effective_acl"]
    listed = {str(name): name.attributes for name in client.list(folder, attributes=asked)}[key]
    assert listed == {name: client.get(f"{path}/@{name}") for name in asked}
    assert client.get(folder, attributes=asked)[key].attributes == listed


@pytest.mark.parametrize("kind", KINDS)
def test_yt_list_long(cluster, things, kind):
    folder, key = things[kind].rsplit("/", 1)
    code, output, errors = cluster.yt("list", "-l", folder)
    assert code == 0, errors
    shown = {line.split()[-1]: line.split() for line in output.splitlines()}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", " ".join(shown[key][3:5])), shown[key]


@pytest.mark.parametrize("name", ["id", "type", "creation_time", "modification_time", "account", "revision", "count", "parent_id"])
def test_they_are_not_set_on_pools(client, things, name):
    pool = things["subpool"]
    before = client.get(f"{pool}/@")
    for change in (lambda: client.set(f"{pool}/@{name}", "x"),
                   lambda: client.create("scheduler_pool", attributes={"name": "other", "pool_tree": "physical", name: "x"})):
        with pytest.raises(yt.wrapper.YtResponseError, match=name):
            change()
    assert client.get(f"{pool}/@") == before and not client.exists("//sys/pool_trees/physical/other")


def test_operations_of_a_folder(client, things):
    """All of 9.1 for one that is at work, what is in memory for one that is over."""
    for kind, state in (("running", "running"), ("over", "completed")):
        folder, id = things[kind].rsplit("/", 1)
        names = client.list(folder, attributes=["state", "authenticated_user", "type"])
        attributes = next(name.attributes for name in names if str(name) == id)
        assert attributes == {"state": state, "authenticated_user": "root", "type": "vanilla"}
