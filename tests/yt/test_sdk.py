"""The real Python client `yt.wrapper`, unmodified: objects instead of a command line."""

import datetime
import time

import pytest
import yt.wrapper
import yt.yson
from harness import wait_for
from yt.wrapper import VanillaSpecBuilder


def builder(pool, command, job_count=1, **task):
    b = VanillaSpecBuilder().spec({"pool": pool})
    t = b.begin_task("work").command(command).job_count(job_count).cpu_limit(0.1).memory_limit(64 << 20)
    for name, value in task.items():
        getattr(t, name)(value)
    return t.end_task()


def test_tree(client):
    client.create("map_node", "//tmp/sdk", attributes={"kind": "test"})
    client.set("//tmp/sdk/value", {"a": [1, 2.5, True, "text"]})
    assert client.get("//tmp/sdk/value") == {"a": [1, 2.5, True, "text"]}
    assert client.get("//tmp/sdk", attributes=["kind"]).attributes["kind"] == "test"
    assert client.list("//tmp/sdk") == ["value"]
    assert client.exists("//tmp/sdk/@kind") and not client.exists("//tmp/sdk/@other")
    assert client.get("//tmp/sdk/@type") == "map_node"
    client.remove("//tmp/sdk", recursive=True)
    assert not client.exists("//tmp/sdk")


def test_types_of_values_survive(client):
    """Signed and unsigned, and doubles with an integral value, stay what they are (http-api.md 4.2)."""
    value = {"signed": -1, "unsigned": yt.yson.YsonUint64(2**64 - 1), "double": 2.0, "bytes": "\xff\x00"}
    client.set("//tmp/@types", value)
    back = client.get("//tmp/@types")
    assert back == value
    assert isinstance(back["unsigned"], yt.yson.YsonUint64)
    assert isinstance(back["double"], float)


def test_errors_have_their_classes(client, pool):
    with pytest.raises(yt.wrapper.YtResponseError) as info:
        client.get("//tmp/nothing/here")
    assert info.value.is_resolve_error()
    with pytest.raises(yt.wrapper.YtResponseError) as info:
        client.get_operation("1-2-3e80001-4")
    assert info.value.contains_code(1915)
    with pytest.raises(yt.wrapper.YtResponseError) as info:
        client.run_operation(builder("no-such-pool-of-ours/x", "true"))
    assert "pool" in str(info.value)


def test_vanilla(client, pool):
    before = time.time()
    operation = client.run_operation(builder(pool, "echo job $YT_JOB_COOKIE >&2", job_count=3))
    assert operation.get_state() == "completed"
    assert operation.get_progress()["completed"] == 3
    attributes = client.get_operation(operation.id)
    assert attributes["task_names"] == ["work"]
    assert attributes["unrecognized_spec"] == {}, "options of the client itself are known"
    start = datetime.datetime.fromisoformat(attributes["start_time"].replace("Z", "+00:00"))
    assert before - 1 <= start.timestamp() <= time.time() + 1
    jobs = client.list_jobs(operation.id)["jobs"]
    stderrs = sorted(client.get_job_stderr(operation.id, j["id"]).read() for j in jobs)
    assert stderrs == [b"job 0\n", b"job 1\n", b"job 2\n"]


def test_statistics(client, pool):
    operation = client.run_operation(builder(pool, "true", job_count=2))
    statistics = operation.get_job_statistics()
    assert statistics["time"]["exec"]["$"]["completed"]["work"]["count"] == 2
    new = operation.get_attributes(["progress"])["progress"]["job_statistics_v2"]["time"]["exec"]
    assert [leaf["tags"]["job_state"] for leaf in new] == ["completed"]


def test_failure_shows_stderr(client, pool):
    spec = builder(pool, "echo why it failed >&2; exit 4").max_failed_job_count(1)
    with pytest.raises(yt.wrapper.errors.YtOperationFailedError) as info:
        client.run_operation(spec)
    error = info.value
    assert error.contains_code(215) and error.contains_code(1205) and error.contains_code(10000)
    assert [e["stderr"] for e in error.attributes["stderrs"]] == ["why it failed\n"]


def test_asynchronous_life(client, pool):
    operation = client.run_operation(builder(pool, "sleep 1000"), sync=False)
    wait_for(lambda: operation.get_state() == "running", what="the operation to run")
    wait_for(lambda: operation.get_jobs(job_state="running") if hasattr(operation, "get_jobs")
             else client.list_jobs(operation.id, job_state="running")["jobs"], what="a job")
    operation.suspend()
    assert client.get_operation_attributes(operation.id, fields=["suspended"])["suspended"]
    operation.resume()
    operation.abort()
    assert operation.get_state() == "aborted"


def test_complete(client, pool):
    operation = client.run_operation(builder(pool, "sleep 1000", job_count=2), sync=False)
    wait_for(lambda: operation.get_state() == "running", what="the operation to run")
    operation.complete()
    wait_for(lambda: operation.get_state() == "completed", what="the operation to be completed")


def test_iterate_operations(client, pool):
    ids = {client.run_operation(builder(pool, "true"), sync=False).id for _ in range(7)}
    wait_for(lambda: all(client.get_operation_state(i) == "completed" for i in ids), what="all to complete")
    found = [o["id"] for o in client.iterate_operations(pool=pool, limit_per_request=3)]
    assert set(found) == ids and len(found) == 7
    counted = client.list_operations(pool=pool)
    assert counted["state_counts"]["completed"] == 7


def test_tracker_of_several(cluster, client, pool):
    tracker = yt.wrapper.OperationsTracker(poll_period=100)
    for _ in range(3):
        tracker.add(client.run_operation(builder(pool, "sleep 0.2"), sync=False))
    tracker.wait_all()


def test_batch_client(client):
    batch = client.create_batch_client()
    good = batch.get("//sys/pool_trees/@default_tree")
    bad = batch.get("//tmp/absent")
    made = batch.create("map_node", "//tmp/from_batch")
    batch.commit_batch()
    assert good.get_result() == "physical"
    assert not bad.is_ok()
    assert made.is_ok() and client.exists("//tmp/from_batch")
    client.remove("//tmp/from_batch")


def test_repeated_mutation_is_done_once(cluster, pool):
    """A repeated start with the same mutation id gives the first operation (http-api.md 2.8)."""
    def start(retry):
        return cluster.command("start_operation", operation_type="vanilla", mutation_id="1-2-3-77", retry=retry, spec={
            "pool": pool, "tasks": {"t": {"command": "true", "job_count": 1, "cpu_limit": 0.1}}})["operation_id"]
    first = start(False)
    assert start(True) == first
    assert len(cluster.command("list_operations", pool=pool)["operations"]) == 1


def test_pools(client):
    client.create("scheduler_pool", attributes={
        "name": "sdk-pool", "pool_tree": "physical", "weight": 2, "strong_guarantee_resources": {"cpu": 1}})
    assert client.get("//sys/pools/sdk-pool/@weight") == 2.0
    client.set("//sys/pools/sdk-pool/@strong_guarantee_resources/cpu", 2)
    with pytest.raises(yt.wrapper.YtResponseError) as info:
        client.create("scheduler_pool", attributes={
            "name": "sdk-child", "pool_tree": "physical", "parent_name": "sdk-pool",
            "strong_guarantee_resources": {"cpu": 3}})
    assert "strong_guarantee" in str(info.value) or "guarantee" in str(info.value)
    client.remove("//sys/pools/sdk-pool")
