"""Tools that walk the whole tree: `yt find` and `client.search` (http-api.md 6.4, 12)."""

import pytest
import yt.wrapper


@pytest.fixture(scope="module", autouse=True)
def things(cluster):
    """Something of each kind, while it is there."""
    client = cluster.client()
    client.create("document", "//tmp/walked", attributes={"value": {"a": 1}})
    operation = client.run_operation(
        yt.wrapper.VanillaSpecBuilder().begin_task("t").command("sleep 1000").job_count(1).memory_limit(64 << 20).end_task(),
        sync=False)
    cluster.wait_jobs(operation.id)
    with client.Transaction() as transaction:
        client.lock("//tmp/walked", mode="snapshot")
        yield {"operation": operation.id, "transaction": transaction.transaction_id}
    operation.abort()


@pytest.mark.parametrize("root", ["/", "//sys", "//sys/scheduler", "//sys/controller_agents", "//sys/cluster_nodes",
                                  "//sys/transactions", "//sys/locks", "//sys/pool_trees", "//sys/scheduler/orchid"])
def test_find(cluster, root):
    _, found, said = cluster.yt("find", root)
    assert found.splitlines()[0] == root and "Traceback" not in said


def test_find_looks_into_all(cluster, things):
    found = cluster.yt("find", "/")[1].splitlines()
    node, = cluster.client().list("//sys/cluster_nodes")
    for path in ("//tmp/walked", "//sys/users/root", "//sys/scheduler/orchid/service/version",
                 f"//sys/cluster_nodes/{node}/orchid/exec_node/job_controller/active_jobs",
                 f"//sys/transactions/{things['transaction']}"):
        assert path in found, path


def test_search_by_type(cluster):
    client = cluster.client()
    assert "//tmp/walked" in list(client.search("/", node_type="document"))
    assert sorted(client.search("//sys", node_type="orchid"))[0].startswith("//sys/cluster_nodes/")
    assert list(client.search("//sys", node_type="table")) == []
