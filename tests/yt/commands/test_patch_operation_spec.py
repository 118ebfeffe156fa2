"""`patch_operation_spec` through the real client."""

import pytest
import yt.wrapper
from calls import fresh, raw, refused, refuses_finished_operations, refuses_strange_operations, vanilla
from harness import wait_for

def test_patch_operation_spec(cluster, client, operation):
    id = operation[0]
    client.patch_operation_spec(id, [{"path": "/max_failed_job_count", "value": 77}])
    told = client.get_operation(id, attributes=["spec", "full_spec"])
    assert told["full_spec"]["max_failed_job_count"] == 77 and told["spec"]["max_failed_job_count"] == 77
    for patch, error in (({"path": "/title", "value": "x"}, "/title"), ({"path": "/max_failed_job_count", "value": "x"}, "max_failed_job_count"),
                         ({"path": "/max_failed_job_count", "value": -1}, "max_failed_job_count"), ({"value": 1}, "patches")):
        with pytest.raises(yt.wrapper.YtResponseError, match=error):
            client.patch_operation_spec(id, [{"path": "/max_failed_job_count", "value": 5}, patch])
    assert client.get_operation(id, attributes=["full_spec"])["full_spec"]["max_failed_job_count"] == 77, "all or nothing"
    cluster.server.kill()
    cluster.server.start()
    cluster.wait_server()
    assert client.get_operation(id, attributes=["full_spec"])["full_spec"]["max_failed_job_count"] == 77


def test_by_alias(client, pool):
    alias = f"*{fresh('patch')}"
    id = vanilla(client, pool, alias=alias)
    client.patch_operation_spec(operation_alias=alias, patches=[{"path": "/max_failed_job_count", "value": 5}])
    assert client.get_operation(id, attributes=["full_spec"])["full_spec"]["max_failed_job_count"] == 5


def test_fewer_than_have_failed_already(cluster, client, pool):
    """Then it has failed."""
    id = vanilla(client, pool, "exit 1", max_failed_job_count=1000)
    wait_for(lambda: cluster.counters(id)["failed"], what="a failed job")
    client.patch_operation_spec(id, [{"path": "/max_failed_job_count", "value": 1}])
    cluster.wait_state(id, "failed")
    error = cluster.result(id)
    assert (error["code"], error["attributes"]["max_failed_job_count"]) == (215, 1)


@pytest.mark.parametrize("patches", [[], {}, "x", [5], [{"path": "/max_failed_job_count"}], [{"path": 5, "value": 5}]])
def test_patches_of_another_shape(client, operation, patches):
    with refused(1, "patches"):
        raw(client, "patch_operation_spec", operation_id=operation[0], patches=patches)


@pytest.mark.parametrize("path", ["/max_failed_job_count/x", "max_failed_job_count", "/tasks/t/command", "/secure_vault", ""])
def test_paths_that_are_not_for_patches(client, operation, path):
    with refused(1, "cannot be patched.*/max_failed_job_count"):
        client.patch_operation_spec(operation[0], [{"path": path, "value": 5}])


def test_what_is_refused(cluster, client, pool):
    def patch(**named):
        raw(client, "patch_operation_spec", patches=[{"path": "/max_failed_job_count", "value": 5}], **named)
    refuses_strange_operations(patch)
    refuses_finished_operations(cluster, pool, patch)
    with refused(1, "patches"):
        raw(client, "patch_operation_spec", operation_id=vanilla(client, pool))
