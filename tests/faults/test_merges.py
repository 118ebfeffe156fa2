"""Merges that take chunks as they are have no jobs, and so nothing that says that they are not done but they themselves."""

import yt.wrapper
import pytest
from harness import cluster as make_cluster

ROWS = [{"k": n} for n in range(4)]


@pytest.fixture
def waiting():
    """A cluster whose only place is taken, and merges of all modes that wait for it; with the one who takes it."""
    with make_cluster() as cluster:
        client = cluster.client()
        cluster.create_pool("p", max_running_operation_count=1)
        for name, rows in (("a", ROWS[:2]), ("b", ROWS[2:])):
            client.write_table(f"<sorted_by=[k]>//tmp/{name}", rows)
        blocker = cluster.start_vanilla("sleep 1000")
        cluster.wait_jobs(blocker)
        merges = {}
        for mode in ("ordered", "unordered", "sorted"):
            client.create("table", f"//tmp/{mode}")
            spec = {"pool": "p", "mode": mode, "input_table_paths": ["//tmp/b", "//tmp/a"], "output_table_path": f"//tmp/{mode}"}
            merges[mode] = cluster.command("start_operation", operation_type="merge", spec=spec)["operation_id"]
            assert cluster.state(merges[mode]) == "pending"
        yield cluster, client, blocker, merges


def all_are_done(cluster, client, blocker, merges):
    for mode, operation in merges.items():
        assert cluster.state(operation) == "pending"
        assert client.get(f"//tmp/{mode}/@row_count") == 0
    cluster.command("abort_operation", operation_id=blocker)
    for mode, operation in merges.items():
        cluster.wait_state(operation, "completed")
        rows = list(client.read_table(f"//tmp/{mode}", format=yt.wrapper.JsonFormat()))
        assert rows == (ROWS if mode == "sorted" else [*ROWS[2:], *ROWS[:2]]), mode


def test_a_merge_that_waits_outlives_the_server(waiting):
    cluster, *rest = waiting
    cluster.server.kill()
    cluster.restart()
    all_are_done(cluster, *rest)


@pytest.mark.parametrize("restart", [False, True])
def test_a_merge_that_was_suspended_is_done_when_it_is_resumed(waiting, restart):
    cluster, client, blocker, merges = waiting
    for operation in merges.values():
        cluster.command("suspend_operation", operation_id=operation, abort_running_jobs=True)
    if restart:
        cluster.server.kill()
        cluster.restart()
    cluster.command("abort_operation", operation_id=blocker)
    for mode, operation in merges.items():
        assert cluster.state(operation) not in ("completed", "failed", "aborted")
        assert client.get(f"//tmp/{mode}/@row_count") == 0
        cluster.command("resume_operation", operation_id=operation)
        cluster.wait_state(operation, "completed")
        assert client.get(f"//tmp/{mode}/@row_count") == 4


def test_job_counts_of_merges_are_not_for_their_owners(waiting):
    cluster, *rest = waiting
    operation = rest[-1]["sorted"]
    with pytest.raises(Exception, match="as many as its input was cut into"):
        cluster.command("update_operation_parameters", operation_id=operation, parameters={"tasks": {"sorted_merge": {"job_count": 5}}})
    all_are_done(cluster, *rest)
