"""S13 and S15: requests that are too large are refused with the limit, and the scheduler goes on."""

import contextlib
import itertools

import pytest
from harness import ServerError, cluster as make_cluster, wait_for

_numbers = itertools.count()


@contextlib.contextmanager
def refused(*words):
    with pytest.raises(ServerError) as failure:
        yield
    for word in words:
        assert word in str(failure.value), f"{word!r} in {str(failure.value)[:1000]}"


def spec(**options):
    return {"tasks": {"t": {"command": "true", "job_count": 1}}, **options}


def start(cluster, **options):
    return cluster.command("start_operation", operation_type="vanilla", spec=spec(**options))


@pytest.fixture
def home(cluster):
    path = f"//tmp/large-{next(_numbers)}"
    cluster.command("create", type="map_node", path=path)
    return path


def test_s15_titles_annotations_and_specifications_have_a_size(cluster):
    """S15."""
    with refused("/title", "at most 4096 bytes", "max_title_length", "found 5000"):
        start(cluster, title="x" * 5000)
    with refused("/annotations", "at most 10240 bytes", "max_annotations_size"):
        start(cluster, annotations={"note": "x" * 20_000})
    with refused("specification of the operation", "max_spec_size"):
        start(cluster, note="x" * (17 << 20))
    cluster.command("create", type="document", path="//tmp/large-document", ignore_existing=True)
    with refused("//tmp/large-document", "limit of 16777216"):
        cluster.set("//tmp/large-document", ["x" * 60_000] * 300)


def test_s13_too_many_values_are_refused_before_they_are_read(cluster, home):
    """S13: 100,000 tasks, lists of access of 100,000 entries, 300,000 unknown options, attributes and batches."""
    with refused("maximum number of tasks is 100, found 20000"):
        cluster.command("start_operation", operation_type="vanilla", spec={"tasks": {f"t{n}": {} for n in range(20_000)}})
    with refused("at most 100000 values"):
        cluster.command("start_operation", operation_type="vanilla", spec={"tasks": {f"t{n}": {} for n in range(110_000)}})
    with refused("at most 100000 values"):
        start(cluster, **{f"option-{n}": n for n in range(300_000)})
    ace = {"action": "allow", "subjects": ["root"], "permissions": ["read"]}
    with refused("access control list is 10000", "limit of 1000"):
        cluster.set(f"{home}/@acl", [ace] * 10_000)
    with refused("access control list is 20001", "limit of 10000"):
        cluster.set(f"{home}/@acl", [{**ace, "subjects": ["root"] * 20_000}])
    with refused("at most 100000 values"):
        cluster.set(f"{home}/@acl", [ace] * 30_000)
    with refused("at most 100000 values"):
        cluster.set(f"{home}/@x", list(range(110_000)))
    with refused(f"attributes of {home} is 1001", "limit of 1000"):
        cluster.command("create", type="map_node", path=home, force=True, attributes={f"a{n}": n for n in range(1001)})
    with refused("20000 requests", "max_batch_requests"):
        cluster.command("execute_batch", requests=[{"command": "exists", "parameters": {"path": "//tmp"}}] * 20_000)
    assert cluster.get(f"{home}/@type") == "map_node", "the server goes on"


def test_s13_large_specifications_are_read(cluster, pool):
    """S13: the kernel gets what was read elsewhere, and refuses it by the limits that are in force."""
    environment = {f"VARIABLE_{n}": "x" * 10 for n in range(20_000)}
    task = {"command": "test $VARIABLE_7 = xxxxxxxxxx", "job_count": 1}
    started = cluster.command("start_operation", operation_type="vanilla",
                              spec={"pool": pool, "title": "large", "tasks": {"t": task}, "unknown": environment})
    operation = started["operation_id"]
    wanted = cluster.command("get_operation", operation_id=operation, attributes=["brief_spec", "unrecognized_spec"])
    assert wanted["brief_spec"]["title"] == "large" and len(wanted["unrecognized_spec"]["unknown"]) == 20_000
    with refused("maximum total job count is 100000, found 100001"):
        cluster.command("start_operation", operation_type="vanilla",
                        spec={"pool": pool, "tasks": {"t": {**task, "job_count": 100_001}}, "unknown": environment})
    with refused("/title", "max_title_length"):
        start(cluster, title="x" * 5000, unknown=environment)


def test_s13_requests_change_and_show_so_many_nodes(cluster, home):
    """S13."""
    for part in range(3):
        cluster.set(f"{home}/m{part}", {f"k{n}": n for n in range(1_000)})
    with refused("more than 2000 nodes", "max_nodes_per_request"):
        cluster.command("copy", source_path=home, destination_path=f"{home}-copy")
    with refused("more than 2000 nodes", "max_nodes_per_request"):
        cluster.command("move", source_path=home, destination_path=f"{home}-copy")
    with refused("more than 2000 nodes", "max_nodes_per_request"):
        cluster.set(f"{home}/m4", {f"k{n}": n for n in range(3_000)})
    transaction = cluster.command("start_transaction", timeout=60_000)["transaction_id"]
    with refused("more than 2000, the limit inside of a transaction", "max_nodes_per_request"):
        cluster.command("remove", path=home, recursive=True, transaction_id=transaction)
    cluster.command("abort_transaction", transaction_id=transaction)
    with refused("more than 50000", "max_values_per_read"):
        cluster.command("get", path=home, attributes=[f"a{n}" for n in range(20)])
    # A large subtree is gone at once, and its nodes leave in slices.
    nodes = cluster.get("//sys/accounts/tmp/@resource_usage/node_count")
    cluster.remove(home, recursive=True)
    assert cluster.command("exists", path=home)["value"] is False
    cluster.command("create", type="map_node", path=home)
    wait_for(lambda: cluster.get("//sys/accounts/tmp/@resource_usage/node_count") <= nodes - 3_000, what="the nodes to be removed")
    wait_for(lambda: cluster.get("//sys/trash/@count") == 0, what="the last slice")


def test_s15_transactions_and_locks_of_a_user_have_limits():
    """S15."""
    with make_cluster(nodes=0, server_config="max_transactions_per_user = 3\nmax_locks_per_user = 4\nmax_nodes_per_transaction = 5") as cluster:
        ids = [cluster.command("start_transaction", timeout=60_000)["transaction_id"] for _ in range(3)]
        with refused("Number of transactions of user", "limit of 3"):
            cluster.command("start_transaction", timeout=60_000)
        for name in "abcde":
            cluster.command("create", type="map_node", path=f"//tmp/{name}")
        for name in "abcd":
            cluster.command("lock", path=f"//tmp/{name}", mode="snapshot", transaction_id=ids[0])
        with refused("Number of locks of user", "limit of 4"):
            cluster.command("lock", path="//tmp/e", mode="snapshot", transaction_id=ids[1])
        cluster.command("abort_transaction", transaction_id=ids[0])
        cluster.command("lock", path="//tmp/e", mode="snapshot", transaction_id=ids[1])
        cluster.command("start_transaction", timeout=60_000)
