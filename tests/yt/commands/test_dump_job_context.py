"""`dump_job_context` through the real client."""

import json

import pytest
import yt.wrapper
from calls import NO_JOB, raw, refused
from harness import wait_for


def test_dump_job_context(cluster, client, home):
    client.write_table(f"{home}/rows", [{"a": 1}, {"a": 2}])
    operation = client.run_map("cat > /dev/null; echo read >&2; sleep 1000", f"{home}/rows", f"{home}/out", format="json", sync=False,
                               spec={"mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}})
    job, = cluster.wait_jobs(operation.id)
    # The context has what the job has been given by now.
    wait_for(lambda: cluster.stderr(operation.id, job) == b"read\n", what="the job to read its rows")
    client.dump_job_context(job, f"{home}/context")
    assert [json.loads(row) for row in client.read_file(f"{home}/context").read().splitlines()] == [{"a": 1}, {"a": 2}]
    with pytest.raises(yt.wrapper.YtResponseError):
        client.dump_job_context(job, f"{home}/context")
    client.abort_operation(operation.id)
    with pytest.raises(yt.wrapper.YtResponseError) as over:
        client.dump_job_context(job, f"{home}/late")
    assert over.value.contains_code(203) and not client.exists(f"{home}/late")


def test_contexts_that_are_refused(client, home, operation):
    job = operation[1]
    with refused(1, "has no input"):
        client.dump_job_context(job, f"{home}/context")
    with refused(203, NO_JOB):
        client.dump_job_context(NO_JOB, f"{home}/context")
    path = f"{home}/context"
    for parameters, words in (({"job_id": job}, "path"), ({"path": path}, "job_id"), ({"job_id": "x", "path": path}, "job_id"),
                              ({"job_id": job, "path": "context"}, "context")):
        with refused(1, words):
            raw(client, "dump_job_context", **parameters)
    assert client.list(home) == []


def test_where_it_cannot_be(cluster, client, home):
    client.write_table(f"{home}/rows", [{"a": 1}])
    operation = client.run_map("cat > /dev/null; sleep 1000", f"{home}/rows", [], format="json", sync=False,
                               spec={"mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}})
    job, = cluster.wait_jobs(operation.id)
    for path, code in ((f"{home}/no/such/context", 500), (f"{home}/rows/below", 500)):
        with refused(code):
            client.dump_job_context(job, path)
    assert client.list(home) == ["rows"]
    client.abort_operation(operation.id)
