"""A file for each command that the server describes, through the real Python client (http-api.md 8): what it asks for,
what it makes of the answer, and what is refused. All share one cluster. Depth in what commands do together is elsewhere
(tables, transactions, access, operations).
"""

import contextlib

import pytest
import yt.wrapper
from calls import LATE, fresh
from harness import cluster as make_cluster


@pytest.fixture(scope="package")
def cluster():
    # A test that waits for rounds of the scheduler need not wait for the five seconds between two heartbeats.
    with make_cluster(server_config='heartbeat_period = "500ms"\n') as cluster:
        yield cluster


@pytest.fixture(scope="package")
def guarded():
    """A server that asks who one is."""
    with make_cluster(nodes=0, auth=True) as cluster:
        yield cluster


@pytest.fixture
def home(client):
    """A folder of its own: all files share a cluster, so the name of the test does not tell it from others."""
    path = f"//tmp/{fresh('home')}"
    client.create("map_node", path)
    return path


@pytest.fixture
def transaction(client):
    """A transaction and a client inside it."""
    id = client.start_transaction(timeout=LATE)
    inside = yt.wrapper.YtClient(config=client.config)
    with inside.Transaction(transaction_id=id, ping=False):
        yield id, inside
    with contextlib.suppress(yt.wrapper.YtResponseError):
        client.abort_transaction(id)


@pytest.fixture
def operation(cluster, client, pool):
    """One with a job that runs and has said something."""
    operation = client.run_operation(
        yt.wrapper.VanillaSpecBuilder().pool(pool).begin_task("t").command("echo hello >&2; sleep 1000").job_count(1)
        .memory_limit(64 << 20).end_task(), sync=False)
    job = cluster.wait_jobs(operation.id)[0]
    return operation.id, job


@pytest.fixture
def failed(cluster, client, home):
    """A map over the rows of a table, and a job of it that has failed with them."""
    client.write_table(f"{home}/rows", [{"a": 1}, {"a": 2}])
    mapper = {"cpu_limit": 0.1, "memory_limit": 64 << 20}
    operation = client.run_map("exit 1", f"{home}/rows", f"{home}/out", format="json", sync=False,
                               spec={"mapper": mapper, "max_failed_job_count": 1})
    cluster.wait_state(operation.id, "failed")
    return operation.id, cluster.jobs(operation.id, state="failed")[0]["id"]


@pytest.fixture
def user(client):
    name = fresh("user")
    client.create("user", attributes={"name": name})
    return name
