"""`patch_operation_spec` through the real client."""

import pytest
import yt.wrapper


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
