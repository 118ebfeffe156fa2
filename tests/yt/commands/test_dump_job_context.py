"""`dump_job_context` through the real client."""

import json

import pytest
import yt.wrapper


def test_dump_job_context(cluster, client, home):
    client.write_table(f"{home}/rows", [{"a": 1}, {"a": 2}])
    operation = client.run_map("cat > /dev/null; sleep 1000", f"{home}/rows", f"{home}/out", format="json", sync=False,
                               spec={"mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}})
    job, = cluster.wait_jobs(operation.id, timeout=120)
    client.dump_job_context(job, f"{home}/context")
    assert [json.loads(row) for row in client.read_file(f"{home}/context").read().splitlines()] == [{"a": 1}, {"a": 2}]
    with pytest.raises(yt.wrapper.YtResponseError):
        client.dump_job_context(job, f"{home}/context")
    client.abort_operation(operation.id)
    with pytest.raises(yt.wrapper.YtResponseError) as over:
        client.dump_job_context(job, f"{home}/late")
    assert over.value.contains_code(203) and not client.exists(f"{home}/late")
